//! A trace as a list of what it says: the input of the model, and what the doors of the tool get as an
//! archive.

use std::fmt::{self, Display, Formatter};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::log::Log;
use trace_format::record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};
use trace_reader::{Item, Reader, Value};

/// The only argument of the generator's counters.
pub const SERIES: &str = "v";

/// A process and one of its threads, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread {
    pub process: u64,
    pub thread: u64,
}

/// One record. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub at: u64,
    pub thread: Thread,
    pub category: String,
    /// The message, if it is a log record.
    pub name: String,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Begin,
    /// A begin that says that it has no end.
    Open,
    End,
    Complete {
        end: u64,
    },
    /// The begin of a poll of an operation.
    PollBegin {
        of: u64,
    },
    /// A whole poll.
    Poll {
        of: u64,
        end: u64,
    },
    Instant,
    OperationBegin {
        id: u64,
    },
    /// Only cases have it.
    OperationInstant {
        id: u64,
    },
    OperationEnd {
        id: u64,
    },
    FlowBegin {
        id: u64,
    },
    FlowStep {
        id: u64,
    },
    FlowEnd {
        id: u64,
    },
    Counter {
        id: u64,
        samples: Vec<(String, i64)>,
    },
    Log,
}

impl Display for Thread {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.process, self.thread)
    }
}

impl Display for Record {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { at, thread, category, name, kind } = self;
        write!(f, "{at} {thread} ")?;
        match kind {
            Kind::Begin => write!(f, "begin {category}:{name}"),
            Kind::Open => write!(f, "open {category}:{name}"),
            Kind::End => write!(f, "end {category}:{name}"),
            Kind::Complete { end } => write!(f, "complete {category}:{name} to {end}"),
            Kind::PollBegin { of } => write!(f, "begin {category}:{name} poll of {of}"),
            Kind::Poll { of, end } => write!(f, "complete {category}:{name} to {end} poll of {of}"),
            Kind::Instant => write!(f, "instant {category}:{name}"),
            Kind::OperationBegin { id } => write!(f, "operation-begin {category}:{name} id {id}"),
            Kind::OperationInstant { id } => write!(f, "operation-instant {category}:{name} id {id}"),
            Kind::OperationEnd { id } => write!(f, "operation-end {category}:{name} id {id}"),
            Kind::FlowBegin { id } => write!(f, "flow-begin {category}:{name} id {id}"),
            Kind::FlowStep { id } => write!(f, "flow-step {category}:{name} id {id}"),
            Kind::FlowEnd { id } => write!(f, "flow-end {category}:{name} id {id}"),
            Kind::Counter { id, samples } => write!(f, "counter {category}:{name} id {id} {samples:?}"),
            Kind::Log => write!(f, "log {:.40?}", name),
        }
    }
}

/// The record of a line, as it is printed; not of counters and log records.
pub fn parse(line: &str) -> Option<Record> {
    let mut words = line.split(' ');
    let at = words.next()?.parse().ok()?;
    let (process, thread) = words.next()?.split_once('/')?;
    let thread = Thread { process: process.parse().ok()?, thread: thread.parse().ok()? };
    let kind = words.next()?;
    let (category, name) = words.next()?.split_once(':')?;
    let id = words.nth(1).and_then(|number| number.parse().ok());
    let kind = match kind {
        "begin" => Kind::Begin,
        "open" => Kind::Open,
        "end" => Kind::End,
        "complete" => Kind::Complete { end: id? },
        "instant" => Kind::Instant,
        "operation-begin" => Kind::OperationBegin { id: id? },
        "operation-instant" => Kind::OperationInstant { id: id? },
        "operation-end" => Kind::OperationEnd { id: id? },
        "flow-begin" => Kind::FlowBegin { id: id? },
        "flow-step" => Kind::FlowStep { id: id? },
        "flow-end" => Kind::FlowEnd { id: id? },
        _ => return None,
    };
    Some(Record { at, thread, category: category.to_owned(), name: name.to_owned(), kind })
}

/// Bytes that grow.
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }
}

/// An archive with these records, in this order.
pub fn archive(records: &[Record]) -> Vec<u8> {
    let mut bytes = Bytes(Vec::new());
    // Magic number, provider 1 "meaning", a tick is a nanosecond.
    for word in [0x0016_5478_4604_0010, 0x0070_0000_0011_0020, 0x0067_6e69_6e61_656d, 0x21, 1_000_000_000] {
        bytes.word(word);
    }
    for record in records {
        let timestamp = Ticks(record.at);
        let thread = ThreadRef::Inline {
            process: ProcessKoid(Koid(record.thread.process)),
            thread: ThreadKoid(Koid(record.thread.thread)),
        };
        let arguments: Vec<Argument<'_>> = match &record.kind {
            Kind::Counter { samples, .. } => samples
                .iter()
                .map(|(name, value)| Argument {
                    name: StringRef::inline(name),
                    value: ArgumentValue::Int64(*value),
                })
                .collect(),
            Kind::PollBegin { of } | Kind::Poll { of, .. } => {
                vec![Argument { name: StringRef::inline("poll-of"), value: ArgumentValue::Uint64(*of) }]
            }
            Kind::Open => {
                let why = ArgumentValue::String(StringRef::inline("open at stop"));
                vec![Argument { name: StringRef::inline("end"), value: why }]
            }
            _ => Vec::new(),
        };
        let kind = match record.kind {
            Kind::Begin | Kind::Open | Kind::PollBegin { .. } => EventKind::DurationBegin,
            Kind::End => EventKind::DurationEnd,
            Kind::Complete { end } | Kind::Poll { end, .. } => {
                EventKind::DurationComplete { end: Ticks(end) }
            }
            Kind::Instant => EventKind::Instant { scope: Scope::Thread },
            Kind::OperationBegin { id } => EventKind::AsyncBegin { id },
            Kind::OperationInstant { id } => EventKind::AsyncInstant { id },
            Kind::OperationEnd { id } => EventKind::AsyncEnd { id },
            Kind::FlowBegin { id } => EventKind::FlowBegin { id },
            Kind::FlowStep { id } => EventKind::FlowStep { id },
            Kind::FlowEnd { id } => EventKind::FlowEnd { id },
            Kind::Counter { id, .. } => EventKind::Counter { id },
            Kind::Log => {
                let log = Log { timestamp, thread, message: record.name.as_bytes() };
                log.encode(&mut bytes).expect("a short message");
                continue;
            }
        };
        let event = record::Record::Event(Event {
            timestamp,
            thread,
            category: StringRef::inline(&record.category),
            name: StringRef::inline(&record.name),
            kind,
            arguments: Arguments::from_slice(&arguments),
        });
        event.encode(&mut bytes).expect("a short event");
    }
    bytes.0
}

/// What an archive says. None if it has anything that the model has no rule for: damage, events of other
/// kinds and scopes, names of processes and threads, counters whose values are no integers, names that are
/// not UTF-8.
pub fn read(bytes: &[u8]) -> Option<Vec<Record>> {
    let mut reader = Reader::of_slice(bytes).ok()?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_item().ok()? {
        match record.item {
            Item::Event(event) => records.push(of_event(&event)?),
            Item::Log { time, thread, message } => records.push(Record {
                at: time.nanos().0,
                thread: Thread { process: thread.process.0, thread: thread.thread.0 },
                category: String::new(),
                name: std::str::from_utf8(message.as_bytes()).ok()?.to_owned(),
                kind: Kind::Log,
            }),
            Item::Magic
            | Item::ProviderInfo { .. }
            | Item::ProviderSection
            | Item::Initialization { .. }
            | Item::String { .. }
            | Item::Thread { .. } => {}
            _ => return None,
        }
    }
    reader.warnings().first().is_empty().then_some(records)
}

fn of_event(event: &trace_reader::Event<'_>) -> Option<Record> {
    let kind = match event.kind {
        EventKind::DurationBegin if event.ending().is_some() => Kind::Open,
        EventKind::DurationBegin => Kind::Begin,
        EventKind::DurationEnd => Kind::End,
        EventKind::DurationComplete { end } if end >= event.time.ticks => {
            Kind::Complete { end: end.to_nanos(event.time.rate).0 }
        }
        EventKind::Instant { scope: Scope::Thread } => Kind::Instant,
        EventKind::AsyncBegin { id } => Kind::OperationBegin { id },
        EventKind::AsyncEnd { id } => Kind::OperationEnd { id },
        EventKind::FlowBegin { id } => Kind::FlowBegin { id },
        EventKind::FlowStep { id } => Kind::FlowStep { id },
        EventKind::FlowEnd { id } => Kind::FlowEnd { id },
        EventKind::Counter { id } => {
            Kind::Counter { id, samples: event.arguments.iter().map(sample).collect::<Option<_>>()? }
        }
        _ => return None,
    };
    let text = |text: trace_reader::Text<'_>| Some(std::str::from_utf8(text.as_bytes()).ok()?.to_owned());
    Some(Record {
        at: event.time.nanos().0,
        thread: Thread { process: event.thread.process.0, thread: event.thread.thread.0 },
        category: text(event.category)?,
        name: text(event.name)?,
        kind,
    })
}

fn sample((name, value): (trace_reader::Text<'_>, Value<'_>)) -> Option<(String, i64)> {
    let value = match value {
        Value::Int32(value) => value.into(),
        Value::Uint32(value) => value.into(),
        Value::Int64(value) => value,
        Value::Uint64(value) => value.try_into().ok()?,
        _ => return None,
    };
    Some((std::str::from_utf8(name.as_bytes()).ok()?.to_owned(), value))
}
