//! The same without sorting, for slices whose rows come in the order in which they ended, as a program writes
//! those of a thread.
//!
//! A slice that ends is around those that ended before and began after its begin. A stack for each thread has
//! the slices that are in no other one yet, in the order of their times.

use super::roots::{Root, Roots};
use super::{Nested, Span, Spans};
use std::cmp::Reverse;
use std::collections::HashMap;

/// With more rows, slices are sorted: 16 bytes for each are in memory here.
const MAX_ROWS: usize = 4 << 20;
/// The depth of a row that is no slice of a thread.
const NO_SLICE: u32 = u32::MAX;
/// The own time of a slice that does not end.
const ENDLESS: i64 = i64::MIN;

/// Slices in the order of their ends, with their places.
#[derive(Debug, Default)]
pub struct InOrder {
    /// Slices by their rows.
    threads: HashMap<u64, Roots<u64>, foldhash::fast::RandomState>,
    /// By row: the row of the slice around it, from 1.
    parents: Vec<u32>,
    depths: Vec<u32>,
    owns: Vec<i64>,
    unfinished: Vec<Span>,
    beside: Vec<Root<u64>>,
}

/// The slices are not in order, or too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfOrder;

impl Spans for InOrder {
    #[inline]
    fn push(&mut self, span: &Span) -> Result<(), OutOfOrder> {
        let rows = usize::try_from(span.row).map_err(|_| OutOfOrder)? + 1;
        if rows > MAX_ROWS {
            return Err(OutOfOrder);
        }
        self.parents.resize(rows, 0);
        self.depths.resize(rows, NO_SLICE);
        self.owns.resize(rows, 0);
        self.depths[rows - 1] = 0;
        match span.end {
            Some(end) if end >= span.ts => {
                self.add(span.thread, Root { ts: span.ts, end, of: span.row }, end - span.ts)
            }
            Some(_) => Err(OutOfOrder),
            None => {
                self.unfinished.push(*span);
                Ok(())
            }
        }
    }
}

impl InOrder {
    #[inline]
    fn add(&mut self, thread: u64, new: Root<u64>, mut own: i64) -> Result<(), OutOfOrder> {
        let Self { threads, parents, owns, beside, .. } = self;
        threads.entry(thread).or_default().add(new, beside, |inner| {
            parents[inner.of as usize] = new.of as u32 + 1;
            own = own.saturating_sub(inner.end - inner.ts);
        })?;
        owns[new.of as usize] = own.max(0);
        Ok(())
    }

    /// The places of all rows.
    pub fn finish(mut self) -> Result<Places, OutOfOrder> {
        // The innermost first, as those that end.
        let mut unfinished = std::mem::take(&mut self.unfinished);
        unfinished.sort_by_key(|span| (Reverse(span.ts), span.row));
        for span in &unfinished {
            self.add(span.thread, Root { ts: span.ts, end: i64::MAX, of: span.row }, 0)?;
            self.owns[span.row as usize] = ENDLESS;
        }
        let Self { parents, mut depths, owns, .. } = self;
        let endless = unfinished.iter().rev().map(|span| span.row as usize);
        // What is around a slice comes before it here.
        for row in endless.chain((0..parents.len()).rev()) {
            if let Some(parent) = parents[row].checked_sub(1)
                && depths[row] != NO_SLICE
            {
                depths[row] = depths[parent as usize] + 1;
            }
        }
        Ok(Places { parents, depths, owns })
    }
}

/// Where the slices of threads are in each other.
#[derive(Debug)]
pub struct Places {
    parents: Vec<u32>,
    depths: Vec<u32>,
    owns: Vec<i64>,
}

impl Places {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.depths.len()
    }

    /// The place of a row; none if it is no slice of a thread.
    #[inline]
    pub fn get(&self, row: u64) -> Option<Nested> {
        let place = usize::try_from(row).ok()?;
        let depth = self.depths.get(place).filter(|depth| **depth != NO_SLICE)?;
        let (parent, own) = (self.parents.get(place)?, self.owns.get(place)?);
        Some(Nested {
            row,
            parent: parent.checked_sub(1).map(u64::from),
            depth: u64::from(*depth),
            own: (*own != ENDLESS).then_some(*own),
        })
    }
}
