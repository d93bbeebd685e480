//! From an archive to JSON and back.
//= docs/import.md#round-trips

use super::*;
use crate::export::numbers::{is_replaced, short, thread_number};
use crate::import::writer::Writer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::{EventKind, Scope};
use trace_format::refs::StringRef;
use trace_format::units::{Koid, Ticks};
use trace_linux::Records;
use trace_reader::Thread;

const DIALECTS: [Dialect; 3] =
    [Dialect::Fuchsia, Dialect::Chrome(Container::Array), Dialect::Chrome(Container::Object)];

/// A value of an argument.
#[derive(Clone, Debug)]
enum Value {
    Null,
    Bool(bool),
    Int32(i32),
    Uint32(u32),
    Int64(i64),
    Uint64(u64),
    Double(f64),
    Text(String),
    Pointer(u64),
    Koid(u64),
    Blob(Vec<u8>),
}

impl Value {
    /// What it is when it comes back; none if it does not.
    fn back(&self) -> Option<Self> {
        let whole = |value: i128| {
            i32::try_from(value)
                .map(Self::Int32)
                .or_else(|_| i64::try_from(value).map(Self::Int64))
                .unwrap_or(Self::Uint64(value as u64))
        };
        Some(match self {
            Self::Null => return None,
            Self::Int32(value) => whole((*value).into()),
            Self::Uint32(value) => whole((*value).into()),
            Self::Int64(value) => whole((*value).into()),
            Self::Uint64(value) => whole((*value).into()),
            Self::Pointer(value) => Self::Text(format!("{value:#x}")),
            Self::Koid(koid) => Self::Text(format!("#{koid}")),
            Self::Blob(bytes) => Self::Text(STANDARD.encode(bytes)),
            Self::Bool(_) | Self::Double(_) | Self::Text(_) => self.clone(),
        })
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Int32(_) | Self::Uint32(_) | Self::Int64(_) | Self::Uint64(_) | Self::Double(_))
    }

    fn encoded(&self) -> ArgumentValue<'_> {
        match self {
            Self::Null => ArgumentValue::Null,
            Self::Bool(value) => ArgumentValue::Bool(*value),
            Self::Int32(value) => ArgumentValue::Int32(*value),
            Self::Uint32(value) => ArgumentValue::Uint32(*value),
            Self::Int64(value) => ArgumentValue::Int64(*value),
            Self::Uint64(value) => ArgumentValue::Uint64(*value),
            Self::Double(value) => ArgumentValue::Double(*value),
            Self::Text(text) if text.is_empty() => ArgumentValue::String(StringRef::Empty),
            Self::Text(text) => ArgumentValue::String(StringRef::Inline(text.as_bytes())),
            Self::Pointer(value) => ArgumentValue::Pointer(*value),
            Self::Koid(koid) => ArgumentValue::Koid(Koid(*koid)),
            Self::Blob(bytes) => ArgumentValue::Blob(bytes),
        }
    }
}

#[derive(Clone, Debug)]
struct Event {
    at: u64,
    thread: Thread,
    category: String,
    name: String,
    kind: EventKind,
    arguments: Vec<(String, Value)>,
}

/// An archive of events.
fn archive(events: &[Event]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, "json");
    for event in events {
        let arguments: Vec<_> = event
            .arguments
            .iter()
            .map(|(name, value)| Argument {
                name: if name.is_empty() { StringRef::Empty } else { StringRef::Inline(name.as_bytes()) },
                value: value.encoded(),
            })
            .collect();
        let (category, name) = (event.category.as_bytes(), event.name.as_bytes());
        writer.event(event.at, event.thread, category, name, event.kind, &arguments);
    }
    assert_eq!(writer.finish("events").unwrap().events, events.len() as u64);
    bytes
}

/// What comes back of an archive.
fn there_and_back(archive: &[u8], dialect: Dialect) -> Vec<String> {
    let mut json = Vec::new();
    catapult::convert_in_memory(archive, &mut json, Options { dialect, ..Options::default() }).unwrap();
    let text = std::str::from_utf8(&json).unwrap();
    let (again, summary) = imported(text);
    assert_eq!(summary.skipped, []);
    // With a name that has an escape no event is of the usual form, and all are read another way.
    assert_eq!(imported(&text.replace("{\"cat\":", "{\"c\\u0061t\":")).0, again);
    lines(&again)
}

fn value() -> impl Strategy<Value = Value> {
    let double = proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO;
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(Value::Int32),
        any::<u32>().prop_map(Value::Uint32),
        any::<i64>().prop_map(Value::Int64),
        any::<u64>().prop_map(Value::Uint64),
        double.prop_map(Value::Double),
        ".{0,12}".prop_map(Value::Text),
        any::<u64>().prop_map(Value::Pointer),
        any::<u64>().prop_map(Value::Koid),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(Value::Blob),
    ]
}

fn kind() -> impl Strategy<Value = EventKind> {
    let id = any::<u64>;
    prop_oneof![
        prop_oneof![Just(Scope::Thread), Just(Scope::Process), Just(Scope::Global)]
            .prop_map(|scope| EventKind::Instant { scope }),
        id().prop_map(|id| EventKind::Counter { id }),
        Just(EventKind::DurationBegin),
        Just(EventKind::DurationEnd),
        (0..1_u64 << 61).prop_map(|length| EventKind::DurationComplete { end: Ticks(length) }),
        id().prop_map(|id| EventKind::AsyncBegin { id }),
        id().prop_map(|id| EventKind::AsyncInstant { id }),
        id().prop_map(|id| EventKind::AsyncEnd { id }),
        id().prop_map(|id| EventKind::FlowBegin { id }),
        id().prop_map(|id| EventKind::FlowStep { id }),
        id().prop_map(|id| EventKind::FlowEnd { id }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let arguments = proptest::collection::vec(("[a-z\\PC]{0,6}", value()), 0..5);
    let thread = (any::<u64>(), any::<u64>());
    (0..1_u64 << 61, thread, ".{0,9}", ".{0,9}", kind(), arguments).prop_map(
        |(at, (process, thread), category, name, kind, mut arguments)| {
            let kind = match kind {
                EventKind::DurationComplete { end } => EventKind::DurationComplete { end: Ticks(at + end.0) },
                other => other,
            };
            if matches!(kind, EventKind::Counter { .. }) {
                // Chrome's have nothing else.
                arguments.retain(|(_, value)| value.is_number());
            }
            let thread = Thread { process: Koid(process), thread: Koid(thread) };
            Event { at, thread, category, name, kind, arguments }
        },
    )
}

/// In Chrome's documents ends of durations have no name, some numbers of threads are replaced, and samples
/// have 64 bits with a sign.
fn as_in_chrome(event: &mut Event) {
    if event.kind == EventKind::DurationEnd {
        (event.category, event.name) = (String::new(), String::new());
    }
    if is_replaced(event.thread) {
        let (process, thread) = (short(event.thread.process), thread_number(event.thread));
        event.thread = Thread { process: Koid(process.into()), thread: Koid(thread.into()) };
    }
    if matches!(event.kind, EventKind::Counter { .. }) {
        for (_, value) in &mut event.arguments {
            if let Value::Uint64(number @ 0x8000_0000_0000_0000..) = value {
                *value = Value::Double(*number as f64);
            }
        }
    }
}

proptest! {
    /// Every event, argument and nanosecond comes back, but for what the values say.
    #[test]
    fn all_events_come_back(events in proptest::collection::vec(event(), 0..20)) {
        let there = archive(&events);
        let mut expected = events;
        for event in &mut expected {
            event.arguments =
                event.arguments.iter().filter_map(|(name, value)| Some((name.clone(), value.back()?))).collect();
        }
        let own = lines(&archive(&expected));
        prop_assert_eq!(&there_and_back(&there, Dialect::Fuchsia), &own);
        expected.iter_mut().for_each(as_in_chrome);
        // A counter without a sample is none.
        expected.retain(|event| {
            !matches!(event.kind, EventKind::Counter { .. }) || !event.arguments.is_empty()
        });
        let mut expected = lines(&archive(&expected));
        expected.sort();
        for dialect in DIALECTS.into_iter().filter(|dialect| *dialect != Dialect::Fuchsia) {
            // Operations that end before they begin come last.
            let mut back = there_and_back(&there, dialect);
            back.sort();
            prop_assert_eq!(&back, &expected, "{:?}", dialect);
        }
    }
}

/// Each exception, with its value before and after.
#[test]
fn what_does_not_come_back_as_it_was() {
    let cases = [
        (Value::Pointer(0x1f), r#"{v="0x1f"}"#),
        (Value::Text("0x1f".to_owned()), r#"{v="0x1f"}"#),
        (Value::Koid(12), r##"{v="#12"}"##),
        (Value::Text("#12".to_owned()), r##"{v="#12"}"##),
        (Value::Blob(vec![1, 2, 255]), r#"{v="AQL/"}"#),
        (Value::Uint32(7), "{v=7i32}"),
        (Value::Int64(7), "{v=7i32}"),
        (Value::Uint64(7), "{v=7i32}"),
        (Value::Uint32(u32::MAX), "{v=4294967295i64}"),
        (Value::Uint64(1 << 62), "{v=4611686018427387904i64}"),
        (Value::Double(f64::NAN), r#"{v="NaN"}"#),
        (Value::Double(f64::NEG_INFINITY), r#"{v="-Infinity"}"#),
    ];
    for (value, expected) in cases {
        let event = Event {
            at: 1,
            thread: Thread { process: Koid(1), thread: Koid(2) },
            category: "c".to_owned(),
            name: "n".to_owned(),
            kind: EventKind::DurationBegin,
            arguments: vec![("v".to_owned(), value.clone())],
        };
        let expected = format!(r#"0.000000001 begin 1/2 "c" "n" {expected}"#);
        for dialect in DIALECTS {
            assert_eq!(
                there_and_back(&archive(std::slice::from_ref(&event)), dialect),
                [expected.as_str()],
                "{value:?}"
            );
        }
        let absent = Event { arguments: vec![("v".to_owned(), Value::Null)], ..event };
        for dialect in DIALECTS {
            assert_eq!(
                there_and_back(&archive(std::slice::from_ref(&absent)), dialect),
                [r#"0.000000001 begin 1/2 "c" "n""#]
            );
        }
    }
}
