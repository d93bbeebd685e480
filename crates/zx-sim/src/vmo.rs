//! Memory of a fixed size that processes share.
//!
//! A VMO is a file that is backed in full before it is written to: a sparse file on a full tmpfs would kill
//! the process that touches it. Only a process that has the memory allocated first may write to a
//! [sparse](Backing::begin_sparse) one. It is read with `pread`, which is at worst short when the other side
//! shrinks the file; only the writing side maps it.

mod copying;

pub use copying::Copying;

use crate::error::{Error, Result};
use crate::guest::beyond_standard;
use crate::handle::{Handle, close_memory};
use crate::liveness;
use crate::runtime_dir::open_private;
use crate::sys;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::{Errno, retry_on_intr};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A fixed amount of shared memory.
#[derive(Debug)]
pub struct Vmo {
    file: File,
    path: Option<PathBuf>,
}

impl Vmo {
    /// Whether there may be a file of this size.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn check_file_size(size: u64) -> Result<()> {
        check_size(size)?;
        let most = file_size_limit();
        if size <= most {
            Ok(())
        } else {
            Err(Error::OutOfRange { what: "file size in bytes (ulimit -f)", found: size, least: 1, most })
        }
    }

    /// A new file of `size` bytes in a directory, readable and writable by its owner only.
    ///
    /// # Errors
    /// [`Error::NoSpace`] when the file system has no room for all of it, [`Error::OutOfRange`] for a size of
    /// 0; otherwise the operating system's error. No file is left behind.
    pub fn create_in(directory: &Path, name: &str, size: u64) -> Result<Self> {
        let mut backing = Backing::begin(directory, name, size)?;
        loop {
            if let Some(vmo) = backing.step(u64::MAX)? {
                return Ok(vmo);
            }
        }
    }

    /// Anonymous memory, sealed against growing and shrinking.
    fn anonymous(name: &str, size: u64) -> Result<Self> {
        check_size(size)?;
        let failed = |source| Error::io("cannot make anonymous memory", source);
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(failed)?;
        back(&file, 0, size).map_err(failed)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(failed)?;
        Ok(Self { file: file.into(), path: None })
    }

    /// Opens a file that [`Vmo::create_in`] has made, for reading.
    ///
    /// # Errors
    /// It does not exist, or is no regular file.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::io(format!("cannot open {}", path.display()), source);
        // A device or a FIFO must not block.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Error::WrongType { expected: "vmo" });
        }
        Ok(Self { file: file.into(), path: Some(path.to_owned()) })
    }

    /// Anonymous memory, sealed against growing and shrinking, with these contents.
    ///
    /// # Errors
    /// The memory cannot be allocated.
    pub fn of_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        let vmo = Self::anonymous(name, bytes.len() as u64)?;
        vmo.write_at(0, bytes)?;
        Ok(vmo)
    }

    /// A message that is too long for a channel, as the handle that travels in its place.
    ///
    /// # Errors
    /// The memory cannot be allocated.
    pub fn store(message: &[u8]) -> Result<Handle> {
        Self::of_bytes("message", message).map(Self::into_handle)
    }

    /// The `length` bytes of a message that [`Vmo::store`] put into a handle; fewer where it is shorter.
    ///
    /// # Errors
    /// The handle is anything else, or the operating system's error.
    pub fn load(handle: Handle, length: usize) -> Result<Vec<u8>> {
        Self::from_sealed_handle(handle)?.to_bytes(length)
    }

    /// The first `length` bytes; fewer where it is shorter.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn to_bytes(&self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let read = self.read_at(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Takes a VMO out of a message of a trusted peer: it may be a file of any file system, and operations on
    /// it may take as long as that file system does.
    ///
    /// # Errors
    /// The handle is no regular file.
    pub fn from_handle(handle: Handle) -> Result<Self> {
        Self::from_handle_if(handle, |handle| handle.file().is_some())
    }

    /// Takes a VMO out of a message that [`Vmo::of_bytes`] has made: no other process can delay reading or
    /// closing it.
    ///
    /// # Errors
    /// The handle is not anonymous memory, or can become shorter.
    pub fn from_sealed_handle(handle: Handle) -> Result<Self> {
        Self::from_handle_if(handle, Handle::is_sealed_memory)
    }

    /// Takes a VMO out of a message of an untrusted peer: a file of this user's, in memory or on the file
    /// system of a directory of this process's. No file system of the peer's can delay an operation on it;
    /// the peer may write to it, and shrink it.
    ///
    /// # Errors
    /// The handle is anything else.
    pub fn from_handle_beside(handle: Handle, uid: u32, directory: &Path) -> Result<Self> {
        let device = rustix::fs::stat(directory).map(|stat| stat.st_dev);
        Self::from_handle_if(handle, |handle| {
            let is_beside = |on| device == Ok(on) || rustix::fs::fcntl_get_seals(handle).is_ok();
            handle.file_of(uid).is_some_and(|(on, _)| is_beside(on))
        })
    }

    /// Makes the file known by another name too, in a directory on the same file system, and opens it by
    /// that.
    ///
    /// # Errors
    /// The operating system's error: it is on another file system, or this process may not do that.
    pub fn link_in(&self, directory: &Path, name: &str) -> Result<Self> {
        let path = directory.join(name);
        rustix::fs::linkat(CWD, self.descriptor_path(), CWD, &path, AtFlags::SYMLINK_FOLLOW)
            .map_err(|source| Error::io(format!("cannot link {}", path.display()), source))?;
        Self::open(&path)
    }

    /// Where the file is, as the kernel has it.
    ///
    /// # Errors
    /// The operating system does not report it.
    pub fn find_path(&self) -> Result<PathBuf> {
        std::fs::read_link(self.descriptor_path()).map_err(|source| Error::io("cannot find a vmo", source))
    }

    /// Device and inode of the file.
    ///
    /// # Errors
    /// The operating system does not report them.
    pub fn identity(&self) -> Result<(u64, u64)> {
        self.stat().map(|stat| (stat.st_dev, stat.st_ino))
    }

    fn descriptor_path(&self) -> PathBuf {
        Path::new("/proc/thread-self/fd").join(self.file.as_raw_fd().to_string())
    }

    fn from_handle_if(handle: Handle, is_right: impl Fn(&Handle) -> bool) -> Result<Self> {
        match is_right(&handle) {
            true => Ok(Self { file: handle.into_fd().into(), path: None }),
            false => Err(Error::WrongType { expected: "vmo" }),
        }
    }

    /// Makes the file shorter. No process may have the rest mapped.
    ///
    /// # Errors
    /// The operating system's error; this handle may be [read-only](Vmo::into_read_only).
    pub fn shorten(&self, size: u64) -> Result<()> {
        let cannot = |source| Error::io("cannot make a vmo shorter", source);
        let writable = self.reopened(OpenOptions::new().write(true)).map_err(cannot)?;
        writable.set_len(size).map_err(cannot)
    }

    /// Puts the VMO into a message.
    #[must_use]
    pub fn into_handle(self) -> Handle {
        Handle::new(OwnedFd::from(self.file))
    }

    /// Gives it up on another thread: if this is the last handle of much memory, that takes long.
    pub fn give_up(self) {
        close_memory(self.file.into());
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
    /// The operating system does not report it.
    pub fn size(&self) -> Result<u64> {
        self.stat().map(|stat| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// What the file system says of the file. The standard library asks by calls that can look at any file,
    /// which filters of system calls forbid.
    fn stat(&self) -> Result<rustix::fs::Stat> {
        rustix::fs::fstat(&self.file).map_err(|source| Error::io("cannot examine a vmo", source))
    }

    /// Copies bytes out; fewer than requested at the end.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], offset.saturating_add(done as u64)) {
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
    /// [`Error::OutOfRange`] when they would end behind the VMO's end; or the operating system's error.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let (end, size) = (offset.saturating_add(bytes.len() as u64), self.size()?);
        if end > size {
            return Err(Error::OutOfRange { what: "end of a vmo write", found: end, least: 0, most: size });
        }
        self.file.write_all_at(bytes, offset).map_err(|source| Error::io("cannot write a vmo", source))
    }

    /// Releases the memory of a part, as far as it is whole pages. All of it reads as zero from then on. A
    /// handle that is [read-only](Vmo::into_read_only) opens the memory again for that.
    ///
    /// # Errors
    /// The file system has no holes.
    pub fn discard(&self, part: Range<u64>) -> Result<()> {
        use rustix::fs::FallocateFlags;

        if part.is_empty() {
            return Ok(());
        }
        let cannot = |source| Error::io("cannot open a vmo again", source);
        let writable;
        let file = if self.is_read_only() {
            writable = self.reopened(OpenOptions::new().write(true)).map_err(cannot)?;
            &writable
        } else {
            &self.file
        };
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(file, flags, part.start, part.end - part.start)
            .map_err(|source| Error::io("cannot give a vmo's memory back", source))
    }

    /// The same memory, with a handle that cannot be written through. Without `/proc` it is the handle
    /// itself.
    #[must_use]
    pub fn into_read_only(self) -> Self {
        match self.reopened(OpenOptions::new().read(true)) {
            Ok(file) => Self { file, path: self.path },
            Err(_) => self,
        }
    }

    fn is_read_only(&self) -> bool {
        let flags = rustix::fs::fcntl_getfl(&self.file);
        flags.is_ok_and(|flags| (flags & OFlags::ACCMODE).is_empty())
    }

    /// The same memory, opened again.
    fn reopened(&self, options: &OpenOptions) -> std::io::Result<File> {
        options.open(self.descriptor_path())
    }

    /// Bytes for which the file system has allocated memory, or space on a disk.
    ///
    /// # Errors
    /// The operating system does not report it.
    pub fn backed_bytes(&self) -> Result<u64> {
        self.stat().map(|stat| u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(STAT_BLOCK_BYTES))
    }

    /// Maps all of it, shared and writable, with all pages present.
    ///
    /// # Errors
    /// The memory cannot be mapped.
    pub fn map(&self) -> Result<Mapping> {
        self.map_first(self.size()?, false)
    }

    /// The same, of this many bytes from the beginning. A sparse mapping allocates nothing: a store where the
    /// VMO is not backed ends the process if the file system is full.
    ///
    /// # Errors
    /// The memory cannot be mapped.
    pub fn map_first(&self, bytes: u64, is_sparse: bool) -> Result<Mapping> {
        let mut options = MmapOptions::new();
        if !is_sparse {
            options.populate();
        }
        // Without a length it would be looked up by a call that filters forbid.
        options.len(usize::try_from(bytes).unwrap_or(usize::MAX));
        let mapped = options.map_raw(&self.file);
        mapped.map(Mapping).map_err(|source| Error::io("cannot map a vmo", source))
    }

    /// The same memory by an open file of its own, which is [marked](liveness) as in use, for processes that
    /// find the file later: as long as this is mapped. Handles of this VMO in other processes do not carry
    /// the mark. Several processes may do so.
    ///
    /// # Errors
    /// The memory cannot be opened again, or not be marked.
    pub fn marked(&self) -> Result<Self> {
        // Without /proc, or rights, the handle itself carries the mark, and so does every other holder of it.
        let file =
            self.reopened(OpenOptions::new().read(true).write(true)).or_else(|_| self.file.try_clone());
        let file = file.map_err(|source| Error::io("cannot open a vmo again", source))?;
        let file = File::from(beyond_standard(file.into())?);
        liveness::mark(&file)?;
        Ok(Self { file, path: self.path.clone() })
    }

    /// Whether a mapping of it keeps its mark. Where it does not, the mark ends with this.
    #[must_use]
    pub fn is_marked_by_mappings(&self) -> bool {
        let again = self.reopened(OpenOptions::new().read(true).write(true));
        again.is_ok_and(|again| liveness::is_kept_by_mappings(&self.file, again))
    }

    /// Whether some process has marked the memory as in use and is still alive.
    ///
    /// # Errors
    /// The operating system does not report it.
    pub fn is_live(&self) -> Result<bool> {
        liveness::is_marked(&self.file)
    }
}

/// Largest file offset.
const MAX_SIZE_BYTES: u64 = i64::MAX as u64;
/// How much is backed in one call: many kernels interrupt a call when a signal arrives, and some programs
/// have a timer.
const BACKING_STEP_BYTES: u64 = 1 << 20;

fn check_size(size: u64) -> Result<()> {
    if (1..=MAX_SIZE_BYTES).contains(&size) {
        Ok(())
    } else {
        Err(Error::OutOfRange { what: "vmo size in bytes", found: size, least: 1, most: MAX_SIZE_BYTES })
    }
}

/// The largest file that this process may write, in bytes: a larger one would end it (SIGXFSZ).
#[must_use]
pub fn file_size_limit() -> u64 {
    sys::file_size_limit()
}

/// The unit of a file's blocks, whatever its file system's is.
const STAT_BLOCK_BYTES: u64 = 512;
/// `TMPFS_MAGIC` of `linux/magic.h`.
const TMPFS: u64 = 0x0102_1994;

/// Free bytes of the file system that a directory is on.
///
/// # Errors
/// The operating system does not report them.
pub fn available_in(directory: &Path) -> Result<u64> {
    let space = rustix::fs::statvfs(directory)
        .map_err(|source| Error::io(format!("cannot examine {}", directory.display()), source))?;
    // A tmpfs without a limit has no size at all.
    Ok(if space.f_blocks == 0 { u64::MAX } else { space.f_bavail.saturating_mul(space.f_frsize) })
}

/// Makes a file longer, with memory behind all of it.
fn back(file: &impl AsFd, mut done: u64, size: u64) -> rustix::io::Result<()> {
    while done < size {
        let step = (size - done).min(BACKING_STEP_BYTES);
        retry_on_intr(|| rustix::fs::fallocate(file, FallocateFlags::empty(), done, step))?;
        done += step;
    }
    Ok(())
}

/// A VMO that is being made, a part at a time: of a large one the kernel has to clear every page. Its file is
/// deleted if it is dropped before it is complete.
#[derive(Debug)]
pub struct Backing {
    /// None when it is complete.
    vmo: Option<Vmo>,
    directory: PathBuf,
    size: u64,
    /// What is still to be backed, in order.
    parts: VecDeque<Range<u64>>,
}

impl Backing {
    /// Begins the work that [`Vmo::create_in`] does at once.
    ///
    /// # Errors
    /// As for [`Vmo::create_in`]; room is checked, and not reserved yet.
    pub fn begin(directory: &Path, name: &str, size: u64) -> Result<Self> {
        Self::begin_beside(directory, name, size, 0)
    }

    /// As [`Backing::begin`], for a VMO of which only some parts, in whole pages, are backed where the file
    /// system is in memory; elsewhere, where that takes no time, all of it. The process that maps it has the
    /// rest allocated.
    ///
    /// # Errors
    /// As [`Backing::begin`].
    pub fn begin_sparse(
        directory: &Path,
        name: &str,
        size: u64,
        parts: &[Range<u64>],
        promised: u64,
    ) -> Result<Self> {
        let mut backing = Self::begin_beside(directory, name, size, promised)?;
        let is_in_memory =
            |vmo: &&Vmo| rustix::fs::fstatfs(vmo).is_ok_and(|stat| u64::try_from(stat.f_type) == Ok(TMPFS));
        if let Some(vmo) = backing.vmo.as_ref().filter(is_in_memory) {
            rustix::fs::ftruncate(vmo, size).map_err(|source| {
                Error::io(format!("cannot create {}", directory.join(name).display()), source)
            })?;
            backing.parts = parts.iter().map(|part| part.start..part.end.min(size)).collect();
        }
        Ok(backing)
    }

    /// As [`Backing::begin`], on a file system of which so many free bytes are promised to others.
    ///
    /// # Errors
    /// As [`Backing::begin`].
    pub fn begin_beside(directory: &Path, name: &str, size: u64, promised: u64) -> Result<Self> {
        let path = directory.join(name);
        Vmo::check_file_size(size)?;
        let available = available_in(directory)?.saturating_sub(promised);
        if available < size {
            return Err(Error::NoSpace { directory: directory.to_owned(), needed: size, available });
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = open_private(CWD, &path, flags)
            .map_err(|source| Error::io(format!("cannot create {}", path.display()), source))?;
        let vmo = Vmo { file, path: Some(path) };
        let parts = std::iter::once(0..size).collect();
        Ok(Self { vmo: Some(vmo), directory: directory.to_owned(), size, parts })
    }

    /// Size of the VMO in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that are not backed yet, whether this does it or the process that maps the VMO.
    #[must_use]
    pub fn missing_bytes(&self) -> u64 {
        let backed = self.vmo.as_ref().map_or(Ok(0), Vmo::backed_bytes);
        self.size.saturating_sub(backed.unwrap_or(self.size))
    }

    /// Backs this many further bytes; returns the VMO when they were the last.
    ///
    /// # Errors
    /// As [`Vmo::create_in`].
    pub fn step(&mut self, bytes: u64) -> Result<Option<Vmo>> {
        let Some(vmo) = &self.vmo else {
            return Ok(None);
        };
        let mut left = bytes;
        let mut backed = Ok(());
        while let (Some(part), Ok(()), 1..) = (self.parts.front_mut(), backed, left) {
            let step = left.min(part.end - part.start);
            backed = back(vmo, part.start, part.start + step);
            left -= step;
            part.start += step;
            if part.is_empty() {
                self.parts.pop_front();
            }
        }
        match backed {
            Ok(()) if self.parts.is_empty() => return Ok(self.vmo.take()),
            Ok(()) => {}
            // Another process took it in between.
            Err(Errno::NOSPC | Errno::DQUOT) => {
                let available = available_in(&self.directory)?;
                return Err(Error::NoSpace {
                    directory: self.directory.clone(),
                    needed: self.size,
                    available,
                });
            }
            Err(source) => {
                let path = vmo.path().unwrap_or(&self.directory);
                return Err(Error::io(format!("cannot create {}", path.display()), source));
            }
        }
        Ok(None)
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        if let Some(path) = self.vmo.as_ref().and_then(Vmo::path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl AsFd for Vmo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A mapped VMO. It provides an address and never a reference: other processes may write at any time.
#[derive(Debug)]
pub struct Mapping(MmapRaw);

impl Mapping {
    pub(crate) fn of(mapped: MmapRaw) -> Self {
        Self(mapped)
    }

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
