//! Converts other formats into Fuchsia trace archives.

pub mod ftrace;
mod hand_over;
pub mod json;
pub mod perfetto;
mod room;
mod scanner;
#[cfg(test)]
mod testing;
mod timeline;
mod waiting;
mod writer;

use crate::Summary;
use std::io;

/// The remark about an input that ends too early.
const CUT_OFF: &str = "the file is cut off";
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

impl ImportError {
    /// The same for an archive that has contents; one that cannot be written may have none.
    fn after(self, summary: Summary) -> Self {
        match self {
            Self::Write(_) => self,
            error => Self::Stopped { error: Box::new(error), summary: Box::new(summary) },
        }
    }
}
