//! A program that says what it uses memory for: `memory NAME BYTES`. It prints a line for each dump. With a
//! line on stdin it raises the alert `much`; it ends with stdin.
#![forbid(unsafe_code)]

use trace_provider::{TraceProvider, alert};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().expect("memory NAME BYTES");
    let bytes: u64 = arguments.next().expect("memory NAME BYTES").parse().expect("a number");
    let provider = TraceProvider::new(&name);
    provider.on_memory_dump(move |dump| {
        dump.add("cache", bytes);
        if dump.is_detailed() {
            dump.add("cache/images", bytes / 2);
        }
    });
    println!("ready");
    provider.on_memory_dump(|dump| {
        dump.add("last dump", dump.id());
        println!("dump {}", dump.id());
    });
    for line in std::io::stdin().lines() {
        drop(line.expect("a line"));
        alert!("memory", "much");
    }
}
