//! Thread records: entries of a provider's thread table.
//!
//! ```text
//!  63                           24 23      16 15         4 3  0
//! +-------------------------------+----------+------------+----+
//! |               0               |   index  |      3     |  3 |
//! +-------------------------------+----------+------------+----+
//! | process koid                                               |
//! | thread koid                                                |
//! +------------------------------------------------------------+
//! ```

use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType};
use crate::sink::Sink;
use crate::units::{Koid, ProcessKoid, ThreadKoid, Words};

/// The header of a thread record; process koid and thread koid follow.
//= docs/format.md#thread-record
#[inline]
#[must_use]
pub const fn header(index: u8) -> u64 {
    RecordType::Thread as u64 | (3 << 4) | ((index as u64) << 16)
}

/// Gives a thread an index from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadRecord {
    /// The index; a record with index 0 registers nothing.
    pub index: u8,
    /// Process of the thread.
    pub process: ProcessKoid,
    /// The thread.
    pub thread: ThreadKoid,
}

impl ThreadRecord {
    //= docs/format.md#thread-record
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            index: field(header.0, 16, 8) as u8,
            process: ProcessKoid(Koid(cursor.word("process koid")?)),
            thread: ThreadKoid(Koid(cursor.word("thread koid")?)),
        })
    }

    /// Size of the record: 3 words.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        Words(3)
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// None; the result type is that of all kinds of record.
    //= docs/format.md#thread-record
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        sink.word(header(self.index));
        sink.word(self.process.0.0);
        sink.word(self.thread.0.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::testing::{check_decode, check_golden, decode_error, past_end};

    fn record(index: u8) -> Record<'static> {
        Record::Thread(ThreadRecord {
            index,
            process: ProcessKoid(Koid(1234)),
            thread: ThreadKoid(Koid(5678)),
        })
    }

    #[test]
    //= docs/format.md#thread-record
    fn examples() {
        // Header: type 3, 3 words, index; process koid; thread koid.
        check_golden(&[0x0000_0000_0001_0033, 0x4d2, 0x162e], record(1));
        check_golden(&[0x0000_0000_00ff_0033, 0x4d2, 0x162e], record(255));
        // Index 0 is read, and means nothing.
        check_golden(&[0x0000_0000_0000_0033, 0x4d2, 0x162e], record(0));
        // Reserved bits set.
        check_decode(&[0xffff_ffff_ff01_0033, 0x4d2, 0x162e], record(1));
    }

    #[test]
    //= docs/format.md#malformed-input
    fn two_koids_are_needed() {
        assert_eq!(decode_error(&[0x0001_0023, 0x4d2]), past_end("thread koid", 1, 0));
        assert_eq!(decode_error(&[0x0001_0013]), past_end("process koid", 1, 0));
    }
}
