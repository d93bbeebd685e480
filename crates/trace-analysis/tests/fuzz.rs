//! Replays the fuzz targets over their corpus and over the conformance corpus.

use std::path::Path;

#[path = "../../trace-reader/fuzz/replay.rs"]
mod replay;
#[path = "../fuzz/targets.rs"]
mod targets;

fn replay(name: &str, target: fn(&[u8])) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    replay::replay(&[here.join(name), here.join("../../tests/data/corpus")], target);
}

#[test]
fn check() {
    replay("fuzz/corpus/check", targets::check);
}

#[test]
fn check_damaged() {
    replay("../trace-reader/fuzz/corpus/structured", targets::check_damaged);
}
