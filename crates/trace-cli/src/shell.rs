//! What a command has to do with its shell and its user: streams, exit codes, signals, progress.

pub mod caller;
pub mod exit;
pub mod json;
pub mod percent;
pub mod progress;
pub mod signals;
pub mod stdio;
pub mod table;
