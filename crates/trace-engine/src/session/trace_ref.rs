//! Who holds on to the running trace beyond single events: to write several records, or to write later.
//!
//! Two counters. A hold *to write* is short, and keeps the buffer where it is: nothing is taken back before
//! it has gone. A *prolonged* one keeps a stop from happening: events are recorded until the last has gone.

use crate::session::engine;
use crate::sync::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static WRITING: AtomicU32 = AtomicU32::new(0);
static PROLONGED: AtomicU32 = AtomicU32::new(0);

/// Holds the running trace to write to it; false if none runs. Each true one is to be given back with
/// [`release`].
#[must_use]
pub fn acquire() -> bool {
    take(&WRITING)
}

/// Gives back what [`acquire`] took.
pub fn release() {
    give_back(&WRITING);
}

/// Holds the running trace so that it does not stop; false if none runs. Each true one is to be given back
/// with [`release_prolonged`].
#[must_use]
pub fn acquire_prolonged() -> bool {
    take(&PROLONGED)
}

/// Gives back what [`acquire_prolonged`] took.
pub fn release_prolonged() {
    give_back(&PROLONGED);
}

fn take(holds: &AtomicU32) -> bool {
    // SeqCst: one order with the end of a run and the look at the counter behind it.
    holds.fetch_add(1, Ordering::SeqCst);
    let runs = engine::is_running();
    if !runs {
        give_back(holds);
    }
    runs
}

/// As often as it was taken: what a child inherited from its parent, and gives back, was forgotten.
fn give_back(holds: &AtomicU32) {
    let _ = holds.try_update(Ordering::SeqCst, Ordering::SeqCst, |holds| holds.checked_sub(1));
}

/// Waits until nobody holds the trace to write. 0, or 1 where somebody does not let go.
pub(crate) fn wait_for_writing(deadline: Instant) -> usize {
    wait(&WRITING, deadline)
}

/// Waits until nobody keeps the trace from stopping. 0, or 1 where somebody does not let go.
pub(crate) fn wait_for_prolonged(deadline: Instant) -> usize {
    wait(&PROLONGED, deadline)
}

fn wait(holds: &AtomicU32, deadline: Instant) -> usize {
    while holds.load(Ordering::SeqCst) != 0 {
        if Instant::now() >= deadline {
            return 1;
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    0
}

/// Whether anybody keeps the trace from stopping.
#[must_use]
pub fn is_prolonged() -> bool {
    PROLONGED.load(Ordering::SeqCst) != 0
}

/// In a forked child: what its parent's threads held is nothing to it.
pub(crate) fn forget_in_child() {
    WRITING.store(0, Ordering::Relaxed);
    PROLONGED.store(0, Ordering::Relaxed);
}
