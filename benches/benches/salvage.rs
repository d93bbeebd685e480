//! How fast a provider's buffer is read and checked, beside reading as many bytes, in one run.
//!
//! The buffer is a VMO, as that of a program, and full of what programs record: instants, scopes, counters
//! with an argument, some text. `--test` makes it short.

use std::num::NonZeroU64;
use std::time::Instant;
use trace_archive::transfer::VmoSource;
use trace_benches::Cost;
use trace_engine::{
    BufferMode, Config, Disposition, HeapWords, Region, Scope, counter, duration, engine, instant,
};
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferPart, BufferReader};
use zx_sim::Vmo;

/// A full buffer.
fn fill(bytes: usize) -> HeapWords {
    let (region, words) = Region::on_heap(bytes);
    let engine = engine::initialize(region, BufferMode::Oneshot, Config::new(1, "bench", 1))
        .expect("the engine is idle");
    engine.start(Disposition::Retain, &[]).expect("the engine starts");
    for number in 0..bytes as u64 / 128 {
        duration!("bench", "scope", "n" => number);
        instant!("bench", "instant", Scope::Thread);
        counter!("bench", "counter", 0, "value" => number);
        instant!("bench", "text", Scope::Process, "text" => "sixteen bytes ok");
    }
    engine.terminate(Instant::now() + std::time::Duration::from_secs(5)).expect("the engine was started");
    words
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (bytes, runs) = if is_test { (1 << 20, 2) } else { (64 << 20, 15) };
    let mut copy = vec![0; bytes];
    fill(bytes).read_at(0, &mut copy);
    let original = copy.clone();
    let vmo = Vmo::of_bytes("buffer", &copy).expect("memory");
    let rate = TicksPerSecond(NonZeroU64::new(1).expect("not 0"));
    let (mut copied, mut read) = (Cost::new("copy in memory"), Cost::new("read of the VMO"));
    let (mut quiet, mut live) = (Cost::new("quiet"), Cost::new("live"));
    let mut records = 0;
    let mut out = Vec::new();
    for _ in 0..runs {
        let begin = Instant::now();
        copy.copy_from_slice(&original);
        copied.push(begin.elapsed().as_secs_f64());
        std::hint::black_box(&copy);
        let begin = Instant::now();
        vmo.read_at(0, &mut copy).expect("a buffer");
        read.push(begin.elapsed().as_secs_f64());
        std::hint::black_box(&copy);
        for (cost, activity) in [(&mut quiet, Activity::Quiet), (&mut live, Activity::Live)] {
            let begin = Instant::now();
            let part = BufferPart::Rest(activity);
            let source = VmoSource::from(vmo.duplicate().expect("a descriptor"));
            let reader = BufferReader::open(source, bytes as u64, BufferMode::Oneshot, rate, part);
            let mut reader = reader.expect("a buffer");
            while reader.read_batch(&mut out).expect("a buffer") {
                out.clear();
            }
            out.clear();
            cost.push(begin.elapsed().as_secs_f64());
            assert_eq!(reader.findings().bad_records, 0);
            records = reader.findings().rolling_records;
        }
    }
    println!(
        "{records} records in {} MiB\n\n| what | median GB/s | of the copy | of the read |\n|---|---|---|---|",
        bytes >> 20
    );
    for cost in [&copied, &read, &quiet, &live] {
        let rate = bytes as f64 / cost.median() / 1e9;
        let [of_copy, of_read] = [&copied, &read].map(|floor| floor.median() / cost.median());
        println!("| {} | {rate:.2} | {of_copy:.2} | {of_read:.2} |", cost.name);
    }
}
