//! Tracks that are no thread's. Their records wait, with the number of the track, until all descriptors are
//! known: these may come behind the events.
//= docs/import.md#tracks-of-perfetto

use super::sequence::Sums;
use super::tracks::{TrackScope, Tracks};
use crate::export::custom_tracks;
use crate::import::room::{ENTRY_BYTES, Room};
use crate::import::timeline::Outcome;
use crate::import::writer::{FLOWS_OF_OPERATIONS, WAITING, Writer, thread_ref};
use crate::sink::Bytes;
use foldhash::HashMap;
use std::io::Write;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, EventType, Scope};
use trace_format::refs::StringRef;
use trace_format::units::{Koid, Ticks};
use trace_linux::{Records, cut};
use trace_reader::Thread;

/// Where a waiting record has its process and its thread.
const PROCESS: usize = 16;
const THREAD: usize = 24;
/// The largest record, in words.
const MAX_WORDS: u64 = 0xfff;

/// Stands for a track until its owner is known.
pub(super) const fn waiting(uuid: u64) -> Thread {
    Thread { process: WAITING, thread: Koid(uuid) }
}

/// What a track becomes.
#[derive(Clone, Copy)]
enum Lane {
    /// Its slices are asynchronous operations.
    Operations,
    /// A thread with the name of the track, for the sake of names and flows.
    Thread(Thread),
}

#[derive(Default)]
pub(super) struct Lanes {
    /// Tracks with flows, which operations cannot have, and the name of the first event that has one.
    with_flows: HashMap<u64, Box<str>>,
    lanes: HashMap<u64, Lane>,
    /// How many of them are threads.
    threads: u64,
    sums: Sums,
}

impl Lanes {
    /// Remembers that an event of a track has a flow.
    pub fn has_flow(&mut self, room: &mut Room, uuid: u64, name: &str) {
        let name = cut(name);
        if !self.with_flows.contains_key(&uuid) && room.take(name.len() + ENTRY_BYTES) {
            self.with_flows.insert(uuid, name.into());
        }
    }
}

/// All that is known in the end.
pub(super) struct Settling<'a> {
    pub tracks: &'a mut Tracks,
    pub lanes: &'a mut Lanes,
    pub room: &'a mut Room,
}

impl Settling<'_> {
    /// Gives the next record, by time, what depends on its track.
    pub fn settle<W: Write>(&mut self, writer: &mut Writer<W>, record: &mut Vec<u8>) -> Outcome {
        let uuid = word(record, THREAD);
        let scope = self.tracks.place(uuid);
        let home = scope.thread();
        let kind = record.get(2).and_then(|kind| EventType::from_raw(kind & 0xf));
        match (kind, scope) {
            (Some(EventType::Counter), _) => return self.counter(writer, uuid, home, record),
            (Some(EventType::AsyncBegin | EventType::AsyncInstant | EventType::AsyncEnd), _)
            | (_, TrackScope::Thread(_))
            | (None, _) => put_thread(record, home),
            (Some(EventType::Instant), TrackScope::Process(_) | TrackScope::Global) => {
                put_thread(record, home);
                // It has no scope yet, which stands behind everything else.
                let scope = if scope == TrackScope::Global { Scope::Global } else { Scope::Process };
                return lengthen(record, EventType::Instant, scope as u64);
            }
            (Some(kind), _) => match self.lane(writer, uuid, scope, (kind, record)) {
                Lane::Thread(thread) => put_thread(record, thread),
                Lane::Operations => {
                    put_thread(record, home);
                    return operation(record, kind, uuid);
                }
            },
        }
        Outcome::Kept
    }

    /// What a track becomes; its first beginning decides.
    fn lane<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        uuid: u64,
        scope: TrackScope,
        (kind, record): (EventType, &[u8]),
    ) -> Lane {
        if let Some(lane) = self.lanes.lanes.get(&uuid) {
            return *lane;
        }
        if kind == EventType::DurationEnd {
            return Lane::Operations;
        }
        let own = match scope {
            TrackScope::Lane(_) => self.tracks.name(uuid).filter(|name| !name.is_empty()),
            _ => None,
        };
        let flows = self.lanes.with_flows.get(&uuid);
        // The track of an operation has its name.
        let is_thread = flows.is_some() || own.is_some_and(|own| !writer.has_name(record, own.as_bytes()));
        let has_room = self.room.take(2 * ENTRY_BYTES);
        let lane = match custom_tracks::number(self.lanes.threads) {
            Some(number) if is_thread && has_room => {
                let thread = Thread { process: scope.thread().process, thread: number };
                self.lanes.threads += 1;
                let name = own.or(flows.map(|name| &**name)).unwrap_or_default();
                writer.name_thread(thread, name.as_bytes());
                Lane::Thread(thread)
            }
            _ => Lane::Operations,
        };
        if has_room {
            self.lanes.lanes.insert(uuid, lane);
        }
        lane
    }

    /// A counter, whose name and units are those of its track.
    fn counter<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        uuid: u64,
        home: Thread,
        record: &mut Vec<u8>,
    ) -> Outcome {
        let bits = word(record, record.len().saturating_sub(16));
        let value = match word(record, record.len().saturating_sub(24)) & 0xf {
            DOUBLE => ArgumentValue::Double(f64::from_bits(bits)),
            _ => {
                let counter = self.tracks.counter(uuid);
                let value = (bits as i64).saturating_mul(counter.multiplier);
                let sum = counter.is_incremental.then(|| self.lanes.sums.add(self.room, uuid, value));
                ArgumentValue::Int64(sum.unwrap_or(value))
            }
        };
        let id = self.tracks.counter_id(self.room, home.process, uuid);
        let name = self.tracks.name(uuid).unwrap_or_default();
        let arguments = [Argument { name: writer.string(b"value"), value }];
        let event = Event {
            timestamp: Ticks(word(record, 8)),
            thread: thread_ref(home),
            category: StringRef::Empty,
            name: writer.string(name.as_bytes()),
            kind: EventKind::Counter { id },
            arguments: Arguments::from_slice(&arguments),
        };
        let mut bytes = Bytes(std::mem::take(record));
        bytes.0.clear();
        let encoded = event.encode(&mut bytes);
        *record = bytes.0;
        if encoded.is_ok() { Outcome::Kept } else { Outcome::Dropped("events that are too large") }
    }
}

/// The number of a double among the types of arguments.
const DOUBLE: u64 = 5;

/// A slice or an instant as one of an operation, whose id is the track.
fn operation(record: &mut Vec<u8>, kind: EventType, uuid: u64) -> Outcome {
    let kind = match kind {
        EventType::DurationBegin => EventType::AsyncBegin,
        EventType::DurationEnd => EventType::AsyncEnd,
        EventType::Instant => EventType::AsyncInstant,
        _ => return Outcome::Dropped(FLOWS_OF_OPERATIONS),
    };
    lengthen(record, kind, uuid)
}

/// Makes an event one of another type, which has one word more.
fn lengthen(record: &mut Vec<u8>, kind: EventType, word_behind: u64) -> Outcome {
    record.extend_from_slice(&word_behind.to_le_bytes());
    let words = record.len() as u64 / 8;
    if words > MAX_WORDS {
        return Outcome::Dropped("events that are too large");
    }
    let header = word(record, 0) & !(0xf << 16 | MAX_WORDS << 4) | (kind as u64) << 16 | words << 4;
    put(record, 0, header);
    Outcome::Kept
}

fn word(record: &[u8], at: usize) -> u64 {
    record.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn put(record: &mut [u8], at: usize, word: u64) {
    if let Some(bytes) = record.get_mut(at..at + 8) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

fn put_thread(record: &mut [u8], thread: Thread) {
    put(record, PROCESS, thread.process.0);
    put(record, THREAD, thread.thread.0);
}
