//! Perfetto's own format: protobuf packets with track events.
//!
//! Packets come in the order of the records; readers put them into the order of their times. Memory holds
//! names, tracks, strings that were interned, and asynchronous operations that are open.
//= docs/perfetto.md#document

mod exported;
mod interned;
mod losses;
pub(crate) mod messages;
mod odd;
mod profile;
pub(crate) mod published;
mod scheduling;
mod sharing;
mod track_event;
mod tracks;

use crate::export::flows::Flows;
use crate::export::jobs::Jobs;
use crate::export::losses::Losses;
use crate::export::numbers::{LONG_NUMBERS, TAKEN_NUMBERS, ZERO_NUMBERS, short, thread_number};
use crate::export::odd::OddSlices;
use crate::filter::{Filter, Selected};
use crate::output::Output;
use crate::{ConvertError, Summary, source};
use interned::Interned;
use messages::*;
use prost::Message;
use sharing::Sharing;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use trace_format::kernel_object::{TYPE_CHANNEL, TYPE_PROCESS, TYPE_THREAD};
use trace_format::units::Koid;
use trace_model::{Odd, OddFinder};
use trace_reader::{
    Arguments, Event, Item, MANAGER, Mark, Names, Resolved, Text, TextKey, Thread, Time, Value,
};
use track_event::{End, Fields, packet};
use tracks::{GLOBAL, Tracks};

/// Number of bytes to collect before they are written.
const FLUSH_BYTES: usize = 64 << 10;
/// Maximum size of records that wait for the time of the first event.
const MAX_EARLY_BYTES: usize = 16 << 20;
/// All packets are of one sequence.
const SEQUENCE: u8 = 1;
/// The field of a packet in a trace.
const PACKET: u8 = 1;
const WALL_CLOCK: &str = "wall_clock_ns";

/// Options of a conversion.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Selects events.
    pub filter: Filter,
    /// The threads that convert.
    pub jobs: Jobs,
    /// What is odd in the archive, if that is known. Otherwise the conversion finds it, and fails with
    /// [`ConvertError::Odd`] if there is anything.
    pub odd: Option<Odd>,
}

/// The remark about log entries.
const LOGS_WITHOUT_CLOCK: &str =
    "log entries were written as instants, because the trace does not have the wall clock";

/// Converts an archive in memory.
///
/// # Errors
/// As [`convert_with`], but for [`ConvertError::Odd`].
pub fn convert(archive: &[u8], output: impl Write, filter: Filter) -> Result<Summary, ConvertError> {
    let odd = Some(Odd::find_in(archive, OddFinder::default())?);
    convert_with(archive, output, Options { filter, odd, ..Options::default() })
}

/// Converts an archive.
///
/// # Errors
/// The input is no archive or cannot be read, or the output cannot be written.
pub fn convert_with(
    mut input: impl Read,
    mut output: impl Write,
    options: Options,
) -> Result<Summary, ConvertError> {
    write(&mut input, &mut output, options)
}

fn write(input: &mut dyn Read, output: &mut dyn Write, options: Options) -> Result<Summary, ConvertError> {
    let Options { filter, jobs, odd } = options;
    let finder = odd.is_none().then(OddFinder::default);
    let mut exporter = Exporter {
        output,
        bytes: Output::default(),
        sharing: (jobs.threads > 1).then(|| Sharing::new(jobs)),
        selection: Selected::new(filter),
        odd: odd.filter(|odd| !odd.is_empty()).map(|odd| Box::new(OddSlices::new(odd))),
        tracks: Tracks::default(),
        interned: Interned::default(),
        flows: Flows::default(),
        losses: Losses::default(),
        event: Output::default(),
        samples: profile::Samples::default(),
        clock: None,
        logs_without_clock: 0,
        last: None,
        early: Vec::new(),
        early_bytes: 0,
        skipped: BTreeMap::new(),
        events: 0,
    };
    let end = source::for_each_unless_odd(input, finder, |record| {
        exporter.record(record);
        exporter.flush_if_full()
    })?;
    exporter.release(0);
    exporter.write_odd().and_then(|()| exporter.finish()).map_err(ConvertError::Write)?;
    let mut summary = end.summary(exporter.events, exporter.skipped);
    let Tracks { long_numbers, zero_numbers, taken_numbers, .. } = exporter.tracks;
    summary.add_remarks([
        (LONG_NUMBERS, long_numbers),
        (ZERO_NUMBERS, zero_numbers),
        (TAKEN_NUMBERS, taken_numbers),
        (LOGS_WITHOUT_CLOCK, exporter.logs_without_clock),
    ]);
    Ok(summary)
}

struct Exporter<W> {
    output: W,
    /// Packets. If others make those of events, what comes before, between and behind these.
    bytes: Output,
    /// Other threads that make the packets of events.
    sharing: Option<Sharing>,
    selection: Selected,
    /// Slices that are written last.
    odd: Option<Box<OddSlices>>,
    tracks: Tracks,
    interned: Interned,
    flows: Flows,
    losses: Losses,
    /// The fields of an event whose packet is not begun yet.
    event: Output,
    samples: profile::Samples,
    /// A time of the trace, and the wall clock then.
    clock: Option<(u64, u64)>,
    logs_without_clock: u64,
    /// The time of the last event, for records without one.
    last: Option<u64>,
    /// Objects before the first event, whose time they get.
    early: Vec<Early>,
    early_bytes: usize,
    skipped: BTreeMap<&'static str, u64>,
    events: u64,
}

/// Events that are written and that Perfetto does not show.
const TOO_LATE: &str = "events later than 2^63 nanoseconds, which Perfetto drops";

/// The parts of a packet whose time is not known yet.
struct Early {
    event: Vec<u8>,
    ending: Ending,
}

/// What the packet of an event ends with: the strings that it is the first to use, and its flags.
struct Ending {
    interned: Vec<u8>,
    flags: u32,
}

impl End for Ending {
    fn end(&mut self, output: &mut Output) -> u32 {
        if !self.interned.is_empty() {
            output.bytes_field(12, &self.interned);
        }
        self.flags
    }
}

impl<W: Write> Exporter<W> {
    /// Writes what was collected, or gives it to others, if there is much of it.
    #[inline]
    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.sharing.is_some() {
            return self.give_if_full();
        }
        if self.bytes.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(self.bytes.bytes())?;
        self.bytes.clear();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.give_all()?;
        self.flush()?;
        self.output.flush()
    }

    fn skip(&mut self, kind: &'static str) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    fn packet(&mut self, packet: &TracePacket) {
        self.bytes.bytes_field(PACKET, &packet.encode_to_vec());
    }

    /// Writes the description of a track, and returns its number.
    fn describe(&mut self, descriptor: TrackDescriptor) -> u64 {
        let track = descriptor.uuid.unwrap_or(GLOBAL);
        self.packet(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE.into()),
            track_descriptor: Some(Box::new(descriptor)),
            ..TracePacket::default()
        });
        track
    }

    /// Writes the descriptions that the first use of a track requires, and returns its number.
    fn described(&mut self, (track, new): (u64, impl IntoIterator<Item = TrackDescriptor>)) -> u64 {
        new.into_iter().for_each(|descriptor| _ = self.describe(descriptor));
        track
    }

    /// Writes the event whose fields are there, with the strings that it is the first to use.
    fn track_event(&mut self, timestamp: u64) {
        self.track_event_at(Some(timestamp));
    }

    /// The same; without a time, when that of the first event is known.
    fn track_event_at(&mut self, timestamp: Option<u64>) {
        let mut ending = self.interned.ending();
        let event = self.event.bytes();
        match timestamp {
            Some(timestamp) => {
                packet(&mut self.bytes, timestamp, &mut ending, |fields, _| fields.0.slice(event));
            }
            None => {
                self.early_bytes += event.len() + ending.interned.len();
                self.early.push(Early { event: event.to_vec(), ending });
            }
        }
        self.event.clear();
    }

    /// Sets the time of a record. Records before the first time are written now.
    fn release(&mut self, at: u64) {
        if self.last.is_some() {
            return;
        }
        self.last = Some(at);
        for Early { event, mut ending } in std::mem::take(&mut self.early) {
            packet(&mut self.bytes, at, &mut ending, |fields, _| fields.0.slice(&event));
        }
    }

    /// Sets the time of an event; following records without a time get the same.
    #[inline]
    fn pass(&mut self, at: u64) {
        if self.last.is_none() {
            self.release(at);
        }
        self.last = Some(at);
        if at > i64::MAX as u64 {
            self.skip(TOO_LATE);
        }
    }

    fn record(&mut self, record: &Resolved<'_>) {
        let names = record.names;
        let lost = self.losses.record(record);
        match &record.item {
            Item::Event(event) => {
                if record.provider == MANAGER {
                    self.clock(event);
                }
                if Mark::of(record.provider, event).is_none() {
                    self.event(event, record);
                }
            }
            Item::Log { .. } | Item::Scheduling { .. } | Item::Profiler { .. } | Item::Blob { .. } | Item::LargeBlob { .. }
                if self.selection.keeps_record(&record.item) == Some(false) => {}
            Item::Log { time, thread, message } => self.log(*time, *thread, *message, names),
            Item::KernelObject { object_type: TYPE_PROCESS, koid, name, .. } => {
                let descriptor = self.tracks.rename_process(*koid, *name);
                self.describe(descriptor);
            }
            Item::KernelObject { object_type: TYPE_THREAD, koid, name, .. } => {
                if let Some(process) = names.process_of(*koid) {
                    let thread = Thread { process, thread: *koid };
                    let track = self.thread_track(thread, names);
                    let descriptor = self.tracks.rename_thread(track, thread, *name);
                    self.describe(descriptor);
                }
            }
            Item::Scheduling { time, kind, arguments } => {
                self.release(time.nanos().0);
                if !scheduling::write(&mut self.bytes, time.nanos().0, kind, arguments, names) {
                    self.skip("fiber switches");
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
            Item::ProviderEvent { .. } => self.skip("program events"),
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
            // Used through the names, or by the next event.
            | Item::Function(_)
            | Item::FurtherArguments(_)
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
        let is_new = self.clock.is_none();
        let Some(Value::Uint64(wall)) = event.arguments.find(WALL_CLOCK).filter(|_| is_new) else {
            return;
        };
        self.clock = Some((event.time.nanos().0, wall));
        let clock = |id, nanos| Clock { clock_id: Some(id), timestamp: Some(nanos), ..Clock::default() };
        self.packet(&TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock(CLOCK_BOOTTIME, event.time.nanos().0), clock(CLOCK_REALTIME, wall)],
                ..ClockSnapshot::default()
            }),
            trusted_packet_sequence_id: Some(SEQUENCE.into()),
            ..TracePacket::default()
        });
    }

    #[inline]
    fn thread_track(&mut self, thread: Thread, names: &Names) -> u64 {
        match self.tracks.known_thread(thread) {
            Some(track) => track,
            None => self.new_thread(thread, names),
        }
    }

    #[cold]
    fn new_thread(&mut self, thread: Thread, names: &Names) -> u64 {
        let new = self.tracks.thread(thread, names);
        self.described(new)
    }

    /// Begins an event that has a name.
    fn begin(&mut self, kind: Option<i32>, track: u64, category: Text<'_>, name: Text<'_>) {
        let category = self.interned.category(category, TextKey::NONE);
        let name = self.interned.name(name, TextKey::NONE);
        let mut fields = Fields(&mut self.event);
        fields.begin(kind, track);
        fields.named(category, name);
    }

    fn annotation(&mut self, name: Text<'_>, value: &Value<'_>, key: TextKey) {
        let name = self.interned.argument(name, key);
        Fields(&mut self.event).annotation(name, value);
    }

    fn annotations(&mut self, arguments: &Arguments<'_>) {
        for (name, value, [key, _]) in arguments.keyed() {
            self.annotation(name, &value, key);
        }
    }

    //= docs/perfetto.md#what-other-importers-drop
    fn log(&mut self, time: Time, thread: Thread, message: Text<'_>, names: &Names) {
        let at = time.nanos().0;
        self.pass(at);
        self.events += 1;
        let Some(wall) = self.clock.map(|(then, wall)| wall.wrapping_add(at).wrapping_sub(then)) else {
            self.logs_without_clock += 1;
            self.thread_track(thread, names);
            // On the thread's own, it would take the parts of flows behind it.
            let new = self.tracks.log(thread);
            let track = self.described(new);
            self.begin(Some(TYPE_INSTANT), track, Text(b"log"), Text(b"log"));
            self.annotation(Text(b"message"), &Value::String(message), TextKey::NONE);
            return self.track_event(at);
        };
        let event = LogEvent {
            pid: Some(short(thread.process) as i32),
            tid: Some(thread_number(thread) as i32),
            timestamp: Some(wall),
            tag: Some("trace".to_owned()),
            prio: Some(LOG_PRIO_INFO),
            message: Some(message.to_str().into_owned()),
        };
        self.packet(&TracePacket {
            timestamp: Some(at),
            trusted_packet_sequence_id: Some(SEQUENCE.into()),
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
        let track = whose.map_or(GLOBAL, |(thread, _)| self.thread_track(thread, names));
        self.begin(Some(TYPE_INSTANT), track, Text(category.as_bytes()), name);
        whose.iter().for_each(|(_, arguments)| self.annotations(arguments));
        if !payload.is_empty() {
            self.annotation(Text(b"base64"), &Value::Blob(payload), TextKey::NONE);
        }
        self.events += 1;
        self.track_event_at(self.last);
    }
}

#[cfg(test)]
pub(crate) mod tests;
