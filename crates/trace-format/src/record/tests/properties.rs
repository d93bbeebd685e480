//! What holds for all records: encoding and decoding are inverse, sizes are announced, nothing panics.

use std::boxed::Box;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::event::Scope;
use crate::large::LargeBlobEvent;
use crate::metadata::MAGIC_WORD;
use crate::profiler::{Frames, ProfilerKind};
use crate::scheduling::ThreadState;
use crate::userspace_object::ProcessRef;

/// A record that owns its strings.
#[derive(Clone, Debug)]
struct Model {
    kind: Kind,
    thread: ThreadRef,
    strings: [Text; 2],
    bytes: Vec<u8>,
    words: Vec<u64>,
    other_thread: ThreadRef,
    arguments: Vec<(Text, Value)>,
    numbers: [u64; 3],
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Magic,
    ProviderInfo,
    ProviderSection,
    ProviderEvent,
    Initialization,
    String,
    Thread,
    Event(EventKind),
    Blob,
    UserspaceObject,
    KernelObject,
    ContextSwitch,
    ThreadWakeup,
    LegacyContextSwitch,
    Log,
    Module,
    Mmap,
    Backtrace,
    LargeEvent,
    LargeAttachment,
}

#[derive(Clone, Debug)]
enum Text {
    Empty,
    Index(StringIndex),
    Inline(Vec<u8>),
}

#[derive(Clone, Debug)]
enum Value {
    Plain(ArgumentValue<'static>),
    Text(Text),
    Blob(Vec<u8>),
}

impl Text {
    fn as_ref(&self) -> StringRef<'_> {
        match self {
            Self::Empty => StringRef::Empty,
            Self::Index(index) => StringRef::Index(*index),
            Self::Inline(bytes) => StringRef::Inline(bytes),
        }
    }
}

impl Value {
    fn as_ref(&self) -> ArgumentValue<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Text(text) => ArgumentValue::String(text.as_ref()),
            Self::Blob(bytes) => ArgumentValue::Blob(bytes),
        }
    }
}

impl Model {
    fn with<R>(&self, test: impl FnOnce(Record<'_>) -> R) -> R {
        let [a, b, c] = self.numbers;
        let id = ProviderId(a as u32);
        let list: Vec<Argument<'_>> = self
            .arguments
            .iter()
            .map(|(name, value)| Argument { name: name.as_ref(), value: value.as_ref() })
            .collect();
        let arguments = Arguments::from_slice(&list);
        let (timestamp, name) = (Ticks(a), self.strings[0].as_ref());
        test(match self.kind {
            Kind::Magic => Record::Metadata(Metadata::TraceInfoMagic),
            Kind::ProviderInfo => Record::Metadata(Metadata::ProviderInfo { id, name: &self.bytes }),
            Kind::ProviderSection => Record::Metadata(Metadata::ProviderSection { id }),
            Kind::ProviderEvent => Record::Metadata(Metadata::ProviderEvent { id, event: b as u8 & 15 }),
            Kind::Initialization => Record::Initialization(Initialization {
                ticks_per_second: TicksPerSecond::new(a).unwrap_or(TicksPerSecond::NANOSECONDS),
            }),
            Kind::String => Record::String(StringRecord { index: a as u16 & 0x7fff, value: &self.bytes }),
            Kind::Thread => Record::Thread(ThreadRecord {
                index: a as u8,
                process: ProcessKoid(Koid(b)),
                thread: ThreadKoid(Koid(c)),
            }),
            Kind::Event(kind) => Record::Event(Event {
                timestamp,
                thread: self.thread,
                category: self.strings[1].as_ref(),
                name,
                kind,
                arguments,
            }),
            Kind::Blob => Record::Blob(Blob { blob_type: a as u8, name, payload: &self.bytes }),
            Kind::UserspaceObject => Record::UserspaceObject(UserspaceObject {
                process: ProcessRef::Index(ThreadIndex::new(a as u8 | 1).unwrap()),
                address: b,
                name,
                arguments,
            }),
            Kind::ContextSwitch => Record::Scheduling(Scheduling::ContextSwitch {
                timestamp,
                cpu: b as u16,
                outgoing_state: ThreadState(c as u8 & 15),
                outgoing: ThreadKoid(Koid(b)),
                incoming: ThreadKoid(Koid(c)),
                arguments,
            }),
            Kind::ThreadWakeup => Record::Scheduling(Scheduling::ThreadWakeup {
                timestamp,
                cpu: b as u16,
                thread: ThreadKoid(Koid(c)),
                arguments,
            }),
            Kind::LegacyContextSwitch => Record::Scheduling(Scheduling::LegacyContextSwitch {
                timestamp,
                cpu: b as u8,
                outgoing_state: ThreadState(c as u8 & 15),
                outgoing: self.thread,
                incoming: self.other_thread,
                outgoing_priority: (b >> 8) as u8,
                incoming_priority: (c >> 8) as u8,
            }),
            Kind::Module => {
                let (name, build_id) = self.bytes.split_at(self.bytes.len() / 3);
                self.profiler(ProfilerKind::Module { id: b as u16, name, build_id })
            }
            Kind::Mmap => self.profiler(ProfilerKind::Mmap {
                module: b as u16,
                flags: c as u8 & 7,
                start: a,
                length: b,
                linked_at: c,
            }),
            Kind::Backtrace => self.profiler(ProfilerKind::Backtrace { frames: Frames::new(&self.words) }),
            Kind::LargeEvent | Kind::LargeAttachment => Record::Large(LargeBlob {
                category: self.strings[1].as_ref(),
                name,
                event: matches!(self.kind, Kind::LargeEvent).then_some(LargeBlobEvent {
                    timestamp,
                    thread: self.thread,
                    arguments,
                }),
                payload: &self.bytes,
            }),
            Kind::KernelObject => {
                Record::KernelObject(KernelObject { object_type: a as u8, koid: Koid(b), name, arguments })
            }
            Kind::Log => Record::Log(Log { timestamp, thread: self.thread, message: &self.bytes }),
        })
    }

    fn profiler<'a>(&self, kind: ProfilerKind<'a>) -> Record<'a> {
        Record::Profiler(Profiler { timestamp: Ticks(self.numbers[0]), thread: self.thread, kind })
    }
}

fn text() -> impl Strategy<Value = Text> {
    prop_oneof![
        Just(Text::Empty),
        (1..0x8000u16).prop_map(|index| Text::Index(StringIndex::new(index).unwrap())),
        vec(any::<u8>(), 1..40).prop_map(Text::Inline),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    use ArgumentValue as Plain;

    prop_oneof![
        Just(Value::Plain(Plain::Null)),
        any::<bool>().prop_map(|value| Value::Plain(Plain::Bool(value))),
        any::<i32>().prop_map(|value| Value::Plain(Plain::Int32(value))),
        any::<u32>().prop_map(|value| Value::Plain(Plain::Uint32(value))),
        any::<i64>().prop_map(|value| Value::Plain(Plain::Int64(value))),
        any::<u64>().prop_map(|value| Value::Plain(Plain::Uint64(value))),
        any::<f64>().prop_map(|value| Value::Plain(Plain::Double(value))),
        any::<u64>().prop_map(|value| Value::Plain(Plain::Pointer(value))),
        any::<u64>().prop_map(|value| Value::Plain(Plain::Koid(Koid(value)))),
        text().prop_map(Value::Text),
        vec(any::<u8>(), 0..40).prop_map(Value::Blob),
    ]
}

fn event_kind() -> impl Strategy<Value = EventKind> {
    (0..13u8, any::<u64>()).prop_map(|(kind, id)| match kind {
        0 => EventKind::Instant { scope: Scope::Thread },
        1 => EventKind::Instant { scope: Scope::Process },
        2 => EventKind::Instant { scope: Scope::Global },
        3 => EventKind::Counter { id },
        4 => EventKind::DurationBegin,
        5 => EventKind::DurationEnd,
        6 => EventKind::DurationComplete { end: Ticks(id) },
        7 => EventKind::AsyncBegin { id },
        8 => EventKind::AsyncInstant { id },
        9 => EventKind::AsyncEnd { id },
        10 => EventKind::FlowBegin { id },
        11 => EventKind::FlowStep { id },
        _ => EventKind::FlowEnd { id },
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        1 => Just(Kind::Magic),
        1 => Just(Kind::ProviderInfo),
        1 => Just(Kind::ProviderSection),
        1 => Just(Kind::ProviderEvent),
        1 => Just(Kind::Initialization),
        1 => Just(Kind::String),
        1 => Just(Kind::Thread),
        8 => event_kind().prop_map(Kind::Event),
        1 => Just(Kind::Blob),
        1 => Just(Kind::UserspaceObject),
        3 => Just(Kind::KernelObject),
        1 => Just(Kind::ContextSwitch),
        1 => Just(Kind::ThreadWakeup),
        1 => Just(Kind::LegacyContextSwitch),
        1 => Just(Kind::Log),
        1 => Just(Kind::Module),
        1 => Just(Kind::Mmap),
        1 => Just(Kind::Backtrace),
        1 => Just(Kind::LargeEvent),
        1 => Just(Kind::LargeAttachment),
    ]
}

fn thread() -> impl Strategy<Value = ThreadRef> {
    prop_oneof![
        (1..=255u8).prop_map(|index| ThreadRef::Index(ThreadIndex::new(index).unwrap())),
        any::<[u64; 2]>().prop_map(|[process, thread]| ThreadRef::Inline {
            process: ProcessKoid(Koid(process)),
            thread: ThreadKoid(Koid(thread)),
        }),
    ]
}

fn model() -> impl Strategy<Value = Model> {
    (
        kind(),
        thread(),
        [text(), text()],
        vec(any::<u8>(), 0..256),
        vec(any::<u64>(), 0..=255),
        thread(),
        vec((text(), value()), 0..=15),
        any::<[u64; 3]>(),
    )
        .prop_map(|(kind, thread, strings, bytes, words, other_thread, arguments, numbers)| Model {
            kind,
            thread,
            strings,
            bytes,
            words,
            other_thread,
            arguments,
            numbers,
        })
}

/// Decodes anything; what comes out can be gone through and written again.
fn decode_untrusted(encoded: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let record = Record::decode(encoded)?;
    let arguments = match record {
        Record::Event(event) => event.arguments,
        Record::KernelObject(object) => object.arguments,
        Record::UserspaceObject(object) => object.arguments,
        Record::Scheduling(record) => record.arguments(),
        Record::Large(LargeBlob { event: Some(event), .. }) => event.arguments,
        _ => Arguments::default(),
    };
    assert_eq!(arguments.iter().filter(Result::is_ok).count(), arguments.len());
    if let Ok(again) = encode(&record) {
        assert_eq!(again.len(), record.words().0);
        assert_eq!(encode(&Record::decode(&bytes(&again))?), Ok(again));
    }
    Ok(())
}

proptest! {
    #[test]
    //= docs/format.md#record-header
    fn decoding_undoes_encoding(model in model()) {
        model.with(|record| {
            let words = encode(&record).unwrap();
            assert_eq!(record.words(), Words(words.len()));
            assert_eq!(RecordHeader(words[0]).size(), Words(words.len()));
            let encoded = bytes(&words);
            let decoded = Record::decode(&encoded).unwrap();
            assert_eq!(decoded, record);
            assert_eq!(encode(&decoded), Ok(words));
        });
    }

    #[test]
    //= docs/format.md#malformed-input
    fn any_words_are_survived(words in vec(any::<u64>(), 1..40)) {
        let _ = decode_untrusted(&bytes(&sized(&words)));
        let _ = decode_untrusted(&bytes(&words));
    }

    #[test]
    //= docs/format.md#malformed-input
    fn any_bytes_are_survived(encoded in vec(any::<u8>(), 0..64)) {
        let _ = decode_untrusted(&encoded);
    }

    #[test]
    //= docs/format.md#malformed-input
    fn a_damaged_record_is_survived(
        model in model(),
        damage in vec((any::<prop::sample::Index>(), 0..64u32), 1..4),
    ) {
        let mut words = model.with(|record| encode(&record).unwrap());
        for (place, bit) in damage {
            *place.get_mut(&mut words) ^= 1 << bit;
        }
        let _ = decode_untrusted(&bytes(&sized(&words)));
    }

    #[test]
    //= docs/format.md#malformed-input
    fn a_shortened_record_is_survived(model in model(), length in any::<prop::sample::Index>()) {
        let words = model.with(|record| encode(&record).unwrap());
        let shortened = &words[..=length.index(words.len())];
        let _ = decode_untrusted(&bytes(&sized(shortened)));
    }

    #[test]
    fn surplus_words_do_not_matter(model in model(), surplus in vec(any::<u64>(), 1..4)) {
        model.with(|record| {
            let mut words = encode(&record).unwrap();
            // Two exceptions: the magic number is exact, and what follows an instant is its scope.
            let is_exact = words == [MAGIC_WORD];
            let has_no_scope =
                matches!(record, Record::Event(Event { kind: EventKind::Instant { scope: Scope::Thread }, .. }));
            if !is_exact && !has_no_scope {
                words.extend(surplus);
                assert_eq!(Record::decode(&bytes(&sized(&words))), Ok(record));
            }
        });
    }
}
