//! Archives in memory.

use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind};
use trace_format::initialization::Initialization;
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{
    Koid, ProcessKoid, ProviderId, StringIndex, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond,
};

/// Encoded records.
#[derive(Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }
}

/// A string of the table.
///
/// # Panics
/// The index is 0 or too large.
#[must_use]
pub fn index(index: u16) -> StringRef<'static> {
    StringRef::Index(StringIndex::new(index).expect("a valid index"))
}

/// Not a divisor of 10⁹, as most clocks.
const RATE: u64 = 2_399_987_654;

/// An archive of complete durations: of 40 names on 8 threads, three of which are inside of every fourth,
/// with one argument each.
///
/// # Panics
/// It is not valid.
#[must_use]
pub fn durations(events: u64) -> Vec<u8> {
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
