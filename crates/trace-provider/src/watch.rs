//! Waits for a manager to appear in one of the runtime directories.

use rustix::fs::inotify;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Tells when something changes where a manager's socket may appear.
#[derive(Debug)]
pub(crate) struct Watch {
    inotify: OwnedFd,
}

impl Watch {
    /// Watches the directories, or the nearest parent of one that does not exist yet. None when the user's
    /// inotify instances are used up: then the caller looks once in a while.
    pub fn new(directories: &[PathBuf]) -> Option<Self> {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let watch = Self { inotify: inotify::init(flags).ok()? };
        let is_watched = directories.iter().map(|directory| watch.add(directory)).fold(false, |a, b| a | b);
        is_watched.then_some(watch)
    }

    fn add(&self, directory: &Path) -> bool {
        let wanted =
            inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::ATTRIB;
        directory.ancestors().any(|path| inotify::add_watch(&self.inotify, path, wanted).is_ok())
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
