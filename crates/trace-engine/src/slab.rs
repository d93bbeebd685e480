//! A thread's way into a slab and out of it: zeroing, opening, tallies, closing.
//!
//! Whoever takes a slab's number out of the thread's control block closes the slab: the thread itself, or the
//! dispatcher when it takes the slab back.

pub(crate) mod allocator;
pub(crate) mod free_list;
pub(crate) mod recall;
pub(crate) mod retirement;
pub(crate) mod streaming;

use crate::session::context::Context;
use crate::slab::allocator::{Refusal, SlabAllocator, SlabWords};
use crate::slab::free_list::Leftover;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::thread::block::{OpenSlab, ThreadBlock};
use trace_format::buffer::BufferMode;
use trace_format::slab::{LossReason, SlabState, SlabWord, Tally};

impl SlabWords for Context {
    fn slab_word(&self, slab: u32) -> &AtomicU64 {
        self.region.word(self.layout.slab_word(slab))
    }
}

impl Context {
    /// What a slab's word says.
    pub fn word_of(&self, slab: u32) -> SlabWord {
        SlabWord(self.slab_word(slab).load(Ordering::Acquire))
    }

    /// Whether a slab is with a thread.
    pub fn is_in_use(&self, slab: u32) -> bool {
        self.word_of(slab).is_in_use()
    }

    /// The slabs of a half that is counted since the buffer was cleared.
    pub fn slabs_of_half(&self, half: u64) -> core::ops::Range<u32> {
        let first = (half % u64::from(self.layout.mode.halves())) as u32 * self.layout.slabs_per_half;
        first..first + self.layout.slabs_per_half
    }

    /// Gives a thread a slab with room for `bytes`. Its first may be what an ended thread left; all others
    /// are fresh, so that in the order of the slabs a thread's events are in the order of time. Where there
    /// is no fresh one, it gets what others have left after all. A thread that another was about to take its
    /// slab from keeps it.
    pub fn claim_slab(
        &self,
        block: &ThreadBlock,
        own: &OpenSlab,
        bytes: u64,
        timestamp: u64,
    ) -> Result<(), Refusal> {
        if self.keep_slab(block, own, bytes)? {
            return Ok(());
        }
        let is_first = own.had_slab.swap(1, Ordering::Relaxed) == 0;
        if is_first && self.claim_leftover(block, own, bytes)? {
            return Ok(());
        }
        loop {
            let taken = self.claims.take(self, 1, |slab, word| self.forget(slab, word));
            self.wake_dispatcher();
            let claim = match taken {
                Ok(claim) => claim,
                Err(refusal @ (Refusal::AllClaimed | Refusal::AllInUse)) => {
                    return if self.claim_recalled(block, own, bytes)? { Ok(()) } else { Err(refusal) };
                }
                Err(refusal) => return Err(refusal),
            };
            self.open(claim.slab, claim.ticket, 1, self.layout.slab_bytes, timestamp);
            if self.own(block, own, Leftover { slab: claim.slab, used_bytes: 0, events: 0 })? {
                return Ok(());
            }
        }
    }

    /// Lets a thread go on in its own slab, if there is room for `bytes`; closes the slab otherwise. A slab
    /// that a recall has only revoked would be closed nearly empty, and in a circular buffer written over.
    //= docs/buffer.md#recall
    fn keep_slab(&self, block: &ThreadBlock, own: &OpenSlab, bytes: u64) -> Result<bool, Refusal> {
        let Some(leftover) = self.take_own(own) else {
            return Ok(false);
        };
        let last = block.latest.load(Ordering::Relaxed);
        let has_room = u64::from(leftover.used_bytes) + bytes <= self.layout.slab_bytes;
        if has_room && self.layout.mode != BufferMode::Streaming {
            return self.own(block, own, leftover);
        }
        self.close_used(leftover, last);
        Ok(false)
    }

    /// For the owner: takes its slab out; none if there is none, or another was faster.
    fn take_own(&self, own: &OpenSlab) -> Option<Leftover> {
        let slab = own.take()?;
        let used = own.cursor.load(Ordering::Relaxed) - self.region.address(self.layout.slab(slab));
        let events = own.events.load(Ordering::Relaxed);
        Some(Leftover { slab, used_bytes: used as u32, events: events as u32 })
    }

    /// Gives a thread what another has left of its slab, if there is one with room for `bytes`.
    pub fn claim_leftover(&self, block: &ThreadBlock, own: &OpenSlab, bytes: u64) -> Result<bool, Refusal> {
        while let Some(leftover) = self.free_list.pop() {
            if u64::from(leftover.used_bytes) + bytes > self.layout.slab_bytes {
                self.close_leftover(leftover);
            } else if self.own(block, own, leftover)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes a slab a thread's own; false if it was taken back meanwhile.
    fn own(&self, block: &ThreadBlock, own: &OpenSlab, leftover: Leftover) -> Result<bool, Refusal> {
        let Leftover { slab, used_bytes, events } = leftover;
        let start = self.region.address(self.layout.slab(slab));
        let (cursor, end) = (start + used_bytes as usize, start + self.layout.slab_bytes as usize);
        let sequence = self.word_of(slab).sequence();
        let is_kept = own.begin(&self.claims, slab, sequence, u64::from(events), cursor..end);
        if is_kept != Ok(true) {
            self.close_slab(block, own);
        }
        is_kept
    }

    /// SlabAllocator a run for one record larger than a slab, which has to be closed by [`Context::close_run`] after
    /// the record was committed. Returns the first slab.
    pub fn claim_run(&self, bytes: u64, timestamp: u64) -> Result<u32, Refusal> {
        let run = bytes.div_ceil(self.layout.slab_bytes) as u32;
        loop {
            let taken = self.claims.take(self, run, |slab, word| self.forget(slab, word));
            self.wake_dispatcher();
            let claim = taken?;
            // Either the dispatcher finds the run in use when it looks for what stays behind, or the look
            // behind the fence finds that the half was taken back.
            SlabAllocator::fence();
            let is_kept = self.claims.recheck(claim.ticket + 1);
            if is_kept == Ok(true) {
                self.open(claim.slab, claim.ticket, run, bytes, timestamp);
                return Ok(claim.slab);
            }
            self.claims.give_back(self, claim.ticket, run);
            is_kept?;
        }
    }

    /// Marks the run of a committed record as complete: its first slab before the others, which nobody may
    /// take while the first is in use, or the record would be cut.
    //= docs/buffer.md#late-threads
    pub fn close_run(&self, slab: u32, timestamp: u64) {
        self.store_tally(slab, 1, timestamp);
        let run = self.word_of(slab).run();
        self.close(slab);
        for number in 1..run {
            let sequence = self.word_of(slab + number).sequence();
            let word = SlabWord::continuation(sequence, false);
            // Release: pairs with the Acquire of the next claim, which finds the record complete.
            self.slab_word(slab + number).store(word.0, Ordering::Release);
        }
    }

    /// Invalidates, zeroes and opens a run of slabs. `bytes` of them will be written by one record if the
    /// run is longer than one slab: then only what must read as zero is zeroed.
    //= docs/buffer.md#claiming
    fn open(&self, slab: u32, ticket: u64, run: u32, bytes: u64, timestamp: u64) {
        let layout = &self.layout;
        let tally = layout.tally(slab);
        // The words say that the slabs are being taken; nothing of them changes before that.
        fence(Ordering::Release);
        let total = self.region.word(tally + Tally::TOTAL).load(Ordering::Relaxed);
        for (field, value) in [(Tally::BEFORE, total), (Tally::FIRST, timestamp), (Tally::LAST, timestamp)] {
            self.region.word(tally + field).store(value, Ordering::Relaxed);
        }
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
        for number in 1..run {
            let word = SlabWord::continuation(ticket + u64::from(number) + 1, true);
            self.slab_word(slab + number).store(word.0, Ordering::Relaxed);
        }
        self.slab_word(slab).store(SlabWord::new(ticket + 1, SlabState::Open, run).0, Ordering::Release);
    }

    /// Remembers the time of what was in a slab that is being taken again; how many records it was its tally
    /// tells.
    fn forget(&self, slab: u32, word: SlabWord) {
        let is_there = word.state() == SlabState::Closed
            && word.sequence() >= self.floor_sequence.load(Ordering::Relaxed);
        if is_there && self.layout.mode == BufferMode::Circular {
            let tally = self.tally(slab);
            self.add_loss(LossReason::Overwritten, 0, tally.first, tally.last);
        }
    }

    /// What is known of a slab's records.
    pub fn tally(&self, slab: u32) -> Tally {
        let tally = self.layout.tally(slab);
        let fields = [Tally::TOTAL, Tally::BEFORE, Tally::FIRST, Tally::LAST];
        Tally::from_words(fields.map(|field| self.region.word(tally + field).load(Ordering::Relaxed)))
    }

    /// Says that a slab's writer has left.
    pub fn close(&self, slab: u32) {
        let word = self.word_of(slab);
        let closed = SlabWord::new(word.sequence(), SlabState::Closed, word.run());
        // Release: what is in the slab, and its tally, come first.
        self.slab_word(slab).store(closed.0, Ordering::Release);
    }

    /// Adds to a slab's tally.
    fn store_tally(&self, slab: u32, events: u64, last: u64) {
        let tally = self.layout.tally(slab);
        let known = self.region.word(tally + Tally::TOTAL).load(Ordering::Relaxed);
        self.region.word(tally + Tally::TOTAL).store(known + events, Ordering::Relaxed);
        self.region.word(tally + Tally::LAST).store(last, Ordering::Relaxed);
    }

    /// Leaves a slab that has no room any more, or must not be written behind.
    pub fn close_slab(&self, block: &ThreadBlock, own: &OpenSlab) {
        if let Some(leftover) = self.take_own(own) {
            self.close_used(leftover, block.latest.load(Ordering::Relaxed));
        }
    }

    /// Closes a slab whose last record is of this time.
    fn close_used(&self, leftover: Leftover, last: u64) {
        self.store_tally(leftover.slab, u64::from(leftover.events), last);
        self.close(leftover.slab);
    }

    /// For the dispatcher: closes the slab of a thread that has nothing of it left to write to, if it is one
    /// of those wanted.
    pub fn close_for(&self, block: &ThreadBlock, own: &OpenSlab, is_wanted: impl Fn(u32) -> bool) {
        let last = block.latest.load(Ordering::Relaxed);
        if let Some((slab, events)) = own.take_for(is_wanted) {
            self.store_tally(slab, events, last);
            self.close(slab);
        }
    }

    /// Leaves a slab for good and lets the next claim have the rest of it, unless the beginning of a record
    /// may stand there, of an event that was left by a jump.
    pub fn leave_slab(&self, block: &ThreadBlock, own: &OpenSlab, may_have_beginning: bool) {
        let Some(leftover) = self.take_own(own) else {
            return;
        };
        let last = block.latest.load(Ordering::Relaxed);
        // Where a stop or the dispatcher has revoked it, nobody closes it any more.
        let is_kept = self.claims.recheck(self.word_of(leftover.slab).sequence()) == Ok(true);
        if is_kept && !may_have_beginning && u64::from(leftover.used_bytes) + 16 <= self.layout.slab_bytes {
            self.release_leftover(leftover, last);
        } else {
            self.close_used(leftover, last);
        }
    }

    /// Leaves the rest of a slab to others, behind a record of this time.
    pub fn release_leftover(&self, leftover: Leftover, last: u64) {
        // It stays open: a reader that finds it after a crash counts what is in it, and its tally must not.
        self.store_tally(leftover.slab, 0, last);
        self.free_list.push(leftover);
    }

    /// Closes a slab that an ended thread has left.
    pub fn close_leftover(&self, leftover: Leftover) {
        self.close_used(leftover, self.tally(leftover.slab).last);
    }
}
