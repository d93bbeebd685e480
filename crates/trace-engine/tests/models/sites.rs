//! Definitions of strings, the sites that publish their indices, and traces that begin anew.

use crate::models::check::check;
use crate::models::world::{World, never};
use crate::record::event::Event;
use crate::record::event_writer::write_inside;
use crate::session::config::Disposition;
use crate::slab::retirement::take_slabs_away;
use crate::sync::{Arc, thread};
use std::time::Duration;
use trace_format::event::EventType;
use trace_format::record::{RecordHeader, RecordType};

/// The text that an index stands for in the durable region, as a thread inside an event sees it.
fn definition(world: &World, index: u16) -> Option<u64> {
    let layout = world.context.buffer().layout();
    let words = world.read(layout.durable, layout.durable_bytes / 8);
    let mut rest = words.as_slice();
    while let Some(header) = rest.first().filter(|header| **header != 0) {
        let header = RecordHeader(*header);
        if header.record_type() == Some(RecordType::String) && header.0 >> 16 & 0x7fff == u64::from(index) {
            return rest.get(1).copied();
        }
        rest = &rest[header.size().0..];
    }
    None
}

/// An event as the slow path writes it; what the hot path would use of the site is there.
fn write(world: &World, thread: usize) {
    let event = Event { event_type: EventType::Instant, start: None, extra: None };
    world.inside(thread, |block| {
        if let Some((category, name)) = world.site.published() {
            assert_eq!(definition(world, category), Some(u64::from(b'c')), "an index without its definition");
            assert_eq!(definition(world, name), Some(u64::from(b'n')), "an index without its definition");
        }
        let _ = write_inside(&world.context, block, false, &world.site, 1, |writer| {
            writer.write_event(&world.site, &event, &(), 1, None)
        });
    });
}

/// Two threads come to a new site: a thread that finds an index finds what it stands for.
#[test]
fn an_index_is_published_after_its_definition() {
    check(3, |order| {
        let world = Arc::new(World::with_definitions(2));
        order.play(&world, |world| write(world, 0), |world| write(world, 1));
        write(&world, 0);
        assert!(world.site.published().is_some(), "one of them has published it");
    });
}

/// A writer meets the end of a trace and the beginning of the next: an index of the one is never used in the
/// other, and definitions are not taken away from a thread that uses them.
#[test]
fn a_trace_that_begins_anew_does_not_know_the_indices_of_the_last() {
    check(2, |order| {
        let world = Arc::new(World::with_definitions(2));
        let restart = |world: &World| {
            world.site.switch_off();
            world.slabs().stop();
            world.slabs().retire_all(never());
            while !take_slabs_away(Duration::from_secs(3600)) {
                thread::yield_now();
            }
            world.context.clear(Disposition::ClearEntire);
            world.context.begin_run(&[]);
            world.site.switch_on();
        };
        let write_twice = |world: &World| {
            write(world, 1);
            write(world, 1);
        };
        order.play(&world, restart, write_twice);
        write(&world, 0);
        write(&world, 0);
    });
}

/// A program sets a hook while another thread comes to a new site: from then on each event takes the slow
/// path, which calls the hook.
//= docs/rust.md#a-hook-for-each-event
#[test]
fn no_site_is_published_once_a_hook_is_set() {
    check(3, |order| {
        let world = Arc::new(World::with_definitions(2));
        let set = |world: &World| {
            world.context.hooks().set(Some(world.blocks[0]), || world.site.unpublish());
            assert!(world.site.published().is_none(), "an event is not seen");
        };
        let write_twice = |world: &World| {
            write(world, 1);
            write(world, 1);
        };
        order.play(&world, set, write_twice);
        assert!(world.site.published().is_none(), "later events are not seen");
    });
}
