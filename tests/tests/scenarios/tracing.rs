//! Spans and events of the `tracing` crate.

use serde_json::json;
use std::collections::BTreeMap;
use trace_tests::perfetto::query;
use trace_tests::{Archive, Sandbox, wait_for};

/// The events of the program's provider in order of time, as `trace dump` shows them but for times, ids and
/// lines. Threads have letters in the order in which they appear.
fn lines(sandbox: &Sandbox, trace: &str) -> Vec<String> {
    let output = sandbox.trace(["dump", trace]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut found: Vec<(&str, &str)> = Vec::new();
    for line in text.lines() {
        let mut columns = line.splitn(4, ' ');
        let (_, provider, time) = (columns.next(), columns.next().unwrap(), columns.next().unwrap());
        if provider != "0" && time != "-" {
            found.push((time, columns.next().unwrap()));
        }
    }
    // An operation begins before its first poll.
    found.sort_by_key(|(time, event)| (*time, !event.starts_with("async-begin")));
    let mut letters: BTreeMap<&str, char> = BTreeMap::new();
    let mut lines = Vec::new();
    for (_, event) in found {
        let (kind, rest) = event.split_once(' ').unwrap();
        let (thread, rest) = rest.split_once(' ').unwrap();
        let next = (b'A' + letters.len() as u8) as char;
        let letter = *letters.entry(thread).or_insert(next);
        let words = rest.split(' ').filter(|word| !word.starts_with("id=0x") || *word == "id=0x0");
        let words = words.map(masked).collect::<Vec<_>>().join(" ");
        let words = match words.split_once("spans.rs:") {
            Some((file, line)) => format!("{file}spans.rs:LINE{}", line.trim_start_matches(char::is_numeric)),
            None => words,
        };
        lines.push(format!("{kind} {letter} {words}"));
    }
    lines
}

/// A word of an event, but for ids and ticks in arguments.
fn masked(word: &str) -> String {
    for name in ["poll-of=", "parent-operation="] {
        let number =
            word.split_once(name).and_then(|(before, rest)| Some((before, rest.split_once("u64")?.1)));
        if let Some((before, rest)) = number {
            return format!("{before}{name}N{rest}");
        }
    }
    word.to_owned()
}

fn record(sandbox: &Sandbox, mode: &str) -> Vec<String> {
    let trace = format!("{mode}.fxt");
    let output = sandbox.record(&["-o", &trace], "spans", &[mode]);
    assert!(output.status.success(), "{mode}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "{mode}: fields without room");
    let output = sandbox.trace(["check", &trace]);
    assert!(output.status.success(), "{mode}: {output:?}");
    lines(sandbox, &trace)
}

/// With each kind of subscriber the program leaves the same events.
#[test]
fn spans_and_events_of_each_kind() {
    let sandbox = Sandbox::new();
    let found = record(&sandbox, "bare");
    assert_eq!(found, EACH_KIND);
    for mode in ["layer", "always"] {
        assert_eq!(record(&sandbox, mode), found, "{mode}");
    }
}

const EACH_KIND: &[&str] = &[
    r#"begin A "spans" "request" {id=7i64, path="/index", ratio=0.5, big=18446744073709551615u64}"#,
    r#"async-begin A "spans" "read" {state="Shape(3)", first-poll=true, parent-operation=N}"#,
    r#"begin A "spans" "read" {state="Shape(3)"}"#,
    r#"end A "spans" "read" {bytes=4096i64}"#,
    r#"begin A "spans" "read" {state="Shape(3)", poll-of=N}"#,
    r#"instant A "spans" "always the same" scope=thread"#,
    r#"end A "spans" "read""#,
    r#"instant A "spans" "always the same" scope=thread"#,
    r#"instant A "quiet" "loud enough" scope=thread"#,
    r#"instant A "quieter" "another target" scope=thread"#,
    r#"async-end A "spans" "read""#,
    r#"end A "spans" "request""#,
    r#"begin A "spans" "instrumented" {shown=1u64}"#,
    r#"end A "spans" "instrumented""#,
    r#"instant A "spans" "tests/examples/spans.rs:LINE" scope=thread {number=0i64, message="number 0"}"#,
    r#"instant A "spans" "tests/examples/spans.rs:LINE" scope=thread {number=1i64, message="number 1"}"#,
    r#"instant A "spans" "one" scope=thread"#,
    r#"instant A "spans" "tests/examples/spans.rs:LINE" scope=thread {message="two"}"#,
    r#"instant A "spans" "tests/examples/spans.rs:LINE" scope=thread {answer=42i64}"#,
    r#"instant A "spans" "named" scope=thread {shape="Shape(1)", ok=true}"#,
    r#"instant A "spans" "named too" scope=thread {message="with a message"}"#,
    r#"counter A "spans" "queue" id=0x0 {value=5i64}"#,
    r#"counter A "spans" "load" id=0x0 {value=0.25}"#,
    r#"counter A "spans" "queue" id=0x0 {value=6u64}"#,
    r#"instant A "spans" "more than a sample" scope=thread"#,
    r#"instant A "spans" "being shown" scope=thread"#,
    r#"instant A "spans" "outer" scope=thread {shown="talk"}"#,
    r#"instant A "spans" "fifteen" scope=thread {a=1i64, b=2i64, c=3i64, d=4i64, e=5i64, f=6i64, g=7i64, h=8i64, i=9i64, j=10i64, k=11i64, l=12i64, m=13i64, n=14i64}"#,
    r#"begin A "spans" "outer""#,
    r#"async-begin A "spans" "inner" {n=1i64, first-poll=true, parent-operation=N}"#,
    r#"begin A "spans" "inner" {n=1i64}"#,
    r#"end A "spans" "inner""#,
    r#"end A "spans" "outer""#,
    r#"begin A "spans" "inner" {n=1i64, resumed=true, poll-of=N}"#,
    r#"end A "spans" "inner""#,
    r#"async-end A "spans" "inner""#,
    r#"begin A "spans" "cause""#,
    r#"flow-begin A "spans" "effect""#,
    r#"end A "spans" "cause""#,
    r#"async-begin A "spans" "effect" {first-poll=true}"#,
    r#"begin A "spans" "effect""#,
    r#"flow-end A "spans" "effect""#,
    r#"end A "spans" "effect""#,
    r#"begin A "spans" "effect" {poll-of=N}"#,
    r#"end A "spans" "effect""#,
    r#"async-end A "spans" "effect""#,
    r#"async-begin B "spans" "task" {number=1i64, first-poll=true}"#,
    r#"begin B "spans" "task" {number=1i64}"#,
    r#"end B "spans" "task""#,
    r#"begin C "spans" "task" {number=1i64, poll-of=N}"#,
    r#"end C "spans" "task""#,
    r#"async-end A "spans" "task""#,
    r#"begin A "spans" "parent""#,
    r#"flow-begin A "spans" "child""#,
    r#"flow-begin A "spans" "named child""#,
    r#"async-begin D "spans" "child" {first-poll=true, parent-operation=N}"#,
    r#"begin D "spans" "child""#,
    r#"flow-end D "spans" "child""#,
    r#"end D "spans" "child""#,
    r#"begin D "spans" "child" {poll-of=N}"#,
    r#"end D "spans" "child""#,
    r#"begin D "spans" "named child""#,
    r#"flow-end D "spans" "named child""#,
    r#"end D "spans" "named child""#,
    r#"async-end D "spans" "child""#,
    r#"end A "spans" "parent""#,
];

/// A child of a recorded program joins at its first span, which it is in already.
#[test]
fn a_forked_child_is_recorded_from_its_first_span() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["-o", "fork.fxt"], "spans", &["fork"]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("fork.fxt"));
    let mut found: Vec<_> = archive.events.iter().map(|event| (event.provider, event.name())).collect();
    found.sort_by_key(|(provider, _)| *provider);
    let names: Vec<_> = found.iter().map(|(_, name)| &**name).collect();
    assert_eq!(names, ["in the parent", "in the parent again", "in the child", "child's", "in the child"]);
    assert_ne!(found[1].0, found[2].0, "the child is a provider of its own");
}

/// A span's life is one bar, whose polls are durations of the threads that enter it.
#[test]
fn lifetimes_are_bars_with_their_polls() {
    let sandbox = Sandbox::new();
    for mode in ["lifetimes", "lifetimes-layer"] {
        let found = record(&sandbox, mode);
        let task: Vec<&str> =
            found.iter().map(String::as_str).filter(|line| line.contains(r#""spans" "task""#)).collect();
        let expected = [
            r#"async-begin A "spans" "task" {number=1i64}"#,
            r#"begin B "spans" "task" {number=1i64, poll-of=N}"#,
            r#"end B "spans" "task""#,
            r#"begin C "spans" "task" {number=1i64, poll-of=N}"#,
            r#"end C "spans" "task""#,
            r#"async-end A "spans" "task""#,
        ];
        assert_eq!(task, expected, "{mode}");
        let sql = "select t.name as track, s.depth, count(*) as n from slice s left join track t \
                   on s.track_id = t.id where s.name = 'task' group by 1, 2 order by 1";
        let Some(rows) = query("lifetimes_are_bars", &sandbox.file(&format!("{mode}.fxt")), sql) else {
            return;
        };
        let expected =
            [json!({"track": null, "depth": 0, "n": 2}), json!({"track": "task", "depth": 0, "n": 1})];
        assert_eq!(rows, expected, "{mode}");
    }
}

/// One operation with both of its polls, each on a thread of its own, however the future is recorded.
#[test]
fn a_future_that_two_threads_poll_is_one_bar() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["-o", "polled.fxt"], "spans", &["polled"]);
    assert!(output.status.success(), "{output:?}");
    let output = sandbox.trace(["check", "polled.fxt"]);
    assert!(output.status.success(), "{output:?}");
    let found = lines(&sandbox, "polled.fxt");
    // Where a future in a span is dropped, `tracing` enters the span once more.
    let instrumented = [
        r#"async-begin A "spans" "instrumented" {n=1i64}"#,
        r#"begin B "spans" "instrumented" {n=1i64, poll-of=N}"#,
        r#"end B "spans" "instrumented""#,
        r#"begin C "spans" "instrumented" {n=1i64, poll-of=N}"#,
        r#"end C "spans" "instrumented""#,
        r#"begin C "spans" "instrumented" {n=1i64, poll-of=N}"#,
        r#"end C "spans" "instrumented""#,
        r#"async-end C "spans" "instrumented""#,
    ];
    let traced = [
        r#"async-begin D "app" "traced" {n=1i32}"#,
        r#"begin D "app" "traced" {poll-of=N, n=1i32}"#,
        r#"flow-begin D "app" "traced""#,
        r#"end D "app" "traced" {poll-state="pending", poll-count=1u64}"#,
        r#"begin E "app" "traced" {poll-of=N, n=1i32}"#,
        r#"flow-end E "app" "traced""#,
        r#"end E "app" "traced" {poll-state="ready", poll-count=2u64}"#,
        r#"async-end E "app" "traced" {poll-state="ready", poll-count=2u64}"#,
    ];
    let expected: Vec<&str> = instrumented.into_iter().chain(traced).collect();
    assert_eq!(found, expected);
}

/// Events are messages with their fields, if that is asked for; spans stay what they are.
#[test]
fn events_are_messages_where_that_is_asked_for() {
    let sandbox = Sandbox::new();
    let many = ('a'..='o').zip(1..).map(|(name, value)| format!(" {name}={value}")).collect::<String>();
    let messages = [
        "INFO spans: always the same".to_owned(),
        "WARN quiet: loud enough".to_owned(),
        "DEBUG spans: number 0 number=0 text=a text ok=true ratio=0.5 shape=Shape(1)".to_owned(),
        "DEBUG spans: number 1 number=1 text=a text ok=true ratio=0.5 shape=Shape(1)".to_owned(),
        "INFO spans: answer=42".to_owned(),
        "INFO spans: named ok=true".to_owned(),
        "INFO spans: with a message".to_owned(),
        "INFO spans: more than a sample size=2".to_owned(),
        "INFO spans: being shown".to_owned(),
        "INFO spans: outer shown=talk".to_owned(),
        "INFO spans: ".to_owned(),
        format!("INFO spans:{many}"),
        // As many whole characters as there is room for: 4096 bytes, and 4096 without ` text=`.
        format!("INFO spans: {} text={}", "€".repeat(1365), "€".repeat(1363)),
        format!("INFO spans: long text={}", "x".repeat(4090)),
    ];
    for mode in ["logs", "logs-layer"] {
        let trace = format!("{mode}.fxt");
        let output = sandbox.record(&["-o", &trace], "spans", &[mode]);
        assert!(output.status.success(), "{mode}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n", "{mode}: fields without room");
        let rows =
            sandbox.trace(["query", "--format", "json", "SELECT message FROM logs ORDER BY ts", &trace]);
        let rows: serde_json::Value = trace_tests::json(&rows);
        let found: Vec<_> =
            rows.as_array().unwrap().iter().map(|row| row["message"].as_str().unwrap()).collect();
        assert_eq!(found, messages, "{mode}");
        let found = Archive::read(&sandbox.file(&trace));
        let names: Vec<_> = found.events.iter().map(|event| event.name().to_owned()).collect();
        assert_eq!(names, ["request", "request", "queue", "queue"], "{mode}: the span and the samples");
    }
}

/// Perfetto's reader finds each span under its parent, the arrows, and the counters.
#[test]
fn perfetto_finds_parents_arrows_and_counters() {
    let sandbox = Sandbox::new();
    record(&sandbox, "layer");
    let trace = sandbox.file("layer.fxt");
    let ask = |sql: &str| query("perfetto_finds_parents", &trace, sql);
    let sql = "select c.name, p.name as parent from slice c join thread_track on c.track_id = thread_track.id \
               left join slice p on c.parent_id = p.id where c.dur > 0 \
               and c.name in ('request', 'read', 'inner') order by c.ts";
    let Some(rows) = ask(sql) else { return };
    let expected = [("request", None), ("read", Some("request")), ("read", Some("request"))];
    let expected = expected.into_iter().chain([("inner", Some("outer")), ("inner", None)]);
    let expected: Vec<_> = expected.map(|(name, parent)| json!({"name": name, "parent": parent})).collect();
    assert_eq!(rows, expected);
    let sql = "select a.name as leads, b.name as goes from flow f join slice a on f.slice_out = a.id \
               join slice b on f.slice_in = b.id order by 1, 2";
    let arrows = [("cause", "effect"), ("parent", "child"), ("parent", "named child")];
    let expected: Vec<_> = arrows.map(|(from, to)| json!({"leads": from, "goes": to})).into();
    assert_eq!(ask(sql).unwrap(), expected);
    let sql = "select t.name, c.value from counter c join track t on c.track_id = t.id order by c.ts";
    let samples = [("queue:value:0", json!(5)), ("load:value:0", json!(0.25)), ("queue:value:0", json!(6))];
    let expected: Vec<_> = samples.map(|(name, value)| json!({"name": name, "value": value})).into();
    assert_eq!(ask(sql).unwrap(), expected);
}

/// Other layers have all that they want, whatever the order and whether it is recorded; ours what is wanted
/// of it while it is.
#[test]
fn layers_do_not_disturb_each_other() {
    // The order, what the printing layer has of each batch, and what is recorded of it.
    let orders = [
        ("print,filter,record", 100, 100),
        ("print,record,filter", 100, 100),
        ("filter,print,record", 100, 100),
        ("filter,record,print", 100, 100),
        ("record,print,filter", 100, 100),
        ("record,filter,print", 100, 100),
        ("print,record", 200, 200),
        ("record,print", 200, 200),
        ("filtered-print,record", 100, 200),
        ("record,filtered-print", 100, 200),
        ("filtered-print,always", 100, 200),
    ];
    for (order, printed, recorded) in orders {
        let sandbox = Sandbox::new();
        let _manager = sandbox.spawn("trace", &["manager"]);
        wait_for("the manager", || sandbox.manager_pid());
        let mut program = sandbox.spawn("spans", &["stack", order]);
        assert_eq!(program.line(), "ready");
        let providers = || sandbox.trace(["list-programs"]).stdout;
        wait_for("the program", || String::from_utf8_lossy(&providers()).contains("spans").then_some(()));
        let mut batch = || {
            program.say("go");
            program.line().parse::<u64>().unwrap()
        };
        assert_eq!(batch(), printed, "{order}, before the recording");
        for round in ["one.fxt", "two.fxt"] {
            let output = sandbox.trace(["start", "-o", round]);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(batch(), printed, "{order}, while it is recorded");
            let output = sandbox.trace(["stop"]);
            assert!(output.status.success(), "{order}: {output:?}");
            assert_eq!(batch(), printed, "{order}, after the recording");
            let archive = Archive::read(&sandbox.file(round));
            let count = |name: &str| archive.events.iter().filter(|event| event.name() == name).count();
            assert_eq!(count("information") + count("detail"), recorded, "{order}");
            assert_eq!(count("round"), 200, "{order}: begins and ends");
        }
        program.close_stdin();
        program.succeed();
    }
}

/// A program may give its subscriber to some of its threads alone, and not to the one on which recordings
/// begin.
#[test]
fn subscribers_of_some_threads_are_asked_when_a_recording_begins() {
    for kind in ["subscriber", "layer"] {
        let sandbox = Sandbox::new();
        let _manager = sandbox.spawn("trace", &["manager"]);
        wait_for("the manager", || sandbox.manager_pid());
        let mut program = sandbox.spawn("spans", &["some threads", kind]);
        assert_eq!(program.line(), "ready");
        let providers = || sandbox.trace(["list-programs"]).stdout;
        wait_for("the program", || String::from_utf8_lossy(&providers()).contains("spans").then_some(()));
        for round in ["one.fxt", "two.fxt"] {
            for is_recorded in [false, true] {
                if is_recorded {
                    let output = sandbox.trace(["start", "-o", round]);
                    assert!(output.status.success(), "{output:?}");
                }
                program.say("go");
                program.line();
            }
            let output = sandbox.trace(["stop"]);
            assert!(output.status.success(), "{output:?}");
            let archive = Archive::read(&sandbox.file(round));
            let count = |name: &str| archive.events.iter().filter(|event| event.name() == name).count();
            assert_eq!(
                (count("information"), count("detail"), count("round")),
                (100, 100, 200),
                "{kind}, {round}"
            );
        }
        program.close_stdin();
        program.succeed();
    }
}
