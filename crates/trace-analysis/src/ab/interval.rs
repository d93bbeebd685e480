//! An interval for a change, from its pairs.
//!
//! The change is the mean of the middle half of the differences, which a few disturbed runs do not move. Its
//! interval is a bootstrap of whole blocks, so that what binds neighbouring runs together stays in it.
//= docs/ab.md#statistics

use super::Random;

/// Pairs of a block, which are drawn together.
pub const PAIRS_OF_BLOCK: usize = 2;
/// How often the blocks are drawn.
const DRAWS: usize = 1000;
/// Draws beyond each end of the interval.
const BEYOND: usize = DRAWS / 40;

/// A change with the interval that has it with 95 % certainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The change.
    pub middle: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The mean of the middle half of some numbers; 0 of none.
#[must_use]
pub fn middle(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    let kept = &sorted[cut..sorted.len() - cut];
    if kept.is_empty() { 0.0 } else { kept.iter().sum::<f64>() / kept.len() as f64 }
}

impl Interval {
    /// The interval of some differences, of which each block has two neighbours.
    #[must_use]
    pub fn of(differences: &[f64], mut random: Random) -> Self {
        let middle = middle(differences);
        let blocks = differences.len() / PAIRS_OF_BLOCK;
        if blocks == 0 {
            return Self { middle, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let mut order: Vec<usize> = (0..blocks * PAIRS_OF_BLOCK).collect();
        order.sort_by(|a, b| differences[*a].total_cmp(&differences[*b]));
        let mut times = vec![0_u32; blocks];
        let mut draws: Vec<f64> = (0..DRAWS)
            .map(|_| {
                times.fill(0);
                (0..blocks).for_each(|_| times[random.below(blocks)] += 1);
                middle_of(differences, &order, &times)
            })
            .collect();
        draws.sort_by(f64::total_cmp);
        Self { middle, low: draws[BEYOND - 1], high: draws[DRAWS - BEYOND] }
    }
}

/// The middle of differences that count so many times as their block was drawn.
fn middle_of(differences: &[f64], order: &[usize], times: &[u32]) -> f64 {
    let cut = order.len() / 4;
    let end = order.len() - cut;
    let (mut at, mut sum) = (0, 0.0);
    for place in order {
        let next = at + times[place / PAIRS_OF_BLOCK] as usize;
        let kept = next.min(end).saturating_sub(at.max(cut));
        sum += kept as f64 * differences[*place];
        at = next;
    }
    sum / (end - cut) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/ab.md#statistics
    #[test]
    fn the_middle_half_counts() {
        assert_eq!(middle(&[]), 0.0);
        assert_eq!(middle(&[3.0]), 3.0);
        assert_eq!(middle(&[1000.0, 2.0, 4.0, -1000.0]), 3.0);
        let numbers = [5.0, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0];
        let order = [1, 3, 5, 7, 0, 6, 4, 2];
        assert_eq!(middle_of(&numbers, &order, &[1; 4]), middle(&numbers));
        // The third block three times, and the first: 8 8 8 3 3 3, and 5 1.
        assert_eq!(middle_of(&numbers, &order, &[1, 0, 3, 0]), (3.0 + 3.0 + 5.0 + 8.0) / 4.0);
    }

    //= docs/ab.md#statistics
    #[test]
    fn blocks_are_drawn_together() {
        let width = |numbers: &[f64]| {
            let found = Interval::of(numbers, Random::new(3, 0));
            found.high - found.low
        };
        let alike: Vec<f64> = (0..40).map(|pair| if pair / 2 % 2 == 0 { -1.0 } else { 1.0 }).collect();
        // Whichever blocks are drawn, half of the pairs are of each kind.
        let opposed: Vec<f64> = (0..40).map(|pair| if pair % 2 == 0 { -1.0 } else { 1.0 }).collect();
        assert_eq!(width(&opposed), 0.0);
        assert!(width(&alike) > 1.0, "{}", width(&alike));
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let numbers: Vec<f64> = (0..30).map(|number| f64::from(number * 7919 % 101)).collect();
        let of = |seed| Interval::of(&numbers, Random::new(seed, 0));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let Interval { middle, low, high } = of(1);
        assert!(low < middle && middle < high);
    }
}
