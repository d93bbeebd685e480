//! Exports with several threads take constant memory, also where short records stand for long texts. The only
//! test of its program, because it looks at the memory of all threads.

use std::fs;
use std::io::{self, Read};
use trace_convert::catapult::{self, Container, Dialect, Options};
use trace_convert::{Jobs, perfetto};
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

/// Bytes, and then others so often.
struct Repeated {
    bytes: Vec<u8>,
    then: Vec<u8>,
    times: usize,
    at: usize,
}

impl Read for Repeated {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.at == self.bytes.len() && self.times > 0 {
            (self.at, self.times) = (0, self.times - 1);
            self.bytes.clone_from(&self.then);
        }
        let length = room.len().min(self.bytes.len() - self.at);
        room[..length].copy_from_slice(&self.bytes[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
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

/// An event with a name, and an argument whose value is text, too.
fn event(name: u16, value: u16) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let arguments = [Argument { name: string(1), value: ArgumentValue::String(string(value)) }];
    let event = Event {
        timestamp: Ticks(5),
        thread: ThreadRef::Index(ThreadIndex::new(1).expect("not 0")),
        category: StringRef::Empty,
        name: string(name),
        kind: EventKind::DurationBegin,
        arguments: Arguments::from_slice(&arguments),
    };
    Record::Event(event).encode(&mut bytes).expect("an event");
    bytes.0
}

//= docs/catapult.md#document
#[test]
fn exports_with_several_threads_take_constant_memory() {
    let mut head = Bytes::default();
    let (process, thread) = (ProcessKoid(Koid(1)), ThreadKoid(Koid(2)));
    for record in [
        Record::Metadata(Metadata::TraceInfoMagic),
        Record::String(StringRecord { index: 1, value: b"short" }),
        Record::String(StringRecord { index: 2, value: &[b'x'; MAX_STRING_BYTES] }),
        Record::Thread(ThreadRecord { index: 1, process, thread }),
    ] {
        record.encode(&mut head).expect("a record");
    }
    let before = status("VmRSS");
    // 96 MB of short events, whose text is 350 MB; and 800 kB whose text is 1 GB.
    for (text, times) in [(1, 4000), (2, 32)] {
        let input =
            |event: Vec<u8>| Repeated { bytes: head.0.clone(), then: event.repeat(1000), times, at: 0 };
        let jobs = Jobs::of_threads(3);
        for dialect in [Dialect::Fuchsia, Dialect::Chrome(Container::Object)] {
            let options = Options { dialect, jobs, ..Options::default() };
            let summary = catapult::convert_with(input(event(text, 1)), io::sink(), options);
            assert_eq!(summary.expect("an archive").events, 1000 * times as u64);
        }
        // Names are written once, values each time.
        let options = perfetto::Options { jobs, ..Default::default() };
        let summary = perfetto::convert_with(input(event(1, text)), io::sink(), options);
        assert_eq!(summary.expect("an archive").events, 1000 * times as u64);
    }
    let taken = status("VmHWM").saturating_sub(before);
    assert!(taken < LIMIT, "{taken}");
}
