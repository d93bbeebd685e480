//! Threads with complete records alone, which take time and end in order.

use trace_reader::Time;
use trace_reader::item::{Scale, Ticks, TicksPerSecond};

/// The roots of such a thread, in ticks of one clock: this takes fewer instructions than [`Roots`].
///
/// [`Roots`]: crate::roots::Roots
#[derive(Debug, Default)]
pub(super) struct Quick {
    /// None before the first slice.
    pub clock: Option<Clock>,
    pub last_begin: u64,
    pub last_end: u64,
    /// They begin in order, too: none is in another.
    pub is_by_begin: bool,
    /// Begins and ends of slices that are in no other one.
    pub roots: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    rate: TicksPerSecond,
    scale: Scale,
    /// Times so far apart are not the same nanosecond.
    nanosecond: u64,
}

impl Clock {
    pub fn of(time: Time) -> Self {
        let nanosecond = time.rate.0.get().div_ceil(1_000_000_000);
        Self { rate: time.rate, scale: time.scale, nanosecond }
    }

    pub const fn nanos(&self, ticks: u64) -> u64 {
        Time { ticks: Ticks(ticks), rate: self.rate, scale: self.scale }.nanos().0
    }
}

impl Quick {
    /// Adds a complete record, if there is room and nothing has to be compared but this.
    #[inline]
    pub fn add(&mut self, time: Time, Ticks(end): Ticks) -> bool {
        let Self { clock: Some(clock), last_begin, last_end, is_by_begin, roots } = self else {
            return false;
        };
        let Time { ticks: Ticks(begin), .. } = time;
        if clock.rate != time.rate || end < *last_end || end.saturating_sub(begin) < clock.nanosecond {
            return false;
        }
        while roots.pop_if(|(root, _)| root.saturating_sub(begin) >= clock.nanosecond).is_some() {}
        // It may begin with the last one, overlap it, or be in it.
        if roots.last().is_some_and(|(_, root_end)| *root_end > begin) || roots.len() == roots.capacity() {
            return false;
        }
        roots.push((begin, end));
        *is_by_begin &= begin >= *last_begin;
        (*last_begin, *last_end) = (begin, end);
        true
    }
}
