//! A slab's life: claimed, opened, written into by one thread, closed or left over, and retired.
//!
//! The thread that takes a slab's number out of a control block closes the slab: the owner itself, or the
//! dispatcher when it takes the slab back.

pub(crate) mod ahead;
pub(crate) mod allocator;
pub(crate) mod free_list;
pub(crate) mod recall;
pub(crate) mod retirement;
pub(crate) mod streaming;

use crate::buffer::Buffer;
use crate::buffer::backing::Backing;
use crate::buffer::region::Region;
use crate::slab::allocator::{Claim, Refusal, SlabAllocator, SlabWords};
use crate::slab::free_list::{FreeList, Leftover};
use crate::slab::streaming::WakeHandler;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use crate::thread::block::ThreadBlock;
use crate::thread::open_slab::{OpenSlab, TakenSlab};
use trace_format::buffer::{BufferMode, Layout};
use trace_format::slab::{LossReason, SlabState, SlabWord};
use zx_ticks as ticks;

/// A slab with less room, in bytes, is of no use to another thread: the smallest event has two words.
const LEAST_LEFTOVER_BYTES: u64 = 16;

/// The slabs of one buffer.
pub(crate) struct Slabs {
    buffer: Buffer,
    allocator: SlabAllocator,
    /// Slabs that threads have left.
    free_list: FreeList,
    /// Threads that may have taken a slab from another and not put it on the free list yet.
    recalling: AtomicU32,
    /// The number of the block at which the next recall begins.
    recall_from: AtomicUsize,
    /// Slabs with a lower sequence were cleared.
    floor_sequence: AtomicU64,
    /// Wakes the dispatcher of a stream.
    wake: WakeHandler,
}

impl SlabWords for Buffer {
    fn slab_word(&self, slab: u32) -> &AtomicU64 {
        self.slab_word(slab)
    }
}

impl Slabs {
    /// Lays a buffer out; none of its slabs is claimed.
    pub fn new(region: Region, layout: Layout, wake: WakeHandler) -> Self {
        Self {
            allocator: SlabAllocator::new(layout.mode, layout.slabs_per_half),
            free_list: FreeList::new(layout.slab_count()),
            recalling: AtomicU32::new(0),
            recall_from: AtomicUsize::new(0),
            floor_sequence: AtomicU64::new(0),
            wake,
            buffer: Buffer::new(region, layout),
        }
    }

    /// The buffer that they are in.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// For models of the allocator alone.
    #[cfg(modelled)]
    pub fn allocator(&self) -> &SlabAllocator {
        &self.allocator
    }

    fn layout(&self) -> &Layout {
        self.buffer.layout()
    }

    /// Threads may claim slabs.
    pub fn resume(&self) {
        self.allocator.resume();
    }

    /// Threads claim no more slabs; claims under way notice before they are used.
    pub fn stop(&self) {
        self.allocator.stop();
    }

    /// As [`Slabs::stop`], for a recording that goes on in another buffer.
    pub fn leave(&self) {
        self.allocator.leave();
    }

    /// Whether a slab is with a thread.
    pub fn is_in_use(&self, slab: u32) -> bool {
        self.buffer.word_of(slab).is_in_use()
    }

    /// The slabs of a half that is counted since the buffer was cleared.
    fn slabs_of_half(&self, half: u64) -> core::ops::Range<u32> {
        let layout = self.layout();
        let first = (half % u64::from(layout.mode.halves())) as u32 * layout.slabs_per_half;
        first..first + layout.slabs_per_half
    }

    /// Counts what is about to be cleared, unless it was saved: whether the rest was read is for the reader
    /// to know. `is_left_behind` says which slabs of saved halves were not saved with them.
    fn count_cleared(&self, saved_halves: u64, is_left_behind: impl Fn(u32) -> bool) {
        let floor = self.floor_sequence.load(Ordering::Relaxed);
        let saved = self.allocator.half_start(saved_halves);
        for slab in 0..self.layout().slab_count() {
            let word = self.buffer.word_of(slab);
            let is_unsaved = word.sequence() > saved || is_left_behind(slab);
            if word.state() == SlabState::Closed && word.sequence() >= floor && is_unsaved {
                let tally = self.buffer.tally(slab);
                let count = tally.total - tally.before;
                self.buffer.add_loss(LossReason::Cleared, count, tally.first, tally.last);
            }
        }
    }

    /// Forgets what was recorded. Sequences go on. No thread may be inside an event.
    //= docs/buffer.md#dispositions
    pub fn clear(&self) {
        if self.layout().mode == BufferMode::Streaming {
            // What is short is reported for all runs together.
            let claimed = self.allocator.ticket().saturating_sub(self.allocator.half_start(0));
            self.buffer.add_short(LossReason::NotSaved, claimed * self.layout().slab_bytes);
        }
        let floor = self.allocator.clear();
        self.floor_sequence.store(floor, Ordering::Relaxed);
        self.buffer.set_floor(floor);
        self.buffer.clear_slabs();
        self.buffer.backing().into_iter().for_each(Backing::clear);
        self.free_list.clear();
    }

    /// Counts a record that was refused.
    pub fn count_loss(&self, reason: LossReason, timestamp: u64) {
        self.buffer.count_loss(reason, timestamp, || self.allocator.half_of(self.allocator.ticket()));
    }

    /// Ends recording for the whole provider: what is kept is a prefix in time, up to the earliest
    /// refusal. An event that is refused happened when it was refused: a thread that slept between its
    /// event's beginning and the refusal takes nothing away from those that were recorded meanwhile.
    //= docs/buffer.md#the-end-of-a-oneshot-buffer
    pub fn refuse(&self) {
        let timestamp = ticks::now();
        self.buffer.end_at(timestamp);
        self.allocator.set_full();
        let reason = if self.is_short() { LossReason::NotBacked } else { LossReason::Full };
        self.count_loss(reason, timestamp);
    }

    /// Whether a thread has not found memory for a slab since the buffer was cleared.
    pub fn is_short(&self) -> bool {
        self.buffer.backing().is_some_and(Backing::is_short)
    }

    /// Makes sure that there is memory behind slabs that were taken; otherwise gives them back.
    //= docs/buffer.md#memory
    fn back(&self, claim: Claim, run: u32) -> bool {
        let Some(backing) = self.buffer.backing() else {
            return true;
        };
        let start = self.layout().slab(claim.slab);
        let part = start..start + u64::from(run) * self.layout().slab_bytes;
        if backing.is_wake_due(&part) {
            self.wake.wake();
        }
        let is_backed = backing.is_backed(&part) || backing.back(&part);
        if !is_backed {
            backing.note_short();
            self.allocator.give_back(&self.buffer, claim.ticket, run);
        }
        is_backed
    }

    /// While a part of the buffer has no memory, that is the reason why there is no slab; also if it has got
    /// some since the thread has skipped slabs for that.
    fn reason_of(&self, refusal: Refusal, has_skipped: bool) -> Refusal {
        match refusal {
            Refusal::AllInUse | Refusal::NotSaved | Refusal::NotRetired
                if has_skipped || self.buffer.backing().is_some_and(Backing::has_refused) =>
            {
                Refusal::NotBacked
            }
            refusal => refusal,
        }
    }

    /// Whether a thread that is refused gets what others have left of their slabs.
    fn may_recall(&self, refusal: Refusal) -> bool {
        match refusal {
            Refusal::AllClaimed | Refusal::AllInUse => true,
            Refusal::NotBacked => self.layout().mode != BufferMode::Streaming,
            _ => false,
        }
    }

    /// Takes slabs that have memory behind them.
    fn take_backed(&self, run: u32) -> Result<Claim, Refusal> {
        let mut skipped = 0;
        loop {
            let taken = self.allocator.take(&self.buffer, run, |slab, word| self.forget(slab, word));
            self.wake_dispatcher();
            let claim = match taken {
                Ok(claim) => claim,
                Err(refusal) => return Err(self.reason_of(refusal, skipped > 0)),
            };
            if self.back(claim, run) {
                return Ok(claim);
            }
            skipped += run;
            // Tickets of a circular buffer do not end.
            if skipped > self.layout().slab_count() {
                return Err(Refusal::NotBacked);
            }
        }
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
        if own.is_first() && self.claim_leftover(block, own, bytes)? {
            return Ok(());
        }
        loop {
            let claim = match self.take_backed(1) {
                Ok(claim) => claim,
                Err(refusal) if self.may_recall(refusal) => {
                    return if self.claim_recalled(block, own, bytes)? { Ok(()) } else { Err(refusal) };
                }
                Err(refusal) => return Err(refusal),
            };
            self.buffer.open_run(claim.slab, claim.ticket + 1, 1, self.layout().slab_bytes, timestamp);
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
        let last = block.latest();
        let has_room = u64::from(leftover.used_bytes) + bytes <= self.layout().slab_bytes;
        if has_room && self.layout().mode != BufferMode::Streaming {
            return self.own(block, own, leftover);
        }
        self.close_used(leftover, last);
        Ok(false)
    }

    /// For the owner: takes its slab out; none if there is none, or another was faster.
    fn take_own(&self, own: &OpenSlab) -> Option<Leftover> {
        own.take().map(|taken| self.leftover_of(taken))
    }

    fn leftover_of(&self, taken: TakenSlab) -> Leftover {
        let used = taken.cursor - self.buffer.slab_address(taken.slab);
        Leftover { slab: taken.slab, used_bytes: used as u32, events: taken.events as u32 }
    }

    /// Gives a thread what another has left of its slab, if there is one with room for `bytes`.
    fn claim_leftover(&self, block: &ThreadBlock, own: &OpenSlab, bytes: u64) -> Result<bool, Refusal> {
        while let Some(leftover) = self.free_list.pop() {
            if u64::from(leftover.used_bytes) + bytes > self.layout().slab_bytes {
                self.close_leftover(leftover);
            } else if self.own(block, own, leftover)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes a slab a thread's own; false if it was retired meanwhile.
    fn own(&self, block: &ThreadBlock, own: &OpenSlab, leftover: Leftover) -> Result<bool, Refusal> {
        let Leftover { slab, used_bytes, events } = leftover;
        let space = self.buffer.slab_space(slab);
        let space = space.start + used_bytes as usize..space.end;
        let sequence = self.buffer.word_of(slab).sequence();
        let is_kept = own.begin(slab, u64::from(events), space, || self.allocator.recheck(sequence));
        if is_kept != Ok(true) {
            self.close_slab(block, own);
        }
        is_kept
    }

    /// Claims a run for one record larger than a slab, which has to be closed by [`Slabs::close_run`] after
    /// the record was committed. Returns the first slab.
    pub fn claim_run(&self, bytes: u64, timestamp: u64) -> Result<u32, Refusal> {
        let run = bytes.div_ceil(self.layout().slab_bytes) as u32;
        loop {
            let claim = self.take_backed(run)?;
            // Either the dispatcher finds the run in use when it looks for what stays behind, or the look
            // behind the fence finds that the half was retired.
            fence(Ordering::SeqCst);
            let is_kept = self.allocator.recheck(claim.ticket + 1);
            if is_kept == Ok(true) {
                self.buffer.open_run(claim.slab, claim.ticket + 1, run, bytes, timestamp);
                return Ok(claim.slab);
            }
            self.allocator.give_back(&self.buffer, claim.ticket, run);
            is_kept?;
        }
    }

    /// Closes the run of a committed record.
    pub fn close_run(&self, slab: u32, timestamp: u64) {
        self.buffer.add_to_tally(slab, 1, timestamp);
        self.buffer.close_run(slab);
    }

    /// Keeps the times of what was in a slab that is being taken again; its tally has the number of records.
    fn forget(&self, slab: u32, word: SlabWord) {
        let is_there = word.state() == SlabState::Closed
            && word.sequence() >= self.floor_sequence.load(Ordering::Relaxed);
        if is_there && self.layout().mode == BufferMode::Circular {
            let tally = self.buffer.tally(slab);
            self.buffer.add_loss(LossReason::Overwritten, 0, tally.first, tally.last);
        }
    }

    /// Wakes the dispatcher if it sleeps and a half is full. For threads that have taken tickets.
    fn wake_dispatcher(&self) {
        if self.wake.is_set() && self.allocator.is_wake_due() {
            self.wake.wake();
        }
    }

    /// Leaves a slab that has no room any more, or must not be written behind.
    pub fn close_slab(&self, block: &ThreadBlock, own: &OpenSlab) {
        if let Some(leftover) = self.take_own(own) {
            self.close_used(leftover, block.latest());
        }
    }

    /// Closes a slab whose last record is of this time.
    fn close_used(&self, leftover: Leftover, last: u64) {
        self.buffer.add_to_tally(leftover.slab, u64::from(leftover.events), last);
        self.buffer.close_slab(leftover.slab);
    }

    /// For the dispatcher: closes the slab of a thread that has nothing of it left to write to, if it is one
    /// of those wanted.
    fn close_for(&self, block: &ThreadBlock, own: &OpenSlab, is_wanted: impl Fn(u32) -> bool) {
        let last = block.latest();
        if let Some(taken) = own.take_for(is_wanted) {
            self.buffer.add_to_tally(taken.slab, taken.events, last);
            self.buffer.close_slab(taken.slab);
        }
    }

    /// Leaves a slab for good and lets the next claim have what is left of it, unless the beginning of a
    /// record may stand there, of an event that was left by a jump.
    pub fn leave_slab(&self, block: &ThreadBlock, own: &OpenSlab, may_have_beginning: bool) {
        let Some(leftover) = self.take_own(own) else {
            return;
        };
        let last = block.latest();
        // Where a stop or the dispatcher has revoked it, it is closed here or never.
        let is_kept = self.allocator.recheck(self.buffer.word_of(leftover.slab).sequence()) == Ok(true);
        let has_room = u64::from(leftover.used_bytes) + LEAST_LEFTOVER_BYTES <= self.layout().slab_bytes;
        if is_kept && !may_have_beginning && has_room {
            self.release_leftover(leftover, last);
        } else {
            self.close_used(leftover, last);
        }
    }

    /// Puts what is left of a slab on the free list, behind a record of this time.
    fn release_leftover(&self, leftover: Leftover, last: u64) {
        // It stays open: a reader that finds it after a crash counts what is in it, and its tally must not.
        self.buffer.add_to_tally(leftover.slab, 0, last);
        self.free_list.push(leftover);
    }

    /// Closes a slab that was on the free list.
    fn close_leftover(&self, leftover: Leftover) {
        self.close_used(leftover, self.buffer.tally(leftover.slab).last);
    }
}
