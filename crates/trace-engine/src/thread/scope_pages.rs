//! The pages with the open scopes of a process, behind its buffer.
//!
//! A thread stores there while it counts as outside of its events, so no one can wait until it does not. That
//! is why the addresses stay: there are two ranges, which the process keeps for ever. Another file, or
//! private memory, is only ever mapped over them. If both are free, a trace takes the one that the trace
//! before it did not have: threads may still store there.
//!
//! Invariants:
//!
//! * **G1** A range is reserved once and never unmapped: all of it is readable and writable, and made of
//!   atomics alone.
//! * **G2** Only slots that have memory are looked at: where there is none left, even a load in a sparse file
//!   ends the process.
#![allow(unsafe_code)]

use crate::sync::{AtomicU32, AtomicU64, Ordering, process};
use crate::sys;
use crate::thread::open_scopes::{OpenScopes, ScopesRun};
use trace_format::scopes::{
    BEGINNING, ENTRIES, ENTRY_BYTES, HEADER_BYTES, OWNER_ENDED, OWNER_TRACKS, ROOM, SCOPES_BYTES,
    SCOPES_MAGIC, SCOPES_VERSION, SLOT_BYTES, SLOTS, field,
};

/// The first of the two ranges; 0 before there are any.
static RANGES: process::AtomicU64 = process::AtomicU64::new(0);
/// Which of them are in use, in the lowest bits; and in the next one which was taken last.
static USED: process::AtomicU64 = process::AtomicU64::new(0);
/// Bytes for which memory is allocated at a time.
const PAGE_BYTES: u64 = HEADER_BYTES;
/// The bit that says which range was taken last.
const LAST: u64 = 1 << 2;
/// The owner of a slot while a thread clears it for another owner: other threads leave it alone.
const OWNER_CLEARING: u64 = OWNER_TRACKS | 1;
/// Slots with scopes of tracks at most.
const MAX_TRACK_SLOTS: usize = 32;
/// How many traces have pages.
static THERE: process::AtomicU64 = process::AtomicU64::new(0);
/// The run that has no slot left for further threads; 0 if there is none.
static FULL: process::AtomicU64 = process::AtomicU64::new(0);
/// The last run: no two of a process have one number.
static RUN: process::AtomicU64 = process::AtomicU64::new(0);

/// Where the scope of a track is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrackPlace {
    run: ScopesRun,
    slot: u64,
    entry: u64,
}

/// The pages of one trace.
pub(crate) struct ScopePages {
    /// The number of its range.
    range: u64,
    base: usize,
    /// How many slots have memory, the first ones.
    backed: AtomicU64,
    /// How many can have it: fewer once memory was refused in this run.
    limit: AtomicU64,
    /// The present run. The header has it, too, which others could write to.
    run: AtomicU64,
    /// Not 0 when private memory is in the place of the pages, and the range may be another trace's.
    is_detached: AtomicU32,
}

/// Takes a range that is not in use: its number, and its address.
fn take_range() -> Option<(u64, usize)> {
    if RANGES.load(Ordering::Acquire) == 0 {
        let fresh = sys::map_zeros(2 * SCOPES_BYTES as usize);
        if fresh.is_null() {
            return None;
        }
        // Where another thread was faster, this one is left as it is: nothing is allocated for it.
        let fresh = fresh.expose_provenance() as u64;
        let _ = RANGES.compare_exchange(0, fresh, Ordering::AcqRel, Ordering::Acquire);
    }
    let mut taken = 0;
    let take = |used: u64| {
        // Not the last one: a thread may still store there.
        let last = u64::from(used & LAST != 0);
        taken = [1 - last, last].into_iter().find(|range| used & (1 << range) == 0)?;
        Some((used & !LAST) | (1 << taken) | (taken * LAST))
    };
    USED.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
    Some((taken, (RANGES.load(Ordering::Acquire) + taken * SCOPES_BYTES) as usize))
}

/// Whether a trace may have pages, for a first look.
#[inline]
pub(crate) fn are_there() -> bool {
    THERE.load(Ordering::Relaxed) != 0
}

/// Whether a thread that has found no slot in the run of this number would find none now.
#[inline]
pub(crate) fn is_full(run: u64) -> bool {
    run != 0 && run == FULL.load(Ordering::Relaxed)
}

impl ScopePages {
    /// Maps the pages of a trace, and writes their header. None where that is not possible.
    pub fn map(map: impl FnOnce(*mut u8, usize) -> bool, is_sparse: bool, process: u64) -> Option<Self> {
        let (range, base) = take_range()?;
        THERE.fetch_add(1, Ordering::Relaxed);
        let backed = if is_sparse { 0 } else { SLOTS };
        let [run, backed, limit] = [0, backed, SLOTS].map(AtomicU64::new);
        let pages = Self { range, base, backed, limit, run, is_detached: AtomicU32::new(0) };
        if !map(core::ptr::with_exposed_provenance_mut(base), SCOPES_BYTES as usize) {
            return None;
        }
        if is_sparse && !sys::populate(base, HEADER_BYTES as usize) {
            return None;
        }
        pages.header(field::VERSION).store(SCOPES_VERSION, Ordering::Relaxed);
        pages.header(field::PROCESS).store(process, Ordering::Relaxed);
        pages.header(field::MAGIC).store(SCOPES_MAGIC, Ordering::Release);
        Some(pages)
    }

    /// Pages that only this process has, so that scopes cost the same behind a buffer without them.
    pub fn private(process: u64) -> Option<Self> {
        Self::map(|_, _| true, false, process)
    }

    /// Has memory allocated for a page of slots behind so many; false if there is none for them.
    fn back(&self, backed: u64) -> bool {
        let page = self.base + (HEADER_BYTES + backed * SLOT_BYTES) as usize;
        let is_there =
            backed < self.limit.load(Ordering::Relaxed) && sys::populate(page, PAGE_BYTES as usize);
        if is_there {
            self.backed.fetch_max(backed + PAGE_BYTES / SLOT_BYTES, Ordering::Relaxed);
        } else {
            self.limit.fetch_min(backed, Ordering::Relaxed);
        }
        is_there
    }

    fn word(&self, offset: u64) -> &'static AtomicU64 {
        debug_assert!(offset % 8 == 0 && offset < SCOPES_BYTES, "the pages have no word {offset}");
        // SAFETY: inside the range, which stays for ever (G1).
        unsafe { &*core::ptr::with_exposed_provenance(self.base + offset as usize) }
    }

    fn header(&self, field: usize) -> &AtomicU64 {
        self.word(field as u64 * 8)
    }

    fn owner(&self, slot: u64) -> &AtomicU64 {
        self.word(HEADER_BYTES + slot * SLOT_BYTES)
    }

    fn scopes(&self, slot: u64) -> &'static OpenScopes {
        let word = core::ptr::from_ref(self.word(HEADER_BYTES + slot * SLOT_BYTES + 8));
        // SAFETY: the rest of a slot, made of atomics (G1).
        unsafe { &*word.cast() }
    }

    /// Another run begins: what is open counts no more. No thread is inside of an event.
    pub fn begin_run(&self) {
        self.limit.store(SLOTS, Ordering::Relaxed);
        self.header(field::REFUSED).store(0, Ordering::Relaxed);
        for slot in 0..self.backed.load(Ordering::Relaxed) {
            if self.owner(slot).load(Ordering::Relaxed) & OWNER_TRACKS != 0 {
                self.owner(slot).store(0, Ordering::Relaxed);
            }
        }
        let number = RUN.fetch_add(1, Ordering::Relaxed) as u32;
        let run = ScopesRun::new(number.wrapping_add(1).max(1));
        self.run.store(run.number(), Ordering::Relaxed);
        self.header(field::RUN).store(run.number(), Ordering::SeqCst);
    }

    /// The present run.
    pub fn run(&self) -> ScopesRun {
        ScopesRun::new(self.run.load(Ordering::Relaxed) as u32)
    }

    /// A thread's slot: its own, or a free one. None if there is none, or no memory for it.
    pub fn take(&self, thread: u64) -> Option<&'static OpenScopes> {
        let found = self.find_own(thread).or_else(|| self.take_free(thread));
        let Some(slot) = found.or_else(|| self.take_last(thread)) else {
            self.header(field::REFUSED).fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let scopes = self.scopes(slot);
        scopes.join(self.run());
        Some(scopes)
    }

    /// Looks once more after other threads are kept from looking. A slot that is given back meanwhile is
    /// found here, or the thread that gives it back lets others look again.
    fn take_last(&self, thread: u64) -> Option<u64> {
        // Acquire: pairs with the Release in `leave`.
        FULL.swap(self.run().number(), Ordering::AcqRel);
        let found = self.take_free(thread);
        if found.is_some() {
            FULL.store(0, Ordering::Release);
        }
        found
    }

    fn find_own(&self, thread: u64) -> Option<u64> {
        let mut backed = 0..self.backed.load(Ordering::Relaxed);
        backed.find(|slot| self.owner(*slot).load(Ordering::Relaxed) == thread)
    }

    fn take_free(&self, thread: u64) -> Option<u64> {
        let mut looked_at = 0;
        loop {
            let backed = self.backed.load(Ordering::Relaxed);
            if let Some(slot) = (looked_at..backed).find(|slot| self.try_take(*slot, thread)) {
                return Some(slot);
            }
            if !self.back(backed) {
                // The scopes of a thread that runs are worth more than those that an ended one has left.
                return (0..backed).find(|slot| self.try_take_from(*slot, thread, |_| true));
            }
            looked_at = backed;
        }
    }

    fn try_take(&self, slot: u64, thread: u64) -> bool {
        // What an ended thread has left says nothing in another run.
        self.try_take_from(slot, thread, |scopes| !scopes.has_open(self.run()))
    }

    /// Takes a free slot. Takes the slot of an ended thread, too, if `may_take` returns true for what is open
    /// there.
    fn try_take_from(&self, slot: u64, thread: u64, may_take: impl Fn(&OpenScopes) -> bool) -> bool {
        let owner = self.owner(slot);
        let found = owner.load(Ordering::Relaxed);
        if found != 0 && !(found & OWNER_ENDED != 0 && may_take(self.scopes(slot))) {
            return false;
        }
        // No reader takes what the ended thread had open for the new one's.
        let first = if found == 0 { thread } else { OWNER_CLEARING };
        // Acquire: pairs with the Release below.
        if owner.compare_exchange(found, first, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        if found != 0 {
            self.scopes(slot).clear();
            owner.store(thread, Ordering::Release);
        }
        true
    }

    /// A scope of a track begins, inside of an event. Returns its place; none if there is no entry left.
    pub fn begin_on_track(&self, start: u64, references: u64) -> Option<TrackPlace> {
        let mut slots = 0;
        for slot in 0..self.backed.load(Ordering::Relaxed) {
            if self.owner(slot).load(Ordering::Acquire) == OWNER_TRACKS {
                slots += 1;
                if let Some(place) = self.try_begin_on_track(slot, start, references) {
                    return Some(place);
                }
            }
        }
        let slot = (slots < MAX_TRACK_SLOTS).then(|| self.take_free(OWNER_CLEARING)).flatten();
        let Some(slot) = slot else {
            self.header(field::REFUSED).fetch_add(1, Ordering::Relaxed);
            return None;
        };
        // Before other threads see the slot: this scope has the first entry.
        for entry in 0..ENTRIES as u64 {
            let (start, references) = if entry == 0 { (start, references) } else { (0, 0) };
            let [entry_start, entry_references] = self.entry(slot, entry);
            entry_references.store(references, Ordering::Relaxed);
            entry_start.store(start, Ordering::Relaxed);
        }
        self.word(HEADER_BYTES + slot * SLOT_BYTES + 8).store(self.run().word() | ROOM, Ordering::Relaxed);
        self.owner(slot).store(OWNER_TRACKS, Ordering::Release);
        Some(TrackPlace { run: self.run(), slot, entry: 0 })
    }

    fn try_begin_on_track(&self, slot: u64, start: u64, references: u64) -> Option<TrackPlace> {
        for entry in 0..ENTRIES as u64 {
            let [entry_start, entry_references] = self.entry(slot, entry);
            let is_taken = entry_start.load(Ordering::Relaxed) == 0
                && entry_start.compare_exchange(0, BEGINNING, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if is_taken {
                entry_references.store(references, Ordering::Relaxed);
                entry_start.store(start, Ordering::Release);
                return Some(TrackPlace { run: self.run(), slot, entry });
            }
        }
        None
    }

    /// A scope of a track ends that began at a time, inside of an event. Nothing happens if it began in
    /// another run.
    pub fn end_on_track(&self, place: TrackPlace, start: u64) {
        if place.run == self.run() {
            let [entry_start, _] = self.entry(place.slot, place.entry);
            // Release: the record of the scope was written before.
            let _ = entry_start.compare_exchange(start, 0, Ordering::Release, Ordering::Relaxed);
        }
    }

    fn entry(&self, slot: u64, entry: u64) -> [&AtomicU64; 2] {
        let at = HEADER_BYTES + slot * SLOT_BYTES + ENTRY_BYTES * (1 + entry);
        [self.word(at), self.word(at + 8)]
    }

    /// A thread ends. What it has not ended stays as it is for readers.
    pub fn leave(&self, scopes: &OpenScopes) {
        let found = (0..SLOTS).find(|slot| core::ptr::eq(self.scopes(*slot), scopes));
        let Some(owner) = found.map(|slot| self.owner(slot)) else { return };
        if scopes.has_open(self.run()) {
            owner.fetch_or(OWNER_ENDED, Ordering::Release);
        } else {
            scopes.clear();
            // Release: pairs with the Acquire in `try_take_from`.
            owner.store(0, Ordering::Release);
        }
        // Other threads may take it, in each case. Release: pairs with the Acquire in `take_last`.
        FULL.store(0, Ordering::Release);
    }

    /// Makes every later store go to private memory of this process, in place, once.
    pub fn detach(&self) {
        if self.is_detached.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        let memory = core::ptr::with_exposed_provenance_mut(self.base);
        // SAFETY: a range of ours, of which no code relies on what it holds (G1).
        unsafe { sys::map_anew(memory, SCOPES_BYTES as usize) };
        THERE.fetch_sub(1, Ordering::Relaxed);
        USED.fetch_and(!(1 << self.range), Ordering::AcqRel);
    }
}

impl Drop for ScopePages {
    fn drop(&mut self) {
        self.detach();
    }
}
