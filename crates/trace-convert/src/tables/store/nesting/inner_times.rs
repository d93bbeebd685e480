//! How much of the time of each slice is inside of slices that it has in it, for slices whose rows come in the
//! order in which they ended. Those who see the rows in the order of their begins need no more than this.
//!
//! Memory holds the slices that are in no other one yet, of which old ones are merged when there are many.

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
#[derive(Debug, Default)]
pub struct InnerTimes {
    threads: HashMap<u64, Thread, foldhash::fast::RandomState>,
    roots: usize,
    beside: Vec<Root>,
    unfinished: Vec<Span>,
    open: Vec<i64>,
    blocks: Vec<Option<Piece>>,
    spill: Spill,
}

#[derive(Debug, Default)]
struct Thread {
    roots: Vec<Root>,
    last_end: i64,
}

/// A slice that is in no other one yet, or some behind each other.
#[derive(Clone, Copy, Debug)]
struct Root {
    ts: i64,
    end: i64,
    /// The time of the slices.
    time: i64,
}

impl InnerTimes {
    pub fn new(spill: Spill) -> Self {
        Self { spill, ..Self::default() }
    }

    #[inline]
    fn add(&mut self, thread: u64, ts: i64, end: i64) -> Result<i64, OutOfOrder> {
        let Thread { roots, last_end } = self.threads.entry(thread).or_default();
        if end < *last_end {
            return Err(OutOfOrder);
        }
        *last_end = end;
        let count = roots.len();
        // Nothing is in a slice that begins where it ends.
        while let Some(root) = roots.pop_if(|root| root.ts >= end) {
            self.beside.push(root);
        }
        let mut inner = 0_i64;
        while let Some(root) = roots.pop_if(|root| root.ts >= ts) {
            inner = inner.saturating_add(root.time);
        }
        if roots.last().is_some_and(|before| before.end > ts) {
            return Err(OutOfOrder);
        }
        roots.push(Root { ts, end, time: end - ts });
        roots.extend(self.beside.drain(..).rev());
        self.roots = self.roots + roots.len() - count;
        if self.roots > MAX_ROOTS {
            self.merge();
        }
        Ok(inner)
    }

    /// Merges the older half of the slices of each thread.
    #[cold]
    fn merge(&mut self) {
        self.roots = 0;
        for Thread { roots, .. } in self.threads.values_mut() {
            let (old, new) = roots.split_at(roots.len() / 2);
            let merged = old.chunks(MERGED).filter_map(|some| {
                let time = some.iter().fold(0, |sum: i64, root| sum.saturating_add(root.time));
                Some(Root { ts: some.first()?.ts, end: some.last()?.end, time })
            });
            *roots = merged.chain(new.iter().copied()).collect();
            self.roots += roots.len();
        }
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
