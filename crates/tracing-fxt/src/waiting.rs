//! Spans that were left and not closed: a future that waits, and may wait forever. They become operations
//! while they wait, on the provider's thread.

#[cfg(feature = "layer")]
use crate::open_spans;
use crate::span_data::{SpanData, set_young};
use crate::{callsites, pool, writer};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use trace_provider::{now, ticks_per_second};

/// How often spans are looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// In how many parts of a second a span that is left counts as one that waits.
const WAITS_PARTS: u64 = 50;
/// Slots that are looked at in a turn, of each table.
const SLOTS_OF_TURN: usize = 4096;

/// When spans were looked at last, in ticks.
static LAST: AtomicU64 = AtomicU64::new(0);
/// Where the next turn begins.
#[cfg(feature = "layer")]
static NEXT_OPEN: AtomicUsize = AtomicUsize::new(0);
static NEXT_POOLED: AtomicUsize = AtomicUsize::new(0);

/// A recording begins.
pub fn begin() {
    LAST.store(0, Ordering::Relaxed);
    set_young(ticks_per_second() / WAITS_PARTS / 2);
}

/// Looks at spans if it is time, or at all of them in the last turn.
pub fn on_turn(is_last: bool) -> Option<Duration> {
    let (now, second) = (now().0, ticks_per_second());
    let interval = second / (1000 / INTERVAL.as_millis() as u64);
    if !is_last && now.saturating_sub(LAST.load(Ordering::Relaxed)) < interval {
        return Some(INTERVAL);
    }
    LAST.store(now, Ordering::Relaxed);
    let patience = if is_last { 0 } else { second / WAITS_PARTS };
    let look = |id: u64, data: &SpanData| {
        let waits =
            |data: &SpanData| data.first().is_some_and(|first| now.saturating_sub(first.at) >= patience);
        if data.is_waiting() && waits(data) {
            let callsite = callsites::by_number(data.callsite()).filter(|callsite| callsite.is_on());
            callsite.into_iter().for_each(|callsite| writer::become_operation(id, callsite, data));
        }
    };
    let count = if is_last { usize::MAX } else { SLOTS_OF_TURN };
    let from = |next: &AtomicUsize| if is_last { 0 } else { next.load(Ordering::Relaxed) };
    #[cfg(feature = "layer")]
    {
        let open = open_spans::each(from(&NEXT_OPEN), count, look).unwrap_or(0);
        NEXT_OPEN.store(open, Ordering::Relaxed);
    }
    let pooled = pool::each(from(&NEXT_POOLED), count, look).unwrap_or(0);
    NEXT_POOLED.store(pooled, Ordering::Relaxed);
    Some(INTERVAL)
}
