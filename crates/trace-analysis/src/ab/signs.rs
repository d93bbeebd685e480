//! An exact test of whether paired differences lie around zero.
//!
//! Without a change, each difference might as well have the other sign: all 2ⁿ ways to set the signs are
//! equally likely, and counting them gives an exact probability, however the sizes are distributed. The sizes
//! enter by their ranks, and ranks above a quarter of the number of pairs count as that: a few runs that
//! something else has disturbed weigh no more than most others.
//= docs/ab.md#statistics

/// No rank counts more than this.
const MAX_RANK: usize = 16;

/// The rank up to which ranks of so many pairs differ.
fn cap(pairs: usize) -> usize {
    pairs.div_ceil(4).min(MAX_RANK)
}

/// The distribution of the sum of the scores with a positive sign, of all ways to set the signs.
#[derive(Debug, Default)]
pub struct Signs {
    scores: Vec<usize>,
    /// The probability of each sum.
    sums: Vec<f64>,
}

impl Signs {
    /// The probability, without a change, of differences that lie at least as far to one side: of both sides
    /// together. Differences of zero say nothing and are left out.
    pub fn probability(&mut self, differences: &[f64]) -> f64 {
        let (scores, sum) = scored(differences);
        if scores.is_empty() {
            return 1.0;
        }
        self.prepare(scores);
        let upper: f64 = self.sums[sum..].iter().sum();
        let lower: f64 = self.sums[..=sum].iter().sum();
        (2.0 * upper.min(lower)).min(1.0)
    }

    /// The probability, without a change, of a sum of scores of so many pairs or more: of one side.
    pub(super) fn of_sum(&mut self, pairs: usize, sum: usize) -> f64 {
        self.prepare((1..=pairs).map(|rank| 2 * rank.min(cap(pairs))).collect());
        self.sums.get(sum..).unwrap_or_default().iter().sum()
    }

    /// Counts the ways, unless these scores were the last ones too.
    fn prepare(&mut self, scores: Vec<usize>) {
        if self.scores == scores {
            return;
        }
        let mut sums = vec![0.0; scores.iter().sum::<usize>() + 1];
        sums[0] = 1.0;
        let mut reached = 0;
        for score in &scores {
            reached += score;
            for sum in (0..=reached).rev() {
                let with = if sum >= *score { sums[sum - score] } else { 0.0 };
                sums[sum] = (sums[sum] + with) / 2.0;
            }
        }
        (self.scores, self.sums) = (scores, sums);
    }
}

/// Twice the capped ranks, in order, and the sum of those of positive differences. Equal sizes share a rank.
pub(super) fn scored(differences: &[f64]) -> (Vec<usize>, usize) {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let cap = cap(sorted.len());
    let (mut scores, mut positive) = (Vec::with_capacity(sorted.len()), 0);
    for equal in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = scores.len() + 1;
        let last = scores.len() + equal.len();
        let score = (first + last).min(2 * cap);
        scores.extend(equal.iter().map(|_| score));
        positive += score * equal.iter().filter(|difference| **difference > 0.0).count();
    }
    (scores, positive)
}

/// The least probability that so many pairs can have.
#[must_use]
pub fn least(pairs: usize) -> f64 {
    2.0 * 0.5_f64.powi(i32::try_from(pairs).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ab::Random;

    /// By going through all ways.
    fn by_definition(differences: &[f64]) -> f64 {
        let (scores, sum) = scored(differences);
        let ways = 1_u32 << scores.len();
        let sum_of = |way: u32| -> usize {
            scores.iter().enumerate().filter(|(at, _)| way >> at & 1 == 1).map(|(_, score)| score).sum()
        };
        let upper = (0..ways).filter(|way| sum_of(*way) >= sum).count();
        let lower = (0..ways).filter(|way| sum_of(*way) <= sum).count();
        (2.0 * upper.min(lower) as f64 / f64::from(ways)).min(1.0)
    }

    //= docs/ab.md#statistics
    #[test]
    fn probabilities_are_those_of_all_ways_to_set_the_signs() {
        let (mut signs, mut random) = (Signs::default(), Random::new(1, 0));
        assert_eq!(signs.probability(&[]), 1.0);
        assert_eq!(signs.probability(&[0.0, 0.0]), 1.0);
        assert_eq!(signs.probability(&[1.0; 10]), least(10));
        assert_eq!(signs.probability(&[-3.0, -1.0, -2.0, 0.0]), least(3));
        for round in 0..200 {
            let size = 1 + round % 14;
            // Of few sizes, so that some are equal.
            let differences: Vec<f64> = (0..size).map(|_| random.below(30) as f64 - 12.0).collect();
            let (found, expected) = (signs.probability(&differences), by_definition(&differences));
            assert!((found - expected).abs() < 1e-12, "{differences:?}: {found}, not {expected}");
        }
    }

    #[test]
    fn a_disturbed_run_weighs_no_more_than_a_quarter_of_the_others() {
        let mut signs = Signs::default();
        let mut differences: Vec<f64> = (1..=30).map(f64::from).collect();
        differences[20] = -20.5;
        let inside = signs.probability(&differences);
        differences[20] = -1000.0;
        assert_eq!(signs.probability(&differences), inside);
        assert!(inside < 1e-7, "{inside}");
    }
}
