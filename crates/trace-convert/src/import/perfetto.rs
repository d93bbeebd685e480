//! Perfetto's protobuf packets: track events, the kernel's events, names, logs.
//= docs/import.md#perfetto

mod clocks;
mod event;
mod ftrace;
mod packets;
mod sequence;
mod tracks;

use super::writer::{Writer, thread_ref};
use super::{CUT_OFF, ImportError};
use crate::Summary;
use crate::perfetto::messages::{
    AndroidLogPacket, CLOCK_REALTIME, ProcessTree, ThreadDescriptor, TracePacket, TrackDescriptor,
};
use clocks::Clocks;
use packets::{Packet, Packets};
use prost::Message;
use sequence::Sequence;
use std::collections::HashMap;
use std::io::{Read, Write};
use trace_format::log::Log;
use trace_format::record::Record;
use trace_format::units::{Koid, Ticks};
use trace_linux::{Kernel, Records};
use trace_reader::Thread;
use tracks::Tracks;

pub use packets::is_perfetto;

const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
const SEQ_NEEDS_INCREMENTAL_STATE: u32 = 2;
/// Packets that say how the trace was made, and markers between them.
const ABOUT_THE_TRACE: [u32; 11] = [33, 34, 35, 36, 45, 46, 49, 67, 69, 89, 124];
/// Fields that stand beside what a packet says.
const BESIDE: [u32; 15] = [3, 8, 10, 13, 16, 41, 42, 58, 59, 71, 79, 87, 94, 98, 12];
/// Fields that are read.
const READ: [u32; 9] = [1, 2, 6, 11, 39, 43, 44, 50, 60];

/// Makes an archive of a Perfetto trace.
///
/// # Errors
/// The input cannot be read or is no such trace, or the archive cannot be written.
pub fn import(input: impl Read, output: impl Write) -> Result<Summary, ImportError> {
    let mut importer = Importer {
        kernel: Kernel::new(Writer::sorted(output, "perfetto")),
        clocks: Clocks::default(),
        tracks: Tracks::default(),
        sequences: HashMap::new(),
        switches: HashMap::new(),
    };
    let mut packets = Packets::new(input);
    let result = loop {
        match packets.advance() {
            Ok(Packet::Whole { offset, bytes }) => {
                importer.packet(offset, bytes);
                if let Err(error) = importer.kernel.writer.flush_if_full() {
                    break Err(ImportError::Write(error));
                }
            }
            Ok(Packet::CutOff) => {
                importer.kernel.writer.warn(CUT_OFF);
                break Ok(());
            }
            Ok(Packet::End) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let summary = importer.kernel.writer.finish().map_err(ImportError::Write);
    result.and(summary)
}

struct Importer<W> {
    kernel: Kernel<Writer<W>>,
    clocks: Clocks,
    tracks: Tracks,
    sequences: HashMap<u32, Sequence>,
    /// Who runs on a CPU as far as switches in columns tell.
    switches: HashMap<u32, ftrace::Running>,
}

impl<W: Write> Importer<W> {
    fn packet(&mut self, offset: u64, bytes: &[u8]) {
        match TracePacket::decode(bytes) {
            Ok(packet) => self.decoded(offset, packet, bytes),
            Err(error) => {
                self.kernel.writer.skip("packets that cannot be decoded");
                self.kernel.writer.warn(format!("packet at byte {offset}: {error}"));
            }
        }
    }

    fn decoded(&mut self, offset: u64, packet: TracePacket, bytes: &[u8]) {
        if let Some(compressed) = &packet.compressed_packets {
            return self.compressed(offset, compressed);
        }
        let id = packet.trusted_packet_sequence_id.unwrap_or(0);
        let flags = packet.sequence_flags.unwrap_or(0);
        let sequence = self.sequences.entry(id).or_default();
        if flags & SEQ_INCREMENTAL_STATE_CLEARED != 0 || packet.incremental_state_cleared == Some(true) {
            sequence.clear();
        }
        if flags & SEQ_NEEDS_INCREMENTAL_STATE != 0 && !sequence.is_valid {
            return self.kernel.writer.skip("packets that refer to lost strings");
        }
        if let Some(defaults) = &packet.trace_packet_defaults {
            sequence.set_defaults(defaults);
        }
        if let Some(data) = &packet.interned_data {
            sequence.intern(data);
        }
        let clock = packet.timestamp_clock_id.or(sequence.clock);
        if let Some(snapshot) = &packet.clock_snapshot {
            return self.clocks.snapshot(id, snapshot);
        }
        if let Some(descriptor) = &packet.track_descriptor {
            return self.describe(descriptor);
        }
        if let Some(descriptor) = &packet.thread_descriptor {
            return self.thread_descriptor(id, descriptor);
        }
        if let Some(tree) = &packet.process_tree {
            return self.tree(tree);
        }
        if let Some(bundle) = &packet.ftrace_events {
            return self.bundle(bundle);
        }
        if let Some(logs) = &packet.android_log {
            return self.logs(logs);
        }
        if let Some(event) = &packet.track_event {
            let at = match packet.timestamp {
                Some(timestamp) => self.clocks.trace_time(id, clock, timestamp),
                None => self.sequences.get_mut(&id).and_then(|sequence| sequence.event_time(event)),
            };
            return match at {
                Some(at) => self.event(id, at, event),
                None => self.kernel.writer.skip("events of a clock that no snapshot relates to the trace's"),
            };
        }
        for field in packets::fields(bytes) {
            if !READ.contains(&field) && !BESIDE.contains(&field) && !ABOUT_THE_TRACE.contains(&field) {
                self.kernel.writer.skip(format!("packets with field {field}"));
            }
        }
    }

    /// Packets within a packet.
    fn compressed(&mut self, offset: u64, compressed: &[u8]) {
        let mut inner = Packets::new(flate2::read::ZlibDecoder::new(compressed));
        loop {
            match inner.advance() {
                // What is compressed is not compressed again.
                Ok(Packet::Whole { bytes, .. }) => match TracePacket::decode(bytes) {
                    Ok(packet) if packet.compressed_packets.is_none() => {
                        let bytes = bytes.to_vec();
                        self.decoded(offset, packet, &bytes);
                    }
                    _ => self.kernel.writer.skip("packets that cannot be decoded"),
                },
                Ok(Packet::End) => return,
                Ok(Packet::CutOff) | Err(_) => {
                    self.kernel.writer.skip("packets that cannot be decoded");
                    let remark = format!("packet at byte {offset}: what is compressed in it is damaged");
                    return self.kernel.writer.warn(remark);
                }
            }
        }
    }

    fn describe(&mut self, descriptor: &TrackDescriptor) {
        if let Some(thread) = &descriptor.thread {
            self.name_thread(thread);
        }
        let process = descriptor.process.as_ref();
        if let Some((pid, name)) =
            process.and_then(|process| Some((process.pid?, process.process_name.as_ref()?)))
        {
            self.kernel.name_process(pid as u32, name.as_bytes());
        }
        self.tracks.describe(descriptor);
    }

    fn name_thread(&mut self, thread: &ThreadDescriptor) {
        let (pid, tid) = (thread.pid.unwrap_or(0), thread.tid.unwrap_or(0) as i32);
        if let Some(name) = &thread.thread_name {
            self.kernel.writer.name_thread(Thread { process: koid(pid), thread: koid(tid) }, name.as_bytes());
        }
    }

    /// The older way to say whose events a sequence has.
    fn thread_descriptor(&mut self, id: u32, descriptor: &ThreadDescriptor) {
        self.name_thread(descriptor);
        self.sequences.entry(id).or_default().set_thread(descriptor);
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
