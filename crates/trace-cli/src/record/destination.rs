//! Where a trace goes: a file that appears when it is complete, stdout, or a connection; in one of several
//! formats.

use crate::args::format::{Compression, Format, of_name};
use crate::args::record::Recording;
use crate::convert::{self, Job};
use crate::exit::Failure;
use crate::output::{OutputFile, TemporaryFile};
use crate::stdio::Stdout;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use trace_convert::Summary;

/// Where a trace goes, and how.
pub struct Destination {
    place: Place,
    format: Format,
    compression: Compression,
    /// The archive as it comes, where it is not what is wanted in the end.
    archive: Option<TemporaryFile>,
}

enum Place {
    File(OutputFile),
    Stdout,
    Connection(TcpStream, String),
}

/// What became of it.
pub struct Finished {
    /// Where it is, for people.
    pub place: String,
    /// The file's name, if it is in one.
    pub path: Option<PathBuf>,
    /// Its size, where that is known.
    pub bytes: Option<u64>,
    /// The format.
    pub format: Format,
    /// What the conversion left out.
    pub conversion: Option<Summary>,
    /// The archive, to be looked at.
    pub archive: Option<Archive>,
}

/// A file with an archive, perhaps one that is gone when this is dropped.
pub enum Archive {
    /// The result itself.
    Result(PathBuf),
    /// What the result was made of.
    Temporary(TemporaryFile),
}

impl Archive {
    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Self::Result(path) => path,
            Self::Temporary(file) => file.path(),
        }
    }
}

/// Format and compression that are asked for.
fn wanted(recording: &Recording, path: &Path) -> Result<(Format, Compression), Failure> {
    let (named, compression) = of_name(path);
    let conflict = |text: &str| Err(Failure::usage(text.to_owned()));
    let binary = recording.binary.map(|binary| if binary { Format::Fxt } else { Format::Catapult });
    let format = match (recording.format, binary) {
        (Some(format), Some(binary)) if format != binary => {
            return conflict("--binary and --format say different things");
        }
        (format, binary) => format.or(binary).or(named).unwrap_or(Format::Fxt),
    };
    let compression = match (recording.compress, compression) {
        (Some(true), Compression::Zstd) => {
            return conflict("--compress is gzip, and the name ends in .zst; leave one of them out");
        }
        (Some(true), _) => Compression::Gzip,
        (Some(false), Compression::Gzip | Compression::Zstd) => {
            return conflict("--compress=false, and the name is that of a compressed file");
        }
        (_, compression) => compression,
    };
    Ok((format, compression))
}

impl Destination {
    /// Makes sure that it can be written to before anything is recorded.
    pub fn create(recording: &Recording) -> Result<Self, Failure> {
        let path = recording.output_file.clone().unwrap_or_else(|| PathBuf::from("trace.fxt"));
        let (format, compression) = wanted(recording, &path)?;
        let path = match recording.compress == Some(true) && of_name(&path).1 == Compression::None {
            // As Fuchsia's does.
            true if path != Path::new("-") => PathBuf::from(format!("{}.gz", path.display())),
            _ => path,
        };
        let text = path.to_string_lossy();
        let is_archive = (format, compression) == (Format::Fxt, Compression::None);
        let (place, beside) = if text == "-" {
            (Place::Stdout, None)
        } else if let Some(address) = text.strip_prefix("tcp:") {
            let connection = TcpStream::connect(address);
            let connection =
                connection.map_err(|error| Failure::new(format!("cannot connect to {address}: {error}")))?;
            (Place::Connection(connection, address.to_owned()), None)
        } else {
            (Place::File(OutputFile::create(&path)?), Some(path.as_path()))
        };
        let archive = match (is_archive, beside) {
            (true, _) => None,
            (false, Some(path)) => Some(TemporaryFile::beside(path, ".fxt")?),
            (false, None) => Some(TemporaryFile::anywhere(".fxt")?),
        };
        Ok(Self { place, format, compression, archive })
    }

    /// The trace is written to stdout, where nothing else may be.
    pub fn is_stdout(&self) -> bool {
        matches!(self.place, Place::Stdout)
    }

    /// Where the archive is written as it comes.
    pub fn sink(&mut self) -> Box<dyn Write + '_> {
        match (&mut self.archive, &mut self.place) {
            (Some(archive), _) => Box::new(archive.file()),
            (None, Place::File(file)) => Box::new(file.file()),
            (None, Place::Stdout) => Box::new(Stdout),
            (None, Place::Connection(connection, _)) => Box::new(connection),
        }
    }

    /// Leaves out what is less than a record at the end of an archive that was cut off. False if nothing is
    /// left.
    pub fn cut_to_whole_records(&mut self) -> Result<bool, Failure> {
        let file = match (&mut self.archive, &mut self.place) {
            (Some(archive), _) => archive.file(),
            (None, Place::File(file)) => file.file(),
            // It is out of our hands.
            (None, Place::Stdout | Place::Connection(..)) => return Ok(true),
        };
        let cut = trace_reader::whole_records(file).and_then(|bytes| file.set_len(bytes).map(|()| bytes));
        let bytes = cut.map_err(|error| Failure::new(format!("cannot read what was written: {error}")))?;
        Ok(bytes > 0)
    }

    /// Makes of the archive what was asked for, and gives it its name.
    pub fn finish(self) -> Result<Finished, Failure> {
        let Self { mut place, format, compression, archive } = self;
        let mut conversion = None;
        if let Some(archive) = &archive {
            let mut output: Box<dyn Write> = match &mut place {
                Place::File(file) => Box::new(file.file()),
                Place::Stdout => Box::new(Stdout),
                Place::Connection(connection, _) => Box::new(connection),
            };
            conversion = convert::transform(archive.path(), Job::new(format, compression), &mut output)?;
        }
        let archive = archive.map(Archive::Temporary);
        match place {
            Place::File(file) => {
                let path = file.finish()?;
                let bytes = std::fs::metadata(&path).ok().map(|metadata| metadata.len());
                let archive = archive.or_else(|| Some(Archive::Result(path.clone())));
                let place = path.display().to_string();
                Ok(Finished { place, path: Some(path), bytes, format, conversion, archive })
            }
            Place::Stdout => Ok(Finished {
                place: "stdout".to_owned(),
                path: None,
                bytes: None,
                format,
                conversion,
                archive,
            }),
            Place::Connection(_, address) => {
                Ok(Finished { place: address, path: None, bytes: None, format, conversion, archive })
            }
        }
    }
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
    fn name_and_options_tell_the_format() {
        let of = |name: &str, change: &dyn Fn(&mut Recording)| {
            let mut recording = Recording::default();
            change(&mut recording);
            wanted(&recording, Path::new(name)).map_err(|failure| failure.text)
        };
        let nothing = |_: &mut Recording| {};
        assert_eq!(of("a.json.gz", &nothing), Ok((Format::Catapult, Compression::Gzip)));
        assert_eq!(of("a", &nothing), Ok((Format::Fxt, Compression::None)));
        assert_eq!(of("a.json", &|r| r.format = Some(Format::Fxt)), Ok((Format::Fxt, Compression::None)));
        assert_eq!(of("a.fxt", &|r| r.binary = Some(false)), Ok((Format::Catapult, Compression::None)));
        assert_eq!(of("a.fxt", &|r| r.compress = Some(true)), Ok((Format::Fxt, Compression::Gzip)));
        assert!(of("a.fxt.zst", &|r| r.compress = Some(true)).unwrap_err().contains("--compress is gzip"));
        assert!(of("a.fxt.gz", &|r| r.compress = Some(false)).is_err());
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
