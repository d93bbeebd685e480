//! A record as one JSON object on a line.

use crate::shell::json::VERSION;
use serde::ser::{Serialize, SerializeMap, Serializer};
use trace_reader::dump::{called_at, event_word, record_word, scope_word};
use trace_reader::item::{EventKind, Koid, ProfilerKind, Scheduling, ThreadState};
use trace_reader::{Arguments, Event, Item, Names, Resolved, Text, Thread, Time, Value};

/// Serializes as an object with the record's position, its kind, and the fields of that kind.
//= docs/dump.md#json
pub struct JsonLine<'a> {
    pub record: &'a Resolved<'a>,
    /// The trace's name, of one of several.
    pub file: Option<&'a str>,
}

impl Serialize for JsonLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { record, file } = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", &VERSION)?;
        if let Some(file) = file {
            map.serialize_entry("file", file)?;
        }
        map.serialize_entry("at_byte", &record.offset.0)?;
        map.serialize_entry("program_id", &record.provider.0)?;
        item(&mut map, record)?;
        map.end()
    }
}

fn item<M: SerializeMap>(map: &mut M, record: &Resolved<'_>) -> Result<(), M::Error> {
    let kind = |map: &mut M, kind: &str| map.serialize_entry("kind", kind);
    match &record.item {
        Item::Magic => kind(map, "magic"),
        Item::ProviderInfo { name } => {
            kind(map, "provider-info")?;
            map.serialize_entry("name", &JsonText(*name))
        }
        Item::ProviderSection => kind(map, "provider-section"),
        Item::ProviderEvent { about, event } => {
            kind(map, "provider-event")?;
            map.serialize_entry("about", &about.0)?;
            map.serialize_entry("event", event)
        }
        Item::Initialization { rate } => {
            kind(map, "initialization")?;
            map.serialize_entry("ticks_per_second", &rate.0)
        }
        Item::String { index, value } => {
            kind(map, "string")?;
            map.serialize_entry("index", index)?;
            map.serialize_entry("value", &JsonText(*value))
        }
        Item::Thread { index, thread } => {
            kind(map, "thread")?;
            map.serialize_entry("index", index)?;
            who(map, *thread)
        }
        Item::Event(event) => self::event(map, event),
        Item::Blob { name, blob_type, payload } => {
            kind(map, "blob")?;
            map.serialize_entry("name", &JsonText(*name))?;
            map.serialize_entry("blob_type", blob_type)?;
            map.serialize_entry("payload", &Hex(payload))
        }
        Item::Loss(loss) => {
            kind(map, "loss")?;
            map.serialize_entry("about", &loss.provider.0)?;
            map.serialize_entry("code", &loss.reason.0)?;
            map.serialize_entry("reason", &loss.reason.text())?;
            map.serialize_entry("count", &loss.count)?;
            map.serialize_entry("first_ticks", &loss.first.0)?;
            map.serialize_entry("last_ticks", &loss.last.0)
        }
        Item::Ledger(ledger) => {
            kind(map, "ledger")?;
            map.serialize_entry("about", &ledger.provider.0)?;
            map.serialize_entry("generated", &ledger.generated)?;
            map.serialize_entry("archived", &ledger.archived)?;
            map.serialize_entry("records", &ledger.records)?;
            map.serialize_entry("uncertain", &ledger.uncertain)
        }
        Item::FurtherArguments(piece) => {
            kind(map, "further-arguments")?;
            map.serialize_entry("payload", &Hex(piece))
        }
        Item::Function(function) => {
            kind(map, "function")?;
            map.serialize_entry("process", &function.process.0)?;
            map.serialize_entry("start", &function.start)?;
            map.serialize_entry("length", &function.length)?;
            map.serialize_entry("name", &JsonText(Text(function.name)))
        }
        Item::UserspaceObject { process, address, name, arguments } => {
            kind(map, "userspace-object")?;
            map.serialize_entry("process", &process.0)?;
            map.serialize_entry("address", address)?;
            map.serialize_entry("name", &JsonText(*name))?;
            map.serialize_entry("args", &JsonArguments(*arguments))
        }
        Item::KernelObject { object_type, koid, name, arguments } => {
            kind(map, "kernel-object")?;
            map.serialize_entry("object_type", object_type)?;
            map.serialize_entry("koid", &koid.0)?;
            map.serialize_entry("name", &JsonText(*name))?;
            map.serialize_entry("args", &JsonArguments(*arguments))
        }
        Item::Scheduling { time, kind, arguments } => {
            scheduling(map, *time, *kind)?;
            map.serialize_entry("args", &JsonArguments(*arguments))
        }
        Item::Log { time, thread, message } => {
            kind(map, "log")?;
            when(map, *time)?;
            who(map, *thread)?;
            map.serialize_entry("message", &JsonText(*message))
        }
        Item::Profiler { time, thread, kind } => profiler(map, *time, *thread, *kind, record.names),
        Item::LargeBlob { category, name, event, payload, payload_bytes } => {
            kind(map, if event.is_some() { "large-blob" } else { "large-attachment" })?;
            if let Some((time, thread, _)) = event {
                when(map, *time)?;
                who(map, *thread)?;
            }
            map.serialize_entry("category", &JsonText(*category))?;
            map.serialize_entry("name", &JsonText(*name))?;
            map.serialize_entry("payload_bytes", payload_bytes)?;
            map.serialize_entry("payload", &Hex(payload))?;
            match event {
                Some((.., arguments)) => map.serialize_entry("args", &JsonArguments(*arguments)),
                None => Ok(()),
            }
        }
        Item::LargeBlobPart { payload } => {
            kind(map, "large-blob-part")?;
            map.serialize_entry("payload", &Hex(payload))
        }
        Item::Unknown { header, size } => {
            kind(map, "unknown")?;
            map.serialize_entry("record_type", &header.record_type_bits())?;
            map.serialize_entry("header", &header.0)?;
            map.serialize_entry("words", &size.0)
        }
        Item::Malformed { header, error } => {
            kind(map, "malformed")?;
            map.serialize_entry("record_type", &header.record_type().map(record_word))?;
            map.serialize_entry("header", &header.0)?;
            map.serialize_entry("error", &error.to_string())
        }
        Item::Damage { bytes } => {
            kind(map, "damage")?;
            map.serialize_entry("bytes", bytes)
        }
    }
}

fn event<M: SerializeMap>(map: &mut M, event: &Event<'_>) -> Result<(), M::Error> {
    match event.kind {
        EventKind::Unknown { raw } => map.serialize_entry("kind", &format!("event-{raw}")),
        kind => map.serialize_entry("kind", event_word(kind)),
    }?;
    when(map, event.time)?;
    who(map, event.thread)?;
    map.serialize_entry("category", &JsonText(event.category))?;
    map.serialize_entry("name", &JsonText(event.name))?;
    match event.kind {
        EventKind::Instant { scope } => map.serialize_entry("scope", scope_word(scope)),
        EventKind::DurationComplete { end } => {
            map.serialize_entry("end_ns", &Time { ticks: end, ..event.time }.nanos().0)?;
            map.serialize_entry("end_ticks", &end.0)
        }
        EventKind::Counter { id }
        | EventKind::AsyncBegin { id }
        | EventKind::AsyncInstant { id }
        | EventKind::AsyncEnd { id }
        | EventKind::FlowBegin { id }
        | EventKind::FlowStep { id }
        | EventKind::FlowEnd { id } => map.serialize_entry("id", &id),
        EventKind::DurationBegin | EventKind::DurationEnd | EventKind::Unknown { .. } => Ok(()),
    }?;
    map.serialize_entry("args", &JsonArguments(event.arguments))
}

fn scheduling<M: SerializeMap>(map: &mut M, time: Time, scheduling: Scheduling) -> Result<(), M::Error> {
    let state = |map: &mut M, state: ThreadState| {
        map.serialize_entry("outgoing_state", &state.0)?;
        map.serialize_entry("outgoing_state_text", &state.text())
    };
    let koid = |map: &mut M, key: &str, koid: Koid| map.serialize_entry(key, &koid.0);
    match scheduling {
        Scheduling::ContextSwitch { cpu, outgoing_state, outgoing, incoming } => {
            map.serialize_entry("kind", "context-switch")?;
            when(map, time)?;
            map.serialize_entry("cpu", &cpu)?;
            state(map, outgoing_state)?;
            koid(map, "outgoing_thread", outgoing)?;
            koid(map, "incoming_thread", incoming)
        }
        Scheduling::ThreadWakeup { cpu, thread } => {
            map.serialize_entry("kind", "thread-wakeup")?;
            when(map, time)?;
            map.serialize_entry("cpu", &cpu)?;
            koid(map, "thread", thread)
        }
        Scheduling::LegacyContextSwitch {
            cpu,
            outgoing_state,
            outgoing,
            incoming,
            outgoing_priority,
            incoming_priority,
        } => {
            map.serialize_entry("kind", "legacy-context-switch")?;
            when(map, time)?;
            map.serialize_entry("cpu", &cpu)?;
            state(map, outgoing_state)?;
            koid(map, "outgoing_process", outgoing.process)?;
            koid(map, "outgoing_thread", outgoing.thread)?;
            map.serialize_entry("outgoing_priority", &outgoing_priority)?;
            koid(map, "incoming_process", incoming.process)?;
            koid(map, "incoming_thread", incoming.thread)?;
            map.serialize_entry("incoming_priority", &incoming_priority)
        }
        Scheduling::FiberSwitch { outgoing, incoming } => {
            map.serialize_entry("kind", "fiber-switch")?;
            when(map, time)?;
            koid(map, "outgoing_fiber", outgoing)?;
            koid(map, "incoming_fiber", incoming)
        }
    }
}

fn profiler<M: SerializeMap>(
    map: &mut M,
    time: Time,
    thread: Thread,
    kind: ProfilerKind<'_>,
    names: &Names,
) -> Result<(), M::Error> {
    map.serialize_entry(
        "kind",
        match kind {
            ProfilerKind::Module { .. } => "module",
            ProfilerKind::Mmap { .. } => "mmap",
            ProfilerKind::Backtrace { .. } => "backtrace",
        },
    )?;
    when(map, time)?;
    who(map, thread)?;
    match kind {
        ProfilerKind::Module { id, name, build_id } => {
            map.serialize_entry("module", &id)?;
            map.serialize_entry("name", &JsonText(Text(name)))?;
            map.serialize_entry("build_id", &Hex(build_id))
        }
        ProfilerKind::Mmap { module, flags, start, length, linked_at } => {
            map.serialize_entry("module", &module)?;
            map.serialize_entry("flags", &flags)?;
            map.serialize_entry("start", &start)?;
            map.serialize_entry("length", &length)?;
            map.serialize_entry("linked_at", &linked_at)
        }
        ProfilerKind::Backtrace { frames } => {
            map.serialize_entry("frames", &frames.iter().collect::<Vec<_>>())?;
            let places = frames.iter().enumerate().map(|(depth, frame)| called_at(depth, frame));
            let functions: Vec<_> =
                places.map(|at| names.function(thread.process, at).map(JsonText)).collect();
            if functions.iter().any(Option::is_some) {
                map.serialize_entry("functions", &functions)?;
            }
            Ok(())
        }
    }
}

fn when<M: SerializeMap>(map: &mut M, time: Time) -> Result<(), M::Error> {
    map.serialize_entry("ns", &time.nanos().0)?;
    map.serialize_entry("ticks", &time.ticks.0)
}

fn who<M: SerializeMap>(map: &mut M, thread: Thread) -> Result<(), M::Error> {
    map.serialize_entry("process", &thread.process.0)?;
    map.serialize_entry("thread", &thread.thread.0)
}

/// Text, or an object with its bytes where it is not UTF-8.
struct JsonText<'a>(Text<'a>);

impl Serialize for JsonText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match str::from_utf8(self.0.as_bytes()) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.collect_map([("bytes", Hex(self.0.as_bytes()))]),
        }
    }
}

/// Bytes as hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value & 15)]);
        let digits: String = self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect();
        serializer.serialize_str(&digits)
    }
}

/// A list: names need not be unique.
struct JsonArguments<'a>(Arguments<'a>);

impl Serialize for JsonArguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(JsonArgument))
    }
}

struct JsonArgument<'a>((Text<'a>, Value<'a>));

impl Serialize for JsonArgument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (name, value) = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &JsonText(name))?;
        match value {
            Value::Null => typed(&mut map, "null", &()),
            Value::Bool(value) => typed(&mut map, "bool", &value),
            Value::Int32(value) => typed(&mut map, "int32", &value),
            Value::Uint32(value) => typed(&mut map, "uint32", &value),
            Value::Int64(value) => typed(&mut map, "int64", &value),
            Value::Uint64(value) => typed(&mut map, "uint64", &value),
            // JSON cannot express these.
            Value::Double(value) if !value.is_finite() => typed(&mut map, "double", &value.to_string()),
            Value::Double(value) => typed(&mut map, "double", &value),
            Value::String(value) => typed(&mut map, "string", &JsonText(value)),
            Value::Pointer(value) => typed(&mut map, "pointer", &value),
            Value::Koid(value) => typed(&mut map, "koid", &value.0),
            Value::Blob(value) => typed(&mut map, "blob", &Hex(value)),
            Value::Unknown => typed(&mut map, "unknown", &()),
        }?;
        map.end()
    }
}

fn typed<M: SerializeMap>(map: &mut M, word: &str, value: &impl Serialize) -> Result<(), M::Error> {
    map.serialize_entry("type", word)?;
    map.serialize_entry("value", value)
}
