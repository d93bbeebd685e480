//! The control block of a thread: what it owns of the buffer, and whether it is writing right now.
//!
//! Blocks live in chunks that are mapped once and never unmapped, so the dispatcher may look at any of
//! them at any time, and that read as zero in a forked child. A thread finds its own through one
//! thread-local reference. Threads that have none yet, or had their exit notice, see one of two shared
//! sentinels with no space in them, which sends them down the slow path without a test of its own.
//!
//! Invariants:
//!
//! * **B1** Chunks are mapped zeroed (all of a block's fields are valid as zeros) and never unmapped.
//! * **B2** All fields are atomics: the owner writes with plain stores; the dispatcher, and threads that find
//!   no room of their own, only clear `end` and take the slab out, by exchange.
#![allow(unsafe_code)]

use crate::record::processor_time::Begins;
use crate::session::engine;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sys;
pub(crate) use crate::thread::open_slab::OpenSlab;
use core::cell::Cell;
use std::sync::OnceLock;
use zx_sim::ticks;

/// Nesting depths of a thread: its ordinary events, and those of handlers that interrupt them.
pub(crate) const DEPTHS: usize = 4;

/// Ticks between two timestamps of a thread that fall into one step of the clock: at least a nanosecond, so
/// that their order survives a conversion, for clocks of up to 4 GHz.
const MIN_STEP_TICKS: u64 = 4;
const BLOCKS_PER_CHUNK: usize = 128;
const MAX_CHUNKS: usize = 512;

/// Everything the engine knows of one thread.
#[repr(C, align(128))]
pub(crate) struct ThreadBlock {
    /// Odd while the thread is inside an event.
    pub counter: AtomicU64,
    /// The thread reference in its place in an event's header; 0 when inline.
    pub thread_bits: AtomicU64,
    /// The last timestamp given out on the thread, in ticks.
    pub latest: AtomicU64,
    /// By depth; threads without an index begin at 1, so that the hot path never has space for them.
    pub slabs: [OpenSlab; DEPTHS],
    /// How many events of this thread are under way beyond the first.
    pub depth: AtomicU32,
    /// Thread id of the owner; 0 when free.
    pub owner: AtomicU32,
    /// Set of definitions for which slabs and thread reference are valid.
    pub generation: AtomicU64,
    /// See [`ThreadBlock::late_at`].
    late_at: AtomicU64,
    /// Not 0 when the thread goes on with another block, as it has left events of this one by a jump.
    is_replaced: AtomicU32,
    /// Events that were left by a jump and are counted.
    left_counted: AtomicU32,
    /// Durations that have begun, with the thread's processor time then.
    pub begins: Begins,
    /// How the owner is called in the trace; valid as long as the thread reference is.
    pub koid: AtomicU64,
}

/// A thread's slab before it has one.
const fn no_slab() -> OpenSlab {
    OpenSlab {
        cursor: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        events: AtomicU64::new(0),
        ownership: AtomicU64::new(0),
        had_slab: AtomicU32::new(0),
        turns: AtomicU32::new(0),
    }
}

impl ThreadBlock {
    const fn new() -> Self {
        Self {
            counter: AtomicU64::new(0),
            thread_bits: AtomicU64::new(0),
            latest: AtomicU64::new(0),
            slabs: [const { no_slab() }; DEPTHS],
            depth: AtomicU32::new(0),
            owner: AtomicU32::new(0),
            generation: AtomicU64::new(0),
            late_at: AtomicU64::new(0),
            is_replaced: AtomicU32::new(0),
            left_counted: AtomicU32::new(0),
            begins: Begins::new(),
            koid: AtomicU64::new(0),
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

    /// Takes all space away from the owner. It notices at its next event.
    pub fn revoke(&self) {
        for slab in &self.slabs {
            slab.end.store(0, Ordering::Relaxed);
        }
    }

    /// Takes the slabs themselves away: nobody closes them any more.
    pub fn forget_slabs(&self) {
        self.revoke();
        self.slabs.iter().for_each(|slab| slab.ownership.store(0, Ordering::SeqCst));
    }

    /// Takes space away whose end lies in a range of addresses.
    pub fn revoke_within(&self, ends: &core::ops::RangeInclusive<usize>) {
        self.slabs.iter().for_each(|slab| slab.revoke_within(ends));
    }

    /// The counter at which the thread was waited for in vain; 0 if it never was.
    pub fn late_at(&self) -> u64 {
        self.late_at.load(Ordering::Relaxed)
    }

    /// The slab of its ordinary events.
    pub fn ordinary_slab(&self) -> &OpenSlab {
        &self.slabs[usize::from(self.thread_bits.load(Ordering::Relaxed) == 0)]
    }

    /// Whether the thread is outside of its events. What it has stored in the one before can be seen then.
    pub fn is_outside(&self) -> bool {
        // Acquire: pairs with the Release that makes the counter even.
        self.counter.load(Ordering::Acquire) & 1 == 0
    }

    /// Events that have begun and not ended.
    pub fn events_under_way(&self) -> u32 {
        if self.is_outside() { 0 } else { 1 + self.depth.load(Ordering::Relaxed) }
    }

    /// Whether the thread would be refused its next event, as too many others have not ended.
    fn is_used_up(&self) -> bool {
        let base = usize::from(self.thread_bits.load(Ordering::Relaxed) == 0);
        base + self.events_under_way() as usize >= DEPTHS
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
    fn forget_events(&self) {
        self.depth.store(0, Ordering::Relaxed);
        // Counters never go back: one at which a thread was waited for in vain means that event for ever.
        let counter = self.counter.load(Ordering::Relaxed);
        self.counter.store(counter.next_multiple_of(2), Ordering::Release);
    }

    /// Remembers that the thread was waited for in vain.
    pub fn set_late_at(&self, counter: u64) {
        self.late_at.store(counter, Ordering::Relaxed);
    }

    /// Whether this is a sentinel rather than a thread's own block.
    pub fn is_sentinel(&self) -> bool {
        core::ptr::eq(self, &UNREGISTERED) || core::ptr::eq(self, &EXITED)
    }
}

// What programs in C carry.
//= docs/c.md#layouts
const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(ThreadBlock, counter) == 0 && offset_of!(ThreadBlock, thread_bits) == 8);
    assert!(offset_of!(ThreadBlock, latest) == 16 && offset_of!(ThreadBlock, slabs) == 24);
    assert!(
        offset_of!(OpenSlab, cursor) == 0
            && offset_of!(OpenSlab, end) == 8
            && offset_of!(OpenSlab, events) == 16
    );
};

static UNREGISTERED: ThreadBlock = ThreadBlock::new();
static EXITED: ThreadBlock = ThreadBlock::new();

std::thread_local! {
    static CURRENT: Cell<&'static ThreadBlock> = const { Cell::new(&UNREGISTERED) };
}

/// The calling thread's block, or a sentinel.
#[inline(always)]
pub(crate) fn current() -> &'static ThreadBlock {
    CURRENT.with(Cell::get)
}

/// Who else keeps the calling thread's block.
static MIRROR: OnceLock<fn(*const ())> = OnceLock::new();

/// Has a function told, on each thread, which block it has from now on: for the hot path of other languages,
/// whose thread-locals these are. Only the first such function counts.
pub fn mirror_current_thread(mirror: fn(*const ())) {
    let _ = MIRROR.set(mirror);
}

/// Whether the hot path of other languages finds the calling thread's block.
pub(crate) fn has_mirror() -> bool {
    MIRROR.get().is_some()
}

/// Tells the mirror, in case that it was set when the calling thread had its block already.
pub fn update_mirror() {
    set_current(current());
}

fn set_current(block: &'static ThreadBlock) {
    CURRENT.set(block);
    if let Some(mirror) = MIRROR.get() {
        mirror(core::ptr::from_ref(block).cast());
    }
}

struct Chunk([ThreadBlock; BLOCKS_PER_CHUNK]);

static CHUNKS: [AtomicPtr<Chunk>; MAX_CHUNKS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_CHUNKS];

fn chunk(index: usize) -> Option<&'static Chunk> {
    let chunk = CHUNKS[index].load(Ordering::Acquire);
    // SAFETY: a chunk in the table is never unmapped (B1) and shared through atomics only (B2).
    unsafe { chunk.as_ref() }
}

fn chunk_or_map(index: usize) -> Option<&'static Chunk> {
    if let Some(chunk) = chunk(index) {
        return Some(chunk);
    }
    let fresh = sys::map_wiped_on_fork(size_of::<Chunk>()).cast::<Chunk>();
    if fresh.is_null() {
        return None;
    }
    // AcqRel: whoever finds the chunk finds it mapped.
    let _ = CHUNKS[index].compare_exchange(core::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire);
    let chunk = chunk(index);
    if chunk.is_some_and(|chunk| !core::ptr::eq(chunk, fresh)) {
        // Another thread was faster. SAFETY: a mapping of ours that nobody has seen.
        unsafe { libc::munmap(fresh.cast(), size_of::<Chunk>()) };
    }
    chunk
}

/// All blocks there are, owned or not.
pub(crate) fn all() -> impl Iterator<Item = &'static ThreadBlock> {
    (0..MAX_CHUNKS).map_while(chunk).flat_map(|chunk| &chunk.0)
}

/// All blocks there are, from one of them on and round to it.
pub(crate) fn all_from(first: usize) -> impl Iterator<Item = (usize, &'static ThreadBlock)> {
    let count = (0..MAX_CHUNKS).map_while(chunk).count() * BLOCKS_PER_CHUNK;
    let first = if first < count { first } else { 0 };
    (first..count).chain(0..first).filter_map(|number| {
        chunk(number / BLOCKS_PER_CHUNK).map(|chunk| (number, &chunk.0[number % BLOCKS_PER_CHUNK]))
    })
}

/// Takes a free block for the calling thread without making it the thread's own. None when a great many
/// threads are alive or memory is out.
pub(crate) fn borrow(thread_id: u32) -> Option<&'static ThreadBlock> {
    (0..MAX_CHUNKS).map_while(chunk_or_map).flat_map(|chunk| &chunk.0).find(|block| {
        // Acquire: pairs with the Release in `give_back`.
        block.owner.load(Ordering::Relaxed) == 0
            && block.owner.compare_exchange(0, thread_id, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })
}

/// Ends the use of a block whose slabs were left.
pub(crate) fn give_back(block: &'static ThreadBlock) {
    block.generation.store(0, Ordering::Relaxed);
    block.thread_bits.store(0, Ordering::Relaxed);
    block.slabs.iter().for_each(OpenSlab::clear);
    block.is_replaced.store(0, Ordering::Relaxed);
    block.left_counted.store(0, Ordering::Relaxed);
    // Release: pairs with the Acquire in `borrow`.
    block.owner.store(0, Ordering::Release);
}

/// What the slow path writes with.
pub(crate) enum Acquired {
    /// The thread's own block, kept until its exit.
    Own(&'static ThreadBlock),
    /// After the exit notice: to be given back at the end of the event.
    Borrowed(&'static ThreadBlock),
}

/// The calling thread's block; takes one at its first event.
pub(crate) fn acquire() -> Option<Acquired> {
    let present = current();
    if !present.is_sentinel() {
        let block = if present.is_used_up() { replace(present) } else { present };
        return Some(Acquired::Own(block));
    }
    let block = borrow(sys::thread_id())?;
    if core::ptr::eq(present, &EXITED) {
        return Some(Acquired::Borrowed(block));
    }
    let now = current();
    if !now.is_sentinel() {
        // A signal handler came in between and took one.
        give_back(block);
        return Some(Acquired::Own(now));
    }
    set_current(block);
    sys::request_exit_notice(core::ptr::from_ref(block).addr());
    Some(Acquired::Own(block))
}

/// Whether any thread goes on with another block than its first.
static ANY_REPLACED: AtomicU32 = AtomicU32::new(0);

/// Another block for a thread with so many events under way that it would be refused the next one: it has
/// left them by jumps, or they are those of handlers that interrupted each other. The present one stays as it
/// is, a straggler's, until its events have ended. Returns that where there is no other.
//= docs/buffer.md#events-that-are-left
#[cold]
fn replace(present: &'static ThreadBlock) -> &'static ThreadBlock {
    let owner = present.owner.load(Ordering::Relaxed);
    let is_back = |block: &&ThreadBlock| {
        block.owner.load(Ordering::Relaxed) == owner && !core::ptr::eq(*block, present) && block.is_outside()
    };
    let Some(block) = all().find(is_back).or_else(|| borrow(owner)) else {
        return present;
    };
    if block.generation.load(Ordering::Relaxed) == 0 {
        // The same thread, with the same index.
        block.thread_bits.store(present.thread_bits.load(Ordering::Relaxed), Ordering::Relaxed);
        block.koid.store(present.koid.load(Ordering::Relaxed), Ordering::Relaxed);
        block.generation.store(present.generation.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    let latest = present.latest.load(Ordering::Relaxed).max(block.latest.load(Ordering::Relaxed));
    block.latest.store(latest, Ordering::Relaxed);
    // No stop waits for it.
    present.set_late_at(present.counter.load(Ordering::Relaxed));
    present.is_replaced.store(1, Ordering::Relaxed);
    block.is_replaced.store(0, Ordering::Relaxed);
    ANY_REPLACED.store(1, Ordering::Relaxed);
    set_current(block);
    sys::request_exit_notice(core::ptr::from_ref(block).addr());
    block
}

/// Ends the use of a block of a thread that ends.
fn end(block: &'static ThreadBlock) {
    engine::leave_slabs(block);
    block.forget_events();
    give_back(block);
}

/// The exit notice: gives the block and what is left of its slab back.
pub(crate) fn on_thread_exit(address: usize) {
    let block = current();
    if block.is_sentinel() || core::ptr::from_ref(block).addr() != address {
        return;
    }
    set_current(&EXITED);
    let owner = block.owner.load(Ordering::Relaxed);
    end(block);
    if ANY_REPLACED.load(Ordering::Relaxed) != 0 {
        all().filter(|block| block.owner.load(Ordering::Relaxed) == owner).for_each(end);
    }
}

/// In a forked child: the thread has no block any more.
pub(crate) fn forget_current() {
    set_current(&UNREGISTERED);
}

/// Frees the blocks of threads that ended without an exit notice.
pub(crate) fn sweep() {
    for block in all() {
        let owner = block.owner.load(Ordering::Acquire);
        if owner != 0 && !sys::thread_exists(owner) {
            block.forget_events();
            give_back(block);
        }
    }
}

#[cfg(test)]
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
