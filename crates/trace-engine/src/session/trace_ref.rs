//! References on the running trace beyond single events: to write several records, or to write later.
//!
//! Two counters. A reference *to write* is short-lived, and keeps the buffer where it is: nothing is retired
//! before it is dropped. A *prolonged* one delays a stop: events are recorded until the last is dropped.

use crate::session::lease;
use crate::sync::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static WRITING: AtomicU32 = AtomicU32::new(0);
static PROLONGED: AtomicU32 = AtomicU32::new(0);

/// A counted reference on the running trace. Dropping it gives it back.
#[derive(Debug)]
#[must_use = "the reference is given back when this is dropped"]
pub struct TraceRef(&'static AtomicU32);

impl TraceRef {
    /// References the running trace, to write to it; none if no trace runs.
    pub fn acquire() -> Option<Self> {
        Self::take(&WRITING)
    }

    /// References the running trace so that it does not stop; none if no trace runs.
    pub fn acquire_prolonged() -> Option<Self> {
        Self::take(&PROLONGED)
    }

    fn take(count: &'static AtomicU32) -> Option<Self> {
        loop {
            // SeqCst: one order with the end of a run, or a hold, and the look at the counter behind it.
            count.fetch_add(1, Ordering::SeqCst);
            let reference = Self(count);
            let is_to_write = core::ptr::eq(count, &WRITING);
            if !is_to_write || !lease::HOLD.is_closing_references() {
                return lease::is_running().then_some(reference);
            }
            drop(reference);
            lease::HOLD.wait_until_open();
        }
    }

    /// Keeps the reference without a value, until [`TraceRef::from_leaked_prolonged`] takes it over.
    pub fn leak(self) {
        core::mem::forget(self);
    }

    /// Takes over a prolonged reference that was leaked. To be called once for each of them.
    pub const fn from_leaked_prolonged() -> Self {
        Self(&PROLONGED)
    }
}

impl Drop for TraceRef {
    fn drop(&mut self) {
        // A forked child drops references that it inherited: they are not counted there.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1));
    }
}

/// Whether there are prolonged references.
pub(crate) fn is_prolonged() -> bool {
    PROLONGED.load(Ordering::SeqCst) != 0
}

/// Waits until there are no references to write. 0, or 1 where the deadline passes first.
pub(crate) fn wait_for_writing(deadline: Instant) -> usize {
    wait_for_zero(&WRITING, deadline)
}

/// Waits until there are no prolonged references. 0, or 1 where the deadline passes first.
pub(crate) fn wait_for_prolonged(deadline: Instant) -> usize {
    wait_for_zero(&PROLONGED, deadline)
}

/// Waits until a counter is zero. 0, or 1 where the deadline passes first.
pub(crate) fn wait_for_zero(count: &AtomicU32, deadline: Instant) -> usize {
    while count.load(Ordering::SeqCst) != 0 {
        if Instant::now() >= deadline {
            return 1;
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    0
}

/// In a forked child: references of the parent's threads do not count.
pub(crate) fn forget_in_child() {
    WRITING.store(0, Ordering::Relaxed);
    PROLONGED.store(0, Ordering::Relaxed);
}
