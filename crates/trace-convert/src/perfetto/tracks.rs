//! Tracks: of processes, threads, counters and asynchronous operations.
//= docs/perfetto.md#tracks

use super::messages::{
    CounterDescriptor, ProcessDescriptor, TYPE_SLICE_BEGIN, TYPE_SLICE_END, ThreadDescriptor, TrackDescriptor,
};
use foldhash::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use trace_format::units::Koid;
use trace_reader::{Event, Names, Text, TextKey, Thread};

/// The track of events that belong to no process.
pub(super) const GLOBAL: u64 = 0;
/// Maximum number of open operations; beyond it, the oldest are forgotten.
const MAX_OPERATIONS: usize = 200_000;

/// The key of an operation's spans: process, category, id.
type Operation = (Koid, Box<[u8]>, u64);

/// An argument of a counter: process, the keys of name and argument, id.
type CounterKeys = (Koid, u32, u32, u64);

/// Tracks that are found without a look at names, of each kind; a power of two.
const RECENT: usize = 256;

pub(super) struct Tracks {
    last: u64,
    processes: HashMap<Koid, u64>,
    threads: HashMap<Thread, u64>,
    counters: HashMap<(Koid, Box<[u8]>), u64>,
    /// Of counters of one name, by process and name.
    groups: HashMap<(Koid, Box<[u8]>), u64>,
    /// Open operations: their track, and how many spans of it are open.
    operations: HashMap<Operation, (u64, u32)>,
    /// The process of the last of them to begin, by a hash of category, name and id.
    begun_in: HashMap<u64, Koid>,
    /// Some threads, each at a place of its own, and their tracks.
    recent_threads: Box<[(Thread, u64)]>,
    /// The same for arguments of counters.
    recent_counters: Box<[(CounterKeys, u64)]>,
}

impl Default for Tracks {
    fn default() -> Self {
        Self {
            last: 0,
            processes: HashMap::default(),
            threads: HashMap::default(),
            counters: HashMap::default(),
            groups: HashMap::default(),
            operations: HashMap::default(),
            begun_in: HashMap::default(),
            recent_threads: vec![<_>::default(); RECENT].into(),
            recent_counters: vec![<_>::default(); RECENT].into(),
        }
    }
}

fn counter_name(event: &Event<'_>, argument: Text<'_>, id: u64) -> String {
    format!("{}:{}:{id}", event.name.to_str(), argument.to_str())
}

fn name_key(event: &Event<'_>, id: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (event.category, event.name, id).hash(&mut hasher);
    hasher.finish()
}

fn process_descriptor(uuid: u64, process: Koid, name: Option<Text<'_>>) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        process: Some(ProcessDescriptor {
            // The format has 32 bits.
            pid: Some(process.0 as i32),
            process_name: name
                .filter(|name| !name.as_bytes().is_empty())
                .map(|name| name.to_str().into_owned()),
        }),
        ..TrackDescriptor::default()
    }
}

fn thread_descriptor(uuid: u64, parent: u64, thread: Thread, name: Option<Text<'_>>) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid: Some(parent),
        thread: Some(ThreadDescriptor {
            pid: Some(thread.process.0 as i32),
            tid: Some(thread.thread.0 as i64),
            thread_name: name
                .filter(|name| !name.as_bytes().is_empty())
                .map(|name| name.to_str().into_owned()),
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

    /// Renames a process's track.
    pub fn rename_process(&mut self, process: Koid, name: Text<'_>) -> TrackDescriptor {
        let next = self.last + 1;
        let uuid = *self.processes.entry(process).or_insert(next);
        self.last = self.last.max(uuid);
        process_descriptor(uuid, process, Some(name))
    }

    /// Renames a thread's track, which exists already.
    pub fn rename_thread(&mut self, thread: Thread, name: Text<'_>) -> TrackDescriptor {
        let uuid = self.threads.get(&thread).copied().unwrap_or(GLOBAL);
        let parent = self.processes.get(&thread.process).copied().unwrap_or(GLOBAL);
        thread_descriptor(uuid, parent, thread, Some(name))
    }

    /// A thread's track, if it has one.
    #[inline]
    pub fn known_thread(&mut self, thread: Thread) -> Option<u64> {
        let place = (thread.thread.0 ^ thread.process.0 << 5) as usize % RECENT;
        let recent = self.recent_threads[place];
        if recent.0 == thread && recent.1 != GLOBAL {
            return Some(recent.1);
        }
        let track = *self.threads.get(&thread)?;
        self.recent_threads[place] = (thread, track);
        Some(track)
    }

    /// A thread's track, and the descriptors that its first use requires.
    pub fn thread(&mut self, thread: Thread, names: &Names) -> (u64, Vec<TrackDescriptor>) {
        if let Some(uuid) = self.threads.get(&thread) {
            return (*uuid, Vec::new());
        }
        let mut new = Vec::new();
        let parent = match self.processes.get(&thread.process) {
            Some(parent) => *parent,
            None => {
                let parent = self.next();
                self.processes.insert(thread.process, parent);
                new.push(process_descriptor(parent, thread.process, names.process(thread.process)));
                parent
            }
        };
        let uuid = self.next();
        self.threads.insert(thread, uuid);
        new.push(thread_descriptor(uuid, parent, thread, names.thread(thread)));
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
        let recent = &mut self.recent_counters[(name_key ^ argument_key << 4) as usize % RECENT];
        let key = (process, name_key, argument_key, id);
        let is_keyed = name_key.min(argument_key) > 0;
        if recent.0 == key && is_keyed {
            return Some(recent.1);
        }
        let name = counter_name(event, argument, id);
        let track = *self.counters.get(&(process, name.into_bytes().into()))?;
        if is_keyed {
            *recent = (key, track);
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
        self.counters.insert((event.thread.process, name.as_bytes().into()), uuid);
        TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid: group.or_else(|| self.processes.get(&event.thread.process).copied()),
            counter: Some(CounterDescriptor::default()),
            ..TrackDescriptor::default()
        }
    }

    /// The track that the series of a counter's name are below.
    pub fn counter_group(&mut self, event: &Event<'_>) -> (u64, Option<TrackDescriptor>) {
        let process = event.thread.process;
        let key = (process, event.name.as_bytes().into());
        if let Some(uuid) = self.groups.get(&key) {
            return (*uuid, None);
        }
        let uuid = self.next();
        self.groups.insert(key, uuid);
        (uuid, Some(self.named(uuid, &event.name.to_str(), process)))
    }

    /// A track of its own for one loss of a process. Readers join those of one name.
    pub fn loss(&mut self, name: &str, process: Option<Koid>) -> TrackDescriptor {
        let uuid = self.next();
        self.named(uuid, name, process.unwrap_or_default())
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
        let named = name_key(event, id);
        let mut key = (process, event.category.as_bytes().into(), id);
        // An operation that began in another process continues there, if this one has none.
        if kind != TYPE_SLICE_BEGIN
            && !self.operations.contains_key(&key)
            && let Some(begun_in) = self.begun_in.get(&named)
        {
            key.0 = *begun_in;
        }
        if let Some((uuid, depth)) = self.operations.get_mut(&key) {
            let uuid = *uuid;
            match kind {
                TYPE_SLICE_BEGIN => *depth += 1,
                TYPE_SLICE_END => *depth = depth.saturating_sub(1),
                _ => {}
            }
            if *depth == 0 {
                self.operations.remove(&key);
                self.begun_in.remove(&named);
            }
            return (uuid, None);
        }
        let uuid = self.next();
        if kind == TYPE_SLICE_BEGIN {
            if self.operations.len() >= MAX_OPERATIONS {
                self.operations.clear();
                self.begun_in.clear();
            }
            self.operations.insert(key, (uuid, 1));
            self.begun_in.insert(named, process);
        }
        let descriptor = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(event.name.to_str().into_owned()),
            parent_uuid: self.processes.get(&process).copied(),
            ..TrackDescriptor::default()
        };
        (uuid, Some(descriptor))
    }
}
