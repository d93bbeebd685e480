//! Log records: a message with its time and thread.
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
    /// The thread that wrote it.
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

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use crate::record::Record;
    use crate::testing::{check_decode, check_golden, decode_error, encode, past_end};
    use crate::units::{Koid, ProcessKoid, ThreadIndex, ThreadKoid};

    const INLINE: ThreadRef =
        ThreadRef::Inline { process: ProcessKoid(Koid(1234)), thread: ThreadKoid(Koid(5678)) };

    #[test]
    //= docs/format.md#log-record
    fn examples() {
        let record = Record::Log(Log {
            timestamp: Ticks(0xaabb_ccdd_eeff_0011),
            thread: ThreadRef::Index(ThreadIndex::new(1).unwrap()),
            message: b"This is a log message",
        });
        // Header: type 9, 5 words, length 21, thread 1; timestamp; the message with 3 bytes of padding.
        let words = [
            0x0000_0001_0015_0059,
            0xaabb_ccdd_eeff_0011,
            0x2073_6920_7369_6854,
            0x656d_2067_6f6c_2061,
            0x0000_0065_6761_7373,
        ];
        check_golden(&words, record);
        // Reserved bits set.
        let mut reserved = words;
        reserved[0] |= 0xffff_ff00_8000_0000;
        check_decode(&reserved, record);
        // An inline thread.
        check_golden(
            &[0x0000_0000_0002_0059, 0xfa0, 0x4d2, 0x162e, 0x6968],
            Record::Log(Log { timestamp: Ticks(4000), thread: INLINE, message: b"hi" }),
        );
    }

    #[test]
    //= docs/format.md#limits
    fn a_message_is_as_long_as_a_string() {
        let message = vec![b'm'; 32_001];
        let log = |message| Record::Log(Log { timestamp: Ticks(1), thread: INLINE, message });
        assert_eq!(encode(&log(&message[..32_000])).unwrap().len(), 4004);
        let error = EncodeError::TooLong { what: "message", limit: 32_000, found: 32_001 };
        assert_eq!(encode(&log(&message)), Err(error));
    }

    #[test]
    //= docs/format.md#malformed-input
    fn parts_past_the_end_are_malformed() {
        assert_eq!(decode_error(&[0x0000_0001_0000_0019]), past_end("timestamp", 1, 0));
        assert_eq!(decode_error(&[0x0000_0000_0000_0039, 1, 2]), past_end("thread koid", 1, 0));
        assert_eq!(decode_error(&[0x0000_0001_0001_0029, 1]), past_end("message", 1, 0));
    }
}
