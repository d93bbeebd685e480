use super::*;
use crate::testing::{by_definition, slices};
use crate::{Added, OutOfOrder, Roots};
use proptest::prelude::*;

fn nested(slices: &[Interval]) -> Vec<Nested> {
    let mut nesting = Nesting::default();
    for (of, slice) in (0..).zip(slices) {
        nesting.push(7, slice, of);
        // Another track has its own.
        nesting.push(8, &Interval { begin: 0, end: 5000, begun: 1, ended: 1 }, 5000 + of);
    }
    let mut all = Vec::new();
    nesting
        .finish(|nested| {
            if nested.of < 5000 {
                all.push(nested);
            }
            Ok(())
        })
        .unwrap();
    all.sort_by_key(|nested| nested.of);
    all
}

/// The same by roots, and whether a slice was odd.
fn by_roots(slices: &[Interval]) -> Result<(Vec<Nested>, bool), OutOfOrder> {
    let (mut roots, mut beside, mut is_odd) = (Roots::default(), Vec::new(), false);
    let mut all: Vec<Nested> = Vec::new();
    for (of, slice) in (0..).zip(slices) {
        let mut inner = Vec::new();
        let added = roots.add(*slice, of, &mut beside, |root| inner.push(root.of))?;
        assert!(beside.is_empty());
        is_odd |= added.is_odd;
        inner.iter().for_each(|inner| all[*inner as usize].parent = Some(of));
        let own = (slice.end != u64::MAX).then(|| slice.duration() - added.inside);
        all.push(Nested { of, parent: None, depth: 0, own });
    }
    for of in (0..all.len()).rev() {
        if let Some(parent) = all[of].parent {
            all[of].depth = all[parent as usize].depth + 1;
        }
    }
    Ok((all, is_odd))
}

const fn complete(begin: u64, end: u64, record: u64) -> Interval {
    Interval { begin, end, begun: record, ended: record }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn slices_are_where_they_are_by_definition(slices in slices()) {
        prop_assert_eq!(nested(&slices), by_definition(&slices));
    }

    #[test]
    fn roots_say_the_same_where_slices_end_in_order(slices in slices()) {
        if let Ok((all, _)) = by_roots(&slices) {
            prop_assert_eq!(all, by_definition(&slices));
        }
    }

    /// So that the test above has something to compare.
    #[test]
    fn what_ends_in_order_needs_no_sorting(mut slices in slices()) {
        slices.sort_by_key(|slice| (slice.end, std::cmp::Reverse((slice.begin, slice.begun))));
        for (record, slice) in (1..).zip(&mut slices) {
            (slice.begun, slice.ended) = (2 * record, 2 * record);
        }
        slices.dedup_by_key(|slice| (slice.begin, slice.end));
        let is_instant = |slice: &Interval| slice.begin == slice.end;
        slices.retain(|slice| !is_instant(slice));
        let (all, _) = by_roots(&slices).unwrap();
        prop_assert_eq!(all, by_definition(&slices));
    }
}

//= docs/meaning.md#what-is-inside-what
#[test]
fn what_overlaps_keeps_its_own_time() {
    let slices = [complete(0, 20, 1), complete(10, 40, 2)];
    let (all, is_odd) = by_roots(&slices).unwrap();
    assert_eq!(
        all.iter().map(|nested| (nested.parent, nested.own)).collect::<Vec<_>>(),
        [(None, Some(20)), (None, Some(30)),]
    );
    assert!(is_odd);
    assert_eq!(nested(&slices), all);
    // A third one is around both: time in which they overlap counts once.
    let slices = [slices[0], slices[1], complete(0, 50, 3)];
    let (all, _) = by_roots(&slices).unwrap();
    assert_eq!(all[2], Nested { of: 2, parent: None, depth: 0, own: Some(10) });
    assert_eq!((all[0].parent, all[1].parent), (Some(2), Some(2)));
    assert_eq!(nested(&slices), all);
}

/// Many overlap, so that the stack of open slices becomes a tree.
#[test]
fn many_that_overlap_are_where_they_are_by_definition() {
    let mut slices: Vec<Interval> = (0..60).map(|at| complete(at, 100 + at * 7 % 60, at)).collect();
    slices.extend((60..90).map(|at| complete(at, 300 - at, at)));
    slices.extend((90..200).map(|at| complete(at, at + at % 5, at)));
    assert_eq!(nested(&slices), by_definition(&slices));
}

#[test]
fn a_shorter_one_before_its_equal_is_odd() {
    let of = |slices: &[Interval]| by_roots(slices).map(|(_, is_odd)| is_odd);
    assert_eq!(of(&[complete(0, 50, 1), complete(0, 200, 2)]), Ok(true));
    assert_eq!(of(&[complete(1, 50, 1), complete(0, 200, 2)]), Ok(false));
    // Nothing of length 0 is in what begins behind it.
    assert_eq!(of(&[complete(5, 5, 1), complete(5, 9, 2)]), Ok(false));
    let pair = |begin, end, begun, ended| Interval { begin, end, begun, ended };
    assert_eq!(of(&[pair(0, 50, 2, 3), pair(0, 200, 1, 4)]), Ok(false));
    assert_eq!(of(&[complete(0, 50, 2), pair(0, 200, 1, 4)]), Ok(false));
    assert_eq!(of(&[pair(0, 50, 1, 2), complete(0, 200, 3)]), Ok(true));
}

#[test]
fn what_comes_too_late_is_out_of_order() {
    let of = |slices: &[Interval]| by_roots(slices).map(|_| ());
    assert_eq!(of(&[complete(0, 50, 1), complete(10, 40, 2)]), Err(OutOfOrder));
    assert_eq!(of(&[complete(0, 50, 1), complete(10, 50, 2)]), Err(OutOfOrder));
    // The earlier of two equal ones is around the other.
    assert_eq!(of(&[complete(0, 50, 1), complete(0, 50, 2)]), Err(OutOfOrder));
    assert_eq!(of(&[complete(0, 50, 1), complete(50, 60, 2)]), Ok(()));
}

#[test]
fn without_sorting_only_what_came_before_is_inside() {
    let (mut roots, mut beside) = (Roots::default(), Vec::new());
    let mut add = |begin, end, record| {
        let added = roots.add_anyway(complete(begin, end, record), (), &mut beside);
        (added.inside, added.is_odd, roots.len())
    };
    assert_eq!(add(0, 50, 1), (0, false, 1));
    assert_eq!(add(10, 40, 2), (0, true, 1));
    assert_eq!(add(10, 50, 3), (0, true, 2));
    // It begins together with the first, which was recorded before it.
    assert_eq!(add(0, 60, 4), (50, true, 1));
    let mut roots = Roots::default();
    (0..4).for_each(|at| {
        roots.add_anyway(complete(10 * at, 10 * at + 3, at), (), &mut beside);
    });
    roots.merge(2);
    // It begins in the middle of two that are merged, which have no time left before it.
    assert_eq!(roots.add_anyway(complete(5, 50, 9), (), &mut beside), Added { inside: 6, is_odd: true });
    assert_eq!(roots.add_anyway(complete(0, 60, 10), (), &mut beside).inside, 45);
}

/// More roots than are kept apart, and one around all of them or some.
#[test]
fn merged_roots_have_the_sum_of_their_times() {
    let (mut roots, mut beside) = (Roots::default(), Vec::new());
    for at in 0..100 {
        roots.add(complete(10 * at, 10 * at + 3, at), (), &mut beside, |_| ()).unwrap();
    }
    assert!(!roots.is_empty() && Roots::<()>::default().is_empty());
    roots.merge(8);
    assert_eq!(roots.len(), 50 + 50_usize.div_ceil(8));
    roots.merge(8);
    let mut some = Roots::default();
    (0..4).for_each(|at| _ = some.add(complete(10 * at, 10 * at + 3, at), (), &mut beside, |_| ()).unwrap());
    some.merge(2);
    assert_eq!(some.len(), 3);
    // It begins in the middle of merged ones.
    assert_eq!(some.add(complete(5, 50, 9), (), &mut beside, |_| ()), Err(OutOfOrder));
    let added = roots.add(complete(0, 1000, 200), (), &mut beside, |_| ()).unwrap();
    assert_eq!((added.inside, roots.len()), (300, 1));
}

/// Time in which some overlap counts once, also of merged ones.
#[test]
fn merged_roots_that_overlap_have_the_time_of_all() {
    let slice = |at: u64| {
        let begin = 10 * at + if at % 4 == 3 { 5 } else { 0 };
        complete(begin, begin + if at % 4 == 1 { 8 } else { 12 }, at)
    };
    let is_inside = |time: &u64| (0..40).map(slice).any(|of| (of.begin..of.end).contains(time));
    let expected = (0..1000).filter(is_inside).count() as u64;
    for each in [1, 2, 3, 8, 64] {
        let (mut roots, mut beside) = (Roots::default(), Vec::new());
        (0..40).for_each(|at| _ = roots.add(slice(at), (), &mut beside, |_| ()).unwrap());
        roots.merge(each);
        roots.merge(each);
        let added = roots.add(complete(0, 1000, 200), (), &mut beside, |_| ()).unwrap();
        assert_eq!(added.inside, expected, "{each}");
    }
}

/// Nothing of that counts as open any more.
#[test]
fn slices_of_a_track_may_be_many() {
    let (mut nesting, mut deepest) = (Nesting::default(), 0);
    for at in 0..5000 {
        nesting.push(7, &complete(10 * at, 10 * at + 9, 2 * at), 2 * at);
        nesting.push(7, &complete(10 * at + 1, 10 * at + 2, 2 * at + 1), 2 * at + 1);
    }
    let mut found = 0;
    nesting
        .finish(|Nested { of, parent, depth, own }| {
            found += 1;
            deepest = deepest.max(depth);
            assert_eq!((parent, own), (if of % 2 == 1 { (Some(of - 1), Some(1)) } else { (None, Some(8)) }));
            Ok(())
        })
        .unwrap();
    assert_eq!((found, deepest), (10_000, 1));
}

/// Pairs of one time are inside each other as their records are, also where some were merged.
#[test]
fn a_pair_is_not_around_merged_ones_that_began_before() {
    let pair = |begun, ended| Interval { begin: 5, end: 5, begun, ended };
    for (begun, expected) in [(0, 1), (3, 2)] {
        let (mut roots, mut beside) = (Roots::default(), Vec::new());
        for of in [pair(1, 2), pair(4, 5), pair(6, 7), pair(8, 9)] {
            roots.add(of, (), &mut beside, |_| ()).unwrap();
        }
        roots.merge(2);
        roots.add(pair(begun, 10), (), &mut beside, |_| ()).unwrap();
        assert_eq!(roots.len(), expected, "{begun}");
    }
}

/// With too many open slices, some have nothing in them; each comes once all the same.
#[test]
fn open_slices_have_a_limit() {
    let deep: Vec<Interval> = (0..2500).map(|at| complete(at, 10_000 - at, at)).collect();
    let later = complete(20_000, 20_010, 5000);
    let slices: Vec<Interval> = deep.into_iter().chain([later, complete(20_001, 20_003, 5001)]).collect();
    let (mut nesting, mut all) = (Nesting::default(), Vec::new());
    (0..).zip(&slices).for_each(|(of, slice)| nesting.push(7, slice, of));
    let mut take = |nested| -> io::Result<()> {
        all.push(nested);
        Ok(())
    };
    nesting.finish(&mut take).unwrap();
    all.sort_by_key(|nested: &Nested| nested.of);
    let of = |at: usize| (all[at].parent, all[at].own);
    assert_eq!(all.len(), slices.len());
    assert_eq!((of(0), of(1998)), ((None, Some(2)), (Some(1997), Some(2))));
    assert_eq!((of(2100).1, of(2499).1), (Some(10_000 - 4200), Some(10_000 - 4998)));
    assert_eq!((of(2500), of(2501)), ((None, Some(8)), (Some(2500), Some(2))));
}

#[test]
fn many_slices_may_begin_together() {
    let slices: Vec<Interval> = (0..3000).map(|at| complete(5, 5, at)).collect();
    assert!(nested(&slices).iter().all(|nested| nested.own == Some(0)));
    assert_eq!(nested(&slices).len(), 3000);
}
