//! Slots that are used again and again, without a lock: each one belongs to one span at a time, and an id
//! says which of all the spans that had the slot is meant.
//!
//! ```text
//! id     63 1 | 62 0 | 24 generation | 0 number of the slot
//! state  32 generation | 0 references
//! free   32 slots that were given back | 0 first free slot, counted from 1
//! ```
//!
//! The models in `tests/models` play through what two threads do with it at the same time.
#![warn(clippy::disallowed_types)]

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;

/// Distinguishes ids of slots from 0.
pub const ID: u64 = 1 << 63;
/// Distinguishes ids of spans that have no slot, but the number of their callsite.
pub const WITHOUT_SLOT: u64 = 1 << 62;
const NUMBER_BITS: u32 = 24;
const GENERATIONS: u64 = 0x7fff_ffff;

/// A span, or none.
#[derive(Debug)]
struct Slot<D> {
    state: AtomicU64,
    /// The next free slot, counted from 1.
    next: AtomicU32,
    data: D,
}

impl<D: Default> Default for Slot<D> {
    fn default() -> Self {
        Self { state: AtomicU64::new(0), next: AtomicU32::new(0), data: D::default() }
    }
}

/// So many blocks of so many slots, which are made when they are needed, and stay.
#[derive(Debug)]
pub struct Slots<D, const BLOCKS: usize, const BLOCK_SLOTS: usize> {
    blocks: [OnceLock<Box<[Slot<D>; BLOCK_SLOTS]>>; BLOCKS],
    /// Slots that were never used begin here.
    unused: AtomicU32,
    free: AtomicU64,
}

/// The number of an id's slot.
#[inline]
pub const fn number_of(id: u64) -> u32 {
    id as u32 & ((1 << NUMBER_BITS) - 1)
}

impl<D: Default, const BLOCKS: usize, const BLOCK_SLOTS: usize> Slots<D, BLOCKS, BLOCK_SLOTS> {
    /// Both atomics are 0.
    pub const fn new(unused: AtomicU32, free: AtomicU64) -> Self {
        Self { blocks: [const { OnceLock::new() }; BLOCKS], unused, free }
    }

    #[inline]
    fn slot(&self, number: u32) -> Option<&Slot<D>> {
        let block = self.blocks.get(number as usize / BLOCK_SLOTS)?.get()?;
        Some(&block[number as usize % BLOCK_SLOTS])
    }

    /// The slot of an id, if that is still its span, and how many references there are.
    #[inline]
    fn slot_of(&self, id: u64) -> Option<(&Slot<D>, u32)> {
        if id & (ID | WITHOUT_SLOT) != ID {
            return None;
        }
        let slot = self.slot(number_of(id))?;
        // Acquire: pairs with the Release in `begin`, and with those of `release` in other threads.
        let state = slot.state.load(Ordering::Acquire);
        let references = state as u32;
        (state >> 32 == id >> NUMBER_BITS & GENERATIONS && references > 0).then_some((slot, references))
    }

    /// A slot that belongs to the caller from now on. None if all are in use.
    pub fn take(&self) -> Option<u32> {
        self.pop_free().or_else(|| self.pop_unused())
    }

    fn pop_free(&self) -> Option<u32> {
        // Acquire, here and below: pairs with the Release in `give_back`.
        let mut first = self.free.load(Ordering::Acquire);
        loop {
            let number = (first as u32).checked_sub(1)?;
            let next = self.slot(number)?.next.load(Ordering::Relaxed);
            // Another thread that takes this slot and gives it back changes the upper half.
            let new = first >> 32 << 32 | u64::from(next);
            match self.free.compare_exchange_weak(first, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(number),
                Err(now) => first = now,
            }
        }
    }

    fn pop_unused(&self) -> Option<u32> {
        let slots = (BLOCKS * BLOCK_SLOTS) as u32;
        let take = |unused| (unused < slots).then_some(unused + 1);
        let number = self.unused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        let block = self.blocks.get(number as usize / BLOCK_SLOTS)?;
        // By way of a slice, which is made where it stays.
        let make = || Box::try_from((0..BLOCK_SLOTS).map(|_| Slot::default()).collect::<Box<[_]>>()).ok();
        block.get_or_init(|| make().expect("as many as that"));
        Some(number)
    }

    /// Gives back a slot whose span has ended.
    pub fn give_back(&self, number: u32) {
        let Some(slot) = self.slot(number) else {
            return;
        };
        let mut first = self.free.load(Ordering::Relaxed);
        loop {
            slot.next.store(first as u32, Ordering::Relaxed);
            let new = (first >> 32).wrapping_add(1) << 32 | u64::from(number + 1);
            // Release: pairs with the Acquire in `pop_free`, for the slot's next and what the span has left.
            match self.free.compare_exchange_weak(first, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// A span begins in a slot of the caller's, with one reference: its id and its data.
    #[inline]
    pub fn begin(&self, number: u32, fill: impl FnOnce(&D)) -> Option<(u64, &D)> {
        let slot = self.slot(number)?;
        fill(&slot.data);
        let generation = slot.state.load(Ordering::Relaxed) >> 32;
        // Release: pairs with the Acquire in `slot_of`.
        slot.state.store(generation << 32 | 1, Ordering::Release);
        Some((ID | generation << NUMBER_BITS | u64::from(number), &slot.data))
    }

    /// The data of an open span.
    #[inline]
    pub fn find(&self, id: u64) -> Option<&D> {
        self.slot_of(id).map(|(slot, _)| &slot.data)
    }

    /// How many slots were ever used.
    pub fn used(&self) -> usize {
        self.unused.load(Ordering::Relaxed) as usize
    }

    /// The span of a slot, if one is open.
    pub fn open(&self, number: u32) -> Option<(u64, &D)> {
        let slot = self.slot(number)?;
        // Acquire: pairs with the Release in `begin`.
        let state = slot.state.load(Ordering::Acquire);
        let id = ID | (state >> 32) << NUMBER_BITS | u64::from(number);
        (state as u32 > 0).then_some((id, &slot.data))
    }

    /// One more reference, for a caller that has one.
    #[inline]
    pub fn reference(&self, id: u64) {
        if let Some((slot, _)) = self.slot_of(id) {
            slot.state.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One reference less. With the last one the span ends: `end` is called with its data, and then the slot,
    /// whose number is returned, belongs to the caller.
    #[inline]
    pub fn release(&self, id: u64, end: impl FnOnce(&D)) -> Option<u32> {
        let (slot, references) = self.slot_of(id)?;
        // If the only reference is the caller's, no other thread can make one of it meanwhile, and an
        // exchange is saved. Release and Acquire: the last one comes after what the threads that had others
        // did.
        if references > 1 && slot.state.fetch_sub(1, Ordering::AcqRel) as u32 != 1 {
            return None;
        }
        end(&slot.data);
        let generation = (slot.state.load(Ordering::Relaxed) >> 32).wrapping_add(1) & GENERATIONS;
        slot.state.store(generation << 32, Ordering::Relaxed);
        Some(number_of(id))
    }
}
