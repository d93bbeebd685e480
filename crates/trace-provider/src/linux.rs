//! The provider: its thread or the application's loop, its line to the manager, and its part in a recording.

pub mod atrace;
mod buffer;
mod callbacks;
mod config;
mod dispatcher;
#[cfg(feature = "local")]
mod echo;
mod errand;
mod event_costs;
mod fork;
#[cfg(feature = "local")]
pub mod local;
mod lock;
mod manager;
mod memory_dump;
mod polled;
mod provider;
mod queue;
mod session;
pub mod startup;
mod unrecorded;
mod watch;

pub use config::{Category, Config, config, ticks_per_second};
pub use event_costs::{EventCosts, event_costs};
pub use manager::serve_caller_of_sudo;
pub use memory_dump::{MemoryDump, on_memory_dump};
pub use polled::PolledProvider;
pub use provider::{Registration, TraceProvider};
