//! Errors of reading and writing records.

use crate::units::Words;

/// Why a record could not be decoded. The position is not part of it: only the reader of the record knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes given are not as many as the header announces, or not even a header.
    // prints: record: header says 5 words, found 16 bytes
    #[error("record: header says {announced}, found {found} bytes")]
    Size {
        /// Size in the header; 1 word if there is none.
        announced: Words,
        /// Bytes given.
        found: usize,
    },
    /// A part of the record does not fit in what is left of the record, or of the argument around it.
    // prints: name: expected 2 words, 1 word left
    #[error("{what}: expected {expected}, {found} left")]
    PastEnd {
        /// The part that does not fit.
        what: &'static str,
        /// Words it needs.
        expected: Words,
        /// Words available.
        found: Words,
    },
    /// An argument announces no words at all, not even its header.
    #[error("argument: expected a size of at least {expected}, found {found}")]
    ArgumentSize {
        /// The smallest size of an argument.
        expected: Words,
        /// Size in its header.
        found: Words,
    },
    /// An initialization record with a rate of zero.
    #[error("initialization: expected at least 1 tick per second, found 0")]
    NoTicks,
}

/// Why a record was not encoded. Nothing has been written then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The record is larger than its size field can express.
    // prints: record: expected at most 4095 words, found 4096 words
    #[error("record: expected at most {limit}, found {found}")]
    TooLarge {
        /// Largest size of a record.
        limit: Words,
        /// Size of this one.
        found: Words,
    },
    /// More arguments than the header can count.
    #[error("arguments: expected at most {limit}, found {found}")]
    TooManyArguments {
        /// Most arguments a record has.
        limit: usize,
        /// Arguments given.
        found: usize,
    },
    /// A string, a message or a provider's name is too long.
    #[error("{what}: expected at most {limit} bytes, found {found}")]
    TooLong {
        /// The text that is too long.
        what: &'static str,
        /// Its limit in bytes.
        limit: usize,
        /// Its length in bytes.
        found: usize,
    },
    /// A number does not fit in its field.
    #[error("{what}: expected at most {limit}, found {found}")]
    OutOfRange {
        /// The number that is too large.
        what: &'static str,
        /// Largest value of its field.
        limit: u64,
        /// The value given.
        found: u64,
    },
    /// Part of the format, but readers disagree on its meaning, so writers should not use it.
    // prints: fiber switch: it is read, never written
    #[error("{what}: it is read, never written")]
    ReadOnly {
        /// The item that cannot be written.
        what: &'static str,
    },
    /// The value has a type from a newer version, which is unknown here.
    #[error("{what}: expected a type of this version, found an unknown one")]
    UnknownType {
        /// The item of unknown type.
        what: &'static str,
    },
}
