//! What two threads do with slots.

use crate::slots::{Slots, number_of};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Stands for what a span keeps: a cell that loom watches.
#[derive(Default)]
struct Data(UnsafeCell<()>);

impl Data {
    /// For a thread that has it to itself.
    fn change(&self) {
        self.0.with_mut(|_| ());
    }

    /// For a thread that has a reference.
    fn look(&self) {
        self.0.with(|_| ());
    }
}

type World = Slots<Data, 1, 4>;

/// One slot was used: its block is there.
fn world() -> Arc<World> {
    let world = World::new(AtomicU32::new(0), AtomicU64::new(0));
    let id = begin(&world);
    assert!(release(&world, id));
    Arc::new(world)
}

fn begin(world: &World) -> u64 {
    let number = world.take().expect("there is room");
    world.begin(number, Data::change).expect("it was taken").0
}

/// Releases a reference; a span that has ended gives its slot back.
fn release(world: &World, id: u64) -> bool {
    let Some(number) = world.release(id, Data::change) else {
        return false;
    };
    world.give_back(number);
    true
}

/// Two actors at the same time, with each of them on the model's own thread: loom looks only at the last
/// access to each atomic for what else may happen, and so misses some runs from one side.
fn check(
    first: impl Fn(&World) + Copy + Send + Sync + 'static,
    second: impl Fn(&World) + Copy + Send + Sync + 'static,
    prepare: impl Fn(&World) + Copy + Send + Sync + 'static,
) {
    for is_swapped in [false, true] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let world = world();
            prepare(&world);
            let other = world.clone();
            let spawned = thread::spawn(move || if is_swapped { first(&other) } else { second(&other) });
            if is_swapped {
                second(&world)
            } else {
                first(&world)
            }
            spawned.join().expect("no panic");
            // What is free is free for all, and once.
            let spans: Vec<_> = (0..4).map(|_| begin(&world)).collect();
            assert!(world.take().is_none(), "there are four slots");
            for (number, id) in spans.iter().enumerate() {
                assert!(
                    spans[..number].iter().all(|other| number_of(*other) != number_of(*id)),
                    "two have it"
                );
                assert!(world.find(*id).is_some() && release(&world, *id) && world.find(*id).is_none());
            }
        });
    }
}

/// Two spans begin and end, so that two slots are free.
fn two_are_free(world: &World) {
    let (first, second) = (begin(world), begin(world));
    assert!(release(world, first) && release(world, second));
}

/// One thread is in the middle of taking the first free slot, while another takes it, and the next one, and
/// gives the first one back.
#[test]
fn a_slot_belongs_to_one_span() {
    let takes_two = |world: &World| {
        let (first, second) = (begin(world), begin(world));
        assert!(release(world, first));
        world.find(second).expect("it is open").change();
        assert!(release(world, second));
    };
    let takes_one = |world: &World| {
        let id = begin(world);
        world.find(id).expect("it is open").change();
        let next = begin(world);
        world.find(next).expect("it is open").change();
        assert!(release(world, id) && release(world, next));
    };
    check(takes_two, takes_one, two_are_free);
}

/// One slot was used before, and both threads need two.
#[test]
fn new_slots_belong_to_one_span() {
    let takes_two = |world: &World| {
        let (first, second) = (begin(world), begin(world));
        assert!(release(world, second) && release(world, first));
    };
    check(takes_two, takes_two, |_| ());
}

/// A thread passes an id to another one without more order than an id has: what it stored before is there.
#[test]
fn a_thread_that_has_the_id_finds_the_data() {
    loom::model(|| {
        let world = world();
        let passed = Arc::new(AtomicU64::new(0));
        let (other_world, other_passed) = (world.clone(), passed.clone());
        let finder = thread::spawn(move || {
            let id = other_passed.load(Ordering::Relaxed);
            if let Some(data) = other_world.find(id) {
                data.look();
            }
        });
        passed.store(begin(&world), Ordering::Relaxed);
        finder.join().expect("no panic");
        assert!(release(&world, passed.load(Ordering::Relaxed)));
    });
}

/// Two threads have a reference each: the later one ends the span, after all that the other one did with it.
#[test]
fn a_span_ends_once_and_last() {
    for is_cloned in [false, true] {
        loom::model(move || {
            let world = world();
            let ends = Arc::new(AtomicU32::new(0));
            let id = begin(&world);
            world.reference(id);
            let use_and_release = move |world: &World, ends: &AtomicU32| {
                world.find(id).expect("it is open").look();
                if is_cloned {
                    world.reference(id);
                    assert!(!release(world, id), "another reference is left");
                }
                if release(world, id) {
                    ends.fetch_add(1, Ordering::Relaxed);
                }
            };
            let (other_world, other_ends) = (world.clone(), ends.clone());
            let other = thread::spawn(move || use_and_release(&other_world, &other_ends));
            use_and_release(&world, &ends);
            other.join().expect("no panic");
            assert_eq!(ends.load(Ordering::Relaxed), 1, "it ends once");
            assert!(world.find(id).is_none() && !release(&world, id));
            assert_ne!(begin(&world), id, "the next span of the slot has another id");
        });
    }
}

/// A thread that looks at all slots finds the id of the span that has a slot, or none.
#[test]
fn what_is_open_is_found_by_its_slot() {
    let two_spans = |world: &World| {
        for _ in 0..2 {
            let id = begin(world);
            assert_eq!(world.open(number_of(id)).map(|(open, _)| open), Some(id));
            assert!(release(world, id));
            assert!(world.open(number_of(id)).is_none_or(|(open, _)| open != id), "it has ended");
        }
    };
    let looks = |world: &World| {
        for number in 0..world.used() as u32 {
            if let Some((id, _)) = world.open(number) {
                assert_eq!(number_of(id), number);
            }
        }
    };
    check(two_spans, looks, |_| ());
}
