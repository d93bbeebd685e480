//! Prints events on standard error while they are recorded, for a look without a recording: by the provider's
//! thread, which reads the buffer as any other reader would. With the feature `local`.
//!
//! `TRACE_ECHO=1` prints all categories, `TRACE_ECHO=app,db*` some. A program that is not recorded records
//! into a small buffer of its own for that, which is deleted in the end.
//= docs/rust.md#events-on-the-terminal

use crate::linux::startup::{self, Options, Purpose};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};
use trace_archive::framing;
use trace_archive::transfer::VmoSource;
use trace_engine::BufferMode;
use trace_format::record::{RecordHeader, RecordType};
use trace_format::shown::{Lasting, Shown};
use trace_format::units::{ProviderId, Thread, TicksPerSecond};
use trace_reader::buffer::{Activity, BufferPart, BufferReader};
use trace_reader::item::{Event, EventKind, Item, Value};
use trace_reader::{Reader, Resolved};
use zx_sim::environment::variable;
use zx_sim::{Vmo, debuglog};

/// Categories to print, separated by commas; `1` for all.
const VARIABLE: &str = "TRACE_ECHO";
/// How often the buffer is looked at.
const INTERVAL: Duration = Duration::from_millis(50);
/// Lines that are printed at a time, so 2000 in a second; the others are counted.
const MAX_LINES: usize = 100;
/// Definitions that are kept, in bytes; strings without a definition stand for the rest.
const MAX_DEFINITIONS_BYTES: usize = 4 << 20;
/// The buffer of a program that is not recorded.
const MEBIBYTES: u64 = 1;
const PART: BufferPart = BufferPart::Rest(Activity::Live);

/// What the user wants to see.
fn wanted() -> Option<String> {
    let value = variable(VARIABLE)?.to_string_lossy().into_owned();
    (!matches!(value.as_str(), "" | "0")).then_some(value)
}

/// Has the program record into a buffer of its own, if its user wants to see that and nothing else records
/// it.
pub(crate) fn begin_by_environment(name: &str) {
    let Some(categories) = wanted().filter(|_| !startup::is_recording()) else {
        return;
    };
    let categories = if categories == "1" { "*" } else { &categories };
    let options =
        Options { mode: BufferMode::Circular, buffer_mebibytes: MEBIBYTES, ..Options::of(categories) };
    if let Err(reason) = startup::begin_as(Some(name), &options, Purpose::Print) {
        debuglog::write_for_process(&format!("trace: events are not printed: {reason}"));
    }
}

/// Prints what is in one buffer after the other.
pub(crate) struct Echo {
    /// None where there is no buffer, or it cannot be read.
    buffer: Option<Buffer>,
    printer: Printer,
    next: Instant,
}

/// A buffer, and what it has defined so far.
struct Buffer {
    reader: BufferReader<VmoSource>,
    definitions: Vec<u8>,
}

impl Echo {
    /// None if the user does not want it.
    pub fn new() -> Option<Self> {
        wanted()?;
        Some(Self { buffer: None, printer: Printer::default(), next: Instant::now() })
    }

    /// Goes on in another buffer, after a last look at the one so far.
    pub fn follow(&mut self, (vmo, size, mode, ticks_per_second): (Vmo, u64, BufferMode, u64)) {
        self.look();
        let rate = TicksPerSecond(NonZeroU64::new(ticks_per_second).unwrap_or(NonZeroU64::MIN));
        let reader = BufferReader::open(VmoSource::from(vmo), size, mode, rate, PART).ok();
        self.buffer = reader.map(|reader| {
            let mut definitions = Vec::new();
            framing::magic(&mut definitions);
            framing::provider_info(ProviderId(1), "echo", &mut definitions);
            Buffer { reader, definitions }
        });
    }

    /// Ends with a last look.
    pub fn leave(&mut self) {
        self.look();
        self.buffer = None;
    }

    /// When it is to look again.
    pub fn deadline(&self) -> Option<Instant> {
        self.buffer.is_some().then_some(self.next)
    }

    /// Looks, if it is time to.
    pub fn serve(&mut self) {
        if self.next <= Instant::now() {
            self.look();
        }
    }

    fn look(&mut self) {
        self.next = Instant::now() + INTERVAL;
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        let Some(archive) = buffer.read() else {
            self.buffer = None;
            return;
        };
        self.printer.print(&archive);
    }
}

impl Buffer {
    /// What has been recorded since the last time, with all definitions in front; none where the buffer
    /// cannot be read.
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut fresh = Vec::new();
        self.reader.begin(PART).ok()?;
        while self.reader.read_batch(&mut fresh).ok()? {}
        let mut archive = self.definitions.clone();
        archive.extend_from_slice(&fresh);
        let mut rest = fresh.as_slice();
        while let Some(header) = rest.first_chunk::<8>().map(|bytes| RecordHeader(u64::from_le_bytes(*bytes)))
        {
            let Some((record, behind)) = rest.split_at_checked(header.size().bytes().max(8)) else {
                break;
            };
            let is_definition = matches!(
                header.record_type(),
                Some(
                    RecordType::Initialization
                        | RecordType::String
                        | RecordType::Thread
                        | RecordType::KernelObject
                )
            );
            if is_definition && self.definitions.len() < MAX_DEFINITIONS_BYTES {
                self.definitions.extend_from_slice(record);
            }
            rest = behind;
        }
        Some(archive)
    }
}

/// Prints lines, not too many at a time.
#[derive(Default)]
struct Printer {
    /// The time of the first event, in nanoseconds.
    first: Option<u64>,
    /// By thread: where the durations end that are under way, and how many have begun without an end.
    open: HashMap<Thread, (Vec<u64>, usize)>,
}

/// An event, before it is known how deep it is.
struct Line {
    at: u64,
    /// Of a complete duration.
    end: Option<u64>,
    thread: Thread,
    step: Step,
    who: String,
    what: String,
}

/// How the depth of a thread changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Into,
    Out,
    None,
}

impl Printer {
    /// Prints the events of an archive, by the time of their beginning.
    fn print(&mut self, archive: &[u8]) {
        let Ok(mut reader) = Reader::of_slice(archive) else {
            return;
        };
        let mut lines = Vec::new();
        while let Ok(Some(resolved)) = reader.next_item() {
            lines.extend(line(&resolved));
        }
        // Of events that begin together, the longest is the outermost.
        lines.sort_by_key(|line| (line.at, std::cmp::Reverse(line.end)));
        let mut text = String::new();
        for line in lines.iter().take(MAX_LINES) {
            self.add(line, &mut text);
        }
        // What is not printed counts for the depth.
        for line in lines.iter().skip(MAX_LINES) {
            self.add(line, &mut String::new());
        }
        if lines.len() > MAX_LINES {
            let _ = writeln!(text, "             … {} events more", lines.len() - MAX_LINES);
        }
        write(&text);
    }

    fn add(&mut self, line: &Line, text: &mut String) {
        let first = *self.first.get_or_insert(line.at);
        let (ends, begun) = self.open.entry(line.thread).or_default();
        while ends.last().is_some_and(|end| *end <= line.at) {
            ends.pop();
        }
        if line.step == Step::Out {
            *begun = begun.saturating_sub(1);
        }
        let depth = ends.len() + *begun;
        let seconds = line.at.saturating_sub(first) as f64 / 1e9;
        let _ = writeln!(text, "{seconds:12.6}  {}  {:width$}{}", line.who, "", line.what, width = 2 * depth);
        match line.step {
            Step::Into => *begun += 1,
            Step::Out | Step::None => ends.extend(line.end),
        }
    }
}

/// A line for an event; none for other records.
fn line(resolved: &Resolved<'_>) -> Option<Line> {
    let Item::Event(event) = &resolved.item else {
        return None;
    };
    let at = event.time.nanos().0;
    let end = match event.kind {
        EventKind::DurationComplete { end } => Some(end.to_nanos(event.time.rate).0),
        _ => None,
    };
    let step = match event.kind {
        EventKind::DurationBegin => Step::Into,
        EventKind::DurationEnd => Step::Out,
        _ => Step::None,
    };
    let who = resolved
        .names
        .thread(event.thread)
        .map_or_else(|| event.thread.thread.0.to_string(), |name| Shown(&name.to_str()).to_string());
    Some(Line { at, end, thread: event.thread, step, who, what: described(event, at, end) })
}

fn described(event: &Event<'_>, at: u64, end: Option<u64>) -> String {
    let (category, name) = (event.category.to_str(), event.name.to_str());
    let mut text = format!("{}:{}", Shown(&category), Shown(&name));
    let _ = match event.kind {
        EventKind::Instant { .. } => Ok(()),
        EventKind::Counter { .. } => write!(text, " ="),
        EventKind::DurationBegin => write!(text, " begins"),
        EventKind::DurationEnd => write!(text, " ends"),
        EventKind::DurationComplete { .. } => {
            write!(text, " {}", Lasting(end.unwrap_or(at).saturating_sub(at) as f64))
        }
        EventKind::AsyncBegin { id } => write!(text, " begins as {id:x}"),
        EventKind::AsyncInstant { id } => write!(text, " at {id:x}"),
        EventKind::AsyncEnd { id } => write!(text, " ends as {id:x}"),
        EventKind::FlowBegin { id } => write!(text, " flows out as {id:x}"),
        EventKind::FlowStep { id } => write!(text, " flows through as {id:x}"),
        EventKind::FlowEnd { id } => write!(text, " flows in as {id:x}"),
        _ => Ok(()),
    };
    for (name, value) in event.arguments.iter() {
        let _ = write!(text, " {}=", Shown(&name.to_str()));
        let _ = match value {
            Value::Null => write!(text, "null"),
            Value::Bool(value) => write!(text, "{value}"),
            Value::Int32(value) => write!(text, "{value}"),
            Value::Uint32(value) => write!(text, "{value}"),
            Value::Int64(value) => write!(text, "{value}"),
            Value::Uint64(value) => write!(text, "{value}"),
            Value::Double(value) => write!(text, "{value}"),
            Value::String(value) => write!(text, "\"{}\"", Shown(&value.to_str())),
            Value::Pointer(value) => write!(text, "{value:#x}"),
            Value::Koid(value) => write!(text, "#{}", value.0),
            Value::Blob(bytes) => write!(text, "{} bytes", bytes.len()),
            Value::Unknown => write!(text, "?"),
        };
    }
    text
}

/// Writes lines, as many at a time as are sure to be taken.
fn write(text: &str) {
    let mut piece = String::new();
    for line in text.lines() {
        if !piece.is_empty() && piece.len() + line.len() + 2 > debuglog::MAX_LINE_BYTES {
            debuglog::write_for_process(&piece);
            piece.clear();
        }
        if !piece.is_empty() {
            piece.push('\n');
        }
        piece.push_str(line);
    }
    if !piece.is_empty() {
        debuglog::write_for_process(&piece);
    }
}
