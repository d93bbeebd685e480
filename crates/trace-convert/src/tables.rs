//! A trace as tables: a row for each slice, instant, counter value, flow event, thread, stretch of running,
//! wakeup and log entry.
//!
//! Rows come as soon as they are complete. Memory holds the threads, and the spans that are open.
//= docs/tables.md#tables

mod csv;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
mod spans;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use csv::{Csv, text as csv_text};
#[cfg(feature = "parquet")]
pub use parquet::Parquet;
pub use rows::fill;

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

/// A table's name and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Names and types of its columns, in order.
    pub columns: &'static [(&'static str, Type)],
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Durations, of threads and asynchronous.
    Slices,
    /// Points in time.
    Instants,
    /// Values of counters.
    Counters,
    /// Begins, steps and ends of flows.
    Flows,
    /// Threads and their names.
    Threads,
    /// Which thread a CPU ran, and for how long.
    Sched,
    /// When threads became ready to run.
    Wakeups,
    /// Log entries.
    Logs,
}

/// All tables, in the order of [`Kind`].
//= docs/tables.md#tables
pub const TABLES: [Table; 8] = {
    use Type::{Double, Integer, Text, Unsigned};
    [
        Table {
            name: "slices",
            columns: &[
                ("ts", Integer),
                ("dur", Integer),
                ("pid", Unsigned),
                ("tid", Unsigned),
                ("process", Text),
                ("thread", Text),
                ("category", Text),
                ("name", Text),
                ("async_id", Unsigned),
                ("args", Text),
            ],
        },
        Table {
            name: "instants",
            columns: &[
                ("ts", Integer),
                ("pid", Unsigned),
                ("tid", Unsigned),
                ("process", Text),
                ("thread", Text),
                ("category", Text),
                ("name", Text),
                ("scope", Text),
                ("async_id", Unsigned),
                ("args", Text),
            ],
        },
        Table {
            name: "counters",
            columns: &[
                ("ts", Integer),
                ("pid", Unsigned),
                ("tid", Unsigned),
                ("process", Text),
                ("thread", Text),
                ("category", Text),
                ("name", Text),
                ("counter_id", Unsigned),
                ("series", Text),
                ("value", Double),
                ("integer", Integer),
            ],
        },
        Table {
            name: "flows",
            columns: &[
                ("ts", Integer),
                ("pid", Unsigned),
                ("tid", Unsigned),
                ("process", Text),
                ("thread", Text),
                ("category", Text),
                ("name", Text),
                ("flow_id", Unsigned),
                ("phase", Text),
                ("args", Text),
            ],
        },
        Table {
            name: "threads",
            columns: &[("pid", Unsigned), ("tid", Unsigned), ("process", Text), ("thread", Text)],
        },
        Table {
            name: "sched",
            columns: &[
                ("ts", Integer),
                ("dur", Integer),
                ("cpu", Integer),
                ("pid", Unsigned),
                ("tid", Unsigned),
                ("process", Text),
                ("thread", Text),
                ("prio", Integer),
                ("end_state", Text),
            ],
        },
        Table {
            name: "wakeups",
            columns: &[
                ("ts", Integer),
                ("cpu", Integer),
                ("pid", Unsigned),
                ("tid", Unsigned),
                ("process", Text),
                ("thread", Text),
                ("prio", Integer),
                ("waker", Unsigned),
            ],
        },
        Table {
            name: "logs",
            columns: &[
                ("ts", Integer),
                ("pid", Unsigned),
                ("tid", Unsigned),
                ("process", Text),
                ("thread", Text),
                ("message", Text),
            ],
        },
    ]
};

impl Kind {
    /// Its name and columns.
    #[must_use]
    pub const fn table(self) -> &'static Table {
        &TABLES[self as usize]
    }
}

/// A destination of rows.
pub trait Rows {
    /// Adds a row, with a cell for each column.
    ///
    /// # Errors
    /// It cannot be written.
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()>;
}

#[cfg(test)]
mod tests;
