//! The directory where a user's sockets and VMOs live.

use crate::environment;
use crate::error::{Error, Result, Unsafe};
use crate::liveness::{self, Mark};
use crate::sys;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory that belongs to this user alone.
#[derive(Debug)]
pub struct RuntimeDir {
    path: PathBuf,
    directory: OwnedFd,
}

/// A lock. It is held until it is dropped, or until the process that took it and those of its children by
/// `fork` that run no other program are all dead.
#[derive(Debug)]
pub struct Lock {
    file: std::fs::File,
    taken_by: u32,
}

impl Lock {
    /// Of a file that is locked.
    pub(crate) fn of(file: std::fs::File) -> Self {
        Self { file, taken_by: std::process::id() }
    }

    /// Marks the file, as long as the lock is held, for processes that must not wait for it.
    ///
    /// # Errors
    /// As [`liveness::mark`].
    pub fn mark(&self) -> Result<()> {
        liveness::mark(&self.file)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would not release it while a child that is about to run another program has it
        // too; and such a child must not release it by dropping its copy.
        if self.taken_by == std::process::id() {
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
            let _ = sys::unlock_description(&self.file);
        }
    }
}

impl RuntimeDir {
    /// The candidate directories: the one that an environment variable names, alone, unless the program runs
    /// with privileges that its caller does not have; else the [usual](Self::usual) one, those [of login
    /// sessions](Self::of_sessions), other usual ones that this user has, as one may be in use that was free
    /// before, and the system's, `/run/<name>`.
    //= docs/protocol.md#where-processes-meet
    #[must_use]
    pub fn candidates(variable: &str, name: &str) -> Vec<PathBuf> {
        if let Some(path) = environment::variable(variable).filter(|value| !value.is_empty()) {
            return vec![PathBuf::from(path)];
        }
        let mut found = Self::of_sessions(name);
        found.insert(0, Self::usual(name));
        for place in places_of(own_uid(), name) {
            // That of another user holds nothing for this one.
            if place.is_dir() && may_be_had(&place) {
                found.push(place);
            }
        }
        found.push(Path::new("/run").join(name));
        // Of equal ones the first.
        let mut at = 1;
        while at < found.len() {
            if found[..at].contains(&found[at]) {
                found.remove(at);
            } else {
                at += 1;
            }
        }
        found
    }

    /// Where the processes of a user meet, whatever their environments: the first of `/dev/shm/<name>-<uid>`,
    /// `/tmp/<name>-<uid>` and `/run/user/<uid>/<name>` that is this user's, or not there. Any user may
    /// create the former two, and keep them from this user.
    //= docs/protocol.md#where-processes-meet
    #[must_use]
    pub fn usual(name: &str) -> PathBuf {
        let mut places = places_of(own_uid(), name);
        let chosen = places.iter().position(|place| may_be_had(place)).unwrap_or(0);
        places.swap_remove(chosen)
    }

    /// Where the processes of another user may meet, which that user or any other may have made.
    //= docs/protocol.md#where-processes-meet
    #[must_use]
    pub fn of_user(uid: u32, name: &str) -> Vec<PathBuf> {
        places_of(uid, name)
    }

    /// The directories of the user's login sessions, in which earlier releases meet:
    /// `$XDG_RUNTIME_DIR/<name>` and `/run/user/<uid>/<name>`, whether they are there or not.
    //= docs/protocol.md#where-processes-meet
    #[must_use]
    pub fn of_sessions(name: &str) -> Vec<PathBuf> {
        let mut places = vec![private_base(own_uid()).join(name)];
        let base = environment::variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        if let Some(base) = base.filter(|base| base.is_absolute() && !places[0].starts_with(base)) {
            places.insert(0, base.join(name));
        }
        places
    }

    /// Opens a runtime directory, and makes it if it is not there: mode 0700, this user's, no symlink, and
    /// not below a directory where another user may replace it.
    ///
    /// # Errors
    /// It cannot be made, or the existing one is not safe to use.
    pub fn open_or_create(path: &Path) -> Result<Self> {
        Self::open_or_create_with(path, Mode::RWXU)
    }

    /// As [`RuntimeDir::open_or_create`], with mode 0755: every user may connect to sockets in it, and create
    /// nothing.
    ///
    /// # Errors
    /// As for [`RuntimeDir::open_or_create`].
    pub fn open_or_create_for_all(path: &Path) -> Result<Self> {
        Self::open_or_create_with(path, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH)
    }

    fn open_or_create_with(path: &Path, expected: Mode) -> Result<Self> {
        // A slash at the end would follow a symlink.
        let path: &Path = &path.components().collect::<PathBuf>();
        let failed = |source| Error::io(format!("cannot use {}", path.display()), source);
        let problem = |problem: Unsafe| Error::Unsafe { path: path.to_owned(), problem };
        if let Some(above) = replaceable_ancestor(path) {
            return Err(problem(Unsafe::Replaceable { above }));
        }
        let is_new = match rustix::fs::mkdir(path, expected) {
            Ok(()) => true,
            Err(rustix::io::Errno::EXIST) => false,
            Err(source) => return Err(Error::io(format!("cannot create {}", path.display()), source)),
        };
        if is_new {
            restore_mode(path, expected).map_err(failed)?;
        }
        let seen = rustix::fs::statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        match FileType::from_raw_mode(seen.st_mode) {
            FileType::Directory => {}
            FileType::Symlink => return Err(problem(Unsafe::Symlink)),
            _ => return Err(problem(Unsafe::NotDirectory)),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let directory = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
        // The opened directory counts, not the one that was checked before.
        let stat = rustix::fs::fstat(&directory).map_err(failed)?;
        let uid = rustix::process::geteuid().as_raw();
        if stat.st_uid != uid {
            return Err(problem(Unsafe::Owner { found: stat.st_uid, expected: uid }));
        }
        if !is_new {
            let (found, expected) = (stat.st_mode & 0o777, expected.bits());
            if found != expected {
                return Err(problem(Unsafe::Mode { found, expected }));
            }
        }
        Ok(Self { path: path.to_owned(), directory })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its path leads to it no more: it was deleted, or another one is in its place.
    #[must_use]
    pub fn is_displaced(&self) -> bool {
        let found = rustix::fs::statat(rustix::fs::CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW);
        let own = rustix::fs::fstat(&self.directory);
        !matches!((found, own), (Ok(found), Ok(own)) if (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino))
    }

    /// A second handle of the same directory.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn duplicate(&self) -> Result<Self> {
        let directory = self.directory.try_clone();
        let directory = directory.map_err(|source| Error::io("cannot duplicate a directory", source))?;
        Ok(Self { path: self.path.clone(), directory })
    }

    /// Creates an empty file in it, or truncates the one with that name; a symbolic link is not followed.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create_file(&self, name: &str) -> Result<std::fs::File> {
        create_no_follow(&self.directory, Path::new(name))
            .map_err(|source| Error::io(format!("cannot create {}", self.path.join(name).display()), source))
    }

    /// As [`Self::create_file`], with a [mark](liveness) that lasts as long as the file is open.
    ///
    /// # Errors
    /// As [`Self::create_file`], and [`liveness::mark`].
    pub fn create_marked_file(&self, name: &str) -> Result<std::fs::File> {
        self.create_file(name)?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty());
        let file = std::fs::File::from(file.map_err(|source| Error::io("cannot open a file again", source))?);
        liveness::mark(&file)?;
        Ok(file)
    }

    /// Opens or creates a file in it for appending; a symbolic link is not followed.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn append_to_file(&self, name: &str) -> Result<std::fs::File> {
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        open_private(&self.directory, Path::new(name), flags)
            .map_err(|source| Error::io(format!("cannot create {}", self.path.join(name).display()), source))
    }

    /// Removes a file in the directory that was opened, even if its path leads to another one now.
    ///
    /// # Errors
    /// It is not there, or cannot be removed.
    pub fn remove_file(&self, name: &str) -> Result<()> {
        rustix::fs::unlinkat(&self.directory, name, AtFlags::empty())
            .map_err(|source| Error::io(format!("cannot remove {}", self.path.join(name).display()), source))
    }

    /// Takes a lock, whose file then holds our pid. None while another process has it.
    ///
    /// # Errors
    /// The lock's file cannot be used.
    pub fn lock(&self, name: &str) -> Result<Option<Lock>> {
        Ok(self.locked(name)?.map(Lock::of))
    }

    /// As [`Self::lock`], with a mark and without a descriptor, as long as the mark lives.
    ///
    /// # Errors
    /// As [`Self::lock`] and [`Mark::of`].
    pub fn hold(&self, name: &str) -> Result<Option<Mark>> {
        let Some(file) = self.locked(name)? else { return Ok(None) };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let again = rustix::fs::openat(&self.directory, name, flags, Mode::empty());
        let again = again.map_err(|source| Error::io("cannot open a lock again", source))?;
        Mark::of(file, again.into()).map(Some)
    }

    fn locked(&self, name: &str) -> Result<Option<std::fs::File>> {
        let failed = |source| Error::io(format!("cannot use {}", self.path.join(name).display()), source);
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = open_private(&self.directory, Path::new(name), flags).map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(None),
            Err(source) => return Err(failed(source)),
        }
        let io_failed = |source| Error::io(format!("cannot use {}", self.path.join(name).display()), source);
        file.set_len(0).map_err(io_failed)?;
        file.rewind().map_err(io_failed)?;
        write!(file, "{}", std::process::id()).map_err(io_failed)?;
        Ok(Some(file))
    }

    /// The process that last took a lock.
    #[must_use]
    pub fn lock_holder(&self, name: &str) -> Option<u32> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty()).ok()?;
        let mut text = String::new();
        std::fs::File::from(file).take(16).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    /// Makes a new directory of mode 0700 in it, named after `prefix` and a number that this process has not
    /// used: what was deleted, and what is in its place, have different names.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create_unique_dir(&self, prefix: &str) -> Result<PathBuf> {
        self.create_unique(prefix, prefix)
    }

    /// As [`Self::create_unique_dir`], under a name that it has until it is [finished](finish_dir): so it has
    /// no other name before all of its contents are there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create_unfinished_dir(&self, prefix: &str) -> Result<PathBuf> {
        self.create_unique(&format!("{UNFINISHED}{prefix}"), prefix)
    }

    fn has(&self, name: &str) -> bool {
        rustix::fs::statat(self.directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn create_unique(&self, prefix: &str, finished: &str) -> Result<PathBuf> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = (u64::from(std::process::id()) << 20) + NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{prefix}-{number:x}");
            match rustix::fs::mkdirat(self.directory.as_fd(), &name, Mode::RWXU) {
                // One of a process that had this number before, or has it in another pid namespace.
                Ok(()) if name.starts_with(UNFINISHED) && self.has(&format!("{finished}-{number:x}")) => {
                    let _ = rustix::fs::unlinkat(self.directory.as_fd(), &name, AtFlags::REMOVEDIR);
                }
                Ok(()) => {
                    let path = self.path.join(name);
                    let _ = restore_mode(&path, Mode::RWXU);
                    return Ok(path);
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(source) => {
                    return Err(Error::io(
                        format!("cannot create {}", self.path.join(name).display()),
                        source,
                    ));
                }
            }
        }
    }
}

/// Begins the name of a directory that is not [finished](finish_dir).
pub const UNFINISHED: &str = ".new-";

/// Gives a directory of [`RuntimeDir::create_unfinished_dir`] the name that it keeps, and returns that.
///
/// # Errors
/// It is no such directory, or cannot be renamed.
pub fn finish_dir(unfinished: &Path) -> Result<PathBuf> {
    let failed = |source| Error::io(format!("cannot rename {}", unfinished.display()), source);
    let name = unfinished.file_name().and_then(|name| name.to_str()?.strip_prefix(UNFINISHED));
    let name = name.ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
    let finished = unfinished.with_file_name(name);
    std::fs::rename(unfinished, &finished).map_err(failed)?;
    Ok(finished)
}

/// Creates or truncates a file, unless a symbolic link stands in its place.
pub(crate) fn create_no_follow(directory: impl AsFd, name: &Path) -> rustix::io::Result<std::fs::File> {
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let file = rustix::fs::openat(directory, name, flags, mode)?;
    keep_mode(&file, mode);
    Ok(file.into())
}

/// Opens or creates a file that is its owner's alone, regardless of the umask.
///
/// # Errors
/// The operating system's.
pub fn open_private(directory: impl AsFd, name: &Path, flags: OFlags) -> rustix::io::Result<std::fs::File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat(directory, name, flags, mode)?;
    keep_mode(&file, mode);
    Ok(file.into())
}

/// Gives a file that was just opened a mode regardless of the umask, with which its owner could not even open
/// it again. Another user's stays as it is.
fn keep_mode(file: &impl AsFd, mode: Mode) {
    let _ = rustix::fs::fchmod(file, mode);
}

/// Restores bits of a new directory's mode that the umask has cleared: it may not even be readable. What
/// another user has put in its place is left alone.
fn restore_mode(path: &Path, mode: Mode) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    if !is_own(&rustix::fs::fstat(&directory)?) {
        return Err(rustix::io::Errno::PERM);
    }
    let place = format!("/proc/thread-self/fd/{}", directory.as_raw_fd());
    match rustix::fs::chmod(place, mode) {
        // Without /proc the umask decides.
        Err(rustix::io::Errno::NOENT) => Ok(()),
        changed => changed,
    }
}

/// Directories in which any user may make directories; the one in memory comes first.
const SHARED_BASES: [&str; 2] = ["/dev/shm", "/tmp"];
/// A user's own directory that no other user can make, if there is one.
fn private_base(uid: u32) -> PathBuf {
    Path::new("/run/user").join(uid.to_string())
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Where a user's own may be: in a directory that does not exist only if no other one does.
fn places_of(uid: u32, name: &str) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for base in SHARED_BASES.map(Path::new) {
        if base.is_dir() {
            places.push(base.join(format!("{name}-{uid}")));
        }
    }
    let private = private_base(uid);
    if places.is_empty() || private.is_dir() {
        places.push(private.join(name));
    }
    // Where no other user can make one.
    if uid == 0 && Path::new("/run").is_dir() {
        places.push(Path::new("/run").join(format!("{name}-0")));
    }
    places
}

/// Whether a directory is this user's, or can be made; false if other users can take it away.
fn may_be_had(path: &Path) -> bool {
    let is_safe = replaceable_ancestor(path).is_none();
    let is_own = match rustix::fs::statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Directory && is_own(&stat),
        Err(error) => error == rustix::io::Errno::NOENT,
    };
    is_safe && is_own
}

fn is_own(stat: &rustix::fs::Stat) -> bool {
    stat.st_uid == own_uid()
}

/// Whether only this user or root can make files in a directory.
pub(crate) fn may_be_trusted(directory: &Path) -> bool {
    let others = Mode::WGRP | Mode::WOTH;
    rustix::fs::statat(rustix::fs::CWD, directory, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        (is_own(&stat) || stat.st_uid == 0) && !Mode::from_raw_mode(stat.st_mode).intersects(others)
    })
}

/// The nearest directory above a path in which any user may rename and replace entries.
fn replaceable_ancestor(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let is_open = |directory: &&Path| {
        rustix::fs::stat(*directory).is_ok_and(|stat| {
            let mode = Mode::from_raw_mode(stat.st_mode);
            mode.contains(Mode::WOTH) && !mode.contains(Mode::SVTX)
        })
    };
    path.ancestors().skip(1).find(is_open).map(Path::to_owned)
}
