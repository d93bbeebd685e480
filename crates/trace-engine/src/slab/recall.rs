//! Taking back what idle threads have left of their slabs, where another thread would be refused.
//!
//! Each thread has a slab of its own, and few threads fill theirs at once: a thousand threads that write an
//! event now and then pin a buffer of megabytes. So before a thread is refused, it takes the unused rest
//! of slabs from those that are outside of their events. To their owners that looks as if the dispatcher had
//! done it: they find their slab gone at their next event, and claim anew.
//!
//! Any number of threads may do this at once. Each acts only on what it has itself seen revoked before its
//! own fence, and takes a slab out by an exchange that fails if its owner, the dispatcher or another was
//! faster.

use crate::slab::Slabs;
use crate::slab::allocator::Refusal;
use crate::sync::{Ordering, fence, yield_now};
use crate::sys;
use crate::thread::block::ThreadBlock;
use crate::thread::open_slab::{OpenSlab, Ownership};
use crate::thread::registry;

/// Threads that are looked at between one fence and the next.
const BATCH: usize = 64;
/// A slab with less room, in bytes, stays with its thread.
const LEAST_BYTES: u64 = 64;
/// Passes that a thread makes while another has taken a slab and not put it on the free list yet. A signal
/// handler may have interrupted that other.
const MAX_PASSES: u32 = 1000;

/// A slab that was taken from under its thread.
type Revoked = (&'static ThreadBlock, &'static OpenSlab, Ownership);

impl Slabs {
    /// Gives a thread what an idle thread has left of its slab, if there is one with room for `bytes`.
    //= docs/buffer.md#recall
    pub(super) fn claim_recalled(
        &self,
        block: &ThreadBlock,
        own: &OpenSlab,
        bytes: u64,
    ) -> Result<bool, Refusal> {
        for _ in 0..MAX_PASSES {
            if self.claim_leftover(block, own, bytes)? {
                return Ok(true);
            }
            if !self.recall(bytes.max(LEAST_BYTES)) {
                // SeqCst: one order with the exchange that takes a slab out: its rest is on the stack, or is
                // counted.
                if self.recalling.load(Ordering::SeqCst) == 0 {
                    return self.claim_leftover(block, own, bytes);
                }
                yield_now();
            }
        }
        Ok(false)
    }

    /// Leaves at least so many bytes of slabs of idle threads to other claims; false if there are none.
    pub(crate) fn recall(&self, bytes: u64) -> bool {
        // Behind those that were looked at last: otherwise a few slabs take what all refused threads write,
        // and are full while the others are nearly empty.
        let mut blocks = registry::all_from(self.recall_from.load(Ordering::Relaxed));
        loop {
            let mut revoked: [Option<Revoked>; BATCH] = [None; BATCH];
            let mut seen = 0;
            for (place, (number, block)) in revoked.iter_mut().zip(&mut blocks) {
                *place = self.revoke_idle(block, bytes);
                seen += 1;
                self.recall_from.store(number + 1, Ordering::Relaxed);
            }
            if revoked.iter().any(Option::is_some) {
                // A thread that begins an event after this fence finds no space.
                fence(Ordering::SeqCst);
                if !sys::fence_all_threads() {
                    return false;
                }
                let mut is_any_taken = false;
                for (block, own, ownership) in revoked.into_iter().flatten() {
                    is_any_taken |= self.leave_idle(block, own, ownership);
                }
                if is_any_taken {
                    return true;
                }
            }
            if seen < BATCH {
                return false;
            }
        }
    }

    /// Takes the space away from a thread that is outside of its events and has so many bytes left.
    fn revoke_idle(&self, block: &'static ThreadBlock, bytes: u64) -> Option<Revoked> {
        if !block.is_outside() || block.generation() != self.buffer.generation() {
            return None;
        }
        let own = block.ordinary_slab();
        let slab = own.ownership().slab()?;
        let end = self.buffer.slab_space(slab).end;
        // It may be another slab's by now, and then it is found out later.
        let left = end.checked_sub(own.cursor())?;
        (left as u64 >= bytes).then(|| (block, own, own.revoke_idle()))
    }

    /// Leaves what a thread has not used of its slab to others, if the thread is still outside of its events
    /// and neither it nor another pass has taken the slab out meanwhile.
    fn leave_idle(&self, block: &ThreadBlock, own: &OpenSlab, ownership: Ownership) -> bool {
        let last = block.latest();
        self.recalling.fetch_add(1, Ordering::SeqCst);
        let taken = own.take_outside(block.is_outside(), ownership);
        if let Some(taken) = taken {
            self.release_leftover(self.leftover_of(taken), last);
        }
        self.recalling.fetch_sub(1, Ordering::SeqCst);
        taken.is_some()
    }
}

#[cfg(all(test, not(modelled)))]
mod tests {
    use super::*;
    use crate::buffer::region::Region;
    use crate::slab::free_list::Leftover;
    use crate::slab::streaming::WakeHandler;
    use trace_format::buffer::{BufferMode, Layout};

    const BYTES: usize = 16 << 10;

    /// A control block as that of a thread between two events, of which one record of 32 bytes is written.
    fn idle_thread(slabs: &Slabs) -> &'static ThreadBlock {
        let block = registry::borrow(sys::thread_id()).unwrap();
        block.join(slabs.buffer.generation(), 1);
        write(slabs, block);
        block
    }

    /// Writes a record; where its space is gone, as the slow path does.
    fn write(slabs: &Slabs, block: &ThreadBlock) {
        let own = block.ordinary_slab();
        if own.end() == 0 {
            slabs.claim_slab(block, own, 32, 7).unwrap();
        }
        own.count_event();
        own.advance(own.cursor() + 32);
    }

    /// The thread comes to its next event, or to its end, between a pass's look at it and the end of the
    /// pass: its slab is not closed, and in a circular buffer not written over.
    //= docs/buffer.md#recall
    #[test]
    fn a_thread_that_was_only_looked_at_keeps_its_slab() {
        for mode in [BufferMode::Oneshot, BufferMode::Circular] {
            let (region, _words) = Region::on_heap(BYTES);
            let layout = Layout::new(BYTES as u64, mode).unwrap();
            let slabs = Slabs::new(region, layout, WakeHandler::default());
            let block = idle_thread(&slabs);
            let own = block.ordinary_slab();
            let slab = own.ownership().slab().unwrap();

            let (_, _, ownership) = slabs.revoke_idle(block, LEAST_BYTES).unwrap();
            write(&slabs, block);
            assert!(!slabs.leave_idle(block, own, ownership), "{mode:?}: it has gone on");
            assert_eq!((own.ownership().slab(), own.events()), (Some(slab), 2));
            assert!(slabs.is_in_use(slab), "{mode:?}");

            let (_, _, ownership) = slabs.revoke_idle(block, LEAST_BYTES).unwrap();
            slabs.leave_slab(block, own, false);
            assert!(!slabs.leave_idle(block, own, ownership), "{mode:?}: it has left");
            assert!(slabs.is_in_use(slab), "{mode:?}");
            assert_eq!(slabs.free_list.pop(), Some(Leftover { slab, used_bytes: 64, events: 2 }), "{mode:?}");
            block.free();
        }
    }
}
