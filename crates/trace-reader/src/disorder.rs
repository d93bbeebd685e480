//! Finds the threads and operations whose begins and ends are not in the order of their times.
//!
//! A format without an order of its own leaves it to the reader: some writers put all begins of a buffer
//! first, others write an end before what began later but ended earlier. Pairs are made in the order of
//! times, which for most threads is that of the file. A first pass finds the threads for which it is not:
//! only their begins and ends have to be sorted.

use crate::item::{Event, Item, Text, Thread};
use crate::reader::Reader;
use crate::records::ReadError;
use crate::thread_numbers::ThreadNumbers;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use trace_format::event::EventKind;
use trace_format::units::Nanos;

/// Threads and operations whose times are known; with more, none is taken to be in order.
const MAX_KNOWN: usize = 1_000_000;

/// The common key of the parts of async operations that may belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationKey(u64);

impl OperationKey {
    /// The key of a category and an id. Names and processes may differ within an operation.
    #[must_use]
    pub fn new(category: Text<'_>, id: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        (category, id).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Threads and operations whose begins and ends are not in the order of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    threads: Keys<Thread>,
    /// Threads whose durations do not end in the order of the file.
    ends: Keys<Thread>,
    operations: Keys<OperationKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Keys<K: Hash + Eq> {
    Some(HashSet<K>),
    /// Too many threads to remember: all are sorted.
    All,
}

impl<K: Hash + Eq> Default for Keys<K> {
    fn default() -> Self {
        Self::Some(HashSet::new())
    }
}

impl<K: Hash + Eq> Keys<K> {
    fn has(&self, key: &K) -> bool {
        match self {
            Self::Some(keys) => !keys.is_empty() && keys.contains(key),
            Self::All => true,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Some(keys) if keys.is_empty())
    }

    fn insert(&mut self, key: K) {
        if let Self::Some(keys) = self {
            keys.insert(key);
            if keys.len() > MAX_KNOWN {
                *self = Self::All;
            }
        }
    }
}

/// The last times of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// Of a begin or end.
    part: Nanos,
    /// Of an end, or of the end of a complete duration; and when that one began.
    end: Nanos,
    begin: Nanos,
}

/// The last times of all threads.
#[derive(Debug, Default)]
struct Times {
    threads: ThreadNumbers,
    /// By number.
    known: Vec<Last>,
}

impl Times {
    fn of(&mut self, thread: Thread) -> &mut Last {
        // There is always a number: with more threads than that, all are forgotten.
        let number = self.threads.number(thread, MAX_KNOWN + 1).unwrap_or(0);
        if number == self.known.len() {
            self.known.push(Last::default());
        }
        &mut self.known[number]
    }
}

/// An async operation that has begun.
#[derive(Debug, Default)]
struct Begun {
    count: u64,
    last: Nanos,
}

impl Disorder {
    /// Reads an archive for the order of its begins and ends, as far as it can be read.
    ///
    /// # Errors
    /// The input is no archive at all.
    pub fn find(input: impl Read) -> Result<Self, ReadError> {
        Ok(Self::of(Reader::new(input)?))
    }

    /// As [`Disorder::find`], for an archive in memory.
    ///
    /// # Errors
    /// The bytes are no archive.
    pub fn find_in(bytes: &[u8]) -> Result<Self, ReadError> {
        Ok(Self::of(Reader::of_slice(bytes)?))
    }

    fn of<I: crate::Input>(mut reader: Reader<I>) -> Self {
        let mut finder = Finder::default();
        // Errors are left to the second pass to report.
        while let Ok(Some(record)) = reader.next_item() {
            if let Item::Event(event) = record.item {
                finder.event(&event);
            }
        }
        finder.disorder
    }

    /// Whether everything is in order.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.ends.is_empty() && self.operations.is_empty()
    }

    /// Whether begins and ends that have to be paired are in order; those of complete durations may not be.
    #[must_use]
    pub fn has_parts_in_order(&self) -> bool {
        self.threads.is_empty() && self.operations.is_empty()
    }

    /// Whether begins and ends of durations on a thread are out of order.
    #[must_use]
    pub fn has_thread(&self, thread: Thread) -> bool {
        self.threads.has(&thread)
    }

    /// Whether the ends of durations on a thread, complete ones too, are out of order.
    #[must_use]
    pub fn has_ends_of(&self, thread: Thread) -> bool {
        self.ends.has(&thread)
    }

    /// Whether begins and ends of an operation are out of order.
    #[must_use]
    pub fn has_operation(&self, key: OperationKey) -> bool {
        self.operations.has(&key)
    }
}

/// Finds disorder while another one reads the archive.
#[derive(Debug, Default)]
pub struct Finder {
    disorder: Disorder,
    times: Times,
    begun: HashMap<OperationKey, Begun>,
}

impl Finder {
    /// Takes an event, in the order of the archive.
    pub fn event(&mut self, event: &Event<'_>) {
        let Self { disorder, times, begun } = self;
        let nanos = event.time.nanos();
        match event.kind {
            EventKind::DurationBegin | EventKind::DurationEnd => {
                let last = times.of(event.thread);
                if nanos < last.part {
                    disorder.threads.insert(event.thread);
                }
                last.part = nanos;
                if event.kind == EventKind::DurationEnd {
                    if nanos < last.end {
                        disorder.ends.insert(event.thread);
                    }
                    // When it began is not known here.
                    (last.begin, last.end) = (Nanos(0), nanos);
                }
            }
            EventKind::DurationComplete { end } => {
                let last = times.of(event.thread);
                let end = end.to_nanos(event.time.rate);
                // Of two that end together, the inner one comes first.
                if end < last.end || end == last.end && nanos > last.begin {
                    disorder.ends.insert(event.thread);
                }
                (last.begin, last.end) = (nanos, end);
            }
            EventKind::AsyncBegin { id } => {
                let key = OperationKey::new(event.category, id);
                let begun = begun.entry(key).or_default();
                if nanos < begun.last {
                    disorder.operations.insert(key);
                }
                begun.last = nanos;
                begun.count += 1;
            }
            EventKind::AsyncEnd { id } => {
                let key = OperationKey::new(event.category, id);
                match begun.get_mut(&key) {
                    Some(of_key) => {
                        if nanos < of_key.last {
                            disorder.operations.insert(key);
                        }
                        of_key.last = nanos;
                        of_key.count -= 1;
                        if of_key.count == 0 {
                            begun.remove(&key);
                        }
                    }
                    // Its begin may follow.
                    None => disorder.operations.insert(key),
                }
            }
            _ => {}
        }
        if times.known.len() > MAX_KNOWN {
            (disorder.threads, disorder.ends) = (Keys::All, Keys::All);
            *times = Times::default();
        }
        if begun.len() > MAX_KNOWN {
            disorder.operations = Keys::All;
            begun.clear();
        }
    }

    /// Whether everything so far is in order.
    #[inline]
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.disorder.is_empty()
    }

    /// Whether begins and ends that have to be paired are in order so far.
    #[inline]
    #[must_use]
    pub fn has_parts_in_order(&self) -> bool {
        self.disorder.has_parts_in_order()
    }

    /// What was found.
    #[must_use]
    pub fn finish(self) -> Disorder {
        self.disorder
    }
}
