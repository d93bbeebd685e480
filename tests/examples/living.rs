//! Records a known number of things, and waits until a file is gone.
//!
//! `living FILE [ROUNDS]`: in each round 500 durations `work`, a counter `queue` with the number of the
//! round, and an asynchronous operation `request`; then the next round, if there are several, 10 ms later.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::Duration;
use trace_provider::{TraceProvider, async_begin, async_end, counter, duration};

const DURATIONS: u64 = 500;
const PAUSE: Duration = Duration::from_millis(10);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = PathBuf::from(arguments.next().expect("the name of a file"));
    let rounds: u64 = arguments.next().map_or(1, |text| text.parse().expect("a number"));
    let _provider = TraceProvider::new("living");
    for round in 1..=rounds {
        async_begin!(round, "live", "request");
        for number in 0..DURATIONS {
            duration!("live", "work", "number" => number);
            std::hint::black_box(number);
        }
        async_end!(round, "live", "request");
        counter!("live", "queue", 0, "depth" => round);
        std::thread::park_timeout(PAUSE);
    }
    println!("printed by the program");
    while file.exists() {
        std::thread::park_timeout(PAUSE);
    }
}
