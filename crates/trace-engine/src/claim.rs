//! Claiming, opening and leaving slabs.
//!
//! One atomic word says which slabs are taken and whether claiming is over:
//!
//! ```text
//!  63        62     61..32          31..0
//! +---------+------+---------------+----------------+
//! | STOPPED | FULL | wrapped count | slabs claimed  |
//! +---------+------+---------------+----------------+
//! ```
//!
//! In oneshot mode the wrapped count stays 0.

use crate::block::{OwnSlab, ThreadBlock};
use crate::context::Context;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use trace_format::buffer::Layout;
use trace_format::slab::{SlabState, SlabWord};

const STOPPED: u64 = 1 << 63;
const FULL: u64 = 1 << 62;
const POSITION: u64 = 0xffff_ffff;

/// Why there is no slab for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Recording was stopped: the event does not belong to the trace any more.
    Stopped,
    /// The buffer is full.
    Full,
}

/// Which slabs are taken, and the rests of slabs whose threads ended.
pub(crate) struct Claims {
    state: AtomicU64,
    slab_count: u32,
    /// Top of the stack of rests: tag (32 bits), slab number plus one (32 bits).
    rests: AtomicU64,
    /// By slab: the next in the stack of rests, and how many bytes of it are used.
    links: Box<[(AtomicU32, AtomicU32)]>,
}

impl Claims {
    pub fn new(layout: &Layout) -> Self {
        Self {
            state: AtomicU64::new(0),
            slab_count: layout.slab_count(),
            rests: AtomicU64::new(0),
            links: (0..layout.slab_count()).map(|_| (AtomicU32::new(0), AtomicU32::new(0))).collect(),
        }
    }

    /// Number of slabs claimed so far.
    pub fn claimed(&self) -> u32 {
        (self.state.load(Ordering::Relaxed) & POSITION) as u32
    }

    /// Refuses all further claims because the buffer is full.
    pub fn set_full(&self) {
        self.state.fetch_or(FULL, Ordering::SeqCst);
    }

    /// Refuses all further claims because the trace ends. Claims under way notice before they are used.
    pub fn stop(&self) {
        self.state.fetch_or(STOPPED, Ordering::SeqCst);
    }

    fn check(state: u64) -> Result<(), Refusal> {
        match state {
            state if state & STOPPED != 0 => Err(Refusal::Stopped),
            state if state & FULL != 0 => Err(Refusal::Full),
            _ => Ok(()),
        }
    }

    /// Takes a run of slabs that nobody had.
    fn take(&self, run: u32) -> Result<u32, Refusal> {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            Self::check(state)?;
            let position = (state & POSITION) as u32;
            if run > self.slab_count - position {
                return Err(Refusal::Full);
            }
            // SeqCst: one order with `stop` and the re-check after `end` was set.
            match self.state.compare_exchange_weak(
                state,
                state + u64::from(run),
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(position),
                Err(now) => state = now,
            }
        }
    }

    fn push_rest(&self, slab: u32, used_bytes: u32) {
        let (next, used) = &self.links[slab as usize];
        used.store(used_bytes, Ordering::Relaxed);
        let mut top = self.rests.load(Ordering::Relaxed);
        loop {
            next.store(top as u32, Ordering::Relaxed);
            let new = (top >> 32).wrapping_add(1) << 32 | u64::from(slab + 1);
            // Release: pairs with the Acquire in `pop_rest`.
            match self.rests.compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    fn pop_rest(&self) -> Option<(u32, u32)> {
        let mut top = self.rests.load(Ordering::Acquire);
        loop {
            let slab = (top as u32).checked_sub(1)?;
            let (next, used) = &self.links[slab as usize];
            // The tag makes a stale `next` fail the exchange.
            let new = (top >> 32).wrapping_add(1) << 32 | u64::from(next.load(Ordering::Relaxed));
            match self.rests.compare_exchange_weak(top, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some((slab, used.load(Ordering::Relaxed))),
                Err(now) => top = now,
            }
        }
    }
}

impl Context {
    /// Gives a thread a slab with room for `bytes`. Its first may be what an ended thread left; all others are
    /// fresh, so that in the order of the slabs a thread's events are in the order of time.
    //= docs/buffer.md#claiming
    pub fn claim_slab(
        &self,
        block: &ThreadBlock,
        own: &OwnSlab,
        bytes: u64,
        timestamp: u64,
    ) -> Result<(), Refusal> {
        self.close_slab(block, own);
        let is_first = own.had_slab.swap(1, Ordering::Relaxed) == 0;
        while is_first && let Some((slab, used)) = self.claims.pop_rest() {
            if u64::from(used) + bytes <= self.layout.slab_bytes {
                return self.own(own, slab, used);
            }
            self.set_state(slab, SlabState::Closed, 1);
        }
        let slab = self.claims.take(1)?;
        self.open(slab, 1, self.layout.slab_bytes);
        self.region.word(self.layout.tally(slab) + 8).store(timestamp, Ordering::Relaxed);
        self.own(own, slab, 0)
    }

    fn own(&self, own: &OwnSlab, slab: u32, used_bytes: u32) -> Result<(), Refusal> {
        let start = self.region.address(self.layout.slab(slab));
        own.index.store(slab + 1, Ordering::Relaxed);
        own.events.store(0, Ordering::Relaxed);
        own.cursor.store(start + used_bytes as usize, Ordering::Relaxed);
        own.end.store(start + self.layout.slab_bytes as usize, Ordering::Relaxed);
        // Either `stop` sees this `end` when it clears them all, or the load below sees the stop.
        fence(Ordering::SeqCst);
        if self.claims.state.load(Ordering::SeqCst) & STOPPED != 0 {
            own.end.store(0, Ordering::Relaxed);
            return Err(Refusal::Stopped);
        }
        Ok(())
    }

    /// Claims a run for one record larger than a slab. Returns the first slab; to be closed by
    /// [`Context::close_run`] after the record was committed.
    pub fn claim_run(&self, bytes: u64) -> Result<u32, Refusal> {
        let run = bytes.div_ceil(self.layout.slab_bytes) as u32;
        let slab = self.claims.take(run)?;
        self.open(slab, run, bytes);
        Ok(slab)
    }

    /// Marks the run of a committed record as complete.
    pub fn close_run(&self, slab: u32, bytes: u64, timestamp: u64) {
        self.store_tally(slab, 1, timestamp);
        self.region.word(self.layout.tally(slab) + 8).store(timestamp, Ordering::Relaxed);
        self.set_state(slab, SlabState::Closed, bytes.div_ceil(self.layout.slab_bytes) as u32);
    }

    /// Invalidates, zeroes and opens a run of slabs. `bytes` of them will be written by one record if the
    /// run is longer than one slab: then only what must read as zero is zeroed.
    fn open(&self, slab: u32, run: u32, bytes: u64) {
        let layout = &self.layout;
        for number in slab..slab + run {
            self.region.word(layout.slab_word(number)).store(SlabWord::EMPTY.0, Ordering::Relaxed);
        }
        // No byte of the slab changes before its word says that it is empty.
        fence(Ordering::Release);
        let start = layout.slab(slab);
        let end = start + u64::from(run) * layout.slab_bytes;
        if run == 1 {
            self.region.zero(start..end);
        } else {
            self.region.zero(start..start + 8);
            self.region.zero(start + bytes..end);
        }
        // The slab is zero before its word says that it is open.
        fence(Ordering::Release);
        for number in slab + 1..slab + run {
            self.set_state(number, SlabState::Continuation, 0);
        }
        self.set_state(slab, SlabState::Open, run);
    }

    fn set_state(&self, slab: u32, state: SlabState, run: u32) {
        // Sequences count from 1 and equal the position in oneshot mode, where no slab is claimed twice.
        let word = SlabWord::new(u64::from(slab) + 1, state, run);
        // Release: what is in the slab, and its tally, come first.
        self.region.word(self.layout.slab_word(slab)).store(word.0, Ordering::Release);
    }

    /// Adds to a slab's tally.
    fn store_tally(&self, slab: u32, events: u64, last_ts: u64) {
        let tally = self.layout.tally(slab);
        let known = self.region.word(tally).load(Ordering::Relaxed);
        self.region.word(tally).store(known + events, Ordering::Relaxed);
        self.region.word(tally + 16).store(last_ts, Ordering::Relaxed);
    }

    fn tally(&self, block: &ThreadBlock, own: &OwnSlab) -> Option<u32> {
        let slab = own.index.load(Ordering::Relaxed).checked_sub(1)?;
        self.store_tally(slab, own.events.load(Ordering::Relaxed), block.latest.load(Ordering::Relaxed));
        Some(slab)
    }

    /// Leaves a slab that has no room any more.
    fn close_slab(&self, block: &ThreadBlock, own: &OwnSlab) {
        if let Some(slab) = self.tally(block, own) {
            self.set_state(slab, SlabState::Closed, 1);
        }
        own.leave();
    }

    /// Leaves a slab for good and lets the next claim have the rest of it.
    pub fn leave_slab(&self, block: &ThreadBlock, own: &OwnSlab) {
        let is_revoked = own.end.load(Ordering::Relaxed) == 0;
        if let Some(slab) = self.tally(block, own) {
            let used = own.cursor.load(Ordering::Relaxed) - self.region.address(self.layout.slab(slab));
            if is_revoked || used as u64 + 16 > self.layout.slab_bytes {
                self.set_state(slab, SlabState::Closed, 1);
            } else {
                self.claims.push_rest(slab, used as u32);
            }
        }
        own.leave();
    }
}
