//! Tracks of Perfetto's that are no thread's: archives have them as threads with numbers from a range of
//! their own, which no system gives to its threads.
//= docs/import.md#tracks-of-perfetto

use trace_format::units::Koid;

/// The range ends where the numbers of idle threads begin.
const FIRST: u64 = 0x7ffe_0000;
const COUNT: u64 = 1 << 16;

/// The number of a further track; none if there is none left.
pub(crate) fn number(count: u64) -> Option<Koid> {
    (count < COUNT).then_some(Koid(FIRST + count))
}

/// Whether a thread is such a track.
pub(crate) const fn is_custom_track(thread: Koid) -> bool {
    thread.0.wrapping_sub(FIRST) < COUNT
}
