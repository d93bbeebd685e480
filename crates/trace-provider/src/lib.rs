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
//! # Macros
//!
//! | for | macros |
//! |---|---|
//! | spans of a thread | [`duration!`], [`duration_begin!`], [`duration_end!`], [`duration_complete!`] |
//! | moments and numbers | [`instant!`], [`counter!`] |
//! | operations across threads | [`async_begin!`], [`async_instant!`], [`async_end!`], [`async_enter!`] |
//! | futures | [`trace_future_args!`], [`TraceFutureExt`] |
//! | arrows between spans | [`flow_begin!`], [`flow_step!`], [`flow_end!`] |
//! | arrows with a span of their own | [`instaflow_begin!`], [`instaflow_step!`], [`instaflow_end!`] |
//! | a [`Track`] of your own | [`track_duration!`], [`track_duration_begin!`], [`track_duration_end!`] |
//! | moments on a track | [`track_instant!`] |
//! | virtual threads | [`vthread_duration_begin!`], [`vthread_duration_end!`], [`vthread_counter!`] |
//! | arrows of virtual threads | [`vthread_flow_begin!`], [`vthread_flow_step!`], [`vthread_flow_end!`] |
//! | text and data | [`log!`], [`blob!`], [`blob_attachment!`], [`blob_record!`] |
//! | schedulers and kernel objects | [`context_switch!`], [`thread_wakeup!`], [`kernel_object!`] |
//! | the recording itself | [`alert!`], [`category_enabled!`], [`is_enabled`] |
//!
//! With the feature `off` all of them compile to nothing.
#![cfg_attr(
    feature = "attributes",
    doc = "\nThe attribute [`#[trace]`](macro@trace) records each call of a function."
)]
#![deny(unsafe_code)]

pub mod atrace;
#[cfg(feature = "attributes")]
mod attribute;
mod buffer;
mod callbacks;
mod config;
mod dispatcher;
mod fork;
mod lock;
mod manager;
mod memory_dump;
mod polled;
mod provider;
mod session;
mod thread;
mod watch;

#[cfg(feature = "attributes")]
pub use attribute::trace;
pub use config::{Category, Config, config, ticks_per_second};
pub use memory_dump::{MemoryDump, on_memory_dump};
pub use polled::PolledProvider;
pub use provider::{Registration, TraceProvider};
pub use trace_engine::args::IntoValue;
pub use trace_engine::{
    Id, Koid, ProcessKoid, Scope, ThreadKoid, ThreadState, Ticks, TraceFuture, TraceFutureExt, Track, debug,
    display, is_enabled, nonce, now,
};
pub use trace_engine::{
    alert, async_begin, async_end, async_enter, async_instant, blob, blob_attachment, blob_record,
    category_enabled, context_switch, counter, duration, duration_begin, duration_complete, duration_end,
    flow_begin, flow_end, flow_step, instaflow_begin, instaflow_end, instaflow_step, instant, kernel_object,
    log, thread_wakeup, trace_future_args, track_duration, track_duration_begin, track_duration_end,
    track_instant, vthread_counter, vthread_duration_begin, vthread_duration_end, vthread_flow_begin,
    vthread_flow_end, vthread_flow_step,
};
