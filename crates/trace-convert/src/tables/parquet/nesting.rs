//! How slices that come in the order of their begins are in each other.

use super::batch::Batch;
use crate::tables::intervals::interval;
use crate::tables::slices;
use trace_model::{Begins, Begun, Interval};

/// The open slices of each thread, by their rows.
#[derive(Default)]
pub struct Nesting {
    threads: Vec<Begins<u64>>,
    together: Vec<(usize, usize, Interval, u64)>,
    of_thread: Vec<(Interval, u64)>,
}

/// The parent and the depth of a slice, if it is one of a thread.
pub type Place = (Option<u64>, Option<u64>);

fn place_of(Begun { parent, depth }: Begun<u64>) -> Place {
    (parent.map(|row| row + 1), Some(depth))
}

/// The thread of a slice, and when it was; none of an operation.
#[inline]
fn slice(batch: &Batch, row: u64, place: usize) -> Option<(usize, Interval)> {
    let number = |column: usize| batch.number(column, place);
    if number(slices::ASYNC_ID).is_some() {
        return None;
    }
    let thread = usize::try_from(number(slices::THREAD_ID)?).ok()?;
    let ts = number(slices::TS).unwrap_or_default();
    let pair = batch.pairs.get(place).copied().unwrap_or_default();
    Some((thread, interval(row, ts, number(slices::DUR), pair)))
}

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
        let of_row = |(_, row, batch, place): &(i64, u64, u32, u32)| {
            slice(batches(*batch), *row, *place as usize).map(|(thread, interval)| (thread, interval, *row))
        };
        for rows in rows.chunk_by(|a, b| a.0 == b.0) {
            if let [row] = rows {
                places.push(of_row(row).map_or((None, None), |(thread, interval, row)| {
                    place_of(self.thread(thread).add(&interval, row))
                }));
                continue;
            }
            let first = places.len();
            places.resize(first + rows.len(), (None, None));
            let mut together = std::mem::take(&mut self.together);
            together.extend((first..).zip(rows).filter_map(|(place, row)| {
                of_row(row).map(|(thread, interval, row)| (thread, place, interval, row))
            }));
            together.sort_unstable_by_key(|(thread, place, ..)| (*thread, *place));
            for of_thread in together.chunk_by(|a, b| a.0 == b.0) {
                self.place_together(of_thread, places);
            }
            together.clear();
            self.together = together;
        }
    }

    /// Finds the places of slices of one thread.
    fn place_together(&mut self, together: &[(usize, usize, Interval, u64)], places: &mut [Place]) {
        let [(thread, first, interval, row), ..] = together else { return };
        if together.len() == 1 {
            places[*first] = place_of(self.thread(*thread).add(interval, *row));
            return;
        }
        let mut of_thread = std::mem::take(&mut self.of_thread);
        of_thread.extend(together.iter().map(|(.., interval, row)| (*interval, *row)));
        self.thread(*thread).add_together(&of_thread, |number, begun| {
            places[together[number].1] = place_of(begun);
        });
        of_thread.clear();
        self.of_thread = of_thread;
    }

    #[inline]
    fn thread(&mut self, thread: usize) -> &mut Begins<u64> {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Begins::default);
        }
        &mut self.threads[thread]
    }
}
