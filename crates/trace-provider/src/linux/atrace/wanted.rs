//! Which tags of markers are wanted now.
//!
//! A recording says so to a program with a provider; others look for the manager's files, at most once a
//! second. Both happens at a mark: a program that writes none does not link it.
//= docs/kernel.md#tags
//!
//! ```text
//!  63        62          61             32         0
//! | unknown | recording | has provider | generation | tags |
//! ```
//!
//! The generation counts what the provider reports, so that no thread stores the tags of an earlier
//! recording.

use super::managers;
use crate::linux::config;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use trace_engine::ffi::is_category_wanted;
use trace_format::markers;
use zx_sim::environment::variable;

/// The tags have to be found out.
const UNKNOWN: u64 = 1 << 63;
/// The provider takes part in a recording.
const IS_RECORDING: u64 = 1 << 62;
/// The program has a provider.
const HAS_PROVIDER: u64 = 1 << 61;
const GENERATION: u64 = 1 << 32;
const GENERATIONS: u64 = HAS_PROVIDER - GENERATION;
const TAGS: u64 = markers::ALL;

/// Has markers written for other software, too.
const VARIABLE: &str = "TRACE_MARKERS";

static STATE: AtomicU64 = AtomicU64::new(UNKNOWN);

/// A recording begins or ends; or the program has a provider, and no recording. What that means for markers
/// is found out at the next one.
pub(in crate::linux) fn want(is_recording: bool) {
    let recording = if is_recording { IS_RECORDING } else { 0 };
    let next = |state: u64| {
        let generation = state.wrapping_add(GENERATION) & GENERATIONS;
        Some(UNKNOWN | recording | HAS_PROVIDER | generation)
    };
    let _ = STATE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
}

/// The tags, of those given, of which markers are wanted.
#[inline]
pub fn enabled(tags: u64) -> u64 {
    let state = STATE.load(Ordering::Relaxed);
    let wanted = if state & UNKNOWN == 0 { state & TAGS } else { find_out(state) };
    wanted & tags
}

#[cold]
fn find_out(state: u64) -> u64 {
    let tags = match state & (IS_RECORDING | HAS_PROVIDER) {
        _ if are_always_wanted() => TAGS,
        0 => return managers::tags(),
        HAS_PROVIDER => 0,
        _ => {
            let listed = config::config().map(|config| config.categories).unwrap_or_default();
            markers::tags(|category| is_category_wanted(category.as_bytes()), &listed)
        }
    };
    let known = (state & !UNKNOWN) | tags;
    // Otherwise the provider has reported something else meanwhile, for the next mark.
    let _ = STATE.compare_exchange(state, known, Ordering::Relaxed, Ordering::Relaxed);
    tags
}

fn are_always_wanted() -> bool {
    static ARE: OnceLock<bool> = OnceLock::new();
    *ARE.get_or_init(|| variable(VARIABLE).is_some_and(|value| value == "always"))
}
