//! The smallest change that so many runs with such scatter would have shown.
//= docs/ab.md#power

use super::Random;
use super::interval::Interval;
use super::looks::Look;
use super::signs::{Signs, scored};

/// How often runs are drawn, and in how many draws a change has to be found.
const DRAWS: usize = 100;
const FOUND: usize = 90;
/// How often the range of changes is halved.
const STEPS: usize = 14;
/// Changes beyond this, as logarithms, are not looked for: a factor of 1000.
const MOST: f64 = 6.9;
/// The ends of an interval of 95 % and of the upper 90 %, in standard deviations.
const END: f64 = 1.96;
const UPPER: f64 = 1.2816;

/// The smallest change for the worse that would be found nine times out of ten: of the differences and the
/// interval of one name among so many. None if no change can be.
#[must_use]
pub fn smallest(
    differences: &[f64],
    change: &Interval,
    names: usize,
    look: Look,
    min_effect: f64,
    mut random: Random,
) -> Option<f64> {
    let pairs = differences.len();
    let limit = look.rate / names as f64 / 2.0;
    let mut signs = Signs::default();
    // The test finds what has at least this sum, where no difference is zero and none are equal.
    let most = scored(&vec![1.0; pairs]).0.len();
    let needed = least_sum(&mut signs, most, limit)?;
    let middle = change.middle.ln_1p();
    let draws: Vec<Vec<f64>> =
        (0..DRAWS).map(|_| (0..pairs).map(|_| differences[random.below(pairs)] - middle).collect()).collect();
    let is_found = |shift: f64| {
        let found = draws.iter().filter(|draw| {
            let shifted: Vec<f64> = draw.iter().map(|difference| difference + shift).collect();
            scored(&shifted).1 >= needed
        });
        found.count() >= FOUND
    };
    if !is_found(MOST) {
        return None;
    }
    let (mut below, mut above) = (0.0, MOST);
    for _ in 0..STEPS {
        let shift = f64::midpoint(below, above);
        *(if is_found(shift) { &mut above } else { &mut below }) = shift;
    }
    // The interval has to end above the minimum effect, too.
    let (low, high) = (change.low.ln_1p(), change.high.ln_1p());
    let deviation = (high - low) / (2.0 * END);
    let beyond = min_effect.ln_1p() + (middle - low).max(0.0) + UPPER * deviation;
    Some(above.max(beyond).exp_m1())
}

/// The least sum of scores that is as unlikely as this.
fn least_sum(signs: &mut Signs, pairs: usize, limit: f64) -> Option<usize> {
    let (mut below, mut above) = (0, 2 * pairs * pairs + 1);
    while above - below > 1 {
        let sum = below.midpoint(above);
        *(if signs.of_sum(pairs, sum) <= limit { &mut above } else { &mut below }) = sum;
    }
    (signs.of_sum(pairs, above) > 0.0).then_some(above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ab::judge::{Plan, Verdict, differences, judge};

    /// Pairs whose differences are spread evenly around a change.
    fn pairs(change: f64, spread: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut random = Random::new(seed, 5);
        let noise = |random: &mut Random| {
            let sum: f64 = (0..12).map(|_| random.below(1_000_000) as f64 / 1e6).sum();
            (sum - 6.0) * spread
        };
        (0..30).map(|_| (1000.0, 1000.0 * (change + noise(&mut random)).exp())).collect()
    }

    //= docs/ab.md#power
    #[test]
    fn a_change_of_the_smallest_size_is_found_nine_times_out_of_ten() {
        let plan = Plan { pairs: 30, min_effect: 0.01, seed: 1, has_looks: true };
        for spread in [0.002, 0.02, 0.1] {
            let quiet = pairs(0.0, spread, 1000);
            let judged = judge(std::slice::from_ref(&quiet), &plan).unwrap();
            let look = Look { pairs: 30, rate: 0.003 };
            let all = differences(&quiet);
            let change = Interval::of(&all, Random::new(1, 0));
            let found = smallest(&all, &change, 1, look, plan.min_effect, Random::new(1, 1)).unwrap();
            assert!(found > 0.01 + spread / 4.0 && found < 0.015 + 1.5 * spread, "{spread}: {found}");
            assert_ne!(judged.names[0].verdict, Verdict::Slower);
            let trial = |size: f64| {
                let trials = (0..200).filter(|seed| {
                    let of = pairs(size.ln_1p(), spread, *seed);
                    judge(&[of], &plan).unwrap().names[0].verdict == Verdict::Slower
                });
                trials.count()
            };
            let (at, below) = (trial(found), trial(f64::midpoint(found, 0.0)));
            assert!(at >= 160, "{spread}: {found} was found {at} times of 200");
            assert!(below < 120, "{spread}: half of {found} was found {below} times of 200");
        }
    }

    #[test]
    fn too_few_pairs_find_nothing() {
        let (few, change) = ([0.1; 4], Interval { middle: 0.1, low: 0.1, high: 0.1 });
        let look = Look { pairs: 4, rate: 0.005 };
        assert_eq!(smallest(&few, &change, 50, look, 0.01, Random::new(1, 1)), None);
    }
}
