//! Futures have one shape in the trace, however they are recorded.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trace_tests::build::program;
use trace_tests::{Sandbox, json};

/// The ways, and the categories of what they record.
const WAYS: [(&str, &str); 8] = [
    ("trace", "jobs"),
    ("attribute", "jobs"),
    ("tokio", "tokio"),
    ("tracing", "jobs"),
    ("layer", "jobs"),
    ("always", "jobs"),
    ("lifetimes", "jobs"),
    ("enter", "jobs"),
];
const JOBS: usize = 50;

/// The rows that a query of a trace has.
fn rows(sandbox: &Sandbox, trace: &str, sql: &str) -> Vec<Value> {
    let output = sandbox.trace(["query", "--format", "json", sql, trace]);
    assert!(output.status.success(), "{output:?}");
    json::<Value>(&output).as_array().unwrap().clone()
}

/// How many slices of each kind have a name.
fn kinds(sandbox: &Sandbox, trace: &str, name: &str) -> BTreeMap<String, u64> {
    let sql = format!("SELECT kind, count(*) AS n FROM slices WHERE name = '{name}' GROUP BY kind");
    let rows = rows(sandbox, trace, &sql);
    rows.iter().map(|row| (row["kind"].as_str().unwrap().to_owned(), row["n"].as_u64().unwrap())).collect()
}

fn succeeds(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let output = sandbox.trace(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    json(&output)
}

//= docs/rust.md#asynchronous-code
#[test]
fn each_way_records_the_same_operations() {
    let sandbox = Sandbox::new();
    for (way, category) in WAYS {
        let trace = format!("{way}.fxt");
        let output = sandbox.record(&["-o", &trace], "asynchronous", &[way, &JOBS.to_string()]);
        assert!(output.status.success(), "{way}: {output:?}");
        // By the program's own clock.
        let text = String::from_utf8(output.stdout).unwrap();
        let mut own: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        own.sort_unstable();
        assert_eq!(own.len(), JOBS, "{way}");
        let kinds = kinds(&sandbox, &trace, "job");
        assert_eq!((kinds["operation"], kinds.get("slice")), (JOBS as u64, None), "{way}: {kinds:?}");
        let polls = if way == "enter" { 0 } else { JOBS as u64 };
        assert!(kinds.get("poll").copied().unwrap_or(0) >= polls, "{way}: {kinds:?}");
        let sql = "SELECT dur FROM slices WHERE name = 'job' AND kind = 'operation' ORDER BY dur";
        let lengths = rows(&sandbox, &trace, sql);
        for (length, own) in lengths.iter().zip(&own) {
            let length = length["dur"].as_u64().unwrap();
            // Both clocks are read around the same work.
            assert!(length + 100_000 >= *own, "{way}: {length} of {own}");
        }
        // So it is in the formats of others.
        for (format, suffix) in [("chrome", "json"), ("perfetto", "pftrace")] {
            let there = format!("{way}.{suffix}");
            let output = sandbox.trace(["convert", "--format", format, &trace, &there]);
            assert!(output.status.success(), "{way}, {format}: {output:?}");
            assert_eq!(self::kinds(&sandbox, &there, "job"), kinds, "{way}, {format}");
        }
        // Each poll is in its operation, with the same id, and on the threads that worked on it.
        let sql = "SELECT count(*) AS n FROM slices p JOIN slices o ON o.kind = 'operation' \
                   AND o.async_id = p.operation_id AND o.pid = p.pid AND o.category = p.category \
                   WHERE p.kind = 'poll' AND p.ts >= o.ts - 1 AND p.ts + p.dur <= o.ts + o.dur + 1";
        let inside = rows(&sandbox, &trace, sql)[0]["n"].as_u64().unwrap();
        assert_eq!(inside, kinds.get("poll").copied().unwrap_or(0), "{way}");
        let least = lengths[0]["dur"].as_u64().unwrap();
        assert!(least >= 2_000_000, "{way}: {least}");
        let assertion = format!("count({category}:job) == {JOBS} and min(job) == {least}ns");
        succeeds(&sandbox, &["assert", "--json", &trace, &assertion]);
        let stats = succeeds(&sandbox, &["stats", "--json", "--name", "job", &trace]);
        let count = |table: &str| {
            stats[table]["rows"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["count"].as_u64().unwrap())
                .sum::<u64>()
        };
        assert_eq!((count("durations"), count("operations")), (0, JOBS as u64), "{way}");
        assert_eq!(count("polls"), inside, "{way}");
        let measure = json!({"measure": [{
            "type": "duration", "event_name": "job", "event_category": category,
            "expected_sample_count": JOBS,
        }]});
        std::fs::write(sandbox.file("spec.json"), measure.to_string()).unwrap();
        succeeds(&sandbox, &["measure", "--json", "--spec-file", "spec.json", &trace]);
    }
}

/// The name of the requests of the server, and less than each of them takes.
const REQUEST: &str = "axum_server::server:request";
const READING: u64 = 1_000_000;

/// A request is in the client's, so that its median is below what the client has measured.
//= docs/rust.md#asynchronous-code
#[test]
fn each_command_knows_how_long_requests_of_a_server_take() {
    let sandbox = Sandbox::new();
    let server = program("axum-server").to_str().unwrap();
    let live = ["live", "--json", "--interval", "100ms", "-o", "web.fxt", "--", server, "demo", "800"];
    let output = sandbox.trace(live);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_request = |row: &&Value| row["name"] == "request" && row["count"].as_u64() >= Some(20);
    let rows_of = |line: &Value| line["durations"].as_array().cloned().unwrap_or_default();
    let seen: Vec<Value> = lines.iter().flat_map(rows_of).filter(|row| is_request(&row)).collect();
    assert!(!seen.is_empty(), "{text}");
    assert!(seen.iter().all(|row| row["p50_ns"].as_f64() >= Some(READING as f64)), "{seen:?}");

    let sql = "SELECT dur FROM slices WHERE name = 'request' AND kind = 'operation' ORDER BY dur";
    let lengths: Vec<u64> =
        rows(&sandbox, "web.fxt", sql).iter().map(|row| row["dur"].as_u64().unwrap()).collect();
    assert_eq!(lengths.len(), 800);
    let median = lengths[399];
    assert!(median >= READING, "{median}");
    // Of many values percentiles are kept to a fraction of them.
    let (least, most) = (median - median / 50, median + median / 50);
    let is_close = |value: &Value| value.as_f64().is_some_and(|ns| (least as f64..most as f64).contains(&ns));
    let assertion =
        format!("count({REQUEST}) == 800 and p50({REQUEST}) > {least}ns and p50({REQUEST}) < {most}ns");
    succeeds(&sandbox, &["assert", "--json", "web.fxt", &assertion]);
    let stats = succeeds(&sandbox, &["stats", "--json", "--name", "request", "web.fxt"]);
    let row = &stats["operations"]["rows"][0];
    assert!(row["count"] == 800 && is_close(&row["p50_ns"]), "{median}: {row}");
    let measure = json!({"measure": [{"type": "duration", "event_name": "request",
        "event_category": "axum_server::server", "expected_sample_count": 800}]});
    std::fs::write(sandbox.file("spec.json"), measure.to_string()).unwrap();
    let measured = succeeds(&sandbox, &["measure", "--json", "--spec-file", "spec.json", "web.fxt"]);
    let values = measured["results"][0]["values"].as_array().unwrap();
    let mut values: Vec<u64> = values.iter().map(|ms| (ms.as_f64().unwrap() * 1e6).round() as u64).collect();
    values.sort_unstable();
    assert_eq!(values, lengths);

    // Polls are shorter by far, and would make it wait.
    let trigger = format!("p50({REQUEST})>1ms:stop");
    let output =
        sandbox.trace(["record", "--trigger", &trigger, "-o", "stopped.fxt", "--", server, "demo", "40000"]);
    let said = trace_tests::scene::stderr(&output);
    assert!(said.contains("p50(\"axum_server::server\":request) > 1ms: stopping"), "{said}");

    let output = sandbox.trace(["record", "-o", "own.fxt", "--", server, "demo", "400"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let own = text.split("the median in ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let stats = succeeds(&sandbox, &["stats", "--json", "--name", "request", "own.fxt"]);
    let median = stats["operations"]["rows"][0]["p50_ns"].as_f64().unwrap() / 1e6;
    let own: f64 = own.parse().unwrap();
    assert!(0.5 * own < median && median < 1.02 * own, "{median} ms of {own} ms");
}

/// A job that never wakes is there as an open operation, when the recording stops and when everything is
/// killed.
//= docs/rust.md#asynchronous-code
#[test]
fn what_waits_forever_is_an_open_operation() {
    for way in ["trace", "tokio", "tracing", "layer", "always", "lifetimes"] {
        for is_killed in [false, true] {
            let sandbox = Sandbox::new();
            let _manager = sandbox.spawn("trace", &["manager"]);
            trace_tests::wait_for("the manager", || sandbox.manager_pid());
            let output = sandbox.trace(["start", "--buffering-mode", "circular", "-o", "hang.fxt"]);
            assert!(output.status.success(), "{output:?}");
            let mut program = sandbox.spawn("asynchronous", &[way, "hang"]);
            assert_eq!(program.line(), "waiting");
            if is_killed {
                trace_tests::wait_for("the operation", || {
                    let _ = std::fs::remove_file(sandbox.file("soon.fxt"));
                    let output = sandbox.trace(["snapshot", "-o", "soon.fxt"]);
                    assert!(output.status.success(), "{output:?}");
                    kinds(&sandbox, "soon.fxt", "job").contains_key("operation").then_some(())
                });
                program.signal(Signal::KILL);
            }
            let output = sandbox.trace(["stop"]);
            assert!(output.status.success(), "{output:?}");
            if !is_killed {
                program.close_stdin();
                program.succeed();
            }
            let sql = "SELECT kind, dur FROM slices WHERE name = 'job' ORDER BY kind";
            let found = rows(&sandbox, "hang.fxt", sql);
            let open: Vec<_> = found.iter().filter(|row| row["dur"].is_null()).collect();
            assert_eq!(open, [&json!({"kind": "operation", "dur": null})], "{way}, {is_killed}: {found:?}");
            assert!(found.iter().all(|row| row["kind"] != "slice"), "{way}, {is_killed}: {found:?}");
        }
    }
}

/// The steps of a request are the operations whose parent it is; the slow one is as long as was planted.
//= docs/rust.md#asynchronous-code
#[test]
fn steps_have_their_request_as_parent() {
    let sandbox = Sandbox::new();
    for way in ["tracing", "layer", "lifetimes"] {
        let trace = format!("{way}.fxt");
        let output = sandbox.record(&["-o", &trace], "asynchronous", &[way, "steps", "8"]);
        assert!(output.status.success(), "{way}: {output:?}");
        let sql = "SELECT r.async_id AS request, s.name AS step, s.dur / 1000000 AS ms FROM slices r \
                   JOIN slices s ON s.parent_operation_id = r.operation_id AND s.pid = r.pid \
                   WHERE r.kind = 'operation' AND r.name = 'request' ORDER BY 1, s.ts";
        let found = rows(&sandbox, &trace, sql);
        let steps: Vec<_> = found.iter().map(|row| row["step"].as_str().unwrap()).collect();
        assert_eq!(steps, ["parse", "fetch"].repeat(8), "{way}: {found:?}");
        assert!(
            found.iter().skip(1).step_by(2).all(|row| row["ms"].as_u64().unwrap() >= 10),
            "{way}: {found:?}"
        );
        // The steps and the time in none of them are all of the request.
        let sql = "SELECT sum(steps.dur) = max(operations.dur) AS is_all FROM steps JOIN operations USING (id) \
                   WHERE steps.name = 'request' GROUP BY id";
        let found = rows(&sandbox, &trace, sql);
        assert_eq!(found, vec![json!({"is_all": 1}); 8], "{way}");
    }
}

//= docs/rust.md#asynchronous-code
#[test]
fn parents_are_known_across_libraries() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["-o", "mixed.fxt"], "asynchronous", &["mixed"]);
    assert!(output.status.success(), "{output:?}");
    let sql = "SELECT c.name AS child, p.name AS parent, r.name AS root, c.depth FROM operations c \
               LEFT JOIN operations p ON p.id = c.parent_id JOIN operations r ON r.id = c.root_id ORDER BY c.ts";
    let found = rows(&sandbox, "mixed.fxt", sql);
    let expected = [
        ("request", None, 0),
        ("outer", Some("request"), 1),
        ("inner", Some("outer"), 2),
        ("task", Some("request"), 1),
        ("step", Some("task"), 2),
        ("job", Some("step"), 3),
    ];
    let row = |(child, parent, depth): (&str, Option<&str>, u64)| json!({"child": child, "parent": parent, "root": "request", "depth": depth});
    let expected: Vec<_> = expected.map(row).into();
    assert_eq!(found, expected);
}

/// A poll ends where it panics, so that what is around it has its own end.
//= docs/rust.md#futures
#[test]
fn a_poll_that_panics_ends() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["-o", "panics.fxt"], "asynchronous", &["panics"]);
    assert!(output.status.success(), "{output:?}");
    let output = sandbox.trace(["check", "panics.fxt"]);
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("\nclean"),
        "{output:?}"
    );
    let sql = "SELECT kind, dur IS NULL AS is_open, count(*) AS n FROM slices WHERE category = 'jobs' GROUP BY 1, 2";
    let row = |kind: &str, n: u64| json!({"kind": kind, "is_open": 0, "n": n});
    assert_eq!(rows(&sandbox, "panics.fxt", sql), [row("operation", 2), row("poll", 2), row("slice", 1)]);
}

/// An operation whose begin was written behind its end, by another thread, with a step and a poll.
const LATE: &str = r#"[
    {"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"main"}},
    {"ph":"e","ts":90,"pid":1,"tid":1,"cat":"c","name":"request","id2":{"local":"0x6"}},
    {"ph":"b","ts":10,"pid":1,"tid":2,"cat":"c","name":"request","id2":{"local":"0x6"}},
    {"ph":"X","ts":20,"dur":5,"pid":1,"tid":1,"cat":"c","name":"request","args":{"poll-of":6,"text":"x"}},
    {"ph":"b","ts":30,"pid":1,"tid":2,"cat":"c","name":"step","id2":{"local":"0x7"},"args":{"parent-operation":6,"n":1}},
    {"ph":"e","ts":40,"pid":1,"tid":2,"cat":"c","name":"step","id2":{"local":"0x7"}}
]"#;

/// Ids by which polls and steps refer to their operation stay, also without other arguments.
//= docs/meaning.md#polls
//= docs/filter.md#arguments
#[test]
fn polls_and_steps_keep_their_operation() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.file("late.json"), LATE).unwrap();
    for arguments in [
        &["convert", "--strict", "--format", "fxt", "late.json", "late.fxt"][..],
        &["convert", "--strict", "--format", "chrome", "late.fxt", "chrome.json"],
        &["filter", "--strip-args", "late.fxt", "bare.fxt"],
        &["filter", "--keep-args", "n", "late.fxt", "kept.fxt"],
    ] {
        let output = sandbox.trace(arguments);
        assert!(output.status.success(), "{output:?}");
    }
    let sql = "SELECT name, kind, operation_id AS id, parent_operation_id AS parent FROM slices ORDER BY ts";
    let expected = [
        json!({"name": "request", "kind": "operation", "id": 6, "parent": null}),
        json!({"name": "request", "kind": "poll", "id": 6, "parent": null}),
        json!({"name": "step", "kind": "operation", "id": 7, "parent": 6}),
    ];
    for trace in ["late.fxt", "chrome.json", "bare.fxt", "kept.fxt"] {
        assert_eq!(rows(&sandbox, trace, sql), expected, "{trace}");
    }
}

/// A program that records itself has a thread, too, that finds what waits.
//= docs/rust.md#programs-that-use-tracing
#[test]
fn what_waits_without_a_manager_is_an_operation() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("asynchronous");
    command.args(["tracing", "hang"]).env("TRACE_STARTUP", "*");
    let mut program = Sandbox::spawn_command(command);
    assert_eq!(program.line(), "waiting");
    trace_tests::wait_for("the operation", || has_text(&sandbox.runtime_dir(), b"first-poll").then_some(()));
    program.signal(Signal::KILL);
    trace_tests::scene::wait_for_death(program.pid());
    let output = sandbox.trace(["recover", "-o", "hang.fxt"]);
    assert!(output.status.success(), "{output:?}");
    let found = rows(&sandbox, "hang.fxt", "SELECT kind, dur FROM slices WHERE name = 'job' ORDER BY kind");
    assert_eq!(found[0], json!({"kind": "operation", "dur": null}), "{found:?}");
    assert!(found[1..].iter().all(|row| row["kind"] == "poll"), "{found:?}");
}

/// Whether a text is in any file below a directory.
fn has_text(directory: &std::path::Path, text: &[u8]) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| match path.is_dir() {
        true => has_text(&path, text),
        false => std::fs::read(path).is_ok_and(|bytes| bytes.windows(text.len()).any(|found| found == text)),
    })
}
