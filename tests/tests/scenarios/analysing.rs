//! `trace stats`, `trace assert` and `trace diff`, with exact values.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use trace_format::loss::{LossCode, LossRecord};
use trace_format::sink::Sink;
use trace_format::slab::LossReason;
use trace_format::units::{ProviderId, Ticks};
use trace_tests::corpus::files;
use trace_tests::{Answer, Sandbox};

const TRACE: &str = r#"[
    {"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 10, "name": "frame", "cat": "render"},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 2, "dur": 3, "name": "draw", "cat": "render"},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 6, "dur": 4, "name": "draw", "cat": "render"},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 7, "dur": 1, "name": "read", "cat": "io"},
    {"ph": "X", "pid": 1, "tid": 3, "ts": 7, "dur": 2, "name": "draw", "cat": "render"},
    {"ph": "b", "pid": 1, "tid": 2, "ts": 8, "id": 1, "name": "load", "cat": "net"},
    {"ph": "e", "pid": 1, "tid": 3, "ts": 20, "id": 1, "name": "load", "cat": "net"},
    {"ph": "B", "pid": 1, "tid": 3, "ts": 15, "name": "hang", "cat": "io"},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 5, "name": "depth", "args": {"n": 0.25}},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 6, "name": "depth", "args": {"n": 4}},
    {"ph": "i", "pid": 1, "tid": 2, "ts": 7, "name": "retry", "cat": "net"}
]"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.json"), TRACE).unwrap();
    let converted = sandbox.trace(["convert", "trace.json", "trace.fxt"]);
    assert!(converted.status.success(), "{converted:?}");
    sandbox
}

/// Exit code, stdout and stderr.
fn outcome(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = sandbox.trace(arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn printed(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = outcome(sandbox, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {stdout}{stderr}");
    stdout
}

//= docs/stats.md#statistics
//= docs/stats.md#self-time
#[test]
fn statistics_say_where_the_time_went() {
    let sandbox = sandbox();
    let expected = "lost: nothing is reported\n\
                    trace.json: 11 events in 19 µs (578947 events/s), BYTES bytes\n\
                    durations\n\
                    \x20 category  name   count  total  self    min   mean    p50    p95    p99    max\n\
                    \x20 render    frame      1  10 µs  3 µs  10 µs  10 µs  10 µs  10 µs  10 µs  10 µs\n\
                    \x20 render    draw       3   9 µs  8 µs   2 µs   3 µs   3 µs   4 µs   4 µs   4 µs\n\
                    \x20 io        read       1   1 µs  1 µs   1 µs   1 µs   1 µs   1 µs   1 µs   1 µs\n\
                    \x20 io        hang       0   0 ns  0 ns      -      -      -      -      -      -\n\
                    \x20 not ended: 1\n\
                    asynchronous operations\n\
                    \x20 category  name  count  total    min   mean    p50    p95    p99    max\n\
                    \x20 net       load      1  12 µs  12 µs  12 µs  12 µs  12 µs  12 µs  12 µs\n\
                    instants\n\
                    \x20 category  name   count\n\
                    \x20 net       retry      1\n\
                    counters\n\
                    \x20 process  category  name   value  count  first  last   min  max   mean\n\
                    \x20 1                  depth  n          2   0.25     4  0.25    4  2.125\n";
    let found = printed(&sandbox, &["stats", "trace.json"]);
    let bytes = found.split_once("events/s), ").unwrap().1.split_once(' ').unwrap().0;
    assert_eq!(found, expected.replace("BYTES", bytes));
    let filtered = printed(&sandbox, &["stats", "--csv", "--category", "i*", "--sort", "self", "trace.fxt"]);
    assert_eq!(
        filtered,
        "kind,category,name,count,unfinished,total_ns,self_ns,min_ns,mean_ns,p50_ns,p95_ns,p99_ns,max_ns\n\
         duration,io,read,1,0,1000,1000,1000,1000.0,1000.0,1000.0,1000.0,1000\n\
         duration,io,hang,0,1,0,0,,,,,,\n"
    );
    let by_thread = printed(&sandbox, &["stats", "--csv", "--by", "thread", "--name", "dr*", "trace.fxt"]);
    assert_eq!(
        by_thread,
        "kind,pid,process,tid,thread,count,unfinished,total_ns,self_ns,min_ns,mean_ns,p50_ns,p95_ns,p99_ns,max_ns\n\
         duration,1,,2,,2,0,7000,6000,3000,3500.0,3000.0,4000.0,4000.0,4000\n\
         duration,1,,3,,1,0,2000,2000,2000,2000.0,2000.0,2000.0,2000.0,2000\n"
    );
    let by_process = printed(&sandbox, &["stats", "--csv", "--by", "process", "--limit", "1", "trace.fxt"]);
    assert!(by_process.ends_with("\nduration,1,,5,1,20000,12000,1000,4000.0,3000.0,10000.0,10000.0,10000\noperation,1,,1,0,12000,,12000,12000.0,12000.0,12000.0,12000.0,12000\n"), "{by_process}");
}

//= docs/stats.md#verdicts
#[test]
fn nothing_is_said_of_a_provider_that_is_not_there() {
    let sandbox = sandbox();
    let (code, stdout, stderr) = outcome(&sandbox, &["assert", "trace.fxt", "lost(json) == 0"]);
    assert_eq!((code, &*stdout), (Some(0), "passed      lost(json) == 0: 0\n"), "{stderr}");
    let (code, stdout, stderr) = outcome(&sandbox, &["assert", "trace.fxt", "lost(jsn) == 0"]);
    let expected = "incomplete  lost(jsn) == 0: no such program; there are json\n";
    assert_eq!((code, &*stdout), (Some(3), expected), "{stderr}");
}

//= docs/stats.md#json
#[test]
fn programs_get_versioned_objects() {
    let sandbox = sandbox();
    let of = |arguments: &[&str]| -> Value { Answer::parse(&printed(&sandbox, arguments)).into_result() };
    let mut stats = of(&["stats", "--json", "--by", "category", "trace.fxt"]);
    let row = |category: &str, count: u64, total: u64, own: Value, spread: [f64; 4]| {
        let [min, p50, p99, max] = spread;
        json!({
            "category": category, "count": count, "unfinished": u64::from(category == "io"), "open": {},
            "longest_open_ns": null, "total_ns": total,
            "self_ns": own, "min_ns": min as u64, "mean_ns": total as f64 / count as f64, "p50_ns": p50,
            "p95_ns": p99, "p99_ns": p99, "max_ns": max as u64,
        })
    };
    let bytes = fs::metadata(sandbox.file("trace.fxt")).unwrap().len();
    let expected = json!({
        "events": 11,
        "events_per_second": stats["events_per_second"].take(),
        "balance": "unknown",
        "tracing": null,
        "durations": {"by": "category", "rows": [
            row("render", 4, 19000, 11000.into(), [2000.0, 3000.0, 10000.0, 10000.0]),
            row("io", 1, 1000, 1000.into(), [1000.0, 1000.0, 1000.0, 1000.0]),
        ]},
        "operations": {"by": "category", "rows": [
            row("net", 1, 12000, Value::Null, [12000.0, 12000.0, 12000.0, 12000.0]),
        ]},
        "polls": {"by": "category", "rows": []},
        "instants": [{"category": "net", "name": "retry", "count": 1}],
        "counters": [{
            "pid": 1, "process": null, "category": "", "name": "depth", "id": 0, "value": "n", "count": 2,
            "first": 0.25, "last": 4.0, "min": 0.25, "max": 4.0, "mean": 2.125,
        }],
        "skipped": {"unmatched_ends": 0, "dropped_begins": 0, "other_names": 0, "other_samples": 0},
    });
    stats["events_per_second"] = expected["events_per_second"].clone();
    assert_eq!(stats, expected);
    let whole = Answer::of(&sandbox.trace(["stats", "--json", "trace.fxt"]));
    let trace = json!({"file": "trace.fxt", "bytes": bytes, "start_ns": 1000, "end_ns": 20000});
    assert_eq!((&*whole.command, whole.traces), ("stats", vec![trace]));
    let text = "a begin on thread 1/3 that has no end";
    let place = json!({"at_byte": 448, "program_id": 1, "text": text});
    let problem = json!({
        "file": "trace.fxt", "kind": "unmatched-begin", "count": 1, "text": text, "at_byte": 448, "places": [place],
    });
    assert_eq!((whole.losses, whole.problems), (vec![], vec![problem]));
    let (code, stdout, _) =
        outcome(&sandbox, &["assert", "--json", "trace.fxt", "max(frame) < 5us or lost == 0", "max(x) > 0s"]);
    assert_eq!(code, Some(3));
    let found: Value = Answer::parse(&stdout).into_result();
    let comparison = |text: &str, verdict: &str, value: Value, limit: f64, why: &[&str]| json!({"text": text, "verdict": verdict, "value": value, "limit": limit, "why": why});
    let expected = json!({"verdict": "incomplete", "assertions": [
        {"text": "max(frame) < 5us or lost == 0", "verdict": "passed", "comparisons": [
            comparison("max(frame) < 5us", "failed", 10000.0.into(), 5000.0, &[]),
            comparison("lost == 0", "passed", 0.0.into(), 0.0, &[]),
        ]},
        {"text": "max(x) > 0s", "verdict": "incomplete", "comparisons": [
            comparison("max(x) > 0s", "incomplete", Value::Null, 0.0, &["no such event"]),
        ]},
    ]});
    assert_eq!(found, expected);
    let diff = of(&["diff", "--json", "--limit", "1", "trace.json", "trace.fxt"]);
    assert_eq!(diff["changes"].as_array().unwrap().len(), 1);
}

/// Numbers of spans by category, name and kind: all, those that ended, their sum, least and greatest.
type Sums = BTreeMap<(String, String, bool), (u64, u64, u128, u64, u64)>;

fn of_query(sandbox: &Sandbox, path: &str) -> Option<Sums> {
    let sql = "SELECT category, name, async_id IS NOT NULL AS operation, dur FROM slices";
    let (code, stdout, _) = outcome(sandbox, &["query", "--format", "json", sql, path]);
    if code != Some(0) {
        return None;
    }
    let rows: Value = Answer::parse(&stdout).into_result();
    let mut sums = Sums::new();
    for row in rows.as_array().unwrap() {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let key = (text("category"), text("name"), row["operation"] == 1);
        let (count, ended, sum, min, max) = sums.entry(key).or_insert((0, 0, 0, u64::MAX, 0));
        *count += 1;
        if let Some(duration) = row["dur"].as_u64() {
            // A table has no longer ones.
            if duration == i64::MAX as u64 {
                return None;
            }
            (*ended, *sum) = (*ended + 1, *sum + u128::from(duration));
            (*min, *max) = ((*min).min(duration), (*max).max(duration));
        }
    }
    Some(sums)
}

fn of_stats(sandbox: &Sandbox, path: &str) -> Sums {
    let (_, stdout, stderr) = outcome(sandbox, &["stats", "--json", path]);
    assert!(!stdout.is_empty(), "{path}: {stderr}");
    let stats: Value = Answer::parse(&stdout).into_result();
    let mut sums = Sums::new();
    for (kind, is_operation) in [("durations", false), ("operations", true)] {
        for row in stats[kind]["rows"].as_array().unwrap() {
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            let number = |name: &str| row[name].as_u64();
            let ended = number("count").unwrap();
            let all = ended + number("unfinished").unwrap();
            let (min, max) = (number("min_ns").unwrap_or(u64::MAX), number("max_ns").unwrap_or(0));
            let sum = number("total_ns").unwrap().into();
            sums.insert((text("category"), text("name"), is_operation), (all, ended, sum, min, max));
        }
    }
    sums
}

/// Over the corpus, and over traces of other tools.
//= docs/tables.md#tables
#[test]
fn statistics_agree_with_queries() {
    let sandbox = Sandbox::new();
    let mut compared = 0;
    let mut spans = 0;
    let mut compare = |path: &str| {
        let Some(expected) = of_query(&sandbox, path) else { return };
        compared += 1;
        spans += expected.values().map(|(count, ..)| count).sum::<u64>();
        assert_eq!(of_stats(&sandbox, path), expected, "{path}");
    };
    for file in files() {
        fs::write(sandbox.file("corpus.fxt"), &file.bytes).unwrap();
        compare("corpus.fxt");
    }
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples");
    for sample in fs::read_dir(samples).unwrap() {
        let path = sample.unwrap().path();
        if path.is_file() && path.extension().is_none_or(|extension| extension != "md") {
            compare(path.to_str().unwrap());
        }
    }
    assert!(compared > 50 && spans > 100, "{compared} traces, {spans} spans");
}

//= docs/stats.md#assertions
//= docs/stats.md#exit-codes
#[test]
fn assertions_pass_fail_or_cannot_tell() {
    let sandbox = sandbox();
    let check = |assertions: &[&str]| {
        let (code, stdout, stderr) = outcome(&sandbox, &[&["assert", "trace.fxt"], assertions].concat());
        (code, format!("{stdout}{stderr}"))
    };
    let (code, text) = check(&["p99(render:frame) < 16ms", "lost == 0", "count(net:retry) <= 3"]);
    assert_eq!(
        (code, &*text),
        (
            Some(0),
            "passed      p99(render:frame) < 16ms: 10 µs\npassed      lost == 0: 0\npassed      count(net:retry) <= 3: 1\n"
        )
    );
    let (code, text) =
        check(&["max(gap(draw)) < 1us", "sum(self(draw)) == 8us", "max(counter(depth.n)) <= 4"]);
    assert_eq!(
        (code, &*text),
        (
            Some(1),
            "failed      max(gap(draw)) < 1us: 1 µs\npassed      sum(self(draw)) == 8us: 8 µs\n\
             passed      max(counter(depth.n)) <= 4: 4\n"
        )
    );
    let (code, text) = check(&["p99(farme) < 16ms", "count(rety) == 0", "max(hang) < 1s"]);
    assert_eq!(
        (code, &*text),
        (
            Some(3),
            "incomplete  p99(farme) < 16ms: no such event; did you mean frame?\n\
             passed      count(rety) == 0: 0; no such event; did you mean retry?\n\
             incomplete  max(hang) < 1s: none of them has a duration; one of them has not ended\n"
        )
    );
    let (code, text) = check(&["p99(frame < 16ms"]);
    assert_eq!(
        (code, &*text),
        (
            Some(2),
            "p99(frame < 16ms\n          ^\ntrace: assertion: line 1, column 11: expected \")\", found \"<\"\n"
        )
    );
    let (code, _, stderr) = outcome(&sandbox, &["assert", "missing.fxt", "lost == 0"]);
    assert_eq!(code, Some(6), "{stderr}");
    assert!(stderr.contains("cannot read missing.fxt"), "{stderr}");
}

//= docs/stats.md#assertions
//= docs/stats.md#junit
#[test]
fn assertions_come_from_files_and_results_go_into_files() {
    let sandbox = sandbox();
    fs::write(
        sandbox.file("limits.txt"),
        "# limits\n\nmax(frame) < 5us # too slow\nlost == 0\nmax(x) < 1s\n",
    )
    .unwrap();
    let arguments = ["assert", "--file", "limits.txt", "--junit", "limits.xml", "trace.fxt", "errors == 0"];
    let (code, stdout, stderr) = outcome(&sandbox, &arguments);
    assert_eq!(
        (code, &*stdout, &*stderr),
        (
            Some(1),
            "failed      max(frame) < 5us: 10 µs\npassed      lost == 0: 0\n\
             incomplete  max(x) < 1s: no such event\npassed      errors == 0: 0\n",
            ""
        )
    );
    assert_eq!(
        fs::read_to_string(sandbox.file("limits.xml")).unwrap(),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"trace.fxt\" tests=\"4\" failures=\"1\" errors=\"1\">\n\
         \x20 <testcase classname=\"trace\" name=\"max(frame) &lt; 5us\"><failure message=\"10 µs\"/></testcase>\n\
         \x20 <testcase classname=\"trace\" name=\"lost == 0\"><system-out>0</system-out></testcase>\n\
         \x20 <testcase classname=\"trace\" name=\"max(x) &lt; 1s\"><error message=\"no such event\"/></testcase>\n\
         \x20 <testcase classname=\"trace\" name=\"errors == 0\"><system-out>0</system-out></testcase>\n\
         </testsuite>\n"
    );
    // Results do not replace what is read.
    let trace = fs::read(sandbox.file("trace.fxt")).unwrap();
    for output in ["trace.fxt", "limits.txt"] {
        let (code, _, stderr) =
            outcome(&sandbox, &["assert", "--file", "limits.txt", "--junit", output, "trace.fxt"]);
        let expected = format!("trace: {output} is both input and output; name another output\n");
        assert_eq!((code, &*stderr), (Some(2), &*expected));
    }
    assert_eq!(fs::read(sandbox.file("trace.fxt")).unwrap(), trace);
    fs::write(sandbox.file("wrong.txt"), "\u{feff}lost == 0\nlost == none\n").unwrap();
    let (code, _, stderr) = outcome(&sandbox, &["assert", "--file", "wrong.txt", "trace.fxt"]);
    let expected =
        "lost == none\n        ^\ntrace: wrong.txt: line 2, column 9: expected a number, found \"none\"\n";
    assert_eq!((code, &*stderr), (Some(2), expected));
    fs::write(sandbox.file("empty.txt"), "# none\n").unwrap();
    let (code, _, stderr) = outcome(&sandbox, &["assert", "--file", "empty.txt", "trace.fxt"]);
    assert_eq!((code, &*stderr), (Some(2), "trace: there is no assertion\n"));
}

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

/// Nothing passes while events are missing, and what is broken stays so.
//= docs/stats.md#verdicts
#[test]
fn nothing_passes_while_events_are_missing() {
    let sandbox = sandbox();
    let mut archive = Bytes(fs::read(sandbox.file("trace.fxt")).unwrap());
    let reason = LossCode::from(LossReason::ALL[1]);
    let loss = LossRecord { provider: ProviderId(1), reason, count: 7, first: Ticks(1), last: Ticks(2) };
    LossRecord::blob(&loss.to_bytes()).encode(&mut archive).unwrap();
    fs::write(sandbox.file("lossy.fxt"), &archive.0).unwrap();
    let cut = archive.0.len() - 8;
    fs::write(sandbox.file("cut.fxt"), &archive.0[..cut]).unwrap();
    let check = |file: &str, assertion: &str| outcome(&sandbox, &["assert", file, assertion]).0;
    for (assertion, whole, lossy, cut) in [
        ("max(frame) < 16ms", 0, 3, 3),
        ("max(frame) < 5us", 1, 1, 1),
        ("count(draw) <= 3", 0, 3, 3),
        ("count(draw) <= 2", 1, 1, 1),
        ("count(draw) >= 1", 0, 3, 3),
        ("max(gap(draw)) < 1ns", 1, 3, 3),
        ("mean(draw) < 1ns", 1, 3, 3),
        ("lost == 0", 0, 1, 3),
        ("lost <= 7", 0, 0, 3),
        ("errors == 0", 0, 0, 1),
    ] {
        let found = ["trace.fxt", "lossy.fxt", "cut.fxt"].map(|file| check(file, assertion));
        assert_eq!(found, [Some(whole), Some(lossy), Some(cut)], "{assertion}");
    }
    let (_, stdout, _) = outcome(&sandbox, &["assert", "lossy.fxt", "max(frame) < 16ms"]);
    let name = stdout.split_once("; ").unwrap().1.split_once(" (program").unwrap().0;
    assert_eq!(
        stdout,
        format!("incomplete  max(frame) < 16ms: 10 µs; {name} (program 1) lost 7: overwritten\n")
    );
    let stats = printed(&sandbox, &["stats", "lossy.fxt"]);
    assert!(
        stats.starts_with(&format!("lost: {name} (program 1) lost 7: overwritten\nlossy.fxt: ")),
        "{stats}"
    );
}

//= docs/stats.md#differences
#[test]
fn differences_are_ranked_by_their_size() {
    let sandbox = sandbox();
    let after = TRACE.replace("\"dur\": 4", "\"dur\": 5").replace("\"read\"", "\"write\"");
    fs::write(sandbox.file("after.json"), after).unwrap();
    let csv = printed(&sandbox, &["diff", "--csv", "trace.fxt", "after.json"]);
    assert_eq!(
        csv,
        "kind,category,name,total_ns_before,total_ns_after,mean_ns_before,mean_ns_after,p99_ns_before,p99_ns_after,\
         count_before,count_after\n\
         duration,io,read,1000,,1000,,1000,,1,\n\
         duration,io,write,,1000,,1000,,1000,,1\n\
         duration,render,draw,9000,10000,3000,3333.3333333333335,4000,5000,3,3\n\
         duration,io,hang,0,0,0,0,0,0,0,0\n\
         duration,render,frame,10000,10000,10000,10000,10000,10000,1,1\n\
         operation,net,load,12000,12000,12000,12000,12000,12000,1,1\n"
    );
    let text = printed(&sandbox, &["diff", "--sort", "p99", "--limit", "3", "trace.fxt", "after.json"]);
    let table =
        text.split_once("after.json: ").unwrap().1.split_once("\nlost: nothing is reported\n").unwrap().1;
    assert_eq!(
        table,
        "        category  name   total        change      mean            change   p99        change  count  change\n\
         \x20 gone  io        read    0 ns         -1 µs      0 ns             -1 µs  0 ns         -1 µs      0      -1\n\
         \x20 new   io        write   1 µs         +1 µs      1 µs             +1 µs  1 µs         +1 µs      1      +1\n\
         \x20       render    draw   10 µs  +1 µs (+11%)  3.333 µs  +333.3 ns (+11%)  5 µs  +1 µs (+25%)      3       =\n\
         \x20 and 3 more; --limit 0 shows all\n\
         one recording of each does not show what is chance; trace ab makes many, and says what has changed\n"
    );
}

/// Whatever a program records has as many events in the statistics as the ledger says, and none is lost.
//= docs/stats.md#statistics
#[test]
fn recordings_end_with_statistics() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["--stats", "-o", "s.fxt"], "stream", &["2", "500", "0"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let (_, stats) = stderr.split_once("lost: nothing; the records of the program add up\ns.fxt: ").unwrap();
    let cost = stats.lines().nth(1).unwrap();
    assert!(
        cost.starts_with("tracing: about ") && cost.contains(" of the programs' time (an instant "),
        "{stderr}"
    );
    assert_eq!(stats.lines().nth(2), Some("instants"), "{stderr}");
    let (code, stdout, _) =
        outcome(&sandbox, &["assert", "s.fxt", "count(*) >= 1000", "lost == 0 and errors == 0"]);
    assert_eq!(code, Some(0), "{stdout}");
    let refused = outcome(&sandbox, &["record", "--stats", "-o", "-", "--", "true"]);
    assert_eq!(refused.0, Some(2));
    assert!(refused.2.contains("--stats: the trace goes to stdout"), "{}", refused.2);
}

/// What an import could not read is missing for the statistics, too.
//= docs/stats.md#statistics
#[test]
fn an_import_that_ends_early_is_a_loss() {
    let sandbox = sandbox();
    let whole = r#"[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":5,"name":"a"},{"ph":"X","pid":1,"#;
    fs::write(sandbox.file("cut.json"), whole).unwrap();
    let (_, stdout, _) = outcome(&sandbox, &["stats", "cut.json"]);
    assert_eq!(stdout.lines().next(), Some("lost: truncated: 1"));
    let (code, stdout, _) = outcome(&sandbox, &["assert", "cut.json", "count(a) == 1", "errors == 1"]);
    assert_eq!(
        (code, &*stdout),
        (Some(3), "incomplete  count(a) == 1: 1; truncated: 1\npassed      errors == 1: 1\n")
    );
}
