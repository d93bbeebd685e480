//! Writes so many events of 32 bytes on each of some threads, evenly over time.
//!
//! `stream THREADS EVENTS RATE`: events of each thread, and how many of them in a second; 0 is as fast as it
//! can. Prints how many seconds that took, and for how many of them its threads wrote instead of waiting.

use std::time::{Duration, Instant};
use trace_provider::{Scope, TraceProvider, instant};

/// Events between two looks at the time.
const BATCH: u64 = 64;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let mut next = || numbers.next().expect("stream THREADS EVENTS RATE");
    let (threads, events, rate) = (next(), next(), next());
    let _provider = TraceProvider::new("stream");
    let begin = Instant::now();
    let writing: Duration = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..threads).map(|_| scope.spawn(|| write(events, rate, begin))).collect();
        writers.into_iter().map(|writer| writer.join().expect("the thread ends")).sum()
    });
    println!("{:.6} {:.6}", begin.elapsed().as_secs_f64(), writing.as_secs_f64());
}

/// How long it wrote.
fn write(events: u64, rate: u64, begin: Instant) -> Duration {
    let mut waited = Duration::ZERO;
    let first = Instant::now();
    for number in 0..events {
        instant!("stream", "event", Scope::Thread, "n" => number);
        if rate > 0 && number % BATCH == 0 {
            let written = Instant::now();
            let due = begin + Duration::from_secs_f64(number as f64 / rate as f64);
            // The processor belongs to others meanwhile; who wakes late catches up.
            let mut now = written;
            while now < due {
                std::thread::park_timeout(due - now);
                now = Instant::now();
            }
            waited += now - written;
        }
    }
    first.elapsed() - waited
}
