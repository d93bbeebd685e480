//! Resolves records: remembers definitions, and looks up references.

use super::{Anomaly, Unknown};
use crate::functions;
use crate::further::{self, Further};
use crate::item::{self, Arguments, Event, Item, Resolved, Text, TextKey, Thread, Time};
use crate::names::Names;
use crate::records::{Gap, RawRecord};
use crate::tables::{Defined, Provider, Providers};
use crate::warning::{Warning, WarningKind, Warnings};
use trace_format::argument::{self, ArgumentValue};
use trace_format::blob::{Blob, TYPE_DATA, TYPE_LAST_BRANCH, TYPE_PERFETTO};
use trace_format::event::{self, EventKind};
use trace_format::further::FurtherArguments;
use trace_format::kernel_object::{KernelObject, PROCESS_ARGUMENT, TYPE_PROCESS, TYPE_THREAD};
use trace_format::loss::{LEDGER_BLOB_NAME, LOSS_BLOB_NAME, LedgerRecord, LossRecord};
use trace_format::metadata::{MAGIC_WORD, Metadata};
use trace_format::profiler::ProfilerKind;
use trace_format::record::{Record, RecordHeader};
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::Scheduling;
use trace_format::units::{Koid, Offset, ProviderId, Ticks, TicksPerSecond};
use trace_format::userspace_object::ProcessRef;

#[derive(Debug)]
pub(super) struct Resolver {
    providers: Providers,
    pub names: Names,
    pub warnings: Warnings,
    pub unknown: Unknown,
    /// Position of the record that is being resolved.
    pub offset: Offset,
    /// Rate of the first initialization record.
    first_rate: Option<TicksPerSecond>,
    /// Bytes of a large blob that are still to come.
    pub payload_left: u64,
    /// Arguments of the next event.
    pub further: Further,
    pub is_at_start: bool,
    pub is_strict: bool,
}

impl Resolver {
    pub fn new(table_bytes: usize) -> Self {
        Self {
            providers: Providers::new(table_bytes),
            names: Names::default(),
            warnings: Warnings::default(),
            unknown: Unknown::default(),
            offset: Offset(0),
            first_rate: None,
            payload_left: 0,
            further: Further::default(),
            is_at_start: true,
            is_strict: false,
        }
    }

    #[cold]
    pub fn warn(&mut self, kind: WarningKind) {
        let provider = self.providers.current().id;
        self.warnings.add(Warning { offset: self.offset, provider, kind });
    }

    /// Arguments that wait for their event have lost it.
    #[cold]
    pub fn lose_arguments(&mut self) {
        if self.further.lose() {
            self.warn(WarningKind::LostArguments);
        }
    }

    #[cold]
    pub fn start(&mut self, header: RecordHeader) {
        self.is_at_start = false;
        if header.0 != MAGIC_WORD {
            self.warn(WarningKind::NoMagic);
        }
    }

    /// A stretch was skipped. Earlier definitions of the current provider may have been replaced in it.
    //= docs/format.md#damage
    #[cold]
    pub fn damage(&mut self, gap: Gap) {
        self.offset = gap.offset;
        self.warn(WarningKind::Damaged(gap.bytes));
        self.payload_left = 0;
        self.lose_arguments();
        let (provider, budget) = self.providers.current_mut();
        provider.forget(budget);
    }

    /// Decodes an event in the common case, in which its arguments refer to defined strings.
    #[inline]
    pub fn common_event<'a>(&self, bytes: &'a [u8]) -> Option<event::Event<'a>> {
        let provider = self.providers.current();
        event::Event::of_common_record(bytes, |index| provider.string(index).is_some())
    }

    /// Resolves an event: does the work of [`Resolver::apply`] and [`Resolver::known`] for other records, in
    /// one go. Of a common one it is known that its arguments are right.
    #[inline]
    pub fn event<'a, const IS_COMMON: bool>(
        &'a mut self,
        event: event::Event<'a>,
        raw: RawRecord<'a>,
    ) -> Resolved<'a> {
        if self.is_strict {
            self.check_event_strictly(&event);
        }
        let Self { providers, warnings, unknown, names, further, .. } = self;
        // Names of arguments of common events are registered.
        if !IS_COMMON && !event.arguments.is_empty() && !providers.current().has_inline_names() {
            providers.current_mut().0.note_inline_names();
        }
        let provider = providers.current();
        let (id, offset) = (provider.id, raw.offset);
        let mut warn = |kind| warnings.add(Warning { offset, provider: id, kind });
        let time = provider.time(event.timestamp);
        if event.timestamp > provider.last_time() {
            warn(WarningKind::TimeOutOfRange(event.timestamp));
        }
        let thread = match event.thread {
            ThreadRef::Inline { process, thread } => Thread { process: process.0, thread: thread.0 },
            ThreadRef::Index(index) => provider.thread(index).unwrap_or_else(|| {
                warn(WarningKind::UndefinedThread(index.get()));
                Thread::default()
            }),
        };
        let mut text = |string| {
            item::find(provider, string).unwrap_or_else(|index| {
                warn(WarningKind::UndefinedString(index));
                (item::UNKNOWN, TextKey::NONE)
            })
        };
        let ((category, category_key), (name, name_key)) = (text(event.category), text(event.name));
        if !IS_COMMON {
            for header in event.arguments.headers() {
                for index in [header.name_index(), header.value_index()].into_iter().flatten() {
                    text(StringRef::Index(index));
                }
                if header.argument_type().is_none() {
                    unknown.arguments.add((header.0 & 0xf) as u8);
                }
            }
        }
        match event.kind {
            EventKind::DurationComplete { end } => {
                if end > provider.last_time() {
                    warn(WarningKind::TimeOutOfRange(end));
                }
                if end < event.timestamp {
                    warn(WarningKind::EndBeforeBegin { begin: event.timestamp, end });
                }
            }
            EventKind::Unknown { raw } => unknown.events.add(raw),
            _ => {}
        }
        let arguments = Arguments { encoded: event.arguments, further: further.arguments(), provider };
        let keys = (category_key, name_key);
        let item = Item::Event(Event { time, thread, category, name, kind: event.kind, arguments, keys });
        let provider_name = Text(&provider.name);
        let definitions = provider;
        Resolved { offset, provider: id, provider_name, item, bytes: raw.bytes, names, definitions }
    }

    #[cold]
    fn check_event_strictly(&mut self, event: &event::Event<'_>) {
        self.check_rate();
        for (string, what) in [(event.category, "category"), (event.name, "event name")] {
            if let StringRef::Inline(bytes) = string {
                self.check_text(bytes, what);
            }
        }
        self.check_argument_texts(&event.arguments);
    }

    /// Remembers the definition in a record other than an event, and warns of problems with it.
    pub fn apply(&mut self, record: &Record<'_>) {
        match record {
            Record::Metadata(metadata) => self.apply_metadata(metadata),
            Record::Initialization(initialization) => self.apply_rate(initialization.ticks_per_second),
            Record::String(string) => {
                let (provider, budget) = self.providers.current_mut();
                let defined = provider.define_string(string.index, string.value, budget);
                self.warn_of_definition(defined, WarningKind::RedefinedString(string.index));
                self.check_text(string.value, "string");
            }
            Record::Thread(record) => {
                let thread = Thread { process: record.process.0, thread: record.thread.0 };
                let (provider, budget) = self.providers.current_mut();
                let defined = provider.define_thread(record.index, thread, budget);
                self.warn_of_definition(defined, WarningKind::RedefinedThread(record.index));
            }
            Record::Blob(blob) => {
                self.check_string(blob.name, "blob name");
                self.apply_blob(blob);
            }
            Record::UserspaceObject(object) => {
                if let ProcessRef::Index(index) = object.process {
                    self.check_thread(ThreadRef::Index(index));
                }
                self.check_string(object.name, "object name");
                self.check_arguments(&object.arguments);
            }
            Record::KernelObject(object) => {
                // Its name need not be UTF-8.
                self.check_reference(object.name);
                self.check_arguments(&object.arguments);
                self.apply_object(object);
            }
            Record::Scheduling(scheduling) => {
                self.check_time(scheduling.timestamp());
                if let Scheduling::LegacyContextSwitch { outgoing, incoming, .. } = *scheduling {
                    self.check_thread(outgoing);
                    self.check_thread(incoming);
                }
                self.check_arguments(&scheduling.arguments());
            }
            Record::Log(log) => {
                self.check_thread(log.thread);
                self.check_time(log.timestamp);
                self.check_text(log.message, "message");
            }
            Record::Profiler(profiler) => {
                self.check_thread(profiler.thread);
                self.check_time(profiler.timestamp);
                if let ProfilerKind::Mmap { start, length, .. } = profiler.kind {
                    let process = self.thread(profiler.thread).process;
                    let (_, budget) = self.providers.current_mut();
                    self.names.functions.remove(process, start, length, budget);
                }
            }
            Record::Large(blob) => {
                self.check_string(blob.category, "category");
                self.check_string(blob.name, "blob name");
                if let Some(event) = blob.event {
                    self.check_thread(event.thread);
                    self.check_time(event.timestamp);
                    self.check_arguments(&event.arguments);
                }
            }
            Record::Event(_) | Record::Unknown { .. } => {}
        }
    }

    fn apply_metadata(&mut self, metadata: &Metadata<'_>) {
        match *metadata {
            Metadata::ProviderInfo { id, name } => {
                if !self.providers.introduce(id, name) {
                    self.warn(WarningKind::TablesFull);
                }
                self.check_text(name, "provider name");
            }
            Metadata::ProviderSection { id } => {
                let (is_known, is_kept) = self.providers.select(id);
                if !is_known {
                    self.warn(WarningKind::UnknownProvider(id));
                }
                if !is_kept {
                    self.warn(WarningKind::TablesFull);
                }
            }
            Metadata::ProviderEvent { .. } | Metadata::TraceInfoMagic | Metadata::Unknown => {}
        }
    }

    fn apply_rate(&mut self, rate: TicksPerSecond) {
        self.providers.current_mut().0.set_rate(rate);
        let expected = *self.first_rate.get_or_insert(rate);
        if self.is_strict && rate != expected {
            self.warn(WarningKind::RatesDiffer { found: rate, expected });
        }
    }

    fn apply_blob(&mut self, blob: &Blob<'_>) {
        if !matches!(blob.blob_type, TYPE_DATA | TYPE_LAST_BRANCH | TYPE_PERFETTO) {
            self.unknown.blobs.add(blob.blob_type);
        }
        if let Some(piece) = further::piece_of(self.providers.current(), blob) {
            self.further.push(piece);
            return;
        }
        let Some(function) = functions::function_of(self.providers.current(), blob) else {
            return;
        };
        let (_, budget) = self.providers.current_mut();
        if !self.names.functions.insert(&function, budget) {
            self.warn(WarningKind::TablesFull);
        }
    }

    fn apply_object(&mut self, object: &KernelObject<'_>) {
        let process = match object.object_type {
            TYPE_PROCESS => None,
            TYPE_THREAD => {
                let provider = self.providers.current();
                object.arguments.iter().flatten().find_map(|argument| match argument.value {
                    ArgumentValue::Koid(process)
                        if item::resolve(provider, argument.name) == PROCESS_ARGUMENT =>
                    {
                        Some(process)
                    }
                    _ => None,
                })
            }
            _ => return,
        };
        let (provider, budget) = self.providers.current_mut();
        let name = item::resolve(provider, object.name).as_bytes();
        let is_kept = match object.object_type {
            TYPE_PROCESS => self.names.name_process(object.koid, name, budget),
            _ => self.names.name_thread(object.koid, process, name, budget),
        };
        if !is_kept {
            self.warn(WarningKind::TablesFull);
        }
    }

    /// As [`Resolver::apply`], for an anomaly.
    #[cold]
    pub fn apply_anomaly(&mut self, anomaly: &Anomaly<'_>, raw: RawRecord<'_>) {
        match anomaly {
            Anomaly::Longer(record) => self.apply(record),
            Anomaly::Start(start) => {
                self.payload_left = start.payload_bytes - start.blob.payload.len() as u64;
                self.apply(&Record::Large(start.blob));
            }
            Anomaly::Part(payload) => self.payload_left -= payload.len() as u64,
            Anomaly::Unknown if raw.earlier > 0 => {}
            Anomaly::Unknown => self.unknown.add(raw.header()),
            Anomaly::Malformed(error) => self.warn(WarningKind::Malformed(*error)),
        }
    }

    fn warn_of_definition(&mut self, defined: Defined, changed: WarningKind) {
        match defined {
            Defined::Full => self.warn(WarningKind::TablesFull),
            Defined::Changed if self.is_strict => self.warn(changed),
            _ => {}
        }
    }

    //= docs/format.md#time
    #[inline]
    fn check_time(&mut self, ticks: Ticks) {
        let provider = self.providers.current();
        if ticks > provider.last_time() {
            self.warn(WarningKind::TimeOutOfRange(ticks));
        } else if self.is_strict {
            self.check_rate();
        }
    }

    /// Warns once of a provider whose times come before its rate.
    #[inline]
    fn check_rate(&mut self) {
        let (provider, _) = self.providers.current_mut();
        if !provider.is_initialized && !std::mem::replace(&mut provider.is_without_rate, true) {
            self.warn(WarningKind::NoRate);
        }
    }

    #[inline]
    fn check_reference(&mut self, string: StringRef<'_>) {
        if let StringRef::Index(index) = string
            && self.providers.current().string(index).is_none()
        {
            self.warn(WarningKind::UndefinedString(index.get()));
        }
    }

    #[inline]
    fn check_string(&mut self, string: StringRef<'_>, what: &'static str) {
        self.check_reference(string);
        if let StringRef::Inline(bytes) = string {
            self.check_text(bytes, what);
        }
    }

    #[inline]
    fn check_text(&mut self, bytes: &[u8], what: &'static str) {
        if self.is_strict && str::from_utf8(bytes).is_err() {
            self.warn(WarningKind::NotUtf8(what));
        }
    }

    #[inline]
    fn check_thread(&mut self, thread: ThreadRef) {
        if let ThreadRef::Index(index) = thread
            && self.providers.current().thread(index).is_none()
        {
            self.warn(WarningKind::UndefinedThread(index.get()));
        }
    }

    fn check_arguments(&mut self, arguments: &argument::Arguments<'_>) {
        for header in arguments.headers() {
            for index in [header.name_index(), header.value_index()].into_iter().flatten() {
                self.check_reference(StringRef::Index(index));
            }
            if header.argument_type().is_none() {
                self.unknown.arguments.add((header.0 & 0xf) as u8);
            }
        }
        self.check_argument_texts(arguments);
    }

    fn check_argument_texts(&mut self, arguments: &argument::Arguments<'_>) {
        if !self.is_strict {
            return;
        }
        for argument in arguments.iter().flatten() {
            if let StringRef::Inline(bytes) = argument.name {
                self.check_text(bytes, "argument name");
            }
            if let ArgumentValue::String(StringRef::Inline(bytes)) = argument.value {
                self.check_text(bytes, "argument value");
            }
        }
    }
}

/// Resolved records, after they were applied.
impl Resolver {
    pub fn known<'a>(&'a self, record: Record<'a>, raw: RawRecord<'a>) -> Resolved<'a> {
        self.resolved(raw.offset, raw.bytes, self.item(record, raw))
    }

    fn item<'a>(&'a self, record: Record<'a>, raw: RawRecord<'a>) -> Item<'a> {
        match record {
            Record::Metadata(metadata) => match metadata {
                Metadata::ProviderInfo { name, .. } => Item::ProviderInfo { name: Text(name) },
                Metadata::ProviderSection { .. } => Item::ProviderSection,
                Metadata::ProviderEvent { id, event } => Item::ProviderEvent { about: id, event },
                Metadata::TraceInfoMagic => Item::Magic,
                Metadata::Unknown => Item::Unknown { header: raw.header(), size: raw.size },
            },
            Record::Initialization(record) => Item::Initialization { rate: record.ticks_per_second },
            Record::String(string) => Item::String { index: string.index, value: Text(string.value) },
            Record::Thread(record) => Item::Thread {
                index: record.index,
                thread: Thread { process: record.process.0, thread: record.thread.0 },
            },
            // Events are resolved separately.
            Record::Event(_) | Record::Unknown { .. } => {
                Item::Unknown { header: raw.header(), size: raw.size }
            }
            Record::Blob(blob) => {
                let name = self.text(blob.name);
                // A provider's own claims about other providers are ignored.
                let is_own = |provider| provider == self.providers.current().id;
                if let Some(piece) = further::piece_of(self.providers.current(), &blob) {
                    return Item::FurtherArguments(piece.bytes);
                }
                if let Some(function) = functions::function_of(self.providers.current(), &blob) {
                    return Item::Function(function);
                }
                let loss = LossRecord::decode(blob.payload).ok().flatten();
                let ledger = LedgerRecord::decode(blob.payload).ok().flatten();
                match (loss, ledger) {
                    (Some(loss), _) if name == LOSS_BLOB_NAME && is_own(loss.provider) => Item::Loss(loss),
                    (_, Some(ledger)) if name == LEDGER_BLOB_NAME && is_own(ledger.provider) => {
                        Item::Ledger(ledger)
                    }
                    _ => Item::Blob { name, blob_type: blob.blob_type, payload: blob.payload },
                }
            }
            Record::UserspaceObject(object) => Item::UserspaceObject {
                process: match object.process {
                    ProcessRef::Index(index) => self.thread(ThreadRef::Index(index)).process,
                    ProcessRef::Inline(process) => process.0,
                },
                address: object.address,
                name: self.text(object.name),
                arguments: self.arguments(object.arguments),
            },
            Record::KernelObject(object) => Item::KernelObject {
                object_type: object.object_type,
                koid: object.koid,
                name: self.text(object.name),
                arguments: self.arguments(object.arguments),
            },
            Record::Scheduling(scheduling) => Item::Scheduling {
                time: self.time(scheduling.timestamp()),
                kind: self.scheduling(scheduling),
                arguments: self.arguments(scheduling.arguments()),
            },
            Record::Log(log) => Item::Log {
                time: self.time(log.timestamp),
                thread: self.thread(log.thread),
                message: Text(log.message),
            },
            Record::Profiler(profiler) => Item::Profiler {
                time: self.time(profiler.timestamp),
                thread: self.thread(profiler.thread),
                kind: profiler.kind,
            },
            Record::Large(blob) => Item::LargeBlob {
                category: self.text(blob.category),
                name: self.text(blob.name),
                event: blob.event.map(|event| {
                    let time = self.time(event.timestamp);
                    (time, self.thread(event.thread), self.arguments(event.arguments))
                }),
                payload: blob.payload,
                payload_bytes: blob.payload.len() as u64 + self.payload_left,
            },
        }
    }

    fn scheduling(&self, scheduling: Scheduling<'_>) -> item::Scheduling {
        match scheduling {
            Scheduling::ContextSwitch { cpu, outgoing_state, outgoing, incoming, .. } => {
                item::Scheduling::ContextSwitch {
                    cpu,
                    outgoing_state,
                    outgoing: outgoing.0,
                    incoming: incoming.0,
                }
            }
            Scheduling::ThreadWakeup { cpu, thread, .. } => {
                item::Scheduling::ThreadWakeup { cpu, thread: thread.0 }
            }
            Scheduling::LegacyContextSwitch {
                cpu,
                outgoing_state,
                outgoing,
                incoming,
                outgoing_priority,
                incoming_priority,
                ..
            } => item::Scheduling::LegacyContextSwitch {
                cpu,
                outgoing_state,
                outgoing: self.thread(outgoing),
                incoming: self.thread(incoming),
                outgoing_priority,
                incoming_priority,
            },
            Scheduling::FiberSwitch { outgoing, incoming, .. } => {
                item::Scheduling::FiberSwitch { outgoing, incoming }
            }
        }
    }

    #[cold]
    pub fn anomaly<'a>(&'a self, anomaly: Anomaly<'a>, raw: RawRecord<'a>) -> Resolved<'a> {
        let item = match anomaly {
            Anomaly::Longer(record) => return self.known(record, raw),
            Anomaly::Start(start) => self.item(Record::Large(start.blob), raw),
            Anomaly::Part(payload) => Item::LargeBlobPart { payload },
            Anomaly::Unknown => Item::Unknown { header: raw.header(), size: raw.size },
            Anomaly::Malformed(error) => Item::Malformed { header: raw.header(), error },
        };
        self.resolved(Offset(raw.offset.0 + raw.earlier), raw.bytes, item)
    }

    #[cold]
    pub fn damaged(&self, gap: Gap) -> Resolved<'_> {
        self.resolved(gap.offset, &[], Item::Damage { bytes: gap.bytes })
    }

    #[inline]
    fn resolved<'a>(&'a self, offset: Offset, bytes: &'a [u8], item: Item<'a>) -> Resolved<'a> {
        let definitions = self.providers.current();
        let Provider { id, name, .. } = &**definitions;
        let (provider, provider_name): (ProviderId, _) = (*id, Text(name));
        Resolved { offset, provider, provider_name, item, bytes, names: &self.names, definitions }
    }

    #[inline]
    fn time(&self, ticks: Ticks) -> Time {
        self.providers.current().time(ticks)
    }

    #[inline]
    fn text<'a>(&'a self, string: StringRef<'a>) -> Text<'a> {
        item::resolve(self.providers.current(), string)
    }

    /// A thread that was not defined has no process.
    #[inline]
    fn thread(&self, thread: ThreadRef) -> Thread {
        match thread {
            ThreadRef::Inline { process, thread } => Thread { process: process.0, thread: thread.0 },
            ThreadRef::Index(index) => {
                let none = Thread { process: Koid(0), thread: Koid(0) };
                self.providers.current().thread(index).unwrap_or(none)
            }
        }
    }

    #[inline]
    fn arguments<'a>(&'a self, encoded: argument::Arguments<'a>) -> Arguments<'a> {
        Arguments { encoded, further: FurtherArguments::default(), provider: self.providers.current() }
    }
}
