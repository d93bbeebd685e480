//! Metadata records: the provider of the following records, and remarks about providers.
//!
//! ```text
//!  63  60 59         52 51                       20 19  16 15         4 3  0
//! +------+-------------+---------------------------+------+------------+----+
//! |   0  | name length |        provider id        |   1  | size words |  0 |  info
//! |         0          |        provider id        |   2  |      1     |  0 |  section
//! |  0   |0000| event  |        provider id        |   3  |      1     |  0 |  event
//! |      0 | magic 0x16547846 (55..24)    | 0 (4)  |   4  |      1     |  0 |  trace info
//! +------+-------------+---------------------------+------+------------+----+
//! ```

use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType, check_size};
use crate::refs::check_length;
use crate::sink::Sink;
use crate::units::{ProviderId, Words};

/// The first word of every archive; on disk the bytes `10 00 04 46 78 54 16 00`.
//= docs/format.md#metadata-record
pub const MAGIC_WORD: u64 = 0x0016_5478_4604_0010;
/// Longest name of a provider, in bytes.
pub const MAX_PROVIDER_NAME_BYTES: usize = 255;
/// Provider event: the buffer was full, or records were lost for another reason.
pub const EVENT_BUFFER_FULL: u8 = 0;

const PROVIDER_INFO: u64 = 1;
const PROVIDER_SECTION: u64 = 2;
const PROVIDER_EVENT: u64 = 3;
const TRACE_INFO: u64 = 4;
/// Largest provider event: its field has 4 bits.
const MAX_PROVIDER_EVENT: u8 = 15;

const fn header(size_words: u64, metadata_type: u64, id: ProviderId, upper: u64) -> u64 {
    RecordType::Metadata as u64
        | (size_words << 4)
        | (metadata_type << 16)
        | ((id.0 as u64) << 20)
        | (upper << 52)
}

/// About the archive itself; written by the collector alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata<'a> {
    /// Introduces a provider with fresh tables and makes it current.
    ProviderInfo {
        /// The provider.
        id: ProviderId,
        /// Its name, at most 255 bytes, by convention UTF-8.
        name: &'a [u8],
    },
    /// Makes a provider current again.
    ProviderSection {
        /// The provider.
        id: ProviderId,
    },
    /// A remark about a provider; the current one stays.
    ProviderEvent {
        /// The provider.
        id: ProviderId,
        /// The event, 0 to 15: [`EVENT_BUFFER_FULL`] or a newer one.
        event: u8,
    },
    /// The magic number.
    TraceInfoMagic,
    /// A metadata or trace info type of a newer version, or a wrong magic number.
    Unknown,
}

impl<'a> Metadata<'a> {
    //= docs/format.md#metadata-record
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'a>) -> Result<Self, DecodeError> {
        let id = ProviderId(field(header.0, 20, 32) as u32);
        Ok(match field(header.0, 16, 4) {
            PROVIDER_INFO => {
                let name = cursor.stream(field(header.0, 52, 8) as usize, "provider name")?;
                Self::ProviderInfo { id, name }
            }
            PROVIDER_SECTION => Self::ProviderSection { id },
            PROVIDER_EVENT => Self::ProviderEvent { id, event: field(header.0, 52, 4) as u8 },
            // The only record that is never extended: its eight bytes identify the file type.
            TRACE_INFO if header.0 == MAGIC_WORD => Self::TraceInfoMagic,
            _ => Self::Unknown,
        })
    }

    /// Size of the record.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        match self {
            Self::ProviderInfo { name, .. } => Words(1).plus(Words::for_bytes(name.len())),
            _ => Words(1),
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// [`EncodeError::TooLong`] if the provider's name is longer than [`MAX_PROVIDER_NAME_BYTES`],
    /// [`EncodeError::OutOfRange`] if the event is above 15, [`EncodeError::UnknownType`].
    //= docs/format.md#metadata-record
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        match *self {
            Self::ProviderInfo { id, name } => {
                check_length(name, MAX_PROVIDER_NAME_BYTES, "provider name")?;
                let size_words = check_size(self.words())?;
                sink.word(header(size_words, PROVIDER_INFO, id, name.len() as u64));
                sink.bytes(name);
            }
            Self::ProviderSection { id } => sink.word(header(1, PROVIDER_SECTION, id, 0)),
            Self::ProviderEvent { id, event } => {
                if event > MAX_PROVIDER_EVENT {
                    return Err(EncodeError::OutOfRange {
                        what: "provider event",
                        limit: u64::from(MAX_PROVIDER_EVENT),
                        found: u64::from(event),
                    });
                }
                sink.word(header(1, PROVIDER_EVENT, id, u64::from(event)));
            }
            Self::TraceInfoMagic => sink.word(MAGIC_WORD),
            Self::Unknown => return Err(EncodeError::UnknownType { what: "metadata" }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use crate::record::Record;
    use crate::testing::{bytes, check_decode, check_golden, decode_error, encode, past_end};

    #[test]
    //= docs/format.md#metadata-record
    fn examples() {
        check_golden(&[0x0016_5478_4604_0010], Record::Metadata(Metadata::TraceInfoMagic));
        assert_eq!(bytes(&[MAGIC_WORD]), [0x10, 0x00, 0x04, 0x46, 0x78, 0x54, 0x16, 0x00]);
        // Provider info: 3 words, metadata type 1, id, name length 13.
        let info = Metadata::ProviderInfo { id: ProviderId(0xaabb_ccdd), name: b"test_provider" };
        check_golden(
            &[0x00da_abbc_cdd1_0030, 0x6f72_705f_7473_6574, 0x0000_0072_6564_6976],
            Record::Metadata(info),
        );
        let section = Metadata::ProviderSection { id: ProviderId(1) };
        check_golden(&[0x0000_0000_0012_0010], Record::Metadata(section));
        let event = Metadata::ProviderEvent { id: ProviderId(1), event: EVENT_BUFFER_FULL };
        check_golden(&[0x0000_0000_0013_0010], Record::Metadata(event));
        let event = Metadata::ProviderEvent { id: ProviderId(u32::MAX), event: 15 };
        check_golden(&[0x00ff_ffff_fff3_0010], Record::Metadata(event));
    }

    #[test]
    //= docs/format.md#metadata-record
    fn reserved_bits_do_not_matter() {
        let info = Metadata::ProviderInfo { id: ProviderId(1), name: b"" };
        check_decode(&[0xf000_0000_0011_0010], Record::Metadata(info));
        let section = Metadata::ProviderSection { id: ProviderId(1) };
        check_decode(&[0xfff0_0000_0012_0010], Record::Metadata(section));
        let event = Metadata::ProviderEvent { id: ProviderId(1), event: 2 };
        check_decode(&[0xff20_0000_0013_0010], Record::Metadata(event));
    }

    #[test]
    //= docs/format.md#metadata-record
    fn the_magic_number_is_one_exact_word() {
        let unknown = Record::Metadata(Metadata::Unknown);
        for bit in 20..64 {
            check_decode(&[MAGIC_WORD ^ 1 << bit], unknown);
        }
        check_decode(&[MAGIC_WORD + 0x10, 0], unknown);
        for metadata_type in [0, 5, 15] {
            check_decode(&[0x10 | metadata_type << 16], unknown);
        }
        assert_eq!(encode(&unknown), Err(EncodeError::UnknownType { what: "metadata" }));
    }

    #[test]
    //= docs/format.md#limits
    fn names_and_events_have_limits() {
        let name = vec![b'n'; 256];
        let info = |name| Record::Metadata(Metadata::ProviderInfo { id: ProviderId(1), name });
        assert_eq!(encode(&info(&name[..255])).unwrap()[0], 0x0ff0_0000_0011_0210);
        let error = EncodeError::TooLong { what: "provider name", limit: 255, found: 256 };
        assert_eq!(encode(&info(&name)), Err(error));
        let event = Record::Metadata(Metadata::ProviderEvent { id: ProviderId(1), event: 16 });
        let error = EncodeError::OutOfRange { what: "provider event", limit: 15, found: 16 };
        assert_eq!(encode(&event), Err(error));
    }

    #[test]
    //= docs/format.md#malformed-input
    fn a_name_past_the_end_is_malformed() {
        assert_eq!(decode_error(&[0x0010_0000_0011_0010]), past_end("provider name", 1, 0));
    }
}
