//! Files of a session's directory, which other programs may have put there.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, unlinkat};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Opens a regular file to be read. A link is not followed, and a device or a FIFO does not block.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_at(CWD, path)
}

/// Deletes a regular file if `is_meant` accepts it. Its directory is opened first, so that a process that
/// renames directories meanwhile cannot have another file deleted.
pub(crate) fn remove_if(path: &Path, is_meant: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("it has no name"));
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    is_meant(&open_at(&directory, Path::new(name))?)?;
    Ok(unlinkat(&directory, name, AtFlags::empty())?)
}

fn open_at(directory: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = openat(directory, path, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(File::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_special_files_are_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), "text").unwrap();
        assert_eq!(open(&path("file")).unwrap().metadata().unwrap().len(), 4);
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        assert_eq!(open(&path("link")).unwrap_err().raw_os_error(), Some(40));
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), Mode::RUSR).unwrap();
        assert_eq!(open(&path("fifo")).unwrap_err().to_string(), "it is not a regular file");
        assert_eq!(open(directory.path()).unwrap_err().to_string(), "it is not a regular file");
    }

    #[test]
    fn only_the_file_that_is_meant_is_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let refused = remove_if(&path, |_| Err(io::Error::other("it is another file")));
        assert_eq!(refused.unwrap_err().to_string(), "it is another file");
        assert!(path.exists());
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(remove_if(&link, |_| Ok(())).unwrap_err().raw_os_error(), Some(40));
        remove_if(&path, |_| Ok(())).unwrap();
        assert!(!path.exists());
    }
}
