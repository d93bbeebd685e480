//! Emits each kind of event a known number of times from a number of threads.
//!
//! `emit THREADS COUNT`: prints its pid and its threads' ids in a line. `--wait`: first prints its pid, and
//! emits when stdin is closed. `--abort`: aborts before it has a provider. `--on`: says "on" when it is being
//! recorded, before it waits. `--exit N`: ends with that code.

use std::io::{Read, Write};
use std::sync::Barrier;
use trace_provider::{
    Koid, Scope, TraceProvider, async_begin, async_end, async_instant, category_enabled, counter, duration,
    duration_begin, duration_end, flow_begin, flow_end, flow_step, instant,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok());
    let (threads, count): (u64, u64) = (number(0).unwrap_or(1), number(1).unwrap_or(1));
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if has("--abort") {
        std::process::abort();
    }
    let _provider = TraceProvider::new("emit");
    if has("--wait") {
        println!("{}", std::process::id());
        if has("--on") {
            while !category_enabled!("emit") {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            println!("on");
        }
        let mut rest = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut rest);
    }
    let barrier = Barrier::new(threads as usize);
    let ids: Vec<u64> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let barrier = &barrier;
                let body = move || {
                    barrier.wait();
                    (0..count).for_each(|round| emit(thread, round));
                    zx_sim::thread_koid()
                };
                let builder = std::thread::Builder::new().name(format!("emit-{thread}"));
                builder.spawn_scoped(scope, body).expect("a thread")
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("no panic")).collect()
    });
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    println!("{} {}", std::process::id(), ids.join(" "));
    let _ = std::io::stdout().flush();
    if let Some(code) = arguments.iter().skip_while(|argument| *argument != "--exit").nth(1) {
        std::process::exit(code.parse().unwrap_or(1));
    }
}

fn emit(thread: u64, round: u64) {
    duration!("emit", "scope", "thread" => thread, "round" => round);
    instant!("emit", "instant", Scope::Thread, "thread" => thread, "round" => round, "text" => "grün", "none" => (),
        "bool" => true, "i32" => -5_i32, "u32" => 7_u32, "i64" => i64::MIN, "u64" => u64::MAX, "f64" => 0.1,
        "pointer" => std::ptr::without_provenance::<u8>(0x1000), "koid" => Koid(99), "blob" => [1_u8, 2, 3].as_slice());
    instant!("emit", "process instant", Scope::Process, "round" => round);
    instant!("emit", "global instant", Scope::Global, "round" => round);
    counter!("emit", "counter", thread, "value" => round);
    duration_begin!("emit", "pair", "round" => round);
    duration_end!("emit", "pair", "round" => round);
    let id = (thread + 1) << 32 | round;
    async_begin!(id, "emit", "async", "round" => round);
    async_instant!(id, "emit", "async", "round" => round);
    async_end!(id, "emit", "async", "round" => round);
    flow_begin!("emit", "flow", id, "round" => round);
    flow_step!("emit", "flow", id, "round" => round);
    flow_end!("emit", "flow", id, "round" => round);
    instant!("other", "unrelated", Scope::Thread, "round" => round);
}
