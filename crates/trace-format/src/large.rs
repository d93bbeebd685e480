//! Large records: blobs beyond the size of an ordinary record.
//!
//! ```text
//!  63                  44 43    40 39  36 35                            4 3  0
//! +----------------------+--------+------+-------------------------------+----+
//! |           0          | format |   0  |          size words           | 15 |
//! +----------------------+--------+------+-------------------------------+----+
//! |    0 (63..44)   | thread (43..36) | args (35..32) | name    | category    |
//! | category, if inline ...                                                   |
//! | name, if inline ...                                                       |
//! | format 0 only: timestamp; koids, if the thread is inline; arguments ...   |
//! | length of the payload in bytes                                            |
//! | payload ...                                                               |
//! ```

use crate::argument::Arguments;
use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType};
use crate::refs::{StringRef, ThreadRef};
use crate::sink::Sink;
use crate::units::{Ticks, Words};

#[cfg(test)]
mod tests;

/// Largest large record, header included: its size field has 32 bits.
pub const MAX_LARGE_RECORD_WORDS: usize = u32::MAX as usize;
/// This many bytes at the start of a large blob hold all of it except the payload, whatever its strings and
/// arguments are.
pub const MAX_START_BYTES: usize = 1 << 20;

const LARGE_BLOB: u64 = 0;
/// Format of a blob with a time, a thread and arguments.
pub const FORMAT_EVENT: u64 = 0;
/// Format of a blob without these.
pub const FORMAT_ATTACHMENT: u64 = 1;

/// The header of a large blob of `size_words` words.
//= docs/format.md#large-record
#[inline]
#[must_use]
pub const fn header(size_words: u64, format: u64) -> u64 {
    RecordType::Large as u64 | size_words << 4 | LARGE_BLOB << 36 | format << 40
}

/// The word behind the header of a large blob; an attachment has neither arguments nor thread.
//= docs/format.md#large-record
#[inline]
#[must_use]
pub const fn references(category_ref: u16, name_ref: u16, argument_count: u64, thread_ref: u8) -> u64 {
    category_ref as u64 | (name_ref as u64) << 16 | argument_count << 32 | (thread_ref as u64) << 36
}

/// Bytes with a category and a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargeBlob<'a> {
    /// The category that enables it.
    pub category: StringRef<'a>,
    /// Its name.
    pub name: StringRef<'a>,
    /// Its time and thread; none for an attachment.
    pub event: Option<LargeBlobEvent<'a>>,
    /// The bytes.
    pub payload: &'a [u8],
}

/// The additional fields of a large blob that is an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargeBlobEvent<'a> {
    /// Its time.
    pub timestamp: Ticks,
    /// Its thread.
    pub thread: ThreadRef,
    /// Its arguments.
    pub arguments: Arguments<'a>,
}

/// The start of a large blob, whose payload may continue after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargeBlobStart<'a> {
    /// The blob, with the available part of the payload.
    pub blob: LargeBlob<'a>,
    /// Length of the whole payload in bytes.
    pub payload_bytes: u64,
}

impl<'a> LargeBlobStart<'a> {
    /// Decodes the first bytes of a large record, ideally [`MAX_START_BYTES`]. None for a type or format of a
    /// newer version, and for a record that is not large.
    ///
    /// # Errors
    ///
    /// The record is malformed, or a part other than the payload is not there.
    //= docs/format.md#large-record
    pub fn decode(start: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        let mut cursor = Cursor::new(start);
        let header = RecordHeader(cursor.word("record header")?);
        let format = field(header.0, 40, 4);
        let is_blob = header.record_type() == Some(RecordType::Large) && field(header.0, 36, 4) == LARGE_BLOB;
        if !is_blob || !matches!(format, FORMAT_EVENT | FORMAT_ATTACHMENT) {
            return Ok(None);
        }
        let parts = cursor.word("format header")?;
        let category = cursor.string(field(parts, 0, 16) as u16, "category")?;
        let name = cursor.string(field(parts, 16, 16) as u16, "blob name")?;
        let event = match format {
            FORMAT_EVENT => Some(LargeBlobEvent {
                timestamp: Ticks(cursor.word("timestamp")?),
                thread: cursor.thread(field(parts, 36, 8) as u8)?,
                arguments: Arguments::decode(field(parts, 32, 4), &mut cursor)?,
            }),
            _ => None,
        };
        let payload_bytes = cursor.word("payload length")?;
        // The payload has to fit into the record, whether all of it is available or not.
        let length = usize::try_from(payload_bytes).unwrap_or(usize::MAX);
        let taken = Words::for_bytes(start.len() - cursor.rest().len());
        let left = Words(header.size().0.saturating_sub(taken.0));
        if Words::for_bytes(length) > left {
            let expected = Words::for_bytes(length);
            return Err(DecodeError::PastEnd { what: "blob payload", expected, found: left });
        }
        let payload = cursor.rest().get(..length).unwrap_or(cursor.rest());
        Ok(Some(Self { blob: LargeBlob { category, name, event, payload }, payload_bytes }))
    }
}

impl<'a> LargeBlob<'a> {
    /// All of a record; none for a type or format of a newer version.
    pub(crate) fn decode(record: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        Ok(LargeBlobStart::decode(record)?.map(|start| start.blob))
    }

    /// Size of the record.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        let event = match self.event {
            Some(event) => Words(1).plus(event.thread.words()).plus(event.arguments.words()),
            None => Words(0),
        };
        Words(3)
            .plus(self.category.words())
            .plus(self.name.words())
            .plus(event)
            .plus(Words::for_bytes(self.payload.len()))
    }

    /// Writes the record. Other readers may not support it: Perfetto's misinterprets it.
    ///
    /// # Errors
    ///
    /// [`EncodeError::TooLong`] for a string, [`EncodeError::TooManyArguments`],
    /// [`EncodeError::UnknownType`] for an argument, [`EncodeError::TooLarge`] above
    /// [`MAX_LARGE_RECORD_WORDS`].
    //= docs/format.md#large-record
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        self.category.check("category")?;
        self.name.check("blob name")?;
        if let Some(event) = self.event {
            event.arguments.check()?;
        }
        let (limit, found) = (Words(MAX_LARGE_RECORD_WORDS), self.words());
        if found > limit {
            return Err(EncodeError::TooLarge { limit, found });
        }
        let format = if self.event.is_some() { FORMAT_EVENT } else { FORMAT_ATTACHMENT };
        sink.word(header(found.0 as u64, format));
        let (count, thread) =
            self.event.map_or((0, 0), |event| (event.arguments.len() as u64, event.thread.bits()));
        sink.word(references(self.category.bits(), self.name.bits(), count, thread));
        self.category.write(sink);
        self.name.write(sink);
        if let Some(event) = self.event {
            sink.word(event.timestamp.0);
            event.thread.write(sink);
            event.arguments.write(sink);
        }
        sink.word(self.payload.len() as u64);
        sink.bytes(self.payload);
        Ok(())
    }
}
