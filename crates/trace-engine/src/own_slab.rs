//! The slab that a thread writes into, and how it changes hands between the thread and the dispatcher.

use crate::claim::{Claims, Refusal};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The piece of the buffer that one thread writes into at one depth.
#[repr(C)]
pub(crate) struct OwnSlab {
    /// Address of the next record.
    pub cursor: AtomicUsize,
    /// Address behind the slab; 0 when there is none or it was revoked.
    pub end: AtomicUsize,
    /// Records written since the slab was taken.
    pub events: AtomicU64,
    /// Number of the slab plus one; 0 when there is none. Whoever takes it out closes the slab.
    pub index: AtomicU32,
    /// Not 0 when the thread had a slab before in this context.
    pub had_slab: AtomicU32,
}

impl OwnSlab {
    /// Makes a slab of this sequence the thread's own, with room from the beginning of `space` to its end,
    /// behind so many records. If that is false it was taken back meanwhile, or the trace was stopped: then
    /// it has to be closed.
    //= docs/buffer.md#claiming
    pub fn begin(
        &self,
        claims: &Claims,
        slab: u32,
        sequence: u64,
        events: u64,
        space: core::ops::Range<usize>,
    ) -> Result<bool, Refusal> {
        self.events.store(events, Ordering::Relaxed);
        self.cursor.store(space.start, Ordering::Relaxed);
        self.end.store(space.end, Ordering::Relaxed);
        // Release: whoever takes the slab out of the block finds the count of its events reset.
        self.index.store(slab + 1, Ordering::Release);
        // Either the dispatcher sees this `end` when it clears them, or the look behind the fence sees what
        // it did.
        Claims::fence();
        let is_kept = claims.recheck(sequence);
        if is_kept != Ok(true) {
            self.end.store(0, Ordering::Relaxed);
        }
        is_kept
    }

    /// For the owner: takes the slab out. None if there is none, or the dispatcher was faster.
    pub fn take(&self) -> Option<u32> {
        self.end.store(0, Ordering::Relaxed);
        self.index.swap(0, Ordering::AcqRel).checked_sub(1)
    }

    /// For the dispatcher, when the owner has nothing of the slab left to write to: takes it out if it is one
    /// of those wanted, with the number of its events.
    pub fn take_for(&self, is_wanted: impl Fn(u32) -> bool) -> Option<(u32, u64)> {
        let index = self.index.load(Ordering::Acquire);
        let slab = index.checked_sub(1).filter(|slab| is_wanted(*slab))?;
        // It stays as it is until somebody takes the index away.
        let events = self.events.load(Ordering::Relaxed);
        let taken = self.index.compare_exchange(index, 0, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok().then_some((slab, events))
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
        self.index.store(0, Ordering::Relaxed);
        self.events.store(0, Ordering::Relaxed);
        self.had_slab.store(0, Ordering::Relaxed);
    }
}
