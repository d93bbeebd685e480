//! Splits an input into records, in memory that does not grow with it.

use std::io::{self, Read};
use trace_format::metadata::MAGIC_WORD;
use trace_format::record::{MAX_RECORD_WORDS, RecordHeader};
use trace_format::units::{Offset, Words};

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Largest record that is held as a whole; ordinary records are always smaller.
const MAX_HELD_BYTES: usize = 1 << 20;
const _: () = assert!(MAX_RECORD_WORDS * 8 <= MAX_HELD_BYTES);

/// One record as it stands in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Where it begins.
    pub offset: Offset,
    /// Its words. Of a record larger than 1 MiB only the header.
    pub bytes: &'a [u8],
    /// Its size.
    pub size: Words,
}

impl RawRecord<'_> {
    /// Its first word.
    #[must_use]
    pub fn header(&self) -> RecordHeader {
        RecordHeader(self.bytes.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// All of it is there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.size.bytes()
    }
}

/// Why an input cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The input does not begin with the magic number record.
    #[error("no Fuchsia trace: it begins with {found}, expected the bytes 10 00 04 46 78 54 16 00")]
    NoTrace {
        /// What the first bytes look like.
        found: String,
    },
    /// A header that is not zero has no size, so nothing behind it can be found.
    #[error("record at byte {offset}: header {header:#018x} has no size")]
    NoSize {
        /// Where it stands.
        offset: Offset,
        /// The header.
        header: u64,
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

/// The records of an input, one after the other.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `start` in the input.
    offset: u64,
    is_at_end: bool,
    zero_words: u64,
    leftover_bytes: u64,
}

impl<R: Read> Records<R> {
    /// Splits an input that begins with a record of any kind, such as the data of one provider.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            is_at_end: false,
            zero_words: 0,
            leftover_bytes: 0,
        }
    }

    /// Splits an archive, which begins with the magic number record.
    ///
    /// # Errors
    /// The input is something else, or cannot be read.
    pub fn archive(input: R) -> Result<Self, ReadError> {
        let mut records = Self::new(input);
        records.fill(8)?;
        let first = &records.buffer[records.start..records.end.min(records.start + 8)];
        if first != MAGIC_WORD.to_le_bytes() {
            return Err(ReadError::NoTrace { found: describe(first) });
        }
        Ok(records)
    }

    /// The next record; None at the end. Zero words between records are stepped over and counted; a record
    /// that the input cuts off is not returned, and its bytes are counted.
    //= docs/format.md#malformed-input
    ///
    /// # Errors
    /// The position in the input is lost, or it cannot be read.
    pub fn next_record(&mut self) -> Result<Option<RawRecord<'_>>, ReadError> {
        loop {
            self.fill(8)?;
            let Some(word) = self.buffer[self.start..self.end].first_chunk::<8>() else {
                self.leftover_bytes = (self.end - self.start) as u64;
                return Ok(None);
            };
            let header = RecordHeader(u64::from_le_bytes(*word));
            if header.0 == 0 {
                self.zero_words += 1;
                self.advance(8);
                continue;
            }
            let size = header.size();
            if size.0 == 0 {
                return Err(ReadError::NoSize { offset: Offset(self.offset), header: header.0 });
            }
            return if size.bytes() <= MAX_HELD_BYTES { self.take(size) } else { self.step_over(size) };
        }
    }

    /// A record that is held as a whole.
    fn take(&mut self, size: Words) -> Result<Option<RawRecord<'_>>, ReadError> {
        self.fill(size.bytes())?;
        if self.end - self.start < size.bytes() {
            self.leftover_bytes = (self.end - self.start) as u64;
            return Ok(None);
        }
        let (offset, start) = (self.offset, self.start);
        self.advance(size.bytes());
        let bytes = &self.buffer[start..start + size.bytes()];
        Ok(Some(RawRecord { offset: Offset(offset), bytes, size }))
    }

    /// A record that is too large to be held: its header, and nothing of its contents.
    fn step_over(&mut self, size: Words) -> Result<Option<RawRecord<'_>>, ReadError> {
        let offset = self.offset;
        let mut header = [0; 8];
        header.copy_from_slice(&self.buffer[self.start..self.start + 8]);
        let mut left = size.bytes();
        while left > 0 {
            self.fill(1)?;
            let step = left.min(self.end - self.start);
            if step == 0 {
                self.leftover_bytes = (size.bytes() - left) as u64;
                return Ok(None);
            }
            self.advance(step);
            left -= step;
        }
        // The buffer is read already; its beginning is free to hold the header.
        if self.start >= 8 {
            self.buffer[self.start - 8..self.start].copy_from_slice(&header);
            let bytes = &self.buffer[self.start - 8..self.start];
            return Ok(Some(RawRecord { offset: Offset(offset), bytes, size }));
        }
        Ok(Some(RawRecord { offset: Offset(offset), bytes: &[], size }))
    }

    fn advance(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Reads until so many bytes are there, or the input ends.
    fn fill(&mut self, bytes: usize) -> Result<(), ReadError> {
        if self.end - self.start >= bytes || self.is_at_end {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        while self.end < bytes {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.is_at_end = true;
                    return Ok(());
                }
                Ok(length) => self.end += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    let offset = Offset(self.offset + self.end as u64);
                    return Err(ReadError::Io { offset, source });
                }
            }
        }
        Ok(())
    }

    /// Zero words that were stepped over.
    #[must_use]
    pub fn zero_words(&self) -> u64 {
        self.zero_words
    }

    /// Bytes behind the last whole record.
    #[must_use]
    pub fn leftover_bytes(&self) -> u64 {
        self.leftover_bytes
    }
}

/// What some first bytes look like to a person.
fn describe(bytes: &[u8]) -> String {
    match bytes {
        [] => "nothing (the file is empty)".to_owned(),
        [0x1f, 0x8b, ..] => "gzip data".to_owned(),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd data".to_owned(),
        [b'{' | b'[', ..] => "JSON text".to_owned(),
        _ if bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => {
            format!("the text {:?}", String::from_utf8_lossy(bytes))
        }
        _ => {
            let hex: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("the bytes {}", hex.join(" "))
        }
    }
}
