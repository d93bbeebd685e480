//! The tables as SQLite's virtual tables: the only place with unsafe code, because SQLite casts pointers to
//! the first members of [`Table`] and [`Cursor`] to pointers to the whole. Both are `repr(C)` for that, and
//! begin with the member that SQLite knows.
#![allow(unsafe_code)]

use super::plan::{self, Comparison, END, Plan, TRACE, Term};
use super::scan::{Scan, Shared, Value};
use super::type_name;
use crate::tables::Kind;
use rusqlite::ffi::{self, sqlite3_context, sqlite3_module, sqlite3_vtab, sqlite3_vtab_cursor};
use rusqlite::vtab::{
    Context, DistinctMode, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection,
    VTabCursor,
};
use rusqlite::{Connection, Error, Result};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::io;
use std::mem::transmute;
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

/// What is assumed where nothing is known.
const USUAL_ROWS: u64 = 1_000_000;

/// Gives a connection the tables.
pub fn load(connection: &Connection, parts: impl Fn(Kind) -> Parts) -> Result<()> {
    const MODULE: Module<'static, Table> = module();
    Kind::ALL.into_iter().try_for_each(|kind| {
        connection.create_module(kind.table().name, &MODULE, Some(Arc::new(parts(kind))))
    })
}

/// The functions of a table, two of which are called for each row: rusqlite's own would be a third of a
/// statement's instructions.
const fn module() -> Module<'static, Table> {
    // SAFETY: `Module` is transparent, around a `sqlite3_module` with the functions of `Table`. The functions
    // that replace two of them take pointers to the same type, `Cursor`.
    unsafe {
        let mut module: sqlite3_module = transmute(Module::<'static, Table>::eponymous_only_module());
        module.xColumn = Some(column);
        module.xNext = Some(next);
        transmute(module)
    }
}

/// Sets the message of an error that SQLite asks a table for.
#[cold]
unsafe fn complain(table: *mut sqlite3_vtab, error: &io::Error) -> c_int {
    let text = CString::new(error.to_string()).unwrap_or_default();
    // SAFETY: the table is SQLite's, which frees the message that it gets from its own allocator.
    unsafe {
        ffi::sqlite3_free((*table).zErrMsg.cast());
        (*table).zErrMsg = ffi::sqlite3_mprintf(c"%s".as_ptr(), text.as_ptr());
    }
    ffi::SQLITE_ERROR
}

// SAFETY: SQLite alone calls it, with a cursor that `open` has made.
unsafe extern "C" fn next(cursor: *mut sqlite3_vtab_cursor) -> c_int {
    // SAFETY: SQLite passes what `open` has made, which nothing else uses meanwhile.
    let cursor = unsafe { &mut *cursor.cast::<Cursor>() };
    match cursor.scan.advance() {
        Ok(()) => ffi::SQLITE_OK,
        // SAFETY: the table of a cursor is there as long as the cursor.
        Err(error) => unsafe { complain(cursor.base.pVtab, &error) },
    }
}

// SAFETY: SQLite alone calls it, with a cursor that `open` has made and a context for the result.
unsafe extern "C" fn column(
    cursor: *mut sqlite3_vtab_cursor,
    context: *mut sqlite3_context,
    place: c_int,
) -> c_int {
    // SAFETY: SQLite passes what `open` has made, which nothing else uses meanwhile, and a context for the
    // result.
    unsafe {
        let cursor = &mut *cursor.cast::<Cursor>();
        match cursor.scan.quick_value(place as usize) {
            Some(value) => set(context, &value),
            None => return slow_column(cursor, context, place),
        }
    }
    ffi::SQLITE_OK
}

#[inline(never)]
unsafe fn slow_column(cursor: &mut Cursor, context: *mut sqlite3_context, place: c_int) -> c_int {
    match cursor.scan.value(place as usize) {
        // SAFETY: the caller has a context.
        Ok(value) => unsafe { set(context, &value) },
        Err(error) => {
            let text = CString::new(error.to_string()).unwrap_or_default();
            // SAFETY: the caller has a context, and SQLite copies the text.
            unsafe { ffi::sqlite3_result_error(context, text.as_ptr(), -1) };
            return ffi::SQLITE_ERROR;
        }
    }
    ffi::SQLITE_OK
}

/// Sets a result.
#[inline(always)]
unsafe fn set(context: *mut sqlite3_context, value: &Value<'_>) {
    let text = |text: &str, destructor| {
        let (start, bytes) = (text.as_ptr().cast(), text.len() as u64);
        // SAFETY: the caller has a context. A text that is not kept is copied before the function returns.
        // The
        // others have allocations of their own, which `Texts` never frees: they are there as long as the
        // traces, in which the module has a part, and the module is there as long as the connection.
        unsafe { ffi::sqlite3_result_text64(context, start, bytes, destructor, ffi::SQLITE_UTF8 as u8) }
    };
    // SAFETY: the caller has a context.
    unsafe {
        match value {
            Value::Null => {}
            Value::Integer(value) => ffi::sqlite3_result_int64(context, *value),
            Value::Double(value) => ffi::sqlite3_result_double(context, *value),
            Value::Kept(value) => text(value, ffi::SQLITE_STATIC()),
            Value::Text(value) => text(value, ffi::SQLITE_TRANSIENT()),
        }
    }
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
        shared.store().want(*kind, scan.used | shared.selections.needed(*kind));
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

    // SQLite calls the function that has replaced this one.
    fn column(&self, _context: &mut Context, _place: c_int) -> Result<()> {
        Ok(())
    }

    fn rowid(&self) -> Result<i64> {
        self.scan.row().map_err(failed)
    }
}
