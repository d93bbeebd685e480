//! Tables in columns. Only what is asked for is there: one pass over the archives fills all columns that are
//! wanted and missing.

mod column;
mod filling;
mod nesting;
mod spill;
mod texts;
mod whole;

#[cfg(feature = "sqlite")]
pub(super) use column::{BLOCK_BITS, BLOCK_ROWS, Window};
pub(super) use column::{Block, Cache, Column, Width};
pub(super) use filling::Watcher;
pub(super) use spill::{Limits, Spill};
pub(super) use texts::Texts;
#[cfg(feature = "parquet")]
pub(super) use whole::Places;
pub(super) use whole::Whole;
pub use whole::fill_whole;

use super::intervals::interval;
use super::{ColumnSet, KINDS, Kind, ROWS, Type, slices};
use crate::{ConvertError, Filter, Summary};
use filling::{Failed, Keep, fill_all};
use nesting::{InOrder, Nested, Nesting, Span, Spans};
use std::io::{self, Read};
use std::sync::Arc;
use trace_model::OutOfOrder;
use trace_reader::Disorder;

/// Opens an archive, from its beginning, as often as it is called; several readings may go on at once.
pub type Opener = Box<dyn FnMut() -> io::Result<Box<dyn Read>> + Send>;

/// A pass has failed. The store has the error: SQLite's own, which stand between here and its user, have only
/// a text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PassFailed(pub String);

/// An archive, with the name that tells it apart from others.
pub struct Trace {
    /// Its name.
    pub name: String,
    /// Opens it.
    pub open: Opener,
    /// The order of its begins and ends, if that is known already.
    pub disorder: Option<Disorder>,
    /// Its size in bytes, if that is known without reading it.
    pub bytes: Option<u64>,
}

impl Trace {
    /// Takes the order of its begins and ends, which a pass finds unless it is known already.
    ///
    /// # Errors
    /// It cannot be opened. A later pass reports it if nothing can be read.
    pub fn find_disorder(&mut self) -> Result<Disorder, ConvertError> {
        match self.disorder.take() {
            Some(disorder) => Ok(disorder),
            None => Ok(Disorder::find((self.open)().map_err(ConvertError::Write)?).unwrap_or_default()),
        }
    }
}

/// Columns that are computed from others.
pub(super) const NESTED: u64 = 1 << slices::PARENT_ID | 1 << slices::DEPTH | 1 << slices::SELF_DUR;
/// Those others, and what there is of them only as long as it is needed.
const NESTING: u64 =
    1 << slices::TS | 1 << slices::DUR | 1 << slices::ASYNC_ID | 1 << slices::THREAD_ID | 1 << slices::PAIR;
/// Texts that are expected to differ from row to row.
pub(super) const LONG: [&str; 3] = ["args", "message", "content"];

/// A table's columns, as far as they are there.
#[derive(Debug, Default)]
pub(super) struct TableData {
    pub columns: Vec<Option<Column>>,
    /// The first rows of the traces.
    pub starts: Vec<u64>,
    pub rows: u64,
}

impl TableData {
    /// A value; none if it is missing.
    #[inline(always)]
    pub fn get(&self, place: usize, row: u64, cache: &mut Cache, spill: &Spill) -> io::Result<Option<u64>> {
        match self.columns.get(place) {
            Some(Some(column)) => column.get(row, cache, spill),
            _ => Err(is_missing()),
        }
    }

    /// A column.
    #[cfg(feature = "sqlite")]
    pub fn column(&self, place: usize) -> io::Result<&Column> {
        self.columns.get(place).and_then(Option::as_ref).ok_or_else(is_missing)
    }

    /// The trace that a row is of.
    pub fn trace_of(&self, row: u64) -> usize {
        self.starts.partition_point(|start| *start <= row).saturating_sub(1)
    }
}

#[cold]
fn is_missing() -> io::Error {
    io::Error::other("a column is missing")
}

/// What is there of all tables.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub tables: [TableData; KINDS],
    pub texts: Texts,
    pub spill: Spill,
    pub traces: Vec<String>,
}

/// The tables of some traces.
pub(super) struct Store {
    traces: Vec<Trace>,
    filter: Filter,
    data: Arc<Data>,
    wanted: ColumnSet,
    filled: ColumnSet,
    /// What the passes so far have found: each says what is skipped of the tables that it fills.
    summaries: Vec<Summary>,
    /// Why the last pass failed, and on which trace.
    pub error: Option<(String, ConvertError)>,
}

/// Adds what a pass has found to what the ones before have.
fn merge(known: &mut Vec<Summary>, found: Vec<Summary>) {
    let before = std::mem::replace(known, found);
    for (summary, before) in known.iter_mut().zip(before) {
        let lists = [(&mut summary.skipped, before.skipped), (&mut summary.remarks, before.remarks)];
        for (counts, before) in lists {
            for (kind, count) in before {
                match counts.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, known)) => *known = count.max(*known),
                    None => counts.push((kind, count)),
                }
            }
            counts.sort();
        }
    }
}

/// How the values of a column are stored.
pub(super) fn width_of(name: &str, of: Type) -> Width {
    if of == Type::Text && !LONG.contains(&name) { Width::Narrow } else { Width::Wide }
}

impl Store {
    pub fn new(traces: Vec<Trace>, filter: Filter, limits: Limits) -> Self {
        let names = traces.iter().map(|trace| trace.name.clone()).collect();
        let spill = Spill::new(limits);
        let mut data = Data { traces: names, spill, ..Data::default() };
        for kind in Kind::ALL {
            let columns = kind.table().columns.len() + usize::from(kind == Kind::Slices);
            data.tables[kind as usize].columns = (0..columns).map(|_| None).collect();
        }
        let (wanted, filled) = (ColumnSet::NONE, ColumnSet::NONE);
        Self { traces, filter, data: Arc::new(data), wanted, filled, summaries: Vec::new(), error: None }
    }

    /// Makes sure that all traces are archives, of which at least the beginning can be read.
    #[cfg(feature = "sqlite")]
    pub fn probe(&mut self) -> Result<(), (String, ConvertError)> {
        for trace in &mut self.traces {
            let input = (trace.open)().map_err(ConvertError::Write);
            input.and_then(crate::source::probe).map_err(|error| (trace.name.clone(), error))?;
        }
        Ok(())
    }

    /// How many traces there are.
    pub fn traces(&self) -> usize {
        self.traces.len()
    }

    /// Columns of a table, by their bits, will be used.
    pub fn want(&mut self, kind: Kind, columns: u64) {
        self.wanted.add(kind, columns);
    }

    /// All that is wanted, after a pass over the archives if some of it is not there.
    pub fn data(&mut self) -> Result<Arc<Data>, PassFailed> {
        let missing = self.missing();
        if missing != ColumnSet::NONE {
            self.pass(missing).map_err(|failed| self.failed(failed))?;
        }
        Ok(self.data.clone())
    }

    /// What the passes have found, for each trace; nothing if there was none.
    pub fn summaries(&self) -> &[Summary] {
        &self.summaries
    }

    fn missing(&self) -> ColumnSet {
        let mut missing = self.wanted;
        if missing.0[Kind::Slices as usize] & NESTED & !self.filled.0[Kind::Slices as usize] != 0 {
            missing.add(Kind::Slices, NESTED | NESTING);
        }
        for (missing, filled) in missing.0.iter_mut().zip(self.filled.0) {
            *missing &= !filled;
        }
        missing
    }

    fn failed(&mut self, (name, error): Failed) -> PassFailed {
        let text = error.to_string();
        self.error = Some((name, error));
        PassFailed(text)
    }

    fn fill_with(&mut self, found: ColumnSet) {
        for (filled, found) in self.filled.0.iter_mut().zip(found.0) {
            *filled |= found;
        }
    }

    fn pass(&mut self, mut missing: ColumnSet) -> Result<(), Failed> {
        let failed = |error| (String::new(), ConvertError::Write(error));
        let data = Arc::get_mut(&mut self.data).ok_or_else(in_use)?;
        let missing_of_slices = missing.0[Kind::Slices as usize];
        // Of several traces, it is known only in the end which slices are of which.
        let is_watched = missing_of_slices & NESTED != 0
            && missing_of_slices & (NESTING | ROWS) == NESTING | ROWS
            && self.traces.len() == 1;
        let mut nesting = is_watched.then(|| WatchedNesting::new(InOrder::default, None));
        let watcher = nesting.as_mut().map(|nesting| nesting as &mut dyn Watcher);
        let summaries = fill_all(&mut self.traces, &self.filter, data, missing, Keep::All, watcher)?;
        merge(&mut self.summaries, summaries);
        if missing_of_slices & NESTED != 0 {
            nest(data, nesting).map_err(failed)?;
            if let Some(pairs) = data.tables[Kind::Slices as usize].columns[slices::PAIR].take() {
                pairs.release(&data.spill);
            }
            missing.0[Kind::Slices as usize] &= !(1 << slices::PAIR);
        }
        self.fill_with(missing);
        Ok(())
    }
}

fn in_use() -> Failed {
    (String::new(), ConvertError::Write(io::Error::other("the tables are in use")))
}

/// Slices that are looked at while they come.
struct WatchedNesting<'a, T = InOrder> {
    begin: fn() -> T,
    in_order: Result<T, OutOfOrder>,
    next: u64,
    /// Sees all rows, too.
    other: Option<&'a mut dyn Watcher>,
}

impl<'a, T> WatchedNesting<'a, T> {
    fn new(begin: fn() -> T, other: Option<&'a mut dyn Watcher>) -> Self {
        Self { begin, in_order: Ok(begin()), next: 0, other }
    }
}

impl<T: Spans> Watcher for WatchedNesting<'_, T> {
    fn again(&mut self) {
        (self.in_order, self.next) = (Ok((self.begin)()), 0);
        self.other.iter_mut().for_each(|other| other.again());
    }

    fn rows(&mut self, kind: Kind, rows: usize, columns: &[(usize, &Block)]) -> io::Result<()> {
        self.other.as_mut().map_or(Ok(()), |other| other.rows(kind, rows, columns))?;
        if kind != Kind::Slices {
            return Ok(());
        }
        let block = |place: usize| columns.iter().find(|(of, _)| *of == place).map(|(_, block)| *block);
        let places = [slices::TS, slices::DUR, slices::THREAD_ID, slices::ASYNC_ID, slices::PAIR];
        let [Some(ts), Some(dur), Some(thread), Some(operation), Some(pair)] = places.map(block) else {
            return Err(io::Error::other("a column is missing"));
        };
        let first = self.next;
        self.next += rows as u64;
        let Ok(in_order) = &mut self.in_order else { return Ok(()) };
        for place in (0..rows).filter(|place| operation.get(*place).is_none()) {
            let get = |block: &Block| block.get(place).unwrap_or_default();
            let row = first + place as u64;
            let interval = interval(row, get(ts), dur.get(place), get(pair));
            if let Err(error) = in_order.push(&Span { row, thread: get(thread), interval }) {
                self.in_order = Err(error);
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Computes where the slices of threads are in each other, of which some may have been looked at already.
fn nest(data: &mut Data, watched: Option<WatchedNesting<'_>>) -> io::Result<()> {
    let Data { tables, spill, .. } = data;
    let table = &mut tables[Kind::Slices as usize];
    let mut columns = [Column::new(Width::Wide), Column::new(Width::Wide), Column::new(Width::Wide)];
    let mut next = 0;
    let mut place = |nested: &Nested, spill: &Spill| {
        let row = nested.of;
        let first = table.starts.get(table.trace_of(row)).copied().unwrap_or(0);
        let parent = nested.parent.map(|row| row - first + 1);
        push(&mut columns, &mut next, row, [None; 3], spill)?;
        push(&mut columns, &mut next, row + 1, [parent, Some(nested.depth), nested.own], spill)
    };
    let in_order = match watched {
        Some(watched) => watched.in_order,
        None => {
            let mut in_order = InOrder::default();
            let is_in_order = each_span(table, spill, |span| in_order.push(&span).is_ok())?;
            if is_in_order { Ok(in_order) } else { Err(OutOfOrder) }
        }
    };
    if let Ok(places) = in_order.and_then(InOrder::finish) {
        let nested = (0..places.rows()).filter_map(|row| places.get(row as u64));
        nested.into_iter().try_for_each(|nested| place(&nested, spill))?;
    } else {
        let mut nesting = Nesting::default();
        each_span(table, spill, |span| {
            nesting.push(&span);
            true
        })?;
        nesting.finish(|nested| place(nested, spill))?;
    }
    push(&mut columns, &mut next, table.rows, [None; 3], spill)?;
    for (place, mut column) in slices::NESTED.into_iter().zip(columns) {
        column.finish(spill)?;
        table.columns[place] = Some(column);
    }
    Ok(())
}

/// Adds rows up to this one. Operations have no place in a thread.
fn push(
    columns: &mut [Column; 3],
    next: &mut u64,
    end: u64,
    values: [Option<u64>; 3],
    spill: &Spill,
) -> io::Result<()> {
    while *next < end {
        columns.iter_mut().zip(values).try_for_each(|(column, value)| column.push(value, spill))?;
        *next += 1;
    }
    Ok(())
}

/// Passes on the slices of threads, in the order of their rows, until one is not taken; says whether all
/// were.
fn each_span(table: &TableData, spill: &Spill, mut take: impl FnMut(Span) -> bool) -> io::Result<bool> {
    let mut caches = [const { None }; 5];
    for row in 0..table.rows {
        let mut get = |place, cache: usize| table.get(place, row, &mut caches[cache], spill);
        let ts = get(slices::TS, 0)?.unwrap_or_default();
        let dur = get(slices::DUR, 1)?;
        let thread = get(slices::THREAD_ID, 2)?.unwrap_or_default();
        let pair = get(slices::PAIR, 4)?.unwrap_or_default();
        if get(slices::ASYNC_ID, 3)?.is_none() {
            let thread = (table.trace_of(row) as u64) << 40 | thread;
            if !take(Span { row, thread, interval: interval(row, ts, dur, pair) }) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
