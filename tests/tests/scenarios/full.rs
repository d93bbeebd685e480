//! A buffer that becomes full.

use std::fs;
use trace_tests::{Archive, Sandbox};

#[test]
fn a_full_buffer_keeps_a_prefix_and_counts_the_rest() {
    const EVENTS: u64 = 60_000;
    const THREADS: u64 = 4;
    let sandbox = Sandbox::new();
    let page = sandbox.file("page");
    fs::write(&page, [0; 4096]).unwrap();
    let output = sandbox.record(&[], "burst", &[page.to_str().unwrap(), &EVENTS.to_string()]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let kept = archive.events.len() as u64;
    assert!(kept > 50_000 && kept < THREADS * EVENTS, "{kept}");
    for events in archive.by_thread("event").values() {
        let numbers: Vec<u64> = events.iter().map(|event| event.u64("n")).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "out of order or with gaps");
    }
    assert_eq!(archive.filled_up.len(), 1);
    assert_eq!(archive.providers[&archive.filled_up[0]], "burst");
    // Everything that was emitted was kept or counted.
    let stderr = String::from_utf8_lossy(&output.stderr);
    let dropped = THREADS * EVENTS - kept;
    assert!(stderr.contains(&format!("dropped {dropped} records")), "{kept} kept; {stderr}");
}
