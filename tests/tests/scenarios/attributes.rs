//! The attribute `#[trace]`: what a program with each kind of function records, and what the compiler says of
//! attributes that are wrong.

mod misuse;

use std::collections::{BTreeMap, BTreeSet};
use trace_tests::Sandbox;

/// An event of the program, as `trace dump` shows it.
struct Line {
    start: u64,
    end: u64,
    thread: String,
    /// Kind, category, name and arguments.
    text: String,
    id: Option<String>,
}

/// Digits of a time without the point.
fn nanos(time: &str) -> u64 {
    time.replace('.', "").parse().unwrap()
}

/// The events of the program's provider in order of time.
fn record(mode: &str) -> Vec<Line> {
    let sandbox = Sandbox::new();
    let trace = format!("{mode}.fxt");
    let output = sandbox.record(&["-o", &trace], "attributes", &[mode]);
    assert!(output.status.success(), "{mode}: {output:?}");
    let output = sandbox.trace(["check", &trace]);
    assert!(output.status.success(), "{mode}: {output:?}");
    let output = sandbox.trace(["dump", &trace]);
    assert!(output.status.success(), "{mode}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = Vec::new();
    for line in text.lines() {
        let columns: Vec<&str> = line.splitn(6, ' ').collect();
        let [_, provider, time, kind, thread, rest] = columns[..] else { continue };
        if provider == "0" || time == "-" {
            continue;
        }
        let is_own = |start: &'static str| move |word: &&str| word.starts_with(start);
        let end = rest.split(' ').find(is_own("end=")).map(|end| nanos(&end["end=".len()..]));
        let id = rest.split(' ').find(is_own("id=0x")).map(str::to_owned);
        let words = rest.split(' ').filter(|word| !is_own("id=0x")(word) && !is_own("end=")(word));
        let mut words = words.collect::<Vec<_>>().join(" ");
        // A poll has the id of its operation.
        let poll_of = words.split_once("{poll-of=").map(|(before, rest)| {
            let (number, rest) = rest.split_once("u64").unwrap();
            (format!("id=0x{:x}", number.parse::<u64>().unwrap()), format!("{before}{{poll-of=ID{rest}"))
        });
        // The operation in which it began.
        if let Some((before, rest)) = words.split_once("{parent-operation=") {
            words = format!("{before}{{parent-operation=ID{}", rest.split_once("u64").unwrap().1);
        }
        let id = poll_of.map_or(id, |(of, masked)| {
            words = masked;
            Some(of)
        });
        lines.push(Line {
            start: nanos(time),
            end: end.unwrap_or(nanos(time)),
            thread: thread.to_owned(),
            text: format!("{kind} {words}"),
            id,
        });
    }
    lines.sort_by_key(|line| line.start);
    lines
}

/// The durations in the order of their beginnings, each with a dot for each that it is inside of.
fn nested(lines: &[Line]) -> Vec<String> {
    let shown = lines.iter().map(|line| {
        let is_inside = |outer: &&Line| outer.start < line.start && line.end < outer.end;
        let depth = lines.iter().filter(is_inside).count();
        assert_eq!(line.thread, lines[0].thread);
        format!("{}{}", ".".repeat(depth), line.text.strip_prefix("complete ").unwrap())
    });
    shown.collect()
}

/// Every way out of a function ends its duration, and arguments have the types of the values.
#[test]
fn each_call_of_a_function_is_a_duration() {
    let expected = [
        r#""trace-tests" "outer""#,
        r#"."trace-tests" "inner" {depth=2u32}"#,
        r#".."trace-tests" "outer""#,
        r#"..."trace-tests" "inner" {depth=1u32}"#,
        r#"...."trace-tests" "outer""#,
        r#""trace-tests" "early" {number=-1i32}"#,
        r#""trace-tests" "early" {number=7i32}"#,
        r#""trace-tests" "early" {number=100i32}"#,
        r#""trace-tests" "panicking" {why="always"}"#,
        r#""named" "the name""#,
        r#""trace-tests" "generic" {count=2u64, items="[3, 5]", label="two", last="Some(5)"}"#,
        r#""trace-tests" "longest" {one="ab", other="c"}"#,
        r#""trace-tests" "iterator" {end=3u32}"#,
        r#""trace-tests" "without_checks" {number=4u64}"#,
        r#""trace-tests" "owned" {text="owned", bytes=blob[2]:0102, path="/tmp"}"#,
        r#""trace-tests" "consumed" {text="consumed"}"#,
        r#""trace-tests" "pattern" {a=1u32, sum=3u32}"#,
        r#""trace-tests" "type" {type=3u32}"#,
        r#""trace-tests" "items_first" {value=true}"#,
        r#""trace-tests" "many" {a=1i32, b=2i32, c=3i32, d=4i32, e=5i32, f=6i32, g=7i32, h=8i32, i=9i32, j=10i32, k=11i32, l=12i32, m=13i32, n=14i32, o=15i32}"#,
        r#""trace-tests" "local_names" {site=1u32, state=2u32}"#,
    ];
    assert_eq!(nested(&record("functions")), expected);
}

/// A block's functions are recorded but for those that are skipped or constant; their own options come first.
#[test]
fn functions_of_blocks_are_recorded() {
    let expected = [
        r#""machine" "Machine::step""#,
        r#""machine" "Machine::step""#,
        r#""other" "Machine::by_reference" {steps=2u32, self="Machine 2"}"#,
        r#""machine" "finish""#,
        r#""machine" "Machine::boxed""#,
        r#""machine" "Machine::counted""#,
        r#""trace-tests" "Machine::from""#,
        r#""trace-tests" "alone" {steps=3u32}"#,
        r#""trace-tests" "Shape::is_closed""#,
        r#""module" "function""#,
        r#"."module" "private" {one=1u32}"#,
        r#".."module" "Unit::method""#,
        r#"."nested" "function""#,
    ];
    assert_eq!(nested(&record("blocks")), expected);
}

/// Text is recorded as it is, not as Rust would write it.
#[test]
fn texts_are_recorded_as_they_are() {
    let lines = record("texts");
    let found: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    // The dump has quotes around texts, and escapes those inside.
    let some =
        r#"{a="a", b="b", c="c", d="say \"d\"", e="o", f="o", g="g", h="o", i="i", j="j", k="k", l="c"}"#;
    let none =
        r#"{a="a", b="b", c="c", d="say \"d\"", e=null, f=null, g="g", h=null, i="i", j="j", k="k", l="c"}"#;
    let mut expected =
        [some, none].map(|texts| format!(r#"complete "trace-tests" "texts_of" {texts}"#)).to_vec();
    for texts in [some, none] {
        let end = r#"{poll-state="ready", poll-count=1u64}"#;
        let poll = &format!("{{poll-of=ID, {}", texts.trim_start_matches('{'));
        let parts = [("async-begin", texts), ("begin", poll), ("end", end), ("async-end", end)];
        expected.extend(parts.map(|(kind, texts)| format!(r#"{kind} "trace-tests" "texts_later" {texts}"#)));
    }
    assert_eq!(found, expected);
}

/// The arguments of a poll of a function with these.
fn poll(arguments: &str) -> String {
    match arguments.strip_prefix(" {") {
        Some(rest) => format!("{{poll-of=ID, {rest}"),
        None => "{poll-of=ID}".to_owned(),
    }
}

/// An `async fn` is one operation with its polls; a function that returns a future is a duration.
#[test]
fn async_functions_are_operations_with_their_polls() {
    let lines = record("futures");
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in &lines {
        let (kind, rest) = line.text.split_once(' ').unwrap();
        let name = rest.strip_prefix(r#""trace-tests" ""#).unwrap().split('"').next().unwrap();
        found.entry(name).or_default().push(&line.text);
        let has_id = kind != "complete" && kind != "end";
        assert_eq!(line.id.is_some(), has_id, "{kind}");
        ids.entry(name).or_default().extend(line.id.as_deref());
    }
    let task = [
        r#"async-begin "trace-tests" "task" {yields=3u32}"#,
        r#"begin "trace-tests" "task" {poll-of=ID, yields=3u32}"#,
        r#"flow-begin "trace-tests" "task""#,
        r#"end "trace-tests" "task" {poll-state="pending", poll-count=1u64}"#,
        r#"begin "trace-tests" "task" {poll-of=ID, yields=3u32}"#,
        r#"flow-step "trace-tests" "task""#,
        r#"end "trace-tests" "task" {poll-state="pending", poll-count=2u64}"#,
        r#"begin "trace-tests" "task" {poll-of=ID, yields=3u32}"#,
        r#"flow-step "trace-tests" "task""#,
        r#"end "trace-tests" "task" {poll-state="pending", poll-count=3u64}"#,
        r#"begin "trace-tests" "task" {poll-of=ID, yields=3u32}"#,
        r#"flow-end "trace-tests" "task""#,
        r#"end "trace-tests" "task" {poll-state="ready", poll-count=4u64}"#,
        r#"async-end "trace-tests" "task" {poll-state="ready", poll-count=4u64}"#,
    ];
    assert_eq!(found.remove("task").unwrap(), task);
    for (name, of, arguments) in
        [("Client::run", "", " {id=7u64}"), ("Client::ask", " {parent-operation=ID}", "")]
    {
        let poll = poll(arguments);
        let expected = [
            format!(r#"async-begin "trace-tests" "{name}"{of}{arguments}"#),
            format!(r#"begin "trace-tests" "{name}" {poll}"#),
            format!(r#"flow-begin "trace-tests" "{name}""#),
            format!(r#"end "trace-tests" "{name}" {{poll-state="pending", poll-count=1u64}}"#),
            format!(r#"begin "trace-tests" "{name}" {poll}"#),
            format!(r#"flow-end "trace-tests" "{name}""#),
            format!(r#"end "trace-tests" "{name}" {{poll-state="ready", poll-count=2u64}}"#),
            format!(r#"async-end "trace-tests" "{name}" {{poll-state="ready", poll-count=2u64}}"#),
        ];
        assert_eq!(found.remove(name).unwrap(), expected);
    }
    let fetched = r#" {url="/index", own="/index", length=6u64, list="[1]"}"#;
    for (name, arguments) in [("fetch", fetched), ("parse", r#" {text="x"}"#), ("local", "")] {
        let poll = poll(arguments);
        let expected = [
            format!(r#"async-begin "trace-tests" "{name}"{arguments}"#),
            format!(r#"begin "trace-tests" "{name}" {poll}"#),
            format!(r#"end "trace-tests" "{name}" {{poll-state="ready", poll-count=1u64}}"#),
            format!(r#"async-end "trace-tests" "{name}" {{poll-state="ready", poll-count=1u64}}"#),
        ];
        assert_eq!(found.remove(name).unwrap(), expected);
    }
    assert_eq!(found.remove("plain").unwrap(), [r#"complete "trace-tests" "plain" {number=2u32}"#]);
    assert!(found.is_empty(), "{found:?}");
    for (name, ids) in ids {
        assert_eq!(ids.len(), usize::from(name != "plain"), "{name}: {ids:?}");
    }
}

/// The operation of a future that is dropped ends there.
#[test]
fn a_future_that_is_dropped_ends_its_operation() {
    let lines = record("dropped");
    let found: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let expected = [
        r#"async-begin "trace-tests" "forever""#,
        r#"begin "trace-tests" "forever" {poll-of=ID}"#,
        r#"flow-begin "trace-tests" "forever""#,
        r#"end "trace-tests" "forever" {poll-state="pending", poll-count=1u64}"#,
        r#"begin "trace-tests" "forever" {poll-of=ID}"#,
        r#"flow-end "trace-tests" "forever""#,
        r#"end "trace-tests" "forever" {poll-state="dropped", poll-count=1u64}"#,
        r#"async-end "trace-tests" "forever" {poll-state="dropped", poll-count=1u64}"#,
    ];
    assert_eq!(found, expected);
}
