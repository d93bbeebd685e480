//! A thread that finds no room takes what an idle one has left.

use crate::models::check::check;
use crate::models::world::{World, Written};
use crate::sync::Arc;
use trace_format::buffer::BufferMode;

/// Words of a slab: a recall leaves slabs with less than 64 bytes to their threads.
const SLAB_WORDS: u64 = 14;

/// A buffer of one slab, of which the first thread has one record.
fn full(threads: usize) -> (Arc<World>, Vec<Written>) {
    let world = Arc::new(World::new(BufferMode::Oneshot, 1, SLAB_WORDS, threads));
    let kept = world.write_all(0, 0..1, 2);
    assert_eq!(kept.len(), 1);
    (world, kept)
}

fn finish(world: &World, kept: &[Written]) {
    world.stop();
    world.assert_holds(kept);
}

/// An owner that goes on writing meets a pass: each event has a place of its own.
//= docs/buffer.md#recall
#[test]
fn an_owner_and_a_pass_never_write_into_one_place() {
    check(3, |order| {
        let (world, mut kept) = full(2);
        let (owner, other) =
            order.play(&world, |world| world.write_all(0, 1..3, 2), |world| world.write_all(1, 0..1, 2));
        kept.extend([owner, other].concat());
        finish(&world, &kept);
    });
}

/// The owner gets back what was taken from it, while another pass that had looked before goes on: that takes
/// nothing of what the owner has now.
//= docs/buffer.md#recall
#[test]
fn a_slab_that_comes_back_is_another() {
    check(2, |order| {
        let (world, mut kept) = full(2);
        let lose_and_regain = |world: &World| {
            world.slabs().recall(64);
            world.write_all(0, 1..3, 2)
        };
        let (owner, other) = order.play(&world, lose_and_regain, |world| world.write_all(1, 0..1, 2));
        kept.extend([owner, other].concat());
        finish(&world, &kept);
    });
}

/// Two passes at once: one of them takes the slab.
//= docs/buffer.md#recall
#[test]
fn two_passes_take_a_slab_once() {
    check(3, |order| {
        let (world, mut kept) = full(3);
        let write = |thread| move |world: &World| world.write_all(thread, 0..1, 2);
        let (one, other) = order.play(&world, write(1), write(2));
        kept.extend([one, other].concat());
        finish(&world, &kept);
    });
}

/// A stop comes in between: everything is closed once.
//= docs/buffer.md#recall
#[test]
fn a_stop_and_a_pass_take_a_slab_once() {
    check(3, |order| {
        let (world, mut kept) = full(2);
        let ((), other) = order.play(&world, World::stop, |world| world.write_all(1, 0..1, 2));
        kept.extend(other);
        world.assert_holds(&kept);
    });
}
