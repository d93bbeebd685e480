//! Perfetto's own format: protobuf packets with track events.
//!
//! Packets come in the order of the records; readers put them into the order of their times. Memory holds
//! names, tracks, strings that were interned, and asynchronous operations that are open.
//= docs/perfetto.md#document

mod interned;
mod losses;
pub(crate) mod messages;
mod profile;
pub(crate) mod published;
mod scheduling;
mod track_event;
mod tracks;

use crate::filter::Filter;
use crate::flows::{Begin, Flows, Part};
use crate::losses::Losses;
use crate::{ConvertError, Summary, source};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interned::Interned;
use messages::*;
use prost::Message;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use trace_format::event::EventKind;
use trace_format::kernel_object::{TYPE_CHANNEL, TYPE_PROCESS, TYPE_THREAD};
use trace_format::units::{Koid, ProviderId};
use trace_reader::{Arguments, Event, Item, Names, Resolved, Text, TextKey, Thread, Time, Value};
use track_event::{Encoder, Packet};
use tracks::Tracks;

/// Number of bytes to collect before they are written.
const FLUSH_BYTES: usize = 64 << 10;
/// Maximum size of records that wait for the time of the first event.
const MAX_EARLY_BYTES: usize = 16 << 20;
/// All packets are of one sequence.
const SEQUENCE: u32 = 1;
/// The field of a packet in a trace: number 1, with a length.
const PACKET_TAG: u8 = 0x0a;
/// The manager's own provider, which records the wall clock.
const MANAGER: ProviderId = ProviderId(0);
const WALL_CLOCK: &str = "wall_clock_ns";

/// Converts an archive.
///
/// # Errors
/// The input is no archive or cannot be read, or the output cannot be written.
pub fn convert(input: impl Read, output: impl Write, filter: Filter) -> Result<Summary, ConvertError> {
    let mut exporter = Exporter {
        output,
        bytes: Vec::with_capacity(2 * FLUSH_BYTES),
        filter,
        tracks: Tracks::default(),
        interned: Interned::default(),
        flows: Flows::default(),
        losses: Losses::default(),
        encoder: Encoder::default(),
        samples: profile::Samples::default(),
        last_thread: None,
        is_fresh: true,
        has_clock: false,
        last: None,
        early: Vec::new(),
        early_bytes: 0,
        skipped: BTreeMap::new(),
        events: 0,
    };
    let end = source::for_each(input, |record| {
        exporter.record(record);
        exporter.flush(FLUSH_BYTES)
    })?;
    exporter.release(0);
    exporter.flush(1).and_then(|()| exporter.output.flush()).map_err(ConvertError::Write)?;
    Ok(end.summary(exporter.events, exporter.skipped))
}

struct Exporter<W> {
    output: W,
    bytes: Vec<u8>,
    filter: Filter,
    tracks: Tracks,
    interned: Interned,
    flows: Flows,
    losses: Losses,
    encoder: Encoder,
    samples: profile::Samples,
    /// The thread of the last event, and its track.
    last_thread: Option<(Thread, u64)>,
    /// The reader has nothing interned.
    is_fresh: bool,
    has_clock: bool,
    /// The time of the last event, for records without one.
    last: Option<u64>,
    /// Objects before the first event, whose time they get.
    early: Vec<Early>,
    early_bytes: usize,
    skipped: BTreeMap<&'static str, u64>,
    events: u64,
}

/// The parts of a packet whose time is not known yet.
struct Early {
    flags: u32,
    event: Vec<u8>,
    interned: Vec<u8>,
}

impl<W: Write> Exporter<W> {
    fn flush(&mut self, at_least: usize) -> io::Result<()> {
        if self.bytes.len() >= at_least {
            self.output.write_all(&self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }

    fn skip(&mut self, kind: &'static str) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    fn packet(&mut self, packet: &TracePacket) {
        self.bytes.push(PACKET_TAG);
        // There is always room in a vector.
        let _ = packet.encode_length_delimited(&mut self.bytes);
    }

    fn describe(&mut self, descriptor: TrackDescriptor) {
        self.packet(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(Box::new(descriptor)),
            ..TracePacket::default()
        });
    }

    /// Writes the encoded event, with the strings that it is the first to use.
    fn track_event(&mut self, timestamp: u64) {
        self.track_event_at(Some(timestamp));
    }

    /// The same; without a time, when that of the first event is known.
    fn track_event_at(&mut self, timestamp: Option<u64>) {
        let mut flags = SEQ_NEEDS_INCREMENTAL_STATE;
        if std::mem::take(&mut self.is_fresh) {
            flags |= SEQ_INCREMENTAL_STATE_CLEARED;
        }
        let interned = self.interned.take_new();
        let event = self.encoder.event();
        match timestamp {
            Some(timestamp) => {
                let packet = Packet { sequence: SEQUENCE, flags, event, interned: &interned };
                packet.write(&mut self.bytes, timestamp);
            }
            None => {
                self.early_bytes += event.len() + interned.len();
                self.early.push(Early { flags, event: event.to_vec(), interned });
            }
        }
        if self.interned.is_full() {
            self.interned = Interned::default();
            self.is_fresh = true;
        }
    }

    /// Sets the time of a record. Records before the first time are written now.
    fn release(&mut self, at: u64) {
        if self.last.is_some() {
            return;
        }
        self.last = Some(at);
        for Early { flags, event, interned } in std::mem::take(&mut self.early) {
            let packet = Packet { sequence: SEQUENCE, flags, event: &event, interned: &interned };
            packet.write(&mut self.bytes, at);
        }
    }

    /// Sets the time of an event; following records without a time get the same.
    fn pass(&mut self, at: u64) {
        self.release(at);
        self.last = Some(at);
    }

    fn record(&mut self, record: &Resolved<'_>) {
        let names = record.names;
        let lost = self.losses.record(record);
        match &record.item {
            Item::Event(event) => {
                if record.provider == MANAGER {
                    self.clock(event);
                }
                self.event(event, names);
            }
            Item::Log { time, thread, message } => self.log(*time, *thread, *message),
            Item::KernelObject { object_type: TYPE_PROCESS, koid, name, .. } => {
                let descriptor = self.tracks.rename_process(*koid, *name);
                self.describe(descriptor);
            }
            Item::KernelObject { object_type: TYPE_THREAD, koid, name, .. } => {
                if let Some(process) = names.process_of(*koid) {
                    let thread = Thread { process, thread: *koid };
                    self.thread_track(thread, names);
                    let descriptor = self.tracks.rename_thread(thread, *name);
                    self.describe(descriptor);
                }
            }
            Item::Scheduling { time, kind, arguments } => {
                self.release(time.nanos().0);
                match scheduling::bundle(time.nanos().0, kind, arguments, names) {
                    Some(bundle) => self.packet(&TracePacket {
                        trusted_packet_sequence_id: Some(SEQUENCE),
                        ftrace_events: Some(Box::new(bundle)),
                        ..TracePacket::default()
                    }),
                    None => self.skip("fiber switches"),
                }
            }
            Item::Blob { name, payload, .. } => self.object(*name, "blob", payload, None, names),
            Item::UserspaceObject { process, name, arguments, .. } => {
                self.object(
                    *name,
                    "object",
                    &[],
                    Some((Thread { process: *process, ..Thread::default() }, arguments)),
                    names,
                );
            }
            Item::LargeBlob { category, name, event, payload, .. } => match event {
                Some((time, thread, arguments)) => {
                    self.pass(time.nanos().0);
                    self.object(*name, &category.to_str(), payload, Some((*thread, arguments)), names);
                }
                None => self.object(*name, "blob", payload, None, names),
            },
            Item::LargeBlobPart { .. } => self.skip("further pieces of large blobs"),
            // What the manager says about providers.
            Item::KernelObject { object_type: TYPE_CHANNEL, koid: Koid(0), .. } if record.provider == MANAGER => {}
            Item::KernelObject { .. } => self.skip("kernel objects that are no process or thread"),
            Item::Loss(_) => lost.iter().for_each(|lost| self.lost(lost)),
            Item::ProviderEvent { .. } => self.skip("provider events"),
            Item::Profiler { time, thread, kind } => {
                self.release(time.nanos().0);
                if let Some(packet) = self.samples.record(time.nanos().0, *thread, kind, names) {
                    self.thread_track(*thread, names);
                    self.packet(&packet);
                }
            }
            Item::Unknown { .. } => self.skip("records of unknown type"),
            // Only of use to `trace check`.
            Item::Ledger(_)
            // Used through the names.
            | Item::Function(_)
            | Item::Magic
            | Item::ProviderInfo { .. }
            | Item::ProviderSection
            | Item::Initialization { .. }
            | Item::String { .. }
            | Item::Thread { .. }
            | Item::Malformed { .. }
            | Item::Damage { .. } => {}
        }
    }

    /// The wall clock at a time of the trace.
    //= docs/perfetto.md#clock
    fn clock(&mut self, event: &Event<'_>) {
        let Some(Value::Uint64(wall)) = event.arguments.find(WALL_CLOCK).filter(|_| !self.has_clock) else {
            return;
        };
        self.has_clock = true;
        let clock = |id, nanos| Clock { clock_id: Some(id), timestamp: Some(nanos), ..Clock::default() };
        self.packet(&TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock(CLOCK_BOOTTIME, event.time.nanos().0), clock(CLOCK_REALTIME, wall)],
                ..ClockSnapshot::default()
            }),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..TracePacket::default()
        });
    }

    fn thread_track(&mut self, thread: Thread, names: &Names) -> u64 {
        if let Some((_, track)) = self.last_thread.filter(|(last, _)| *last == thread) {
            return track;
        }
        let (track, new) = self.tracks.thread(thread, names);
        new.into_iter().for_each(|descriptor| self.describe(descriptor));
        self.last_thread = Some((thread, track));
        track
    }

    /// Begins an event that has a name.
    fn begin(&mut self, kind: Option<i32>, track: u64, category: Text<'_>, name: Text<'_>) {
        self.begin_keyed(kind, track, (category, name), <_>::default());
    }

    #[inline]
    fn begin_keyed(
        &mut self,
        kind: Option<i32>,
        track: u64,
        (category, name): (Text<'_>, Text<'_>),
        keys: (TextKey, TextKey),
    ) {
        self.encoder.begin(kind, track);
        let (category, name) = (self.interned.category(category, keys.0), self.interned.name(name, keys.1));
        self.encoder.named(category, name);
    }

    #[inline]
    fn annotations(&mut self, arguments: &Arguments<'_>) {
        for (name, value, [key, _]) in arguments.keyed() {
            let name = self.interned.argument(name, key);
            self.encoder.annotation(name, &value, |bytes| STANDARD.encode(bytes));
        }
    }

    //= docs/perfetto.md#events
    fn event(&mut self, event: &Event<'_>, names: &Names) {
        if !self.filter.keeps(event.category.as_bytes(), event.name.as_bytes()) {
            return;
        }
        let at = event.time.nanos().0;
        self.pass(at);
        let Event { category, name, .. } = *event;
        self.events += 1;
        match event.kind {
            EventKind::Unknown { .. } => {
                self.events -= 1;
                self.skip("events of unknown type");
            }
            EventKind::Counter { id } => self.counter(event, id, names),
            EventKind::AsyncBegin { id } | EventKind::AsyncInstant { id } | EventKind::AsyncEnd { id } => {
                let kind = match event.kind {
                    EventKind::AsyncBegin { .. } => TYPE_SLICE_BEGIN,
                    EventKind::AsyncEnd { .. } => TYPE_SLICE_END,
                    _ => TYPE_INSTANT,
                };
                self.thread_track(event.thread, names);
                let (track, new) = self.tracks.operation(event, id, kind);
                new.into_iter().for_each(|descriptor| self.describe(descriptor));
                self.begin_keyed(Some(kind), track, (category, name), event.keys);
                self.annotations(&event.arguments);
                self.track_event(at);
            }
            EventKind::FlowBegin { id } | EventKind::FlowStep { id } | EventKind::FlowEnd { id } => {
                let phase = match event.kind {
                    EventKind::FlowBegin { .. } => b's',
                    EventKind::FlowStep { .. } => b't',
                    _ => b'f',
                };
                let Part { number, names: begun, again } = self.flows.part(event, id);
                let (category, name) =
                    begun.as_deref().map_or((category, name), |names| (names.category(), names.name()));
                if let Some(Begin { thread, time }) = again {
                    let track = self.thread_track(thread, names);
                    self.begin(None, track, category, name);
                    self.encoder.flow(b's', number);
                    self.track_event(time.nanos().0);
                }
                let track = self.thread_track(event.thread, names);
                self.begin(None, track, category, name);
                self.annotations(&event.arguments);
                self.encoder.flow(phase, number);
                self.track_event(at);
            }
            EventKind::Instant { .. } | EventKind::DurationBegin | EventKind::DurationEnd => {
                let kind = match event.kind {
                    EventKind::DurationBegin => TYPE_SLICE_BEGIN,
                    EventKind::DurationEnd => TYPE_SLICE_END,
                    _ => TYPE_INSTANT,
                };
                let track = self.thread_track(event.thread, names);
                self.begin_keyed(Some(kind), track, (category, name), event.keys);
                self.annotations(&event.arguments);
                self.track_event(at);
            }
            EventKind::DurationComplete { end } => {
                let track = self.thread_track(event.thread, names);
                let end = Time { ticks: end, ..event.time }.nanos().0.max(at);
                // Whole microseconds have a more compact event.
                let is_whole = (end - at).is_multiple_of(1000);
                let kind = (!is_whole).then_some(TYPE_SLICE_BEGIN);
                self.begin_keyed(kind, track, (category, name), event.keys);
                self.annotations(&event.arguments);
                if is_whole {
                    self.encoder.complete((end - at) / 1000);
                    return self.track_event(at);
                }
                self.track_event(at);
                self.encoder.begin(Some(TYPE_SLICE_END), track);
                self.track_event(end);
            }
        }
    }

    /// A sample for each argument that is a number.
    fn counter(&mut self, event: &Event<'_>, id: u64, names: &Names) {
        self.thread_track(event.thread, names);
        let at = event.time.nanos().0;
        let group = self.counter_group(event, id);
        for (argument, value) in event.arguments.iter() {
            let is_number = matches!(
                value,
                Value::Int32(_) | Value::Uint32(_) | Value::Int64(_) | Value::Uint64(_) | Value::Double(_)
            );
            if !is_number {
                self.skip("counter arguments that are no numbers");
                continue;
            }
            let (track, new) = self.tracks.counter(event, argument, id, group);
            new.into_iter().for_each(|descriptor| self.describe(descriptor));
            self.encoder.begin(Some(TYPE_COUNTER), track);
            match value {
                Value::Int32(value) => self.encoder.count(value.into()),
                Value::Uint32(value) => self.encoder.count(value.into()),
                Value::Int64(value) => self.encoder.count(value),
                Value::Uint64(value) => match i64::try_from(value) {
                    Ok(value) => self.encoder.count(value),
                    Err(_) => self.encoder.count_double(value as f64),
                },
                Value::Double(value) => self.encoder.count_double(value),
                _ => {}
            }
            self.track_event(at);
        }
    }

    /// The track that the samples of a counter with several series, or with an id, are below.
    //= docs/perfetto.md#tracks
    fn counter_group(&mut self, event: &Event<'_>, id: u64) -> Option<u64> {
        if id == 0 && event.arguments.iter().nth(1).is_none() {
            return None;
        }
        let (group, new) = self.tracks.counter_group(event);
        new.into_iter().for_each(|descriptor| self.describe(descriptor));
        Some(group)
    }

    //= docs/perfetto.md#what-other-importers-drop
    fn log(&mut self, time: Time, thread: Thread, message: Text<'_>) {
        let at = time.nanos().0;
        self.pass(at);
        self.events += 1;
        let event = LogEvent {
            pid: Some(thread.process.0 as i32),
            tid: Some(thread.thread.0 as i32),
            timestamp: Some(at),
            tag: Some("trace".to_owned()),
            prio: Some(LOG_PRIO_INFO),
            message: Some(message.to_str().into_owned()),
        };
        self.packet(&TracePacket {
            timestamp: Some(at),
            trusted_packet_sequence_id: Some(SEQUENCE),
            android_log: Some(Box::new(AndroidLogPacket { events: vec![event] })),
            ..TracePacket::default()
        });
    }

    fn has_no_room_for_early(&self) -> bool {
        self.last.is_none() && self.early_bytes > MAX_EARLY_BYTES
    }

    /// A record with a name and perhaps bytes, written as an instant: at the time of the previous event if it
    /// has no time of its own; before the first event, at that one's time.
    //= docs/perfetto.md#what-other-importers-drop
    fn object(
        &mut self,
        name: Text<'_>,
        category: &str,
        payload: &[u8],
        whose: Option<(Thread, &Arguments<'_>)>,
        names: &Names,
    ) {
        if self.has_no_room_for_early() {
            return self.skip("blobs and objects before the first event, beyond 16 MiB");
        }
        let track = whose.map_or(tracks::GLOBAL, |(thread, _)| self.thread_track(thread, names));
        self.begin(Some(TYPE_INSTANT), track, Text(category.as_bytes()), name);
        whose.iter().for_each(|(_, arguments)| self.annotations(arguments));
        if !payload.is_empty() {
            let argument = self.interned.argument(Text(b"base64"), TextKey::NONE);
            self.encoder.annotation(argument, &Value::Blob(payload), |bytes| STANDARD.encode(bytes));
        }
        self.events += 1;
        self.track_event_at(self.last);
    }
}

#[cfg(test)]
mod tests;
