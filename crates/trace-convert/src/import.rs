//! Makes Fuchsia trace archives of other formats.

pub mod json;
mod scanner;
mod writer;

use std::io;

/// Why an import failed. What was written before is a whole archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The input cannot be read.
    #[error("cannot read: {0}")]
    Read(#[source] io::Error),
    /// The archive cannot be written.
    #[error("cannot write: {0}")]
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
}
