//! A trace as a directory of tables.
//= docs/tables.md#csv

use super::{Converted, Problem, tell};
use crate::args::Convert;
use crate::args::format::Target;
use crate::exit::Failure;
use crate::input::{self, open};
use crate::output::{is_finished, is_unfinished};
use crate::progress;
use crate::stdio::say;
use std::cell::RefCell;
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;
use trace_convert::tables::{self, Csv, TABLES};
use trace_convert::{ConvertError, Filter, Summary};

/// What the directory's name ends with if it is made of the input's.
pub const SUFFIX: &str = "tables";

/// Files that appear under their names when all of them are complete.
struct Directory<'a> {
    path: &'a Path,
    /// Whether it was made here.
    is_new: bool,
    suffix: &'static str,
    files: RefCell<Vec<(String, NamedTempFile)>>,
}

impl<'a> Directory<'a> {
    fn create(path: &'a Path, suffix: &'static str) -> io::Result<Self> {
        let is_new = !path.is_dir();
        fs::create_dir_all(path)?;
        if is_new {
            is_unfinished(path);
        }
        Ok(Self { path, is_new, suffix, files: RefCell::default() })
    }

    fn file(&self, name: &str) -> io::Result<BufWriter<File>> {
        let named = tempfile::Builder::new()
            .prefix(".trace-")
            .suffix(".partial")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(self.path)?;
        is_unfinished(named.path());
        let file = named.reopen()?;
        self.files.borrow_mut().push((format!("{name}.{}", self.suffix), named));
        Ok(BufWriter::new(file))
    }

    /// Gives the files their names; those that had them are replaced.
    fn finish(self) -> io::Result<()> {
        is_finished(self.path);
        for (name, file) in self.files.take() {
            file.as_file().sync_all()?;
            is_finished(file.path());
            file.persist(self.path.join(name)).map_err(|error| error.error)?;
        }
        Ok(())
    }

    /// Leaves no trace of it.
    fn remove(self) {
        self.files.take().clear();
        if self.is_new {
            // What somebody else put there stays.
            let _ = fs::remove_dir(self.path);
        }
    }
}

/// Converts one trace.
pub fn run(input: &Path, output: &Path, options: &Convert, filter: Filter) -> Result<(), Failure> {
    if input::is_stdin(output) {
        return Err(Failure::usage("tables are several files: name a directory for them"));
    }
    let is_parquet = options.to == Some(Target::Parquet);
    if is_parquet && cfg!(not(feature = "parquet")) {
        return Err(Failure::usage(
            "this program was built without Parquet: build it with `cargo build --release --features parquet`, or take \
             --to csv",
        ));
    }
    let failed = |error: &io::Error| Failure::new(format!("cannot write {}: {error}", output.display()));
    let directory = Directory::create(output, if is_parquet { "parquet" } else { "csv" });
    let directory = directory.map_err(|error| failed(&error))?;
    let converted = match convert(input, &directory, is_parquet, filter) {
        Ok(converted) => converted,
        Err(problem) => {
            directory.remove();
            return Err(problem.into_failure(output));
        }
    };
    converted.summary.iter().for_each(|summary| tell(summary, "a table"));
    if let Err(failure) = converted.check(options.strict) {
        directory.remove();
        return Err(failure);
    }
    directory.finish().map_err(|error| failed(&error))?;
    let events = converted.summary.map_or(0, |summary| summary.events);
    say!("trace: {events} events in {} tables in {}", TABLES.len(), output.display());
    Ok(())
}

fn convert(
    input: &Path,
    directory: &Directory<'_>,
    is_parquet: bool,
    filter: Filter,
) -> Result<Converted, Problem> {
    let file = open(input).map_err(Problem::Failure)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let bar = progress::bar("converting", bytes);
    let archive = input::as_reported_archive(progress::reading(file, &bar));
    let (archive, report) = archive.map_err(|error| Problem::of_read(input, &error))?;
    let summary = write(BufReader::new(archive), directory, is_parquet, filter);
    bar.finish_and_clear();
    let summary = summary.map_err(|error| Problem::of_conversion(input, error))?;
    Ok(Converted { summary: Some(summary), lost_on_import: report.left_out() })
}

fn write(
    archive: impl io::Read,
    directory: &Directory<'_>,
    is_parquet: bool,
    filter: Filter,
) -> Result<Summary, ConvertError> {
    #[cfg(feature = "parquet")]
    if is_parquet {
        let mut rows = tables::Parquet::new(|name| directory.file(name)).map_err(ConvertError::Write)?;
        let summary = tables::fill(archive, &mut rows, filter)?;
        rows.finish().map_err(ConvertError::Write)?;
        return Ok(summary);
    }
    debug_assert!(!is_parquet, "refused before");
    let mut rows = Csv::new(|name| directory.file(name)).map_err(ConvertError::Write)?;
    let summary = tables::fill(archive, &mut rows, filter)?;
    rows.finish().map_err(ConvertError::Write)?;
    Ok(summary)
}
