//! Events from unexpected places, and ends that come at the wrong moment.

use crate::freeze::Frozen;
use crate::support::{EndsThreads, Trace, kinds};
use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_engine::{BufferMode, Disposition, Scope, engine, instant};

/// Records events when its thread ends, after whatever the engine does then or before.
struct AtExit(Cell<u64>);

impl Drop for AtExit {
    fn drop(&mut self) {
        for number in 0..3_u64 {
            instant!("cat", "at exit", Scope::Thread, "n" => self.0.get() + number);
        }
    }
}

thread_local! {
    static EARLY: AtExit = const { AtExit(Cell::new(100)) };
    static LATE: AtExit = const { AtExit(Cell::new(200)) };
}

#[test]
fn destructors_of_an_ending_thread_write_events() {
    let trace = Trace::start(1 << 20, &[]);
    std::thread::spawn(|| {
        // Destructors run in no order that anybody promises: one of these is used before the thread has
        // anything of the engine's, the other after.
        EARLY.with(|_| ());
        instant!("cat", "alive", Scope::Thread, "n" => 0_u64);
        LATE.with(|_| ());
    })
    .join()
    .unwrap();
    let read = trace.stop();
    let mut numbers: Vec<_> = read.events.iter().map(|event| event.u64("n")).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 100, 101, 102, 200, 201, 202]);
    assert_eq!(read.by_thread().len(), 1, "all of one thread");
    assert_eq!(read.findings.bad_records, 0);
    assert_eq!(read.dropped(), 0);
}

#[test]
fn a_thousand_threads_write_and_nothing_is_missing() {
    const THREADS: u64 = 1000;
    const EACH: u64 = 20;
    let trace = Trace::start(16 << 20, &[]);
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            let body = move || {
                barrier.wait();
                (0..EACH).for_each(
                    |n| instant!("cat", "one of many", Scope::Thread, "thread" => thread, "n" => n),
                );
                barrier.wait();
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, body).unwrap();
        }
    });
    let read = trace.stop();
    assert_eq!(read.dropped(), 0);
    let threads = read.by_thread();
    assert_eq!(threads.len() as u64, THREADS);
    for events in threads.values() {
        assert!(events.iter().map(|event| event.u64("n")).eq(0..EACH));
        assert!(events.iter().all(|event| event.u64("thread") == events[0].u64("thread")));
    }
}

/// A stop while hundreds of threads write, in every mode, again and again.
#[test]
fn stops_while_hundreds_write_leave_whole_buffers() {
    for mode in [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming] {
        let mut trace = Trace::start_in(mode, 4 << 20);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..300 {
                let body = || {
                    let mut n = 0_u64;
                    while !done.load(Ordering::Relaxed) {
                        instant!("cat", "write", Scope::Thread, "n" => n);
                        n += 1;
                    }
                };
                std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, body).unwrap();
            }
            let _end = EndsThreads(&done);
            for _ in 0..5 {
                trace.wait_for_slabs(100);
                trace.pause();
                trace.resume(Disposition::ClearEntire);
            }
            trace.wait_for_slabs(100);
            trace.pause();
        });
        let read = trace.end();
        assert_eq!(read.findings.bad_records, 0, "{mode:?}");
        assert!(!read.events.is_empty());
        for events in read.by_time().values() {
            let numbers: Vec<_> = events.iter().map(|event| event.u64("n")).collect();
            assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{mode:?}: {numbers:?}");
        }
    }
}

/// The memory is taken away from a thread that is inside an event: what it writes then goes nowhere.
//= docs/buffer.md#retiring
#[test]
fn a_thread_inside_an_event_outlives_the_buffer() {
    let trace = Trace::start_shared(1 << 20);
    let mut frozen = Frozen::new();
    let soon = || Instant::now() + Duration::from_millis(50);
    assert_eq!(trace.engine.stop(soon()).unwrap().stragglers, 1);
    trace.engine.terminate(soon()).unwrap();
    let before = trace.bytes();
    frozen.release();
    assert!(trace.bytes() == before, "it wrote into a buffer that was given back");
    // Now it is out, and another trace can begin.
    let read = trace.read_terminated();
    assert_eq!(kinds(&read), ["instant t cat/frozen"], "the event before");
    drop(read);
    let trace = Trace::start(1 << 20, &[]);
    instant!("cat", "next", Scope::Thread);
    assert_eq!(kinds(&trace.stop()), ["instant t cat/next"]);
}

#[test]
fn a_buffer_is_not_cleared_under_a_thread_that_is_inside_an_event() {
    let trace = Trace::start(1 << 20, &[]);
    let mut frozen = Frozen::new();
    assert_eq!(trace.engine.stop(Instant::now() + Duration::from_millis(50)).unwrap().stragglers, 1);
    assert_eq!(trace.engine.start(Disposition::ClearEntire, &[]), Err(engine::Error::Straggler));
    assert_eq!(engine::state(), engine::State::Stopped);
    // Going on is possible.
    assert_eq!(trace.engine.start(Disposition::Retain, &[]), Ok(()));
    instant!("cat", "meanwhile", Scope::Thread);
    frozen.release();
    let read = trace.stop();
    let mut names = kinds(&read);
    names.sort();
    assert_eq!(names, ["instant t cat/frozen", "instant t cat/frozen", "instant t cat/meanwhile"]);
}
