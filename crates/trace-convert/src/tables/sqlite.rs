//! Questions to traces, in SQL.
//!
//! SQLite asks for rows of tables that it does not store: of columns that are filled from the traces when a
//! statement first needs them.
//= docs/tables.md#questions

mod aggregates;
#[cfg(test)]
mod generated;
mod grouped;
mod guard;
mod index;
mod plan;
mod scan;
mod selected;
mod views;
mod virtual_table;

use super::store::{Limits, Store};
use super::{Cell, Kind, TABLES, Table, Trace, Type};
use crate::{ConvertError, Filter, Summary};
use guard::Guard;
use plan::TRACE;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Rows, Statement};
use scan::Shared;
use selected::Selections;
use std::io;
use std::path::Path;
use std::sync::Arc;
pub use views::{VIEWS, View};
use virtual_table::Parts;

/// Memory that the database may use as a cache, for temporary tables and for what SQLite sorts.
const CACHE_KIB: i64 = 16 << 10;
/// Longest text that a statement may make.
const MAX_VALUE_BYTES: i32 = 64 << 20;
/// Nearly no row is made of fewer bytes of an archive.
const MIN_RECORD_BYTES: u64 = 32;

/// The tables of some traces.
pub struct Database {
    connection: Connection,
    guard: Guard,
    shared: Arc<Shared>,
}

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// It is not valid.
    #[error("{}", in_short(.0))]
    Sql(#[from] rusqlite::Error),
    /// It would do something other than reading the trace.
    #[error("{0} is refused: statements may read the trace and create views and temporary tables")]
    Refused(String),
    /// It is not one statement.
    #[error("expected one statement, found {0}")]
    Statements(&'static str),
    /// It does more than reading.
    #[error("the statement does more than read: expected SELECT, WITH or VALUES")]
    NotReading,
}

/// Longest part of a statement in a message, in characters.
const MAX_QUOTED: usize = 60;

/// An error without the statements that follow the place.
fn in_short(error: &rusqlite::Error) -> String {
    let rusqlite::Error::SqlInputError { msg, sql, offset, .. } = error else {
        return error.to_string();
    };
    let rest = usize::try_from(*offset).ok().and_then(|offset| sql.get(offset..)).unwrap_or_default();
    let line = rest.split(['\n', ';']).next().unwrap_or_default().trim_end();
    let quoted: String = line.chars().take(MAX_QUOTED).collect();
    let more = if quoted.len() < line.len() { "…" } else { "" };
    match quoted.is_empty() {
        true => msg.clone(),
        false => format!("{msg}, at: {quoted}{more}"),
    }
}

/// A recipient of query results.
pub trait Answers {
    /// A statement with these columns begins.
    ///
    /// # Errors
    /// It cannot be written.
    fn begin(&mut self, columns: &[String]) -> io::Result<()>;
    /// A row of it.
    ///
    /// # Errors
    /// It cannot be written.
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()>;
    /// The statement has no more rows.
    ///
    /// # Errors
    /// It cannot be written.
    fn end(&mut self) -> io::Result<()>;
}

/// Why queries were not completed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// A query failed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A trace cannot be read.
    #[error("{trace}")]
    Read {
        /// Its name.
        trace: String,
        /// Why.
        #[source]
        error: ConvertError,
    },
    /// The results cannot be written.
    #[error("cannot write")]
    Write(#[source] io::Error),
}

impl From<rusqlite::Error> for AskError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Query(QueryError::Sql(error))
    }
}

fn type_name(of: Type) -> &'static str {
    match of {
        Type::Integer | Type::Unsigned => "INTEGER",
        Type::Double => "REAL",
        Type::Text => "TEXT",
    }
}

fn definition(table: &Table, has_traces: bool) -> String {
    let columns = table.columns.iter().map(|(name, of)| format!("{name} {}", type_name(*of)));
    let trace = has_traces.then(|| format!("{TRACE} TEXT"));
    columns.chain(trace).collect::<Vec<String>>().join(", ")
}

/// The statements that would create the tables, and the columns of the views.
#[must_use]
pub fn schema() -> String {
    let tables =
        TABLES.map(|table| format!("CREATE TABLE {} ({});\n", table.name, definition(&table, false)));
    let views = VIEWS.map(|view| format!("-- the view {} ({})\n", view.name, view.columns.join(", ")));
    tables.concat() + &views.concat()
}

impl Database {
    /// The tables of traces, of which nothing is read yet.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn open(traces: Vec<Trace>) -> Result<Self, QueryError> {
        Self::open_selected(traces, Vec::new())
    }

    /// The same with the rows of each trace that a filter keeps.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn open_selected(traces: Vec<Trace>, filters: Vec<Filter>) -> Result<Self, QueryError> {
        Self::with_limits(traces, filters, Limits::default())
    }

    pub(super) fn with_limits(
        traces: Vec<Trace>,
        filters: Vec<Filter>,
        limits: Limits,
    ) -> Result<Self, QueryError> {
        // Without a name it is a temporary file.
        let mut connection = Connection::open("")?;
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{CACHE_KIB};"
        ))?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
        let has_traces = traces.len() > 1;
        let rows = traces.iter().map(|trace| trace.bytes.map(|bytes| bytes / MIN_RECORD_BYTES)).sum();
        let shared =
            Arc::new(Shared::new(Store::new(traces, Filter::default(), limits), Selections::new(filters)));
        let parts = |kind| Parts { shared: shared.clone(), kind, has_traces, rows };
        virtual_table::load(&connection, parts)?;
        aggregates::load(&connection)?;
        connection.execute_batch(&views::definitions("main", has_traces))?;
        let guard = Guard::watch(&mut connection)?;
        Ok(Self { connection, guard, shared })
    }

    /// Makes sure that all traces are archives, of which at least the beginning can be read: a statement may
    /// need none of them.
    ///
    /// # Errors
    /// One is not.
    pub fn probe(&self) -> Result<(), AskError> {
        self.shared.store().probe().map_err(|(trace, error)| AskError::Read { trace, error })
    }

    /// Ends with an error what is asked at that moment, from any thread.
    pub fn interrupter(&self) -> impl Fn() + Send + 'static {
        let handle = self.connection.get_interrupt_handle();
        move || handle.interrupt()
    }

    /// What was found when the traces were read; nothing if no statement has needed that.
    #[must_use]
    pub fn summaries(&self) -> Vec<Summary> {
        self.shared.store().summaries().to_vec()
    }

    /// Writes the tables to a new file of SQLite's, which has to be empty or missing.
    ///
    /// # Errors
    /// A trace cannot be read, or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), AskError> {
        self.guard.pause(|| self.copy(path)).map_err(|error| self.explain(error.into()))
    }

    fn copy(&self, path: &Path) -> rusqlite::Result<()> {
        let path = path.to_string_lossy();
        self.connection.execute("ATTACH ? AS saved", [path])?;
        // The file has another name until it is whole; a journal beside it would stay behind.
        self.connection.execute_batch("PRAGMA saved.journal_mode = OFF; PRAGMA saved.synchronous = OFF")?;
        for kind in Kind::ALL {
            let table = kind.table();
            let columns = definition(table, self.has_traces());
            // A table of the same name would stand for itself.
            self.connection.execute_batch(&format!(
                "CREATE TABLE saved.new ({columns}); INSERT INTO saved.new SELECT * FROM {0}; \
                 ALTER TABLE saved.new RENAME TO {0};",
                table.name
            ))?;
        }
        self.connection.execute_batch(&views::definitions("saved", self.has_traces()))?;
        self.connection.execute_batch("DETACH saved")
    }

    fn has_traces(&self) -> bool {
        self.shared.store().traces() > 1
    }

    /// The error of a trace, if that is what has led to this one.
    fn explain(&self, error: AskError) -> AskError {
        if let Some((trace, error)) = self.shared.store().error.take() {
            return AskError::Read { trace, error };
        }
        match error {
            AskError::Query(QueryError::Sql(error)) => AskError::Query(self.guard.explain(error)),
            error => error,
        }
    }

    /// Runs statements, one after the other. They may read the traces, and create views and temporary tables.
    ///
    /// # Errors
    /// One of them is invalid, or would do anything else; a trace cannot be read, or a result not be written.
    pub fn ask(&self, sql: &str, answers: &mut impl Answers) -> Result<(), AskError> {
        self.run(sql, answers).map_err(|error| self.explain(error))
    }

    fn run(&self, sql: &str, answers: &mut impl Answers) -> Result<(), AskError> {
        let mut batch = Batch::new(&self.connection, sql);
        while let Some(mut statement) = batch.next()? {
            answer(&mut statement, answers)?;
        }
        Ok(())
    }

    /// Runs one statement that reads the traces, and leaves nothing behind: no view, no temporary table.
    ///
    /// # Errors
    /// It is invalid, or something else; a trace cannot be read, or a result not be written.
    pub fn select(&self, sql: &str, answers: &mut impl Answers) -> Result<(), AskError> {
        self.run_one(sql, answers).map_err(|error| self.explain(error))
    }

    fn run_one(&self, sql: &str, answers: &mut impl Answers) -> Result<(), AskError> {
        let mut batch = Batch::new(&self.connection, sql);
        let Some(mut statement) = batch.next()? else {
            return Err(QueryError::Statements("none").into());
        };
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(QueryError::NotReading.into());
        }
        if batch.next()?.is_some() {
            return Err(QueryError::Statements("several").into());
        }
        answer(&mut statement, answers)
    }
}

/// Runs a statement.
fn answer(statement: &mut Statement<'_>, answers: &mut impl Answers) -> Result<(), AskError> {
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([])?;
    if columns.is_empty() {
        while rows.next()?.is_some() {}
        return Ok(());
    }
    pass_on(&mut rows, &columns, answers)
}

/// Passes on the rows of a statement.
fn pass_on(rows: &mut Rows<'_>, columns: &[String], answers: &mut impl Answers) -> Result<(), AskError> {
    answers.begin(columns).map_err(AskError::Write)?;
    while let Some(row) = rows.next()? {
        let mut texts = Vec::with_capacity(columns.len());
        for place in 0..columns.len() {
            texts.push(match row.get_ref(place)? {
                ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text),
                _ => std::borrow::Cow::Borrowed(""),
            });
        }
        let mut cells = Vec::with_capacity(columns.len());
        for (place, text) in texts.iter().enumerate() {
            cells.push(match row.get_ref(place)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(value) => Cell::Integer(value),
                ValueRef::Real(value) => Cell::Double(value),
                ValueRef::Text(_) | ValueRef::Blob(_) => Cell::Text(text),
            });
        }
        answers.row(&cells).map_err(AskError::Write)?;
    }
    answers.end().map_err(AskError::Write)
}
