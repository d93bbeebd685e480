//! The tables as SQLite's virtual tables: the only place with unsafe code, because SQLite casts pointers to
//! the first members of [`Table`] and [`Cursor`] to pointers to the whole. Both are `repr(C)` for that, and
//! begin with the member that SQLite knows.
#![allow(unsafe_code)]

use super::plan::{self, Comparison, END, Plan, TRACE, Term};
use super::scan::{Scan, Shared, Value};
use super::type_name;
use crate::tables::Kind;
use rusqlite::ffi::{sqlite3_vtab, sqlite3_vtab_cursor};
use rusqlite::types::Null;
use rusqlite::vtab::{
    Context, DistinctMode, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection,
    VTabCursor,
};
use rusqlite::{Connection, Error, Result};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::io;
use std::sync::Arc;

/// What every table is made with.
pub struct Parts {
    pub shared: Arc<Shared>,
    pub kind: Kind,
    /// Whether `SELECT *` has the trace's name.
    pub has_traces: bool,
    /// How many rows there may be, as far as is known; none if they may be any number.
    pub rows: Option<u64>,
}

/// Rows that are sorted in memory for a grouping.
const MAX_GROUPED: u64 = 4_000_000;
/// What is assumed where nothing is known.
const USUAL_ROWS: u64 = 1_000_000;

/// Gives a connection the tables.
pub fn load(connection: &Connection, parts: impl Fn(Kind) -> Parts) -> Result<()> {
    const MODULE: Module<'static, Table> = Module::eponymous_only_module();
    Kind::ALL.into_iter().try_for_each(|kind| {
        connection.create_module(kind.table().name, &MODULE, Some(Arc::new(parts(kind))))
    })
}

fn failed(error: io::Error) -> Error {
    Error::ModuleError(error.to_string())
}

/// A table.
#[repr(C)]
struct Table {
    base: sqlite3_vtab,
    parts: Arc<Parts>,
}

/// A scan of it.
#[repr(C)]
struct Cursor {
    base: sqlite3_vtab_cursor,
    scan: Scan,
}

fn declaration(parts: &Parts) -> String {
    let table = parts.kind.table();
    let own = table.columns.iter().map(|(name, of)| format!("{name} {}", type_name(*of)));
    let trace = format!("{TRACE} TEXT{}", if parts.has_traces { "" } else { " HIDDEN" });
    let end = plan::has_end(parts.kind).then(|| format!("{END} INTEGER HIDDEN"));
    let columns: Vec<String> = own.chain([trace]).chain(end).collect();
    format!("CREATE TABLE {} ({})", table.name, columns.join(", "))
}

fn comparison(operator: IndexConstraintOp) -> Option<Comparison> {
    Some(match operator {
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Comparison::Equal,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Comparison::Less,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Comparison::AtMost,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Comparison::Greater,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Comparison::AtLeast,
        _ => return None,
    })
}

// SAFETY: the struct is `repr(C)` and begins with `sqlite3_vtab`.
unsafe impl<'vtab> VTab<'vtab> for Table {
    type Aux = Arc<Parts>;
    type Cursor = Cursor;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _module: &[u8],
        _database: &[u8],
        _table: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let parts = aux.ok_or_else(|| Error::ModuleError("a table without parts".to_owned()))?.clone();
        // Views may use it.
        db.config(VTabConfig::Innocuous)?;
        let declaration = CString::new(declaration(&parts))?;
        Ok((Cow::Owned(declaration), Self { base: sqlite3_vtab::default(), parts }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let Parts { shared, kind, rows, .. } = &*self.parts;
        let mut scan = Plan { used: plan::needed(*kind, info.col_used()), ..Plan::default() };
        shared.store().want(*kind, scan.used);
        // Columns that come later are not in them.
        shared.forget_indexes();
        let mut arguments = Vec::new();
        for (number, constraint) in info.constraints().enumerate() {
            let Ok(place) = usize::try_from(constraint.column()) else { continue };
            let Some(comparison) = comparison(constraint.operator()) else { continue };
            let term = Term { place, comparison };
            let is_binary = info.collation(number).is_ok_and(|name| name == "BINARY");
            if constraint.is_usable() && is_binary && plan::is_testable(*kind, term) {
                scan.terms.push(term);
                arguments.push(number);
            }
        }
        let is_grouping = matches!(info.distinct(), DistinctMode::Grouped | DistinctMode::Distinct);
        let groups: Option<Vec<usize>> = info
            .order_bys()
            .map(|by| usize::try_from(by.column()).ok().filter(|place| plan::is_groupable(*kind, *place)))
            .collect();
        if let Some(groups) = groups.filter(|groups| !groups.is_empty())
            && is_grouping
            && rows.is_some_and(|rows| rows <= MAX_GROUPED)
        {
            scan.groups = groups;
            info.set_order_by_consumed(true);
        }
        for (argument, number) in (1..).zip(arguments) {
            info.constraint_usage(number).set_argv_index(argument);
        }
        let share: f64 = scan.terms.iter().map(|term| plan::share(*kind, *term)).product();
        let found = (rows.unwrap_or(USUAL_ROWS) as f64 * share).max(1.0);
        info.set_estimated_rows(found as i64);
        info.set_estimated_cost(found + 10.0);
        info.set_idx_str(&scan.encode());
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<Cursor> {
        let scan = Scan::new(self.parts.shared.clone(), self.parts.kind);
        Ok(Cursor { base: sqlite3_vtab_cursor::default(), scan })
    }
}

// SAFETY: the struct is `repr(C)` and begins with `sqlite3_vtab_cursor`.
unsafe impl VTabCursor for Cursor {
    fn filter(&mut self, _number: c_int, plan: Option<&str>, args: &Filters<'_>) -> Result<()> {
        self.scan.filter(plan.unwrap_or_default(), args.iter()).map_err(failed)
    }

    fn next(&mut self) -> Result<()> {
        self.scan.advance().map_err(failed)
    }

    fn eof(&self) -> bool {
        self.scan.is_over()
    }

    fn column(&self, context: &mut Context, place: c_int) -> Result<()> {
        match self.scan.value(place as usize).map_err(failed)? {
            Value::Null => context.set_result(Null),
            Value::Integer(value) => context.set_result(value),
            Value::Double(value) => context.set_result(value),
            Value::Text(text) => context.set_result(&*text),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.scan.row())
    }
}
