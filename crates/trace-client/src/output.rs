//! Where an archive goes: a file that has its name only when it is complete, or anything that can be written
//! to.

use crate::error::{Error, Result};
use crate::lending::Lending;
use crate::sink::{FileSink, Sink, WriterSink};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use trace_protocol::controller::ArchiveFile;
use trace_protocol::limits::MAX_PATH_BYTES;

/// A trace reveals much about the programs in it.
const MODE: u32 = 0o600;
/// Maximum number of files of interrupted recordings beside the same output.
const MAX_PARTIALS: u32 = 1000;

/// The name of an output's archive while it is recorded: `trace.partial.fxt` for `trace.fxt`, and with a
/// number if that is taken.
#[must_use]
pub fn partial_name(name: &OsStr, number: u32) -> OsString {
    let strip = |suffix: &'static str| Some((name.as_bytes().strip_suffix(suffix.as_bytes())?, suffix));
    let found = strip(".fxt").or_else(|| strip(".fxt.zst")).filter(|(stem, _)| !stem.is_empty());
    let (stem, suffix) = found.unwrap_or((name.as_bytes(), ".fxt"));
    let mut partial = OsStr::from_bytes(stem).to_owned();
    if number > 0 {
        partial.push(format!("-{number}"));
    }
    partial.push(".partial");
    partial.push(suffix);
    partial
}

/// Where an archive goes. A path makes one: the file has that name when it is complete, and replaces one with
/// that name; until then it is called [`partial_name`].
pub struct Output(Target);

enum Target {
    File(PathBuf),
    Writer(Box<dyn Write + Send>),
}

impl Output {
    /// Anything that can be written to. What it has taken counts as written: programs do not keep it.
    pub fn writer(writer: impl Write + Send + 'static) -> Self {
        Self(Target::Writer(Box::new(writer)))
    }

    pub(crate) fn open(self) -> Result<OpenOutput> {
        match self.0 {
            Target::File(path) => PartialFile::create(path).map(OpenOutput::File),
            Target::Writer(writer) => Ok(OpenOutput::Writer(WriterSink(writer))),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::File(path) => f.debug_tuple("Output").field(path).finish(),
            Target::Writer(_) => f.debug_struct("Output").finish_non_exhaustive(),
        }
    }
}

impl<P: AsRef<Path>> From<P> for Output {
    fn from(path: P) -> Self {
        // The program may change its directory meanwhile.
        let path = path.as_ref();
        Self(Target::File(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())))
    }
}

/// An output that takes an archive.
pub(crate) enum OpenOutput {
    File(PartialFile),
    Writer(WriterSink<Box<dyn Write + Send>>),
}

/// A file under a temporary name.
pub(crate) struct PartialFile {
    sink: FileSink,
    /// Its name until it is complete.
    partial: PathBuf,
    path: PathBuf,
}

impl PartialFile {
    fn create(path: PathBuf) -> Result<Self> {
        let failed = |source| Error::Output { path: path.clone(), source };
        // A link is followed, and nothing but a file is replaced.
        let place = std::fs::canonicalize(&path);
        if place.is_err() && path.is_symlink() {
            return Err(failed(io::Error::other("it is a link that leads nowhere")));
        }
        let place = place.unwrap_or_else(|_| path.clone());
        if std::fs::metadata(&place).is_ok_and(|found| !found.is_file()) {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        let name = place.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        for number in 0..MAX_PARTIALS {
            let partial = place.with_file_name(partial_name(name, number));
            let mut options = OpenOptions::new();
            match options.create_new(true).read(true).write(true).mode(MODE).open(&partial) {
                Ok(file) => return Ok(Self { sink: FileSink::new(file), partial, path: place }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::Error::other("there are too many recordings there that were cut off")))
    }

    fn named(&self) -> Option<ArchiveFile> {
        let metadata = self.sink.file().metadata().ok()?;
        let path = std::path::absolute(&self.partial).ok()?.into_os_string().into_string().ok()?;
        (path.len() <= MAX_PATH_BYTES).then(|| ArchiveFile {
            path,
            device: metadata.dev(),
            inode: metadata.ino(),
            owner: Some(metadata.uid()),
        })
    }
}

impl OpenOutput {
    /// Name, device and inode of the file. The manager keeps them, so that `trace recover` finds it if this
    /// process dies.
    pub fn named(&self) -> Option<ArchiveFile> {
        match self {
            Self::File(file) => file.named(),
            Self::Writer(_) => None,
        }
    }

    /// Its temporary name, if it is a file.
    pub fn partial(&self) -> Option<PathBuf> {
        match self {
            Self::File(file) => Some(file.partial.clone()),
            Self::Writer(_) => None,
        }
    }

    /// What it is written through.
    pub fn writer(&mut self) -> &mut (dyn Write + Send) {
        match self {
            Self::File(file) => file.sink.file_mut(),
            Self::Writer(writer) => &mut writer.0,
        }
    }

    /// The archive is complete: gives the file its name, once its contents are on disk, and returns that.
    pub fn complete(self) -> Result<Option<PathBuf>> {
        let Self::File(PartialFile { sink, partial, path }) = self else {
            return Ok(None);
        };
        let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
        let rename = || {
            let found = std::fs::symlink_metadata(&partial).map(identity).ok();
            if found != Some(sink.file().metadata().map(identity)?) {
                return Err(io::Error::other(format!("{} has been moved", partial.display())));
            }
            sink.file().sync_all()?;
            std::fs::rename(&partial, &path)
        };
        match rename() {
            Ok(()) => Ok(Some(path)),
            Err(source) => {
                let source = Box::new(Error::Output { path, source });
                Err(Error::Incomplete { path: partial, source })
            }
        }
    }

    /// Removes the file: nothing has arrived.
    pub fn discard(self) {
        if let Self::File(file) = self {
            // It may have been deleted meanwhile.
            let _ = std::fs::remove_file(file.partial);
        }
    }
}

impl Sink for OpenOutput {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.sink.take(bytes),
            Self::Writer(writer) => writer.take(bytes),
        }
    }

    fn lend(&mut self) -> Option<(BorrowedFd<'_>, Lending)> {
        match self {
            Self::File(file) => file.sink.lend(),
            Self::Writer(writer) => writer.lend(),
        }
    }

    fn check(&mut self, written: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.sink.check(written),
            Self::Writer(writer) => writer.check(written),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.sink.finish(),
            Self::Writer(writer) => writer.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/recording.md#while-it-is-recorded
    #[test]
    fn a_partial_archive_is_named_after_its_output() {
        for (name, number, partial) in [
            ("trace.fxt", 0, "trace.partial.fxt"),
            ("trace.fxt", 2, "trace-2.partial.fxt"),
            ("trace.json", 0, "trace.json.partial.fxt"),
            ("trace.fxt.zst", 0, "trace.partial.fxt.zst"),
            ("trace.fxt.zst", 1, "trace-1.partial.fxt.zst"),
            ("trace.fxt.gz", 0, "trace.fxt.gz.partial.fxt"),
            (".fxt", 0, ".fxt.partial.fxt"),
        ] {
            assert_eq!(partial_name(OsStr::new(name), number), partial);
        }
    }

    #[test]
    fn a_file_has_its_name_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.fxt");
        std::fs::write(&path, "before").unwrap();
        let mut output = Output::from(&path).open().unwrap();
        output.take(b"archive").unwrap();
        let other = Output::from(&path).open().unwrap();
        assert_eq!(other.partial(), Some(directory.path().join("a-1.partial.fxt")));
        other.discard();
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(output.complete().unwrap(), Some(path.clone()));
        assert_eq!(std::fs::read(&path).unwrap(), b"archive");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);

        // Links are followed, and nothing but a file is replaced.
        let (link, fifo) = (directory.path().join("link"), directory.path().join("fifo"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for special in [directory.path(), &fifo] {
            let error = Output::from(special).open().err().unwrap();
            assert_eq!(
                crate::problem(&error),
                format!("cannot write {}: it is not a regular file", special.display())
            );
        }
        let lost = directory.path().join("lost");
        std::os::unix::fs::symlink(directory.path().join("missing"), &lost).unwrap();
        let error = Output::from(&lost).open().err().unwrap();
        assert!(crate::problem(&error).ends_with("it is a link that leads nowhere"), "{error}");
        let output = Output::from(&link).open().unwrap();
        assert_eq!(output.partial(), Some(directory.path().join("a.partial.fxt")));
        output.complete().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        // Another file has its name.
        let output = Output::from(&path).open().unwrap();
        let partial = output.partial().unwrap();
        std::fs::remove_file(&partial).unwrap();
        std::fs::write(&partial, "another").unwrap();
        let error = output.complete().unwrap_err();
        assert!(crate::problem(&error).ends_with("has been moved"), "{error:?}");
    }
}
