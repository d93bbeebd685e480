//! More threads than slabs: what idle threads have left is used before anything is refused.

use crate::support::{Read, Trace};
use std::sync::Barrier;
use trace_engine::{BufferMode, Scope, instant};
use trace_format::slab::{LossReason, SlabState};

const MIB: usize = 1 << 20;
const ENDING: [BufferMode; 2] = [BufferMode::Oneshot, BufferMode::Circular];

/// So many threads that are all alive until each has written so many events, one in each round.
fn record(mode: BufferMode, bytes: usize, threads: usize, rounds: u64) -> Read {
    let trace = Trace::start_in(mode, bytes);
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let body = || {
                for n in 0..rounds {
                    instant!("cat", "round", Scope::Thread, "n" => n);
                    barrier.wait();
                }
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, body).unwrap();
        }
    });
    trace.stop()
}

fn assert_complete(read: &Read, threads: usize, rounds: u64) {
    let lost = LossReason::ALL.map(|reason| (reason, read.loss(reason)));
    let lost: Vec<_> = lost.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!((read.events.len() as u64, lost), (threads as u64 * rounds, vec![]));
    assert_eq!(read.dropped(), 0);
    assert_eq!((read.header.end_ts, read.header.records_dropped), (None, 0));
    assert_eq!(read.findings.bad_records, 0, "{:?}", read.findings.first_bad);
    let by_thread = read.by_time();
    assert_eq!(by_thread.len(), threads);
    for events in by_thread.values() {
        assert!(events.iter().map(|event| event.u64("n")).eq(0..rounds), "of one thread");
    }
}

//= docs/buffer.md#recall
#[test]
fn a_thousand_threads_with_one_event_each_lose_none() {
    for mode in ENDING {
        assert_complete(&record(mode, 4 * MIB, 1000, 1), 1000, 1);
        assert_complete(&record(mode, MIB, 250, 1), 250, 1);
    }
}

//= docs/buffer.md#recall
#[test]
fn two_thousand_threads_with_one_event_each_lose_none() {
    for mode in ENDING {
        assert_complete(&record(mode, 4 * MIB, 2000, 1), 2000, 1);
    }
}

/// Each has its slab taken again and again.
//= docs/buffer.md#recall
#[test]
fn a_thousand_threads_that_take_turns_lose_nothing() {
    for mode in ENDING {
        assert_complete(&record(mode, 4 * MIB, 1000, 20), 1000, 20);
    }
}

/// A buffer is full when it is used: one thread alone writes into what a hundred have left.
//= docs/buffer.md#recall
#[test]
fn a_buffer_is_used_before_it_is_full() {
    const THREADS: usize = 100;
    let trace = Trace::start(MIB, &[]);
    let rolling = u64::from(trace.slab_count()) * trace.slab_bytes();
    let barrier = Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                instant!("cat", "idle", Scope::Thread);
                barrier.wait();
                barrier.wait();
            });
        }
        barrier.wait();
        for n in 0..rolling / 32 + 1 {
            instant!("cat", "busy", Scope::Thread, "n" => n);
        }
        let words = trace.slab_words();
        barrier.wait();
        assert_eq!(words.iter().filter(|word| word.state() == SlabState::Empty).count(), 0);
    });
    let read = trace.stop();
    let idle = read.events.iter().filter(|event| event.name == "idle").count();
    assert_eq!(idle, THREADS);
    let refused = read.loss(LossReason::Full);
    assert_eq!(read.events.len() as u64 + refused, rolling / 32 + 1 + THREADS as u64);
    // What stays unused of each slab is less than 64 bytes.
    assert!(read.rolling_bytes() * 100 > rolling * 98, "{} of {rolling} bytes", read.rolling_bytes());
}

/// Busy threads take the last leftover slabs from each other between their events: nothing is torn, written
/// over, or lost without being counted, and each thread keeps a prefix.
//= docs/buffer.md#recall
#[test]
fn busy_threads_share_the_last_slabs() {
    const THREADS: u64 = 4;
    const EACH: u64 = 500;
    for _ in 0..200 {
        let trace = Trace::start(16 << 10, &[]);
        let barrier = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    instant!("cat", "busy", Scope::Thread, "n" => 0_u64);
                    barrier.wait();
                    (1..EACH).for_each(|n| instant!("cat", "busy", Scope::Thread, "n" => n));
                });
            }
        });
        let read = trace.stop();
        assert_eq!(read.findings.bad_records, 0, "{:?}", read.findings.first_bad);
        assert_eq!(read.events.len() as u64 + read.loss(LossReason::Full), THREADS * EACH);
        assert_eq!(read.dropped(), read.loss(LossReason::Full));
        for events in read.by_time().values() {
            assert!(events.iter().map(|event| event.u64("n")).eq(0..events.len() as u64), "a hole");
        }
    }
}
