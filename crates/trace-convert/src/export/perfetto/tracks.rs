//! Tracks: of processes, threads, counters and asynchronous operations.
//= docs/perfetto.md#tracks

use super::messages::{
    CounterDescriptor, ProcessDescriptor, SIBLING_MERGE_BEHAVIOR_NONE, TYPE_SLICE_BEGIN, TYPE_SLICE_END,
    ThreadDescriptor, TrackDescriptor,
};
use crate::export::numbers::{is_long, is_taken, short, thread_number};
use foldhash::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use trace_format::units::Koid;
use trace_reader::{Event, Names, Text, TextKey, Thread};

/// The track of events that belong to no process.
pub(super) const GLOBAL: u64 = 0;
/// Maximum number of tracks of a kind that are remembered; beyond it, all are forgotten, and described again
/// when they are met again.
const MAX_TRACKS: usize = if cfg!(test) { 40 } else { 200_000 };

/// Stands for names of any length and what belongs to them. The author of a file cannot choose two that have
/// the same key.
type NamesKey = u128;

/// Tracks, as many as the limit.
struct Remembered<K, V = u64>(HashMap<K, V>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Eq + Hash, V> Remembered<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    fn insert(&mut self, key: K, value: V) {
        if self.0.len() >= MAX_TRACKS {
            self.0.clear();
        }
        self.0.insert(key, value);
    }
}

/// An argument of a counter: process, the keys of name and argument, id.
type CounterKeys = (Koid, u32, u32, u64);

/// Tracks that are found without a look at names, of each kind; a power of two.
const RECENT: usize = 256;

/// The last keys of each place, with their tracks.
struct Recent<K>(Box<[(K, u64)]>);

impl<K: Clone + Default> Default for Recent<K> {
    fn default() -> Self {
        Self(vec![<_>::default(); RECENT].into())
    }
}

#[derive(Default)]
pub(super) struct Tracks {
    last: u64,
    /// Descriptions of processes and threads whose numbers are too long for the format.
    pub long_numbers: u64,
    /// Descriptions of threads with the number 0.
    pub zero_numbers: u64,
    /// Descriptions of threads with numbers that stand for longer ones.
    pub taken_numbers: u64,
    /// Different in each run.
    hashing: [RandomState; 2],
    processes: Remembered<Koid>,
    threads: Remembered<Thread>,
    logs: Remembered<Thread>,
    /// By process, name, argument and id.
    counters: Remembered<NamesKey>,
    /// Of counters of one name, by process and name.
    groups: Remembered<NamesKey>,
    /// Open operations, by process, category and id: their track, and how many spans of it are open.
    operations: Remembered<NamesKey, (u64, u32)>,
    /// Some threads, each at a place of its own, and their tracks.
    recent_threads: Recent<Thread>,
    /// The same for arguments of counters.
    recent_counters: Recent<CounterKeys>,
}

fn counter_name(event: &Event<'_>, argument: Text<'_>, id: u64) -> String {
    format!("{}:{}:{id}", event.name.to_str(), argument.to_str())
}

/// A name that is shown: an empty one is none.
fn shown(name: Option<Text<'_>>) -> Option<String> {
    name.filter(|name| !name.as_bytes().is_empty()).map(|name| name.to_str().into_owned())
}

fn process_descriptor(uuid: u64, process: Koid, name: Option<Text<'_>>) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        process: Some(ProcessDescriptor { pid: Some(short(process) as i32), process_name: shown(name) }),
        ..TrackDescriptor::default()
    }
}

fn thread_descriptor(
    uuid: u64,
    parent: Option<u64>,
    thread: Thread,
    name: Option<Text<'_>>,
) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid: parent,
        thread: Some(ThreadDescriptor {
            pid: Some(short(thread.process) as i32),
            tid: Some(thread_number(thread).into()),
            thread_name: shown(name),
            ..ThreadDescriptor::default()
        }),
        ..TrackDescriptor::default()
    }
}

impl Tracks {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn key(&self, of: impl Hash) -> NamesKey {
        let [high, low] = &self.hashing;
        NamesKey::from(high.hash_one(&of)) << 64 | NamesKey::from(low.hash_one(&of))
    }

    fn counter_key(&self, event: &Event<'_>, argument: Text<'_>, id: u64) -> NamesKey {
        self.key((event.thread.process, event.name, argument, id))
    }

    /// A process's track, and whether it is new.
    fn process(&mut self, process: Koid) -> (u64, bool) {
        if let Some(uuid) = self.processes.get(&process) {
            return (*uuid, false);
        }
        let uuid = self.next();
        self.processes.insert(process, uuid);
        (uuid, true)
    }

    /// Renames a process's track.
    pub fn rename_process(&mut self, process: Koid, name: Text<'_>) -> TrackDescriptor {
        let (uuid, _) = self.process(process);
        process_descriptor(uuid, process, Some(name))
    }

    /// Renames a thread's track.
    pub fn rename_thread(&self, track: u64, thread: Thread, name: Text<'_>) -> TrackDescriptor {
        thread_descriptor(track, self.processes.get(&thread.process).copied(), thread, Some(name))
    }

    /// A thread's track, if it has one.
    #[inline]
    pub fn known_thread(&mut self, thread: Thread) -> Option<u64> {
        let place = (thread.thread.0 ^ thread.process.0 << 5) as usize % RECENT;
        let recent = self.recent_threads.0[place];
        if recent.0 == thread && recent.1 != GLOBAL {
            return Some(recent.1);
        }
        let track = *self.threads.get(&thread)?;
        self.recent_threads.0[place] = (thread, track);
        Some(track)
    }

    /// A thread's track, and the descriptors that its first use requires.
    pub fn thread(&mut self, thread: Thread, names: &Names) -> (u64, Vec<TrackDescriptor>) {
        if let Some(uuid) = self.threads.get(&thread) {
            return (*uuid, Vec::new());
        }
        let mut new = Vec::new();
        self.long_numbers += u64::from(is_long(thread));
        self.zero_numbers += u64::from(thread.thread.0 == 0);
        self.taken_numbers += u64::from(is_taken(thread));
        let (parent, is_new) = self.process(thread.process);
        if is_new {
            new.push(process_descriptor(parent, thread.process, names.process(thread.process)));
        }
        let uuid = self.next();
        self.threads.insert(thread, uuid);
        new.push(thread_descriptor(uuid, Some(parent), thread, names.thread(thread)));
        (uuid, new)
    }

    /// The track of an argument of a counter, if it has one.
    pub fn known_counter(
        &mut self,
        event: &Event<'_>,
        (argument, key): (Text<'_>, TextKey),
        id: u64,
    ) -> Option<u64> {
        let process = event.thread.process;
        let (name_key, argument_key) = (event.keys.1.number(), key.number());
        let place = (name_key ^ argument_key << 4) as usize % RECENT;
        let recent = self.recent_counters.0[place];
        let key = (process, name_key, argument_key, id);
        let is_keyed = name_key.min(argument_key) > 0;
        if recent.0 == key && is_keyed {
            return Some(recent.1);
        }
        let track = *self.counters.get(&self.counter_key(event, argument, id))?;
        if is_keyed {
            self.recent_counters.0[place] = (key, track);
        }
        Some(track)
    }

    /// A new track for an argument of a counter, named as Perfetto names it when it reads an archive.
    pub fn counter(
        &mut self,
        event: &Event<'_>,
        argument: Text<'_>,
        id: u64,
        group: Option<u64>,
    ) -> TrackDescriptor {
        let name = counter_name(event, argument, id);
        let uuid = self.next();
        self.counters.insert(self.counter_key(event, argument, id), uuid);
        let own = self.named(uuid, &name, event.thread.process);
        let parent_uuid = group.or(own.parent_uuid);
        TrackDescriptor { parent_uuid, counter: Some(CounterDescriptor::default()), ..own }
    }

    /// The track that the series of a counter's name are below.
    pub fn counter_group(&mut self, event: &Event<'_>) -> (u64, Option<TrackDescriptor>) {
        let process = event.thread.process;
        let key = self.key((process, event.name));
        if let Some(uuid) = self.groups.get(&key) {
            return (*uuid, None);
        }
        let uuid = self.next();
        self.groups.insert(key, uuid);
        (uuid, Some(self.named(uuid, &event.name.to_str(), process)))
    }

    /// A further track of a thread, for slices that overlap others. Perfetto's reader looks for the slice
    /// around a part of a flow elsewhere if it may join the track with others of its name.
    pub fn lane(&mut self, thread: Thread, number: usize) -> TrackDescriptor {
        let sibling_merge_behavior = Some(SIBLING_MERGE_BEHAVIOR_NONE);
        TrackDescriptor { sibling_merge_behavior, ..self.further(thread, format!("overlapping {number}")) }
    }

    /// A further track of a thread, which is known. It is below the thread's: of further tracks with the
    /// thread's description, Perfetto's reader would make another thread.
    fn further(&mut self, thread: Thread, name: String) -> TrackDescriptor {
        let (uuid, parent_uuid) = (Some(self.next()), self.threads.get(&thread).copied());
        TrackDescriptor { uuid, name: Some(name), parent_uuid, ..TrackDescriptor::default() }
    }

    /// The track of the log entries of a thread, which is known.
    pub fn log(&mut self, thread: Thread) -> (u64, Option<TrackDescriptor>) {
        if let Some(uuid) = self.logs.get(&thread) {
            return (*uuid, None);
        }
        let descriptor = self.further(thread, "log".to_owned());
        let uuid = self.last;
        self.logs.insert(thread, uuid);
        (uuid, Some(descriptor))
    }

    /// A track of its own for one operation or one loss of a process. Readers join losses of one name.
    pub fn single(&mut self, name: &str, process: Koid) -> TrackDescriptor {
        let uuid = self.next();
        self.named(uuid, name, process)
    }

    fn named(&self, uuid: u64, name: &str, process: Koid) -> TrackDescriptor {
        TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid: self.processes.get(&process).copied(),
            ..TrackDescriptor::default()
        }
    }

    /// The track of an asynchronous operation: a new one when it begins, the same until it has ended.
    pub fn operation(&mut self, event: &Event<'_>, id: u64, kind: i32) -> (u64, Option<TrackDescriptor>) {
        let process = event.thread.process;
        let key = self.key((process, event.category, id));
        if let Some((uuid, depth)) = self.operations.0.get_mut(&key) {
            let uuid = *uuid;
            match kind {
                TYPE_SLICE_BEGIN => *depth += 1,
                TYPE_SLICE_END => *depth = depth.saturating_sub(1),
                _ => {}
            }
            if *depth == 0 {
                self.operations.0.remove(&key);
            }
            return (uuid, None);
        }
        let uuid = self.next();
        if kind == TYPE_SLICE_BEGIN {
            self.operations.insert(key, (uuid, 1));
        }
        (uuid, Some(self.named(uuid, &event.name.to_str(), process)))
    }
}
