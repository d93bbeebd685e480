//! Errors of reading and writing records.

use crate::units::Words;
use core::fmt;

/// Why a record could not be decoded. The position is not part of it: only the reader of the record knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes given are not as many as the header announces, or not even a header.
    Size {
        /// Size in the header; 1 word if there is none.
        announced: Words,
        /// Bytes given.
        found: usize,
    },
    /// A part of the record does not fit in what is left of the record, or of the argument around it.
    PastEnd {
        /// The part that does not fit.
        what: &'static str,
        /// Words it needs.
        expected: Words,
        /// Words available.
        found: Words,
    },
    /// An argument announces no words at all, not even its header.
    ArgumentSize {
        /// The smallest size of an argument.
        expected: Words,
        /// Size in its header.
        found: Words,
    },
    /// An initialization record with a rate of zero.
    NoTicks,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // prints: record: header says 5 words, found 16 bytes
            Self::Size { announced, found } => {
                write!(f, "record: header says {announced}, found {found} bytes")
            }
            // prints: name: expected 2 words, 1 word left
            Self::PastEnd { what, expected, found } => write!(f, "{what}: expected {expected}, {found} left"),
            Self::ArgumentSize { expected, found } => {
                write!(f, "argument: expected a size of at least {expected}, found {found}")
            }
            Self::NoTicks => f.write_str("initialization: expected at least 1 tick per second, found 0"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Why a record was not encoded. Nothing has been written then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The record is larger than its size field can express.
    TooLarge {
        /// Largest size of a record.
        limit: Words,
        /// Size of this one.
        found: Words,
    },
    /// More arguments than the header can count.
    TooManyArguments {
        /// Most arguments a record has.
        limit: usize,
        /// Arguments given.
        found: usize,
    },
    /// A string, a message or a provider's name is too long.
    TooLong {
        /// The text that is too long.
        what: &'static str,
        /// Its limit in bytes.
        limit: usize,
        /// Its length in bytes.
        found: usize,
    },
    /// A number does not fit in its field.
    OutOfRange {
        /// The number that is too large.
        what: &'static str,
        /// Largest value of its field.
        limit: u64,
        /// The value given.
        found: u64,
    },
    /// Part of the format, but readers disagree on its meaning, so writers should not use it.
    ReadOnly {
        /// The item that cannot be written.
        what: &'static str,
    },
    /// The value has a type from a newer version, which is unknown here.
    UnknownType {
        /// The item of unknown type.
        what: &'static str,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // prints: record: expected at most 4095 words, found 4096 words
            Self::TooLarge { limit, found } => write!(f, "record: expected at most {limit}, found {found}"),
            Self::TooManyArguments { limit, found } => {
                write!(f, "arguments: expected at most {limit}, found {found}")
            }
            Self::TooLong { what, limit, found } => {
                write!(f, "{what}: expected at most {limit} bytes, found {found}")
            }
            Self::OutOfRange { what, limit, found } => {
                write!(f, "{what}: expected at most {limit}, found {found}")
            }
            // prints: fiber switch: it is read, never written
            Self::ReadOnly { what } => write!(f, "{what}: it is read, never written"),
            Self::UnknownType { what } => {
                write!(f, "{what}: expected a type of this version, found an unknown one")
            }
        }
    }
}

impl core::error::Error for EncodeError {}
