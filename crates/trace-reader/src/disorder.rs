//! Finds the threads and operations whose begins and ends are not in the order of their times.
//!
//! A format without an order of its own leaves it to the reader: some writers put all begins of a buffer
//! first, others write an end before what began later but ended earlier. Pairs are made in the order of
//! times, which for most threads is that of the file. A first pass finds the threads for which it is not:
//! only their begins and ends have to be sorted.

use crate::item::{Event, Item, KnownArgument, Text, Thread, Value};
use crate::names::Names;
use crate::reader::Reader;
use crate::records::ReadError;
use crate::thread_numbers::ThreadNumbers;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::sync::Arc;
use trace_format::event::EventKind;
use trace_format::units::{Koid, Nanos};

/// Threads and operations whose times are known; with more, none is taken to be in order.
const MAX_KNOWN: usize = 1_000_000;
/// Operations whose times are known before those of half of the ended ones are forgotten.
const MAX_OPERATIONS: usize = 400_000;

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

/// First polls that are known.
const MAX_FIRST_POLLS: usize = 1 << 20;

/// Threads and operations whose begins and ends are not in the order of their times, and what only later
/// records say: which durations are polls, and the names of processes and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// The ids of their operations.
    first_polls: HashMap<FirstPoll, u64>,
    threads: Keys<Thread>,
    /// Threads whose durations do not end in the order of the file.
    ends: Keys<Thread>,
    operations: Keys<OperationKey>,
    /// At the end of the trace, if an earlier pass has found them.
    names: Option<Arc<Names>>,
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
    #[inline]
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
    /// Of a begin.
    begun: Nanos,
    /// Of an end, or of the end of a complete duration.
    end: Nanos,
    /// When the first of the durations began that ended then; 0 if one was a pair.
    begin: Nanos,
    /// Whether a complete duration that ended then may be around one that is open.
    is_around: bool,
}

impl Last {
    /// Takes a complete duration, and says whether it ends too late to be inside another one.
    fn complete(&mut self, begin: Nanos, end: Nanos) -> bool {
        let Self { end: last_end, begin: first, .. } = *self;
        let is_with_last = end == last_end;
        // Of two that end together the inner one comes first; of two equal ones, the inner one is the second.
        let is_late = end < last_end || is_with_last && first <= begin && begin < end;
        self.is_around = self.is_around && is_with_last || begin < self.begun;
        self.begin = if is_with_last { first.min(begin) } else { begin };
        self.end = end;
        is_late
    }

    fn pair_begins(&mut self, at: Nanos) {
        // It may end together with a complete duration that is already over in the file.
        self.is_around |= self.begin <= at && at < self.end;
        self.begun = at;
    }

    /// Takes the end of a pair, and says whether it may end too late to be inside another one.
    fn pair_ends(&mut self, at: Nanos) -> bool {
        let is_with_last = at == self.end;
        let is_late = at < self.end || is_with_last && self.is_around;
        self.is_around &= is_with_last;
        // When it began is not known here.
        (self.begin, self.end) = (Nanos(0), at);
        is_late
    }
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

/// An async operation, or several with one key.
#[derive(Debug)]
struct Operation {
    /// How many have begun and not ended.
    open: u64,
    /// The time of its last part.
    last: Nanos,
}

/// The last times of all operations.
#[derive(Debug)]
struct Operations {
    known: HashMap<OperationKey, Operation>,
    /// So many are known before some are forgotten.
    limit: usize,
    /// The last time of those that were forgotten.
    forgotten: Nanos,
}

impl Default for Operations {
    fn default() -> Self {
        Self { known: HashMap::new(), limit: MAX_OPERATIONS, forgotten: Nanos(0) }
    }
}

impl Operations {
    /// Takes a begin or an end, and says whether it may be out of order.
    fn part(&mut self, key: OperationKey, at: Nanos, is_end: bool) -> bool {
        // What is not known may have been forgotten.
        let new = Operation { open: 0, last: self.forgotten };
        let operation = self.known.entry(key).or_insert(new);
        // The begin of an end without one may follow.
        let is_late = at < operation.last || is_end && operation.open == 0;
        operation.last = at;
        operation.open = if is_end { operation.open.saturating_sub(1) } else { operation.open + 1 };
        if self.known.len() >= self.limit {
            self.forget();
        }
        is_late
    }

    /// Forgets the earlier half of those that have ended.
    #[cold]
    fn forget(&mut self) {
        let ended = self.known.values().filter(|operation| operation.open == 0);
        let mut ended: Vec<Nanos> = ended.map(|operation| operation.last).collect();
        let middle = ended.len() / 2;
        if middle < ended.len() {
            let (_, last, _) = ended.select_nth_unstable(middle);
            self.forgotten = self.forgotten.max(*last);
            self.known.retain(|_, operation| operation.open > 0 || operation.last > self.forgotten);
        }
        self.limit = MAX_OPERATIONS.max(2 * self.known.len());
    }
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

    /// Whether everything is in order, and nothing is said late.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.has_parts_in_order() && self.ends.is_empty()
    }

    /// Whether begins and ends that have to be paired are in order, and nothing is said late about them.
    /// Those of complete durations may be out of order.
    #[must_use]
    pub fn has_parts_in_order(&self) -> bool {
        self.threads.is_empty() && self.operations.is_empty() && self.first_polls.is_empty()
    }

    /// The same, with the names at the end of the trace: the last name of an object counts for all of it.
    //= docs/meaning.md#names
    #[must_use]
    pub fn with_names(self, names: Names) -> Self {
        Self { names: Some(Arc::new(names)), ..self }
    }

    /// The names at the end of the trace, if they are known.
    #[must_use]
    pub fn names(&self) -> Option<&Names> {
        self.names.as_deref()
    }

    /// The id of the operation whose first poll a duration is that begins here.
    //= docs/meaning.md#polls
    #[inline]
    #[must_use]
    pub fn first_poll(&self, event: &Event<'_>) -> Option<u64> {
        if self.first_polls.is_empty() {
            return None;
        }
        self.first_polls.get(&FirstPoll::of(event)).copied()
    }

    /// Whether begins and ends of durations on a thread are out of order.
    #[inline]
    #[must_use]
    pub fn has_thread(&self, thread: Thread) -> bool {
        self.threads.has(&thread)
    }

    /// Whether the ends of durations on a thread, complete ones too, are out of order.
    #[inline]
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

/// What an operation and its first poll have in common: process, time, and a number for category and name.
/// Not the thread: formats of others have operations of processes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FirstPoll(Koid, Nanos, u64);

impl FirstPoll {
    /// Of a duration that begins, or of the begin of an operation that [has](has_first_poll) one.
    #[must_use]
    pub fn of(event: &Event<'_>) -> Self {
        let mut hasher = DefaultHasher::new();
        (event.category, event.name).hash(&mut hasher);
        Self(event.thread.process, event.time.nanos(), hasher.finish())
    }
}

/// Whether an operation says at its begin that a duration is its first poll.
#[must_use]
pub fn has_first_poll(event: &Event<'_>) -> bool {
    !event.arguments.is_empty()
        && event.arguments.find_known(KnownArgument::FirstPoll) == Some(Value::Bool(true))
}

/// Finds disorder while another one reads the archive.
#[derive(Debug, Default)]
pub struct Finder {
    disorder: Disorder,
    times: Times,
    operations: Operations,
}

impl Finder {
    /// Takes an event, in the order of the archive.
    pub fn event(&mut self, event: &Event<'_>) {
        let Self { disorder, times, operations } = self;
        let nanos = event.time.nanos();
        match event.kind {
            EventKind::DurationBegin | EventKind::DurationEnd => {
                let last = times.of(event.thread);
                if nanos < last.part {
                    disorder.threads.insert(event.thread);
                }
                last.part = nanos;
                if event.kind == EventKind::DurationBegin {
                    last.pair_begins(nanos);
                } else if last.pair_ends(nanos) {
                    disorder.ends.insert(event.thread);
                }
            }
            EventKind::DurationComplete { end } => {
                let is_late = times.of(event.thread).complete(nanos, end.to_nanos(event.time.rate));
                if is_late {
                    disorder.ends.insert(event.thread);
                }
            }
            EventKind::AsyncBegin { id } | EventKind::AsyncEnd { id } => {
                if let EventKind::AsyncBegin { .. } = event.kind
                    && has_first_poll(event)
                    && disorder.first_polls.len() < MAX_FIRST_POLLS
                {
                    disorder.first_polls.insert(FirstPoll::of(event), id);
                }
                let key = OperationKey::new(event.category, id);
                if operations.part(key, nanos, matches!(event.kind, EventKind::AsyncEnd { .. })) {
                    disorder.operations.insert(key);
                }
            }
            _ => {}
        }
        if times.known.len() > MAX_KNOWN {
            (disorder.threads, disorder.ends) = (Keys::All, Keys::All);
            *times = Times::default();
        }
        if operations.known.len() > MAX_KNOWN {
            disorder.operations = Keys::All;
            *operations = Operations::default();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of a thread.
    enum Made {
        Complete(u64, u64),
        Begin(u64),
        End(u64),
    }

    /// Whether durations of a thread do not end in order.
    fn is_late(made: &[Made]) -> bool {
        let mut last = Last::default();
        let late = made.iter().map(|made| match *made {
            Made::Complete(begin, end) => last.complete(Nanos(begin), Nanos(end)),
            Made::Begin(at) => {
                last.pair_begins(Nanos(at));
                false
            }
            Made::End(at) => last.pair_ends(Nanos(at)),
        });
        late.fold(false, |any, is_late| any | is_late)
    }

    //= docs/meaning.md#what-is-inside-what
    #[test]
    fn what_ends_behind_something_that_is_around_it_is_late() {
        use Made::{Begin, Complete, End};
        for (made, expected) in [
            (&[Complete(0, 50), Complete(10, 40)][..], true),
            (&[Complete(0, 50), Complete(10, 50)], true),
            (&[Complete(10, 50), Complete(0, 50)], false),
            (&[Complete(0, 50), Complete(0, 50)], true),
            (&[Complete(0, 50), Complete(50, 50), Complete(50, 50), Complete(50, 60)], false),
            (&[Complete(0, 50), Complete(50, 50), Complete(10, 50)], true),
            (&[Complete(0, 50), Complete(10, 60)], false),
            // A pair that ended may have begun before.
            (&[Begin(0), End(50), Complete(10, 50)], true),
            (&[Begin(0), End(50), Complete(10, 49)], true),
            (&[Begin(0), End(50), Complete(50, 60)], false),
            // A complete duration is in the pair that began before it, and around those that began later.
            (&[Begin(0), Complete(10, 50), End(50)], false),
            (&[Begin(0), Begin(10), End(20), Complete(30, 50), End(50)], false),
            (&[Begin(10), Complete(0, 50), End(50)], true),
            (&[Complete(0, 50), Begin(0), End(50)], true),
            (&[Complete(0, 50), Begin(10), End(50)], true),
            (&[Complete(0, 50), Begin(10), End(60)], false),
            (&[Complete(0, 50), Begin(50), End(50)], false),
            (&[Begin(10), Complete(0, 50), Complete(20, 60), End(60)], false),
        ] {
            assert_eq!(is_late(made), expected);
        }
    }

    //= docs/check.md#order
    #[test]
    fn an_operation_may_begin_before_one_of_its_key_has_ended() {
        let mut operations = Operations::default();
        let key = OperationKey::new(Text(b"c"), 1);
        let mut part = |at, is_end| operations.part(key, Nanos(at), is_end);
        assert_eq!([part(0, false), part(4, true), part(4, false), part(5, true)], [false; 4]);
        assert_eq!([part(2, false), part(9, true), part(9, true)], [true, false, true]);
    }

    #[test]
    fn the_earlier_half_of_the_ended_operations_is_forgotten() {
        let mut operations = Operations::default();
        let key = |number: u64| OperationKey::new(Text(b"c"), number);
        let count = MAX_OPERATIONS as u64;
        assert!(!operations.part(key(count), Nanos(5), false));
        for number in 1..count {
            assert!(!operations.part(key(number), Nanos(2 * number), false));
            assert!(!operations.part(key(number), Nanos(2 * number + 1), true));
        }
        let known = operations.known.len();
        assert!(known.abs_diff(MAX_OPERATIONS / 2) <= 1, "{known}");
        // One that is open is not forgotten, nor is the later half; of others it is not known any more.
        assert!(!operations.part(key(count), Nanos(6), true));
        assert!(operations.part(key(count - 1), Nanos(2 * count - 2), false));
        assert!(operations.part(key(count + 1), Nanos(7), false));
        assert!(!operations.part(key(count + 2), Nanos(count + 9), false));
    }
}
