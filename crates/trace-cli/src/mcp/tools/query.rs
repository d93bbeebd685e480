//! `query`: SQL.

use super::{Arguments, page};
use crate::mcp::archive::Open;

/// Longest statement.
const MAX_SQL_BYTES: usize = 64 << 10;

pub fn call(open: &mut Open, arguments: &Arguments<'_>) -> Result<String, String> {
    let sql = arguments.required("sql")?;
    if sql.len() > MAX_SQL_BYTES {
        return Err(format!("sql: a statement has at most {MAX_SQL_BYTES} bytes"));
    }
    let archive = open.archive(arguments.required("trace")?)?;
    page(&archive, arguments, sql, archive.answer(archive.whole(), Some(sql)), 0)
}
