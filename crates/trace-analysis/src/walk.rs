//! One pass over an archive.

use crate::cost::{CostlyEvents, EventCosts};
use crate::losses::{Counting, Losses};
use crate::names::Whats;
use crate::spans::{Open, Part, Span, Spans, Unfinished};
use std::io::Read;
use trace_format::event::EventKind;
use trace_format::units::{Koid, Offset};
use trace_model::{Chosen, Partings, Shape};
use trace_reader::{Disorder, Event, Input, Item, MANAGER, Mark, ReadError, Reader, Resolved, Thread};

/// What is done with an archive's contents. Numbers of categories and names are those of [`Whats`], threads
/// count from 0 in the order in which they occur, and times are nanoseconds.
pub trait Visitor {
    /// A span has ended.
    fn span(&mut self, span: &Span, whats: &Whats);

    /// A span that is not chosen has ended.
    fn left_out(&mut self, _span: &Span) {}

    /// A span has begun and not ended, when the trace ends.
    fn unfinished(&mut self, open: &Unfinished, whats: &Whats);

    /// A moment, of a thread or within an operation.
    fn instant(&mut self, _what: u32, _thread: u32, _at: u64, _whats: &Whats) {}

    /// A sample of a counter that is wanted.
    fn sample(&mut self, _sample: &Sample<'_>, _whats: &Whats) {}

    /// Whether samples of a counter are wanted.
    fn wants_samples(&mut self, _what: u32, _whats: &Whats) -> bool {
        false
    }
}

/// A value of a counter.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Number of the counter's category and name.
    pub what: u32,
    /// The counter's id.
    pub id: u64,
    /// The number of its process.
    pub process: u32,
    /// The name of the value.
    pub series: &'a str,
    /// The value.
    pub value: f64,
    /// When it was taken.
    pub at: u64,
}

/// A thread of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadNames {
    /// The thread and its process.
    pub thread: Thread,
    /// The name of the process.
    pub process_name: Option<String>,
    /// The name of the thread.
    pub thread_name: Option<String>,
}

/// What a pass has found besides what its visitor has seen.
#[derive(Debug, Default)]
pub struct Walked {
    /// Size of the trace in bytes, decompressed, as far as it was read.
    pub bytes: u64,
    /// How many events it has, without the manager's marks.
    pub events: u64,
    /// The first and the last moment of an event or a recording, in nanoseconds.
    pub times: Option<(u64, u64)>,
    /// Categories and names.
    pub whats: Whats,
    /// The threads by their numbers.
    pub threads: Vec<ThreadNames>,
    /// The processes by their numbers, with their names.
    pub processes: Vec<(Koid, Option<String>)>,
    /// What is missing.
    pub losses: Losses,
    /// Ends without a begin.
    pub unmatched_ends: u64,
    /// Begins that were dropped because too many spans were open.
    pub dropped_begins: u64,
    /// Events whose names were too many to be distinguished.
    pub other_names: u64,
    /// Events of programs by what they cost.
    pub costly: CostlyEvents,
    /// What that is, if the trace tells it.
    pub costs: Option<EventCosts>,
}

impl Walked {
    /// From the first moment to the last, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.times.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9)
    }

    #[inline]
    fn has_lasted(&mut self, from: u64, to: u64) {
        let times = self.times.get_or_insert((from, to));
        *times = (times.0.min(from), times.1.max(to));
    }
}

/// Goes through an archive, plain or compressed, after an earlier pass has found its disorder, and passes on
/// what is chosen.
///
/// # Errors
/// The input is no archive, cannot be read at all, or what had to be sorted could not be kept in a file.
pub fn walk<V: Visitor>(
    input: impl Read,
    disorder: &Disorder,
    chosen: Option<&Chosen>,
    visitor: V,
) -> Result<(V, Walked), ReadError> {
    let mut reader = Reader::new(input)?;
    let mut walker = Walker::new(disorder, chosen, visitor);
    let stopped = loop {
        match reader.next_item() {
            Ok(Some(record)) => walker.record(&record),
            Ok(None) => break None,
            Err(error) if walker.has_content() => break Some(error),
            Err(error) => return Err(error),
        }
    };
    walker.finish(&reader, stopped)
}

/// Goes through an archive that its caller reads, so that one pass serves for several purposes.
pub struct Walker<'a, V> {
    visitor: V,
    choosing: Option<Choosing<'a>>,
    spans: Spans<'a>,
    partings: Partings,
    walked: Walked,
    losses: Counting,
    has_content: bool,
}

impl<'a, V: Visitor> Walker<'a, V> {
    /// A walk after an earlier pass has found the disorder of the archive.
    pub fn new(disorder: &'a Disorder, chosen: Option<&'a Chosen>, visitor: V) -> Self {
        let (walked, losses) = (Walked::default(), Counting::default());
        let (spans, partings) = (Spans::new(disorder), Partings::default());
        let choosing = chosen.map(Choosing::new);
        Self { visitor, choosing, spans, partings, walked, losses, has_content: false }
    }

    /// Whether there was anything but definitions.
    pub const fn has_content(&self) -> bool {
        self.has_content
    }

    /// Takes a record, in the order of the archive.
    #[inline]
    pub fn record(&mut self, record: &Resolved<'_>) {
        self.losses.record(record);
        if let Item::Event(event) = &record.item {
            self.has_content = true;
            if record.provider != MANAGER {
                self.cost(event);
            } else if let Some(mark) = Mark::of(MANAGER, event) {
                return self.mark(mark, event);
            }
            self.event(event);
        } else {
            self.partings.note(record);
            self.has_content |= record.item.is_content();
        }
    }

    /// What was found in an archive that was read to its end, or to an error.
    ///
    /// # Errors
    /// What had to be sorted could not be kept in a file.
    pub fn finish<I: Input>(
        self,
        reader: &Reader<I>,
        stopped: Option<ReadError>,
    ) -> Result<(V, Walked), ReadError> {
        let Self { mut visitor, choosing, mut spans, partings, mut walked, losses, .. } = self;
        let whats = &walked.whats;
        let mut unfinished: Vec<Unfinished> = Vec::new();
        spans
            .finish(whats, |span| pass(&choosing, &mut visitor, span, whats), |open| unfinished.push(*open))
            .map_err(|source| ReadError::Io { offset: Offset(0), source })?;
        let processes = spans.processes();
        for open in &mut unfinished {
            let process = processes[open.process as usize];
            let parting = || match open.shape {
                Shape::Operation => partings.of_operation(process, open.begin),
                _ => partings.of(process, open.begin),
            };
            open.ending = open.ending.or_else(|| parting().map(|(ending, lasted)| (ending, Some(lasted))));
            if has(&choosing, open.what, open.thread, open.begin) {
                visitor.unfinished(open, whats);
            }
        }
        let names = reader.names();
        let process = |process: Koid| names.process(process).map(|name| name.to_str().into_owned());
        walked.processes = processes.into_iter().map(|koid| (koid, process(koid))).collect();
        let named = |thread: Thread| ThreadNames {
            thread,
            process_name: process(thread.process),
            thread_name: names.thread(thread).map(|name| name.to_str().into_owned()),
        };
        walked.threads = spans.threads().map(named).collect();
        walked.bytes = reader.position().0;
        walked.losses = losses.finish(reader.warnings(), stopped);
        (walked.unmatched_ends, walked.dropped_begins) = (spans.unmatched(), spans.refused());
        walked.other_names = walked.whats.others;
        Ok((visitor, walked))
    }

    //= docs/meaning.md#the-managers-marks
    #[cold]
    fn mark(&mut self, mark: Mark, event: &Event<'_>) {
        if mark == Mark::Begin {
            self.walked.costs = self.walked.costs.or_else(|| EventCosts::of(event));
        }
        if mark != Mark::Recovered {
            let at = event.time.nanos().0;
            self.walked.has_lasted(at, at);
        }
    }

    #[inline]
    fn cost(&mut self, event: &Event<'_>) {
        let costly = &mut self.walked.costly;
        match event.kind {
            EventKind::DurationComplete { .. } => costly.durations += 1,
            EventKind::Counter { .. } => costly.counters += 1,
            _ => costly.others += 1,
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let at = event.time.nanos().0;
        let walked = &mut self.walked;
        walked.events += 1;
        let what = walked.whats.number(event.category, event.name);
        let thread = self.spans.thread(event.thread);
        if let Some(choosing) = &mut self.choosing {
            choosing.see(event, what, thread, &walked.whats);
        }
        let mut last = at;
        if let EventKind::DurationComplete { end } = event.kind {
            last = end.to_nanos(event.time.rate).0;
            let open = Open { at, what, thread, is_poll: self.spans.is_poll(event) };
            if let Some(span) = self.spans.complete(open, last) {
                pass(&self.choosing, &mut self.visitor, &span, &walked.whats);
            }
        }
        walked.has_lasted(at, last.max(at));
        let (is_end, id) = match event.kind {
            EventKind::DurationComplete { .. } => return,
            EventKind::DurationBegin => (false, None),
            EventKind::DurationEnd => (true, None),
            EventKind::AsyncBegin { id } => (false, Some(id)),
            EventKind::AsyncEnd { id } => (true, Some(id)),
            EventKind::Instant { .. } | EventKind::AsyncInstant { .. } => {
                if has(&self.choosing, what, thread, at) {
                    self.visitor.instant(what, thread, at, &walked.whats);
                }
                return;
            }
            EventKind::Counter { id } => {
                if has(&self.choosing, what, thread, at) {
                    self.counter(event, what, thread, id, at);
                }
                return;
            }
            _ => return,
        };
        let is_poll = id.is_none() && !is_end && self.spans.is_poll(event);
        let open = Open { at, what, thread, is_poll };
        if let Some(ending) = event.ending() {
            return self.spans.unended(open, ending);
        }
        let part = Part { open, is_end, id };
        if let Some(span) = self.spans.part(part, &walked.whats) {
            pass(&self.choosing, &mut self.visitor, &span, &walked.whats);
        }
    }

    /// Each argument that is a number is a sample.
    //= docs/tables.md#tables
    fn counter(&mut self, event: &Event<'_>, what: u32, thread: u32, id: u64, at: u64) {
        let whats = &self.walked.whats;
        if !self.visitor.wants_samples(what, whats) {
            return;
        }
        let process = self.spans.process(thread);
        for (series, value) in event.arguments.iter() {
            let Some(value) = value.number() else { continue };
            let series = series.to_str();
            self.visitor.sample(&Sample { what, id, process, series: &series, value, at }, whats);
        }
    }
}

/// What is chosen, asked once for each category and name, and once for each thread.
struct Choosing<'a> {
    chosen: &'a Chosen,
    whats: Vec<bool>,
    threads: Vec<bool>,
}

impl<'a> Choosing<'a> {
    const fn new(chosen: &'a Chosen) -> Self {
        Self { chosen, whats: Vec::new(), threads: Vec::new() }
    }

    /// Takes each event before a question about its numbers. Both count up from 0.
    #[inline]
    fn see(&mut self, event: &Event<'_>, what: u32, thread: u32, whats: &Whats) {
        while self.whats.len() <= what as usize {
            let new = self.whats.len() as u32;
            let (category, name) = (whats.category(new), whats.name(new));
            self.whats.push(self.chosen.has_category(category) && self.chosen.has_name(name));
        }
        if self.threads.len() <= thread as usize {
            self.threads.push(self.chosen.has_thread(event.thread));
        }
    }

    #[inline]
    fn has(&self, what: u32, thread: u32, at: u64) -> bool {
        self.whats[what as usize] && self.threads[thread as usize] && self.chosen.has_time(at)
    }
}

#[inline]
fn has(choosing: &Option<Choosing<'_>>, what: u32, thread: u32, at: u64) -> bool {
    choosing.as_ref().is_none_or(|choosing| choosing.has(what, thread, at))
}

/// Shows a span to a visitor, which is chosen or not.
#[inline]
fn pass(choosing: &Option<Choosing<'_>>, visitor: &mut impl Visitor, span: &Span, whats: &Whats) {
    if has(choosing, span.what, span.thread, span.begin) {
        visitor.span(span, whats);
    } else {
        visitor.left_out(span);
    }
}
