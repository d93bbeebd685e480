//! Events that a thread leaves by a jump: it has entered them and never leaves.

use super::later;
use crate::buffer::region::Region;
use crate::own_process::is_own_process;
use crate::record::event::Event;
use crate::record::hot_path::write_event;
use crate::session::engine::{self, Disposition};
use crate::site::Site;
use crate::thread::block::ThreadBlock;
use crate::thread::registry::{self, Acquired};
use crate::{BufferMode, Config};
use std::num::NonZeroU64;
use std::sync::mpsc::channel;
use trace_format::event::EventType;
use trace_format::slab::LossReason;
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferPart, BufferReader};

const BYTES: usize = 256 << 10;
const RATE: u64 = 1_000_000_000;

// SAFETY: a site among the others.
#[unsafe(link_section = "trace_sites_1")]
static SITE: Site = Site::new("cat", "event", &[]);

fn write() {
    write_event(&SITE, Event { event_type: EventType::Instant, start: None, extra: None }, &());
}

/// Begins an event and leaves it.
fn jump_out() -> &'static ThreadBlock {
    let Some(Acquired::Own(block)) = registry::acquire() else { panic!("no block") };
    block.enter();
    block
}

/// However often it does, it goes on writing, from depth 0; what it has left is counted once.
//= docs/buffer.md#events-that-are-left
#[test]
fn a_thread_that_leaves_events_by_jumps_goes_on_writing() {
    if !is_own_process("session::engine::tests::left::a_thread_that_leaves_events_by_jumps_goes_on_writing") {
        return;
    }
    let (region, words) = Region::on_heap(BYTES);
    let engine = engine::initialize(region, BufferMode::Oneshot, Config::new(1, "test", RATE)).unwrap();
    engine.start(Disposition::Retain, &[]).unwrap();
    let (left, is_left) = channel();
    let (end, is_over) = channel::<()>();
    let thread = std::thread::spawn(move || {
        write();
        for _ in 0..3 {
            let blocks = [(); 4].map(|()| jump_out());
            assert!(blocks.iter().all(|block| core::ptr::eq(*block, blocks[0])), "one has room for four");
            assert_eq!(blocks[0].events_under_way(), 4);
            for _ in 0..10 {
                write();
                assert!(!core::ptr::eq(registry::current(), blocks[0]));
                assert_eq!(registry::current().events_under_way(), 0);
            }
            assert!(blocks[0].is_replaced());
        }
        left.send(()).unwrap();
        is_over.recv().unwrap();
    });
    is_left.recv().unwrap();
    // Another ends inside an event.
    std::thread::spawn(|| {
        write();
        jump_out();
    })
    .join()
    .unwrap();
    // An event that never ends must not hold up the stop until its deadline of a minute.
    assert_eq!(engine.stop(later()).unwrap().stragglers, 3);
    end.send(()).unwrap();
    thread.join().unwrap();
    assert!(registry::all().all(ThreadBlock::is_outside), "they have ended with their threads");
    engine.terminate(later()).unwrap();
    let mut bytes = vec![0; BYTES];
    words.read_at(0, &mut bytes);
    let rate = TicksPerSecond(NonZeroU64::new(RATE).unwrap());
    let part = BufferPart::Rest(Activity::Quiet);
    let mut reader = BufferReader::open(&bytes[..], BYTES as u64, BufferMode::Oneshot, rate, part).unwrap();
    while reader.read_batch(&mut Vec::new()).unwrap() {}
    assert_eq!((reader.findings().events, reader.findings().bad_records), (1 + 3 * 10 + 1, 0));
    let lost = reader.losses().unwrap().map(|(_, loss)| loss.count);
    assert_eq!(lost[LossReason::LeftByJump as usize], 3 * 4 + 1);
    assert_eq!(lost.iter().sum::<u64>(), 3 * 4 + 1);
}
