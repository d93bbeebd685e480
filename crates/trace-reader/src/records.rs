//! Splits a stream of bytes into records, in constant memory.
//!
//! The size in a record's header alone decides where the next one begins, never what decoding it found.
//! Words that are all zero lie between records where a buffer was never written; they are skipped and
//! counted. A record that is cut off by the end of the input is never guessed at: what is left of it is
//! reported as leftover bytes.

use crate::file_kind::{FileKind, SNIFFED_BYTES};
use std::io::{self, ErrorKind, Read};
use trace_format::record::{MAX_RECORD_WORDS, RecordHeader};
use trace_format::units::{Offset, Words};

#[cfg(test)]
mod tests;

const HEADER_BYTES: usize = 8;
/// The input is read in pieces of at most this size.
const BUFFER_BYTES: usize = 256 << 10;
/// Larger records are skipped unless [`Records::with_max_record_bytes`] says otherwise.
const MAX_HELD_BYTES: usize = 1 << 20;
/// Largest record of every type but the large one.
const ORDINARY_BYTES: usize = Words(MAX_RECORD_WORDS).bytes();

/// One record as it stands in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Where it begins.
    pub offset: Offset,
    /// Its words; of a record that is too large to be held, only the header.
    pub bytes: &'a [u8],
    /// Its size.
    pub size: Words,
}

impl RawRecord<'_> {
    /// Its first word.
    #[inline]
    #[must_use]
    pub fn header(&self) -> RecordHeader {
        RecordHeader(self.bytes.first_chunk::<HEADER_BYTES>().map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// All of it is there.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.size.bytes()
    }
}

/// Why an input cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The input is something else.
    // prints: expected a Fuchsia trace, found gzip data
    #[error("expected a Fuchsia trace, found {found}")]
    NoTrace {
        /// What its first bytes look like.
        found: FileKind,
    },
    /// A header that is not zero has no size, so that nothing behind it can be found.
    #[error("record at byte {offset}: expected a size of at least 1 word, found 0 in header {:#018x}", .header.0)]
    NoSize {
        /// Where it stands.
        offset: Offset,
        /// The header.
        header: RecordHeader,
    },
    /// The operating system refused.
    #[error("cannot read at byte {offset}: {source}")]
    Io {
        /// Where reading stopped.
        offset: Offset,
        /// What it says.
        source: io::Error,
    },
}

/// What is left of a record that the end of the input cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Where the record begins.
    pub offset: Offset,
    /// How many of its bytes are there.
    pub bytes: u64,
}

/// The records of a stream, one after the other.
///
/// Reading is buffered here; the input needs no buffer of its own.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    buffer: Vec<u8>,
    /// The first byte in the buffer that no record has taken yet.
    start: usize,
    /// Behind the last byte in the buffer.
    end: usize,
    /// Place of `start` in the stream.
    position: u64,
    max_record_bytes: usize,
    /// Header of a record that was skipped for its length.
    skipped_header: [u8; HEADER_BYTES],
    zero_words: u64,
    leftover: Option<Leftover>,
    is_finished: bool,
}

/// A record that was found: where its bytes are until the next one is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    offset: Offset,
    size: Words,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Buffer { start: usize, length: usize },
    SkippedHeader,
}

impl<R: Read> Records<R> {
    /// Splits an input that begins with a record of any kind, such as the data of one provider.
    #[must_use]
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            position: 0,
            max_record_bytes: MAX_HELD_BYTES,
            skipped_header: [0; HEADER_BYTES],
            zero_words: 0,
            leftover: None,
            is_finished: false,
        }
    }

    /// Holds records of up to so many bytes whole, which bounds the memory. Ordinary records, up to
    /// 32 760 bytes, always are.
    #[must_use]
    pub fn with_max_record_bytes(mut self, bytes: usize) -> Self {
        self.max_record_bytes = bytes.max(ORDINARY_BYTES);
        self
    }

    /// Splits an archive. Its magic number may be missing if a plausible record stands in its place.
    ///
    /// # Errors
    ///
    /// [`ReadError::NoTrace`], [`ReadError::Io`].
    pub fn archive(input: R) -> Result<Self, ReadError> {
        let mut records = Self::new(input);
        match records.file_kind()? {
            FileKind::Trace | FileKind::TraceWithoutMagic => Ok(records),
            found => Err(ReadError::NoTrace { found }),
        }
    }

    /// What the input looks like. Takes nothing from it, but only makes sense before the first record.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`].
    pub fn file_kind(&mut self) -> Result<FileKind, ReadError> {
        self.fill(SNIFFED_BYTES)?;
        Ok(FileKind::of(self.buffered().get(..SNIFFED_BYTES).unwrap_or(self.buffered())))
    }

    /// The next record; `None` at the end, and after an error.
    ///
    /// # Errors
    ///
    /// [`ReadError::NoSize`] where the stream cannot be followed any further, [`ReadError::Io`].
    pub fn next_record(&mut self) -> Result<Option<RawRecord<'_>>, ReadError> {
        Ok(self.advance()?.map(|found| self.record(found)))
    }

    /// Looks for the next record; [`Records::record`] then has it. Apart, so that a caller can do
    /// something in between that a borrowed record would forbid.
    pub(crate) fn advance(&mut self) -> Result<Option<Found>, ReadError> {
        if self.is_finished {
            return Ok(None);
        }
        let found = self.find();
        self.is_finished = !matches!(found, Ok(Some(_)));
        found
    }

    /// The bytes of the record found last.
    pub(crate) fn record(&self, found: Found) -> RawRecord<'_> {
        let bytes = match found.place {
            Place::Buffer { start, length } => self.buffer.get(start..start + length).unwrap_or_default(),
            Place::SkippedHeader => &self.skipped_header,
        };
        RawRecord { offset: found.offset, bytes, size: found.size }
    }

    //= docs/format.md#malformed-input
    fn find(&mut self) -> Result<Option<Found>, ReadError> {
        loop {
            self.fill(HEADER_BYTES)?;
            let Some(word) = self.buffered().first_chunk::<HEADER_BYTES>().copied() else {
                return Ok(self.end_of_input());
            };
            let header = RecordHeader(u64::from_le_bytes(word));
            if header.0 == 0 {
                self.take(HEADER_BYTES);
                self.zero_words += 1;
                continue;
            }
            let offset = self.position();
            let size = header.size();
            let length = size.bytes();
            if length == 0 {
                return Err(ReadError::NoSize { offset, header });
            }
            if length > self.max_record_bytes {
                self.skipped_header = word;
                let is_skipped = self.skip(offset, length as u64)?;
                return Ok(is_skipped.then_some(Found { offset, size, place: Place::SkippedHeader }));
            }
            self.fill(length)?;
            if self.buffered().len() < length {
                return Ok(self.end_of_input());
            }
            let start = self.start;
            self.take(length);
            return Ok(Some(Found { offset, size, place: Place::Buffer { start, length } }));
        }
    }

    /// Passes over a record without holding it; false if it is cut off.
    fn skip(&mut self, offset: Offset, length: u64) -> Result<bool, ReadError> {
        let mut left = length;
        while left > 0 {
            self.fill(1)?;
            let bytes = self.buffered().len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if bytes == 0 {
                self.leftover = Some(Leftover { offset, bytes: length - left });
                return Ok(false);
            }
            self.take(bytes);
            left -= bytes as u64;
        }
        Ok(true)
    }

    fn end_of_input(&mut self) -> Option<Found> {
        let bytes = self.buffered().len() as u64;
        self.leftover = (bytes > 0).then(|| Leftover { offset: self.position(), bytes });
        None
    }

    /// Has at least so many bytes in the buffer, fewer only at the end of the input.
    fn fill(&mut self, bytes: usize) -> Result<(), ReadError> {
        while self.end - self.start < bytes {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            } else if self.buffer.len() - self.start < bytes {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.buffer.len() < bytes.max(BUFFER_BYTES) {
                self.buffer.resize(bytes.max(BUFFER_BYTES), 0);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.input.read(room) {
                Ok(0) => break,
                Ok(read) => self.end += read.min(room.len()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    let offset = Offset(self.position + self.buffered().len() as u64);
                    return Err(ReadError::Io { offset, source });
                }
            }
        }
        Ok(())
    }

    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    fn take(&mut self, bytes: usize) {
        self.start += bytes;
        self.position += bytes as u64;
    }
}

impl<R> Records<R> {
    /// As [`Records::leftover`], once.
    pub(crate) fn take_leftover(&mut self) -> Option<Leftover> {
        self.leftover.take()
    }

    /// Where the next record is looked for.
    #[must_use]
    pub const fn position(&self) -> Offset {
        Offset(self.position)
    }

    /// Zero words skipped so far.
    #[must_use]
    pub const fn zero_words(&self) -> u64 {
        self.zero_words
    }

    /// Bytes behind the last whole record.
    #[must_use]
    pub fn leftover_bytes(&self) -> u64 {
        self.leftover.map_or(0, |leftover| leftover.bytes)
    }

    /// At the end: what is left of a record that is cut off.
    #[must_use]
    pub const fn leftover(&self) -> Option<Leftover> {
        self.leftover
    }
}
