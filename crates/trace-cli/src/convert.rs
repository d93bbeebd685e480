//! `trace convert`, and the conversion behind `record --output-file x.json`.

use crate::args::{Convert, Format};
use crate::exit::Failure;
use crate::input::{self, is_stdin, open};
use crate::output::OutputFile;
use crate::progress;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use trace_convert::{ConvertError, Summary, catapult};

/// Converts one trace.
pub fn run(options: &Convert) -> Result<(), Failure> {
    let output = match &options.output {
        Some(output) => output.clone(),
        None if is_stdin(&options.input) => PathBuf::from("-"),
        None => options.input.with_extension(options.to.suffix()),
    };
    if output == Path::new("-") {
        let summary = convert(&options.input, options.to, &mut io::stdout().lock());
        return match summary {
            Ok(summary) => {
                advise(&summary);
                Ok(())
            }
            Err(Problem::OutputClosed) => Ok(()),
            Err(Problem::Failure(failure)) => Err(failure),
        };
    }
    let is_same = matches!((options.input.canonicalize(), output.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if is_same {
        let name = output.display();
        return Err(Failure::usage(format!("{name} is both input and output; name another output")));
    }
    // The input first: without it no output is begun.
    if !is_stdin(&options.input) {
        drop(open(&options.input)?);
    }
    let mut file = OutputFile::create(&output)?;
    let summary = match convert(&options.input, options.to, file.file()) {
        Ok(summary) => summary,
        Err(Problem::Failure(failure)) => return Err(failure),
        Err(Problem::OutputClosed) => return Err(cannot_write(&output, &io::ErrorKind::BrokenPipe.into())),
    };
    let path = file.finish()?;
    eprintln!("trace: {} events in {}", summary.events, path.display());
    advise(&summary);
    Ok(())
}

/// A name that asks for Catapult's JSON.
pub fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// Where an archive stays until it is converted: beside the result, and gone with the program.
pub fn temporary_archive(beside: &Path) -> Result<NamedTempFile, Failure> {
    let directory = beside.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix(".trace-")
        .suffix(".fxt")
        .tempfile_in(directory)
        .map_err(|error| cannot_write(beside, &error))
}

/// Converts an archive to Catapult's JSON.
pub fn to_catapult(archive: &Path, output: &mut File) -> Result<Summary, Failure> {
    match convert(archive, Format::Catapult, output) {
        Ok(summary) => Ok(summary),
        Err(Problem::Failure(failure)) => Err(failure),
        Err(Problem::OutputClosed) => Err(cannot_write(archive, &io::ErrorKind::BrokenPipe.into())),
    }
}

/// Says what the target could not express, and what the result is good for.
pub fn advise(summary: &Summary) {
    for (kind, count) in &summary.skipped {
        eprintln!("trace: {count} {kind} left out: Catapult has nothing for them");
    }
    if summary.warnings > 0 {
        let first = summary.first_warnings.join("; ");
        eprintln!("trace: {} problems in the trace: {first}", summary.warnings);
    }
    eprintln!(
        "trace: this is for Catapult (chrome://tracing); the Perfetto UI refuses Fuchsia's systemTraceEvents \
         object: give it the .fxt"
    );
}

enum Problem {
    Failure(Failure),
    /// Nobody reads the output any more.
    OutputClosed,
}

fn convert(input: &Path, to: Format, output: &mut impl Write) -> Result<Summary, Problem> {
    let file = open(input).map_err(Problem::Failure)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let bar = progress::bar("converting", bytes);
    let reader = progress::reading(BufReader::new(file), &bar);
    let result = match to {
        Format::Catapult => catapult::convert(reader, output),
    };
    bar.finish_and_clear();
    result.map_err(|error| match error {
        ConvertError::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => Problem::OutputClosed,
        error => Problem::Failure(Failure::new(format!("{}: {error}", input::name(input)))),
    })
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let path: PathBuf = path.to_owned();
    Failure::new(format!("cannot write {}: {error}", path.display()))
}
