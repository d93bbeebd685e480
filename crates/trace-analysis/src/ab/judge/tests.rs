//! Verdicts on numbers that are made up, and on recorded ones.

use super::*;
use crate::ab::order;
use std::path::Path;

/// Names of `tests/data/ab`.
const NAMES: usize = 50;
/// Pairs of a comparison.
const PAIRS: usize = 30;
/// Comparisons of each file.
const TRIALS: u64 = 500;

fn plan(seed: u64) -> Plan {
    Plan { pairs: PAIRS, min_effect: 0.01, seed, has_looks: true }
}

/// Consecutive runs, which are given to the commands in the order of a comparison. A name may take longer by
/// a factor with the new command.
fn compared(runs: &[Vec<f64>], seed: u64, slow: Option<(usize, f64)>) -> Vec<Pairs> {
    let order = order(seed, runs.len());
    let names = 0..runs[0].len();
    let pairs_of = |name| {
        let pair = |(runs, order): (&[Vec<f64>], &[bool])| {
            let (old, new) = if order[0] { (1, 0) } else { (0, 1) };
            let factor = slow.filter(|(slow, _)| *slow == name).map_or(1.0, |(_, factor)| factor);
            (runs[old][name], runs[new][name] * factor)
        };
        runs.chunks(2).zip(order.chunks(2)).map(pair).collect()
    };
    names.map(pairs_of).collect()
}

fn has_changed(judged: &Judged) -> bool {
    matches!(judged.verdict, Verdict::Slower | Verdict::Faster)
}

/// The runs of a file of `tests/data/ab`.
fn recorded(file: &str) -> Vec<Vec<f64>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ab").join(file);
    let bytes = std::fs::read(path).expect("the samples are there");
    let numbers: Vec<f64> =
        bytes.as_chunks::<4>().0.iter().map(|word| f64::from(u32::from_le_bytes(*word))).collect();
    numbers.chunks(NAMES).map(<[f64]>::to_vec).collect()
}

/// In how many comparisons something has changed that was not planted, and in how many that was found which
/// was; also how many pairs they took.
fn campaign(file: &str, factor: Option<f64>) -> (usize, usize, usize) {
    let runs = recorded(file);
    let (mut alarms, mut found, mut pairs) = (0, 0, 0);
    for trial in 0..TRIALS {
        let first = Random::new(trial, 77).below(runs.len() - 2 * PAIRS);
        let planted = factor.map(|factor| (trial as usize % NAMES, factor));
        let names = compared(&runs[first..first + 2 * PAIRS], trial, planted);
        let judgement = judge(&names, &plan(trial)).expect("there are names");
        pairs += judgement.look.pairs;
        let is_planted = |name| planted.is_some_and(|(slow, _)| slow == name);
        let judged = || judgement.names.iter().enumerate();
        alarms += usize::from(judged().any(|(name, judged)| !is_planted(name) && has_changed(judged)));
        let is_found =
            |(name, judged): (usize, &Judged)| is_planted(name) && judged.verdict == Verdict::Slower;
        found += usize::from(judged().any(is_found));
    }
    println!("{file}: {alarms} false alarms, {found} found, {pairs} pairs");
    (alarms, found, pairs)
}

//= docs/ab.md#false-alarms
#[test]
fn a_thousand_comparisons_of_equal_commands_raise_ten_alarms_at_most() {
    let [idle, busy] = ["idle.bin", "busy.bin"].map(|file| campaign(file, None));
    assert!(idle.0 + busy.0 <= 10, "{idle:?} {busy:?}");
    // Most end before the last run, because nothing has changed.
    assert!(idle.2 + busy.2 < 2 * TRIALS as usize * PAIRS * 9 / 10, "{idle:?} {busy:?}");
}

//= docs/ab.md#false-alarms
#[test]
fn three_percent_in_one_of_fifty_names_are_found() {
    for file in ["idle.bin", "busy.bin"] {
        let (alarms, found, _) = campaign(file, Some(1.03));
        assert!(found * 100 >= TRIALS as usize * 95, "{file}: {found} of {TRIALS}");
        assert!(alarms * 100 <= TRIALS as usize, "{file}: {alarms}");
    }
}

/// Noise as no test of averages stands it: it drifts, comes in bursts of several runs, has outliers without
/// end, and swings with a period of four runs.
fn wild(random: &mut Random, runs: usize, names: usize, swing: f64) -> Vec<Vec<f64>> {
    let mut unit = || (random.number() >> 11) as f64 / (1_u64 << 53) as f64;
    let (mut state, phase) = (0.0, (unit() * 4.0) as usize);
    (0..runs)
        .map(|run| {
            state = 0.8 * state + 0.02 * (unit() - 0.5) / (unit() + 0.01);
            let periodic = if (run + phase) / 2 % 2 == 0 { swing } else { 0.0 };
            let common = state + 0.002 * run as f64 + periodic;
            (0..names).map(|_| 1e5 * (common + 0.01 * (unit() - 0.5) / (unit() + 0.01)).exp()).collect()
        })
        .collect()
}

//= docs/ab.md#false-alarms
#[test]
fn no_noise_raises_more_alarms() {
    for swing in [0.0, 0.05] {
        let mut random = Random::new(11, 0);
        let alarms = (0..1000).filter(|trial| {
            let runs = wild(&mut random, 40, 8, swing);
            let names = compared(&runs, *trial, None);
            let plan = Plan { pairs: 20, ..plan(*trial) };
            judge(&names, &plan).expect("there are names").names.iter().any(has_changed)
        });
        let alarms = alarms.count();
        assert!(alarms <= 10, "swing {swing}: {alarms}");
    }
}

//= docs/ab.md#statistics
#[test]
fn probabilities_are_corrected_by_holm() {
    assert_eq!(corrected(&[0.125, 0.75, 0.0625, 0.25]), [0.375, 0.75, 0.25, 0.5]);
    assert_eq!(corrected(&[0.25, 0.25, 0.875]), [0.75, 0.75, 0.875]);
    assert_eq!(corrected(&[0.5, 0.5]), [1.0, 1.0]);
}

//= docs/ab.md#verdicts
#[test]
fn a_change_has_to_be_unlikely_and_larger_than_the_minimum() {
    let pairs = |change: f64, count: usize| -> Pairs {
        (0..count).map(|at| (1000.0, 1000.0 * (1.0 + change + 0.0001 * (at % 5) as f64))).collect()
    };
    let verdicts = |names: &[Pairs], min_effect: f64| -> Vec<Verdict> {
        let plan = Plan { min_effect, ..plan(1) };
        judge(names, &plan).unwrap().names.iter().map(|judged| judged.verdict).collect()
    };
    let all = [pairs(0.03, 30), pairs(-0.03, 30), pairs(0.005, 30), pairs(0.0099, 30)];
    use Verdict::{Faster, Same, Slower, Undecided};
    assert_eq!(verdicts(&all, 0.01), [Slower, Faster, Same, Undecided]);
    assert_eq!(verdicts(&all, 0.0), [Slower, Faster, Slower, Slower]);
    assert_eq!(verdicts(&all, 0.05), [Same; 4]);
    // So few pairs cannot be unlikely enough.
    let few = judge(&[pairs(0.5, 8)], &Plan { pairs: 8, ..plan(1) }).unwrap();
    assert_eq!((few.names[0].verdict, few.has_enough), (Undecided, false));
    let enough = judge(&[pairs(0.5, 10)], &Plan { pairs: 10, ..plan(1) }).unwrap();
    assert_eq!((enough.names[0].verdict, enough.has_enough), (Slower, true));
    assert_eq!(judge(&[], &plan(1)), None);
    assert_eq!(judge(&[pairs(0.5, 1)], &plan(1)), None);
}

//= docs/ab.md#looks
#[test]
fn a_comparison_ends_when_it_is_decided() {
    let pairs = |change: f64| -> Pairs {
        (0..PAIRS).map(|at| (1000.0, 1000.0 * (1.0 + change + 0.0001 * (at % 5) as f64))).collect()
    };
    let looked = |names: &[Pairs], plan: &Plan| judge(names, plan).unwrap().look.pairs;
    assert_eq!(looked(&[pairs(0.03), pairs(0.0)], &plan(1)), 14);
    assert_eq!(looked(&[pairs(0.0)], &plan(1)), 14);
    // What is faster does not keep the rest from being slower.
    assert_eq!(looked(&[pairs(-0.03), pairs(0.0)], &plan(1)), PAIRS);
    assert_eq!(looked(&[pairs(0.03)], &Plan { has_looks: false, ..plan(1) }), PAIRS);
    for (pairs_so_far, is_due) in [(12, false), (14, true), (16, false), (22, true), (30, true)] {
        let names = [pairs(0.03)[..pairs_so_far].to_vec()];
        let decided = judge_if_due(&names, &plan(1)).is_some_and(|judgement| judgement.is_decided);
        assert_eq!(decided, is_due, "{pairs_so_far}");
    }
}
