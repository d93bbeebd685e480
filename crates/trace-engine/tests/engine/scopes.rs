//! Pages for open scopes, from one trace to the next.

use crate::support::{PATIENCE, Trace, alone};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use trace_engine::duration;

/// Threads that only begin and end scopes store into the pages while they count as outside of events: nothing
/// waits for them when a trace ends.
//= docs/buffer.md#open-scopes
#[test]
fn traces_end_while_threads_begin_and_end_scopes() {
    const THREADS: usize = 2;
    const TRACES: usize = 30;
    let (is_over, scopes) = (AtomicBool::new(false), AtomicU64::new(0));
    let spin = || {
        while !is_over.load(Ordering::Relaxed) {
            duration!("cat", "outer");
            duration!("cat", "inner", "number" => 7_u64);
            scopes.fetch_add(1, Ordering::Relaxed);
        }
    };
    // Until the threads have ended: they would write into the traces of other tests.
    let turn = alone();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(spin);
        }
        for _ in 0..TRACES {
            let trace = Trace::start_after(&turn, |_| ());
            let (begun, deadline) = (scopes.load(Ordering::Relaxed), Instant::now() + PATIENCE);
            while scopes.load(Ordering::Relaxed) < begun + 100 {
                assert!(Instant::now() < deadline, "no scope ends");
                std::thread::yield_now();
            }
            // Without a look at what was recorded.
            drop(trace);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
