//! Puts records in the order of their times; what is more than 48 MiB waits in an unlinked file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// So much waits in memory.
const RUN_BYTES: usize = 48 << 20;
const READ_BYTES: usize = 64 << 10;
const MIN_READ_BYTES: usize = 4 << 10;
/// Before each record, also in the file: its time and its length.
const HEAD_BYTES: usize = 16;

/// The error of a record that is not what was sorted: its file has changed.
#[must_use]
pub fn changed() -> io::Error {
    io::Error::other("what was sorted has changed")
}

/// The words that a sorted record begins with, and what follows them.
///
/// # Errors
/// There are fewer.
#[inline]
pub fn words<const N: usize>(record: &[u8]) -> io::Result<([u64; N], &[u8])> {
    let words = record.as_chunks::<8>().0.first_chunk::<N>().ok_or_else(changed)?;
    Ok((words.map(u64::from_le_bytes), record.get(8 * N..).unwrap_or_default()))
}

/// Records on their way into the order of their times.
#[derive(Debug)]
pub struct Sorter {
    bytes: Vec<u8>,
    /// Time and place of the records in memory.
    index: Vec<RecordPosition>,
    file: Option<File>,
    /// What is in the file, in order within itself.
    runs: Vec<Range<u64>>,
    run_bytes: usize,
    /// Why no more records are taken.
    error: Option<io::Error>,
}

/// A record's time, and where its head begins.
type RecordPosition = (u64, u32);

impl Default for Sorter {
    fn default() -> Self {
        Self::with_runs_of(RUN_BYTES)
    }
}

impl Sorter {
    /// One that moves what is more than so many bytes to the file.
    #[must_use]
    pub fn with_runs_of(run_bytes: usize) -> Self {
        let (bytes, index, runs) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, index, file: None, runs, run_bytes, error: None }
    }

    /// Takes a record; the order of those of one time stays. What would be too much for memory moves to the
    /// file first; where that fails, [`Sorter::check`] has the error, and records are dropped.
    pub fn push(&mut self, at: u64, record: &[u8]) {
        let new = HEAD_BYTES + record.len() + size_of::<RecordPosition>();
        let used = self.used_bytes();
        if used > 0 && used + new > self.run_bytes && self.error.is_none() {
            self.error = self.spill().err();
        }
        if self.error.is_some() {
            return;
        }
        let start = self.bytes.len();
        let length = HEAD_BYTES + record.len();
        let (Ok(from), Ok(_)) = (u32::try_from(start), u32::try_from(start + length)) else {
            self.error = Some(io::ErrorKind::FileTooLarge.into());
            return;
        };
        // At most what is allowed, where doubling would be more.
        if self.bytes.capacity() - start < length {
            let most = self.run_bytes.saturating_sub(self.used_bytes() - start);
            let wanted = (2 * self.bytes.capacity()).min(most).max(start + length);
            self.bytes.reserve_exact(wanted - start);
        }
        self.bytes.extend_from_slice(&at.to_le_bytes());
        self.bytes.extend_from_slice(&(record.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.index.push((at, from));
    }

    fn used_bytes(&self) -> usize {
        self.bytes.len() + self.index.len() * size_of::<RecordPosition>()
    }

    /// The error of a move to the file.
    ///
    /// # Errors
    /// What waits could not be written.
    pub fn check(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => self.file.insert(file),
            None => self.file.insert(tempfile::tempfile()?),
        };
        self.index.sort_by_key(|(at, _)| *at);
        let start = file.seek(SeekFrom::End(0))?;
        let mut writer = BufWriter::with_capacity(READ_BYTES, &mut *file);
        // Records that are in order are one piece.
        let mut piece = 0..0;
        for (_, from) in self.index.drain(..) {
            let from = from as usize;
            let end = record_at(&self.bytes, from).map_or(from, |record| record.end);
            if piece.end != from {
                writer.write_all(self.bytes.get(piece).unwrap_or_default())?;
                piece = from..from;
            }
            piece.end = end;
        }
        writer.write_all(self.bytes.get(piece).unwrap_or_default())?;
        writer.flush()?;
        drop(writer);
        self.bytes.clear();
        let end = file.stream_position()?;
        self.runs.push(start..end);
        Ok(())
    }

    /// Gives all records in order.
    ///
    /// # Errors
    /// The file cannot be written or read, or what the caller says.
    pub fn finish(self, mut take: impl FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<()> {
        let mut sorted = self.sorted()?;
        while let Some(record) = sorted.advance()? {
            take(record)?;
        }
        Ok(())
    }

    /// All records in order, for a caller who asks for them one by one.
    ///
    /// # Errors
    /// The file cannot be written or read.
    pub fn sorted(mut self) -> io::Result<Sorted> {
        self.check()?;
        if self.file.is_none() {
            self.index.sort_by_key(|(at, _)| *at);
            let (bytes, index) = (self.bytes, self.index.into_iter());
            return Ok(Sorted { source: Source::Held { bytes, index } });
        }
        self.spill()?;
        let Self { bytes, file, runs, .. } = self;
        drop(bytes);
        let file = Arc::new(file.ok_or(io::ErrorKind::NotFound)?);
        // All runs are read at once.
        let read_bytes = (RUN_BYTES / runs.len().max(1)).clamp(MIN_READ_BYTES, READ_BYTES);
        let mut runs: Vec<_> = runs.into_iter().map(|range| Run::new(&file, range, read_bytes)).collect();
        let mut next = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            next.extend(run.advance()?.map(|at| Reverse((at, number))));
        }
        Ok(Sorted { source: Source::Runs { runs, next, given: None } })
    }
}

/// Records in the order of their times.
#[derive(Debug)]
pub struct Sorted {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Held {
        bytes: Vec<u8>,
        index: std::vec::IntoIter<RecordPosition>,
    },
    /// Of one time, what came first is in the lower run.
    Runs {
        runs: Vec<Run>,
        next: BinaryHeap<Reverse<(u64, usize)>>,
        /// The run whose record was given last.
        given: Option<usize>,
    },
}

impl Sorted {
    /// The next record; none if there are no more.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn advance(&mut self) -> io::Result<Option<&mut [u8]>> {
        match &mut self.source {
            Source::Held { bytes, index } => Ok(index.next().and_then(|(_, from)| {
                let record = record_at(bytes, from as usize)?;
                bytes.get_mut(record)
            })),
            Source::Runs { runs, next, given } => {
                if let Some(number) = given.take()
                    && let Some(at) = runs[number].advance()?
                {
                    // Where runs hardly overlap, the same one goes on.
                    if next.peek().is_none_or(|Reverse(first)| (at, number) < *first) {
                        *given = Some(number);
                        return Ok(Some(runs[number].record()));
                    }
                    next.push(Reverse((at, number)));
                }
                *given = next.pop().map(|Reverse((_, number))| number);
                Ok(given.map(|number| runs[number].record()))
            }
        }
    }
}

/// The word at a place.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map(|word| u64::from_le_bytes(*word))
}

/// Where the record is whose head is at a place.
fn record_at(bytes: &[u8], head: usize) -> Option<Range<usize>> {
    let length = usize::try_from(word(bytes, head + 8)?).ok()?;
    let start = head + HEAD_BYTES;
    Some(start..start.checked_add(length)?)
}

/// One part of the file, read from its beginning.
#[derive(Debug)]
struct Run {
    input: Part,
    /// What was read, and room behind it.
    buffer: Vec<u8>,
    /// Where the next head is, and what was read ends.
    next: usize,
    end: usize,
    /// The last record.
    record: Range<usize>,
}

#[derive(Debug)]
struct Part {
    file: Arc<File>,
    range: Range<u64>,
}

impl Read for Part {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX);
        let wanted = left.min(bytes.len());
        let length = self.file.read_at(&mut bytes[..wanted], self.range.start)?;
        self.range.start += length as u64;
        Ok(length)
    }
}

impl Run {
    fn new(file: &Arc<File>, range: Range<u64>, read_bytes: usize) -> Self {
        let input = Part { file: file.clone(), range };
        Self { input, buffer: vec![0; read_bytes], next: 0, end: 0, record: 0..0 }
    }

    /// Goes to the next record, and gives its time.
    fn advance(&mut self) -> io::Result<Option<u64>> {
        if self.end - self.next < HEAD_BYTES && !self.fill(HEAD_BYTES)? {
            return Ok(None);
        }
        let record = |run: &Self| record_at(&run.buffer, run.next).ok_or(io::ErrorKind::InvalidData);
        let length = record(self)?.end - self.next;
        if self.end - self.next < length && !self.fill(length)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let at = word(&self.buffer, self.next).unwrap_or(0);
        self.record = record(self)?;
        self.next = self.record.end;
        Ok(Some(at))
    }

    fn record(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.record.clone()).unwrap_or_default()
    }

    /// Reads until there are so many bytes; false if the part ends before.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.next..self.end, 0);
        self.end -= self.next;
        self.next = 0;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.end < wanted {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(length) => self.end += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_bytes_that_have_changed_are_an_error() {
        let bytes = [1_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat();
        assert_eq!(words::<2>(&[&bytes[..], b"x"].concat()).unwrap(), ([1, 2], &b"x"[..]));
        assert_eq!(words::<2>(&bytes).unwrap(), ([1, 2], &b""[..]));
        assert!(words::<2>(&bytes[..15]).is_err());
    }

    #[test]
    fn records_come_in_order_from_memory_and_from_the_file() {
        let times: Vec<u64> = (0..10_000_u64).map(|number| number * 7919 % 1000).collect();
        let mut expected: Vec<(u64, u64)> = times.iter().copied().zip(0..).collect();
        expected.sort();
        // 25 records of 8 bytes with heads and places of 16 each are a run of 1000 bytes.
        for (run_bytes, runs) in [(1 << 20, 0), (1000, 10_000 / 25 - 1), (8, 9_999)] {
            let mut sorter = Sorter::with_runs_of(run_bytes);
            for (number, at) in times.iter().enumerate() {
                sorter.push(*at, &(number as u64).to_le_bytes());
                assert!(sorter.bytes.capacity() <= run_bytes.max(HEAD_BYTES + 8));
            }
            assert_eq!(sorter.runs.len(), runs);
            let mut found = Vec::new();
            sorter
                .finish(|record| {
                    let number = u64::from_le_bytes((&*record).try_into().unwrap());
                    found.push((times[number as usize], number));
                    Ok(())
                })
                .unwrap();
            assert_eq!(found, expected, "{run_bytes}");
        }
    }
}
