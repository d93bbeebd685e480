//! What the process is informed of: starts and stops of recording.

use crate::session::state::{State, state};
use crate::sync::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::time::Duration;

/// Is called when recording starts and stops.
#[derive(Clone, Copy, Debug)]
pub struct Observer {
    /// Called on the thread that changes the state, after it has. A provider's has descriptors of its own: no
    /// code of the program runs there.
    pub on_change: fn(State),
    /// Whether the observer has not handled a start yet: the start is reported to the manager after that.
    pub is_start_pending: fn() -> bool,
    /// Called on the provider's thread while recording, and on the thread that ends the recording right
    /// before that, which the argument says. May write records. Returns when to call it again.
    pub on_turn: fn(bool) -> Option<Duration>,
    /// The id of the operation that the calling thread works on, as far as the observer knows it.
    pub operation: fn() -> Option<u64>,
}

impl Observer {
    /// Takes no notice.
    pub const NONE: Self =
        Self { on_change: |_| (), is_start_pending: || false, on_turn: |_| None, operation: || None };
}

/// Observers of a process at most.
const MAX_OBSERVERS: usize = 8;
static OBSERVERS: [OnceLock<Observer>; MAX_OBSERVERS] = [const { OnceLock::new() }; MAX_OBSERVERS];
/// Counts the beginnings and ends of runs.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// Adds an observer, once; there is room for eight.
pub fn observe(observer: Observer) {
    let is_same = |known: &Observer| core::ptr::fn_addr_eq(known.on_change, observer.on_change);
    // One is added at each place that is tried, by this thread or another.
    let _ = OBSERVERS.iter().find(|place| place.set(observer).is_ok() || place.get().is_some_and(is_same));
}

fn observers() -> impl Iterator<Item = &'static Observer> {
    OBSERVERS.iter().map_while(OnceLock::get)
}

/// Whether an observer has not handled a start yet.
#[must_use]
pub fn is_start_pending() -> bool {
    observers().any(|observer| (observer.is_start_pending)())
}

/// Lets the observers do what is due while recording: see [`Observer::on_turn`]. When to call it again.
pub fn turn(is_last: bool) -> Option<Duration> {
    observers().filter_map(|observer| (observer.on_turn)(is_last)).min()
}

/// The operation of the calling thread that an observer knows.
pub(crate) fn observed_operation() -> Option<u64> {
    observers().find_map(|observer| (observer.operation)())
}

/// Calls the observers.
pub(super) fn report_state() {
    observers().for_each(|observer| (observer.on_change)(state()));
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
