//! Files and directories that are removed if they do not become complete. A command that has called [`watch`]
//! can remove all of them at once, when a signal ends it; a library in another program takes no lock for
//! them.

use crate::confirm::name_of;
use rustix::fs::{AtFlags, RenameFlags, fstat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// In the order in which they were made: a directory before its contents.
static ALL: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());

static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// All that is unfinished, if that is watched. Nothing is made, renamed or removed while this is locked.
fn all() -> Option<MutexGuard<'static, Vec<Arc<Entry>>>> {
    let lock = || ALL.lock().unwrap_or_else(PoisonError::into_inner);
    IS_WATCHED.load(Ordering::Relaxed).then(lock)
}

/// From now on it is known what is unfinished.
pub fn watch() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

/// Removes all that is unfinished, before this process ends: nothing is created from here on.
pub fn remove_all() {
    if let Some(mut all) = all() {
        all.drain(..).rev().for_each(|entry| entry.remove());
        std::mem::forget(all);
    }
}

#[derive(Debug)]
struct Entry {
    directory: Arc<OwnedFd>,
    name: OsString,
    flags: AtFlags,
    /// Device and inode of what was made.
    identity: Option<(u64, u64)>,
}

impl Entry {
    /// A directory that has other files in it stays, and what has taken the name meanwhile.
    fn remove(&self) {
        if self.identity.is_some() && self.found() == self.identity {
            let _ = unlinkat(&self.directory, &self.name, self.flags);
        }
    }

    /// What has the name now.
    fn found(&self) -> Option<(u64, u64)> {
        statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .ok()
            .map(|found| (found.st_dev, found.st_ino))
    }
}

/// Something that is not complete; removed when this is dropped, unless it is to be kept.
#[derive(Debug)]
pub(super) struct Unfinished {
    entry: Option<Arc<Entry>>,
    is_kept: bool,
}

impl Unfinished {
    /// Makes a file. Between its creation and its registration no signal is handled.
    pub fn file<T, E>(
        directory: &Arc<OwnedFd>,
        name: OsString,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        Self::new(directory, name, AtFlags::empty(), make)
    }

    /// Makes a directory, in the same way.
    pub fn directory<E>(
        directory: &Arc<OwnedFd>,
        name: OsString,
        make: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        Self::new(directory, name, AtFlags::REMOVEDIR, make).map(|(unfinished, ())| unfinished)
    }

    fn new<T, E>(
        directory: &Arc<OwnedFd>,
        name: OsString,
        flags: AtFlags,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        let mut all = all();
        let made = make()?;
        let mut entry = Entry { directory: directory.clone(), name, flags, identity: None };
        entry.identity = entry.found();
        let entry = Arc::new(entry);
        all.iter_mut().for_each(|all| all.push(entry.clone()));
        Ok((Self { entry: Some(entry), is_kept: false }, made))
    }

    /// Gives a file its name; replaces a file with that name. It is an error if the file was moved away, or
    /// if another file is in its place.
    pub fn rename(&mut self, file: &File, name: &OsStr) -> io::Result<()> {
        self.rename_with(file, |entry| renameat(&entry.directory, &entry.name, &entry.directory, name))
    }

    /// The same, if the name is unused; false if it is used.
    pub fn rename_new(&mut self, file: &File, name: &OsStr) -> io::Result<bool> {
        let renamed = self.rename_with(file, |entry| {
            let directory = &entry.directory;
            match renameat_with(directory, &entry.name, directory, name, RenameFlags::NOREPLACE) {
                // The file system does not support this.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    if statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                        return Err(Errno::EXIST);
                    }
                    renameat(directory, &entry.name, directory, name)
                }
                renamed => renamed,
            }
        });
        match renamed {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            renamed => renamed.map(|()| true),
        }
    }

    fn rename_with(
        &mut self,
        file: &File,
        rename: impl FnOnce(&Entry) -> Result<(), Errno>,
    ) -> io::Result<()> {
        let mut all = all();
        if let Some(entry) = &self.entry {
            let open = fstat(file).ok().map(|found| (found.st_dev, found.st_ino));
            if entry.found() != open {
                let now = name_of(file).unwrap_or_default();
                let (now, before) = (now.display(), entry.name.display());
                return Err(io::Error::other(format!("{before} has been moved; it is now {now}")));
            }
            rename(entry)?;
        }
        self.take_from(&mut all);
        Ok(())
    }

    /// It is complete under the name that it has.
    pub fn keep(mut self) {
        self.take_from(&mut all());
    }

    /// Sets whether it stays if it is dropped, or a signal ends the program.
    pub fn keep_on_drop(&mut self, is_kept: bool) {
        let mut all = all();
        if let (Some(entry), Some(all)) = (&self.entry, &mut all) {
            all.retain(|other| !Arc::ptr_eq(other, entry));
            if !is_kept {
                all.push(entry.clone());
            }
        }
        self.is_kept = is_kept;
    }

    fn take_from(&mut self, all: &mut Option<MutexGuard<'_, Vec<Arc<Entry>>>>) -> Option<Arc<Entry>> {
        let own = self.entry.take()?;
        all.iter_mut().for_each(|all| all.retain(|entry| !Arc::ptr_eq(entry, &own)));
        Some(own)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.entry.is_some() && !self.is_kept {
            let own = self.take_from(&mut all());
            own.iter().for_each(|entry| entry.remove());
        }
    }
}
