//! The file of a recording in the background. Its path is what the client says that has begun the recording,
//! who may be another user: only the file that the manager has written is moved or deleted.
//= docs/protocol.md#tasks

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::OwnedFd;
use std::path::Path;
use trace_protocol::controller::ArchiveFile;

/// That file, open for reading.
pub struct WrittenFile {
    /// Where it is, whatever becomes of the path.
    directory: OwnedFd,
    name: OsString,
    known: ArchiveFile,
    file: File,
}

fn is_known(found: &Stat, known: &ArchiveFile) -> bool {
    (found.st_dev, found.st_ino) == (known.device, known.inode)
}

fn other() -> Error {
    Error::other("it is not the file of the recording, which was moved or replaced")
}

impl WrittenFile {
    /// Opens it, if a path is that of the file that is known from the manager.
    pub fn open(path: &Path, known: Option<&ArchiveFile>) -> Result<Self> {
        let known = known.ok_or_else(other)?.clone();
        let parent = path.parent().filter(|parent| *parent != OsStr::new("")).unwrap_or(Path::new("."));
        let name = path.file_name().ok_or_else(other)?.to_owned();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, parent, flags, Mode::empty())?;
        // What is opened may be anything, as a pipe without a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&directory, &name, flags, Mode::empty())?;
        match is_known(&fstat(&file)?, &known) {
            true => Ok(Self { directory, name, known, file: file.into() }),
            false => Err(other()),
        }
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Deletes it, if it is still there.
    pub fn delete(self) -> Result<()> {
        if !is_known(&statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)?, &self.known) {
            return Err(other());
        }
        Ok(unlinkat(&self.directory, &self.name, AtFlags::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn known(path: &Path) -> ArchiveFile {
        let found = fs::metadata(path).unwrap();
        ArchiveFile { path: String::new(), device: found.dev(), inode: found.ino(), owner: None }
    }

    //= docs/protocol.md#tasks
    #[test]
    fn only_the_file_itself_is_opened_and_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let [own, other, link] = ["own", "other", "link"].map(|name| directory.path().join(name));
        fs::write(&own, "trace").unwrap();
        fs::write(&other, "other").unwrap();
        symlink(&own, &link).unwrap();
        let its = known(&own);
        for path in [&other, &link, &directory.path().join("none"), Path::new("/")] {
            assert!(WrittenFile::open(path, Some(&its)).is_err(), "{}", path.display());
        }
        assert!(WrittenFile::open(&own, None).is_err());
        let mut file = WrittenFile::open(&own, Some(&its)).unwrap();
        let mut text = String::new();
        file.file().read_to_string(&mut text).unwrap();
        assert_eq!(text, "trace");
        file.delete().unwrap();
        assert!(!own.exists() && other.exists());
    }

    /// Another file that takes its place, or that of its directory, meanwhile.
    #[test]
    fn what_takes_its_place_stays() {
        let directory = tempfile::tempdir().unwrap();
        let [here, away] = ["here", "away"].map(|name| directory.path().join(name));
        for place in [&here, &away] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("a"), "trace").unwrap();
        }
        let file = WrittenFile::open(&here.join("a"), Some(&known(&here.join("a")))).unwrap();
        fs::rename(here.join("a"), here.join("b")).unwrap();
        fs::write(here.join("a"), "another").unwrap();
        assert!(file.delete().is_err());
        assert_eq!(fs::read(here.join("a")).unwrap(), b"another");
        let file = WrittenFile::open(&here.join("a"), Some(&known(&here.join("a")))).unwrap();
        fs::rename(&here, directory.path().join("moved")).unwrap();
        symlink(&away, &here).unwrap();
        file.delete().unwrap();
        assert!(away.join("a").exists() && !directory.path().join("moved/a").exists());
    }
}
