//! One trace of this process: its state, what threads hold of it, and how it begins and ends.

pub(crate) mod context;
pub mod engine;
pub(crate) mod run;
pub(crate) mod thread_koids;
pub(crate) mod trace_ref;
