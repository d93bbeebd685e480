//! Writers, and a dispatcher that takes their slabs back: as much of the engine as has to be modelled around
//! its own files.

use crate::Memory;
use crate::claim::{Refusal, SlabAllocator, SlabWords};
use crate::own_slab::OpenSlab;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, thread};
use trace_format::buffer::BufferMode;
use trace_format::slab::SlabWord;

/// Where a slab's addresses would be: slab *n* has those from 100 × (*n* + 1) on.
pub fn address(slab: u32) -> usize {
    100 * (slab as usize + 1)
}

/// A thread as the dispatcher sees it.
pub struct Block {
    pub counter: AtomicU64,
    pub own: OpenSlab,
}

/// What writers and the dispatcher share.
pub struct World {
    pub claims: SlabAllocator,
    pub memory: Memory,
    pub blocks: Vec<Block>,
    pub is_on: AtomicU32,
    /// Threads go on in the slab that they still have when its end was taken away.
    goes_on: bool,
}

impl World {
    pub fn new(mode: BufferMode, slabs_per_half: u32, threads: usize) -> Self {
        let block = || Block { counter: AtomicU64::new(0), own: OpenSlab::new() };
        Self {
            claims: SlabAllocator::new(mode, slabs_per_half),
            memory: Memory::new(slabs_per_half * mode.halves()),
            blocks: (0..threads).map(|_| block()).collect(),
            is_on: AtomicU32::new(1),
            goes_on: mode != BufferMode::Streaming,
        }
    }

    /// One event: into the slab that the thread has, or one that it claims. The payload of a slab is how many
    /// there are in it.
    pub fn write(&self, thread: usize) -> Result<(), Refusal> {
        let block = &self.blocks[thread];
        let counter = block.counter.load(Ordering::Relaxed);
        block.counter.store(counter + 1, Ordering::Release);
        fence(Ordering::SeqCst);
        let result = if self.is_on.load(Ordering::SeqCst) == 1 {
            self.write_inside(&block.own)
        } else {
            Err(Refusal::Stopped)
        };
        block.counter.store(counter + 2, Ordering::Release);
        result
    }

    fn write_inside(&self, own: &OpenSlab) -> Result<(), Refusal> {
        while own.end() == 0 {
            let events = own.events();
            let left = own.take().map(|taken| taken.slab);
            // As the engine: what a recall has only revoked is not closed.
            if let Some(slab) = left.filter(|_| self.goes_on) {
                let start = address(slab);
                let sequence = SlabWord(self.memory.slab_word(slab).load(Ordering::Relaxed)).sequence();
                let is_kept = own.begin(slab, events, start..start + 100, || self.claims.recheck(sequence));
                if is_kept != Ok(true) {
                    self.close(own.take().map(|taken| taken.slab));
                    is_kept?;
                }
                continue;
            }
            self.close(left);
            let claim = self.claims.take(&self.memory, 1, |slab, _| self.memory.write(slab, 0))?;
            self.memory.open(claim.slab, claim.ticket + 1);
            let start = address(claim.slab);
            let is_kept =
                own.begin(claim.slab, 0, start..start + 100, || self.claims.recheck(claim.ticket + 1));
            if is_kept != Ok(true) {
                self.close(own.take().map(|taken| taken.slab));
                is_kept?;
            }
        }
        let slab = (own.cursor() / 100 - 1) as u32;
        let events = own.events() + 1;
        self.memory.write(slab, events);
        own.count_event();
        Ok(())
    }

    fn close(&self, slab: Option<u32>) {
        if let Some(slab) = slab {
            self.memory.close(slab);
        }
    }

    /// Waits until each thread was seen outside of its event.
    fn wait_until_out(&self) {
        fence(Ordering::SeqCst);
        for block in &self.blocks {
            let first = block.counter.load(Ordering::Acquire);
            while first & 1 != 0 && block.counter.load(Ordering::Acquire) == first {
                thread::yield_now();
            }
        }
    }

    /// What a start that clears does: nothing of the run before stays.
    #[allow(dead_code, reason = "not every program plays it through")]
    pub fn clear(&self) {
        self.wait_until_out();
        for block in &self.blocks {
            block.own.revoke();
            block.own.disown();
        }
        self.wait_until_out();
        self.claims.clear();
        for slab in 0..self.memory.words.len() as u32 {
            self.memory.write(slab, 0);
            self.memory.slab_word(slab).store(SlabWord::EMPTY.0, Ordering::Relaxed);
        }
        self.claims.resume();
    }

    /// Takes slabs back: those whose ends lie in a range.
    pub fn retire(&self, ends: &core::ops::RangeInclusive<usize>, is_wanted: impl Fn(u32) -> bool) {
        fence(Ordering::SeqCst);
        let revoke = || self.blocks.iter().for_each(|block| block.own.revoke_within(ends));
        revoke();
        self.wait_until_out();
        revoke();
        for block in &self.blocks {
            self.close(block.own.take_for(&is_wanted).map(|taken| taken.slab));
        }
        self.wait_until_out();
    }
}
