//! Reads and validates Fuchsia trace archives and shared buffers.
//!
//! The source of the bytes is the caller's choice. [`records`] splits them into records, in constant memory;
//! [`reader`] resolves the provider, strings, thread and time of each; [`dump`] writes it as a line.
//! [`buffer`] reads memory that a provider may still be writing.
//!
//! ```
//! use trace_reader::{Item, Reader};
//!
//! # let bytes = 0x0016_5478_4604_0010_u64.to_le_bytes();
//! # let file = &bytes[..];
//! let mut reader = Reader::new(file)?;
//! while let Some(record) = reader.next_item()? {
//!     if let Item::Event(event) = record.item {
//!         println!("{} {}", event.time.nanos(), event.name.to_str());
//!     }
//! }
//! # Ok::<(), trace_reader::ReadError>(())
//! ```
#![forbid(unsafe_code)]

mod balance;
pub mod buffer;
mod compressed;
mod definitions;
mod disorder;
pub mod dump;
mod file_kind;
mod functions;
mod further;
mod input;
pub mod item;
mod known_argument;
mod names;
mod number;
mod numbered;
pub mod reader;
pub mod recordings;
mod records;
mod resume;
pub mod sorter;
mod switch;
mod tables;
pub mod tail;
mod thread_numbers;
mod truncate;
mod unknown;
pub mod warning;

pub use balance::Balance;
pub use compressed::{Plain, is_suspicious};
pub use definitions::Definitions;

pub use disorder::{Disorder, Finder as DisorderFinder, FirstPoll, OperationKey, has_first_poll};
pub use file_kind::FileKind;
pub use input::{Input, Slice, Stream};
pub use item::{Arguments, Event, Item, Resolved, Text, TextKey, Thread, Time, Value};
pub use names::Names;
pub use numbered::Numbered;
pub use reader::Reader;
pub use recordings::{MANAGER, Mark, Recordings, Unended};
pub use records::{Gap, Leftover, RawRecord, ReadError, Records};
pub use switch::{Switch, Switched};
pub use thread_numbers::ThreadNumbers;
pub use trace_format::buffer::BUFFER_VERSION;
pub use trace_format::operation;
pub use truncate::{complete_records, complete_records_end};
pub use unknown::{ByType, Unknown};
pub use warning::{Warning, WarningKind, Warnings};

/// Revision of the trace format that is read and written.
pub const FORMAT_REVISION: &str = "0.1";

#[cfg(test)]
mod testing;
