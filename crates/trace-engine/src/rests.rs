//! What ended threads have left of their slabs: a lock-free stack that claims try first.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// A stack of slabs, linked by number.
pub(crate) struct Rests {
    /// Tag (32 bits), slab number plus one (32 bits).
    top: AtomicU64,
    /// By slab: the next in the stack, and how many bytes of it are used.
    links: Box<[(AtomicU32, AtomicU32)]>,
}

impl Rests {
    pub fn new(slab_count: u32) -> Self {
        Self {
            top: AtomicU64::new(0),
            links: (0..slab_count).map(|_| (AtomicU32::new(0), AtomicU32::new(0))).collect(),
        }
    }

    pub fn push(&self, slab: u32, used_bytes: u32) {
        let (next, used) = &self.links[slab as usize];
        used.store(used_bytes, Ordering::Relaxed);
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            next.store(top as u32, Ordering::Relaxed);
            let new = (top >> 32).wrapping_add(1) << 32 | u64::from(slab + 1);
            // Release: pairs with the Acquire in `pop`.
            match self.top.compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Forgets all of them. For a time at which nobody pushes or pops.
    pub fn clear(&self) {
        while self.pop().is_some() {}
    }

    /// A slab and how many bytes of it are used.
    pub fn pop(&self) -> Option<(u32, u32)> {
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let slab = (top as u32).checked_sub(1)?;
            let (next, used) = &self.links[slab as usize];
            // The tag makes a stale `next` fail the exchange.
            let new = (top >> 32).wrapping_add(1) << 32 | u64::from(next.load(Ordering::Relaxed));
            match self.top.compare_exchange_weak(top, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some((slab, used.load(Ordering::Relaxed))),
                Err(now) => top = now,
            }
        }
    }
}
