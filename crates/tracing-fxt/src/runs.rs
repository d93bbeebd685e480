//! Has `tracing` ask again what is recorded when a recording begins or ends.
//!
//! Other threads make it ask, too, such as one that reloads a filter. That thread stores the answer later,
//! and a recording may begin in between: the answer from before the recording would then hold until its end.
//! So only the provider's thread, on which recordings begin, gets the answer that a known callsite is not
//! wanted. All others get one that is right in both cases, and costs more until the next recording ends.

use core::cell::Cell;
use trace_engine::engine::{self, Observer, State};
use tracing_core::callsite::rebuild_interest_cache;

thread_local! {
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// From now on, for the life of the process.
pub fn follow() {
    engine::observe(Observer { on_change, is_start_pending: || false });
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
    if matches!(state, State::Started | State::Stopped) {
        // A child forked meanwhile would find tracing's locks taken.
        engine::without_forks(|| {
            let _ = IS_ASKING.try_with(|is_asking| is_asking.set(true));
            rebuild_interest_cache();
            let _ = IS_ASKING.try_with(|is_asking| is_asking.set(false));
        });
    }
}
