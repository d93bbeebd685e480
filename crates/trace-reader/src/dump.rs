//! A record as one line of text, for people and for `grep`.

use crate::reader::{Item, Resolved, ResolvedEvent, Text, Value};
use core::fmt::{self, Display, Formatter, Write};
use trace_format::blob;
use trace_format::event::{EventKind, Scope};
use trace_format::kernel_object::{TYPE_PROCESS, TYPE_THREAD};
use trace_format::metadata::EVENT_BUFFER_FULL;
use trace_format::record::{RecordHeader, RecordType};
use trace_format::units::{Koid, Nanos};

/// How many bytes of a blob are shown.
const SHOWN_BLOB_BYTES: usize = 16;

/// Writes an item as one line, without a line feed: offset, provider, time, kind, and what the kind has.
//= docs/dump.md#lines
#[derive(Clone, Copy, Debug)]
pub struct Line<'a>(pub &'a Resolved);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Resolved { offset, provider, item } = self.0;
        write!(f, "{:#010x} {provider} ", offset.0)?;
        match item {
            Item::Magic => f.write_str("- magic"),
            Item::ProviderInfo { name } => write!(f, "- provider-info {}", Quoted(name.as_bytes())),
            Item::ProviderSection => f.write_str("- provider-section"),
            Item::ProviderEvent { about, event: EVENT_BUFFER_FULL } => {
                write!(f, "- provider-event provider={about} buffer-full")
            }
            Item::ProviderEvent { about, event } => {
                write!(f, "- provider-event provider={about} event={event}")
            }
            Item::Initialization { rate } => write!(f, "- initialization {rate}"),
            Item::String { index, value } => write!(f, "- string {index} {}", Quoted(value.as_bytes())),
            Item::Thread { index, process, thread } => {
                write!(f, "- thread {index} {}", Koids(*process, *thread))
            }
            Item::Event(event) => write_event(f, event),
            Item::KernelObject { object_type, koid, name, arguments } => {
                write_object_type(f, *object_type)?;
                write!(f, " #{koid} {}", Quoted(name.as_bytes()))?;
                write_arguments(f, arguments)
            }
            Item::Blob { name, blob_type, payload } => {
                write_blob_type(f, *blob_type)?;
                write!(f, " {} {}", Quoted(name.as_bytes()), Bytes(payload))
            }
            Item::Log { timestamp, rate, process, thread, message } => {
                let seconds = Seconds(timestamp.to_nanos(*rate));
                write!(f, "{seconds} log {} {}", Koids(*process, *thread), Quoted(message.as_bytes()))
            }
            Item::Unknown { header, .. } => write!(f, "- unknown {}", Header(*header)),
        }
    }
}

fn write_event(f: &mut Formatter<'_>, event: &ResolvedEvent) -> fmt::Result {
    write!(f, "{} ", Seconds(event.nanos()))?;
    match event.kind {
        EventKind::Instant { .. } => f.write_str("instant"),
        EventKind::Counter { .. } => f.write_str("counter"),
        EventKind::DurationBegin => f.write_str("begin"),
        EventKind::DurationEnd => f.write_str("end"),
        EventKind::DurationComplete { .. } => f.write_str("complete"),
        EventKind::AsyncBegin { .. } => f.write_str("async-begin"),
        EventKind::AsyncInstant { .. } => f.write_str("async-instant"),
        EventKind::AsyncEnd { .. } => f.write_str("async-end"),
        EventKind::FlowBegin { .. } => f.write_str("flow-begin"),
        EventKind::FlowStep { .. } => f.write_str("flow-step"),
        EventKind::FlowEnd { .. } => f.write_str("flow-end"),
        EventKind::Unknown { raw } => write!(f, "event-{raw}"),
    }?;
    let koids = Koids(event.process, event.thread);
    write!(f, " {koids} {} {}", Quoted(event.category.as_bytes()), Quoted(event.name.as_bytes()))?;
    match event.kind {
        EventKind::Instant { scope: Scope::Thread } => f.write_str(" scope=thread"),
        EventKind::Instant { scope: Scope::Process } => f.write_str(" scope=process"),
        EventKind::Instant { scope: Scope::Global } => f.write_str(" scope=global"),
        EventKind::DurationComplete { end } => write!(f, " end={}", Seconds(end.to_nanos(event.rate))),
        EventKind::Counter { id }
        | EventKind::AsyncBegin { id }
        | EventKind::AsyncInstant { id }
        | EventKind::AsyncEnd { id }
        | EventKind::FlowBegin { id }
        | EventKind::FlowStep { id }
        | EventKind::FlowEnd { id } => write!(f, " id={id:#x}"),
        EventKind::DurationBegin | EventKind::DurationEnd | EventKind::Unknown { .. } => Ok(()),
    }?;
    write_arguments(f, &event.arguments)
}

fn write_object_type(f: &mut Formatter<'_>, object_type: u8) -> fmt::Result {
    match object_type {
        TYPE_PROCESS => f.write_str("- kernel-object process"),
        TYPE_THREAD => f.write_str("- kernel-object thread"),
        other => write!(f, "- kernel-object type={other}"),
    }
}

fn write_blob_type(f: &mut Formatter<'_>, blob_type: u8) -> fmt::Result {
    match blob_type {
        blob::TYPE_DATA => f.write_str("- blob data"),
        blob::TYPE_LAST_BRANCH => f.write_str("- blob last-branch"),
        blob::TYPE_PERFETTO => f.write_str("- blob perfetto"),
        other => write!(f, "- blob type={other}"),
    }
}

//= docs/dump.md#arguments
fn write_arguments(f: &mut Formatter<'_>, arguments: &[(Text, Value)]) -> fmt::Result {
    for (place, (name, value)) in arguments.iter().enumerate() {
        f.write_str(if place == 0 { " {" } else { ", " })?;
        if is_plain(name.as_bytes()) {
            Display::fmt(&name.as_bytes().escape_ascii(), f)?;
        } else {
            Display::fmt(&Quoted(name.as_bytes()), f)?;
        }
        f.write_char('=')?;
        match value {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int32(value) => write!(f, "{value}i32"),
            Value::Uint32(value) => write!(f, "{value}u32"),
            Value::Int64(value) => write!(f, "{value}i64"),
            Value::Uint64(value) => write!(f, "{value}u64"),
            // The shortest digits that stand for this number and no other, always told from an integer.
            Value::Double(value) => write!(f, "{value:?}"),
            Value::String(value) => write!(f, "{}", Quoted(value.as_bytes())),
            Value::Pointer(value) => write!(f, "{value:#x}"),
            Value::Koid(value) => write!(f, "#{value}"),
            Value::Blob(value) => write!(f, "{}", Bytes(value)),
            Value::Unknown => f.write_str("unknown"),
        }?;
    }
    if arguments.is_empty() { Ok(()) } else { f.write_char('}') }
}

/// Whether a name can stand without quotes.
fn is_plain(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(byte))
}

/// Process and thread.
struct Koids(Koid, Koid);

impl Display for Koids {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

/// Seconds with all nine digits behind the point.
struct Seconds(Nanos);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const NANOS: u64 = 1_000_000_000;
        write!(f, "{}.{:09}", self.0.0 / NANOS, self.0.0 % NANOS)
    }
}

/// Kind and size of a record that is not shown.
struct Header(RecordHeader);

impl Display for Header {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.record_type() {
            Some(RecordType::Metadata) => f.write_str("metadata"),
            Some(RecordType::Initialization) => f.write_str("initialization"),
            Some(RecordType::String) => f.write_str("string"),
            Some(RecordType::Thread) => f.write_str("thread"),
            Some(RecordType::Event) => f.write_str("event"),
            Some(RecordType::Blob) => f.write_str("blob"),
            Some(RecordType::UserspaceObject) => f.write_str("userspace-object"),
            Some(RecordType::KernelObject) => f.write_str("kernel-object"),
            Some(RecordType::Scheduling) => f.write_str("scheduling"),
            Some(RecordType::Log) => f.write_str("log"),
            Some(RecordType::Profiler) => f.write_str("profiler"),
            Some(RecordType::Large) => f.write_str("large"),
            None => write!(f, "type={}", self.0.record_type_bits()),
        }?;
        write!(f, " header={:#018x} {}", self.0.0, self.0.size())
    }
}

/// Bytes: how many, and the first of them.
struct Bytes<'a>(&'a [u8]);

impl Display for Bytes<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "blob[{}]", self.0.len())?;
        for (place, byte) in self.0.iter().take(SHOWN_BLOB_BYTES).enumerate() {
            write!(f, "{}{byte:02x}", if place == 0 { ":" } else { "" })?;
        }
        f.write_str(if self.0.len() > SHOWN_BLOB_BYTES { "…" } else { "" })
    }
}

/// Text in quotes, on one line whatever it contains.
//= docs/dump.md#text
struct Quoted<'a>(&'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for chunk in self.0.utf8_chunks() {
            for char in chunk.valid().chars() {
                match char {
                    '"' => f.write_str("\\\""),
                    '\\' => f.write_str("\\\\"),
                    '\n' => f.write_str("\\n"),
                    '\r' => f.write_str("\\r"),
                    '\t' => f.write_str("\\t"),
                    char if is_invisible(char) => write!(f, "{}", char.escape_unicode()),
                    char => f.write_char(char),
                }?;
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        f.write_char('"')
    }
}

/// Controls, line and paragraph separators, and what changes the direction of the text around it.
fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests;
