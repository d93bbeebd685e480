//! When runs are looked at, and how many false alarms each look may raise.
//!
//! The rates of all looks add up to that of the comparison, so it does not matter how much the looks depend
//! on each other.
//= docs/ab.md#looks

use super::interval::PAIRS_OF_BLOCK;
use super::signs::least;

/// The rate of comparisons of equal commands that report any change.
pub const FALSE_ALARMS: f64 = 0.005;
/// After how many quarters of all runs there is a look, and the part of the rate that it has.
const LOOKS: [(usize, f64); 3] = [(2, 0.2), (3, 0.2), (4, 0.6)];

/// A look at the runs so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// After how many pairs of runs.
    pub pairs: usize,
    /// The rate of false alarms.
    pub rate: f64,
}

/// The looks of a comparison that has so many pairs of runs, of whole blocks, and was to have more of them. A
/// look that is too early to find anything among so many names passes its rate on.
#[must_use]
pub fn looks(planned: usize, pairs: usize, names: usize) -> Vec<Look> {
    let whole = |pairs: usize| pairs / PAIRS_OF_BLOCK * PAIRS_OF_BLOCK;
    let last = whole(pairs.min(planned));
    let (mut looks, mut rate) = (Vec::new(), 0.0);
    for (quarters, part) in LOOKS {
        let at = whole(planned * quarters / 4);
        rate += FALSE_ALARMS * part;
        if at < last && least(at) * names as f64 <= rate {
            looks.push(Look { pairs: at, rate });
            rate = 0.0;
        }
    }
    looks.push(Look { pairs: last, rate });
    looks
}

/// How many pairs a comparison needs to find anything among so many names.
#[must_use]
pub fn pairs_needed(names: usize) -> usize {
    let (mut pairs, of_last) = (PAIRS_OF_BLOCK, LOOKS[2].1 * FALSE_ALARMS);
    while least(pairs) * names as f64 > of_last {
        pairs += PAIRS_OF_BLOCK;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/ab.md#looks
    #[test]
    fn the_rates_of_all_looks_are_the_rate_of_the_comparison() {
        for planned in 2..70 {
            for pairs in 0..=planned {
                for names in [1, 2, 50, 3000] {
                    let looks = looks(planned, pairs, names);
                    let rate: f64 = looks.iter().map(|look| look.rate).sum();
                    assert!((rate - FALSE_ALARMS).abs() < 1e-12, "{planned} {pairs} {names}: {looks:?}");
                    assert!(looks.is_sorted_by(|a, b| a.pairs < b.pairs), "{looks:?}");
                    assert_eq!(looks.last().map(|look| look.pairs), Some(pairs / 2 * 2));
                }
            }
        }
    }

    //= docs/ab.md#looks
    #[test]
    fn a_look_that_can_find_nothing_is_left_out() {
        let at = |names| looks(30, 30, names).iter().map(|look| look.pairs).collect::<Vec<_>>();
        assert_eq!(at(1), [14, 22, 30]);
        assert_eq!(at(50), [22, 30]);
        assert_eq!(looks(30, 30, 50)[0].rate, FALSE_ALARMS * 0.4);
        assert_eq!([1, 10, 50, 1000].map(pairs_needed), [10, 14, 16, 20]);
    }
}
