//! How many events all threads together record in a second, from 1 thread to 64, against as many threads that
//! read the clock and store the same bytes into memory of their own, in one run.
//!
//! The engine goes round in a circular buffer, the floor in as much memory, divided among its threads. What
//! counts is processor time per event, of all threads: with more threads than processors they only take
//! turns. `--test` makes it short.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace_benches::Cost;
use trace_engine::{BufferMode, Config, Disposition, Region, Scope, engine, instant};
use zx_sim::ticks;

const BUFFER_BYTES: usize = 4 << 20;
/// Events of all threads in a run.
const EVENTS: u64 = 1_600_000;
const RUNS: usize = 15;

/// Nanoseconds of one run for each event, as if the threads had not run side by side.
fn run(threads: u64, events: u64, body: impl Fn(u64, u64) + Sync) -> f64 {
    let barrier = Barrier::new(threads as usize);
    let (each, body, barrier) = (events / threads, &body, &barrier);
    let nanos: f64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    body(thread, 0);
                    barrier.wait();
                    let begin = thread_nanos();
                    (0..each).for_each(|number| body(thread, number));
                    thread_nanos() - begin
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    nanos / (each * threads) as f64
}

/// Processor time of this thread.
fn thread_nanos() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the struct.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Reads the clock and stores two words, as an instant does, in the thread's part of the memory.
fn store(part: &[AtomicU64], number: u64) {
    let at = (2 * number) as usize % part.len();
    part[at + 1].store(ticks::now(), Ordering::Relaxed);
    part[at].store(number, Ordering::Release);
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (events, runs) = if is_test { (6400, 2) } else { (EVENTS, RUNS) };
    println!("| threads | floor, median ns | instant, median ns | floor / instant |\n|---|---|---|---|");
    for threads in [1, 2, 4, 8, 16, 32, 64] {
        let (mut floor, mut instants) = (Cost::new("floor"), Cost::new("instant"));
        let part = (BUFFER_BYTES / 8 / threads as usize).next_multiple_of(8);
        let memory: Vec<Vec<AtomicU64>> =
            (0..threads).map(|_| (0..part).map(|_| AtomicU64::new(0)).collect()).collect();
        let (region, words) = Region::on_heap(BUFFER_BYTES);
        let config = Config::new(1, "bench", 1);
        let engine = engine::initialize(region, BufferMode::Circular, config).expect("the engine is idle");
        engine.start(Disposition::Retain, &[]).expect("the engine starts");
        for _ in 0..runs {
            floor.push(run(threads, events, |thread, number| store(&memory[thread as usize], number)));
            instants.push(run(threads, events, |_, _| instant!("bench", "instant", Scope::Thread)));
            // Only the first 255 threads of a recording have an index.
            engine.stop(Instant::now() + Duration::from_secs(5)).expect("the engine was started");
            engine.start(Disposition::ClearEntire, &[]).expect("the engine was stopped");
        }
        engine.terminate(Instant::now() + Duration::from_secs(5)).expect("the engine was started");
        drop(words);
        let (floor, instant) = (floor.median(), instants.median());
        println!("| {threads} | {floor:.2} | {instant:.2} | {:.2} |", floor / instant);
    }
}
