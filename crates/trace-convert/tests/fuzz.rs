//! Replays the fuzz targets over the conformance corpus and over traces of other software.

use std::fs;
use std::path::Path;

#[path = "../fuzz/targets.rs"]
mod targets;

/// Larger samples take their time, and are converted by a scenario.
const MOST_BYTES: usize = 10_000;

fn replay(target: fn(&[u8])) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    for directory in ["corpus", "samples"] {
        let entries = fs::read_dir(data.join(directory)).expect("a directory");
        let files = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
        let inputs = files.map(|path| fs::read(path).expect("a file"));
        let inputs: Vec<Vec<u8>> = inputs.filter(|input| input.len() <= MOST_BYTES).collect();
        assert!(inputs.len() > 10, "{directory}");
        inputs.iter().for_each(|input| target(input));
    }
}

#[test]
fn export() {
    replay(targets::export);
}

#[test]
fn container() {
    replay(targets::container);
}

#[test]
fn import_json() {
    replay(targets::import_json);
}

#[test]
fn import_ftrace() {
    replay(targets::import_ftrace);
}

#[test]
fn import_perfetto() {
    replay(targets::import_perfetto);
}
