//! Files of a session's directory, which others may have put there.

use rustix::fs::{FileType, Mode, OFlags, fstat};
use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a regular file to be read. A link is not followed, and a device or a FIFO holds nobody up.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
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
}
