//! What the process is informed of: starts and stops of recording.

use crate::session::state::{State, state};
use crate::sync::{AtomicU32, Ordering};
use std::sync::OnceLock;

/// Is called when recording starts and stops.
#[derive(Clone, Copy, Debug)]
pub struct Observer {
    /// Called on the thread that changes the state, after it has. A provider's has descriptors of its own: no
    /// code of the program runs there.
    pub on_change: fn(State),
    /// Whether the observer has not handled a start yet: the start is reported to the manager after that.
    pub is_start_pending: fn() -> bool,
}

static OBSERVER: OnceLock<Observer> = OnceLock::new();
/// Counts the beginnings and ends of runs.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// Sets the observer. Only the first one of a process counts.
pub fn observe(observer: Observer) {
    let _ = OBSERVER.set(observer);
}

/// Whether the observer has not handled a start yet.
#[must_use]
pub fn is_start_pending() -> bool {
    OBSERVER.get().is_some_and(|observer| (observer.is_start_pending)())
}

/// Calls the observer.
pub(super) fn report_state() {
    if let Some(observer) = OBSERVER.get() {
        (observer.on_change)(state());
    }
}

/// Begins a new epoch: see [`epoch`].
pub(super) fn advance_epoch() {
    EPOCH.fetch_add(1, Ordering::SeqCst);
}

/// Differs after each beginning and each end of a run: what was found out about categories before holds no
/// longer.
#[must_use]
pub fn epoch() -> u32 {
    EPOCH.load(Ordering::SeqCst)
}
