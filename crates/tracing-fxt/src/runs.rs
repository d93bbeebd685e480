//! Has `tracing` ask again what is recorded when a recording begins or ends.
//!
//! Other threads make it ask, too, such as one that reloads a filter. That thread stores the answer later,
//! and a recording may begin in between: the answer from before the recording would then hold until its end.
//! So only the provider's thread, on which recordings begin, gets the answer that a known callsite is not
//! wanted. All others get one that is right in both cases, and costs more until the next recording ends.
//!
//! Where `tracing` knows of one subscriber alone, it asks the one of the thread that makes it ask: on the
//! provider's thread, that would be none in a program that gives its subscriber to some threads only.

use crate::{waiting, writer};
use core::cell::Cell;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use trace_engine::engine::{self, Observer, State};
use tracing_core::callsite::rebuild_interest_cache;
use tracing_core::dispatcher::{Dispatch, WeakDispatch, with_default};

/// How long the start of a recording waits for a thread that adds a subscriber.
const PATIENCE: Duration = Duration::from_millis(10);

/// Subscribers of which this crate's is a part.
static SUBSCRIBERS: Mutex<Vec<WeakDispatch>> = Mutex::new(Vec::new());

thread_local! {
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// From now on, for the life of the process.
pub fn follow() {
    engine::observe(Observer {
        on_change,
        on_turn: waiting::on_turn,
        operation: writer::operation,
        ..Observer::NONE
    });
}

/// A subscriber that is this crate's, or has a layer of it, is there.
pub fn note(subscriber: &Dispatch) {
    // Dropped behind the lock: an upgraded one may be the last reference, and a subscriber may do anything
    // when it is dropped.
    let mut alive = Vec::new();
    let mut known = SUBSCRIBERS.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|known| known.upgrade().map(|subscriber| alive.push(subscriber)).is_some());
    known.push(subscriber.downgrade());
    drop(known);
}

/// The last of them that is still there. Another thread holds the lock for a moment only; but in a forked
/// child that thread may not exist, so this gives up after [`PATIENCE`].
fn subscriber() -> Option<Dispatch> {
    let since = Instant::now();
    loop {
        match SUBSCRIBERS.try_lock() {
            Ok(known) => return known.iter().rev().find_map(WeakDispatch::upgrade),
            Err(TryLockError::Poisoned(known)) => {
                return known.into_inner().iter().rev().find_map(WeakDispatch::upgrade);
            }
            Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE => std::thread::yield_now(),
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

/// Whether a recording runs.
pub fn is_running() -> bool {
    matches!(engine::state(), State::Started | State::Stopping)
}

/// Whether this thread is the one on which recordings begin, and asks for that reason.
pub fn is_asking() -> bool {
    IS_ASKING.try_with(Cell::get).unwrap_or(false)
}

/// On the provider's thread, before the manager learns of it.
fn on_change(state: State) {
    if state == State::Started {
        waiting::begin();
    }
    if matches!(state, State::Started | State::Stopped) {
        // A child forked meanwhile would find tracing's locks taken.
        engine::without_forks(|| {
            let _ = IS_ASKING.try_with(|is_asking| is_asking.set(true));
            match subscriber() {
                Some(subscriber) => with_default(&subscriber, rebuild_interest_cache),
                None => rebuild_interest_cache(),
            }
            let _ = IS_ASKING.try_with(|is_asking| is_asking.set(false));
        });
    }
}
