//! Any record: its kind, its size, and its decoding.
//!
//! ```text
//!  63                                      16 15          4 3    0
//! +------------------------------------------+-------------+------+
//! |           depends on the type            | size words  | type |   types 0 to 14
//! +------------------------------------------+-------------+------+
//! |  depends on ... |       size words (35..4)             |  15  |   large records
//! +------------------------------------------+-------------+------+
//! ```

use crate::bits::field;
use crate::blob::Blob;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::event::Event;
use crate::initialization::Initialization;
use crate::kernel_object::KernelObject;
use crate::large::LargeBlob;
use crate::log::Log;
use crate::metadata::Metadata;
use crate::profiler::Profiler;
use crate::scheduling::Scheduling;
use crate::sink::Sink;
use crate::string::StringRecord;
use crate::thread::ThreadRecord;
use crate::units::Words;
use crate::userspace_object::UserspaceObject;

#[cfg(test)]
mod tests;

/// Largest record of every type but the large one, header included.
pub const MAX_RECORD_WORDS: usize = 4095;

/// The kinds of record, with their numbers in the format.
//= docs/format.md#record-header
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordType {
    /// About the archive and its providers.
    Metadata = 0,
    /// Speed of the provider's clock.
    Initialization = 1,
    /// An entry of the string table.
    String = 2,
    /// An entry of the thread table.
    Thread = 3,
    /// Something that happened.
    Event = 4,
    /// Bytes with a name.
    Blob = 5,
    /// An object of a process.
    UserspaceObject = 6,
    /// An object of the system.
    KernelObject = 7,
    /// What a CPU runs.
    Scheduling = 8,
    /// A line of a log.
    Log = 9,
    /// Material for a profile.
    Profiler = 10,
    /// A record whose size has 32 bits.
    Large = 15,
}

impl RecordType {
    /// The type with this number; `None` for 11 to 14 and above 15.
    #[inline]
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            0 => Self::Metadata,
            1 => Self::Initialization,
            2 => Self::String,
            3 => Self::Thread,
            4 => Self::Event,
            5 => Self::Blob,
            6 => Self::UserspaceObject,
            7 => Self::KernelObject,
            8 => Self::Scheduling,
            9 => Self::Log,
            10 => Self::Profiler,
            15 => Self::Large,
            _ => return None,
        })
    }
}

/// The first word of a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordHeader(pub u64);

impl RecordHeader {
    /// The four bits of the type.
    #[inline]
    #[must_use]
    pub const fn record_type_bits(self) -> u8 {
        field(self.0, 0, 4) as u8
    }

    /// The type; `None` for one of a newer version.
    #[inline]
    #[must_use]
    pub const fn record_type(self) -> Option<RecordType> {
        RecordType::from_raw(self.record_type_bits())
    }

    /// Size of the record, this word included. 0 is no valid size.
    //= docs/format.md#record-header
    #[inline]
    #[must_use]
    pub const fn size(self) -> Words {
        // The type comes first: a large record has zeros where others keep a small size.
        let width = if self.record_type_bits() == RecordType::Large as u8 { 32 } else { 12 };
        Words(field(self.0, 4, width) as usize)
    }
}

impl core::fmt::Debug for RecordHeader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "RecordHeader({:#018x})", self.0)
    }
}

/// A decoded record. It borrows names and payloads from the bytes it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record<'a> {
    /// About the archive and its providers.
    Metadata(Metadata<'a>),
    /// Speed of the provider's clock.
    Initialization(Initialization),
    /// An entry of the string table.
    String(StringRecord<'a>),
    /// An entry of the thread table.
    Thread(ThreadRecord),
    /// Something that happened.
    Event(Event<'a>),
    /// Bytes with a name.
    Blob(Blob<'a>),
    /// An object of a process.
    UserspaceObject(UserspaceObject<'a>),
    /// An object of the system.
    KernelObject(KernelObject<'a>),
    /// What a CPU runs.
    Scheduling(Scheduling<'a>),
    /// A line of a log.
    Log(Log<'a>),
    /// Material for a profile.
    Profiler(Profiler<'a>),
    /// Bytes beyond the size of other records.
    Large(LargeBlob<'a>),
    /// A record of a newer version, or a newer kind of a record.
    Unknown {
        /// Its first word.
        header: RecordHeader,
    },
}

impl<'a> Record<'a> {
    /// Decodes one record. `bytes` are exactly its words, as many as its header announces.
    ///
    /// Words after the known fields of a kind are an extension and are ignored, as are reserved bits. All
    /// arguments are checked, so that iterating over them later yields no error.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Size`] if `bytes` is not one record; otherwise
    /// the record is malformed and can be skipped by its size.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let Ok(word) = cursor.word("record header") else {
            return Err(DecodeError::Size { announced: Words(1), found: bytes.len() });
        };
        let header = RecordHeader(word);
        if header.size().bytes() != bytes.len() {
            return Err(DecodeError::Size { announced: header.size(), found: bytes.len() });
        }
        let Some(record_type) = header.record_type() else {
            return Ok(Self::Unknown { header });
        };
        Ok(match record_type {
            RecordType::Metadata => Self::Metadata(Metadata::decode(header, cursor)?),
            RecordType::Initialization => Self::Initialization(Initialization::decode(cursor)?),
            RecordType::String => Self::String(StringRecord::decode(header, cursor)?),
            RecordType::Thread => Self::Thread(ThreadRecord::decode(header, cursor)?),
            RecordType::Event => Self::Event(Event::decode(header, cursor)?),
            RecordType::Blob => Self::Blob(Blob::decode(header, cursor)?),
            RecordType::UserspaceObject => Self::UserspaceObject(UserspaceObject::decode(header, cursor)?),
            RecordType::KernelObject => Self::KernelObject(KernelObject::decode(header, cursor)?),
            RecordType::Log => Self::Log(Log::decode(header, cursor)?),
            //= docs/format.md#later-versions
            RecordType::Scheduling => {
                Scheduling::decode(header, cursor)?.map_or(Self::Unknown { header }, Self::Scheduling)
            }
            RecordType::Profiler => {
                Profiler::decode(header, cursor)?.map_or(Self::Unknown { header }, Self::Profiler)
            }
            RecordType::Large => LargeBlob::decode(bytes)?.map_or(Self::Unknown { header }, Self::Large),
        })
    }

    /// Size of the record as [`Record::encode`] writes it; that of an unknown record as it was found.
    #[must_use]
    pub const fn words(&self) -> Words {
        match self {
            Self::Metadata(record) => record.words(),
            Self::Initialization(record) => record.words(),
            Self::String(record) => record.words(),
            Self::Thread(record) => record.words(),
            Self::Event(record) => record.words(),
            Self::Blob(record) => record.words(),
            Self::UserspaceObject(record) => record.words(),
            Self::KernelObject(record) => record.words(),
            Self::Scheduling(record) => record.words(),
            Self::Log(record) => record.words(),
            Self::Profiler(record) => record.words(),
            Self::Large(record) => record.words(),
            Self::Unknown { header } => header.size(),
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// Those of the record's kind; an unknown record is refused. Nothing is written then.
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        match self {
            Self::Metadata(record) => record.encode(sink),
            Self::Initialization(record) => record.encode(sink),
            Self::String(record) => record.encode(sink),
            Self::Thread(record) => record.encode(sink),
            Self::Event(record) => record.encode(sink),
            Self::Blob(record) => record.encode(sink),
            Self::UserspaceObject(record) => record.encode(sink),
            Self::KernelObject(record) => record.encode(sink),
            Self::Scheduling(record) => record.encode(sink),
            Self::Log(record) => record.encode(sink),
            Self::Profiler(record) => record.encode(sink),
            Self::Large(record) => record.encode(sink),
            Self::Unknown { .. } => Err(EncodeError::UnknownType { what: "record" }),
        }
    }
}

/// The size for a record's header, if it fits.
//= docs/format.md#limits
#[inline(always)]
pub(crate) const fn check_size(words: Words) -> Result<u64, EncodeError> {
    let limit = Words(MAX_RECORD_WORDS);
    if words.0 > limit.0 {
        return Err(EncodeError::TooLarge { limit, found: words });
    }
    Ok(words.0 as u64)
}
