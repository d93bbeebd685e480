//! `trace query`: queries in SQL.
//= docs/tables.md#questions

use crate::args::{Answers as Form, Query};
use crate::convert;
use crate::files::account::{self, Accounting, trace_json};
use crate::files::input::{again, chosen, is_stdin, name, open, problem, stopped, survey};
use crate::files::output::{OutputFile, refuse_input, remove_on_signal};
use crate::shell::exit::{self, Failure};
use crate::shell::json;
use crate::shell::signals;
use crate::shell::stdio::{self, Stdout, closed_is_enough, say};
use crate::shell::table;
use serde_json::Value;
use signal_hook::iterator::Signals;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use trace_config::near;
use trace_convert::tables::sqlite::{Answers, AskError, Database, QueryError, VIEWS, schema};
use trace_convert::tables::{Cell, CsvTexts, TABLES, csv_text};
use trace_convert::{Filter, Summary};
use trace_format::shown::Shown;
use trace_model::Survey;

/// How many rows determine the widths of a table; further rows form another table.
const TABLE_ROWS: usize = 10_000;

/// Runs the statements.
pub fn run(options: &Query) -> Result<(), Failure> {
    let output = &mut io::BufWriter::new(Stdout);
    if options.schema {
        return closed_is_enough(output.write_all(schema().as_bytes()).and_then(|()| output.flush()));
    }
    let form = if options.json { Form::Json } else { options.format };
    if options.spreadsheet && form != Form::Csv {
        return Err(Failure::usage("--spreadsheet is for --format csv"));
    }
    let texts = if options.spreadsheet { CsvTexts::Spreadsheet } else { CsvTexts::Unchanged };
    let (sql, traces) = sql_and_traces(options)?;
    if traces.is_empty() {
        return Err(Failure::usage("give SQL and a trace, --file and a trace, or --save and a trace"));
    }
    let statements_from_stdin = options.file.as_deref().is_some_and(is_stdin);
    if traces.iter().filter(|trace| is_stdin(trace)).count() + usize::from(statements_from_stdin) > 1 {
        return Err(Failure::usage("stdin can be the statements or one trace"));
    }
    let selection = options.selecting.selection()?;
    let (mut opened, mut filters, mut accounts) = (Vec::new(), Vec::new(), Vec::new());
    for path in &traces {
        accounts.extend(account::begin(form == Form::Json, path, &selection)?);
        let (mut trace, _) = again(open(path)?, path, "reading")?;
        let survey = if selection.needs_survey() { survey(&mut trace, path)?.1 } else { Survey::default() };
        filters.push(Filter::of(chosen(&selection, survey, path)?));
        opened.push(trace);
    }
    let database = Database::open_selected(opened, filters);
    let database = database.map_err(|error| Failure::new(error.to_string()))?;
    database.probe().or_else(failure)?;
    if let Some(path) = &options.save {
        traces.iter().try_for_each(|trace| refuse_input(trace, path))?;
        save(&database, path)?;
    }
    let sql = sql.unwrap_or_default();
    let shown: Vec<Value> = traces.iter().map(|trace| trace_json(&name(trace), None, None)).collect();
    let asked = match form {
        Form::Table => database.ask(&sql, &mut Tables::new(output, stdio::stdout_width())),
        Form::Csv => database.ask(&sql, &mut Lines { output, texts, line: Vec::new() }),
        Form::Json => {
            let signal = end_on_signal(&database)?;
            let mut objects = Objects { output, traces: &shown, columns: Vec::new(), state: State::Nothing };
            let asked = database.ask(&sql, &mut objects);
            let closed = objects.close(asked.is_ok()).map_err(AskError::Write);
            match signal.get() {
                Some(signal) => {
                    closed.or_else(failure)?;
                    output.flush().or_else(|error| closed_is_enough(Err(error)))?;
                    return Err(Failure::with_code(exit::of_signal(*signal), "ended by a signal"));
                }
                None => asked.and(closed),
            }
        }
    };
    let written = output.flush();
    let summaries = database.summaries();
    for (trace, summary) in traces.iter().zip(&summaries) {
        let is_worth_telling = *summary != Summary { events: summary.events, ..Summary::default() };
        if traces.len() > 1 && is_worth_telling {
            say!("trace: {}:", name(trace));
        }
        convert::report_summary(summary, "a table");
    }
    for account in accounts.into_iter().map(Accounting::finish) {
        json::add(account.losses, account.problems);
    }
    asked.and_then(|()| written.map_err(AskError::Write)).or_else(failure)?;
    for (trace, summary) in traces.iter().zip(&summaries) {
        if let Some(why) = &summary.stopped {
            return Err(stopped(trace, why.error(), "the results cover what comes before it"));
        }
    }
    Ok(())
}

/// How often a statement is ended after a signal: another one may begin meanwhile.
const INTERRUPT_EVERY: Duration = Duration::from_millis(10);

/// Ends the statements when a signal comes, so that the document is closed. A second signal ends the process.
fn end_on_signal(database: &Database) -> Result<Arc<OnceLock<i32>>, Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot wait for signals: {error}"));
    let mut signals = Signals::new(signals::ending()).map_err(failed)?;
    let (interrupt, found) = (database.interrupter(), Arc::new(OnceLock::new()));
    let of_thread = found.clone();
    let thread = std::thread::Builder::new().name("trace-signals".to_owned());
    let waiting = thread.spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        let _ = of_thread.set(signal);
        loop {
            interrupt();
            std::thread::sleep(INTERRUPT_EVERY);
            if let Some(signal) = signals.pending().next() {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    });
    waiting.map(|_| found).map_err(failed)
}

/// Writes the tables to a file.
fn save(database: &Database, path: &Path) -> Result<(), Failure> {
    let _removing = remove_on_signal()?;
    let mut file = OutputFile::create(path)?;
    database.save(file.unfinished().path()).or_else(|error| match error {
        AskError::Query(why) => Err(Failure::new(format!("cannot write {}: {why}", path.display()))),
        error => failure(error),
    })?;
    let path = file.finish()?;
    say!("trace: {} tables in {}", TABLES.len(), path.display());
    Ok(())
}

fn failure(error: AskError) -> Result<(), Failure> {
    match error {
        AskError::Query(error) => Err(Failure::usage(sql_problem(&error))),
        // No trace has failed, but what is kept of them.
        AskError::Read { trace, error } if trace.is_empty() => Err(Failure::new(problem(&error))),
        AskError::Read { trace, error } => Err(crate::files::input::failed(Path::new(&trace), &error)),
        AskError::Write(error) => closed_is_enough(Err(error)),
    }
}

/// Describes an error of a statement.
pub fn sql_problem(error: &QueryError) -> String {
    let why = error.to_string();
    format!("SQL: {why}{}", tables_hint(&why))
}

/// Which of the arguments are traces, and which one is SQL: the one that is no file.
fn sql_and_traces(options: &Query) -> Result<(Option<String>, Vec<&Path>), Failure> {
    let arguments = &options.arguments;
    let all = || arguments.iter().map(Path::new).collect();
    if let Some(file) = &options.file {
        return Ok((Some(statements(file)?), all()));
    }
    // What is no text can only be the name of a trace.
    let texts = || arguments.iter().enumerate().filter_map(|(at, argument)| Some((at, argument.to_str()?)));
    let others = || texts().filter(|(at, _)| !is_readable(&arguments[*at]));
    // A trace that is missing has no spaces in its name, as a rule.
    let sql = others()
        .find(|(_, other)| begins_as_sql(other))
        .or_else(|| others().find(|(_, other)| other.contains(char::is_whitespace)))
        .or_else(|| others().next());
    if let Some((_, sql)) = sql.filter(|(_, sql)| !begins_as_sql(sql) && !sql.contains(char::is_whitespace)) {
        return Err(Failure::usage(match sql {
            "" => "the SQL is empty".to_owned(),
            word => format!("{} is no file, and no SQL either", Shown(word)),
        }));
    }
    match sql {
        Some((place, sql)) if options.save.is_none() || sql.contains(char::is_whitespace) => {
            let traces = arguments.iter().enumerate().filter(|(at, _)| *at != place);
            Ok((Some(sql.to_owned()), traces.map(|(_, trace)| Path::new(trace)).collect()))
        }
        _ if options.save.is_some() => Ok((None, all())),
        _ => Ok((None, Vec::new())),
    }
}

/// Whether an argument can hardly be the name of a trace that is missing.
fn begins_as_sql(argument: &str) -> bool {
    const WORDS: [&str; 20] = [
        "select", "with", "values", "explain", "create", "drop", "insert", "reindex", "vacuum", "analyze",
        "begin", "commit", "rollback", "pragma", "attach", "detach", "update", "delete", "alter", "replace",
    ];
    let text = argument.trim_start();
    let (word, rest) =
        text.split_at(text.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(text.len()));
    let is_word = WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)) && !rest.starts_with('.');
    is_word || text.starts_with("--") || text.starts_with("/*")
}

/// Whether an argument is a trace, rather than SQL.
fn is_readable(argument: &OsStr) -> bool {
    is_stdin(Path::new(argument)) || Path::new(argument).exists()
}

/// Where the tables are listed, and the one that may have been meant, after an error about another one; and
/// what can have an index.
fn tables_hint(error: &str) -> String {
    if error.contains("virtual tables may not be indexed") {
        return "; a temporary table may: CREATE TEMP TABLE t AS SELECT …".to_owned();
    }
    let Some((_, table)) = error.split_once("no such table: ") else { return String::new() };
    let table = table.split_whitespace().next().unwrap_or_default();
    let names = TABLES.iter().map(|table| table.name).chain(VIEWS.iter().map(|view| view.name));
    if table == "providers" {
        return "; it is called programs".to_owned();
    }
    let near = near::nearest(table, names, 3, str::to_owned);
    let meant = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    format!("; {meant}See trace query --schema")
}

fn statements(file: &Path) -> Result<String, Failure> {
    let mut sql = String::new();
    let read = match is_stdin(file) {
        true => io::stdin().read_to_string(&mut sql).map(|_| ()),
        false => fs::read_to_string(file).map(|text| sql = text),
    };
    read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", name(file))))?;
    Ok(sql)
}

/// For people.
struct Tables<'a, W> {
    output: &'a mut W,
    rows: Vec<Vec<table::Cell>>,
    width: Option<usize>,
}

impl<'a, W: Write> Tables<'a, W> {
    fn new(output: &'a mut W, width: Option<usize>) -> Self {
        Self { output, rows: Vec::new(), width }
    }

    fn print(&mut self) -> io::Result<()> {
        let text = table::within(&self.rows, 1, self.width);
        self.rows.truncate(1);
        self.output.write_all(text.as_bytes())
    }
}

impl<W: Write> Answers for Tables<'_, W> {
    fn begin(&mut self, columns: &[String]) -> io::Result<()> {
        let header = columns.iter().map(|column| table::text(Shown(column).to_string()));
        self.rows = vec![header.collect()];
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        if self.rows.len() > TABLE_ROWS {
            self.print()?;
        }
        let row = cells.iter().map(|cell| {
            let text = Shown(&csv_text(cell)).to_string();
            match cell {
                Cell::Text(_) | Cell::Null => table::text(text),
                _ => table::number(text),
            }
        });
        self.rows.push(row.collect());
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.print()
    }
}

/// Comma-separated values.
struct Lines<'a, W> {
    output: &'a mut W,
    texts: CsvTexts,
    line: Vec<u8>,
}

impl<W: Write> Lines<'_, W> {
    /// Writes the line, whose cells have commas behind them.
    fn end_line(&mut self) -> io::Result<()> {
        // An empty line would be no row.
        if self.line == b"," {
            self.line = b"\"\",".to_vec();
        }
        if let Some(last) = self.line.last_mut() {
            *last = b'\n';
        }
        let written = self.output.write_all(&self.line);
        self.line.clear();
        written
    }
}

impl<W: Write> Answers for Lines<'_, W> {
    fn begin(&mut self, columns: &[String]) -> io::Result<()> {
        columns.iter().for_each(|column| self.texts.write(column.as_bytes(), &mut self.line));
        self.end_line()
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for cell in cells {
            let texts = match cell {
                Cell::Text(_) => self.texts,
                _ => CsvTexts::Unchanged,
            };
            texts.write(csv_text(cell).as_bytes(), &mut self.line);
        }
        self.end_line()
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Members of an object: further columns of a name have a number behind it.
//= docs/json.md#query
fn distinct(columns: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = Vec::new();
    for column in columns {
        let numbered = (1_u32..).map(|number| format!("{column}:{number}"));
        let mut candidates = std::iter::once(column.clone()).chain(numbered);
        names.extend(candidates.find(|name| !taken.contains(name)));
        taken.extend(names.last().cloned());
    }
    names
}

/// A document: of each statement its columns, and its rows as objects, one on a line.
struct Objects<'a, W> {
    output: &'a mut W,
    traces: &'a [Value],
    columns: Vec<String>,
    state: State,
}

/// What of the document is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing: an error in the first statement leaves nothing behind.
    Nothing,
    /// Statements.
    Statements,
    /// Rows of a statement.
    Rows,
}

impl<W: Write> Objects<'_, W> {
    /// Begins a statement, and before the first one the document.
    fn begin_rows(&mut self) -> io::Result<()> {
        match self.state {
            State::Nothing => write!(self.output, "{}[", json::begin("query", self.traces))?,
            State::Statements => write!(self.output, ",")?,
            State::Rows => return write!(self.output, ","),
        }
        self.state = State::Rows;
        let columns = Value::from(self.columns.as_slice());
        write!(self.output, "\n{{\"columns\": {columns}, \"rows\": [")
    }

    /// Closes what is open. Statements that have no rows, and have not failed, have an empty list.
    fn close(&mut self, is_complete: bool) -> io::Result<()> {
        match self.state {
            State::Nothing if !is_complete => return Ok(()),
            State::Nothing => write!(self.output, "{}[", json::begin("query", self.traces))?,
            State::Rows => self.end()?,
            State::Statements => {}
        }
        write!(self.output, "\n]")
    }
}

impl<W: Write> Answers for Objects<'_, W> {
    fn begin(&mut self, columns: &[String]) -> io::Result<()> {
        self.columns = distinct(columns);
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        // Not before the first row is known, so that an error in it leaves no half of a document.
        self.begin_rows()?;
        write!(self.output, "\n{{")?;
        for (place, (name, cell)) in self.columns.iter().zip(cells).enumerate() {
            let value = match *cell {
                Cell::Null => Value::Null,
                Cell::Integer(value) => value.into(),
                Cell::Unsigned(value) => value.into(),
                //= docs/json.md#query
                Cell::Double(value) if !value.is_finite() => csv_text(cell).into(),
                Cell::Double(value) => value.into(),
                Cell::Text(text) => text.into(),
            };
            let separator = if place == 0 { "" } else { "," };
            write!(self.output, "{separator}{}:{value}", Value::from(name.as_str()))?;
        }
        write!(self.output, "}}")
    }

    fn end(&mut self) -> io::Result<()> {
        if self.state != State::Rows {
            self.begin_rows()?;
        }
        self.state = State::Statements;
        write!(self.output, "\n]}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/json.md#query
    #[test]
    fn infinite_values_are_texts() {
        let mut bytes = Vec::new();
        let mut objects =
            Objects { output: &mut bytes, traces: &[], columns: Vec::new(), state: State::Nothing };
        objects.begin(&["a", "b", "c", "d"].map(str::to_owned)).unwrap();
        let values = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.5];
        objects.row(&values.map(Cell::Double)).unwrap();
        objects.end().unwrap();
        objects.close(true).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let rows = "\n{\"a\":\"Infinity\",\"b\":\"-Infinity\",\"c\":\"NaN\",\"d\":0.5}\n]}\n]";
        assert!(text.ends_with(rows), "{text}");
    }
}
