//! The scopes that a thread has open, in a slot of shared memory, where they are found when the process has
//! ended.
//!
//! Invariants:
//!
//! * **O1** A place leads to itself, or to scopes that are never unmapped (see `scope_pages`).
//! * **O2** A place is followed by as many bytes of atomics as scopes take: where it leads to itself these
//!   are not used, as the word there is 0.
#![allow(unsafe_code)]

#[cfg(modelled)]
use crate::sync::AtomicPtr;
#[cfg(not(modelled))]
use crate::sync::AtomicUsize;
use crate::sync::{AtomicU64, Ordering};
use trace_format::scopes::{DEEPER, DEEPER_MASK, ENTRIES, ENTRY_BYTES, ROOM};

/// A slot behind its owner.
#[repr(C)]
pub(crate) struct OpenScopes {
    /// The run, and how many bytes of entries are left.
    word: AtomicU64,
    /// Begin and references of each scope, the outermost last.
    entries: [[AtomicU64; 2]; ENTRIES],
}

#[cfg(not(modelled))]
const _: () = assert!(size_of::<OpenScopes>() as u64 + 8 == trace_format::scopes::SLOT_BYTES);

/// A run, as the word has it in its upper half; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScopesRun(u64);

impl ScopesRun {
    /// The run of this number.
    pub const fn new(number: u32) -> Self {
        Self((number as u64) << 32)
    }

    /// As the header has it.
    pub const fn number(self) -> u64 {
        self.0 >> 32
    }

    /// As a word has it.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// Whether a word is of this run.
    const fn has(self, word: u64) -> bool {
        word >> 32 == self.0 >> 32
    }
}

impl OpenScopes {
    /// Nothing is open, in no run.
    #[cfg(modelled)]
    pub fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            entries: core::array::from_fn(|_| [AtomicU64::new(0), AtomicU64::new(0)]),
        }
    }

    /// The word.
    #[cfg(modelled)]
    pub fn word(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }

    /// Begin and references of a scope, by how many are around it.
    #[cfg(modelled)]
    pub fn at(&self, depth: usize) -> [u64; 2] {
        self.entries[ENTRIES - 1 - depth].each_ref().map(|word| word.load(Ordering::Acquire))
    }

    /// A scope begins. What its end passes on; none if there is no entry left.
    ///
    /// The entry says nothing before the word has it, and its begin comes last: what interrupts this, and
    /// what ends the process meanwhile, leaves no begin there of a scope that has ended.
    #[inline(always)]
    pub fn begin(&self, start: u64, references: u64) -> Option<u64> {
        let word = self.word.load(Ordering::Relaxed);
        let room = word & ROOM;
        if room == 0 {
            return None;
        }
        let place = room as usize / ENTRY_BYTES as usize - 1;
        // SAFETY: of what is left at least one and at most all, whatever the word says.
        let [entry_start, entry_references] = unsafe { self.entries.get_unchecked(place) };
        entry_start.store(0, Ordering::Relaxed);
        // Release: in this order, here and for other processes.
        self.word.store(word - ENTRY_BYTES, Ordering::Release);
        entry_references.store(references, Ordering::Release);
        entry_start.store(start, Ordering::Release);
        Some(word)
    }

    /// The scope ends that got this at its begin, and with it whatever has begun inside of it. Nothing
    /// happens if it began in another run.
    #[inline(always)]
    pub fn end(&self, begun: u64) {
        if (self.word.load(Ordering::Relaxed) ^ begun) >> 32 == 0 {
            // Release: the record of the scope was written before.
            self.word.store(begun, Ordering::Release);
        }
    }

    /// The owner comes to a run: nothing of it is open yet.
    pub fn join(&self, run: ScopesRun) {
        if !run.has(self.word.load(Ordering::Relaxed)) {
            self.word.store(run.0 | ROOM, Ordering::Release);
        }
    }

    /// A scope begins where there may be no entry left: then it is counted. What its end passes on.
    pub fn begin_any(&self, start: u64, references: u64) -> u64 {
        let word = self.word.load(Ordering::Relaxed);
        if self.begin(start, references).is_none() && word & DEEPER_MASK != DEEPER_MASK {
            self.word.store(word + DEEPER, Ordering::Release);
        }
        word
    }

    /// Whether something is open in a run.
    pub fn has_open(&self, run: ScopesRun) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        run.has(word) && word & (ROOM | DEEPER_MASK) != ROOM
    }

    /// Nothing is open any more, in any run.
    pub fn clear(&self) {
        self.word.store(0, Ordering::Relaxed);
    }
}

/// Where a thread's open scopes are. All zero leads to no scopes, also in a forked child, whose blocks are
/// zero.
#[cfg(not(modelled))]
#[repr(C)]
pub(crate) struct ScopesPlace {
    /// How far they are from the next field.
    distance: AtomicUsize,
    /// The word of no scopes: no entry is left. Always 0.
    none: AtomicU64,
}

/// Scopes at their distance from a block.
#[cfg(not(modelled))]
#[repr(C)]
struct InBlock {
    before: [u64; (ScopesPlace::OFFSET + ScopesPlace::NONE) / 8],
    scopes: OpenScopes,
}

#[cfg(not(modelled))]
impl ScopesPlace {
    /// Its offset in a thread's block.
    pub const OFFSET: usize = 184;
    /// Offset in it of the word of no scopes.
    //= docs/c.md#layouts
    pub const NONE: usize = core::mem::offset_of!(Self, none);

    /// Of a thread without scopes.
    pub const fn new() -> Self {
        Self { distance: AtomicUsize::new(0), none: AtomicU64::new(0) }
    }

    /// The scopes of a block with this place; without any, some without room, whose entries may not be looked
    /// at.
    ///
    /// # Safety
    /// The place is in a block at this address.
    #[inline(always)]
    pub unsafe fn get(&self, block: usize) -> &OpenScopes {
        // One addition for the hot path: what is in front of the scopes is a part of each address anyway.
        let block: *const InBlock =
            core::ptr::with_exposed_provenance(block.wrapping_add(self.distance.load(Ordering::Relaxed)));
        // SAFETY: scopes that are never unmapped, or this and what follows (O1, O2).
        unsafe { &(*block).scopes }
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.distance.load(Ordering::Relaxed) == 0
    }

    /// The thread has these.
    pub fn set(&self, scopes: &'static OpenScopes) {
        let address = core::ptr::from_ref(scopes).expose_provenance();
        let distance = address.wrapping_sub((&raw const self.none).addr());
        self.distance.store(distance, Ordering::Relaxed);
    }

    /// The thread has those of another place, which has none any more.
    pub fn take_over(&self, other: &Self) {
        let distance = other.distance.swap(0, Ordering::Relaxed);
        let apart = (&raw const other.none).addr().wrapping_sub((&raw const self.none).addr());
        let distance = if distance == 0 { 0 } else { distance.wrapping_add(apart) };
        self.distance.store(distance, Ordering::Relaxed);
    }

    /// The thread has none.
    pub fn clear(&self) {
        self.distance.store(0, Ordering::Relaxed);
    }
}

/// The same in models, whose atomics have no bytes.
#[cfg(modelled)]
pub(crate) struct ScopesPlace {
    scopes: AtomicPtr<OpenScopes>,
    none: OpenScopes,
}

#[cfg(modelled)]
impl ScopesPlace {
    pub fn new() -> Self {
        Self { scopes: AtomicPtr::new(core::ptr::null_mut()), none: OpenScopes::new() }
    }

    /// # Safety
    /// None is needed.
    pub unsafe fn get(&self, _block: usize) -> &OpenScopes {
        // SAFETY: scopes that live for ever (O1).
        unsafe { self.scopes.load(Ordering::Relaxed).as_ref() }.unwrap_or(&self.none)
    }

    pub fn is_none(&self) -> bool {
        self.scopes.load(Ordering::Relaxed).is_null()
    }

    pub fn set(&self, scopes: &'static OpenScopes) {
        self.scopes.store(core::ptr::from_ref(scopes).cast_mut(), Ordering::Relaxed);
    }

    pub fn take_over(&self, other: &Self) {
        self.scopes.store(other.scopes.load(Ordering::Relaxed), Ordering::Relaxed);
        other.clear();
    }

    pub fn clear(&self) {
        self.scopes.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
}
