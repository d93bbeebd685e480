//! Says whether markers are wanted, before it has a provider and then, and writes one, with an event of its
//! own.
#![forbid(unsafe_code)]

use trace_provider::{Scope, TraceProvider, atrace, instant};

fn main() {
    println!("without a provider: {}", atrace::is_enabled());
    let _provider = TraceProvider::new("marking");
    println!("with one: {}", atrace::is_enabled());
    instant!("app", "event", Scope::Thread);
    atrace::instant("section");
}
