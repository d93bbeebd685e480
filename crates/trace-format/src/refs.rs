//! References to strings and threads.

use crate::error::EncodeError;
use crate::sink::Sink;
use crate::units::{ProcessKoid, StringIndex, ThreadIndex, ThreadKoid, Words};

/// Longest string that is written, in bytes. Readers accept up to 32 767.
pub const MAX_STRING_BYTES: usize = 32_000;
/// In the 16 bits of a reference to an inline string, beside its length.
pub const INLINE: u16 = 0x8000;

/// A reference to a string. Strings are bytes: UTF-8 by convention.
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

/// The 16 bits of a reference to an inline string of the given length, at most 32 767; length 0 is the empty
/// string.
#[inline(always)]
#[must_use]
pub const fn inline_string_ref(bytes: usize) -> u16 {
    if bytes == 0 { 0 } else { INLINE | bytes as u16 }
}

/// The longest prefix of a text that fits into the given number of bytes and ends with a whole character.
//= docs/format.md#limits
#[inline]
#[must_use]
pub fn truncate(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl<'a> StringRef<'a> {
    /// A string as it is: inline, or empty.
    #[must_use]
    pub const fn inline(text: &'a str) -> Self {
        if text.is_empty() { Self::Empty } else { Self::Inline(text.as_bytes()) }
    }

    /// A string cut to [`MAX_STRING_BYTES`], where a character ends.
    //= docs/format.md#limits
    #[must_use]
    pub fn truncated(text: &'a str) -> Self {
        Self::inline(truncate(text, MAX_STRING_BYTES))
    }

    /// The reference's 16 bits.
    #[must_use]
    #[inline(always)]
    pub const fn bits(&self) -> u16 {
        match self {
            Self::Empty => 0,
            Self::Index(index) => index.get(),
            Self::Inline(bytes) => inline_string_ref(bytes.len()),
        }
    }

    /// Words of its stream.
    #[must_use]
    #[inline(always)]
    pub const fn words(&self) -> Words {
        match self {
            Self::Empty | Self::Index(_) => Words(0),
            Self::Inline(bytes) => Words::for_bytes(bytes.len()),
        }
    }

    /// Refuses a string that is too long to be written.
    #[inline(always)]
    pub(crate) fn check(&self, part: &'static str) -> Result<(), EncodeError> {
        match self {
            Self::Empty | Self::Index(_) => Ok(()),
            Self::Inline(bytes) => check_length(bytes, MAX_STRING_BYTES, part),
        }
    }

    #[inline(always)]
    pub(crate) fn write(&self, sink: &mut impl Sink) {
        if let Self::Inline(bytes) = self {
            sink.bytes(bytes);
        }
    }
}

/// A reference to a thread.
//= docs/format.md#thread-references
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadRef {
    /// A thread that the provider registered.
    Index(ThreadIndex),
    /// The thread itself; two zeros are an unknown one.
    Inline {
        /// Its process.
        process: ProcessKoid,
        /// The thread.
        thread: ThreadKoid,
    },
}

impl ThreadRef {
    /// The reference's 8 bits.
    #[inline(always)]
    #[must_use]
    pub const fn bits(&self) -> u8 {
        match self {
            Self::Index(index) => index.get(),
            Self::Inline { .. } => 0,
        }
    }

    /// Words behind the header.
    #[inline(always)]
    #[must_use]
    pub const fn words(&self) -> Words {
        match self {
            Self::Index(_) => Words(0),
            Self::Inline { .. } => Words(2),
        }
    }

    #[inline(always)]
    pub(crate) fn write(&self, sink: &mut impl Sink) {
        if let Self::Inline { process, thread } = self {
            sink.word(process.0.0);
            sink.word(thread.0.0);
        }
    }
}

#[inline(always)]
pub(crate) fn check_length(bytes: &[u8], limit: usize, what: &'static str) -> Result<(), EncodeError> {
    if bytes.len() > limit {
        return Err(EncodeError::TooLong { what, limit, found: bytes.len() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use crate::cursor::Cursor;
    use crate::error::DecodeError;
    use crate::testing::past_end;
    use crate::units::Koid;

    fn decode(bits: u16, bytes: &[u8]) -> Result<StringRef<'_>, DecodeError> {
        Cursor::new(bytes).string(bits, "name")
    }

    #[test]
    //= docs/format.md#string-references
    fn a_string_is_empty_indexed_or_inline() {
        assert_eq!(decode(0, b""), Ok(StringRef::Empty));
        assert_eq!(decode(1, b""), Ok(StringRef::Index(StringIndex::new(1).unwrap())));
        assert_eq!(decode(0x7fff, b""), Ok(StringRef::Index(StringIndex::MAX)));
        assert_eq!(decode(0x8003, b"abc\0\0\0\0\0"), Ok(StringRef::Inline(b"abc")));
        assert_eq!(decode(0x8000, b""), Ok(StringRef::Empty));
        assert_eq!(decode(0x8009, b"abcdefgh"), Err(past_end("name", 2, 1)));
    }

    #[test]
    //= docs/format.md#string-references
    fn an_empty_string_is_written_as_0() {
        assert_eq!(StringRef::inline(""), StringRef::Empty);
        assert_eq!(StringRef::Empty.bits(), 0);
        assert_eq!(StringRef::Inline(b"").bits(), 0);
        assert_eq!(StringRef::Index(StringIndex::MAX).bits(), 0x7fff);
        assert_eq!(StringRef::inline("abc").bits(), 0x8003);
        assert_eq!(inline_string_ref(MAX_STRING_BYTES), 0xfd00);
    }

    #[test]
    //= docs/format.md#limits
    fn readers_take_longer_strings_than_writers_make() {
        let bytes = vec![b'x'; 32_768];
        assert_eq!(decode(0xffff, &bytes), Ok(StringRef::Inline(&bytes[..32_767])));
        assert_eq!(StringRef::Inline(&bytes[..32_000]).check("name"), Ok(()));
        let error = EncodeError::TooLong { what: "name", limit: 32_000, found: 32_001 };
        assert_eq!(StringRef::Inline(&bytes[..32_001]).check("name"), Err(error));
    }

    #[test]
    //= docs/format.md#limits
    fn texts_are_cut_between_characters() {
        assert_eq!(truncate("aé", 3), "aé");
        assert_eq!(truncate("aé", 2), "a");
        assert_eq!(truncate("", 0), "");
        // Three bytes each: 32 000 is no multiple of three.
        let text = "€".repeat(10_667);
        let StringRef::Inline(cut) = StringRef::truncated(&text) else { panic!("it is not empty") };
        assert_eq!(cut.len(), 31_998);
        assert_eq!(str::from_utf8(cut).unwrap().chars().count(), 10_666);
        assert_eq!(StringRef::truncated(""), StringRef::Empty);
    }

    #[test]
    //= docs/format.md#thread-references
    fn only_0_is_an_inline_thread() {
        let words = [7u64.to_le_bytes(), 9u64.to_le_bytes()];
        let inline = ThreadRef::Inline { process: ProcessKoid(Koid(7)), thread: ThreadKoid(Koid(9)) };
        assert_eq!(Cursor::new(words.as_flattened()).thread(0), Ok(inline));
        assert_eq!(inline.bits(), 0);
        for bits in 1..=255 {
            let indexed = ThreadRef::Index(ThreadIndex::new(bits).unwrap());
            assert_eq!(Cursor::new(b"").thread(bits), Ok(indexed));
            assert_eq!(indexed.bits(), bits);
        }
        assert_eq!(Cursor::new(&words[0]).thread(0), Err(past_end("thread koid", 1, 0)));
    }
}
