//! Takes a record apart word by word, never past its end.

use crate::error::DecodeError;
use crate::refs::{INLINE, StringRef, ThreadRef};
use crate::units::{Koid, ProcessKoid, StringIndex, ThreadIndex, ThreadKoid, Words};

/// The rest of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next word.
    #[inline]
    pub fn word(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        match self.rest.split_first_chunk::<8>() {
            Some((word, rest)) => {
                self.rest = rest;
                Ok(u64::from_le_bytes(*word))
            }
            None => Err(self.past_end(what, Words(1))),
        }
    }

    /// The given number of words, as bytes.
    #[inline]
    pub fn words(&mut self, size: Words, what: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(size.bytes()) {
            Some((words, rest)) => {
                self.rest = rest;
                Ok(words)
            }
            None => Err(self.past_end(what, size)),
        }
    }

    /// A stream of the given number of bytes, without its padding, whose content is ignored.
    //= docs/format.md#words-and-streams
    #[inline]
    pub fn stream(&mut self, bytes: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let words = self.words(Words::for_bytes(bytes), what)?;
        Ok(words.get(..bytes).unwrap_or(words))
    }

    /// The string for a reference's bits.
    //= docs/format.md#string-references
    #[inline]
    pub fn string(&mut self, bits: u16, what: &'static str) -> Result<StringRef<'a>, DecodeError> {
        if bits & INLINE != 0 {
            return match usize::from(bits & !INLINE) {
                0 => Ok(StringRef::Empty),
                bytes => self.stream(bytes, what).map(StringRef::Inline),
            };
        }
        Ok(StringIndex::new(bits).map_or(StringRef::Empty, StringRef::Index))
    }

    /// The thread for a reference's bits.
    //= docs/format.md#thread-references
    #[inline]
    pub fn thread(&mut self, bits: u8) -> Result<ThreadRef, DecodeError> {
        match ThreadIndex::new(bits) {
            Some(index) => Ok(ThreadRef::Index(index)),
            None => Ok(ThreadRef::Inline {
                process: ProcessKoid(Koid(self.word("process koid")?)),
                thread: ThreadKoid(Koid(self.word("thread koid")?)),
            }),
        }
    }

    #[cold]
    fn past_end(&self, what: &'static str, expected: Words) -> DecodeError {
        DecodeError::PastEnd { what, expected, found: Words(self.rest.len() / 8) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::past_end;

    #[test]
    //= docs/format.md#words-and-streams
    fn a_stream_ends_at_a_word_and_its_padding_does_not_matter() {
        let mut cursor = Cursor::new(b"1234567X\xff\xff\xff\xff\xff\xff\xff\xffeight...");
        assert_eq!(cursor.stream(0, "none"), Ok(&b""[..]));
        assert_eq!(cursor.stream(7, "seven"), Ok(&b"1234567"[..]));
        assert_eq!(cursor.stream(1, "one"), Ok(&b"\xff"[..]));
        assert_eq!(cursor.stream(8, "eight"), Ok(&b"eight..."[..]));
        assert_eq!(cursor.rest(), b"");
    }

    #[test]
    //= docs/format.md#malformed-input
    fn what_does_not_fit_is_not_taken() {
        let mut cursor = Cursor::new(b"12345678");
        assert_eq!(cursor.stream(9, "name"), Err(past_end("name", 2, 1)));
        assert_eq!(cursor.stream(usize::MAX, "name"), Err(past_end("name", usize::MAX / 8 + 1, 1)));
        assert_eq!(cursor.word("word"), Ok(u64::from_le_bytes(*b"12345678")));
        assert_eq!(cursor.word("word"), Err(past_end("word", 1, 0)));
    }
}
