//! Whether imports take as many instructions for an event of a long trace as for one of a short trace,
//! whatever waits or was defined before.
//!
//! Counted by callgrind, which this program runs on itself, with traces of one, two and four times as many
//! events. `--check` fails if an event of the longer half costs more than a quarter more than one of the
//! shorter half.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;
use trace_benches::callgrind::instructions;
use trace_convert::import::{ftrace, json, perfetto};

/// Events of the shortest trace.
const EVENTS: u64 = 4_000;
/// What an event may cost, in hundredths of what it costs in a trace of half the length.
const MOST: u64 = 125;

/// What waits or is known, and a trace with so many of it.
type Case = (&'static str, fn(u64));

const CASES: [Case; 8] = [
    ("JSON: ends of flows", |events| {
        import_json(events, |text, number| {
            let end = 1_000_000 + number;
            let _ = write!(
                text,
                r#"{{"ph":"f","ts":{end},"pid":1,"tid":1,"id":{number},"name":"f","cat":"c"}},"#
            );
            let _ =
                write!(text, r#"{{"ph":"X","ts":{number},"dur":1,"pid":1,"tid":1,"name":"x","cat":"c"}},"#);
        });
    }),
    ("JSON: spans and operations that stay open", |events| {
        import_json(events, |text, number| {
            let _ = write!(text, r#"{{"ph":"B","ts":{number},"pid":1,"tid":1,"name":"x","cat":"c"}},"#);
            let _ = write!(text, r#"{{"ph":"b","ts":{number},"pid":1,"tid":1,"id":{number},"name":"o"}},"#);
        });
    }),
    ("JSON: counters, objects and threads", |events| {
        import_json(events, |text, number| {
            let _ = write!(
                text,
                r#"{{"ph":"C","ts":{number},"pid":1,"id":{number},"name":"c","args":{{"v":1}}}},"#
            );
            let _ = write!(text, r#"{{"ph":"O","ts":{number},"pid":1,"id":{number},"name":"o"}},"#);
            let _ = write!(text, r#"{{"ph":"E","ts":{number},"pid":1,"tid":{number}}},"#);
        });
    }),
    ("JSON: names, metadata and phases", |events| {
        import_json(events, |text, number| {
            let _ = write!(
                text,
                r#"{{"ph":"M","pid":{number},"name":"process_name","args":{{"name":"p{number}"}}}},"#
            );
            let _ = write!(text, r#"{{"ph":"M","pid":{number},"name":"m{number}"}},"#);
            let _ = write!(text, r#"{{"ph":"p{number}","ts":1,"pid":1}},"#);
        });
    }),
    ("Perfetto: counters of one name", |events| {
        import_packets(events, |number| {
            let incremental = Message::default().number(5, 1);
            let track = Message::default().number(1, number + 1).text(2, "counter").message(8, &incremental);
            let value = Message::default().number(9, TYPE_COUNTER).number(11, number + 1).number(30, 1);
            [packet().message(60, &track), event(number, &value)]
        });
    }),
    ("Perfetto: spans that stay open, flows, names", |events| {
        import_packets(events, |number| {
            let name = Message::default().number(1, number).text(2, &format!("name {number}"));
            let data = Message::default().message(2, &name);
            let begin = Message::default().number(9, TYPE_SLICE_BEGIN).number(11, number % 10);
            let begin = begin.number(10, number).number(36, number);
            [packet().message(12, &data), event(number, &begin)]
        });
    }),
    ("Perfetto: values within values", |events| {
        // One event, whose longest name is in the name of each value.
        let list = Message::default().text(10, &"n".repeat(events as usize));
        let list = (0..events).fold(list, |list, _| list.message(12, &Message::default()));
        let begin = Message::default().number(9, TYPE_SLICE_BEGIN).message(4, &list);
        import_packets(1, |number| [event(number, &begin), packet()]);
    }),
    ("ftrace: threads, spans and operations", |events| {
        let mut text = String::from("# tracer: nop\n");
        for number in 0..events {
            let (task, at) = (1 + number, format!("{}.{:06}", number / 1000, number % 1000));
            let _ = writeln!(text, " app-{task} (1) [000] .... {at}: tracing_mark_write: B|1|span");
            let _ = writeln!(text, " app-{task} (1) [000] .... {at}: tracing_mark_write: S|1|job|{number}");
        }
        let summary = ftrace::import(text.as_bytes(), io::sink()).expect("a trace");
        assert_eq!(summary.events, 2 * events);
    }),
];

fn import_json(events: u64, add: fn(&mut String, u64)) {
    let mut text = String::from("[");
    (0..events).for_each(|number| add(&mut text, number));
    json::import(text.as_bytes(), io::sink()).expect("a trace");
}

/// A message of Perfetto's.
#[derive(Default)]
struct Message(Vec<u8>);

/// Kinds of track events.
const TYPE_SLICE_BEGIN: u64 = 1;
const TYPE_COUNTER: u64 = 4;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn text(mut self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes());
        self
    }

    fn message(mut self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0);
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

fn packet() -> Message {
    Message::default().number(10, 1)
}

fn event(at: u64, event: &Message) -> Message {
    packet().number(8, at).message(11, event)
}

fn import_packets(events: u64, make: impl Fn(u64) -> [Message; 2]) {
    let mut trace = Message::default();
    (0..events).flat_map(make).for_each(|packet| trace.bytes(1, &packet.0));
    perfetto::import(&trace.0[..], io::sink()).expect("a trace");
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [run, place, events] = &arguments[..]
        && run == "--run"
    {
        let (_, import) = CASES[place.parse::<usize>().expect("a place")];
        import(events.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let is_check = arguments.iter().any(|argument| argument == "--check");
    let mut is_over = false;
    println!(
        "| what | instructions for each of {EVENTS} more | for each of {} more |\n|---|---|---|",
        2 * EVENTS
    );
    for (place, (name, _)) in CASES.iter().enumerate() {
        let run = |events| instructions(&[&place.to_string()], events);
        let runs = run(EVENTS).and_then(|one| Ok([one, run(2 * EVENTS)?, run(4 * EVENTS)?]));
        let [one, two, four] = match runs {
            Ok(runs) => runs,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let (first, second) = ((two - one) / EVENTS, (four - two) / (2 * EVENTS));
        println!("| {name} | {first} | {second} |");
        if second * 100 > first * MOST {
            eprintln!("{name}: {second} instructions for an event, {first} in a trace of half the length");
            is_over = true;
        }
    }
    if is_over && is_check { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
