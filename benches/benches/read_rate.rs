//! How fast an archive is read: split into records, resolved, checked; against copying its bytes.
//!
//! One archive in memory, of the kinds of event that applications write. Each result is the minimum and the
//! median of many runs, each run measures all of them, and the ratios are to `memcpy` of the same bytes in
//! the same run.

use std::hint::black_box;
use trace_benches::Cost;
use trace_benches::archive::{Bytes, index};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::initialization::Initialization;
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::ThreadRef;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{Koid, ProcessKoid, ProviderId, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond};
use trace_reader::{Item, Reader, Records, Value};

/// Events of the archive; with `--test` a thousandth.
const EVENTS: u64 = 6_000_000;
/// Not a divisor of 10⁹, as most clocks.
const RATE: u64 = 2_399_987_654;
const RUNS: usize = 15;

/// An archive of two providers, each with threads, strings and a part of the events.
fn archive(events: u64) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let mut write = |record: Record<'_>| record.encode(&mut bytes).expect("a valid record");
    write(Record::Metadata(Metadata::TraceInfoMagic));
    for provider in 1..=2 {
        write(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(provider), name: b"provider" }));
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
        for number in 0..events / 2 {
            let timestamp = Ticks(40_000_000_000_000 + number * 50);
            let argument = [Argument { name: index(50), value: ArgumentValue::Int64(number as i64) }];
            let (kind, arguments) = match number % 4 {
                0 => (EventKind::DurationBegin, &argument[..0]),
                1 => (EventKind::DurationComplete { end: Ticks(timestamp.0 + 40) }, &argument[..]),
                2 => (EventKind::Instant { scope: Scope::Thread }, &argument[..]),
                _ => (EventKind::DurationEnd, &argument[..0]),
            };
            write(Record::Event(Event {
                timestamp,
                thread: ThreadRef::Index(ThreadIndex::new(1 + (number / 64 % 8) as u8).expect("not 0")),
                category: index(1),
                name: index(2 + (number / 4 % 40) as u16),
                kind,
                arguments: Arguments::from_slice(arguments),
            }));
        }
    }
    bytes.0
}

/// Looks at everything an event has: time in nanoseconds, names, thread, arguments.
fn resolve<I: trace_reader::Input>(mut reader: Reader<I>) -> (u64, u64) {
    let (mut events, mut sum) = (0, 0_u64);
    while let Some(record) = reader.next_item().expect("a sound archive") {
        if let Item::Event(event) = record.item {
            events += 1;
            sum = sum
                .wrapping_add(event.time.nanos().0)
                .wrapping_add(event.thread.thread.0)
                .wrapping_add((event.name.0.len() + event.category.0.len()) as u64);
            for (name, value) in event.arguments.iter() {
                if let Value::Int64(value) = value {
                    sum = sum.wrapping_add(name.0.len() as u64).wrapping_add(value as u64);
                }
            }
        }
    }
    assert_eq!(reader.warnings().count(), 0);
    (events, sum)
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (events, runs) = if is_test { (EVENTS / 1000, 1) } else { (EVENTS, RUNS) };
    let archive = archive(events);
    let mut copy = vec![0_u8; archive.len()];
    let mut costs = [
        "memcpy",
        "records of memory",
        "records of a stream",
        "resolved, of memory",
        "resolved, of a stream",
    ]
    .map(Cost::new);
    for _ in 0..runs {
        let [memcpy, slice, stream, resolved_slice, resolved_stream] = &mut costs;
        memcpy.measure(events, |_| {
            copy.copy_from_slice(black_box(&archive));
            black_box(&mut copy);
        });
        slice.measure(events, |_| {
            let records = Records::of_slice(black_box(&archive));
            black_box(records.fold(0, |sum, record| sum + record.expect("a sound archive").size.0));
        });
        stream.measure(events, |_| {
            let mut records = Records::of_stream(black_box(&archive[..]));
            let mut words = 0;
            while let Some(record) = records.next_record().expect("a sound archive") {
                words += record.size.0;
            }
            assert_eq!(words * 8, archive.len());
        });
        resolved_slice.measure(events, |events| {
            assert_eq!(resolve(Reader::of_slice(black_box(&archive)).expect("an archive")).0, events);
        });
        resolved_stream.measure(events, |events| {
            assert_eq!(resolve(Reader::new(black_box(&archive[..])).expect("an archive")).0, events);
        });
    }
    let bytes = archive.len() as f64;
    println!("{events} events in {:.0} MB, {runs} runs\n", bytes / 1e6);
    println!("| what | best GB/s | median GB/s | median million events/s | of memcpy's rate |");
    println!("|---|---|---|---|---|");
    let bytes_per_event = bytes / events as f64;
    for cost in &costs {
        println!(
            "| {} | {:.2} | {:.2} | {:.1} | 1/{:.1} |",
            cost.name,
            bytes_per_event / cost.minimum(),
            bytes_per_event / cost.median(),
            1e3 / cost.median(),
            cost.median() / costs[0].median(),
        );
    }
}
