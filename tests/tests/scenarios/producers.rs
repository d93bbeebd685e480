//! Traces that other programs have made: Perfetto's reader finds the same slices in each and in what was
//! converted.
//!
//! The files in `tests/data/producers` are small ones. `PRODUCERS` names a directory with others, which
//! `tests/producers/make` makes.

use std::path::{Path, PathBuf};
use trace_tests::Sandbox;
use trace_tests::build::workspace;
use trace_tests::perfetto::{Rows, Version, query_all_in};

/// Files, and how many slices each has.
const FILES: [(&str, usize); 7] = [
    ("clang-time-trace.json.gz", 772),
    ("onnxruntime.json.gz", 22),
    ("py-spy.json.gz", 3),
    ("rustc-llvm-timings.json.gz", 1471),
    ("tsc.json.gz", 761),
    ("viztracer.json.gz", 292),
    ("webpack.json.gz", 99),
];

/// Slices with their place. webpack writes a slice without a length, which Perfetto does not read. py-spy's
/// thread numbers have more than 32 bits, which Perfetto cuts: those count as none.
const SLICES: &str = "SELECT s.ts, s.dur, s.name, ifnull(s.category, '') AS category, pid, process.name AS process, \
     iif(tid > 0x7fffffff OR tid < 0 OR ifnull(s.category, '') = 'py-spy', NULL, tid) AS tid, thread.name AS thread FROM slice s \
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
