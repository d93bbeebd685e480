//! Circular mode: the newest events stay, and what they cost is counted.

use crate::support::Trace;
use trace_engine::{BufferMode, Scope, instant};
use trace_format::buffer::Layout;
use trace_format::slab::{LossReason, SlabState};

fn write(number: u64) {
    instant!("cat", "round", Scope::Thread, "n" => number);
}

//= docs/buffer.md#claiming
#[test]
fn the_newest_events_stay_and_the_overwritten_are_counted() {
    let trace = Trace::start_in(BufferMode::Circular, 64 << 10);
    let total = 100_003;
    (0..total).for_each(write);
    let slabs = u64::from(trace.slab_count());
    let read = trace.stop();
    let kept: Vec<_> = read.events.iter().map(|event| event.u64("n")).collect();
    assert_eq!(kept.last(), Some(&(total - 1)));
    assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 1), "a hole");
    let lost = read.loss_entry(LossReason::Overwritten);
    assert_eq!(lost.count, total - kept.len() as u64);
    assert!(lost.first < lost.last && lost.last <= read.events[0].timestamp);
    assert_eq!(read.dropped(), lost.count);
    // All slabs but at most the one in use are full.
    let per_slab = read.header.layout.slab_bytes / 32;
    assert!(kept.len() as u64 > (slabs - 1) * per_slab, "{} of {slabs} slabs", kept.len());
    assert_eq!(read.header.end_ts, None);
    let claimed = (total).div_ceil(per_slab);
    let half = u64::from(read.header.layout.slabs_per_half);
    assert_eq!(u64::from(read.header.wrapped_count), (claimed - 1) / half);
    assert_eq!(read.header.records_dropped, 0, "nothing was refused");
}

#[test]
fn a_thread_that_sleeps_keeps_its_slab_and_nothing_else() {
    let trace = Trace::start_in(BufferMode::Circular, 64 << 10);
    let slabs = u64::from(trace.slab_count());
    let (sender, wake) = std::sync::mpsc::channel();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        instant!("cat", "before", Scope::Thread);
        ready.send(()).unwrap();
        wake.recv().unwrap();
        instant!("cat", "after", Scope::Thread);
    });
    is_ready.recv().unwrap();
    (0..50_000).for_each(write);
    let words = trace.slab_words();
    assert_eq!(words.iter().filter(|word| word.state() == SlabState::Open).count(), 2);
    sender.send(()).unwrap();
    sleeper.join().unwrap();
    let read = trace.stop();
    let of_sleeper: Vec<_> = read.events.iter().filter(|event| event.name != "round").collect();
    assert_eq!(of_sleeper.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["before", "after"]);
    let rounds = read.events.len() as u64 - 2;
    assert_eq!(rounds + read.loss(LossReason::Overwritten), 50_000);
    assert!(rounds > (slabs - 2) * (read.header.layout.slab_bytes / 32));
}

/// More threads than slabs, none of which has room for another such event: those without one are refused
/// until one is free, and that is counted.
#[test]
fn threads_that_hold_all_slabs_cost_others_theirs() {
    let trace = Trace::start_in(BufferMode::Circular, 4096);
    let slabs = trace.slab_count() as usize;
    let threads = slabs + 3;
    let barrier = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                instant!("cat", "one", Scope::Thread, "pad" => [0_u8; 150].as_slice());
                barrier.wait();
            });
        }
    });
    let read = trace.stop();
    assert_eq!((read.events.len(), read.loss(LossReason::Full)), (slabs, 3));
    assert_eq!(read.dropped(), 3);
}

#[test]
fn large_records_go_round_like_others() {
    let trace = Trace::start_in(BufferMode::Circular, 64 << 10);
    let slab = trace.slab_bytes() as usize;
    let long = vec![7_u8; 3 * slab];
    for number in 0..5_000_u64 {
        instant!("cat", "long", Scope::Thread, "n" => number, "pad" => long.as_slice());
        instant!("cat", "short", Scope::Thread, "n" => number);
    }
    let read = trace.stop();
    assert_eq!(read.findings.bad_records, 0);
    assert_eq!(read.events.len() as u64 + read.loss(LossReason::Overwritten), 10_000);
    assert_eq!(read.dropped(), read.loss(LossReason::Overwritten));
    assert_eq!(read.events.last().unwrap().u64("n"), 4_999);
    let long: Vec<_> = read.events.iter().filter(|event| event.name == "long").collect();
    assert!(long.len() > 10);
    assert!(long.windows(2).all(|pair| pair[1].u64("n") == pair[0].u64("n") + 1), "a hole");
}

#[test]
fn many_threads_lose_only_what_is_counted() {
    const EACH: u64 = 100_000;
    let trace = Trace::start_in(BufferMode::Circular, 64 << 10);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..EACH).for_each(write));
        }
    });
    let read = trace.stop();
    assert_eq!(read.findings.bad_records, 0);
    assert_eq!(read.events.len() as u64 + read.loss(LossReason::Overwritten), 4 * EACH);
    assert_eq!(read.dropped(), read.loss(LossReason::Overwritten));
    for events in read.by_thread().values() {
        assert!(events.windows(2).all(|pair| pair[1].u64("n") == pair[0].u64("n") + 1), "a hole");
    }
}

/// A slab that a thread left when it ended is found by later threads even after many rounds.
#[test]
fn threads_that_come_and_go_exhaust_nothing() {
    const THREADS: u64 = 10_000;
    let trace = Trace::start_in(BufferMode::Circular, 1 << 20);
    for number in 0..THREADS {
        std::thread::spawn(move || instant!("cat", "short life", Scope::Thread, "n" => number))
            .join()
            .unwrap();
    }
    let read = trace.stop();
    assert_eq!(read.events.len() as u64 + read.loss(LossReason::Overwritten), THREADS);
    assert_eq!(read.dropped(), read.loss(LossReason::Overwritten));
    assert_eq!(read.events.last().unwrap().u64("n"), THREADS - 1);
    assert_eq!(read.thread_records, 255);
    // Their names leave half of the room to strings.
    let room = Layout::new(1 << 20, BufferMode::Circular).unwrap().durable_bytes;
    let used = read.header.durable_data_end;
    assert!((room / 2..room / 2 + 64).contains(&used), "{used} of {room}");
}
