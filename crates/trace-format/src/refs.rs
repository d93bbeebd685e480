//! References to strings and threads.

use crate::error::EncodeError;
use crate::sink::Sink;
use crate::units::{ProcessKoid, StringIndex, ThreadIndex, ThreadKoid, Words};

/// Longest string that is written, in bytes. Readers accept up to 32 767.
pub const MAX_STRING_BYTES: usize = 32_000;
const INLINE: u16 = 0x8000;

/// How a string stands in a record. Strings are bytes: UTF-8 by convention.
//= docs/format.md#string-references
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringRef<'a> {
    /// The empty string.
    Empty,
    /// A string that the provider registered.
    Index(StringIndex),
    /// The string itself.
    Inline(&'a [u8]),
}

/// The 16 bits of a reference to an inline string of so many bytes, at most 32 767; none at all is the empty
/// string.
#[inline(always)]
#[must_use]
pub const fn inline_string_ref(bytes: usize) -> u16 {
    if bytes == 0 { 0 } else { INLINE | bytes as u16 }
}

impl<'a> StringRef<'a> {
    /// A string as it is: inline, or empty.
    #[must_use]
    pub const fn inline(text: &'a str) -> Self {
        if text.is_empty() { Self::Empty } else { Self::Inline(text.as_bytes()) }
    }

    /// The reference's 16 bits.
    #[inline]
    #[must_use]
    pub const fn bits(&self) -> u16 {
        match self {
            Self::Empty => 0,
            Self::Index(index) => index.get(),
            Self::Inline(bytes) => inline_string_ref(bytes.len()),
        }
    }

    /// Words of its stream.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        match self {
            Self::Empty | Self::Index(_) => Words(0),
            Self::Inline(bytes) => Words::for_bytes(bytes.len()),
        }
    }

    /// Refuses a string that is too long to be written.
    pub(crate) fn check(&self, part: &'static str) -> Result<(), EncodeError> {
        match self {
            Self::Empty | Self::Index(_) => Ok(()),
            Self::Inline(bytes) => check_length(bytes, MAX_STRING_BYTES, part),
        }
    }

    #[inline]
    pub(crate) fn write(&self, sink: &mut impl Sink) {
        if let Self::Inline(bytes) = self {
            sink.bytes(bytes);
        }
    }
}

/// How a thread stands in a record.
//= docs/format.md#thread-references
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadRef {
    /// A thread that the provider registered.
    Index(ThreadIndex),
    /// The thread itself; two zeros are an unknown one.
    Inline {
        /// Its process.
        process: ProcessKoid,
        /// Itself.
        thread: ThreadKoid,
    },
}

impl ThreadRef {
    /// The reference's 8 bits.
    #[inline]
    #[must_use]
    pub const fn bits(&self) -> u8 {
        match self {
            Self::Index(index) => index.get(),
            Self::Inline { .. } => 0,
        }
    }

    /// Words behind the header.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        match self {
            Self::Index(_) => Words(0),
            Self::Inline { .. } => Words(2),
        }
    }

    #[inline]
    pub(crate) fn write(&self, sink: &mut impl Sink) {
        if let Self::Inline { process, thread } = self {
            sink.word(process.0.0);
            sink.word(thread.0.0);
        }
    }
}

#[inline]
pub(crate) fn check_length(bytes: &[u8], limit: usize, what: &'static str) -> Result<(), EncodeError> {
    if bytes.len() > limit {
        return Err(EncodeError::TooLong { what, limit, found: bytes.len() });
    }
    Ok(())
}
