//! A thread that finds no room takes what an idle one has left.

use crate::rests::{FreeList, Leftover};
use crate::sync::{AtomicU32, Ordering, fence, thread};
use crate::world::{World, address};
use loom::sync::Arc;
use trace_format::buffer::BufferMode;

/// The writers of a buffer with one slab, and what was left of it.
struct Full {
    world: World,
    rests: FreeList,
    /// Events that found a place.
    written: AtomicU32,
}

impl Full {
    fn new(threads: usize) -> Self {
        let world = World::new(BufferMode::Oneshot, 1, threads);
        Self { world, rests: FreeList::new(1), written: AtomicU32::new(0) }
    }

    /// An event of a thread that has the slab, or claims it while it is free.
    fn write(&self, thread: usize) {
        if self.world.write(thread).is_ok() {
            self.written.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An event of a thread that has lost its slab, into what is on the stack.
    fn write_into_rest(&self, thread: usize) {
        let block = &self.world.blocks[thread];
        let counter = block.counter.load(Ordering::Relaxed);
        block.counter.store(counter + 1, Ordering::Release);
        fence(Ordering::SeqCst);
        if block.own.ownership().slab().is_none()
            && let Some(rest) = self.rests.pop()
        {
            let (events, start) = (u64::from(rest.events), address(rest.slab));
            let begun =
                block.own.begin(rest.slab, events, start..start + 100, || self.world.claims.recheck(1));
            assert_eq!(begun, Ok(true));
            self.world.memory.write(rest.slab, events + 1);
            block.own.count_event();
            self.written.fetch_add(1, Ordering::Relaxed);
        }
        block.counter.store(counter + 2, Ordering::Release);
    }

    /// As the engine's pass: what is left of another thread's slab goes on the stack.
    fn recall(&self, other: usize) {
        let block = &self.world.blocks[other];
        if block.counter.load(Ordering::Acquire) & 1 == 0 {
            let ownership = block.own.revoke_idle();
            // Both halves: of the thread that is looked at, every event has its own.
            fence(Ordering::SeqCst);
            if let Some(idle) =
                block.own.take_outside(block.counter.load(Ordering::Acquire) & 1 == 0, ownership)
            {
                let used_bytes = (idle.cursor - address(idle.slab)) as u32;
                self.rests.push(Leftover { slab: idle.slab, used_bytes, events: idle.events as u32 });
            }
        }
    }

    /// A pass, and an event into what is on the stack.
    fn recall_and_write(&self, other: usize) {
        self.recall(other);
        if let Some(rest) = self.rests.pop() {
            assert_eq!(
                self.world.memory.read(rest.slab),
                u64::from(rest.events),
                "all of its events are known"
            );
            self.world.memory.write(rest.slab, u64::from(rest.events) + 1);
            self.written.fetch_add(1, Ordering::Relaxed);
            self.rests.push(Leftover { events: rest.events + 1, ..rest });
        }
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// An owner that goes on writing meets a pass: each event has a place of its own.
//= docs/buffer.md#recall
#[test]
fn an_owner_and_a_pass_never_write_into_one_place() {
    check(|| {
        let full = Arc::new(Full::new(1));
        full.write(0);
        let owner = full.clone();
        let writing = thread::spawn(move || {
            owner.write(0);
            owner.write(0);
        });
        full.recall_and_write(0);
        writing.join().unwrap();
        assert_eq!(full.world.memory.read(0), u64::from(full.written.load(Ordering::Relaxed)));
    });
}

/// The owner gets back what was taken from it, while another pass that had looked before goes on: that takes
/// nothing of what the owner has now.
//= docs/buffer.md#recall
#[test]
fn a_slab_that_comes_back_is_another() {
    check(|| {
        let full = Arc::new(Full::new(1));
        full.write(0);
        let other = full.clone();
        let recalling = thread::spawn(move || other.recall_and_write(0));
        full.recall(0);
        full.write_into_rest(0);
        full.write(0);
        recalling.join().unwrap();
        assert_eq!(full.world.memory.read(0), u64::from(full.written.load(Ordering::Relaxed)));
    });
}

/// Two passes at once: one of them takes the slab.
//= docs/buffer.md#recall
#[test]
fn two_passes_take_a_slab_once() {
    check(|| {
        let full = Arc::new(Full::new(1));
        full.write(0);
        let other = full.clone();
        let recalling = thread::spawn(move || other.recall_and_write(0));
        full.recall_and_write(0);
        recalling.join().unwrap();
        assert_eq!(full.world.memory.read(0), u64::from(full.written.load(Ordering::Relaxed)));
        assert!(full.world.blocks[0].own.ownership().slab().is_none() || full.rests.pop().is_none());
    });
}

/// A stop comes in between: what is on the stack is the dispatcher's to close, and everything else is closed
/// once.
//= docs/buffer.md#recall
#[test]
fn a_stop_and_a_pass_take_a_slab_once() {
    check(|| {
        let full = Arc::new(Full::new(1));
        full.write(0);
        let other = full.clone();
        let recalling = thread::spawn(move || other.recall_and_write(0));
        full.world.is_on.store(0, Ordering::SeqCst);
        full.world.claims.stop();
        full.world.retire(&(0..=1000), |_| true);
        recalling.join().unwrap();
        let is_left = full.rests.pop().is_some();
        assert_eq!(full.world.memory.is_in_use(0), is_left, "closed by one, or left to others");
        assert_eq!(full.world.memory.read(0), u64::from(full.written.load(Ordering::Relaxed)));
    });
}
