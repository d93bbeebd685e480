//! The durations of a thread that have begun, with the processor time that the thread had used then, and
//! whether their beginning was marked elsewhere.
//!
//! A thread's own events use [`Begins`] one after the other. A handler that interrupts one of these uses
//! further entries and leaves them again; if it jumps away, times are missing, and never wrong, because
//! entries are found by their timestamps.

use crate::sync::{AtomicU64, Ordering, process};

/// How deep durations of a thread may be nested to have times. Of deeper ones the innermost have them.
const MAX_DEPTH: usize = 32;

/// The trace asks for times.
const TIMES: u64 = 1;
/// It has its events marked elsewhere.
const MARKS: u64 = 2;

/// What the present trace asks for.
static WANTED: process::AtomicU64 = process::AtomicU64::new(0);

/// Sets whether the trace that begins asks for times, and for marks. Durations that are open may have none.
pub(crate) fn set_wanted(times: bool, marks: bool) {
    let wanted = if times { TIMES } else { 0 } | if marks { MARKS } else { 0 };
    WANTED.store(wanted, Ordering::Relaxed);
    RUN.fetch_add(1, Ordering::Relaxed);
}

/// Counts the traces that begin: what threads remember of an earlier one holds no longer.
static RUN: process::AtomicU64 = process::AtomicU64::new(0);

/// The number of the present trace.
pub(crate) fn run() -> u64 {
    RUN.load(Ordering::Relaxed)
}

/// Whether begins of durations are to be remembered.
#[inline]
pub(crate) fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed) != 0
}

/// Whether the trace asks for times.
#[inline]
pub(crate) fn wants_times() -> bool {
    WANTED.load(Ordering::Relaxed) & TIMES != 0
}

/// Whether the trace asks for marks.
#[inline]
pub(crate) fn wants_marks() -> bool {
    WANTED.load(Ordering::Relaxed) & MARKS != 0
}

/// The durations of a thread that have begun on the slow path: their timestamps, the thread's time then, and
/// whether the beginning was marked. All zero is a valid beginning.
pub(crate) struct Begins {
    /// How many there are; the last of them are kept.
    depth: AtomicU64,
    /// The trace that the entries are of.
    run: AtomicU64,
    entries: [[AtomicU64; 3]; MAX_DEPTH],
}

impl Begins {
    const_unless_modelled! {
        /// No duration has begun.
        pub fn new() -> Self {
            Self {
                depth: AtomicU64::new(0),
                run: AtomicU64::new(0),
                entries: array_of![[AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)]; MAX_DEPTH],
            }
        }
    }

    fn entry(&self, number: u64) -> &[AtomicU64; 3] {
        &self.entries[number as usize % MAX_DEPTH]
    }

    /// Forgets what is there of an earlier trace: durations that were open when it ended.
    pub fn begin_run(&self, run: u64) {
        if self.run.swap(run, Ordering::Relaxed) != run {
            self.entries.iter().for_each(|[start, ..]| start.store(0, Ordering::Relaxed));
            self.depth.store(0, Ordering::Relaxed);
        }
    }

    /// Whether another begin takes no place of one that is open.
    pub fn has_room(&self) -> bool {
        self.entry(self.depth.load(Ordering::Relaxed))[0].load(Ordering::Relaxed) == 0
    }

    /// Remembers a begin. One that was marked and is open stays instead: its end is to be marked, too.
    pub fn push(&self, start: u64, time: u64, is_marked: bool) {
        let depth = self.depth.load(Ordering::Relaxed);
        let [entry_start, entry_time, entry_mark] = self.entry(depth);
        if !self.has_room() && entry_mark.load(Ordering::Relaxed) != 0 {
            return;
        }
        entry_mark.store(is_marked.into(), Ordering::Relaxed);
        entry_time.store(time, Ordering::Relaxed);
        entry_start.store(start, Ordering::Relaxed);
        self.depth.store(depth.wrapping_add(1), Ordering::Relaxed);
    }

    /// The numbers of the entries, the latest first.
    fn latest(&self) -> impl Iterator<Item = u64> + use<> {
        let depth = self.depth.load(Ordering::Relaxed);
        (1..=MAX_DEPTH as u64).map(move |back| depth.wrapping_sub(back))
    }

    fn find(&self, start: u64) -> Option<u64> {
        self.latest().find(|number| self.entry(*number)[0].load(Ordering::Relaxed) == start)
    }

    /// Whether a begin was marked.
    pub fn is_marked(&self, start: u64) -> bool {
        self.find(start).is_some_and(|number| self.entry(number)[2].load(Ordering::Relaxed) != 0)
    }

    /// The thread's time at a begin of this trace, if it was taken.
    pub fn time(&self, start: u64) -> Option<u64> {
        let found = if wants_times() { self.find(start) } else { None };
        found.map(|number| self.entry(number)[1].load(Ordering::Relaxed))
    }

    /// The thread's time at a begin. It and what began after it are forgotten.
    pub fn take(&self, start: u64) -> Option<u64> {
        let found = self.find(start)?;
        let time = self.entry(found)[1].load(Ordering::Relaxed);
        self.latest().take_while(|number| *number != found).chain([found]).for_each(|number| {
            self.entry(number)[0].store(0, Ordering::Relaxed);
        });
        self.depth.store(found, Ordering::Relaxed);
        Some(time)
    }
}

#[cfg(all(test, not(modelled)))]
mod tests {
    use super::*;

    #[test]
    fn a_begin_is_found_by_its_moment_and_forgotten_with_what_began_later() {
        let begins = Begins::new();
        for number in 1..=40 {
            begins.push(number * 10, number, false);
        }
        assert_eq!(begins.take(390), Some(39), "400 was left by a jump");
        assert_eq!(begins.take(400), None);
        assert_eq!(begins.take(390), None);
        begins.push(500, 50, false);
        assert_eq!(begins.take(500), Some(50));
        // The deepest 32 of 40 were kept.
        assert_eq!(begins.take(80), None);
        assert_eq!(begins.take(90), Some(9));
        assert_eq!(begins.take(100), None);
    }

    /// Their ends are to be marked, however deep others are nested in them.
    #[test]
    fn begins_that_were_marked_stay() {
        let begins = Begins::new();
        begins.begin_run(1);
        for number in 1..=40 {
            let is_marked = begins.has_room();
            assert_eq!(is_marked, number <= 32);
            begins.push(number * 10, number, is_marked);
        }
        assert_eq!([320, 330, 400].map(|start| begins.is_marked(start)), [true, false, false]);
        assert_eq!(begins.take(400), None);
        assert_eq!(begins.take(320), Some(32));
        assert!(begins.has_room());
        begins.begin_run(1);
        assert_eq!(begins.take(310), Some(31));
        begins.begin_run(2);
        assert_eq!(begins.take(300), None);
        assert!(begins.has_room());
    }
}
