//! A trace as a directory of tables.
//= docs/tables.md#csv

#[cfg(feature = "parquet")]
use super::partition::Partition;
use super::{Converted, Opened, Problem, report_summary};
use crate::args::Convert;
use crate::args::format::Target;
use crate::files::account::Accounting;
use crate::files::input;
use crate::files::output::Folder;
use crate::shell::exit::Failure;
use crate::shell::stdio::say;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use trace_analysis::counted::Counted;
use trace_convert::tables::{self, CsvTexts, TABLES, Trace};
use trace_convert::{ConvertError, Filter, Summary};

/// Ending of the directory's name if it is derived from the input's.
pub const SUFFIX: &str = "tables";

/// Converts one trace.
pub(super) fn run(
    input: &Path,
    opened: Option<Opened>,
    output: &Path,
    options: &Convert,
    filter: Filter,
    accounting: Option<Accounting>,
) -> Result<(), Failure> {
    if input::is_stdin(output) {
        return Err(Failure::usage("tables are several files: name a directory for them"));
    }
    let is_parquet = options.format == Some(Target::Parquet);
    if is_parquet && cfg!(not(feature = "parquet")) {
        return Err(Failure::usage(
            "this program was built without Parquet: build it with `cargo build --release -p trace-cli`, or take --format \
             csv",
        ));
    }
    #[cfg(feature = "parquet")]
    if options.partitioned {
        return partitioned(input, opened, output, options, &filter, accounting);
    }
    // Unless it is finished, it is removed.
    let folder = Folder::create(output).map_err(|error| failed(output, &error))?;
    let converted = convert(input, opened, |trace, _| write(trace, &folder, options, &filter));
    let converted = converted.map_err(|problem| problem.into_failure(output))?;
    converted.summary.iter().for_each(|summary| report_summary(summary, "a table"));
    converted.check(options.strict)?;
    folder.finish().map_err(|error| failed(output, &error))?;
    report(&converted, accounting, output, is_parquet);
    converted.check_input(input)
}

fn failed(output: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", output.display()))
}

fn report(converted: &Converted, accounting: Option<Accounting>, output: &Path, is_parquet: bool) {
    let events = converted.summary.as_ref().map_or(0, |summary| summary.events);
    say!("trace: {} in {} tables in {}", Counted(events, "events"), TABLES.len(), output.display());
    if let Some(accounting) = accounting {
        let format = if is_parquet { "parquet" } else { "csv" };
        converted.answer(accounting, output, format).give();
    }
}

/// Converts a trace into tables of many.
#[cfg(feature = "parquet")]
fn partitioned(
    input: &Path,
    opened: Option<Opened>,
    output: &Path,
    options: &Convert,
    filter: &Filter,
    accounting: Option<Accounting>,
) -> Result<(), Failure> {
    let mut partition = None;
    let converted = convert(input, opened, |mut trace, input| {
        let place = partition.insert(Partition::create(output, input, &mut trace)?);
        tables::write_parquet(trace, filter, |name| Ok(Named::new(name, place.file(name)?)))
    });
    let converted = converted.map_err(|problem| problem.into_failure(output))?;
    converted.summary.iter().for_each(|summary| report_summary(summary, "a table"));
    converted.check(options.strict)?;
    partition.map_or(Ok(()), Partition::finish).map_err(|error| failed(output, &error))?;
    report(&converted, accounting, output, true);
    converted.check_input(input)
}

fn convert(
    input: &Path,
    opened: Option<Opened>,
    write: impl FnOnce(Trace, &Path) -> Result<Summary, ConvertError>,
) -> Result<Converted, Problem> {
    let again = || input::open(input).and_then(|file| input::again(file, input, "converting"));
    let (trace, import) = opened.map_or_else(again, Ok).map_err(Problem::Failure)?;
    let summary = write(trace, input).map_err(|error| Problem::of_conversion(input, error))?;
    Ok(Converted { summary: Some(summary), copied: 0, import, stopped: None })
}

fn file(folder: &Folder, name: &str, suffix: &str) -> io::Result<Named> {
    let name = format!("{name}.{suffix}");
    Ok(Named::new(&name, folder.file(&name)?))
}

/// The file of a table, whose name is in its errors.
struct Named {
    name: String,
    output: BufWriter<File>,
}

impl Named {
    fn new(name: &str, file: File) -> Self {
        Self { name: name.to_owned(), output: BufWriter::new(file) }
    }

    fn failed(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.name))
    }
}

impl Write for Named {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes).map_err(|error| self.failed(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush().map_err(|error| self.failed(&error))
    }
}

fn write(trace: Trace, folder: &Folder, options: &Convert, filter: &Filter) -> Result<Summary, ConvertError> {
    let is_parquet = options.format == Some(Target::Parquet);
    #[cfg(feature = "parquet")]
    if is_parquet {
        return tables::write_parquet(trace, filter, |name| file(folder, name, "parquet"));
    }
    debug_assert!(!is_parquet, "refused before");
    let texts = if options.spreadsheet { CsvTexts::Spreadsheet } else { CsvTexts::Unchanged };
    tables::write_csv(trace, filter, texts, |name| file(folder, name, "csv"))
}
