//! All control blocks of the process, and the calling thread's own.
//!
//! Blocks live in chunks that are mapped once and never unmapped, so the dispatcher may look at any of
//! them at any time, and that read as zero in a forked child. A thread finds its own through one
//! thread-local reference. Threads that have none yet, or had their exit notice, see one of two shared
//! sentinels with no space in them, which sends them down the slow path without a test of its own.
//!
//! Invariants:
//!
//! * **B1** Chunks are mapped zeroed (all of a block's fields are valid as zeros) and never unmapped.
//! * **B3** A thread's reference is the address of a sentinel or of a block in a chunk.
#![allow(unsafe_code)]

use crate::sync::{AtomicPtr, AtomicU32, Ordering};
use crate::sys;
use crate::thread::block::ThreadBlock;
use core::cell::Cell;
use std::sync::OnceLock;

const BLOCKS_PER_CHUNK: usize = 128;
const MAX_CHUNKS: usize = 512;

static UNREGISTERED: ThreadBlock = ThreadBlock::new();
static EXITED: ThreadBlock = ThreadBlock::new();

std::thread_local! {
    /// An address, since a constant cannot hold a reference to what changes in Rust 1.85.
    static CURRENT: Cell<*const ThreadBlock> = const { Cell::new(&raw const UNREGISTERED) };
}

/// Whether this is a sentinel rather than a thread's own block.
fn is_sentinel(block: &ThreadBlock) -> bool {
    core::ptr::eq(block, &UNREGISTERED) || core::ptr::eq(block, &EXITED)
}

/// The calling thread's block, or a sentinel.
#[inline(always)]
pub(crate) fn current() -> &'static ThreadBlock {
    // SAFETY: a sentinel's address, or that of a reference that lives as long (B3).
    unsafe { &*CURRENT.get() }
}

/// Is called with the calling thread's block when that changes.
static MIRROR: OnceLock<fn(*const ())> = OnceLock::new();

/// Sets a function that is called, on each thread, with the block that the thread has from now on: for the
/// hot path of other languages, whose thread-locals these are. Only the first such function counts.
pub fn mirror_current_thread(mirror: fn(*const ())) {
    let _ = MIRROR.set(mirror);
}

/// Whether the hot path of other languages finds the calling thread's block.
pub(crate) fn has_mirror() -> bool {
    MIRROR.get().is_some()
}

/// Calls the mirror, in case that it was set when the calling thread had its block already.
pub fn update_mirror() {
    set_current(current());
}

fn set_current(block: &'static ThreadBlock) {
    CURRENT.set(core::ptr::from_ref(block));
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
    // AcqRel: a thread that finds the chunk finds it mapped.
    let _ = CHUNKS[index].compare_exchange(core::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire);
    let chunk = chunk(index);
    if chunk.is_some_and(|chunk| !core::ptr::eq(chunk, fresh)) {
        // Another thread was faster. SAFETY: a mapping of ours that no other thread has seen.
        unsafe { sys::unmap(fresh.cast(), size_of::<Chunk>()) };
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
    let blocks = (0..MAX_CHUNKS).map_while(chunk_or_map).flat_map(|chunk| &chunk.0);
    blocks.into_iter().find(|block| block.take(thread_id))
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
    if !is_sentinel(present) {
        let block = if present.is_used_up() { replace(present) } else { present };
        return Some(Acquired::Own(block));
    }
    let block = borrow(sys::thread_id())?;
    if core::ptr::eq(present, &EXITED) {
        return Some(Acquired::Borrowed(block));
    }
    let now = current();
    if !is_sentinel(now) {
        // A signal handler came in between and took one.
        block.free();
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
    let owner = present.owner();
    let is_back = |block: &&ThreadBlock| {
        block.owner() == owner && !core::ptr::eq(*block, present) && block.is_outside()
    };
    let Some(block) = all().find(is_back).or_else(|| borrow(owner)) else {
        return present;
    };
    block.continue_as(present);
    ANY_REPLACED.store(1, Ordering::Relaxed);
    set_current(block);
    sys::request_exit_notice(core::ptr::from_ref(block).addr());
    block
}

/// At the exit notice with this value: gives the calling thread's blocks back, after `leave_slabs` was called
/// with each.
pub(crate) fn on_thread_exit(address: usize, leave_slabs: impl Fn(&'static ThreadBlock)) {
    let block = current();
    if is_sentinel(block) || core::ptr::from_ref(block).addr() != address {
        return;
    }
    set_current(&EXITED);
    let owner = block.owner();
    let end = |block: &'static ThreadBlock| {
        leave_slabs(block);
        block.forget_events();
        block.free();
    };
    end(block);
    if ANY_REPLACED.load(Ordering::Relaxed) != 0 {
        all().filter(|block| block.owner() == owner).for_each(end);
    }
}

/// In a forked child: the thread has no block any more.
pub(crate) fn forget_current() {
    set_current(&UNREGISTERED);
}

/// All threads look for a place for their open scopes again: those of now are of an earlier run.
pub(crate) fn forget_scopes() {
    all().for_each(|block| block.scopes_place().clear());
}

/// Frees the blocks of threads that ended without an exit notice.
pub(crate) fn sweep() {
    for block in all() {
        let owner = block.owner();
        if owner != 0 && !sys::thread_exists(owner) {
            block.forget_events();
            block.free();
        }
    }
}
