//! Writers, and a dispatcher that takes their slabs back.

use crate::Memory;
use crate::claim::{Claims, Refusal};
use crate::own_slab::OwnSlab;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use loom::sync::Arc;
use loom::thread;
use trace_format::buffer::BufferMode;

/// Where a slab's addresses would be: slab *n* has those from 100 × (*n* + 1) on.
fn address(slab: u32) -> usize {
    100 * (slab as usize + 1)
}

/// A thread as the dispatcher sees it.
struct Block {
    counter: AtomicU64,
    own: OwnSlab,
}

/// What writers and the dispatcher share.
struct World {
    claims: Claims,
    memory: Memory,
    blocks: Vec<Block>,
    is_on: AtomicU32,
}

impl World {
    fn new(mode: BufferMode, slabs_per_half: u32, threads: usize) -> Self {
        let block = || Block {
            counter: AtomicU64::new(0),
            own: OwnSlab {
                cursor: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                events: AtomicU64::new(0),
                index: AtomicU32::new(0),
                had_slab: AtomicU32::new(0),
            },
        };
        Self {
            claims: Claims::new(mode, slabs_per_half),
            memory: Memory::new(slabs_per_half * mode.halves()),
            blocks: (0..threads).map(|_| block()).collect(),
            is_on: AtomicU32::new(1),
        }
    }

    /// One event: into the slab that the thread has, or one that it claims. The payload of a slab is how many there are
    /// in it.
    fn write(&self, thread: usize) -> Result<(), Refusal> {
        let block = &self.blocks[thread];
        let counter = block.counter.load(Ordering::Relaxed);
        block.counter.store(counter + 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let result = if self.is_on.load(Ordering::SeqCst) == 1 {
            self.write_inside(&block.own)
        } else {
            Err(Refusal::Stopped)
        };
        block.counter.store(counter + 2, Ordering::Release);
        result
    }

    fn write_inside(&self, own: &OwnSlab) -> Result<(), Refusal> {
        while own.end.load(Ordering::Relaxed) == 0 {
            self.close(own.take());
            let claim = self.claims.take(&self.memory, 1, |slab, _| self.memory.write(slab, 0))?;
            self.memory.open(claim.slab, claim.ticket + 1);
            let start = address(claim.slab);
            let is_kept = own.begin(&self.claims, claim.slab, claim.ticket + 1, start, start + 100);
            if is_kept != Ok(true) {
                self.close(own.take());
                is_kept?;
            }
        }
        let slab = (own.cursor.load(Ordering::Relaxed) / 100 - 1) as u32;
        let events = own.events.load(Ordering::Relaxed) + 1;
        self.memory.write(slab, events);
        own.events.store(events, Ordering::Relaxed);
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

    /// Takes slabs back: those whose ends lie in a range.
    fn retire(&self, ends: &core::ops::RangeInclusive<usize>, is_wanted: impl Fn(u32) -> bool) {
        fence(Ordering::SeqCst);
        let revoke = || self.blocks.iter().for_each(|block| block.own.revoke_within(ends));
        revoke();
        self.wait_until_out();
        revoke();
        for block in &self.blocks {
            self.close(block.own.take_for(&is_wanted).map(|(slab, _)| slab));
        }
        self.wait_until_out();
    }
}

/// A half that was retired is read by the dispatcher while writers go on in the other: nobody touches it any more, and
/// it holds what was committed.
#[test]
fn a_retired_half_is_left_alone() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = Arc::new(World::new(BufferMode::Streaming, 1, 1));
        let writer = world.clone();
        let writing = thread::spawn(move || {
            let first = writer.write(0);
            let second = writer.write(0);
            (first, second)
        });
        let end = address(0) + 100;
        // No half is retired while it is still given out.
        world.claims.skip_rest_of_half(0);
        world.claims.retire_half(0);
        world.retire(&(end..=end), |slab| slab == 0);
        // Whatever is in it stays.
        let saved = world.memory.read(0);
        assert!(world.claims.in_use(&world.memory, 0).is_empty());
        let (first, second) = writing.join().unwrap();
        let written = u64::from(first.is_ok()) + u64::from(second.is_ok());
        assert_eq!(saved + world.memory.read(1), written);
    });
}

/// A half comes back and is used again: what was read of it is read before anybody writes there anew.
#[test]
fn a_saved_half_is_used_again() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = Arc::new(World::new(BufferMode::Streaming, 1, 1));
        // Both halves are given out.
        world.write(0).unwrap();
        world.blocks[0].own.end.store(0, Ordering::Relaxed);
        world.write(0).unwrap();
        let writer = world.clone();
        let writing = thread::spawn(move || {
            writer.blocks[0].own.end.store(0, Ordering::Relaxed);
            writer.write(0)
        });
        let end = address(0) + 100;
        world.claims.retire_half(0);
        world.retire(&(end..=end), |slab| slab == 0);
        world.claims.hand_over_half(0);
        assert_eq!(world.memory.read(0), 1);
        world.claims.release_half(0);
        match writing.join().unwrap() {
            Ok(()) => {}
            Err(refusal) => assert!(matches!(refusal, Refusal::NotSaved | Refusal::NotRetired)),
        }
    });
}

/// Two writers and a stop: when it is over nobody writes, and every event that was accepted is there.
#[test]
fn a_stop_leaves_a_quiet_buffer() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let world = Arc::new(World::new(BufferMode::Oneshot, 2, 2));
        let writers: Vec<_> = (0..2)
            .map(|thread| {
                let world = world.clone();
                thread::spawn(move || world.write(thread).is_ok())
            })
            .collect();
        world.is_on.store(0, Ordering::SeqCst);
        world.claims.stop();
        world.retire(&(0..=1000), |_| true);
        let kept = world.memory.read(0) + world.memory.read(1);
        let written = writers.into_iter().map(|writer| u64::from(writer.join().unwrap())).sum::<u64>();
        assert_eq!(kept, written);
        assert_eq!(kept, world.memory.read(0) + world.memory.read(1));
    });
}
