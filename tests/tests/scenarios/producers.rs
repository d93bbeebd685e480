//! Traces that other programs have made: Perfetto's reader finds the same slices in each and in what was
//! converted.
//!
//! The files in `tests/data/producers` are small ones. `PRODUCERS` names a directory with others, which
//! `tests/producers/make` makes.

use std::path::{Path, PathBuf};
use std::process::Command;
use trace_tests::Sandbox;
use trace_tests::build::workspace;
use trace_tests::perfetto::{Rows, Version, query_all_in};
use trace_tests::requirement::Requirement;

/// Files, and how many slices each has.
const FILES: [(&str, usize); 8] = [
    ("clang-time-trace.json.gz", 772),
    ("go-build.json.gz", 311),
    ("onnxruntime.json.gz", 22),
    ("py-spy.json.gz", 3),
    ("rustc-llvm-timings.json.gz", 1471),
    ("tsc.json.gz", 761),
    ("viztracer.json.gz", 292),
    ("webpack.json.gz", 99),
];

/// Slices with their place. webpack writes a slice without a length, which Perfetto does not read. Numbers of
/// threads count as none that have more than 32 bits, as py-spy's do, or are 0, as Go's are: the export
/// replaces them by others from 2^30.
const SLICES: &str = "SELECT s.ts, s.dur, s.name, ifnull(s.category, '') AS category, pid, process.name AS process, \
     iif(tid > 0x3fffffff OR tid <= 0 OR ifnull(s.category, '') = 'py-spy', NULL, tid) AS tid, thread.name AS thread FROM slice s \
     LEFT JOIN thread_track t ON s.track_id = t.id LEFT JOIN thread USING (utid) LEFT JOIN process USING (upid) \
     WHERE s.dur <> 0 OR ifnull(s.category, '') <> 'toplevel' ORDER BY 1, 2, 3, 4, 5, 7";

/// The slices of files, and of what is made of them.
fn pairs(test: &str, files: &[PathBuf]) -> Option<Vec<(Rows, Rows)>> {
    let sandbox = Sandbox::new();
    let mut questions = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let converted = sandbox.file(&format!("{number}.pftrace"));
        let output = sandbox.trace(["convert", file.to_str().unwrap(), converted.to_str().unwrap()]);
        assert!(output.status.success(), "{}: {output:?}", file.display());
        questions.extend([file.clone(), converted].map(|path| (path, SLICES.to_owned())));
    }
    let mut answers = query_all_in(Version::V55, test, &questions)?.into_iter();
    Some(std::iter::from_fn(|| answers.next().zip(answers.next())).collect())
}

fn assert_same(file: &Path, original: &Rows, converted: &Rows) {
    let different = original.iter().zip(converted).find(|(original, converted)| original != converted);
    assert_eq!(different, None, "{}", file.display());
    assert_eq!(original.len(), converted.len(), "{}", file.display());
}

//= docs/import.md#json
#[test]
fn traces_of_other_programs_have_the_same_slices_when_converted() {
    let test = "traces_of_other_programs_have_the_same_slices_when_converted";
    let directory = workspace().join("tests/data/producers");
    let files: Vec<PathBuf> = FILES.iter().map(|(file, _)| directory.join(file)).collect();
    let Some(pairs) = pairs(test, &files) else { return };
    for ((file, (_, count)), (original, converted)) in files.iter().zip(FILES).zip(&pairs) {
        assert_eq!(original.len(), count, "{}", file.display());
        assert_same(file, original, converted);
    }
}

/// The same of files that were made today, for campaigns.
#[test]
fn fresh_traces_of_other_programs_have_the_same_slices_when_converted() {
    let test = "fresh_traces_of_other_programs_have_the_same_slices_when_converted";
    let Some(directory) = std::env::var_os("PRODUCERS") else { return };
    let entries = std::fs::read_dir(directory).expect("a directory");
    let files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    assert!(files.len() >= FILES.len(), "{files:?}");
    for (file, (original, converted)) in files.iter().zip(pairs(test, &files).expect("Perfetto's reader")) {
        assert!(!original.is_empty(), "{}", file.display());
        assert_same(file, &original, &converted);
    }
}

/// The time of each sample in a text of perf's in nanoseconds, and the thread.
fn samples(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(" cpu-clock:"));
    let mut samples: Vec<String> = lines
        .map(|line| {
            let (before, _) = line.split_once(": ").expect("a time");
            let words: Vec<&str> = before.split_whitespace().collect();
            let [.., ids, time] = words.as_slice() else { panic!("{line}") };
            let (pid, tid) = ids.split_once('/').expect("a process and a thread");
            let (seconds, fraction) = time.split_once('.').expect("a fraction");
            assert_eq!(fraction.len(), 9, "{line}");
            format!("{seconds}{fraction},{pid},{tid}")
        })
        .collect();
    samples.sort();
    samples
}

//= docs/import.md#perf
#[test]
fn samples_of_perf_are_those_of_its_text() {
    if !Requirement::PerfTool.is_met("samples_of_perf_are_those_of_its_text") {
        return;
    }
    let sandbox = Sandbox::new();
    let (data, text) = (sandbox.file("perf.data"), sandbox.file("perf.txt"));
    let mut record = Command::new("perf");
    record.args([
        "record",
        "--quiet",
        "--event",
        "cpu-clock:u",
        "--freq",
        "2000",
        "--call-graph",
        "fp",
        "--output",
    ]);
    let counting = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done";
    let output = record.arg(&data).args(["sh", "-c", counting]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut script = Command::new("perf");
    script.args(["script", "--ns", "--fields", "+pid", "--input"]).arg(&data);
    let printed = script.output().unwrap();
    assert!(printed.status.success(), "{printed:?}");
    std::fs::write(&text, &printed.stdout).unwrap();
    let expected = samples(&String::from_utf8_lossy(&printed.stdout));
    assert!(!expected.is_empty());
    let question = "SELECT ts || ',' || pid || ',' || tid AS sample FROM samples ORDER BY 1";
    let answer = sandbox.trace(["query", "--format", "csv", question, text.to_str().unwrap()]);
    let answer = String::from_utf8(answer.stdout).unwrap();
    let found: Vec<&str> = answer.lines().skip(1).map(|line| line.trim_matches('"')).collect();
    assert_eq!(found, expected);
}
