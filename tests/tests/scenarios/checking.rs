//! `trace check` and `trace dump` as users call them: compressed, through a pipe, with exit codes.

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};
use trace_tests::corpus::{File, files};
use trace_tests::{Answer, Archive, Sandbox, wait_for};

fn file(name: &str) -> File {
    files().into_iter().find(|file| file.name == name).expect("a file of the corpus")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// Code, stdout and stderr.
fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

//= docs/check.md#report
#[test]
fn a_clean_trace_is_reported_clean() {
    let sandbox = Sandbox::new();
    let complete = file("file-complete").bytes;
    fs::write(sandbox.file("trace.fxt"), &complete).unwrap();
    let (code, stdout, stderr) = outcome(&sandbox.trace(["check", "trace.fxt"]));
    assert_eq!((code, &*stderr), (Some(0), ""));
    let page = include_str!("../../../docs/check.md");
    assert!(page.contains(&stdout), "docs/check.md does not show {stdout}");
    // Whatever it is called, and however it comes.
    fs::write(sandbox.file("trace.bin"), gzip(&complete)).unwrap();
    fs::write(sandbox.file("trace.txt"), zstd::encode_all(&complete[..], 19).unwrap()).unwrap();
    for name in ["trace.bin", "trace.txt"] {
        let (code, compressed, _) = outcome(&sandbox.trace(["check", name]));
        assert_eq!((code, compressed), (Some(0), stdout.replace("trace.fxt", name)));
    }
    let mut piped = sandbox.command("trace");
    let mut child = piped
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&gzip(&complete)).unwrap();
    let (code, from_pipe, _) = outcome(&child.wait_with_output().unwrap());
    assert_eq!((code, from_pipe), (Some(0), stdout.replace("trace.fxt", "stdin")));
}

/// A copy of what a recording has written so far, which ends inside of a record.
//= docs/check.md#problems
#[test]
fn a_trace_that_is_still_growing_is_no_problem() {
    let sandbox = Sandbox::new();
    let stream = trace_tests::build::program("stream").to_str().unwrap();
    let options = ["record", "-o", "t.fxt", "--buffering-mode", "streaming", "--write-period", "20ms", "--"];
    let recording = sandbox.spawn("trace", &[&options[..], &[stream, "1", "1000000", "100000"]].concat());
    let copy = wait_for("events", || {
        let bytes = fs::read(sandbox.file("t.partial.fxt")).ok().filter(|bytes| !bytes.is_empty())?;
        (!Archive::of_prefix(&bytes).events.is_empty()).then_some(bytes)
    });
    fs::write(sandbox.file("whole.fxt"), &copy).unwrap();
    fs::write(sandbox.file("cut.fxt"), &copy[..copy.len() - 3]).unwrap();
    for name in ["whole.fxt", "cut.fxt"] {
        let (code, stdout, stderr) = outcome(&sandbox.trace(["check", name]));
        assert_eq!(code, Some(0), "{name}: {stdout}{stderr}");
        assert_eq!(stderr, format!("trace: {name}: still growing: its recording has not ended\n"));
        assert!(stdout.contains("no-end: 1 (allowed)"), "{stdout}");
    }
    recording.signal(rustix::process::Signal::TERM);
    recording.finish();
    let (code, stdout, stderr) = outcome(&sandbox.trace(["check", "whole.fxt"]));
    assert_eq!((code, &*stderr), (Some(1), ""), "{stdout}");
    assert_eq!(outcome(&sandbox.trace(["check", "--allow", "no-end", "whole.fxt"])).0, Some(0));
    assert_eq!(outcome(&sandbox.trace(["check", "t.fxt"])).0, Some(0));
}

//= docs/check.md#report
#[test]
fn problems_are_reported_with_their_places() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.fxt"), file("damage-resumed").bytes).unwrap();
    let (code, stdout, stderr) = outcome(&sandbox.trace(["check", "trace.fxt"]));
    assert_eq!((code, &*stderr), (Some(1), ""));
    assert!(
        stdout.contains("\ndamaged: 1\n  byte 216, program 1: 24 damaged bytes skipped\n1 problem\n"),
        "{stdout}"
    );
    let (code, stdout, _) = outcome(&sandbox.trace(["check", "--allow", "loss,damaged", "trace.fxt"]));
    assert_eq!(code, Some(0));
    assert!(stdout.contains("\ndamaged: 1 (allowed)\n"), "{stdout}");
    let (code, stdout, stderr) = outcome(&sandbox.trace(["check", "--allow", "dammaged", "trace.fxt"]));
    assert_eq!((code, &*stdout), (Some(2), ""));
    assert!(stderr.contains("no such kind of problem"), "{stderr}");
}

//= docs/check.md#json
#[test]
fn programs_get_one_object() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.fxt"), file("loss").bytes).unwrap();
    let (code, stdout, _) = outcome(&sandbox.trace(["check", "--json", "trace.fxt"]));
    assert_eq!(code, Some(1));
    let answer = Answer::parse(&stdout);
    let trace = serde_json::json!({"file": "trace.fxt", "bytes": 184, "start_ns": null, "end_ns": null});
    assert_eq!((&*answer.command, &answer.traces), ("check", &vec![trace]));
    let text = "program 1 lost 1000 records: durable region full";
    let place = serde_json::json!({"at_byte": 128, "program_id": 1, "text": text});
    let problem = serde_json::json!({
        "file": "trace.fxt", "kind": "loss", "count": 1, "text": text, "at_byte": 128, "places": [place],
        "is_allowed": false,
    });
    assert_eq!(answer.problems, [problem]);
    let loss = serde_json::json!({
        "file": "trace.fxt", "program": "corpus", "program_id": 1, "code": 4, "reason": "durable region full", "count": 1000,
        "first_ns": 0x1111_2222_3333_u64, "last_ns": 0x4444_5555_6666_u64,
    });
    assert_eq!(answer.losses, [loss]);
    let report: Value = answer.into_result();
    let expected = serde_json::json!({
        "records": 9,
        "events": 0,
        "programs": [
            {"id": 0, "name": "", "records": 1, "events": 0, "start_ns": null, "end_ns": null},
            {"id": 1, "name": "corpus", "records": 8, "events": 0, "start_ns": null, "end_ns": null},
        ],
        "unknown": {"records": 0, "metadata": 0, "events": 0, "arguments": 0, "types": []},
        "categories": [],
        "names": [],
        "remarks": [],
        "is_growing": false,
    });
    assert_eq!(report, expected);
    // What events take: two records of two words, and one of four.
    let events = r#"[
        {"ph": "i", "pid": 1, "tid": 2, "ts": 1, "name": "a", "cat": "small"},
        {"ph": "i", "pid": 1, "tid": 2, "ts": 2, "name": "a", "cat": "small"},
        {"ph": "i", "pid": 1, "tid": 2, "ts": 3, "name": "b", "cat": "small"},
        {"ph": "C", "pid": 1, "tid": 2, "ts": 4, "name": "c", "cat": "large", "args": {"n": 1, "m": 2, "o": 3, "p": 4}}
    ]"#;
    fs::write(sandbox.file("events.json"), events).unwrap();
    assert!(sandbox.trace(["convert", "events.json", "events.fxt"]).status.success());
    let (_, stdout, _) = outcome(&sandbox.trace(["check", "--json", "events.fxt"]));
    let report: Value = Answer::parse(&stdout).into_result();
    let expected = serde_json::json!([
        {"category": "small", "records": 3, "bytes": 96},
        {"category": "large", "records": 1, "bytes": 72},
    ]);
    assert_eq!(report["categories"], expected);
    let expected = serde_json::json!([
        {"category": "large", "name": "c", "records": 1, "bytes": 72},
        {"category": "small", "name": "a", "records": 2, "bytes": 64},
        {"category": "small", "name": "b", "records": 1, "bytes": 32},
    ]);
    assert_eq!(report["names"], expected);
}

//= docs/check.md#report
#[test]
fn what_cannot_be_read_is_no_trace_with_problems() {
    let sandbox = Sandbox::new();
    let complete = file("file-complete").bytes;
    let compressed = gzip(&complete);
    fs::write(sandbox.file("cut.gz"), &compressed[..compressed.len() - 4]).unwrap();
    fs::write(sandbox.file("empty"), "").unwrap();
    fs::write(sandbox.file("text"), "hello, world").unwrap();
    for (name, words) in [
        ("cut.gz", "cut.gz: cannot read at byte 216: the gzip data is cut off"),
        ("empty", "or in a ZIP or tar archive; found an empty file"),
        (
            "text",
            "text: expected a Fuchsia trace, a JSON trace, text of ftrace or perf, or a Perfetto trace, plain, compressed with gzip or zstd, or in a ZIP or tar archive; found text",
        ),
        ("missing", "cannot read missing: No such file"),
    ] {
        let (code, _, stderr) = outcome(&sandbox.trace(["check", name]));
        assert_eq!(code, Some(6), "{name}: {stderr}");
        assert!(stderr.contains(words), "{name}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{name}: {stderr}");
    }
}

/// An object on a line has all that the line has, exactly.
//= docs/dump.md#json
#[test]
fn a_dump_for_programs_is_exact() {
    let sandbox = Sandbox::new();
    for (name, kind, expected) in [
        (
            "event-complete",
            "complete",
            serde_json::json!({
                "version": 1, "at_byte": 128, "program_id": 1, "kind": "complete", "ns": 2048, "ticks": 2048, "process": 345,
                "thread": 678, "category": "event_category", "name": "event_name", "end_ns": 4096,
                "end_ticks": 4096,
                "args": [
                    {"name": "arg1", "type": "string", "value": "val1"},
                    {"name": "arg2", "type": "pointer", "value": 123_456},
                ],
            }),
        ),
        (
            "kernel-object-not-utf8",
            "kernel-object",
            serde_json::json!({
                "version": 1, "at_byte": 128, "program_id": 1, "kind": "kernel-object", "object_type": 1, "koid": 1234,
                "name": {"bytes": "6865ff6c6f"}, "args": [],
            }),
        ),
        (
            "scheduling-context-switch-idle",
            "context-switch",
            serde_json::json!({
                "version": 1, "at_byte": 128, "program_id": 1, "kind": "context-switch", "ns": 1000, "ticks": 1000, "cpu": 1,
                "outgoing_state": 3, "outgoing_state_text": "blocked", "outgoing_thread": 5678,
                "incoming_thread": 9012,
                "args": [
                    {"name": "outgoing_weight", "type": "int32", "value": 1024},
                    {"name": "incoming_weight", "type": "int32", "value": i32::MIN},
                ],
            }),
        ),
        (
            "argument-doubles",
            "instant",
            serde_json::json!({
                "version": 1, "at_byte": 128, "program_id": 1, "kind": "instant", "ns": 1, "ticks": 1, "process": 1234,
                "thread": 5678, "category": "cat", "name": "name", "scope": "thread",
                "args": [
                    {"name": "arg", "type": "double", "value": 0.0},
                    {"name": "arg", "type": "double", "value": -0.0},
                    {"name": "arg", "type": "double", "value": 0.1},
                    {"name": "arg", "type": "double", "value": 1e300},
                    {"name": "arg", "type": "double", "value": f64::MIN_POSITIVE},
                    {"name": "arg", "type": "double", "value": "inf"},
                    {"name": "arg", "type": "double", "value": "-inf"},
                    {"name": "arg", "type": "double", "value": "NaN"},
                ],
            }),
        ),
    ] {
        fs::write(sandbox.file("trace.fxt"), file(name).bytes).unwrap();
        let (code, stdout, stderr) = outcome(&sandbox.trace(["dump", "--json", "trace.fxt"]));
        assert_eq!((code, &*stderr), (Some(0), ""), "{name}");
        let found = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found: Vec<Value> = found.filter(|object| object["kind"] == kind).collect();
        assert_eq!(found, [expected], "{name}");
    }
}

//= docs/dump.md#raw
#[test]
fn a_raw_dump_has_the_words() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.fxt"), file("metadata-provider-info").bytes).unwrap();
    let (code, stdout, _) = outcome(&sandbox.trace(["dump", "--raw", "trace.fxt"]));
    let expected =
        "0x00000000 0016547846040010\n0x00000008 00daabbccdd10030 6f72705f74736574 0000007265646976\n";
    assert_eq!((code, &*stdout), (Some(0), expected));
    let (code, _, stderr) = outcome(&sandbox.trace(["dump", "--raw", "--json", "trace.fxt"]));
    assert_eq!(code, Some(2), "{stderr}");
}

#[test]
fn a_damaged_archive_is_converted_as_far_as_it_goes() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.fxt"), gzip(&file("damage-resumed").bytes)).unwrap();
    let (code, stdout, stderr) =
        outcome(&sandbox.trace(["convert", "--format", "catapult", "trace.fxt", "-"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("byte 216: 24 damaged bytes skipped"), "{stderr}");
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["traceEvents"].as_array().unwrap().len(), 2);
}

/// A shell may have read something of standard input before, and nothing before that is the trace's.
//= docs/check.md#order
#[test]
fn standard_input_is_read_from_where_it_stands() {
    let sandbox = Sandbox::new();
    let prefix = b"text before\n";
    fs::write(sandbox.file("input"), [&prefix[..], &file("event-order").bytes].concat()).unwrap();
    let mut input = fs::File::open(sandbox.file("input")).unwrap();
    std::io::Seek::seek(&mut input, std::io::SeekFrom::Start(prefix.len() as u64)).unwrap();
    let output = sandbox.command("trace").args(["check", "-"]).stdin(input).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
