//! Numbers of processes and threads, of which the format has 32 bits.
//= docs/perfetto.md#tracks

use trace_format::units::Koid;

/// Numbers from here on are those that stand for longer ones. No process of Linux has one of them.
const FIRST_OF_LONG: u32 = 1 << 30;

/// The number for a koid: itself, or one that depends on all bits of a longer one, so that two that differ
/// only in high bits stay two.
pub(super) fn short(koid: Koid) -> u32 {
    u32::try_from(koid.0).unwrap_or_else(|_| {
        // Each bit of the koid changes half of the result's.
        let mixed = (koid.0 ^ koid.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        FIRST_OF_LONG | (mixed >> 34) as u32
    })
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
