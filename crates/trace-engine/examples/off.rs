//! Two functions that do the same; one of them is instrumented. With the feature `off` their machine code is
//! the same, too, which a test compares.

use std::hint::black_box;
use trace_engine::{
    Koid, Scope, ThreadState, async_begin, blob, category_enabled, context_switch, counter, duration,
    duration_begin, duration_end, flow_begin, instaflow_begin, instant, kernel_object, log, thread_wakeup,
};

/// With every kind of instrumentation.
#[inline(never)]
pub fn instrumented(value: u64) -> u64 {
    duration!("off", "work", "value" => value);
    instant!("off", "begin", Scope::Thread, "text" => format!("{value}"));
    counter!("off", "value", 0, "value" => value);
    duration_begin!("off", "inner");
    let result = black_box(value).wrapping_mul(3).rotate_left(7) ^ 0x5555;
    duration_end!("off", "inner", "result" => result);
    async_begin!(value, "off", "async");
    flow_begin!("off", "flow", value);
    instaflow_begin!("off", "flow", "step", value);
    log!("off", "the result is {result}");
    blob!("off", "bytes", &result.to_le_bytes());
    kernel_object!("off", 1, Koid(value), "name");
    context_switch!("off", 0, ThreadState::DEAD, Koid(value), Koid(result));
    thread_wakeup!("off", 0, Koid(value));
    if category_enabled!("off") {
        black_box(expensive(value));
    }
    black_box(result).wrapping_add(value)
}

/// Without.
#[inline(never)]
pub fn plain(value: u64) -> u64 {
    let result = black_box(value).wrapping_mul(3).rotate_left(7) ^ 0x5555;
    black_box(result).wrapping_add(value)
}

fn expensive(value: u64) -> String {
    value.to_string().repeat(1000)
}

fn main() {
    let value = std::env::args().count() as u64;
    assert_eq!(instrumented(value), plain(value));
}
