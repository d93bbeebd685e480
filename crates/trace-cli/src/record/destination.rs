//! Where a command writes a trace: names, options and defaults. The destination itself is of `trace-client`.

use crate::args::format::{Compression, Format, of_name};
use crate::args::record::Recording;
use crate::args::values::Compress;
use crate::convert::{self, Job};
use crate::files::input;
use crate::files::output::Place;
use crate::shell::exit::Failure;
use crate::shell::stdio::{self, Stdout};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use trace_client::destination::{Content, Manner, Unmade};
pub use trace_client::destination::{Destination, Worth, has_events};
use trace_client::format::unknown_ending;
use trace_client::pipe::Pipe;
use trace_convert::Summary;

/// The result, and what its conversion skipped.
pub type Finished = trace_client::destination::Finished<Summary>;

/// A destination for commands without options other than a file name. The default name is derived from
/// `stem`.
pub fn create(output: Option<PathBuf>, stem: &str) -> Result<Destination, Failure> {
    let recording = Recording { output, ..Recording::default() };
    create_with(&recording, stem, Content::Copy)
}

/// A destination for a recording, whose archive has a name of its own until the output is complete.
//= docs/recording.md#while-it-is-recorded
pub fn create_partial(recording: &Recording) -> Result<Destination, Failure> {
    create_with(recording, "trace", Content::Recording)
}

fn create_with(recording: &Recording, stem: &str, content: Content) -> Result<Destination, Failure> {
    let named = recording.output.as_deref();
    let has_format = content == Content::Recording;
    let (format, compression) = wanted(recording, named.unwrap_or(Path::new("-")), has_format)?;
    let level = match recording.compress {
        Some(Compress::Zstd(level)) => level,
        Some(Compress::No | Compress::Gzip) | None => None,
    };
    let manner = Manner { format, compression, level };
    let Some(named) = named else {
        let Place { path, others } = unused_name(stem, format, compression)?;
        return Ok(Destination::file(&path, others, manner, content)?);
    };
    if is_stdout(named) {
        if stdio::is_stdout_terminal() {
            return Err(Failure::usage("-o -: stdout is a terminal; redirect it, or name a file"));
        }
        let stdout = Stdout.as_fd().try_clone_to_owned();
        let stdout = stdout.map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
        return Ok(Destination::pipe(Pipe::new(stdout), "stdout".to_owned(), manner, content)?);
    }
    if let Some(address) = address(named) {
        let connection = TcpStream::connect(&*address)
            .map_err(|error| Failure::new(format!("cannot connect to {address}: {error}")))?;
        return Ok(Destination::pipe(Pipe::new(connection.into()), address, manner, content)?);
    }
    // Fuchsia's tool does the same.
    let is_completed = matches!(recording.compress, Some(Compress::Gzip | Compress::Zstd(_)))
        && of_name(named).1 == Compression::None;
    let path = match is_completed {
        true => PathBuf::from(format!("{}{}", named.display(), compression.suffix())),
        false => named.to_owned(),
    };
    Ok(Destination::file(&path, None, manner, content)?)
}

/// The trace is written to stdout, where nothing else may be.
pub fn is_stdout(output: &Path) -> bool {
    output == Path::new("-")
}

/// The address that a name stands for.
fn address(output: &Path) -> Option<String> {
    output.to_string_lossy().strip_prefix("tcp:").map(str::to_owned)
}

/// Converts the archive if necessary, and gives it its name. If that fails, the archive stays.
pub fn finish(destination: Destination, worth: Worth) -> Result<Finished, Failure> {
    let finished = destination.finish(worth, |conversion| {
        let mut job = Job::new(conversion.manner.format, conversion.manner.compression);
        job.level = conversion.manner.level;
        input::must_be(conversion.archive, conversion.file);
        convert::transform(conversion.archive, job, conversion.output)
    });
    if let Ok(finished) = &finished {
        finished.archive.iter().for_each(|archive| input::must_be(archive.path(), archive.file()));
    }
    finished.map_err(|Unmade { error, archive }: Unmade<Failure>| match archive {
        Some(path) => {
            let text = format!("{}; what was recorded is in {}", error.text, path.display());
            Failure { text, ..error }
        }
        None => error,
    })
}

/// The requested format and compression; `has_format` if the command has that option.
fn wanted(recording: &Recording, path: &Path, has_format: bool) -> Result<(Format, Compression), Failure> {
    let (named, compression) = of_name(path);
    let conflict = |text: &str| Err(Failure::usage(text.to_owned()));
    let binary = recording.binary.map(|binary| if binary { Format::Fxt } else { Format::Catapult });
    let format = match (recording.format, binary) {
        (Some(format), Some(binary)) if format != binary => {
            return conflict("--binary and --format say different things");
        }
        (format, binary) => format.or(binary).or(named),
    };
    let format = match (format, unknown_ending(path).filter(|_| address(path).is_none())) {
        (Some(format), _) => format,
        (None, Some(ending)) => {
            let advice = if has_format { ", or add --format" } else { "" };
            return conflict(&format!(
                "-o {}: {ending} is no format of traces; end the name in .fxt, .json, .pftrace or .folded{advice}",
                path.display()
            ));
        }
        (None, None) => Format::Fxt,
    };
    let compression = match (recording.compress, compression) {
        (Some(Compress::Gzip), Compression::Zstd) => {
            return conflict("--compress is gzip, and the name ends in .zst; leave one of them out");
        }
        (Some(Compress::Zstd(_)), Compression::Gzip) => {
            return conflict("--compress is zstd, and the name ends in .gz; leave one of them out");
        }
        (Some(Compress::Gzip), _) => Compression::Gzip,
        (Some(Compress::Zstd(_)), _) => Compression::Zstd,
        (Some(Compress::No), Compression::Gzip | Compression::Zstd) => {
            return conflict("--compress=false, and the name is that of a compressed file");
        }
        (_, compression) => compression,
    };
    Ok((format, compression))
}

/// The name of an output without a given one, in the current directory.
//= docs/recording.md#where-the-trace-goes
pub fn unused_name(stem: &str, format: Format, compression: Compression) -> Result<Place, Failure> {
    Place::unused(Path::new(stem), &format!("{}{}", format.suffix(), compression.suffix()))
}

/// The name for the Nth snapshot beside a trace: `trace-snapshot-1.fxt`.
pub fn snapshot_name(trace: &Path, number: u32) -> PathBuf {
    let name = trace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("trace");
    trace.with_file_name(format!("{stem}-snapshot-{number}.fxt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_options_select_the_format() {
        let of = |name: &str, change: &dyn Fn(&mut Recording)| {
            let mut recording = Recording::default();
            change(&mut recording);
            wanted(&recording, Path::new(name), true).map_err(|failure| failure.text)
        };
        let nothing = |_: &mut Recording| {};
        assert_eq!(of("a.json.gz", &nothing), Ok((Format::Chrome, Compression::Gzip)));
        assert_eq!(of("a", &nothing), Ok((Format::Fxt, Compression::None)));
        assert_eq!(of("a.json", &|r| r.format = Some(Format::Fxt)), Ok((Format::Fxt, Compression::None)));
        assert_eq!(of("a.fxt", &|r| r.binary = Some(false)), Ok((Format::Catapult, Compression::None)));
        assert_eq!(of("a.fxt", &|r| r.compress = Some(Compress::Gzip)), Ok((Format::Fxt, Compression::Gzip)));
        let zstd = Some(Compress::Zstd(Some(3)));
        assert_eq!(of("a.fxt", &|r| r.compress = zstd), Ok((Format::Fxt, Compression::Zstd)));
        assert_eq!(of("a.json.zst", &|r| r.compress = zstd), Ok((Format::Chrome, Compression::Zstd)));
        let clash = |name: &str, compress| of(name, &|r| r.compress = Some(compress)).unwrap_err();
        assert!(clash("a.fxt.zst", Compress::Gzip).contains("--compress is gzip"));
        assert!(clash("a.fxt.gz", Compress::Zstd(None)).contains("--compress is zstd"));
        assert!(clash("a.fxt.gz", Compress::No).contains("--compress=false"));
        let both = |r: &mut Recording| {
            r.binary = Some(true);
            r.format = Some(Format::Catapult);
        };
        assert!(of("a", &both).unwrap_err().contains("different things"));
    }

    #[test]
    fn snapshots_are_named_after_their_trace() {
        assert_eq!(snapshot_name(Path::new("a/slow.fxt.zst"), 3), Path::new("a/slow-snapshot-3.fxt"));
        assert_eq!(snapshot_name(Path::new("-"), 1), Path::new("--snapshot-1.fxt"));
    }
}
