//! Commands that show what is in a trace.

pub mod dump;
#[cfg(feature = "query")]
pub mod query;
pub mod report;
pub mod stats;
pub mod view;
