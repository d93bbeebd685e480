//! Durations and operations: begins and ends are paired, and each duration of a thread finds those inside it.
//!
//! Begins and ends pair as in the table `slices`. Programs record a duration when it ends, so a thread's
//! durations come in the order of their ends, those inside first: [`Roots`] hold what has ended until one
//! arrives that is around it. The durations of threads that [`Disorder`] names are sorted by their begins
//! for [`Nesting`]. If it names them because of begins and ends, all records of durations are sorted
//! before, so that their numbers have the order of times.
//= docs/stats.md#self-time

use crate::names::{What, Whats};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::io;
use trace_format::scopes::Ending;
use trace_format::units::Koid;
use trace_model::{
    Begin, Ended, Interval, Nesting, OperationKey, Pairing, Root, Roots, Shape, Unended, poll_of,
};
use trace_reader::sorter::{Sorter, words};
use trace_reader::{Disorder, Event, Text, Thread, ThreadNumbers};

/// Threads that are distinguished; all others count as one.
const MAX_THREADS: usize = 100_000;
/// Durations of all threads together that wait for what is around them: 64 MiB.
const MAX_WAITING: usize = (64 << 20) / size_of::<Root<()>>();
/// Those of one thread, at most and at least.
const MAX_WAITING_OF_THREAD: usize = 8192;
const MIN_WAITING_OF_THREAD: usize = 32;
/// Begins of which the trace says why they have no end.
const MAX_UNENDED_BYTES: usize = 32 << 20;
/// So many of them become one when there are too many.
const MERGED: usize = 2;
/// Where it stands that a duration that is sorted is a poll.
const POLL_BIT: u32 = 32;

/// A span that has ended. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of its category and name.
    pub what: u32,
    /// Number of the thread that it began on.
    pub thread: u32,
    /// Number of that thread's process.
    pub process: u32,
    /// How it was recorded.
    pub shape: Shape,
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// The time in which no duration directly in it lasted. All of it for an operation.
    pub own: u64,
}

impl Span {
    /// How long it lasted.
    #[must_use]
    pub const fn duration(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// A span that has begun and not ended, when the trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Number of its category and name.
    pub what: u32,
    /// Number of the thread that it began on.
    pub thread: u32,
    /// Number of that thread's process.
    pub process: u32,
    /// When it began, in nanoseconds.
    pub begin: u64,
    /// How it was recorded.
    pub shape: Shape,
    /// Why it has no end, and how long it had lasted by then, in nanoseconds, as far as the trace says that.
    pub ending: Option<(Ending, Option<u64>)>,
}

/// A span that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub at: u64,
    pub what: u32,
    pub thread: u32,
    /// It is a poll of an operation.
    pub is_poll: bool,
}

impl Open {
    /// Of a duration that begins here, and has one record or two.
    #[inline]
    const fn shape(&self, is_pair: bool) -> Shape {
        match (self.is_poll, is_pair) {
            (true, _) => Shape::Poll,
            (false, true) => Shape::Pair,
            (false, false) => Shape::Complete,
        }
    }
}

/// A begin, with the number of its record on its thread.
#[derive(Debug)]
struct Begun {
    open: Open,
    number: u64,
}

impl Begin for Begun {}

/// A begin that has no end, with the reason.
#[derive(Debug)]
struct NoEnd {
    open: Open,
    ending: (Ending, Option<u64>),
}

impl Begin for NoEnd {}

#[derive(Debug)]
struct ThreadState {
    thread: Thread,
    /// The number of its process.
    process: u32,
    /// Its begins and ends are not in the order of their times.
    is_late: bool,
    /// Its durations are not in the order of their ends.
    is_sorted_later: bool,
    /// Begins, ends and complete durations so far.
    records: u64,
    roots: Roots<()>,
}

#[derive(Debug)]
pub(crate) struct Spans<'a> {
    disorder: &'a Disorder,
    numbers: ThreadNumbers,
    threads: Vec<ThreadState>,
    /// How many durations of a thread may wait.
    waiting_of_thread: usize,
    processes: HashMap<Koid, u32, RandomState>,
    pairing: Pairing<Begun>,
    unended: Unended<u32, NoEnd>,
    /// Begins, ends and complete durations by their times.
    late: Option<Sorter>,
    /// Durations of threads whose durations are not in the order of their ends.
    nesting: Option<Nesting>,
    /// For [`Roots::add_anyway`].
    beside: Vec<Root<()>>,
}

/// A begin or an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub open: Open,
    pub is_end: bool,
    pub id: Option<u64>,
}

impl<'a> Spans<'a> {
    pub fn new(disorder: &'a Disorder) -> Self {
        Self {
            disorder,
            numbers: ThreadNumbers::default(),
            threads: Vec::new(),
            waiting_of_thread: MAX_WAITING_OF_THREAD,
            processes: HashMap::default(),
            pairing: Pairing::default(),
            unended: Unended::new(MAX_UNENDED_BYTES),
            late: None,
            nesting: None,
            beside: Vec::new(),
        }
    }

    /// Whether a duration that begins here is a poll.
    #[inline]
    pub fn is_poll(&self, event: &Event<'_>) -> bool {
        poll_of(event).is_some() || self.disorder.first_poll(event).is_some()
    }

    /// A thread's number.
    #[inline]
    pub fn thread(&mut self, thread: Thread) -> u32 {
        // The last one stands for all further threads.
        let number = self.numbers.number(thread, MAX_THREADS).unwrap_or(MAX_THREADS - 1);
        if number == self.threads.len() {
            self.add(thread);
        }
        number as u32
    }

    #[cold]
    fn add(&mut self, thread: Thread) {
        let is_late = self.disorder.has_thread(thread);
        let new = self.processes.len() as u32;
        self.threads.push(ThreadState {
            thread,
            process: *self.processes.entry(thread.process).or_insert(new),
            is_late,
            is_sorted_later: is_late || self.disorder.has_ends_of(thread),
            records: 0,
            roots: Roots::default(),
        });
        let most = MAX_WAITING / self.threads.len();
        self.waiting_of_thread = most.clamp(MIN_WAITING_OF_THREAD, MAX_WAITING_OF_THREAD);
    }

    /// Begins that were left out because too many spans were open.
    pub const fn refused(&self) -> u64 {
        self.pairing.refused() + self.unended.refused()
    }

    /// Ends without a begin.
    pub const fn unmatched(&self) -> u64 {
        self.pairing.unmatched()
    }

    /// The threads by their numbers.
    pub fn threads(&self) -> impl Iterator<Item = Thread> + '_ {
        self.threads.iter().map(|state| state.thread)
    }

    /// The same, with the numbers of their processes.
    pub fn threads_with_processes(&self) -> impl ExactSizeIterator<Item = (Thread, u32)> + '_ {
        self.threads.iter().map(|state| (state.thread, state.process))
    }

    /// The processes by their numbers.
    pub fn processes(&self) -> Vec<Koid> {
        let mut processes = vec![Koid(0); self.processes.len()];
        self.processes.iter().for_each(|(process, number)| processes[*number as usize] = *process);
        processes
    }

    /// A duration that was recorded as one event; returned unless it has to be sorted first.
    #[inline]
    pub fn complete(&mut self, open: Open, end: u64) -> Option<Span> {
        self.unended.has_ended(open.thread, open.at);
        let state = &mut self.threads[open.thread as usize];
        if state.is_late {
            self.sort(&Record::Complete(open, end));
            return None;
        }
        let number = state.count();
        self.ended(open, Interval { begin: open.at, end, begun: number, ended: number })
    }

    /// A begin or an end; the span that it ends is returned unless something has to be sorted first.
    pub fn part(&mut self, part: Part, whats: &Whats) -> Option<Span> {
        let is_late = match part.id {
            Some(id) => {
                let category = Text(whats.category(part.open.what).as_bytes());
                self.disorder.has_operation(trace_reader::OperationKey::new(category, id))
            }
            None => self.threads[part.open.thread as usize].is_late,
        };
        if is_late {
            self.sort(&Record::Part(part));
            return None;
        }
        self.matched(part, whats)
    }

    /// A begin that has no end: nothing that comes later ends it.
    #[cold]
    pub fn unended(&mut self, open: Open, ending: (Ending, Option<u64>)) {
        self.unended.begin(open.thread, open.at, NoEnd { open, ending });
    }

    #[cold]
    fn sort(&mut self, record: &Record) {
        let (at, words) = record.encode();
        self.late.get_or_insert_default().push(at, words.as_flattened());
    }

    fn matched(&mut self, part: Part, whats: &Whats) -> Option<Span> {
        let Part { open, is_end, id } = part;
        let Some(id) = id else { return self.matched_on_thread(open, is_end) };
        let What { category, name } = whats.what(open.what);
        let process = self.threads[open.thread as usize].thread.process;
        let key = OperationKey { process, category: category.into(), id };
        if !is_end {
            self.pairing.begin_operation(&key, name.into(), Begun { open, number: 0 });
            return None;
        }
        let begun = self.pairing.end_operation(&key, name.into()).begun()?;
        Some(self.span(begun.open, open.at, Shape::Operation))
    }

    fn matched_on_thread(&mut self, open: Open, is_end: bool) -> Option<Span> {
        let number = self.threads[open.thread as usize].count();
        if !is_end {
            self.pairing.begin(open.thread as usize, Begun { open, number });
            return None;
        }
        let Ended::Begun(begun) = self.pairing.end(open.thread as usize) else { return None };
        let interval = Interval { begin: begun.open.at, end: open.at, begun: begun.number, ended: number };
        self.ended(begun.open, interval)
    }

    /// The number of a thread's process.
    #[inline]
    pub fn process(&self, thread: u32) -> u32 {
        self.threads[thread as usize].process
    }

    #[inline]
    fn span(&self, open: Open, end: u64, shape: Shape) -> Span {
        let Open { at: begin, what, thread, .. } = open;
        let process = self.process(thread);
        Span { what, thread, process, shape, begin, end, own: end.saturating_sub(begin) }
    }

    /// A duration of a thread that has ended.
    #[inline]
    fn ended(&mut self, open: Open, interval: Interval) -> Option<Span> {
        let Open { at: begin, what, thread, is_poll } = open;
        let state = &mut self.threads[thread as usize];
        let (process, shape, own) = (state.process, open.shape(interval.is_pair()), interval.duration());
        let mut span = Span { what, thread, process, shape, begin, end: interval.end, own };
        // What ends before it begins takes no time, and nothing is inside of it.
        if interval.end < interval.begin {
            return Some(span);
        }
        if state.is_sorted_later {
            let nesting = self.nesting.get_or_insert_default();
            nesting.push(thread.into(), &interval, u64::from(what) | u64::from(is_poll) << POLL_BIT);
            return None;
        }
        let added = state.roots.add_anyway(interval, (), &mut self.beside);
        span.own = span.own.saturating_sub(added.inside);
        if state.roots.len() > self.waiting_of_thread {
            state.roots.merge(MERGED);
        }
        Some(span)
    }

    /// Passes on the spans that had to be sorted, and then, with their begins, those that have not ended.
    pub fn finish(
        &mut self,
        whats: &Whats,
        mut take: impl FnMut(&Span),
        mut take_open: impl FnMut(&Unfinished),
    ) -> io::Result<()> {
        if let Some(late) = self.late.take() {
            late.finish(|bytes| {
                let span = match Record::decode(bytes)? {
                    Record::Complete(open, end) => {
                        let number = self.threads[open.thread as usize].count();
                        self.ended(open, Interval { begin: open.at, end, begun: number, ended: number })
                    }
                    Record::Part(part) => self.matched(part, whats),
                };
                span.iter().for_each(&mut take);
                Ok(())
            })?;
        }
        if let Some(nesting) = self.nesting.take() {
            nesting.finish_slices(|thread, interval, nested| {
                let is_poll = nested.of >> POLL_BIT != 0;
                let open =
                    Open { at: interval.begin, what: nested.of as u32, thread: thread as u32, is_poll };
                let mut span = self.span(open, interval.end, open.shape(interval.is_pair()));
                span.own = nested.own.unwrap_or(span.own);
                take(&span);
                Ok(())
            })?;
        }
        self.unfinished().for_each(|unfinished| take_open(&unfinished));
        Ok(())
    }

    /// What has begun and not ended: durations by thread, then operations.
    pub fn unfinished(&self) -> impl Iterator<Item = Unfinished> + '_ {
        let open = self.pairing.on_threads().map(|(_, begun)| (begun.open, begun.open.shape(true), None));
        let operations = self.pairing.operations().map(|begun| (begun.open, Shape::Operation, None));
        let unended =
            self.unended.rest().map(|NoEnd { open, ending }| (*open, open.shape(true), Some(*ending)));
        open.chain(operations).chain(unended).map(|(open, shape, ending)| {
            let Open { at: begin, what, thread, .. } = open;
            Unfinished { what, thread, process: self.process(thread), begin, shape, ending }
        })
    }
}

impl ThreadState {
    /// The number of the next record.
    #[inline]
    const fn count(&mut self) -> u64 {
        self.records += 1;
        self.records
    }
}

/// What waits to be sorted.
#[derive(Clone, Copy, Debug)]
enum Record {
    /// A complete duration, with its end.
    Complete(Open, u64),
    Part(Part),
}

/// Bits of a record's second word.
const IS_COMPLETE: u64 = 1;
const IS_END: u64 = 2;
const HAS_ID: u64 = 4;

impl Record {
    /// The record's time and words.
    fn encode(&self) -> (u64, [[u8; 8]; 4]) {
        let (open, flags, rest) = match *self {
            Self::Complete(open, end) => (open, IS_COMPLETE, end),
            Self::Part(Part { open, is_end, id }) => {
                let flags = if is_end { IS_END } else { 0 } | if id.is_some() { HAS_ID } else { 0 };
                (open, flags, id.unwrap_or(0))
            }
        };
        let Open { at, what, thread, is_poll } = open;
        let flags = flags | u64::from(is_poll) << POLL_BIT;
        (at, [at, flags, u64::from(what) << 32 | u64::from(thread), rest].map(u64::to_le_bytes))
    }

    fn decode(bytes: &[u8]) -> io::Result<Self> {
        let ([at, flags, what, rest], _) = words(bytes)?;
        let is_poll = flags >> POLL_BIT != 0;
        let open = Open { at, what: (what >> 32) as u32, thread: what as u32, is_poll };
        if flags & IS_COMPLETE != 0 {
            return Ok(Self::Complete(open, rest));
        }
        let id = (flags & HAS_ID != 0).then_some(rest);
        Ok(Self::Part(Part { open, is_end: flags & IS_END != 0, id }))
    }
}

#[cfg(test)]
mod tests;
