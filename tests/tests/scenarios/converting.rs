//! Traces of other formats, as the commands read them.

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use trace_tests::{Sandbox, wait_for};

const EVENTS: &str = r#"{"otherData": 1, "traceEvents": [
    {"ph": "X", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2, "name": "a", "cat": "c", "args": {"x": 1}},
    {"ph": "P", "pid": 1, "tid": 2, "ts": 2, "name": "sample"},
    {"ph": "i", "pid": 1, "tid": 2, "ts": "0.0005", "name": "b", "cat": "c", "s": "g"}"#;

const DUMP: &str = r#"0x00000000 0 - magic
0x00000008 1 - provider-info "json"
0x00000018 1 - initialization 1000000000 ticks/s
0x00000028 1 - string 1 "x"
0x00000038 1 - string 2 "c"
0x00000048 1 - string 3 "a"
0x00000058 1 0.000001500 complete 1/2 "c" "a" end=0.000003500 {x=1i32}
0x00000088 1 - string 4 "b"
0x00000098 1 0.000000001 instant 1/2 "c" "b" scope=global
"#;

/// A list that is cut off, compressed: the whole events are in the archive, and the missing rest is reported.
//= docs/import.md#json
#[test]
fn json_is_a_trace() {
    let sandbox = Sandbox::new();
    let file = File::create(sandbox.file("events.json.gz")).unwrap();
    let mut compressed = GzEncoder::new(file, Compression::fast());
    compressed.write_all(EVENTS.as_bytes()).unwrap();
    compressed.finish().unwrap();

    let dumped = sandbox.trace(["dump", "events.json.gz"]);
    assert!(dumped.status.success(), "{dumped:?}");
    let text = String::from_utf8(dumped.stdout).unwrap();
    assert_eq!(text, DUMP);
    let said = String::from_utf8(dumped.stderr).unwrap();
    assert!(said.contains("1 event of phase \"P\" skipped"), "{said}");
    assert!(said.contains("the file is cut off"), "{said}");

    let converted = sandbox.trace(["convert", "events.json.gz", "events.fxt"]);
    assert!(converted.status.success(), "{converted:?}");
    let again = sandbox.trace(["dump", "events.fxt"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), DUMP);
}

/// A name that the command makes is that of no file; one that is named is replaced.
//= docs/command-line.md#names
#[test]
fn a_name_made_of_the_traces_name_replaces_nothing() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("a.b.json"), format!("{EVENTS}]}}")).unwrap();
    for name in ["a.b.html", "a.b.svg", "a.b.pftrace", "a.b-1.pftrace", "a.b.tables"] {
        fs::write(sandbox.file(name), "mine").unwrap();
    }
    for (arguments, made) in [
        (&["report", "a.b.json"][..], "a.b-1.html"),
        (&["report", "--svg", "a.b.json"], "a.b-1.svg"),
        (&["convert", "--format", "perfetto", "a.b.json"], "a.b-2.pftrace"),
        (&["convert", "--format", "catapult", "a.b.json"], "a.b-1.json"),
        (&["convert", "--format", "firefox", "a.b.json"], "a.b.firefox.json"),
        (&["convert", "--format", "firefox", "a.b.json"], "a.b-1.firefox.json"),
        (&["convert", "--format", "csv", "a.b.json"], "a.b-1.tables"),
    ] {
        let before = sandbox.files();
        let output = sandbox.trace(arguments);
        assert!(output.status.success(), "{output:?}");
        let new: Vec<String> = sandbox.files().into_iter().filter(|name| !before.contains(name)).collect();
        assert_eq!(new, [made], "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(made), "{said}");
    }
    for name in ["a.b.html", "a.b.svg", "a.b.pftrace", "a.b-1.pftrace", "a.b.tables"] {
        assert_eq!(fs::read_to_string(sandbox.file(name)).unwrap(), "mine", "{name}");
    }
    assert!(sandbox.trace(["report", "-o", "a.b.html", "a.b.json"]).status.success());
    assert!(fs::read_to_string(sandbox.file("a.b.html")).unwrap().starts_with("<!doctype html>"));
}

//= docs/import.md#json
#[test]
fn what_is_no_json_is_reported_with_its_place() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("events.json"), "[{\"ph\": \"i\"},\n  nonsense]").unwrap();
    let output = sandbox.trace(["convert", "events.json", "events.fxt"]);
    assert!(!output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("line 2, column 3"), "{said}");
}

/// Ctrl-C while more input is to come: no unfinished file, no directory, and the end that signals make.
//= docs/tables.md#csv
#[test]
fn what_is_interrupted_leaves_nothing_behind() {
    for (format, output) in [("catapult", "out.json"), ("csv", "tables")] {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command("trace");
        command.args(["convert", "--format", format, "-", output]).stdin(Stdio::piped());
        let mut process = Sandbox::spawn_command(command);
        process.say("[");
        wait_for("something unfinished", || (!sandbox.files().is_empty()).then_some(()));
        process.signal(Signal::INT);
        wait_for("its end", || (!process.is_running()).then_some(()));
        assert_eq!(process.finish().status.signal(), Some(Signal::INT.as_raw()), "{format}");
        assert_eq!(sandbox.files(), [""; 0], "{format}");
    }
}

/// With any number of threads, from a file, a pipe, and compressed data.
//= docs/catapult.md#document
#[test]
fn a_document_does_not_depend_on_the_number_of_threads() {
    let sandbox = Sandbox::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples");
    for name in ["fuchsia_device_window.fxt", "magic_trace_sample.fxt"] {
        let trace = samples.join(name);
        let file = File::create(sandbox.file("trace.fxt.gz")).unwrap();
        let mut compressed = GzEncoder::new(file, Compression::fast());
        compressed.write_all(&fs::read(&trace).unwrap()).unwrap();
        compressed.finish().unwrap();
        for format in ["catapult", "chrome"] {
            let convert = |threads: &str, input: &Path| {
                let mut command = sandbox.command("trace");
                command.args(["convert", "--format", format, "--jobs", threads]);
                match input.extension() {
                    Some(_) => command.arg(input),
                    None => command.arg("-").stdin(File::open(&trace).unwrap()),
                };
                let output = command.arg("-").output().unwrap();
                assert!(output.status.success(), "{output:?}");
                output.stdout
            };
            let of_one = convert("1", &trace);
            assert!(of_one.len() > 500_000, "{name}: {}", of_one.len());
            for (threads, input) in
                [("2", &*trace), ("7", &*trace), ("3", Path::new("-")), ("2", &sandbox.file("trace.fxt.gz"))]
            {
                assert!(convert(threads, input) == of_one, "{name} {format} {threads} {}", input.display());
            }
        }
    }
    let none = sandbox.trace(["convert", "--jobs", "0", "trace.fxt.gz", "trace.json"]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
}
