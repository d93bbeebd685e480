//! Streams and stops in every interleaving.

use crate::models::check::check;
use crate::models::world::World;
use crate::session::config::Disposition;
use crate::slab::retirement::take_slabs_away;
use crate::slab::streaming::WakeHandler;
use crate::sync::{Arc, thread};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use trace_format::buffer::BufferMode;

/// A half that was retired is read by the dispatcher while writers go on in the other: no thread touches it
/// any more, and it holds what was committed.
#[test]
fn a_retired_half_is_left_alone() {
    check(3, |order| {
        // The second record closes the slab of the first.
        let world = Arc::new(World::new(BufferMode::Streaming, 1, 2, 1));
        let retire = |world: &World| {
            world.context.streaming().flush();
            let service = world.context.streaming().service(world.slabs());
            service.save.map(|_| {
                assert!(!world.slabs().is_in_use(0));
                world.records(0)
            })
        };
        let (saved, kept) = order.play(&world, retire, |world| world.write_all(0, 0..2, 2));
        if let Some(saved) = saved {
            assert!(saved.iter().all(|record| kept.contains(record)), "{saved:?} of {kept:?}");
            // It is as it was.
            assert_eq!(world.records(0), saved);
        }
        world.stop();
        world.assert_holds(&kept);
    });
}

/// A half comes back and is used again: what was read of it is read before another thread writes there anew.
#[test]
fn a_saved_half_is_used_again() {
    check(3, |order| {
        let world = Arc::new(World::new(BufferMode::Streaming, 1, 2, 1));
        // Both halves are given out.
        let mut kept = world.write_all(0, 0..2, 2);
        assert_eq!(kept.len(), 2);
        let save = |world: &World| {
            let service = world.context.streaming().service(world.slabs());
            let request = service.save.expect("a half is full");
            let found = world.records(0);
            assert_eq!(found, [(0, 0)]);
            assert!(world.context.streaming().take_back(world.slabs(), request));
            found
        };
        let (mut found, more) = order.play(&world, save, |world| world.write_all(0, 2..3, 2));
        kept.extend(more);
        world.stop();
        found.extend(world.all_records());
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, kept);
    });
}

/// Two writers and a stop: when it is over no thread writes, and every event that was accepted is there.
#[test]
fn a_stop_leaves_a_quiet_buffer() {
    check(2, |order| {
        let world = Arc::new(World::new(BufferMode::Oneshot, 2, 4, 2));
        let writer = world.clone();
        let writing = thread::spawn(move || writer.write_all(1, 0..1, 2));
        let stop = |world: &World| {
            world.stop();
            world.all_records().len()
        };
        let (found, mut kept) = order.play(&world, stop, |world| world.write_all(0, 0..1, 2));
        kept.extend(writing.join().unwrap());
        assert_eq!(found, kept.len());
        world.assert_holds(&kept);
    });
}

/// A stop that did not wait, and a start that clears: a thread that comes late has either nothing of the
/// buffer, or a slab of the new run that says so.
#[test]
fn a_cleared_buffer_has_nothing_of_the_run_before() {
    check(3, |order| {
        let world = Arc::new(World::new(BufferMode::Oneshot, 2, 6, 1));
        let restart = |world: &World| {
            world.site.switch_off();
            world.slabs().stop();
            world.slabs().retire_all(Instant::now());
            // A start fails as long as a thread is inside the event that was not waited for.
            while !take_slabs_away(Duration::from_secs(3600)) {
                thread::yield_now();
            }
            world.context.clear(Disposition::ClearNondurable);
            world.context.begin_run(&[]);
            world.site.switch_on();
        };
        order.play(&world, restart, |world| world.write_all(0, 0..2, 2));
        let own = world.blocks[0].first_slab();
        let has_slab = own.ownership().slab();
        for slab in 0..2 {
            let events = if has_slab == Some(slab) { own.events() } else { 0 };
            assert_eq!(world.records(slab).len() as u64, events);
            assert_eq!(world.slabs().is_in_use(slab), has_slab == Some(slab));
        }
    });
}

/// A dispatcher that is about to sleep looks once more: either it finds the half that fills meanwhile, or one
/// of the threads that fill it wakes it, once.
//= docs/buffer.md#streaming
#[test]
fn a_half_that_fills_is_seen_or_wakes() {
    check(3, |order| {
        let wakes = std::sync::Arc::new(Mutex::new(0));
        let counted = wakes.clone();
        let wake = WakeHandler::new(move || *counted.lock().unwrap() += 1);
        let world = Arc::new(World::woken(2, 2, 2, wake));
        let writer = world.clone();
        let writing = thread::spawn(move || writer.write_all(1, 0..1, 2));
        let (is_seen, one) = order.play(
            &world,
            |world| world.slabs().is_due(0, true, false),
            |world| world.write_all(0, 0..1, 2),
        );
        assert_eq!(one.len() + writing.join().unwrap().len(), 2);
        let wakes = *wakes.lock().unwrap();
        assert!(is_seen || wakes == 1, "seen: {is_seen}, woken {wakes} times");
        assert!(wakes <= 1);
    });
}
