//! Larger mixes of the same parts as in `models`, under shuttle: random schedules instead of all.
//!
//! `SHUTTLE_ITERATIONS` says how many, 1000 if nothing is said.

/// As in `src/sync`.
macro_rules! const_unless_loom {
    ($($function:tt)*) => { $($function)* };
}

#[path = "../../src/slab/allocator.rs"]
#[expect(dead_code, reason = "not all of it is played through")]
mod claim;
#[path = "../../src/thread/open_slab.rs"]
#[expect(dead_code, reason = "not all of it is played through")]
mod own_slab;
mod sync {
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use shuttle::thread;
}
mod world;

use claim::{Refusal, SlabWords};
use shuttle::sync::Arc;
use sync::{AtomicBool, AtomicU64, Ordering, thread};
use trace_format::buffer::BufferMode;
use trace_format::slab::{SlabState, SlabWord};
use world::{World, address};

/// The words of some slabs, and a count in each that only its owner may touch.
struct Memory {
    words: Vec<AtomicU64>,
    payload: Vec<(AtomicBool, AtomicU64)>,
}

impl Memory {
    fn new(slabs: u32) -> Self {
        Self {
            words: (0..slabs).map(|_| AtomicU64::new(0)).collect(),
            payload: (0..slabs).map(|_| (AtomicBool::new(false), AtomicU64::new(0))).collect(),
        }
    }

    fn write(&self, slab: u32, value: u64) {
        let (is_busy, place) = &self.payload[slab as usize];
        assert!(!is_busy.swap(true, Ordering::SeqCst), "two are in one slab");
        place.store(value, Ordering::SeqCst);
        thread::yield_now();
        is_busy.store(false, Ordering::SeqCst);
    }

    fn read(&self, slab: u32) -> u64 {
        let (is_busy, place) = &self.payload[slab as usize];
        assert!(!is_busy.load(Ordering::SeqCst), "somebody is in the slab");
        place.load(Ordering::SeqCst)
    }

    fn open(&self, slab: u32, sequence: u64) {
        self.words[slab as usize].store(SlabWord::new(sequence, SlabState::Open, 1).0, Ordering::SeqCst);
    }

    fn close(&self, slab: u32) {
        let word = SlabWord(self.words[slab as usize].load(Ordering::SeqCst));
        assert!(word.is_in_use(), "closed twice");
        let closed = SlabWord::new(word.sequence(), SlabState::Closed, 1);
        self.words[slab as usize].store(closed.0, Ordering::SeqCst);
    }
}

impl SlabWords for Memory {
    fn slab_word(&self, slab: u32) -> &AtomicU64 {
        &self.words[slab as usize]
    }
}

fn iterations() -> usize {
    std::env::var("SHUTTLE_ITERATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000)
}

/// Three writers with slabs of a few events each, and a dispatcher that saves half after half: what was
/// accepted was saved once, or is there in the end.
#[test]
fn a_stream_of_many_halves_loses_nothing_that_was_accepted() {
    const WRITERS: usize = 3;
    const SLABS: u32 = 4;
    shuttle::check_random(
        || {
            let world = Arc::new(World::new(BufferMode::Streaming, SLABS, WRITERS));
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let world = world.clone();
                    thread::spawn(move || {
                        let mut accepted = 0;
                        for number in 0..12 {
                            match world.write(writer) {
                                Ok(()) => accepted += 1,
                                Err(refusal) => {
                                    assert!(matches!(refusal, Refusal::NotSaved | Refusal::NotRetired));
                                    thread::yield_now();
                                }
                            }
                            if number % 3 == 2 {
                                // The slab is full.
                                world.blocks[writer].own.revoke();
                            }
                        }
                        accepted
                    })
                })
                .collect();
            let mut saved = 0;
            let mut half = 0;
            for _ in 0..40 {
                if world.claims.claimed_in_half(half) == u64::from(SLABS) {
                    let first = (half % 2) as u32 * SLABS;
                    world.claims.retire_half(half);
                    let ends = address(first) + 1..=address(first + SLABS - 1) + 100;
                    world.retire(&ends, |slab| (first..first + SLABS).contains(&slab));
                    assert!(world.claims.in_use(&world.memory, half).is_empty());
                    world.claims.hand_over_half(half);
                    saved += (first..first + SLABS).map(|slab| world.memory.read(slab)).sum::<u64>();
                    world.claims.release_half(half);
                    half += 1;
                }
                thread::yield_now();
            }
            let accepted: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            // What no save has come to is still there: slabs of later tickets.
            let end = world.claims.half_start(half);
            let rest: u64 = (0..2 * SLABS)
                .filter(|slab| {
                    SlabWord(world.memory.words[*slab as usize].load(Ordering::SeqCst)).sequence() > end
                })
                .map(|slab| world.memory.read(slab))
                .sum();
            assert_eq!(saved + rest, accepted);
        },
        iterations(),
    );
}

/// Writers and stops, again and again.
#[test]
fn stops_leave_what_was_accepted() {
    const WRITERS: usize = 4;
    shuttle::check_random(
        || {
            let world = Arc::new(World::new(BufferMode::Oneshot, 8, WRITERS));
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let world = world.clone();
                    thread::spawn(move || (0..6).filter(|_| world.write(writer).is_ok()).count() as u64)
                })
                .collect();
            thread::yield_now();
            world.is_on.store(0, Ordering::SeqCst);
            world.claims.stop();
            world.retire(&(0..=usize::MAX), |_| true);
            let kept: u64 = (0..8).map(|slab| world.memory.read(slab)).sum();
            let accepted: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            assert_eq!(kept, accepted);
        },
        iterations(),
    );
}
