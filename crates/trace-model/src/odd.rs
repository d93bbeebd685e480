//! Finds the tracks whose slices a reader misunderstands that puts records into the order of their times and
//! knows only stacks.
//!
//! Such readers are Perfetto's and Chrome's. Of records with one time the first in the file comes first for
//! them. They see what [`Interval::encloses`] says unless slices overlap, a slice was recorded before a
//! longer one that begins at the same time, begins and ends are not in the order of their times, or the
//! archive says why a begin has no end. Operations are odd if an end has not the name of the innermost open
//! one of its
//! process, category and id.

use crate::interval::Interval;
use crate::partings::Partings;
use crate::roots::{Root, Roots};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::io::Read;
use trace_reader::item::{EventKind, Koid};
use trace_reader::{Event, Input, Item, ReadError, Reader, Resolved, Text, Thread, ThreadNumbers, Time};

/// Threads and operations that are distinguished; with more, all are odd.
const MAX_KNOWN: usize = 1_000_000;
/// Begins without an end so far, and slices that are in no other one, of all threads.
const MAX_KEPT: usize = if cfg!(test) { 1000 } else { 1 << 20 };
/// Operations that have ended and may have parts again.
const MAX_ENDED: usize = 100_000;
/// How many slices become one when there are more.
const MERGED: usize = 64;

/// An asynchronous operation of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationKey {
    /// The process.
    pub process: Koid,
    /// Stands for the category: equal ones have equal numbers.
    pub category: u64,
    /// The id.
    pub id: u64,
}

impl OperationKey {
    /// The operation that an event is part of.
    #[must_use]
    pub fn of(event: &Event<'_>, id: u64) -> Self {
        Self { process: event.thread.process, category: token(event.category), id }
    }
}

/// A number for a text, the same in each run.
#[must_use]
pub fn token(text: Text<'_>) -> u64 {
    foldhash::fast::FixedState::default().hash_one(text.as_bytes())
}

/// Threads and operations whose slices have to be brought into an order first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Odd {
    threads: HashSet<Thread, std::hash::RandomState>,
    operations: HashSet<OperationKey, std::hash::RandomState>,
    /// There are too many to distinguish them.
    is_all: bool,
    partings: Partings,
}

impl Odd {
    /// Reads an archive for what is odd in it, as far as it can be read.
    ///
    /// # Errors
    /// The input is no archive at all.
    pub fn find(mut input: impl Read, finder: OddFinder) -> Result<Self, ReadError> {
        let input: &mut dyn Read = &mut input;
        Ok(Self::of(Reader::new(input)?, finder))
    }

    /// As [`Odd::find`], for an archive in memory.
    ///
    /// # Errors
    /// The bytes are no archive.
    pub fn find_in(bytes: &[u8], finder: OddFinder) -> Result<Self, ReadError> {
        Ok(Self::of(Reader::of_slice(bytes)?, finder))
    }

    fn of<I: Input>(mut reader: Reader<I>, mut finder: OddFinder) -> Self {
        // Errors are left to the pass behind this one.
        while let Ok(Some(record)) = reader.next_item() {
            finder.record(&record);
        }
        finder.finish()
    }

    /// Whether nothing is odd.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.is_all && self.threads.is_empty() && self.operations.is_empty()
    }

    /// Whether the slices of a thread are odd.
    #[inline]
    #[must_use]
    pub fn has_thread(&self, thread: Thread) -> bool {
        self.is_all || !self.threads.is_empty() && self.threads.contains(&thread)
    }

    /// The reasons of begins that have no end, as far as a record of their own does not say them.
    #[must_use]
    pub const fn partings(&self) -> &Partings {
        &self.partings
    }

    /// Whether the parts of an operation are odd.
    #[must_use]
    pub fn has_operation(&self, operation: &OperationKey) -> bool {
        self.is_all || !self.operations.is_empty() && self.operations.contains(operation)
    }
}

/// Finds what is odd while another one reads the archive.
#[derive(Debug, Default)]
pub struct OddFinder {
    odd: Odd,
    numbers: ThreadNumbers,
    /// The last thread, and its number.
    last: Option<(Thread, usize)>,
    threads: Vec<ThreadState>,
    operations: HashMap<OperationKey, Operation, RandomState>,
    /// When operations ended, as far as there is room.
    ended: HashMap<OperationKey, u64, RandomState>,
    /// In which processes operations are open.
    begun: HashMap<Named, Vec<(Koid, i64)>, RandomState>,
    /// Categories, names and ids of ends that stand before any begin: that may follow in another process.
    early: HashSet<Named, RandomState>,
    /// Pairs that take no time are odd, too.
    are_instant_pairs_odd: bool,
    /// The number of the last record of a slice.
    record: u64,
    kept: usize,
    max_kept: usize,
    beside: Vec<Root<()>>,
}

/// The slices of a thread, which come in the order of their ends or in that of their begins.
#[derive(Debug)]
struct ThreadState {
    thread: Thread,
    is_odd: bool,
    /// Begins without an end so far, with the numbers of their records, and how many there was no room for.
    open: Vec<(u64, u64)>,
    refused: u64,
    /// The time of the last begin or end.
    last_part: u64,
    /// While it has complete records alone, which take time and end in order.
    quick: Option<Quick>,
    /// In the order of ends, as far as that holds.
    by_end: Option<Roots<()>>,
    /// In the order of begins, as far as that holds: the last begin, and the ends of what encloses the next.
    by_begin: Option<(u64, Vec<u64>)>,
}

/// Category, name and id of an operation.
type Named = (u64, u64, u64);

/// The same as the roots of a thread, in fewer instructions.
#[derive(Debug, Default)]
struct Quick {
    last_begin: u64,
    last_end: u64,
    /// They begin in order, too: none is in another.
    is_by_begin: bool,
    /// Begins and ends of slices that are in no other one.
    roots: Vec<(u64, u64)>,
}

impl Quick {
    /// Adds a complete record, if there is room and nothing has to be compared but this.
    #[inline]
    fn add(&mut self, begin: u64, end: u64) -> bool {
        let Self { last_begin, last_end, is_by_begin, roots } = self;
        if begin >= end || end < *last_end {
            return false;
        }
        while roots.pop_if(|(root, _)| *root > begin).is_some() {}
        // It may begin with the last one, overlap it, or be in it.
        if roots.last().is_some_and(|(_, root_end)| *root_end > begin) || roots.len() == roots.capacity() {
            return false;
        }
        roots.push((begin, end));
        *is_by_begin &= begin >= *last_begin;
        (*last_begin, *last_end) = (begin, end);
        true
    }
}

/// An operation that has begun.
#[derive(Debug, Default)]
struct Operation {
    last: u64,
    /// The names of its open parts.
    open: Vec<u64>,
}

impl OddFinder {
    /// One for readers that misunderstand pairs that take no time.
    #[must_use]
    pub fn with_instant_pairs() -> Self {
        Self { are_instant_pairs_odd: true, ..Self::default() }
    }

    /// Takes a record, in the order of the archive.
    #[inline]
    pub fn record(&mut self, record: &Resolved<'_>) {
        self.odd.partings.note(record);
        if let Item::Event(event) = &record.item {
            self.event(event);
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let at = event.time.nanos().0;
        match event.kind {
            EventKind::DurationComplete { end } => {
                let end = Time { ticks: end, ..event.time }.nanos().0;
                self.complete(event.thread, at, end.max(at));
            }
            // It comes when it is known that there is no end, and a later record may have its end.
            EventKind::DurationBegin if event.ending().is_some() => {
                if let Some(number) = self.thread(event.thread) {
                    self.set_odd(number);
                }
            }
            EventKind::DurationBegin => self.begin(event.thread, at),
            EventKind::DurationEnd => self.end(event.thread, at),
            EventKind::AsyncBegin { id } => {
                self.operation(OperationKey::of(event, id), token(event.name), at, false);
            }
            EventKind::AsyncEnd { id } => {
                self.operation(OperationKey::of(event, id), token(event.name), at, true);
            }
            _ => {}
        }
    }

    /// Whether nothing was odd so far.
    #[inline]
    #[must_use]
    pub fn has_nothing(&self) -> bool {
        self.odd.is_empty()
    }

    /// What was found in the whole archive.
    #[must_use]
    pub fn finish(mut self) -> Odd {
        for number in 0..self.threads.len() {
            let ThreadState { thread, open, .. } = &self.threads[number];
            let has_reason = |(begin, _): &(u64, u64)| self.odd.partings.of(thread.process, *begin).is_some();
            if open.iter().any(has_reason) {
                self.set_odd(number);
            }
            while let Some((begin, begun)) = self.threads[number].open.pop() {
                self.record += 1;
                let interval = Interval { begin, end: u64::MAX, begun, ended: self.record };
                self.slice(number, interval);
            }
        }
        self.odd
    }

    #[inline]
    fn thread(&mut self, thread: Thread) -> Option<usize> {
        self.record += 1;
        let number = match self.last {
            Some((last, number)) if last == thread => number,
            _ => self.other_thread(thread)?,
        };
        (!self.threads[number].is_odd).then_some(number)
    }

    #[inline(never)]
    fn other_thread(&mut self, thread: Thread) -> Option<usize> {
        let Some(number) = self.numbers.number(thread, MAX_KNOWN) else {
            self.odd.is_all = true;
            return None;
        };
        if number == self.threads.len() {
            self.threads.push(ThreadState::new(thread));
        }
        self.last = Some((thread, number));
        Some(number)
    }

    #[inline]
    fn complete(&mut self, thread: Thread, begin: u64, end: u64) {
        let Some(number) = self.thread(thread) else { return };
        if self.is_quick(number, begin, end) || self.has_grown(number) && self.is_quick(number, begin, end) {
            return;
        }
        self.slice(number, Interval { begin, end, begun: self.record, ended: self.record });
    }

    /// Adds a complete record the quick way, if that is one.
    #[inline]
    fn is_quick(&mut self, number: usize, begin: u64, end: u64) -> bool {
        self.threads[number].quick.as_mut().is_some_and(|quick| quick.add(begin, end))
    }

    /// Makes room for quick records, if that is what is missing.
    #[cold]
    fn has_grown(&mut self, number: usize) -> bool {
        let Some(Quick { roots, .. }) = &mut self.threads[number].quick else { return false };
        let before = roots.capacity();
        if roots.len() < before || self.kept > MAX_KEPT {
            return false;
        }
        roots.reserve(1);
        self.kept = self.kept + roots.capacity() - before;
        true
    }

    fn begin(&mut self, thread: Thread, at: u64) {
        let Some(number) = self.part(thread, at) else { return };
        self.leave_quick(number);
        let state = &mut self.threads[number];
        if self.kept >= MAX_KEPT || state.refused > 0 {
            state.refused += 1;
            return;
        }
        state.open.push((at, self.record));
        self.kept += 1;
    }

    fn end(&mut self, thread: Thread, at: u64) {
        let Some(number) = self.part(thread, at) else { return };
        let state = &mut self.threads[number];
        if let Some(less) = state.refused.checked_sub(1) {
            state.refused = less;
        } else if let Some((begin, begun)) = state.open.pop() {
            self.kept -= 1;
            self.slice(number, Interval { begin, end: at, begun, ended: self.record });
        }
    }

    /// The number of the thread of a begin or an end.
    fn part(&mut self, thread: Thread, at: u64) -> Option<usize> {
        let number = self.thread(thread)?;
        let state = &mut self.threads[number];
        if at < state.last_part {
            self.set_odd(number);
            return None;
        }
        state.last_part = at;
        Some(number)
    }

    #[inline]
    fn slice(&mut self, number: usize, interval: Interval) {
        self.leave_quick(number);
        let state = &mut self.threads[number];
        let mut is_odd = self.are_instant_pairs_odd && interval.is_pair() && interval.is_instant();
        if let Some(roots) = &mut state.by_end {
            let before = roots.len();
            match roots.add(interval, (), &mut self.beside, |_| ()) {
                Ok(added) => {
                    is_odd |= added.is_odd;
                    self.kept = self.kept + roots.len() - before;
                }
                Err(_) => {
                    self.kept -= before;
                    state.by_end = None;
                }
            }
        }
        if let Some((last, ends)) = &mut state.by_begin {
            if interval.begin < *last || interval.is_pair() {
                self.kept -= ends.len();
                state.by_begin = None;
            } else {
                let before = ends.len();
                while ends.pop_if(|end| *end <= interval.begin).is_some() {}
                is_odd |= ends.last().is_some_and(|around| *around < interval.end);
                *last = interval.begin;
                ends.push(interval.end);
                self.kept = self.kept + ends.len() - before;
            }
        }
        if is_odd || state.by_end.is_none() && state.by_begin.is_none() {
            self.set_odd(number);
        } else if self.kept > self.max_kept.max(MAX_KEPT) {
            self.merge();
        }
    }

    /// From here on, slices of a thread are compared as such.
    #[inline]
    fn leave_quick(&mut self, number: usize) {
        let state = &mut self.threads[number];
        if state.quick.is_some() {
            self.kept -= state.kept();
            state.leave_quick();
            self.kept += state.kept();
        }
    }

    #[cold]
    fn set_odd(&mut self, number: usize) {
        let state = &mut self.threads[number];
        self.odd.threads.insert(state.thread);
        self.kept -= state.kept();
        *state = ThreadState { is_odd: true, quick: None, ..ThreadState::new(state.thread) };
    }

    /// Merges old slices of threads that end in order; threads that begin in order and are too deep are odd.
    #[cold]
    fn merge(&mut self) {
        for number in 0..self.threads.len() {
            let state = &mut self.threads[number];
            state.leave_quick();
            if let Some(roots) = &mut state.by_end {
                roots.merge(MERGED);
                state.by_begin = None;
            } else if state.kept() > MAX_KEPT / 2 {
                self.set_odd(number);
            }
        }
        self.kept = self.threads.iter().map(ThreadState::kept).sum();
        // What cannot be merged is not looked at again for each further slice.
        self.max_kept = 2 * self.kept;
    }

    fn operation(&mut self, key: OperationKey, name: u64, at: u64, is_end: bool) {
        let named = (key.category, name, key.id);
        if self.odd.has_operation(&key) {
            return;
        }
        if is_end && !self.operations.contains_key(&key) {
            // It began in another process, or its begin may follow.
            self.odd.operations.insert(key);
            if self.early.len() < MAX_KNOWN {
                self.early.insert(named);
            } else {
                self.odd.is_all = true;
            }
            for (process, _) in self.begun.get(&named).into_iter().flatten() {
                let other = OperationKey { process: *process, ..key };
                self.operations.remove(&other);
                self.odd.operations.insert(other);
            }
            return;
        }
        if !is_end && !self.early.is_empty() && self.early.contains(&named) {
            self.operations.remove(&key);
            self.odd.operations.insert(key);
            return;
        }
        let operation = self.operations.entry(key).or_insert_with(|| {
            let last = self.ended.remove(&key).unwrap_or(0);
            Operation { last, open: Vec::new() }
        });
        let mut is_odd = at < operation.last;
        operation.last = at;
        if is_end {
            // Another name, or not the innermost.
            is_odd |= operation.open.last() != Some(&name);
            if !is_odd {
                operation.open.pop();
            }
        } else {
            operation.open.push(name);
        }
        if is_odd || operation.open.is_empty() {
            self.operations.remove(&key);
            if self.ended.len() >= MAX_ENDED {
                self.ended.clear();
            }
            self.ended.insert(key, at);
        }
        if is_odd {
            self.odd.operations.insert(key);
        } else {
            self.count(named, key.process, if is_end { -1 } else { 1 });
        }
        if self.operations.len().max(self.odd.operations.len()) > MAX_KNOWN {
            self.odd.is_all = true;
        }
    }

    /// Counts open operations with a name in a process.
    fn count(&mut self, named: Named, process: Koid, change: i64) {
        let begun = self.begun.entry(named).or_default();
        match begun.iter_mut().find(|(of, _)| *of == process) {
            Some((_, count)) => *count += change,
            None => begun.push((process, change)),
        }
        begun.retain(|(_, count)| *count > 0);
        if begun.is_empty() {
            self.begun.remove(&named);
        }
        if self.begun.len() > MAX_KNOWN {
            self.odd.is_all = true;
        }
    }
}

impl ThreadState {
    fn new(thread: Thread) -> Self {
        Self {
            thread,
            is_odd: false,
            open: Vec::new(),
            refused: 0,
            last_part: 0,
            quick: Some(Quick { is_by_begin: true, ..Quick::default() }),
            by_end: None,
            by_begin: None,
        }
    }

    #[cold]
    fn leave_quick(&mut self) {
        let Some(Quick { last_begin, last_end, is_by_begin, roots }) = self.quick.take() else { return };
        // No pair has begun yet, so that all of them have earlier records than what comes.
        let interval =
            |(record, (begin, end)): (u64, (u64, u64))| Interval { begin, end, begun: record, ended: record };
        let last = roots.last().map(|_| last_end);
        self.by_end = Some(Roots::of((0..).zip(roots).map(interval).map(|interval| (interval, ()))));
        self.by_begin = is_by_begin.then(|| (last_begin, last.into_iter().collect()));
    }

    fn kept(&self) -> usize {
        let by_begin = self.by_begin.as_ref().map_or(0, |(_, ends)| ends.len());
        let quick = self.quick.as_ref().map_or(0, |quick| quick.roots.capacity());
        quick + self.open.len() + self.by_end.as_ref().map_or(0, Roots::len) + by_begin
    }
}

#[cfg(test)]
mod tests;
