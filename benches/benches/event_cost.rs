//! What an event costs, against reading the clock and against storing the same bytes after reading it, in one
//! run.
//!
//! A oneshot buffer becomes full, so each run of each kind has a buffer of its own; setting it up is outside
//! of what is measured, and so is the first event of each site and thread. `--test` makes it short.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use trace_benches::recording::{RECORDING_BYTES, Recording};
use trace_benches::{Cost, table};
use trace_engine::{Scope, duration, duration_begin, ffi, instant};
use zx_sim::ticks;

/// Events of a run: the largest of 56 bytes take less than half of the buffer.
const EVENTS: u64 = 400_000;
const RUNS: usize = 30;

/// Measures one run of a kind of event: the first time of a site is not part of it.
fn event(cost: &mut Cost, events: u64, emit: impl Fn(u64)) {
    let recording = Recording::start();
    emit(0);
    cost.measure(events, |events| (0..events).for_each(&emit));
    recording.stop();
}

/// Gives the calling thread its index, and leaves no room for any other definition.
fn fill_definitions() {
    ffi::current_thread().expect("a trace runs");
    for number in 0_u64.. {
        let length = ffi::durable_room().min(4000) as usize;
        if length < 16 {
            break;
        }
        ffi::string_index(format!("{number:0width$}", width = length - 8).as_bytes()).expect("there is room");
    }
}

/// Memory as large as a buffer, zeroed and present, for what is stored without a recording.
fn memory() -> Vec<AtomicU64> {
    (0..RECORDING_BYTES / 8).map(|_| AtomicU64::new(0)).collect()
}

/// Reads the clock and stores two words, as an instant does, one behind the other.
fn store(ring: &[AtomicU64], number: u64) {
    let at = (2 * number) as usize % ring.len();
    ring[at + 1].store(ticks::now(), Ordering::Relaxed);
    ring[at].store(number, Ordering::Release);
}

fn two_threads(cost: &mut Cost, events: u64, body: impl Fn(u64) + Sync) {
    let barrier = Barrier::new(3);
    let nanos = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    body(0);
                    barrier.wait();
                    let begin = Instant::now();
                    (0..events).for_each(&body);
                    begin.elapsed().as_nanos() as f64 / events as f64
                })
            })
            .collect();
        barrier.wait();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).fold(0.0, f64::max)
    });
    cost.push(nanos);
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (events, runs) = if is_test { (1000, 2) } else { (EVENTS, RUNS) };
    let mut costs = [
        "reading the clock",
        "reading the clock, storing 16 bytes",
        "site off",
        "instant",
        "duration begin",
        "duration scope",
        "instant with one i64",
        "instant with i64 and 16-byte string",
        "instant with one i64, texts without an index",
        "two threads: reading the clock, storing 16 bytes",
        "two threads: instant",
    ]
    .map(Cost::new);
    for _ in 0..runs {
        let [clock, floor, off, plain, begin, scope, integer, string, inline, two_floor, two] = &mut costs;
        clock.measure(events, |events| {
            (0..events).for_each(|_| {
                black_box(ticks::now());
            });
        });
        let fresh = memory();
        floor.measure(events, |events| (0..events).for_each(|number| store(&fresh, number)));
        drop(fresh);
        off.measure(events, |events| {
            (0..events).for_each(|number| instant!("bench", "off", Scope::Thread, "n" => black_box(number)));
        });
        event(plain, events, |_| instant!("bench", "instant", Scope::Thread));
        event(begin, events, |_| duration_begin!("bench", "begin"));
        event(scope, events, |_| {
            duration!("bench", "scope");
        });
        event(integer, events, |number| {
            instant!("bench", "integer", Scope::Thread, "n" => number as i64);
        });
        event(string, events, |number| {
            instant!("bench", "string", Scope::Thread, "n" => number as i64, "s" => black_box("sixteen bytes ok"));
        });
        let recording = Recording::start();
        fill_definitions();
        inline.measure(events, |events| {
            (0..events).for_each(|number| instant!("bench", "inline", Scope::Thread, "n" => number as i64));
        });
        recording.stop();
        two_threads(two_floor, events, {
            let rings = [(); 2].map(|()| memory());
            let next = AtomicU64::new(0);
            std::thread_local!(static OWN: std::cell::Cell<usize> = const { std::cell::Cell::new(usize::MAX) });
            move |number| {
                if OWN.get() == usize::MAX {
                    OWN.set(next.fetch_add(1, Ordering::Relaxed) as usize % 2);
                }
                store(&rings[OWN.get()], number);
            }
        });
        let recording = Recording::start();
        two_threads(two, events, |_| instant!("bench", "two", Scope::Thread));
        recording.stop();
    }
    print!("{}", table(&costs));
}
