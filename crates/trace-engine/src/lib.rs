//! The lock-free writer of trace records: call sites, macros, and the engine that owns a buffer.
//!
//! | module | is |
//! |---|---|
//! | [`engine`] | initialize, start, stop, terminate: what a provider's dispatcher calls |
//! | [`Region`] | the memory of a buffer |
//! | `site`, `site_word`, `section` | call sites, and how all of them are found |
//! | `write` | the hot path of an event and the slow path behind it |
//! | `block` | what a thread owns, and whether it is inside an event |
//! | `claim`, `own_slab`, `slabs`, `free_list` | slabs, and a thread's way into one and out of it |
//! | `durable`, `strings` | definitions and string indices |
//! | `retire`, `streaming` | the dispatcher: taking slabs back, handing halves over |
//! | `loss` | counting what is not kept |
//! | [`enlisted`], [`raw`], [`hold`] | what other languages need: sites without a section, records by hand |
//!
//! Applications use it through `trace-provider`, which re-exports the macros.
#![deny(unsafe_code)]
#![warn(clippy::disallowed_types)]

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
mod sync;
mod sys;
mod thread;

pub use api::async_scope::AsyncScope;
pub use api::duration_scope::DurationScope;
pub use api::future::{TraceFuture, TraceFutureArgs, TraceFutureExt};
pub use api::id::Id;
pub use api::track::{Track, TrackScope};
pub use buffer::region::{HeapWords, Region};
pub use record::alert::{AlertHandler, MAX_ALERT_BYTES};
pub use record::arguments as args;
pub use record::rendering::{MAX_RENDERED_BYTES, Rendered, debug, display};
pub use record::write::{Event, write_event, write_event_at};
pub use session::context::{AskCategory, Categories, Config, Disposition};
pub use session::engine;
pub use session::thread_koids::ThreadKoids;
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

/// Whether a trace is being recorded. Of a category, [`category_enabled!`] tells.
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
    Ticks(if record::processor_time::is_wanted() {
        record::processor_time::begin()
    } else {
        record::write::stamp()
    })
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
