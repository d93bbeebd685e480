//! Finds the threads whose slices a reader misunderstands that puts records into the order of their times and
//! knows only stacks: Perfetto's processor, of its own format and of Chrome's.
//!
//! Of records with one time, the first in the file comes first for it. It sees what [`Interval::encloses`]
//! says, except where
//!
//! * slices overlap,
//! * a slice was recorded before a longer one that begins at the same time,
//! * a slice was recorded behind the begin of one that begins at its end,
//! * begins and ends are not in the order of their times, or
//! * the archive says why a begin has no end.
//!
//! Operations are odd if an end has not the name of the innermost open one of its process, category and id.
//! If an end may belong to another process, operations of that category and id are odd in all processes.
//!
//! Chrome's format has events that are whole slices. Of records with one time, the processor takes those that
//! last before all others. It ends a whole slice only where the next one begins, and until then, parts of
//! flows belong to that. In Perfetto's format, that is so of instants and of slices with a length in
//! microseconds.

use crate::interval::Interval;
use crate::partings::Partings;
use crate::roots::{Root, Roots};
use foldhash::fast::RandomState;
use operations::Operation;
use quick::{Clock, Quick};
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::io::Read;
use trace_reader::item::{EventKind, Koid, Ticks, TicksPerSecond};
use trace_reader::{Event, Input, Item, ReadError, Reader, Resolved, Text, Thread, ThreadNumbers, Time};

/// Threads and operations that are distinguished; with more, all are odd.
const MAX_KNOWN: usize = 1_000_000;
/// Begins without an end so far, and slices that are in no other one, of all threads.
const MAX_KEPT: usize = if cfg!(test) { 1000 } else { 1 << 20 };
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
    /// Categories and ids of operations that are odd in all processes.
    ids: HashSet<(u64, u64), std::hash::RandomState>,
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
        !self.is_all && self.threads.is_empty() && self.operations.is_empty() && self.ids.is_empty()
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
        let is_found = || !self.operations.is_empty() && self.operations.contains(operation);
        self.is_all || is_found() || self.has_id(operation)
    }

    fn has_id(&self, operation: &OperationKey) -> bool {
        !self.ids.is_empty() && self.ids.contains(&(operation.category, operation.id))
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
    /// It is for readers of complete records as Perfetto's processor reads Chrome's.
    has_whole: bool,
    /// The number of the last record of a slice.
    record: u64,
    kept: usize,
    max_kept: usize,
    /// Parts of flows that wait, of all threads.
    flows: usize,
    beside: Vec<Root<()>>,
}

/// Whether complete records of a clock are written as whole slices in Perfetto's format, if their lengths are
/// whole microseconds. Only a clock of nanoseconds, as imported traces have, has many of these.
#[inline]
#[must_use]
pub fn has_whole_slices(time: Time) -> bool {
    time.rate == TicksPerSecond::NANOSECONDS
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
    /// That of the last end for which nothing was open.
    unmatched: u64,
    /// While it has complete records alone, which take time and end in order.
    quick: Option<Quick>,
    /// It has no complete records. Its pairs are in each other in the order of their records.
    has_pairs_alone: bool,
    /// In the order of ends, as far as that holds.
    by_end: Option<Roots<()>>,
    /// In the order of begins, as far as that holds: the last begin, and the ends of what encloses the next.
    by_begin: Option<(u64, Vec<u64>)>,
    /// The last slice that takes no time, while they come in the order of begins.
    last_instant: Interval,
    /// The time of the last instant.
    last_moment: u64,
    /// The latest time of a part of a flow.
    last_flow: Option<u64>,
    /// Parts of flows behind the end of a whole slice that no other one had ended: that end, and their times.
    flows: Vec<(u64, u64)>,
}

/// Whether one of two slices is elsewhere for a reader that takes ends before other records of their time,
/// and whole slices that last before begins. The second one ends later, or is recorded later.
const fn is_misplaced(first: &Interval, second: &Interval) -> bool {
    let begin_together = first.begin == second.begin;
    match (second.is_pair(), first.is_instant()) {
        (true, true) => first.end == second.end,
        (true, false) => begin_together && !first.is_pair(),
        (false, true) => begin_together && !(first.is_pair() && second.is_instant()),
        (false, false) => false,
    }
}

impl OddFinder {
    /// One for readers of Chrome's format, in which a record may be a whole slice.
    #[must_use]
    pub fn of_whole_slices() -> Self {
        Self { has_whole: true, ..Self::default() }
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
        match event.kind {
            EventKind::DurationComplete { end } => {
                self.complete(event.thread, event.time, end);
            }
            // It comes when it is known that there is no end, and a later record may have its end.
            EventKind::DurationBegin if event.ending().is_some() => {
                if let Some(number) = self.thread(event.thread) {
                    self.set_odd(number);
                }
            }
            EventKind::DurationBegin => self.begin(event.thread, event.time.nanos().0),
            EventKind::DurationEnd => self.end(event.thread, event.time.nanos().0),
            EventKind::AsyncBegin { id } => {
                self.operation(OperationKey::of(event, id), token(event.name), event.time.nanos().0, false);
            }
            EventKind::AsyncEnd { id } => {
                self.operation(OperationKey::of(event, id), token(event.name), event.time.nanos().0, true);
            }
            EventKind::FlowBegin { .. } | EventKind::FlowStep { .. } | EventKind::FlowEnd { .. } => {
                self.flow(event.thread, event.time);
            }
            EventKind::Instant { .. } if !self.has_whole => self.instant(event.thread, event.time.nanos().0),
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
            // No slice is around it that began behind the last one.
            if !self.threads[number].flows.is_empty() {
                self.set_odd(number);
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
    fn complete(&mut self, thread: Thread, time: Time, end: Ticks) {
        let Some(number) = self.thread(thread) else { return };
        if self.flows > 0 || !self.is_quick(number, time, end) {
            self.whole(number, time, end);
        }
    }

    #[inline(never)]
    fn whole(&mut self, number: usize, time: Time, end: Ticks) {
        let begin = time.nanos().0;
        let interval = Interval {
            begin,
            end: Time { ticks: end, ..time }.nanos().0.max(begin),
            begun: self.record,
            ended: self.record,
        };
        if self.flows > 0 && self.has_misplaced_flow(number, &interval) {
            return self.set_odd(number);
        }
        if self.is_quick(number, time, end)
            || self.has_grown(number, time) && self.is_quick(number, time, end)
        {
            return;
        }
        self.slice(number, interval);
    }

    /// Adds a complete record the quick way, if that is one.
    #[inline]
    fn is_quick(&mut self, number: usize, time: Time, end: Ticks) -> bool {
        self.threads[number].quick.as_mut().is_some_and(|quick| quick.add(time, end))
    }

    /// Makes room for quick records, if that is what is missing.
    #[cold]
    fn has_grown(&mut self, number: usize, time: Time) -> bool {
        let Some(Quick { roots, clock, .. }) = &mut self.threads[number].quick else { return false };
        clock.get_or_insert_with(|| Clock::of(time));
        let before = roots.capacity();
        if roots.len() < before || self.kept > MAX_KEPT {
            return false;
        }
        roots.reserve(1);
        self.kept = self.kept + roots.capacity() - before;
        true
    }

    #[inline]
    fn begin(&mut self, thread: Thread, at: u64) {
        let Some(number) = self.part(thread, at) else { return };
        if self.kept >= self.max_kept.max(MAX_KEPT) {
            self.merge();
        }
        let state = &mut self.threads[number];
        if self.kept >= 2 * MAX_KEPT || state.refused > 0 {
            state.refused += 1;
            return;
        }
        state.open.push((at, self.record));
        self.kept += 1;
    }

    #[inline]
    fn end(&mut self, thread: Thread, at: u64) {
        let Some(number) = self.part(thread, at) else { return };
        let record = self.record;
        let state = &mut self.threads[number];
        let open = if state.refused == 0 { state.open.pop() } else { None };
        let Some((begin, begun)) = open else { return self.unmatched_end(number, at) };
        let interval = Interval { begin, end: at, begun, ended: record };
        if state.has_pairs_alone
            && self.flows == 0
            && begin < at
            && let Some(roots) = &mut state.by_end
        {
            self.kept = self.kept.wrapping_add_signed(roots.add_pair(interval, ()) - 1);
        } else {
            self.kept -= 1;
            self.pair(number, interval);
        }
    }

    #[inline(never)]
    fn pair(&mut self, number: usize, interval: Interval) {
        if self.flows > 0 && self.has_misplaced_flow(number, &interval) {
            return self.set_odd(number);
        }
        self.slice(number, interval);
    }

    /// An end for which nothing is open, or whose begin there was no room for.
    #[cold]
    fn unmatched_end(&mut self, number: usize, at: u64) {
        let state = &mut self.threads[number];
        if let Some(less) = state.refused.checked_sub(1) {
            state.refused = less;
            return;
        }
        // For a reader, it ends the whole slice around it.
        let is_around = !self.has_whole && state.last_end() > at;
        state.unmatched = at;
        if is_around {
            self.set_odd(number);
        }
    }

    /// The number of the thread of a begin or an end.
    #[inline]
    fn part(&mut self, thread: Thread, at: u64) -> Option<usize> {
        let number = self.thread(thread)?;
        let state = &mut self.threads[number];
        if at < state.last_part {
            self.set_odd(number);
            return None;
        }
        state.last_part = at;
        if state.quick.is_some() {
            self.leave_quick(number);
            let state = &mut self.threads[number];
            if state.has_pairs_alone {
                state.by_begin = None;
            }
        }
        Some(number)
    }

    #[inline]
    fn slice(&mut self, number: usize, interval: Interval) {
        if self.threads[number].quick.is_some() {
            self.leave_quick(number);
        }
        let state = &mut self.threads[number];
        state.has_pairs_alone &= interval.is_pair();
        let is_moved = |other: &Interval| self.has_whole && is_misplaced(other, &interval);
        let mut is_odd = if self.has_whole {
            interval.is_pair() && interval.is_instant()
        } else {
            interval.begin < state.unmatched
        };
        if let Some(roots) = &mut state.by_end {
            is_odd |= roots.since(interval.begin).any(is_moved);
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
                is_odd |= is_moved(&state.last_instant);
                if interval.is_instant() {
                    state.last_instant = interval;
                }
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
    #[cold]
    fn leave_quick(&mut self, number: usize) {
        let state = &mut self.threads[number];
        self.kept -= state.kept();
        state.leave_quick();
        self.kept += state.kept();
    }

    #[cold]
    fn set_odd(&mut self, number: usize) {
        let state = &mut self.threads[number];
        self.odd.threads.insert(state.thread);
        self.kept -= state.kept();
        self.flows -= state.flows.len();
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
}

impl ThreadState {
    fn new(thread: Thread) -> Self {
        Self {
            thread,
            is_odd: false,
            open: Vec::new(),
            refused: 0,
            last_part: 0,
            unmatched: 0,
            quick: Some(Quick { is_by_begin: true, ..Quick::default() }),
            has_pairs_alone: false,
            by_end: None,
            by_begin: None,
            last_instant: Interval { begin: u64::MAX, end: u64::MAX, begun: 0, ended: 0 },
            last_moment: 0,
            last_flow: None,
            flows: Vec::new(),
        }
    }

    /// When the last slice ends.
    fn last_end(&self) -> u64 {
        match &self.by_begin {
            // The first one is around the others.
            Some((_, ends)) if self.by_end.is_none() => ends.first().copied().unwrap_or(0),
            _ => self.last_whole(),
        }
    }

    /// When the last whole slice began, if they come in the order of their begins.
    fn last_begin(&self) -> Option<u64> {
        match &self.quick {
            Some(Quick { is_by_begin: true, last_begin, clock, .. }) => {
                Some(clock.map_or(0, |clock| clock.nanos(*last_begin)))
            }
            Some(_) => None,
            None => self.by_begin.as_ref().map(|(last, _)| *last),
        }
    }

    /// When the whole slices ended that a reader with a stack has on it; 0 if there is none.
    fn last_whole(&self) -> u64 {
        match (&self.quick, &self.by_begin, &self.by_end) {
            (Some(quick), ..) => quick.clock.map_or(0, |clock| clock.nanos(quick.last_end)),
            (_, Some((_, ends)), _) => ends.last().copied().unwrap_or(0),
            (_, _, Some(roots)) => roots.last_end(),
            _ => 0,
        }
    }

    #[cold]
    fn leave_quick(&mut self) {
        let Some(Quick { clock, last_begin, last_end, is_by_begin, roots }) = self.quick.take() else {
            return;
        };
        let nanos = |ticks| clock.map_or(0, |clock: Clock| clock.nanos(ticks));
        // No pair has begun yet, so that all of them have earlier records than what comes.
        let interval = |(record, (begin, end)): (u64, (u64, u64))| Interval {
            begin: nanos(begin),
            end: nanos(end),
            begun: record,
            ended: record,
        };
        let last = roots.last().map(|_| nanos(last_end));
        self.has_pairs_alone = last.is_none();
        self.by_end = Some(Roots::of((0..).zip(roots).map(interval).map(|interval| (interval, ()))));
        self.by_begin = is_by_begin.then(|| (nanos(last_begin), last.into_iter().collect()));
    }

    fn kept(&self) -> usize {
        let by_begin = self.by_begin.as_ref().map_or(0, |(_, ends)| ends.len());
        let quick = self.quick.as_ref().map_or(0, |quick| quick.roots.capacity());
        quick + self.open.len() + self.by_end.as_ref().map_or(0, Roots::len) + by_begin + self.flows.len()
    }
}

mod flows;
mod operations;
mod quick;
#[cfg(test)]
mod tests;
