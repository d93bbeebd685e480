//! What `stats`, `assert` and `diff` share: reading, and texts for people.

use crate::files::input::{self, ImportReport, OpenFile, Scanned, name, open, scan_ends};
use crate::shell::exit::Failure;
use crate::shell::table;
use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use trace_analysis::counted::Counted;
use trace_analysis::losses::Losses;
use trace_analysis::walk::Walked;
use trace_convert::tables::CsvTexts;
use trace_format::shown::{Lasting, Shown};
use trace_model::{Chosen, Selection};
use trace_reader::{Disorder, ReadError};

/// How many rows people see unless they ask for more.
const ROWS: usize = 20;

/// Reads a trace in any format with a function, which gets what of the trace is selected, and returns what an
/// import has to report.
pub fn read<T>(
    path: &Path,
    what: &'static str,
    selection: &Selection,
    read: impl FnOnce(Box<dyn Read>, &Disorder, Option<Chosen>) -> Result<T, ReadError>,
) -> Result<(T, ImportReport), Failure> {
    read_file(open(path)?, path, what, selection, read)
}

/// The same of an open file, which errors call by a name.
pub fn read_file<T>(
    file: OpenFile,
    path: &Path,
    what: &'static str,
    selection: &Selection,
    read: impl FnOnce(Box<dyn Read>, &Disorder, Option<Chosen>) -> Result<T, ReadError>,
) -> Result<(T, ImportReport), Failure> {
    let (Scanned { archive, disorder, report, chosen }, bar) = scan_ends(file, path, what, selection)?;
    let result = read(archive, &disorder, chosen);
    bar.finish_and_clear();
    let result = result.map_err(|error| input::failed(path, &error))?;
    Ok((result, report))
}

/// What `--limit` allows of some rows, and what is not shown.
pub fn limited(limit: Option<usize>, is_for_people: bool, rows: usize) -> (usize, usize) {
    let shown = match limit {
        Some(0) => rows,
        Some(limit) => limit.min(rows),
        None if is_for_people => ROWS.min(rows),
        None => rows,
    };
    (shown, rows - shown)
}

/// What is missing in a trace, in lines for people.
pub fn losses(losses: &Losses) -> String {
    let mut text: String =
        losses.reasons().iter().map(|reason| format!("lost: {}\n", Shown(reason))).collect();
    if losses.reported.is_empty() && !losses.may_be_more() {
        let _ = match losses.adds_up() {
            None => writeln!(text, "lost: nothing is reported"),
            Some(adds_up) => writeln!(text, "lost: nothing; {adds_up}"),
        };
    }
    text
}

/// Whether the records of a trace add up with what its programs have counted.
pub fn balance(losses: &Losses) -> &'static str {
    match (losses.ledgers, losses.unbalanced.is_empty()) {
        (_, false) => "unbalanced",
        (0, true) => "unknown",
        (_, true) => "balanced",
    }
}

/// The contents of a trace in a line.
pub fn contents(path: &Path, walked: &Walked) -> String {
    let (events, seconds) = (walked.events, walked.seconds());
    let rate =
        if seconds > 0.0 { format!(" ({:.0} events/s)", events as f64 / seconds) } else { String::new() };
    let length = Lasting(seconds * 1e9);
    let (events, bytes) = (Counted(events, "events"), Counted(walked.bytes, "bytes"));
    format!("{}: {events} in {length}{rate}, {bytes}\n", Shown(&name(path)))
}

/// Columns: the first ones are texts, and the others numbers.
pub fn table(header: &[&str], rows: &[Vec<String>], texts: usize) -> String {
    let texts: Vec<usize> = (0..texts).collect();
    let header = table::cells(header.iter().copied(), &texts);
    let rows = rows.iter().map(|row| table::cells(row.iter().map(String::as_str), &texts));
    table::lines(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), 2)
}

/// A line about rows that are not shown.
pub fn more(hidden: usize) -> String {
    match hidden {
        0 => String::new(),
        hidden => format!("  and {hidden} more; --limit 0 shows all\n"),
    }
}

/// Lines of comma-separated values. In a spreadsheet, no text is a formula.
//= docs/tables.md#csv
pub fn csv(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>, is_for_spreadsheet: bool) -> String {
    const TEXTS: [&str; 4] = ["category", "name", "process", "thread"];
    let mut lines = Vec::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        for (cell, column) in cells.zip(header) {
            let is_text = is_for_spreadsheet && TEXTS.contains(column);
            let texts = if is_text { CsvTexts::Spreadsheet } else { CsvTexts::Unchanged };
            texts.write(cell.as_bytes(), &mut lines);
        }
        if let Some(comma) = lines.last_mut() {
            *comma = b'\n';
        }
    };
    line(&mut header.iter().copied());
    rows.into_iter().for_each(|row| line(&mut row.iter().map(String::as_str)));
    String::from_utf8_lossy(&lines).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_twenty_rows_and_programs_all() {
        assert_eq!(limited(None, true, 30), (20, 10));
        assert_eq!(limited(None, false, 30), (30, 0));
        assert_eq!(limited(Some(0), true, 30), (30, 0));
        assert_eq!(limited(Some(3), false, 30), (3, 27));
        assert_eq!(limited(Some(50), true, 30), (30, 0));
    }
}
