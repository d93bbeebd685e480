//! What goes in comes out: exact events, names, arguments, threads and times.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::process::Output;
use trace_format::event::{EventKind, Scope};
use trace_format::units::{Koid, ProviderId};
use trace_tests::archive::{Event, Value};
use trace_tests::{Archive, Sandbox};

/// What `emit` says: its pid, and its threads' ids in the order of their numbers.
fn ids(stdout: &[u8]) -> (u64, Vec<u64>) {
    let text = String::from_utf8_lossy(stdout).into_owned();
    let mut numbers = text.split_whitespace().map(|number| number.parse().expect("a number"));
    (numbers.next().expect("a pid"), numbers.collect())
}

fn kind(event: &Event) -> String {
    let name = match event.event.kind {
        EventKind::Instant { scope: Scope::Thread } => "instant",
        EventKind::Instant { scope: Scope::Process } => "process instant",
        EventKind::Instant { scope: Scope::Global } => "global instant",
        EventKind::Counter { .. } => "counter",
        EventKind::DurationBegin => "begin",
        EventKind::DurationEnd => "end",
        EventKind::DurationComplete { .. } => "scope",
        EventKind::AsyncBegin { .. } => "async begin",
        EventKind::AsyncInstant { .. } => "async instant",
        EventKind::AsyncEnd { .. } => "async end",
        EventKind::FlowBegin { .. } => "flow begin",
        EventKind::FlowStep { .. } => "flow step",
        EventKind::FlowEnd { .. } => "flow end",
        EventKind::Unknown { .. } => "unknown",
    };
    name.to_owned()
}

const KINDS: [&str; 13] = [
    "instant",
    "process instant",
    "global instant",
    "counter",
    "begin",
    "end",
    "scope",
    "async begin",
    "async instant",
    "async end",
    "flow begin",
    "flow step",
    "flow end",
];

fn check(threads: u64, count: u64) {
    let sandbox = Sandbox::new();
    let output =
        sandbox.record(&["--categories", "emit"], "emit", &[&threads.to_string(), &count.to_string()]);
    let (pid, tids) = ids(&output.stdout);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.providers.values().collect::<Vec<_>>(), ["trace_manager", "emit"]);
    assert_eq!(archive.processes[&pid], "emit");
    assert_eq!(archive.events.len() as u64, threads * count * KINDS.len() as u64);
    assert!(archive.filled_up.is_empty());
    assert!(archive.rates.iter().all(|rate| *rate == archive.rates[0]));
    for (number, tid) in tids.iter().enumerate() {
        assert_eq!(archive.threads[tid], format!("emit-{number}"));
        let events: Vec<&Event> =
            archive.events.iter().filter(|event| event.event.thread == Koid(*tid)).collect();
        assert!(events.iter().all(|event| event.event.process == Koid(pid)));
        assert!(events.iter().all(|event| event.event.category.as_bytes() == b"emit"));
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for event in &events {
            *counts.entry(kind(event)).or_default() += 1;
        }
        assert_eq!(counts, KINDS.iter().map(|kind| ((*kind).to_owned(), count)).collect());
        let written_at = |event: &Event| match event.event.kind {
            EventKind::DurationComplete { end } => end,
            _ => event.event.timestamp,
        };
        assert!(
            events.windows(2).all(|pair| written_at(pair[0]) < written_at(pair[1])),
            "thread {number} goes back in time"
        );
        for kind_name in KINDS.iter().filter(|name| **name != "counter") {
            let rounds: Vec<u64> = events
                .iter()
                .filter(|event| kind(event) == **kind_name)
                .map(|event| event.u64("round"))
                .collect();
            assert_eq!(rounds, (0..count).collect::<Vec<_>>(), "{kind_name}");
        }
        check_details(number as u64, &events, count);
    }
}

fn check_details(thread: u64, events: &[&Event], count: u64) {
    let of = |name: &str| events.iter().filter(|event| kind(event) == name).copied().collect::<Vec<_>>();
    for (round, event) in (0..count).zip(of("instant")) {
        let arguments: Vec<(String, String)> = event
            .event
            .arguments
            .iter()
            .map(|(name, value)| (name.to_str().into_owned(), argument(value)))
            .collect();
        let expected = [
            ("thread", format!("{thread}u64")),
            ("round", format!("{round}u64")),
            ("text", "grün".to_owned()),
            ("none", "null".to_owned()),
            ("bool", "true".to_owned()),
            ("i32", "-5i32".to_owned()),
            ("u32", "7u32".to_owned()),
            ("i64", format!("{}i64", i64::MIN)),
            ("u64", format!("{}u64", u64::MAX)),
            ("f64", "0.1f64".to_owned()),
            ("pointer", "0x1000".to_owned()),
            ("koid", "#99".to_owned()),
            ("blob", "[1, 2, 3]".to_owned()),
        ];
        assert_eq!(arguments, expected.map(|(name, value)| (name.to_owned(), value)));
    }
    for (round, event) in (0..count).zip(of("counter")) {
        assert_eq!(event.event.kind, EventKind::Counter { id: thread });
        assert_eq!(event.u64("value"), round);
    }
    let id = |round: u64| (thread + 1) << 32 | round;
    for (round, event) in (0..count).zip(of("async end")) {
        assert_eq!(event.event.kind, EventKind::AsyncEnd { id: id(round) });
    }
    for (round, event) in (0..count).zip(of("flow step")) {
        assert_eq!(event.event.kind, EventKind::FlowStep { id: id(round) });
    }
    for (scope, inside) in of("scope").into_iter().zip(of("flow end")) {
        let EventKind::DurationComplete { end } = scope.event.kind else { panic!("a scope is complete") };
        assert!(scope.event.timestamp < inside.event.timestamp && inside.event.timestamp < end);
    }
}

fn argument(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int32(value) => format!("{value}i32"),
        Value::Uint32(value) => format!("{value}u32"),
        Value::Int64(value) => format!("{value}i64"),
        Value::Uint64(value) => format!("{value}u64"),
        Value::Double(value) => format!("{value}f64"),
        Value::String(value) => value.to_str().into_owned(),
        Value::Pointer(value) => format!("{value:#x}"),
        Value::Koid(koid) => format!("#{koid}"),
        Value::Blob(bytes) => format!("{bytes:?}"),
        Value::Unknown => "?".to_owned(),
    }
}

#[test]
fn one_thread() {
    check(1, 7);
}

#[test]
fn four_threads() {
    check(4, 500);
}

#[test]
fn the_json_holds_the_same() {
    let sandbox = Sandbox::new();
    let output =
        sandbox.record(&["--output-file", "direct.json", "--format", "catapult"], "emit", &["3", "40"]);
    let (pid, tids) = ids(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("the Perfetto UI refuses"), "{stderr}");
    assert_eq!(sandbox.files(), ["direct.json"]);
    check_json(&fs::read(sandbox.file("direct.json")).unwrap(), pid, &tids, 40);

    let output = sandbox.record(&[], "emit", &["3", "40"]);
    let (pid, tids) = ids(&output.stdout);
    assert!(sandbox.trace(["convert", "--format", "catapult", "trace.fxt"]).status.success());
    let converted = fs::read(sandbox.file("trace.json")).unwrap();
    check_json(&converted, pid, &tids, 40);
    let streamed = sandbox.trace(["convert", "--format", "catapult", "trace.fxt", "-"]);
    assert_eq!(streamed.stdout, converted);
    check_times(&sandbox, &converted);
}

fn check_json(bytes: &[u8], pid: u64, tids: &[u64], count: u64) {
    let document: Json = serde_json::from_slice(bytes).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let of_thread = |tid: u64| events.iter().filter(move |event| event["tid"] == tid);
    for (number, tid) in tids.iter().enumerate() {
        let mut phases: BTreeMap<&str, u64> = BTreeMap::new();
        for event in of_thread(*tid) {
            assert_eq!(event["pid"], pid);
            *phases.entry(event["ph"].as_str().unwrap()).or_default() += 1;
        }
        // Instants of three scopes and of the other category.
        let expected = [
            ("B", 1),
            ("C", 1),
            ("E", 1),
            ("X", 1),
            ("b", 1),
            ("e", 1),
            ("f", 1),
            ("i", 4),
            ("n", 1),
            ("s", 1),
            ("t", 1),
        ];
        assert_eq!(phases, expected.map(|(phase, times)| (phase, times * count)).into());
        let last = of_thread(*tid).rfind(|event| event["name"] == "instant").unwrap();
        let args = serde_json::json!({
            "thread": number, "round": count - 1, "text": "grün", "bool": true, "i32": -5, "u32": 7,
            "i64": i64::MIN, "u64": u64::MAX, "f64": 0.1, "pointer": "0x1000", "koid": "#99", "blob": "AQID",
        });
        assert_eq!(last["args"], args);
        assert_eq!(last["s"], "t");
    }
    let names = document["systemTraceEvents"]["events"].as_array().unwrap();
    assert!(names.contains(&serde_json::json!({"ph": "p", "pid": pid, "name": "emit"})), "{names:?}");
    for (number, tid) in tids.iter().enumerate() {
        let name = format!("emit-{number}");
        assert!(names.contains(&serde_json::json!({"ph": "t", "pid": pid, "tid": tid, "name": name})));
    }
}

/// The times of the JSON lead back to the archive's ticks.
fn check_times(sandbox: &Sandbox, converted: &[u8]) {
    let document: Json = serde_json::from_slice(converted).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let own = events.iter().filter(|event| event["cat"] != "trace");
    let mut compared = 0;
    for (json, event) in own.zip(&archive.events) {
        assert_eq!(json["name"], event.name());
        // Half a nanosecond, and what this comparison itself rounds.
        let nanos = json["ts"].as_f64().unwrap() * 1000.0;
        let (ticks, rate) = (u128::from(event.event.timestamp.0), u128::from(event.event.rate.0.get()));
        let exact = (ticks * 1_000_000_000_000 / rate) as f64 / 1000.0;
        assert!((nanos - exact).abs() <= 0.51, "{json} {event:?}");
        compared += 1;
    }
    assert_eq!(compared, archive.events.len());
}

#[test]
fn three_processes_record_side_by_side() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["--output-file", "demo.fxt"], "demo", &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "demo: presented 60 frames\n");
    let archive = Archive::read(&sandbox.file("demo.fxt"));
    let mut names: Vec<_> = archive.providers.values().cloned().collect();
    names.sort();
    assert_eq!(names, ["demo", "demo-renderer", "demo-storage", "trace_manager"]);
    let mut ids: Vec<_> = archive.providers.keys().collect();
    ids.sort();
    assert_eq!(ids, [&ProviderId(0), &ProviderId(1), &ProviderId(2), &ProviderId(3)]);
    let count = |name: &str, wanted: fn(&EventKind) -> bool| {
        let events = archive.events.iter();
        events.filter(|event| event.name() == name && wanted(&event.event.kind)).count()
    };
    assert_eq!(count("frame", |kind| matches!(kind, EventKind::DurationComplete { .. })), 60);
    assert_eq!(count("frame", |kind| matches!(kind, EventKind::FlowBegin { .. })), 60);
    assert_eq!(count("frame", |kind| matches!(kind, EventKind::FlowStep { .. })), 60);
    assert_eq!(count("frame", |kind| matches!(kind, EventKind::FlowEnd { .. })), 60);
    assert_eq!(count("latency", |kind| matches!(kind, EventKind::AsyncEnd { .. })), 60);
    let serves = count("serve read", |_| true);
    assert_eq!(count("read texture", |_| true), serves);
    assert_eq!(count("raster tile", |_| true), serves);
}

#[test]
fn only_wanted_categories_are_recorded() {
    let events = |categories: &str| {
        let sandbox = Sandbox::new();
        sandbox.record(&["--categories", categories], "emit", &["1", "10"]);
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        let count = |category: &str| {
            archive
                .events
                .iter()
                .filter(|event| event.event.category.as_bytes() == category.as_bytes())
                .count()
        };
        (count("emit"), count("other"))
    };
    assert_eq!(events("emit"), (130, 0));
    assert_eq!(events("oth*"), (0, 10));
    assert_eq!(events("emi, other"), (0, 10));
    assert_eq!(events("emit,other"), (130, 10));
    assert_eq!(events("nothing"), (0, 0));
    assert_eq!(events("*"), (130, 10));
}

/// More categories than fit into one message of a channel.
#[test]
fn thousands_of_categories_reach_the_program() {
    let mut categories: Vec<String> =
        (0..3000).map(|number| format!("a-category-that-nobody-has-{number}")).collect();
    categories.push("other".to_owned());
    let categories = categories.join(",");
    assert!(categories.len() > 65_536);
    let sandbox = Sandbox::new();
    sandbox.record(&["--categories", &categories], "emit", &["1", "10"]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.events.len(), 10);
    assert!(archive.events.iter().all(|event| event.event.category.as_bytes() == b"other"));
}

/// What the manager says of the recording is no event of it.
//= docs/meaning.md#the-managers-marks
#[test]
fn every_door_counts_the_events_of_the_recording() {
    let sandbox = Sandbox::new();
    let text = |output: Output| {
        assert!(output.status.success(), "{output:?}");
        [&output.stdout[..], &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
    };
    let recorded = text(sandbox.record(&["--categories", "emit"], "emit", &["1", "3"]));
    assert!(recorded.contains("trace: 39 events of 1 program in trace.fxt"), "{recorded}");
    let ask = |arguments: &[&str]| text(sandbox.trace(arguments));
    assert!(ask(&["stats", "trace.fxt"]).contains("trace.fxt: 39 events in "));
    assert!(ask(&["report", "-o", "page.html", "trace.fxt"]).contains("trace: 39 events in page.html"));
    assert!(ask(&["report", "-o", "picture.svg", "trace.fxt"]).contains("trace: 24 events in picture.svg"));
    for (format, events) in [
        ("fxt", 39),
        ("catapult", 39),
        ("chrome", 39),
        ("perfetto", 39),
        ("csv", 39),
        ("parquet", 39),
        // A pair of a begin and an end is one of theirs, and speedscope has only slices of threads.
        ("firefox", 33),
        ("speedscope", 6),
    ] {
        let name = format!("converted.{format}");
        let said = ask(&["convert", "--format", format, "-o", &name, "trace.fxt"]);
        assert!(said.contains(&format!("trace: {events} events in ")), "{format}: {said}");
    }
    let filtered = ask(&["filter", "--redact-strings", "-o", "filtered.fxt", "trace.fxt"]);
    assert!(filtered.contains("39 events"), "{filtered}");
    let rows = |sql: &str| ask(&["query", "--format", "csv", "trace.fxt", sql]);
    let of_marks = "SELECT count(*) AS n FROM instants WHERE category = 'trace'";
    assert_eq!(rows(of_marks), "n\n0\n");
    let is_whole = "SELECT start_ts < (SELECT min(ts) FROM instants) AS begun,
                    end_ts > (SELECT max(ts) FROM instants) AS ended FROM traces";
    assert_eq!(rows(is_whole), "begun,ended\n1,1\n");
    for name in ["recording", "recording_end"] {
        ask(&["assert", "trace.fxt", &format!("count({name}) == 0")]);
        assert_eq!(ask(&["dump", "trace.fxt"]).matches(&format!("\"trace\" \"{name}\"")).count(), 1);
    }
    assert!(ask(&["check", "trace.fxt"]).contains(" records, 41 events in "));
}
