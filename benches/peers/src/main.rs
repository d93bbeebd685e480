//! What a scoped span and an instant cost with this project's engine and with other tracers, and what those
//! of the `tracing` crate cost with its subscribers, in one run.
//!
//! `cargo run --release -- [ROUNDS] [others|tracing]`: each tracer has a process of its own, and the
//! processes take turns, round after round. A round is a burst of events on one thread, then on two at
//! once. The tables have the minimum and the median of all rounds in ns per event and thread, and the
//! processor time per event of all threads of the process, also those that the tracer works in behind the
//! scenes.
//!
//! `cargo run --release -- losses [TRIALS]`: what is missing after `kill -9`.

mod losses;
#[cfg(feature = "lttng")]
mod lttng;
mod of_tracing;
mod ours;
mod tracers;

use of_tracing::{KINDS, SUBSCRIBERS, Subscriber};
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

/// A kind of event: its lines are results.
fn play_kind(kind: &str, body: fn(u64) -> f64, flush: fn()) {
    body(100);
    let before = processor_nanos();
    println!("{kind} {}", body(EVENTS));
    flush();
    println!("{kind}, all threads {}", (processor_nanos() - before) / EVENTS as f64);
    println!("{kind}, two at once {}", two_threads(body));
    flush();
}

/// One tracer's process: a round.
fn play(tracer: &Tracer) {
    let recording = (tracer.begin)();
    for (kind, body) in [("span", tracer.span), ("instant", tracer.instant)] {
        if let Some(body) = body {
            play_kind(kind, body, tracer.flush);
        }
    }
    drop(recording);
}

/// One subscriber's process: a round.
fn play_subscriber(subscriber: &Subscriber) {
    let recording = (subscriber.begin)();
    for (kind, body) in KINDS {
        play_kind(kind, body, || ());
    }
    drop(recording);
}

/// The results of one table, by row and column.
#[derive(Default)]
struct Table(BTreeMap<(usize, String), Vec<f64>>);

impl Table {
    /// Has a process play a round.
    fn round(&mut self, row: usize, name: &str) {
        let program = std::env::current_exe().expect("a path");
        let output = Command::new(program).env(ROLE, name).output().expect("the program runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Some((kind, nanos)) = line.rsplit_once(' ') else { continue };
            if let Ok(nanos) = nanos.parse() {
                self.0.entry((row, kind.to_owned())).or_default().push(nanos);
            }
        }
    }

    /// Minimum and median, in the columns of the page.
    fn print(&mut self, title: &str, names: &[&str], columns: &[String]) {
        println!("| {title} | {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len() + 1));
        for (row, name) in names.iter().enumerate() {
            let cells = columns.iter().map(|column| match self.0.get_mut(&(row, column.clone())) {
                None => "–".to_owned(),
                Some(nanos) => {
                    nanos.sort_by(f64::total_cmp);
                    format!("{:.1} / {:.1}", nanos[0], nanos[nanos.len() / 2])
                }
            });
            println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
}

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(ROLE) {
        if let Some(tracer) = TRACERS.iter().find(|tracer| tracer.name == name) {
            play(tracer);
        } else if let Some(subscriber) = SUBSCRIBERS.iter().find(|subscriber| subscriber.name == name) {
            play_subscriber(subscriber);
        } else {
            return ExitCode::FAILURE;
        }
        return ExitCode::SUCCESS;
    }
    if losses::is_victim() {
        losses::play();
    }
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == "losses") {
        losses::print(arguments.get(1).and_then(|trials| trials.parse().ok()).unwrap_or(100));
        return ExitCode::SUCCESS;
    }
    let rounds = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(20);
    let wants =
        |table: &str| !arguments.iter().any(|argument| argument.parse::<u32>().is_err() && argument != table);
    let others: Vec<_> = TRACERS.iter().map(|tracer| tracer.name).filter(|_| wants("others")).collect();
    let subscribers: Vec<_> =
        SUBSCRIBERS.iter().map(|subscriber| subscriber.name).filter(|_| wants("tracing")).collect();
    let (mut first, mut second) = (Table::default(), Table::default());
    for _ in 0..rounds {
        others.iter().enumerate().for_each(|(row, name)| first.round(row, name));
        subscribers.iter().enumerate().for_each(|(row, name)| second.round(row, name));
    }
    let with_threads =
        |kind: &&str| [(*kind).to_owned(), format!("{kind}, all threads"), format!("{kind}, two at once")];
    if !others.is_empty() {
        let columns: Vec<_> = ["span", "instant"].iter().flat_map(with_threads).collect();
        first.print("tracer", &others, &columns);
    }
    if !subscribers.is_empty() {
        let alone = KINDS.map(|(kind, _)| kind.to_owned());
        let columns: Vec<_> = alone
            .into_iter()
            .chain(["event", "span"].iter().flat_map(|kind| with_threads(kind).into_iter().skip(1)))
            .collect();
        println!();
        second.print("subscriber", &subscribers, &columns);
    }
    ExitCode::SUCCESS
}
