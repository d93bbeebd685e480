//! `compare`: which durations changed between two traces.

use super::Arguments;
use crate::mcp::answer::Answer;
use crate::mcp::archive::{Archive, Open};
use crate::mcp::error::CallError;
use serde_json::{Map, Value};
use trace_analysis::diff::{STATISTICS, changes};
use trace_analysis::stats::Spread;
use trace_convert::tables::Cell;

/// What names can be sorted by, in the order of the statistics.
pub const SORTS: [&str; 4] = ["total", "mean", "p99", "count"];

pub fn call(open: &mut Open, arguments: &Arguments<'_>) -> Result<String, CallError> {
    let sort = arguments.word("sort", &SORTS)?;
    let statistic = STATISTICS[SORTS.iter().position(|one| *one == sort).unwrap_or(0)];
    let before = open.archive(arguments.required("before")?)?;
    let after = open.archive(arguments.required("after")?)?;
    let of = [before.sha256.as_str(), after.sha256.as_str()];
    let cursor = arguments.cursor(&of);
    let first = cursor.row()?;
    let mut answer = Answer::new();
    answer.member("before", &described(&before));
    answer.member("after", &described(&after));
    let names = SORTS.iter().flat_map(|name| {
        let unit = if *name == "count" { "" } else { "_ns" };
        [format!("{name}_before{unit}"), format!("{name}_after{unit}")]
    });
    let names: Vec<String> =
        ["kind", "category", "name"].map(str::to_owned).into_iter().chain(names).collect();
    answer.columns(names.iter().map(String::as_str));
    let changes = changes(&before.stats, &after.stats, statistic);
    let mut next = None;
    for (row, change) in (0..).zip(&changes).skip(usize::try_from(first).unwrap_or(usize::MAX)) {
        let kind = if change.is_operation { "operation" } else { "duration" };
        let mut cells = vec![Cell::Text(kind), Cell::Text(change.category), Cell::Text(change.name)];
        for statistic in STATISTICS {
            let cell = |spread: Option<&Spread>| match spread {
                // Of none in the other trace there is no number.
                None => Cell::Null,
                Some(spread) => Cell::Integer(statistic.or_zero(Some(spread)).round() as i64),
            };
            cells.extend([cell(change.before), cell(change.after)]);
        }
        if !answer.row(&cells) {
            next = Some(cursor.encode(row));
            break;
        }
    }
    Ok(answer.finish(next))
}

fn described(archive: &Archive) -> Value {
    let mut members = Map::new();
    archive.describe(archive.whole(), |name, value| {
        members.insert(name.to_owned(), value.clone());
    });
    members.into()
}
