//! Processes, threads, and the tracks that they have.

use crate::texts::Texts;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use trace_format::units::{Koid, Thread};
use trace_reader::ThreadNumbers;

/// What is on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Slices of a thread.
    Thread,
    /// Asynchronous operations of a process with one name.
    Operations,
    /// What a CPU runs.
    Cpu,
    /// Instants of a thread.
    Instants,
    /// Log records of a process.
    Logs,
    /// Values of a counter.
    Counter,
    /// Short slices of another track, together.
    Folded,
    /// Whether a thread runs, is ready or waits.
    States,
}

impl Kind {
    /// Whether what is on it has a length.
    pub const fn has_length(self) -> bool {
        matches!(self, Self::Thread | Self::Operations | Self::Cpu | Self::Folded | Self::States)
    }
}

/// A track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    pub kind: Kind,
    /// The thread, process or CPU.
    pub owner: u64,
    /// Category and name of operations and counters.
    pub what: u32,
    /// Id and series of a counter.
    pub id: u64,
    pub series: u32,
    /// How much is on it.
    pub count: u64,
}

impl Track {
    pub const fn new(kind: Kind, owner: u64) -> Self {
        Self { kind, owner, what: 0, id: 0, series: 0, count: 0 }
    }
}

/// A named thread or process.
#[derive(Clone, Copy, Debug)]
pub struct Named<T> {
    pub of: T,
    /// Number of its name; 0 if it has none.
    pub name: u32,
    /// The number of its process.
    pub process: u32,
}

type Key = (Kind, u64, u32, u64, u32);

/// Tracks that are found without hashing, a power of two.
const RECENT: usize = 256;

/// All of them, numbered in the order in which they occur.
#[derive(Debug, Default)]
pub struct Tracks {
    pub processes: Vec<Named<Koid>>,
    pub threads: Vec<Named<Thread>>,
    pub list: Vec<Track>,
    process_numbers: HashMap<Koid, u32, RandomState>,
    thread_numbers: ThreadNumbers,
    numbers: HashMap<Key, u32, RandomState>,
    /// The last track of each place.
    recent: Vec<u32>,
}

impl Track {
    const fn key(&self) -> Key {
        (self.kind, self.owner, self.what, self.id, self.series)
    }

    fn place(&self) -> usize {
        let mixed = self.owner ^ u64::from(self.what) << 3 ^ self.id << 5 ^ u64::from(self.series) << 1;
        (mixed as usize * 8 + self.kind as usize) % RECENT
    }
}

impl Tracks {
    /// The number of a thread.
    #[inline]
    pub fn thread(&mut self, thread: Thread) -> u32 {
        let number = self.thread_numbers.number(thread, usize::MAX).unwrap_or(0);
        if number == self.threads.len() {
            self.add(thread);
        }
        number as u32
    }

    #[cold]
    fn add(&mut self, thread: Thread) {
        let processes = &mut self.processes;
        let process = *self.process_numbers.entry(thread.process).or_insert_with(|| {
            let process = processes.len() as u32;
            processes.push(Named { of: thread.process, name: 0, process });
            process
        });
        self.threads.push(Named { of: thread, name: 0, process });
    }

    /// Names a thread and its process. The last name that is not empty counts.
    pub fn name(&mut self, texts: &mut Texts, thread: u32, process_name: &str, name: &str) {
        let named = &mut self.threads[thread as usize];
        if !name.is_empty() {
            named.name = texts.number(name);
        }
        if !process_name.is_empty() {
            self.processes[named.process as usize].name = texts.number(process_name);
        }
    }

    /// The process of a thread.
    pub fn process_of(&self, thread: u32) -> u32 {
        self.threads[thread as usize].process
    }

    /// Whether a track has a number.
    pub fn is_known(&self, track: &Track) -> bool {
        self.numbers.contains_key(&track.key())
    }

    /// The number of a track.
    #[inline]
    pub fn number(&mut self, track: Track) -> u32 {
        let (place, key) = (track.place(), track.key());
        if let Some(recent) = self.recent.get(place)
            && let Some(known) = self.list.get(*recent as usize)
            && known.key() == key
        {
            return *recent;
        }
        let list = &mut self.list;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            list.push(track);
            list.len() as u32 - 1
        });
        self.recent.resize(RECENT, 0);
        self.recent[place] = number;
        number
    }
}
