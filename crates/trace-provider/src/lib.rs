//! Joins an application to the trace manager, and provides the instrumentation macros.
//!
//! ```no_run
//! use trace_provider::{Scope, TraceProvider, instant};
//!
//! let _provider = TraceProvider::new("my-app");
//! instant!("app", "hello", Scope::Thread, "answer" => 42);
//! ```
//!
//! A [`TraceProvider`] keeps one thread that waits for a manager, follows it and switches the call sites on
//! and off. An application that is not traced pays one load and one branch for each call site it passes. The
//! thread keeps its descriptors in a table of its own: an application may close all that it does not know.
//!
//! [`PolledProvider`] is for applications that want no thread: their own loop does its work.
//!
//! A forked child is not recorded into its parent's buffer. It registers by itself, under the same name, when
//! it records its first event; that event should not come from a signal handler. A child of `vfork` counts as
//! its parent.
//!
//! The macros are those of [`trace_event`], which a library uses alone.
//!
//! With the feature `off`, and on other systems than Linux, all of them compile to nothing, and the provider
//! does nothing.
#![cfg_attr(
    feature = "attributes",
    doc = "\nThe attribute [`#[trace]`](macro@trace) records each call of a function."
)]
#![deny(unsafe_code)]

#[cfg(feature = "attributes")]
mod attribute;
// Where nothing is recorded, what does nothing stands in its place.
#[cfg_attr(any(feature = "off", elsewhere, not(target_os = "linux")), path = "nothing.rs")]
#[cfg_attr(not(all(feature = "dumps", feature = "startup")), allow(dead_code, unused_imports))]
mod linux;
mod marker_tags;
mod startup_options;

#[cfg(feature = "hooks")]
/// A function of the program's own that sees each event before it is recorded, and may keep it out.
pub mod hook {
    pub use trace_engine::trace_format::argument::{Argument, ArgumentValue, Arguments};
    pub use trace_engine::trace_format::event::{Event, EventKind};
    pub use trace_engine::trace_format::refs::{StringRef, ThreadRef};
    pub use trace_engine::{EventHook, set_event_hook as set};
}

#[cfg(feature = "attributes")]
pub use attribute::trace;
#[cfg(feature = "local")]
pub use linux::local;
#[cfg(feature = "startup")]
pub use linux::startup;
pub use linux::{
    Category, Config, EventCosts, PolledProvider, Registration, TraceProvider, atrace, config, event_costs,
    serve_caller_of_sudo, ticks_per_second,
};
#[cfg(feature = "dumps")]
pub use linux::{MemoryDump, on_memory_dump};
#[doc(inline)]
pub use trace_event::*;
