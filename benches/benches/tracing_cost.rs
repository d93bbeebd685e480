//! What a span and an event of the `tracing` crate cost: without a subscriber, with a registry alone, and
//! recorded by a subscriber or a layer of ours, on and off; beside reading the clock, in one run.
//!
//! A process has one subscriber, so each has a process of its own; they take turns, round after round. A
//! buffer becomes full, so each burst has its own. `--test` makes it short.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::sync::Barrier;
use std::time::Instant;
use trace_benches::recording::Recording;
use tracing::{Metadata, Subscriber, info, info_span};
use tracing_fxt::Options;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::prelude::*;

/// Operations of a burst: the largest records of one take less than half of the buffer.
const TIMES: u64 = 200_000;
const ROUNDS: usize = 15;
const ROLE: &str = "TRACING_COST";

/// Subscribers, and whether a recording runs.
const MODES: [(&str, bool); 9] = [
    ("no subscriber", false),
    ("registry alone", false),
    ("subscriber", false),
    ("layer", false),
    ("layer beside another", false),
    ("layer beside another, always", false),
    ("subscriber", true),
    ("layer", true),
    ("layer beside another", true),
];

/// A layer that wants everything, and does nothing.
struct Other;

impl<S: Subscriber> Layer<S> for Other {
    fn enabled(&self, _metadata: &Metadata<'_>, _context: Context<'_, S>) -> bool {
        true
    }
}

fn install(mode: &str) {
    match mode {
        "no subscriber" => {}
        "registry alone" => tracing_subscriber::registry().init(),
        "subscriber" => {
            tracing::subscriber::set_global_default(Options::new().subscriber()).expect("there is no other");
        }
        "layer" => tracing_subscriber::registry().with(tracing_fxt::layer()).init(),
        "layer beside another" => {
            tracing_subscriber::registry().with(Other).with(tracing_fxt::layer()).init();
        }
        _ => tracing_subscriber::registry().with(Other).with(Options::new().always().layer()).init(),
    }
}

type Kind = (&'static str, fn(u64));

const KINDS: [Kind; 5] = [
    ("event with a message", |_| info!("a message of some length")),
    ("event with a message and two fields", |n| info!(n, text = black_box("sixteen bytes ok"), "a message")),
    ("event with two fields", |n| info!(n, text = black_box("sixteen bytes ok"))),
    ("span", |_| drop(info_span!("a span").entered())),
    ("span with a field", |n| drop(info_span!("a span", n).entered())),
];

fn burst(times: u64, run: fn(u64)) -> f64 {
    let begin = Instant::now();
    (0..times).for_each(run);
    begin.elapsed().as_nanos() as f64 / times as f64
}

/// Two threads at once; the slower counts.
fn two_threads(times: u64, run: fn(u64)) -> f64 {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let thread = || {
            run(0);
            barrier.wait();
            burst(times, run)
        };
        let (first, second) = (scope.spawn(thread), scope.spawn(thread));
        first.join().expect("no panic").max(second.join().expect("no panic"))
    })
}

/// A process of one mode: a line for each kind.
fn play(mode: &str, is_on: bool, times: u64) {
    install(mode);
    println!("reading the clock\t{}", burst(times, |_| _ = black_box(zx_sim::ticks::now())));
    for (kind, run) in KINDS {
        let recording = is_on.then(Recording::start);
        run(0);
        println!("{kind}\t{}", burst(times, run));
        recording.into_iter().for_each(Recording::stop);
        if is_on {
            let recording = Recording::start();
            println!("{kind}, two threads\t{}", two_threads(times / 2, run));
            recording.stop();
        }
    }
}

fn main() -> ExitCode {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (times, rounds) = if is_test { (1000, 1) } else { (TIMES, ROUNDS) };
    if let Some((mode, is_on)) =
        std::env::var(ROLE).ok().and_then(|role| MODES.get(role.parse::<usize>().ok()?).copied())
    {
        play(mode, is_on, times);
        return ExitCode::SUCCESS;
    }
    let mut found: BTreeMap<(usize, String), Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for number in 0..MODES.len() {
            let program = std::env::current_exe().expect("a path");
            let mut command = Command::new(program);
            command.env(ROLE, number.to_string());
            if is_test {
                command.arg("--test");
            }
            let output = command.output().expect("the program runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                let (kind, nanos) = line.split_once('\t').expect("a kind and a number");
                let nanos = nanos.parse().expect("a number");
                found.entry((number, kind.to_owned())).or_default().push(nanos);
            }
        }
    }
    println!("| subscriber | recorded | what | minimum ns | median ns |\n|---|---|---|---|---|");
    for ((number, kind), mut nanos) in found {
        nanos.sort_by(f64::total_cmp);
        let (mode, is_on) = MODES[number];
        let is_on = if is_on { "yes" } else { "no" };
        println!("| {mode} | {is_on} | {kind} | {:.1} | {:.1} |", nanos[0], nanos[nanos.len() / 2]);
    }
    ExitCode::SUCCESS
}
