//! Writing records: arguments, the hot path of an event, the slow path, and records that are no events.

#[cfg(not(loom))]
pub(crate) mod alert;
pub mod arguments;
pub(crate) mod event;
pub(crate) mod event_writer;
#[cfg(not(loom))]
pub(crate) mod hot_path;
#[cfg(not(loom))]
pub(crate) mod other_records;
pub(crate) mod processor_time;
#[cfg(not(loom))]
pub(crate) mod raw;
#[cfg(not(loom))]
pub(crate) mod rendering;
pub(crate) mod site_strings;
#[cfg(not(loom))]
pub(crate) mod slow_path;
