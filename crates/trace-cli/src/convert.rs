//! `trace convert`, and the conversion behind `record --output-file x.json`.

use crate::args::Convert;
use crate::args::format::{Compression, Format, of_name};
use crate::exit::Failure;
use crate::input::{self, is_stdin, open};
use crate::output::OutputFile;
use crate::progress;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use trace_convert::{ConvertError, Summary, catapult};
use trace_reader::since::{Since, SinceError};

/// Converts one trace.
pub fn run(options: &Convert) -> Result<(), Failure> {
    let output = match &options.output {
        Some(output) => output.clone(),
        None if is_stdin(&options.input) => PathBuf::from("-"),
        None => plain_name(&options.input).with_extension(options.to.suffix()),
    };
    if output == Path::new("-") {
        let stdout = &mut io::stdout().lock();
        if let Some(summary) = transform(&options.input, options.to, Compression::None, stdout)? {
            advise(&summary);
        }
        return Ok(());
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
    let compression = of_name(&output).1;
    let summary = match convert(&options.input, options.to, compression, file.file()) {
        Ok(summary) => summary,
        Err(Problem::Failure(failure)) => return Err(failure),
        Err(Problem::OutputClosed) => return Err(cannot_write(&output, &io::ErrorKind::BrokenPipe.into())),
    };
    let path = file.finish()?;
    match summary {
        Some(summary) => {
            eprintln!("trace: {} events in {}", summary.events, path.display());
            advise(&summary);
        }
        None => eprintln!("trace: written to {}", path.display()),
    }
    Ok(())
}

/// A name without the suffix of its compression.
fn plain_name(path: &Path) -> PathBuf {
    match of_name(path).1 {
        Compression::None => path.to_owned(),
        Compression::Gzip | Compression::Zstd => path.with_extension(""),
    }
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

/// Makes another format of an archive, compressed as asked for. A reader that has seen enough is no failure.
pub fn transform(
    archive: &Path,
    to: Format,
    compression: Compression,
    output: &mut dyn Write,
) -> Result<Option<Summary>, Failure> {
    match convert(archive, to, compression, output) {
        Ok(summary) => Ok(summary),
        Err(Problem::Failure(failure)) => Err(failure),
        Err(Problem::OutputClosed) => Ok(None),
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

/// What a conversion left out; a copy leaves nothing out.
fn convert(
    input: &Path,
    to: Format,
    compression: Compression,
    output: &mut dyn Write,
) -> Result<Option<Summary>, Problem> {
    let file = open(input).map_err(Problem::Failure)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let bar = progress::bar("converting", bytes);
    let reader = progress::reading(BufReader::new(file), &bar);
    let mut encoder = Encoder::new(compression, output).map_err(Problem::of_write)?;
    let result = match to {
        Format::Catapult => {
            let summary = catapult::convert(reader, &mut encoder).map(Some);
            summary.map_err(|error| Problem::of_conversion(input, error))
        }
        Format::Fxt => {
            // All of it.
            let since = Since { now: 0, last: None };
            since.copy(reader, &mut encoder).map(|_| None).map_err(|error| Problem::of_copy(input, error))
        }
    };
    bar.finish_and_clear();
    let summary = result?;
    encoder.finish().map_err(Problem::of_write)?;
    Ok(summary)
}

impl Problem {
    fn of_write(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failure(Failure::new(format!("cannot write: {error}"))),
        }
    }

    fn of_conversion(input: &Path, error: ConvertError) -> Self {
        match error {
            ConvertError::Write(error) => Self::of_write(error),
            error => Self::Failure(Failure::new(format!("{}: {error}", input::name(input)))),
        }
    }

    fn of_copy(input: &Path, error: SinceError) -> Self {
        match error {
            SinceError::Write(error) => Self::of_write(error),
            SinceError::Read(error) => {
                Self::Failure(Failure::new(format!("{}: {error}", input::name(input))))
            }
        }
    }
}

/// Writes through a compressor, or none.
enum Encoder<'a> {
    Plain(&'a mut dyn Write),
    Gzip(flate2::write::GzEncoder<&'a mut dyn Write>),
    Zstd(zstd::Encoder<'static, &'a mut dyn Write>),
}

impl<'a> Encoder<'a> {
    fn new(compression: Compression, output: &'a mut dyn Write) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::Plain(output),
            Compression::Gzip => {
                Self::Gzip(flate2::write::GzEncoder::new(output, flate2::Compression::default()))
            }
            Compression::Zstd => Self::Zstd(zstd::Encoder::new(output, 0)?),
        })
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(output) => output.flush(),
            Self::Gzip(encoder) => encoder.finish()?.flush(),
            Self::Zstd(encoder) => encoder.finish()?.flush(),
        }
    }
}

impl Write for Encoder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(output) => output.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(output) => output.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let path: PathBuf = path.to_owned();
    Failure::new(format!("cannot write {}: {error}", path.display()))
}
