//! Records with their strings, threads, providers and times resolved.
//!
//! Tables are per provider. What cannot be resolved is shown as unknown and counted as a warning with its
//! place; a warning never stops the reader.

use crate::records::{RawRecord, ReadError, Records};
use crate::tables::{Providers, Thread};
use std::io::Read;
use std::rc::Rc;
use trace_format::argument::{ArgumentValue, Arguments};
use trace_format::error::DecodeError;
use trace_format::event::EventKind;
use trace_format::metadata::{MAGIC_WORD, Metadata};
use trace_format::record::{Record, RecordHeader};
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::units::{Koid, Nanos, Offset, ProviderId, Ticks, TicksPerSecond, Words};

#[cfg(test)]
mod tests;

/// Warnings that are kept with their place; the rest is only counted.
const MAX_KEPT_WARNINGS: usize = 100;

/// Text of a trace: bytes that are UTF-8 by convention.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(Rc<[u8]>);

impl Text {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// For display: what is not UTF-8 is replaced.
    #[must_use]
    pub fn to_str(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

/// A value of a resolved argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// Signed, 32 bits.
    Int32(i32),
    /// Unsigned, 32 bits.
    Uint32(u32),
    /// Signed, 64 bits.
    Int64(i64),
    /// Unsigned, 64 bits.
    Uint64(u64),
    /// Floating point.
    Double(f64),
    /// Text.
    String(Text),
    /// An address.
    Pointer(u64),
    /// A kernel object.
    Koid(Koid),
    /// Bytes.
    Blob(Vec<u8>),
    /// A type that is not known.
    Unknown,
}

/// An event, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedEvent {
    /// When, on the provider's clock.
    pub timestamp: Ticks,
    /// The rate of that clock.
    pub rate: TicksPerSecond,
    /// Whose event it is.
    pub process: Koid,
    /// Its thread.
    pub thread: Koid,
    /// By what it is switched on.
    pub category: Text,
    /// What it is called.
    pub name: Text,
    /// What it is.
    pub kind: EventKind,
    /// Its arguments, in order.
    pub arguments: Vec<(Text, Value)>,
}

impl ResolvedEvent {
    /// When, in nanoseconds, rounded down.
    #[must_use]
    pub fn nanos(&self) -> Nanos {
        self.timestamp.to_nanos(self.rate)
    }

    /// The argument of a name.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.iter().find(|(found, _)| found.as_bytes() == name.as_bytes()).map(|(_, value)| value)
    }
}

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// The magic number record.
    Magic,
    /// A provider is introduced and becomes current.
    ProviderInfo {
        /// Its name.
        name: Text,
    },
    /// A provider becomes current again.
    ProviderSection,
    /// A remark about a provider.
    ProviderEvent {
        /// The provider.
        about: ProviderId,
        /// 0: its buffer filled up.
        event: u8,
    },
    /// The rate of the current provider's clock.
    Initialization {
        /// The rate.
        rate: TicksPerSecond,
    },
    /// A string gets an index.
    String {
        /// The index.
        index: u16,
        /// The string.
        value: Text,
    },
    /// A thread gets an index.
    Thread {
        /// The index.
        index: u8,
        /// Its process.
        process: Koid,
        /// Itself.
        thread: Koid,
    },
    /// Something happened.
    Event(ResolvedEvent),
    /// Bytes with a name.
    Blob {
        /// The name.
        name: Text,
        /// What they are.
        blob_type: u8,
        /// The bytes.
        payload: Vec<u8>,
    },
    /// An object of the kernel and its name.
    KernelObject {
        /// 1 a process, 2 a thread.
        object_type: u8,
        /// Which object.
        koid: Koid,
        /// Its name.
        name: Text,
        /// What else is known of it.
        arguments: Vec<(Text, Value)>,
    },
    /// A line of text.
    Log {
        /// When.
        timestamp: Ticks,
        /// The rate of that clock.
        rate: TicksPerSecond,
        /// Whose line it is.
        process: Koid,
        /// Its thread.
        thread: Koid,
        /// The line.
        message: Text,
    },
    /// A kind of record that is stepped over.
    Unknown {
        /// Its header.
        header: RecordHeader,
        /// Its size.
        size: Words,
    },
}

/// A record's meaning and place.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Where the record begins.
    pub offset: Offset,
    /// The provider it belongs to.
    pub provider: ProviderId,
    /// What it says.
    pub item: Item,
}

/// Something that is wrong and does not stop the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The record's place.
    pub offset: Offset,
    /// Its provider.
    pub provider: ProviderId,
    /// What is wrong.
    pub kind: WarningKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WarningKind {
    /// The record does not make sense and is left out.
    #[error("malformed record: {0}")]
    Malformed(#[from] DecodeError),
    /// A string index that was not defined.
    #[error("string {0} is not defined")]
    UndefinedString(u16),
    /// A thread index that was not defined.
    #[error("thread {0} is not defined")]
    UndefinedThread(u8),
    /// A section of a provider that was not introduced.
    #[error("provider {0} was not introduced")]
    UnknownProvider(ProviderId),
    /// The input ends inside a record.
    #[error("the input ends after {0} bytes of it")]
    Truncated(u64),
    /// Words that are all zero, up to this place.
    #[error("{0} zero words")]
    ZeroWords(u64),
    /// The first record is not the magic number.
    #[error("expected the magic number")]
    NoMagic,
    /// A time that does not fit in 63 bits of nanoseconds.
    #[error("{0} are too many nanoseconds for 63 bits")]
    TimeOutOfRange(Ticks),
    /// A complete duration that ends before it begins.
    #[error("ends at {end}, before it begins at {begin}")]
    EndBeforeBegin {
        /// The begin.
        begin: Ticks,
        /// The end.
        end: Ticks,
    },
}

/// Reads an archive record by record.
#[derive(Debug)]
pub struct Reader<R> {
    records: Records<R>,
    resolver: Resolver,
}

#[derive(Debug)]
struct Resolver {
    providers: Providers,
    warnings: Vec<Warning>,
    warning_count: u64,
    /// Place of the record that is being resolved.
    offset: Offset,
    /// Shared by all empty strings.
    empty: Text,
    is_at_start: bool,
}

impl<R: Read> Reader<R> {
    /// Reads an archive.
    ///
    /// # Errors
    /// The input is no archive, or cannot be read.
    pub fn new(input: R) -> Result<Self, ReadError> {
        Ok(Self { records: Records::archive(input)?, resolver: Resolver::new() })
    }

    /// The meaning of the next record; None at the end. Malformed records are left out and counted.
    ///
    /// # Errors
    /// The position in the input is lost, or it cannot be read.
    pub fn next_item(&mut self) -> Result<Option<Resolved>, ReadError> {
        loop {
            let (gap, zero_words) = (self.records.position(), self.records.zero_words());
            let found = self.records.advance();
            let words = self.records.zero_words() - zero_words;
            if words > 0 {
                self.resolver.offset = gap;
                self.resolver.warn(WarningKind::ZeroWords(words));
            }
            let Some(found) = found? else {
                if let Some(leftover) = self.records.take_leftover() {
                    self.resolver.offset = leftover.offset;
                    self.resolver.warn(WarningKind::Truncated(leftover.bytes));
                }
                return Ok(None);
            };
            if let Some(item) = self.resolver.resolve(&self.records.record(found)) {
                return Ok(Some(item));
            }
        }
    }

    /// The first warnings, with their places.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.resolver.warnings
    }

    /// How many warnings there were.
    #[must_use]
    pub fn warning_count(&self) -> u64 {
        self.resolver.warning_count
    }

    /// Name of the current provider.
    pub fn provider_name(&self) -> Rc<str> {
        self.resolver.providers.current().name.clone()
    }
}

impl Resolver {
    fn new() -> Self {
        Self {
            providers: Providers::new(),
            warnings: Vec::new(),
            warning_count: 0,
            offset: Offset(0),
            empty: Text::new(b""),
            is_at_start: true,
        }
    }

    #[cold]
    fn warn(&mut self, kind: WarningKind) {
        self.warning_count += 1;
        if self.warnings.len() < MAX_KEPT_WARNINGS {
            let provider = self.providers.current_id();
            self.warnings.push(Warning { offset: self.offset, provider, kind });
        }
    }

    fn resolve(&mut self, raw: &RawRecord<'_>) -> Option<Resolved> {
        self.offset = raw.offset;
        if std::mem::take(&mut self.is_at_start) && raw.header().0 != MAGIC_WORD {
            self.warn(WarningKind::NoMagic);
        }
        let item = if raw.is_whole() {
            match Record::decode(raw.bytes) {
                Ok(record) => self.item(record, raw),
                Err(error) => {
                    self.warn(WarningKind::Malformed(error));
                    return None;
                }
            }
        } else {
            Item::Unknown { header: raw.header(), size: raw.size }
        };
        Some(Resolved { offset: raw.offset, provider: self.providers.current_id(), item })
    }

    fn item(&mut self, record: Record<'_>, raw: &RawRecord<'_>) -> Item {
        match record {
            Record::Metadata(metadata) => self.metadata(metadata, raw),
            Record::Initialization(initialization) => {
                let rate = initialization.ticks_per_second;
                self.providers.current_mut().rate = rate;
                Item::Initialization { rate }
            }
            Record::String(string) => {
                let value = Text::new(string.value);
                self.providers.current_mut().define_string(string.index, &value);
                Item::String { index: string.index, value }
            }
            Record::Thread(record) => {
                let thread = Thread { process: record.process.0, thread: record.thread.0 };
                self.providers.current_mut().define_thread(record.index, thread);
                Item::Thread { index: record.index, process: thread.process, thread: thread.thread }
            }
            Record::Event(event) => {
                let Thread { process, thread } = self.thread(event.thread);
                self.check_time(event.timestamp);
                if let EventKind::DurationComplete { end } = event.kind {
                    self.check_time(end);
                    if end < event.timestamp {
                        self.warn(WarningKind::EndBeforeBegin { begin: event.timestamp, end });
                    }
                }
                Item::Event(ResolvedEvent {
                    timestamp: event.timestamp,
                    rate: self.providers.current().rate,
                    process,
                    thread,
                    category: self.text(&event.category),
                    name: self.text(&event.name),
                    kind: event.kind,
                    arguments: self.arguments(&event.arguments),
                })
            }
            Record::Blob(blob) => Item::Blob {
                name: self.text(&blob.name),
                blob_type: blob.blob_type,
                payload: blob.payload.to_vec(),
            },
            Record::KernelObject(object) => Item::KernelObject {
                object_type: object.object_type,
                koid: object.koid,
                name: self.text(&object.name),
                arguments: self.arguments(&object.arguments),
            },
            Record::Log(log) => {
                let Thread { process, thread } = self.thread(log.thread);
                self.check_time(log.timestamp);
                let rate = self.providers.current().rate;
                let message = Text::new(log.message);
                Item::Log { timestamp: log.timestamp, rate, process, thread, message }
            }
            _ => Item::Unknown { header: raw.header(), size: raw.size },
        }
    }

    fn metadata(&mut self, metadata: Metadata<'_>, raw: &RawRecord<'_>) -> Item {
        match metadata {
            Metadata::ProviderInfo { id, name } => {
                self.providers.introduce(id, name);
                Item::ProviderInfo { name: Text::new(name) }
            }
            Metadata::ProviderSection { id } => {
                if !self.providers.select(id) {
                    self.warn(WarningKind::UnknownProvider(id));
                }
                Item::ProviderSection
            }
            Metadata::ProviderEvent { id, event } => Item::ProviderEvent { about: id, event },
            Metadata::TraceInfoMagic => Item::Magic,
            _ => Item::Unknown { header: raw.header(), size: raw.size },
        }
    }

    //= docs/format.md#time
    fn check_time(&mut self, ticks: Ticks) {
        // Without a division: ticks · 10⁹ / rate ≥ 2⁶³.
        let rate = self.providers.current().rate.0.get();
        if u128::from(ticks.0) * 1_000_000_000 >= u128::from(rate) << 63 {
            self.warn(WarningKind::TimeOutOfRange(ticks));
        }
    }

    fn text(&mut self, string: &StringRef<'_>) -> Text {
        match string {
            StringRef::Empty => self.empty.clone(),
            StringRef::Inline(bytes) => Text::new(bytes),
            StringRef::Index(index) => match self.providers.current().string(*index) {
                Some(text) => text.clone(),
                None => {
                    self.warn(WarningKind::UndefinedString(index.get()));
                    Text::new(b"<unknown>")
                }
            },
        }
    }

    fn thread(&mut self, thread: ThreadRef) -> Thread {
        match thread {
            ThreadRef::Inline { process, thread } => Thread { process: process.0, thread: thread.0 },
            ThreadRef::Index(index) => match self.providers.current().thread(index) {
                Some(thread) => thread,
                None => {
                    self.warn(WarningKind::UndefinedThread(index.get()));
                    Thread::default()
                }
            },
        }
    }

    fn arguments(&mut self, arguments: &Arguments<'_>) -> Vec<(Text, Value)> {
        // All of them were checked when the record was decoded.
        arguments
            .iter()
            .flatten()
            .map(|argument| {
                let value = match argument.value {
                    ArgumentValue::Null => Value::Null,
                    ArgumentValue::Bool(value) => Value::Bool(value),
                    ArgumentValue::Int32(value) => Value::Int32(value),
                    ArgumentValue::Uint32(value) => Value::Uint32(value),
                    ArgumentValue::Int64(value) => Value::Int64(value),
                    ArgumentValue::Uint64(value) => Value::Uint64(value),
                    ArgumentValue::Double(value) => Value::Double(value),
                    ArgumentValue::String(value) => Value::String(self.text(&value)),
                    ArgumentValue::Pointer(value) => Value::Pointer(value),
                    ArgumentValue::Koid(koid) => Value::Koid(koid),
                    ArgumentValue::Blob(bytes) => Value::Blob(bytes.to_vec()),
                    _ => Value::Unknown,
                };
                (self.text(&argument.name), value)
            })
            .collect()
    }
}
