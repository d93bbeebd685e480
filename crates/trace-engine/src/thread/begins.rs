//! The durations of a thread that have begun, with the processor time that the thread had used then.
//!
//! A thread's own events use [`Begins`] one after the other. A handler that interrupts one of these uses
//! further entries and leaves them again; if it jumps away, times are missing, and never wrong, because
//! entries are found by their timestamps.

use crate::sync::{AtomicU64, Ordering, process};

/// How deep durations of a thread may be nested to have times. Of deeper ones the innermost have them.
const MAX_DEPTH: usize = 32;

/// Whether the present trace asks for times.
static IS_WANTED: process::AtomicBool = process::AtomicBool::new(false);

/// Sets whether the trace that begins asks for times. Durations that are open may have none.
pub(crate) fn set_wanted(is_wanted: bool) {
    IS_WANTED.store(is_wanted, Ordering::Relaxed);
}

/// Whether begins of durations are to be remembered.
#[inline]
pub(crate) fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Relaxed)
}

/// The durations of a thread that have begun on the slow path: their timestamps, and the thread's time then.
/// All zero is a valid beginning.
pub(crate) struct Begins {
    /// How many there are; the last of them are kept.
    depth: AtomicU64,
    entries: [[AtomicU64; 2]; MAX_DEPTH],
}

impl Begins {
    const_unless_modelled! {
        /// No duration has begun.
        pub fn new() -> Self {
            Self {
                depth: AtomicU64::new(0),
                entries: array_of![[AtomicU64::new(0), AtomicU64::new(0)]; MAX_DEPTH],
            }
        }
    }

    fn entry(&self, number: u64) -> &[AtomicU64; 2] {
        &self.entries[number as usize % MAX_DEPTH]
    }

    pub fn push(&self, start: u64, time: u64) {
        let depth = self.depth.load(Ordering::Relaxed);
        let [entry_start, entry_time] = self.entry(depth);
        entry_time.store(time, Ordering::Relaxed);
        entry_start.store(start, Ordering::Relaxed);
        self.depth.store(depth.wrapping_add(1), Ordering::Relaxed);
    }

    /// The thread's time at a begin. It and what began after it are forgotten.
    pub fn take(&self, start: u64) -> Option<u64> {
        let depth = self.depth.load(Ordering::Relaxed);
        let latest = || (1..=MAX_DEPTH as u64).map(|back| depth.wrapping_sub(back));
        let is_it = |number: &u64| self.entry(*number)[0].load(Ordering::Relaxed) == start;
        let found = latest().find(is_it)?;
        let time = self.entry(found)[1].load(Ordering::Relaxed);
        latest().take_while(|number| *number != found).chain([found]).for_each(|number| {
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
            begins.push(number * 10, number);
        }
        assert_eq!(begins.take(390), Some(39), "400 was left by a jump");
        assert_eq!(begins.take(400), None);
        assert_eq!(begins.take(390), None);
        begins.push(500, 50);
        assert_eq!(begins.take(500), Some(50));
        // The deepest 32 of 40 were kept.
        assert_eq!(begins.take(80), None);
        assert_eq!(begins.take(90), Some(9));
        assert_eq!(begins.take(100), None);
    }
}
