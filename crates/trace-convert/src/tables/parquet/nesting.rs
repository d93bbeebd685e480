//! How slices that come in the order of their begins are in each other.

use super::batch::Batch;
use crate::tables::slices;
use std::cmp::Reverse;

/// The slices of each thread that have begun and not ended: their ends and rows.
#[derive(Default)]
pub struct Nesting {
    threads: Vec<Vec<(i64, u64)>>,
}

/// The parent and the depth of a slice, if it is one of a thread.
pub type Place = (Option<u64>, Option<u64>);

impl Nesting {
    /// Finds the places of rows in the order of time, by their times, their numbers, and batches with the
    /// places there. Rows of one time come together.
    pub fn places<'b>(
        &mut self,
        rows: &[(i64, u64, u32, u32)],
        batches: impl Fn(u32) -> &'b Batch,
        places: &mut Vec<Place>,
    ) {
        places.clear();
        let mut together: Vec<(Reverse<i64>, Reverse<u64>, usize)> = Vec::new();
        for rows in rows.chunk_by(|a, b| a.0 == b.0) {
            let end = |(ts, _, batch, place): &(i64, u64, u32, u32)| {
                let dur = batches(*batch).number(slices::DUR, *place as usize);
                dur.map_or(i64::MAX, |dur| ts.saturating_add(dur as i64))
            };
            let thread = |(_, _, batch, place): &(i64, u64, u32, u32)| {
                let number = |column: usize| batches(*batch).number(column, *place as usize);
                let is_operation = number(slices::ASYNC_ID).is_some();
                number(slices::THREAD_ID).filter(|_| !is_operation)
            };
            if let [row] = rows {
                places.push(self.place(thread(row), row.0, end(row), row.1));
                continue;
            }
            let first = places.len();
            places.resize(first + rows.len(), (None, None));
            // Of two that are equal, the inner one ends first, and has the earlier row.
            together.clear();
            together.extend((0..).zip(rows).map(|(place, row)| (Reverse(end(row)), Reverse(row.1), place)));
            together.sort_unstable();
            for (Reverse(end), Reverse(number), place) in &together {
                let row = &rows[*place];
                places[first + place] = self.place(thread(row), row.0, *end, *number);
            }
        }
    }

    #[inline]
    fn place(&mut self, thread: Option<u64>, ts: i64, end: i64, row: u64) -> Place {
        let Some(thread) = thread.and_then(|thread| usize::try_from(thread).ok()) else {
            return (None, None);
        };
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Vec::new);
        }
        let stack = &mut self.threads[thread];
        while stack.pop_if(|(end, _)| *end <= ts).is_some() {}
        let place = (stack.last().map(|(_, row)| row + 1), Some(stack.len() as u64));
        stack.push((end, row));
        place
    }
}
