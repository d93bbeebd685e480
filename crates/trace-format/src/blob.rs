//! Blob records: bytes with a name and no time.
//!
//! ```text
//!  63    56 55     48 47 46          32 31        16 15         4 3  0
//! +--------+---------+--+--------------+------------+------------+----+
//! |   0    |blob type|0 | length bytes |    name    | size words |  5 |
//! +--------+---------+--+--------------+------------+------------+----+
//! | name, if inline ...                                               |
//! | payload ...                                                       |
//! ```

use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType, check_size};
use crate::refs::StringRef;
use crate::sink::Sink;
use crate::units::Words;

/// Blob type of bytes without a meaning of their own.
pub const TYPE_DATA: u8 = 1;
/// Blob type of the last-branch records of a CPU.
pub const TYPE_LAST_BRANCH: u8 = 2;
/// Blob type of a piece of a serialized Perfetto trace.
pub const TYPE_PERFETTO: u8 = 3;

/// The header of a blob record of `size_words` words and `length` bytes of payload.
//= docs/format.md#blob-record
#[inline]
#[must_use]
pub const fn header(size_words: u64, name_ref: u16, length: u16, blob_type: u8) -> u64 {
    RecordType::Blob as u64
        | (size_words << 4)
        | ((name_ref as u64) << 16)
        | ((length as u64) << 32)
        | ((blob_type as u64) << 48)
}

/// Bytes with a name; blobs of one name and provider are pieces of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob<'a> {
    /// What the payload is: [`TYPE_DATA`], [`TYPE_LAST_BRANCH`], [`TYPE_PERFETTO`] or newer.
    pub blob_type: u8,
    /// The name; a nameless blob has no meaning.
    pub name: StringRef<'a>,
    /// The bytes, at most 32 752 if the name is not inline.
    pub payload: &'a [u8],
}

impl<'a> Blob<'a> {
    //= docs/format.md#blob-record
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'a>) -> Result<Self, DecodeError> {
        let name = cursor.string(field(header.0, 16, 16) as u16, "blob name")?;
        let payload = cursor.stream(field(header.0, 32, 15) as usize, "blob payload")?;
        Ok(Self { blob_type: field(header.0, 48, 8) as u8, name, payload })
    }

    /// Size of the record.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        Words(1).plus(self.name.words()).plus(Words::for_bytes(self.payload.len()))
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// [`EncodeError::TooLong`] for the name, [`EncodeError::TooLarge`] for the payload.
    //= docs/format.md#blob-record
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        self.name.check("blob name")?;
        // A payload within the record is shorter than 32 768 bytes, so its length has room.
        let size_words = check_size(self.words())?;
        let length = self.payload.len() as u16;
        sink.word(header(size_words, self.name.bits(), length, self.blob_type));
        self.name.write(sink);
        sink.bytes(self.payload);
        Ok(())
    }
}
