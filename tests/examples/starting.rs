//! Records from its first line on, lives for a moment, and ends in one way or another.
//!
//! `starting NUMBER EVENTS MS WAY`: an event `first`, so many events `middle` on each of two threads, all
//! with the number, and at the end an event `last`, with how many there were. It lives for so many
//! milliseconds, and ends by WAY: `return`, `exit` (without destructors), `abort`, `kill`, or `wait`, which
//! prints a line and goes on until a line is sent.

use std::time::{Duration, Instant};
use trace_provider::{Scope, TraceProvider, instant, startup};

fn middle(number: u64, count: u64) {
    for event in 0..count {
        instant!("start", "middle", Scope::Thread, "number" => number, "event" => event);
    }
}

fn main() {
    let begin = Instant::now();
    startup::begin_by_environment();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().filter_map(|text| text.parse().ok()).collect();
    let [number, count, milliseconds] = numbers[..] else { panic!("three numbers") };
    let way = arguments.get(3).expect("a way to end").as_str();
    instant!("start", "first", Scope::Thread, "number" => number);
    instant!("other", "not asked for", Scope::Thread);
    let provider = TraceProvider::new("starting");
    std::thread::scope(|scope| {
        scope.spawn(|| middle(number, count));
        middle(number, count);
    });
    std::thread::park_timeout(Duration::from_millis(milliseconds).saturating_sub(begin.elapsed()));
    let mut sent = 2 * count;
    if way == "wait" {
        println!("ready");
        let mut line = String::new();
        // Events meanwhile, however long it takes.
        let reading = std::thread::spawn(move || std::io::stdin().read_line(&mut line));
        while !reading.is_finished() {
            middle(number, 1);
            sent += 1;
            std::thread::park_timeout(Duration::from_micros(20));
        }
    }
    instant!("start", "last", Scope::Thread, "number" => number, "sent" => sent);
    match way {
        "exit" => {
            // SAFETY: no memory is touched.
            unsafe { libc::_exit(0) };
        }
        "abort" => std::process::abort(),
        "kill" => {
            // SAFETY: a number.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        _ => drop(provider),
    }
}
