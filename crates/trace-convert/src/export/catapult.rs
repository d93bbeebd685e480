//! JSON for Catapult, in two dialects: that of Fuchsia's exporter, record by record and field by field, and
//! Chrome's own, which Perfetto reads too.
//!
//! One document on one line: events in the order of their records, then names, and in Fuchsia's dialect the
//! scheduler's events. Memory holds the names and the reader's tables; data that has to come last waits in an
//! unlinked file.

pub(crate) mod blocks;
mod event;
mod large;
mod losses;
mod names;
mod odd;
mod recording;
mod samples;
mod sharing;
mod system;

use crate::export::flows::{Begin, Flows, Part as FlowPart};
use crate::export::jobs::{Batch, Jobs};
use crate::export::losses::Losses;
use crate::export::numbers::{LONG_NUMBERS, TAKEN_NUMBERS, ZERO_NUMBERS, is_long, is_taken};
use crate::export::odd::OddSlices;
use crate::filter::{Filter, Selected};
use crate::json::Json;
use crate::output::Output;
use crate::{ConvertError, Summary, source};
pub use event::{ArgumentPredicate, OwnRecording, STRIPPED};
use event::{Events, Tally};
use large::LargeBlob;
use recording::Recording;
use samples::Samples;
use sharing::{Piece, Sharing};
use std::collections::{HashSet, VecDeque};
use std::io::{self, Read, Write};
use system::System;
use trace_format::event::EventKind;
use trace_format::kernel_object::{PROCESS_ARGUMENT, TYPE_CHANNEL, TYPE_PROCESS, TYPE_THREAD};
use trace_format::units::Koid;
use trace_model::{Odd, OddFinder};
use trace_reader::{Event, Item, MANAGER, Mark, Resolved, Thread, Value};

/// The dialect of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As Fuchsia's exporter writes it. Perfetto refuses it.
    #[default]
    Fuchsia,
    /// As Chrome writes it.
    Chrome(Container),
}

/// The container of Chrome's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Container {
    /// `[…]`.
    Array,
    /// `{"traceEvents":[…]}`.
    #[default]
    Object,
}

/// Options of a conversion.
#[derive(Default)]
pub struct Options<'a> {
    /// The dialect.
    pub dialect: Dialect,
    /// Selects events.
    pub filter: Filter,
    /// The output of Fuchsia's system events, one per line, if they do not go into the document.
    pub system_output: Option<&'a mut dyn Write>,
    /// The threads that convert.
    pub jobs: Jobs,
    /// The recording is of the program that writes the document, which has a thread for that.
    pub own: Option<OwnRecording>,
    /// What is odd in the archive, if that is known. Otherwise a conversion to Chrome's dialect finds it, and
    /// fails with [`ConvertError::Odd`] if there is anything.
    pub odd: Option<Odd>,
}

impl Options<'_> {
    /// What finds odd slices for readers of Chrome's dialect.
    #[must_use]
    pub fn finder() -> OddFinder {
        OddFinder::of_whole_slices()
    }
}

/// Converts an archive as Fuchsia's exporter does.
///
/// # Errors
/// As [`convert_with`].
pub fn convert(input: impl Read, output: impl Write) -> Result<Summary, ConvertError> {
    convert_with(input, output, Options::default())
}

/// Converts an archive in memory.
///
/// # Errors
/// As [`convert_with`], but for [`ConvertError::Odd`].
pub fn convert_in_memory(
    archive: &[u8],
    output: impl Write,
    options: Options<'_>,
) -> Result<Summary, ConvertError> {
    let odd = match options.own {
        Some(_) => None,
        None => Some(Odd::find_in(archive, Options::finder())?),
    };
    convert_with(archive, output, Options { odd, ..options })
}

/// Converts an archive.
///
/// If the position in a damaged archive is lost, the document is ended properly after the events before, and
/// the error is returned.
//= docs/catapult.md#document
///
/// # Errors
/// The input is no archive or cannot be read, or the output cannot be written.
pub fn convert_with(
    mut input: impl Read,
    mut output: impl Write,
    options: Options<'_>,
) -> Result<Summary, ConvertError> {
    write(&mut input, &mut output, options)
}

/// Compiled here, whatever its callers read and write.
fn write(
    input: &mut dyn Read,
    output: &mut dyn Write,
    options: Options<'_>,
) -> Result<Summary, ConvertError> {
    let Options { dialect, filter, system_output, jobs, own, odd } = options;
    // What is open at the end is written as it is found there.
    let odd = if own.is_some() { Some(Odd::default()) } else { odd };
    let is_chrome = dialect != Dialect::Fuchsia;
    let finder = (is_chrome && odd.is_none()).then(Options::finder);
    // Other threads would have to ask its function as well.
    let threads = if own.is_some() { 1 } else { jobs.threads };
    let mut events = Events::new(dialect);
    events.own = own;
    let mut exporter = Exporter {
        output,
        begin: Some(match dialect {
            Dialect::Fuchsia | Dialect::Chrome(Container::Object) => {
                "{\"displayTimeUnit\":\"ns\",\"traceEvents\":["
            }
            Dialect::Chrome(Container::Array) => "[",
        }),
        has_written: false,
        events,
        selection: Selected::new(filter),
        unusual_threads: HashSet::new(),
        odd: odd.filter(|odd| is_chrome && !odd.is_empty()).map(|odd| Box::new(OddSlices::new(odd))),
        sharing: (threads > 1).then(|| Sharing::new(jobs, dialect)),
        dialect,
        system: System::new(),
        samples: (dialect == Dialect::Chrome(Container::Object)).then(|| Box::new(Samples::new())),
        large: None,
        losses: Losses::default(),
        losses_written: 0,
        recording: Recording::default(),
        flows: Flows::default(),
        further_ends: 0,
        tally: Tally::default(),
    };
    let end = source::for_each_unless_odd(input, finder, |record| {
        exporter.record(record)?;
        exporter.flush_if_full()?;
        exporter.samples.as_mut().map_or(Ok(()), |samples| samples.spill_if_full())?;
        exporter.system.spill_if_full()
    })?;
    let more_events = exporter.write_odd().map_err(ConvertError::Write)?;
    let threads = |has: fn(Thread) -> bool| {
        exporter.unusual_threads.iter().filter(|thread| has(**thread)).count() as u64
    };
    let counts = [
        (FURTHER_ENDS, exporter.further_ends),
        (LONG_NUMBERS, threads(is_long)),
        (ZERO_NUMBERS, threads(|thread| thread.thread.0 == 0)),
        (TAKEN_NUMBERS, threads(is_taken)),
    ];
    let Tally { events, skipped, have_rates_differed, rounded, .. } =
        exporter.finish(system_output).map_err(ConvertError::Write)?;
    let mut summary = end.summary(events.wrapping_add_signed(more_events), skipped);
    summary.add_remarks(counts.into_iter().chain([(ROUNDED, rounded)]));
    if have_rates_differed {
        summary.warnings += 1;
        summary.first_warnings.push("events have been timed with different tick rates".to_owned());
    }
    Ok(summary)
}

/// The remark about flows that end in several places.
const FURTHER_ENDS: &str = "flows with several ends: Catapult shows an arrow to the first one";
/// The remark about times with more digits than a double has.
const ROUNDED: &str =
    "events of more than 101 days on the trace's clock: readers with doubles round their times";
/// Number of bytes to collect before they are written.
const FLUSH_BYTES: usize = 64 << 10;
/// Text that may wait for that of other threads.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// A batch of less than its part of a full one is not worth another thread's attention.
const SMALL_PART: usize = 8;

struct Exporter<W> {
    output: W,
    /// What the document begins with, until it is written.
    begin: Option<&'static str>,
    /// Whether there is an event in the output.
    has_written: bool,
    /// What this thread writes, behind all that was written or given to other threads.
    events: Events,
    selection: Selected,
    /// In Chrome's dialect: threads whose numbers the exporter replaces, or could give to a lane.
    unusual_threads: HashSet<Thread>,
    /// Slices that are written last, in Chrome's dialect.
    odd: Option<Box<OddSlices>>,
    /// Other threads that make the text of events.
    sharing: Option<Sharing>,
    dialect: Dialect,
    system: System,
    /// In dialects that have a section for them.
    samples: Option<Box<Samples>>,
    /// A large blob of which more follows.
    large: Option<LargeBlob>,
    losses: Losses,
    /// How many losses were written, which number them.
    losses_written: u64,
    /// How the trace was recorded, as far as Chrome's dialect says it.
    recording: Recording,
    flows: Flows,
    /// Ends of flows that had ended, for which Fuchsia's dialect has no arrows.
    further_ends: u64,
    /// Of all text that was written.
    tally: Tally,
}

impl<W: Write> Exporter<W> {
    fn record(&mut self, record: &Resolved<'_>) -> io::Result<()> {
        if let Item::LargeBlobPart { payload } = record.item {
            self.large_part(payload);
            return Ok(());
        }
        let lost = if self.events.is_chrome() { self.losses.record(record) } else { None };
        match &record.item {
            Item::Event(event) => {
                let Some(mark) = Mark::of(record.provider, event) else { return self.event(event, record) };
                self.recording.learn(mark, event);
            }
            Item::Log { .. } | Item::Scheduling { .. } | Item::Profiler { .. } if !self.keeps(record) => {}
            Item::Log { time, thread, message } => {
                if !self.share(record, None)? {
                    self.events.log(*time, *thread, *message);
                }
            }
            Item::KernelObject { object_type: TYPE_PROCESS, koid, name, .. } => {
                self.system.name_process(*koid, name.as_bytes());
            }
            Item::KernelObject { object_type: TYPE_THREAD, koid, name, arguments } => {
                let process = arguments.iter().find_map(|(name, value)| match value {
                    Value::Koid(process) if name == PROCESS_ARGUMENT => Some(process),
                    _ => None,
                });
                if let Some(process) = process {
                    self.system.name_thread(process, *koid, name.as_bytes());
                }
            }
            // What the manager says about providers.
            Item::KernelObject { object_type: TYPE_CHANNEL, koid: Koid(0), .. }
                if record.provider == MANAGER => {}
            Item::KernelObject { .. } => self.skip("kernel objects that are no process or thread"),
            Item::Blob { .. } => self.skip("blobs"),
            Item::Loss(_) => match lost {
                Some(lost) => return self.lost(&lost),
                None => self.skip("loss records"),
            },
            // Only of use to `trace check`, or to the next event.
            Item::Ledger(_) | Item::Function(_) | Item::FurtherArguments(_) => {}
            Item::ProviderEvent { .. } => self.skip("program events"),
            Item::UserspaceObject { .. } => self.skip("userspace objects"),
            Item::Scheduling { time, kind, arguments } if self.dialect == Dialect::Fuchsia => {
                self.tally.rate(time.rate);
                if !self.system.scheduling(*time, kind, arguments) {
                    self.skip("fiber switches");
                }
            }
            Item::Scheduling { .. } => self.skip("scheduling records"),
            Item::Profiler { time, thread, kind } => {
                let samples = self.samples.as_mut();
                if !samples.is_some_and(|samples| samples.record(*time, *thread, kind, record.names)) {
                    self.skip("profiler records");
                }
            }
            Item::LargeBlob { .. } => return self.large_blob(record),
            Item::Unknown { .. } => self.skip("records of unknown type"),
            Item::Magic
            | Item::ProviderInfo { .. }
            | Item::ProviderSection
            | Item::Initialization { .. }
            | Item::String { .. }
            | Item::Thread { .. }
            | Item::LargeBlobPart { .. }
            | Item::Malformed { .. }
            | Item::Damage { .. } => {}
        }
        Ok(())
    }

    fn skip(&mut self, kind: &'static str) {
        self.tally.skip(kind);
    }

    /// Whether a record is selected that is no event.
    fn keeps(&mut self, record: &Resolved<'_>) -> bool {
        self.selection.keeps_record(&record.item).unwrap_or(true)
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, record: &Resolved<'_>) -> io::Result<()> {
        let is_odd = self.odd.as_ref().is_some_and(|odd| odd.has(event));
        let is_kept = if is_odd { self.selection.keeps_itself(event) } else { self.selection.keeps(event) };
        let is_undecided = is_odd && OddSlices::depends_on_begin(event.kind);
        if !(is_kept || is_undecided || matches!(event.kind, EventKind::Unknown { .. })) {
            return Ok(());
        }
        if odd::is_unusual(event.thread) && self.events.is_chrome() {
            self.unusual_threads.insert(event.thread);
        }
        if is_odd {
            self.keep_odd(event, is_kept);
            return Ok(());
        }
        let part = self.flow_part(event);
        if self.sharing.is_some() {
            return self.shared_event(event, record, part);
        }
        self.events.event(event, part);
        Ok(())
    }

    fn shared_event(
        &mut self,
        event: &Event<'_>,
        record: &Resolved<'_>,
        part: Option<FlowPart>,
    ) -> io::Result<()> {
        // Few events are parts of flows.
        let again = part.clone();
        if !self.share(record, part)? {
            self.events.event(event, again);
        }
        Ok(())
    }

    /// The number and the names of the flow that an event is part of, for Chrome's dialect: those with which
    /// the flow began. If the flow ends once more, the begin of another arrow is written there, which
    /// Fuchsia's dialect lacks.
    fn flow_part(&mut self, event: &Event<'_>) -> Option<FlowPart> {
        let (EventKind::FlowBegin { id } | EventKind::FlowStep { id } | EventKind::FlowEnd { id }) =
            event.kind
        else {
            return None;
        };
        let mut part = self.flows.part(event, id);
        if self.events.is_chrome() {
            let is_kept = |begin: &mut Begin| {
                let threads = [begin.thread, event.thread];
                self.odd.as_ref().is_some_and(|odd| threads.iter().any(|thread| odd.has_thread(*thread)))
            };
            if let Some(Begin { thread, time }) = part.again.take_if(is_kept) {
                let kind = EventKind::FlowBegin { id };
                let begin = Event { thread, time, kind, arguments: event.arguments.none(), ..*event };
                self.keep_flow(&begin, &part);
            }
            return Some(part);
        }
        self.further_ends += u64::from(part.again.is_some());
        None
    }

    /// Leaves a record to other threads, if they are there for it.
    fn share(&mut self, record: &Resolved<'_>, part: Option<FlowPart>) -> io::Result<bool> {
        let Some(Sharing { collector, batch_bytes, .. }) = &mut self.sharing else { return Ok(false) };
        if !collector.add(record, |parts| parts.extend(part)) {
            self.in_order()?;
            return Ok(false);
        }
        if collector.batch.len() >= *batch_bytes {
            self.give()?;
        }
        Ok(true)
    }

    /// What this thread writes next comes behind all events so far.
    fn in_order(&mut self) -> io::Result<()> {
        let Some(Sharing { collector, batch_bytes, .. }) = &mut self.sharing else { return Ok(()) };
        if collector.batch.len() > *batch_bytes / SMALL_PART {
            return self.give();
        }
        if collector.batch.len() > 0 {
            let mut batch = std::mem::take(&mut collector.batch);
            self.rest_of(&mut batch)?;
            if let Some(sharing) = &mut self.sharing {
                sharing.collector.batch = batch.emptied();
            }
        }
        Ok(())
    }

    /// Writes the events of a batch that are left.
    fn rest_of(&mut self, batch: &mut Batch<VecDeque<FlowPart>>) -> io::Result<()> {
        while batch.has_more() {
            self.events.batch(batch);
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// Gives the events so far to other threads.
    fn give(&mut self) -> io::Result<()> {
        self.put_text();
        let Some(Sharing { crew, collector, pieces, spare, .. }) = &mut self.sharing else { return Ok(()) };
        let next = spare.pop().unwrap_or_default();
        crew.give(std::mem::replace(&mut collector.batch, next));
        pieces.push_back(Piece::Batch);
        self.write_pieces(false)
    }

    /// Puts the text of this thread behind that of others.
    fn put_text(&mut self) {
        let Some(sharing) = &mut self.sharing else { return };
        if !self.events.json.bytes().is_empty() {
            let text = self.events.json.replace(Output::default());
            sharing.text_bytes += text.len();
            sharing.pieces.push_back(Piece::Text(text, std::mem::take(&mut self.events.tally)));
        }
    }

    /// Writes the pieces that are ready, or all.
    fn write_pieces(&mut self, all: bool) -> io::Result<()> {
        while let Some(Sharing { crew, pieces, text_bytes, .. }) = &mut self.sharing {
            match pieces.pop_front() {
                None => break,
                Some(Piece::Text(text, tally)) => {
                    *text_bytes -= text.len();
                    self.write(text.bytes(), tally)?;
                }
                Some(Piece::Batch) => match crew.take(&mut self.events, all)? {
                    None => {
                        pieces.push_front(Piece::Batch);
                        break;
                    }
                    Some((batch, tally)) => self.write_batch(batch, tally)?,
                },
            }
        }
        Ok(())
    }

    /// Writes the output of a batch.
    fn write_batch(&mut self, mut batch: Batch<VecDeque<FlowPart>>, tally: Tally) -> io::Result<()> {
        let mut text = std::mem::take(&mut batch.output);
        self.write(text.bytes(), tally)?;
        if batch.has_more() {
            // Its texts are long. What this thread has to write comes behind them.
            let own = self.events.json.replace(Output::default());
            let own_tally = std::mem::take(&mut self.events.tally);
            while batch.has_more() {
                self.events.batch(&mut batch);
                self.write_own()?;
            }
            self.events.json.replace(own);
            self.events.tally = own_tally;
        }
        text.clear();
        if let Some(sharing) = &mut self.sharing {
            let mut batch = batch.emptied();
            batch.output = text;
            sharing.spare.push(batch);
        }
        Ok(())
    }

    /// Writes events, each with a comma in front.
    fn write(&mut self, text: &[u8], tally: Tally) -> io::Result<()> {
        self.tally.add(tally);
        if let Some(begin) = self.begin.take() {
            self.output.write_all(begin.as_bytes())?;
        }
        let comma = usize::from(!self.has_written);
        self.has_written |= !text.is_empty();
        self.output.write_all(text.get(comma..).unwrap_or_default())
    }

    /// Writes collected text if there is much of it.
    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.events.json.bytes().len() < FLUSH_BYTES {
            return Ok(());
        }
        self.flush()
    }

    /// Writes all text of this thread, or puts it behind that of others.
    fn flush(&mut self) -> io::Result<()> {
        if self.sharing.as_ref().is_some_and(|sharing| !sharing.pieces.is_empty()) {
            self.put_text();
            let must_wait = self.sharing.as_ref().is_some_and(|sharing| sharing.text_bytes > MAX_TEXT_BYTES);
            return self.write_pieces(must_wait);
        }
        self.write_own()
    }

    /// Writes all text of this thread.
    fn write_own(&mut self) -> io::Result<()> {
        let mut text = self.events.json.replace(Output::default());
        let tally = std::mem::take(&mut self.events.tally);
        let written = self.write(text.bytes(), tally);
        text.clear();
        self.events.json.replace(text);
        written
    }

    /// Writes all events so far.
    fn flush_all(&mut self) -> io::Result<()> {
        self.in_order()?;
        self.put_text();
        self.write_pieces(true)?;
        self.flush()
    }

    /// The time of the last event that was written; 0 if there is none.
    fn last_nanos(&mut self) -> io::Result<u64> {
        self.flush_all()?;
        Ok(self.tally.last_nanos.unwrap_or(0))
    }

    /// Ends the document; returns the number of its events, and what it lacks.
    fn finish(mut self, system_output: Option<&mut dyn Write>) -> io::Result<Tally> {
        self.in_order()?;
        self.end_large();
        if matches!(self.dialect, Dialect::Chrome(_)) {
            self.names_as_events();
        }
        self.flush_all()?;
        let mut json = Json::new(&mut self.output);
        match (self.dialect, system_output) {
            (Dialect::Fuchsia, Some(output)) => {
                self.system.write(output, "\n", true)?;
                json.raw("]}");
            }
            (Dialect::Fuchsia, None) => {
                json.raw("],\"systemTraceEvents\":{\"type\":\"fuchsia\",\"events\":[");
                json.flush()?;
                self.system.write(json.output(), ",", false)?;
                json.raw("]}}");
            }
            (Dialect::Chrome(container), _) => {
                json.raw("]");
                if let Some(samples) = self.samples.take() {
                    samples.write(&mut json)?;
                }
                if container == Container::Object {
                    self.recording.write(&mut json);
                    json.raw("}");
                }
            }
        }
        json.finish()?;
        Ok(self.tally)
    }
}

#[cfg(test)]
mod tests;
