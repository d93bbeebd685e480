//! Which parts of a sparse buffer have memory.
//!
//! A buffer is a file whose memory is allocated while it is written. Touching a part that cannot get any
//! would kill the program, so each thread that takes a slab makes sure first that there is memory behind it:
//! by a look at the state of the slab's chunk, and where that is not known to have any, by a system call
//! that allocates it, or fails.

use crate::sync::{AtomicU32, Ordering};
use core::ops::Range;
use trace_format::buffer::CHUNK_BYTES;

/// Allocates the memory of a range of byte offsets; false if there is none. It is called inside of events: it
/// must not allocate by other ways, or do what a signal handler may not.
pub type Populate = Box<dyn Fn(Range<u64>) -> bool + Send + Sync>;

/// The chunk has not been looked at.
const UNKNOWN: u32 = 0;
/// It has memory, which it keeps.
const BACKED: u32 = 1;
/// There was no memory for it. Only the dispatcher tries again.
const REFUSED: u32 = 2;

/// The states of all chunks of a buffer.
pub(crate) struct Backing {
    chunks: Box<[AtomicU32]>,
    bytes: u64,
    populate: Populate,
    /// All chunks below were tried. Only the dispatcher uses it.
    tried: AtomicU32,
    /// How many chunks are refused.
    refused: AtomicU32,
    /// Not 0 from when a thread wants the dispatcher to go on until it does.
    is_called: AtomicU32,
    /// Not 0 if a thread was refused a slab since the buffer was cleared.
    is_short: AtomicU32,
}

impl Backing {
    /// Of a buffer of which nothing is known.
    pub fn new(bytes: u64, populate: Populate) -> Self {
        let chunks = (0..bytes.div_ceil(CHUNK_BYTES)).map(|_| AtomicU32::new(UNKNOWN)).collect();
        let [tried, refused, is_called, is_short] = [0; 4].map(AtomicU32::new);
        Self { chunks, bytes, populate, tried, refused, is_called, is_short }
    }

    fn chunks_of(&self, part: &Range<u64>) -> Range<usize> {
        (part.start / CHUNK_BYTES) as usize..part.end.div_ceil(CHUNK_BYTES) as usize
    }

    /// Whether a part is known to have memory.
    pub fn is_backed(&self, part: &Range<u64>) -> bool {
        // Acquire: pairs with the Release in `try_chunk`.
        let is_backed = |chunk: &AtomicU32| chunk.load(Ordering::Acquire) == BACKED;
        self.chunks[self.chunks_of(part)].iter().all(is_backed)
    }

    /// Gives a part memory, whole chunks of it; false if there is none, or was none for another thread.
    pub fn back(&self, part: &Range<u64>) -> bool {
        self.chunks_of(part).all(|chunk| match self.chunks[chunk].load(Ordering::Acquire) {
            BACKED => true,
            REFUSED => false,
            _ => self.try_chunk(chunk),
        })
    }

    /// Asks for the memory of a chunk, which other threads may do at the same time.
    fn try_chunk(&self, chunk: usize) -> bool {
        let start = chunk as u64 * CHUNK_BYTES;
        let is_backed = (self.populate)(start..self.bytes.min(start + CHUNK_BYTES));
        let state = &self.chunks[chunk];
        if is_backed {
            // Release: pairs with the Acquire of the threads that use the memory.
            if state.swap(BACKED, Ordering::Release) == REFUSED {
                self.refused.fetch_sub(1, Ordering::Relaxed);
            }
        } else if state.compare_exchange(UNKNOWN, REFUSED, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            // No other thread has got it meanwhile.
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_backed
    }

    /// Whether the calling thread, which has taken a part, has to wake the dispatcher: the chunk behind it
    /// was not asked for yet, and no other thread has woken the dispatcher for that.
    pub fn is_wake_due(&self, part: &Range<u64>) -> bool {
        let next = self.chunks.get(self.chunks_of(part).end);
        next.is_some_and(|chunk| chunk.load(Ordering::Relaxed) == UNKNOWN)
            && self.is_called.load(Ordering::Relaxed) == 0
            && self.is_called.swap(1, Ordering::Relaxed) == 0
    }

    /// For the dispatcher: whether a thread has called it since it asked last.
    pub fn take_call(&self) -> bool {
        self.is_called.swap(0, Ordering::Relaxed) != 0
    }

    /// For the dispatcher: the offset of the first chunk that was not tried yet; none if all were.
    pub fn first_untried(&self) -> Option<u64> {
        let mut chunk = self.tried.load(Ordering::Relaxed) as usize;
        while self.chunks.get(chunk)?.load(Ordering::Relaxed) != UNKNOWN {
            chunk += 1;
            self.tried.store(chunk as u32, Ordering::Relaxed);
        }
        Some(chunk as u64 * CHUNK_BYTES)
    }

    /// For the dispatcher: tries the chunks that were refused once more. Ends at the first that is refused
    /// again: true if there is none.
    pub fn retry(&self) -> bool {
        let is_refused = |chunk: &usize| self.chunks[*chunk].load(Ordering::Relaxed) == REFUSED;
        (0..self.chunks.len()).filter(is_refused).all(|chunk| self.try_chunk(chunk))
    }

    /// Whether there is a chunk without memory that was asked for.
    pub fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed) != 0
    }

    /// A thread was refused a slab.
    pub fn note_short(&self) {
        self.is_short.store(1, Ordering::Relaxed);
    }

    /// Whether a thread was refused a slab since the buffer was cleared.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed) != 0
    }

    /// The buffer was cleared.
    pub fn clear(&self) {
        self.is_short.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(modelled)))]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Chunks for which there is memory, by number; and what was asked for.
    type Memory = Arc<Mutex<(Vec<u64>, Vec<Range<u64>>)>>;

    fn backing(bytes: u64, chunks: &[u64]) -> (Backing, Memory) {
        let memory: Memory = Arc::new(Mutex::new((chunks.to_vec(), Vec::new())));
        let shared = memory.clone();
        let populate = move |part: Range<u64>| {
            let mut memory = shared.lock().unwrap();
            memory.1.push(part.clone());
            memory.0.contains(&(part.start / CHUNK_BYTES))
        };
        (Backing::new(bytes, Box::new(populate)), memory)
    }

    //= docs/buffer.md#memory
    #[test]
    fn a_chunk_is_asked_for_once_and_a_refused_one_only_by_the_dispatcher() {
        const BYTES: u64 = 3 * CHUNK_BYTES + 4096;
        let (backing, memory) = backing(BYTES, &[0, 1, 3]);
        assert_eq!(backing.first_untried(), Some(0));
        let run = CHUNK_BYTES - 8..CHUNK_BYTES + 8;
        assert!(!backing.is_backed(&run));
        assert!(backing.back(&run) && backing.back(&run) && backing.is_backed(&run));
        assert_eq!(backing.first_untried(), Some(2 * CHUNK_BYTES));
        let refused = 2 * CHUNK_BYTES..2 * CHUNK_BYTES + 4096;
        assert!(!backing.back(&refused) && !backing.back(&refused) && !backing.is_backed(&refused));
        assert!(!backing.back(&(2 * CHUNK_BYTES..BYTES)), "a run of which a part is refused");
        assert_eq!(backing.first_untried(), Some(3 * CHUNK_BYTES));
        assert!(backing.back(&(3 * CHUNK_BYTES..BYTES)));
        assert_eq!(backing.first_untried(), None);
        assert!(!backing.retry() && backing.has_refused());
        memory.lock().unwrap().0.push(2);
        assert!(!backing.back(&refused), "until the dispatcher has tried");
        assert!(backing.retry() && backing.is_backed(&refused) && backing.retry());
        assert!(!backing.has_refused());
        let asked: Vec<u64> = memory.lock().unwrap().1.iter().map(|part| part.start / CHUNK_BYTES).collect();
        assert_eq!(asked, [0, 1, 2, 3, 2, 2]);
        assert_eq!(memory.lock().unwrap().1[3], 3 * CHUNK_BYTES..BYTES, "not behind the end");
    }

    #[test]
    fn the_first_thread_in_front_of_an_unknown_chunk_wakes_the_dispatcher() {
        let (backing, _) = backing(3 * CHUNK_BYTES, &[0, 1, 2]);
        let part = |chunk: u64| chunk * CHUNK_BYTES..chunk * CHUNK_BYTES + 4096;
        assert!(backing.back(&part(0)) && !backing.take_call());
        assert!(backing.is_wake_due(&part(0)) && !backing.is_wake_due(&part(0)));
        assert!(backing.take_call() && !backing.take_call());
        assert!(backing.back(&part(1)) && !backing.is_wake_due(&part(0)), "it has memory");
        assert!(backing.is_wake_due(&part(1)) && backing.take_call());
        assert!(backing.back(&part(2)) && !backing.is_wake_due(&part(2)), "there is no other");
    }

    #[test]
    fn it_is_short_until_it_is_cleared() {
        let (backing, _) = backing(CHUNK_BYTES, &[]);
        assert!(!backing.is_short());
        backing.note_short();
        assert!(backing.is_short());
        backing.clear();
        assert!(!backing.is_short());
    }
}
