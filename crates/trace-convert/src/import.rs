//! Makes Fuchsia trace archives of other formats.

pub mod ftrace;
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

/// Why an import failed. What was written before is a whole archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The input cannot be read.
    #[error("cannot read")]
    Read(#[source] io::Error),
    /// The archive cannot be written.
    #[error("cannot write")]
    Write(#[source] io::Error),
    /// It is not what it seemed to be.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// Counted from 1.
        line: u64,
        /// In bytes, counted from 1.
        column: u64,
        /// What is wrong.
        problem: String,
    },
    /// It is a document of another kind.
    // prints: expected a trace, found what looks like an HTTP archive (HAR)
    #[error("expected a trace, found {found}")]
    NoTrace {
        /// What it is.
        found: String,
    },
    /// The rest cannot be read.
    #[error("{error}")]
    Stopped {
        /// Why.
        error: Box<ImportError>,
        /// What the archive has.
        summary: Box<Summary>,
    },
    /// It is not what it seemed to be.
    #[error("byte {offset}: {problem}")]
    Malformed {
        /// From the beginning of the file.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
}

impl ImportError {
    /// The same for an archive that has something; one that cannot be written has nothing for sure.
    fn after(self, summary: Summary) -> Self {
        match self {
            Self::Write(_) => self,
            error => Self::Stopped { error: Box::new(error), summary: Box::new(summary) },
        }
    }
}
