//! The lock-free writer of trace records: call sites, macros, and the engine that owns a buffer.
//!
//! | room | holds |
//! |---|---|
//! | `api` | what instrumented code uses: macros, guards, tracks, futures, ids |
//! | [`ffi`] | what other languages need: sites without a section, records by hand, references on a trace |
//! | `record` | arguments, the hot path of an event, the slow writer, records that are no events, rendering |
//! | `session` | a trace: [`engine`] starts and stops it; its context, references on it, forked children |
//! | `slab` | a slab's life: allocator, free list, recall, retirement, streams of halves |
//! | `buffer` | the shared memory: region, durable region, definitions, the ledger of losses |
//! | `thread` | a thread's control block and the slab that it has open |
//! | `site` | call sites: their words, and how all of them are found |
//! | `sys`, `sync` | system calls; atomics and locks |
//!
//! A room uses only what stands below it in this table; `api` does not use `ffi`, and `buffer` and `thread`
//! do not use each other. The tidy test checks that.
//!
//! Applications use it through `trace-provider`, which re-exports the macros.
#![deny(unsafe_code)]
#![warn(clippy::disallowed_types)]

#[macro_use]
mod sync;

mod api;
mod buffer;
#[doc(hidden)]
pub mod ffi;
#[cfg(test)]
mod own_process;
mod record;
mod session;
mod site;
mod slab;
mod sys;
mod thread;

pub use api::async_scope::AsyncScope;
pub use api::duration_scope::DurationScope;
pub use api::future::{TraceFuture, TraceFutureArgs, TraceFutureExt};
pub use api::id::Id;
pub use api::track::{Track, TrackScope};
pub use buffer::region::{HeapWords, Region};
pub use record::alert::MAX_ALERT_BYTES;
pub use record::arguments as args;
pub use record::event::Event;
pub use record::hot_path::{write_event, write_event_at};
pub use record::rendering::{MAX_RENDERED_BYTES, Rendered, debug, display};
pub use session::config::{AlertHandler, AskCategory, Categories, Config, Disposition, ThreadKoids};
pub use session::engine;
pub use site::{ArgName, Site};
pub use slab::streaming::WakeHandler;
pub use trace_format::buffer::{BUFFER_VERSION, BufferMode};
pub use trace_format::event::{EventType, Scope};
pub use trace_format::scheduling::ThreadState;
pub use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};

#[doc(hidden)]
pub use record::alert::send_alert;
#[doc(hidden)]
pub use record::other_records::{
    write_attachment, write_blob, write_context_switch, write_instaflow, write_kernel_object,
    write_large_blob, write_thread_wakeup, write_virtual, write_virtual_at,
};
#[doc(hidden)]
pub use record::rendering::write_formatted_log;

/// Whether a trace is being recorded. [`category_enabled!`] says that of a category.
#[must_use]
pub fn is_enabled() -> bool {
    !cfg!(feature = "off") && engine::state() == engine::State::Started
}

/// A number that is not 0, and that no other process on this machine is likely to get.
#[must_use]
pub fn nonce() -> u64 {
    Id::new().0
}

/// This moment, for [`duration_complete!`]: later than all that this thread has taken before.
#[inline]
#[must_use]
pub fn now() -> Ticks {
    Ticks(record::processor_time::now())
}

/// The word behind an instant's arguments: none for the thread, which readers assume.
#[doc(hidden)]
#[inline(always)]
#[must_use]
pub const fn scope_word(scope: Scope) -> Option<u64> {
    match scope {
        Scope::Thread => None,
        Scope::Process => Some(1),
        Scope::Global => Some(2),
    }
}
