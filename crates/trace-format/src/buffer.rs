//! The header of the shared buffer, version 1, and the layout that follows from its size and mode.
//!
//! ```text
//! | header 128 | loss ledger | slab words | tallies | durable | rolling 0 | rolling 1 |
//! ```
//!
//! The layout is a pure function of the total size and the mode, so a reader computes it and refuses a header
//! that differs: no offset is ever taken from untrusted input.

use crate::slab::{LOSS_ENTRY_BYTES, TALLY_BYTES};
use core::fmt;
use core::ops::Range;

/// First word of a buffer; in memory the bytes `64 61 65 68 ee 66 75 62`.
pub const BUFFER_MAGIC: u64 = 0x6275_66ee_6865_6164;
/// Version of the header and of everything behind it.
pub const BUFFER_VERSION: u16 = 1;
/// Size of the header.
pub const HEADER_BYTES: usize = 128;
/// Size of a word of the header and of the control area.
pub const WORD_BYTES: u64 = 8;
/// A buffer is a multiple of this size.
pub const PAGE_BYTES: u64 = 4096;
/// Largest buffer: 4 GiB.
pub const MAX_BUFFER_BYTES: u64 = 1 << 32;
/// Largest record a buffer takes, in bytes, whatever its size.
pub const MAX_BUFFERED_RECORD_BYTES: u64 = 256 << 10;
/// The value of `end_ts` until a oneshot buffer is full.
pub const END_TS_NONE: u64 = u64::MAX;

/// A buffer gets its memory in pieces that begin at multiples of this size.
pub const CHUNK_BYTES: u64 = 64 << 10;

/// Bytes of the largest durable region.
pub const MAX_DURABLE_BYTES: u64 = 1 << 20;
const LEDGER_ENTRIES: u64 = 16;
/// Number of gaps that a ledger with a page of its own has room for after its entries.
const LEDGER_GAPS: u32 = ((PAGE_BYTES - LEDGER_ENTRIES * LOSS_ENTRY_BYTES) / LOSS_ENTRY_BYTES) as u32;
/// From this size on the loss ledger has a page of its own.
const LARGE_BUFFER_BYTES: u64 = 1 << 20;

/// Word numbers of the header's fields.
pub mod field {
    /// [`super::BUFFER_MAGIC`].
    pub const MAGIC: usize = 0;
    /// Version (16 bits), mode (8), reserved (8), wrapped count (32).
    pub const VERSION: usize = 1;
    /// Size of the whole buffer in bytes.
    pub const TOTAL_SIZE: usize = 2;
    /// Size of the durable region in bytes.
    pub const DURABLE_SIZE: usize = 3;
    /// Size of each rolling region in bytes.
    pub const ROLLING_SIZE: usize = 4;
    /// Bytes of durable data; true when [`FLAGS`] has [`super::FLAG_FINAL`].
    pub const DURABLE_DATA_END: usize = 5;
    /// Bytes claimed in rolling region 0; the next word is that of region 1.
    pub const ROLLING_DATA_END: usize = 6;
    /// Records refused so far, for whatever reason.
    pub const RECORDS_DROPPED: usize = 8;
    /// Slabs with a lower sequence do not exist.
    pub const FLOOR_SEQUENCE: usize = 9;
    /// Timestamp of the first refusal in oneshot mode, or [`super::END_TS_NONE`].
    pub const END_TS: usize = 10;
    /// Slab size (32 bits) and number of slabs in each rolling region (32 bits).
    pub const SLABS: usize = 11;
    /// Offsets of the slab words and of the tallies (32 bits each).
    pub const CONTROL: usize = 12;
    /// Offsets of the loss ledger and of the durable region (32 bits each).
    pub const LEDGER: usize = 13;
    /// Offset of rolling region 0.
    pub const ROLLING: usize = 14;
    /// See [`super::FLAG_FINAL`].
    pub const FLAGS: usize = 15;
}

/// The writer has stopped and the header has its final values.
pub const FLAG_FINAL: u64 = 1;

/// The mode as the buffer header counts it, from 0 (the protocol counts from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BufferMode {
    /// Write until full, then refuse.
    Oneshot = 0,
    /// Write over the oldest.
    Circular = 1,
    /// Hand over each full half.
    Streaming = 2,
}

impl BufferMode {
    /// Number of rolling regions.
    #[must_use]
    pub const fn halves(self) -> u32 {
        match self {
            Self::Oneshot => 1,
            Self::Circular | Self::Streaming => 2,
        }
    }

    /// The mode of a number.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::Oneshot),
            1 => Some(Self::Circular),
            2 => Some(Self::Streaming),
            _ => None,
        }
    }
}

/// The positions of all parts of a buffer. Offsets and sizes are bytes from the start of the buffer.
//= docs/buffer.md#layout
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The mode the layout was made for.
    pub mode: BufferMode,
    /// Size of the whole buffer.
    pub total_bytes: u64,
    /// Offset of the loss ledger.
    pub ledger: u64,
    /// Offset of the slab words, 8 bytes for each slab of all rolling regions.
    pub slab_words: u64,
    /// Offset of the tallies, [`TALLY_BYTES`] each.
    pub tallies: u64,
    /// Offset of the durable region.
    pub durable: u64,
    /// Size of the durable region.
    pub durable_bytes: u64,
    /// Offset of rolling region 0, a multiple of the slab size.
    pub rolling: u64,
    /// Size of each rolling region.
    pub rolling_bytes: u64,
    /// Size of a slab, a power of two.
    pub slab_bytes: u64,
    /// Number of slabs in each rolling region.
    pub slabs_per_half: u32,
}

/// A buffer cannot have this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBufferSize(pub u64);

impl fmt::Display for BadBufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buffer of {} bytes: expected a multiple of 4096 between 4096 and 4294967296", self.0)
    }
}

impl core::error::Error for BadBufferSize {}

impl Layout {
    /// The layout of a buffer.
    ///
    /// # Errors
    /// The size is not a multiple of 4096, zero, or above 4 GiB.
    pub const fn new(total_bytes: u64, mode: BufferMode) -> Result<Self, BadBufferSize> {
        if total_bytes == 0 || total_bytes % PAGE_BYTES != 0 || total_bytes > MAX_BUFFER_BYTES {
            return Err(BadBufferSize(total_bytes));
        }
        let halves = mode.halves() as u64;
        let (ledger, slab_words) = if total_bytes >= LARGE_BUFFER_BYTES {
            (PAGE_BYTES, 2 * PAGE_BYTES)
        } else {
            (HEADER_BYTES as u64, HEADER_BYTES as u64 + LEDGER_ENTRIES * LOSS_ENTRY_BYTES)
        };
        let durable_bytes = durable_bytes(total_bytes);
        let for_each_half = (total_bytes - slab_words - durable_bytes) / halves;
        let slab_bytes = slab_bytes(for_each_half);
        let slabs_per_half = for_each_half / (slab_bytes + 8 + TALLY_BYTES);
        let tallies = slab_words + 8 * slabs_per_half * halves;
        let rolling_bytes = slabs_per_half * slab_bytes;
        Ok(Self {
            mode,
            total_bytes,
            ledger,
            slab_words,
            tallies,
            durable: tallies + TALLY_BYTES * slabs_per_half * halves,
            durable_bytes,
            rolling: total_bytes - rolling_bytes * halves,
            rolling_bytes,
            slab_bytes,
            slabs_per_half: slabs_per_half as u32,
        })
    }

    /// Number of slabs in all rolling regions.
    #[must_use]
    pub const fn slab_count(&self) -> u32 {
        self.slabs_per_half * self.mode.halves()
    }

    /// Offset of a slab, numbered through all rolling regions.
    #[must_use]
    pub const fn slab(&self, index: u32) -> u64 {
        self.rolling + index as u64 * self.slab_bytes
    }

    /// Offset of a slab's word.
    #[must_use]
    pub const fn slab_word(&self, index: u32) -> u64 {
        self.slab_words + index as u64 * 8
    }

    /// Offset of a slab's tally.
    #[must_use]
    pub const fn tally(&self, index: u32) -> u64 {
        self.tallies + index as u64 * TALLY_BYTES
    }

    /// Offset of the ledger's entry for a reason.
    #[must_use]
    pub const fn loss_entry(&self, reason: crate::slab::LossReason) -> u64 {
        self.ledger + reason as u64 * LOSS_ENTRY_BYTES
    }

    /// Number of gaps that the buffer has room for; a small one has none.
    #[must_use]
    pub const fn gap_count(&self) -> u32 {
        if self.total_bytes >= LARGE_BUFFER_BYTES { LEDGER_GAPS } else { 0 }
    }

    /// Offset of a gap's entry.
    #[must_use]
    pub const fn gap(&self, index: u32) -> u64 {
        self.ledger + (LEDGER_ENTRIES + index as u64) * LOSS_ENTRY_BYTES
    }

    /// Whether the beginning of a buffer, as far as `tallies`, says that nothing was recorded into it, and
    /// nothing lost: no slab was ever claimed, and no reason counts a record.
    #[must_use]
    pub fn is_blank(&self, beginning: &[u8]) -> bool {
        let is_zero = |from: u64, to: u64| {
            let part = beginning.get(from as usize..to as usize);
            part.is_some_and(|part| part.iter().all(|byte| *byte == 0))
        };
        let has_none = |at: u64| is_zero(at, at + WORD_BYTES);
        has_none(field::RECORDS_DROPPED as u64 * WORD_BYTES)
            && crate::slab::LossReason::ALL.iter().all(|reason| has_none(self.loss_entry(*reason)))
            && is_zero(self.slab_words, self.tallies)
    }

    /// The parts of a buffer that have memory before it is recorded into, in whole chunks but at the end:
    /// everything in front of the rolling regions, and the beginning of each of these.
    //= docs/buffer.md#memory
    #[must_use]
    pub const fn first_parts(&self) -> [Range<u64>; 2] {
        let second = self.rolling + (self.mode.halves() as u64 - 1) * self.rolling_bytes;
        let whole = second / CHUNK_BYTES * CHUNK_BYTES;
        [0..self.chunk_end(self.rolling), whole..self.chunk_end(second)]
    }

    /// The end of the chunk behind that in which a rolling region begins, or of the buffer.
    const fn chunk_end(&self, start: u64) -> u64 {
        let end = (start / CHUNK_BYTES + 2) * CHUNK_BYTES;
        if end < self.total_bytes { end } else { self.total_bytes }
    }

    /// Largest record that fits, in bytes.
    #[must_use]
    pub const fn max_record_bytes(&self) -> u64 {
        let half = self.rolling_bytes / 2 / self.slab_bytes * self.slab_bytes;
        if half < MAX_BUFFERED_RECORD_BYTES { half } else { MAX_BUFFERED_RECORD_BYTES }
    }
}

/// A sixteenth of what follows the header, at most 1 MiB, such that the rest divides by 16.
const fn durable_bytes(total_bytes: u64) -> u64 {
    let available = total_bytes - HEADER_BYTES as u64;
    let sixteenth = available / 16;
    let durable = if sixteenth < MAX_DURABLE_BYTES { sixteenth } else { MAX_DURABLE_BYTES };
    // What is available divides by 16.
    if durable % 16 == 0 { durable } else { durable + 8 }
}

/// A 64th of a rolling region between 256 and 4096 bytes, rounded down to a power of two.
const fn slab_bytes(rolling_bytes: u64) -> u64 {
    let wanted = rolling_bytes / 64;
    if wanted <= 256 {
        256
    } else if wanted >= 4096 {
        4096
    } else {
        1 << wanted.ilog2()
    }
}

/// The header of a buffer, read once into private memory and checked.
//= docs/buffer.md#header
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferHeader {
    /// The positions of all parts.
    pub layout: Layout,
    /// Number of switches between the rolling regions.
    pub wrapped_count: u32,
    /// Bytes of durable data, if the header is final.
    pub durable_data_end: u64,
    /// Records refused, as the writer counted them.
    pub records_dropped: u64,
    /// Slabs with a lower sequence do not exist.
    pub floor_sequence: u64,
    /// Timestamp of the first refusal in oneshot mode.
    pub end_ts: Option<u64>,
    /// The writer has stopped and brought the header up to date.
    pub is_final: bool,
}

/// Why a buffer header is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The first word is not [`BUFFER_MAGIC`].
    Magic {
        /// The first word found.
        found: u64,
    },
    /// Another version than [`BUFFER_VERSION`].
    Version {
        /// The version found.
        found: u16,
    },
    /// Another mode than the session's, or none at all.
    Mode {
        /// The mode byte found.
        found: u8,
        /// The expected mode.
        expected: BufferMode,
    },
    /// The size does not equal that of the file, or no buffer can have it.
    TotalSize {
        /// Size in the header, in bytes.
        found: u64,
        /// Size of the file, in bytes.
        expected: u64,
    },
    /// A field that follows from size and mode has another value.
    Layout {
        /// Number of the header word.
        word: usize,
        /// Its value.
        found: u64,
        /// The value that follows from size and mode.
        expected: u64,
    },
    /// Slabs of so high a sequence were never claimed.
    FloorSequence {
        /// The field's value.
        found: u64,
        /// The highest value that is possible.
        limit: u64,
    },
    /// No record was refused at this time.
    EndTimestamp {
        /// The field's value, in ticks.
        found: u64,
    },
    /// So many records cannot have been refused.
    RecordsDropped {
        /// The field's value.
        found: u64,
        /// The highest value that is possible.
        limit: u64,
    },
    /// More durable data than the durable region holds, or not whole words.
    DurableDataEnd {
        /// The field's value, in bytes.
        found: u64,
        /// Size of the durable region, in bytes.
        limit: u64,
    },
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { found } => write!(f, "magic is {found:#018x}, expected {BUFFER_MAGIC:#018x}"),
            Self::Version { found } => write!(f, "header version is {found}, expected {BUFFER_VERSION}"),
            Self::Mode { found, expected } => write!(f, "mode is {found}, expected {}", *expected as u8),
            Self::TotalSize { found, expected } => write!(f, "total size is {found}, expected {expected}"),
            Self::Layout { word, found, expected } => {
                write!(f, "header word {word} is {found:#x}, expected {expected:#x}")
            }
            Self::FloorSequence { found, limit } => {
                write!(f, "floor sequence is {found}, expected {limit} at most")
            }
            Self::EndTimestamp { found } => {
                write!(f, "end timestamp is {found}, at which nothing was written")
            }
            Self::RecordsDropped { found, limit } => {
                write!(f, "{found} records are dropped, expected {limit} at most")
            }
            Self::DurableDataEnd { found, limit } => {
                write!(f, "durable data end is {found}, expected a multiple of 8 up to {limit}")
            }
        }
    }
}

impl core::error::Error for HeaderError {}

impl BufferHeader {
    /// The words of a fresh header, as the writer stores them.
    #[must_use]
    pub const fn initial_words(layout: &Layout) -> [u64; HEADER_BYTES / 8] {
        let mut words = [0; HEADER_BYTES / 8];
        words[field::MAGIC] = BUFFER_MAGIC;
        words[field::VERSION] = BUFFER_VERSION as u64 | (layout.mode as u64) << 16;
        words[field::TOTAL_SIZE] = layout.total_bytes;
        words[field::DURABLE_SIZE] = layout.durable_bytes;
        words[field::ROLLING_SIZE] = layout.rolling_bytes;
        words[field::END_TS] = END_TS_NONE;
        words[field::SLABS] = layout.slab_bytes | (layout.slabs_per_half as u64) << 32;
        words[field::CONTROL] = layout.slab_words | layout.tallies << 32;
        words[field::LEDGER] = layout.ledger | layout.durable << 32;
        words[field::ROLLING] = layout.rolling;
        words
    }

    /// Checks an untrusted header. `file_bytes` is the size of the buffer as the caller knows it.
    ///
    /// # Errors
    /// Any field that does not follow from size and mode; see [`HeaderError`].
    pub fn decode_untrusted(
        bytes: &[u8; HEADER_BYTES],
        file_bytes: u64,
        mode: BufferMode,
    ) -> Result<Self, HeaderError> {
        let words = Self::words(bytes);
        if words[field::MAGIC] != BUFFER_MAGIC {
            return Err(HeaderError::Magic { found: words[field::MAGIC] });
        }
        let version = words[field::VERSION] as u16;
        if version != BUFFER_VERSION {
            return Err(HeaderError::Version { found: version });
        }
        let mode_bits = (words[field::VERSION] >> 16) as u8;
        if BufferMode::from_bits(mode_bits) != Some(mode) {
            return Err(HeaderError::Mode { found: mode_bits, expected: mode });
        }
        let wrong_size = HeaderError::TotalSize { found: words[field::TOTAL_SIZE], expected: file_bytes };
        if words[field::TOTAL_SIZE] != file_bytes {
            return Err(wrong_size);
        }
        let layout = Layout::new(file_bytes, mode).map_err(|_| wrong_size)?;
        let expected = Self::initial_words(&layout);
        for word in [
            field::DURABLE_SIZE,
            field::ROLLING_SIZE,
            field::SLABS,
            field::CONTROL,
            field::LEDGER,
            field::ROLLING,
        ] {
            if words[word] != expected[word] {
                return Err(HeaderError::Layout { word, found: words[word], expected: expected[word] });
            }
        }
        let durable_data_end = words[field::DURABLE_DATA_END];
        if durable_data_end > layout.durable_bytes || durable_data_end % 8 != 0 {
            return Err(HeaderError::DurableDataEnd { found: durable_data_end, limit: layout.durable_bytes });
        }
        Ok(Self::of_words(layout, &words))
    }

    /// What a header says that [has a fault](BufferHeader::decode_untrusted): the layout follows from size
    /// and mode, and the other fields are what they are.
    ///
    /// # Errors
    /// No buffer has this size.
    pub fn decode_damaged(
        bytes: &[u8; HEADER_BYTES],
        file_bytes: u64,
        mode: BufferMode,
    ) -> Result<Self, BadBufferSize> {
        let layout = Layout::new(file_bytes, mode)?;
        let header = Self::of_words(layout, &Self::words(bytes));
        Ok(Self { durable_data_end: header.durable_data_end.min(layout.durable_bytes) & !7, ..header })
    }

    fn words(bytes: &[u8; HEADER_BYTES]) -> [u64; HEADER_BYTES / 8] {
        let mut words = [0; HEADER_BYTES / 8];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(chunk.try_into().expect("8 bytes"));
        }
        words
    }

    fn of_words(layout: Layout, words: &[u64; HEADER_BYTES / 8]) -> Self {
        Self {
            layout,
            wrapped_count: (words[field::VERSION] >> 32) as u32,
            durable_data_end: words[field::DURABLE_DATA_END],
            records_dropped: words[field::RECORDS_DROPPED],
            floor_sequence: words[field::FLOOR_SEQUENCE],
            end_ts: Some(words[field::END_TS]).filter(|ts| *ts != END_TS_NONE),
            is_final: words[field::FLAGS] & FLAG_FINAL != 0,
        }
    }
}

#[cfg(test)]
mod tests;
