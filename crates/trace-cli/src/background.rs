//! Recordings in the background, and what can be recorded.

pub mod list;
pub mod snapshot;
pub mod task;
