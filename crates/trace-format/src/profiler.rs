//! Profiler records: mappings of modules, and backtraces of threads.
//!
//! ```text
//!  63  60 59        52 51      44 43          28 27    20 19  16 15         4 3  0
//! +------+------------+----------+--------------+--------+------+------------+----+
//! |   0  | build id   |   name   |  module id   | thread |   0  | size words | 10 |  module
//! |       0       (63..47) | flags (46..44)     | thread |   1  | size words | 10 |  mmap
//! |       0       (63..36) | frames (35..28)    | thread |   2  | size words | 10 |  backtrace
//! +------+------------+----------+--------------+--------+------+------------+----+
//! | timestamp                                                                    |
//! | process koid, thread koid, if the thread is inline                           |
//! | module: name ..., build id ...                                               |
//! | mmap: start, length, address in the module                                   |
//! | backtrace: a word for each frame                                             |
//! ```

use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType, check_size};
use crate::refs::{ThreadRef, check_length};
use crate::sink::Sink;
use crate::units::{Ticks, Words};

mod frames;

pub use frames::{Frames, FramesIter};

/// Longest name and longest build id of a module, in bytes.
pub const MAX_MODULE_BYTES: usize = 255;
/// Most frames of a backtrace.
pub const MAX_FRAMES: usize = 255;

/// The mapping can be read.
pub const FLAG_READABLE: u8 = 1;
/// The mapping can be written.
pub const FLAG_WRITABLE: u8 = 2;
/// The mapping can be executed.
pub const FLAG_EXECUTABLE: u8 = 4;
/// Largest flags: the field has 3 bits.
const MAX_FLAGS: u8 = 7;

const MODULE: u64 = 0;
const MMAP: u64 = 1;
const BACKTRACE: u64 = 2;

/// A record for a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profiler<'a> {
    /// Its time.
    pub timestamp: Ticks,
    /// The thread; for a module and a mapping only its process counts.
    pub thread: ThreadRef,
    /// The kind of record, with its fields.
    pub kind: ProfilerKind<'a>,
}

/// The kinds of profiler record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfilerKind<'a> {
    /// A piece of code that a process has loaded.
    Module {
        /// Its number within the process.
        id: u16,
        /// Its name, at most 255 bytes.
        name: &'a [u8],
        /// Identifies this build of the file, at most 255 bytes.
        build_id: &'a [u8],
    },
    /// A part of a module in memory.
    Mmap {
        /// The module's number.
        module: u16,
        /// [`FLAG_READABLE`], [`FLAG_WRITABLE`], [`FLAG_EXECUTABLE`].
        flags: u8,
        /// Where it begins.
        start: u64,
        /// Its length in bytes.
        length: u64,
        /// The address that the module was linked at.
        linked_at: u64,
    },
    /// The stack of a thread.
    Backtrace {
        /// Program counters, innermost first.
        frames: Frames<'a>,
    },
}

impl<'a> Profiler<'a> {
    /// None for a kind of a newer version.
    //= docs/format.md#profiler-record
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'a>) -> Result<Option<Self>, DecodeError> {
        let kind = field(header.0, 16, 4);
        if kind > BACKTRACE {
            return Ok(None);
        }
        let timestamp = Ticks(cursor.word("timestamp")?);
        let thread = cursor.thread(field(header.0, 20, 8) as u8)?;
        let kind = match kind {
            MODULE => ProfilerKind::Module {
                id: field(header.0, 28, 16) as u16,
                name: cursor.stream(field(header.0, 44, 8) as usize, "module name")?,
                build_id: cursor.stream(field(header.0, 52, 8) as usize, "build id")?,
            },
            MMAP => ProfilerKind::Mmap {
                module: field(header.0, 28, 16) as u16,
                flags: field(header.0, 44, 3) as u8,
                start: cursor.word("start address")?,
                length: cursor.word("length")?,
                linked_at: cursor.word("linked address")?,
            },
            _ => {
                let frames = Words(field(header.0, 28, 8) as usize);
                ProfilerKind::Backtrace { frames: Frames::encoded(cursor.words(frames, "frames")?) }
            }
        };
        Ok(Some(Self { timestamp, thread, kind }))
    }

    /// Size of the record.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        let own = match self.kind {
            ProfilerKind::Module { name, build_id, .. } => {
                Words::for_bytes(name.len()).plus(Words::for_bytes(build_id.len()))
            }
            ProfilerKind::Mmap { .. } => Words(3),
            ProfilerKind::Backtrace { frames } => Words(frames.len()),
        };
        Words(2).plus(self.thread.words()).plus(own)
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// [`EncodeError::TooLong`] for a name or build id above [`MAX_MODULE_BYTES`],
    /// [`EncodeError::OutOfRange`] for flags above 7 or more than [`MAX_FRAMES`] frames.
    //= docs/format.md#profiler-record
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        let (kind, upper) = match self.kind {
            ProfilerKind::Module { id, name, build_id } => {
                check_length(name, MAX_MODULE_BYTES, "module name")?;
                check_length(build_id, MAX_MODULE_BYTES, "build id")?;
                let lengths = (name.len() as u64) << 44 | (build_id.len() as u64) << 52;
                (MODULE, u64::from(id) << 28 | lengths)
            }
            ProfilerKind::Mmap { module, flags, .. } => {
                check_range("mapping flags", u64::from(flags), u64::from(MAX_FLAGS))?;
                (MMAP, u64::from(module) << 28 | u64::from(flags) << 44)
            }
            ProfilerKind::Backtrace { frames } => {
                check_range("frames", frames.len() as u64, MAX_FRAMES as u64)?;
                (BACKTRACE, (frames.len() as u64) << 28)
            }
        };
        let size_words = check_size(self.words())?;
        let thread = u64::from(self.thread.bits()) << 20;
        sink.word(RecordType::Profiler as u64 | size_words << 4 | kind << 16 | thread | upper);
        sink.word(self.timestamp.0);
        self.thread.write(sink);
        match self.kind {
            ProfilerKind::Module { name, build_id, .. } => {
                sink.bytes(name);
                sink.bytes(build_id);
            }
            ProfilerKind::Mmap { start, length, linked_at, .. } => {
                sink.word(start);
                sink.word(length);
                sink.word(linked_at);
            }
            ProfilerKind::Backtrace { frames } => frames.iter().for_each(|frame| sink.word(frame)),
        }
        Ok(())
    }
}

const fn check_range(what: &'static str, found: u64, limit: u64) -> Result<(), EncodeError> {
    if found > limit {
        return Err(EncodeError::OutOfRange { what, limit, found });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
