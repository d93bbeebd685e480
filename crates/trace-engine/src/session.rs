//! One trace of this process: its configuration and state, how it begins and ends, and what keeps it alive.

pub(crate) mod category_filter;
pub(crate) mod config;
pub(crate) mod context;
#[cfg(not(loom))]
pub mod engine;
#[cfg(not(loom))]
pub(crate) mod fork;
#[cfg(not(loom))]
pub(crate) mod lease;
#[cfg(not(loom))]
pub(crate) mod observer;
pub(crate) mod run;
#[cfg(not(loom))]
pub(crate) mod state;
#[cfg(not(loom))]
pub(crate) mod thread_exit;
#[cfg(not(loom))]
pub(crate) mod trace_ref;
#[cfg(not(loom))]
pub(crate) mod wanted;
