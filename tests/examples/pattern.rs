//! A program that the scheduler can do only one thing with, if it runs on one CPU and nothing can take that
//! away from it.
//!
//! `pattern ROUNDS SLEEPS SPINS`: two threads, `ping` and `pong`, answer each other through pipes; then
//! `ping` sleeps for two milliseconds, again and again; then it counts without a pause, and says before and
//! after how much of the processor it has used.
#![forbid(unsafe_code)]

use rustix::event::{Timespec, poll};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::time::{ClockId, clock_gettime};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::thread::Builder;
use trace_provider::{Scope, TraceProvider, duration, instant};

const REST_NANOS: i64 = 2_000_000;

fn pong(mut from: PipeReader, mut to: PipeWriter) {
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() {
        instant!("pattern", "pong", Scope::Thread);
        to.write_all(&byte).expect("ping is there");
    }
}

fn ping(mut to: PipeWriter, mut from: PipeReader, [rounds, sleeps, spins]: [u64; 3]) {
    let mut byte = [0];
    for round in 0..rounds {
        instant!("pattern", "ping", Scope::Thread, "round" => round);
        to.write_all(&byte).expect("pong is there");
        from.read_exact(&mut byte).expect("pong answers");
        instant!("pattern", "answered", Scope::Thread, "round" => round);
    }
    for _ in 0..sleeps {
        instant!("pattern", "sleep", Scope::Thread);
        // Nothing to wait for: only the time ends it.
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: REST_NANOS }));
        instant!("pattern", "woke", Scope::Thread);
    }
    if spins > 0 {
        say_used();
    }
    for spin in 0..spins {
        duration!("pattern", "spin", "spin" => spin);
        for number in 0..1000_u64 {
            std::hint::black_box(number);
        }
    }
    if spins > 0 {
        say_used();
    }
}

/// The time in which this thread had a processor.
fn say_used() {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = used.tv_sec * 1_000_000_000 + used.tv_nsec;
    instant!("pattern", "used", Scope::Thread, "ns" => nanos.cast_unsigned());
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let counts = [(); 3].map(|()| arguments.next().expect("pattern ROUNDS SLEEPS SPINS"));
    let _provider = TraceProvider::new("pattern");
    // Nothing has to be fetched from a disk while a thread is observed. Without the privilege, it may be.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    let (to_pong_end, to_pong) = pipe().expect("a pipe");
    let (to_ping_end, to_ping) = pipe().expect("a pipe");
    let named = |name: &str| Builder::new().name(name.to_owned());
    let second = named("pong").spawn(move || pong(to_pong_end, to_ping)).expect("a thread");
    let first = named("ping").spawn(move || ping(to_pong, to_ping_end, counts)).expect("a thread");
    first.join().expect("ping ends");
    second.join().expect("pong ends");
}
