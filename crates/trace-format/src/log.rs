//! Log records: a message at a time on a thread.
//!
//! ```text
//!  63                  40 39      32 31 30          16 15         4 3  0
//! +----------------------+----------+--+--------------+------------+----+
//! |           0          |  thread  |0 | length bytes | size words |  9 |
//! +----------------------+----------+--+--------------+------------+----+
//! | timestamp                                                           |
//! | process koid, thread koid, if the thread is inline                  |
//! | message ...                                                         |
//! ```

use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType, check_size};
use crate::refs::{MAX_STRING_BYTES, ThreadRef, check_length};
use crate::sink::Sink;
use crate::units::{Ticks, Words};

/// The header of a log record of `size_words` words and `length` bytes of message.
//= docs/format.md#log-record
#[inline]
#[must_use]
pub const fn header(size_words: u64, length: u16, thread_ref: u8) -> u64 {
    RecordType::Log as u64 | (size_words << 4) | ((length as u64) << 16) | ((thread_ref as u64) << 32)
}

/// A line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log<'a> {
    /// When it was written.
    pub timestamp: Ticks,
    /// Who wrote it.
    pub thread: ThreadRef,
    /// The text, by convention UTF-8.
    pub message: &'a [u8],
}

impl<'a> Log<'a> {
    //= docs/format.md#log-record
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'a>) -> Result<Self, DecodeError> {
        let timestamp = Ticks(cursor.word("timestamp")?);
        let thread = cursor.thread(field(header.0, 32, 8) as u8)?;
        let message = cursor.stream(field(header.0, 16, 15) as usize, "message")?;
        Ok(Self { timestamp, thread, message })
    }

    /// Size of the record.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        Words(2).plus(self.thread.words()).plus(Words::for_bytes(self.message.len()))
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// [`EncodeError::TooLong`] if the message is longer than [`MAX_STRING_BYTES`].
    //= docs/format.md#log-record
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        check_length(self.message, MAX_STRING_BYTES, "message")?;
        let size_words = check_size(self.words())?;
        sink.word(header(size_words, self.message.len() as u16, self.thread.bits()));
        sink.word(self.timestamp.0);
        self.thread.write(sink);
        sink.bytes(self.message);
        Ok(())
    }
}
