//! What several threads write is what one writes, of any archive.

use crate::export::catapult::{self, Container, Dialect, Options};
use crate::full::Full;
use crate::{Filter, Jobs, Odd, OddFinder, Summary, perfetto};
use proptest::collection::vec;
use proptest::prelude::*;
use std::io;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::blob::Blob;
use trace_format::event::{Event, EventKind, Scope};
use trace_format::initialization::Initialization;
use trace_format::kernel_object::KernelObject;
use trace_format::large::{LargeBlob, LargeBlobEvent};
use trace_format::log::Log;
use trace_format::loss::{LossCode, LossRecord};
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::{Scheduling, ThreadState};
use trace_format::sink::Sink;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{
    Koid, ProcessKoid, ProviderId, StringIndex, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond,
};

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }
}

impl Bytes {
    fn record(&mut self, record: Record<'_>) {
        record.encode(self).unwrap();
    }
}

const TEXTS: [&[u8]; 8] = [
    b"app",
    b"draw",
    b"fidl:blob",
    b"with \"quotes\"\n",
    b"gr\xc3\xbcn \xff",
    b"thread_ts",
    b"size",
    &[b'x'; 200],
];

fn string(index: u64) -> StringRef<'static> {
    match index % 16 {
        0 => StringRef::Empty,
        1 => StringRef::inline("inline"),
        2 => StringRef::Inline(TEXTS[3]),
        index => StringRef::Index(StringIndex::new(index as u16).unwrap()),
    }
}

fn thread(index: u64) -> ThreadRef {
    match ThreadIndex::new(index as u8 % 6) {
        Some(index) => ThreadRef::Index(index),
        None => ThreadRef::Inline { process: ProcessKoid(Koid(index % 3)), thread: ThreadKoid(Koid(7)) },
    }
}

/// Adds some record.
fn write(bytes: &mut Bytes, [kind, a, b, c]: [u64; 4]) {
    let values = [
        ArgumentValue::Int64(b as i64),
        ArgumentValue::String(string(a)),
        ArgumentValue::Double(b as f64 / 3.0),
        ArgumentValue::Null,
        ArgumentValue::Uint32(5),
        ArgumentValue::Blob(b"blob"),
        ArgumentValue::Koid(Koid(9)),
    ];
    let arguments: Vec<Argument<'_>> = (0..c % 4)
        .map(|place| Argument { name: string(b + place), value: values[(a + place) as usize % values.len()] })
        .collect();
    let arguments = Arguments::from_slice(&arguments);
    // Now and then one is out of range.
    let timestamp = Ticks(if c % 97 == 0 { u64::MAX } else { a % 100_000 });
    let (of, text) = (thread(b), TEXTS[a as usize % TEXTS.len()]);
    let id = ProviderId((a % 3) as u32);
    bytes.record(match kind % 32 {
        0 => Record::Metadata(Metadata::ProviderInfo { id, name: text }),
        1 | 2 => Record::Metadata(Metadata::ProviderSection { id }),
        3 => Record::Initialization(Initialization {
            ticks_per_second: TicksPerSecond::new([1_000_000_000, 2_399_987_654][a as usize % 2]).unwrap(),
        }),
        4..=8 => Record::String(StringRecord { index: 3 + (b % 12) as u16, value: text }),
        9 | 10 => Record::Thread(ThreadRecord {
            index: 1 + (b % 4) as u8,
            process: ProcessKoid(Koid(a % 3)),
            thread: ThreadKoid(Koid(c % 5)),
        }),
        11 => Record::Log(Log { timestamp, thread: of, message: text }),
        12 => {
            let koid = Koid(b % 4);
            Record::KernelObject(KernelObject {
                object_type: 1 + (b % 3) as u8,
                koid,
                name: string(a),
                arguments,
            })
        }
        13 => Record::Scheduling(Scheduling::ContextSwitch {
            timestamp,
            cpu: 1,
            outgoing_state: ThreadState(1),
            outgoing: ThreadKoid(Koid(a)),
            incoming: ThreadKoid(Koid(b)),
            arguments,
        }),
        14 => Record::Blob(Blob { blob_type: 1, name: string(a), payload: text }),
        15 => {
            let event = (b % 3 > 0).then_some(LargeBlobEvent { timestamp, thread: of, arguments });
            Record::Large(LargeBlob {
                category: StringRef::inline("fidl:blob"),
                name: string(a),
                event,
                payload: text,
            })
        }
        16 => {
            let (first, last) = if b % 2 == 0 { (Ticks(0), Ticks(0)) } else { (Ticks(a), Ticks(a + 9)) };
            let loss = LossRecord { provider: id, reason: LossCode(b as u16 % 4), count: c, first, last };
            return bytes.record(Record::Blob(LossRecord::blob(&loss.to_bytes())));
        }
        _ => {
            let id = a % 5;
            let kind = match b % 11 {
                0 => EventKind::Instant { scope: Scope::from_raw(c % 3) },
                1 => EventKind::Counter { id },
                2 => EventKind::DurationBegin,
                3 => EventKind::DurationEnd,
                4 => EventKind::DurationComplete { end: Ticks(c % 200_000) },
                5 => EventKind::AsyncBegin { id },
                6 => EventKind::AsyncInstant { id },
                7 => EventKind::AsyncEnd { id },
                8 => EventKind::FlowBegin { id },
                9 => EventKind::FlowStep { id },
                _ => EventKind::FlowEnd { id },
            };
            let (category, name) = (string(a + 2), string(b / 11));
            Record::Event(Event { timestamp, thread: of, category, name, kind, arguments })
        }
    });
}

/// An archive of random records, damaged at some of its bits.
fn archives() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop_oneof![2 => Just(Vec::new()), 1 => vec((any::<u64>(), 0..8_u32), 1..4)];
    (vec(any::<[u64; 4]>(), 0..400), damage).prop_map(|(records, damage)| {
        let mut bytes = Bytes::default();
        bytes.record(Record::Metadata(Metadata::TraceInfoMagic));
        records.into_iter().for_each(|record| write(&mut bytes, record));
        let length = bytes.0.len() as u64;
        for (place, bit) in damage.into_iter().filter(|_| length > 8) {
            bytes.0[(8 + place % (length - 8)) as usize] ^= 1 << bit;
        }
        bytes.0
    })
}

/// Threads and bytes of batches: a record each, few, many.
const SHARED: [(usize, usize); 4] = [(2, 1), (3, 100), (2, 2000), (4, 1 << 18)];

fn filters() -> [Filter; 2] {
    [Filter::default(), crate::filter::testing::filter(&["dr.*|inline"], &["app"])]
}

/// Catapult's and Chrome's documents, with what is reported of them.
fn documents(archive: &[u8], jobs: Jobs, filter: &Filter) -> Vec<(String, String, Summary)> {
    let dialects = [Dialect::Fuchsia, Dialect::Chrome(Container::Array), Dialect::Chrome(Container::Object)];
    let convert = |dialect| {
        let (mut document, mut system) = (Vec::new(), Vec::new());
        let system_output = Some(&mut system as &mut dyn io::Write);
        let options = Options { dialect, filter: filter.clone(), system_output, jobs, own: None, odd: None };
        let summary = catapult::convert_in_memory(archive, &mut document, options).unwrap_or_default();
        (String::from_utf8(document).unwrap(), String::from_utf8(system).unwrap(), summary)
    };
    dialects.map(convert).into()
}

/// Perfetto's packets, with what is reported of them.
fn packets(archive: &[u8], jobs: Jobs, filter: &Filter) -> (Vec<u8>, Summary) {
    let mut packets = Vec::new();
    let odd = Odd::find_in(archive, OddFinder::default()).unwrap_or_default();
    let options = perfetto::Options { filter: filter.clone(), jobs, odd: Some(odd) };
    let summary = perfetto::convert_with(archive, &mut packets, options).unwrap_or_default();
    (packets, summary)
}

/// What differs is shown as a position.
fn first_difference((one, _): &(Vec<u8>, Summary), (other, _): &(Vec<u8>, Summary)) -> Option<usize> {
    let differing = one.iter().zip(other).position(|(one, other)| one != other);
    differing.or((one.len() != other.len()).then_some(one.len().min(other.len())))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn several_threads_write_the_same_packets(archive in archives()) {
        for filter in filters() {
            let of_one = packets(&archive, Jobs::default(), &filter);
            prop_assert!(perfetto::tests::decoded(&of_one.0).is_ok());
            for (threads, batch_bytes) in SHARED {
                let of_several = packets(&archive, Jobs { threads, batch_bytes }, &filter);
                prop_assert_eq!(first_difference(&of_several, &of_one), None);
                prop_assert_eq!(of_several.1, of_one.1.clone());
            }
        }
    }

    #[test]
    fn several_threads_write_the_same_documents(archive in archives()) {
        for filter in filters() {
            let of_one = documents(&archive, Jobs::default(), &filter);
            for (document, ..) in &of_one {
                prop_assert!(document.is_empty() || serde_json::from_str::<serde_json::Value>(document).is_ok());
            }
            for (threads, batch_bytes) in SHARED {
                prop_assert_eq!(&documents(&archive, Jobs { threads, batch_bytes }, &filter), &of_one);
            }
        }
    }
}

/// Events whose names are long, but not in their records.
#[test]
fn long_texts_by_index_do_not_fill_memory() {
    let mut bytes = Bytes::default();
    bytes.record(Record::Metadata(Metadata::TraceInfoMagic));
    bytes.record(Record::String(StringRecord { index: 9, value: &[b'n'; 3000] }));
    for number in 0..200 {
        bytes.record(Record::Event(Event {
            timestamp: Ticks(number),
            thread: thread(1),
            category: StringRef::Empty,
            name: string(9),
            kind: EventKind::DurationBegin,
            arguments: Arguments::default(),
        }));
    }
    let of_one = documents(&bytes.0, Jobs::default(), &Filter::default());
    assert!(of_one[0].0.len() > 600_000);
    for (threads, batch_bytes) in SHARED {
        let jobs = Jobs { threads, batch_bytes };
        assert!(documents(&bytes.0, jobs, &Filter::default()) == of_one, "{jobs:?}");
    }
}

/// A large blob in pieces, between events that other threads have.
#[test]
fn a_large_blob_stands_between_the_events_around_it() {
    let mut bytes = Bytes::default();
    bytes.record(Record::Metadata(Metadata::TraceInfoMagic));
    let payload: Vec<u8> = (0..3_000_000_u32).map(|byte| byte as u8).collect();
    for number in 0..300_u64 {
        write(&mut bytes, [20, number, 4, 1]);
        if number % 150 == 7 {
            let event = LargeBlobEvent {
                timestamp: Ticks(number),
                thread: thread(1),
                arguments: Arguments::default(),
            };
            let category = StringRef::inline("fidl:blob");
            bytes.record(Record::Large(LargeBlob {
                category,
                name: string(1),
                event: Some(event),
                payload: &payload,
            }));
        }
    }
    let of_one = documents(&bytes.0, Jobs::default(), &Filter::default());
    assert!(of_one[0].0.len() > 8_000_000);
    for (threads, batch_bytes) in SHARED {
        let jobs = Jobs { threads, batch_bytes };
        assert!(documents(&bytes.0, jobs, &Filter::default()) == of_one, "{jobs:?}");
    }
    // Cut off in the middle of the second one.
    let cut = &bytes.0[..bytes.0.len() - 2_000_000];
    let of_one = documents(cut, Jobs::default(), &Filter::default());
    let jobs = Jobs { threads: 2, batch_bytes: 100 };
    assert!(documents(cut, jobs, &Filter::default()) == of_one);
}

/// An output that fails ends all threads.
#[test]
fn output_that_fails_is_an_error_with_several_threads() {
    let mut bytes = Bytes::default();
    bytes.record(Record::Metadata(Metadata::TraceInfoMagic));
    (0..10_000).for_each(|number| write(&mut bytes, [20, number, 4, 1]));
    for (threads, batch_bytes) in SHARED {
        let options = Options { jobs: Jobs { threads, batch_bytes }, ..Options::default() };
        let error = catapult::convert_with(&bytes.0[..], Full(100_000), options).unwrap_err();
        assert!(matches!(error, crate::ConvertError::Write(_)), "{error}");
    }
}
