//! The slab that a thread writes into, and how it changes hands between the thread, the dispatcher, and
//! threads that find no room of their own.
//!
//! The thread that takes the slab's number out of the control block, by an exchange, has the slab. The number
//! comes with a count of the slabs that the thread had: a thread that closes its slab and gets the same one
//! again has another number, so that no exchange that was prepared before takes the new one.

use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// The piece of the buffer that one thread writes into at one depth.
#[repr(C)]
pub(crate) struct OpenSlab {
    /// Address of the next record.
    cursor: AtomicUsize,
    /// Address behind the slab; 0 when there is none or it was revoked.
    end: AtomicUsize,
    /// Records written since the slab was taken.
    events: AtomicU64,
    /// Which slab it is: see [`Ownership`]. The thread that takes it out closes the slab, or leaves it to
    /// others.
    ownership: AtomicU64,
    /// Not 0 when the thread had a slab before in this trace.
    had_slab: AtomicU32,
    /// How many slabs were written into here, ever. Never reset.
    turns: AtomicU32,
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

/// A slab that was taken out of a control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenSlab {
    pub slab: u32,
    /// Address of the next record.
    pub cursor: usize,
    /// Records in it that its tally does not count yet.
    pub events: u64,
}

impl OpenSlab {
    /// Offsets of cursor, end and count of events.
    //= docs/c.md#layouts
    pub const OFFSETS: [usize; 3] = {
        use core::mem::offset_of;
        [offset_of!(OpenSlab, cursor), offset_of!(OpenSlab, end), offset_of!(OpenSlab, events)]
    };

    const_unless_modelled! {
        /// Before the thread has a slab.
        pub fn new() -> Self {
            Self {
                cursor: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                events: AtomicU64::new(0),
                ownership: AtomicU64::new(0),
                had_slab: AtomicU32::new(0),
                turns: AtomicU32::new(0),
            }
        }
    }

    /// Address of the next record.
    #[inline(always)]
    pub fn cursor(&self) -> usize {
        self.cursor.load(Ordering::Relaxed)
    }

    /// Address behind the slab; 0 when there is none or it was revoked.
    #[inline(always)]
    pub fn end(&self) -> usize {
        self.end.load(Ordering::Relaxed)
    }

    /// Records written since the slab was taken.
    #[inline(always)]
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// For the owner, before a record is committed.
    #[inline(always)]
    pub fn count_event(&self) {
        self.events.store(self.events.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// For the owner, after a record was committed: the next one begins at `cursor`.
    #[inline(always)]
    pub fn advance(&self, cursor: usize) {
        self.cursor.store(cursor, Ordering::Relaxed);
    }

    /// Notes that the thread has had a slab in this trace; true the first time.
    pub fn is_first(&self) -> bool {
        self.had_slab.swap(1, Ordering::Relaxed) == 0
    }

    /// Makes a slab the thread's own, with room from the beginning of `space` to its end, behind so many
    /// records. `recheck` says whether it still may be; if not, it was retired meanwhile, or the trace was
    /// stopped: then it has to be closed.
    //= docs/buffer.md#claiming
    pub fn begin<E>(
        &self,
        slab: u32,
        events: u64,
        space: core::ops::Range<usize>,
        recheck: impl FnOnce() -> Result<bool, E>,
    ) -> Result<bool, E> {
        self.events.store(events, Ordering::Relaxed);
        self.cursor.store(space.start, Ordering::Relaxed);
        self.end.store(space.end, Ordering::Relaxed);
        let turns = self.turns.load(Ordering::Relaxed).wrapping_add(1);
        self.turns.store(turns, Ordering::Relaxed);
        // Release: the thread that takes the slab out of the block finds the count of its events reset.
        self.ownership.store(Ownership::new(slab, turns).0, Ordering::Release);
        // Either the dispatcher sees this `end` when it clears them, or the look behind the fence sees what
        // it did.
        fence(Ordering::SeqCst);
        let is_kept = recheck();
        if !matches!(is_kept, Ok(true)) {
            self.revoke();
        }
        is_kept
    }

    /// For the owner: takes the slab out. None if there is none, or the dispatcher was faster.
    pub fn take(&self) -> Option<TakenSlab> {
        self.revoke();
        let slab = Ownership(self.ownership.swap(0, Ordering::AcqRel)).slab()?;
        Some(TakenSlab { slab, cursor: self.cursor(), events: self.events() })
    }

    /// Which slab the thread has.
    pub fn ownership(&self) -> Ownership {
        Ownership(self.ownership.load(Ordering::Acquire))
    }

    /// For the dispatcher, when the owner has nothing of the slab left to write to: takes it out if it is one
    /// of those wanted.
    pub fn take_for(&self, is_wanted: impl Fn(u32) -> bool) -> Option<TakenSlab> {
        let ownership = self.ownership();
        ownership.slab().filter(|slab| is_wanted(*slab))?;
        self.take_idle(ownership)
    }

    /// For a thread that finds no room of its own: takes the space away from one that is outside of its
    /// events. What is left of it may be taken behind a fence on all threads, by [`OpenSlab::take_outside`].
    //= docs/buffer.md#recall
    pub fn revoke_idle(&self) -> Ownership {
        let ownership = self.ownership();
        let end = self.end();
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
    pub fn take_outside(&self, is_outside: bool, ownership: Ownership) -> Option<TakenSlab> {
        // The thread that saw the owner outside sees cursor and count of its last event.
        is_outside.then(|| self.take_idle(ownership)).flatten()
    }

    /// Takes a slab out whose owner has nothing of it left to write to, unless that was done meanwhile.
    fn take_idle(&self, ownership: Ownership) -> Option<TakenSlab> {
        let slab = ownership.slab()?;
        // They stay as they are until the ownership is taken away.
        let cursor = self.cursor.load(Ordering::Relaxed);
        let events = self.events.load(Ordering::Relaxed);
        let taken = self.ownership.compare_exchange(ownership.0, 0, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok().then_some(TakenSlab { slab, cursor, events })
    }

    /// Takes the space away from the owner, which notices at its next event.
    pub fn revoke(&self) {
        self.end.store(0, Ordering::Relaxed);
    }

    /// For the dispatcher: takes the space away, if its end lies in a range of addresses.
    pub fn revoke_within(&self, ends: &core::ops::RangeInclusive<usize>) {
        let end = self.end();
        if ends.contains(&end) {
            // Fails where the owner has gone on to another slab, which stays with it.
            let _ = self.end.compare_exchange(end, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Takes the slab away without closing it.
    pub fn disown(&self) {
        self.ownership.store(0, Ordering::SeqCst);
    }

    /// Forgets that there ever was a slab.
    pub fn clear(&self) {
        self.revoke();
        self.ownership.store(0, Ordering::Relaxed);
        self.events.store(0, Ordering::Relaxed);
        self.had_slab.store(0, Ordering::Relaxed);
    }

    /// For tests: room that no slab stands behind.
    #[cfg(test)]
    pub fn set_space(&self, space: core::ops::Range<usize>) {
        self.cursor.store(space.start, Ordering::Relaxed);
        self.end.store(space.end, Ordering::Release);
    }
}
