//! Announces a running recording to programs that start, before they ask: a file in the runtime directory.
//! Where the file is missing, a program does not wait for a manager that does not answer.
//= docs/protocol.md#a-recording-is-announced

mod wanted_markers;

use super::log::log;
use crate::core::Recorded;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirEntry;
use std::io::Write;
use trace_protocol::registry::{RECORDING_OF_ALL, RECORDING_PREFIX, recording_of};
use wanted_markers::WantedMarkers;
use zx_sim::RuntimeDir;

/// The files, while there are any.
#[derive(Debug)]
pub(super) struct Announcement {
    /// The manager's own first.
    directories: Vec<RuntimeDir>,
    announced: BTreeSet<Recorded>,
    markers: WantedMarkers,
}

impl Announcement {
    /// Announces nothing, and removes the announcement of a manager that was killed.
    pub fn new(directories: Vec<RuntimeDir>) -> Self {
        let is_left = |entry: &DirEntry| entry.file_name().to_string_lossy().starts_with(RECORDING_PREFIX);
        for directory in &directories {
            let entries = std::fs::read_dir(directory.path()).into_iter().flatten().flatten();
            for entry in entries.filter(is_left) {
                let _ = directory.remove_file(&entry.file_name().to_string_lossy());
            }
        }
        let markers = WantedMarkers::new(&directories);
        Self { directories, announced: BTreeSet::new(), markers }
    }

    /// Announces the same in other directories from now on; what is in those before was removed with them.
    pub fn move_to(&mut self, directories: Vec<RuntimeDir>) {
        let announced = std::mem::take(&mut self.announced);
        let markers = self.markers.take();
        *self = Self::new(directories);
        self.set(announced);
        self.set_markers(markers);
    }

    /// Announces the tags of markers that are recorded, and of whose programs.
    pub fn set_markers(&mut self, wanted: BTreeMap<Recorded, u64>) {
        self.markers.set(&self.directories, wanted);
    }

    /// Announces the users whose programs are recorded, and removes previous announcements of others.
    pub fn set(&mut self, recorded: BTreeSet<Recorded>) {
        if recorded == self.announced {
            return;
        }
        for directory in &self.directories {
            for before in self.announced.difference(&recorded) {
                // It may be gone together with its directory.
                let _ = directory.remove_file(&name(*before));
            }
            for new in recorded.difference(&self.announced) {
                if let Err(error) = make(directory, &name(*new)) {
                    log(&format!(
                        "{error}; programs that start now may run for a moment before they are recorded"
                    ));
                }
            }
        }
        self.announced = recorded;
    }
}

fn make(directory: &RuntimeDir, name: &str) -> zx_sim::Result<()> {
    let mut file = directory.create_file(name)?;
    let written = write!(file, "{}", std::process::id());
    written.map_err(|source| zx_sim::Error::io(format!("cannot write {name}"), source))
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.set(BTreeSet::new());
        self.set_markers(BTreeMap::new());
    }
}

fn name(recorded: Recorded) -> String {
    match recorded {
        Recorded::All => RECORDING_OF_ALL.to_owned(),
        Recorded::User(uid) => recording_of(uid.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Uid;
    use std::fs;

    //= docs/protocol.md#a-recording-is-announced
    #[test]
    fn a_file_says_whose_programs_are_recorded_and_goes_with_the_recording() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = || RuntimeDir::open_or_create(&directory.path().join("run")).unwrap();
        let names = || {
            let entries = fs::read_dir(directory.path().join("run")).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let mut announcement = Announcement::new(vec![runtime()]);
        assert!(names().is_empty());
        let set = |users: &[Recorded]| users.iter().copied().collect::<BTreeSet<_>>();
        announcement.set(set(&[Recorded::User(Uid(1000))]));
        assert_eq!(names(), ["recording.1000"]);
        announcement.set(set(&[Recorded::User(Uid(1000)), Recorded::User(Uid(1001))]));
        assert_eq!(names(), ["recording.1000", "recording.1001"]);
        announcement.set(set(&[Recorded::All]));
        assert_eq!(names(), ["recording.all"]);
        let written = fs::read_to_string(directory.path().join("run/recording.all")).unwrap();
        assert_eq!(written, std::process::id().to_string());
        announcement.set(set(&[]));
        assert!(names().is_empty());
        // A manager that is killed takes nothing back; the next one does, and leaves what is not its own.
        announcement.set(set(&[Recorded::All]));
        std::mem::forget(announcement);
        fs::write(directory.path().join("run/registry"), "").unwrap();
        fs::write(directory.path().join("run/recording.7"), "").unwrap();
        let mut announcement = Announcement::new(vec![runtime()]);
        assert_eq!(names(), ["registry"]);
        announcement.set(set(&[Recorded::All]));
        // In a directory that appears it is announced, too, and in one that replaces it.
        let other = directory.path().join("other");
        announcement.move_to(vec![runtime(), RuntimeDir::open_or_create(&other).unwrap()]);
        assert!(other.join("recording.all").is_file());
        assert_eq!(names(), ["recording.all", "registry"]);
        drop(announcement);
        assert!(!other.join("recording.all").exists());
        assert_eq!(names(), ["registry"]);
    }
}
