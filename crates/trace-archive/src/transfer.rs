//! Moves a provider's buffer into the archive, a batch at a time.

use crate::framing;
use crate::losses::{Losses, Reported};
use crate::open_scopes::{OpenScopes, SharedScopes};
use crate::problem;
use crate::program_info::{self, ProgramInfo};
use crate::seen::Seen;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use trace_format::buffer::{HeaderError, Layout};
use trace_format::loss::LedgerRecord;
use trace_format::scopes::Ending;
use trace_format::units::{Koid, ProviderId, Ticks, TicksPerSecond};
use trace_protocol::BufferingMode;
use trace_protocol::controller::ProviderStats;
use trace_reader::buffer::{
    Activity, Before, BufferError, BufferPart, BufferReader, Findings, Period, Source,
};
use zx_sim::Vmo;

/// The part of a provider's buffer to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A half that it has handed over while it streams.
    Half {
        /// The half's number.
        wrapped_count: u32,
        /// Length of the durable data that it may refer to, in bytes.
        durable_data_end: u64,
    },
    /// Everything that was not copied before.
    Rest {
        /// No program writes into the buffer any more.
        is_quiet: bool,
    },
}

/// A VMO that is read with `pread`: whatever its provider does to the file, a read is at worst short.
#[derive(Clone)]
pub struct VmoSource(Arc<Vmo>);

impl From<Vmo> for VmoSource {
    fn from(vmo: Vmo) -> Self {
        Self(Arc::new(vmo))
    }
}

impl From<Arc<Vmo>> for VmoSource {
    fn from(vmo: Arc<Vmo>) -> Self {
        Self(vmo)
    }
}

impl Source for VmoSource {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, bytes).map_err(io::Error::other)
    }
}

/// A provider's buffer, as the session made it.
#[derive(Clone)]
pub struct ProviderBuffer {
    /// The provider's number in the archive.
    pub id: ProviderId,
    /// Its name.
    pub name: String,
    /// Size of the buffer in bytes.
    pub size: u64,
    /// How the buffer is used.
    pub mode: BufferingMode,
    /// Rate of its timestamps.
    pub rate: TicksPerSecond,
    /// All data since the beginning of the session comes through one [`Progress`], so its counts have to add
    /// up.
    pub is_accounted: bool,
    /// When it was created and is read; none if that is not known: then its own header is believed.
    pub period: Option<Period>,
    /// Its program may have ended before it wrote the header.
    pub may_be_blank: bool,
    /// What is known of its program, if the archive is to report it.
    pub program: Option<ProgramInfo>,
    /// The time up to which open scopes have lasted; the last event if it is not known.
    pub open_until: Option<Ticks>,
    /// The reason for scopes that are still open when all of the buffer is read; none if the program has
    /// moved to another buffer.
    pub ending: Option<Ending>,
}

/// The problem reported for a provider whose counters hold impossible values.
const DAMAGED: &str = "the buffer's counters are damaged: how many records are missing is not known";

/// The state of reading a provider's buffer in a session, from one transfer to the next.
#[derive(Default)]
pub struct Progress {
    /// The buffer. It is open for as long as it may be read: there may be no descriptor later.
    source: Option<VmoSource>,
    reader: Option<BufferReader<VmoSource>>,
    losses: Losses,
    /// The first fault that was found in the header; the rest of the buffer is read nevertheless.
    header_fault: Option<HeaderError>,
    /// The archive has the provider's name.
    is_announced: bool,
    /// Refused records that the archive reports with an event.
    dropped: u64,
    /// Records that were read at the end of a run and are still in the buffer.
    kept: u64,
    /// The findings in runs before the last start that cleared the buffer.
    before: Found,
    /// The number of records that threads have generated, once a run is over.
    generated: Option<u64>,
    /// What was open when the program went on from another buffer in this one.
    handed_over: SharedScopes,
    /// What its records have said.
    seen: Seen,
}

/// Counts of the records found in a provider's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Found {
    /// Of the rolling regions, and archived.
    archived: u64,
    /// Of all regions, and archived.
    records: u64,
    /// Of the rolling regions, and malformed.
    malformed: u64,
    /// Events that were archived.
    events: u64,
    /// Bytes of the records that were archived.
    bytes: u64,
}

/// An archive's contents of a provider up to the end of a part: enough for another process to continue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoFar {
    found: Found,
    #[serde(rename = "told")]
    reported: Reported,
    /// Refused records that the archive reports with an event.
    dropped: u64,
    /// Records that are in the archive and in the buffer.
    kept: u64,
    /// Bytes of durable data, all of whose definitions are in the archive.
    durable_bytes: u64,
}

impl SoFar {
    /// These contents together with the findings that follow.
    pub fn plus(&self, stats: ProviderStats) -> ProviderStats {
        let sum = |before: u64, found: Option<u64>| Some(before.saturating_add(found.unwrap_or(0)));
        ProviderStats {
            events_archived: sum(self.found.events, stats.events_archived),
            bytes_archived: sum(self.found.bytes, stats.bytes_archived),
            ..stats
        }
    }

    /// The provider is started again, in a buffer that is cleared.
    pub fn clear(&mut self) {
        self.reported.clear(std::mem::take(&mut self.kept));
        (self.dropped, self.durable_bytes) = (0, 0);
    }
}

impl Found {
    fn plus(self, findings: &Findings) -> Self {
        Self {
            archived: self.archived + findings.rolling_records,
            records: self.records + findings.records,
            malformed: self.malformed + findings.bad_rolling_records,
            events: self.events + findings.events,
            bytes: self.bytes + findings.bytes,
        }
    }
}

impl Progress {
    /// Nothing was read of this buffer.
    pub fn of(vmo: impl Into<VmoSource>) -> Self {
        Self { source: Some(vmo.into()), ..Self::default() }
    }

    /// The program has gone on from one buffer in another, with these scopes open.
    pub fn share(&mut self, open: SharedScopes) {
        self.handed_over = open;
        self.seen = Seen::of_rest();
    }

    /// The buffer is about to be cleared; the definitions too, or not.
    pub fn clear(&mut self, is_entire: bool) {
        self.handed_over = SharedScopes::default();
        if let Some(reader) = &self.reader {
            self.before = self.before.plus(reader.findings());
        }
        self.losses.clear(std::mem::take(&mut self.kept));
        self.dropped = 0;
        if is_entire {
            self.reader = None;
            self.seen = Seen::default();
        } else if let Some(reader) = &mut self.reader {
            reader.forget_findings();
        }
    }
}

impl Progress {
    /// Bytes of definitions that were read.
    pub fn durable_bytes(&self) -> u64 {
        self.reader.as_ref().map_or(0, BufferReader::durable_bytes)
    }

    /// The state from which [`Progress::resume`] continues.
    pub fn so_far(&self) -> SoFar {
        let reader = self.reader.as_ref();
        SoFar {
            found: reader.map_or(self.before, |reader| self.before.plus(reader.findings())),
            reported: self.losses.reported(),
            dropped: self.dropped,
            kept: self.kept,
            durable_bytes: self.durable_bytes(),
        }
    }

    /// Resumes from that state.
    pub fn resume(vmo: Vmo, so_far: &SoFar) -> Self {
        Self {
            losses: Losses::resume(&so_far.reported),
            is_announced: true,
            dropped: so_far.dropped,
            kept: so_far.kept,
            before: so_far.found,
            seen: Seen::of_rest(),
            ..Self::of(vmo)
        }
    }

    /// The highest fill level of the rolling region. For a stream it is known only if it was full.
    fn peak(&self, wrapped_count: u32, buffer: &ProviderBuffer) -> Option<f32> {
        let is_full = wrapped_count > 0 || self.losses.was_full();
        match buffer.mode {
            BufferingMode::Streaming if !self.losses.was_full() => None,
            BufferingMode::Streaming => Some(100.0),
            BufferingMode::Oneshot | BufferingMode::Circular if is_full => Some(100.0),
            BufferingMode::Oneshot | BufferingMode::Circular => {
                self.reader.as_ref()?.usage(0).ok().map(|usage| usage.rolling_percent)
            }
        }
    }
}

/// The time up to which scopes were open: `known`, or else the time of the latest event or begin, in this
/// buffer or in the one that the program has moved from.
fn open_until(known: Option<Ticks>, open: &OpenScopes, handed_over: &SharedScopes, seen: &Seen) -> Ticks {
    let begun = || open.latest().max(handed_over.with(|handed_over| handed_over.latest()));
    known.unwrap_or_else(|| begun().max(seen.latest()))
}

/// A transfer under way.
pub struct Transfer {
    buffer: ProviderBuffer,
    progress: Progress,
    /// A ledger record follows it.
    adds_up: bool,
    is_begun: bool,
    /// Records that had been processed before; none if nothing stays in the buffer, as it is being streamed.
    seen_before: Option<u64>,
    /// Why the buffer could not be read to its end.
    problem: String,
    /// What is open, as far as no record of it was seen.
    open: OpenScopes,
}

impl Transfer {
    /// The next one after those that have led to this progress.
    pub fn new(buffer: ProviderBuffer, mut progress: Progress, part: Part) -> Self {
        let part = match part {
            Part::Half { wrapped_count, durable_data_end } => {
                BufferPart::Half { wrapped_count, durable_bytes: durable_data_end }
            }
            Part::Rest { is_quiet: true } => BufferPart::Rest(Activity::Quiet),
            Part::Rest { is_quiet: false } => BufferPart::Rest(Activity::Live),
        };
        let mode = buffer.mode.into();
        // Open scopes are read before the records: a scope that ends meanwhile has its record there.
        let mut open = OpenScopes::default();
        if let (Some(_), BufferPart::Rest(_)) = (buffer.ending, part)
            && let (Some(source), Ok(layout)) = (&progress.source, Layout::new(buffer.size, mode))
        {
            open = OpenScopes::read(source, &layout);
            progress.seen.define(open.defined_threads());
        }
        let begun = match (&mut progress.reader, &progress.source) {
            (Some(reader), _) => reader.begin(part),
            (None, Some(source)) => {
                // The magic number is written last: without it, nothing was recorded.
                let open = if buffer.may_be_blank { BufferReader::open } else { BufferReader::open_written };
                open(source.clone(), buffer.size, mode, buffer.rate, part)
                    .map(|reader| progress.reader = Some(reader))
            }
            (None, None) => Err(BufferError::Short { offset: 0, missing: buffer.size }),
        };
        if let (Some(reader), Some(period)) = (&mut progress.reader, buffer.period) {
            reader.set_period(period);
        }
        let fault = progress.reader.as_ref().and_then(BufferReader::header_fault);
        if fault.is_some() && progress.header_fault.is_none() {
            progress.losses.note_damage();
            progress.header_fault = fault;
        }
        let is_rest = matches!(part, BufferPart::Rest(_));
        let seen_before = is_rest.then(|| progress.reader.as_ref().map_or(0, seen));
        // Records written meanwhile are in a tally and were not read, or the other way round.
        let adds_up = buffer.is_accounted && part == BufferPart::Rest(Activity::Quiet);
        let mut transfer =
            Self { buffer, progress, adds_up, is_begun: false, seen_before, problem: String::new(), open };
        match begun {
            Ok(()) => {}
            Err(BufferError::Header(HeaderError::Magic { found: 0 })) if transfer.buffer.may_be_blank => {}
            Err(error) => transfer.fail(&error),
        }
        transfer
    }

    /// Appends the next batch to `out`; true when the transfer is finished.
    pub fn poll(&mut self, out: &mut Vec<u8>) -> bool {
        let progress = &mut self.progress;
        if !std::mem::replace(&mut self.is_begun, true) {
            let id = self.buffer.id;
            if std::mem::replace(&mut progress.is_announced, true) {
                framing::provider_section(id, out);
            } else {
                if let Some(program) = &self.buffer.program {
                    program_info::joined(id, &self.buffer.name, program, out);
                }
                framing::provider_info(id, &self.buffer.name, out);
            }
            let dropped = progress.reader.as_ref().map_or(0, |reader| reader.header().records_dropped);
            if dropped > progress.dropped {
                progress.dropped = dropped;
                framing::buffer_filled_up(id, out);
            }
        }
        let Some(reader) = progress.reader.as_mut().filter(|_| self.problem.is_empty()) else {
            if !self.problem.is_empty() {
                progress.losses.report_rest_missing(self.buffer.id, out);
            }
            return true;
        };
        let begin = out.len();
        let read = reader.read_batch(out).and_then(|goes_on| {
            progress.handed_over.with(|handed_over| {
                progress.seen.note_records(&out[begin..], |thread, start| {
                    self.open.has_ended(thread, start);
                    handed_over.has_ended(thread, start);
                });
            });
            if !goes_on {
                let at =
                    open_until(self.buffer.open_until, &self.open, &progress.handed_over, &progress.seen);
                if let (Some(ending), true) = (self.buffer.ending, self.seen_before.is_some()) {
                    let rate = self.buffer.rate;
                    let mut count = progress.handed_over.with(|open| open.write(ending, at, rate, out));
                    count += self.open.write(ending, at, rate, out);
                    // The collector's, and in the archive.
                    progress.before.records += count;
                }
                let is_over = self.seen_before.is_some();
                progress.losses.report(self.buffer.id, reader, is_over, out)?;
                if is_over && self.adds_up {
                    let found = progress.before.plus(reader.findings());
                    progress.losses.report_malformed(self.buffer.id, found.malformed, out);
                    let written = reader.written()?;
                    if written.is_damaged {
                        progress.losses.note_damage();
                    }
                    let generated = written.records.saturating_add(progress.losses.refused());
                    let ledger = LedgerRecord {
                        provider: self.buffer.id,
                        generated,
                        archived: found.archived,
                        records: found.records,
                        uncertain: written.open_slabs,
                    };
                    progress.generated = (!progress.losses.is_damaged()).then_some(generated);
                    // The counts would not add up.
                    if !progress.losses.is_damaged() {
                        framing::ledger(ledger, out);
                    }
                }
                progress.losses.report_damage(self.buffer.id, out);
                // Among lost records may be ends.
                let is_known = progress.losses.dropped() == 0 && progress.seen.has_begins();
                if let (Some(ending), true) = (self.buffer.ending, is_over && is_known) {
                    let process = self.buffer.program.as_ref().map(|program| program.process);
                    let process = process.unwrap_or(progress.seen.process());
                    // Earlier records, which are in the archive already, may have said it.
                    if process != Koid(0) {
                        program_info::parted(self.buffer.id, process, ending, at, out);
                    }
                }
            }
            Ok(goes_on)
        });
        match read {
            Ok(goes_on) => !goes_on,
            Err(error) => {
                self.progress.losses.report_rest_missing(self.buffer.id, out);
                self.fail(&error);
                true
            }
        }
    }

    /// Skips the data that is in the archive already, by halves and by the claims that they left for later.
    pub fn skip(&mut self, so_far: &SoFar, halves: u64, left: &[u64]) {
        let before = Before { halves, left: left.to_vec(), durable_bytes: so_far.durable_bytes };
        let resumed = self.progress.reader.as_mut().map(|reader| reader.resume(before));
        if let Some(Err(error)) = resumed {
            self.fail(&error);
        }
    }

    /// Claims that the part leaves for a later one.
    pub fn left(&self) -> &[u64] {
        self.progress.reader.as_ref().map_or(&[], BufferReader::left)
    }

    /// The part is everything that was left, not a half.
    pub fn is_rest(&self) -> bool {
        self.seen_before.is_some()
    }

    /// The requested part of the buffer could be read.
    pub fn is_complete(&self) -> bool {
        self.problem.is_empty()
    }

    fn fail(&mut self, error: &BufferError) {
        self.problem = problem(error);
    }

    /// The findings, and the state that the next transfer resumes from. The caller fills in the provider and
    /// its disposition.
    pub fn into_stats(mut self) -> (ProviderStats, Progress) {
        let mut progress = self.progress;
        let open_scopes = match self.buffer.ending {
            Some(Ending::Death) => {
                let at =
                    open_until(self.buffer.open_until, &self.open, &progress.handed_over, &progress.seen);
                // Among lost records may be ends.
                if let (0, Some(source), Ok(layout)) = (
                    progress.losses.dropped(),
                    &progress.source,
                    Layout::new(self.buffer.size, self.buffer.mode.into()),
                ) {
                    self.open.add_begun(source, &layout, &progress.seen);
                }
                let in_words = |open: &OpenScopes| open.in_words(at, self.buffer.rate);
                let both = [in_words(&self.open), progress.handed_over.with(|open| in_words(open))];
                both.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; ")
            }
            _ => String::new(),
        };
        let mut stats = ProviderStats { problem: self.problem, open_scopes, ..ProviderStats::default() };
        if let (Some(before), Some(reader)) = (self.seen_before, &progress.reader) {
            progress.kept += seen(reader) - before;
        }
        let Some(reader) = &progress.reader else {
            if stats.problem.is_empty() {
                stats = nothing();
                stats.buffering_mode = Some(self.buffer.mode);
                stats.buffer_bytes = Some(self.buffer.size);
            }
            return (stats, progress);
        };
        let (header, findings) = (reader.header(), reader.findings());
        stats.buffering_mode = Some(self.buffer.mode);
        stats.buffer_wrapped_count = Some(header.wrapped_count);
        stats.percentage_durable_buffer_used =
            Some(100.0 * header.durable_data_end as f32 / header.layout.durable_bytes as f32);
        stats.non_durable_bytes_written = Some(findings.rolling_bytes);
        stats.events_archived = Some(findings.events);
        stats.bytes_archived = Some(findings.bytes);
        stats.malformed_records = Some(findings.bad_records);
        stats.records_dropped = Some(progress.losses.dropped());
        stats.records_generated = progress.generated;
        stats.losses = progress.losses.by_reason();
        stats.buffer_bytes = Some(self.buffer.size);
        stats.recorded_ns = self.buffer.period.map(|period| {
            let ticks = Ticks(period.read.saturating_sub(period.made));
            ticks.to_nanos(self.buffer.rate).0
        });
        if let Ok(shortage) = reader.shortage() {
            stats.needed_rolling_bytes = shortage.rolling_bytes;
            stats.needed_durable_bytes = shortage.durable_bytes;
            let beyond = shortage.is_beyond_format.then_some(u64::MAX);
            stats.needed_record_bytes = beyond.or(shortage.record_bytes);
        }
        stats.percentage_rolling_buffer_used = progress.peak(header.wrapped_count, &self.buffer);
        if stats.problem.is_empty()
            && let Some(bad) = findings.first_bad.first()
        {
            stats.problem = format!(
                "{} invalid records were dropped, the first in the {} region at byte {}: {}",
                findings.bad_records, bad.region, bad.offset, bad.fault
            );
        }
        if progress.losses.is_damaged() {
            let more = if stats.problem.is_empty() { "" } else { "; " };
            let fault =
                progress.header_fault.map(|fault| format!("the buffer's header is damaged ({fault}); "));
            stats.problem = format!("{}{more}{}{DAMAGED}", stats.problem, fault.unwrap_or_default());
        }
        (stats, progress)
    }
}

/// The statistics of a provider that has recorded nothing.
pub fn nothing() -> ProviderStats {
    ProviderStats {
        events_archived: Some(0),
        bytes_archived: Some(0),
        malformed_records: Some(0),
        records_dropped: Some(0),
        records_generated: Some(0),
        ..ProviderStats::default()
    }
}

/// Records of the rolling regions that were handed on or counted as late.
fn seen(reader: &BufferReader<VmoSource>) -> u64 {
    reader.findings().rolling_records + reader.findings().late_events
}
