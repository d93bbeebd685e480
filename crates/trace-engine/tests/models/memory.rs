//! A buffer whose memory is allocated while it is written.

use crate::models::check::check;
use crate::models::world::World;
use crate::sync::Arc;
use trace_format::buffer::BufferMode;
use trace_format::slab::LossReason;

/// Two threads come to a chunk at once, or one of them and the dispatcher: each writes only after the chunk
/// has memory.
//= docs/buffer.md#memory
#[test]
fn a_thread_writes_where_it_has_seen_that_memory_is() {
    check(3, |order| {
        let world = Arc::new(World::sparse(BufferMode::Oneshot, 2, 4, 2, 0));
        let write = |thread| move |world: &World| world.write_all(thread, 0..1, 2);
        let (mut kept, more) = order.play(&world, write(0), write(1));
        kept.extend(more);
        assert_eq!(kept.len(), 2);
        world.stop();
        world.assert_holds(&kept);
    });
}

/// A thread is refused memory while the dispatcher, or another thread, gets it: what is not kept is counted,
/// and afterwards no chunk counts as refused.
//= docs/buffer.md#memory
#[test]
fn memory_that_is_refused_and_then_there_is_counted_right() {
    check(3, |order| {
        let world = Arc::new(World::sparse(BufferMode::Streaming, 2, 4, 1, 1));
        let backing = |world: &World| world.context.buffer().backing().map(|backing| backing.retry());
        let write = |world: &World| world.write_all(0, 0..2, 2);
        let (kept, retried) = order.play(&world, write, backing);
        assert_eq!(retried, Some(true), "of one refusal, the dispatcher does not get it");
        let [unbacked, unsaved, unretired] =
            [LossReason::NotBacked, LossReason::NotSaved, LossReason::NotRetired]
                .map(|reason| world.losses(reason));
        assert_eq!(unbacked + unsaved + unretired + kept.len() as u64, 2);
        // Slabs that were skipped are free again after a save.
        assert!(unbacked > 0 || unsaved + unretired == 0);
        let backing = world.context.buffer().backing().expect("a sparse buffer");
        assert!(backing.retry() && !backing.has_refused());
        world.stop();
        world.assert_holds(&kept);
    });
}
