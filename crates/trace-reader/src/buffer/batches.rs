//! Reads slabs in batches, and hands on the sound records in them.
//!
//! Slabs that no thread writes any more are read straight into the output, those that are side by side at
//! once. What is not to be handed on is then closed up, so nothing is moved where slabs are full and sound.

use super::fast_path::Common;
use super::{BufferError, BufferReader, Fault, Read, RegionName, Source, is_whole_run, read_exact, validate};
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};
use trace_format::buffer::Layout;
use trace_format::record::RecordHeader;
use trace_format::slab::{SlabState, SlabWord};

/// Slabs are read in batches of about this size.
pub(super) const BATCH_BYTES: usize = 256 << 10;

/// So many slabs, or runs, that may be written are copied at once: other threads may claim them meanwhile,
/// and then they are not read.
const LIVE_SLABS: usize = 16;

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
    /// Definitions may have come since the slabs were copied that the records use.
    may_lack_definitions: bool,
    /// Those that have come.
    definitions: Vec<u8>,
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
            self.walk_extent(extent, &out[begin..], begin, &mut sound)?;
        }
        sound.compact(begin, out);
        Ok(self.next_slab < self.slabs.len())
    }

    /// The same while the part may be written.
    fn read_live_batch(&mut self, out: &mut Vec<u8>) -> Result<bool, BufferError> {
        let begin = out.len();
        let read = self.read_live_slabs(out);
        if read.is_err() {
            out.truncate(begin);
        }
        read.map(|()| self.next_slab < self.slabs.len())
    }

    /// Definitions are read behind the slabs that were copied, so that they hold every one that these use:
    /// where one is missing, and at the end of the part.
    fn read_live_slabs(&mut self, out: &mut Vec<u8>) -> Result<(), BufferError> {
        let begin = out.len();
        let extents = self.next_slabs(begin);
        let extents = self.copy_live_slabs(extents, out)?;
        let mut sound = Sound { may_lack_definitions: true, ..Sound::default() };
        if self.next_slab >= self.slabs.len() {
            self.read_late_definitions(&mut sound)?;
        }
        if self.header.end_ts.is_none() {
            self.refresh_end()?;
        }
        for extent in extents {
            self.walk_extent(extent, &out[begin..], begin, &mut sound)?;
        }
        sound.compact(begin, out);
        if !sound.definitions.is_empty() {
            out.splice(begin..begin, sound.definitions);
        }
        Ok(())
    }

    /// Reads the definitions that have come since the slabs of a batch were copied.
    #[cold]
    fn read_late_definitions(&mut self, sound: &mut Sound) -> Result<(), BufferError> {
        sound.may_lack_definitions = false;
        self.read_durable(&mut sound.definitions)
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
        for together in self.side_by_side(extents) {
            if let (Some(first), Some(last)) = (together.first(), together.last()) {
                let bytes = &mut out[first.bytes.start..last.bytes.end];
                read_exact(&self.source, self.header.layout.slab(first.slab), bytes)?;
            }
        }
        Ok(())
    }

    /// Slabs and runs that follow each other in the buffer.
    fn side_by_side<'a>(&self, extents: &'a [Extent]) -> impl Iterator<Item = &'a [Extent]> + use<'a, S> {
        let layout = self.header.layout;
        extents.chunk_by(move |one, next| {
            layout.slab(one.slab).checked_add(one.bytes.len() as u64) == Some(layout.slab(next.slab))
        })
    }

    /// Appends the bytes of slabs that threads may be writing. Returns those that were not claimed again
    /// meanwhile.
    fn copy_live_slabs(
        &self,
        mut extents: Vec<Extent>,
        out: &mut Vec<u8>,
    ) -> Result<Vec<Extent>, BufferError> {
        let Some(end) = extents.last().map(|extent| extent.bytes.end) else {
            return Ok(extents);
        };
        out.resize(end, 0);
        let mut first_copy = Vec::new();
        let mut is_same = Vec::with_capacity(extents.len());
        for together in self.side_by_side(&extents).flat_map(|extents| extents.chunks(LIVE_SLABS)) {
            self.copy_live_together(together, out, &mut first_copy, &mut is_same)?;
        }
        let mut is_same = is_same.into_iter();
        extents.retain(|_| is_same.next() == Some(true));
        Ok(extents)
    }

    /// Copies slabs side by side that threads may be writing, and notes of each whether it is still of the
    /// same claim. Into those that are closed no thread writes before it has claimed them; of others the
    /// records count that are in a first copy, which is made where there are any.
    //= docs/buffer.md#reading
    fn copy_live_together(
        &self,
        together: &[Extent],
        out: &mut [u8],
        first_copy: &mut Vec<u8>,
        is_same: &mut Vec<bool>,
    ) -> Result<(), BufferError> {
        let (Some(head), Some(last)) = (together.first(), together.last()) else {
            return Ok(());
        };
        let layout = &self.header.layout;
        let offset = layout.slab(head.slab);
        let count = last.slab + last.word.run().max(1) - head.slab;
        let bytes = &mut out[head.bytes.start..last.bytes.end];
        let before = self.slab_words(head.slab, count)?;
        fence(Ordering::SeqCst);
        let place = |extent: &Extent| (extent.slab - head.slab) as usize;
        let is_closed = |extent: &Extent| before[place(extent)].state() == SlabState::Closed;
        if !together.iter().all(is_closed) {
            first_copy.resize(bytes.len(), 0);
            read_exact(&self.source, offset, first_copy)?;
            fence(Ordering::SeqCst);
        }
        read_exact(&self.source, offset, bytes)?;
        fence(Ordering::SeqCst);
        let after = self.slab_words(head.slab, count)?;
        for extent in together {
            let place = place(extent);
            let is_still = |words: &[SlabWord]| is_same_claim(layout, extent, &words[place..]);
            is_same.push(is_still(&before) && is_still(&after));
            if !is_closed(extent) {
                let range = extent.bytes.start - head.bytes.start..extent.bytes.end - head.bytes.start;
                keep_committed(&first_copy[range.clone()], &mut bytes[range]);
            }
        }
        Ok(())
    }

    /// Checks the records of a slab that has been copied; `bytes` begins with the byte number `begin`.
    fn walk_extent(
        &mut self,
        extent: Extent,
        bytes: &[u8],
        begin: usize,
        sound: &mut Sound,
    ) -> Result<(), BufferError> {
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
        read.bytes = known + self.walk_slab(start, &bytes[first - begin..range.end - begin], first, sound)?;
        read.records += self.seen_rolling() - before;
        read.is_whole = word.state() == SlabState::Closed;
        self.read[slab as usize] = read;
        Ok(())
    }

    /// Checks the records of one slab, whose bytes have the numbers from `begin` on, and notes those to hand
    /// on. The walk ends at a zero word, or at an impossible size: then nothing more is read of this slab.
    /// Returns the number of processed bytes.
    fn walk_slab(
        &mut self,
        slab_offset: u64,
        slab: &[u8],
        begin: usize,
        out: &mut Sound,
    ) -> Result<usize, BufferError> {
        let mut rest = slab;
        // Where the sound records begin that are not handed on yet, and their number.
        let (mut sound, mut count) = (0, 0);
        let latest = self.latest();
        let last = self.header.end_ts.unwrap_or(u64::MAX);
        let walked = loop {
            let (common, events) = self.skip_common(rest, latest, last);
            rest = &rest[common..];
            self.findings.events += events;
            count += events;
            let walked = slab.len() - rest.len();
            let offset = slab_offset + walked as u64;
            let record = match next_record(rest) {
                Next::End => break walked,
                Next::BadSize(header) => {
                    self.hand_on_all(begin + sound..begin + walked, count, out);
                    let words = header.size().0 as u64;
                    self.leave_out(RegionName::Rolling, offset, Fault::Size { words });
                    return Ok(slab.len());
                }
                Next::Record(record, behind) => {
                    rest = behind;
                    record
                }
            };
            let mut checked = self.check(record, latest);
            if let Err(fault) = &checked
                && fault.is_missing_definition()
                && out.may_lack_definitions
            {
                self.read_late_definitions(out)?;
                checked = self.check(record, latest);
            }
            match checked {
                Ok(emitted_at) if emitted_at.is_none_or(|emitted_at| emitted_at <= last) => {
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
        Ok(walked)
    }

    /// The size and number of events of the common case at the beginning of a slab that are sound and not
    /// late.
    fn skip_common(&self, slab: &[u8], latest: u64, last: u64) -> (usize, u64) {
        let words = slab.as_chunks::<8>().0;
        let (mut at, mut events) = (0, 0);
        while let Some(Common { words, timestamp, emitted_at }) = self.validator.common(&words[at..])
            && timestamp.max(emitted_at) <= latest
            && emitted_at <= last
        {
            at += words;
            events += 1;
        }
        (8 * at, events)
    }

    /// Checks a record of a rolling region, and its times.
    fn check(&self, record: &[u8], latest: u64) -> Result<Option<u64>, Fault> {
        self.validator.check_rolling(record).and_then(|at| validate::check_time(record, at, latest))
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

/// Whether the words of a slab and of the rest of its run, which begin with its own, are of the claim that
/// was found. If it was closed meanwhile, it holds the same records.
fn is_same_claim(layout: &Layout, extent: &Extent, words: &[SlabWord]) -> bool {
    let Extent { word, slab, .. } = *extent;
    words[0].sequence() == word.sequence()
        && words[0].run() == word.run()
        && matches!(words[0].state(), SlabState::Open | SlabState::Closed)
        && is_whole_run(layout, slab, words)
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
