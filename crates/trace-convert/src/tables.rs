//! A trace as tables: a row for each slice, instant, counter value, flow event, thread, stretch of running,
//! wakeup, log entry, loss, provider, alert, sample, function of a stack and blob, and one for the trace.
//!
//! Rows come as soon as they are complete. Memory holds the threads, and the spans that are open.
//= docs/tables.md#tables

mod chosen;
mod csv;
mod intervals;
#[cfg(feature = "parquet")]
mod order;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
mod spans;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "only the database asks for single values"))]
mod store;

pub use chosen::ChosenRows;
pub use csv::{Csv, Texts as CsvTexts, text as csv_text, write_csv};
pub use intervals::{Intervals, RowOrder};
#[cfg(feature = "parquet")]
pub use parquet::{SCHEMA_VERSION, write_parquet};
pub use rows::{FirstPass, Origin, fill, fill_in_order, origin};
pub use store::{Opener, Trace, fill_whole};

use std::io;

/// The type of a column. Any value may be missing unless documented otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 64 bits with a sign.
    Integer,
    /// 64 bits without a sign.
    Unsigned,
    /// A double.
    Double,
    /// UTF-8.
    Text,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// None.
    Null,
    /// 64 bits with a sign.
    Integer(i64),
    /// 64 bits without a sign.
    Unsigned(u64),
    /// A double.
    Double(f64),
    /// Text.
    Text(&'a str),
}

macro_rules! cells_of {
    ($($of:ty => $cell:ident),+) => {$(
        impl<'a> From<Option<$of>> for Cell<'a> {
            #[inline]
            fn from(value: Option<$of>) -> Self {
                value.map_or(Self::Null, Self::$cell)
            }
        }
    )+};
}

cells_of!(i64 => Integer, u64 => Unsigned, f64 => Double, &'a str => Text);

impl<'a> Cell<'a> {
    /// A whole number; 0 for one below.
    #[inline]
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match *self {
            Self::Integer(value) => Some(value.max(0) as u64),
            Self::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    /// A whole number; 0 for anything else.
    #[inline]
    #[must_use]
    pub fn or_zero(&self) -> u64 {
        self.number().unwrap_or_default()
    }

    /// A text; an empty one for anything else.
    #[inline]
    #[must_use]
    pub const fn text(&self) -> &'a str {
        if let Self::Text(text) = *self { text } else { "" }
    }

    /// The number of its type, and a word: the bits of its value, or the length of its text.
    #[inline]
    pub(crate) const fn encoded(&self) -> (u8, u64) {
        match *self {
            Self::Null => (0, 0),
            Self::Integer(value) => (1, value as u64),
            Self::Unsigned(value) => (2, value),
            Self::Double(value) => (3, value.to_bits()),
            Self::Text(text) => (4, text.len() as u64),
        }
    }

    /// The first cells of a row.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn first<const N: usize>(cells: &[Self]) -> io::Result<&[Self; N]> {
        cells.first_chunk().ok_or_else(|| io::Error::other("a row has too few cells"))
    }
}

/// A table's name and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Names and types of its columns, in order.
    pub columns: &'static [(&'static str, Type)],
}

/// Declares tables: each with the name of its kind and its own, and its columns with their types.
macro_rules! tables {
    ($($(#[$of_kind:meta])* $kind:ident = $name:literal { $($column:ident: $of:ident,)+ })+) => {
        /// The tables.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$of_kind])* $kind,)+
        }

        impl Kind {
            /// All tables.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];
        }

        /// All tables, in the order of [`Kind`].
        //= docs/tables.md#tables
        pub const TABLES: [Table; Kind::ALL.len()] = [
            $(Table { name: $name, columns: &[$((stringify!($column), Type::$of)),+] },)+
        ];
    };
}

tables! {
    /// Durations, of threads and asynchronous.
    Slices = "slices" {
        ts: Integer,
        dur: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        category: Text,
        name: Text,
        async_id: Unsigned,
        args: Text,
        id: Integer,
        parent_id: Integer,
        depth: Integer,
        self_dur: Integer,
        thread_id: Integer,
        program_id: Integer,
        ts_utc: Integer,
        kind: Text,
        operation_id: Unsigned,
        parent_operation_id: Unsigned,
        end_reason: Text,
    }
    /// Points in time.
    Instants = "instants" {
        ts: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        category: Text,
        name: Text,
        scope: Text,
        async_id: Unsigned,
        args: Text,
        ts_utc: Integer,
    }
    /// Values of counters.
    Counters = "counters" {
        ts: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        category: Text,
        name: Text,
        counter_id: Unsigned,
        series: Text,
        value: Double,
        integer: Integer,
        ts_utc: Integer,
    }
    /// Begins, steps and ends of flows.
    Flows = "flows" {
        ts: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        category: Text,
        name: Text,
        flow_id: Unsigned,
        phase: Text,
        args: Text,
        ts_utc: Integer,
    }
    /// Threads and their names.
    Threads = "threads" {
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        id: Integer,
    }
    /// Which thread a CPU ran, and for how long.
    Sched = "sched" {
        ts: Integer,
        dur: Integer,
        cpu: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        prio: Integer,
        end_state: Text,
        ts_utc: Integer,
    }
    /// When threads became ready to run.
    Wakeups = "wakeups" {
        ts: Integer,
        cpu: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        prio: Integer,
        waker: Unsigned,
        ts_utc: Integer,
    }
    /// Log entries.
    Logs = "logs" {
        ts: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        message: Text,
        ts_utc: Integer,
    }
    /// What is missing.
    Losses = "losses" {
        first_ts: Integer,
        last_ts: Integer,
        program_id: Integer,
        reason: Text,
        count: Integer,
    }
    /// Programs and how their records add up.
    Programs = "programs" {
        id: Integer,
        name: Text,
        generated: Integer,
        archived: Integer,
        lost: Integer,
        pid: Unsigned,
        parent_pid: Unsigned,
        command_line: Text,
        start_ts: Integer,
        end_ts: Integer,
        end_reason: Text,
    }
    /// Alerts that programs raised.
    Alerts = "alerts" {
        ts: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        name: Text,
        ts_utc: Integer,
    }
    /// The trace itself: where, when and how it was recorded, and how its records add up.
    Traces = "traces" {
        host: Text,
        boot_id: Text,
        kernel: Text,
        command_line: Text,
        version: Text,
        categories: Text,
        mode: Text,
        clock_source: Text,
        ticks_per_second: Integer,
        start_ts: Integer,
        end_ts: Integer,
        start_utc: Integer,
        end_utc: Integer,
        utc_offset: Integer,
        generated: Integer,
        archived: Integer,
        lost: Integer,
        balanced: Integer,
        instant_cost_ns: Double,
        duration_cost_ns: Double,
        counter_cost_ns: Double,
    }
    /// Samples of profiles: where threads were.
    Samples = "samples" {
        ts: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        stack_id: Integer,
        function: Text,
        ts_utc: Integer,
    }
    /// The stacks of samples, a row for each function in one.
    Stacks = "stacks" {
        id: Integer,
        depth: Integer,
        address: Unsigned,
        function: Text,
        module: Text,
    }
    /// Blobs.
    Blobs = "blobs" {
        ts: Integer,
        pid: Unsigned,
        tid: Unsigned,
        process: Text,
        thread: Text,
        program_id: Integer,
        category: Text,
        name: Text,
        type: Text,
        size: Integer,
        content: Text,
        ts_utc: Integer,
    }
}

/// Columns of `slices` that follow from the other slices of the thread.
pub(crate) mod slices {
    pub const TS: usize = 0;
    pub const DUR: usize = 1;
    pub const ASYNC_ID: usize = 8;
    pub const PARENT_ID: usize = 11;
    pub const DEPTH: usize = 12;
    pub const SELF_DUR: usize = 13;
    /// What says how slices are in each other.
    pub const NESTED: [usize; 3] = [PARENT_ID, DEPTH, SELF_DUR];
    pub const THREAD_ID: usize = 14;
    /// Not a column: what [`Rows::pair`](super::Rows::pair) says, from 1, and 0 for a slice with one record.
    pub const PAIR: usize = super::Kind::Slices.table().columns.len();
}

/// Columns of `samples` that are made only where they are used.
pub(crate) mod samples {
    pub const FUNCTION: usize = 6;
}

/// The same of `blobs`.
pub(crate) mod blobs {
    pub const CONTENT: usize = 10;
}

/// The number of tables.
const KINDS: usize = TABLES.len();

impl Kind {
    /// Its name and columns.
    #[must_use]
    pub const fn table(self) -> &'static Table {
        &TABLES[self as usize]
    }

    /// The cell of a row in a column; none if there is no such column.
    #[must_use]
    pub fn cell<'a>(self, cells: &[Cell<'a>], name: &str) -> Cell<'a> {
        self.table().place(name).and_then(|place| cells.get(place)).copied().unwrap_or(Cell::Null)
    }
}

impl Table {
    /// The place of a column.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(column, _)| *column == name)
    }
}

/// What is used of the tables: a set of columns for each. A table of which no column is used may be used for
/// its number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSet([u64; KINDS]);

/// A table's rows.
const ROWS: u64 = 1 << 63;

impl ColumnSet {
    /// Everything.
    pub const ALL: Self = Self([u64::MAX; KINDS]);
    /// Nothing.
    pub const NONE: Self = Self([0; KINDS]);

    /// Adds columns of a table, by their bits, and its rows.
    pub fn add(&mut self, kind: Kind, columns: u64) {
        self.0[kind as usize] |= columns | ROWS;
    }

    /// Adds columns of a table, by their names, and its rows.
    pub fn add_named(&mut self, kind: Kind, names: &[&str]) {
        let places = names.iter().filter_map(|name| kind.table().place(name));
        self.add(kind, places.fold(0, |bits, place| bits | 1 << place));
    }

    /// Adds all of a table.
    pub fn add_all(&mut self, kind: Kind) {
        self.add(kind, u64::MAX);
    }

    /// Whether rows of a table are used.
    #[must_use]
    pub fn has(&self, kind: Kind) -> bool {
        self.0[kind as usize] & ROWS != 0
    }

    /// Whether any of its columns is.
    #[must_use]
    pub fn has_columns(&self, kind: Kind) -> bool {
        self.0[kind as usize] & !ROWS != 0
    }

    /// Whether a column is.
    #[must_use]
    pub fn has_column(&self, kind: Kind, place: usize) -> bool {
        self.0[kind as usize] & 1 << place != 0
    }

    fn has_any_of(&self, kind: Kind, names: &[&str]) -> bool {
        let is_wanted =
            |(place, (name, _)): (usize, &(&str, Type))| names.contains(name) && self.has_column(kind, place);
        kind.table().columns.iter().enumerate().any(is_wanted)
    }
}

/// A destination of rows.
pub trait Rows {
    /// What is used of the rows. Cells of other columns may be missing.
    fn wanted(&self) -> ColumnSet {
        ColumnSet::ALL
    }

    /// Whether all columns of all tables are used, so that it is faster to make all cells at once.
    fn takes_all(&self) -> bool {
        false
    }

    /// The next row is a slice that a begin and an end have made, between which there were so many rows of
    /// slices. Where slices are in each other depends on it.
    fn pair(&mut self, _rows: u64) {}

    /// Adds a row, with a cell for each column; without any if none is used.
    ///
    /// # Errors
    /// It cannot be written.
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()>;

    /// Adds a row of `N` columns, whose cells are made only where they are used.
    ///
    /// # Errors
    /// It cannot be written.
    #[inline]
    fn row_of<'c, const N: usize>(&mut self, kind: Kind, cell: impl Fn(usize) -> Cell<'c>) -> io::Result<()>
    where
        Self: Sized,
    {
        let cells: [Cell<'_>; N] = std::array::from_fn(cell);
        self.row(kind, &cells)
    }
}

/// What a series of a counter is called: by the counter, by its own name if that is another one, and by the
/// counter's id if that is not 0.
#[must_use]
pub fn series_title(counter: &str, series: &str, id: u64) -> String {
    let mut title = counter.to_owned();
    if !series.is_empty() && series != counter {
        title += &format!(":{series}");
    }
    if id != 0 {
        title += &format!(":{id}");
    }
    title
}

#[cfg(test)]
mod tests;
