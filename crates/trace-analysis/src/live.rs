//! Statistics of a recording that is still running: of its last seconds, by provider.
//!
//! Records come in pieces, as they are recorded. What counts is in buckets of half a second, by the end of a
//! duration and the time of everything else; a bucket is forgotten when it is older than the window. Memory
//! is bounded however much is recorded: by the number of buckets, of names in each, and of counters.
//= docs/live.md#what-is-shown

pub mod begun;
mod window;

use crate::assertion::{Function, Kind, Mixed, Selector};
use crate::names::Whats;
use crate::spans::{Open, Part, Span, Spans, Unfinished};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::LazyLock;
use trace_format::event::EventKind;
use trace_format::units::ProviderId;
use trace_model::{Shape, poll_of};
use trace_reader::{Disorder, Event, Item, Resolved, Text, Thread, has_first_poll};
use window::Window;

/// Width of a bucket.
pub const BUCKET_NS: u64 = 500_000_000;
/// Buckets of a window: five seconds.
pub const WINDOW_BUCKETS: u64 = 10;
/// Values of a counter that are remembered, one for each bucket.
pub const HISTORY: usize = 60;
/// Counters that are distinguished; the others are counted.
const MAX_COUNTERS: usize = 2000;
/// Threads of which ended durations are remembered: 12 MiB at most. Of others, a first poll counts as a
/// duration.
const MAX_RECENT_THREADS: usize = 4096;
/// Ended durations of a thread that are remembered.
const MAX_RECENT: usize = 64;
/// Polls that are known before they end.
const MAX_FIRST_POLLS: usize = 4096;
/// Nanoseconds after the end of a duration until it counts, if operations of its name have first polls.
/// Programs say within 120 ms that a duration was a first poll.
const FIRST_POLL_WAIT_NS: u64 = 150_000_000;
/// Durations that wait; with more, the oldest one counts at once.
const MAX_WAITING: usize = 4096;
/// Names of operations with first polls.
const MAX_POLLED: usize = 65_536;
/// Bytes of a series' name that are kept.
const MAX_SERIES_BYTES: usize = 200;

/// In a running recording each thread's durations are taken in the order in which they come.
static IN_ORDER: LazyLock<Disorder> = LazyLock::new(Disorder::default);

/// A counter's key: its provider, category and name, id, and the name of the value.
type CounterKey = (ProviderId, u32, u64, String);

/// Running statistics.
#[derive(Debug, Default)]
pub struct Live {
    spans: Spans<'static>,
    whats: Whats,
    window: Window,
    counters: BTreeMap<CounterKey, History>,
    /// Samples of counters that are not distinguished.
    other_samples: u64,
    events: BTreeMap<ProviderId, u64>,
    /// By thread, the last pairs that have ended, which may turn out to be polls.
    recent: Vec<VecDeque<Span>>,
    /// Durations that have not ended and turned out to be polls: threads, categories with names, begins.
    first_polls: HashSet<(u32, u32, u64)>,
    /// Names of operations with a first poll.
    polled: HashSet<(ProviderId, u32)>,
    /// Durations of these names, in the order of their ends: they may still turn out to be first polls.
    waiting: VecDeque<(ProviderId, Span)>,
}

/// The last values of a counter.
#[derive(Debug, Default)]
struct History {
    /// The bucket of the last value.
    bucket: u64,
    /// The value at the end of each bucket, the last one last.
    values: Vec<f64>,
}

/// The durations of one name of a provider in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSpan {
    /// The provider.
    pub provider: ProviderId,
    /// The category.
    pub category: String,
    /// The name.
    pub name: String,
    /// What they are.
    pub kind: Kind,
    /// How many ended in the window.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub total_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
    /// The half of them was not longer, in nanoseconds; none if there was no memory for that.
    pub p50_ns: Option<f64>,
    /// All but one of a hundred were not longer, in nanoseconds.
    pub p99_ns: Option<f64>,
}

/// A counter.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveCounter {
    /// The provider.
    pub provider: ProviderId,
    /// The category.
    pub category: String,
    /// The name.
    pub name: String,
    /// The counter's id.
    pub id: u64,
    /// The name of the value.
    pub series: String,
    /// Its values at the ends of the last buckets, at most [`HISTORY`]; where a bucket has none, that of the
    /// bucket before.
    pub values: Vec<f64>,
}

/// What of a record can be drawn. Numbers of categories and names are those of [`Live::whats`], those of
/// threads the places in [`Live::threads`]; times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark<'a> {
    /// A duration or an operation that has ended.
    Span(Span),
    /// An instant.
    Instant(Point),
    /// A begin, step or end of a flow.
    Flow(Point),
    /// A line of a log; its number is that of the line as a name without category.
    Log(Point),
    /// A value of a counter.
    Sample {
        /// When, where, and the counter's category and name.
        point: Point,
        /// The counter's id.
        id: u64,
        /// The name of the value.
        series: Text<'a>,
        /// The value.
        value: f64,
    },
}

/// Something at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// When, in nanoseconds.
    pub at: u64,
    /// Number of its category and name.
    pub what: u32,
    /// Number of its thread.
    pub thread: u32,
    /// Number of that thread's process.
    pub process: u32,
}

/// The statistics at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The length of the window, in seconds.
    pub seconds: f64,
    /// Events in the window, by provider.
    pub events: BTreeMap<ProviderId, u64>,
    /// All events that have come, by provider.
    pub all_events: BTreeMap<ProviderId, u64>,
    /// The names whose durations took most time together, in that order.
    pub spans: Vec<LiveSpan>,
    /// Counters, in the order of providers and names.
    pub counters: Vec<LiveCounter>,
    /// Samples of further counters.
    pub other_samples: u64,
    /// Durations in the window whose names were too many to be distinguished.
    pub other_spans: u64,
}

impl Default for Spans<'static> {
    fn default() -> Self {
        Self::new(&IN_ORDER)
    }
}

impl Live {
    /// Takes the next record.
    pub fn record(&mut self, record: &Resolved<'_>) {
        self.record_to(record, &mut |_| {});
    }

    /// The same, and passes on what of the record can be drawn.
    #[inline]
    pub fn record_to(&mut self, record: &Resolved<'_>, take: &mut impl FnMut(Mark<'_>)) {
        match &record.item {
            Item::Event(event) => self.event(record.provider, event, take),
            Item::Log { time, thread, message } => {
                let what = self.whats.number(Text(b""), *message);
                take(Mark::Log(self.point(time.nanos().0, what, *thread)));
            }
            _ => {}
        }
    }

    fn point(&mut self, at: u64, what: u32, thread: Thread) -> Point {
        let thread = self.spans.thread(thread);
        Point { at, what, thread, process: self.spans.process(thread) }
    }

    #[inline]
    fn event(&mut self, provider: ProviderId, event: &Event<'_>, take: &mut impl FnMut(Mark<'_>)) {
        let at = event.time.nanos().0;
        let what = self.whats.number(event.category, event.name);
        let point = self.point(at, what, event.thread);
        *self.events.entry(provider).or_default() += 1;
        self.window.event(provider, at);
        let is_of_thread =
            matches!(event.kind, EventKind::DurationBegin | EventKind::DurationComplete { .. });
        let is_poll = is_of_thread && poll_of(event).is_some();
        let open = Open { at, what, thread: point.thread, is_poll };
        let part = |is_end, id| Part { open, is_end, id };
        if let Some(ending) = event.ending() {
            return self.spans.unended(open, ending);
        }
        let span = match event.kind {
            EventKind::DurationComplete { end } => self.spans.complete(open, end.to_nanos(event.time.rate).0),
            EventKind::DurationBegin => self.spans.part(part(false, None), &self.whats),
            EventKind::DurationEnd => self.spans.part(part(true, None), &self.whats),
            EventKind::AsyncBegin { id } => self.spans.part(part(false, Some(id)), &self.whats),
            EventKind::AsyncEnd { id } => self.spans.part(part(true, Some(id)), &self.whats),
            EventKind::Counter { id } => return self.counter(provider, event, point, id, take),
            EventKind::Instant { .. } | EventKind::AsyncInstant { .. } => return take(Mark::Instant(point)),
            EventKind::FlowBegin { .. } | EventKind::FlowStep { .. } | EventKind::FlowEnd { .. } => {
                return take(Mark::Flow(point));
            }
            EventKind::Unknown { .. } => None,
        };
        if let EventKind::AsyncBegin { .. } = event.kind
            && has_first_poll(event)
        {
            self.poll_began(provider, point);
        }
        if let Some(mut span) = span {
            if span.shape == Shape::Pair {
                self.ended(provider, &mut span);
            } else {
                self.window.span(provider, &span);
            }
            take(Mark::Span(span));
        }
    }

    /// The duration of a thread that began at a time, with a category and name, is the first poll of an
    /// operation.
    fn poll_began(&mut self, provider: ProviderId, begun: Point) {
        let Point { at: begin, what, thread, .. } = begun;
        if self.polled.len() < MAX_POLLED && self.polled.insert((provider, what)) {
            self.recall(provider, begun);
        }
        let is_it = |span: &Span| (span.begin, span.what, span.thread) == (begin, what, thread);
        if let Some(place) = self.waiting.iter().rposition(|(_, span)| is_it(span)) {
            let waiting = self.waiting.remove(place);
            waiting
                .iter()
                .for_each(|(of, span)| self.window.span(*of, &Span { shape: Shape::Poll, ..*span }));
            return;
        }
        let recent = self.recent.get_mut(thread as usize);
        let found = recent.and_then(|recent| {
            let place = recent.iter().position(|span| (span.begin, span.what) == (begin, what))?;
            recent.remove(place)
        });
        match found {
            Some(span) => self.window.becomes_poll(provider, &span),
            None if self.first_polls.len() < MAX_FIRST_POLLS => {
                self.first_polls.insert((thread, what, begin));
            }
            None => {}
        }
    }

    /// A pair has ended, which may turn out to be a poll, or has done so before.
    #[inline]
    fn ended(&mut self, provider: ProviderId, span: &mut Span) {
        if !self.first_polls.is_empty() && self.first_polls.remove(&(span.thread, span.what, span.begin)) {
            span.shape = Shape::Poll;
        } else if !self.polled.is_empty() && self.polled.contains(&(provider, span.what)) {
            return self.wait(provider, *span);
        } else {
            self.remember(span);
        }
        self.window.span(provider, span);
    }

    /// A duration has ended that does not count yet.
    fn wait(&mut self, provider: ProviderId, span: Span) {
        if self.waiting.len() >= MAX_WAITING {
            self.count_oldest();
        }
        self.waiting.push_back((provider, span));
    }

    /// Counts durations that have waited long enough at a time.
    fn count_waiting(&mut self, now_ns: u64) {
        let has_waited = |(_, span): &(_, Span)| span.end.saturating_add(FIRST_POLL_WAIT_NS) <= now_ns;
        while self.waiting.front().is_some_and(has_waited) {
            self.count_oldest();
        }
    }

    fn count_oldest(&mut self) {
        if let Some((provider, span)) = self.waiting.pop_front() {
            self.remember(&span);
            self.window.span(provider, &span);
        }
    }

    /// The first operation of a name has a first poll: durations of this name and process that have already
    /// counted, and could still be first polls, wait instead.
    #[cold]
    fn recall(&mut self, provider: ProviderId, begun: Point) {
        let processes: Vec<u32> = self.spans.threads_with_processes().map(|(_, process)| process).collect();
        let of = |thread: usize| processes.get(thread);
        let since = begun.at.saturating_sub(FIRST_POLL_WAIT_NS);
        let mut recalled: Vec<Span> = Vec::new();
        for (thread, recent) in self.recent.iter_mut().enumerate() {
            if of(thread) == of(begun.thread as usize) {
                let is_recalled = |span: &Span| span.what == begun.what && span.end >= since;
                recalled.extend(recent.iter().filter(|span| is_recalled(span)));
                recent.retain(|span| !is_recalled(span));
            }
        }
        recalled.sort_by_key(|span| span.end);
        for span in recalled {
            self.window.take_back(provider, &span);
            self.wait(provider, span);
        }
    }

    fn remember(&mut self, span: &Span) {
        let thread = span.thread as usize;
        if thread >= MAX_RECENT_THREADS {
            return;
        }
        if self.recent.len() <= thread {
            self.recent.resize_with(thread + 1, VecDeque::new);
        }
        let recent = &mut self.recent[thread];
        if recent.len() == MAX_RECENT {
            recent.pop_front();
        }
        recent.push_back(*span);
    }

    fn counter(
        &mut self,
        provider: ProviderId,
        event: &Event<'_>,
        point: Point,
        id: u64,
        take: &mut impl FnMut(Mark<'_>),
    ) {
        for (series, value) in event.arguments.iter() {
            let Some(value) = value.number() else { continue };
            take(Mark::Sample { point, id, series, value });
            if !value.is_finite() {
                continue;
            }
            let mut series = series.to_str().into_owned();
            if series.len() > MAX_SERIES_BYTES {
                series.truncate(series.floor_char_boundary(MAX_SERIES_BYTES));
            }
            let key = (provider, point.what, id, series);
            if self.counters.len() >= MAX_COUNTERS && !self.counters.contains_key(&key) {
                self.other_samples += 1;
                continue;
            }
            self.counters.entry(key).or_default().push(point.at / BUCKET_NS, value);
        }
    }

    /// Categories and names by their numbers.
    #[must_use]
    pub const fn whats(&self) -> &Whats {
        &self.whats
    }

    /// Threads by their numbers, with the numbers of their processes.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = (Thread, u32)> + '_ {
        self.spans.threads_with_processes()
    }

    /// The number of a thread.
    pub fn thread(&mut self, thread: Thread) -> u32 {
        self.spans.thread(thread)
    }

    /// Durations that have begun and not ended. Those of a thread come one after the other, in the order of
    /// their begins.
    pub fn unfinished(&self) -> impl Iterator<Item = Unfinished> + '_ {
        self.spans.unfinished()
    }

    /// The statistics at a time in nanoseconds, with the first `most` names. What is older than the window is
    /// forgotten.
    pub fn snapshot(&mut self, now_ns: u64, most: usize) -> Snapshot {
        self.count_waiting(now_ns);
        self.window.forget_before(now_ns);
        let (spans, other_spans) = self.window.top(most, &self.whats);
        let now = now_ns / BUCKET_NS;
        let counter = |((provider, what, id, series), history): (&CounterKey, &History)| LiveCounter {
            provider: *provider,
            category: self.whats.category(*what).to_owned(),
            name: self.whats.name(*what).to_owned(),
            id: *id,
            series: series.clone(),
            values: history.until(now),
        };
        Snapshot {
            seconds: self.window.seconds(now_ns),
            events: self.window.events(),
            all_events: self.events.clone(),
            spans,
            counters: self.counters.iter().map(counter).collect(),
            other_samples: self.other_samples,
            other_spans,
        }
    }

    /// A value of what has ended in the window that ends at a time in nanoseconds, of all providers together;
    /// none if there is none. Lengths are in nanoseconds. What is older than the window is forgotten.
    ///
    /// # Errors
    /// Both operations and durations have a selected name.
    pub fn value_of(
        &mut self,
        function: Function,
        selector: &Selector,
        now_ns: u64,
    ) -> Result<Option<f64>, Mixed> {
        self.count_waiting(now_ns);
        self.window.forget_before(now_ns);
        self.window.value_of(function, selector, &self.whats)
    }

    /// Forgets the counters of a provider that takes no more part.
    pub fn forget_counters(&mut self, provider: ProviderId) {
        self.counters.retain(|key, _| key.0 != provider);
    }

    /// Forgets a provider that takes no more part, but for what is in the window.
    pub fn forget(&mut self, provider: ProviderId) {
        self.forget_counters(provider);
        self.events.remove(&provider);
    }
}

impl History {
    fn push(&mut self, bucket: u64, value: f64) {
        match self.values.last_mut() {
            Some(last) if bucket <= self.bucket => *last = value,
            _ => {
                self.values = self.until(bucket.saturating_sub(1));
                self.values.push(value);
                self.bucket = bucket;
            }
        }
        let extra = self.values.len().saturating_sub(HISTORY);
        self.values.drain(..extra);
    }

    /// The values up to a bucket.
    fn until(&self, bucket: u64) -> Vec<f64> {
        let mut values = self.values.clone();
        let gap = usize::try_from(bucket.saturating_sub(self.bucket)).unwrap_or(usize::MAX).min(HISTORY);
        values.extend(values.last().copied().into_iter().flat_map(|last| std::iter::repeat_n(last, gap)));
        values.drain(..values.len().saturating_sub(HISTORY));
        values
    }
}

#[cfg(test)]
mod tests;
