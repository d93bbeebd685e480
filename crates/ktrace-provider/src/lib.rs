//! Linux's kernel as a trace provider: context switches, wakeups, interrupts, system calls and whatever else
//! it has trace points for, and the markers that programs write into `trace_marker`, on the time line of all
//! other providers.
//!
//! | module | is |
//! |---|---|
//! | [`tracefs`], [`instance`] | the kernel's files, and what of them is ours |
//! | [`page`], [`format`], [`merge`] | the kernel's binary pages, read |
//! | [`categories`], [`probes`] | what is wanted |
//! | [`decoder`] | what the events mean |
//! | [`collector`], [`records`] | one recording, into this process's trace buffer |
//! | [`metrics`], [`cpu_counters`] | how busy the system is, from `/proc`; what is counted for each thread |
//! | [`profiler`] | where threads are |
//! | [`own`] | what can be recorded without rights |
#![forbid(unsafe_code)]

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

/// Category of trace points that are wanted by their own name.
pub const POINT_CATEGORY: &str = "kernel:tp";

/// Reports a message to the process that started this one.
pub(crate) fn tell(what: &str) {
    zx_sim::debuglog::write(&format!("{NAME}: {what}"));
}
