//! The directories beneath which files may be read, and recordings be written.
//!
//! The kernel resolves each path from an open directory (`openat2` with `RESOLVE_BENEATH`), so that neither
//! `..` nor a symbolic link leads out, also while others rename directories. What is opened is a regular
//! file: opening a FIFO would wait, and opening a device may have effects.
//= docs/mcp.md#security

use crate::shell::exit::Failure;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat,
};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longest path.
pub const MAX_PATH_BYTES: usize = 1000;
/// Tries while directories are renamed.
const TRIES: u32 = 16;
/// How deep a list of traces goes.
const MAX_DEPTH: u32 = 4;
/// Entries of directories that a list looks at.
const MAX_ENTRIES: usize = 20_000;
/// Endings of the names of traces, without those of compression.
const ENDINGS: [&str; 5] = [".fxt", ".json", ".pftrace", ".perfetto-trace", ".ftrace"];

/// A directory, and everything beneath it.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    descriptor: OwnedFd,
}

/// The directories.
#[derive(Debug)]
pub struct Jail {
    roots: Vec<Root>,
}

/// A trace in a list.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its path from its directory.
    pub path: String,
    pub bytes: u64,
    /// When it was written, in seconds since 1970.
    pub modified_s: i64,
}

/// Why there is no file for a path.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error("expected a path of 1 to {MAX_PATH_BYTES} bytes")]
    Length,
    #[error("a path has at most {MAX_PATH_BYTES} bytes")]
    TooLong,
    #[error("expected the name of a file")]
    NoName,
    #[error("there is a file with this name already")]
    Exists,
    #[error("it is being replaced; try again")]
    Replaced,
    #[error("it is {what}")]
    Kind { what: &'static str },
    #[error("it is outside the directories that this server may read")]
    Outside,
    #[error("it leads out of the directories that this server may read")]
    LeadsOut,
    #[error("there is no such file")]
    Missing,
    #[error("this needs Linux 5.6 or newer (openat2)")]
    OldKernel,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The directory and the name of a new file.
#[derive(Debug)]
pub struct NewFile {
    pub directory: OwnedFd,
    /// The directory's path, for people.
    pub path: PathBuf,
    pub name: OsString,
}

impl Jail {
    /// Opens the directories.
    pub fn open(directories: &[PathBuf]) -> Result<Self, Failure> {
        let open = |directory: &PathBuf| {
            let failed = |why: io::Error| Failure::new(format!("cannot use {}: {why}", directory.display()));
            let path = directory.canonicalize().map_err(failed)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let descriptor = openat(CWD, &path, flags, Mode::empty()).map_err(|why| failed(why.into()))?;
            Ok(Root { path, descriptor })
        };
        Ok(Self { roots: directories.iter().map(open).collect::<Result<_, Failure>>()? })
    }

    /// The paths of the directories.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.path.as_path())
    }

    /// Opens a regular file for reading.
    pub fn file(&self, path: &str) -> Result<File, PathError> {
        self.beneath(path, |root, rest| {
            let looked = resolve(root, rest, OFlags::PATH)?;
            let found = fstat(&looked)?;
            if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                return Ok(Err(PathError::Kind { what: kind(&found) }));
            }
            // Not even something that has taken its place since makes this wait.
            let file = resolve(root, rest, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
            let is_same = fstat(&file).map(|opened| identity(&opened) == identity(&found))?;
            Ok(if is_same { Ok(File::from(file)) } else { Err(PathError::Replaced) })
        })
    }

    /// The directory and the name of a new file: the directory exists, the name does not.
    pub fn new_file(&self, path: &str) -> Result<NewFile, PathError> {
        let file = Path::new(path);
        let name = file.file_name().filter(|_| !path.ends_with('/') && !path.ends_with("/."));
        let Some(name) = name.map(ToOwned::to_owned) else {
            return Err(PathError::NoName);
        };
        let parent = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_str().unwrap_or_default(),
            _ => ".",
        };
        if path.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        let directory = self.beneath(parent, |root, rest| {
            let directory = resolve(root, rest, OFlags::PATH | OFlags::DIRECTORY)?;
            Ok(match statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => Ok(directory),
                Err(error) => return Err(error),
                Ok(_) => Err(PathError::Exists),
            })
        })?;
        Ok(NewFile { directory, path: PathBuf::from(parent), name })
    }

    /// Does something beneath the first directory in which a path leads somewhere.
    fn beneath<T>(
        &self,
        path: &str,
        act: impl Fn(&Root, &Path) -> Result<Result<T, PathError>, Errno>,
    ) -> Result<T, PathError> {
        if path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(PathError::Length);
        }
        let absolute = Path::new(path);
        let mut why = PathError::Outside;
        for root in &self.roots {
            let rest = match absolute.is_absolute() {
                true => match absolute.strip_prefix(&root.path) {
                    Ok(rest) if rest.as_os_str().is_empty() => Path::new("."),
                    Ok(rest) => rest,
                    Err(_) => continue,
                },
                false => absolute,
            };
            match act(root, rest) {
                Ok(done) => return done,
                Err(Errno::NOENT) => why = PathError::Missing,
                Err(Errno::XDEV) => return Err(PathError::LeadsOut),
                Err(Errno::NOSYS) => return Err(PathError::OldKernel),
                Err(error) => return Err(PathError::Io(error.into())),
            }
        }
        Err(why)
    }

    /// The traces beneath the directories, by the endings of their names, sorted by path; and whether there
    /// may be more.
    pub fn list(&self) -> (Vec<Listed>, bool) {
        let mut walk = Walk { found: Vec::new(), entries: 0 };
        let is_only = self.roots.len() == 1;
        for root in &self.roots {
            let begin = if is_only { PathBuf::new() } else { root.path.clone() };
            walk.directory(&root.descriptor, Path::new("."), &begin, MAX_DEPTH);
        }
        walk.found.sort();
        (walk.found, walk.entries >= MAX_ENTRIES)
    }
}

/// The file at a path beneath a directory.
fn resolve(root: &Root, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let open = || openat2(&root.descriptor, path, flags | OFlags::CLOEXEC, Mode::empty(), beneath);
    // A directory was renamed while a `..` was resolved.
    (1..TRIES).map(|_| open()).find(|opened| !matches!(opened, Err(Errno::AGAIN))).unwrap_or_else(open)
}

fn identity(found: &Stat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

fn kind(found: &Stat) -> &'static str {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO, not a regular file",
        FileType::Socket => "a socket, not a regular file",
        _ => "a device, not a regular file",
    }
}

/// A walk through directories.
struct Walk {
    found: Vec<Listed>,
    entries: usize,
}

impl Walk {
    /// What cannot be read is left out. Symbolic links are not followed.
    fn directory(&mut self, parent: &impl AsFd, name: &Path, path: &Path, depth: u32) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(directory) = openat(parent, name, flags, Mode::empty()) else { return };
        let Ok(entries) = Dir::read_from(&directory) else { return };
        for entry in entries.flatten() {
            let name = Path::new(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()));
            if [".", ".."].contains(&name.to_str().unwrap_or_default()) {
                continue;
            }
            self.entries += 1;
            if self.entries >= MAX_ENTRIES {
                return;
            }
            let Ok(found) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let path = path.join(name);
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory if depth > 0 => self.directory(&directory, name, &path, depth - 1),
                // A name that is not UTF-8 cannot be asked for.
                FileType::RegularFile if is_trace(name) => {
                    self.found.extend(path.to_str().map(|path| Listed {
                        path: path.to_owned(),
                        bytes: found.st_size.unsigned_abs(),
                        modified_s: found.st_mtime,
                    }))
                }
                _ => {}
            }
        }
    }
}

fn is_trace(name: &Path) -> bool {
    let Some(name) = name.to_str() else { return false };
    let plain = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    ENDINGS.iter().any(|ending| plain.ends_with(ending))
}
