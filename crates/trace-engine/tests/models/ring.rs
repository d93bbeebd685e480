//! Threads that claim slabs and leave them.

use crate::models::check::check;
use crate::models::world::World;
use crate::sync::Arc;
use trace_format::buffer::BufferMode;

/// Two threads go round in a ring of two slabs: no thread has a slab that another has, and each finds what
/// was written there before.
#[test]
fn no_two_threads_have_one_slab_of_a_ring() {
    check(3, |order| {
        let world = Arc::new(World::new(BufferMode::Circular, 1, 2, 2));
        let write = |thread| move |world: &World| world.write_all(thread, 0..2, 2);
        let (one, other) = order.play(&world, write(0), write(1));
        let kept = [one, other].concat();
        world.stop();
        world.assert_holds(&kept);
    });
}

/// A run and a single slab of a ring: the run is whole, or nothing of it is left in use.
#[test]
fn a_run_is_taken_whole_or_given_back() {
    check(3, |order| {
        let world = Arc::new(World::new(BufferMode::Circular, 2, 2, 2));
        let (run, single) =
            order.play(&world, |world| world.write_all(0, 0..1, 4), |world| world.write_all(1, 0..2, 2));
        let kept = [run, single].concat();
        world.stop();
        world.assert_holds(&kept);
    });
}

/// Two threads end and two begin: what is left of a slab is given to one thread, and nothing vanishes.
#[test]
fn what_is_left_of_a_slab_goes_to_one_thread() {
    check(3, |order| {
        let world = Arc::new(World::new(BufferMode::Oneshot, 2, 6, 4));
        let mut kept = world.write_all(0, 0..1, 2);
        kept.extend(world.write_all(1, 0..1, 2));
        let end_and_begin = |ends: usize, begins: usize| {
            move |world: &World| {
                world.inside(ends, |block| {
                    block.slabs().iter().for_each(|own| world.slabs().leave_slab(block, own, false));
                });
                world.write_all(begins, 0..1, 2)
            }
        };
        let (one, other) = order.play(&world, end_and_begin(0, 2), end_and_begin(1, 3));
        kept.extend([one, other].concat());
        world.stop();
        world.assert_holds(&kept);
    });
}
