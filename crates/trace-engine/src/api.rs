//! What instrumented code uses: macros, the guards and futures behind them, tracks and ids. All of it is at
//! the root of the crate.

mod async_scope;
mod current;
mod duration_scope;
mod dynamic_site;
mod future;
mod id;
mod macros;
mod track;

pub use self::async_scope::AsyncScope;
#[doc(hidden)]
pub use self::current::{Within, current_operation, innermost_operation};
pub use self::duration_scope::{DurationScope, UseTraceFutureAcrossAwait};
pub use self::dynamic_site::{ArgumentTuple, DynamicSite};
pub use self::future::{TraceFuture, TraceFutureArgs, TraceFutureExt};
pub use self::id::Id;
pub use self::track::{Track, TrackScope};
pub use crate::buffer::region::{HeapWords, Region};
pub use crate::record::alert::MAX_ALERT_BYTES;
#[doc(hidden)]
pub use crate::record::argument_buffer::{ArgumentBuffer, Number, TextWriter};
pub use crate::record::arguments as args;
pub use crate::record::event::Event;
pub use crate::record::hot_path::{ThreadMoment, stamp, write_event, write_event_at};
pub use crate::record::rendering::{MAX_RENDERED_BYTES, Rendered, debug, display};
pub use crate::session::config::{
    AlertHandler, Categories, CategoryPredicate, Config, Disposition, Mark, Mirror, ThreadKoids,
};
pub use crate::session::engine;
#[cfg(feature = "hooks")]
pub use crate::session::hook::{EventHook, set_event_hook};
pub use crate::site::{ArgName, Site};
pub use crate::slab::streaming::WakeHandler;
#[doc(hidden)]
pub use trace_format;
pub use trace_format::buffer::{BUFFER_VERSION, BufferMode};
pub use trace_format::event::{EventType, Scope};
pub use trace_format::scheduling::ThreadState;
pub use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};

#[doc(hidden)]
pub use crate::record::alert::{send_alert, send_literal_alert};
#[doc(hidden)]
pub use crate::record::event::scope_word;
#[doc(hidden)]
pub use crate::record::event_writer::VirtualName;
#[doc(hidden)]
pub use crate::record::other_records::{
    write_attachment, write_blob, write_context_switch, write_event_of, write_instaflow, write_kernel_object,
    write_large_blob, write_literal_log, write_log, write_thread_wakeup, write_virtual, write_virtual_at,
};
#[doc(hidden)]
pub use crate::record::privacy::is_literal;
#[doc(hidden)]
pub use crate::record::rendering::write_formatted_log;

/// Stops the compiler where a literal text stands in the place of something else.
#[doc(hidden)]
pub const fn assert_no_text(value: &str, message: &str) {
    assert!(!matches!(value.as_bytes().first(), Some(b'"')), "{}", message);
}

/// Marks a text that is a constant of the program as one, where it is an argument and does not stand there as
/// a literal: a private recording (`trace record --privacy`) has it, as it has literals, and no other texts.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Scope, instant, literal};
/// const STATES: [&str; 2] = ["idle", "busy"];
/// # let (busy, user) = (true, String::new());
/// instant!("app", "state", Scope::Thread, "now" => literal(STATES[usize::from(busy)]), "user" => &user);
/// ```
#[must_use]
pub const fn literal(text: &'static str) -> args::Literal {
    args::Literal(text)
}

/// Whether a trace is being recorded. [`category_enabled!`] says that of a category.
#[must_use]
pub fn is_enabled() -> bool {
    !cfg!(any(feature = "off", elsewhere)) && engine::state() == engine::State::Started
}

/// A number that is not 0, and that no other process on this machine is likely to get.
#[must_use]
pub fn nonce() -> u64 {
    Id::new().0
}

/// A moment at which a duration of this name begins, of a site that was found on and not fast.
#[doc(hidden)]
#[must_use]
pub fn begin_scope(name: &[u8]) -> Ticks {
    Ticks(crate::record::processor_time::begin_named_scope(name))
}

/// This moment, for [`duration_complete!`]: later than all that this thread has taken before.
#[inline]
#[must_use]
pub fn now() -> Ticks {
    Ticks(crate::record::processor_time::now())
}
