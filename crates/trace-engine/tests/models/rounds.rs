//! A thread that is held up between its ticket and the exchange on the slab's word, while others go round.

use crate::buffer::Buffer;
use crate::models::check::check;
use crate::models::world::World;
use crate::slab::allocator::{Claim, Refusal, SlabWords};
use crate::sync::{Arc, AtomicU64};
use core::cell::RefCell;
use trace_format::buffer::BufferMode;
use trace_format::slab::{SlabState, SlabWord};

/// What happens while a thread is held up.
type Meanwhile<'a> = Box<dyn FnOnce() + 'a>;

/// The slab words as a thread sees them that is held up when it first looks at one: it has its ticket by
/// then.
struct HeldUp<'a> {
    buffer: &'a Buffer,
    meanwhile: RefCell<Option<Meanwhile<'a>>>,
}

impl SlabWords for HeldUp<'_> {
    fn slab_word(&self, slab: u32) -> &AtomicU64 {
        let meanwhile = self.meanwhile.borrow_mut().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        self.buffer.slab_word(slab)
    }
}

/// Claims a single slab for a thread that is held up.
fn take_late<'a>(world: &'a World, meanwhile: impl FnOnce() + 'a) -> Result<Claim, Refusal> {
    let held_up =
        HeldUp { buffer: world.context.buffer(), meanwhile: RefCell::new(Some(Box::new(meanwhile))) };
    world.slabs().allocator().take(&held_up, 1, |_, _| ())
}

fn word(world: &World, slab: u32) -> SlabWord {
    world.context.buffer().word_of(slab)
}

/// A record that fills a slab, which is closed at once.
fn fill(world: &World, number: u64) {
    assert!(world.write(0, number, 2).is_ok());
    world.inside(0, |block| world.slabs().close_slab(block, block.first_slab()));
}

/// Hands a half over, and has it saved.
fn save(world: &World) {
    let service = world.context.streaming().service(world.slabs());
    let request = service.save.expect("a half is full");
    assert!(world.context.streaming().take_back(world.slabs(), request));
}

/// A half was saved and filled anew meanwhile: what is in it stays until it is saved.
//= docs/buffer.md#late-threads
#[test]
fn a_late_thread_of_a_stream_takes_nothing_that_was_written_since() {
    check(2, |_| {
        let world = World::new(BufferMode::Streaming, 1, 2, 1);
        let late = take_late(&world, || {
            fill(&world, 2);
            save(&world);
            fill(&world, 3);
        });
        assert_eq!(late, Err(Refusal::NotRetired));
        assert_eq!(word(&world, 0), SlabWord::new(3, SlabState::Closed, 1));
        assert_eq!(world.records(0), [(0, 3)]);
    });
}

/// In a ring it takes the oldest slab there is, like all others, with a ticket that is as new.
//= docs/buffer.md#late-threads
#[test]
fn a_late_thread_of_a_ring_comes_behind_what_was_written_since() {
    check(2, |_| {
        let world = World::new(BufferMode::Circular, 1, 2, 1);
        let late = take_late(&world, || (2..=4).for_each(|sequence| fill(&world, sequence)));
        assert_eq!(late, Ok(Claim { slab: 0, ticket: 4 }));
        assert_eq!(world.records(1), [(0, 4)]);
    });
}

/// What was given back of a run that was not whole is as new as the run: a late thread does not take it with
/// a ticket of the round before.
//= docs/buffer.md#late-threads
#[test]
fn a_late_thread_does_not_take_what_a_later_run_gave_back() {
    check(2, |_| {
        let world = World::new(BufferMode::Circular, 2, 2, 1);
        let late = take_late(&world, || {
            let take = |run| world.slabs().allocator().take(world.context.buffer(), run, |_, _| ());
            assert_eq!(take(1), Ok(Claim { slab: 1, ticket: 1 }));
            assert!(world.write(0, 0, 4).is_ok(), "in slabs 2 and 3");
            // Slab 1 is in use: slab 0 is given back, and the run behind it is taken.
            assert_eq!(take(2), Ok(Claim { slab: 2, ticket: 6 }));
            assert_eq!(word(&world, 0), SlabWord::given_back(5));
        });
        assert_eq!(late, Ok(Claim { slab: 0, ticket: 8 }));
    });
}

/// A thread that was held up with a slab of a half that was retired meanwhile, or of a trace that was
/// stopped, learns that before it writes there.
//= docs/buffer.md#claiming
#[test]
fn a_late_thread_gives_up_a_slab_of_a_retired_half() {
    check(1, |_| {
        let world = World::new(BufferMode::Streaming, 1, 2, 1);
        let allocator = world.slabs().allocator();
        assert_eq!(allocator.recheck(1), Ok(true));
        allocator.retire_half(0);
        assert_eq!(allocator.recheck(1), Ok(false));
        assert_eq!(allocator.recheck(2), Ok(true), "of the other half");
        allocator.stop();
        assert_eq!(allocator.recheck(2), Err(Refusal::Stopped));
    });
}

/// Every interleaving of a thread that writes once with one that goes round: what is newer than its ticket is
/// not taken.
//= docs/buffer.md#late-threads
#[test]
fn no_claim_takes_what_is_newer_than_its_ticket() {
    check(3, |order| {
        let world = Arc::new(World::new(BufferMode::Streaming, 1, 2, 2));
        let go_round = |world: &World| {
            let mut kept = world.write_all(0, 0..1, 2);
            let service = world.context.streaming().service(world.slabs());
            let saved = service.save.map_or_else(Vec::new, |request| {
                let saved = world.records(0);
                assert!(world.context.streaming().take_back(world.slabs(), request));
                kept.extend(world.write_all(0, 1..2, 2));
                saved
            });
            (kept, saved)
        };
        let ((mut kept, saved), late) = order.play(&world, go_round, |world| world.write_all(1, 0..1, 2));
        kept.extend(late);
        world.stop();
        // What was saved and not written over is found in both.
        let mut found = world.all_records();
        found.extend(saved);
        found.sort_unstable();
        found.dedup();
        kept.sort_unstable();
        assert_eq!(found, kept);
    });
}
