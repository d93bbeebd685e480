//! Directories for recordings that a command makes for itself, and their managers.
//!
//! A directory is removed with its command. What a killed command has left is removed by the next one that
//! makes such a directory: the lock on a file in it is held as long as its command lives.

use crate::connection;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use trace_protocol::names::RUNTIME_VARIABLE;

/// The file that is locked. A directory without it was not made here.
const LOCK: &str = ".trace-in-use";
/// How long a manager may take to listen, on a busy machine.
const START_WAIT: Duration = Duration::from_secs(30);
/// How long a manager may take to end.
const END_WAIT: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(2);

/// A directory that only this user can read.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
    _lock: File,
}

impl Scratch {
    /// Makes one whose name begins with `prefix`, and removes those that killed commands have left.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn in_directory(base: &Path, prefix: &str) -> io::Result<Self> {
        remove_left(base, prefix);
        let permissions = Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new().prefix(prefix).permissions(permissions).tempdir_in(base)?;
        // Another command sees the file only when it is locked.
        let unlocked = directory.path().join(".new");
        let lock = File::create_new(&unlocked)?;
        lock.lock()?;
        fs::rename(unlocked, directory.path().join(LOCK))?;
        Ok(Self { directory, _lock: lock })
    }

    /// Makes one in `/dev/shm`, or among temporary files where that is missing.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn in_memory(prefix: &str) -> io::Result<Self> {
        let shared = Path::new("/dev/shm");
        let base = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        Self::in_directory(&base, prefix)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Starts a manager in it, for recordings that name the directory. None if it does not start: then a
    /// recording tries the same, and says why.
    pub fn start_manager(&self, tool: &Path) -> Option<Manager> {
        let manager = Command::new(tool)
            .args(["manager", "--on-demand", "--parent", &std::process::id().to_string()])
            .env(RUNTIME_VARIABLE, self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let mut manager = Manager(manager.ok()?);
        // A recording would start another one, which stays after its end.
        let deadline = Instant::now() + START_WAIT;
        while !connection::answers(self.path()) {
            if !matches!(manager.0.try_wait(), Ok(None)) || Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(INTERVAL);
        }
        Some(manager)
    }
}

/// A manager, which ends when this is dropped.
#[derive(Debug)]
pub struct Manager(Child);

impl Drop for Manager {
    fn drop(&mut self) {
        terminate(&self.0);
        // It makes a directory anew that is deleted while it runs.
        let deadline = Instant::now() + END_WAIT;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(INTERVAL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks a child to end, which has not been waited for.
pub fn terminate(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};

    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Removes directories of this user's whose commands do not run any more.
fn remove_left(base: &Path, prefix: &str) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        // Neither follows a link: another user cannot make a directory of this user's.
        let is_own = || entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        if named && is_own() {
            remove_if_left(&entry.path());
        }
    }
}

fn remove_if_left(directory: &Path) {
    let lock: PathBuf = directory.join(LOCK);
    let is_free = |lock: &File| lock.try_lock().is_ok();
    let Some(_lock) = File::open(lock).ok().filter(is_free) else { return };
    if !connection::answers(directory) {
        // What cannot be removed now is removed later.
        let _ = fs::remove_dir_all(directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_and_what_belongs_to_others_stays() {
        let base = tempfile::tempdir().unwrap();
        let make = || Scratch::in_directory(base.path(), "trace-x-").unwrap();
        let used = make();
        // Of a command that was killed.
        let Scratch { directory, _lock } = make();
        let left = directory.keep();
        drop(_lock);
        let precious = base.path().join("trace-x-result");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("data"), "").unwrap();
        let other = base.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(LOCK), "").unwrap();
        std::os::unix::fs::symlink(&other, base.path().join("trace-x-link")).unwrap();
        let made = make();
        let is_there = [used.path(), &left, &precious.join("data"), &other.join(LOCK), made.path()]
            .map(|path| path.exists());
        assert_eq!(is_there, [true, false, true, true, true]);
        let path = made.path().to_owned();
        drop(made);
        assert!(!path.exists());
    }
}
