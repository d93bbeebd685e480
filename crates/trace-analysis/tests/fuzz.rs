//! Replays the fuzz targets over their corpus and over the conformance corpus.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../fuzz/targets.rs"]
mod targets;

fn inputs(directory: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let inputs: Vec<_> =
        paths.iter().filter(|path| path.is_file()).map(|path| fs::read(path).expect("a file")).collect();
    assert!(!inputs.is_empty(), "nothing in {}", directory.display());
    inputs
}

fn replay(name: &str, target: fn(&[u8])) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for directory in [here.join(name), here.join("../../tests/data/corpus")] {
        for input in inputs(&directory) {
            target(&input);
        }
    }
}

#[test]
fn check() {
    replay("fuzz/corpus/check", targets::check);
}

#[test]
fn check_damaged() {
    replay("../trace-reader/fuzz/corpus/structured", targets::check_damaged);
}
