//! One trace of this process: its configuration and state, how it begins and ends, and what keeps it alive.

pub(crate) mod config;
pub(crate) mod context;
#[cfg(not(modelled))]
pub mod engine;
#[cfg(not(modelled))]
pub(crate) mod fork;
pub(crate) mod hold;
#[cfg_attr(not(feature = "hooks"), allow(dead_code))]
pub(crate) mod hook;
#[cfg(not(modelled))]
pub(crate) mod lease;
#[cfg(not(modelled))]
pub(crate) mod missed;
#[cfg(not(modelled))]
pub(crate) mod observer;
pub(crate) mod run;
#[cfg(not(modelled))]
pub(crate) mod state;
#[cfg(not(modelled))]
pub(crate) mod thread_exit;
#[cfg(not(modelled))]
pub(crate) mod trace_ref;
#[cfg(not(modelled))]
pub(crate) mod wanted;
