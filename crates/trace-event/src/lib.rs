//! The macros that record events, for libraries.
//!
//! ```
//! use trace_event::duration;
//!
//! pub fn parse(text: &str) -> Vec<&str> {
//!     duration!("parser", "parse", "bytes" => text.len());
//!     text.split(',').collect()
//! }
//! # assert_eq!(parse("a,b"), ["a", "b"]);
//! ```
//!
//! This is all that a library needs: the crate opens no files, starts no thread, and links only `libc` and
//! `pin-project-lite` besides this project's own code. The program that uses the library depends on
//! `trace-provider` and creates a `TraceProvider`; in programs that do not, a call site costs one load and
//! one branch.
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
//! | texts that are known at run time | [`DynamicSite`] |
//! | the recording itself | [`alert!`], [`category_enabled!`], [`is_enabled`] |
//!
//! With the feature `off`, and on other systems than Linux, all of them compile to nothing. A library leaves
//! the feature to the program.
#![forbid(unsafe_code)]

pub use trace_engine::args::IntoValue;
pub use trace_engine::{
    ArgumentTuple, DynamicSite, Id, Koid, ProcessKoid, Scope, ThreadKoid, ThreadState, Ticks, TraceFuture,
    TraceFutureExt, Track, debug, display, is_enabled, literal, nonce, now,
};
pub use trace_engine::{
    alert, async_begin, async_end, async_enter, async_instant, blob, blob_attachment, blob_record,
    category_enabled, context_switch, counter, duration, duration_begin, duration_complete, duration_end,
    flow_begin, flow_end, flow_step, instaflow_begin, instaflow_end, instaflow_step, instant, kernel_object,
    log, thread_wakeup, trace_future_args, track_duration, track_duration_begin, track_duration_end,
    track_instant, vthread_counter, vthread_duration_begin, vthread_duration_end, vthread_flow_begin,
    vthread_flow_end, vthread_flow_step,
};
