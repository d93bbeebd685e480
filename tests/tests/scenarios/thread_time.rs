//! Recordings with the processor time of threads.

use serde_json::Value as Json;
use std::fs;
use std::path::Path;
use trace_format::event::EventKind;
use trace_tests::archive::{Event, Value};
use trace_tests::{Archive, Requirement, Sandbox, build, native};

/// How long the durations `spinning` and `nested` keep a processor busy, in nanoseconds.
const BUSY: u64 = 5_000_000;
/// How many durations `short` there are.
const SHORT: usize = 100;

fn number(event: &Event, wanted: &str) -> Option<u64> {
    let found = event.event.arguments.iter().find(|(name, _)| name.to_str() == wanted);
    found.map(|(_, value)| match value {
        Value::Uint64(number) => *number,
        other => panic!("{wanted} is {other:?}"),
    })
}

fn record(program: &Path, options: &[&str]) -> (Sandbox, Vec<Event>) {
    let sandbox = Sandbox::new();
    let program = program.to_str().expect("UTF-8");
    let output = sandbox.trace([&["record"], options, &["-o", "trace.fxt", "--", program]].concat());
    native::check(program, &output);
    let events = Archive::read(&sandbox.file("trace.fxt")).events;
    let events = events.into_iter().filter(|event| event.event.category.to_str() == "time").collect();
    (sandbox, events)
}

/// What the thread's clock said in the last instant before a moment and in the first behind another.
fn around(events: &[Event], event: &Event, end: u64) -> [u64; 2] {
    let instants =
        events.iter().filter(|other| other.name() == "around" && other.event.thread == event.event.thread);
    let start = event.event.timestamp.0;
    let times: Vec<(u64, u64)> = instants
        .map(|instant| (instant.event.timestamp.0, number(instant, "time").expect("a time")))
        .collect();
    let before = times.iter().filter(|(at, _)| *at < start).max().expect("an instant before");
    let behind = times.iter().filter(|(at, _)| *at > end).min().expect("an instant behind");
    [before.1, behind.1]
}

fn check(program: &Path) {
    let (sandbox, events) = record(program, &["--thread-time"]);
    let (mut durations, mut longer) = (0, 0);
    for event in &events {
        let time = number(event, "thread_ts");
        match (&event.event.kind, &*event.name()) {
            (EventKind::Instant { .. }, _) => assert!(number(event, "time") <= time, "{event:?}"),
            (EventKind::DurationBegin | EventKind::DurationEnd, _) => {
                let [before, behind] = around(&events, event, event.event.timestamp.0);
                assert!((before..=behind).contains(&time.expect("a time")), "{event:?}");
            }
            (EventKind::DurationComplete { .. }, "full") => {
                assert_eq!(event.event.arguments.len(), 14, "there is room for one more, and not for two");
            }
            (EventKind::DurationComplete { end }, name) => {
                let [before, behind] = around(&events, event, end.0);
                let (start, used) = (time.expect("a time"), number(event, "thread_dur").expect("a time"));
                assert!(before <= start && start + used <= behind, "{before} {behind} {event:?}");
                assert!(["waiting", "short"].contains(&name) || used >= BUSY, "{event:?}");
                let length = end.to_nanos(event.event.rate).0 - event.event.nanos().0;
                longer += usize::from(used > length);
                durations += 1;
            }
            (EventKind::Counter { .. }, _) => assert_eq!(event.event.arguments.len(), 1),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((durations, events.len()), (6 + SHORT, 20 + SHORT));
    // The two clocks may differ by a few nanoseconds, in durations that do something.
    assert!(longer <= 6, "the processor time of {longer} durations is longer than they are");

    let output = sandbox.trace(["convert", "trace.fxt", "--format", "chrome", "trace.json"]);
    native::check("convert", &output);
    let document: Json =
        serde_json::from_slice(&fs::read(sandbox.file("trace.json")).expect("a file")).expect("JSON");
    let entries = document["traceEvents"].as_array().expect("entries").iter();
    let mut spinning: Vec<[f64; 2]> = entries
        .filter(|entry| entry["name"] == "spinning")
        .map(|entry| ["tts", "tdur"].map(|name| entry[name].as_f64().expect("a time")))
        .collect();
    let of_name = events.iter().filter(|event| event.name() == "spinning");
    let mut expected: Vec<[f64; 2]> = of_name
        .map(|event| {
            ["thread_ts", "thread_dur"].map(|name| number(event, name).expect("a time") as f64 / 1000.0)
        })
        .collect();
    spinning.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    expected.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    assert_eq!(spinning, expected);

    let (_, events) = record(program, &[]);
    assert_eq!(events.len(), 20 + SHORT);
    assert!(events.iter().all(|event| number(event, "thread_ts").is_none()), "only if it is asked for");
}

//= docs/recording.md#thread-times
#[test]
fn events_have_the_processor_time_of_their_thread() {
    check(build::program("thread_time"));
}

//= docs/recording.md#thread-times
#[test]
fn events_of_c_have_the_processor_time_of_their_thread() {
    if !Requirement::Compilers.is_met("events_of_c_have_the_processor_time_of_their_thread") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    native::program("gcc", &["thread_time.c"], &["-O2", "-pthread", "-D_GNU_SOURCE"], &program);
    check(&program);
}
