//! `query`: SQL.

use super::{Arguments, page};
use crate::mcp::archive::Open;
use crate::mcp::error::CallError;

/// Longest statement.
const MAX_SQL_BYTES: usize = 64 << 10;

pub fn call(open: &mut Open, arguments: &Arguments<'_>) -> Result<String, CallError> {
    let sql = arguments.required("sql")?;
    if sql.len() > MAX_SQL_BYTES {
        return Err(CallError::LongStatement { most: MAX_SQL_BYTES });
    }
    let archive = open.archive(arguments.required("trace")?)?;
    page(&archive, arguments, sql, archive.answer(archive.whole(), Some(sql)), 0)
}
