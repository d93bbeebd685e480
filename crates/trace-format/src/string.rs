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
