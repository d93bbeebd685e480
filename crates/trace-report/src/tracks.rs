//! Processes, threads, and the tracks that they have.

use crate::texts::Texts;
use foldhash::fast::RandomState;
use std::collections::HashMap;

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
}

impl Kind {
    /// Whether what is on it has a length.
    pub const fn has_length(self) -> bool {
        matches!(self, Self::Thread | Self::Operations | Self::Cpu | Self::Folded)
    }
}

/// A thread and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    pub pid: u64,
    pub tid: u64,
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

/// All of them, numbered in the order in which they occur.
#[derive(Debug, Default)]
pub struct Tracks {
    pub processes: Vec<Named<u64>>,
    pub threads: Vec<Named<Thread>>,
    pub list: Vec<Track>,
    process_numbers: HashMap<u64, u32, RandomState>,
    thread_numbers: HashMap<Thread, u32, RandomState>,
    numbers: HashMap<Key, u32, RandomState>,
    last: Option<(Thread, u32)>,
}

impl Tracks {
    /// The number of a thread. The last name that is not empty is its name.
    pub fn thread(&mut self, texts: &mut Texts, thread: Thread, process_name: &str, name: &str) -> u32 {
        let number = match self.last {
            Some((last, number)) if last == thread => number,
            _ => self.thread_number(thread),
        };
        self.last = Some((thread, number));
        let named = &mut self.threads[number as usize];
        if !name.is_empty() && texts.text(named.name) != name {
            named.name = texts.number(name);
        }
        let process = &mut self.processes[named.process as usize];
        if !process_name.is_empty() && texts.text(process.name) != process_name {
            process.name = texts.number(process_name);
        }
        number
    }

    fn thread_number(&mut self, thread: Thread) -> u32 {
        if let Some(number) = self.thread_numbers.get(&thread) {
            return *number;
        }
        let processes = &mut self.processes;
        let process = *self.process_numbers.entry(thread.pid).or_insert_with(|| {
            let process = processes.len() as u32;
            processes.push(Named { of: thread.pid, name: 0, process });
            process
        });
        let number = self.threads.len() as u32;
        self.threads.push(Named { of: thread, name: 0, process });
        self.thread_numbers.insert(thread, number);
        number
    }

    /// The process of a thread.
    pub fn process_of(&self, thread: u32) -> u32 {
        self.threads[thread as usize].process
    }

    /// The number of a track.
    pub fn number(&mut self, track: Track) -> u32 {
        let Track { kind, owner, what, id, series, .. } = track;
        let list = &mut self.list;
        *self.numbers.entry((kind, owner, what, id, series)).or_insert_with(|| {
            list.push(track);
            list.len() as u32 - 1
        })
    }
}
