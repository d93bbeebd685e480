//! Every command that reads a trace, on every trace of other software.
#![forbid(unsafe_code)]

use serde_json::Value;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Mutex;
use std::thread;
use trace_tests::Sandbox;

/// What the commands find in a file. Events of JSON files, lines of text, and slices and counters of all were
/// counted by other programs.
struct Sample {
    name: &'static str,
    records: u64,
    events: u64,
    /// What `check` finds.
    problems: &'static [(&'static str, u64)],
    /// What an archive has nothing for.
    left_out: &'static [&'static str],
    /// Of each table.
    rows: [u64; TABLES.len()],
}

const TABLES: [&str; 8] = ["slices", "instants", "counters", "flows", "threads", "sched", "wakeups", "logs"];

const SAMPLES: [Sample; 26] = [
    Sample {
        name: "catapult_android_systrace_unescaped.txt",
        records: 123,
        events: 0,
        problems: &[],
        left_out: &[],
        rows: [0, 0, 0, 0, 13, 40, 33, 0],
    },
    Sample {
        name: "catapult_async_begin_end.json",
        records: 55,
        events: 35,
        problems: &[("unmatched-async-begin", 3), ("unmatched-async-end", 1)],
        left_out: &[],
        rows: [15, 7, 0, 0, 6, 0, 0, 0],
    },
    Sample {
        name: "catapult_flow_simple.json",
        records: 20,
        events: 10,
        problems: &[],
        left_out: &["1 member \"stackFrames\""],
        rows: [5, 0, 0, 5, 5, 0, 0, 0],
    },
    Sample {
        name: "catapult_fuchsia_trace.json.gz",
        records: 184_629,
        events: 137_093,
        problems: &[],
        left_out: &[],
        rows: [66_675, 372, 1612, 2700, 340, 46_691, 0, 0],
    },
    Sample {
        name: "catapult_instance_counters.json",
        records: 20,
        events: 12,
        problems: &[],
        left_out: &[],
        rows: [2, 0, 8, 0, 1, 0, 0, 0],
    },
    Sample {
        name: "catapult_instant_events.json",
        records: 13,
        events: 5,
        problems: &[],
        left_out: &[],
        rows: [0, 5, 0, 0, 3, 0, 0, 0],
    },
    Sample {
        name: "catapult_nestable_async.json",
        records: 36,
        events: 20,
        problems: &[("unmatched-async-begin", 1), ("unmatched-async-end", 1)],
        left_out: &["1 member \"stackFrames\""],
        rows: [9, 2, 0, 0, 1, 0, 0, 0],
    },
    Sample {
        name: "catapult_simple_trace.json",
        records: 65,
        events: 31,
        problems: &[],
        left_out: &["3 events of phase \"P\"", "1 member \"stackFrames\""],
        rows: [12, 6, 5, 0, 4, 0, 0, 0],
    },
    Sample {
        name: "catapult_simple_trace_gz.json.gz",
        records: 61,
        events: 29,
        problems: &[],
        left_out: &["3 events of phase \"P\""],
        rows: [12, 4, 5, 0, 3, 0, 0, 0],
    },
    Sample {
        name: "catapult_trivial_systrace.html",
        records: 22,
        events: 4,
        problems: &[],
        left_out: &[],
        rows: [0, 0, 4, 0, 3, 0, 0, 0],
    },
    Sample {
        name: "fuchsia_device_window.fxt",
        records: 13_685,
        events: 10_774,
        problems: &[("unmatched-end", 11), ("unmatched-async-end", 1)],
        left_out: &[],
        rows: [5232, 5, 74, 219, 36, 2817, 0, 0],
    },
    Sample {
        name: "fuchsia_device_window.json",
        records: 13_829,
        events: 10_728,
        problems: &[("unmatched-end", 11), ("unmatched-async-end", 1)],
        left_out: &[],
        rows: [5232, 5, 74, 219, 36, 2817, 0, 0],
    },
    Sample {
        name: "linux_ftrace_text.txt",
        records: 4359,
        events: 2076,
        problems: &[],
        left_out: &[],
        rows: [753, 51, 519, 0, 128, 659, 747, 0],
    },
    Sample {
        name: "linux_tracebox_sched.pftrace",
        records: 5735,
        events: 2969,
        problems: &[],
        left_out: &[
            "2 first switches of a CPU, which do not tell who ran",
            "71 sched_process_exit kernel events",
            "69 sched_process_fork kernel events",
            "8 sys_stats packets",
        ],
        rows: [1142, 0, 685, 0, 96, 465, 1022, 0],
    },
    Sample {
        name: "magic_trace_sample.fxt",
        records: 35_463,
        events: 34_592,
        problems: &[],
        left_out: &[],
        rows: [17_296, 0, 0, 0, 1, 0, 0, 0],
    },
    Sample {
        name: "perfetto_android__binder_txn_sync_good.systrace",
        records: 41,
        events: 11,
        problems: &[],
        left_out: &[],
        rows: [0, 11, 0, 0, 2, 0, 0, 0],
    },
    Sample {
        name: "perfetto_cpu_frequency_limits.systrace",
        records: 24,
        events: 12,
        problems: &[],
        left_out: &[],
        rows: [0, 0, 24, 0, 2, 0, 0, 0],
    },
    Sample {
        name: "perfetto_flow_events_json_v2.json",
        records: 28,
        events: 14,
        problems: &[],
        left_out: &[],
        rows: [6, 1, 0, 6, 5, 0, 0, 0],
    },
    Sample {
        name: "perfetto_json__json_all_slice_types.json",
        records: 35,
        events: 9,
        problems: &[],
        left_out: &[],
        rows: [2, 6, 0, 0, 3, 0, 0, 0],
    },
    Sample {
        name: "perfetto_json__json_counter_args.json",
        records: 21,
        events: 1,
        problems: &[],
        left_out: &[],
        rows: [0, 0, 5, 0, 1, 0, 0, 0],
    },
    Sample {
        name: "perfetto_json__json_incomplete.json",
        records: 5,
        events: 1,
        problems: &[("truncated", 1)],
        left_out: &[],
        rows: [1, 0, 0, 0, 1, 0, 0, 0],
    },
    Sample {
        name: "perfetto_json__json_trailing_comma.json",
        records: 7,
        events: 2,
        problems: &[],
        left_out: &[],
        rows: [2, 0, 0, 0, 1, 0, 0, 0],
    },
    Sample {
        name: "perfetto_json__string_ts_and_dur.json",
        records: 11,
        events: 3,
        problems: &[],
        left_out: &[],
        rows: [2, 0, 0, 0, 2, 0, 0, 0],
    },
    Sample {
        name: "perfetto_parser_track_event_flow_events_track_event.pftrace",
        records: 59,
        events: 35,
        problems: &[("unmatched-flow-begin", 2)],
        left_out: &[],
        rows: [11, 0, 0, 13, 4, 0, 0, 0],
    },
    Sample {
        name: "perfetto_parser_track_event_track_event_counters.pftrace",
        records: 53,
        events: 29,
        problems: &[],
        left_out: &[],
        rows: [4, 3, 18, 0, 3, 0, 0, 0],
    },
    Sample {
        name: "perfetto_parser_track_event_track_event_tracks.pftrace",
        records: 53,
        events: 16,
        problems: &[],
        left_out: &[],
        rows: [1, 14, 0, 0, 8, 0, 0, 0],
    },
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
    let answer = trace_tests::Answer::of(&output);
    let (report, problems) = (&answer.result, answer.problems.iter());
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
    assert_eq!(found, SAMPLES.map(|sample| sample.name));
}

/// The rows of each table, as a question and as files.
fn rows(sandbox: &Sandbox, file: &str) -> [u64; TABLES.len()] {
    let counts = TABLES.map(|table| format!("(SELECT count(*) FROM {table})")).join(", ");
    let answer = succeeds(sandbox, &["query", "--format", "csv", &format!("SELECT {counts}"), file]);
    let answer = text(&answer.stdout);
    let counts: Vec<u64> =
        answer.lines().last().unwrap().split(',').map(|count| count.parse().unwrap()).collect();
    succeeds(sandbox, &["convert", "--format", "csv", file, "tables"]);
    let lines = TABLES.map(|table| {
        let file = fs::File::open(sandbox.file("tables").join(format!("{table}.csv"))).unwrap();
        csv::Reader::from_reader(file).records().map(Result::unwrap).count() as u64
    });
    assert_eq!(counts, lines, "{file}");
    lines
}

//= docs/import.md#json
//= docs/import.md#events
//= docs/import.md#beside-the-events
//= docs/import.md#ftrace
//= docs/import.md#perfetto
//= docs/tables.md#tables
//= docs/tables.md#csv
//= docs/tables.md#questions
#[test]
fn every_command_reads_every_sample() {
    let next = Mutex::new(SAMPLES.into_iter());
    let take = || next.lock().unwrap().next();
    let read_some = || {
        while let Some(sample) = take() {
            is_read_by_every_command(sample);
        }
    };
    thread::scope(|scope| {
        (0..thread::available_parallelism().map_or(1, NonZero::get))
            .for_each(|_| drop(scope.spawn(read_some)));
    });
}

fn is_read_by_every_command(sample: Sample) {
    let Sample { name, records, events, problems, left_out, rows: expected } = sample;
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("spec.json"), NOTHING).unwrap();
    let path = directory().join(name);
    let path = path.to_str().unwrap();
    let problems: Vec<_> = problems.iter().map(|&(kind, count)| (kind.to_owned(), count)).collect();
    assert_eq!(checked(&sandbox, path), (records, events, problems.clone()), "{name}");

    let dumped = succeeds(&sandbox, &["dump", path]);
    assert_eq!(text(&dumped.stdout).lines().count() as u64, records, "{name}");
    let said = text(&dumped.stderr);
    let reported: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("trace: ")?.split_once(" skipped: "))
        .map(|(what, _)| what)
        .collect();
    assert_eq!(reported, left_out, "{name}");

    let measured = sandbox.trace(["measure", "--spec-file", "spec.json", path]);
    assert_eq!(measured.status.code(), Some(1), "{name}");
    assert!(text(&measured.stderr).contains("measurement nothing of category none has no sample"), "{name}");
    assert_eq!(rows(&sandbox, path), expected, "{name}");

    for output in ["out.fxt", "out.pftrace"] {
        succeeds(&sandbox, &["convert", path, output]);
    }
    // The same each time.
    for output in ["out.fxt", "out.pftrace"] {
        let again = format!("again-{output}");
        succeeds(&sandbox, &["convert", path, &again]);
        let read = |name: &str| fs::read(sandbox.file(name)).unwrap();
        assert!(read(output) == read(&again), "{name} as {output}");
    }
    for (dialect, output) in [("catapult", "out.json"), ("chrome", "chrome.json")] {
        succeeds(&sandbox, &["convert", "--format", dialect, path, output]);
        let written = fs::read(sandbox.file(output)).unwrap();
        serde_json::from_slice::<Value>(&written).expect(name);
    }
    // What is made of a file that is cut off is whole.
    let problems: Vec<_> = problems.into_iter().filter(|(kind, _)| kind != "truncated").collect();
    assert_eq!(checked(&sandbox, "out.fxt"), (records, events, problems), "{name}");
    // What has no place in an archive is lost, and an error if it must not be.
    let strict = sandbox.trace(["convert", "--strict", path, "strict.fxt"]);
    assert_eq!(strict.status.success(), left_out.is_empty(), "{name}: {}", text(&strict.stderr));
    let is_there = fs::remove_file(sandbox.file("strict.fxt")).is_ok();
    assert_eq!(is_there, left_out.is_empty(), "{name}");
}

/// A specification of which no trace has a sample.
const NOTHING: &str = r#"{
    "test_name": "nothing",
    "measure": [{"type": "duration", "event_name": "nothing", "event_category": "none"}]
}"#;
