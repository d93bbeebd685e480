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
    /// The type of the payload: [`TYPE_DATA`], [`TYPE_LAST_BRANCH`], [`TYPE_PERFETTO`] or a newer one.
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

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use crate::record::Record;
    use crate::testing::{check_decode, check_golden, decode_error, encode, past_end};
    use crate::units::StringIndex;

    fn name(index: u16) -> StringRef<'static> {
        StringRef::Index(StringIndex::new(index).unwrap())
    }

    #[test]
    //= docs/format.md#blob-record
    fn examples() {
        let payload = b"This is some data that we are writing";
        let record = Record::Blob(Blob { blob_type: TYPE_DATA, name: name(0x7777), payload });
        // Header: type 5, 6 words, name, length 37, blob type 1; then the payload with 3 bytes of padding.
        let words = [
            0x0001_0025_7777_0065,
            0x2073_6920_7369_6854,
            0x7461_6420_656d_6f73,
            0x7720_7461_6874_2061,
            0x7277_2065_7261_2065,
            0x0000_0067_6e69_7469,
        ];
        check_golden(&words, record);
        // Reserved bits set.
        let mut reserved = words;
        reserved[0] |= 0xff00_8000_0000_0000;
        check_decode(&reserved, record);
        // An inline name before a payload of four bytes.
        check_golden(
            &[0x0003_0004_8002_0035, 0x6670, 0x0108_020a],
            Record::Blob(Blob {
                blob_type: TYPE_PERFETTO,
                name: StringRef::Inline(b"pf"),
                payload: &[0x0a, 0x02, 0x08, 0x01],
            }),
        );
        // Neither name nor payload.
        check_golden(
            &[0x0001_0000_0000_0015],
            Record::Blob(Blob { blob_type: TYPE_DATA, name: StringRef::Empty, payload: b"" }),
        );
    }

    #[test]
    //= docs/format.md#limits
    fn the_record_limits_the_payload() {
        let payload = vec![1; 32_753];
        let blob = |payload| Record::Blob(Blob { blob_type: 2, name: name(1), payload });
        let words = encode(&blob(&payload[..32_752])).unwrap();
        assert_eq!(words.len(), 4095);
        assert_eq!(words[0], 0x0002_7ff0_0001_fff5);
        let error = EncodeError::TooLarge { limit: Words(4095), found: Words(4096) };
        assert_eq!(encode(&blob(&payload)), Err(error));
        let name = StringRef::Inline(&payload[..32_001]);
        let error = EncodeError::TooLong { what: "blob name", limit: 32_000, found: 32_001 };
        assert_eq!(encode(&Record::Blob(Blob { blob_type: 2, name, payload: b"" })), Err(error));
    }

    #[test]
    //= docs/format.md#malformed-input
    fn parts_past_the_end_are_malformed() {
        assert_eq!(decode_error(&[0x0001_0009_0001_0025, 0]), past_end("blob payload", 2, 1));
        assert_eq!(decode_error(&[0x0001_0000_8009_0025, 0]), past_end("blob name", 2, 1));
        assert_eq!(decode_error(&[0x0001_0001_8001_0025, 0]), past_end("blob payload", 1, 0));
    }
}
