//! How long events wait while a recording goes over to another buffer, and what it takes a program to begin a
//! recording of its own.
//!
//! A thread records as fast as it can. Its longest event around a change of buffers is compared with the
//! longest of as many periods without one. `--test` makes it short.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace_benches::Cost;
use trace_engine::{BufferMode, Config, Disposition, Region, Scope, engine, instant};
use trace_tests::Sandbox;
use trace_tests::scene::Scene;

const BUFFER_BYTES: usize = 4 << 20;
const PERIOD: Duration = Duration::from_millis(5);

fn config() -> Config {
    Config::new(u64::from(std::process::id()), "bench", 1_000_000_000)
}

fn region() -> Region {
    Region::on_heap(BUFFER_BYTES).0
}

/// Microseconds of the longest event in a period, in the middle of which `act` is called.
fn longest(longest: &AtomicU64, act: impl FnOnce()) -> f64 {
    longest.store(0, Ordering::Relaxed);
    std::thread::park_timeout(PERIOD / 2);
    act();
    std::thread::park_timeout(PERIOD / 2);
    longest.load(Ordering::Relaxed) as f64 / 1e3
}

/// A program that records itself, beside the same one that does not, from its start to its end.
fn begin_programs(runs: usize) {
    let sandbox = Sandbox::new();
    let mut costs = [("not recorded", None), ("recorded from the first line", Some("start"))]
        .map(|(name, categories)| (Cost::new(name), categories));
    for _ in 0..runs {
        for (cost, categories) in &mut costs {
            let mut command = sandbox.command("starting");
            command.args(["1", "1", "0", "return"]);
            categories.iter().for_each(|categories| _ = command.env("TRACE_STARTUP", categories));
            let begin = Instant::now();
            assert!(command.output().expect("it runs").status.success());
            cost.push(begin.elapsed().as_secs_f64() * 1e3);
            for session in Scene::sessions_of(&sandbox) {
                std::fs::remove_dir_all(session).expect("its directory");
            }
        }
    }
    println!("\n| a program of one event | least ms | median ms |\n|---|---|---|");
    for (cost, _) in costs {
        println!("| {} | {:.2} | {:.2} |", cost.name, cost.minimum(), cost.median());
    }
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let runs = if is_test { 3 } else { 200 };
    let engine = engine::initialize(region(), BufferMode::Circular, config()).expect("the engine is idle");
    engine.start(Disposition::Retain, &[]).expect("it starts");
    let is_over = AtomicBool::new(false);
    let longest_event = AtomicU64::new(0);
    let (mut usual, mut held, mut whole) = (Cost::new("usual"), Cost::new("held"), Cost::new("whole"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let begin = Instant::now();
                instant!("bench", "event", Scope::Thread);
                let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
                longest_event.fetch_max(nanos, Ordering::Relaxed);
            }
        });
        for _ in 0..runs {
            usual.push(longest(&longest_event, || ()));
            let next = region();
            held.push(longest(&longest_event, || {
                let begin = Instant::now();
                let stopped =
                    engine.go_over(next, BufferMode::Circular, config(), &[]).expect("it goes over");
                whole.push(begin.elapsed().as_secs_f64() * 1e6);
                assert_eq!(stopped.stragglers, 0);
            }));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("| the longest event of a thread in 5 ms | least µs | median µs |\n|---|---|---|");
    for (name, cost) in [("as usual", &usual), ("while the buffer changes", &held)] {
        println!("| {name} | {:.0} | {:.0} |", cost.minimum(), cost.median());
    }
    println!("| the dispatcher's whole work | {:.0} | {:.0} |", whole.minimum(), whole.median());
    begin_programs(if is_test { 2 } else { 100 });
}
