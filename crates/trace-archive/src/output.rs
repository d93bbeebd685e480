//! Files that are written for a user: each appears under its name only when it is complete.
//!
//! A trace reveals much about the programs in it, so a new file is readable by its owner alone, regardless of
//! the umask. A file that replaces another gets that one's mode and group. `place` describes how symbolic
//! links are followed.
//!
//! Everything happens relative to the directory that was opened first: a user who may rename directories
//! meanwhile cannot redirect a file.

pub mod caller;
mod folder;
mod resolve;
mod unfinished;

pub use folder::Folder;
pub use unfinished::{remove_all, watch};

use crate::confirm::name_of;
use resolve::{Found, ResolvedPath, is_trusted};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, fchmod, fchown, openat, statat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace_protocol::controller::ArchiveFile;
use trace_protocol::limits::MAX_PATH_BYTES;
use unfinished::Unfinished;
use zx_sim::file_size_limit;

/// The mode of a new file.
const NEW_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The bits of a replaced file's mode that the new one gets; set-user-ID programs are not made here.
const KEPT_MODE: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// Maximum number of files of interrupted recordings beside the same output.
const MAX_PARTIALS: u32 = 1000;

/// An open directory.
#[derive(Clone, Debug)]
struct Directory {
    descriptor: Arc<OwnedFd>,
    /// The path of the directory; empty for the current one.
    path: PathBuf,
    /// A link of the caller's leads to it, where root writes with the caller's rights.
    is_linked: bool,
}

/// A file under a temporary name, removed when this is dropped.
#[derive(Debug)]
pub struct TemporaryFile {
    file: File,
    directory: Directory,
    unfinished: Unfinished,
    path: PathBuf,
}

/// An output under a temporary name beside its place; removed unless it is finished.
#[derive(Debug)]
pub struct OutputFile {
    file: TemporaryFile,
    name: OsString,
    path: PathBuf,
    /// Whether it may replace a file; if not, the names to try when its name is taken.
    others: Option<Vec<PathBuf>>,
}

/// An output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct OutputError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

fn cannot_write(path: &Path, source: io::Error) -> OutputError {
    OutputError { path: path.to_owned(), source }
}

/// The name of an output's archive while it is recorded: `trace.partial.fxt` for `trace.fxt`, and with a
/// number if that is taken.
//= docs/recording.md#while-it-is-recorded
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

/// Gives a new file this mode, regardless of the umask. Some file systems have no modes: then it is as
/// private as they make it.
fn set_mode(file: &File, mode: Mode) {
    let _ = fchmod(file, mode);
}

impl TemporaryFile {
    /// A new file in the directory of another.
    pub fn beside(path: &Path, suffix: &str) -> Result<Self, OutputError> {
        let place = ResolvedPath::of_file(path).map_err(|why| why.of(path))?;
        Self::create(&place.directory, suffix).map_err(|source| place.cannot_create(source))
    }

    /// A new file in the system's directory for temporary files.
    pub fn anywhere(suffix: &str) -> Result<Self, OutputError> {
        Self::beside(&std::env::temp_dir().join("trace"), suffix)
    }

    fn create(directory: &Directory, suffix: &str) -> io::Result<Self> {
        loop {
            // Names only need to be different: an existing file is never opened.
            let name = format!(".trace-{:016x}{suffix}", RandomState::new().hash_one(std::process::id()));
            match Self::create_as(directory, name.into()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
    }

    fn create_as(directory: &Directory, name: OsString) -> io::Result<Self> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = directory.path.join(&name);
        let make = || {
            let _files = caller::files(directory.is_linked)?;
            openat(&directory.descriptor, &name, flags, NEW_MODE)
        };
        let (unfinished, file) = Unfinished::file(&directory.descriptor, name.clone(), make)?;
        let file = File::from(file);
        set_mode(&file, NEW_MODE);
        Ok(Self { file, directory: directory.clone(), unfinished, path })
    }

    /// A new file in the directory of another, with a name that shows what it is: `NAME.partial.fxt` beside
    /// `NAME.fxt`, or `NAME-1.partial.fxt` if that is taken.
    //= docs/recording.md#while-it-is-recorded
    pub fn partial_of(path: &Path) -> Result<Self, OutputError> {
        let place = ResolvedPath::of_file(path).map_err(|why| why.of(path))?;
        let made = Self::create_partial(&place.directory, &place.name);
        made.map_err(|source| place.cannot_create(source))
    }

    fn create_partial(directory: &Directory, name: &OsStr) -> io::Result<Self> {
        for number in 0..MAX_PARTIALS {
            match Self::create_as(directory, partial_name(name, number)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
        Err(io::Error::other(format!(
            "{MAX_PARTIALS} recordings that were cut off are there already; save them with trace recover, or delete them"
        )))
    }

    /// From here on it stays however the program ends, unless it gets its name or is discarded.
    pub fn keep_unless_finished(&mut self) {
        self.unfinished.keep_on_drop(true);
    }

    /// Undoes [`TemporaryFile::keep_unless_finished`].
    pub fn remove_when_dropped(&mut self) {
        self.unfinished.keep_on_drop(false);
    }

    /// Deletes it.
    pub fn discard(mut self) {
        self.remove_when_dropped();
    }

    /// The open file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// The open file, for looking at it only.
    pub fn file_ref(&self) -> &File {
        &self.file
    }

    /// The temporary name of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name, device and inode of the file. The manager keeps them, so that `trace recover` finds the file if
    /// this process dies.
    #[must_use]
    pub fn named(&self) -> Option<ArchiveFile> {
        let metadata = self.file.metadata().ok()?;
        let path = std::path::absolute(&self.path).ok()?.into_os_string().into_string().ok()?;
        (path.len() <= MAX_PATH_BYTES).then(|| ArchiveFile {
            path,
            device: metadata.dev(),
            inode: metadata.ino(),
            owner: Some(metadata.uid()),
        })
    }

    /// Gives it a name in its directory, once its contents are on disk. Replaces a file with that name.
    fn finish(&mut self, name: &OsStr) -> io::Result<()> {
        let replaced = statat(&self.directory.descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
        // A file that another user has put there does not decide which users may read this one.
        if let Ok(replaced) = replaced
            && FileType::from_raw_mode(replaced.st_mode) == FileType::RegularFile
            && is_trusted(replaced.st_uid, &self.directory.descriptor)?
        {
            let mut mode = Mode::from_raw_mode(replaced.st_mode) & KEPT_MODE;
            if fchown(&self.file, None, Some(Gid::from_raw(replaced.st_gid))).is_err() {
                // Permissions of its group are not for another group.
                mode -= Mode::RWXG;
            }
            set_mode(&self.file, mode);
        }
        let named = self.give_name(name);
        if named.is_err() {
            // It stays, and replaces nothing.
            set_mode(&self.file, NEW_MODE);
        }
        named
    }

    fn give_name(&mut self, name: &OsStr) -> io::Result<()> {
        self.file.sync_all()?;
        let _files = caller::files(self.directory.is_linked)?;
        self.unfinished.rename(&self.file, name)
    }

    /// Gives the file a name that no other file has; false if one has it.
    fn finish_new(&mut self, name: &OsStr) -> io::Result<bool> {
        self.file.sync_all()?;
        let _files = caller::files(self.directory.is_linked)?;
        self.unfinished.rename_new(&self.file, name)
    }
}

impl OutputFile {
    /// Makes the temporary file, so that an unusable path is reported before any work is done.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let place = ResolvedPath::of_file(path).map_err(|why| why.of(path))?;
        let file = TemporaryFile::create(&place.directory, ".partial");
        let file = file.map_err(|source| place.cannot_create(source))?;
        Ok(Self { file, path: place.path(), name: place.name, others: None })
    }

    /// An output whose name marks it as partial until it is complete.
    pub fn create_partial(path: &Path) -> Result<Self, OutputError> {
        let place = ResolvedPath::of_file(path).map_err(|why| why.of(path))?;
        let file = TemporaryFile::create_partial(&place.directory, &place.name);
        let file = file.map_err(|source| place.cannot_create(source))?;
        Ok(Self { file, path: place.path(), name: place.name, others: None })
    }

    /// A new file in an open directory, which replaces none: finishing it fails if its name is taken by then.
    pub fn create_in(descriptor: OwnedFd, path: PathBuf, name: OsString) -> Result<Self, OutputError> {
        let place = path.join(&name);
        let directory = Directory { descriptor: Arc::new(descriptor), path, is_linked: false };
        let file =
            TemporaryFile::create(&directory, ".partial").map_err(|source| cannot_write(&place, source))?;
        Ok(Self { file, path: place, name, others: Some(Vec::new()) })
    }

    /// The open file.
    pub fn file(&mut self) -> &mut File {
        self.file.file()
    }

    /// The file without its name.
    pub fn unfinished(&mut self) -> &mut TemporaryFile {
        &mut self.file
    }

    /// Abandons the name.
    pub fn into_unfinished(self) -> TemporaryFile {
        self.file
    }

    /// Uses the first unused one of other names in the same directory if a file has its name by the time it
    /// is complete.
    pub fn replace_nothing(&mut self, others: Vec<PathBuf>) {
        self.others = Some(others);
    }

    /// Whether a nonempty file has the name.
    pub fn would_replace(&self) -> bool {
        self.others.is_none() && std::fs::metadata(&self.path).is_ok_and(|found| found.len() > 0)
    }

    /// The path that the file has in the end.
    pub fn place(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, once its contents are on disk. Replaces a file with that name, unless that is
    /// not allowed.
    pub fn finish(mut self) -> Result<PathBuf, OutputError> {
        let cannot_write = |source| cannot_write(&self.path, source);
        let Some(others) = self.others else {
            self.file.finish(&self.name).map_err(cannot_write)?;
            return Ok(whereabouts(self.file.file_ref(), self.path));
        };
        let names = std::iter::once(self.name).chain(others.into_iter().map(PathBuf::into_os_string));
        for name in names {
            if self.file.finish_new(&name).map_err(cannot_write)? {
                return Ok(whereabouts(self.file.file_ref(), self.path.with_file_name(name)));
            }
        }
        Err(cannot_write(io::ErrorKind::AlreadyExists.into()))
    }
}

/// A file that does not grow beyond what this process may write (`ulimit -f`): the kernel would end a program
/// that tries to (SIGXFSZ). What is written goes to its end.
#[derive(Debug)]
pub struct Bounded<F> {
    file: F,
    written: u64,
}

impl<F: Write> Bounded<F> {
    /// An empty file.
    pub fn new(file: F) -> Self {
        Self { file, written: 0 }
    }

    /// The file.
    pub fn file(&self) -> &F {
        &self.file
    }

    /// Bytes that were written.
    pub fn written(&self) -> u64 {
        self.written
    }
}

impl<F: Write> Write for Bounded<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = usize::try_from(file_size_limit().saturating_sub(self.written)).unwrap_or(usize::MAX);
        if room == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "File too large (ulimit -f)"));
        }
        let count = self.file.write(&bytes[..bytes.len().min(room)])?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a file for reading by its name, if it is the one that is open already: another user may have put
/// something else in its place, which would be taken for it.
///
/// # Errors
/// It is another one, or cannot be opened.
pub fn open_same(path: &Path, file: &File) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let identity = |file: &File| file.metadata().map(|found| (found.dev(), found.ino()));
    let opened = rustix::fs::open(path, flags, Mode::empty()).map(File::from);
    match opened {
        Ok(opened) if identity(&opened)? == identity(file)? => Ok(opened),
        Ok(_) | Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOENT | rustix::io::Errno::NXIO) => {
            let now = name_of(file).unwrap_or_default();
            Err(io::Error::other(format!("it has been moved; it is now {}", now.display())))
        }
        Err(error) => Err(error.into()),
    }
}

/// Where an open file is: at a path, unless it was moved, alone or with a directory.
pub fn whereabouts(file: &File, path: PathBuf) -> PathBuf {
    let is_there = match (file.metadata(), std::fs::symlink_metadata(&path)) {
        (Ok(open), Ok(found)) => (open.dev(), open.ino()) == (found.dev(), found.ino()),
        _ => false,
    };
    if is_there { path } else { name_of(file).unwrap_or(path) }
}

/// Makes a file under its own name, for the manager to write into, and returns its path. None if the name is
/// taken.
pub fn create_new(path: &Path) -> Result<Option<(File, PathBuf)>, OutputError> {
    let place = ResolvedPath::of_any(path).map_err(|why| why.of(path))?;
    if place.found != Found::Nothing {
        return Ok(None);
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = caller::files(place.directory.is_linked)
        .and_then(|_files| openat(&place.directory.descriptor, &place.name, flags, NEW_MODE));
    match made {
        Ok(file) => {
            let file = File::from(file);
            set_mode(&file, NEW_MODE);
            Ok(Some((file, place.path())))
        }
        Err(rustix::io::Errno::EXIST) => Ok(None),
        Err(error) => Err(place.cannot_create(error.into())),
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
}
