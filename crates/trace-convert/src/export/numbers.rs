//! Numbers of processes and threads, of which readers have 32 bits.
//= docs/perfetto.md#tracks

use super::custom_tracks::is_custom_track;
use trace_format::units::Koid;
use trace_reader::Thread;

/// Numbers from here on are those that stand for longer ones. No process of Linux has one of them.
const FIRST_OF_LONG: u32 = 1 << 30;

/// The remark about threads whose numbers are longer.
pub(crate) const LONG_NUMBERS: &str = "threads with numbers of more than 32 bits, which are replaced";

/// The remark about threads with the number of the idle thread.
pub(crate) const ZERO_NUMBERS: &str =
    "threads with the number 0, which readers reserve for the idle thread; another number replaces it";

/// The remark about threads with numbers that stand for others.
pub(crate) const TAKEN_NUMBERS: &str = "threads with numbers that stand for longer ones; others replace them";

/// Whether a number of a thread is longer.
#[inline]
pub(crate) const fn is_long(thread: Thread) -> bool {
    (thread.process.0 | thread.thread.0) >> 32 != 0
}

/// Whether the number of a thread is one of those that stand for longer ones.
#[inline]
pub(crate) const fn is_taken(thread: Thread) -> bool {
    thread.thread.0 >> FIRST_OF_LONG.trailing_zeros() == 1 && !is_custom_track(thread.thread)
}

/// Whether a thread has another number for readers.
#[inline]
pub(crate) const fn is_replaced(thread: Thread) -> bool {
    is_long(thread) || is_taken(thread) || thread.thread.0 == 0
}

/// The number for a koid: itself, or one that depends on all bits of a longer one, so that two that differ
/// only in high bits stay two.
pub(crate) fn short(koid: Koid) -> u32 {
    u32::try_from(koid.0).unwrap_or_else(|_| other(koid.0))
}

/// The 32-bit number of a thread. Readers reserve 0 for the idle thread, and some numbers stand for longer
/// ones: others replace these.
pub(crate) fn thread_number(thread: Thread) -> u32 {
    match thread.thread.0 {
        0 => other(!thread.process.0),
        number if is_taken(thread) => other(number),
        _ => short(thread.thread),
    }
}

/// A number that stands for another.
fn other(number: u64) -> u32 {
    // Each bit of the number changes half of the result's.
    let mixed = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    FIRST_OF_LONG | (mixed >> 34) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_stay_different_and_are_none_of_linux() {
        for own in [0, 1, 4_194_304, u64::from(u32::MAX)] {
            assert_eq!(u64::from(short(Koid(own))), own);
        }
        let long: Vec<u32> = (1..=1000_u64).map(|high| short(Koid(high << 32 | 7))).collect();
        assert!(long.iter().all(|number| (1 << 30..1 << 31).contains(number)), "{long:?}");
        let distinct: std::collections::BTreeSet<&u32> = long.iter().collect();
        assert_eq!(distinct.len(), 1000);
    }
}
