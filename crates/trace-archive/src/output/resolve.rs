//! The directory and the name that a path leads to.
//!
//! A symbolic link is followed, wherever in the path it is, only if it belongs to the caller or to the owner
//! of the directory that it is in. In a directory that any user may write to, such as `/tmp`, other users may
//! put links, and would choose what is written. The kernel has the same rule, but for such directories only,
//! and only while `fs.protected_symlinks` is set.

use super::{Directory, OutputError, caller, cannot_write};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, readlinkat};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The kernel's limit.
const MAX_LINKS: usize = 40;

/// An existing entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    File,
    Directory,
    Other,
}

/// The location of a file, existing or not. Its name is no symbolic link.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    pub directory: Directory,
    pub name: OsString,
    pub found: Found,
}

/// Why nothing can be written there.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    #[error("it is a directory")]
    IsDirectory,
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it has no file name")]
    NoName,
    #[error(
        "{} is a symbolic link of user {owner}: a link is followed only if it belongs to the user who runs this, or to \
         the owner of its directory", .path.display()
    )]
    Link { path: PathBuf, owner: u32 },
    #[error("{}: more than {MAX_LINKS} symbolic links", .0.display())]
    Links(PathBuf),
    #[error("directory {}: {error}", shown(path).display())]
    Directory { path: PathBuf, error: io::Error },
}

/// A directory's name, for people.
fn shown(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// A remaining component of a path.
enum Step {
    Root,
    Up,
    Into(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Into(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Flags that open a path only for inspection.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl ResolvedPath {
    /// The location of a file: only a regular file may exist there.
    pub fn of_file(path: &Path) -> Result<Self, ResolveError> {
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(ResolveError::IsDirectory);
        }
        // A descriptor below /dev/fd has no location; its kind shows without one.
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            return Err(ResolveError::NotRegular);
        }
        let place = Self::of_any(path)?;
        match place.found {
            Found::Nothing | Found::File => Ok(place),
            Found::Directory => Err(ResolveError::IsDirectory),
            Found::Other => Err(ResolveError::NotRegular),
        }
    }

    /// Follows a path. All but its last part has to exist.
    pub fn of_any(path: &Path) -> Result<Self, ResolveError> {
        if path.as_os_str().is_empty() {
            return Err(ResolveError::NoName);
        }
        let root = Path::new("/");
        let mut path_so_far = PathBuf::new();
        let mut directory = open_directory(Path::new("."), &path_so_far)?;
        let mut left: VecDeque<Step> = steps(path).collect();
        let (mut links, mut is_linked) = (0, false);
        while let Some(step) = left.pop_front() {
            let name = match step {
                Step::Root => {
                    directory = open_directory(root, root)?;
                    path_so_far = root.to_owned();
                    continue;
                }
                Step::Up => OsString::from(".."),
                Step::Into(name) => name,
            };
            let failed = |source: rustix::io::Errno| {
                let path = if left.is_empty() { path_so_far.clone() } else { path_so_far.join(&name) };
                ResolveError::Directory { path, error: source.into() }
            };
            let found = match openat(&directory, &name, LOOK, Mode::empty()) {
                Ok(found) => found,
                Err(rustix::io::Errno::NOENT) if left.is_empty() => {
                    return Ok(Self::new(directory, path_so_far, is_linked, name, Found::Nothing));
                }
                Err(error) => return Err(failed(error)),
            };
            let status = fstat(&found).map_err(failed)?;
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Symlink => {
                    if !is_trusted(status.st_uid, &directory).map_err(failed)? {
                        return Err(ResolveError::Link {
                            path: path_so_far.join(name),
                            owner: status.st_uid,
                        });
                    }
                    is_linked |= caller::is_callers(status.st_uid);
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(ResolveError::Links(path.to_owned()));
                    }
                    let target = readlinkat(&found, "", Vec::new()).map_err(failed)?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    steps(&target).rev().for_each(|step| left.push_front(step));
                }
                FileType::Directory if left.is_empty() && name != OsStr::new("..") => {
                    return Ok(Self::new(directory, path_so_far, is_linked, name, Found::Directory));
                }
                FileType::Directory => {
                    directory = found;
                    path_so_far.push(name);
                }
                kind if left.is_empty() => {
                    let found = if kind == FileType::RegularFile { Found::File } else { Found::Other };
                    return Ok(Self::new(directory, path_so_far, is_linked, name, found));
                }
                _ => return Err(failed(rustix::io::Errno::NOTDIR)),
            }
        }
        Ok(Self::new(directory, path_so_far, is_linked, ".".into(), Found::Directory))
    }

    fn new(directory: OwnedFd, path: PathBuf, is_linked: bool, name: OsString, found: Found) -> Self {
        Self { directory: Directory { descriptor: Arc::new(directory), path, is_linked }, name, found }
    }

    /// The path without symbolic links.
    pub fn path(&self) -> PathBuf {
        self.directory.path.join(&self.name)
    }

    /// A file cannot be made here.
    pub fn cannot_create(&self, source: io::Error) -> OutputError {
        let directory = shown(&self.directory.path).display();
        let as_whom = caller::about_files(self.directory.is_linked)
            .filter(|_| source.kind() == io::ErrorKind::PermissionDenied);
        let why = as_whom.map_or_else(|| source.to_string(), |as_whom| format!("{source}; {as_whom}"));
        cannot_write(&self.path(), io::Error::new(source.kind(), format!("directory {directory}: {why}")))
    }
}

impl ResolveError {
    /// Why a file at a path cannot be written.
    pub fn of(self, path: &Path) -> OutputError {
        cannot_write(path, io::Error::other(self))
    }
}

/// Whether an entry of a directory was put there by the caller, or by the owner of the directory, who may do
/// anything in it anyway.
pub(super) fn is_trusted(owner: u32, directory: impl AsFd) -> rustix::io::Result<bool> {
    Ok(owner == rustix::process::geteuid().as_raw() || owner == fstat(directory)?.st_uid)
}

fn open_directory(path: &Path, shown: &Path) -> Result<OwnedFd, ResolveError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
        .map_err(|source| ResolveError::Directory { path: shown.to_owned(), error: source.into() })
}
