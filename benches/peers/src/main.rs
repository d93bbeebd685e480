//! What a scoped span and an instant cost with this project's engine and with other tracers, in one run.
//!
//! `cargo run --release -- [ROUNDS]`: each tracer has a process of its own, and the processes take turns,
//! round after round. A round is a burst of events on one thread, then on two at once. The table has the
//! minimum and the median of all rounds in ns per event and thread, and the processor time per event of all
//! threads of the process, also those that the tracer works in behind the scenes.

#[cfg(feature = "lttng")]
mod lttng;
mod ours;
mod tracers;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::sync::Barrier;
use std::time::Instant;
use tracers::{TRACERS, Tracer};

/// Events of a burst.
const EVENTS: u64 = 50_000;
const ROLE: &str = "TRACE_PEER";

/// Nanoseconds of processor time that this process has taken.
fn processor_nanos() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the struct.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds for each of so many events of a loop in C, as in an application in that language.
pub fn timed_in_c(events: u64, emit: extern "C" fn(u64)) -> f64 {
    let begin = std::time::Instant::now();
    emit(events);
    begin.elapsed().as_nanos() as f64 / events as f64
}

/// Nanoseconds per event of a loop.
fn timed(events: u64, mut emit: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    (0..events).for_each(&mut emit);
    begin.elapsed().as_nanos() as f64 / events as f64
}

/// Two threads at once; the slower counts.
fn two_threads(body: fn(u64) -> f64) -> f64 {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let run = || {
            body(100);
            barrier.wait();
            body(EVENTS)
        };
        let (first, second) = (scope.spawn(run), scope.spawn(run));
        first.join().expect("no panic").max(second.join().expect("no panic"))
    })
}

/// One tracer's process: a round, with a line for each result.
fn play(tracer: &Tracer) {
    let recording = (tracer.begin)();
    for (kind, body) in [("span", tracer.span), ("instant", tracer.instant)] {
        let Some(body) = body else { continue };
        body(100);
        let before = processor_nanos();
        println!("{kind} {}", body(EVENTS));
        (tracer.flush)();
        println!("{kind}, all threads {}", (processor_nanos() - before) / EVENTS as f64);
        println!("{kind}, two at once {}", two_threads(body));
        (tracer.flush)();
    }
    drop(recording);
}

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(ROLE) {
        let Some(tracer) = TRACERS.iter().find(|tracer| tracer.name == name) else {
            return ExitCode::FAILURE;
        };
        play(tracer);
        return ExitCode::SUCCESS;
    }
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut figures: BTreeMap<(usize, String), Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for (number, tracer) in TRACERS.iter().enumerate() {
            let program = std::env::current_exe().expect("a path");
            let output = Command::new(program).env(ROLE, tracer.name).output().expect("the program runs");
            assert!(output.status.success(), "{}: {}", tracer.name, String::from_utf8_lossy(&output.stderr));
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                let Some((kind, nanos)) = line.rsplit_once(' ') else { continue };
                if let Ok(nanos) = nanos.parse() {
                    figures.entry((number, kind.to_owned())).or_default().push(nanos);
                }
            }
        }
    }
    println!("| tracer | event | min ns | median ns |\n|---|---|---|---|");
    for ((number, kind), mut nanos) in figures {
        nanos.sort_by(f64::total_cmp);
        println!("| {} | {kind} | {:.1} | {:.1} |", TRACERS[number].name, nanos[0], nanos[nanos.len() / 2]);
    }
    ExitCode::SUCCESS
}
