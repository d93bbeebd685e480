//! Small archives for tests.

use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::loss::{LossCode, LossRecord};
use trace_format::metadata::{MAGIC_WORD, Metadata};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::units::{Koid, ProcessKoid, ProviderId, ThreadKoid, Ticks};

#[derive(Default)]
pub(crate) struct Bytes(pub Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

pub(crate) const INSTANT: EventKind = EventKind::Instant { scope: Scope::Thread };

/// An archive whose ticks are nanoseconds; all events are of category `c` and process 1.
pub(crate) struct Archive(pub Bytes);

impl Archive {
    pub fn new() -> Self {
        let mut bytes = Bytes(MAGIC_WORD.to_le_bytes().to_vec());
        let info = Record::Metadata(Metadata::ProviderInfo { id: ProviderId(1), name: b"app" });
        info.encode(&mut bytes).unwrap();
        Self(bytes)
    }

    pub fn event(mut self, thread: u64, name: &str, kind: EventKind, at: u64) -> Self {
        self.push(thread, name, kind, at, &[]);
        self
    }

    /// An event with an argument.
    pub fn with(
        mut self,
        thread: u64,
        name: &str,
        kind: EventKind,
        at: u64,
        (name_of, value): (&str, ArgumentValue<'_>),
    ) -> Self {
        self.push(thread, name, kind, at, &[Argument { name: StringRef::Inline(name_of.as_bytes()), value }]);
        self
    }

    /// An operation `job` from 1000 to 4000 with three polls of 100, 200 and 300 ns on two threads, of which
    /// the first one was recorded as if it were a duration.
    pub fn operation(self, id: u64) -> Self {
        let (begin, end) = (EventKind::DurationBegin, EventKind::DurationEnd);
        let of = ArgumentValue::Uint64(id);
        self.event(1, "job", begin, 1000)
            .event(1, "job", end, 1100)
            .with(1, "job", EventKind::AsyncBegin { id }, 1000, ("first-poll", ArgumentValue::Bool(true)))
            .with(2, "job", begin, 2000, ("poll-of", of))
            .event(2, "job", end, 2200)
            .with(2, "job", EventKind::DurationComplete { end: Ticks(4000) }, 3700, ("poll-of", of))
            .event(2, "job", EventKind::AsyncEnd { id }, 4000)
    }

    /// A duration in one event.
    pub fn complete(self, thread: u64, name: &str, begin: u64, end: u64) -> Self {
        self.event(thread, name, EventKind::DurationComplete { end: Ticks(end) }, begin)
    }

    pub fn counter(self, name: &str, series: &str, value: i64, at: u64) -> Self {
        self.argument(name, series, ArgumentValue::Int64(value), at)
    }

    pub fn sample(self, name: &str, series: &str, value: f64, at: u64) -> Self {
        self.argument(name, series, ArgumentValue::Double(value), at)
    }

    fn argument(mut self, name: &str, series: &str, value: ArgumentValue<'_>, at: u64) -> Self {
        let argument = [Argument { name: StringRef::Inline(series.as_bytes()), value }];
        self.push(1, name, EventKind::Counter { id: 0 }, at, &argument);
        self
    }

    fn push(&mut self, thread: u64, name: &str, kind: EventKind, at: u64, arguments: &[Argument<'_>]) {
        let event = Event {
            timestamp: Ticks(at),
            thread: ThreadRef::Inline { process: ProcessKoid(Koid(1)), thread: ThreadKoid(Koid(thread)) },
            category: StringRef::Inline(b"c"),
            name: StringRef::Inline(name.as_bytes()),
            kind,
            arguments: Arguments::from_slice(arguments),
        };
        event.encode(&mut self.0).unwrap();
    }

    /// An instant of the manager's own provider; what follows is the program's again.
    pub fn recording(mut self, name: &str) -> Self {
        let info = |id, name| Record::Metadata(Metadata::ProviderInfo { id: ProviderId(id), name });
        info(0, b"trace_manager").encode(&mut self.0).unwrap();
        let event = Event {
            timestamp: Ticks(0),
            thread: ThreadRef::Inline { process: ProcessKoid(Koid(9)), thread: ThreadKoid(Koid(9)) },
            category: StringRef::Inline(b"trace"),
            name: StringRef::Inline(name.as_bytes()),
            kind: INSTANT,
            arguments: Arguments::from_slice(&[]),
        };
        event.encode(&mut self.0).unwrap();
        Record::Metadata(Metadata::ProviderSection { id: ProviderId(1) }).encode(&mut self.0).unwrap();
        self
    }

    pub fn loss(mut self, count: u64) -> Self {
        let (first, last) = (Ticks(1), Ticks(2));
        let loss = LossRecord { provider: ProviderId(1), reason: LossCode(1), count, first, last };
        LossRecord::blob(&loss.to_bytes()).encode(&mut self.0).unwrap();
        self
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0.0
    }
}
