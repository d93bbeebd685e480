//! Notes of programs that have stopped waiting for their manager before it knew of them, in the runtime
//! directory of their user: each has written its name, and was not recorded.
//= docs/protocol.md#programs-of-which-something-is-missing

use crate::files;
use std::fs::DirEntry;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use trace_protocol::limits::MAX_PROVIDER_NAME_BYTES;
use trace_protocol::registry::GAVE_UP_PREFIX;

/// How many notes are returned at a time.
const MOST: usize = 1000;
/// How many notes are opened at a time: notes that no manager takes are deleted after a week.
const MOST_OPENED: usize = 10_000;

/// A program that gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    path: PathBuf,
    /// The pid of the program's process.
    pub pid: u64,
    /// The user who owns the note.
    pub uid: u32,
    /// The provider's name, without control characters.
    pub name: String,
    /// When the program gave up.
    pub at: SystemTime,
}

impl Note {
    fn read(path: PathBuf) -> Option<Self> {
        let number = path.file_name()?.to_str()?.strip_prefix(GAVE_UP_PREFIX)?;
        // Programs write the pid without a sign or leading zeros, so that a process has one note.
        let pid: u32 = number.parse().ok().filter(|pid: &u32| *pid > 0 && pid.to_string() == number)?;
        let file = files::open(&path).ok()?;
        let found = file.metadata().ok()?;
        let mut name = Vec::new();
        file.take(MAX_PROVIDER_NAME_BYTES as u64).read_to_end(&mut name).ok()?;
        let mut name = String::from_utf8_lossy(&name).replace(char::is_control, "\u{fffd}");
        name.truncate(name.floor_char_boundary(MAX_PROVIDER_NAME_BYTES));
        Some(Self { path, pid: pid.into(), uid: found.uid(), name, at: found.modified().ok()? })
    }

    /// Deletes the note.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn delete(&self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

/// The notes in a runtime directory from a time on, at most 1000. None is from the future.
#[must_use]
pub fn notes(runtime: &Path, since: SystemTime) -> Vec<Note> {
    let now = SystemTime::now();
    let entries = std::fs::read_dir(runtime).into_iter().flatten().flatten();
    let is_named = |entry: &DirEntry| entry.file_name().as_bytes().starts_with(GAVE_UP_PREFIX.as_bytes());
    let named = entries.filter(is_named).take(MOST_OPENED);
    let notes = named.filter_map(|entry| Note::read(entry.path()));
    notes.filter(|note| (since..=now).contains(&note.at)).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn notes_are_plain_files_with_a_process_in_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(format!("{GAVE_UP_PREFIX}{name}"));
        std::fs::write(path("7"), "app\u{1b}[2J").unwrap();
        for wrong in ["x", "07", "+7", "0", "4294967296", ""] {
            std::fs::write(path(wrong), "none").unwrap();
        }
        std::fs::write(directory.path().join("recording.7"), "none").unwrap();
        std::os::unix::fs::symlink(path("7"), path("8")).unwrap();
        std::fs::write(path("9"), "\u{e4}".repeat(500)).unwrap();
        let mut found = notes(directory.path(), SystemTime::UNIX_EPOCH);
        found.sort_by_key(|note| note.pid);
        let names: Vec<_> = found.iter().map(|note| (note.pid, note.name.as_str())).collect();
        assert_eq!(names, [(7, "app\u{fffd}[2J"), (9, &*"\u{e4}".repeat(50))]);
        assert_eq!(found[0].uid, rustix::process::geteuid().as_raw());
        // Notes before `since`, and notes that are dated in the future, are left out.
        let set = |name: &str, at| std::fs::File::open(path(name)).unwrap().set_modified(at).unwrap();
        let second = Duration::from_secs(1);
        let since = found[0].at;
        set("7", since - second);
        set("9", SystemTime::now() + 3600 * second);
        assert_eq!(notes(directory.path(), since), []);
        found[0].delete().unwrap();
        assert!(!path("7").exists());
    }
}
