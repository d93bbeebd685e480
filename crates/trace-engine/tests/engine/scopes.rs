//! Pages for open scopes, from one trace to the next.

use crate::support::{Trace, alone};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use trace_engine::{BufferMode, duration};

/// Mappings of this process.
fn mappings() -> usize {
    fs::read_to_string("/proc/self/maps").expect("the mappings").lines().count()
}

/// Threads that only begin and end scopes store into the pages while they count as outside of events: nothing
/// waits for them when a trace ends.
//= docs/buffer.md#open-scopes
#[test]
fn traces_end_while_threads_begin_and_end_scopes() {
    let is_over = AtomicBool::new(false);
    let spin = || {
        while !is_over.load(Ordering::Relaxed) {
            duration!("cat", "outer");
            duration!("cat", "inner", "number" => 7_u64);
        }
    };
    let before = {
        let _turn = alone();
        mappings()
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(spin);
        }
        for round in 0..100 {
            let mode = [BufferMode::Oneshot, BufferMode::Circular][round % 2];
            let trace = Trace::start_in(mode, 64 << 10);
            (0..50).for_each(|_| std::thread::yield_now());
            // Without a look at what was recorded.
            drop(trace);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // Two stacks, two blocks of threads, and the ranges, which stay.
    let after = mappings();
    assert!(after <= before + 20, "{before} mappings before, {after} after");
}
