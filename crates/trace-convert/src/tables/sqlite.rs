//! Tables in a database, and queries of it.
//= docs/tables.md#questions

mod guard;

use super::{Cell, Kind, Rows, TABLES, Type, fill};
use crate::{ConvertError, Filter, Summary};
use guard::Guard;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Batch, Connection, ToSql, params_from_iter};
use std::io::{self, Read};
use trace_reader::Disorder;

/// Memory that the database may use as a cache.
const CACHE_KIB: i64 = 64 << 10;

/// A database of one trace, in a temporary file that is deleted with it.
pub struct Database {
    connection: Connection,
    guard: Guard,
}

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// It is not valid.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// It would do something other than reading the trace.
    #[error("{0} is refused: statements may read the trace, and make views and indexes")]
    Refused(String),
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

/// The statements that create the tables.
#[must_use]
pub fn schema() -> String {
    TABLES
        .map(|table| {
            let columns: Vec<String> =
                table.columns.iter().map(|(name, of)| format!("{name} {}", type_name(*of))).collect();
            format!("CREATE TABLE {} ({});\n", table.name, columns.join(", "))
        })
        .concat()
}

fn other(error: rusqlite::Error) -> io::Error {
    io::Error::other(error)
}

struct Inserts<'a> {
    connection: &'a Connection,
    statements: Vec<String>,
}

struct Bound<'a>(Cell<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Cell::Null => ValueRef::Null,
            Cell::Integer(value) => ValueRef::Integer(value),
            // Numbers are signed with 63 bits here.
            Cell::Unsigned(value) => ValueRef::Integer(value as i64),
            Cell::Double(value) => ValueRef::Real(value),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl Rows for Inserts<'_> {
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        let mut statement = self.connection.prepare_cached(&self.statements[kind as usize]).map_err(other)?;
        statement.execute(params_from_iter(cells.iter().map(|cell| Bound(*cell)))).map_err(other)?;
        Ok(())
    }
}

impl Database {
    /// Fills a database with an archive, after an earlier pass has found its disorder.
    ///
    /// # Errors
    /// The input is no archive or cannot be read, or there is no room for the database.
    pub fn of_archive(input: impl Read, disorder: &Disorder) -> Result<(Self, Summary), ConvertError> {
        let failed = |error: rusqlite::Error| ConvertError::Write(other(error));
        // Without a name it is a temporary file.
        let mut connection = Connection::open("").map_err(failed)?;
        connection
            .execute_batch(&format!(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{CACHE_KIB}; {}BEGIN;",
                schema()
            ))
            .map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(TABLES.len());
        let statements = TABLES
            .map(|table| {
                let places = vec!["?"; table.columns.len()].join(", ");
                format!("INSERT INTO {} VALUES ({places})", table.name)
            })
            .to_vec();
        let mut inserts = Inserts { connection: &connection, statements };
        let summary = fill(input, disorder, &mut inserts, Filter::default())?;
        connection.execute_batch("COMMIT;").map_err(failed)?;
        let guard = Guard::watch(&mut connection).map_err(failed)?;
        Ok((Self { connection, guard }, summary))
    }

    /// Runs statements, one after the other. They may read the trace, and create views and indexes.
    ///
    /// # Errors
    /// One of them is invalid, or would do anything else; or a result cannot be written.
    pub fn ask(&self, sql: &str, answers: &mut impl Answers) -> Result<(), AskError> {
        self.run(sql, answers).map_err(|error| match error {
            AskError::Query(QueryError::Sql(error)) => AskError::Query(self.guard.explain(error)),
            error => error,
        })
    }

    fn run(&self, sql: &str, answers: &mut impl Answers) -> Result<(), AskError> {
        let mut batch = Batch::new(&self.connection, sql);
        while let Some(mut statement) = batch.next()? {
            let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
            let mut rows = statement.query([])?;
            if columns.is_empty() {
                while rows.next()?.is_some() {}
                continue;
            }
            answers.begin(&columns).map_err(AskError::Write)?;
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
            answers.end().map_err(AskError::Write)?;
        }
        Ok(())
    }
}
