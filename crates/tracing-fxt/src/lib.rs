//! Records the spans and events of the [`tracing`](https://docs.rs/tracing) crate: with the same provider,
//! and in the same traces, as the macros of `trace-provider`.
//!
//! One line in `main` makes the provider and the subscriber:
//!
//! ```no_run
//! let _provider = tracing_fxt::init("my-app");
//! tracing::info_span!("request", id = 7).in_scope(|| tracing::info!("hello"));
//! ```
//!
//! To combine it with other layers, such as one that prints, add [`layer`] to the stack:
//!
//! ```no_run
//! # #[cfg(feature = "layer")] {
//! use tracing_subscriber::prelude::*;
//! let _provider = trace_provider::TraceProvider::new("my-app");
//! tracing_subscriber::registry().with(tracing_subscriber::fmt::layer()).with(tracing_fxt::layer()).init();
//! # }
//! ```
//!
//! | `tracing` | in the trace |
//! |---|---|
//! | target | category: `trace record --categories 'my_app*'` selects |
//! | span that is entered once | a duration of the thread, with the fields of the span |
//! | span that is entered again, or waits | an asynchronous operation from its first entry to its end |
//! | each time that it is entered | a poll of the operation |
//! | fields recorded later | arguments of the next end |
//! | a span, with [`Options::lifetimes`] | an asynchronous operation, from creation to last drop |
//! | `follows_from` | an arrow to the first time that the span is entered |
//! | a parent on another thread | an arrow from the parent to the first time that the span is entered |
//! | event | an instant of the thread; its name is `name:`, or its message, or `file:line` |
//! | event, with [`Options::events_as_logs`] | a message of the thread: `INFO target: message key=value` |
//! | field `counter.NAME` of an event | a sample of the counter NAME |
//! | other fields | arguments with the types of the values; up to 14 of an event, 12 of a span |
//!
//! The name of an event is its message as long as the line has produced only one; the event of a line whose
//! message varies is named `file:line`, and has an argument `message`.
//!
//! # Cost
//!
//! While no recording runs, callsites are disabled as in a program without a subscriber, unless another layer
//! enables them, and cost nearly nothing. While one runs, a span or an event makes no system call, takes no
//! lock and allocates nothing, except the first one of its callsite.
//!
//! # Limits
//!
//! A span has room for 160 bytes of fields, and for 64 of fields that are recorded later; fields without room
//! are counted by [`dropped_fields`]. The arguments of an event have 4096 bytes together; texts without room,
//! including the message, are cut. Fields of spans that were open when the recording began are missing.
#![forbid(unsafe_code)]

mod callsites;
mod fields;
#[cfg(feature = "layer")]
mod layer;
mod log_text;
#[cfg(feature = "layer")]
mod open_spans;
mod options;
mod pool;
mod runs;
mod span_data;
mod subscriber;
mod sync;
mod thread_state;
mod waiting;
mod writer;

#[cfg(feature = "layer")]
pub use layer::{FxtLayer, Recorded, layer};
#[cfg(feature = "layer")]
pub use options::Always;
pub use options::Options;
pub use subscriber::{FxtSubscriber, init};

/// The number of fields that were not recorded since the process began, because a span or an event had more
/// or longer fields than there is room for.
#[must_use]
pub fn dropped_fields() -> u64 {
    fields::dropped()
}
