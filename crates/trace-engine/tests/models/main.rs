//! The lock-free parts under loom, which tries every interleaving and every value that a load may return.
//!
//! The modules are the engine's own files, compiled against loom's atomics. What loom cannot know is the
//! asymmetric fence (`membarrier`): here every event has a full one, as where the kernel has none. The other
//! is shown by a test in `src/slab/retirement.rs`.

macro_rules! const_unless_loom {
    ($($function:tt)*) => { $($function)* };
}

#[path = "../../src/slab/allocator.rs"]
#[expect(dead_code, reason = "not all of it is modelled")]
mod claim;
#[path = "../../src/thread/open_slab.rs"]
#[expect(dead_code, reason = "not all of it is modelled")]
mod own_slab;
mod recalls;
#[path = "../../src/slab/free_list.rs"]
#[expect(dead_code, reason = "not all of it is modelled")]
mod rests;
mod rounds;
#[path = "../../src/site/word.rs"]
#[expect(dead_code, reason = "not all of it is modelled")]
mod site_word;
mod sites;
mod streams;
mod sync {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use loom::thread;
}
mod world;

use claim::{Refusal, SlabAllocator, SlabWords};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use rests::{FreeList, Leftover};
use sync::{AtomicU32, AtomicU64, Ordering, thread};
use trace_format::buffer::BufferMode;
use trace_format::slab::{SlabState, SlabWord};

/// As much memory as a model needs: the words of some slabs, and in each slab one place that only its owner
/// may touch.
struct Memory {
    words: Vec<AtomicU64>,
    payload: Vec<UnsafeCell<u64>>,
}

impl Memory {
    fn new(slabs: u32) -> Self {
        Self {
            words: (0..slabs).map(|_| AtomicU64::new(0)).collect(),
            payload: (0..slabs).map(|_| UnsafeCell::new(0)).collect(),
        }
    }

    /// Writes into a slab. Loom fails if anybody else touches it at the same time, or without being ordered
    /// after.
    fn write(&self, slab: u32, value: u64) {
        self.payload[slab as usize].with_mut(|place| {
            // SAFETY: loom checks that nobody else is here.
            unsafe { *place = value };
        });
    }

    fn read(&self, slab: u32) -> u64 {
        self.payload[slab as usize].with(|place| {
            // SAFETY: loom checks that nobody writes meanwhile.
            unsafe { *place }
        })
    }

    fn is_in_use(&self, slab: u32) -> bool {
        SlabWord(self.words[slab as usize].load(Ordering::Relaxed)).is_in_use()
    }

    fn open(&self, slab: u32, sequence: u64) {
        self.words[slab as usize].store(SlabWord::new(sequence, SlabState::Open, 1).0, Ordering::Release);
    }

    fn close(&self, slab: u32) {
        let word = SlabWord(self.words[slab as usize].load(Ordering::Relaxed));
        assert!(word.is_in_use(), "closed twice");
        let sequence = word.sequence();
        self.words[slab as usize].store(SlabWord::new(sequence, SlabState::Closed, 1).0, Ordering::Release);
    }
}

impl SlabWords for Memory {
    fn slab_word(&self, slab: u32) -> &AtomicU64 {
        &self.words[slab as usize]
    }
}

/// Two threads go round in a ring of two slabs: nobody has a slab that somebody else has, and each finds what
/// was written there before.
#[test]
fn no_two_threads_have_one_slab_of_a_ring() {
    loom::model(|| {
        let claims = Arc::new(SlabAllocator::new(BufferMode::Circular, 1));
        let memory = Arc::new(Memory::new(2));
        let work = |claims: &SlabAllocator, memory: &Memory| {
            for _ in 0..2 {
                match claims.take(memory, 1, |slab, _| memory.write(slab, 0)) {
                    Ok(claim) => {
                        memory.open(claim.slab, claim.ticket + 1);
                        memory.write(claim.slab, claim.ticket);
                        memory.close(claim.slab);
                    }
                    Err(refusal) => assert_eq!(refusal, Refusal::AllInUse),
                }
            }
        };
        let (other_claims, other_memory) = (claims.clone(), memory.clone());
        let other = thread::spawn(move || work(&other_claims, &other_memory));
        work(&claims, &memory);
        other.join().unwrap();
    });
}

/// A run and a single slab of a ring of two: the run is whole, or nothing of it is left in use.
#[test]
fn a_run_is_taken_whole_or_given_back() {
    loom::model(|| {
        let claims = Arc::new(SlabAllocator::new(BufferMode::Circular, 2));
        let memory = Arc::new(Memory::new(4));
        let (other_claims, other_memory) = (claims.clone(), memory.clone());
        let other = thread::spawn(move || {
            if let Ok(claim) = other_claims.take(&*other_memory, 1, |slab, _| other_memory.write(slab, 0)) {
                other_memory.write(claim.slab, 1);
                other_memory.close(claim.slab);
            }
        });
        if let Ok(claim) = claims.take(&*memory, 2, |slab, _| memory.write(slab, 0)) {
            for slab in claim.slab..claim.slab + 2 {
                memory.write(slab, 2);
                memory.close(slab);
            }
        }
        other.join().unwrap();
        assert!(memory.words.iter().all(|word| !SlabWord(word.load(Ordering::Relaxed)).is_in_use()));
    });
}

/// A slab with so many bytes of records of 16.
fn rest(slab: u32, used_bytes: u32) -> Leftover {
    Leftover { slab, used_bytes, events: used_bytes / 16 }
}

/// Two threads end and two begin: no rest is given to two, and none vanishes.
#[test]
fn a_rest_goes_to_one_thread() {
    loom::model(|| {
        let rests = Arc::new(FreeList::new(2));
        let memory = Arc::new(Memory::new(2));
        rests.push(rest(0, 16));
        let taken = Arc::new(AtomicU32::new(0));
        let work = |rests: &FreeList, memory: &Memory, taken: &AtomicU32| {
            if let Some(Leftover { slab, used_bytes, .. }) = rests.pop() {
                memory.write(slab, u64::from(used_bytes));
                taken.fetch_add(1, Ordering::Relaxed);
                rests.push(rest(slab, used_bytes + 16));
            }
        };
        let (other_rests, other_memory, other_taken) = (rests.clone(), memory.clone(), taken.clone());
        let other = thread::spawn(move || work(&other_rests, &other_memory, &other_taken));
        rests.push(rest(1, 32));
        work(&rests, &memory, &taken);
        other.join().unwrap();
        let left: Vec<_> = std::iter::from_fn(|| rests.pop()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        let used: u32 = left.iter().map(|rest| rest.used_bytes).sum();
        assert_eq!(used, 48 + 16 * taken.load(Ordering::Relaxed));
        assert!(left.iter().all(|rest| rest.events == rest.used_bytes / 16), "{left:?}");
    });
}
