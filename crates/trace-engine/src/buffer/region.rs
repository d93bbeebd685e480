//! The memory of a buffer, as words that another process may read or write at any time.
//!
//! Invariants:
//!
//! * **R1** `base` is valid for reads and writes of `bytes` bytes as long as the region exists; its owner
//!   travels with it.
//! * **R2** `base` is aligned to 8 bytes and `bytes` is a multiple of 8.
//! * **R3** The memory is only ever touched through atomics: other threads and other processes may store
//!   there at any time.
#![allow(unsafe_code)]

use crate::buffer::backing::{Backing, Populate};
use crate::buffer::record_writer::RecordWriter;
use crate::sync::{AtomicU64, Ordering, assert_exclusive};
use crate::sys;
use core::any::Any;
use core::ptr::NonNull;
use trace_format::buffer::Layout;

/// Maps the pages with open scopes over so many bytes of memory.
pub type MapScopes = Box<dyn FnOnce(*mut u8, usize) -> bool + Send + Sync>;

/// Memory that the engine writes a trace into.
pub struct Region {
    base: NonNull<AtomicU64>,
    bytes: usize,
    /// Whole pages of a mapping, which anonymous memory can be put over.
    is_mapping: bool,
    /// None if all of the memory is there.
    backing: Option<Backing>,
    /// Maps the pages with open scopes; none if there are none.
    scopes: Option<MapScopes>,
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the memory is accessed through atomics only (R3) and stays valid wherever the region goes (R1).
unsafe impl Send for Region {}
// SAFETY: as above; shared access is what atomics are for (R3).
unsafe impl Sync for Region {}

impl Region {
    /// Takes over a mapping of shared memory. `owner` keeps it mapped and is dropped with the region.
    ///
    /// # Safety
    /// `base` must be the page-aligned start of a mapping of `bytes` bytes, readable and writable, that
    /// lives as long as `owner`; nothing else in this process may hold references into it.
    ///
    /// # Panics
    /// If `base` is not page-aligned.
    pub unsafe fn from_mapping(base: *mut u8, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        assert!(base.addr() % 4096 == 0, "a mapping begins at a page");
        let base = NonNull::new(base.cast()).expect("a mapping has an address");
        Self { base, bytes: bytes & !7, is_mapping: true, backing: None, scopes: None, _owner: owner }
    }

    /// As [`Region::from_mapping`], of a file whose memory is not there yet: the engine has the kernel
    /// allocate it before it writes. Needs [`engine::can_populate`](crate::engine::can_populate).
    ///
    /// # Safety
    /// As for [`Region::from_mapping`].
    ///
    /// # Panics
    /// If `base` is not page-aligned.
    pub unsafe fn from_sparse_mapping(
        base: *mut u8,
        bytes: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        // SAFETY: as the caller promises.
        let region = unsafe { Self::from_mapping(base, bytes, owner) };
        let base = base.addr();
        // Whole chunks, or the end of the mapping.
        region.with_backing(Box::new(move |part| {
            sys::populate(base + part.start as usize, (part.end - part.start) as usize)
        }))
    }

    /// The same memory, of which each part is written to only after `populate` has returned true for it.
    #[must_use]
    pub fn with_backing(self, populate: Populate) -> Self {
        let backing = Some(Backing::new(self.bytes as u64, populate));
        Self { backing, ..self }
    }

    /// A region of this memory, and of pages for open scopes. The engine calls `map` with the address and
    /// size of memory of its own, over which `map` maps a file: shared, readable and writable, and full of
    /// zeros. Where that is not possible, `map` returns false and leaves the memory as it was.
    ///
    /// # Safety
    /// What `map` maps stays as it is until the engine maps over it; nothing else in this process may hold
    /// references into it.
    #[must_use]
    pub unsafe fn with_scopes(self, map: MapScopes) -> Self {
        Self { scopes: Some(map), ..self }
    }

    /// What maps the pages with open scopes, and the rest.
    pub(crate) fn split_scopes(mut self) -> (Self, Option<MapScopes>) {
        let map = self.scopes.take();
        (self, map)
    }

    /// Has memory allocated for what is written before slabs are; false if there is none.
    pub(crate) fn back_first(&self, layout: &Layout) -> bool {
        let Some(backing) = &self.backing else {
            return true;
        };
        let [control, beginnings] = layout.first_parts();
        backing.back(&control) && backing.back(&beginnings)
    }

    /// Which parts have memory; none if all of it has.
    pub(crate) fn backing(&self) -> Option<&Backing> {
        self.backing.as_ref()
    }

    /// Takes memory of the caller's, which it gets back when `owner` is dropped.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `bytes` bytes for as long as `owner` lives, and nothing else
    /// in this process writes there meanwhile.
    ///
    /// # Panics
    /// If `base` is not aligned to 8 bytes.
    pub unsafe fn from_memory(base: *mut u8, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        assert!(base.addr() % 8 == 0, "a buffer is made of words");
        let base = NonNull::<AtomicU64>::new(base.cast()).expect("memory has an address");
        // Addresses of records are made of numbers.
        base.as_ptr().expose_provenance();
        Self { base, bytes: bytes & !7, is_mapping: false, backing: None, scopes: None, _owner: owner }
    }

    /// A region of ordinary zeroed memory, for tests and measurements without a second process.
    ///
    /// The memory is shared with the returned words.
    #[must_use]
    pub fn on_heap(bytes: usize) -> (Self, HeapWords) {
        let words: std::sync::Arc<[AtomicU64]> = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
        let base = NonNull::from(&words[0]);
        let (bytes, owner) = (words.len() * 8, Box::new(words.clone()));
        // Where there are none, there is memory of zeros.
        let scopes: Option<MapScopes> = Some(Box::new(|_, _| true));
        let region = Self { base, bytes, is_mapping: false, backing: None, scopes, _owner: owner };
        (region, HeapWords(words))
    }

    /// Size in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// The word at a byte offset.
    ///
    /// # Panics
    /// If the offset is not a multiple of 8 inside the region: a mistake of this crate, not of untrusted
    /// input.
    #[inline]
    pub(crate) fn word(&self, offset: u64) -> &AtomicU64 {
        let offset = usize::try_from(offset).expect("offsets fit a word");
        assert!(offset % 8 == 0 && offset < self.bytes, "word {offset} of {}", self.bytes);
        // SAFETY: in bounds and aligned by the check above (R1, R2); others may store here (R3).
        unsafe { self.base.add(offset / 8).as_ref() }
    }

    /// Address of a byte offset.
    pub(crate) fn address(&self, offset: u64) -> usize {
        self.base.as_ptr().addr() + usize::try_from(offset).expect("offsets fit a word")
    }

    /// Stores zeros, word by word, in a range of byte offsets.
    ///
    /// # Panics
    /// If the range is not made of words inside the region.
    pub(crate) fn zero(&self, range: core::ops::Range<u64>) {
        if range.is_empty() {
            return;
        }
        assert_exclusive(self.address(range.start)..self.address(range.end));
        let first = self.word(range.start);
        let _ = self.word(range.end - 8);
        let words = (range.end - range.start) as usize / 8;
        // SAFETY: from the first to the last word of the range by the checks above (R1, R2).
        let words = unsafe { core::slice::from_raw_parts(first, words) };
        for word in words {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Stores zeros everywhere.
    pub fn clear(&self) {
        self.zero(0..self.bytes as u64);
    }

    /// A writer for a record of `words` words that were reserved at a byte offset.
    ///
    /// # Panics
    /// If the record is not inside the region.
    pub(crate) fn record(&self, offset: u64, words: usize) -> RecordWriter<'_> {
        let _ = self.word(offset + (words as u64 - 1) * 8);
        // SAFETY: inside the region (R1, R2), which the writer borrows.
        unsafe { RecordWriter::new(self.address(offset), words) }
    }

    /// Makes every later store go to private memory of this process, in place. Heap regions stay as they
    /// are.
    pub(crate) fn detach(&self) {
        if !self.is_mapping {
            return;
        }
        // SAFETY: the range is a mapping of ours (R1); a private anonymous one at the same address keeps
        // every word valid, and no code relies on what the words hold (R3).
        unsafe { sys::map_anew(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The words of a heap region, to look at what the engine wrote.
#[derive(Clone)]
pub struct HeapWords(std::sync::Arc<[AtomicU64]>);

impl HeapWords {
    /// Copies bytes as they are now.
    ///
    /// # Panics
    /// If they are not whole words inside the region.
    pub fn read_at(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset % 8 == 0, "byte {offset} begins no word");
        assert!(bytes.len() % 8 == 0, "{} bytes are no whole words", bytes.len());
        let words = &self.0[offset / 8..][..bytes.len() / 8];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.load(Ordering::Acquire).to_le_bytes());
        }
    }
}
