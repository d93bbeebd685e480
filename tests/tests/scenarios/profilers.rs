//! What is written for profilers and for documents: it is what `trace query` answers, and what those programs
//! find.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use trace_tests::profilers::{firefox, speedscope};
use trace_tests::{Answer, Sandbox};

/// A recording of the demo, as its first use makes it.
fn demo() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.record(&["--output-file", "demo.fxt"], "demo", &[]);
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> (Vec<u8>, String) {
    let output = sandbox.trace(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    (output.stdout, said)
}

fn number(sandbox: &Sandbox, sql: &str) -> u64 {
    let (rows, _) = run(sandbox, &["query", "--format", "json", sql, "demo.fxt"]);
    let rows: Value = Answer::parse(&String::from_utf8_lossy(&rows)).into_result();
    rows[0]["n"].as_u64().expect("a number")
}

fn json(sandbox: &Sandbox, name: &str) -> Value {
    serde_json::from_slice(&fs::read(sandbox.file(name)).expect("a file")).expect("JSON")
}

const OF_THREADS: &str = "async_id IS NULL";

//= docs/folded.md#slices
#[test]
fn folded_slices_have_the_own_times_of_the_tables() {
    let sandbox = demo();
    run(&sandbox, &["convert", "--stacks", "slices", "demo.fxt", "slices.folded"]);
    run(&sandbox, &["convert", "--stacks", "slices", "--by-thread", "demo.fxt", "threads.folded"]);
    let own = number(&sandbox, &format!("SELECT sum(self_dur) AS n FROM slices WHERE {OF_THREADS}"));
    for name in ["slices.folded", "threads.folded"] {
        let text = fs::read_to_string(sandbox.file(name)).expect("text");
        let lines: Vec<(&str, u64)> = text
            .lines()
            .map(|line| line.rsplit_once(' ').expect("a number"))
            .map(|(stack, number)| (stack, number.parse().expect("a number")))
            .collect();
        assert_eq!(lines.iter().map(|(_, own)| own).sum::<u64>(), own, "{name}");
        let raster: u64 =
            lines.iter().filter(|(stack, _)| stack.ends_with(";raster tile")).map(|(_, own)| own).sum();
        let sql =
            format!("SELECT sum(self_dur) AS n FROM slices WHERE {OF_THREADS} AND name = 'raster tile'");
        assert_eq!(raster, number(&sandbox, &sql), "{name}");
        let has_threads = lines.iter().any(|(stack, _)| stack.starts_with("demo-renderer;raster-"));
        assert_eq!(has_threads, name == "threads.folded", "{text}");
    }
    // Samples are what is asked for where nothing else is said.
    let output = sandbox.trace(["convert", "demo.fxt", "none.folded"]);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && said.contains("fold its slices with --stacks slices"), "{said}");
    assert!(!sandbox.file("none.folded").exists());
}

/// The begins of a document's profiles by name, and whether begins and ends are balanced and in order.
fn begins(document: &Value) -> BTreeMap<String, u64> {
    let frames = document["shared"]["frames"].as_array().expect("frames");
    let mut begins = BTreeMap::new();
    for profile in document["profiles"].as_array().expect("profiles") {
        let (mut open, mut at) = (Vec::new(), profile["startValue"].as_u64().expect("a time"));
        for event in profile["events"].as_array().expect("events") {
            let (frame, time) =
                (event["frame"].as_u64().expect("a number"), event["at"].as_u64().expect("a time"));
            assert!(time >= at, "{profile}");
            at = time;
            if event["type"] == "O" {
                open.push(frame);
                let name = frames[frame as usize]["name"].as_str().expect("a name");
                *begins.entry(name.to_owned()).or_default() += 1;
            } else {
                assert_eq!(open.pop(), Some(frame), "{profile}");
            }
        }
        assert_eq!(open, [] as [u64; 0], "{profile}");
        assert!(at <= profile["endValue"].as_u64().expect("a time"));
    }
    begins
}

//= docs/speedscope.md#document
#[test]
fn speedscope_reads_every_slice_of_the_demo() {
    let test = "speedscope_reads_every_slice_of_the_demo";
    let sandbox = demo();
    let (said, told) = run(&sandbox, &["convert", "--json", "--format", "speedscope", "demo.fxt"]);
    let document = json(&sandbox, "demo.speedscope.json");
    let written = begins(&document);
    let count = |sql: &str| number(&sandbox, &format!("SELECT count(*) AS n FROM {sql}"));
    assert_eq!(written.values().sum::<u64>(), count(&format!("slices WHERE {OF_THREADS}")));
    assert_eq!(written["raster tile"], count("slices WHERE name = 'raster tile'"));
    // What has no place is counted, for people and for programs.
    let said: Value = Answer::parse(&String::from_utf8_lossy(&said)).into_result();
    let counters =
        said["skipped"].as_array().expect("a list").iter().find(|of| of["kind"] == "counter values");
    assert_eq!(counters.expect("counters")["count"], count("counters"));
    assert!(told.contains("counter values skipped: speedscope's format cannot express them"), "{told}");
    let output = sandbox.trace(["convert", "--strict", "--format", "speedscope", "demo.fxt", "strict.json"]);
    assert!(!output.status.success() && !sandbox.file("strict.json").exists());

    let Some(found) = speedscope(test, &sandbox.file("demo.speedscope.json")) else { return };
    assert_eq!(found["errors"], Value::Array(Vec::new()));
    assert_eq!(found["title"], "demo.fxt - speedscope");
    assert_eq!(begins(&found["saved"]), written);
    let names = |document: &Value| -> Vec<String> {
        let profiles = document["profiles"].as_array().expect("profiles").iter();
        profiles.map(|profile| profile["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&found["saved"]), names(&document));
    assert_eq!(found["saved"]["activeProfileIndex"], document["activeProfileIndex"]);
}

//= docs/firefox.md#document
#[test]
fn the_firefox_profiler_reads_every_marker_of_the_demo() {
    let test = "the_firefox_profiler_reads_every_marker_of_the_demo";
    let sandbox = demo();
    run(&sandbox, &["convert", "--format", "firefox", "demo.fxt"]);
    let document = json(&sandbox, "demo.firefox.json");
    let count = |sql: &str| number(&sandbox, &format!("SELECT count(*) AS n FROM {sql}"));
    let threads = document["threads"].as_array().expect("threads");
    let markers = threads.iter().map(|thread| thread["markers"]["length"].as_u64().expect("a number"));
    let expected = count("slices") + count("instants") + count("flows") + count("logs");
    assert_eq!(markers.sum::<u64>(), expected);
    let values = document["counters"].as_array().expect("counters").iter();
    let values = values.map(|counter| counter["samples"]["length"].as_u64().expect("a number"));
    assert_eq!(values.sum::<u64>(), count("counters"));

    let questions: [&[&str]; 3] = [
        &["profile", "info", "--all"],
        &["profile", "markers", "--search", "raster tile", "--limit", "0"],
        &["counter", "list"],
    ];
    let Some(answers) = firefox(test, &sandbox.file("demo.firefox.json"), &questions) else { return };
    let [info, tiles, counters] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(info["threadCount"], threads.len());
    let pids = number(&sandbox, "SELECT count(DISTINCT pid) AS n FROM threads");
    assert_eq!(info["processCount"], pids);
    // Slices with their times, and their arguments as fields.
    let tiles = tiles["markers"].as_array().expect("markers");
    assert_eq!(tiles.len() as u64, count("slices WHERE name = 'raster tile'"));
    let sum: f64 = tiles.iter().map(|marker| marker["duration"].as_f64().expect("a duration")).sum();
    let expected =
        number(&sandbox, "SELECT sum(dur) AS n FROM slices WHERE name = 'raster tile'") as f64 / 1e6;
    assert!((sum - expected).abs() < 1e-3, "{sum} {expected}");
    let labels: Vec<&Value> =
        tiles[0]["fields"].as_array().expect("fields").iter().map(|field| &field["label"]).collect();
    assert_eq!(labels, ["frame", "tile"]);
    // Counters, with their values rather than their changes.
    let counters = counters["counters"].as_array().expect("counters");
    let depth = counters.iter().find(|counter| counter["label"] == "queue:depth").expect("the counter");
    assert_eq!(depth["rangeSampleCount"], count("counters WHERE name = 'queue'"));
    let most =
        depth["graph"].as_array().expect("values").iter().filter_map(Value::as_f64).fold(0.0, f64::max);
    let expected =
        number(&sandbox, "SELECT CAST(max(value) AS INTEGER) AS n FROM counters WHERE name = 'queue'");
    assert_eq!(most, expected as f64);
}

//= docs/svg.md#the-command
#[test]
fn a_window_of_the_demo_is_a_picture() {
    let sandbox = demo();
    // Around the arrow to a tile that was soonest at its end: where it is depends on how busy the machine is.
    let shortest = "FROM flows b JOIN flows e ON e.flow_id = b.flow_id AND e.phase = 'end' \
         JOIN slices s ON s.tid = e.tid AND s.name = 'raster tile' AND e.ts BETWEEN s.ts AND s.ts + s.dur \
         WHERE b.phase = 'begin' ORDER BY s.ts + s.dur - b.ts, b.ts LIMIT 1";
    let first = number(&sandbox, "SELECT start_ts AS n FROM traces");
    let begin = number(&sandbox, &format!("SELECT b.ts AS n {shortest}")) - first;
    let end = number(&sandbox, &format!("SELECT s.ts + s.dur AS n {shortest}")) - first;
    let (from, to) = (begin / 1_000_000, end / 1_000_000 + 1);
    let window = [&format!("{from}ms")[..], &format!("{}.{:03}", to / 1000, to % 1000)];
    let (_, said) =
        run(&sandbox, &["report", "--from", window[0], "--to", window[1], "demo.fxt", "-o", "frame.svg"]);
    assert!(said.contains(" events in frame.svg\n"), "{said}");
    let text = fs::read_to_string(sandbox.file("frame.svg")).expect("text");
    let expected = if to < 1000 { format!("{from} ms to {to} ms ({} ms)", to - from) } else { String::new() };
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains("<title>raster tile\n") && text.contains("class=\"flow\""), "{text}");
    for part in ["<script", "href", "http://www.w3.org/2000/svg\""] {
        let expected = usize::from(part.starts_with("http"));
        assert_eq!(text.matches(part).count(), expected, "{part}");
    }
    // The name of the result says what it is, or the option does.
    run(&sandbox, &["report", "--svg", "demo.fxt"]);
    assert!(fs::read_to_string(sandbox.file("demo.svg")).expect("text").starts_with("<svg "));
    let refuse = |arguments: &[&str], reason: &str| {
        let output = sandbox.trace(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success() && said.contains(reason), "{arguments:?}: {said}");
    };
    refuse(
        &["report", "--svg", "--from", "1h", "demo.fxt", "-o", "x.svg"],
        "outside of the trace, which is ",
    );
    refuse(&["report", "--svg", "--from", "soon", "demo.fxt"], "expected a time from the beginning");
    assert!(!sandbox.file("x.svg").exists() && !sandbox.file("x.html").exists());
}
