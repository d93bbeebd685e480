//! A recording goes over to another buffer while threads record.

use crate::support::{EndsThreads, Read, Trace, kinds};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trace_engine::engine::{self, Error, State};
use trace_engine::{BufferMode, Scope, ffi, instant};

const BYTES: usize = 24 << 20;
const MODES: [BufferMode; 3] = [BufferMode::Circular, BufferMode::Streaming, BufferMode::Oneshot];
const THREADS: u64 = 3;
const TIMES: u64 = 30;
/// Events of a thread from one time to the next.
const EVENTS: u64 = 4000;

fn record(number: u64) {
    instant!("first", "in the first", Scope::Thread, "number" => number);
    instant!("both", "in both", Scope::Thread, "number" => number);
    instant!("second", "in the second", Scope::Thread, "number" => number);
}

//= docs/buffer.md#another-buffer
#[test]
fn each_buffer_has_its_own_categories_and_definitions() {
    let mut trace = Trace::start(64 << 10, &["first", "both"]);
    let epoch = engine::epoch();
    record(1);
    let first = trace.go_over(BufferMode::Circular, 128 << 10, &["both", "second"]).unwrap();
    assert_ne!(engine::epoch(), epoch, "what was found out about categories holds no longer");
    assert_eq!(engine::state(), State::Started);
    record(2);
    assert_eq!(kinds(&first), ["instant t first/in the first", "instant t both/in both"]);
    assert!(first.events.iter().all(|event| event.u64("number") == 1));
    let second = trace.stop();
    assert_eq!(kinds(&second), ["instant t both/in both", "instant t second/in the second"]);
    assert!(second.events.iter().all(|event| event.u64("number") == 2));
    for read in [first, second] {
        assert_eq!((read.dropped(), read.thread_records), (0, 1));
    }
}

fn add(numbers: &mut BTreeMap<u64, Vec<u64>>, read: &Read) {
    assert_eq!(read.dropped(), 0);
    for (thread, events) in read.by_thread() {
        numbers.entry(thread).or_default().extend(events.iter().map(|event| event.u64("number")));
    }
}

//= docs/buffer.md#another-buffer
#[test]
fn every_event_is_in_one_buffer_and_in_order() {
    let mut trace = Trace::start_in(BufferMode::Oneshot, BYTES);
    let (is_over, granted) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut numbers = BTreeMap::new();
    std::thread::scope(|scope| {
        let _end = EndsThreads(&is_over);
        let writers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut number = 0;
                    while !is_over.load(Ordering::Relaxed) && number < TIMES * EVENTS {
                        if number < granted.load(Ordering::Relaxed) {
                            instant!("c", "n", Scope::Thread, "number" => number);
                            number += 1;
                        }
                    }
                })
            })
            .collect();
        for time in 0..TIMES {
            granted.fetch_add(EVENTS, Ordering::Relaxed);
            // In a buffer of each mode, also while threads write.
            let left = trace.go_over_in_time(MODES[time as usize % MODES.len()], BYTES);
            add(&mut numbers, &left);
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    add(&mut numbers, &trace.stop());
    assert_eq!(numbers.len() as u64, THREADS);
    for numbers in numbers.values() {
        let expected = 0..TIMES * EVENTS;
        let first_wrong =
            numbers.iter().zip(expected.clone()).position(|(found, expected)| *found != expected);
        assert_eq!((numbers.len() as u64, first_wrong), (expected.end, None));
    }
}

//= docs/buffer.md#another-buffer
#[test]
fn a_reference_to_write_keeps_the_buffer_for_so_long() {
    let mut trace = Trace::start(64 << 10, &[]);
    let reference = ffi::TraceRef::acquire().unwrap();
    assert_eq!(trace.go_over(BufferMode::Oneshot, 64 << 10, &[]).err(), Some(Error::Straggler));
    assert_eq!(engine::state(), State::Started);
    instant!("c", "before", Scope::Thread);
    drop(reference);
    let first = trace.go_over(BufferMode::Oneshot, 64 << 10, &[]).unwrap();
    assert_eq!(kinds(&first), ["instant t c/before"]);
    instant!("c", "behind", Scope::Thread);
    let prolonged = ffi::TraceRef::acquire_prolonged().unwrap();
    // The recording does not end.
    let second = trace.go_over(BufferMode::Oneshot, 64 << 10, &[]).unwrap();
    drop(prolonged);
    assert_eq!(kinds(&second), ["instant t c/behind"]);
    assert_eq!(trace.stop().events.len(), 0);
}
