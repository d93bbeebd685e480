//! `top`: which names took the time.

use super::{Arguments, page};
use crate::mcp::archive::Open;
use crate::mcp::error::CallError;

/// What names can be sorted by.
pub const SORTS: [&str; 5] = ["total", "self", "count", "p99", "max"];

pub fn call(open: &mut Open, arguments: &Arguments<'_>) -> Result<String, CallError> {
    let sort = match arguments.word("sort", &SORTS)? {
        "count" => "count".to_owned(),
        column => format!("{column}_ns"),
    };
    let limit = match arguments.integer("limit")? {
        Some(limit) if limit < 1 => return Err(CallError::expected("limit", "at least 1")),
        Some(limit) => format!(" LIMIT {limit}"),
        None => String::new(),
    };
    let mut conditions = vec!["dur IS NOT NULL".to_owned()];
    conditions.extend(arguments.conditions()?);
    let archive = open.archive(arguments.required("trace")?)?;
    let window = arguments.window(&archive)?;
    if arguments.has_window() {
        conditions.push(format!("ts <= {} AND ts_end >= {}", window.to, window.from));
    }
    let sql = format!(
        "SELECT iif(kind = 'slice', 'duration', kind) AS kind, category, name, \
         count(*) AS count, sum(dur) AS total_ns, sum(self_dur) AS self_ns, \
         CAST(percentile(dur, 50) AS INTEGER) AS p50_ns, CAST(percentile(dur, 99) AS INTEGER) AS p99_ns, \
         max(dur) AS max_ns FROM slices WHERE {} GROUP BY 1, 2, 3 ORDER BY {sort} DESC, 2, 3, 1{limit}",
        conditions.join(" AND ")
    );
    page(&archive, arguments, &sql, archive.answer(window, Some(&sql)), 0)
}
