//! How much of each slice's time the slices in it take, for slices whose rows come in the order in which they
//! ended. The rest of how slices are in each other follows from the order of their begins.
//!
//! Memory holds the slices that are in no other one yet, of which old ones are merged when there are many.

use super::{Span, Spans};
use crate::tables::store::spill::{Piece, Spill};
use std::collections::HashMap;
use std::io;
use trace_model::{OutOfOrder, Root, Roots};

/// Rows of a block of times; few in tests, so that small traces have many.
const BLOCK_ROWS: usize = if cfg!(test) { 16 } else { 1 << 14 };
/// How many slices that are in no other one are kept apart, of all threads.
const MAX_ROOTS: usize = if cfg!(test) { 64 } else { 1 << 20 };
/// How many become one when there are more.
const MERGED: usize = 64;

/// Takes slices in the order of their ends.
#[derive(Debug, Default)]
pub struct InnerTimes {
    threads: HashMap<u64, Roots<()>, foldhash::fast::RandomState>,
    roots: usize,
    /// With more, some are merged.
    max_roots: usize,
    beside: Vec<Root<()>>,
    unfinished: Vec<Span>,
    open: Vec<u64>,
    blocks: Vec<Option<Piece>>,
    spill: Spill,
}

impl InnerTimes {
    pub fn new(spill: Spill) -> Self {
        Self { max_roots: MAX_ROOTS, spill, ..Self::default() }
    }

    #[inline]
    fn add(&mut self, span: &Span) -> Result<u64, OutOfOrder> {
        let roots = self.threads.entry(span.thread).or_default();
        let count = roots.len();
        let added = roots.add(span.interval, (), &mut self.beside, |_| ())?;
        self.roots = self.roots + roots.len() - count;
        if self.roots > self.max_roots {
            self.merge();
        }
        Ok(added.inside)
    }

    /// Merges the older half of the slices of each thread.
    #[cold]
    fn merge(&mut self) {
        self.roots = 0;
        for roots in self.threads.values_mut() {
            roots.merge(MERGED);
            self.roots += roots.len();
        }
        // Threads with a slice each have none to merge: their next ones do not have all looked at again.
        self.max_roots = MAX_ROOTS.max(2 * self.roots);
    }

    /// Keeps the time inside of the slice of a row. The rows between have none.
    fn keep(&mut self, row: u64, inner: u64) -> io::Result<()> {
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
        unfinished.sort_by_key(|span| span.interval.ended);
        for span in &unfinished {
            self.add(span)?;
        }
        self.seal().map_err(|_| OutOfOrder)?;
        Ok(HeldTimes { blocks: self.blocks, spill: self.spill })
    }
}

impl Spans for InnerTimes {
    #[inline]
    fn push(&mut self, span: &Span) -> Result<(), OutOfOrder> {
        if span.interval.end == u64::MAX {
            self.unfinished.push(*span);
            return Ok(());
        }
        let inner = self.add(span)?;
        // Where there is no room, there is none for sorting either, which says so.
        self.keep(span.row, inner).map_err(|_| OutOfOrder)
    }
}

/// The times that slices have inside of others.
#[derive(Debug)]
pub struct HeldTimes {
    blocks: Vec<Option<Piece>>,
    spill: Spill,
}

/// The block that was read last, and its number.
pub type TimesCache = Option<(usize, Vec<u64>)>;

impl HeldTimes {
    /// The time inside of the slice of a row.
    #[inline]
    pub fn get(&self, row: u64, cache: &mut TimesCache) -> io::Result<u64> {
        let (number, place) = ((row / BLOCK_ROWS as u64) as usize, row as usize % BLOCK_ROWS);
        let Some(Some(piece)) = self.blocks.get(number) else { return Ok(0) };
        if cache.as_ref().is_none_or(|(of, _)| *of != number) {
            let bytes = self.spill.read_all(piece)?;
            let times = bytes.as_chunks::<8>().0.iter().map(|time| u64::from_le_bytes(*time)).collect();
            *cache = Some((number, times));
        }
        Ok(cache.as_ref().and_then(|(_, times)| times.get(place)).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Slice, nested, slices, spans};
    use super::*;
    use proptest::prelude::*;

    fn own_times(slices: &[Slice]) -> Result<Vec<Option<u64>>, OutOfOrder> {
        let mut times = InnerTimes::new(Spill::default());
        for span in spans(slices) {
            times.push(&Span { row: 3 * span.row, ..span })?;
        }
        let (times, mut cache) = (times.finish()?, None);
        let mut own = |(row, (_, ts, end, _)): (u64, &Slice)| {
            assert_eq!(times.get(3 * row + 1, &mut cache).unwrap(), 0);
            let inner = times.get(3 * row, &mut cache).unwrap();
            end.map(|end| (end - ts).saturating_sub(inner))
        };
        Ok((0..).zip(slices).map(&mut own).collect())
    }

    proptest! {
        /// Where slices are in order, and with one that is not: the same times as by sorting, or none.
        #[test]
        fn times_are_those_of_sorted_slices(slices in slices()) {
            if let Ok(own) = own_times(&slices) {
                let expected: Vec<_> = nested(&slices).into_iter().map(|(_, _, own)| own).collect();
                prop_assert_eq!(own, expected);
            }
        }
    }

    /// Each is in no other one, and the only one of its thread: looking at all again and again finds nothing.
    #[test]
    fn slices_that_cannot_be_merged_are_not_looked_at_for_each_other_one() {
        let mut times = InnerTimes::new(Spill::default());
        let slices: Vec<Slice> = (0..1000).map(|thread| (thread, 5, Some(7), 0)).collect();
        spans(&slices).for_each(|span| times.push(&span).unwrap());
        // They were looked at when there were 65, 131, 263 and 527.
        assert_eq!((times.roots, times.max_roots), (1000, 1054));
    }

    /// More slices that are in no other one than are kept apart, and one around all of them or some.
    #[test]
    fn many_slices_are_merged() {
        let mut slices: Vec<Slice> = (0..500).map(|at| (1, 10 * at + 5, Some(10 * at + 8), 0)).collect();
        slices.push((1, 4955, Some(5005), 0));
        slices.push((1, 0, Some(5005), 0));
        let own = own_times(&slices).unwrap();
        assert_eq!(own[..500], vec![Some(3); 500]);
        assert_eq!(own[500..], [Some(50 - 15), Some(5005 - 495 * 3 - 50)]);
        // It begins in the middle of merged ones.
        slices.push((1, 30, Some(5005), 0));
        assert_eq!(own_times(&slices), Err(OutOfOrder));
        slices[500] = (1, 30, Some(5005), 0);
        slices.truncate(501);
        assert_eq!(own_times(&slices), Err(OutOfOrder));
    }
}
