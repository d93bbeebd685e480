//! How, where and when a session was recorded: a provider of the manager's own in the archive.
//!
//! Two instants of category `trace` on the manager's thread: `recording` when the trace starts and
//! `recording_end` when it ends. Both carry the wall clock beside their tick, so that a viewer can place
//! the trace in time.

use crate::framing::{self, ByteSink};
use crate::manifest::SessionInfo;
use std::num::NonZeroU64;
use std::time::{SystemTime, UNIX_EPOCH};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::initialization::Initialization;
use trace_format::kernel_object::{KernelObject, PROCESS_ARGUMENT, TYPE_PROCESS, TYPE_THREAD};
use trace_format::metadata::MAGIC_WORD;
use trace_format::record::{Record, RecordHeader};
use trace_format::refs::{StringRef, ThreadRef, truncate};
use trace_format::units::{Koid, ProcessKoid, ProviderId, ThreadKoid, Ticks, TicksPerSecond};
use trace_protocol::BufferingMode;
use trace_protocol::controller::TraceConfig;

/// The manager's own provider; registered ones count from 1.
pub(crate) const OWN_ID: ProviderId = ProviderId(0);
const OWN_NAME: &str = "trace_manager";
const CATEGORY: &str = "trace";
const END: &str = "recording_end";
/// Longest text of an argument, in bytes.
const MAX_TEXT_BYTES: usize = 4000;

/// Appends what is known of the recording of a program that recorded itself, and began at this moment. The
/// program may write that itself: it keeps the name that its own records give its process.
pub fn startup(session: &SessionInfo, at: Ticks, out: &mut Vec<u8>) {
    let rate = TicksPerSecond(NonZeroU64::new(session.ticks_per_second).unwrap_or(NonZeroU64::MIN));
    match session.manager_pid == std::process::id() {
        true => begin_unnamed(rate, out),
        false => begin_own(rate, out),
    }
    let command_line = session.command_line.join(" ");
    let mode = session.mode().map(|mode| BufferingMode::from(mode).to_string()).unwrap_or_default();
    let arguments = [
        argument("version", text(env!("CARGO_PKG_VERSION"))),
        argument("command_line", text(&command_line)),
        argument("buffering_mode", text(&mode)),
    ];
    instant_at(at, session.wall_clock_ns, "recording", &arguments, out);
}

fn begin_unnamed(rate: TicksPerSecond, out: &mut Vec<u8>) {
    framing::provider_info(OWN_ID, OWN_NAME, out);
    record(&Record::Initialization(Initialization { ticks_per_second: rate }), out);
}

/// Appends who writes this.
fn begin_own(rate: TicksPerSecond, out: &mut Vec<u8>) {
    begin_unnamed(rate, out);
    let process = Koid(zx_sim::process_koid());
    let thread = Koid(zx_sim::thread_koid());
    object(TYPE_PROCESS, process, OWN_NAME.as_bytes(), &[], out);
    let of_process = [argument(PROCESS_ARGUMENT, ArgumentValue::Koid(process))];
    object(TYPE_THREAD, thread, OWN_NAME.as_bytes(), &of_process, out);
}

/// Appends what is known of the session when it begins.
//= docs/protocol.md#the-managers-own-provider
pub fn begin(config: &TraceConfig, rate: TicksPerSecond, out: &mut Vec<u8>) {
    begin_own(rate, out);
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let kernel = format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy());
    let command_line = config.command_line.join(" ");
    let categories = config.categories.join(",");
    let selected = selected(config);
    let mode = config.buffering_mode.to_string();
    let boot_id = zx_sim::ticks::boot_id();
    let mut arguments = vec![
        argument("version", text(env!("CARGO_PKG_VERSION"))),
        argument("host", text(&host)),
        argument("kernel", text(&kernel)),
        argument("boot_id", text(&boot_id)),
        argument("clock_source", text(zx_sim::ticks::source().name())),
        argument("command_line", text(&command_line)),
        argument("categories", text(&categories)),
        argument("selected", text(&selected)),
        argument("buffering_mode", text(&mode)),
        argument("buffer_size_megabytes", ArgumentValue::Uint32(config.buffer_size_megabytes_hint)),
    ];
    if let Some(costs) = config.event_costs {
        let nanos = |picoseconds: u64| ArgumentValue::Double(picoseconds as f64 / 1000.0);
        arguments.extend([
            argument("instant_cost_ns", nanos(costs.instant_picoseconds)),
            argument("duration_cost_ns", nanos(costs.duration_picoseconds)),
            argument("counter_cost_ns", nanos(costs.counter_picoseconds)),
        ]);
    }
    instant("recording", &arguments, out);
}

/// The categories that the archive can have: those of all programs, and those of single ones. An empty text
/// stands for all categories.
//= docs/protocol.md#the-managers-own-provider
fn selected(config: &TraceConfig) -> String {
    let of_programs = config.provider_specs.iter().flat_map(|spec| &spec.categories);
    let all: Vec<&str> = config.categories.iter().chain(of_programs).map(String::as_str).collect();
    let named: Vec<&str> = all.iter().copied().filter(|entry| !entry.is_empty()).collect();
    // An empty entry selects nothing.
    if named.is_empty() && !all.is_empty() { "-*".to_owned() } else { named.join(",") }
}

/// An alert of a program that does not record it itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaisedAlert {
    /// When it arrived.
    pub at: Ticks,
    /// The process of its provider.
    pub process: Koid,
    /// The alert's name.
    pub name: String,
}

/// Appends alerts, and the number of further ones.
//= docs/format.md#alerts
pub fn alerts(alerts: &[RaisedAlert], left_out: u64, out: &mut Vec<u8>) {
    framing::provider_section(OWN_ID, out);
    for RaisedAlert { at, process, name } in alerts {
        let arguments = [argument("name", text(name))];
        // The manager does not know the thread; a process's first thread has the number of the process.
        let event = Event {
            timestamp: *at,
            thread: ThreadRef::Inline { process: ProcessKoid(*process), thread: ThreadKoid(*process) },
            category: inline(CATEGORY.as_bytes()),
            name: inline(b"alert"),
            kind: EventKind::Instant { scope: Scope::Process },
            arguments: Arguments::from_slice(&arguments),
        };
        record(&Record::Event(event), out);
    }
    if left_out > 0 {
        instant("alerts_left_out", &[argument("count", ArgumentValue::Uint64(left_out))], out);
    }
}

/// Appends what is known of the session when it ends. Nothing comes after.
pub fn end(out: &mut Vec<u8>) {
    framing::provider_section(OWN_ID, out);
    instant(END, &[], out);
}

/// Appends the end of an archive that says nothing of its session: two magic number records, which do not
/// follow each other anywhere else.
//= docs/protocol.md#end-of-the-archive
pub fn end_silently(out: &mut Vec<u8>) {
    framing::magic(out);
    framing::magic(out);
}

/// Whether a record is the last one of a session that is described.
#[must_use]
pub fn is_end(record: &[u8]) -> bool {
    let of = |event: &Event<'_>| {
        event.category == inline(CATEGORY.as_bytes()) && event.name == inline(END.as_bytes())
    };
    matches!(Record::decode(record), Ok(Record::Event(event)) if of(&event))
}

/// No archive has a longer end, in bytes.
pub const MAX_END_BYTES: usize = 256;

/// Whether these bytes are the last ones of an archive that is complete. They begin at the beginning of a
/// word, and are all, or [`MAX_END_BYTES`].
//= docs/protocol.md#end-of-the-archive
#[must_use]
pub fn is_ended(last: &[u8]) -> bool {
    let words = last.as_chunks::<8>().0;
    let silent = words.iter().rev().take_while(|word| **word == MAGIC_WORD.to_le_bytes()).count() >= 2;
    let mut behind = (0..words.len()).map(|place| &last[8 * place..]);
    silent
        || behind.any(|record| {
            let header = record.first_chunk().map(|word| RecordHeader(u64::from_le_bytes(*word)));
            header.is_some_and(|header| header.size().bytes() == record.len()) && is_end(record)
        })
}

/// Appends that this archive was recovered.
pub fn recovered(out: &mut Vec<u8>) {
    framing::provider_section(OWN_ID, out);
    instant("recovered", &[argument("version", text(env!("CARGO_PKG_VERSION")))], out);
}

/// An instant now, with the wall clock as its last argument.
fn instant(name: &str, arguments: &[Argument<'_>], out: &mut Vec<u8>) {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let wall_clock_ns = u64::try_from(nanos).unwrap_or(u64::MAX);
    instant_at(Ticks(zx_sim::ticks::now()), wall_clock_ns, name, arguments, out);
}

/// An instant at a moment, with the wall clock then as its last argument.
fn instant_at(
    timestamp: Ticks,
    wall_clock_ns: u64,
    name: &str,
    arguments: &[Argument<'_>],
    out: &mut Vec<u8>,
) {
    let mut arguments = arguments.to_vec();
    arguments.push(argument("wall_clock_ns", ArgumentValue::Uint64(wall_clock_ns)));
    let event = Event {
        timestamp,
        thread: ThreadRef::Inline {
            process: ProcessKoid(Koid(zx_sim::process_koid())),
            thread: ThreadKoid(Koid(zx_sim::thread_koid())),
        },
        category: inline(CATEGORY.as_bytes()),
        name: inline(name.as_bytes()),
        kind: EventKind::Instant { scope: Scope::Global },
        arguments: Arguments::from_slice(&arguments),
    };
    record(&Record::Event(event), out);
}

pub(crate) fn object(
    object_type: u8,
    koid: Koid,
    name: &[u8],
    arguments: &[Argument<'_>],
    out: &mut Vec<u8>,
) {
    let arguments = Arguments::from_slice(arguments);
    let object = KernelObject { object_type, koid, name: inline(name), arguments };
    record(&Record::KernelObject(object), out);
}

pub(crate) fn record(record: &Record<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    if record.encode(&mut ByteSink(out)).is_err() {
        debug_assert!(false, "records are within the limits");
        out.truncate(start);
    }
}

pub(crate) fn argument<'a>(name: &'a str, value: ArgumentValue<'a>) -> Argument<'a> {
    Argument { name: inline(name.as_bytes()), value }
}

pub(crate) fn text(text: &str) -> ArgumentValue<'_> {
    ArgumentValue::String(inline(truncate(text, MAX_TEXT_BYTES).as_bytes()))
}

pub(crate) fn inline(text: &[u8]) -> StringRef<'_> {
    if text.is_empty() { StringRef::Empty } else { StringRef::Inline(text) }
}
