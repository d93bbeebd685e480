//! `overview`: what a trace has, or which traces there are.

use super::{Arguments, page};
use crate::mcp::answer::{Answer, shown, shown_within};
use crate::mcp::archive::{Archive, Open};
use crate::mcp::error::CallError;
use serde_json::Value;
use trace_convert::tables::Cell;

/// Processes and categories, with how much there is of each.
const SQL: &str = "WITH e AS (SELECT 's' AS t, category, pid, tid, process, dur FROM slices UNION ALL \
    SELECT 'i', category, pid, tid, process, NULL FROM instants UNION ALL \
    SELECT 'c', category, pid, tid, process, NULL FROM counters UNION ALL \
    SELECT 'f', category, pid, tid, process, NULL FROM flows UNION ALL \
    SELECT 't', NULL, pid, tid, process, NULL FROM threads) \
    SELECT * FROM (SELECT 'process' AS what, max(process) AS name, pid, count(DISTINCT tid) AS threads, sum(t = 's') AS slices, \
    sum(t = 'i') AS instants, sum(t = 'c') AS counters, sum(t = 'f') AS flows, sum(dur) AS total_ns \
    FROM e GROUP BY pid UNION ALL \
    SELECT 'category', category, NULL, count(DISTINCT pid || ':' || tid), sum(t = 's'), sum(t = 'i'), sum(t = 'c'), \
    sum(t = 'f'), sum(dur) FROM e WHERE t <> 't' GROUP BY category) \
    ORDER BY what DESC, slices + instants + counters + flows DESC, name, pid";

pub fn call(open: &mut Open, arguments: &Arguments<'_>, note: Option<&str>) -> Result<String, CallError> {
    let Some(trace) = arguments.text("trace")? else { return list(open, arguments) };
    let archive = open.archive(trace)?;
    let mut answer = archive.answer(archive.whole(), Some(SQL));
    if let Some(note) = note {
        answer.member("recorded", &shown_within(note, 600).into());
    }
    let walked = &archive.stats.walked;
    answer.member("duration_ns", &walked.times.map(|(first, last)| last.saturating_sub(first)).into());
    answer.member("events", &walked.events.into());
    answer.member("bytes", &walked.bytes.into());
    let warnings = warnings(&archive);
    if !warnings.is_empty() {
        answer.member("warnings", &shown_within(&warnings.join("; "), 400).into());
    }
    page(&archive, arguments, SQL, answer, 0)
}

fn warnings(archive: &Archive) -> Vec<String> {
    let walked = &archive.stats.walked;
    let mut warnings = Vec::new();
    for (count, what) in [
        (walked.unmatched_ends, "ends without a beginning"),
        (walked.dropped_begins, "spans beyond those that can be open"),
        (walked.other_names, "events of names that are too many to distinguish"),
    ] {
        if count > 0 {
            warnings.push(format!("{count} {what}"));
        }
    }
    for summary in archive.database.summaries() {
        warnings.extend(summary.first_warnings.iter().map(|text| shown(text, 100)));
    }
    warnings
}

/// The traces that can be asked about.
fn list(open: &Open, arguments: &Arguments<'_>) -> Result<String, CallError> {
    let cursor = arguments.cursor(&[]);
    let first = cursor.row()?;
    let (found, may_be_more) = open.jail().list();
    let mut answer = Answer::new();
    let paths = open.jail().paths().map(|path| shown_within(&path.to_string_lossy(), 200));
    answer.member("directories", &paths.take(5).collect::<Vec<_>>().into());
    if may_be_more {
        answer.member("incomplete", &Value::from("there are too many files; name a trace by its path"));
    }
    answer.columns(["trace", "bytes", "modified_s"]);
    let mut next = None;
    for (row, listed) in (0..).zip(&found).skip(usize::try_from(first).unwrap_or(usize::MAX)) {
        let bytes = Cell::Unsigned(listed.bytes);
        if !answer.row(&[Cell::Text(&listed.path), bytes, Cell::Integer(listed.modified_s)]) {
            next = Some(cursor.encode(row));
            break;
        }
    }
    Ok(answer.finish(next))
}
