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

/// Numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// An archive of complete durations as programs record them: of 48 names on 8 threads, up to four in each
/// other, with lengths and gaps that do not repeat, and in the order of their ends. Each has one number if
/// there are to be arguments.
///
/// # Panics
/// It is not valid.
#[must_use]
pub fn nested(events: u64, has_argument: bool) -> Vec<u8> {
    let mut bytes = Bytes::default();
    definitions(&mut bytes);
    let mut random = Random(1);
    let mut at = [40_000_000_000_000_u64; 8];
    let mut left = events;
    while left > 0 {
        let thread = random.below(8) as usize;
        // An outermost one, with as many in it as there is room for.
        let mut ended = Vec::new();
        let begin = at[thread] + random.below(20_000);
        at[thread] = tree(&mut random, begin, 0, &mut ended);
        ended.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        for (begin, end, name) in &ended {
            let argument =
                [Argument { name: index(50), value: ArgumentValue::Uint32(random.below(65_536) as u32) }];
            let record = Record::Event(Event {
                timestamp: Ticks(*begin),
                thread: ThreadRef::Index(ThreadIndex::new(1 + thread as u8).expect("not 0")),
                category: index(1),
                name: index(2 + *name),
                kind: EventKind::DurationComplete { end: Ticks(*end) },
                arguments: Arguments::from_slice(if has_argument { &argument } else { &[] }),
            });
            record.encode(&mut bytes).expect("a valid record");
        }
        left -= ended.len() as u64;
    }
    bytes.0
}

/// A duration and those in it, each behind those in it; returns when it ends.
fn tree(random: &mut Random, begin: u64, depth: u64, ended: &mut Vec<(u64, u64, u16)>) -> u64 {
    let mut at = begin + random.below(3_000);
    if depth < 3 {
        for _ in 0..random.below(4) {
            at = tree(random, at, depth + 1, ended) + random.below(2_000);
        }
    }
    let end = at + 100 + random.below(if depth == 3 { 30_000 } else { 4_000 });
    ended.push((begin, end, (depth * 12 + random.below(12)) as u16));
    end
}

/// The definitions that all of these archives begin with.
fn definitions(bytes: &mut Bytes) {
    let mut write = |record: Record<'_>| record.encode(bytes).expect("a valid record");
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
}

/// An archive of complete durations: of 40 names on 8 threads, three of which are inside of every fourth,
/// with one argument each.
///
/// # Panics
/// It is not valid.
#[must_use]
pub fn durations(events: u64) -> Vec<u8> {
    let mut bytes = Bytes::default();
    definitions(&mut bytes);
    let mut write = |record: Record<'_>| record.encode(&mut bytes).expect("a valid record");
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
