//! Durations and operations: begins and ends are paired, and each duration of a thread finds those inside it.
//!
//! Pairs are those of the table `slices`. The self time of a duration is its time without the durations that
//! lie directly in it. Programs record a duration when it ends, so a thread's durations come in the order of
//! their ends, those inside first: what has ended waits until one arrives that began earlier and so encloses
//! it. Threads that [`Disorder`] names are sorted first.
//= docs/stats.md#self-time

use crate::names::{What, Whats};
use foldhash::fast::RandomState;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use trace_format::units::Koid;
use trace_reader::sorter::Sorter;
use trace_reader::{Disorder, OperationKey, Text, Thread, ThreadNumbers};

/// Begins without an end so far, as for tables.
const MAX_OPEN: usize = 500_000;
/// Threads that are distinguished; all others count as one.
const MAX_THREADS: usize = 100_000;
/// Durations of all threads together that wait for what encloses them, at 16 bytes each.
const MAX_WAITING: usize = 4 << 20;
/// Those of one thread, at most and at least.
const MAX_WAITING_OF_THREAD: usize = 8192;
const MIN_WAITING_OF_THREAD: usize = 64;
/// Durations that end together and are sorted by their begins.
const MAX_TOGETHER: usize = 1 << 20;

/// How a span was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As one event of a thread.
    Complete,
    /// As a begin and an end of a thread.
    Pair,
    /// As a begin and an end of an asynchronous operation.
    Operation,
}

impl Shape {
    const ALL: [Self; 3] = [Self::Complete, Self::Pair, Self::Operation];
}

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
    /// Its time without the durations directly in it. All of it for an operation.
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
    /// Whether it is an asynchronous operation.
    pub is_operation: bool,
}

/// A span that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub at: u64,
    pub what: u32,
    pub thread: u32,
}

/// A duration that has ended, with its time.
type Waiting = (u64, u64);

#[derive(Debug)]
struct ThreadState {
    thread: Thread,
    /// The number of its process.
    process: u32,
    /// Its begins and ends are not in the order of their times.
    is_late: bool,
    /// Its durations are not in the order of their ends.
    is_sorted_later: bool,
    open: Vec<Open>,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
pub(crate) struct Spans<'a> {
    disorder: &'a Disorder,
    numbers: ThreadNumbers,
    threads: Vec<ThreadState>,
    /// How many durations of a thread may wait.
    waiting_of_thread: usize,
    processes: HashMap<Koid, u32, RandomState>,
    operations: HashMap<(u32, u64), Vec<Open>, RandomState>,
    open_count: usize,
    /// Begins and ends by their times.
    late: Option<Sorter>,
    /// Durations by their ends.
    ended: Option<Sorter>,
    /// Begins that were dropped because too many spans were open.
    pub dropped: u64,
    /// Ends without a begin.
    pub unmatched: u64,
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
            operations: HashMap::default(),
            open_count: 0,
            late: None,
            ended: None,
            dropped: 0,
            unmatched: 0,
        }
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
            open: Vec::new(),
            waiting: Vec::new(),
        });
        let most = MAX_WAITING / self.threads.len();
        self.waiting_of_thread = most.clamp(MIN_WAITING_OF_THREAD, MAX_WAITING_OF_THREAD);
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
        self.ended(open, end, Shape::Complete)
    }

    /// A begin or an end; the span that it ends is returned unless something has to be sorted first.
    pub fn part(&mut self, part: Part, whats: &Whats) -> Option<Span> {
        let is_late = match part.id {
            Some(id) => {
                let category = Text(whats.category(part.open.what).as_bytes());
                self.disorder.has_operation(OperationKey::new(category, id))
            }
            None => self.threads[part.open.thread as usize].is_late,
        };
        if is_late {
            let Part { open: Open { at, what, thread }, is_end, id } = part;
            let flags = u64::from(is_end) | u64::from(id.is_some()) << 1;
            let words = [at, flags, u64::from(what) << 32 | u64::from(thread), id.unwrap_or(0)];
            self.late.get_or_insert_default().push(at, words.map(u64::to_le_bytes).as_flattened());
            return None;
        }
        self.matched(part, whats)
    }

    fn matched(&mut self, part: Part, whats: &Whats) -> Option<Span> {
        let Part { open, is_end, id } = part;
        if !is_end {
            if self.open_count >= MAX_OPEN {
                self.dropped += 1;
                return None;
            }
            self.open_count += 1;
            match id {
                Some(id) => {
                    self.operations.entry((whats.what(open.what).category, id)).or_default().push(open);
                }
                None => self.threads[open.thread as usize].open.push(open),
            }
            return None;
        }
        let begun = match id {
            Some(id) => self.end_operation(open, id, whats),
            None => self.threads[open.thread as usize].open.pop(),
        };
        let Some(begun) = begun else {
            self.unmatched += 1;
            return None;
        };
        self.open_count -= 1;
        match id {
            Some(_) => Some(self.span(begun, open.at, Shape::Operation)),
            None => self.ended(begun, open.at, Shape::Pair),
        }
    }

    /// The operation's last part with the name in the process, or the last part there; else the last with the
    /// name in another process.
    //= docs/tables.md#tables
    fn end_operation(&mut self, end: Open, id: u64, whats: &Whats) -> Option<Open> {
        let What { category, name } = whats.what(end.what);
        let process = self.process(end.thread);
        let stack = self.operations.get(&(category, id))?;
        let in_process = |open: &Open| self.process(open.thread) == process;
        let is_named = |open: &Open| whats.what(open.what).name == name;
        let place = stack
            .iter()
            .rposition(|open| in_process(open) && is_named(open))
            .or_else(|| stack.iter().rposition(in_process))
            .or_else(|| stack.iter().rposition(is_named))?;
        let stack = self.operations.get_mut(&(category, id))?;
        let open = stack.remove(place);
        if stack.is_empty() {
            self.operations.remove(&(category, id));
        }
        Some(open)
    }

    /// The number of a thread's process.
    #[inline]
    pub fn process(&self, thread: u32) -> u32 {
        self.threads[thread as usize].process
    }

    #[inline]
    fn span(&self, open: Open, end: u64, shape: Shape) -> Span {
        let Open { at: begin, what, thread } = open;
        let process = self.process(thread);
        Span { what, thread, process, shape, begin, end, own: end.saturating_sub(begin) }
    }

    #[inline]
    fn ended(&mut self, open: Open, end: u64, shape: Shape) -> Option<Span> {
        let mut span = self.span(open, end, shape);
        let waiting_of_thread = self.waiting_of_thread;
        let state = &mut self.threads[open.thread as usize];
        if state.is_sorted_later {
            let what = u64::from(span.what) << 32 | u64::from(span.thread);
            let words = [what, span.begin, span.end, shape as u64];
            self.ended.get_or_insert_default().push(end, words.map(u64::to_le_bytes).as_flattened());
            return None;
        }
        span.own = state.own_time(&span, waiting_of_thread);
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
                let [at, flags, what, id] = words(bytes)?;
                let open = Open { at, what: (what >> 32) as u32, thread: what as u32 };
                let part = Part { open, is_end: flags & 1 != 0, id: (flags & 2 != 0).then_some(id) };
                self.matched(part, whats).iter().for_each(&mut take);
                Ok(())
            })?;
        }
        if let Some(ended) = self.ended.take() {
            let mut together: Vec<Span> = Vec::new();
            ended.finish(|bytes| {
                let [what, begin, end, shape] = words(bytes)?;
                let shape = Shape::ALL.get(shape as usize).copied().unwrap_or(Shape::Pair);
                let open = Open { at: begin, what: (what >> 32) as u32, thread: what as u32 };
                let is_next = together.last().is_some_and(|last| last.end != end);
                if is_next || together.len() >= MAX_TOGETHER {
                    self.enclose(&mut together, &mut take);
                }
                together.push(self.span(open, end, shape));
                Ok(())
            })?;
            self.enclose(&mut together, &mut take);
        }
        self.unfinished().for_each(|unfinished| take_open(&unfinished));
        Ok(())
    }

    /// What has begun and not ended: durations by thread, then operations.
    pub fn unfinished(&self) -> impl Iterator<Item = Unfinished> + '_ {
        let open = self.threads.iter().flat_map(|state| &state.open).map(|open| (open, false));
        let operations = self.operations.values().flatten().map(|open| (open, true));
        open.chain(operations).map(|(open, is_operation)| {
            let Open { at: begin, what, thread } = *open;
            Unfinished { what, thread, process: self.process(thread), begin, is_operation }
        })
    }

    /// Durations that end at the same time: what begins last is inside.
    fn enclose(&mut self, together: &mut Vec<Span>, take: &mut impl FnMut(&Span)) {
        let waiting_of_thread = self.waiting_of_thread;
        together.sort_by_key(|span| Reverse(span.begin));
        for mut span in together.drain(..) {
            span.own = self.threads[span.thread as usize].own_time(&span, waiting_of_thread);
            take(&span);
        }
    }
}

impl ThreadState {
    /// The time of a duration without those directly in it, all of which have come before it.
    #[inline]
    fn own_time(&mut self, span: &Span, most: usize) -> u64 {
        let mut inside = 0_u64;
        while let Some((begin, duration)) = self.waiting.last().copied()
            && begin >= span.begin
        {
            inside = inside.saturating_add(duration);
            self.waiting.pop();
        }
        if self.waiting.len() >= most {
            self.thin();
        }
        self.waiting.push((span.begin, span.duration()));
        span.duration().saturating_sub(inside)
    }

    /// Joins neighbours in the older half: what encloses both of them finds the same sum.
    #[cold]
    fn thin(&mut self) {
        let half = self.waiting.len() / 4 * 2;
        let joined = self.waiting[..half].as_chunks::<2>().0.iter();
        let joined: Vec<Waiting> =
            joined.map(|[first, next]| (first.0, first.1.saturating_add(next.1))).collect();
        self.waiting.splice(..half, joined);
    }
}

fn words(bytes: &[u8]) -> io::Result<[u64; 4]> {
    let words = bytes.as_chunks::<8>().0.first_chunk::<4>().map(|words| words.map(u64::from_le_bytes));
    words.ok_or_else(|| io::Error::other("what was sorted has changed"))
}

#[cfg(test)]
mod tests;
