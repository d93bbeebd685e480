//! A trace that is read twice: a first pass finds out how slices are in each other, another one passes on all
//! rows.

use super::filling::{Keep, fill_all};
use super::nesting::{HeldPlaces, InOrder, Nested, Spans};
#[cfg(feature = "parquet")]
use super::nesting::{HeldTimes, InnerTimes, TimesCache};
#[cfg(feature = "parquet")]
use super::spill::Spill;
use super::{Cache, Data, Limits, NESTED, NESTING, Store, Trace, WatchedNesting, Watcher, in_use};
use crate::tables::rows::fill;
use crate::tables::{Cell, ColumnSet, Kind, Rows, slices};
use crate::{ConvertError, Filter, Summary};
use std::io;
use std::sync::Arc;
use trace_model::OutOfOrder;

const SLICE_COLUMNS: usize = Kind::Slices.table().columns.len();
/// Memory for how long slices have others in them; more is in a file.
#[cfg(feature = "parquet")]
const INNER_TIMES_BYTES: usize = 16 << 20;

/// Fills tables with all columns of a trace. A first pass finds out how slices are in each other.
///
/// # Errors
/// The input is no archive or cannot be read, or a row cannot be written.
pub fn fill_whole(trace: Trace, rows: &mut impl Rows, filter: &Filter) -> Result<Summary, ConvertError> {
    let mut whole = Whole::new(trace, filter)?;
    whole.fill(&mut whole.nesting().around(rows))
}

/// A trace of which a first pass has found out how slices are in each other.
pub struct Whole {
    store: Store,
    found: Found,
}

/// What is known of how slices are in each other.
#[derive(Clone)]
enum Found {
    /// All, in memory.
    Held(Arc<HeldPlaces>),
    /// All, in columns.
    Columns(Arc<Data>),
    /// How long slices have others in them. The rest follows from the order of their begins.
    #[cfg(feature = "parquet")]
    Times(Arc<HeldTimes>),
}

impl Whole {
    /// The first pass.
    pub fn new(trace: Trace, filter: &Filter) -> Result<Self, ConvertError> {
        Self::with(trace, filter, &[], None, InOrder::default, |nesting| {
            nesting.finish().map(Arc::new).map(Found::Held)
        })
    }

    /// The first pass, for rows in the order of time. It shows these columns, and those of slices that it
    /// needs, to a watcher.
    #[cfg(feature = "parquet")]
    pub fn in_time(
        trace: Trace,
        filter: &Filter,
        columns: &[(Kind, u64)],
        watcher: &mut dyn Watcher,
    ) -> Result<Self, ConvertError> {
        let begin =
            || InnerTimes::new(Spill::new(Limits { columns: INNER_TIMES_BYTES, ..Limits::default() }));
        Self::with(trace, filter, columns, Some(watcher), begin, |times| {
            times.finish().map(Arc::new).map(Found::Times)
        })
    }

    fn with<T: Spans>(
        trace: Trace,
        filter: &Filter,
        columns: &[(Kind, u64)],
        other: Option<&mut dyn Watcher>,
        begin: fn() -> T,
        finish: impl FnOnce(T) -> Result<Found, OutOfOrder>,
    ) -> Result<Self, ConvertError> {
        let mut store = Store::new(vec![trace], filter.clone(), Limits::default());
        let mut missing = ColumnSet::NONE;
        missing.add(Kind::Slices, NESTING);
        columns.iter().for_each(|(kind, columns)| missing.add(*kind, *columns));
        let mut nesting = WatchedNesting::new(begin, other);
        let data = Arc::get_mut(&mut store.data).ok_or_else(|| in_use().1)?;
        fill_all(&mut store.traces, filter, data, missing, Keep::Nothing, Some(&mut nesting))
            .map_err(|(_, error)| error)?;
        if let Ok(found) = nesting.in_order.and_then(finish) {
            return Ok(Self { store, found });
        }
        // They are sorted, in another pass.
        store.want(Kind::Slices, NESTED);
        let found = store.data();
        if let Some((_, error)) = store.error.take() {
            return Err(error);
        }
        let data = found.map_err(|failed| ConvertError::Write(io::Error::other(failed)))?;
        Ok(Self { store, found: Found::Columns(data) })
    }

    /// What the first pass has found about slices.
    pub fn nesting(&self) -> Places {
        Places {
            found: self.found.clone(),
            caches: [None, None, None],
            #[cfg(feature = "parquet")]
            times: None,
            next: 0,
        }
    }

    /// Another pass, with all columns that the rows are wanted for, but without how slices are in each other.
    pub fn fill(&mut self, rows: &mut impl Rows) -> Result<Summary, ConvertError> {
        let missing = || ConvertError::Write(io::Error::other("a trace is missing"));
        let trace = self.store.traces.first_mut().ok_or_else(missing)?;
        let input = (trace.open)().map_err(ConvertError::Write)?;
        let disorder = trace.disorder.clone().unwrap_or_default();
        fill(input, &disorder, rows, self.store.filter.clone())
    }
}

/// How slices are in each other, one after the other.
pub struct Places {
    found: Found,
    caches: [Cache; 3],
    #[cfg(feature = "parquet")]
    times: TimesCache,
    next: u64,
}

/// The length of a slice of a thread that ends.
#[inline]
fn length_of(ts: Option<i64>, dur: Option<i64>) -> Option<i64> {
    let ts = ts.unwrap_or_default();
    dur.map(|dur| ts.saturating_add(dur) - ts)
}

impl Places {
    /// Whether only the own times are known.
    #[cfg(feature = "parquet")]
    pub fn are_times(&self) -> bool {
        matches!(self.found, Found::Times(_))
    }

    /// The parent, the depth and the own time of the next slice, which has this length if it is one of a
    /// thread and ends.
    #[inline]
    pub fn next(&mut self, length: Option<i64>) -> io::Result<[Option<u64>; 3]> {
        self.next += 1;
        self.of(self.next - 1, length)
    }

    /// The same of a slice by its row, of which the first is 0.
    #[inline]
    pub fn of(&mut self, row: u64, length: Option<i64>) -> io::Result<[Option<u64>; 3]> {
        // All of it is in columns or in memory then.
        #[cfg(not(feature = "parquet"))]
        let _ = length;
        let data = match &self.found {
            Found::Held(places) => {
                let Some(Nested { parent, depth, own, .. }) = places.get(row) else { return Ok([None; 3]) };
                return Ok([parent.map(|row| row + 1), Some(depth), own]);
            }
            #[cfg(feature = "parquet")]
            Found::Times(times) => {
                let Some(length) = length else { return Ok([None; 3]) };
                let inner = times.get(row, &mut self.times)?;
                return Ok([None, None, Some((length as u64).saturating_sub(inner))]);
            }
            Found::Columns(data) => data,
        };
        let table = &data.tables[Kind::Slices as usize];
        let mut values = [None; 3];
        for ((value, place), cache) in values.iter_mut().zip(slices::NESTED).zip(&mut self.caches) {
            *value = table.get(place, row, cache, &data.spill)?;
        }
        Ok(values)
    }

    /// The same of a slice by some of its cells.
    #[cfg(feature = "parquet")]
    #[inline]
    pub fn of_numbers(
        &mut self,
        row: u64,
        ts: Option<u64>,
        dur: Option<u64>,
        async_id: Option<u64>,
    ) -> io::Result<[Option<u64>; 3]> {
        let length = length_of(ts.map(|ts| ts as i64), dur.map(|dur| dur as i64));
        self.of(row, length.filter(|_| async_id.is_none()))
    }

    /// Adds it to the slices on their way to a destination of rows.
    pub fn around<R: Rows>(self, rows: &mut R) -> WithNesting<'_, R> {
        WithNesting { rows, places: self }
    }
}

/// Adds to slices how they are in each other.
pub struct WithNesting<'a, R> {
    rows: &'a mut R,
    places: Places,
}

impl<R: Rows> Rows for WithNesting<'_, R> {
    fn wanted(&self) -> ColumnSet {
        self.rows.wanted()
    }

    fn pair(&mut self, rows: u64) {
        self.rows.pair(rows);
    }

    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        let Some(slice) = cells.first_chunk::<SLICE_COLUMNS>().filter(|_| kind == Kind::Slices) else {
            return self.rows.row(kind, cells);
        };
        let mut slice = *slice;
        let number = |place: usize| match slice[place] {
            Cell::Integer(value) => Some(value),
            _ => None,
        };
        let length = length_of(number(slices::TS), number(slices::DUR));
        let nested = self.places.next(length.filter(|_| slice[slices::ASYNC_ID] == Cell::Null))?;
        for (place, value) in slices::NESTED.into_iter().zip(nested) {
            slice[place] = value.map_or(Cell::Null, |value| Cell::Integer(value as i64));
        }
        self.rows.row(kind, &slice)
    }
}
