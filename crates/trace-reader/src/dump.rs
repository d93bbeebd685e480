//! A record as one line of text, for people and for `grep`.

use crate::item::{Arguments, Event, Item, Resolved, Scheduling, Thread, Time, Value};
use crate::names::Names;
use core::fmt::{self, Display, Formatter, Write};
use trace_format::blob;
use trace_format::event::{EventKind, Scope};
use trace_format::function::FunctionRecord;
use trace_format::kernel_object::{TYPE_PROCESS, TYPE_THREAD};
use trace_format::metadata::EVENT_BUFFER_FULL;
use trace_format::profiler::{FLAG_EXECUTABLE, FLAG_READABLE, FLAG_WRITABLE, ProfilerKind};
use trace_format::record::{RecordHeader, RecordType};
use trace_format::scheduling::ThreadState;
use trace_format::shown::Escaper;
use trace_format::units::Nanos;

/// How many bytes of a blob are shown.
const SHOWN_BLOB_BYTES: usize = 16;

/// Writes an item as one line, without a line feed: offset, provider, time, kind, and the fields of that
/// kind.
//= docs/dump.md#lines
#[derive(Clone, Copy, Debug)]
pub struct Line<'a>(pub &'a Resolved<'a>);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Resolved { offset, provider, item, .. } = self.0;
        write!(f, "{:#010x} {provider} ", offset.0)?;
        match item {
            Item::Magic => f.write_str("- magic"),
            Item::ProviderInfo { name } => write!(f, "- provider-info {}", Quoted(name.0)),
            Item::ProviderSection => f.write_str("- provider-section"),
            Item::ProviderEvent { about, event: EVENT_BUFFER_FULL } => {
                write!(f, "- provider-event provider={about} buffer-full")
            }
            Item::ProviderEvent { about, event } => {
                write!(f, "- provider-event provider={about} event={event}")
            }
            Item::Initialization { rate } => write!(f, "- initialization {rate}"),
            Item::String { index, value } => write!(f, "- string {index} {}", Quoted(value.0)),
            Item::Thread { index, thread } => write!(f, "- thread {index} {}", Koids(*thread)),
            Item::Event(event) => write_event(f, event),
            Item::Blob { name, blob_type, payload } => {
                write_blob_type(f, *blob_type)?;
                write!(f, " {} {}", Quoted(name.0), Bytes(payload))
            }
            Item::Loss(loss) => {
                write!(f, "- loss provider={} ", loss.provider)?;
                match loss.reason.text() {
                    Some(text) => write!(f, "{}", Quoted(text.as_bytes())),
                    None => write!(f, "reason={}", loss.reason.0),
                }?;
                write!(f, " count={} first={} last={}", loss.count, loss.first.0, loss.last.0)
            }
            Item::Ledger(ledger) => write!(
                f,
                "- ledger provider={} generated={} archived={} records={} uncertain={}",
                ledger.provider, ledger.generated, ledger.archived, ledger.records, ledger.uncertain
            ),
            Item::FurtherArguments(piece) => write!(f, "- further-arguments {}", Bytes(piece)),
            Item::Function(FunctionRecord { process, start, length, name }) => {
                write!(f, "- function {process} start={start:#x} length={length:#x} {}", Quoted(name))
            }
            Item::UserspaceObject { process, address, name, arguments } => {
                write!(f, "- userspace-object {process} {address:#x} {}", Quoted(name.0))?;
                write_arguments(f, arguments)
            }
            Item::KernelObject { object_type, koid, name, arguments } => {
                write_object_type(f, *object_type)?;
                write!(f, " #{koid} {}", Quoted(name.0))?;
                write_arguments(f, arguments)
            }
            Item::Scheduling { time, kind, arguments } => {
                write!(f, "{} ", Seconds::of(*time))?;
                write_scheduling(f, *kind)?;
                write_arguments(f, arguments)
            }
            Item::Log { time, thread, message } => {
                write!(f, "{} log {} {}", Seconds::of(*time), Koids(*thread), Quoted(message.0))
            }
            Item::Profiler { time, thread, kind } => {
                write!(f, "{} ", Seconds::of(*time))?;
                write_profiler(f, *thread, *kind, self.0.names)
            }
            Item::LargeBlob { category, name, event, payload, payload_bytes } => {
                match event {
                    Some((time, thread, _)) => {
                        write!(f, "{} large-blob {}", Seconds::of(*time), Koids(*thread))
                    }
                    None => f.write_str("- large-attachment"),
                }?;
                write!(f, " {} {} ", Quoted(category.0), Quoted(name.0))?;
                write_bytes(f, *payload_bytes, payload)?;
                event.as_ref().map_or(Ok(()), |(_, _, arguments)| write_arguments(f, arguments))
            }
            Item::LargeBlobPart { payload } => write!(f, "- large-blob-part {}", Bytes(payload)),
            Item::Unknown { header, .. } => write!(f, "- unknown {}", Header(*header)),
            Item::Malformed { header, error } => write!(f, "- malformed {}: {error}", Header(*header)),
            Item::Damage { bytes } => write!(f, "- damage {bytes} bytes"),
        }
    }
}

/// Writes the words of a record, or of the piece of one, in hexadecimal behind its offset.
//= docs/dump.md#raw
#[derive(Clone, Copy, Debug)]
pub struct RawLine<'a>(pub &'a Resolved<'a>);

impl Display for RawLine<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0.offset.0)?;
        if let Item::Damage { bytes } = self.0.item {
            return write!(f, " damage {bytes} bytes");
        }
        let words = self.0.bytes.as_chunks::<8>().0;
        words.iter().try_for_each(|word| write!(f, " {:016x}", u64::from_le_bytes(*word)))
    }
}

fn write_event(f: &mut Formatter<'_>, event: &Event<'_>) -> fmt::Result {
    write!(f, "{} ", Seconds::of(event.time))?;
    match event.kind {
        EventKind::Unknown { raw } => write!(f, "event-{raw}"),
        kind => f.write_str(event_word(kind)),
    }?;
    write!(f, " {} {} {}", Koids(event.thread), Quoted(event.category.0), Quoted(event.name.0))?;
    match event.kind {
        EventKind::Instant { scope } => write!(f, " scope={}", scope_word(scope)),
        EventKind::DurationComplete { end } => {
            write!(f, " end={}", Seconds::of(Time { ticks: end, ..event.time }))
        }
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

/// The word for a kind of event.
#[must_use]
pub const fn event_word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Instant { .. } => "instant",
        EventKind::Counter { .. } => "counter",
        EventKind::DurationBegin => "begin",
        EventKind::DurationEnd => "end",
        EventKind::DurationComplete { .. } => "complete",
        EventKind::AsyncBegin { .. } => "async-begin",
        EventKind::AsyncInstant { .. } => "async-instant",
        EventKind::AsyncEnd { .. } => "async-end",
        EventKind::FlowBegin { .. } => "flow-begin",
        EventKind::FlowStep { .. } => "flow-step",
        EventKind::FlowEnd { .. } => "flow-end",
        EventKind::Unknown { .. } => "event",
    }
}

/// The word for an instant's scope.
#[must_use]
pub const fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Thread => "thread",
        Scope::Process => "process",
        Scope::Global => "global",
    }
}

fn write_scheduling(f: &mut Formatter<'_>, scheduling: Scheduling) -> fmt::Result {
    match scheduling {
        Scheduling::ContextSwitch { cpu, outgoing_state, outgoing, incoming } => {
            write!(f, "context-switch cpu={cpu} {outgoing} {} -> {incoming}", State(outgoing_state))
        }
        Scheduling::ThreadWakeup { cpu, thread } => write!(f, "thread-wakeup cpu={cpu} {thread}"),
        Scheduling::LegacyContextSwitch {
            cpu,
            outgoing_state,
            outgoing,
            incoming,
            outgoing_priority,
            incoming_priority,
        } => write!(
            f,
            "legacy-context-switch cpu={cpu} {} {} priority={outgoing_priority} -> {} \
             priority={incoming_priority}",
            Koids(outgoing),
            State(outgoing_state),
            Koids(incoming)
        ),
        Scheduling::FiberSwitch { outgoing, incoming } => {
            write!(f, "fiber-switch {outgoing} -> {incoming}")
        }
    }
}

fn write_profiler(
    f: &mut Formatter<'_>,
    thread: Thread,
    kind: ProfilerKind<'_>,
    names: &Names,
) -> fmt::Result {
    match kind {
        ProfilerKind::Module { id, name, build_id } => {
            write!(f, "module {} id={id} {} build-id=", Koids(thread), Quoted(name))?;
            build_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        }
        ProfilerKind::Mmap { module, flags, start, length, linked_at } => {
            write!(f, "mmap {} id={module} ", Koids(thread))?;
            for (flag, letter) in [(FLAG_READABLE, 'r'), (FLAG_WRITABLE, 'w'), (FLAG_EXECUTABLE, 'x')] {
                f.write_char(if flags & flag == 0 { '-' } else { letter })?;
            }
            write!(f, " start={start:#x} length={length:#x} linked-at={linked_at:#x}")
        }
        ProfilerKind::Backtrace { frames } => {
            write!(f, "backtrace {}", Koids(thread))?;
            frames.iter().enumerate().try_for_each(|(depth, frame)| {
                write!(f, " {frame:#x}")?;
                let name = names.function(thread.process, called_at(depth, frame));
                name.map_or(Ok(()), |name| write!(f, " {}", Quoted(name.0)))
            })
        }
    }
}

/// The instruction that a frame of a backtrace is at: a caller's is the one before the return address.
#[must_use]
pub const fn called_at(depth: usize, frame: u64) -> u64 {
    frame.saturating_sub((depth > 0) as u64)
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
fn write_arguments(f: &mut Formatter<'_>, arguments: &Arguments<'_>) -> fmt::Result {
    for (place, (name, value)) in arguments.iter().enumerate() {
        f.write_str(if place == 0 { " {" } else { ", " })?;
        if is_plain(name.0) {
            Display::fmt(&name.0.escape_ascii(), f)?;
        } else {
            Display::fmt(&Quoted(name.0), f)?;
        }
        f.write_char('=')?;
        match value {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int32(value) => write!(f, "{value}i32"),
            Value::Uint32(value) => write!(f, "{value}u32"),
            Value::Int64(value) => write!(f, "{value}i64"),
            Value::Uint64(value) => write!(f, "{value}u64"),
            // The shortest digits that stand for this number and no other, always distinguishable from an
            // integer.
            Value::Double(value) => write!(f, "{value:?}"),
            Value::String(value) => write!(f, "{}", Quoted(value.0)),
            Value::Pointer(value) => write!(f, "{value:#x}"),
            Value::Koid(value) => write!(f, "#{value}"),
            Value::Blob(value) => write!(f, "{}", Bytes(value)),
            Value::Unknown => f.write_str("unknown"),
        }?;
    }
    if arguments.is_empty() { Ok(()) } else { f.write_char('}') }
}

/// Whether a name needs no quotes.
fn is_plain(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(byte))
}

/// Process and thread.
struct Koids(Thread);

impl Display for Koids {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0.process, self.0.thread)
    }
}

/// The state of a thread.
struct State(ThreadState);

impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.text() {
            Some(text) => f.write_str(text),
            None => write!(f, "state-{}", self.0.0),
        }
    }
}

/// Seconds with all nine digits behind the point.
struct Seconds(Nanos);

impl Seconds {
    const fn of(time: Time) -> Self {
        Self(time.nanos())
    }
}

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
            Some(record_type) => f.write_str(record_word(record_type)),
            None => write!(f, "type={}", self.0.record_type_bits()),
        }?;
        write!(f, " header={:#018x} {}", self.0.0, self.0.size())
    }
}

/// The word for a type of record.
#[must_use]
pub const fn record_word(record_type: RecordType) -> &'static str {
    match record_type {
        RecordType::Metadata => "metadata",
        RecordType::Initialization => "initialization",
        RecordType::String => "string",
        RecordType::Thread => "thread",
        RecordType::Event => "event",
        RecordType::Blob => "blob",
        RecordType::UserspaceObject => "userspace-object",
        RecordType::KernelObject => "kernel-object",
        RecordType::Scheduling => "scheduling",
        RecordType::Log => "log",
        RecordType::Profiler => "profiler",
        RecordType::Large => "large",
    }
}

/// A number of bytes, and the first of them.
struct Bytes<'a>(&'a [u8]);

impl Display for Bytes<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_bytes(f, self.0.len() as u64, self.0)
    }
}

fn write_bytes(f: &mut Formatter<'_>, length: u64, bytes: &[u8]) -> fmt::Result {
    write!(f, "blob[{length}]")?;
    for (place, byte) in bytes.iter().take(SHOWN_BLOB_BYTES).enumerate() {
        write!(f, "{}{byte:02x}", if place == 0 { ":" } else { "" })?;
    }
    f.write_str(if length > SHOWN_BLOB_BYTES as u64 { "…" } else { "" })
}

/// Text in quotes, on one line whatever it contains.
//= docs/dump.md#text
struct Quoted<'a>(&'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let mut escaper = Escaper::default();
        for chunk in self.0.utf8_chunks() {
            for char in chunk.valid().chars() {
                if matches!(char, '"' | '\\') {
                    f.write_char('\\')?;
                }
                escaper.write(char, f)?;
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests;
