//! The JSON of Fuchsia's exporter, record by record and field by field.
//!
//! One document on one line: events in the order of their records, then an object of type `fuchsia` with the
//! names of processes and threads. Memory holds the names and the reader's tables, nothing else.

use crate::json::Json;
use crate::{ConvertError, Summary};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use trace_format::event::{EventKind, Scope};
use trace_format::units::{Koid, Ticks, TicksPerSecond};
use trace_reader::reader::{Item, Resolved, Text};
use trace_reader::{Reader, ResolvedEvent, Value};

const OBJECT_PROCESS: u8 = 1;
const OBJECT_THREAD: u8 = 2;
/// Remarks that a summary repeats.
const MAX_WARNINGS: usize = 5;

/// Converts an archive.
//= docs/catapult.md#document
///
/// # Errors
/// The input is no archive or cannot be read, or the output cannot be written.
pub fn convert(input: impl Read, output: impl Write) -> Result<Summary, ConvertError> {
    let mut reader = Reader::new(input)?;
    let mut exporter = Exporter {
        json: Json::new(output),
        is_first: true,
        processes: BTreeMap::new(),
        threads: BTreeMap::new(),
        skipped: BTreeMap::new(),
        events: 0,
    };
    exporter.json.raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    while let Some(record) = reader.next_item()? {
        exporter.record(&record);
        exporter.json.flush_if_full().map_err(ConvertError::Write)?;
    }
    let mut summary = exporter.finish().map_err(ConvertError::Write)?;
    summary.warnings = reader.warning_count();
    let first = reader.warnings().iter().take(MAX_WARNINGS);
    summary.first_warnings =
        first.map(|warning| format!("byte {}: {}", warning.offset, warning.kind)).collect();
    Ok(summary)
}

struct Exporter<W> {
    json: Json<W>,
    is_first: bool,
    processes: BTreeMap<Koid, Text>,
    threads: BTreeMap<(Koid, Koid), Text>,
    skipped: BTreeMap<String, u64>,
    events: u64,
}

impl<W: Write> Exporter<W> {
    fn record(&mut self, record: &Resolved) {
        match &record.item {
            Item::Event(event) => self.event(event),
            Item::Log { timestamp, rate, process, thread, message } => {
                self.separate();
                self.json.raw("{\"name\":\"log\",\"ph\":\"i\",\"ts\":");
                self.time(*timestamp, *rate);
                self.who(*process, *thread);
                self.json.raw(",\"s\":\"g\",\"args\":{\"message\":");
                self.json.string(message.as_bytes());
                self.json.raw("}}");
                self.events += 1;
            }
            Item::KernelObject { object_type: OBJECT_PROCESS, koid, name, .. } => {
                keep_longer(&mut self.processes, *koid, name);
            }
            Item::KernelObject { object_type: OBJECT_THREAD, koid, name, arguments } => {
                let process = arguments.iter().find_map(|(name, value)| match value {
                    Value::Koid(process) if name.as_bytes() == b"process" => Some(*process),
                    _ => None,
                });
                if let Some(process) = process {
                    keep_longer(&mut self.threads, (process, *koid), name);
                }
            }
            Item::KernelObject { .. } => self.skip("kernel objects that are no process or thread"),
            Item::Blob { .. } => self.skip("blobs"),
            Item::ProviderEvent { .. } => self.skip("provider events"),
            Item::Unknown { header, .. } => {
                let kind = match header.record_type_bits() {
                    6 => "userspace objects",
                    8 => "scheduling records",
                    10 => "profiler records",
                    15 => "large records",
                    _ => "records of unknown type",
                };
                self.skip(kind);
            }
            _ => {}
        }
    }

    fn skip(&mut self, kind: &str) {
        *self.skipped.entry(kind.to_owned()).or_default() += 1;
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.json.raw(",");
        }
    }

    //= docs/catapult.md#events
    fn event(&mut self, event: &ResolvedEvent) {
        if let EventKind::Unknown { .. } = event.kind {
            return self.skip("events of unknown type");
        }
        self.separate();
        self.json.raw("{\"cat\":");
        self.json.string(event.category.as_bytes());
        self.json.raw(",\"name\":");
        self.json.string(event.name.as_bytes());
        self.json.raw(",\"ts\":");
        self.time(event.timestamp, event.rate);
        self.who(event.process, event.thread);
        self.phase(event);
        if !event.arguments.is_empty() {
            self.arguments(&event.arguments);
        }
        self.json.raw("}");
        self.events += 1;
    }

    fn who(&mut self, process: Koid, thread: Koid) {
        self.json.raw(",\"pid\":");
        self.json.integer(process.0);
        self.json.raw(",\"tid\":");
        self.json.integer(thread.0);
    }

    /// The phase, and what belongs to it. There are three ways to write an id.
    fn phase(&mut self, event: &ResolvedEvent) {
        match event.kind {
            EventKind::Instant { scope } => self.json.raw(match scope {
                Scope::Thread => ",\"ph\":\"i\",\"s\":\"t\"",
                Scope::Process => ",\"ph\":\"i\",\"s\":\"p\"",
                Scope::Global => ",\"ph\":\"i\",\"s\":\"g\"",
            }),
            EventKind::Counter { id: 0 } => self.json.raw(",\"ph\":\"C\""),
            EventKind::Counter { id } => {
                self.json.raw(",\"ph\":\"C\",\"id\":\"");
                self.json.hex(id);
                self.json.raw("\"");
            }
            EventKind::DurationBegin => self.json.raw(",\"ph\":\"B\""),
            EventKind::DurationEnd => self.json.raw(",\"ph\":\"E\""),
            EventKind::DurationComplete { end } => {
                self.json.raw(",\"ph\":\"X\",\"dur\":");
                self.time(Ticks(end.0.saturating_sub(event.timestamp.0)), event.rate);
            }
            EventKind::AsyncBegin { id } => self.number_id("b", id),
            EventKind::AsyncInstant { id } => self.number_id("n", id),
            EventKind::AsyncEnd { id } => self.number_id("e", id),
            EventKind::FlowBegin { id } => self.text_id(",\"ph\":\"s\"", id),
            EventKind::FlowStep { id } => self.text_id(",\"ph\":\"t\"", id),
            EventKind::FlowEnd { id } => self.text_id(",\"ph\":\"f\",\"bp\":\"e\"", id),
            EventKind::Unknown { .. } => {}
        }
    }

    fn number_id(&mut self, phase: &str, id: u64) {
        self.json.raw(",\"ph\":\"");
        self.json.raw(phase);
        self.json.raw("\",\"id\":");
        self.json.integer(id);
    }

    fn text_id(&mut self, phase: &str, id: u64) {
        self.json.raw(phase);
        self.json.raw(",\"id\":\"");
        self.json.integer(id);
        self.json.raw("\"");
    }

    //= docs/catapult.md#arguments
    fn arguments(&mut self, arguments: &[(Text, Value)]) {
        self.json.raw(",\"args\":{");
        let mut is_first = true;
        for (name, value) in arguments {
            if matches!(value, Value::Null | Value::Unknown) {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.json.raw(",");
            }
            self.json.string(name.as_bytes());
            self.json.raw(":");
            self.value(value);
        }
        self.json.raw("}");
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Unknown => {}
            Value::Bool(value) => self.json.raw(if *value { "true" } else { "false" }),
            Value::Int32(value) => self.json.integer(*value),
            Value::Uint32(value) => self.json.integer(*value),
            Value::Int64(value) => self.json.integer(*value),
            Value::Uint64(value) => self.json.integer(*value),
            Value::Double(value) => self.json.double(*value),
            Value::String(value) => self.json.string(value.as_bytes()),
            Value::Pointer(value) => {
                self.json.raw("\"");
                self.json.hex(*value);
                self.json.raw("\"");
            }
            Value::Koid(koid) => {
                self.json.raw("\"#");
                self.json.integer(koid.0);
                self.json.raw("\"");
            }
            Value::Blob(bytes) => {
                let text = STANDARD.encode(bytes);
                self.json.string(text.as_bytes());
            }
        }
    }

    /// Microseconds: Fuchsia's shortest double, or, where that does not lead back to the nanosecond, the exact
    /// decimal.
    //= docs/catapult.md#numbers
    fn time(&mut self, ticks: Ticks, rate: TicksPerSecond) {
        let micros = ticks.0 as f64 * (1_000_000.0 / rate.0.get() as f64);
        let nanos = ticks.to_nanos(rate).0;
        let back = micros * 1000.0;
        if back.floor() as u64 == nanos || back.round() as u64 == nanos {
            return self.json.double(micros);
        }
        self.json.integer(nanos / 1000);
        let fraction = format!(".{:03}", nanos % 1000);
        let digits = fraction.trim_end_matches('0');
        self.json.raw(if digits == "." { ".0" } else { digits });
    }

    fn finish(mut self) -> std::io::Result<Summary> {
        self.json.raw("],\"systemTraceEvents\":{\"type\":\"fuchsia\",\"events\":[");
        self.is_first = true;
        for (pid, name) in std::mem::take(&mut self.processes) {
            self.separate();
            self.json.raw("{\"ph\":\"p\",\"pid\":");
            self.json.integer(pid.0);
            self.json.raw(",\"name\":");
            self.json.string(name.as_bytes());
            self.json.raw(if pid.0 == 0 { ",\"sort_index\":-1}" } else { "}" });
        }
        for ((pid, tid), name) in std::mem::take(&mut self.threads) {
            self.separate();
            self.json.raw("{\"ph\":\"t\",\"pid\":");
            self.json.integer(pid.0);
            self.json.raw(",\"tid\":");
            self.json.integer(tid.0);
            self.json.raw(",\"name\":");
            self.json.string(name.as_bytes());
            self.json.raw("}");
        }
        self.json.raw("]}}");
        self.json.finish()?;
        Ok(Summary { events: self.events, skipped: self.skipped.into_iter().collect(), ..Summary::default() })
    }
}

/// Of several names of one object the longest stays.
fn keep_longer<K: Ord>(names: &mut BTreeMap<K, Text>, key: K, name: &Text) {
    let known = names.entry(key).or_insert_with(|| name.clone());
    if name.as_bytes().len() > known.as_bytes().len() {
        *known = name.clone();
    }
}
