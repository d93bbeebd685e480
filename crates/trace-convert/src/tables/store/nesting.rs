//! Which slice of a thread a slice is in, how deep, and how much of it is its own.
//!
//! Slices are sorted by their begins, of those that begin together the longest first; a stack for each thread
//! then has those that a slice is in. The results are sorted by row again. Both sorts keep a limited amount
//! in memory, and the rest in files. [`InOrder`] does without them where it can.

mod in_order;
#[cfg(feature = "parquet")]
mod inner_times;
mod roots;

pub use in_order::{InOrder, OutOfOrder, Places as HeldPlaces};
#[cfg(feature = "parquet")]
pub use inner_times::{HeldTimes, InnerTimes, TimesCache};

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use trace_reader::sorter::Sorter;

/// A slice of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of its row.
    pub row: u64,
    /// Its thread.
    pub thread: u64,
    /// When it begins, in nanoseconds.
    pub ts: i64,
    /// When it ends; none if it does not.
    pub end: Option<i64>,
}

/// A slice's place among those of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nested {
    /// Number of the slice's row.
    pub row: u64,
    /// The innermost slice around it, by its row.
    pub parent: Option<u64>,
    /// How many are around it.
    pub depth: u64,
    /// Its time without that of the slices in it, in nanoseconds; none if it does not end.
    pub own: Option<i64>,
}

/// Takes slices in the order in which they ended.
pub trait Spans {
    /// Adds a slice.
    fn push(&mut self, span: &Span) -> Result<(), OutOfOrder>;
}

/// Takes slices, and gives them back with their places.
#[derive(Default)]
pub struct Nesting {
    sorter: Sorter,
}

struct Open {
    span: Span,
    parent: Option<u64>,
    inner: i64,
}

/// Missing values, as they are sorted.
const NONE: u64 = u64::MAX;

fn bytes<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words<const N: usize>(bytes: &[u8]) -> io::Result<[u64; N]> {
    let words = bytes.as_chunks::<8>().0.first_chunk::<N>();
    words
        .map(|words| words.map(u64::from_le_bytes))
        .ok_or_else(|| io::Error::other("what was sorted has changed"))
}

/// Keeps the order of numbers with a sign.
fn ordered(ts: i64) -> u64 {
    ts as u64 ^ 1 << 63
}

fn some(value: u64) -> Option<u64> {
    (value != NONE).then_some(value)
}

impl Nesting {
    /// Adds a slice.
    pub fn push(&mut self, span: &Span) {
        let end = span.end.map_or(NONE, |end| end as u64);
        self.sorter.push(ordered(span.ts), &bytes([span.row, span.thread, span.ts as u64, end]));
    }

    /// Passes on all slices, in the order of their rows.
    pub fn finish(self, mut take: impl FnMut(Nested) -> io::Result<()>) -> io::Result<()> {
        let mut by_row = Sorter::default();
        let mut threads: HashMap<u64, Vec<Open>> = HashMap::new();
        let mut together: Vec<Span> = Vec::new();
        self.sorter.finish(|entry| {
            let [row, thread, ts, end] = words(entry)?;
            let span = Span { row, thread, ts: ts as i64, end: some(end).map(|end| end as i64) };
            if together.first().is_some_and(|first| first.ts != span.ts) {
                nest(&mut together, &mut threads, &mut by_row);
            }
            together.push(span);
            Ok::<(), io::Error>(())
        })?;
        nest(&mut together, &mut threads, &mut by_row);
        for stack in threads.values() {
            stack.iter().enumerate().for_each(|(depth, open)| close(open, depth, &mut by_row));
        }
        by_row.finish(|entry| {
            let [row, parent, depth, own] = words(entry)?;
            take(Nested { row, parent: some(parent), depth, own: some(own).map(|own| own as i64) })
        })
    }
}

fn end_of(span: &Span) -> i64 {
    span.end.unwrap_or(i64::MAX)
}

/// Takes the slices that begin at one time.
fn nest(together: &mut Vec<Span>, threads: &mut HashMap<u64, Vec<Open>>, by_row: &mut Sorter) {
    // Of two that are equal, the inner one ends first, and has the earlier row.
    together.sort_by_key(|span| (Reverse(end_of(span)), Reverse(span.row)));
    for span in together.drain(..) {
        let stack = threads.entry(span.thread).or_default();
        while let Some(open) = stack.pop_if(|open| end_of(&open.span) <= span.ts) {
            close(&open, stack.len(), by_row);
        }
        let parent = stack.last_mut().map(|open| {
            let inside = end_of(&span).min(end_of(&open.span)) - span.ts;
            open.inner = open.inner.saturating_add(inside);
            open.span.row
        });
        stack.push(Open { span, parent, inner: 0 });
    }
}

/// A slice has no more slices in it.
fn close(open: &Open, depth: usize, by_row: &mut Sorter) {
    let Open { span, parent, inner } = open;
    // Slices that overlap each other may be longer than what they are in.
    let own = span.end.map_or(NONE, |end| (end - span.ts).saturating_sub(*inner).max(0) as u64);
    by_row.push(span.row, &bytes([span.row, parent.unwrap_or(NONE), depth as u64, own]));
}

#[cfg(test)]
pub(in crate::tables) mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    pub fn nested(spans: &[(u64, i64, Option<i64>)]) -> Vec<(Option<u64>, u64, Option<i64>)> {
        let mut nesting = Nesting::default();
        for (row, (thread, ts, end)) in (0..).zip(spans) {
            nesting.push(&Span { row, thread: *thread, ts: *ts, end: *end });
        }
        let mut rows = Vec::new();
        nesting
            .finish(|nested| {
                assert_eq!(nested.row, rows.len() as u64);
                rows.push((nested.parent, nested.depth, nested.own));
                Ok(())
            })
            .unwrap();
        rows
    }

    #[test]
    fn slices_are_in_the_innermost_around_them() {
        // Inner ones end first, also where both are equal; one never ends; the other thread has its own.
        let spans = [
            (1, 20, Some(30)),
            (1, 40, Some(50)),
            (1, 40, Some(50)),
            (1, 10, Some(90)),
            (2, 15, Some(25)),
            (1, 90, Some(95)),
            (1, 5, None),
        ];
        let expected = [
            (Some(3), 2, Some(10)),
            (Some(2), 3, Some(10)),
            (Some(3), 2, Some(0)),
            (Some(6), 1, Some(60)),
            (None, 0, Some(10)),
            (Some(6), 1, Some(5)),
            (None, 0, None),
        ];
        assert_eq!(nested(&spans), expected);
    }

    proptest! {
        /// Where slices are in order, and with some that are not: the same places, or none.
        #[test]
        fn slices_in_order_have_the_places_of_sorted_ones(
            lengths in vec((1..3_u64, 0..4_i64, 0..12_i64), 0..60),
            (late, endless) in (0..80_usize, 0..80_usize),
        ) {
            let mut now = 0;
            let mut spans: Vec<(u64, i64, Option<i64>)> = Vec::new();
            for (number, (thread, pause, length)) in lengths.into_iter().enumerate() {
                now += pause;
                let end = if number == late { now - 5 } else { now };
                let begin = (end - length).max(0);
                spans.push((thread, begin, (number != endless && number % 23 != 22).then_some(end.max(begin))));
            }
            let mut in_order = InOrder::default();
            let mut pushed = Ok(());
            for (row, (thread, ts, end)) in (0..).zip(&spans) {
                pushed = pushed.and_then(|()| in_order.push(&Span { row, thread: *thread, ts: *ts, end: *end }));
            }
            if let Ok(places) = pushed.and_then(|()| in_order.finish()) {
                let place = |row: usize| places.get(row as u64).map(|at| (at.parent, at.depth, at.own)).unwrap();
                let places: Vec<_> = (0..places.rows()).map(place).collect();
                prop_assert_eq!(places, nested(&spans));
            }
        }
    }

    /// What programs write is in order, so that the test above has something to compare.
    #[test]
    fn slices_of_programs_are_in_order() {
        let spans = [
            (1, 20, Some(30)),
            (1, 30, Some(30)),
            (1, 40, Some(50)),
            (2, 1, Some(51)),
            (1, 40, Some(50)),
            (1, 10, Some(90)),
            (1, 90, Some(95)),
            (1, 7, None),
            (1, 5, None),
            (2, 60, None),
        ];
        let mut in_order = InOrder::default();
        for (row, (thread, ts, end)) in (0..).zip(spans) {
            in_order.push(&Span { row: 2 * row, thread, ts, end }).unwrap();
        }
        let mut expected = nested(&spans);
        expected.iter_mut().for_each(|place| place.0 = place.0.map(|row| 2 * row));
        let places = in_order.finish().unwrap();
        let places: Vec<_> = (0..places.rows()).map(|row| places.get(row as u64)).collect();
        assert!(places.iter().skip(1).step_by(2).all(Option::is_none));
        let places: Vec<_> = places.iter().flatten().map(|at| (at.parent, at.depth, at.own)).collect();
        assert_eq!(places, expected);
    }

    #[test]
    fn overlapping_slices_count_where_they_overlap() {
        let spans = [(1, 0, Some(10)), (1, 5, Some(20)), (1, 7, Some(9))];
        assert_eq!(nested(&spans), [(None, 0, Some(5)), (Some(0), 1, Some(13)), (Some(1), 2, Some(2))]);
    }
}
