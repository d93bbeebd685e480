//! Prints which tags of markers are wanted, before it has a provider and then, and writes two markers, with
//! an event of its own.
#![forbid(unsafe_code)]

use trace_provider::{Scope, TraceProvider, atrace, instant};

fn main() {
    let enabled = || format!("{} {:#x}", atrace::is_enabled(), atrace::enabled_tags(u64::MAX));
    println!("without a provider: {}", enabled());
    let _provider = TraceProvider::new("marking");
    println!("with one: {}", enabled());
    instant!("app", "event", Scope::Thread);
    atrace::instant("section");
    let _drawing = atrace::section_of(atrace::tag::VIEW, "drawing");
}
