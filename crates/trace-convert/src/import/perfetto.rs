//! Perfetto's protobuf packets: track events, the kernel's events, names, logs.
//= docs/import.md#perfetto

mod batch;
mod clocks;
mod event;
mod ftrace;
mod inflating;
mod lanes;
mod packets;
mod sequence;
mod slice;
mod tracks;
mod usual;
mod wire;

use super::ImportError;
use super::hand_over::HandOver;
use super::room::{ENTRY_BYTES, Room};
use super::waiting::Waiting;
use super::writer::{Writer, thread_ref};
use crate::Summary;
use crate::export::perfetto::messages::{
    AndroidLogPacket, CLOCK_MONOTONIC, CLOCK_REALTIME, ProcessDescriptor, ProcessTree,
    SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE, ThreadDescriptor, TracePacket,
    TrackDescriptor, TrackEvent, Trigger,
};
use crate::export::perfetto::published;
use batch::Batch;
use clocks::Clocks;
use foldhash::{HashMap, HashSet};
use inflating::{Growth, Inflating};
use lanes::{Lanes, Settling};
use packets::{Compressed, Contents, Packet, Packets};
use sequence::{Sequence, sequence};
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::{EventKind, Scope};
use trace_format::log::Log;
use trace_format::record::Record;
use trace_format::units::{Koid, Ticks};
use trace_linux::{Kernel, Records, inline};
use trace_reader::Thread;
use tracks::Tracks;
use usual::UsualPackets;

pub use packets::is_perfetto;

/// Packets about how the trace was made, and markers between them.
const ABOUT_THE_TRACE: [&str; 13] = [
    "cpu_info",
    "ftrace_stats",
    "perfetto_metatrace",
    "protovms",
    "service_event",
    "synchronization_marker",
    "system_info",
    "trace_attributes",
    "trace_config",
    "trace_provenance",
    "trace_stats",
    "trace_uuid",
    "track_event_range_of_interest",
];
/// Fields that accompany a packet's contents.
const BESIDE: [&str; 12] = [
    "first_packet_on_sequence",
    "incremental_state_cleared",
    "interned_data",
    "machine_id",
    "previous_packet_dropped",
    "sequence_flags",
    "timestamp",
    "timestamp_clock_id",
    "trace_packet_defaults",
    "trusted_packet_sequence_id",
    "trusted_pid",
    "trusted_uid",
];

/// Maximum memory of a decoded packet.
const MAX_DECODED_BYTES: usize = 64 << 20;
/// What is skipped because its time cannot be determined.
const NO_TIME: &str = "events without a time";
const NO_RELATION: &str = "events of a clock that no snapshot relates to the trace's";
/// Category of events that triggered an action of the recording service.
const TRIGGER: &[u8] = b"trigger";

/// Converts a Perfetto trace into an archive.
///
/// # Errors
/// The input cannot be read or is no such trace, or the archive cannot be written.
pub fn import(mut input: impl Read, mut output: impl Write + Send) -> Result<Summary, ImportError> {
    import_from(&mut input, &mut output)
}

fn import_from(input: &mut dyn Read, output: &mut (dyn Write + Send)) -> Result<Summary, ImportError> {
    let importer = Mutex::new(Importer::new(output));
    let result = std::thread::scope(|scope| {
        let mut over = HandOver::new(scope, &importer);
        let result = hand_packets(Packets::new(input), &mut over);
        // It failed at an earlier packet.
        over.end().and(result)
    });
    let mut importer = importer.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Ok(Ended::CutOff) = result {
        importer.kernel.writer.cut_off();
    }
    importer.end();
    let Importer { kernel, mut tracks, mut lanes, mut room, .. } = importer;
    let mut settling = Settling { tracks: &mut tracks, lanes: &mut lanes, room: &mut room };
    let settle = &mut |writer: &mut Writer<_>, record: &mut Vec<u8>| settling.settle(writer, record);
    ImportError::ended(result.map(drop), kernel.writer.finish_settled("a Perfetto trace", settle))
}

/// How the packets end.
enum Ended {
    Whole,
    CutOff,
}

/// Hands all packets over, also those before an error.
fn hand_packets<W: Write + Send>(
    mut packets: Packets<impl Read>,
    over: &mut HandOver<'_, '_, Batch, Importer<W>>,
) -> Result<Ended, ImportError> {
    let mut batch = Batch::default();
    let ended = loop {
        match packets.advance() {
            Ok(Packet::Whole { offset, bytes }) => {
                if batch.is_full() {
                    over.hand(&mut batch)?;
                }
                batch.push(offset, bytes);
            }
            Ok(Packet::CutOff) => break Ok(Ended::CutOff),
            Ok(Packet::End) => break Ok(Ended::Whole),
            Err(error) => break Err(error),
        }
    };
    if !batch.is_empty() {
        over.hand(&mut batch)?;
    }
    ended
}

struct Importer<W> {
    kernel: Kernel<Writer<W>>,
    clocks: Clocks,
    tracks: Tracks,
    lanes: Lanes,
    sequences: HashMap<u32, Sequence>,
    /// The thread that runs on each CPU, as far as compact switches report it.
    switches: HashMap<u16, ftrace::Running>,
    /// Remaining memory for names, tracks and clocks.
    room: Room,
    /// Expansion of all compressed packets so far.
    growth: Growth,
    /// Threads, and processes as threads 0, that a descriptor has named: events of phase `M` do not rename
    /// them.
    described: HashSet<Thread>,
    /// Ends of flows that go to their thread's next slice.
    waiting: Waiting,
    /// Texts that have replacement characters.
    mended_texts: u64,
    /// The last packets, usual and other ones, whose memory the next ones use.
    usual: Option<Box<TracePacket>>,
    packet: Option<Box<TracePacket>>,
}

impl<W: Write> Importer<W> {
    fn new(output: W) -> Self {
        Self {
            kernel: Kernel::new(Writer::sorted(output, "perfetto")),
            clocks: Clocks::default(),
            tracks: Tracks::default(),
            lanes: Lanes::default(),
            sequences: HashMap::default(),
            switches: HashMap::default(),
            room: Room::default(),
            growth: Growth::default(),
            described: HashSet::default(),
            waiting: Waiting::default(),
            mended_texts: 0,
            usual: None,
            packet: None,
        }
    }

    /// Writes waiting data, and reports what is known only at the end.
    fn end(&mut self) {
        for (thread, at, end) in self.waiting.rest() {
            self.flow_end(thread, at, &end);
        }
        let writer = &mut self.kernel.writer;
        writer.skip_many("definitions for which there was no room", self.room.lost());
        if self.mended_texts > 0 {
            writer.warn(format!("{} texts are not UTF-8: U+FFFD replaces invalid bytes", self.mended_texts));
        }
    }

    /// A packet without packets within it.
    fn plain(&mut self, offset: u64, others: &[u8], kernel_events: Option<&[u8]>) -> Result<(), ImportError> {
        if !wire::is_packet_decodable(others) {
            self.kernel.writer.skip("packets that are too large");
        } else {
            let mut packet = self.packet.take().unwrap_or_default();
            match wire::packet(others, &mut packet) {
                Ok(texts) => {
                    self.mended_texts += texts;
                    self.decoded(offset, &packet, others, (kernel_events, None));
                }
                Err(error) => self.kernel.writer.undecodable(offset, "packet", &error),
            }
            self.packet = Some(packet);
        }
        self.kernel.writer.flush_if_full().map_err(ImportError::Write)
    }

    /// A packet, its bytes, the kernel's events that were in it, and its time if it was determined before.
    fn decoded(
        &mut self,
        offset: u64,
        packet: &TracePacket,
        bytes: &[u8],
        (kernel_events, time): (Option<&[u8]>, Option<u64>),
    ) {
        let id = packet.trusted_packet_sequence_id.unwrap_or(0);
        let flags = packet.sequence_flags.unwrap_or(0);
        let Some(sequence) = sequence(&mut self.sequences, &mut self.room, id) else { return };
        if flags & SEQ_INCREMENTAL_STATE_CLEARED != 0 || packet.incremental_state_cleared == Some(true) {
            sequence.clear(&mut self.room);
        } else if packet.previous_packet_dropped.is_some_and(|dropped| dropped != 0) {
            sequence.lose();
        }
        let refers_to_lost = flags & SEQ_NEEDS_INCREMENTAL_STATE != 0 && !sequence.is_valid;
        if let Some(defaults) = packet.trace_packet_defaults.as_ref().filter(|_| !refers_to_lost) {
            sequence.set_defaults(&mut self.room, defaults);
        }
        if let Some(data) = packet.interned_data.as_ref().filter(|_| !refers_to_lost) {
            sequence.intern(&mut self.room, data);
        }
        let clock = packet.timestamp_clock_id.or(sequence.clock);
        if let Some(snapshot) = &packet.clock_snapshot {
            return self.clocks.snapshot(&mut self.room, id, snapshot);
        }
        if refers_to_lost {
            return self.kernel.writer.skip("packets that refer to lost strings");
        }
        // For every packet: a clock may count from the previous packet.
        let at = match packet.timestamp {
            Some(_) if time.is_some() => time.ok_or(NO_TIME),
            Some(timestamp) => self.clocks.trace_time(id, clock, timestamp).ok_or(NO_RELATION),
            None => Err(NO_TIME),
        };
        if let Some(descriptor) = &packet.track_descriptor {
            return self.describe(id, descriptor);
        }
        if let Some(descriptor) = &packet.process_descriptor {
            return self.name_process(descriptor);
        }
        if let Some(descriptor) = &packet.thread_descriptor {
            return self.thread_descriptor(id, descriptor);
        }
        if let Some(tree) = &packet.process_tree {
            return self.tree(tree);
        }
        if let Some(bundle) = kernel_events {
            return self.bundle(offset, bundle);
        }
        if let Some(logs) = &packet.android_log {
            return self.logs(logs);
        }
        if let Some(trigger) = packet.trigger.as_ref().or(packet.clone_snapshot_trigger.as_ref()) {
            return match at {
                Ok(at) => self.trigger(at, trigger),
                Err(why) => self.kernel.writer.skip(why),
            };
        }
        if let Some(event) = &packet.track_event {
            return match self.older_time(id, event).map_or(at, Ok) {
                Ok(at) => self.event(id, at, event),
                Err(why) => self.kernel.writer.skip(why),
            };
        }
        for (field, _) in wire::Fields::of(bytes) {
            match published::name("TracePacket", field) {
                Some(name) if BESIDE.contains(&name) || ABOUT_THE_TRACE.contains(&name) => {}
                Some(name) => self.kernel.writer.skip(format!("{name} packets")),
                None => self.kernel.writer.skip(format!("packets with field {field}")),
            }
        }
    }

    /// An event's own time, which takes precedence over its packet's.
    fn older_time(&mut self, id: u32, event: &TrackEvent) -> Option<u64> {
        let nanos = self.sequences.get_mut(&id)?.event_time(event)?;
        Some(self.clocks.trace_time(0, Some(CLOCK_MONOTONIC), nanos).unwrap_or(nanos))
    }

    /// A trigger that made the recording service stop, or keep its data.
    fn trigger(&mut self, at: u64, trigger: &Trigger) {
        let writer = &mut self.kernel.writer;
        let producer = trigger.producer_name.as_deref().unwrap_or_default();
        let arguments = [
            Argument {
                name: writer.string(b"producer_name"),
                value: ArgumentValue::String(inline(producer.as_bytes())),
            },
            Argument {
                name: writer.string(b"trusted_producer_uid"),
                value: ArgumentValue::Int32(trigger.trusted_producer_uid.unwrap_or(0)),
            },
        ];
        let name = trigger.trigger_name.as_deref().unwrap_or_default();
        let kind = EventKind::Instant { scope: Scope::Global };
        writer.event(at, Thread::default(), TRIGGER, name.as_bytes(), kind, &arguments);
    }

    /// Packets within a packet.
    //= docs/import.md#memory
    fn compressed(&mut self, offset: u64, compressed: Compressed<'_>) -> Result<(), ImportError> {
        let inflating = Inflating::new(compressed, self.growth).map_err(ImportError::Read)?;
        let mut inner = Packets::new(inflating);
        let mut usual = UsualPackets::default();
        loop {
            match inner.advance() {
                Ok(Packet::Whole { bytes, .. }) if usual.push(bytes) => {
                    usual.iter().for_each(|packet| self.usual(offset, packet));
                    usual.clear();
                    self.kernel.writer.flush_if_full().map_err(ImportError::Write)?;
                }
                // Compressed packets within compressed ones are not decompressed.
                Ok(Packet::Whole { bytes, .. }) => match packets::contents(bytes) {
                    Contents::Compressed(_) => {
                        self.kernel.writer.skip("compressed packets within compressed packets");
                    }
                    Contents::Plain(others, kernel_events) => {
                        self.plain(offset, &others, kernel_events.as_deref())?;
                    }
                },
                Ok(Packet::End) => break,
                Ok(Packet::CutOff) | Err(_) => {
                    if inner.input().is_suspicious() {
                        let problem = "what is compressed in packets grows to more than 1000 times its size";
                        return Err(ImportError::Malformed { offset, problem: problem.to_owned() });
                    }
                    let why = "what is compressed in it is damaged";
                    self.kernel.writer.undecodable(offset, "packet", &why);
                    break;
                }
            }
        }
        self.growth = inner.input().growth();
        Ok(())
    }

    fn describe(&mut self, id: u32, descriptor: &TrackDescriptor) {
        if let Some(thread) = &descriptor.thread {
            self.thread_descriptor(id, thread);
        }
        if let Some(process) = &descriptor.process {
            self.name_process(process);
        }
        self.tracks.describe(&mut self.room, descriptor);
    }

    fn name_process(&mut self, process: &ProcessDescriptor) {
        let name = process.process_name.as_deref().filter(|name| !name.is_empty());
        if let Some((pid, name)) = process.pid.zip(name) {
            self.has_name(Thread { process: koid(pid), thread: Koid(0) });
            self.kernel.name_process(pid as u32, name.as_bytes());
        }
    }

    /// Remembers that a descriptor has named a thread, if there is room.
    fn has_name(&mut self, thread: Thread) {
        if !self.described.contains(&thread) && self.room.take(ENTRY_BYTES) {
            self.described.insert(thread);
        }
    }

    /// A thread's name, and its sequence: the thread owns that sequence's events without a track.
    fn thread_descriptor(&mut self, id: u32, descriptor: &ThreadDescriptor) {
        let (pid, tid) = (descriptor.pid.unwrap_or(0), descriptor.tid.unwrap_or(0) as i32);
        self.kernel.belongs(tid as u32, pid as u32);
        if let Some(name) = descriptor.thread_name.as_deref().filter(|name| !name.is_empty()) {
            let thread = Thread { process: koid(pid), thread: koid(tid) };
            self.has_name(thread);
            self.kernel.writer.name_thread(thread, name.as_bytes());
        }
        if let Some(sequence) = sequence(&mut self.sequences, &mut self.room, id) {
            sequence.set_thread(descriptor);
        }
    }

    /// Names from a list of all processes.
    fn tree(&mut self, tree: &ProcessTree) {
        for process in &tree.processes {
            let Some(pid) = process.pid else { continue };
            self.kernel.belongs(pid as u32, pid as u32);
            if let Some(name) = process.cmdline.first().filter(|name| !name.is_empty()) {
                self.kernel.name_process(pid as u32, name.as_bytes());
            }
        }
        for thread in &tree.threads {
            let (Some(tid), Some(tgid)) = (thread.tid, thread.tgid) else { continue };
            self.kernel.belongs(tid as u32, tgid as u32);
            if let Some(name) = &thread.name {
                self.kernel.rename(tid as u32, name.as_bytes());
            }
        }
    }

    fn logs(&mut self, logs: &AndroidLogPacket) {
        for entry in &logs.events {
            let at = entry.timestamp.and_then(|at| self.clocks.trace_time(0, Some(CLOCK_REALTIME), at));
            let (Some(at), Some(message)) = (at, &entry.message) else {
                self.kernel.writer.skip("log entries that cannot be expressed");
                continue;
            };
            let thread =
                Thread { process: koid(entry.pid.unwrap_or(0)), thread: koid(entry.tid.unwrap_or(0)) };
            let log = Log { timestamp: Ticks(at), thread: thread_ref(thread), message: message.as_bytes() };
            if !self.kernel.writer.at(at, &Record::Log(log)) {
                self.kernel.writer.skip("log entries that cannot be expressed");
            }
        }
    }
}

/// A process's or thread's number.
fn koid(number: i32) -> Koid {
    Koid(u64::from(number as u32))
}

#[cfg(test)]
mod tests;
