//! Tracks: their owners, as far as an archive can express them.
//= docs/import.md#tracks-of-perfetto

use super::koid;
use crate::export::perfetto::messages::TrackDescriptor;
use crate::import::room::{ENTRY_BYTES, Room};
use foldhash::HashMap;
use std::mem::size_of;
use trace_format::units::Koid;
use trace_linux::cut;
use trace_reader::Thread;

/// Maximum number of a track's ancestors: parents may form a circle.
const MAX_PARENTS: usize = 64;
const THREAD_TIME: i32 = 1;
const INSTRUCTIONS: i32 = 2;
pub(super) const THREAD_TIME_NAME: &str = "thread_time";
pub(super) const INSTRUCTIONS_NAME: &str = "thread_instruction_count";

/// A counter's values, and how they are encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub multiplier: i64,
    pub is_incremental: bool,
}

#[derive(Default)]
struct Track {
    parent: Option<u64>,
    name: Option<Box<str>>,
    thread: Option<Thread>,
    process: Option<i32>,
    counter: Option<Counter>,
}

/// The owner of a track's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackScope {
    Thread(Thread),
    /// Its main thread.
    Process(Thread),
    Global,
    /// A lane of its own, of a thread, a process, or nothing.
    Lane(Thread),
}

impl TrackScope {
    /// Whether its slices wait until all tracks are known.
    pub fn waits(self) -> bool {
        !matches!(self, Self::Thread(_))
    }

    pub fn thread(self) -> Thread {
        match self {
            Self::Thread(thread) | Self::Process(thread) | Self::Lane(thread) => thread,
            Self::Global => Thread::default(),
        }
    }
}

#[derive(Default)]
pub(super) struct Tracks {
    tracks: HashMap<u64, Track>,
    /// The counters with one name of a process by their tracks: the number of each track.
    counters: HashMap<(Koid, Box<str>), HashMap<u64, u64>>,
}

/// A process's main thread has its number.
fn main_thread(pid: i32) -> Thread {
    Thread { process: koid(pid), thread: koid(pid) }
}

impl Tracks {
    pub fn describe(&mut self, room: &mut Room, descriptor: &TrackDescriptor) {
        let Some(uuid) = descriptor.uuid else { return };
        if !self.tracks.contains_key(&uuid) && !room.take(size_of::<Track>() + ENTRY_BYTES) {
            return;
        }
        let track = self.tracks.entry(uuid).or_default();
        track.parent = descriptor.parent_uuid.or(track.parent);
        // As in Perfetto's reader, a later name changes nothing.
        if track.name.is_none()
            && let Some(name) = descriptor.name.as_ref().or(descriptor.static_name.as_ref())
        {
            let name = cut(name);
            track.name = room.take(name.len()).then(|| name.into());
        }
        if let Some(thread) = &descriptor.thread {
            let process = koid(thread.pid.unwrap_or(0));
            track.thread = Some(Thread { process, thread: koid(thread.tid.unwrap_or(0) as i32) });
        }
        if let Some(process) = &descriptor.process {
            track.process = process.pid;
        }
        if let Some(counter) = &descriptor.counter {
            track.counter = Some(Counter {
                multiplier: counter.unit_multiplier.unwrap_or(1),
                is_incremental: counter.is_incremental.unwrap_or(false),
            });
            let name = match counter.kind {
                Some(THREAD_TIME) => Some(THREAD_TIME_NAME),
                Some(INSTRUCTIONS) => Some(INSTRUCTIONS_NAME),
                _ => None,
            };
            if track.name.is_none() {
                track.name = name.filter(|name| room.take(name.len())).map(Into::into);
            }
        }
    }

    /// Whether there was a description of a track.
    pub fn is_described(&self, uuid: u64) -> bool {
        self.tracks.contains_key(&uuid)
    }

    pub fn place(&self, uuid: u64) -> TrackScope {
        let Some(track) = self.tracks.get(&uuid) else {
            return if uuid == 0 { TrackScope::Global } else { TrackScope::Lane(Thread::default()) };
        };
        if let Some(thread) = track.thread {
            return TrackScope::Thread(thread);
        }
        if let Some(pid) = track.process {
            return TrackScope::Process(main_thread(pid));
        }
        let mut parent = track.parent;
        for _ in 0..MAX_PARENTS {
            let Some(found) = parent.and_then(|parent| self.tracks.get(&parent)) else { break };
            if let Some(thread) = found.thread.or(found.process.map(main_thread)) {
                return TrackScope::Lane(thread);
            }
            parent = found.parent;
        }
        TrackScope::Lane(Thread::default())
    }

    pub fn name(&self, uuid: u64) -> Option<&str> {
        self.tracks.get(&uuid)?.name.as_deref()
    }

    pub fn counter(&self, uuid: u64) -> Counter {
        let known = self.tracks.get(&uuid).and_then(|track| track.counter);
        known.unwrap_or(Counter { multiplier: 1, is_incremental: false })
    }

    /// Distinguishes counters with the same name and process; those for which there is no room use the number
    /// of their track.
    pub fn counter_id(&mut self, room: &mut Room, process: Koid, uuid: u64) -> u64 {
        let name: Box<str> = self.name(uuid).unwrap_or_default().into();
        let bytes = name.len() + 2 * ENTRY_BYTES;
        let key = (process, name);
        if let Some(id) = self.counters.get(&key).and_then(|known| known.get(&uuid)) {
            return *id;
        }
        if !room.take(bytes) {
            return uuid;
        }
        let known = self.counters.entry(key).or_default();
        let next = known.len() as u64;
        known.insert(uuid, next);
        next
    }
}
