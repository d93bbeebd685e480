//! How fast archives become other formats and back; against a loop by hand that formats the same events from
//! memory.
//!
//! Complete events with two arguments. Each result is the minimum and the median of many runs, each run
//! measures all of them, and what the loop by hand writes is byte for byte what the exporter writes.
//! Arguments are parts of the names of rows, if not all are measured.

use serde::Serialize;
use std::hint::black_box;
use std::io::{self, Read};
use trace_benches::Cost;
use trace_benches::archive::{Bytes, index};
use trace_convert::catapult::{Container, Dialect, Options};
use trace_convert::tables::{self, Csv, CsvTexts, Trace};
use trace_convert::{Filter, Jobs, catapult, import, perfetto};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind};
use trace_format::initialization::Initialization;
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::ThreadRef;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{Koid, ProcessKoid, ProviderId, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond};
use trace_reader::{Item, Reader, Value};

/// Events of the archive; with `--test` a thousandth.
const EVENTS: u64 = 1_000_000;
/// Not a divisor of 10⁹, as most clocks.
const COUNTER_RATE: u64 = 2_399_987_654;
const RUNS: usize = 9;
const NAMES: u64 = 40;
const PROCESS: u64 = 1000;

/// An event as a program would keep it.
struct Kept {
    at: u64,
    end: u64,
    thread: u64,
    name: String,
    size: i64,
}

fn events(count: u64) -> Vec<Kept> {
    (0..count)
        .map(|number| Kept {
            at: 40_000_000_000_000 + number * 1050,
            end: 40_000_000_000_000 + number * 1050 + 731,
            thread: PROCESS + 1 + number / 64 % 8,
            name: format!("function number {}", number % NAMES),
            size: number as i64 * 4096,
        })
        .collect()
}

fn archive_of(events: &[Kept], ticks_per_second: TicksPerSecond) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let mut write = |record: Record<'_>| record.encode(&mut bytes).expect("a valid record");
    write(Record::Metadata(Metadata::TraceInfoMagic));
    write(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(1), name: b"provider" }));
    write(Record::Initialization(Initialization { ticks_per_second }));
    for number in 0..NAMES {
        let value = format!("function number {number}");
        write(Record::String(StringRecord { index: number as u16 + 10, value: value.as_bytes() }));
    }
    for (number, text) in (1..).zip(["app", "size", "kind", "buffered"]) {
        write(Record::String(StringRecord { index: number, value: text.as_bytes() }));
    }
    for thread in 1..=8_u8 {
        let (process, koid) = (ProcessKoid(Koid(PROCESS)), ThreadKoid(Koid(PROCESS + u64::from(thread))));
        write(Record::Thread(ThreadRecord { index: thread, process, thread: koid }));
    }
    for (number, event) in (0..).zip(events) {
        let arguments = [
            Argument { name: index(2), value: ArgumentValue::Int64(event.size) },
            Argument { name: index(3), value: ArgumentValue::String(index(4)) },
        ];
        write(Record::Event(Event {
            timestamp: Ticks(event.at),
            thread: ThreadRef::Index(ThreadIndex::new((event.thread - PROCESS) as u8).expect("not 0")),
            category: index(1),
            name: index((number % NAMES) as u16 + 10),
            kind: EventKind::DurationComplete { end: Ticks(event.end) },
            arguments: Arguments::from_slice(&arguments),
        }));
    }
    bytes.0
}

/// The document, by hand.
fn by_hand(events: &[Kept], output: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let mut doubles = ryu::Buffer::new();
    let micros = |nanos: u64| nanos as f64 * (1_000_000.0 / 1e9);
    output.extend_from_slice(br#"{"displayTimeUnit":"ns","traceEvents":["#);
    for (number, event) in events.iter().enumerate() {
        if number > 0 {
            output.push(b',');
        }
        output.extend_from_slice(br#"{"cat":"app","name":""#);
        output.extend_from_slice(event.name.as_bytes());
        output.extend_from_slice(br#"","ts":"#);
        output.extend_from_slice(doubles.format_finite(micros(event.at)).as_bytes());
        output.extend_from_slice(br#","pid":"#);
        output.extend_from_slice(digits.format(PROCESS).as_bytes());
        output.extend_from_slice(br#","tid":"#);
        output.extend_from_slice(digits.format(event.thread).as_bytes());
        output.extend_from_slice(br#","ph":"X","dur":"#);
        output.extend_from_slice(doubles.format_finite(micros(event.end - event.at)).as_bytes());
        output.extend_from_slice(br#","args":{"size":"#);
        output.extend_from_slice(digits.format(event.size).as_bytes());
        output.extend_from_slice(br#","kind":"buffered"}}"#);
    }
    output.extend_from_slice(br#"],"systemTraceEvents":{"type":"fuchsia","events":[]}}"#);
}

#[derive(Serialize)]
struct Derived<'a> {
    cat: &'a str,
    name: &'a str,
    ts: f64,
    pid: u64,
    tid: u64,
    ph: &'a str,
    dur: f64,
    args: DerivedArguments<'a>,
}

#[derive(Serialize)]
struct DerivedArguments<'a> {
    size: i64,
    kind: &'a str,
}

/// An archive's events as JSON, by an exporter that leaves the text to serde_json.
fn of_archive_by_serde(archive: &[u8], output: &mut Vec<u8>) {
    let mut reader = Reader::new(archive).expect("an archive");
    while let Some(record) = reader.next_item().expect("a sound archive") {
        let Item::Event(event) = record.item else { continue };
        let (Some(Value::Int64(size)), Some(Value::String(kind))) =
            (event.arguments.find("size"), event.arguments.find("kind"))
        else {
            continue;
        };
        let EventKind::DurationComplete { end } = event.kind else { continue };
        let micros = |nanos: u64| nanos as f64 * (1_000_000.0 / 1e9);
        let derived = Derived {
            cat: &event.category.to_str(),
            name: &event.name.to_str(),
            ts: micros(event.time.nanos().0),
            pid: event.thread.process.0,
            tid: event.thread.thread.0,
            ph: "X",
            dur: micros(end.0 - event.time.ticks.0),
            args: DerivedArguments { size, kind: &kind.to_str() },
        };
        serde_json::to_writer(&mut *output, &derived).expect("a vector");
        output.push(b',');
    }
}

fn by_serde(events: &[Kept], output: &mut Vec<u8>) {
    let micros = |nanos: u64| nanos as f64 * (1_000_000.0 / 1e9);
    for event in events {
        let derived = Derived {
            cat: "app",
            name: &event.name,
            ts: micros(event.at),
            pid: PROCESS,
            tid: event.thread,
            ph: "X",
            dur: micros(event.end - event.at),
            args: DerivedArguments { size: event.size, kind: "buffered" },
        };
        serde_json::to_writer(&mut *output, &derived).expect("a vector");
        output.push(b',');
    }
}

/// What is measured: a name, the bytes of which the rate is, and a run.
type Row<'a> = (&'static str, usize, Box<dyn Fn(&mut Vec<u8>) + 'a>);

fn trace(archive: &'static [u8]) -> Trace {
    let open = Box::new(move || Ok(Box::new(black_box(archive)) as Box<dyn Read>));
    Trace { name: "archive".to_owned(), open, disorder: None, bytes: Some(archive.len() as u64) }
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (count, runs) = if is_test { (EVENTS / 1000, 1) } else { (EVENTS, RUNS) };
    let kept = events(count);
    let of_counter = TicksPerSecond::new(COUNTER_RATE).expect("not 0");
    let archive: &'static [u8] = archive_of(&kept, TicksPerSecond::NANOSECONDS).leak();
    let counter_archive: &'static [u8] = archive_of(&kept, of_counter).leak();
    let mut json = Vec::new();
    catapult::convert(archive, &mut json).expect("a sound archive");
    let mut hand = Vec::with_capacity(json.len());
    by_hand(&kept, &mut hand);
    assert!(hand == json, "the loop by hand writes something else");
    let mut pftrace = Vec::new();
    perfetto::convert(archive, &mut pftrace, Filter::default()).expect("a sound archive");

    let to_json = |archive: &'static [u8], dialect: Dialect, threads: usize| {
        move |output: &mut Vec<u8>| {
            let options = Options { dialect, jobs: Jobs::of_threads(threads), ..Options::default() };
            let summary = catapult::convert_with(black_box(archive), output, options);
            assert_eq!(summary.expect("a sound archive").events, count);
        }
    };
    let to_perfetto = |threads: usize| {
        move |output: &mut Vec<u8>| {
            let options = perfetto::Options { jobs: Jobs::of_threads(threads), ..Default::default() };
            let summary = perfetto::convert_with(black_box(archive), output, options);
            assert_eq!(summary.expect("a sound archive").events, count);
        }
    };
    let chrome = Dialect::Chrome(Container::Object);
    let mut rows: Vec<Row<'_>> = vec![
        ("JSON by hand, from memory", json.len(), Box::new(|output| by_hand(black_box(&kept), output))),
        (
            "JSON by serde_json, from memory",
            json.len(),
            Box::new(|output| by_serde(black_box(&kept), output)),
        ),
        (
            "FXT to JSON by serde_json",
            json.len(),
            Box::new(|output| of_archive_by_serde(black_box(archive), output)),
        ),
        ("FXT to Catapult", json.len(), Box::new(to_json(archive, Dialect::Fuchsia, 1))),
        ("…, two threads", json.len(), Box::new(to_json(archive, Dialect::Fuchsia, 2))),
        (
            "FXT to Catapult, ticks of a processor",
            json.len(),
            Box::new(to_json(counter_archive, Dialect::Fuchsia, 1)),
        ),
        ("…, two threads", json.len(), Box::new(to_json(counter_archive, Dialect::Fuchsia, 2))),
        ("FXT to Chrome, ticks of a processor", json.len(), Box::new(to_json(counter_archive, chrome, 1))),
        ("…, two threads", json.len(), Box::new(to_json(counter_archive, chrome, 2))),
        ("FXT to Perfetto", archive.len(), Box::new(to_perfetto(1))),
        ("…, two threads", archive.len(), Box::new(to_perfetto(2))),
        (
            "FXT to tables as CSV",
            archive.len(),
            Box::new(|_| {
                let mut csv = Csv::new(CsvTexts::Unchanged, |_| Ok(io::sink())).expect("a sink");
                let summary = tables::fill_whole(trace(archive), &mut csv, &Filter::default());
                assert_eq!(summary.expect("a sound archive").events, count);
            }),
        ),
        (
            "FXT to tables as CSV, two threads",
            archive.len(),
            Box::new(|_| {
                let summary =
                    tables::write_csv(trace(archive), &Filter::default(), CsvTexts::Unchanged, |_| {
                        Ok(io::sink())
                    });
                assert_eq!(summary.expect("a sound archive").events, count);
            }),
        ),
        (
            "FXT to tables as Parquet",
            archive.len(),
            Box::new(|_| {
                let summary = tables::write_parquet(trace(archive), &Filter::default(), |_| Ok(io::sink()));
                assert_eq!(summary.expect("a sound archive").events, count);
            }),
        ),
        (
            "JSON to FXT",
            json.len(),
            Box::new(|output| {
                let summary = import::json::import(black_box(&json[..]), output).expect("a sound document");
                assert_eq!(summary.events, count);
            }),
        ),
        (
            "Perfetto to FXT",
            pftrace.len(),
            Box::new(|output| {
                let summary = import::perfetto::import(black_box(&pftrace[..]), output);
                assert!(summary.expect("sound packets").events >= count);
            }),
        ),
    ];
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let mut number = 0;
    rows.retain(|(name, ..)| {
        number += 1;
        // All are compared with the first one.
        number == 1 || chosen.is_empty() || chosen.iter().any(|chosen| name.contains(chosen))
    });
    let mut output = Vec::with_capacity(2 * json.len());
    let mut costs: Vec<Cost> = rows.iter().map(|(name, ..)| Cost::new(name)).collect();
    for _ in 0..runs {
        for (cost, (.., run)) in costs.iter_mut().zip(&rows) {
            output.clear();
            cost.measure(count, |_| run(&mut output));
            black_box(&mut output);
        }
    }
    println!(
        "{count} events, {:.0} MB of FXT, {:.0} MB of JSON, {:.0} MB of Perfetto's, {runs} runs\n",
        archive.len() as f64 / 1e6,
        json.len() as f64 / 1e6,
        pftrace.len() as f64 / 1e6
    );
    println!(
        "| what | best ns/event | median ns/event | median million events/s | median MB/s | rate to that by hand |"
    );
    println!("|---|---|---|---|---|---|");
    for (cost, (_, bytes, _)) in costs.iter().zip(&rows) {
        println!(
            "| {} | {:.0} | {:.0} | {:.1} | {:.0} | {:.2} |",
            cost.name,
            cost.minimum(),
            cost.median(),
            1e3 / cost.median(),
            *bytes as f64 / count as f64 / cost.median() * 1e3,
            costs[0].median() / cost.median(),
        );
    }
}
