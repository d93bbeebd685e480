//! The thread behind the one that reads: it sorts batches, and writes groups of rows.

use super::batch::{Batch, Values};
use super::nesting::Nesting;
use super::reading::Message;
use super::writing::{Failure, Output, TableFile};
use super::{ROWS_AT_ONCE, other};
use crate::tables::order::{NO_TIME, ts_of};
use crate::tables::store::Places;
use crate::tables::{Kind, slices};
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use std::borrow::Cow;
use std::io;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, SyncSender};

/// Number of rows in a group.
//= docs/tables.md#parquet
const GROUP_ROWS: usize = if cfg!(test) { 50 } else { 1 << 18 };
/// Bytes of text in a group.
const GROUP_TEXT_BYTES: usize = 32 << 20;
/// Bytes of text that are encoded together, or a text more.
const TEXT_AT_ONCE: usize = 1 << 20;
/// Rows that wait for others of the same time at most.
const MAX_WAITING: usize = 1 << 20;
/// Bytes of all groups that are not complete, before they are compressed.
const GROUPS_BYTES: usize = 96 << 20;

/// All tables.
pub struct Sorting<'w> {
    tables: Vec<Table<'w>>,
    names: Vec<ByteArray>,
    nesting: Places,
    failure: Failure,
    /// Batches that can be filled again.
    emptied: SyncSender<(Kind, Batch)>,
}

struct Table<'w> {
    kind: Kind,
    ts: Option<usize>,
    /// Rows that may have to wait for earlier ones.
    pending: Vec<Sorted>,
    file: TableFile<'w>,
    group: Group,
    last: (i64, u64),
    /// Finds how slices are in each other, if the first pass has not.
    nesting: Option<Nesting>,
}

/// A batch, and its rows in order of time: time, number and place.
struct Sorted {
    batch: Batch,
    order: Vec<(i64, u64, u32)>,
    /// How many of the rows are in a group already.
    taken: usize,
}

/// How much there is in a group.
#[derive(Default)]
struct Group {
    rows: usize,
    bytes: usize,
    text_bytes: usize,
}

impl<'w> Sorting<'w> {
    /// Begins all tables, in the order of [`Kind`].
    pub fn new(
        outputs: Vec<Output<'w>>,
        nesting: Places,
        emptied: SyncSender<(Kind, Batch)>,
    ) -> io::Result<Self> {
        let (mut tables, failure) = (Vec::new(), Failure::default());
        for (kind, output) in Kind::ALL.into_iter().zip(outputs) {
            tables.push(Table {
                kind,
                ts: ts_of(kind),
                pending: Vec::new(),
                file: TableFile::new(kind, output, &failure)?,
                group: Group::default(),
                last: (i64::MIN, 0),
                nesting: (kind == Kind::Slices && nesting.are_times()).then(Nesting::default),
            });
        }
        Ok(Self { tables, names: Vec::new(), nesting, failure, emptied })
    }

    /// Writes what comes, until there is no more, and completes the files.
    pub fn run(self, messages: &Receiver<Message>) -> io::Result<()> {
        let failure = self.failure.clone();
        self.write(messages).map_err(|error| {
            let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
            failure.unwrap_or(error)
        })
    }

    fn write(mut self, messages: &Receiver<Message>) -> io::Result<()> {
        for Message { kind, mut batch, is_nested, new_names, bound } in messages {
            self.names.extend(new_names.into_iter().map(ByteArray::from));
            if kind == Kind::Slices && !is_nested {
                batch.nest(&mut self.nesting)?;
            }
            let Some(table) = self.tables.get_mut(kind as usize) else { continue };
            table.add(batch);
            table.emit(bound, &self.names)?;
            for sorted in table.pending.extract_if(.., |sorted| sorted.taken == sorted.order.len()) {
                // The reading thread may have ended.
                let _ = self.emptied.try_send((kind, sorted.batch.emptied()));
            }
            self.limit()?;
        }
        self.tables.into_iter().try_for_each(Table::close)
    }

    /// Ends the largest groups if all together are too large.
    fn limit(&mut self) -> io::Result<()> {
        while self.tables.iter().map(|table| table.group.memory()).sum::<usize>() > GROUPS_BYTES {
            let Some(largest) = self.tables.iter_mut().max_by_key(|table| table.group.memory()) else {
                break;
            };
            largest.end_group()?;
        }
        Ok(())
    }
}

impl Table<'_> {
    fn add(&mut self, batch: Batch) {
        let times = self.ts.and_then(|place| match batch.columns.get(place) {
            Some(Values::Numbers(times)) => Some(times),
            _ => None,
        });
        let ts = |place: usize| match times {
            Some(times) => times.get(place).map_or(NO_TIME, |ts| ts as i64),
            None => 0,
        };
        let rows = batch.rows.iter().enumerate();
        let mut order: Vec<_> = rows.map(|(place, row)| (ts(place), *row, place as u32)).collect();
        if !order.is_sorted() {
            order.sort();
        }
        self.pending.push(Sorted { batch, order, taken: 0 });
    }

    /// Moves rows that are before the bound into groups; all if there is none.
    fn emit(&mut self, bound: Option<(i64, u64)>, names: &[ByteArray]) -> io::Result<()> {
        let waiting: usize = self.pending.iter().map(|sorted| sorted.order.len() - sorted.taken).sum();
        // Which of the slices that begin together is around the others is known when all of them are there.
        let is_by_time = self.nesting.is_some() && waiting <= MAX_WAITING;
        let bound = bound.map(|(ts, row)| if is_by_time { (ts, 0) } else { (ts, row) });
        let mut order: Vec<(i64, u64, u32, u32)> = Vec::new();
        for (number, Sorted { order: rows, taken, .. }) in self.pending.iter_mut().enumerate() {
            let rest = &rows[*taken..];
            let count =
                bound.map_or(rest.len(), |bound| rest.partition_point(|(ts, row, _)| (*ts, *row) < bound));
            order.extend(rest[..count].iter().map(|(ts, row, place)| (*ts, *row, number as u32, *place)));
            *taken += count;
        }
        if !order.is_sorted() {
            order.sort();
        }
        if let (Some(first), Some(last)) = (order.first(), order.last()) {
            if (first.0, first.1) < self.last {
                return Err(io::Error::other("the trace has changed while it was read"));
            }
            self.last = (last.0, last.1);
        }
        let Self { nesting, pending, .. } = self;
        if let Some(nesting) = nesting {
            nesting.find(&order, |number| &pending[number as usize].batch)?;
        }
        let (mut rest, mut gathered) = (&order[..], 0);
        while !rest.is_empty() {
            let mut text_bytes = 0;
            let most = ROWS_AT_ONCE.min(GROUP_ROWS - self.group.rows);
            let at_once = rest.iter().take(most).take_while(|(.., batch, row)| {
                let has_room = text_bytes < TEXT_AT_ONCE;
                if has_room {
                    text_bytes += self.pending[*batch as usize].batch.text_of(*row as usize);
                }
                has_room
            });
            let (now, later) = rest.split_at(at_once.count());
            self.gather(now, gathered, names).map_err(other)?;
            self.group.text_bytes += text_bytes;
            gathered += now.len();
            rest = later;
            if self.group.rows >= GROUP_ROWS || self.group.text_bytes >= GROUP_TEXT_BYTES {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Adds rows, by the numbers of their batches and their places, to the group. So many rows with places
    /// came before.
    fn gather(
        &mut self,
        rows: &[(i64, u64, u32, u32)],
        gathered: usize,
        names: &[ByteArray],
    ) -> Result<(), ParquetError> {
        let Self { kind, pending, file, group, nesting, .. } = self;
        let nested =
            nesting.as_mut().and_then(|nesting| nesting.found().get(gathered..gathered + rows.len()));
        let cells = |(.., batch, row): &(_, _, u32, u32)| (&pending[*batch as usize].batch, *row as usize);
        let mut rows: Vec<(&Batch, usize)> = rows.iter().map(cells).collect();
        let mut nested = nested.map(Cow::Borrowed);
        if pending.iter().any(|sorted| !sorted.batch.selected.is_empty()) {
            let has: Vec<bool> = rows.iter().map(|(batch, row)| batch.has(*row)).collect();
            let mut of_rows = has.iter();
            rows.retain(|_| of_rows.next() == Some(&true));
            if let Some(nested) = &mut nested {
                let mut of_rows = has.iter();
                nested.to_mut().retain(|_| of_rows.next() == Some(&true));
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
        for (place, column) in file.columns().iter_mut().enumerate() {
            match (place, &nested) {
                (slices::PARENT_ID, Some(nested)) => {
                    column.extend_numbers(nested.iter().map(|(parent, _)| *parent))?;
                }
                (slices::DEPTH, Some(nested)) => {
                    column.extend_numbers(nested.iter().map(|(_, depth)| *depth))?;
                }
                _ => column.extend(&rows, names)?,
            }
        }
        group.rows += rows.len();
        group.bytes += rows.len() * 8 * kind.table().columns.len();
        Ok(())
    }

    /// Ends a group of rows, if there is one.
    fn end_group(&mut self) -> io::Result<()> {
        let Group { rows, .. } = std::mem::take(&mut self.group);
        if rows == 0 { Ok(()) } else { self.file.end_group() }
    }

    /// Completes the file.
    fn close(mut self) -> io::Result<()> {
        self.end_group()?;
        self.file.close()
    }
}

impl Group {
    fn memory(&self) -> usize {
        self.bytes + self.text_bytes
    }
}
