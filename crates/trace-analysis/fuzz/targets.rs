//! What is fuzzed: plain functions of bytes, which `cargo fuzz` feeds and a test replays over the corpus.
#![allow(dead_code, reason = "each program uses one of them")]

use trace_analysis::check::{KINDS, Limits, check_slice};
use trace_format::metadata::MAGIC_WORD;

#[path = "../../trace-reader/fuzz/targets.rs"]
mod reader;

/// Checks.
pub fn check(data: &[u8]) {
    let trace = [&MAGIC_WORD.to_le_bytes(), data].concat();
    let report = check_slice(
        &trace,
        Limits { table_bytes: 1 << 16, open_spans: 100, clock_times: 1000, usage_bytes: 1 << 12 },
    );
    let report = report.expect("it has the magic number");
    assert_eq!(report.bytes, trace.len() as u64);
    for problem in report.problems {
        assert!(problem.count >= problem.first.len() as u64 && !problem.first.is_empty());
        assert!(KINDS.contains(&problem.kind));
    }
}

/// Checks a trace that was sound before some of its bits were flipped.
pub fn check_damaged(data: &[u8]) {
    check(&reader::damaged(data)[8..]);
}
