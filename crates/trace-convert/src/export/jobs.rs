//! Threads that share the work of a conversion: one reads and writes, all format.
//!
//! The reading thread resolves each record, keeps what depends on earlier ones, and collects the bytes of
//! events in batches. Any thread makes the output of a batch; outputs are taken in the order of the batches.

use crate::output::Output;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use trace_format::record::RecordHeader;
use trace_reader::item::FurtherArguments;
use trace_reader::{Definitions, Event, Item, Resolved};

/// How many threads convert, and what each does at once. The result is the same for all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// The number of threads, the calling one included.
    pub threads: usize,
    /// Bytes of records that a thread works on at once.
    pub batch_bytes: usize,
}

impl Default for Jobs {
    /// The calling thread alone.
    fn default() -> Self {
        Self { threads: 1, batch_bytes: 256 << 10 }
    }
}

impl Jobs {
    /// So many threads; one if there are none.
    #[must_use]
    pub fn of_threads(threads: usize) -> Self {
        Self { threads: threads.max(1), ..Self::default() }
    }
}

/// What else has to be known of the records of a batch, in their order.
pub(crate) trait Extras: Default {
    /// Forgets all, and keeps the room.
    fn clear(&mut self);
}

impl<T> Extras for VecDeque<T> {
    fn clear(&mut self) {
        self.clear();
    }
}

/// Records of which a thread makes a part of the output.
#[derive(Default)]
pub(crate) struct Batch<X> {
    bytes: Vec<u8>,
    stretches: Vec<Stretch>,
    /// The next record, and its stretch.
    next: usize,
    stretch: usize,
    /// Where further arguments of the next record are.
    further: Range<usize>,
    pub extras: X,
    /// Room for the output.
    pub output: Output,
}

/// Records with the same definitions.
struct Stretch {
    definitions: Definitions,
    end: usize,
}

impl<X: Extras> Batch<X> {
    /// Goes through the records that are left, as long as the function returns true.
    pub fn advance(&mut self, mut take: impl FnMut(&Item<'_>, &mut X) -> bool) {
        while let Some(Stretch { definitions, end }) = self.stretches.get(self.stretch) {
            while self.next < *end {
                let rest = self.bytes.get(self.next..).unwrap_or_default();
                let Some(word) = rest.first_chunk().map(|word| u64::from_le_bytes(*word)) else { break };
                if word & TYPE_BITS == FURTHER {
                    self.further = self.next + 8..self.next + 8 + (word >> 4) as usize;
                    self.next = self.further.end;
                    continue;
                }
                let length = RecordHeader(word).size().bytes();
                self.next += length.max(1);
                let further = self.bytes.get(std::mem::take(&mut self.further)).unwrap_or_default();
                let further = FurtherArguments::new(further);
                if let Some(item) = rest.get(..length).and_then(|record| definitions.item(record, further))
                    && !take(&item, &mut self.extras)
                {
                    return;
                }
            }
            self.stretch += 1;
        }
    }

    /// Whether there are records left.
    pub fn has_more(&self) -> bool {
        self.next < self.bytes.len()
    }

    /// The same batch without records.
    pub fn emptied(mut self) -> Self {
        self.bytes.clear();
        self.stretches.clear();
        self.extras.clear();
        self.output.clear();
        Self { next: 0, stretch: 0, further: 0..0, ..self }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The type of records.
const TYPE_BITS: u64 = 0xf;
/// In a batch, further arguments of the next record, of which no record has the type; the other bits are
/// their length.
const FURTHER: u64 = 0xe;
/// What is assumed that an entry of the tables costs to copy, as bytes of records.
const ENTRY_BYTES: usize = 16;
/// Most bytes of records that have no copy to pay for yet.
const MAX_CREDIT: usize = 1 << 20;
/// So many definitions of a batch are looked at for those of a record.
const RECENT: usize = 8;

/// Collects records in a batch.
pub(crate) struct Collector<X> {
    pub batch: Batch<X>,
    /// Definitions that change with each event would be copied for each: the copies may take only a part of
    /// the time that the events take.
    credit: usize,
}

impl<X: Extras> Collector<X> {
    pub fn new() -> Self {
        Self { batch: Batch::default(), credit: MAX_CREDIT }
    }

    /// Adds a record to the batch, and what else has to be known of it; false if the reading thread has to do
    /// its work at once, after that of the batch.
    #[inline]
    pub fn add(&mut self, record: &Resolved<'_>, know: impl FnOnce(&mut X)) -> bool {
        let start = self.batch.bytes.len();
        self.add_further(&record.item);
        let length = self.batch.bytes.len() - start + record.bytes.len();
        if let Some(last) = self.batch.stretches.last_mut()
            && last.definitions.are_of(record)
        {
            last.end += length;
        } else if !self.begin_stretch(record) {
            self.batch.bytes.truncate(start);
            self.credit = (self.credit + length).min(MAX_CREDIT);
            return false;
        }
        self.credit = (self.credit + length).min(MAX_CREDIT);
        self.batch.bytes.extend_from_slice(record.bytes);
        know(&mut self.batch.extras);
        true
    }

    /// Adds further arguments of the record that comes next.
    #[inline]
    fn add_further(&mut self, item: &Item<'_>) {
        let Item::Event(Event { arguments, .. }) = item else { return };
        let further = arguments.further().as_bytes();
        if !further.is_empty() {
            let word = FURTHER | (further.len() as u64) << 4;
            self.batch.bytes.extend_from_slice(&word.to_le_bytes());
            self.batch.bytes.extend_from_slice(further);
        }
    }

    #[cold]
    fn begin_stretch(&mut self, record: &Resolved<'_>) -> bool {
        let end = self.batch.bytes.len() + record.bytes.len();
        let mut recent = self.batch.stretches.iter().rev().take(RECENT);
        let definitions = match recent.find(|stretch| stretch.definitions.are_of(record)) {
            Some(stretch) => stretch.definitions.clone(),
            None => {
                let definitions = record.definitions();
                let Some(left) = self.credit.checked_sub(ENTRY_BYTES * definitions.entries()) else {
                    return false;
                };
                self.credit = left;
                definitions
            }
        };
        self.batch.stretches.push(Stretch { definitions, end });
        true
    }
}

/// What a thread does.
pub(crate) trait Work: Send + 'static {
    type Batch: Send + 'static;
    type Done: Send + 'static;

    fn run(&mut self, batch: Self::Batch) -> Self::Done;
}

/// Threads at work, and the calling one, which helps when it would have to wait.
pub(crate) struct Crew<W: Work> {
    shared: Arc<Shared<W>>,
    threads: Vec<JoinHandle<()>>,
    /// Batches that were given and whose results were not taken.
    outstanding: usize,
    /// Most of these.
    limit: usize,
}

struct Shared<W: Work> {
    state: Mutex<State<W>>,
    is_given: Condvar,
    is_done: Condvar,
}

struct State<W: Work> {
    waiting: VecDeque<(u64, W::Batch)>,
    /// Results from the oldest on; none of those that are not done.
    done: VecDeque<Option<W::Done>>,
    /// The number of the oldest.
    first: u64,
    is_closed: bool,
    has_failed: bool,
}

impl<W: Work> Shared<W> {
    fn state(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, number: u64, done: W::Done) {
        let mut state = self.state();
        let place = (number - state.first) as usize;
        if let Some(slot) = state.done.get_mut(place) {
            *slot = Some(done);
        }
        if place == 0 {
            self.is_done.notify_one();
        }
    }
}

/// Tells the calling thread that no result will come.
struct Failing<'a, W: Work>(&'a Shared<W>);

impl<W: Work> Drop for Failing<'_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().has_failed = true;
            self.0.is_done.notify_one();
        }
    }
}

impl<W: Work> Crew<W> {
    /// So many threads besides the calling one; fewer if there cannot be so many.
    pub fn new(threads: usize, mut work: impl FnMut() -> W) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            done: VecDeque::new(),
            first: 0,
            is_closed: false,
            has_failed: false,
        };
        let (is_given, is_done) = (Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { state: Mutex::new(state), is_given, is_done });
        let start = |_| {
            let (shared, work) = (shared.clone(), work());
            Builder::new().name("convert".to_owned()).spawn(move || at_work(&shared, work)).ok()
        };
        let threads: Vec<_> = (0..threads).map_while(start).collect();
        let limit = 2 * (threads.len() + 1);
        Self { shared, threads, outstanding: 0, limit }
    }

    /// Gives a batch to the next thread that has nothing to do.
    pub fn give(&mut self, batch: W::Batch) {
        let mut state = self.shared.state();
        let number = state.first + state.done.len() as u64;
        state.waiting.push_back((number, batch));
        state.done.push_back(None);
        self.outstanding += 1;
        drop(state);
        self.shared.is_given.notify_one();
    }

    /// The result of the oldest batch. Unless many are outstanding, or it has to be there, it may be none
    /// that this is not done. Instead of waiting, the calling thread does work of its own.
    ///
    /// # Errors
    /// A thread has panicked.
    pub fn take(&mut self, own: &mut W, must_wait: bool) -> io::Result<Option<W::Done>> {
        let must_wait = must_wait || self.outstanding > self.limit;
        let mut state = self.shared.state();
        while self.outstanding > 0 {
            if state.has_failed {
                return Err(io::Error::other("a thread of the conversion has panicked"));
            }
            if let Some(Some(_)) = state.done.front() {
                state.first += 1;
                self.outstanding -= 1;
                return Ok(state.done.pop_front().flatten());
            }
            if !must_wait {
                break;
            }
            if let Some((number, batch)) = state.waiting.pop_front() {
                drop(state);
                let done = own.run(batch);
                self.shared.keep(number, done);
                state = self.shared.state();
            } else {
                state = self.shared.is_done.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Ok(None)
    }
}

impl<W: Work> Drop for Crew<W> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_closed = true;
        state.waiting.clear();
        drop(state);
        self.shared.is_given.notify_all();
        for thread in self.threads.drain(..) {
            // The calling thread has seen that a result is missing.
            let _ = thread.join();
        }
    }
}

fn at_work<W: Work>(shared: &Shared<W>, mut work: W) {
    let _failing = Failing(shared);
    loop {
        let mut state = shared.state();
        let (number, batch) = loop {
            if state.is_closed {
                return;
            }
            match state.waiting.pop_front() {
                Some(given) => break given,
                None => state = shared.is_given.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(state);
        let done = work.run(batch);
        shared.keep(number, done);
    }
}

#[cfg(test)]
mod tests;
