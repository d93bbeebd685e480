//! Records events as soon as it has a provider, and ends.
//!
//! `first EVENTS`: says in a line how many milliseconds it took to make the provider and to drop it.
//! `first EVENTS synchronously`: registers synchronously, and says before what became of that.

use std::time::Instant;
use trace_provider::{Scope, TraceProvider, instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count: u64 = arguments.first().and_then(|text| text.parse().ok()).expect("how many events");
    let begin = Instant::now();
    let provider = if arguments.get(1).is_some_and(|way| way == "synchronously") {
        let (provider, registration) = TraceProvider::new_synchronously("first");
        println!("{registration:?}");
        provider
    } else {
        TraceProvider::new("first")
    };
    let made = begin.elapsed();
    (0..count).for_each(|n| instant!("first", "event", Scope::Thread, "n" => n));
    let begin = Instant::now();
    drop(provider);
    println!("{} {}", made.as_millis(), begin.elapsed().as_millis());
}
