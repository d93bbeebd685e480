//! The verdict on each name.
//= docs/ab.md#verdicts

use super::Random;
use super::interval::Interval;
use super::looks::{FALSE_ALARMS, Look, looks, pairs_needed};
use super::signs::Signs;

/// The numbers of one name in pairs of runs: of the old command, and of the new one.
pub type Pairs = Vec<(f64, f64)>;

/// How a comparison is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// How many pairs of runs it was to have.
    pub pairs: usize,
    /// The least change that counts, such as 0.01.
    pub min_effect: f64,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// Whether the runs are looked at before the last.
    pub has_looks: bool,
}

impl Plan {
    /// The looks at so many pairs.
    fn looks(&self, pairs: usize, names: usize) -> Vec<Look> {
        let looks = looks(self.pairs, pairs, names);
        match looks.last() {
            Some(last) if !self.has_looks => vec![Look { pairs: last.pairs, rate: FALSE_ALARMS }],
            _ => looks,
        }
    }
}

/// What was found about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes longer, by more than the minimum effect.
    Slower,
    /// It takes less, by more than the minimum effect.
    Faster,
    /// It has not changed by more than the minimum effect.
    Same,
    /// The runs show neither a change nor that there is none.
    Undecided,
}

/// A name that was judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// What was found.
    pub verdict: Verdict,
    /// The change and its interval, each as a part of the old command's number: 0.03 is 3 % more.
    pub change: Interval,
    /// The probability of such signs without a change, corrected for the number of names.
    pub probability: f64,
}

/// All names at one look.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The look.
    pub look: Look,
    /// Each name, in the order that they were given in.
    pub names: Vec<Judged>,
    /// Whether further runs cannot change the answer: something takes longer, or nothing has changed.
    pub is_decided: bool,
    /// Whether so few pairs could have found a change at all.
    pub has_enough: bool,
}

/// Logarithms of the ratios of pairs, whose numbers are above zero.
#[must_use]
pub fn differences(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(old, new)| (new / old).ln()).collect()
}

/// Judges the runs so far at each look that they allow, until one decides. All names have as many pairs. None
/// without a name or without a block.
#[must_use]
pub fn judge(names: &[Pairs], plan: &Plan) -> Option<Judgement> {
    let pairs = names.first()?.len();
    let mut last = None;
    for look in plan.looks(pairs, names.len()) {
        if look.pairs == 0 {
            break;
        }
        let judgement = at(look, names, plan);
        let is_decided = judgement.is_decided;
        last = Some(judgement);
        if is_decided {
            break;
        }
    }
    last
}

/// Judges the runs at a look that has just been reached; none at any other number of runs.
#[must_use]
pub fn judge_if_due(names: &[Pairs], plan: &Plan) -> Option<Judgement> {
    let pairs = names.first()?.len();
    let look = plan.looks(plan.pairs, names.len()).into_iter().find(|look| look.pairs == pairs)?;
    Some(at(look, names, plan))
}

fn at(look: Look, names: &[Pairs], plan: &Plan) -> Judgement {
    let mut signs = Signs::default();
    let differences: Vec<Vec<f64>> = names.iter().map(|pairs| differences(&pairs[..look.pairs])).collect();
    let probabilities: Vec<f64> = differences.iter().map(|of| signs.probability(of)).collect();
    let probabilities = corrected(&probabilities);
    let names: Vec<Judged> = differences
        .iter()
        .zip(probabilities)
        .zip(0..)
        .map(|((differences, probability), stream)| {
            let random = Random::new(plan.seed, stream);
            let Interval { middle, low, high } = Interval::of(differences, random);
            let change = Interval { middle: middle.exp_m1(), low: low.exp_m1(), high: high.exp_m1() };
            let is_unlikely = probability <= look.rate;
            let verdict = match plan.min_effect {
                least if is_unlikely && change.low > least => Verdict::Slower,
                least if is_unlikely && change.high < -least => Verdict::Faster,
                least if change.low >= -least && change.high <= least => Verdict::Same,
                _ => Verdict::Undecided,
            };
            Judged { verdict, change, probability }
        })
        .collect();
    let is_slower = names.iter().any(|judged| judged.verdict == Verdict::Slower);
    let has_enough = look.pairs >= pairs_needed(names.len());
    let is_same = has_enough && names.iter().all(|judged| judged.verdict == Verdict::Same);
    Judgement { look, is_decided: is_slower || is_same, has_enough, names }
}

/// Holm's correction: the smallest counts as often as there are names, the next once less, and so on.
//= docs/ab.md#statistics
fn corrected(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let (mut corrected, mut least) = (vec![0.0; order.len()], 0.0_f64);
    for (place, name) in order.iter().enumerate() {
        least = least.max(probabilities[*name] * (order.len() - place) as f64).min(1.0);
        corrected[*name] = least;
    }
    corrected
}

#[cfg(test)]
mod tests;
