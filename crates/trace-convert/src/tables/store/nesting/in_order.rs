//! The same without sorting, for slices whose rows come in the order in which they ended, as a program writes
//! those of a thread.
//!

use super::{Nested, Span, Spans};
use std::collections::HashMap;
use trace_model::{OutOfOrder, Root, Roots};

/// With more rows, slices are sorted: 16 bytes for each are in memory here.
const MAX_ROWS: usize = 4 << 20;
/// The depth of a row that is no slice of a thread.
const NO_SLICE: u32 = u32::MAX;
/// The own time of a slice that does not end.
const ENDLESS: u64 = u64::MAX;

/// Slices in the order of their ends, with their places.
#[derive(Debug, Default)]
pub struct InOrder {
    /// Slices by their rows.
    threads: HashMap<u64, Roots<u64>, foldhash::fast::RandomState>,
    /// By row: the row of the slice around it, from 1.
    parents: Vec<u32>,
    depths: Vec<u32>,
    owns: Vec<u64>,
    unfinished: Vec<Span>,
    beside: Vec<Root<u64>>,
}

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
        if span.interval.end == u64::MAX {
            self.unfinished.push(*span);
            return Ok(());
        }
        self.owns[rows - 1] = self.add(span)?;
        Ok(())
    }
}

impl InOrder {
    /// Adds a slice, and returns its own time.
    #[inline]
    fn add(&mut self, span: &Span) -> Result<u64, OutOfOrder> {
        let Self { threads, parents, beside, .. } = self;
        let Span { row, thread, interval } = *span;
        let added = threads.entry(thread).or_default().add(interval, row, beside, |inner| {
            parents[inner.of as usize] = row as u32 + 1;
        })?;
        Ok(interval.duration().saturating_sub(added.inside))
    }

    /// The places of all rows.
    pub fn finish(mut self) -> Result<Places, OutOfOrder> {
        // The innermost first, as those that end.
        let mut unfinished = std::mem::take(&mut self.unfinished);
        unfinished.sort_by_key(|span| span.interval.ended);
        for span in &unfinished {
            self.add(span)?;
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
    owns: Vec<u64>,
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
            of: row,
            parent: parent.checked_sub(1).map(u64::from),
            depth: u64::from(*depth),
            own: (*own != ENDLESS).then_some(*own),
        })
    }
}
