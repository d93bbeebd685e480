//! Slices that are written last in Chrome's dialect, on lanes: begins and ends, the outer ones first.
//!
//! Of events with one time, Perfetto's processor takes ends first, then complete events that last, then
//! others in the order of the file. So slices that last have begins and ends, and those that take no time
//! are complete events. A lane is a further thread. Operations that overlap others of their id have ids of
//! their own.
//= docs/meaning.md#overlap

use super::event::{named, whole};
use super::{Exporter, FlowPart};
use crate::export::numbers::is_replaced;
use crate::export::odd::{Lane, OperationPart, WriteOdd, Written};
use crate::{THREAD_DUR, THREAD_TS};
use foldhash::{HashMap, HashSet};
use std::io::{self, Write};
use trace_format::event::EventKind;
use trace_format::scopes::{END_ARGUMENT, Ending, LASTED_ARGUMENT};
use trace_format::units::Koid;
use trace_model::{Interval, token};
use trace_reader::sorter::changed;
use trace_reader::{Event, Text, Thread};

/// The numbers of threads that are lanes begin here. No thread of Linux has one of them.
const FIRST_LANE: u64 = 1 << 31;

/// Whether the exporter replaces the number of a thread, or could give it to a lane.
#[inline]
pub(super) const fn is_unusual(thread: Thread) -> bool {
    is_replaced(thread) || thread.thread.0 >= FIRST_LANE
}

/// The bytes of arguments of ends whose slices are open. Those beyond are written with their begins.
const MAX_END_BYTES: usize = 8 << 20;
/// What slices are called that take no time and are in another one for Perfetto's processor.
const MISPLACED: &str = "slices without length at the end of the one they are in, or behind another one of their time: \
                         Perfetto shows them in another slice";
/// What parts of flows are called that come before the next begin or end.
const MISPLACED_FLOWS: &str =
    "parts of flows behind slices without length, to which they belong for Perfetto";

/// The time of the thread's own clock at the end of a complete event, in nanoseconds.
fn end_of_thread_times(event: &Event<'_>) -> Option<u64> {
    if !matches!(event.kind, EventKind::DurationComplete { .. }) || event.arguments.is_empty() {
        return None;
    }
    let [begin, duration] = [THREAD_TS, THREAD_DUR].map(|name| whole(&event.arguments.find(name)?));
    begin?.checked_add(duration?)
}

/// What is written of an event: texts, arguments, and what stands behind these.
#[derive(Clone, Copy, Default)]
struct Parts<'a> {
    texts: &'a [u8],
    /// Without their braces.
    arguments: &'a [u8],
    others: &'a [u8],
    /// What stands behind the end of a complete event.
    at_end: &'a [u8],
}

impl<'a> Parts<'a> {
    fn encode(&self) -> Vec<u8> {
        let Self { texts, arguments, others, at_end } = self;
        let lengths =
            [texts.len(), arguments.len(), others.len()].map(|length| (length as u64).to_le_bytes());
        [lengths.as_flattened(), texts, arguments, others, at_end].concat()
    }

    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (lengths, rest) = bytes.split_first_chunk::<24>()?;
        let [texts, arguments, others] = lengths.as_chunks().0 else { return None };
        let length = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) as usize;
        let (texts, rest) = rest.split_at_checked(length(texts))?;
        let (arguments, rest) = rest.split_at_checked(length(arguments))?;
        let (others, at_end) = rest.split_at_checked(length(others))?;
        Some(Self { texts, arguments, others, at_end })
    }
}

/// Writes what was kept.
struct Writer<'a, W> {
    exporter: &'a mut Exporter<W>,
    lanes: HashMap<Lane, Thread>,
    slices: HashMap<Lane, Slices>,
    /// Bytes of the ends of open slices.
    kept: usize,
    misplaced: u64,
    misplaced_flows: u64,
    /// Lanes that are new have numbers from here on.
    next: u64,
    /// Open operations: their threads, texts and ids.
    operations: HashMap<u64, (Thread, Vec<u8>, u64)>,
    /// Their processes and ids.
    open: HashSet<(Koid, u64)>,
}

/// A slice that is open on a lane.
struct Open {
    end: u64,
    is_instant: bool,
    /// The arguments of the end, and the members of the event behind them. Empty if there was no room.
    arguments: Vec<u8>,
    others: Vec<u8>,
}

/// What a reader has of a lane.
#[derive(Default)]
struct Slices {
    open: Vec<Open>,
    /// When the last slice ended, if that takes no time and nothing has begun or ended since.
    instant: Option<u64>,
}

impl<W: Write> Exporter<W> {
    /// Keeps a part of an odd slice.
    pub(super) fn keep_odd(&mut self, event: &Event<'_>, is_kept: bool) {
        if let Some(part) = self.flow_part(event) {
            self.events.tally.rate(event.time.rate);
            self.events.tally.events += 1;
            return self.keep_flow(event, &part);
        }
        let Some(odd) = &mut self.odd else { return };
        let events = &mut self.events;
        let start = events.json.bytes().len();
        events.texts(event);
        let texts = events.json.bytes().len();
        let others = events.arguments(event);
        let written = events.json.bytes();
        let (arguments, others) = written[texts..].split_at(written.len() - texts - others);
        let arguments = arguments.strip_prefix(b",\"args\":{").unwrap_or_default();
        let arguments = arguments.strip_suffix(b"}").unwrap_or_default();
        let is_end = matches!(event.kind, EventKind::DurationEnd);
        let texts = if is_end { &[] } else { &written[start..texts] };
        let mut parts = Parts { texts, arguments, others, at_end: &[] };
        let at_end =
            end_of_thread_times(event).map(|end| format!(",\"tts\":{}.{:03}", end / 1000, end % 1000));
        if let Some(at_end) = &at_end {
            parts.at_end = at_end.as_bytes();
        }
        odd.push(event, &parts.encode(), is_kept);
        let bytes = written.len() - start;
        events.json.take_back(bytes);
        events.tally.rate(event.time.rate);
        events.tally.events += u64::from(is_kept);
    }

    /// Keeps a part of a flow, with the time, the thread and the arguments of an event.
    pub(super) fn keep_flow(&mut self, event: &Event<'_>, part: &FlowPart) {
        let Some(odd) = &mut self.odd else { return };
        let events = &mut self.events;
        let start = events.json.bytes().len();
        events.texts(&named(event, part.names.as_deref()));
        events.phase(event, part.number);
        events.arguments(event);
        let written = &events.json.bytes()[start..];
        odd.push_flow(event.thread, event.time.nanos().0, written);
        let bytes = written.len();
        events.json.take_back(bytes);
    }

    /// Writes all odd slices. Returns how many more events are kept than were counted.
    pub(super) fn write_odd(&mut self) -> io::Result<i64> {
        let Some(odd) = self.odd.take() else { return Ok(0) };
        self.in_order()?;
        let mut writer = Writer {
            exporter: self,
            lanes: HashMap::default(),
            slices: HashMap::default(),
            kept: 0,
            misplaced: 0,
            misplaced_flows: 0,
            next: FIRST_LANE,
            operations: HashMap::default(),
            open: HashSet::default(),
        };
        let Written { skipped, more_ends } = odd.finish(&mut writer)?;
        let misplaced = [(MISPLACED, writer.misplaced), (MISPLACED_FLOWS, writer.misplaced_flows)];
        let mut lanes: Vec<(Lane, Thread)> = writer.lanes.into_iter().collect();
        lanes.sort_unstable_by_key(|(_, thread)| (thread.process, thread.thread));
        for (Lane { thread, .. }, lane) in lanes {
            if lane != thread
                && let Some(name) = self.system.threads.get(&(thread.process, thread.thread)).cloned()
            {
                self.system.name_thread(lane.process, lane.thread, &name);
            }
        }
        for (kind, count) in skipped.into_iter().chain(misplaced).filter(|(_, count)| *count > 0) {
            *self.tally.skipped.entry(kind).or_default() += count;
        }
        Ok(more_ends)
    }
}

impl<W: Write> Writer<'_, W> {
    fn lane(&mut self, lane: Lane) -> Thread {
        if lane.number == 0 {
            return lane.thread;
        }
        if let Some(known) = self.lanes.get(&lane) {
            return *known;
        }
        // A thread of the trace may have the number.
        let numbers = (self.next..).map(|number| Thread { thread: Koid(number), ..lane.thread });
        let is_free = |new: &Thread| !self.exporter.unusual_threads.contains(new);
        let new = numbers.into_iter().find(is_free).unwrap_or(lane.thread);
        self.next = new.thread.0 + 1;
        self.lanes.insert(lane, new);
        new
    }

    /// An event with its texts and arguments.
    fn event(
        &mut self,
        thread: Thread,
        at: u64,
        texts: &[u8],
        phase: impl FnOnce(&mut super::event::Events),
        arguments: [&Parts<'_>; 2],
    ) -> io::Result<()> {
        let events = &mut self.exporter.events;
        events.json.raw(",{");
        if !texts.is_empty() {
            events.json.written(texts);
            events.json.raw(",");
        }
        events.json.thousandths_behind("\"ts\":", at);
        events.tally.at(at);
        events.thread(thread);
        phase(events);
        let mut is_first = true;
        for Parts { arguments, .. } in arguments.iter().filter(|parts| !parts.arguments.is_empty()) {
            events.json.raw(if std::mem::take(&mut is_first) { ",\"args\":{" } else { "," });
            events.json.written(arguments);
        }
        if !is_first {
            events.json.raw("}");
        }
        arguments.iter().for_each(|parts| events.json.written(parts.others));
        events.json.raw("}");
        self.exporter.flush_if_full()
    }
}

impl<W: Write> WriteOdd for Writer<'_, W> {
    fn begin(&mut self, lane: Lane, interval: &Interval, begin: &[u8], end: &[u8]) -> io::Result<()> {
        let thread = self.lane(lane);
        let parts = Parts::decode(begin).ok_or_else(changed)?;
        let mut of_end =
            if end.is_empty() { Parts::default() } else { Parts::decode(end).ok_or_else(changed)? };
        let is_instant = interval.is_instant();
        let Slices { open, instant } = self.slices.entry(lane).or_default();
        if is_instant {
            let is_at_end = open.last().is_some_and(|around| around.end == interval.end);
            self.misplaced += u64::from(is_at_end || *instant == Some(interval.begin));
        }
        *instant = None;
        let mut slice = Open { end: interval.end, is_instant, arguments: Vec::new(), others: Vec::new() };
        let has_end = !is_instant && interval.end != u64::MAX;
        if has_end && self.kept + of_end.arguments.len() <= MAX_END_BYTES {
            let Parts { arguments, others, .. } = std::mem::take(&mut of_end);
            self.kept += arguments.len();
            slice.arguments = arguments.to_vec();
            slice.others = [others, parts.at_end].concat();
        }
        open.push(slice);
        let phase = |events: &mut super::event::Events| {
            events.json.raw(if is_instant { ",\"ph\":\"X\",\"dur\":0.0" } else { ",\"ph\":\"B\"" });
        };
        self.event(thread, interval.begin, parts.texts, phase, [&parts, &of_end])
    }

    fn ending(&mut self, ending: Ending, lasted_ns: u64) -> Vec<u8> {
        let reason = ending.text();
        let arguments = format!("\"{END_ARGUMENT}\":\"{reason}\",\"{LASTED_ARGUMENT}\":{lasted_ns}");
        Parts { arguments: arguments.as_bytes(), ..Parts::default() }.encode()
    }

    fn end(&mut self, lane: Lane, at: u64) -> io::Result<()> {
        let Slices { open, instant } = self.slices.entry(lane).or_default();
        let Some(slice) = open.pop() else { return Ok(()) };
        *instant = slice.is_instant.then_some(at);
        self.kept -= slice.arguments.len();
        if slice.is_instant {
            return Ok(());
        }
        let thread = self.lane(lane);
        let parts = Parts { arguments: &slice.arguments, others: &slice.others, ..Parts::default() };
        self.event(thread, at, &[], |events| events.json.raw(",\"ph\":\"E\""), [&parts, &Parts::default()])
    }

    fn flow(&mut self, lane: Lane, at: u64, bytes: &[u8]) -> io::Result<()> {
        let is_misplaced = self.slices.get(&lane).is_some_and(|slices| slices.instant.is_some());
        self.misplaced_flows += u64::from(is_misplaced);
        let thread = self.lane(lane);
        self.event(thread, at, bytes, |_| (), [&Parts::default(); 2])
    }

    fn operation_begin(&mut self, number: u64, begin: &OperationPart<'_>) -> io::Result<()> {
        let OperationPart { thread, id, at, bytes } = *begin;
        let parts = Parts::decode(bytes).ok_or_else(changed)?;
        // Polls and steps refer to an operation by its id, so it keeps the id unless another open operation
        // has the same. A new id is a hash, which no operation of the file is likely to have.
        let id = match self.open.insert((thread.process, id)) {
            true => id,
            false => token(Text(&[&number.to_le_bytes()[..], parts.texts].concat())),
        };
        self.operations.insert(number, (thread, parts.texts.to_vec(), id));
        self.event(thread, at, parts.texts, |events| events.async_id("b", id), [&parts, &Parts::default()])
    }

    fn operation_instant(&mut self, number: Option<u64>, instant: &OperationPart<'_>) -> io::Result<()> {
        let OperationPart { thread, at, bytes, .. } = *instant;
        let parts = Parts::decode(bytes).ok_or_else(changed)?;
        let known = number.and_then(|number| self.operations.get(&number));
        let (process, id) = known.map_or_else(
            || (thread.process, token(Text(parts.texts))),
            |(begun_on, _, id)| (begun_on.process, *id),
        );
        let thread = Thread { process, ..thread };
        self.event(thread, at, parts.texts, |events| events.async_id("n", id), [&parts, &Parts::default()])
    }

    fn operation_end(&mut self, number: Option<u64>, end: &OperationPart<'_>) -> io::Result<()> {
        let OperationPart { thread, id, at, bytes } = *end;
        let parts = Parts::decode(bytes).ok_or_else(changed)?;
        let begun = number.and_then(|number| self.operations.remove(&number));
        let (thread, texts, id) = begun.unwrap_or_else(|| (thread, parts.texts.to_vec(), id));
        self.open.remove(&(thread.process, id));
        // Under the name of its begin, by which readers pair.
        self.event(thread, at, &texts, |events| events.async_id("e", id), [&parts, &Parts::default()])
    }
}
