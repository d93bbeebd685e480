//! What ended threads have left of their slabs: a lock-free stack that claims try first.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// A slab that an ended thread has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leftover {
    pub slab: u32,
    pub used_bytes: u32,
    /// Records that were written into it, which its tally does not count yet.
    pub events: u32,
}

/// What is known of a slab in the stack.
#[derive(Default)]
struct Link {
    /// The next slab's number plus one.
    next: AtomicU32,
    used_bytes: AtomicU32,
    events: AtomicU32,
}

/// A stack of slabs, linked by number.
pub(crate) struct FreeList {
    /// Tag (32 bits), slab number plus one (32 bits).
    top: AtomicU64,
    /// By slab.
    links: Box<[Link]>,
}

impl FreeList {
    pub fn new(slab_count: u32) -> Self {
        Self { top: AtomicU64::new(0), links: (0..slab_count).map(|_| Link::default()).collect() }
    }

    pub fn push(&self, leftover: Leftover) {
        let Leftover { slab, used_bytes, events } = leftover;
        let link = &self.links[slab as usize];
        link.used_bytes.store(used_bytes, Ordering::Relaxed);
        link.events.store(events, Ordering::Relaxed);
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            link.next.store(top as u32, Ordering::Relaxed);
            let new = (top >> 32).wrapping_add(1) << 32 | u64::from(slab + 1);
            // Release: pairs with the Acquire in `pop`.
            match self.top.compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Forgets all of them. No thread may be pushing or popping.
    pub fn clear(&self) {
        while self.pop().is_some() {}
    }

    pub fn pop(&self) -> Option<Leftover> {
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let slab = (top as u32).checked_sub(1)?;
            let link = &self.links[slab as usize];
            // The tag makes a stale `next` fail the exchange.
            let new = (top >> 32).wrapping_add(1) << 32 | u64::from(link.next.load(Ordering::Relaxed));
            match self.top.compare_exchange_weak(top, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    return Some(Leftover {
                        slab,
                        used_bytes: link.used_bytes.load(Ordering::Relaxed),
                        events: link.events.load(Ordering::Relaxed),
                    });
                }
                Err(now) => top = now,
            }
        }
    }
}
