//! The Linux kernel as a trace provider: context switches, wakeups, interrupts, system calls and all other
//! tracepoints, and the markers that programs write into `trace_marker`, on the timeline of all other
//! providers.
//!
//! | module | contents |
//! |---|---|
//! | [`tracefs`], [`instance`] | the kernel's files, and this provider's own instance |
//! | [`page`], [`format`], [`merge`] | reading of the kernel's binary pages |
//! | [`categories`], [`probes`] | which events are wanted |
//! | [`decoder`] | the meaning of events |
//! | [`collector`], [`records`] | one recording, into this process's trace buffer |
//! | [`metrics`], [`cpu_counters`] | system and process metrics from `/proc`, and counters of each thread |
//! | [`profiler`] | samples of the stacks of running threads |
//! | [`unprivileged`] | recording without privileges |
#![forbid(unsafe_code)]

mod applications;
mod calls;
pub mod categories;
pub mod collector;
pub mod cpu_counters;
pub mod decoder;
pub mod format;
pub mod instance;
pub mod merge;
pub mod metrics;
pub mod page;
mod perf;
pub mod probes;
mod processes;
pub mod profiler;
mod recording;
pub mod records;
mod semantics;
mod service;
mod symbols;
#[cfg(test)]
mod testing;
pub mod tracefs;
pub mod unprivileged;

pub use service::{Failure, NAME, Options, READY, category_names, run};

/// Category of tracepoints that are selected by their own name.
pub const POINT_CATEGORY: &str = "kernel:tp";

/// Reports a message to the process that started this one.
pub(crate) fn report(what: &str) {
    zx_sim::debuglog::write(&format!("{NAME}: {what}"));
}
