//! All runs of a comparison: what of them is judged, and what is not.
//= docs/ab.md#verdicts

use super::Random;
use super::carriers::{self, Part};
use super::interval::middle;
use super::judge::{self, Judged, Judgement, Pairs, Plan};
use super::power::smallest;
use super::run::{Name, Run};
use std::collections::BTreeSet;

/// The stream that draws runs for the power.
const POWER: u64 = 1 << 32;

/// Two neighbouring runs, one of each command.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Of the old command.
    pub old: Run,
    /// Of the new one.
    pub new: Run,
}

/// Why a name is not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// Events may be missing: this is so in so many of all runs.
    Incomplete(String),
    /// It does not occur in each run.
    Rare {
        /// Runs of the old command that have it.
        old: usize,
        /// Runs of the new command that have it.
        new: usize,
    },
    /// Its number is zero in some run, so that there is no ratio.
    Zero,
}

/// A name with what was found.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name.
    pub name: Name,
    /// The middle of its numbers with the old command and with the new one.
    pub values: (f64, f64),
    /// What was found.
    pub judged: Judged,
    /// The smallest change that would have been found.
    pub smallest: Option<f64>,
    /// Its parts, if it has changed.
    pub parts: Vec<Part>,
}

/// Everything that a comparison has found.
#[derive(Clone, Debug)]
pub struct Result {
    /// The names that were judged, in order.
    pub rows: Vec<Row>,
    /// The others, and why.
    pub unjudged: Vec<(Name, Unjudged)>,
    /// The judgement as a whole; none if no name could be judged.
    pub judgement: Option<Judgement>,
    /// What is missing in the runs.
    pub missing: Vec<String>,
}

/// The names that can be judged, with their pairs, and the others.
pub type Names = (Vec<(Name, Pairs)>, Vec<(Name, Unjudged)>);

/// Sorts out which names can be judged.
#[must_use]
pub fn names(pairs: &[Pair]) -> Names {
    let runs = || pairs.iter().flat_map(|pair| [&pair.old, &pair.new]);
    let all: BTreeSet<&Name> = runs().flat_map(|run| run.names.keys()).collect();
    let missing = runs().filter(|run| !run.missing.is_empty()).count();
    let (mut judged, mut unjudged) = (Vec::new(), Vec::new());
    for name in all {
        let has = |run: &Run| run.names.get(name).is_some_and(|numbers| numbers.count > 0);
        let open = runs().filter(|run| run.names.get(name).is_some_and(|of| of.unfinished > 0)).count();
        let value = |run: &Run| run.names.get(name).and_then(|numbers| numbers.value);
        let values = pairs.iter().map(|pair| Some((value(&pair.old)?, value(&pair.new)?)));
        let values: Option<Pairs> = values.collect();
        let old = pairs.iter().filter(|pair| has(&pair.old)).count();
        let new = pairs.iter().filter(|pair| has(&pair.new)).count();
        let why = if missing > 0 {
            Unjudged::Incomplete(format!("events are missing in {missing} of {} runs", 2 * pairs.len()))
        } else if open > 0 {
            Unjudged::Incomplete(format!("it has not ended in {open} of {} runs", 2 * pairs.len()))
        } else if old < pairs.len() || new < pairs.len() {
            Unjudged::Rare { old, new }
        } else {
            match values {
                Some(values) if values.iter().all(|(old, new)| *old > 0.0 && *new > 0.0) => {
                    judged.push((name.clone(), values));
                    continue;
                }
                Some(_) => Unjudged::Zero,
                None => Unjudged::Incomplete("there was no memory for its percentiles".to_owned()),
            }
        };
        unjudged.push((name.clone(), why));
    }
    (judged, unjudged)
}

/// Whether the runs so far decide, at the looks that a comparison has.
#[must_use]
pub fn is_decided(pairs: &[Pair], plan: &Plan) -> bool {
    let names: Vec<Pairs> = names(pairs).0.into_iter().map(|(_, pairs)| pairs).collect();
    judge::judge_if_due(&names, plan).is_some_and(|judgement| judgement.is_decided)
}

/// Judges all runs.
#[must_use]
pub fn result(pairs: &[Pair], plan: &Plan) -> Result {
    let (judged, unjudged) = names(pairs);
    let numbers: Vec<Pairs> = judged.iter().map(|(_, pairs)| pairs.clone()).collect();
    let judgement = judge::judge(&numbers, plan);
    let missing: BTreeSet<&String> =
        pairs.iter().flat_map(|pair| pair.old.missing.iter().chain(&pair.new.missing)).collect();
    let rows = judgement.iter().flat_map(|judgement| {
        judged.iter().zip(&judgement.names).zip(0..).map(|(((name, numbers), judged), stream)| {
            row(name, numbers, *judged, pairs, judgement, plan, POWER + stream)
        })
    });
    Result { rows: rows.collect(), unjudged, missing: missing.into_iter().cloned().collect(), judgement }
}

fn row(
    name: &Name,
    numbers: &Pairs,
    judged: Judged,
    pairs: &[Pair],
    judgement: &Judgement,
    plan: &Plan,
    stream: u64,
) -> Row {
    let seen = judgement.look.pairs;
    let differences = judge::differences(&numbers[..seen]);
    let of = |choose: fn(&(f64, f64)) -> f64| middle(&numbers[..seen].iter().map(choose).collect::<Vec<_>>());
    let random = Random::new(plan.seed, stream);
    let smallest = smallest(
        &differences,
        &judged.change,
        judgement.names.len(),
        judgement.look,
        plan.min_effect,
        random,
    );
    let has_changed = matches!(judged.verdict, judge::Verdict::Slower | judge::Verdict::Faster);
    let parts = if has_changed && !name.is_operation {
        let both = |pair| -> Option<_> {
            let Pair { old, new }: &Pair = pair;
            Some((old.names.get(name)?, new.names.get(name)?))
        };
        carriers::parts(&pairs[..seen].iter().filter_map(both).collect::<Vec<_>>())
    } else {
        Vec::new()
    };
    Row { name: name.clone(), values: (of(|pair| pair.0), of(|pair| pair.1)), judged, smallest, parts }
}
