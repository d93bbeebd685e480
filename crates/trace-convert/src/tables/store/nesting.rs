//! Which slice of a thread a slice is in, how deep, and how much of it is its own.
//!
//! The rules are those of the crate `trace-model`. Its results are sorted by row here; [`InOrder`] and
//! `InnerTimes` do without sorting where they can. Both sorts keep a limited amount in memory, and the rest
//! in files.
//= docs/meaning.md#what-is-inside-what

mod in_order;
#[cfg(feature = "parquet")]
mod inner_times;

pub use in_order::{InOrder, Places as HeldPlaces};
#[cfg(feature = "parquet")]
pub use inner_times::{HeldTimes, InnerTimes, TimesCache};
pub use trace_model::Nested;

use std::io;
use trace_model::{Interval, OutOfOrder};
use trace_reader::sorter::{Sorter, words};

/// A slice of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of its row.
    pub row: u64,
    /// Its thread.
    pub thread: u64,
    pub interval: Interval,
}

/// Takes slices in the order in which they ended.
pub trait Spans {
    /// Adds a slice.
    fn push(&mut self, span: &Span) -> Result<(), OutOfOrder>;
}

/// Takes slices in any order, and gives them back with their places.
#[derive(Default)]
pub struct Nesting(trace_model::Nesting);

/// Missing values, as they are sorted.
const NONE: u64 = u64::MAX;

fn some(value: u64) -> Option<u64> {
    (value != NONE).then_some(value)
}

impl Nesting {
    /// Adds a slice.
    pub fn push(&mut self, span: &Span) {
        self.0.push(span.thread, &span.interval, span.row);
    }

    /// Passes on all slices, in the order of their rows.
    pub fn finish(self, mut take: impl FnMut(&Nested) -> io::Result<()>) -> io::Result<()> {
        let mut by_row = Sorter::default();
        self.0.finish(|Nested { of, parent, depth, own }| {
            let words = [of, parent.unwrap_or(NONE), depth, own.unwrap_or(NONE)];
            by_row.push(of, words.map(u64::to_le_bytes).as_flattened());
            Ok(())
        })?;
        by_row.finish(|entry| {
            let ([of, parent, depth, own], _) = words(entry)?;
            take(&Nested { of, parent: some(parent), depth, own: some(own) })
        })
    }
}

#[cfg(test)]
pub(in crate::tables) mod tests {
    use super::*;
    use crate::tables::intervals::interval;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A slice's thread, begin, end, and how many rows came between its records, from 1.
    pub type Slice = (u64, u64, Option<u64>, u64);

    pub fn spans(slices: &[Slice]) -> impl Iterator<Item = Span> {
        (0..).zip(slices).map(|(row, (thread, ts, end, pair))| {
            let dur = end.map(|end| end - ts);
            Span { row, thread: *thread, interval: interval(row, *ts, dur, *pair) }
        })
    }

    pub fn nested(slices: &[Slice]) -> Vec<(Option<u64>, u64, Option<u64>)> {
        let mut nesting = Nesting::default();
        spans(slices).for_each(|span| nesting.push(&span));
        let mut rows = Vec::new();
        nesting
            .finish(|nested| {
                assert_eq!(nested.of, rows.len() as u64);
                rows.push((nested.parent, nested.depth, nested.own));
                Ok(())
            })
            .unwrap();
        rows
    }

    /// What a thread records: a complete slice that came so late, or a part of a pair.
    #[derive(Clone, Copy, Debug)]
    enum Record {
        Complete { length: u64, late: u64 },
        Begin,
        End,
    }

    /// Slices of two threads in the order of the records that end them, and those that do not end.
    pub fn slices() -> impl Strategy<Value = Vec<Slice>> {
        let record = prop_oneof![
            60 => (0..7_u64).prop_map(|length| Record::Complete { length, late: 0 }),
            1 => (0..7_u64, 0..3_u64).prop_map(|(length, late)| Record::Complete { length, late }),
            30 => Just(Record::Begin),
            30 => Just(Record::End),
        ];
        vec((record, 0..3_u64, 0..2_u64), 0..40).prop_map(|records| {
            let (mut now, mut slices, mut open) = (10, Vec::new(), [Vec::new(), Vec::new()]);
            for (record, pause, thread) in records {
                now += pause;
                let (rows, open) = (slices.len() as u64, &mut open[thread as usize]);
                match record {
                    Record::Complete { length, late } => {
                        let begin = now - length - late;
                        slices.push((thread, begin, Some(begin + length), 0));
                    }
                    Record::Begin => open.push((thread, now, rows)),
                    Record::End => slices.extend(
                        open.pop()
                            .map(|(thread, begin, before)| (thread, begin, Some(now), rows - before + 1)),
                    ),
                }
            }
            let mut open = open.concat();
            open.sort_by_key(|(_, begin, _)| *begin);
            for (thread, begin, before) in open {
                slices.push((thread, begin, None, slices.len() as u64 - before + 1));
            }
            slices
        })
    }

    fn in_order(slices: &[Slice]) -> Result<HeldPlaces, OutOfOrder> {
        let mut in_order = InOrder::default();
        spans(slices).try_for_each(|span| in_order.push(&span))?;
        in_order.finish()
    }

    fn places(places: &HeldPlaces) -> Vec<(Option<u64>, u64, Option<u64>)> {
        let place = |row: usize| places.get(row as u64).map(|at| (at.parent, at.depth, at.own)).unwrap();
        (0..places.rows()).map(place).collect()
    }

    //= docs/meaning.md#what-is-inside-what
    #[test]
    fn slices_are_in_the_innermost_around_them() {
        // Of two that are equal, the first record is around the other; one never ends; the other thread
        // has its own.
        let slices = [
            (1, 20, Some(30), 0),
            (1, 40, Some(50), 0),
            (1, 40, Some(50), 0),
            (1, 10, Some(90), 0),
            (2, 15, Some(25), 0),
            (1, 90, Some(95), 0),
            (1, 5, None, 7),
        ];
        let expected = [
            (Some(3), 2, Some(10)),
            (Some(3), 2, Some(0)),
            (Some(1), 3, Some(10)),
            (Some(6), 1, Some(60)),
            (None, 0, Some(10)),
            (Some(6), 1, Some(5)),
            (None, 0, None),
        ];
        assert_eq!(nested(&slices), expected);
    }

    proptest! {
        /// Where slices are in order, and with some that are not: the same places, or none.
        #[test]
        fn slices_in_order_have_the_places_of_sorted_ones(slices in slices()) {
            if let Ok(found) = in_order(&slices) {
                prop_assert_eq!(places(&found), nested(&slices));
            }
        }
    }

    /// What programs write is in order, so that the test above has something to compare.
    #[test]
    fn slices_of_programs_are_in_order() {
        let slices = [
            (1, 20, Some(30), 0),
            (1, 30, Some(30), 0),
            (1, 40, Some(50), 1),
            (2, 1, Some(51), 0),
            (1, 40, Some(50), 4),
            (1, 10, Some(90), 5),
            (1, 90, Some(95), 0),
            (1, 5, None, 8),
            (1, 7, None, 9),
            (2, 60, None, 1),
        ];
        assert_eq!(places(&in_order(&slices).unwrap()), nested(&slices));
        let mut in_order = InOrder::default();
        spans(&slices).for_each(|span| in_order.push(&Span { row: 2 * span.row, ..span }).unwrap());
        let apart = in_order.finish().unwrap();
        let found: Vec<_> = (0..apart.rows()).map(|row| apart.get(row as u64)).collect();
        assert!(found.iter().skip(1).step_by(2).all(Option::is_none));
        let expected = nested(&slices);
        let found = found.iter().flatten().map(|at| (at.parent.map(|row| row / 2), at.depth, at.own));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    //= docs/meaning.md#overlap
    #[test]
    fn slices_that_overlap_keep_their_own_times() {
        let slices = [(1, 0, Some(10), 0), (1, 5, Some(20), 0)];
        let expected = [(None, 0, Some(10)), (None, 0, Some(15))];
        assert_eq!(
            (nested(&slices), places(&in_order(&slices).unwrap())),
            (expected.to_vec(), expected.to_vec())
        );
        let slices = [slices[0], slices[1], (1, 7, Some(9), 0), (1, 0, Some(30), 0)];
        let expected =
            [(Some(3), 1, Some(8)), (Some(3), 1, Some(15)), (Some(0), 2, Some(2)), (None, 0, Some(10))];
        assert_eq!(nested(&slices), expected);
        assert_eq!(in_order(&slices).unwrap_err(), OutOfOrder);
    }
}
