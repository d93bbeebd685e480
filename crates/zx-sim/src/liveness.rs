//! Marks on files that say that a process which uses them lives: locks of open file descriptions.
//!
//! The kernel releases a mark however its process ends, and answers for it in every pid and user namespace.
//! It lasts as long as the open file, which a mapping keeps open, too: then the program has no descriptor to
//! close by mistake, and no thread has to live.
//!
//! Invariants:
//!
//! * **L1** An address in [`PAGES`] is that of a mapped page of this process's, or of its parent's when that
//!   forked: it is taken out before the page is unmapped.
//! * **L2** The handler of forks is the child's only thread, and does nothing but system calls and atomic
//!   stores. If the kernel refuses it memory, the child keeps the page, and with it the mark.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::sys;
use crate::vmo::Mapping;
use memmap2::MmapOptions;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Marks an open file. The mark lasts as long as the open file, whatever descriptors and mappings it has.
///
/// # Errors
/// The file system has no locks.
pub fn mark(file: &impl AsFd) -> Result<()> {
    sys::lock_description(file).map_err(|source| Error::io("cannot lock a file", source))
}

/// Whether the file is marked, by another open file.
///
/// # Errors
/// The operating system does not report it.
pub fn is_marked(file: &impl AsFd) -> Result<bool> {
    sys::is_locked_by_another(file).map_err(|source| Error::io("cannot see whether a file is in use", source))
}

/// Whether mapping a file keeps its marks: not where the file system maps another one in its place, as
/// overlayfs does. `again` is the same file, which no other process has marked yet, by an open file of its
/// own.
pub(crate) fn is_kept_by_mappings(file: &File, again: File) -> bool {
    let mapped = mark(&again).ok().and_then(|()| MmapOptions::new().len(1).map_raw_read_only(&again).ok());
    drop(again);
    mapped.is_some() && is_marked(file).unwrap_or(false)
}

/// Installs what a forked child does with pages, once for the process. Not for a thread that keeps others
/// from forking: the C library may hold a lock while one forks, and this takes it. [`Mark::of`] calls it,
/// too.
pub fn prepare() {
    static INSTALL: Once = Once::new();
    // SAFETY: the handler does what L2 says, and never goes away.
    INSTALL.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(forget_pages)) });
}

/// Pages that a forked child does not keep.
static PAGES: [AtomicPtr<u8>; 8] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 8];

/// A mark that a mapped page keeps, until this is dropped or the process has ended. Children by `fork` do not
/// have the first eight marks of a process.
#[derive(Debug)]
pub struct Mark {
    place: Option<&'static AtomicPtr<u8>>,
    page: Mapping,
    is_lasting: bool,
}

impl Mark {
    /// Marks an open file, which must not be empty, and closes its descriptor. `again` is the same file,
    /// opened once more.
    ///
    /// # Errors
    /// As [`mark`], or it cannot be mapped.
    pub(crate) fn of(file: File, again: File) -> Result<Self> {
        prepare();
        let is_lasting = is_kept_by_mappings(&file, again);
        mark(&file)?;
        let page = MmapOptions::new().len(1).map_raw_read_only(&file);
        let page = Mapping::of(page.map_err(|source| Error::io("cannot map a file", source))?);
        let address = page.as_ptr();
        let take = |place: &&AtomicPtr<u8>| {
            let none = std::ptr::null_mut();
            place.compare_exchange(none, address, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        Ok(Self { place: PAGES.iter().find(take), page, is_lasting })
    }

    /// Whether it is a mark at all: false where the file system does not map the file itself.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.is_lasting
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        debug_assert_eq!(self.page.len(), 1);
        // In a child the place may have another one's by now.
        let (own, none) = (self.page.as_ptr(), std::ptr::null_mut());
        if let Some(place) = self.place {
            let _ = place.compare_exchange(own, none, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// In a forked child: its copies of the pages become memory of no file, so that dropping their owners is
/// right.
extern "C" fn forget_pages() {
    for place in &PAGES {
        let page = place.swap(std::ptr::null_mut(), Ordering::Acquire);
        if !page.is_null() {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: in place of a mapped page (L1, L2), into which nothing has references.
            unsafe { libc::mmap(page.cast(), 1, libc::PROT_NONE, flags, -1, 0) };
        }
    }
}
