//! A program without a provider that marks: for each line of its input it writes so many markers, after which
//! it prints the tags that are wanted.
#![forbid(unsafe_code)]

use std::io::BufRead;
use trace_provider::atrace;

fn main() {
    for line in std::io::stdin().lock().lines() {
        let count: u32 = line.expect("a line").parse().expect("a number");
        (0..count).for_each(|_| atrace::instant("mark"));
        println!("{:#x}", atrace::enabled_tags(u64::MAX));
    }
}
