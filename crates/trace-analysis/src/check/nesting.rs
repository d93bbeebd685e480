//! Durations of one thread that overlap: neither encloses the other, and none ends before the other begins.
//!
//! Of a thread whose durations end in the order of the file, as those of our programs do, only what nothing
//! encloses yet is kept. Those of other threads are sorted by their beginnings first.
//!
//! Each duration that overlaps one that began before it is reported.

use super::found::{EventPosition, Found};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use trace_format::units::{Koid, Nanos, Offset, ProviderId};
use trace_reader::sorter::{Sorter, words};
use trace_reader::{Disorder, Text, Thread, ThreadNumbers};

/// The kind of problem.
pub(super) const OVERLAPPING: &str = "overlapping-durations";

/// Durations of one thread that are kept: a later one that overlaps none of the last so many is not found to
/// overlap one before them.
pub(super) const MAX_KEPT: usize = 1024;
/// Durations of all threads that are kept, at 16 bytes.
const MAX_ALL_KEPT: usize = 200_000;
/// Threads whose durations are looked at.
const MAX_THREADS: usize = 20_000;

/// So many of those that were last are looked at before all are searched.
const NEAR: usize = 8;

/// A bit beside the number of a provider.
const IS_CHOSEN: u64 = 1 << 32;

/// A duration that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over<'a> {
    pub thread: Thread,
    pub begin: Nanos,
    pub end: Nanos,
    pub place: EventPosition,
    pub name: Text<'a>,
    pub is_chosen: bool,
}

/// All durations, as far as they have to be known.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    threads: ThreadNumbers,
    /// By the numbers of `threads`.
    known: Vec<Known>,
    kept: usize,
    sorter: Option<Sorter>,
    encoded: Vec<u8>,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Known {
    /// Begin and end of those that nothing encloses yet, in order.
    free: VecDeque<(Nanos, Nanos)>,
    /// The last end.
    end: Nanos,
    /// They have to be sorted.
    is_sorted: bool,
    /// They do not end in the order of the file, although they should: nothing is known.
    is_unknown: bool,
}

impl Nesting {
    /// Compares a duration with those before it; returns the problem with it.
    pub fn duration(&mut self, over: &Over<'_>, disorder: &Disorder) -> Option<Found> {
        let number = self.number(over.thread, disorder)?;
        if self.known[number].is_sorted {
            self.encoded.clear();
            over.encode(&mut self.encoded);
            self.sorter.get_or_insert_default().push(over.begin.0, &self.encoded);
            return None;
        }
        let known = &mut self.known[number];
        // Most enclose only a few.
        let is_before = |(begin, _): &(Nanos, Nanos)| *begin < over.begin;
        let near = known.free.iter().rev().take(NEAR).position(is_before);
        let beside =
            near.map_or_else(|| known.free.partition_point(is_before), |back| known.free.len() - back);
        let last_end = beside.checked_sub(1).map_or(Nanos(0), |last| known.free[last].1);
        let is_outer_first = last_end == over.end && over.begin < over.end;
        if known.is_unknown || over.end < known.end || is_outer_first {
            self.kept -= known.free.len();
            known.free = VecDeque::new();
            known.is_unknown = true;
            return None;
        }
        known.end = over.end;
        self.kept -= known.free.len() - beside;
        known.free.truncate(beside);
        if known.free.len() == MAX_KEPT || self.kept == MAX_ALL_KEPT {
            known.free.pop_front()?;
            self.kept -= 1;
        }
        known.free.push_back((over.begin, over.end));
        self.kept += 1;
        (last_end > over.begin && over.is_chosen).then(|| over.problem())
    }

    fn number(&mut self, thread: Thread, disorder: &Disorder) -> Option<usize> {
        let number = self.threads.number(thread, MAX_THREADS)?;
        if number == self.known.len() {
            let is_sorted = disorder.has_thread(thread) || disorder.has_ends_of(thread);
            self.known.push(Known { is_sorted, ..Known::default() });
        }
        Some(number)
    }

    /// Compares those that had to be sorted.
    pub fn finish(&mut self, mut found: impl FnMut(EventPosition, Found)) -> io::Result<()> {
        let Some(sorter) = self.sorter.take() else { return Ok(()) };
        let mut threads: HashMap<Thread, Open> = HashMap::new();
        let mut kept = 0;
        sorter.finish(|bytes| {
            let Some(over) = Over::decode(bytes) else { return Ok(()) };
            let open = threads.entry(over.thread).or_default();
            let before = open.len();
            if open.begin(over.begin, over.end, kept >= MAX_ALL_KEPT) && over.is_chosen {
                found(over.place, over.problem());
            }
            kept = kept + open.len() - before;
            Ok(())
        })
    }
}

/// The ends of the durations of a thread that are open, which come in the order of their begins.
#[derive(Debug, Default)]
struct Open {
    ends: BTreeSet<Nanos>,
    /// The ends of those that begin now: they do not overlap each other.
    together: BTreeSet<Nanos>,
    now: Nanos,
}

impl Open {
    fn len(&self) -> usize {
        self.ends.len() + self.together.len()
    }

    /// Takes the next one, and says whether it overlaps one that began before it.
    fn begin(&mut self, begin: Nanos, end: Nanos, is_full: bool) -> bool {
        if begin != self.now {
            self.ends.append(&mut self.together);
            self.now = begin;
            while self.ends.first().is_some_and(|end| *end <= begin) {
                self.ends.pop_first();
            }
        }
        let overlaps = self.ends.first().is_some_and(|first| *first < end);
        if begin < end {
            self.together.insert(end);
            // The outermost one encloses most, and is the least likely to be overlapped.
            if is_full || self.len() > MAX_KEPT {
                let outer = if self.ends.is_empty() { &mut self.together } else { &mut self.ends };
                outer.pop_last();
            }
        }
        overlaps
    }
}

impl<'a> Over<'a> {
    fn problem(&self) -> Found {
        let Thread { process, thread } = self.thread;
        let Self { name, begin, end, .. } = self;
        let text = format!(
            "{name:?} on thread {process}/{thread}, {begin} to {end}, begins in another duration and ends after it"
        );
        (OVERLAPPING, text)
    }

    fn encode(&self, to: &mut Vec<u8>) {
        let Self { thread, begin, end, place, name, is_chosen } = *self;
        let provider = u64::from(place.provider.0) | if is_chosen { IS_CHOSEN } else { 0 };
        let Thread { process, thread } = thread;
        let words = [process.0, thread.0, begin.0, end.0, place.offset.0, provider];
        to.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
        to.extend_from_slice(name.as_bytes());
    }

    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let ([process, thread, begin, end, offset, provider], name) = words(bytes).ok()?;
        let is_chosen = provider & IS_CHOSEN != 0;
        let provider = ProviderId(u32::try_from(provider & !IS_CHOSEN).ok()?);
        Some(Self {
            thread: Thread { process: Koid(process), thread: Koid(thread) },
            begin: Nanos(begin),
            end: Nanos(end),
            place: EventPosition { offset: Offset(offset), provider },
            name: Text(name),
            is_chosen,
        })
    }
}
