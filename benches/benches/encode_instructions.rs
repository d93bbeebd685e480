//! How many instructions it takes to write a record through `trace-format`, against storing the same words by
//! hand.
//!
//! Counted by callgrind, which this program runs on itself: the difference between two runs of different
//! length is what each record costs, the loop around it included. `--check` fails if a record costs more than
//! its limit.

use std::hint::black_box;
use std::process::ExitCode;
use trace_benches::callgrind::count;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::{Scheduling, ThreadState};
use trace_format::sink::SliceSink;
use trace_format::units::{Koid, StringIndex, ThreadIndex, ThreadKoid, Ticks};

/// A record that is written in two ways, by functions that write so many of them.
struct Case {
    name: &'static str,
    words: usize,
    encoded: fn(u64),
    by_hand: fn(u64),
}

/// So many instructions more than stores by hand are still no regression.
const MARGIN: u64 = 2;

const THREAD: ThreadRef = ThreadRef::Index(ThreadIndex::new(1).expect("not 0"));
const CATEGORY: StringRef<'static> = StringRef::Index(StringIndex::new(1).expect("not 0"));
const NAME: StringRef<'static> = StringRef::Index(StringIndex::new(4).expect("not 0"));
const ARGUMENT: StringRef<'static> = StringRef::Index(StringIndex::new(5).expect("not 0"));

/// Writes one record after the other into the same words.
#[inline(always)]
fn repeat<const N: usize>(times: u64, mut write: impl FnMut(&mut [u64; N], u64)) {
    let mut words = [0; N];
    for number in 0..times {
        write(&mut words, black_box(number));
        black_box(&mut words);
    }
}

#[inline(always)]
fn event(kind: EventKind, timestamp: u64, arguments: Arguments<'_>, words: &mut [u64]) {
    let event = Event {
        timestamp: Ticks(timestamp),
        thread: THREAD,
        category: CATEGORY,
        name: NAME,
        kind,
        arguments,
    };
    event.encode(&mut SliceSink::new(words)).expect("it fits");
}

const CASES: [Case; 4] = [
    Case {
        name: "instant",
        words: 2,
        encoded: |times| {
            repeat::<2>(times, |words, number| {
                event(EventKind::Instant { scope: Scope::Thread }, number, Arguments::new(&[]), words);
            });
        },
        by_hand: |times| repeat::<2>(times, |words, number| *words = [0x0004_0001_0100_0024, number]),
    },
    Case {
        name: "complete duration",
        words: 3,
        encoded: |times| {
            repeat::<3>(times, |words, number| {
                let kind = EventKind::DurationComplete { end: Ticks(number + 7) };
                event(kind, number, Arguments::new(&[]), words);
            });
        },
        by_hand: |times| {
            repeat::<3>(times, |words, number| *words = [0x0004_0001_0104_0034, number, number + 7]);
        },
    },
    Case {
        name: "instant with an int64",
        words: 4,
        encoded: |times| {
            repeat::<4>(times, |words, number| {
                let arguments = [Argument { name: ARGUMENT, value: ArgumentValue::Int64(number as i64) }];
                let kind = EventKind::Instant { scope: Scope::Thread };
                event(kind, number, Arguments::new(&arguments), words);
            });
        },
        by_hand: |times| {
            repeat::<4>(times, |words, number| *words = [0x0004_0001_0110_0044, number, 0x5_0023, number]);
        },
    },
    Case {
        name: "context switch",
        words: 4,
        encoded: |times| {
            repeat::<4>(times, |words, number| {
                let switch = Scheduling::ContextSwitch {
                    timestamp: Ticks(number),
                    cpu: 1,
                    outgoing_state: ThreadState::BLOCKED,
                    outgoing: ThreadKoid(Koid(number)),
                    incoming: ThreadKoid(Koid(number + 1)),
                    arguments: Arguments::new(&[]),
                };
                switch.encode(&mut SliceSink::new(words)).expect("it fits");
            });
        },
        by_hand: |times| {
            repeat::<4>(times, |words, number| *words = [0x1000_0030_0010_0048, number, number, number + 1]);
        },
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [run, place, way, times] = &arguments[..]
        && run == "--run"
    {
        let case = &CASES[place.parse::<usize>().expect("a place")];
        let run = if way == "encoded" { case.encoded } else { case.by_hand };
        run(times.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let is_check = arguments.iter().any(|argument| argument == "--check");
    let mut is_over = false;
    println!("| record | words | instructions | by hand |\n|---|---|---|---|");
    for (place, case) in CASES.iter().enumerate() {
        let counts = count(&[&place.to_string(), "encoded"])
            .and_then(|encoded| Ok((encoded, count(&[&place.to_string(), "by-hand"])?)));
        let (encoded, by_hand) = match counts {
            Ok(counts) => counts,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        println!("| {} | {} | {encoded} | {by_hand} |", case.name, case.words);
        if is_check && encoded > by_hand + MARGIN {
            eprintln!("{}: {encoded} instructions, by hand {by_hand}", case.name);
            is_over = true;
        }
    }
    if is_over { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
