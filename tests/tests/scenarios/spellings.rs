//! Spellings of Fuchsia, ffx, `trace2json` and Perfetto that stay, and those of this tool that are no more.

use serde_json::Value;
use std::fs;
use trace_tests::build::program;
use trace_tests::{Archive, Sandbox};

fn succeeds(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.trace(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn events(sandbox: &Sandbox, name: &str) -> usize {
    Archive::read(&sandbox.file(name)).events.len()
}

//= docs/command-line.md#spellings-of-other-tools
#[test]
fn those_of_fuchsias_trace_record() {
    let sandbox = Sandbox::new();
    let emit = program("emit").to_str().unwrap();
    fs::write(sandbox.file("spec.json"), r#"{"duration": 9}"#).unwrap();
    let record = |options: &[&str], arguments: &[&str]| {
        succeeds(&sandbox, &[&["record"], options, &["--", emit], arguments].concat());
    };
    let all = [
        &["--output-file", "a.fxt"][..],
        &["--output-file=a.fxt", "--binary"],
        &["--output-file=a.fxt", "--binary=true", "--compress=false"],
        &["--output-file=a.fxt", "--duration=9", "--spawn", "--environment-name=nested"],
        &["--output-file=a.fxt", "--duration=8", "--duration=9"],
        &["--output-file=a.fxt", "--categories=*", "--return-child-result=true"],
        &["--output-file=a.fxt", "--category=*"],
        &["--output-file=a.fxt", "--buffer-size=8", "--provider-buffer-size=emit:16"],
        &["--output-file=a.fxt", "--buffering-mode=oneshot", "--trigger=stall:stop"],
        &["--output-file=a.fxt", "--spec-file=spec.json"],
        &["--output-file=a.fxt", "--detach=false", "--decouple=false"],
    ];
    for options in all {
        record(options, &["1", "3"]);
        assert_eq!(events(&sandbox, "a.fxt"), 3 * 14, "{options:?}");
        fs::remove_file(sandbox.file("a.fxt")).unwrap();
    }
    record(&["--output-file=a.fxt", "--append-args=1,3"], &[]);
    assert_eq!(events(&sandbox, "a.fxt"), 3 * 14);
    record(&["--output-file=a.fxt.gz", "--compress"], &["1", "3"]);
    record(&["--output-file=a.json", "--binary=false"], &["1", "3"]);
    let document: Value = serde_json::from_slice(&fs::read(sandbox.file("a.json")).unwrap()).unwrap();
    assert!(document["traceEvents"].is_array() && document["systemTraceEvents"].is_object());
    succeeds(&sandbox, &["list-providers"]);
    succeeds(&sandbox, &["list-categories"]);
}

/// Bare lists, and groups by their names, before and behind the command.
//= docs/command-line.md#spellings-of-other-tools
#[test]
fn those_of_ffx() {
    let sandbox = Sandbox::new();
    for mode in ["o", "c", "s"] {
        let start = ["start", "--output", "f.fxt", "--background", "--buffering-mode", mode];
        succeeds(&sandbox, &start);
        succeeds(&sandbox, &["status"]);
        succeeds(&sandbox, &["stop", "--output", "g.fxt", "-v", "--no-verify-trace"]);
        fs::remove_file(sandbox.file("g.fxt")).unwrap();
        let _ = fs::remove_file(sandbox.file("f.fxt"));
    }
    succeeds(
        &sandbox,
        &["start", "--output", "f.fxt", "--no-verify-trace", "--categories", "#default,emit/x"],
    );
    for listing in ["list-providers", "list-categories", "list-category-groups"] {
        for arguments in [&["--machine", "json", listing][..], &[listing, "--machine", "json"]] {
            let list: Value = serde_json::from_str(&succeeds(&sandbox, arguments)).expect("JSON");
            assert_eq!(list.is_array(), listing != "list-category-groups", "{arguments:?}: {list}");
        }
    }
    succeeds(&sandbox, &["stop", "--abort"]);
}

//= docs/command-line.md#spellings-of-other-tools
#[test]
fn those_of_trace2json_and_perfetto() {
    let sandbox = Sandbox::new();
    sandbox.record(&["-o", "a.fxt"], "emit", &["1", "3"]);
    let convert = ["trace2json", "--input-file=a.fxt", "--output-file=a.json"];
    succeeds(&sandbox, &convert);
    let more = ["--system-event-output-file=system.json", "--pattern=.*", "--category=emit"];
    let catapult = ["trace2json", "--format", "catapult", "--input-file", "a.fxt", "--output-file", "b.json"];
    succeeds(&sandbox, &[&catapult[..], &more].concat());
    for name in ["a.json", "b.json"] {
        let document: Value = serde_json::from_slice(&fs::read(sandbox.file(name)).unwrap()).unwrap();
        assert_eq!(
            document["traceEvents"].as_array().map(|events| events.len() > 3 * 10),
            Some(true),
            "{name}"
        );
    }
    let text = "duration_ms: 60000\ndata_sources { config { name: \"track_event\" } }\n";
    fs::write(sandbox.file("perfetto.cfg"), text).unwrap();
    let emit = program("emit");
    let mut command = sandbox.command("trace");
    command.args(["record", "-c", "-", "--txt", "-o", "p.pftrace", "--"]).arg(emit).args(["1", "3"]);
    let output = command.stdin(fs::File::open(sandbox.file("perfetto.cfg")).unwrap()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(sandbox.file("p.pftrace").exists());
}

//= docs/command-line.md#names
#[test]
fn those_that_are_no_more_are_answered_with_the_new_ones() {
    let sandbox = Sandbox::new();
    for (arguments, answer) in [
        (&["config"][..], "there is no trace config any more: it is trace record --print-config"),
        (
            &["convert", "--to", "csv", "a.fxt"],
            "invalid value 'csv' for '--to <TIME>': it is a time, and a format is --format csv; see --help",
        ),
        (
            &["query", "--sql-file", "a.sql", "a.fxt"],
            "trace query has no --sql-file any more: it is --file FILE",
        ),
        (
            &["start", "--name", "x"],
            "trace start has no --name any more: the name of a recording is --label NAME",
        ),
    ] {
        let output = sandbox.trace(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("trace: {answer}\n"));
    }
}
