//! Reads slabs in batches, and hands on the sound records in them.
//!
//! Slabs that no thread writes any more are read straight into the output, those that are side by side at
//! once. What is not to be handed on is then closed up, so nothing is moved where slabs are full and sound.

use super::{BufferError, BufferReader, Fault, Read, RegionName, Source, is_whole_run, read_exact, validate};
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};
use trace_format::record::RecordHeader;
use trace_format::slab::{SlabState, SlabWord};

/// Slabs are read in batches of about this size.
pub(super) const BATCH_BYTES: usize = 256 << 10;

/// A slab or run of a batch.
struct Extent {
    word: SlabWord,
    slab: u32,
    /// The place of its bytes.
    bytes: Range<usize>,
}

/// The places of the records to hand on, in ascending order.
#[derive(Default)]
struct Sound {
    ranges: Vec<Range<usize>>,
}

impl Sound {
    fn add(&mut self, range: Range<usize>) {
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if range.is_empty() => {}
            _ => self.ranges.push(range),
        }
    }

    /// Closes the gaps behind a byte. Where there is none, as in full slabs, nothing is moved.
    fn compact(&self, begin: usize, bytes: &mut Vec<u8>) {
        let mut end = begin;
        for range in &self.ranges {
            if range.start != end {
                bytes.copy_within(range.clone(), end);
            }
            end += range.len();
        }
        bytes.truncate(end);
    }
}

impl<S: Source> BufferReader<S> {
    /// Appends the valid records of the next batch to `out`, definitions before the records that use them.
    /// False at the end.
    ///
    /// # Errors
    /// The buffer cannot be read any further; what was appended before stays valid.
    pub fn read_batch(&mut self, out: &mut Vec<u8>) -> Result<bool, BufferError> {
        if self.is_live() {
            return self.read_live_batch(out);
        }
        if !std::mem::replace(&mut self.is_durable_read, true) {
            self.read_durable(out)?;
        }
        let begin = out.len();
        let extents = self.next_slabs(begin);
        let read = self.copy_slabs(&extents, out);
        if read.is_err() {
            out.truncate(begin);
        }
        read?;
        let mut sound = Sound::default();
        for extent in extents {
            self.walk_extent(extent, &out[begin..], begin, &mut sound);
        }
        sound.compact(begin, out);
        Ok(self.next_slab < self.slabs.len())
    }

    /// The same while the part may be written: slabs are copied one by one, and the definitions behind them,
    /// so that they hold every one that the slabs use.
    fn read_live_batch(&mut self, out: &mut Vec<u8>) -> Result<bool, BufferError> {
        let mut batch = Vec::new();
        let mut extents = Vec::new();
        for extent in self.next_slabs(0) {
            let start = batch.len();
            batch.resize(start + extent.bytes.len(), 0);
            if self.copy_live_slab(extent.word, extent.slab, &mut batch[start..])? {
                extents.push(Extent { bytes: start..batch.len(), ..extent });
            } else {
                batch.truncate(start);
            }
        }
        self.read_durable(out)?;
        if self.header.end_ts.is_none() {
            self.refresh_end()?;
        }
        let mut sound = Sound::default();
        for extent in extents {
            self.walk_extent(extent, &batch, 0, &mut sound);
        }
        sound.ranges.into_iter().for_each(|range| out.extend_from_slice(&batch[range]));
        Ok(self.next_slab < self.slabs.len())
    }

    /// The slabs of the next batch, with the places of their bytes, one behind the other from here on.
    fn next_slabs(&mut self, begin: usize) -> Vec<Extent> {
        let layout = self.header.layout;
        let mut extents = Vec::new();
        let mut end = begin;
        while end - begin < BATCH_BYTES
            && let Some((word, slab)) = self.slabs.get(self.next_slab).copied()
        {
            self.next_slab += 1;
            let bytes = end..end + layout.slab_bytes as usize * word.run().max(1) as usize;
            end = bytes.end;
            extents.push(Extent { word, slab, bytes });
        }
        extents
    }

    /// Appends the bytes of slabs that no thread writes any more; those that are side by side at once.
    fn copy_slabs(&self, extents: &[Extent], out: &mut Vec<u8>) -> Result<(), BufferError> {
        let Some(end) = extents.last().map(|extent| extent.bytes.end) else {
            return Ok(());
        };
        out.resize(end, 0);
        let layout = &self.header.layout;
        let is_side_by_side = |one: &Extent, next: &Extent| {
            layout.slab(one.slab).checked_add(one.bytes.len() as u64) == Some(layout.slab(next.slab))
        };
        for together in extents.chunk_by(is_side_by_side) {
            if let (Some(first), Some(last)) = (together.first(), together.last()) {
                let bytes = &mut out[first.bytes.start..last.bytes.end];
                read_exact(&self.source, layout.slab(first.slab), bytes)?;
            }
        }
        Ok(())
    }

    /// Checks the records of a slab that has been copied; `bytes` begins with the byte number `begin`.
    fn walk_extent(&mut self, extent: Extent, bytes: &[u8], begin: usize, sound: &mut Sound) {
        let Extent { word, slab, bytes: range } = extent;
        let sequence = word.sequence();
        let mut read = self.read[slab as usize];
        if read.sequence != sequence {
            read = Read { sequence, ..Read::default() };
        }
        let known = read.bytes.min(range.len());
        let before = self.seen_rolling();
        let start = self.header.layout.slab(slab) + known as u64;
        let first = range.start + known;
        read.bytes = known + self.walk_slab(start, &bytes[first - begin..range.end - begin], first, sound);
        read.records += self.seen_rolling() - before;
        read.is_whole = word.state() == SlabState::Closed;
        self.read[slab as usize] = read;
    }

    /// Copies a slab or a run that a thread may be writing; false if it was claimed again meanwhile.
    //= docs/buffer.md#reading
    fn copy_live_slab(&self, word: SlabWord, slab: u32, bytes: &mut [u8]) -> Result<bool, BufferError> {
        let offset = self.header.layout.slab(slab);
        let mut first = vec![0; bytes.len()];
        let is_before = self.is_still(word, slab)?;
        fence(Ordering::SeqCst);
        read_exact(&self.source, offset, &mut first)?;
        fence(Ordering::SeqCst);
        read_exact(&self.source, offset, bytes)?;
        fence(Ordering::SeqCst);
        if !is_before || !self.is_still(word, slab)? {
            return Ok(false);
        }
        keep_committed(&first, bytes);
        Ok(true)
    }

    /// Whether the words of a slab and of the rest of its run are unchanged. If it was closed meanwhile, it
    /// holds the same records.
    fn is_still(&self, word: SlabWord, slab: u32) -> Result<bool, BufferError> {
        let words = self.slab_words(slab, word.run().max(1))?;
        Ok(words[0].sequence() == word.sequence()
            && words[0].run() == word.run()
            && matches!(words[0].state(), SlabState::Open | SlabState::Closed)
            && is_whole_run(&self.header.layout, slab, &words))
    }

    /// Checks the records of one slab, whose bytes have the numbers from `begin` on, and notes those to hand
    /// on. The walk ends at a zero word, or at an impossible size: then nothing more is read of this slab.
    /// Returns the number of processed bytes.
    fn walk_slab(&mut self, slab_offset: u64, slab: &[u8], begin: usize, out: &mut Sound) -> usize {
        let mut rest = slab;
        // Where the sound records begin that are not handed on yet, and their number.
        let (mut sound, mut count) = (0, 0);
        let latest = self.latest();
        let walked = loop {
            let walked = slab.len() - rest.len();
            let offset = slab_offset + walked as u64;
            let record = match next_record(rest) {
                Next::End => break walked,
                Next::BadSize(header) => {
                    self.hand_on_all(begin + sound..begin + walked, count, out);
                    let words = header.size().0 as u64;
                    self.leave_out(RegionName::Rolling, offset, Fault::Size { words });
                    return slab.len();
                }
                Next::Record(record, behind) => {
                    rest = behind;
                    record
                }
            };
            match self.validator.check_rolling(record).and_then(|at| validate::check_time(record, at, latest))
            {
                Ok(emitted_at) if self.header.end_ts.is_none_or(|end| emitted_at <= Some(end)) => {
                    self.findings.events += u64::from(emitted_at.is_some());
                    count += 1;
                    continue;
                }
                Ok(_) => self.findings.late_events += 1,
                Err(fault) => self.leave_out(RegionName::Rolling, offset, fault),
            }
            self.hand_on_all(begin + sound..begin + walked, count, out);
            (sound, count) = (walked + record.len(), 0);
        };
        self.hand_on_all(begin + sound..begin + walked, count, out);
        walked
    }

    /// Hands on the given number of consecutive records of a rolling region.
    fn hand_on_all(&mut self, records: Range<usize>, count: u64, out: &mut Sound) {
        self.findings.rolling_bytes += records.len() as u64;
        self.findings.rolling_records += count;
        self.findings.records += count;
        self.findings.bytes += records.len() as u64;
        out.add(records);
    }
}

/// The record at the beginning of some bytes.
enum Next<'a> {
    /// A zero word, or the end of the bytes.
    End,
    /// A header with an impossible size.
    BadSize(RecordHeader),
    /// A record, and the bytes after it.
    Record(&'a [u8], &'a [u8]),
}

fn next_record(bytes: &[u8]) -> Next<'_> {
    let Some(word) = bytes.first_chunk::<8>() else {
        return Next::End;
    };
    let header = RecordHeader(u64::from_le_bytes(*word));
    let size = header.size().bytes();
    match bytes.split_at_checked(size) {
        _ if header.0 == 0 => Next::End,
        Some((record, rest)) if size > 0 => Next::Record(record, rest),
        _ => Next::BadSize(header),
    }
}

/// Zeroes the header of the first record in `second` that was not committed yet in `first`.
fn keep_committed(first: &[u8], second: &mut [u8]) {
    let mut offset = 0;
    while let Some(header) = first.get(offset..).and_then(|rest| rest.first_chunk::<8>()) {
        let size = RecordHeader(u64::from_le_bytes(*header)).size().bytes();
        if *header == [0; 8] || size == 0 {
            if let Some(header) = second.get_mut(offset..offset + 8) {
                header.fill(0);
            }
            return;
        }
        offset += size;
    }
}
