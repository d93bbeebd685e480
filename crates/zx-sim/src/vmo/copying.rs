//! Copies of memory, in steps.

use super::{Vmo, available_in};
use crate::error::{Error, Result};
use crate::runtime_dir::open_private;
use rustix::fs::{CWD, OFlags, SeekFrom, ftruncate, seek};
use rustix::io::Errno;
use std::path::Path;

/// How much is copied in one call, and what finding it is taken to cost.
const COPY_BYTES: usize = 64 << 10;

/// A copy of a VMO while it is being made: what has memory is copied, and holes stay holes.
#[derive(Debug)]
pub struct Copying {
    /// None when it is dropped.
    from: Option<Vmo>,
    /// None when it was returned.
    to: Option<Vmo>,
    size: u64,
    /// Everything in front of it is copied.
    offset: u64,
    /// Up to there it is known to have memory: to find a hole takes as long as there is memory in front.
    known: u64,
}

impl Copying {
    /// Begins to copy the first `size` bytes into a new file, on a file system of which so many free bytes
    /// are promised to others.
    ///
    /// # Errors
    /// [`Error::NoSpace`] when there is no room for what has memory; otherwise the operating system's error.
    pub fn begin(from: Vmo, directory: &Path, name: &str, size: u64, promised: u64) -> Result<Self> {
        let path = directory.join(name);
        Vmo::check_file_size(size)?;
        let needed = from.backed_bytes()?.min(size);
        let available = available_in(directory)?.saturating_sub(promised);
        if available < needed {
            return Err(Error::NoSpace { directory: directory.to_owned(), needed, available });
        }
        let failed = |source| Error::io(format!("cannot create {}", path.display()), source);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = open_private(CWD, &path, flags).map_err(failed)?;
        // It is removed if this fails.
        let to = Some(Vmo { file, path: Some(path.clone()) });
        let copying = Self { from: Some(from), to, size, offset: 0, known: 0 };
        copying.to.iter().try_for_each(|to| ftruncate(to, size)).map_err(failed)?;
        Ok(copying)
    }

    /// Copies about this many further bytes; returns the copy when they were the last. Where the memory is
    /// shorter by now, the rest is a hole.
    ///
    /// # Errors
    /// The memory cannot be read, or the copy not be written.
    pub fn step(&mut self, bytes: u64) -> Result<Option<Vmo>> {
        let (Some(from), Some(to)) = (&self.from, &self.to) else {
            return Ok(None);
        };
        let mut chunk = vec![0; COPY_BYTES];
        let mut left = bytes;
        while left > 0 {
            left = left.saturating_sub(COPY_BYTES as u64);
            if self.offset >= self.known {
                // Without support for holes everything is data.
                let data = match seek(from, SeekFrom::Data(self.offset)) {
                    Err(Errno::NXIO) => self.size,
                    found => found.unwrap_or(self.offset),
                };
                self.offset = data.max(self.offset);
                self.known = seek(from, SeekFrom::Hole(self.offset)).unwrap_or(self.size).min(self.size);
            }
            let wanted = self.known.saturating_sub(self.offset).min(COPY_BYTES as u64);
            let chunk = &mut chunk[..usize::try_from(wanted).unwrap_or(0)];
            let read = from.read_at(self.offset, chunk)?;
            if read == 0 {
                return Ok(self.to.take());
            }
            to.write_at(self.offset, &chunk[..read])?;
            self.offset += read as u64;
        }
        Ok(None)
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        if let Some(from) = self.from.take() {
            from.give_up();
        }
        if let Some(path) = self.to.as_ref().and_then(Vmo::path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_memory_is_copied_in_steps_and_holes_stay_holes() {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let sparse = tempfile::tempfile_in(&directory).unwrap();
        let size = 64 << 20;
        sparse.set_len(size).unwrap();
        let from = Vmo { file: sparse, path: None };
        let (first, last) = (vec![7; 3 * COPY_BYTES + 5], [9; 4096]);
        from.write_at(4096, &first).unwrap();
        from.write_at(size - 4096, &last).unwrap();
        let backed = from.backed_bytes().unwrap();
        let mut copying =
            Copying::begin(from.duplicate().unwrap(), directory.path(), "copy", size, 0).unwrap();
        let mut steps = 1;
        let copy = loop {
            match copying.step(COPY_BYTES as u64).unwrap() {
                Some(copy) => break copy,
                None => steps += 1,
            }
        };
        assert_eq!(steps, 6, "four and a bit, one, and the end");
        assert_eq!((copy.size().unwrap(), copy.backed_bytes().unwrap()), (size, backed));
        let bytes = usize::try_from(size).unwrap();
        assert!(copy.to_bytes(bytes).unwrap() == from.to_bytes(bytes).unwrap());
        drop(copying);
        assert!(directory.path().join("copy").exists());
        // One that is given up leaves nothing; memory that has become shorter is a hole at the end.
        let mut copying =
            Copying::begin(from.duplicate().unwrap(), directory.path(), "other", size, 0).unwrap();
        assert!(copying.step(1).unwrap().is_none());
        drop(copying);
        assert!(!directory.path().join("other").exists());
        let mut copying =
            Copying::begin(from.duplicate().unwrap(), directory.path(), "other", size, 0).unwrap();
        from.file.set_len(8192).unwrap();
        let copy = copying.step(u64::MAX).unwrap().unwrap();
        assert_eq!(copy.to_bytes(8200).unwrap()[8190..], [7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(matches!(
            Copying::begin(copy, directory.path(), "more", size, u64::MAX),
            Err(Error::NoSpace { needed: 1.., available: 0, .. })
        ));
    }
}
