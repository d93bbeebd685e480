//! Has `tracing` ask again what is recorded when a recording begins or ends.

use trace_engine::engine::{self, Observer, State};

/// From now on, for the life of the process.
pub fn follow() {
    engine::observe(Observer { on_change, is_start_pending: || false });
}

/// Whether a recording runs.
pub fn is_running() -> bool {
    matches!(engine::state(), State::Started | State::Stopping)
}

/// On the provider's thread, before the manager learns of it.
fn on_change(state: State) {
    if matches!(state, State::Started | State::Stopped) {
        // A child forked meanwhile would find tracing's locks taken.
        engine::without_forks(tracing_core::callsite::rebuild_interest_cache);
    }
}
