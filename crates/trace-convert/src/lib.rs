//! Converts Fuchsia trace archives to other formats.
//!
//! [`catapult`] writes the JSON that Catapult (chrome://tracing) reads, as Fuchsia's own exporter does or as
//! Chrome does; [`perfetto`] writes Perfetto's protobuf packets; [`folded`] has a line for each stack of a
//! profile or of slices; [`speedscope`] and [`firefox`] write what profilers read; [`tables`] has a row for
//! each event, for databases; [`import`] makes archives of other formats, [`filtered`] ones with less in
//! them; [`seekable`] compresses.
#![deny(unsafe_code)]

mod export;
mod filter;
pub mod filtered;
#[cfg(test)]
mod full;
pub mod import;
mod json;
mod members;
mod output;
mod profile;
pub mod seekable;
mod sink;
mod source;
pub mod tables;

pub use export::{Jobs, catapult, firefox, folded, perfetto, speedscope};
pub use filter::{BadPattern, Filter, Selected};
pub use profile::read_no_files;
pub use trace_model::{Odd, OddFinder};

use std::io;
use std::sync::Arc;
use trace_reader::ReadError;

/// Adds the thread's own clock to arguments: its time at the beginning of an event, and how far it advances
/// during the event, in nanoseconds.
//= docs/import.md#thread-times
const THREAD_TS: &str = "thread_ts";
const THREAD_DUR: &str = "thread_dur";

/// Why a conversion failed. The output is not a whole document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The input cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output cannot be written.
    #[error("cannot write")]
    Write(#[source] io::Error),
    /// Readers of the output would misunderstand slices in the order of their records. The output is of no
    /// use; a second conversion needs to know what is odd.
    #[error("slices are not in an order that the format can express in one pass")]
    Odd(Box<Odd>),
}

/// The results of a conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events written.
    pub events: u64,
    /// Records that the target cannot express, by name, with counts; in order of the names.
    pub skipped: Vec<(String, u64)>,
    /// Remarks about the output, with counts.
    pub remarks: Vec<(String, u64)>,
    /// Malformed parts of an input: their readable parts were converted.
    pub malformed: u64,
    /// Warnings of the reader, such as malformed records.
    pub warnings: u64,
    /// The first warnings.
    pub first_warnings: Vec<String>,
    /// How many of the skipped records could not be read: the input is damaged, or newer than its reader.
    pub unread: u64,
    /// The first of these.
    pub first_unread: Vec<Unread>,
    /// Whether the input is truncated, which its format permits.
    pub is_cut_off: bool,
    /// Why the rest of the input was not read. The result is complete, with the data before that.
    pub stopped: Option<Stopped>,
}

impl Summary {
    /// Adds records that the target cannot express, by name; those that are none are left out.
    pub fn add_skipped(&mut self, skipped: impl IntoIterator<Item = (&'static str, u64)>) {
        for (kind, count) in skipped.into_iter().filter(|(_, count)| *count > 0) {
            match self.skipped.binary_search_by(|(known, _)| (**known).cmp(kind)) {
                Ok(place) => self.skipped[place].1 += count,
                Err(place) => self.skipped.insert(place, (kind.to_owned(), count)),
            }
        }
    }

    /// Adds remarks with their counts; those without any are left out.
    pub fn add_remarks(&mut self, remarks: impl IntoIterator<Item = (&'static str, u64)>) {
        let remarks = remarks.into_iter().filter(|(_, count)| *count > 0);
        self.remarks.extend(remarks.map(|(remark, count)| (remark.to_owned(), count)));
    }
}

/// Why an input was not read to its end, although a part of it was.
#[derive(Clone, Debug)]
pub struct Stopped(Arc<ReadError>);

impl Stopped {
    fn new(error: ReadError) -> Self {
        Self(Arc::new(error))
    }

    /// The error.
    #[must_use]
    pub fn error(&self) -> &ReadError {
        &self.0
    }
}

/// Errors of one kind and position are equal.
impl PartialEq for Stopped {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for Stopped {}

/// A part of an input that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its position in the decompressed input: the beginning of the enclosing packet or record.
    pub offset: u64,
    /// The error.
    pub text: String,
}
