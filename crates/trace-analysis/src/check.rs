//! Finds all problems of a trace: records that this reader cannot read, ones that other readers misread, and
//! inconsistencies.
//!
//! One pass, in memory that is bounded by the tables of strings and by the spans that are open at a time.
//! Threads named by [`Disorder`] are sorted at the end of it.

use crate::counted::Counted;
use clocks::Clocks;
use found::{EventPosition, Unmatched};
use nesting::OVERLAPPING;
use selected::Selected;
use spans::{CROSSING, MISMATCHED, MISMATCHED_ASYNC, OPEN, Spans};
use std::collections::BTreeMap;
use std::io::Read;
use trace_format::event::EventKind;
use trace_format::loss::{LossCode, LossRecord};
use trace_format::metadata::EVENT_BUFFER_FULL;
use trace_format::units::{Nanos, Offset, ProviderId, TicksPerSecond};
use trace_model::Chosen;
use trace_reader::Unknown;
use trace_reader::item::{Event, Item, Resolved};
use trace_reader::reader::{Reader, TABLE_BYTES};
use trace_reader::warning::{MAX_KEPT, WarningKind};
use trace_reader::{Balance, Disorder, Input, MANAGER, ReadError, Recordings, Unended};
use usage::Usages;

mod clocks;
mod flows;
mod found;
mod late;
mod nesting;
mod selected;
mod spans;
mod usage;

#[cfg(test)]
mod tests;

pub use clocks::Clock;
pub use usage::Usage;

/// Default limit of spans that may be open at a time.
pub const MAX_OPEN_SPANS: usize = 200_000;
/// How many providers are distinguished.
const MAX_PROVIDERS: usize = 4096;
/// How many losses are reported one by one.
const MAX_LOSSES: usize = 1000;
/// A time that is further from the first one than this is reported as an outlier: 30 days.
const MAX_DISTANCE_NANOS: u64 = 30 * 24 * 3600 * 1_000_000_000;

/// How much memory checking may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes for strings, threads and names.
    pub table_bytes: usize,
    /// Begins without an end so far, of durations, async operations and flows together.
    pub open_spans: usize,
    /// Events and context switches whose times are compared, at about 32 bytes each; 0 compares none.
    pub clock_times: usize,
    /// Bytes for what the events of each category and name take; 0 counts none.
    pub usage_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { table_bytes: TABLE_BYTES, open_spans: MAX_OPEN_SPANS, clock_times: 0, usage_bytes: 0 }
    }
}

/// The contents of a trace, and its problems.
#[derive(Debug, Default)]
pub struct Report {
    /// Size of the trace; of the part that was read, if it could not be read to the end.
    pub bytes: u64,
    /// Records, including malformed ones.
    pub records: u64,
    /// Events.
    pub events: u64,
    /// The first and the last moment.
    pub times: Option<(Nanos, Nanos)>,
    /// Each provider.
    pub providers: Vec<Provider>,
    /// Records that were skipped because they belong to a later version of the format. They are no problem.
    pub unknown: Unknown,
    /// Problems, by kind.
    pub problems: Vec<Problem>,
    /// Observations that are no problems, by kind.
    pub remarks: Vec<Problem>,
    /// The losses of providers, as recorded in the trace.
    pub losses: Vec<LossRecord>,
    /// How well each provider's events fit the times in which their threads ran, if that was requested.
    pub clocks: BTreeMap<ProviderId, Clock>,
    /// What the events of each category and name take, if that was requested; the largest first.
    pub usage: Vec<Usage>,
    /// Recordings that have no end, at most 1000.
    pub unended: Vec<Unended>,
    /// Why the trace could not be read to its end.
    pub error: Option<ReadError>,
}

/// The statistics of one provider in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provider {
    /// Its number.
    pub id: ProviderId,
    /// Its name.
    pub name: String,
    /// Its records.
    pub records: u64,
    /// Its events.
    pub events: u64,
    /// Its first and its last moment.
    pub times: Option<(Nanos, Nanos)>,
    /// The rate of its clock, if it has said one.
    pub rate: Option<TicksPerSecond>,
}

/// A kind of problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its name, for programs.
    //= docs/check.md#problems
    pub kind: &'static str,
    /// Number of occurrences.
    pub count: u64,
    /// The first places, at most [`MAX_KEPT`].
    pub first: Vec<Finding>,
}

/// One occurrence of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The record.
    pub offset: Offset,
    /// Its provider.
    pub provider: ProviderId,
    /// A description.
    pub text: String,
}

impl Report {
    /// The total number of problems, of all kinds.
    #[must_use]
    pub fn problem_count(&self) -> u64 {
        self.problems.iter().map(|problem| problem.count).sum()
    }
}

/// Checks a trace, plain or compressed, after an earlier pass has found its disorder.
///
/// # Errors
///
/// The input is no trace at all. Later errors are part of the report.
pub fn check(input: impl Read, limits: Limits, disorder: &Disorder) -> Result<Report, ReadError> {
    check_chosen(input, limits, disorder, None)
}

/// Checks an archive, and counts problems of events and spans only where these are chosen.
///
/// # Errors
///
/// As [`check`].
//= docs/check.md#a-part-of-a-trace
pub fn check_chosen(
    mut input: impl Read,
    limits: Limits,
    disorder: &Disorder,
    chosen: Option<&Chosen>,
) -> Result<Report, ReadError> {
    check_dyn(&mut input, limits, disorder, chosen)
}

fn check_dyn(
    input: &mut dyn Read,
    limits: Limits,
    disorder: &Disorder,
    chosen: Option<&Chosen>,
) -> Result<Report, ReadError> {
    Ok(check_reader(Reader::new(input)?, limits, disorder, chosen))
}

/// Checks a trace in memory, which is read twice.
///
/// # Errors
///
/// As [`check`].
pub fn check_slice(bytes: &[u8], limits: Limits) -> Result<Report, ReadError> {
    let disorder = Disorder::find_in(bytes)?;
    Ok(check_reader(Reader::of_slice(bytes)?, limits, &disorder, None))
}

fn check_reader<I: Input>(
    reader: Reader<I>,
    limits: Limits,
    disorder: &Disorder,
    chosen: Option<&Chosen>,
) -> Report {
    let mut reader = reader.with_table_bytes(limits.table_bytes).strict();
    let mut checker = Checker::new(limits, disorder, chosen);
    loop {
        match reader.next_item() {
            Ok(Some(record)) => checker.record(&record),
            Ok(None) => return checker.finish(&reader, None),
            Err(error) => return checker.finish(&reader, Some(error)),
        }
    }
}

/// One entry for each kind, sorted by its first place.
fn merge(problems: &mut Vec<Problem>) {
    let mut kinds: BTreeMap<&'static str, Problem> = BTreeMap::new();
    for problem in problems.drain(..) {
        match kinds.get_mut(problem.kind) {
            Some(known) => {
                known.count += problem.count;
                known.first.extend(problem.first);
                known.first.sort_by_key(|finding| finding.offset);
                known.first.truncate(MAX_KEPT);
            }
            None => _ = kinds.insert(problem.kind, problem),
        }
    }
    *problems = kinds.into_values().collect();
    problems.sort_by_key(|problem| problem.first.first().map(|finding| finding.offset));
}

/// A check of a trace that its caller reads, so that one pass serves for several purposes.
#[derive(Debug)]
pub struct Checker<'a> {
    report: Report,
    /// The first time that was met, for which others may be outliers.
    origin: Option<Nanos>,
    providers: BTreeMap<ProviderId, Provider>,
    problems: Problems,
    selected: Selected<'a>,
    spans: Spans<'a>,
    clocks: Clocks,
    balance: Balance,
    recordings: Recordings,
    usages: Usages,
}

/// Problems by kind, while they are collected.
#[derive(Debug, Default)]
struct Problems(BTreeMap<&'static str, Problem>);

impl Problems {
    #[cold]
    fn add(&mut self, kind: &'static str, place: EventPosition, text: impl FnOnce() -> String) {
        self.add_many(kind, 1, place, text);
    }

    fn add_many(
        &mut self,
        kind: &'static str,
        count: u64,
        EventPosition { offset, provider }: EventPosition,
        text: impl FnOnce() -> String,
    ) {
        let problem = self.0.entry(kind).or_insert(Problem { kind, count: 0, first: Vec::new() });
        problem.count += count;
        if problem.first.len() < MAX_KEPT {
            problem.first.push(Finding { offset, provider, text: text() });
        }
    }
}

impl<'a> Checker<'a> {
    /// A check of what is chosen after an earlier pass has found the disorder of the trace. The limit of the
    /// tables is the reader's.
    #[must_use]
    pub fn new(limits: Limits, disorder: &'a Disorder, chosen: Option<&'a Chosen>) -> Self {
        Self {
            report: Report::default(),
            origin: None,
            providers: BTreeMap::new(),
            problems: Problems::default(),
            selected: Selected::new(chosen),
            spans: Spans::new(limits.open_spans, disorder),
            clocks: Clocks::new(limits.clock_times),
            balance: Balance::default(),
            recordings: Recordings::default(),
            usages: Usages::new(limits.usage_bytes),
        }
    }

    /// Takes a record, in the order of the trace.
    pub fn record(&mut self, record: &Resolved<'_>) {
        let place = EventPosition { offset: record.offset, provider: record.provider };
        if matches!(record.item, Item::LargeBlobPart { .. } | Item::Damage { .. }) {
            return;
        }
        self.report.records += 1;
        self.recordings.record(record);
        let is_chosen = self.selected.has(&record.item);
        self.clocks.record(record, is_chosen);
        self.usages.record(record);
        self.spans.other(record);
        let time = match &record.item {
            Item::Event(event) => Some(event.time),
            Item::Scheduling { time, .. } | Item::Log { time, .. } | Item::Profiler { time, .. } => {
                Some(*time)
            }
            Item::LargeBlob { event: Some((time, ..)), .. } => Some(*time),
            _ => None,
        };
        let in_range = |nanos: &Nanos| nanos.0 < 1 << 63;
        let nanos = time.map(|time| time.nanos()).filter(in_range);
        let end = match &record.item {
            Item::Event(Event { kind: EventKind::DurationComplete { end }, time, .. }) => {
                Some(end.to_nanos(time.rate)).filter(in_range)
            }
            _ => None,
        };
        let mut times = None;
        if let Some(nanos) = nanos {
            let origin = *self.origin.get_or_insert(nanos);
            if nanos.0.abs_diff(origin.0) > MAX_DISTANCE_NANOS {
                if is_chosen {
                    self.problems.add("time-outlier", place, || {
                        format!("{nanos} are more than 30 days away from the first time, {origin}")
                    });
                }
            } else {
                let (first, last) = *times.insert((nanos, end.map_or(nanos, |end| end.max(nanos))));
                let (begin, end) = self.report.times.unwrap_or((first, last));
                self.report.times = Some((begin.min(first), end.max(last)));
            }
        }
        let is_event = matches!(record.item, Item::Event(_));
        self.count(record, is_event, times);
        for text in self.balance.record(record) {
            self.problems.add("unbalanced", place, || text);
        }
        match &record.item {
            Item::Event(event) => self.event(place, event, is_chosen),
            Item::ProviderEvent { about, event } => {
                self.problems.add("provider-event", place, || match *event {
                    EVENT_BUFFER_FULL => {
                        format!("program {about} has lost records; its losses say why")
                    }
                    event => format!("event {event} of program {about}"),
                });
            }
            Item::Loss(loss) => {
                self.problems.add("loss", place, || {
                    let reason = loss.reason.text().map_or_else(|| loss.reason.0.to_string(), str::to_owned);
                    let (provider, count) = (loss.provider, loss.count);
                    match loss.reason {
                        LossCode::DAMAGED_COUNTERS => {
                            format!("program {provider}: {count} counters of its buffer were damaged")
                        }
                        code if code.has_count() => {
                            format!("program {provider} lost {}: {reason}", Counted(count, "records"))
                        }
                        _ => format!("program {provider}: {reason}; how many records it lost is unknown"),
                    }
                });
                if self.report.losses.len() < MAX_LOSSES {
                    self.report.losses.push(*loss);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, record: &Resolved<'_>, is_event: bool, times: Option<(Nanos, Nanos)>) {
        self.report.events += u64::from(is_event);
        if !self.providers.contains_key(&record.provider) && self.providers.len() == MAX_PROVIDERS {
            return;
        }
        let id = record.provider;
        let provider = self.providers.entry(id).or_insert_with(|| Provider { id, ..Provider::default() });
        if let Item::ProviderInfo { name } = record.item {
            provider.name = name.to_str().into_owned();
        }
        if let Item::Initialization { rate } = record.item {
            provider.rate = Some(rate);
        }
        provider.records += 1;
        provider.events += u64::from(is_event);
        if let Some((first, last)) = times {
            let (begin, end) = provider.times.unwrap_or((first, last));
            provider.times = Some((begin.min(first), end.max(last)));
        }
    }

    fn event(&mut self, place: EventPosition, event: &Event<'_>, is_chosen: bool) {
        if let EventKind::DurationComplete { end } = event.kind
            && end < event.time.ticks
            && is_chosen
            && !self.selected.is_all()
        {
            let begin = event.time.ticks;
            self.problems.add(BACKWARDS, place, || WarningKind::EndBeforeBegin { begin, end }.to_string());
        }
        if let EventKind::Counter { .. } = event.kind
            && is_chosen
            && !event.arguments.iter().any(|(_, value)| value.is_number())
        {
            self.problems.add("empty-counter", place, || {
                format!("counter {:?} has no argument that is a number", event.name)
            });
        }
        let problems = &mut self.problems;
        let mut found = |(kind, text)| problems.add(kind, place, || text);
        self.spans.event(place, event, is_chosen, &mut found);
    }

    /// The report of a trace that was read to its end, or to an error. Only a [strict](Reader::strict) reader
    /// warns of everything.
    #[must_use]
    pub fn finish<I: Input>(self, reader: &Reader<I>, error: Option<ReadError>) -> Report {
        let is_all = self.selected.is_all();
        let mut report = self.found();
        // The reader has warned of a lost position.
        if let Some(error) = error.filter(|error| !matches!(error, ReadError::NoSize { .. })) {
            report.error = Some(error);
        }
        report.bytes = reader.position().0;
        report.unknown = reader.unknown().clone();
        // Those of a part have been counted.
        let by_kind = reader.warnings().by_kind().filter(|(kind, ..)| is_all || *kind != BACKWARDS);
        for (kind, count, first) in by_kind {
            let first = first.iter().map(|warning| Finding {
                offset: warning.offset,
                provider: warning.provider,
                text: warning.kind.to_string(),
            });
            report.problems.push(Problem { kind, count, first: first.collect() });
        }
        merge(&mut report.problems);
        let is_remark = |problem: &mut Problem| REMARKS.contains(&problem.kind);
        report.remarks = report.problems.extract_if(.., is_remark).collect();
        report
    }

    fn found(mut self) -> Report {
        let problems = &mut self.problems;
        let unmatched = self.spans.finish(|place, (kind, text)| problems.add(kind, place, || text));
        match unmatched {
            Ok(unmatched) => {
                for unmatched in unmatched {
                    let Unmatched { kind, count, place, .. } = unmatched;
                    self.problems.add_many(kind, count, place, || unmatched.text());
                }
            }
            Err(source) => self.report.error = Some(ReadError::Io { offset: Offset(0), source }),
        }
        self.report.unended = self.recordings.without_end().to_vec();
        for unended in &self.report.unended {
            let place = EventPosition { offset: unended.offset, provider: MANAGER };
            self.problems.add(NO_END, place, || {
                "this recording has no end: the trace is cut off, or still being written".to_owned()
            });
        }
        self.report.usage = self.usages.finish();
        self.report.clocks = self.clocks.finish();
        for (provider, clock) in self.report.clocks.iter().filter(|(_, clock)| clock.is_off()) {
            let place = EventPosition { offset: Offset(0), provider: *provider };
            self.problems.add("clock-skew", place, || {
                let Clock { judged, outside, shift } = clock;
                let micros = *shift as f64 / 1000.0;
                format!(
                    "{outside} of {judged} events happened when their thread did not run; \
                     {micros:+.3} us would put most of them right"
                )
            });
        }
        self.report.providers = self.providers.into_values().collect();
        if let Some((first, _)) = &mut self.report.times {
            // The first of all, and not the first in the file.
            let all = self.report.providers.iter().filter_map(|provider| provider.times);
            *first = all.map(|(first, _)| first).min().unwrap_or(*first).min(*first);
        }
        self.report.problems = self.problems.0.into_values().collect();
        self.report
    }
}

/// A duration ends before it begins.
const BACKWARDS: &str = "end-before-begin";

/// A part of a trace in another format that could not be read; the importer's caller adds it to the report.
pub const UNDECODABLE: &str = "undecodable";

/// The trace ends between two records, before its recording does.
pub const NO_END: &str = "no-end";
/// The trace ends inside of a record.
pub const TRUNCATED: &str = "truncated";

/// Observations that are reported but are no problems.
//= docs/check.md#remarks
pub const REMARKS: [&str; 5] = [CROSSING, MISMATCHED_ASYNC, MISMATCHED, "no-rate", OPEN];

/// The names of all problems and remarks.
//= docs/check.md#problems
pub const KINDS: [&str; 39] = [
    "clock-skew",
    "crossing-async",
    "damaged",
    "empty-counter",
    BACKWARDS,
    "loss",
    "lost",
    "lost-arguments",
    "malformed",
    MISMATCHED_ASYNC,
    MISMATCHED,
    NO_END,
    "no-magic",
    "no-rate",
    "not-utf8",
    OPEN,
    OVERLAPPING,
    "provider-event",
    "rates-differ",
    "redefined-string",
    "redefined-thread",
    "spans-full",
    "tables-full",
    "time-out-of-range",
    "time-outlier",
    TRUNCATED,
    "unbalanced",
    UNDECODABLE,
    "undefined-string",
    "undefined-thread",
    "unknown-provider",
    "unmatched-async-begin",
    "unmatched-async-end",
    "unmatched-begin",
    "unmatched-end",
    "unmatched-flow-begin",
    "unmatched-flow-end",
    "unmatched-flow-step",
    "zero-words",
];
