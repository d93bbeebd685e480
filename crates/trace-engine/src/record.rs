//! Writing records: arguments, the hot path of an event, the slow path, and records that are no events.

pub(crate) mod alert;
pub mod arguments;
pub(crate) mod event;
pub(crate) mod event_writer;
pub(crate) mod hot_path;
pub(crate) mod other_records;
pub(crate) mod processor_time;
pub(crate) mod raw;
pub(crate) mod rendering;
pub(crate) mod site_strings;
pub(crate) mod slow_path;
