//! Losses of a provider, as stored in an archive: the payload of a blob named `trace:loss`.
//!
//! ```text
//!  63                           32 31           16 15            0
//! +-------------------------------+---------------+---------------+
//! |          provider id          |    reason     |    version    |
//! +-------------------------------+---------------+---------------+
//! | how many records                                              |
//! | timestamp of the first of them                                |
//! | timestamp of the last of them                                 |
//! ```

use crate::bits::field;
use crate::blob::{Blob, TYPE_DATA};
use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::refs::StringRef;
use crate::slab::LossReason;
use crate::units::{ProviderId, Ticks};

/// Name of the blobs that report losses.
pub const LOSS_BLOB_NAME: &str = "trace:loss";
/// The version of the payload that is written.
pub const LOSS_VERSION: u16 = 1;
/// Bytes of the payload of this version.
pub const LOSS_BYTES: usize = 32;

/// Why records are missing, as a number in an archive: those of [`LossReason`], then the collector's own.
//= docs/format.md#loss-blob
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LossCode(pub u16);

impl LossCode {
    /// The collector found a malformed record, and dropped it.
    pub const MALFORMED: Self = Self(32);
    /// A gap in a buffer whose writer died.
    pub const SALVAGED_GAP: Self = Self(33);
    /// Number of the buffer's counters with values that its writer cannot have counted; the number of missing
    /// records is unknown.
    pub const DAMAGED_COUNTERS: Self = Self(34);
    /// Dropped to keep the archive within its maximum size.
    pub const LEFT_OUT: Self = Self(35);
    /// A program that wanted to be recorded was not.
    pub const NOT_RECORDED: Self = Self(36);
    /// A program was recorded only from a time on at which it was running already.
    pub const JOINED_LATE: Self = Self(37);
    /// The collector stopped recording a program, or could not read the rest of its buffer.
    pub const REST_MISSING: Self = Self(38);

    /// Whether a loss with this reason has a number of records. Without one, [`LossRecord::count`] is 1, or
    /// the number of damaged counters.
    #[must_use]
    pub const fn has_count(self) -> bool {
        !matches!(self, Self::DAMAGED_COUNTERS | Self::NOT_RECORDED | Self::JOINED_LATE | Self::REST_MISSING)
    }

    /// A short description; none for a code of a newer version.
    #[must_use]
    pub fn text(self) -> Option<&'static str> {
        match self {
            Self::MALFORMED => Some("malformed"),
            Self::SALVAGED_GAP => Some("salvaged gap"),
            Self::DAMAGED_COUNTERS => Some("damaged counters"),
            Self::LEFT_OUT => Some("no room in the archive"),
            Self::NOT_RECORDED => Some("not recorded"),
            Self::JOINED_LATE => Some("joined late"),
            Self::REST_MISSING => Some("the rest is missing"),
            Self(code) => LossReason::ALL.get(usize::from(code)).map(|reason| reason.text()),
        }
    }
}

impl From<LossReason> for LossCode {
    fn from(reason: LossReason) -> Self {
        Self(reason as u16)
    }
}

/// One provider's loss for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRecord {
    /// The provider whose records are missing.
    pub provider: ProviderId,
    /// The reason.
    pub reason: LossCode,
    /// The number of missing records, where the reason [has one](LossCode::has_count).
    pub count: u64,
    /// When the first of them would have been written.
    pub first: Ticks,
    /// When the last of them would have been written.
    pub last: Ticks,
}

impl LossRecord {
    /// The payload.
    //= docs/format.md#loss-blob
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LOSS_BYTES] {
        let head = LOSS_VERSION as u64 | (self.reason.0 as u64) << 16 | (self.provider.0 as u64) << 32;
        let words = [
            head.to_le_bytes(),
            self.count.to_le_bytes(),
            self.first.0.to_le_bytes(),
            self.last.0.to_le_bytes(),
        ];
        let mut bytes = [0; LOSS_BYTES];
        bytes.copy_from_slice(words.as_flattened());
        bytes
    }

    /// The blob around a payload.
    #[must_use]
    pub const fn blob(payload: &[u8; LOSS_BYTES]) -> Blob<'_> {
        Blob { blob_type: TYPE_DATA, name: StringRef::inline(LOSS_BLOB_NAME), payload }
    }

    /// Decodes a payload; none for one of another version. Words after it are ignored.
    ///
    /// # Errors
    ///
    /// [`DecodeError::PastEnd`] if the payload is too short.
    //= docs/format.md#loss-blob
    pub fn decode(payload: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let head = cursor.word("loss")?;
        if field(head, 0, 16) as u16 != LOSS_VERSION {
            return Ok(None);
        }
        Ok(Some(Self {
            provider: ProviderId(field(head, 32, 32) as u32),
            reason: LossCode(field(head, 16, 16) as u16),
            count: cursor.word("loss count")?,
            first: Ticks(cursor.word("first loss")?),
            last: Ticks(cursor.word("last loss")?),
        }))
    }
}

/// Name of the blobs that report how a provider's records add up.
pub const LEDGER_BLOB_NAME: &str = "trace:ledger";
/// The version of the payload that is written.
pub const LEDGER_VERSION: u16 = 1;
/// Bytes of the payload of this version.
pub const LEDGER_BYTES: usize = 40;

/// How a provider's records add up at the end of a run, all runs before it included.
//= docs/format.md#ledger-blob
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerRecord {
    /// The provider.
    pub provider: ProviderId,
    /// Records that its threads wrote or tried to write, by the counts they left in the buffer; definitions
    /// are not counted.
    pub generated: u64,
    /// Of these, records in the archive.
    pub archived: u64,
    /// All of its records in the archive, definitions included.
    pub records: u64,
    /// Threads that were not seen to leave their slab, each of which may have been killed while it wrote one
    /// record.
    pub uncertain: u64,
}

impl LedgerRecord {
    /// The payload.
    //= docs/format.md#ledger-blob
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEDGER_BYTES] {
        let words = [
            (LEDGER_VERSION as u64 | (self.provider.0 as u64) << 32).to_le_bytes(),
            self.generated.to_le_bytes(),
            self.archived.to_le_bytes(),
            self.records.to_le_bytes(),
            self.uncertain.to_le_bytes(),
        ];
        let mut bytes = [0; LEDGER_BYTES];
        bytes.copy_from_slice(words.as_flattened());
        bytes
    }

    /// The blob around a payload.
    #[must_use]
    pub const fn blob(payload: &[u8; LEDGER_BYTES]) -> Blob<'_> {
        Blob { blob_type: TYPE_DATA, name: StringRef::inline(LEDGER_BLOB_NAME), payload }
    }

    /// Decodes a payload; none for one of another version. Words after it are ignored.
    ///
    /// # Errors
    ///
    /// [`DecodeError::PastEnd`] if the payload is too short.
    //= docs/format.md#ledger-blob
    pub fn decode(payload: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let head = cursor.word("ledger")?;
        if field(head, 0, 16) as u16 != LEDGER_VERSION {
            return Ok(None);
        }
        Ok(Some(Self {
            provider: ProviderId(field(head, 32, 32) as u32),
            generated: cursor.word("generated records")?,
            archived: cursor.word("archived records")?,
            records: cursor.word("records")?,
            uncertain: cursor.word("uncertain records")?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::testing::{check_golden, past_end};

    const LOSS: LossRecord = LossRecord {
        provider: ProviderId(7),
        reason: LossCode(4),
        count: 1000,
        first: Ticks(0x1111_2222_3333),
        last: Ticks(0x4444_5555_6666),
    };

    #[test]
    //= docs/format.md#loss-blob
    fn golden() {
        // Header: type 5, 7 words, inline name of 10 bytes, payload of 32 bytes, blob type 1.
        check_golden(
            &[
                0x0001_0020_800a_0075,
                0x6f6c_3a65_6361_7274,
                0x7373,
                0x0000_0007_0004_0001,
                1000,
                0x1111_2222_3333,
                0x4444_5555_6666,
            ],
            Record::Blob(LossRecord::blob(&LOSS.to_bytes())),
        );
        assert_eq!(LossRecord::decode(&LOSS.to_bytes()), Ok(Some(LOSS)));
        assert_eq!(LOSS.reason, LossCode::from(LossReason::DurableFull));
    }

    #[test]
    //= docs/format.md#loss-blob
    fn other_versions_and_lengths() {
        let mut bytes = LOSS.to_bytes();
        assert_eq!(LossRecord::decode(&bytes[..24]), Err(past_end("last loss", 1, 0)));
        assert_eq!(LossRecord::decode(b""), Err(past_end("loss", 1, 0)));
        let longer = [bytes, bytes];
        assert_eq!(LossRecord::decode(longer.as_flattened()), Ok(Some(LOSS)));
        bytes[0] = 2;
        assert_eq!(LossRecord::decode(&bytes), Ok(None));
    }

    #[test]
    //= docs/format.md#ledger-blob
    fn ledgers_come_back() {
        let ledger = LedgerRecord {
            provider: ProviderId(7),
            generated: 1000,
            archived: 900,
            records: 950,
            uncertain: 2,
        };
        check_golden(
            &[
                0x0001_0028_800c_0085,
                0x656c_3a65_6361_7274,
                0x7265_6764,
                0x0000_0007_0000_0001,
                1000,
                900,
                950,
                2,
            ],
            Record::Blob(LedgerRecord::blob(&ledger.to_bytes())),
        );
        let mut bytes = ledger.to_bytes();
        assert_eq!(LedgerRecord::decode(&bytes), Ok(Some(ledger)));
        assert_eq!(LedgerRecord::decode(&bytes[..32]), Err(past_end("uncertain records", 1, 0)));
        bytes[0] = 2;
        assert_eq!(LedgerRecord::decode(&bytes), Ok(None));
    }

    #[test]
    fn reasons_have_words() {
        assert_eq!(LossCode(0).text(), Some("buffer full"));
        assert_eq!(LossCode(7).text(), Some("cleared"));
        assert_eq!(LossCode(8).text(), Some("kernel buffer overrun"));
        assert_eq!(LossCode(10).text(), Some("kernel commit overrun"));
        assert_eq!(LossCode(11).text(), Some("no room for a definition"));
        assert_eq!(LossCode(12).text(), Some("left by a jump"));
        assert_eq!(LossCode(13).text(), Some("no memory for the buffer"));
        assert_eq!(LossCode(14).text(), Some("not joined yet"));
        assert_eq!(LossCode(15).text(), None);
        assert_eq!(LossCode::MALFORMED.text(), Some("malformed"));
        assert_eq!(LossCode::SALVAGED_GAP.text(), Some("salvaged gap"));
    }
}
