//! Says which tags of markers are recorded: to programs that are no providers, and write markers into the
//! kernel's buffer only while a manager records it.
//= docs/protocol.md#markers-that-are-wanted

use crate::core::Recorded;
use crate::daemon::log::log;
use std::collections::BTreeMap;
use std::fs::{DirEntry, File};
use std::os::unix::fs::FileExt;
use trace_protocol::registry::{MARKERS_OF_ALL, MARKERS_PREFIX, markers_of};
use zx_sim::RuntimeDir;

/// The files, while markers are recorded. A file counts as long as it is locked: the kernel unlocks those of
/// a manager that dies.
#[derive(Debug)]
pub(super) struct WantedMarkers {
    wanted: BTreeMap<Recorded, u64>,
    /// Locked.
    files: Vec<File>,
}

impl WantedMarkers {
    /// Wants none, and removes the files of a manager that was killed.
    pub fn new(directories: &[RuntimeDir]) -> Self {
        remove_all(directories);
        Self { wanted: BTreeMap::new(), files: Vec::new() }
    }

    /// What it has said. From now on it has said nothing, and its files do not count.
    pub fn take(&mut self) -> BTreeMap<Recorded, u64> {
        self.files.clear();
        std::mem::take(&mut self.wanted)
    }

    /// Says which tags are recorded of whose programs.
    pub fn set(&mut self, directories: &[RuntimeDir], wanted: BTreeMap<Recorded, u64>) {
        if wanted == self.wanted {
            return;
        }
        remove_all(directories);
        self.files.clear();
        for directory in directories {
            for (recorded, tags) in &wanted {
                match make(directory, &name(*recorded), *tags) {
                    Ok(file) => self.files.push(file),
                    Err(error) => {
                        log(&format!("{error}; programs that have no provider write no markers"));
                    }
                }
            }
        }
        self.wanted = wanted;
    }
}

fn remove_all(directories: &[RuntimeDir]) {
    let is_one = |entry: &DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name == MARKERS_OF_ALL || name.starts_with(MARKERS_PREFIX)
    };
    for directory in directories {
        let entries = std::fs::read_dir(directory.path()).into_iter().flatten().flatten();
        for entry in entries.filter(is_one) {
            let _ = directory.remove_file(&entry.file_name().to_string_lossy());
        }
    }
}

/// Makes a file that counts from its last byte on.
fn make(directory: &RuntimeDir, name: &str, tags: u64) -> zx_sim::Result<File> {
    let file = directory.create_marked_file(name)?;
    let written = file.write_all_at(&tags.to_le_bytes(), 0);
    written.map_err(|source| zx_sim::Error::io(format!("cannot write {name}"), source))?;
    Ok(file)
}

fn name(recorded: Recorded) -> String {
    match recorded {
        Recorded::All => MARKERS_OF_ALL.to_owned(),
        Recorded::User(uid) => markers_of(uid.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Announcement;
    use super::*;
    use crate::core::Uid;
    use std::fs;
    use std::path::Path;
    use zx_sim::liveness;

    /// Names and contents of the files, and whether they are locked.
    fn files(directory: &Path) -> Vec<(String, Vec<u8>, bool)> {
        let entry = |entry: std::io::Result<DirEntry>| {
            let path = entry.unwrap().path();
            let is_locked = liveness::is_marked(&File::open(&path).unwrap()).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap(), is_locked)
        };
        let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(entry).collect();
        files.sort();
        files
    }

    //= docs/protocol.md#markers-that-are-wanted
    #[test]
    fn a_locked_file_holds_the_tags_while_they_are_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let [run, other] = ["run", "other"].map(|name| directory.path().join(name));
        let runtime = |path: &Path| RuntimeDir::open_or_create(path).unwrap();
        let mut announcement = Announcement::new(vec![runtime(&run)]);
        assert!(files(&run).is_empty());
        let of = |tags: u64| tags.to_le_bytes().to_vec();
        announcement.set_markers(BTreeMap::from([(Recorded::All, 0x1001)]));
        assert_eq!(files(&run), [("markers".to_owned(), of(0x1001), true)]);
        let user = Recorded::User(Uid(1000));
        announcement.set_markers(BTreeMap::from([(Recorded::All, 9), (user, 0x1001)]));
        let both = [("markers".to_owned(), of(9), true), ("markers.1000".to_owned(), of(0x1001), true)];
        assert_eq!(files(&run), both);
        announcement.move_to(vec![runtime(&run), runtime(&other)]);
        assert_eq!((files(&run), files(&other)), (both.to_vec(), both.to_vec()));
        announcement.set_markers(BTreeMap::new());
        assert_eq!((files(&run).len(), files(&other).len()), (0, 0));
        // A manager that is killed leaves a file without a lock, which the next one removes.
        fs::write(run.join("markers.7"), of(1)).unwrap();
        fs::write(run.join("registry"), "").unwrap();
        let mut announcement = Announcement::new(vec![runtime(&run)]);
        assert_eq!(files(&run).len(), 1);
        announcement.set_markers(BTreeMap::from([(Recorded::All, 1)]));
        assert_eq!(files(&run).len(), 2);
        drop(announcement);
        assert_eq!(files(&run).len(), 1);
    }
}
