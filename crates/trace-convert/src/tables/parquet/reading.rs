//! The thread that reads: it collects rows in batches, and says up to which time they are complete.

use super::batch::Batch;
use super::late::Late;
use super::names::Names;
use crate::tables::order::{BATCH_ROWS, Order, ts_of};
use crate::tables::store::NESTED;
use crate::tables::{Cell, ChosenRows, KINDS, Kind, Rows, slices};
use bytes::Bytes;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender};

/// Bytes of text in a batch.
const BATCH_TEXT_BYTES: usize = 4 << 20;

/// Rows for the sorting thread.
pub struct Message {
    pub kind: Kind,
    pub batch: Batch,
    /// Whether slices have how they are in each other.
    pub is_nested: bool,
    /// The names that are numbered after those before.
    pub new_names: Vec<Bytes>,
    /// The time and number before which there are no more rows; if there is none, there are no more at all.
    pub bound: Option<(i64, u64)>,
}

/// Takes rows, and sends them on.
pub struct Reading<'a> {
    order: &'a Order,
    /// The rows that are written; none if all are.
    chosen: Option<ChosenRows>,
    late: [Option<Late>; KINDS],
    open: [Batch; KINDS],
    rows: [u64; KINDS],
    /// What is known of the next slice.
    pair: u64,
    names: Names,
    sender: SyncSender<Message>,
    /// Batches that can be filled again.
    emptied: Receiver<(Kind, Batch)>,
    room: [Option<Batch>; KINDS],
}

impl<'a> Reading<'a> {
    pub fn new(
        order: &'a Order,
        chosen: Option<ChosenRows>,
        late: [Option<Late>; KINDS],
        sender: SyncSender<Message>,
        emptied: Receiver<(Kind, Batch)>,
    ) -> Self {
        let open = std::array::from_fn(|place| Batch::new(Kind::ALL[place]));
        let (names, room) = (Names::default(), std::array::from_fn(|_| None));
        Self { order, chosen, late, open, rows: [0; KINDS], pair: 0, names, sender, emptied, room }
    }

    /// Sends the remaining rows.
    pub fn finish(&mut self) -> io::Result<()> {
        Kind::ALL.into_iter().try_for_each(|kind| self.complete(kind, None))
    }

    /// Sends rows, and the late ones that come before the bound.
    fn complete(&mut self, kind: Kind, bound: Option<(i64, u64)>) -> io::Result<()> {
        for (of, emptied) in self.emptied.try_iter() {
            self.room[of as usize] = Some(emptied);
        }
        let room = self.room[kind as usize].take().unwrap_or_else(|| Batch::new(kind));
        let batch = std::mem::replace(&mut self.open[kind as usize], room);
        if self.late[kind as usize].is_none() {
            return self.send(kind, batch, false, bound);
        }
        self.send(kind, batch, false, Some((i64::MIN, 0)))?;
        while let Some(late) = &mut self.late[kind as usize] {
            let mut batch = Batch::new(kind);
            let mut is_more = true;
            while is_more && batch.rows.len() < BATCH_ROWS as usize && batch.text_bytes < BATCH_TEXT_BYTES {
                is_more = late.take_before(bound, |row, cells| {
                    batch.push(row, cells, 0, &mut self.names);
                    choose(&mut self.chosen, kind, cells, &mut batch);
                    if let Some(Cell::Unsigned(pair)) =
                        cells.get(slices::PAIR).filter(|_| kind == Kind::Slices)
                    {
                        batch.pairs.push(*pair);
                    }
                })?;
            }
            // All rows before the next late one were sent.
            let next = late.next()?.filter(|next| bound.is_none_or(|bound| *next < bound));
            self.send(kind, batch, true, next.or(bound))?;
            if next.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        kind: Kind,
        batch: Batch,
        is_nested: bool,
        bound: Option<(i64, u64)>,
    ) -> io::Result<()> {
        let message = Message { kind, batch, is_nested, new_names: self.names.take_new(), bound };
        self.sender.send(message).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Notes whether the last row of a batch is selected.
#[inline]
fn choose(chosen: &mut Option<ChosenRows>, kind: Kind, cells: &[Cell<'_>], batch: &mut Batch) {
    if let Some(chosen) = chosen {
        batch.selected.push(chosen.has(kind, |place| cells.get(place).copied().unwrap_or(Cell::Null)));
    }
}

impl Rows for Reading<'_> {
    fn takes_all(&self) -> bool {
        true
    }

    #[inline]
    fn pair(&mut self, rows: u64) {
        self.pair = rows + 1;
    }

    #[inline]
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        let row = self.rows[kind as usize];
        self.rows[kind as usize] += 1;
        let batch = &mut self.open[kind as usize];
        let pair = if kind == Kind::Slices { std::mem::take(&mut self.pair) } else { 0 };
        if !self.order.is_late(kind, row) {
            // The other thread adds how slices are in each other.
            let left_out = if kind == Kind::Slices { NESTED } else { 0 };
            batch.push(row, cells, left_out, &mut self.names);
            choose(&mut self.chosen, kind, cells, batch);
            if kind == Kind::Slices {
                batch.pairs.push(pair);
            }
        }
        if (row + 1).is_multiple_of(BATCH_ROWS) || batch.text_bytes >= BATCH_TEXT_BYTES {
            // The order of the other tables is that in which the rows come.
            let bound = ts_of(kind).map_or(i64::MAX, |_| self.order.bound(kind, row + 1));
            self.complete(kind, Some((bound, row + 1)))?;
        }
        Ok(())
    }
}
