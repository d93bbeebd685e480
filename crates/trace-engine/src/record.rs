//! Writing records: arguments, the hot path of an event, the slow path, and records that are no events.

#[cfg(not(modelled))]
pub(crate) mod alert;
#[cfg(not(modelled))]
pub(crate) mod argument_buffer;
pub mod arguments;
pub(crate) mod event;
pub(crate) mod event_writer;
#[cfg(not(modelled))]
mod hooked;
#[cfg(not(modelled))]
pub(crate) mod hot_path;
#[cfg(not(modelled))]
pub(crate) mod library_values;
#[cfg(not(modelled))]
pub(crate) mod mirror;
#[cfg(not(modelled))]
pub(crate) mod open_scope;
#[cfg(not(modelled))]
pub(crate) mod other_records;
pub(crate) mod privacy;
pub(crate) mod processor_time;
#[cfg(not(modelled))]
pub(crate) mod raw;
#[cfg(not(modelled))]
mod redacting;
#[cfg(not(modelled))]
pub(crate) mod rendering;
pub(crate) mod site_strings;
#[cfg(not(modelled))]
pub(crate) mod slow_path;
