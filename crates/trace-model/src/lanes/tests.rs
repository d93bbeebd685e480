use super::*;
use crate::testing::{by_definition, slices};
use proptest::prelude::*;

/// What a reader that knows only stacks sees: of each slice its lane, its end, and the one it is directly in.
fn seen(slices: &[Interval]) -> Vec<(usize, u64, Option<u64>)> {
    let mut lanes = Lanes::default();
    for (of, slice) in (0..).zip(slices) {
        lanes.push(3, slice, &bytes([of]));
    }
    let mut stacks: Vec<Vec<(u64, u64)>> = Vec::new();
    let mut seen = vec![(usize::MAX, u64::MAX, None); slices.len()];
    let mut times: Vec<u64> = Vec::new();
    let misplaced = lanes
        .finish(|step| {
            assert_eq!(step.track, 3);
            if stacks.len() <= step.lane {
                stacks.resize_with(step.lane + 1, Vec::new);
                times.resize(step.lane + 1, 0);
            }
            assert!(times[step.lane] <= step.at);
            times[step.lane] = step.at;
            let stack = &mut stacks[step.lane];
            match step.begins {
                Some((interval, payload)) => {
                    let ([of], _) = words(payload)?;
                    assert_eq!((interval, interval.begin), (slices[of as usize], step.at));
                    seen[of as usize] = (step.lane, u64::MAX, stack.last().map(|(of, _)| *of));
                    stack.push((of, step.at));
                }
                None => {
                    let (of, _) = stack.pop().unwrap();
                    seen[of as usize].1 = step.at;
                }
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(misplaced, 0);
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Each slice has its length, and is directly in its parent or, if something overlaps, in none.
    #[test]
    fn stacks_show_slices_as_they_are(slices in slices()) {
        let expected = by_definition(&slices);
        for (of, (lane, end, parent)) in seen(&slices).into_iter().enumerate() {
            prop_assert!(lane < slices.len());
            prop_assert_eq!(end, slices[of].end);
            if parent.is_some() || lane == 0 && slices.iter().all(|other| !overlap(other, &slices[of])) {
                prop_assert_eq!(parent, expected[of].parent, "{}", of);
            }
        }
    }

    /// A track on which nothing overlaps has one lane.
    #[test]
    fn what_nests_stays_on_its_track(slices in slices()) {
        if slices.iter().all(|a| slices.iter().all(|b| !overlap(a, b))) {
            for ((lane, _, parent), expected) in seen(&slices).into_iter().zip(by_definition(&slices)) {
                prop_assert_eq!((lane, parent), (0, expected.parent));
            }
        }
    }
}

fn overlap(a: &Interval, b: &Interval) -> bool {
    a != b && a.begin < b.end && b.begin < a.end && !a.encloses(b) && !b.encloses(a)
}

const fn complete(begin: u64, end: u64, record: u64) -> Interval {
    Interval { begin, end, begun: record, ended: record }
}

#[test]
fn what_overlaps_has_lanes_of_its_own() {
    // The second overlaps the first, the third is in both and ends first in the second.
    let slices = [complete(0, 20, 1), complete(10, 40, 2), complete(12, 18, 3), complete(50, 60, 4)];
    assert_eq!(seen(&slices), [(0, 20, None), (1, 40, None), (0, 18, Some(0)), (0, 60, None)]);
}

/// The steps of slices of many tracks, as begins and ends, and how many slices were left out.
fn counted(slices: impl Iterator<Item = (u64, Interval)>) -> (u64, u64, u64) {
    let mut lanes = Lanes::default();
    slices.for_each(|(track, slice)| lanes.push(track, &slice, &[0; 100]));
    let (mut begins, mut ends) = (0, 0);
    let left_out = lanes.finish(|step| {
        *if step.begins.is_some() { &mut begins } else { &mut ends } += 1;
        Ok(())
    });
    (begins, ends, left_out.unwrap())
}

/// Beyond the limit slices are left out, until others have ended.
#[test]
fn open_slices_have_a_limit() {
    let deep = (0..2500).map(|at| (7, complete(at, 10_000 - at, at)));
    let later = (0..2500).map(|at| (7, complete(20_000 + 2 * at, 20_001 + 2 * at, 5000 + at)));
    assert_eq!(counted(deep.chain(later)), (4500, 4500, 500));
}

/// What has ended on other tracks makes room.
#[test]
fn slices_of_many_tracks_are_not_left_out() {
    assert_eq!(counted((0..10_000).map(|at| (at, complete(10 * at, 10 * at + 5, at)))), (10_000, 10_000, 0));
}

/// More than is put into an order at a time: all are there.
#[test]
fn many_slices_may_begin_together() {
    let slices = (0..20_000).map(|at| (at % 50, complete(5, 6 + at / 50, at)));
    assert_eq!(counted(slices), (MAX_PLACED as u64, MAX_PLACED as u64, 20_000 - MAX_PLACED as u64));
    assert_eq!(counted((0..20_000).map(|at| (1, complete(5, 5, at)))), (20_000, 20_000, 0));
}

#[test]
fn lanes_have_a_limit() {
    let mut lanes = Lanes::default();
    let count = MAX_LANES as u64 + 5;
    (0..count).for_each(|at| lanes.push(1, &complete(at, 10_000 + at, at), &[]));
    let mut most = 0;
    let misplaced = lanes.finish(|step| {
        most = most.max(step.lane);
        Ok(())
    });
    assert_eq!((misplaced.unwrap(), most), (5, MAX_LANES - 1));
}

use crate::nesting::bytes;
use crate::placing::MAX_PLACED;
