//! Files and directories that are removed when a signal ends the program before they are complete.

use crate::exit::Failure;
use crate::signals;
use crate::stdio::{self, say};
use rustix::fs::{AtFlags, RenameFlags, Stat, fstat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;
use signal_hook::iterator::{Handle, Signals};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use trace_archive::confirm::name_of;

/// In the order in which they were made: a directory before its contents.
static ALL: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<Arc<Entry>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Entry {
    directory: Arc<OwnedFd>,
    name: OsString,
    flags: AtFlags,
}

impl Entry {
    /// A directory that has other files in it stays.
    fn remove(&self) {
        let _ = unlinkat(&self.directory, &self.name, self.flags);
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
        let entry = Arc::new(Entry { directory: directory.clone(), name, flags });
        all.push(entry.clone());
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
            let of = |found: Stat| (found.st_dev, found.st_ino);
            let found = statat(&entry.directory, &entry.name, AtFlags::SYMLINK_NOFOLLOW);
            if found.map(of) != fstat(file).map(of) {
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
        if let Some(entry) = &self.entry {
            all.retain(|other| !Arc::ptr_eq(other, entry));
            if !is_kept {
                all.push(entry.clone());
            }
        }
        self.is_kept = is_kept;
    }

    fn take_from(&mut self, all: &mut Vec<Arc<Entry>>) -> Option<Arc<Entry>> {
        let own = self.entry.take()?;
        all.retain(|entry| !Arc::ptr_eq(entry, &own));
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

/// While it exists, Ctrl-C and similar signals end the program as usual, and leave nothing unfinished behind.
/// It exists until it is closed.
#[derive(Debug)]
#[must_use]
pub struct Removing {
    handle: Handle,
    waiting: JoinHandle<()>,
}

impl Removing {
    /// From here on other code handles signals, and has begun to do so already. One that has come before is
    /// handled now.
    pub fn close(self) {
        self.handle.close();
        let _ = self.waiting.join();
    }
}

/// The next signal, or one that had come when the handle was closed.
fn next(signals: &mut Signals) -> Option<i32> {
    signals.forever().next().or_else(|| signals.pending().next())
}

/// Starts removing unfinished files on signals.
pub fn remove_on_signal() -> Result<Removing, Failure> {
    remove_on_signal_saying(None)
}

/// The same, and prints a message then.
pub fn remove_on_signal_saying(words: Option<String>) -> Result<Removing, Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot wait for signals: {error}"));
    let mut signals = Signals::new(signals::ending()).map_err(failed)?;
    let handle = signals.handle();
    let thread = std::thread::Builder::new().name("trace-signals".to_owned());
    let waiting = thread.spawn(move || {
        let Some(signal) = next(&mut signals) else { return };
        words.iter().for_each(|words| say!("trace: {words}"));
        // Nothing is created any more from here on.
        let mut all = all();
        all.drain(..).rev().for_each(|entry| entry.remove());
        // Messages wait for a thread of their own, which would end with the program.
        stdio::finish();
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    });
    waiting.map(|waiting| Removing { handle, waiting }).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGUSR1;

    #[test]
    fn a_signal_before_the_end_of_waiting_is_not_lost() {
        let mut signals = Signals::new([SIGUSR1]).unwrap();
        signal_hook::low_level::raise(SIGUSR1).unwrap();
        // The waiting thread has not had its turn meanwhile.
        signals.handle().close();
        assert_eq!(next(&mut signals), Some(SIGUSR1));
        assert_eq!(next(&mut signals), None);
    }
}
