//! Waits for a manager to appear in one of the runtime directories.
//!
//! Closing an inotify instance makes the kernel wait until no processor looks at its watches any more: 10 ms
//! on an idle machine, seconds on a busy one. Removing a watch returns at once. So a process makes at most
//! one instance, only when it finds no manager, and keeps it: [`Watch::rest`] removes the watches, and by the
//! time the process closes the empty instance the kernel has nothing left to wait for.

use rustix::fs::inotify;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use zx_sim::guest::beyond_standard;

/// Becomes readable when something changes where a manager's socket may appear.
#[derive(Debug)]
pub(crate) struct Watch {
    inotify: OwnedFd,
    /// Descriptors of the watches that there are.
    watched: Vec<i32>,
}

impl Watch {
    /// Watches nothing yet. None when the user's inotify instances are used up: then the caller looks once in
    /// a while.
    pub fn new() -> Option<Self> {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let inotify = beyond_standard(inotify::init(flags).ok()?).ok()?;
        Some(Self { inotify, watched: Vec::new() })
    }

    /// Forgets what has happened so far, and watches the directories, or the nearest parent of one that does
    /// not exist yet. False if none of them can be watched.
    pub fn aim(&mut self, directories: &[PathBuf]) -> bool {
        // A directory that is watched already keeps its descriptor.
        let watched: Vec<i32> = directories.iter().filter_map(|directory| self.add(directory)).collect();
        let before = std::mem::replace(&mut self.watched, watched);
        before.into_iter().filter(|old| !self.watched.contains(old)).for_each(|old| self.remove(old));
        self.forget_events();
        !self.watched.is_empty()
    }

    /// Watches nothing any more.
    pub fn rest(&mut self) {
        std::mem::take(&mut self.watched).into_iter().for_each(|old| self.remove(old));
        self.forget_events();
    }

    /// That a watch was removed is an event, too.
    fn forget_events(&self) {
        let mut events = [0; 4096];
        while rustix::io::read(&self.inotify, &mut events).is_ok_and(|length| length > 0) {}
    }

    fn add(&self, directory: &Path) -> Option<i32> {
        let wanted =
            inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::ATTRIB;
        directory.ancestors().find_map(|path| inotify::add_watch(&self.inotify, path, wanted).ok())
    }

    /// The kernel has removed it already if its directory is gone.
    fn remove(&self, watch: i32) {
        let _ = inotify::remove_watch(&self.inotify, watch);
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn has_event(watch: &Watch) -> bool {
        let now = Some(std::time::Instant::now());
        zx_sim::wait_one(watch, zx_sim::Signals::READABLE, now).is_ok_and(|signals| !signals.is_empty())
    }

    #[test]
    fn a_watch_follows_a_directory_that_appears_and_can_rest() {
        let root = std::env::temp_dir().join(format!("trace-watch-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        let directory = root.join("run/trace");
        let mut watch = Watch::new().unwrap();
        assert!(watch.aim(&[directory.clone(), directory.clone()]));
        assert!(!has_event(&watch));
        fs::create_dir_all(&directory).unwrap();
        assert!(has_event(&watch), "its nearest parent is watched");
        assert!(watch.aim(std::slice::from_ref(&directory)));
        assert!(!has_event(&watch), "what has happened is forgotten");
        fs::write(root.join("other"), "").unwrap();
        assert!(!has_event(&watch), "the parent is not watched any more");
        fs::write(directory.join("registry"), "").unwrap();
        assert!(has_event(&watch));
        watch.rest();
        assert!(!watch.aim(&[]) && !has_event(&watch));
        fs::write(directory.join("provisioner"), "").unwrap();
        assert!(!has_event(&watch), "nothing is watched");
        assert!(watch.aim(std::slice::from_ref(&directory)));
        fs::write(directory.join("lock"), "").unwrap();
        assert!(has_event(&watch), "it can be used again");
        fs::remove_dir_all(root).unwrap();
    }
}
