//! Every command that reads a trace, on every trace of other software.
#![forbid(unsafe_code)]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use trace_tests::Sandbox;

/// Name, records, events, problems that `check` finds, and what an archive has nothing for.
///
/// The events of JSON files were counted by another program.
type Sample = (&'static str, u64, u64, &'static [(&'static str, u64)], &'static [&'static str]);

const SAMPLES: [Sample; 17] = [
    (
        "catapult_async_begin_end.json",
        55,
        35,
        &[("unmatched-async-begin", 5), ("unmatched-async-end", 3), ("unmatched-async-instant", 2)],
        &[],
    ),
    ("catapult_flow_simple.json", 20, 10, &[], &["1 member stackFrames"]),
    ("catapult_fuchsia_trace.json.gz", 184_629, 137_093, &[], &[]),
    ("catapult_instance_counters.json", 20, 12, &[], &[]),
    ("catapult_instant_events.json", 13, 5, &[], &[]),
    (
        "catapult_nestable_async.json",
        36,
        20,
        &[("unmatched-async-instant", 2), ("unmatched-async-begin", 1), ("unmatched-async-end", 1)],
        &["1 member stackFrames"],
    ),
    ("catapult_simple_trace.json", 65, 31, &[], &["3 events of phase \"P\"", "1 member stackFrames"]),
    ("catapult_simple_trace_gz.json.gz", 61, 29, &[], &["3 events of phase \"P\""]),
    (
        "fuchsia_device_window.fxt",
        13_685,
        10_774,
        &[("unmatched-end", 11), ("unmatched-async-end", 1), ("unmatched-flow-end", 7)],
        &[],
    ),
    (
        "fuchsia_device_window.json",
        13_812,
        10_728,
        &[("unmatched-end", 11), ("unmatched-async-end", 1), ("unmatched-flow-end", 7)],
        &[],
    ),
    ("magic_trace_sample.fxt", 35_463, 34_592, &[("unmatched-end", 19), ("unmatched-begin", 19)], &[]),
    ("perfetto_flow_events_json_v2.json", 19, 8, &[], &[]),
    ("perfetto_json__json_all_slice_types.json", 33, 9, &[], &[]),
    ("perfetto_json__json_counter_args.json", 26, 1, &[("empty-counter", 1)], &[]),
    ("perfetto_json__json_incomplete.json", 5, 1, &[], &[]),
    ("perfetto_json__json_trailing_comma.json", 7, 2, &[], &[]),
    ("perfetto_json__string_ts_and_dur.json", 9, 3, &[], &[]),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeds(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let output = sandbox.trace(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    output
}

/// What `check` says of a file: its records, events and problems.
fn checked(sandbox: &Sandbox, file: &str) -> (u64, u64, Vec<(String, u64)>) {
    let output = sandbox.trace(["check", "--json", file]);
    let report: Value = serde_json::from_slice(&output.stdout).expect(file);
    let problems = report["problems"].as_array().unwrap().iter();
    let problems: Vec<_> = problems
        .map(|problem| (problem["kind"].as_str().unwrap().to_owned(), problem["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(output.status.code(), Some(i32::from(!problems.is_empty())), "{file}");
    (report["records"].as_u64().unwrap(), report["events"].as_u64().unwrap(), problems)
}

#[test]
fn every_sample_is_listed_with_its_origin() {
    let mut found: Vec<String> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    found.sort();
    assert_eq!(found, SAMPLES.map(|sample| sample.0));
}

//= docs/import.md#json
//= docs/import.md#events
//= docs/import.md#beside-the-events
#[test]
fn every_command_reads_every_sample() {
    let sandbox = Sandbox::new();
    for (name, records, events, problems, skipped) in SAMPLES {
        let path = directory().join(name);
        let path = path.to_str().unwrap();
        let problems: Vec<_> = problems.iter().map(|&(kind, count)| (kind.to_owned(), count)).collect();
        assert_eq!(checked(&sandbox, path), (records, events, problems.clone()), "{name}");

        let dumped = succeeds(&sandbox, &["dump", path]);
        assert_eq!(text(&dumped.stdout).lines().count() as u64, records, "{name}");
        let said = text(&dumped.stderr);
        let told: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("trace: ")).collect();
        let left_out = |line: &&&str| line.contains(" left out: ");
        assert_eq!(told.iter().filter(left_out).count(), skipped.len(), "{name}: {said}");
        for skipped in skipped {
            assert!(told.iter().any(|line| line.starts_with(skipped)), "{name}: {said}");
        }

        for output in ["out.fxt", "out.pftrace"] {
            succeeds(&sandbox, &["convert", path, output]);
        }
        for (dialect, output) in [("catapult", "out.json"), ("chrome", "chrome.json")] {
            succeeds(&sandbox, &["convert", "--to", dialect, path, output]);
            let written = fs::read(sandbox.file(output)).unwrap();
            serde_json::from_slice::<Value>(&written).expect(name);
        }
        assert_eq!(checked(&sandbox, "out.fxt"), (records, events, problems), "{name}");
    }
}
