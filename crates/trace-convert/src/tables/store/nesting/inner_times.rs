//! How much of each slice's time the slices in it take, for slices whose rows come in the order in which they
//! ended. The rest of how slices are in each other follows from the order of their begins.
//!
//! Memory holds the slices that are in no other one yet, of which old ones are merged when there are many.

use super::roots::{Root, Roots};
use super::{OutOfOrder, Span, Spans};
use crate::tables::store::spill::{Piece, Spill};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

/// Rows of a block of times; few in tests, so that small traces have many.
const BLOCK_ROWS: usize = if cfg!(test) { 16 } else { 1 << 14 };
/// How many slices that are in no other one are kept apart, of all threads.
const MAX_ROOTS: usize = if cfg!(test) { 64 } else { 1 << 20 };
/// How many become one when there are more.
const MERGED: usize = 64;

/// Takes slices in the order of their ends.
#[derive(Debug)]
pub struct InnerTimes {
    /// Slices, with the time of those that one stands for.
    threads: HashMap<u64, Roots<i64>, foldhash::fast::RandomState>,
    roots: usize,
    /// With more, some are merged.
    max_roots: usize,
    beside: Vec<Root<i64>>,
    unfinished: Vec<Span>,
    open: Vec<i64>,
    blocks: Vec<Option<Piece>>,
    spill: Spill,
}

impl InnerTimes {
    pub fn new(spill: Spill) -> Self {
        Self {
            threads: HashMap::default(),
            roots: 0,
            max_roots: MAX_ROOTS,
            beside: Vec::new(),
            unfinished: Vec::new(),
            open: Vec::new(),
            blocks: Vec::new(),
            spill,
        }
    }

    #[inline]
    fn add(&mut self, thread: u64, ts: i64, end: i64) -> Result<i64, OutOfOrder> {
        let roots = self.threads.entry(thread).or_default();
        let (count, mut time) = (roots.slices.len(), 0_i64);
        let new = Root { ts, end, of: end - ts };
        roots.add(new, &mut self.beside, |inner| time = time.saturating_add(inner.of))?;
        self.roots = self.roots + roots.slices.len() - count;
        if self.roots > self.max_roots {
            self.merge();
        }
        Ok(time)
    }

    /// Merges the older half of the slices of each thread.
    #[cold]
    fn merge(&mut self) {
        self.roots = 0;
        for Roots { slices, .. } in self.threads.values_mut() {
            let (old, new) = slices.split_at(slices.len() / 2);
            let merged = old.chunks(MERGED).filter_map(|some| {
                let time = some.iter().fold(0, |sum: i64, root| sum.saturating_add(root.of));
                Some(Root { ts: some.first()?.ts, end: some.last()?.end, of: time })
            });
            *slices = merged.chain(new.iter().copied()).collect();
            self.roots += slices.len();
        }
        // Threads with a slice each have none to merge: their next ones do not have all looked at again.
        self.max_roots = MAX_ROOTS.max(2 * self.roots);
    }

    /// Keeps the time inside of the slice of a row. The rows between have none.
    fn keep(&mut self, row: u64, inner: i64) -> io::Result<()> {
        loop {
            let first = (self.blocks.len() * BLOCK_ROWS) as u64;
            let place = row.saturating_sub(first) as usize;
            if place < BLOCK_ROWS {
                if inner != 0 {
                    self.open.resize(place, 0);
                    self.open.push(inner);
                }
                return Ok(());
            }
            self.seal()?;
        }
    }

    fn seal(&mut self) -> io::Result<()> {
        let bytes: Vec<u8> = self.open.iter().flat_map(|inner| inner.to_le_bytes()).collect();
        self.open.clear();
        let block = if bytes.is_empty() { None } else { Some(self.spill.keep(bytes)?) };
        self.blocks.push(block);
        Ok(())
    }

    /// The times of all rows.
    pub fn finish(mut self) -> Result<HeldTimes, OutOfOrder> {
        // The innermost first, as those that end.
        let mut unfinished = std::mem::take(&mut self.unfinished);
        unfinished.sort_by_key(|span| (Reverse(span.ts), span.row));
        for span in &unfinished {
            self.add(span.thread, span.ts, i64::MAX)?;
        }
        self.seal().map_err(|_| OutOfOrder)?;
        Ok(HeldTimes { blocks: self.blocks, spill: self.spill })
    }
}

impl Spans for InnerTimes {
    #[inline]
    fn push(&mut self, span: &Span) -> Result<(), OutOfOrder> {
        match span.end {
            Some(end) if end >= span.ts => {
                let inner = self.add(span.thread, span.ts, end)?;
                // Where there is no room, there is none for sorting either, which says so.
                self.keep(span.row, inner).map_err(|_| OutOfOrder)
            }
            Some(_) => Err(OutOfOrder),
            None => {
                self.unfinished.push(*span);
                Ok(())
            }
        }
    }
}

/// The times that slices have inside of others.
#[derive(Debug)]
pub struct HeldTimes {
    blocks: Vec<Option<Piece>>,
    spill: Spill,
}

/// The block that was read last, and its number.
pub type TimesCache = Option<(usize, Vec<i64>)>;

impl HeldTimes {
    /// The time inside of the slice of a row.
    #[inline]
    pub fn get(&self, row: u64, cache: &mut TimesCache) -> io::Result<i64> {
        let (number, place) = ((row / BLOCK_ROWS as u64) as usize, row as usize % BLOCK_ROWS);
        let Some(Some(piece)) = self.blocks.get(number) else { return Ok(0) };
        if cache.as_ref().is_none_or(|(of, _)| *of != number) {
            let bytes = self.spill.read_all(piece)?;
            let times = bytes.as_chunks::<8>().0.iter().map(|time| i64::from_le_bytes(*time)).collect();
            *cache = Some((number, times));
        }
        Ok(cache.as_ref().and_then(|(_, times)| times.get(place)).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::nested;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn own_times(spans: &[(u64, i64, Option<i64>)]) -> Result<Vec<Option<i64>>, OutOfOrder> {
        let mut times = InnerTimes::new(Spill::default());
        for (row, (thread, ts, end)) in (0..).zip(spans) {
            times.push(&Span { row: 3 * row, thread: *thread, ts: *ts, end: *end })?;
        }
        let (times, mut cache) = (times.finish()?, None);
        let mut own = |(row, (_, ts, end)): (u64, &(u64, i64, Option<i64>))| {
            assert_eq!(times.get(3 * row + 1, &mut cache).unwrap(), 0);
            let inner = times.get(3 * row, &mut cache).unwrap();
            end.map(|end| (end - ts - inner).max(0))
        };
        Ok((0..).zip(spans).map(&mut own).collect())
    }

    proptest! {
        /// Where slices are in order, and with one that is not: the same times as by sorting, or none.
        #[test]
        fn times_are_those_of_sorted_slices(
            lengths in vec((1..3_u64, 0..4_i64, 0..12_i64), 0..90),
            (late, endless) in (0..120_usize, 0..120_usize),
        ) {
            let mut now = 0;
            let mut spans = Vec::new();
            for (number, (thread, pause, length)) in lengths.into_iter().enumerate() {
                now += pause;
                let end = if number == late { now - 5 } else { now };
                let begin = (end - length).max(0);
                spans.push((thread, begin, (number != endless).then_some(end.max(begin))));
            }
            if let Ok(own) = own_times(&spans) {
                let expected: Vec<_> = nested(&spans).into_iter().map(|(_, _, own)| own).collect();
                prop_assert_eq!(own, expected);
            }
        }
    }

    /// Each is in no other one, and the only one of its thread: looking at all again and again finds nothing.
    #[test]
    fn slices_that_cannot_be_merged_are_not_looked_at_for_each_other_one() {
        let mut times = InnerTimes::new(Spill::default());
        for thread in 0..1000 {
            times.push(&Span { row: thread, thread, ts: 5, end: Some(7) }).unwrap();
        }
        // They were looked at when there were 65, 131, 263 and 527.
        assert_eq!((times.roots, times.max_roots), (1000, 1054));
    }

    /// More slices that are in no other one than are kept apart, and one around all of them or some.
    #[test]
    fn many_slices_are_merged() {
        let mut spans: Vec<(u64, i64, Option<i64>)> =
            (0..500).map(|at| (1, 10 * at, Some(10 * at + 3))).collect();
        spans.push((1, 4950, Some(5000)));
        spans.push((1, -5, Some(5000)));
        let own = own_times(&spans).unwrap();
        assert_eq!(own[..500], vec![Some(3); 500]);
        assert_eq!(own[500..], [Some(50 - 15), Some(5005 - 495 * 3 - 50)]);
        // It begins in the middle of merged ones.
        spans.push((1, 25, Some(5000)));
        assert_eq!(own_times(&spans), Err(OutOfOrder));
        spans[500] = (1, 25, Some(5000));
        spans.truncate(501);
        assert_eq!(own_times(&spans), Err(OutOfOrder));
    }
}
