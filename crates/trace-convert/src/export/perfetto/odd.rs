//! Slices that are written last, on lanes.
//!
//! Their strings are written out: numbers of strings may have changed until then.
//= docs/meaning.md#overlap

use super::Exporter;
use super::messages::{TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END};
use super::track_event::{Fields, flow_phase};
use crate::export::odd::{Lane, OddSlices, OperationPart, WriteOdd, Written};
use foldhash::HashMap;
use std::io::{self, Write};
use trace_format::event::EventKind;
use trace_format::scopes::{END_ARGUMENT, Ending, LASTED_ARGUMENT};
use trace_format::units::Koid;
use trace_model::Interval;
use trace_reader::{Event, Names, Text, Value};

/// Writes what was kept.
struct Writer<'a, W> {
    exporter: &'a mut Exporter<W>,
    lanes: HashMap<Lane, u64>,
    /// Tracks of operations that are open.
    operations: HashMap<u64, u64>,
}

impl<W: Write> Exporter<W> {
    /// Keeps a part of an odd slice: its name, category and arguments; of operations with the name in front.
    pub(super) fn keep_odd(&mut self, event: &Event<'_>, names: &Names, is_kept: bool) {
        if let EventKind::FlowBegin { id } | EventKind::FlowStep { id } | EventKind::FlowEnd { id } =
            event.kind
        {
            let part = self.flow_part(event, id, names);
            return self.keep_flow(event, part.named(event), flow_phase(event.kind), part.number);
        }
        let Some(odd) = &mut self.odd else { return };
        self.event.clear();
        if matches!(event.kind, EventKind::AsyncBegin { .. } | EventKind::AsyncInstant { .. }) {
            let name = event.name.to_str();
            self.event.piece((name.len() as u64).to_le_bytes(), 8);
            self.event.slice(name.as_bytes());
        }
        let mut fields = Fields(&mut self.event);
        if !matches!(event.kind, EventKind::DurationEnd | EventKind::AsyncEnd { .. }) {
            fields.spelled(event.category, event.name);
        }
        for (name, value) in event.arguments.iter() {
            fields.spelled_annotation(name, &value);
        }
        odd.push(event, self.event.bytes(), is_kept);
        self.event.clear();
    }

    /// Keeps a part of a flow, with the time, the thread and the arguments of an event.
    pub(super) fn keep_flow(
        &mut self,
        event: &Event<'_>,
        (category, name): (Text<'_>, Text<'_>),
        phase: u8,
        number: u64,
    ) {
        let Some(odd) = &mut self.odd else { return };
        self.event.clear();
        let mut fields = Fields(&mut self.event);
        fields.spelled(category, name);
        for (name, value) in event.arguments.iter() {
            fields.spelled_annotation(name, &value);
        }
        fields.flow(phase, number);
        odd.push_flow(event.thread, event.time.nanos().0, self.event.bytes());
        self.event.clear();
    }

    /// Writes all odd slices.
    pub(super) fn write_odd(&mut self) -> io::Result<()> {
        let Some(odd) = self.odd.take() else { return Ok(()) };
        let odd: OddSlices = *odd;
        let mut writer = Writer { exporter: self, lanes: HashMap::default(), operations: HashMap::default() };
        let Written { skipped, more_ends } = odd.finish(&mut writer)?;
        self.events = self.events.wrapping_add_signed(more_ends);
        for (kind, count) in skipped.into_iter().filter(|(_, count)| *count > 0) {
            *self.skipped.entry(kind).or_default() += count;
        }
        Ok(())
    }
}

impl<W: Write> Writer<'_, W> {
    fn step(&mut self, kind: impl Into<Option<i32>>, track: u64, at: u64, bytes: &[u8]) -> io::Result<()> {
        let event = &mut self.exporter.event;
        Fields(event).begin(kind.into(), track);
        event.slice(bytes);
        self.exporter.track_event(at);
        self.exporter.flush_if_full()
    }

    fn lane(&mut self, lane: Lane) -> u64 {
        if let Some(track) = self.lanes.get(&lane) {
            return *track;
        }
        let known = if lane.number == 0 { self.exporter.tracks.known_thread(lane.thread) } else { None };
        let track = known.unwrap_or_else(|| {
            let descriptor = self.exporter.tracks.lane(lane.thread, lane.number);
            self.exporter.describe(descriptor)
        });
        self.lanes.insert(lane, track);
        track
    }

    /// A new track for an operation, whose name is in front of the bytes.
    fn operation<'b>(&mut self, process: Koid, bytes: &'b [u8]) -> (u64, &'b [u8]) {
        let (length, bytes) = bytes.split_first_chunk().unwrap_or((&[0; 8], bytes));
        let name = bytes.split_at_checked(u64::from_le_bytes(*length) as usize);
        let (name, bytes) = name.unwrap_or((&[], bytes));
        let descriptor = self.exporter.tracks.single(&String::from_utf8_lossy(name), process);
        (self.exporter.describe(descriptor), bytes)
    }
}

impl<W: Write> WriteOdd for Writer<'_, W> {
    /// Writes the arguments of begin and end together: an end has none in Perfetto's format.
    fn begin(&mut self, lane: Lane, interval: &Interval, begin: &[u8], end: &[u8]) -> io::Result<()> {
        let track = self.lane(lane);
        self.step(TYPE_SLICE_BEGIN, track, interval.begin, &[begin, end].concat())
    }

    fn ending(&mut self, ending: Ending, lasted_ns: u64) -> Vec<u8> {
        let event = &mut self.exporter.event;
        let mut fields = Fields(event);
        let reason = Value::String(Text(ending.text().as_bytes()));
        fields.spelled_annotation(Text(END_ARGUMENT.as_bytes()), &reason);
        fields.spelled_annotation(Text(LASTED_ARGUMENT.as_bytes()), &Value::Uint64(lasted_ns));
        let bytes = event.bytes().to_vec();
        event.clear();
        bytes
    }

    fn end(&mut self, lane: Lane, at: u64) -> io::Result<()> {
        let track = self.lane(lane);
        self.step(TYPE_SLICE_END, track, at, &[])
    }

    fn flow(&mut self, lane: Lane, at: u64, bytes: &[u8]) -> io::Result<()> {
        let track = self.lane(lane);
        self.step(None, track, at, bytes)
    }

    fn operation_begin(&mut self, number: u64, begin: &OperationPart<'_>) -> io::Result<()> {
        let (track, bytes) = self.operation(begin.thread.process, begin.bytes);
        self.operations.insert(number, track);
        self.step(TYPE_SLICE_BEGIN, track, begin.at, bytes)
    }

    fn operation_instant(&mut self, number: Option<u64>, instant: &OperationPart<'_>) -> io::Result<()> {
        let bytes = instant.bytes;
        let (track, bytes) = match number.and_then(|number| self.operations.get(&number)) {
            Some(track) => {
                let (length, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], bytes));
                (*track, rest.get(u64::from_le_bytes(*length) as usize..).unwrap_or_default())
            }
            None => self.operation(instant.thread.process, bytes),
        };
        self.step(TYPE_INSTANT, track, instant.at, bytes)
    }

    fn operation_end(&mut self, number: Option<u64>, end: &OperationPart<'_>) -> io::Result<()> {
        let Some(track) = number.and_then(|number| self.operations.remove(&number)) else { return Ok(()) };
        self.step(TYPE_SLICE_END, track, end.at, end.bytes)
    }
}
