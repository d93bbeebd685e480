//! Streams and stops in every interleaving.

use crate::claim::Refusal;
use crate::sync::{Ordering, thread};
use crate::world::{World, address};
use loom::sync::Arc;
use trace_format::buffer::BufferMode;

/// A half that was retired is read by the dispatcher while writers go on in the other: nobody touches it any
/// more, and it holds what was committed.
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
        world.blocks[0].own.revoke();
        world.write(0).unwrap();
        let writer = world.clone();
        let writing = thread::spawn(move || {
            writer.blocks[0].own.revoke();
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

/// A stop that did not wait, and a start that clears: a thread that comes late has either nothing of the
/// buffer, or a slab of the new run that says so.
#[test]
fn a_cleared_buffer_has_nothing_of_the_run_before() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = Arc::new(World::new(BufferMode::Oneshot, 2, 1));
        let writer = world.clone();
        let writing = thread::spawn(move || {
            let _ = writer.write(0);
            let _ = writer.write(0);
        });
        world.is_on.store(0, Ordering::SeqCst);
        world.claims.stop();
        world.clear();
        world.is_on.store(1, Ordering::SeqCst);
        writing.join().unwrap();
        let own = &world.blocks[0].own;
        let has_slab = own.ownership().slab();
        for slab in 0..2 {
            let events = if has_slab == Some(slab) { own.events() } else { 0 };
            assert_eq!(world.memory.read(slab), events);
            assert_eq!(world.memory.is_in_use(slab), has_slab == Some(slab));
        }
    });
}

/// A dispatcher that is about to sleep looks once more: either it finds the half that fills meanwhile, or one
/// of those who fill it wakes it, once.
//= docs/buffer.md#streaming
#[test]
fn a_half_that_fills_is_seen_or_wakes() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = Arc::new(World::new(BufferMode::Streaming, 2, 2));
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || {
                    world.claims.take(&world.memory, 1, |_, _| ()).unwrap();
                    world.claims.is_wake_due()
                })
            })
            .collect();
        world.claims.end_watch();
        let is_seen = world.claims.claimed_in_half(0) == 2;
        let wakes = writers.into_iter().map(|writer| writer.join().unwrap());
        let wakes = wakes.filter(|is_due| *is_due).count();
        assert!(is_seen || wakes == 1, "seen: {is_seen}, woken {wakes} times");
        assert!(wakes <= 1);
    });
}
