//! Commands for scripts and installations.

pub mod dump_memory;
pub mod install;
pub mod manager;
pub mod time;
