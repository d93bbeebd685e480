//! `trace time`: prints the time as it is in traces.

use crate::args::Time;
use crate::connection;
use crate::shell::exit::Failure;
use crate::shell::json::{self, Answer};
use crate::shell::stdio::{print, say};
use serde_json::{Value, json};
use std::io::BufRead;
use zx_sim::ticks::{self, Clock};

/// Prints the time, once or for each `t` on stdin.
pub fn run(options: &Time) -> Result<(), Failure> {
    let clock = clock();
    if !options.interactive {
        return if options.json {
            Answer::of(machine(clock, ticks::now())).give();
            Ok(())
        } else {
            print_now(clock)
        };
    }
    say!("trace: t prints the time in microseconds, as it is in traces; q quits");
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::new(format!("cannot read stdin: {error}")))?;
        match line.trim() {
            "t" if options.json => {
                let mut line = machine(clock, ticks::now());
                line["version"] = json::VERSION.into();
                json::print_line(&line)?;
            }
            "t" => print_now(clock)?,
            "q" => break,
            "" => {}
            other => say!("trace: {other:?} is neither t nor q"),
        }
    }
    Ok(())
}

/// The clock that the processes of this machine have agreed on; otherwise it is measured.
fn clock() -> Clock {
    let known = connection::directories().into_iter().filter(|directory| directory.join("ticks").is_file());
    known.filter_map(|directory| Clock::load_or_create(&directory).ok()).next().unwrap_or_else(Clock::measure)
}

fn nanos(clock: Clock, now: u64) -> u128 {
    u128::from(now) * 1_000_000_000 / u128::from(clock.ticks_per_second)
}

fn print_now(clock: Clock) -> Result<(), Failure> {
    let nanos = nanos(clock, ticks::now());
    print(&format!("{}.{:03}\n", nanos / 1000, nanos % 1000))
}

fn machine(clock: Clock, now: u64) -> Value {
    json!({
        "time_ns": u64::try_from(nanos(clock, now)).unwrap_or(u64::MAX),
        "ticks": now,
        "ticks_per_second": clock.ticks_per_second,
        "clock_source": clock.source.name(),
    })
}
