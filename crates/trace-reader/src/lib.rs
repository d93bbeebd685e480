//! Reads and validates Fuchsia trace archives and shared buffers.
//!
//! Where the bytes come from is not its business. [`records`] splits a stream into records, in constant
//! memory; [`reader`] gives each its provider, its strings, its thread and its time; [`dump`] writes it as a
//! line. [`buffer`] reads memory that a provider may still be writing.
#![forbid(unsafe_code)]

pub mod buffer;
pub mod dump;
mod file_kind;
pub mod reader;
pub mod records;
mod tables;

pub use file_kind::FileKind;
pub use reader::{Item, Reader, Resolved, ResolvedEvent, Text, Value, Warning, WarningKind};
pub use records::{Leftover, RawRecord, ReadError, Records};
pub use trace_format::buffer::BUFFER_VERSION;

/// Revision of the trace format that is read and written.
pub const FORMAT_REVISION: &str = "0.1";

#[cfg(test)]
mod testing;
