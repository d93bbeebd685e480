//! Converts other formats into Fuchsia trace archives.

pub mod container;
mod ended;
mod format;
pub mod ftrace;
mod hand_over;
pub mod json;
mod other_formats;
pub mod perfetto;
mod room;
mod scanner;
#[cfg(test)]
mod testing;
mod timeline;
mod waiting;
mod writer;

pub use format::Format;
pub use other_formats::other_format;

use crate::Summary;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

/// The remark about an input that ends too early.
const CUT_OFF: &str = "the file is cut off";
/// What a text may begin with.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Longest line of a text.
const LINE_BYTES: usize = 1 << 20;

/// Why an import failed. The output is a whole archive nevertheless.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The input cannot be read.
    #[error("cannot read")]
    Read(#[source] io::Error),
    /// The archive cannot be written.
    #[error("cannot write")]
    Write(#[source] io::Error),
    /// What has to wait for the end of the input cannot be stored in a temporary file.
    #[error("cannot store a part of the input in a temporary file; TMPDIR may name another directory for it")]
    Wait(#[source] io::Error),
    /// It does not have the expected syntax.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// Counted from 1.
        line: u64,
        /// In bytes, counted from 1.
        column: u64,
        /// The error.
        problem: String,
    },
    /// It is a document of another kind.
    // prints: expected a trace, found what looks like an HTTP archive (HAR)
    #[error("expected a trace, found {found}")]
    NoTrace {
        /// Its kind.
        found: String,
    },
    /// Events, lines or packets were found, and none of them can be read.
    // prints: taken for a JSON trace, but nothing in it can be read; events of other phases: 3
    #[error("taken for {taken_for}, but nothing in it can be read; {skipped}")]
    Nothing {
        /// The format that it was imported as.
        taken_for: &'static str,
        /// What was skipped, with counts.
        skipped: String,
    },
    /// The rest of the input cannot be read.
    #[error("{error}")]
    Stopped {
        /// The error.
        error: Box<ImportError>,
        /// The contents of the archive.
        summary: Box<Summary>,
    },
    /// It does not have the expected syntax.
    #[error("byte {offset}: {problem}")]
    Malformed {
        /// From the beginning of the file.
        offset: u64,
        /// The error.
        problem: String,
    },
}

/// Kinds of skipped parts that are no events: a trace without events may have them.
const NO_EVENTS: [&str; 2] = ["member", "metadata "];
/// How many kinds of skipped parts an error lists.
const MAX_LISTED_KINDS: usize = 3;

impl ImportError {
    /// The error of an input of which nothing but these was found.
    fn nothing(taken_for: &'static str, skipped: &BTreeMap<String, u64>) -> Option<Self> {
        let is_event = |kind: &str| !NO_EVENTS.iter().any(|start| kind.starts_with(start));
        let mut kinds: Vec<_> = skipped.iter().filter(|(kind, _)| is_event(kind)).collect();
        kinds.sort_by_key(|(_, count)| Reverse(**count));
        let listed = kinds.iter().take(MAX_LISTED_KINDS).map(|(kind, count)| format!("{kind}: {count}"));
        let skipped = listed.collect::<Vec<_>>().join(", ");
        (!kinds.is_empty()).then_some(Self::Nothing { taken_for, skipped })
    }

    /// The result of an import, from the results of reading the input and of finishing the archive.
    fn ended(read: Result<(), Self>, finished: Result<Summary, Self>) -> Result<Summary, Self> {
        match (read, finished) {
            (Ok(()), finished) => finished,
            (Err(error), Ok(summary)) => Err(error.after(summary)),
            (Err(error), finished) => Err(error.unless_unwritten(finished)),
        }
    }

    /// This error; where the archive cannot be written, the error of writing it, which matters more.
    fn unless_unwritten(self, finished: Result<Summary, Self>) -> Self {
        match finished {
            Err(error @ Self::Write(_)) => error,
            _ => self,
        }
    }

    /// The same for an archive that has contents; one that cannot be written may have none.
    fn after(self, summary: Summary) -> Self {
        match self {
            Self::Write(_) => self,
            error => Self::Stopped { error: Box::new(error), summary: Box::new(summary) },
        }
    }
}
