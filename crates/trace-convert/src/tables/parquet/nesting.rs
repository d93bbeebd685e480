//! How slices that come in the order of their begins are in each other.

use super::batch::Batch;
use crate::tables::intervals::interval;
use crate::tables::slices;
use std::io;
use trace_model::{Interval, Placing};

/// The parent and the depth of a slice, if it is one of a thread.
pub type Place = (Option<u64>, Option<u64>);

/// Takes slices of all threads, in parts.
pub struct Nesting(Placing<Found>);

/// The places of a part's rows.
#[derive(Default)]
struct Found(Vec<Place>);

impl Default for Nesting {
    fn default() -> Self {
        Self(Placing::new(Found::default()))
    }
}

impl trace_model::Place for Found {
    /// Which of the part's rows it is, and its number.
    type Item = (usize, u64);
    /// The number of the row, and the depth.
    type Kept = (u64, u64);
    type Track = ();

    #[inline]
    fn begin(
        &mut self,
        _: (u64, &mut ()),
        _: &Interval,
        (place, row): (usize, u64),
        parent: Option<(&Interval, &(u64, u64))>,
    ) -> io::Result<Option<(u64, u64)>> {
        let parent = parent.map(|(_, parent)| *parent);
        let depth = parent.map_or(0, |(_, depth)| depth + 1);
        self.0[place] = (parent.map(|(row, _)| row + 1), Some(depth));
        Ok(Some((row, depth)))
    }
}

impl Nesting {
    /// Finds the places of rows in the order of time, by their times, their numbers, and batches with the
    /// places there. Rows of one time come together.
    pub fn find<'b>(
        &mut self,
        rows: &[(i64, u64, u32, u32)],
        batches: impl Fn(u32) -> &'b Batch,
    ) -> io::Result<()> {
        let found = &mut self.0.place().0;
        found.clear();
        found.resize(rows.len(), (None, None));
        for (place, (_, row, batch, at)) in rows.iter().enumerate() {
            if let Some((thread, interval)) = slice(batches(*batch), *row, *at as usize) {
                self.0.push(thread, &interval, (place, *row))?;
            }
        }
        self.0.flush()
    }

    /// The places that were found last.
    pub fn found(&mut self) -> &[Place] {
        &self.0.place().0
    }
}

/// The thread of a slice, and when it was; none of an operation.
#[inline]
fn slice(batch: &Batch, row: u64, place: usize) -> Option<(u64, Interval)> {
    let number = |column: usize| batch.number(column, place);
    if number(slices::ASYNC_ID).is_some() {
        return None;
    }
    let ts = number(slices::TS).unwrap_or_default();
    let pair = batch.pairs.get(place).copied().unwrap_or_default();
    Some((number(slices::THREAD_ID)?, interval(row, ts, number(slices::DUR), pair)))
}
