//! String records: entries of a provider's string table.
//!
//! ```text
//!  63      48 47 46          32 31 30          16 15         4 3  0
//! +----------+--+--------------+--+--------------+------------+----+
//! |     0    |0 | length bytes |0 |     index    | size words |  2 |
//! +----------+--+--------------+--+--------------+------------+----+
//! | text ...                                                       |
//! ```

use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType, check_size};
use crate::refs::{MAX_STRING_BYTES, check_length};
use crate::sink::Sink;
use crate::units::{StringIndex, Words};

/// The header of a string record of `size_words` words and `length` bytes of text.
//= docs/format.md#string-record
#[inline]
#[must_use]
pub const fn header(size_words: u64, index: u16, length: u16) -> u64 {
    RecordType::String as u64 | (size_words << 4) | ((index as u64) << 16) | ((length as u64) << 32)
}

/// Gives a string an index from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringRecord<'a> {
    /// The index, up to 32 767; a record with index 0 registers nothing.
    pub index: u16,
    /// The text, by convention UTF-8.
    pub value: &'a [u8],
}

impl<'a> StringRecord<'a> {
    //= docs/format.md#string-record
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'a>) -> Result<Self, DecodeError> {
        let index = field(header.0, 16, 15) as u16;
        let value = cursor.stream(field(header.0, 32, 15) as usize, "string")?;
        Ok(Self { index, value })
    }

    /// Size of the record.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        Words(1).plus(Words::for_bytes(self.value.len()))
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// [`EncodeError::OutOfRange`] if the index is above 32 767, [`EncodeError::TooLong`] if the text is
    /// longer than [`MAX_STRING_BYTES`].
    //= docs/format.md#string-record
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        if self.index > StringIndex::MAX.get() {
            return Err(EncodeError::OutOfRange {
                what: "string index",
                limit: u64::from(StringIndex::MAX.get()),
                found: u64::from(self.index),
            });
        }
        check_length(self.value, MAX_STRING_BYTES, "string")?;
        let size_words = check_size(self.words())?;
        sink.word(header(size_words, self.index, self.value.len() as u16));
        sink.bytes(self.value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use crate::record::Record;
    use crate::testing::{bytes, check_decode, check_golden, decode_error, encode, past_end, sized};

    fn record(index: u16, value: &[u8]) -> Record<'_> {
        Record::String(StringRecord { index, value })
    }

    #[test]
    //= docs/format.md#string-record
    fn examples() {
        // Header: type 2, 2 words, index 1, length 7; then the text and a byte of padding.
        check_golden(&[0x0000_0007_0001_0022, 0x0073_7365_636f_7270], record(1, b"process"));
        // Length 8, no padding.
        check_golden(&[0x0000_0008_0002_0022, 0x4141_4141_5f54_4143], record(2, b"CAT_AAAA"));
        // Length 1, seven bytes of padding.
        check_golden(&[0x0000_0001_7fff_0022, 0x61], record(0x7fff, b"a"));
        check_golden(&[0x0000_0000_0003_0012], record(3, b""));
        // Index 0 is read, and means nothing.
        check_golden(&[0x0000_0001_0000_0022, 0x61], record(0, b"a"));
        // Reserved bits set, and padding that is not zero.
        check_decode(&[0xffff_8003_8001_0022, 0x7878_7878_7874_6163], record(1, b"cat"));
    }

    #[test]
    //= docs/format.md#limits
    fn readers_take_longer_strings_than_writers_make() {
        let text = vec![b'x'; 32_767];
        let words = encode(&record(1, &text[..32_000])).unwrap();
        assert_eq!(words.len(), 4001);
        assert_eq!(words[0], 0x0000_7d00_0001_fa12);
        let error = EncodeError::TooLong { what: "string", limit: 32_000, found: 32_001 };
        assert_eq!(encode(&record(1, &text[..32_001])), Err(error));
        // A reader's limit is what the record holds.
        let mut words = vec![0x7878_7878_7878_7878; 4095];
        words[0] = header(0, 1, 32_752);
        assert_eq!(Record::decode(&bytes(&sized(&words))), Ok(record(1, &text[..32_752])));
        words[0] = header(0, 1, 32_753);
        assert_eq!(decode_error(&sized(&words)), past_end("string", 4095, 4094));
    }

    #[test]
    fn an_index_has_15_bits() {
        let error = EncodeError::OutOfRange { what: "string index", limit: 32_767, found: 32_768 };
        assert_eq!(encode(&record(0x8000, b"a")), Err(error));
    }

    #[test]
    //= docs/format.md#malformed-input
    fn a_text_past_the_end_is_malformed() {
        assert_eq!(decode_error(&[0x0000_0009_0001_0022, 0]), past_end("string", 2, 1));
    }
}
