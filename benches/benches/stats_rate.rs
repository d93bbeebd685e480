//! How fast `trace stats` sums up complete durations, and `trace assert` reads them; against decoding the
//! same archive alone.

use std::hint::black_box;
use trace_analysis::assertion::Assertion;
use trace_analysis::assertion::evaluate::Evaluation;
use trace_analysis::stats::{Options, Stats};
use trace_benches::archive::durations;
use trace_benches::{Cost, table};
use trace_reader::{Disorder, Item, Reader};

/// Events of the archive; with `--test` a thousandth.
const EVENTS: u64 = 6_000_000;
const RUNS: usize = 9;

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (events, runs) = if is_test { (EVENTS / 1000, 1) } else { (EVENTS, RUNS) };
    let archive = durations(events);
    let bytes = &archive[..];
    let limits = ["p99(string*) < 1s", "max(gap(\"string number 7\")) < 1s", "lost == 0"];
    let limits = limits.map(|text| Assertion::parse(text).expect("an assertion"));
    let options = Options::default();
    let mut costs = ["decoded", "order of ends", "statistics", "three assertions"].map(Cost::new);
    for _ in 0..runs {
        let [decoded, order, statistics, assertions] = &mut costs;
        decoded.measure(events, |events| {
            let mut reader = Reader::new(black_box(bytes)).expect("an archive");
            let (mut count, mut sum) = (0, 0_u64);
            while let Some(record) = reader.next_item().expect("a sound archive") {
                if let Item::Event(event) = record.item {
                    count += 1;
                    sum = sum.wrapping_add(event.time.nanos().0);
                }
            }
            assert_eq!(count, events);
            black_box(sum);
        });
        let mut disorder = Disorder::default();
        order.measure(events, |_| disorder = Disorder::find(black_box(bytes)).expect("an archive"));
        statistics.measure(events, |events| {
            let stats = Stats::of(black_box(bytes), &disorder, &options).expect("an archive");
            assert_eq!(stats.durations.iter().map(|row| row.spread.count).sum::<u64>(), events);
        });
        assertions.measure(events, |_| {
            let evaluation = Evaluation::of(black_box(bytes), &disorder, None, &limits).expect("an archive");
            assert_eq!(evaluation.walked.events, events);
        });
    }
    println!(
        "{events} complete durations, {} MB, {runs} runs; nanoseconds for each event\n",
        archive.len() / 1_000_000
    );
    println!("{}", table(&costs));
    for cost in &costs {
        println!("{}: {:.1} million events/s at the median", cost.name, 1e3 / cost.median());
    }
}
