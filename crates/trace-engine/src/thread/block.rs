//! The control block of a thread: what it owns of the buffer, and whether it is writing right now.
//!
//! Invariant **B2**: all fields are atomics. The owner writes with plain stores; the dispatcher, and threads
//! that find no room of their own, only clear `end` of a slab and take the slab out, by exchange; the
//! dispatcher clears the place of the open scopes, too.
#![allow(unsafe_code)]

use crate::sync::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
use crate::thread::begins::Begins;
use crate::thread::open_scopes::{OpenScopes, ScopesPlace, ScopesRun};
use crate::thread::open_slab::OpenSlab;
use zx_ticks as ticks;

/// Nesting depths of a thread: its ordinary events, and those of handlers that interrupt them.
pub(crate) const DEPTHS: usize = 4;

/// Ticks between two timestamps of a thread that fall into one step of the clock: at least a nanosecond, so
/// that their order survives a conversion, for clocks of up to 4 GHz.
const MIN_STEP_TICKS: u64 = 4;

/// Everything the engine knows of one thread.
#[repr(C, align(128))]
pub(crate) struct ThreadBlock {
    /// Odd while the thread is inside an event.
    counter: AtomicU64,
    /// The thread reference in its place in an event's header; 0 when inline.
    thread_bits: AtomicU64,
    /// The last timestamp given out on the thread, in ticks.
    latest: AtomicU64,
    /// By depth; threads without an index begin at 1, so that the hot path never has space for them.
    slabs: [OpenSlab; DEPTHS],
    /// Where its open scopes are.
    scopes: ScopesPlace,
    /// How many events of this thread are under way beyond the first.
    depth: AtomicU32,
    /// Thread id of the owner; 0 when free.
    owner: AtomicU32,
    /// Set of definitions for which slabs and thread reference are valid.
    generation: AtomicU64,
    /// See [`ThreadBlock::late_at`].
    late_at: AtomicU64,
    /// Not 0 when the thread goes on with another block, as it has left events of this one by a jump.
    is_replaced: AtomicU32,
    /// Events that were left by a jump and are counted.
    left_counted: AtomicU32,
    /// Durations that have begun, with the thread's processor time then.
    begins: Begins,
    /// The run in which there was no place for its open scopes.
    refused_in: AtomicU64,
    /// The owner's koid in the trace; valid as long as the thread reference is.
    koid: AtomicU64,
}

// The layout that programs in C rely on.
//= docs/c.md#layouts
#[cfg(not(modelled))]
const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(ThreadBlock, counter) == 0 && offset_of!(ThreadBlock, thread_bits) == 8);
    assert!(offset_of!(ThreadBlock, latest) == 16 && offset_of!(ThreadBlock, slabs) == 24);
    assert!(matches!(OpenSlab::OFFSETS, [0, 8, 16]));
    assert!(offset_of!(ThreadBlock, scopes) == ScopesPlace::OFFSET && ScopesPlace::NONE == 8);
    // Scopes that are nowhere are this block's (O2).
    assert!(offset_of!(ThreadBlock, scopes) + 8 + size_of::<OpenScopes>() <= size_of::<ThreadBlock>());
};

impl ThreadBlock {
    const_unless_modelled! {
        /// A block of no thread.
        pub fn new() -> Self {
            Self {
                counter: AtomicU64::new(0),
                thread_bits: AtomicU64::new(0),
                latest: AtomicU64::new(0),
                slabs: array_of![OpenSlab::new(); DEPTHS],
                scopes: ScopesPlace::new(),
                depth: AtomicU32::new(0),
                owner: AtomicU32::new(0),
                generation: AtomicU64::new(0),
                late_at: AtomicU64::new(0),
                is_replaced: AtomicU32::new(0),
                left_counted: AtomicU32::new(0),
                begins: Begins::new(),
                refused_in: AtomicU64::new(0),
                koid: AtomicU64::new(0),
            }
        }
    }

    /// Enters an event on the hot path: the counter before, or none inside another event.
    #[inline(always)]
    pub fn enter_outermost(&self) -> Option<u64> {
        let counter = self.counter.load(Ordering::Relaxed);
        if counter & 1 != 0 {
            return None;
        }
        // Release: a dispatcher that waits for the event before may see this value instead of that event's
        // last one.
        self.counter.store(counter + 1, Ordering::Release);
        // The processor's half of this fence is the dispatcher's `membarrier`.
        compiler_fence(Ordering::SeqCst);
        Some(counter)
    }

    /// The other end of [`ThreadBlock::enter_outermost`].
    #[inline(always)]
    pub fn leave_outermost(&self, counter: u64) {
        // Release: the dispatcher that sees the even counter sees the record.
        self.counter.store(counter + 2, Ordering::Release);
    }

    /// Marks the thread as inside an event, or one level deeper inside.
    pub fn enter(&self) {
        let counter = self.counter.load(Ordering::Relaxed);
        if counter & 1 == 0 {
            // Release: as on the hot path.
            self.counter.store(counter + 1, Ordering::Release);
        } else {
            self.depth.store(self.depth.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        // One order with the dispatcher's switching off and its look at the counters.
        fence(Ordering::SeqCst);
    }

    /// The other end of [`ThreadBlock::enter`].
    pub fn leave(&self) {
        let depth = self.depth.load(Ordering::Relaxed);
        if depth > 0 {
            self.depth.store(depth - 1, Ordering::Relaxed);
        } else {
            let counter = self.counter.load(Ordering::Relaxed);
            self.counter.store(counter + 1, Ordering::Release);
        }
    }

    /// The current time, greater than every timestamp this thread got before.
    ///
    /// Clocks advance in steps of several nanoseconds. Viewers order events by time alone, and a scope is
    /// recorded when it ends: of two scopes that begin in one step of the clock the inner one would come
    /// first, and take its place in the nesting.
    //= docs/buffer.md#timestamps
    #[inline(always)]
    pub fn stamp(&self) -> u64 {
        let now = ticks::now().max(self.latest.load(Ordering::Relaxed) + MIN_STEP_TICKS);
        self.latest.store(now, Ordering::Relaxed);
        now
    }

    /// The last timestamp of the thread.
    pub fn latest(&self) -> u64 {
        self.latest.load(Ordering::Relaxed)
    }

    /// The thread's reference, where it stands in an event's header; 0 for an inline one.
    #[inline(always)]
    pub fn thread_bits(&self) -> u64 {
        self.thread_bits.load(Ordering::Relaxed)
    }

    /// The thread has an index from now on.
    pub fn set_thread_index(&self, index: u8) {
        self.thread_bits.store(u64::from(index) << 24, Ordering::Relaxed);
    }

    /// The slab of events on the hot path.
    #[inline(always)]
    pub fn first_slab(&self) -> &OpenSlab {
        &self.slabs[0]
    }

    /// The slab of its ordinary events.
    pub fn ordinary_slab(&self) -> &OpenSlab {
        &self.slabs[usize::from(self.thread_bits() == 0)]
    }

    /// The slab of the event that is under way; none if too many are.
    pub fn present_slab(&self) -> Option<&OpenSlab> {
        self.slabs.get(self.nested() + usize::from(self.thread_bits() == 0))
    }

    /// Its slabs, by depth.
    pub fn slabs(&self) -> &[OpenSlab; DEPTHS] {
        &self.slabs
    }

    /// Where its open scopes are.
    pub fn scopes_place(&self) -> &ScopesPlace {
        &self.scopes
    }

    /// The number of the run in which there was no place for its open scopes; 0 if there is none.
    pub fn refused_in(&self) -> u64 {
        self.refused_in.load(Ordering::Relaxed)
    }

    /// Remembers that there was none.
    pub fn set_refused(&self, run: ScopesRun) {
        self.refused_in.store(run.number(), Ordering::Relaxed);
    }

    /// Its open scopes.
    #[inline(always)]
    pub fn scopes(&self) -> &OpenScopes {
        // SAFETY: of this block.
        unsafe { self.scopes.get(core::ptr::from_ref(self).expose_provenance()) }
    }

    /// Durations that have begun.
    pub fn begins(&self) -> &Begins {
        &self.begins
    }

    /// Thread id of the owner.
    pub fn owner(&self) -> u32 {
        self.owner.load(Ordering::Acquire)
    }

    /// The owner's koid in the trace that it has joined.
    pub fn koid(&self) -> u64 {
        self.koid.load(Ordering::Relaxed)
    }

    /// The set of definitions that slabs and thread reference belong to; 0 for none.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// The thread writes with another set of definitions from now on: without slabs and index.
    pub fn join(&self, generation: u64, koid: u64) {
        self.slabs.iter().for_each(OpenSlab::clear);
        self.thread_bits.store(0, Ordering::Relaxed);
        self.koid.store(koid, Ordering::Relaxed);
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// Goes on as another block of the same thread, with its index, unless it has joined a trace itself.
    pub fn continue_as(&self, other: &Self) {
        if self.generation() == 0 {
            self.thread_bits.store(other.thread_bits(), Ordering::Relaxed);
            self.koid.store(other.koid(), Ordering::Relaxed);
            self.generation.store(other.generation(), Ordering::Relaxed);
        }
        self.scopes.take_over(&other.scopes);
        self.latest.store(other.latest().max(self.latest()), Ordering::Relaxed);
        // No stop waits for it.
        other.set_late_at(other.counter.load(Ordering::Relaxed));
        other.is_replaced.store(1, Ordering::Relaxed);
        self.is_replaced.store(0, Ordering::Relaxed);
    }

    /// Makes a free block a thread's; false if it is not free.
    pub fn take(&self, thread_id: u32) -> bool {
        // Acquire: pairs with the Release in `free`.
        self.owner() == 0
            && self.owner.compare_exchange(0, thread_id, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends the use of a block whose slabs were left.
    pub fn free(&self) {
        self.generation.store(0, Ordering::Relaxed);
        self.thread_bits.store(0, Ordering::Relaxed);
        self.slabs.iter().for_each(OpenSlab::clear);
        self.is_replaced.store(0, Ordering::Relaxed);
        self.left_counted.store(0, Ordering::Relaxed);
        self.scopes.clear();
        // Release: pairs with the Acquire in `take`.
        self.owner.store(0, Ordering::Release);
    }

    /// Takes all space away from the owner. It notices at its next event.
    pub fn revoke(&self) {
        self.slabs.iter().for_each(OpenSlab::revoke);
    }

    /// Takes the slabs themselves away: they are not closed any more.
    pub fn forget_slabs(&self) {
        self.revoke();
        self.slabs.iter().for_each(OpenSlab::disown);
    }

    /// Takes space away whose end lies in a range of addresses.
    pub fn revoke_within(&self, ends: &core::ops::RangeInclusive<usize>) {
        self.slabs.iter().for_each(|slab| slab.revoke_within(ends));
    }

    /// The counter, odd while the thread is inside an event.
    pub fn counter(&self) -> u64 {
        // Acquire: pairs with the Release that makes the counter even; the record is complete.
        self.counter.load(Ordering::Acquire)
    }

    /// The counter at which the thread was waited for in vain; 0 if it never was.
    pub fn late_at(&self) -> u64 {
        self.late_at.load(Ordering::Relaxed)
    }

    /// Remembers that the thread was waited for in vain.
    pub fn set_late_at(&self, counter: u64) {
        self.late_at.store(counter, Ordering::Relaxed);
    }

    /// Whether the thread is outside of its events. What it has stored in the one before can be seen then.
    pub fn is_outside(&self) -> bool {
        self.counter() & 1 == 0
    }

    /// How many events of this thread are under way beyond the first.
    pub fn nested(&self) -> usize {
        self.depth.load(Ordering::Relaxed) as usize
    }

    /// Events that have begun and not ended.
    pub fn events_under_way(&self) -> u32 {
        if self.is_outside() { 0 } else { 1 + self.depth.load(Ordering::Relaxed) }
    }

    /// Whether the thread would be refused its next event, as too many others have not ended.
    pub fn is_used_up(&self) -> bool {
        usize::from(self.thread_bits() == 0) + self.events_under_way() as usize >= DEPTHS
    }

    /// Whether the thread goes on with another block.
    pub fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Relaxed) != 0
    }

    /// How many events the thread has left by a jump since the last call. It has to be known that none of the
    /// events under way will end.
    pub fn take_left_events(&self) -> u32 {
        let under_way = self.events_under_way();
        under_way.saturating_sub(self.left_counted.swap(under_way, Ordering::Relaxed))
    }

    /// The owner ends: no event is under way any more, whatever was left by a jump.
    pub fn forget_events(&self) {
        self.depth.store(0, Ordering::Relaxed);
        // Counters never go back: one at which a thread was waited for in vain means that event for ever.
        let counter = self.counter.load(Ordering::Relaxed);
        self.counter.store(counter.next_multiple_of(2), Ordering::Release);
    }
}

#[cfg(all(test, not(modelled)))]
mod tests {
    use super::*;

    //= docs/buffer.md#timestamps
    #[test]
    fn a_stamp_is_later_than_the_one_before_whatever_the_clock_says() {
        let block = ThreadBlock::new();
        let first = block.stamp();
        assert!(first > 0);
        let ahead = first + (1 << 50);
        block.latest.store(ahead, Ordering::Relaxed);
        // A nanosecond of a clock of 4 GHz.
        assert_eq!(block.stamp(), ahead + 4);
        assert_eq!(block.stamp(), ahead + 8);
    }

    #[test]
    fn what_the_hot_path_touches_is_in_one_cache_line() {
        assert!(core::mem::offset_of!(ThreadBlock, slabs) + size_of::<OpenSlab>() <= 64);
        assert_eq!(align_of::<ThreadBlock>(), 128);
    }
}
