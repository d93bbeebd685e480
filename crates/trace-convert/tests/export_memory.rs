//! Exports with several threads take constant memory, also where short records stand for long texts. The only
//! test of its program, because it looks at the memory of all threads.

use std::fs;
use std::io::{self, Read};
use trace_convert::catapult::{self, Container, Dialect, Options};
use trace_convert::{ConvertError, Jobs, Odd, Summary, perfetto};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind};
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::{MAX_STRING_BYTES, StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{Koid, ProcessKoid, StringIndex, ThreadIndex, ThreadKoid, Ticks};

/// Most memory beyond what the program has before, in bytes.
const LIMIT: usize = 80 << 20;

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }
}

/// Bytes that are made when they are read.
struct Made<I> {
    chunks: I,
    chunk: Vec<u8>,
    at: usize,
}

impl<I: Iterator<Item = Vec<u8>>> Read for Made<I> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            let Some(next) = self.chunks.next() else { return Ok(0) };
            (self.chunk, self.at) = (next, 0);
        }
        let length = room.len().min(self.chunk.len() - self.at);
        room[..length].copy_from_slice(&self.chunk[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

/// Some bytes, and then others.
fn archive(head: &[u8], rest: impl Iterator<Item = Vec<u8>>) -> impl Read {
    Made { chunks: std::iter::once(head.to_vec()).chain(rest), chunk: Vec::new(), at: 0 }
}

fn status(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("of this process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    let number = line.trim_start_matches(':').trim().split(' ').next().and_then(|text| text.parse().ok());
    1024 * number.unwrap_or(0_usize)
}

fn string(index: u16) -> StringRef<'static> {
    StringRef::Index(StringIndex::new(index).expect("not 0"))
}

fn encoded(record: Record<'_>) -> Vec<u8> {
    let mut bytes = Bytes::default();
    record.encode(&mut bytes).expect("a record");
    bytes.0
}

/// An event with a category, a name, and an argument.
fn event(category: u16, name: u16, kind: EventKind, value: ArgumentValue<'_>) -> Vec<u8> {
    let arguments = [Argument { name: string(1), value }];
    encoded(Record::Event(Event {
        timestamp: Ticks(5),
        thread: ThreadRef::Index(ThreadIndex::new(1).expect("not 0")),
        category: string(category),
        name: string(name),
        kind,
        arguments: Arguments::from_slice(&arguments),
    }))
}

/// An event whose name and argument are strings of these indices.
fn begin(name: u16, value: u16) -> Vec<u8> {
    event(1, name, EventKind::DurationBegin, ArgumentValue::String(string(value)))
}

/// The records that all archives here begin with: string 1 is short, strings 2 and 3 are as long as can be.
fn head() -> Vec<u8> {
    let (process, thread) = (ProcessKoid(Koid(1)), ThreadKoid(Koid(2)));
    let records = [
        Record::Metadata(Metadata::TraceInfoMagic),
        Record::String(StringRecord { index: 1, value: b"short" }),
        Record::String(StringRecord { index: 2, value: &[b'x'; MAX_STRING_BYTES] }),
        Record::String(StringRecord { index: 3, value: &[b'y'; MAX_STRING_BYTES] }),
        Record::Thread(ThreadRecord { index: 1, process, thread }),
    ];
    records.into_iter().flat_map(encoded).collect()
}

/// 20 000 events that each need to be remembered, of few bytes with long texts.
fn remembered(make: impl Fn(u64) -> Vec<u8>) -> impl Iterator<Item = Vec<u8>> {
    (0..20_000).map(make)
}

fn both_dialects() -> [Dialect; 2] {
    [Dialect::Fuchsia, Dialect::Chrome(Container::Object)]
}

//= docs/catapult.md#document
//= docs/perfetto.md#document
#[test]
fn exports_with_several_threads_take_constant_memory() {
    let head = head();
    let before = status("VmRSS");
    let takes = |what: &str| {
        let taken = status("VmHWM").saturating_sub(before);
        assert!(taken < LIMIT, "{what}: {taken}");
    };
    let jobs = Jobs::of_threads(3);
    let options = |dialect| Options { dialect, jobs, ..Options::default() };
    let perfetto = || perfetto::Options { jobs, ..Default::default() };
    // 96 MB of short events, whose text is 350 MB; and 800 kB whose text is 1 GB.
    for (text, times) in [(1, 4000), (2, 32)] {
        let input = |event: Vec<u8>| {
            let thousand = event.repeat(1000);
            archive(&head, (0..times).map(move |_| thousand.clone()))
        };
        for dialect in both_dialects() {
            let summary = catapult::convert_with(input(begin(text, 1)), io::sink(), options(dialect));
            assert_eq!(summary.expect("an archive").events, 1000 * times as u64);
        }
        // Names are written once, values each time.
        let summary = perfetto::convert_with(input(begin(1, text)), io::sink(), perfetto());
        assert_eq!(summary.expect("an archive").events, 1000 * times as u64);
    }
    takes("texts that are written often");

    let number = ArgumentValue::Int64(1);
    // Two names in turn, so that no flow shares them with the one before.
    let flow = |id: u64| event(1, 2 + (id % 2) as u16, EventKind::FlowBegin { id }, number);
    let operation = |id| event(2, 1, EventKind::AsyncBegin { id }, number);
    for dialect in both_dialects() {
        for events in [&flow as &dyn Fn(u64) -> Vec<u8>, &operation] {
            let input = archive(&head, remembered(events));
            let summary = catapult::convert_with(input, io::sink(), options(dialect));
            assert_eq!(summary.expect("an archive").events, 20_000);
        }
    }
    takes("what JSON remembers");
    let counter = |id| event(1, 2, EventKind::Counter { id }, number);
    let long_name = |id: u64| {
        let mut value = [b'z'; MAX_STRING_BYTES];
        value[..8].copy_from_slice(&id.to_le_bytes());
        let mut bytes = encoded(Record::String(StringRecord { index: 4, value: &value }));
        bytes.extend(begin(4, 1));
        bytes
    };
    for (what, events) in [
        ("flows", &flow as &dyn Fn(u64) -> Vec<u8>),
        ("operations", &operation),
        ("counters", &counter),
        ("strings", &long_name),
    ] {
        let summary = perfetto::convert_with(archive(&head, remembered(events)), io::sink(), perfetto());
        assert_eq!(summary.expect("an archive").events, 20_000);
        takes(what);
    }

    // Slices that are written last, again of few bytes with long texts: ties, begins that stay open, and
    // operations whose ends have other names, of one id and of many.
    let text = || ArgumentValue::String(string(2));
    let tie = |id: u64| event(1, 2, EventKind::DurationComplete { end: Ticks(6 + id) }, text());
    let open = |id: u64| match id {
        0 => event(1, 1, EventKind::DurationComplete { end: Ticks(10) }, text()),
        1 => event(1, 1, EventKind::DurationComplete { end: Ticks(20) }, text()),
        _ => event(1, 2, EventKind::DurationBegin, text()),
    };
    let of_one_id = |id: u64| match id {
        1 => event(1, 3, EventKind::AsyncEnd { id: 7 }, text()),
        _ => event(1, 2, EventKind::AsyncBegin { id: 7 }, text()),
    };
    let of_many = |id: u64| match id % 2 {
        0 => event(1, 2, EventKind::AsyncBegin { id: id / 2 }, text()),
        _ => event(1, 3, EventKind::AsyncEnd { id: id / 2 }, text()),
    };
    let again = |convert: &dyn Fn(Option<Odd>) -> Result<Summary, ConvertError>| match convert(None) {
        Err(ConvertError::Odd(odd)) => convert(Some(*odd)).expect("an archive"),
        other => panic!("{other:?}"),
    };
    for (what, events) in [
        ("ties", &tie as &dyn Fn(u64) -> Vec<u8>),
        ("open begins", &open),
        ("operations of one id", &of_one_id),
        ("operations of many ids", &of_many),
    ] {
        let summary = again(&|odd| {
            let options = perfetto::Options { odd, ..perfetto() };
            perfetto::convert_with(archive(&head, remembered(events)), io::sink(), options)
        });
        assert_eq!(summary.events, 20_000);
        let summary = again(&|odd| {
            let dialect = Dialect::Chrome(Container::Object);
            let options = Options { odd, ..options(dialect) };
            catapult::convert_with(archive(&head, remembered(events)), io::sink(), options)
        });
        assert_eq!(summary.events, 20_000);
        takes(what);
    }
}
