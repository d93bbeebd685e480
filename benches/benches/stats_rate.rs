//! How fast `trace stats` sums up complete durations, and `trace assert` reads them; against decoding the
//! same archive alone.

use std::hint::black_box;
use trace_analysis::assertion::Assertion;
use trace_analysis::assertion::evaluate::Evaluation;
use trace_analysis::stats::{Options, Stats};
use trace_benches::archive::{Bytes, index};
use trace_benches::{Cost, table};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind};
use trace_format::initialization::Initialization;
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::ThreadRef;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{Koid, ProcessKoid, ProviderId, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond};
use trace_reader::{Disorder, Item, Reader};

/// Events of the archive; with `--test` a thousandth.
const EVENTS: u64 = 6_000_000;
/// Not a divisor of 10⁹, as most clocks.
const RATE: u64 = 2_399_987_654;
const RUNS: usize = 9;

/// Durations of 40 names on 8 threads, three of which are inside of every fourth, with one argument each.
fn archive(events: u64) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let mut write = |record: Record<'_>| record.encode(&mut bytes).expect("a valid record");
    write(Record::Metadata(Metadata::TraceInfoMagic));
    write(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(1), name: b"provider" }));
    let ticks_per_second = TicksPerSecond::new(RATE).expect("not 0");
    write(Record::Initialization(Initialization { ticks_per_second }));
    for string in 1..=64_u16 {
        let value = format!("string number {string}");
        write(Record::String(StringRecord { index: string, value: value.as_bytes() }));
    }
    for thread in 1..=8_u8 {
        let (process, koid) = (ProcessKoid(Koid(1000)), ThreadKoid(Koid(1000 + u64::from(thread))));
        write(Record::Thread(ThreadRecord { index: thread, process, thread: koid }));
    }
    for number in 0..events {
        let end = 40_000_000_000_000 + number * 50;
        let length = if number % 4 == 3 { 190 } else { 20 + number * 7919 % 25 };
        let argument = [Argument { name: index(50), value: ArgumentValue::Int64(number as i64) }];
        write(Record::Event(Event {
            timestamp: Ticks(end - length),
            thread: ThreadRef::Index(ThreadIndex::new(1 + (number / 64 % 8) as u8).expect("not 0")),
            category: index(1),
            name: index(2 + (number % 40) as u16),
            kind: EventKind::DurationComplete { end: Ticks(end) },
            arguments: Arguments::from_slice(&argument),
        }));
    }
    bytes.0
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (events, runs) = if is_test { (EVENTS / 1000, 1) } else { (EVENTS, RUNS) };
    let archive = archive(events);
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
            let evaluation = Evaluation::of(black_box(bytes), &disorder, &limits).expect("an archive");
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
