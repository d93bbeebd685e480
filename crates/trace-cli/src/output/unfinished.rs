//! Files and directories that are removed when a signal ends the program before they are complete.

use crate::exit::Failure;
use rustix::fs::{AtFlags, renameat, unlinkat};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// In the order in which they were made: a directory before what is in it.
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
    /// A directory that somebody has put something into stays.
    fn remove(&self) {
        let _ = unlinkat(&self.directory, &self.name, self.flags);
    }
}

/// Something that is not complete; removed when this is dropped.
#[derive(Debug)]
pub(super) struct Unfinished(Option<Arc<Entry>>);

impl Unfinished {
    /// A file that is made here. Between its making and its being known no signal is obeyed.
    pub fn file<T, E>(
        directory: &Arc<OwnedFd>,
        name: OsString,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        Self::new(directory, name, AtFlags::empty(), make)
    }

    /// A directory, in the same way.
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
        Ok((Self(Some(entry)), made))
    }

    /// Gives it its name; what had that before is replaced.
    pub fn rename(mut self, name: &OsStr) -> io::Result<()> {
        let mut all = all();
        if let Some(entry) = &self.0 {
            renameat(&entry.directory, &entry.name, &entry.directory, name)?;
        }
        self.take_from(&mut all);
        Ok(())
    }

    /// It is complete under the name that it has.
    pub fn keep(mut self) {
        self.take_from(&mut all());
    }

    fn take_from(&mut self, all: &mut Vec<Arc<Entry>>) -> Option<Arc<Entry>> {
        let own = self.0.take()?;
        all.retain(|entry| !Arc::ptr_eq(entry, &own));
        Some(own)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.0.is_some() {
            let own = self.take_from(&mut all());
            own.iter().for_each(|entry| entry.remove());
        }
    }
}

/// From here on Ctrl-C and its like end the program, as without this, and leave nothing unfinished behind.
pub fn remove_on_signal() -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot wait for signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let thread = std::thread::Builder::new().name("trace-signals".to_owned());
    let waiting = thread.spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        // Nothing is made any more from here on.
        let mut all = all();
        all.drain(..).rev().for_each(|entry| entry.remove());
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    });
    waiting.map(drop).map_err(failed)
}
