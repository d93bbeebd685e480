//! Records every kind of event over and over, on a thread called "recorder": `calls THREADS HOOKED`. A call
//! of getppid stands where the first thousand events are over, and one at the end.

use std::sync::{Arc, Barrier};
use trace_provider::{
    Koid, Scope, TraceProvider, async_begin, async_end, async_instant, blob, blob_attachment, blob_record,
    counter, duration, duration_begin, duration_end, flow_begin, flow_end, flow_step, instant, kernel_object,
    log,
};

const WARM_ROUNDS: u64 = 100;
const ROUNDS: u64 = 800;
const BLOB: [u8; 300] = [7; 300];

fn round(n: u64) {
    instant!("calls", "instant", Scope::Thread, "n" => n, "text" => "some text");
    counter!("calls", "counter", 0, "value" => n);
    duration!("calls", "scope", "n" => n);
    duration_begin!("calls", "pair");
    duration_end!("calls", "pair", "n" => n);
    async_begin!(n, "calls", "operation");
    async_instant!(n, "calls", "step");
    async_end!(n, "calls", "operation");
    flow_begin!("calls", "flow", n);
    flow_step!("calls", "flow", n);
    flow_end!("calls", "flow", n);
    log!("calls", "a message with {n}");
    blob!("calls", "blob event", &BLOB, "n" => n);
    blob_attachment!("calls", "attachment", &BLOB);
    blob_record!("calls", 1, "blob", &BLOB);
    kernel_object!("calls", 1, Koid(n), "object");
    instant!("not asked for", "instant", Scope::Thread);
}

macro_rules! each_eight {
    ($($site:tt)*) => { $($site)* $($site)* $($site)* $($site)* $($site)* $($site)* $($site)* $($site)* };
}

fn mark() {
    // SAFETY: no memory is touched.
    unsafe { libc::getppid() };
}

fn main() {
    let _provider = TraceProvider::new("calls");
    let arguments: Vec<String> = std::env::args().collect();
    let others: usize = arguments[1].parse().expect("a number");
    if arguments[2] == "hooked" {
        trace_provider::hook::set(Some(Box::new(|event| event.arguments.len() < 100)));
    }
    let begun = Arc::new(Barrier::new(others + 1));
    for _ in 0..others {
        let begun = Arc::clone(&begun);
        let sleep = move || {
            instant!("calls", "another thread", Scope::Thread);
            begun.wait();
            loop {
                std::thread::park();
            }
        };
        std::thread::Builder::new().stack_size(128 << 10).spawn(sleep).expect("a thread");
    }
    begun.wait();
    let work = || {
        (0..WARM_ROUNDS).for_each(round);
        mark();
        (0..ROUNDS).for_each(round);
        // Sites that are new.
        each_eight! { each_eight! { instant!("calls", "once", Scope::Thread, "n" => 1_u64); } }
        mark();
    };
    std::thread::Builder::new()
        .name("recorder".to_owned())
        .spawn(work)
        .expect("a thread")
        .join()
        .expect("no panic");
}
