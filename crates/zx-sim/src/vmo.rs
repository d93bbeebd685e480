//! Memory of a fixed size that processes share.
//!
//! A VMO is a file that is backed in full before anyone writes: a sparse file on a full tmpfs would kill
//! whoever touches it. It is read with `pread`, which is at worst short when the other side shrinks the file;
//! mapping it is for the side that writes.

use crate::error::{Error, Result};
use crate::handle::Handle;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, FileType, MemfdFlags, Mode, OFlags, SealFlags};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A fixed amount of shared memory.
#[derive(Debug)]
pub struct Vmo {
    file: File,
    path: Option<PathBuf>,
}

impl Vmo {
    /// A new file of `size` bytes in a directory, readable and writable by its owner only.
    ///
    /// # Errors
    /// [`Error::NoSpace`] when the file system has no room for all of it; otherwise what the operating
    /// system says. No file is left behind.
    pub fn create_in(directory: &Path, name: &str, size: u64) -> Result<Self> {
        let path = directory.join(name);
        let failed = |source| Error::io(format!("cannot create {}", path.display()), source);
        let space = rustix::fs::statvfs(directory)
            .map_err(|source| Error::io(format!("cannot examine {}", directory.display()), source))?;
        let available = space.f_bavail.saturating_mul(space.f_frsize);
        let no_space = || Error::NoSpace { directory: directory.to_owned(), needed: size, available };
        if available < size {
            return Err(no_space());
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        if let Err(source) = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size) {
            let _ = std::fs::remove_file(&path);
            return Err(match source {
                rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT => no_space(),
                source => failed(source),
            });
        }
        Ok(Self { file: file.into(), path: Some(path) })
    }

    /// Memory without a name, sealed against growing and shrinking.
    ///
    /// # Errors
    /// The memory cannot be had.
    pub fn anonymous(name: &str, size: u64) -> Result<Self> {
        let failed = |source| Error::io("cannot make anonymous memory", source);
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(failed)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size).map_err(failed)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(failed)?;
        Ok(Self { file: file.into(), path: None })
    }

    /// Takes a VMO out of a message.
    ///
    /// # Errors
    /// The handle is no regular file.
    pub fn from_handle(handle: Handle) -> Result<Self> {
        let descriptor = handle.into_fd();
        let is_file = rustix::fs::fstat(&descriptor)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if !is_file {
            return Err(Error::WrongType { expected: "vmo" });
        }
        Ok(Self { file: descriptor.into(), path: None })
    }

    /// Puts the VMO into a message.
    #[must_use]
    pub fn into_handle(self) -> Handle {
        Handle::new(OwnedFd::from(self.file))
    }

    /// A second handle of the same memory.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn duplicate(&self) -> Result<Self> {
        let file = self.file.try_clone().map_err(|source| Error::io("cannot duplicate a vmo", source))?;
        Ok(Self { file, path: self.path.clone() })
    }

    /// The file's name, if it has one and this process made it.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Size in bytes, as the file system has it now.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn size(&self) -> Result<u64> {
        self.file
            .metadata()
            .map(|metadata| metadata.len())
            .map_err(|source| Error::io("cannot examine a vmo", source))
    }

    /// Copies bytes out; fewer than asked for at the end.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(length) => done += length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::io("cannot read a vmo", source)),
            }
        }
        Ok(done)
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|source| Error::io("cannot write a vmo", source))
    }

    /// Maps all of it, shared and writable, with all pages present.
    ///
    /// # Errors
    /// The memory cannot be mapped.
    pub fn map(&self) -> Result<Mapping> {
        let raw = MmapOptions::new()
            .populate()
            .map_raw(&self.file)
            .map_err(|source| Error::io("cannot map a vmo", source))?;
        Ok(Mapping(raw))
    }
}

impl AsFd for Vmo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A mapped VMO. It hands out an address and never a reference: others may write at any time.
#[derive(Debug)]
pub struct Mapping(MmapRaw);

impl Mapping {
    /// Start of the mapping.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// Size in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an empty file cannot be mapped")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
