//! The destination of a trace: a file that appears when it is complete, stdout, or a connection; in one of
//! several formats.
//!
//! During a recording, the archive is in a file of its own beside the output, with a name that marks it as
//! partial. If anything fails before the output is complete, that file stays. It is compressed as it arrives
//! if the output is an archive compressed with zstd.

use crate::args::format::{Compression, Format, of_name};
use crate::args::record::Recording;
use crate::args::values::Compress;
use crate::compressor::{Compressor, Manner, Place};
use crate::convert::{self, Job};
use crate::exit::Failure;
use crate::output::{OutputFile, TemporaryFile, whereabouts};
use crate::stdio::{self, Stdout};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trace_archive::confirm::check_file;
use trace_client::lending::Lending;
use trace_convert::{Summary, seekable};
use trace_protocol::controller::ArchiveFile;
use trace_protocol::limits::MAX_PATH_BYTES;
use trace_reader::recordings::MANAGER;
use trace_reader::{FileKind, Item, Plain, Reader};
use zx_sim::Socket;

/// How many names are tried if none is given.
pub const MAX_DEFAULT_NAMES: u32 = 1000;

/// The destination of a trace, and its format.
pub struct Destination {
    place: Target,
    format: Format,
    compression: Compression,
    /// The level of zstd, if one was requested.
    level: Option<i32>,
    /// The archive as it arrives, if the result has another format.
    archive: Option<TemporaryFile>,
    /// Whether the manager writes the file.
    lending: Lending,
}

enum Target {
    File(OutputFile),
    Stdout,
    Connection(TcpStream, String),
}

/// The result.
pub struct Finished {
    /// Its path, for people.
    pub place: String,
    /// Nothing was written: an existing file stays.
    pub is_unchanged: bool,
    /// The file's name, if it is in one.
    pub path: Option<PathBuf>,
    /// Its size, if it is known.
    pub bytes: Option<u64>,
    /// The format.
    pub format: Format,
    /// What the conversion skipped.
    pub conversion: Option<Summary>,
    /// The archive, for further commands.
    pub archive: Option<Archive>,
}

/// A file with an archive, perhaps one that is deleted when this is dropped.
pub enum Archive {
    /// The result itself.
    Result(PathBuf),
    /// The archive that the result was converted from.
    Temporary(TemporaryFile),
}

impl Archive {
    /// Its path.
    pub fn path(&self) -> &Path {
        match self {
            Self::Result(path) => path,
            Self::Temporary(file) => file.path(),
        }
    }
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
    let format = match (format, unknown_ending(path)) {
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

/// The ending of a file's name, if it selects no format; stdout and connections have none.
fn unknown_ending(path: &Path) -> Option<String> {
    if path.to_string_lossy().starts_with("tcp:") {
        return None;
    }
    let name = match of_name(path).1 {
        Compression::None => path.to_owned(),
        Compression::Gzip | Compression::Zstd => path.with_extension(""),
    };
    name.extension().map(|ending| format!(".{}", ending.to_string_lossy()))
}

/// Names for an output without a given one, of which no file has one: the first, and those to take where
/// another process takes that meanwhile.
pub fn unused_names(
    stem: &str,
    format: Format,
    compression: Compression,
) -> Result<(PathBuf, Vec<PathBuf>), Failure> {
    let names = (0..MAX_DEFAULT_NAMES).map(|number| default_name(stem, number, format, compression));
    let mut names = names.skip_while(|name| name.symlink_metadata().is_ok());
    let first = names.next().ok_or_else(|| {
        Failure::new(format!("there are {MAX_DEFAULT_NAMES} traces here already; name one with -o"))
    })?;
    Ok((first, names.collect()))
}

/// The Nth default name of a recording's file.
//= docs/recording.md#where-the-trace-goes
pub fn default_name(stem: &str, number: u32, format: Format, compression: Compression) -> PathBuf {
    let number = if number == 0 { String::new() } else { format!("-{number}") };
    PathBuf::from(format!("{stem}{number}.{}{}", format.suffix(), compression.suffix()))
}

/// The sink of an archive as it arrives.
pub enum Sink<'a> {
    /// A file, and whether the manager writes it; none if it must not.
    File(&'a mut TemporaryFile, Option<Lending>),
    /// Standard output.
    Stdout(Stdout),
    /// A connection.
    Connection(&'a mut TcpStream),
    /// One of these, through a thread that compresses; and bytes that it gets next.
    Compressed(Box<Sink<'a>>, Compressor, Vec<u8>),
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file, _) => file.file().write(bytes),
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Connection(connection) => connection.write(bytes),
            Self::Compressed(_, compressor, chunk) => {
                chunk.extend_from_slice(bytes);
                compressor.push(chunk).map(|()| bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> Sink<'a> {
    /// What is written is compressed on its way into this sink.
    fn compressed(self, level: i32) -> io::Result<Self> {
        let place = match &self {
            Self::File(file, _) => Place::File(file.file_ref().try_clone()?, 0),
            Self::Connection(connection) => Place::Connection(connection.try_clone()?),
            Self::Stdout(_) | Self::Compressed(..) => Place::Stdout(Stdout),
        };
        let compressor = Compressor::start(place, Manner { level, has_records: true }, true)?;
        Ok(Self::Compressed(Box::new(self), compressor, Vec::new()))
    }

    /// Ends what is compressed.
    pub fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Compressed(_, compressor, _) => compressor.finish(),
            Self::File(..) | Self::Stdout(_) | Self::Connection(_) => Ok(()),
        }
    }

    /// A socket that is readable when something was compressed and written, or cannot be.
    pub fn news(&self) -> Option<&Socket> {
        match self {
            Self::Compressed(_, compressor, _) => Some(compressor.news()),
            Self::File(..) | Self::Stdout(_) | Self::Connection(_) => None,
        }
    }

    /// Takes note of that.
    pub fn take_news(&self) -> io::Result<()> {
        match self {
            Self::Compressed(_, compressor, _) => compressor.take_news(),
            Self::File(..) | Self::Stdout(_) | Self::Connection(_) => Ok(()),
        }
    }

    /// Bytes in the pipe or connection that its reader has not taken, and those that are being compressed.
    pub fn unread(&self) -> u64 {
        match self {
            Self::File(..) => 0,
            Self::Stdout(stdout) => zx_sim::unread(stdout),
            Self::Connection(connection) => zx_sim::unread(connection),
            Self::Compressed(sink, compressor, _) => compressor.pending(|| sink.unread()),
        }
    }

    /// It is a pipe, a connection or a terminal, which takes nothing while its reader does not.
    pub fn has_reader(&self) -> bool {
        let is_no_file = |output: &dyn AsFd| {
            fstat(output.as_fd())
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) != FileType::RegularFile)
        };
        match self {
            Self::File(..) => false,
            Self::Stdout(stdout) => is_no_file(stdout),
            Self::Connection(_) => true,
            Self::Compressed(sink, ..) => sink.has_reader(),
        }
    }

    /// The pipe or connection has no reader any more.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::File(..) => false,
            Self::Stdout(stdout) => has_no_reader(stdout),
            Self::Connection(connection) => has_no_reader(connection),
            Self::Compressed(sink, ..) => sink.is_closed(),
        }
    }

    /// Whether a file still has the bytes that were written into it.
    pub fn check(&mut self, written: u64) -> io::Result<()> {
        match self {
            Self::File(file, _) => check_file(file.file(), written),
            // The thread checks it.
            Self::Stdout(_) | Self::Connection(_) | Self::Compressed(..) => Ok(()),
        }
    }

    /// The file, if the manager may write it.
    pub fn lend(&self) -> Option<(BorrowedFd<'_>, Lending)> {
        match self {
            Self::File(file, Some(lending)) => Some((file.file_ref().as_fd(), lending.clone())),
            Self::File(_, None) | Self::Stdout(_) | Self::Connection(_) | Self::Compressed(..) => None,
        }
    }

    /// From here on the archive is kept, even if something fails.
    pub fn keep(&mut self) {
        match self {
            Self::File(file, _) => file.keep_unless_finished(),
            Self::Compressed(sink, ..) => sink.keep(),
            Self::Stdout(_) | Self::Connection(_) => {}
        }
    }
}

fn has_no_reader(pipe: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::empty())];
    let found = poll(&mut polled, Some(&Timespec::default())).map(|_| polled[0].revents());
    found.is_ok_and(|found| found.intersects(PollFlags::ERR | PollFlags::HUP))
}

impl Destination {
    /// Checks that it can be written to, for commands without options other than a file name. The default
    /// name is derived from `stem`.
    pub fn create(output_file: Option<PathBuf>, stem: &str) -> Result<Self, Failure> {
        let recording = Recording { output_file, ..Recording::default() };
        Self::create_with(&recording, (stem, false), OutputFile::create, |path| {
            TemporaryFile::beside(path, ".fxt")
        })
    }

    /// The same for a recording, whose archive has a name of its own until the output is complete.
    //= docs/recording.md#while-it-is-recorded
    pub fn create_partial(recording: &Recording) -> Result<Self, Failure> {
        Self::create_with(recording, ("trace", true), OutputFile::create_partial, TemporaryFile::partial_of)
    }

    fn create_with(
        recording: &Recording,
        (stem, has_format): (&str, bool),
        output: fn(&Path) -> Result<OutputFile, Failure>,
        archive: fn(&Path) -> Result<TemporaryFile, Failure>,
    ) -> Result<Self, Failure> {
        let named = recording.output_file.as_deref();
        let (format, compression) = wanted(recording, named.unwrap_or(Path::new("-")), has_format)?;
        let mut others = Vec::new();
        let path = match named {
            // Fuchsia's tool does the same.
            Some(path)
                if matches!(recording.compress, Some(Compress::Gzip | Compress::Zstd(_)))
                    && of_name(path).1 == Compression::None
                    && path != Path::new("-")
                    && !path.to_string_lossy().starts_with("tcp:") =>
            {
                PathBuf::from(format!("{}{}", path.display(), compression.suffix()))
            }
            Some(path) => path.to_owned(),
            None => {
                let (first, later) = unused_names(stem, format, compression)?;
                others = later;
                first
            }
        };
        let text = path.to_string_lossy();
        // A snapshot is there as a whole before it is written.
        let is_archive = format == Format::Fxt
            && (compression == Compression::None || has_format && compression == Compression::Zstd);
        let level = match recording.compress {
            Some(Compress::Zstd(level)) => level,
            Some(Compress::No | Compress::Gzip) | None => None,
        };
        let (place, beside) = if text == "-" {
            if stdio::is_stdout_terminal() {
                return Err(Failure::usage("-o -: stdout is a terminal; redirect it, or name a file"));
            }
            (Target::Stdout, None)
        } else if let Some(address) = text.strip_prefix("tcp:") {
            let connection = TcpStream::connect(address);
            let connection =
                connection.map_err(|error| Failure::new(format!("cannot connect to {address}: {error}")))?;
            (Target::Connection(connection, address.to_owned()), None)
        } else {
            let make = if is_archive { output } else { OutputFile::create };
            let mut file = make(&path)?;
            if named.is_none() {
                file.replace_nothing(others);
            }
            (Target::File(file), Some(path.as_path()))
        };
        let archive = match (is_archive, beside) {
            (true, _) => None,
            (false, Some(path)) => Some(archive(path)?),
            (false, None) => Some(TemporaryFile::anywhere(".fxt")?),
        };
        Ok(Self { place, format, compression, level, archive, lending: Lending::default() })
    }

    /// The trace is written to stdout, where nothing else may be.
    pub fn is_stdout(&self) -> bool {
        matches!(self.place, Target::Stdout)
    }

    /// The sink of the archive as it arrives.
    pub fn sink(&mut self) -> Result<Sink<'_>, Failure> {
        let sink = match (&mut self.archive, &mut self.place) {
            (Some(archive), _) => return Ok(Sink::File(archive, None)),
            (None, Target::File(file)) => Sink::File(file.unfinished(), Some(self.lending.clone())),
            (None, Target::Stdout) => Sink::Stdout(Stdout),
            (None, Target::Connection(connection, _)) => Sink::Connection(connection),
        };
        if self.compression == Compression::None {
            return Ok(sink);
        }
        let failed = |error| Failure::new(format!("cannot compress the trace: {error}"));
        sink.compressed(self.level.unwrap_or(seekable::FAST_LEVEL)).map_err(failed)
    }

    /// The file with the archive as it arrives; none if it does not go into a file.
    fn archive(&mut self) -> Option<&mut TemporaryFile> {
        match (&mut self.archive, &mut self.place) {
            (Some(archive), _) => Some(archive),
            (None, Target::File(file)) => Some(file.unfinished()),
            (None, Target::Stdout | Target::Connection(..)) => None,
        }
    }

    /// The archive, if it is converted into another format.
    pub fn separate_archive(&self) -> Option<&Path> {
        self.archive.as_ref().map(TemporaryFile::path)
    }

    /// Name, device and inode of the archive's file. The manager keeps them, so that `trace recover` finds
    /// the file if this process dies.
    pub fn archive_file(&mut self) -> Option<ArchiveFile> {
        let archive = self.archive()?;
        let metadata = archive.file().metadata().ok()?;
        let path = std::path::absolute(archive.path()).ok()?.into_os_string().into_string().ok()?;
        (path.len() <= MAX_PATH_BYTES).then(|| ArchiveFile {
            path,
            device: metadata.dev(),
            inode: metadata.ino(),
            owner: Some(metadata.uid()),
        })
    }

    /// Whether the archive has an event of a program, as far as it can be read.
    pub fn has_events(&mut self) -> bool {
        self.archive().is_some_and(|archive| has_events(archive.file()))
    }

    /// Keeps the archive of an incomplete recording, cut to whole records. Returns its name, if there is
    /// anything in it.
    pub fn keep(self) -> Result<Option<PathBuf>, Failure> {
        let archive = match (self.archive, self.place) {
            (Some(archive), _) => Some(archive),
            (None, Target::File(file)) => Some(file.into_unfinished()),
            (None, Target::Stdout | Target::Connection(..)) => None,
        };
        let Some(mut archive) = archive else {
            return Ok(None);
        };
        let path = archive.path().to_owned();
        let file = archive.file();
        if self.lending.is_lent() {
            // The manager may be writing it yet. Readers leave out an incomplete record at the end.
            return Ok(Some(path));
        }
        match cut(file) {
            Ok(0) => {
                archive.discard();
                Ok(None)
            }
            Ok(_) => Ok(Some(path)),
            Err(error) => Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
        }
    }

    /// Converts the archive if necessary, and gives it its name. If that fails, the archive stays.
    pub fn finish(mut self) -> Result<Finished, Failure> {
        let archive =
            self.archive().map(|archive| (archive.file_ref().try_clone(), archive.path().to_owned()));
        self.make().map_err(|failure| {
            let Some((Ok(file), path)) = archive else { return failure };
            match whereabouts(&file, path) {
                path if path.exists() => Failure {
                    text: format!("{}; what was recorded is in {}", failure.text, path.display()),
                    ..failure
                },
                _ => failure,
            }
        })
    }

    /// As [`Destination::finish`], for a recording without events: an existing nonempty file stays as it is,
    /// since it is worth more.
    //= docs/recording.md#where-the-trace-goes
    pub fn finish_without_events(self) -> Result<Finished, Failure> {
        match &self.place {
            Target::File(file) if file.would_replace() => self.finish_without_file(),
            _ => self.finish(),
        }
    }

    /// As [`Destination::finish`], for a recording without programs: no file is made.
    //= docs/recording.md#where-the-trace-goes
    pub fn finish_without_programs(self) -> Result<Finished, Failure> {
        match &self.place {
            Target::File(_) => self.finish_without_file(),
            _ => self.finish(),
        }
    }

    fn finish_without_file(self) -> Result<Finished, Failure> {
        let Self { place, format, archive, .. } = self;
        let Target::File(file) = place else { unreachable!("looked at above") };
        let place = file.place().display().to_string();
        file.into_unfinished().discard();
        archive.into_iter().for_each(TemporaryFile::discard);
        let (path, bytes, conversion, archive) = (None, None, None, None);
        Ok(Finished { place, is_unchanged: true, path, bytes, format, conversion, archive })
    }

    /// Deletes what was written, also if it was to be kept.
    pub fn discard(self) {
        if let Target::File(file) = self.place {
            file.into_unfinished().discard();
        }
        self.archive.into_iter().for_each(TemporaryFile::discard);
    }

    fn make(self) -> Result<Finished, Failure> {
        let Self { mut place, format, compression, level, archive, lending: _ } = self;
        let mut conversion = None;
        if let Some(archive) = &archive {
            let mut stdout = Stdout;
            let output = match &mut place {
                Target::File(file) => convert::Output::File(file.file()),
                Target::Stdout => convert::Output::Stream(&mut stdout),
                Target::Connection(connection, _) => convert::Output::Stream(connection),
            };
            let mut job = Job::new(format, compression);
            job.level = level;
            conversion = convert::transform(archive.path(), job, output)?;
        }
        let (place, path) = match place {
            Target::File(file) => {
                let path = file.finish()?;
                (path.display().to_string(), Some(path))
            }
            Target::Stdout => ("stdout".to_owned(), None),
            Target::Connection(_, place) => (place, None),
        };
        let bytes = path.as_ref().and_then(|path| std::fs::metadata(path).ok());
        let bytes = bytes.map(|metadata| metadata.len());
        let result = path.clone().map(Archive::Result);
        let mut finished =
            Finished { place, is_unchanged: false, path, bytes, format, conversion, archive: result };
        if let Some(mut archive) = archive {
            archive.remove_when_dropped();
            finished.archive = Some(Archive::Temporary(archive));
        }
        Ok(finished)
    }
}

/// Cuts an archive to whole records, and returns their bytes. A compressed one was cut by what wrote it.
fn cut(file: &mut File) -> io::Result<u64> {
    file.rewind()?;
    match Plain::open(&*file)? {
        (archive, FileKind::Zstd) => trace_reader::complete_records(archive).map(|(bytes, _)| bytes),
        _ => {
            let bytes = trace_reader::complete_records_end(file)?;
            file.set_len(bytes).map(|()| bytes)
        }
    }
}

/// The name for the Nth snapshot beside a trace: `trace-snapshot-1.fxt`.
pub fn snapshot_name(trace: &Path, number: u32) -> PathBuf {
    let name = trace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("trace");
    trace.with_file_name(format!("{stem}-snapshot-{number}.fxt"))
}

/// Whether an archive has an event of a program, as far as it can be read.
pub fn has_events(archive: &mut File) -> bool {
    let mut read = || {
        archive.rewind().ok()?;
        let mut reader = Reader::new(Plain::open(&*archive).ok()?.0).ok()?;
        while let Some(record) = reader.next_item().ok()? {
            if matches!(record.item, Item::Event(_)) && record.provider != MANAGER {
                return Some(());
            }
        }
        None
    };
    read().is_some()
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
