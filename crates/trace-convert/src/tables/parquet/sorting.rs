//! The thread between the one that reads and the one that writes: it sorts batches, and encodes pages of
//! columns as they fill.

use super::batch::{Batch, Values};
use super::column::{Column, Ended, Page};
use super::nesting::{Nesting, Place};
use super::other;
use super::reading::Message;
use crate::tables::order::{NO_TIME, ts_of};
use crate::tables::store::Places;
use crate::tables::{KINDS, Kind, slices};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

/// Number of rows in a group.
//= docs/tables.md#parquet
const GROUP_ROWS: usize = if cfg!(test) { 50 } else { 1 << 18 };
/// Bytes of text in a group.
const GROUP_TEXT_BYTES: usize = 32 << 20;
/// Rows that are added before the bytes of a group are looked at.
const ROWS_AT_ONCE: usize = 4096;
/// Rows that wait for others of the same time at most.
const MAX_WAITING: usize = 1 << 20;
/// Bytes of all groups that are not complete, before they are compressed.
const GROUPS_BYTES: usize = 96 << 20;

/// What is encoded of a table.
pub enum Encoded {
    /// The next page of a column.
    Page(Kind, usize, Page),
    /// The end of a group of so many rows, with all columns.
    Group(Kind, usize, Vec<Ended>),
}

/// All tables.
pub struct Sorting {
    tables: [Table; KINDS],
    names: Vec<Arc<str>>,
    nesting: Places,
    sender: SyncSender<Encoded>,
    /// Batches that can be filled again.
    emptied: SyncSender<(Kind, Batch)>,
}

struct Table {
    kind: Kind,
    ts: Option<usize>,
    /// Rows that may have to wait for earlier ones.
    pending: Vec<Sorted>,
    columns: Vec<Column>,
    group: Group,
    last: (i64, u64),
    /// Finds how slices are in each other, if the first pass has not.
    nesting: Option<Nesting>,
    places: Vec<Place>,
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

impl Sorting {
    pub fn new(nesting: Places, sender: SyncSender<Encoded>, emptied: SyncSender<(Kind, Batch)>) -> Self {
        let tables = Kind::ALL.map(|kind| Table {
            kind,
            ts: ts_of(kind),
            pending: Vec::new(),
            columns: (0..kind.table().columns.len()).map(|place| Column::new(kind, place)).collect(),
            group: Group::default(),
            last: (i64::MIN, 0),
            nesting: (kind == Kind::Slices && nesting.are_times()).then(Nesting::default),
            places: Vec::new(),
        });
        Self { tables, names: Vec::new(), nesting, sender, emptied }
    }

    /// Encodes what comes, until there is no more.
    pub fn run(mut self, messages: &Receiver<Message>) -> io::Result<()> {
        for Message { kind, mut batch, is_nested, new_names, bound } in messages {
            self.names.extend(new_names);
            if kind == Kind::Slices && !is_nested {
                batch.nest(&mut self.nesting)?;
            }
            let Some(table) = self.tables.get_mut(kind as usize) else { continue };
            table.add(batch);
            table.emit(bound, &self.names, &self.sender)?;
            for sorted in table.pending.extract_if(.., |sorted| sorted.taken == sorted.order.len()) {
                // The reading thread may have ended.
                let _ = self.emptied.try_send((kind, sorted.batch.emptied()));
            }
            self.limit()?;
        }
        self.tables.iter_mut().try_for_each(|table| table.end_group(&self.names, &self.sender))
    }

    /// Ends the largest groups if all together are too large.
    fn limit(&mut self) -> io::Result<()> {
        while self.tables.iter().map(|table| table.group.memory()).sum::<usize>() > GROUPS_BYTES {
            let Some(largest) = self.tables.iter_mut().max_by_key(|table| table.group.memory()) else {
                break;
            };
            largest.end_group(&self.names, &self.sender)?;
        }
        Ok(())
    }
}

/// There is no thread that writes any more; it has the error.
fn send(sender: &SyncSender<Encoded>, encoded: Encoded) -> io::Result<()> {
    sender.send(encoded).map_err(|_| io::ErrorKind::BrokenPipe.into())
}

impl Table {
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
    fn emit(
        &mut self,
        bound: Option<(i64, u64)>,
        names: &[Arc<str>],
        sender: &SyncSender<Encoded>,
    ) -> io::Result<()> {
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
        let Self { nesting, places, pending, .. } = self;
        if let Some(nesting) = nesting {
            nesting.places(&order, |number| &pending[number as usize].batch, places);
        }
        let (mut rest, mut gathered) = (&order[..], 0);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(GROUP_ROWS - self.group.rows).min(ROWS_AT_ONCE));
            self.gather(now, gathered);
            gathered += now.len();
            rest = later;
            for (place, column) in self.columns.iter_mut().enumerate() {
                for page in column.full_pages(names) {
                    send(sender, Encoded::Page(self.kind, place, page))?;
                }
            }
            if self.group.rows >= GROUP_ROWS || self.group.text_bytes >= GROUP_TEXT_BYTES {
                self.end_group(names, sender)?;
            }
        }
        Ok(())
    }

    /// Adds rows, by the numbers of their batches and their places, to the open pages. So many
    /// rows with places came before.
    fn gather(&mut self, rows: &[(i64, u64, u32, u32)], gathered: usize) {
        let Some((.., batch, first)) = rows.first().copied() else { return };
        let is_behind =
            |((.., of, place), expected): (&(i64, u64, u32, u32), u32)| *of == batch && *place == expected;
        let Self { pending, columns, nesting, places: nested, .. } = self;
        let batches = |number: u32| &pending[number as usize].batch;
        let is_nested = |place: usize| place == slices::PARENT_ID || place == slices::DEPTH;
        let has_nesting = nesting.is_some();
        if let Some(nested) = nested.get(gathered..gathered + rows.len()).filter(|_| has_nesting) {
            columns[slices::PARENT_ID].extend_numbers(nested.iter().map(|(parent, _)| *parent));
            columns[slices::DEPTH].extend_numbers(nested.iter().map(|(_, depth)| *depth));
        }
        let mut columns: Vec<&mut Column> = (0..)
            .zip(columns)
            .filter_map(|(place, column)| (!has_nesting || !is_nested(place)).then_some(column))
            .collect();
        if rows.iter().zip(first..).all(is_behind) {
            let range = first as usize..first as usize + rows.len();
            columns.iter_mut().for_each(|column| column.extend(batches(batch), range.clone()));
            self.group.text_bytes += batches(batch).text_of(range);
        } else {
            let places = || rows.iter().map(|(.., batch, place)| (batches(*batch), *place as usize));
            columns.iter_mut().for_each(|column| column.gather(places()));
            let text = places().map(|(batch, place)| batch.text_of(place..place + 1));
            self.group.text_bytes += text.sum::<usize>();
        }
        self.group.rows += rows.len();
        self.group.bytes += rows.len() * 8 * self.columns.len();
    }

    /// Ends a group of rows, if there is one.
    fn end_group(&mut self, names: &[Arc<str>], sender: &SyncSender<Encoded>) -> io::Result<()> {
        let Group { rows, .. } = std::mem::take(&mut self.group);
        if rows == 0 {
            return Ok(());
        }
        let mut all = Vec::new();
        for (place, column) in self.columns.iter_mut().enumerate() {
            let (pages, ended) = column.end(names).map_err(other)?;
            for page in pages {
                send(sender, Encoded::Page(self.kind, place, page))?;
            }
            all.push(ended);
        }
        send(sender, Encoded::Group(self.kind, rows, all))
    }
}

impl Group {
    fn memory(&self) -> usize {
        self.bytes + self.text_bytes
    }
}
