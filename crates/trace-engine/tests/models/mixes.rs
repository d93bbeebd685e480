//! Larger mixes of threads than loom can try in every interleaving: random schedules.
//!
//! `SHUTTLE_ITERATIONS` is their number, 1000 by default.

use crate::models::world::{World, Written};
use crate::slab::Slabs;
use crate::sync::{Arc, scheduled, thread};
use std::collections::BTreeSet;
use trace_format::buffer::BufferMode;

fn check(mix: impl Fn() + Send + Sync + 'static) {
    let iterations = std::env::var("SHUTTLE_ITERATIONS").ok().and_then(|text| text.parse().ok());
    let iterations = iterations.unwrap_or(1000);
    let mix = Arc::new(move || {
        scheduled::begin();
        mix();
    });
    let again = mix.clone();
    shuttle::check_random(move || again(), iterations / 2);
    // Threads have priorities that change a few times: some are held up for long.
    shuttle::check_pct(move || mix(), iterations / 2, 4);
}

/// Threads that write so many records of two words each, and yield after those that are not kept.
fn writers(world: &Arc<World>, threads: usize, records: u64) -> Vec<thread::JoinHandle<Vec<Written>>> {
    let write = |world: &World, thread, number| {
        let is_kept = world.write(thread, number, 2).is_ok();
        if !is_kept {
            thread::yield_now();
        }
        is_kept.then_some((thread as u64, number))
    };
    let begin = |thread| {
        let world = world.clone();
        thread::spawn(move || (0..records).filter_map(|number| write(&world, thread, number)).collect())
    };
    (0..threads).map(begin).collect()
}

fn join(writers: Vec<thread::JoinHandle<Vec<Written>>>) -> Vec<Written> {
    writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
}

/// Three writers with slabs of three records each, and a dispatcher that saves half after half: what was
/// kept was saved once, or is in the buffer at the end.
//= docs/buffer.md#streaming
#[test]
fn a_stream_of_many_halves_loses_nothing_that_was_kept() {
    const SLABS: u32 = 4;
    check(|| {
        let world = Arc::new(World::new(BufferMode::Streaming, SLABS, 6, 3));
        let writing = writers(&world, 3, 12);
        let mut saved: BTreeSet<Written> = BTreeSet::new();
        for _ in 0..40 {
            if let Some(request) = world.context.streaming().service(world.slabs()).save {
                let first = request.wrapped_count % 2 * SLABS;
                let half = first..first + SLABS;
                assert!(!half.clone().any(|slab| Slabs::is_in_use(world.slabs(), slab)));
                for record in half.flat_map(|slab| world.records(slab)) {
                    assert!(saved.insert(record), "{record:?} is saved twice");
                }
                assert!(world.context.streaming().take_back(world.slabs(), request));
            }
            thread::yield_now();
        }
        let kept: BTreeSet<Written> = join(writing).into_iter().collect();
        world.stop();
        let found: BTreeSet<Written> = saved.into_iter().chain(world.all_records()).collect();
        assert_eq!(found, kept);
    });
}

/// Four writers and a stop.
#[test]
fn a_stop_leaves_what_was_kept() {
    check(|| {
        let world = Arc::new(World::new(BufferMode::Oneshot, 8, 6, 4));
        let writing = writers(&world, 4, 6);
        thread::yield_now();
        world.stop();
        let found = world.all_records().len();
        let kept = join(writing);
        assert_eq!(found, kept.len(), "nothing is written after a stop");
        world.assert_holds(&kept);
    });
}

/// Three writers that go round in a ring: what is found is a part of what was kept, and all of it is counted.
#[test]
fn a_ring_counts_what_it_overwrites() {
    check(|| {
        let world = Arc::new(World::new(BufferMode::Circular, 3, 6, 3));
        let writing = writers(&world, 3, 9);
        let kept = join(writing);
        world.stop();
        world.assert_holds(&kept);
    });
}
