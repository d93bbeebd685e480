//! Replays the fuzz targets over their corpus and over the conformance corpus.

use std::path::Path;

#[path = "../fuzz/replay.rs"]
mod replay;
#[path = "../fuzz/targets.rs"]
mod targets;

fn replay(name: &str, target: fn(&[u8])) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    replay::replay(&[here.join("fuzz/corpus").join(name), here.join("../../tests/data/corpus")], target);
}

#[test]
fn records() {
    replay("records", targets::records);
}

#[test]
fn resolved() {
    replay("resolved", targets::resolved);
}

#[test]
fn structured() {
    replay("structured", targets::structured);
}
