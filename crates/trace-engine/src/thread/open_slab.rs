//! The slab that a thread writes into, and how it changes hands between the thread, the dispatcher, and
//! threads that find no room of their own.
//!
//! The thread that takes the slab's number out of the control block, by an exchange, has the slab. The number
//! comes with a count of the slabs that the thread had: a thread that closes its slab and gets the same one
//! again has another number, so that no exchange that was prepared before takes the new one.

use crate::slab::allocator::{Refusal, SlabAllocator};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The piece of the buffer that one thread writes into at one depth.
#[repr(C)]
pub(crate) struct OpenSlab {
    /// Address of the next record.
    pub cursor: AtomicUsize,
    /// Address behind the slab; 0 when there is none or it was revoked.
    pub end: AtomicUsize,
    /// Records written since the slab was taken.
    pub events: AtomicU64,
    /// Which slab it is: see [`Ownership`]. The thread that takes it out closes the slab, or leaves it to
    /// others.
    pub ownership: AtomicU64,
    /// Not 0 when the thread had a slab before in this context.
    pub had_slab: AtomicU32,
    /// How many slabs were written into here, ever. Never reset.
    pub turns: AtomicU32,
}

/// A slab while it is a thread's own: the number of the slab plus one in the lower half, in the upper half
/// how many the thread has had. 0 when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ownership(u64);

impl Ownership {
    fn new(slab: u32, turns: u32) -> Self {
        Self(u64::from(turns) << 32 | u64::from(slab + 1))
    }

    /// The slab, if there is one.
    pub fn slab(self) -> Option<u32> {
        (self.0 as u32).checked_sub(1)
    }
}

/// What an idle thread has left of its slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    pub slab: u32,
    /// Address of the next record.
    pub cursor: usize,
    pub events: u64,
}

impl OpenSlab {
    /// Makes a slab of this sequence the thread's own, with room from the beginning of `space` to its end,
    /// behind so many records. If that is false it was taken back meanwhile, or the trace was stopped: then
    /// it has to be closed.
    //= docs/buffer.md#claiming
    pub fn begin(
        &self,
        claims: &SlabAllocator,
        slab: u32,
        sequence: u64,
        events: u64,
        space: core::ops::Range<usize>,
    ) -> Result<bool, Refusal> {
        self.events.store(events, Ordering::Relaxed);
        self.cursor.store(space.start, Ordering::Relaxed);
        self.end.store(space.end, Ordering::Relaxed);
        let turns = self.turns.load(Ordering::Relaxed).wrapping_add(1);
        self.turns.store(turns, Ordering::Relaxed);
        // Release: whoever takes the slab out of the block finds the count of its events reset.
        self.ownership.store(Ownership::new(slab, turns).0, Ordering::Release);
        // Either the dispatcher sees this `end` when it clears them, or the look behind the fence sees what
        // it did.
        SlabAllocator::fence();
        let is_kept = claims.recheck(sequence);
        if is_kept != Ok(true) {
            self.end.store(0, Ordering::Relaxed);
        }
        is_kept
    }

    /// For the owner: takes the slab out. None if there is none, or the dispatcher was faster.
    pub fn take(&self) -> Option<u32> {
        self.end.store(0, Ordering::Relaxed);
        Ownership(self.ownership.swap(0, Ordering::AcqRel)).slab()
    }

    /// Which slab the thread has.
    pub fn ownership(&self) -> Ownership {
        Ownership(self.ownership.load(Ordering::Acquire))
    }

    /// For the dispatcher, when the owner has nothing of the slab left to write to: takes it out if it is one
    /// of those wanted, with the number of its events.
    pub fn take_for(&self, is_wanted: impl Fn(u32) -> bool) -> Option<(u32, u64)> {
        let ownership = self.ownership();
        ownership.slab().filter(|slab| is_wanted(*slab))?;
        self.take_idle(ownership).map(|idle| (idle.slab, idle.events))
    }

    /// For a thread that finds no room of its own: takes the space away from one that is outside of its
    /// events. What is left of it may be taken behind a fence on all threads, by [`OpenSlab::take_outside`].
    //= docs/buffer.md#recall
    pub fn revoke_idle(&self) -> Ownership {
        let ownership = self.ownership();
        let end = self.end.load(Ordering::Relaxed);
        if end != 0 {
            // Fails where the owner has gone on to another slab. Where it has come back to this one, it finds
            // no room there and claims anew.
            let _ = self.end.compare_exchange(end, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        ownership
    }

    /// Takes a slab out that was revoked before a fence on all threads, if its owner is outside of its events
    /// now: it finds no space at its next one.
    //= docs/buffer.md#recall
    pub fn take_outside(&self, counter: &AtomicU64, ownership: Ownership) -> Option<Idle> {
        // Acquire: pairs with the Release that makes the counter even: cursor and count are those of the last
        // event.
        let is_outside = counter.load(Ordering::Acquire) & 1 == 0;
        is_outside.then(|| self.take_idle(ownership)).flatten()
    }

    /// Takes a slab out whose owner has nothing of it left to write to, unless that was done meanwhile.
    pub fn take_idle(&self, ownership: Ownership) -> Option<Idle> {
        let slab = ownership.slab()?;
        // They stay as they are until the ownership is taken away.
        let cursor = self.cursor.load(Ordering::Relaxed);
        let events = self.events.load(Ordering::Relaxed);
        let taken = self.ownership.compare_exchange(ownership.0, 0, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok().then_some(Idle { slab, cursor, events })
    }

    /// For the dispatcher: takes the space away, if its end lies in a range of addresses.
    pub fn revoke_within(&self, ends: &core::ops::RangeInclusive<usize>) {
        let end = self.end.load(Ordering::Relaxed);
        if ends.contains(&end) {
            // Fails where the owner has gone on to another slab, which is nobody's business here.
            let _ = self.end.compare_exchange(end, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Forgets that there ever was a slab.
    pub fn clear(&self) {
        self.end.store(0, Ordering::Relaxed);
        self.ownership.store(0, Ordering::Relaxed);
        self.events.store(0, Ordering::Relaxed);
        self.had_slab.store(0, Ordering::Relaxed);
    }
}
