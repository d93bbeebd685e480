//! Reads the shared buffer of a provider: finds every committed record, and hands on only what is valid.
//!
//! Nothing in the buffer is trusted. The header is checked once from a copy; slab words say where records
//! may be; each record is decoded and its references are resolved before it is handed on. A bad record is
//! dropped and counted with its place.
//!
//! Memory that may still be written is copied twice: the records whose header is in the first copy are taken
//! from the second, and only if the slab's word is the same before and after.

mod accounts;
mod batches;
mod durable;
mod fast_path;
mod plausible;
mod validate;

use durable::Durable;
pub use plausible::Period;
use std::io;
use std::sync::atomic::{Ordering, fence};
pub use trace_format::buffer::BUFFER_VERSION;
use trace_format::buffer::{BufferHeader, BufferMode, HEADER_BYTES, HeaderError, Layout, field};
pub use trace_format::slab::Gap;
use trace_format::slab::{Loss, LossReason, SlabState, SlabWord};
use trace_format::units::TicksPerSecond;
pub use validate::Fault;
use validate::Validator;

/// How many bad records are kept with their place; the rest is only counted.
const MAX_BAD_RECORDS: usize = 16;

/// A source of a buffer's bytes, such as a file that another process may write, shrink or delete meanwhile.
pub trait Source {
    /// Copies bytes from an offset; fewer than requested if the file ends.
    ///
    /// # Errors
    /// The operating system's error.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;
}

impl Source for [u8] {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let length = bytes.len().min(self.len() - start);
        bytes[..length].copy_from_slice(&self[start..start + length]);
        Ok(length)
    }
}

/// Whether a process may still write into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The writer has stopped, or its process is dead.
    Quiet,
    /// The writer may be running.
    Live,
}

/// The region a record was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionName {
    /// Definitions.
    Durable,
    /// Events.
    Rolling,
}

impl core::fmt::Display for RegionName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Durable => "durable",
            Self::Rolling => "rolling",
        })
    }
}

/// A record that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// The region it was found in.
    pub region: RegionName,
    /// Its offset from the start of the buffer, in bytes.
    pub offset: u64,
    /// The error in it.
    pub fault: Fault,
}

/// Why a buffer cannot be read at all, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// The operating system refused.
    #[error("cannot read buffer at byte {offset}")]
    Io {
        /// The offset at which the read began.
        offset: u64,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file ends inside the buffer.
    #[error("buffer ends at byte {offset}, {missing} bytes early")]
    Short {
        /// The offset from which bytes are missing.
        offset: u64,
        /// The number of missing bytes.
        missing: u64,
    },
    /// The header does not match the expected buffer.
    #[error("bad buffer header")]
    Header(#[from] HeaderError),
}

/// The part of the buffer to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferPart {
    /// A half that its writer has handed over, with slabs of earlier halves that threads have closed since.
    //= docs/buffer.md#streaming
    Half {
        /// Number of the half, counted since the buffer was cleared.
        wrapped_count: u32,
        /// Bytes of durable data that it may refer to.
        durable_bytes: u64,
    },
    /// Everything that was not read before.
    Rest(Activity),
}

/// A time in which writers could not get a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapLoss {
    /// The half that they waited for, and the reason.
    pub gap: Gap,
    /// The missing records.
    pub loss: Loss,
}

/// Findings in a buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Events handed on.
    pub events: u64,
    /// Records handed on, definitions included.
    pub records: u64,
    /// Bytes handed on.
    pub bytes: u64,
    /// Bytes handed on from the rolling regions.
    pub rolling_bytes: u64,
    /// Records handed on from the rolling regions.
    pub rolling_records: u64,
    /// Records dropped because they are not valid.
    pub bad_records: u64,
    /// The first of them.
    pub first_bad: Vec<BadRecord>,
    /// Events dropped because the buffer had been full before them.
    pub late_events: u64,
    /// Of the bad records, those of the rolling regions.
    pub bad_rolling_records: u64,
}

/// The loss ledger, as far as it is plausible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// By reason; nothing where an entry is damaged.
    pub losses: [(LossReason, Loss); LossReason::ALL.len()],
    /// The counts as they stand in the buffer: they never go backwards.
    pub counts: [u64; LossReason::ALL.len()],
    /// How many entries hold values that no writer can have counted.
    pub damaged: u64,
}

/// Counts of the records that threads have written into a buffer, from the tallies of their slabs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records in slabs, since the buffer was made.
    pub records: u64,
    /// Slabs that are still with a thread, which may have been killed while it wrote an event.
    pub open_slabs: u64,
    /// The counts are higher than any writer can have reached.
    pub is_damaged: bool,
}

/// The sizes with which a buffer would have kept everything.
//= docs/buffer.md#what-was-short
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// Bytes of slabs with which no record would have been refused, in each rolling region of a stream and in
    /// all of them otherwise; none if no record was refused.
    pub rolling_bytes: Option<u64>,
    /// Bytes of durable region with which all definitions would have fitted; none if they did.
    pub durable_bytes: Option<u64>,
    /// Bytes of the largest record that this buffer was too small for; none if there was no such record.
    pub record_bytes: Option<u64>,
    /// A record was larger than any buffer takes.
    pub is_beyond_format: bool,
}

/// Fill levels of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Records in slabs that threads have closed, since the buffer was made.
    pub records: u64,
    /// Records that found no room.
    pub refused: u64,
    /// Bytes of slabs that were claimed since the buffer was cleared.
    pub claimed_bytes: u64,
    /// The fill level of the rolling regions together, in percent.
    pub rolling_percent: f32,
    /// Bytes of slabs and definitions that hold data and were not given back.
    pub held_bytes: u64,
    /// The buffer's counters hold values that no writer can have counted: fields computed from them are 0.
    pub is_damaged: bool,
}

/// Reads one buffer, a batch at a time, in one part or several. Nothing is handed on twice.
pub struct BufferReader<S> {
    source: S,
    header: BufferHeader,
    /// The first fault that was found in the header.
    header_fault: Option<HeaderError>,
    part: BufferPart,
    /// Slabs of the part that begin a run, oldest first, with their words.
    slabs: Vec<(SlabWord, u32)>,
    next_slab: usize,
    /// By slab.
    read: Vec<Read>,
    durable: Durable,
    is_durable_read: bool,
    /// Claims of the half that is being read whose slabs are not closed, so that they are left for later.
    left: Vec<u64>,
    /// The data that another reader has read before.
    before: Before,
    validator: Validator,
    rate: TicksPerSecond,
    period: Option<Period>,
    findings: Findings,
}

/// The data of a stream that an earlier reader has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Halves, counted since the buffer was cleared.
    pub halves: u64,
    /// Claims in these halves that were left for later.
    pub left: Vec<u64>,
    /// Bytes of durable data, all of whose definitions were handed on.
    pub durable_bytes: u64,
}

/// The state of reading a slab.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    /// The last claim of which records were read.
    sequence: u64,
    bytes: usize,
    records: u64,
    /// The claim was closed before its records were read: nothing more comes of it.
    is_whole: bool,
}

impl<S: Source> BufferReader<S> {
    /// Checks the header and finds the slabs to read. `file_bytes` is the size the buffer was made with. The
    /// layout follows from size and mode, so a header with other values hides nothing: it is a
    /// [fault](BufferReader::header_fault).
    ///
    /// # Errors
    /// The buffer cannot be read; no buffer has this size; or there is no header yet, as its magic number is
    /// 0.
    //= docs/buffer.md#contents-that-are-checked
    pub fn open(
        source: S,
        file_bytes: u64,
        mode: BufferMode,
        rate: TicksPerSecond,
        part: BufferPart,
    ) -> Result<Self, BufferError> {
        let header = read_header(&source, file_bytes, mode)?;
        if let Some(blank @ HeaderError::Magic { found: 0 }) = header.1 {
            return Err(blank.into());
        }
        Self::with_header(source, header, rate, part)
    }

    /// Like [`BufferReader::open`], for a buffer whose writer has confirmed that its header is written.
    ///
    /// # Errors
    /// The buffer cannot be read, or no buffer has this size.
    pub fn open_written(
        source: S,
        file_bytes: u64,
        mode: BufferMode,
        rate: TicksPerSecond,
        part: BufferPart,
    ) -> Result<Self, BufferError> {
        let header = read_header(&source, file_bytes, mode)?;
        Self::with_header(source, header, rate, part)
    }

    fn with_header(
        source: S,
        (header, header_fault): (BufferHeader, Option<HeaderError>),
        rate: TicksPerSecond,
        part: BufferPart,
    ) -> Result<Self, BufferError> {
        let mut reader = Self {
            durable: Durable::new(&header.layout),
            validator: Validator::new(rate),
            rate,
            period: None,
            source,
            header,
            header_fault,
            part,
            slabs: Vec::new(),
            next_slab: 0,
            read: vec![Read::default(); header.layout.slab_count() as usize],
            is_durable_read: false,
            left: Vec::new(),
            before: Before::default(),
            findings: Findings::default(),
        };
        reader.find_slabs()?;
        Ok(reader)
    }

    /// Continues after the data that another reader has handed on. Definitions count as known, and are not
    /// handed on again.
    ///
    /// # Errors
    /// As [`BufferReader::open`].
    //= docs/recovery.md#what-is-recovered
    pub fn resume(&mut self, before: Before) -> Result<(), BufferError> {
        self.before = before;
        self.find_slabs()
    }

    /// Bytes of durable data before which every definition is handed on.
    pub fn durable_bytes(&self) -> u64 {
        self.durable.first_unread()
    }

    /// Claims of the current half that are left for a later part: their slabs are not closed yet.
    pub fn left(&self) -> &[u64] {
        &self.left
    }

    /// Continues with a further part of the same buffer.
    ///
    /// # Errors
    /// As [`BufferReader::open`].
    pub fn begin(&mut self, part: BufferPart) -> Result<(), BufferError> {
        let layout = self.header.layout;
        let (header, fault) = read_header(&self.source, layout.total_bytes, layout.mode)?;
        self.header = header;
        self.header_fault = self.header_fault.or(fault);
        self.check_header();
        self.part = part;
        self.find_slabs()?;
        self.next_slab = 0;
        self.is_durable_read = false;
        Ok(())
    }

    /// Leaves out the oldest slabs of the part that has begun, so that those that are read have at most so
    /// many bytes, but for one slab. Of those that are left out, closed ones never come again.
    pub fn skip_to_newest(&mut self, bytes: u64) {
        let slab_bytes = self.header.layout.slab_bytes;
        let mut left = bytes;
        let is_read = |(word, _): &&(SlabWord, u32)| {
            let fits = left > 0;
            left = left.saturating_sub(slab_bytes.saturating_mul(word.run().max(1).into()));
            fits
        };
        let count = self.slabs.iter().rev().take_while(is_read).count();
        for (word, slab) in self.slabs.drain(..self.slabs.len() - count) {
            if word.state() == SlabState::Closed {
                let sequence = word.sequence();
                self.read[slab as usize] = Read { sequence, is_whole: true, ..Read::default() };
            }
        }
    }

    /// Whether the part may be written while it is read.
    fn is_live(&self) -> bool {
        self.part == BufferPart::Rest(Activity::Live)
    }

    /// The first fault that was found in the header.
    pub fn header_fault(&self) -> Option<HeaderError> {
        self.header_fault
    }

    /// The checked header.
    pub fn header(&self) -> &BufferHeader {
        &self.header
    }

    /// Resets the findings.
    pub fn forget_findings(&mut self) {
        self.findings = Findings::default();
    }

    /// The findings so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Finds the slabs of the part, in the order they were claimed.
    //= docs/buffer.md#slab-words
    fn find_slabs(&mut self) -> Result<(), BufferError> {
        let layout = self.header.layout;
        let words = self.slab_words(0, layout.slab_count())?;
        self.check_floor(&words);
        let layout = &layout;
        let floor = self.header.floor_sequence.max(1);
        let claims = |halves: u64| floor.saturating_add(halves.saturating_mul(layout.slabs_per_half.into()));
        let (end, may_be_open) = match self.part {
            BufferPart::Rest(_) => (u64::MAX, true),
            BufferPart::Half { wrapped_count, .. } => (claims(u64::from(wrapped_count) + 1), false),
        };
        let before = claims(self.before.halves);
        let is_new = |(slab, word): &(u32, &SlabWord)| {
            let sequence = word.sequence();
            let read = self.read[*slab as usize];
            let is_read = (!may_be_open || read.is_whole) && read.sequence == sequence;
            let was_read = sequence < before && !self.before.left.contains(&sequence);
            (floor..end).contains(&sequence) && !is_read && !was_read
        };
        let is_wanted = |(_, word): &(u32, &SlabWord)| {
            word.state() == SlabState::Closed || (may_be_open && word.state() == SlabState::Open)
        };
        let new = || (0..).zip(&words).filter(is_new);
        let mut slabs: Vec<_> = new()
            .filter(is_wanted)
            .filter(|(slab, _)| is_whole_run(layout, *slab, &words[*slab as usize..]))
            .map(|(slab, word)| (*word, slab))
            .collect();
        slabs.sort_by_key(|(word, _)| word.sequence());
        let is_left = |word: &SlabWord| !matches!(word.state(), SlabState::Closed | SlabState::Continuation);
        let left = new().map(|(_, word)| word).filter(|word| !may_be_open && is_left(word));
        self.left = left.map(|word| word.sequence()).collect();
        self.slabs = slabs;
        Ok(())
    }

    fn slab_words(&self, first: u32, count: u32) -> Result<Vec<SlabWord>, BufferError> {
        let mut bytes = vec![0; count as usize * 8];
        read_exact(&self.source, self.header.layout.slab_word(first), &mut bytes)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|word| SlabWord(u64::from_le_bytes(*word))).collect())
    }

    /// The buffer may have become full since it was opened.
    fn refresh_end(&mut self) -> Result<(), BufferError> {
        let mut bytes = [0; 8];
        read_exact(&self.source, field::END_TS as u64 * 8, &mut bytes)?;
        let end = u64::from_le_bytes(bytes);
        self.header.end_ts = Some(end).filter(|end| *end != trace_format::buffer::END_TS_NONE);
        self.check_header();
        Ok(())
    }

    fn read_durable(&mut self, out: &mut Vec<u8>) -> Result<(), BufferError> {
        let layout = self.header.layout;
        let end = match self.part {
            BufferPart::Rest(_) => layout.durable_bytes,
            BufferPart::Half { durable_bytes, .. } => durable_bytes.min(layout.durable_bytes),
        };
        let start = self.durable.first_unread().min(end);
        let mut bytes = vec![0; (end - start) as usize];
        read_exact(&self.source, layout.durable + start, &mut bytes)?;
        if self.is_live() {
            let first = bytes.clone();
            fence(Ordering::SeqCst);
            read_exact(&self.source, layout.durable + start, &mut bytes)?;
            durable::keep_committed(&first, &mut bytes);
        }
        for (offset, record) in self.durable.fresh_records(start, &bytes) {
            let checked = self.validator.check_durable(record);
            if offset < self.before.durable_bytes {
                continue;
            }
            match checked {
                Ok(()) => self.hand_on(record, out),
                Err(fault) => self.leave_out(RegionName::Durable, layout.durable + offset, fault),
            }
        }
        Ok(())
    }

    /// Records of rolling regions that were found, sound or not.
    fn seen_rolling(&self) -> u64 {
        let findings = &self.findings;
        findings.rolling_records + findings.late_events + findings.bad_rolling_records
    }

    fn hand_on(&mut self, record: &[u8], out: &mut Vec<u8>) {
        self.findings.records += 1;
        self.findings.bytes += record.len() as u64;
        out.extend_from_slice(record);
    }

    fn leave_out(&mut self, region: RegionName, offset: u64, fault: Fault) {
        self.findings.bad_records += 1;
        self.findings.bad_rolling_records += u64::from(region == RegionName::Rolling);
        if self.findings.first_bad.len() < MAX_BAD_RECORDS {
            self.findings.first_bad.push(BadRecord { region, offset, fault });
        }
    }
}

/// Whether all later slabs of a run are marked as its continuation. `words` begins with the run's own.
fn is_whole_run(layout: &Layout, slab: u32, words: &[SlabWord]) -> bool {
    let (word, run) = (words[0], words[0].run());
    let Some(rest) = words.get(1..run.max(1) as usize) else {
        return false;
    };
    let is_next = |(sequence, tail): (u64, &SlabWord)| {
        tail.state() == SlabState::Continuation && tail.sequence() == sequence
    };
    // A run does not cross from one rolling region into the other.
    run >= 1
        && slab / layout.slabs_per_half == (slab + run - 1) / layout.slabs_per_half
        && (word.sequence() + 1..).zip(rest).all(is_next)
}

/// The header, and the first fault in it.
fn read_header(
    source: &impl Source,
    file_bytes: u64,
    mode: BufferMode,
) -> Result<(BufferHeader, Option<HeaderError>), BufferError> {
    let mut bytes = [0; HEADER_BYTES];
    read_exact(source, 0, &mut bytes)?;
    match BufferHeader::decode_untrusted(&bytes, file_bytes, mode) {
        Ok(header) => Ok((header, None)),
        Err(fault) => match BufferHeader::decode_damaged(&bytes, file_bytes, mode) {
            Ok(header) => Ok((header, Some(fault))),
            Err(_) => Err(fault.into()),
        },
    }
}

fn read_exact(source: &impl Source, offset: u64, mut bytes: &mut [u8]) -> Result<(), BufferError> {
    let mut offset = offset;
    while !bytes.is_empty() {
        match source.read_at(offset, bytes) {
            Ok(0) => return Err(BufferError::Short { offset, missing: bytes.len() as u64 }),
            Ok(length) => {
                offset += length as u64;
                bytes = &mut bytes[length..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(BufferError::Io { offset, source }),
        }
    }
    Ok(())
}

impl<S: Source + ?Sized> Source for &S {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, bytes)
    }
}

impl<S: Source + ?Sized> Source for std::rc::Rc<S> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, bytes)
    }
}

#[cfg(test)]
mod tests;
