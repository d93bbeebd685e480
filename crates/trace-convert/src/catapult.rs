//! The JSON of Fuchsia's exporter, record by record and field by field.
//!
//! One document on one line: events in the order of their records, then an object of type `fuchsia` with the
//! names of processes and threads. Memory holds the names and the reader's tables, nothing else.

use crate::json::Json;
use crate::{ConvertError, Summary};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use trace_format::event::{EventKind, Scope};
use trace_format::kernel_object::{PROCESS_ARGUMENT, TYPE_PROCESS, TYPE_THREAD};
use trace_format::units::{Koid, Nanos, Ticks, TicksPerSecond};
use trace_reader::{Arguments, Event, Item, ReadError, Reader, Resolved, Thread, Time, Value};

/// Remarks that a summary repeats.
const MAX_WARNINGS: usize = 5;

/// Converts an archive.
///
/// Where the position in a damaged archive is lost, the document is ended properly with what came before, and
/// the error is returned.
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
        rate: None,
        have_rates_differed: false,
    };
    exporter.json.raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    let damage = loop {
        match reader.next_item() {
            Ok(Some(record)) => exporter.record(&record),
            Ok(None) => break None,
            Err(error @ ReadError::NoSize { .. }) => break Some(error),
            Err(error) => return Err(error.into()),
        }
        exporter.json.flush_if_full().map_err(ConvertError::Write)?;
    };
    let have_rates_differed = exporter.have_rates_differed;
    let mut summary = exporter.finish().map_err(ConvertError::Write)?;
    if let Some(error) = damage {
        return Err(error.into());
    }
    summary.warnings = reader.warnings().count();
    let first = reader.warnings().first();
    summary.first_warnings = first
        .iter()
        .take(MAX_WARNINGS)
        .map(|warning| format!("byte {}: {}", warning.offset, warning.kind))
        .collect();
    if have_rates_differed {
        summary.warnings += 1;
        summary.first_warnings.push("events have been timed with different tick rates".to_owned());
    }
    Ok(summary)
}

struct Exporter<W> {
    json: Json<W>,
    is_first: bool,
    processes: BTreeMap<Koid, Vec<u8>>,
    threads: BTreeMap<(Koid, Koid), Vec<u8>>,
    skipped: BTreeMap<&'static str, u64>,
    events: u64,
    /// Rate of the first time written.
    rate: Option<TicksPerSecond>,
    have_rates_differed: bool,
}

impl<W: Write> Exporter<W> {
    fn record(&mut self, record: &Resolved<'_>) {
        match &record.item {
            Item::Event(event) => self.event(event),
            Item::Log { time, thread, message } => {
                self.separate();
                self.json.raw("{\"name\":\"log\",\"ph\":\"i\",\"ts\":");
                self.time(*time);
                self.who(*thread);
                self.json.raw(",\"s\":\"g\",\"args\":{\"message\":");
                self.json.string(message.as_bytes());
                self.json.raw("}}");
                self.events += 1;
            }
            Item::KernelObject { object_type: TYPE_PROCESS, koid, name, .. } => {
                keep_longer(&mut self.processes, *koid, name.as_bytes());
            }
            Item::KernelObject { object_type: TYPE_THREAD, koid, name, arguments } => {
                let process = arguments.iter().find_map(|(name, value)| match value {
                    Value::Koid(process) if name == PROCESS_ARGUMENT => Some(process),
                    _ => None,
                });
                if let Some(process) = process {
                    keep_longer(&mut self.threads, (process, *koid), name.as_bytes());
                }
            }
            Item::KernelObject { .. } => self.skip("kernel objects that are no process or thread"),
            Item::Blob { .. } => self.skip("blobs"),
            Item::Loss(_) => self.skip("loss records"),
            // Of use to those who check.
            Item::Ledger(_) => {}
            Item::ProviderEvent { .. } => self.skip("provider events"),
            Item::UserspaceObject { .. } => self.skip("userspace objects"),
            Item::Scheduling { .. } => self.skip("scheduling records"),
            Item::Profiler { .. } => self.skip("profiler records"),
            Item::LargeBlob { .. } => self.skip("large records"),
            Item::Unknown { .. } => self.skip("records of unknown type"),
            Item::Magic
            | Item::ProviderInfo { .. }
            | Item::ProviderSection
            | Item::Initialization { .. }
            | Item::String { .. }
            | Item::Thread { .. }
            | Item::LargeBlobPart { .. }
            | Item::Malformed { .. }
            | Item::Damage { .. } => {}
        }
    }

    fn skip(&mut self, kind: &'static str) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.json.raw(",");
        }
    }

    //= docs/catapult.md#events
    fn event(&mut self, event: &Event<'_>) {
        if let EventKind::Unknown { .. } = event.kind {
            return self.skip("events of unknown type");
        }
        self.separate();
        self.json.raw("{\"cat\":");
        self.json.string(event.category.as_bytes());
        self.json.raw(",\"name\":");
        self.json.string(event.name.as_bytes());
        self.json.raw(",\"ts\":");
        self.time(event.time);
        self.who(event.thread);
        self.phase(event);
        self.arguments(&event.arguments);
        self.json.raw("}");
        self.events += 1;
    }

    fn who(&mut self, Thread { process, thread }: Thread) {
        self.json.raw(",\"pid\":");
        self.json.integer(process.0);
        self.json.raw(",\"tid\":");
        self.json.integer(thread.0);
    }

    /// The phase, and what belongs to it. There are three ways to write an id.
    fn phase(&mut self, event: &Event<'_>) {
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
                let ticks = Ticks(end.0.saturating_sub(event.time.ticks.0));
                self.time(Time { ticks, ..event.time });
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
    fn arguments(&mut self, arguments: &Arguments<'_>) {
        // To Fuchsia's reader an argument of unknown type is not there at all; a null is, but is not written.
        let unknown = arguments.iter().filter(|(_, value)| *value == Value::Unknown).count();
        (0..unknown).for_each(|_| self.skip("arguments of unknown type"));
        if unknown == arguments.len() {
            return;
        }
        self.json.raw(",\"args\":{");
        let mut is_first = true;
        for (name, value) in arguments.iter() {
            if matches!(value, Value::Null | Value::Unknown) {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.json.raw(",");
            }
            self.json.string(name.as_bytes());
            self.json.raw(":");
            self.value(&value);
        }
        self.json.raw("}");
    }

    fn value(&mut self, value: &Value<'_>) {
        match value {
            Value::Null | Value::Unknown => {}
            Value::Bool(value) => self.json.raw(if *value { "true" } else { "false" }),
            Value::Int32(value) => self.json.integer(*value),
            Value::Uint32(value) => self.json.integer(*value),
            Value::Int64(value) => self.json.integer(*value),
            Value::Uint64(value) => self.json.integer(*value),
            Value::Double(value) => _ = self.json.double(*value),
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
            Value::Blob(bytes) => self.json.base64(bytes),
        }
    }

    /// Microseconds: Fuchsia's double where its digits are within half a nanosecond of the time, else the exact
    /// decimal of the nanosecond.
    //= docs/catapult.md#numbers
    fn time(&mut self, Time { ticks, rate }: Time) {
        self.have_rates_differed |= *self.rate.get_or_insert(rate) != rate;
        let micros = ticks.0 as f64 * (1_000_000.0 / rate.0.get() as f64);
        let digits = self.json.double(micros);
        if micros >= ALWAYS_EXACT_MICROS && !are_exact(digits, ticks, rate) {
            let (length, nanos) = (digits.len(), ticks.to_nanos(rate));
            // A time beyond 64 bits of nanoseconds, of which the reader has warned, stays a double.
            if nanos < Nanos(u64::MAX) {
                self.json.take_back(length);
                self.json.thousandths(nanos.0);
            }
        }
    }

    fn finish(mut self) -> std::io::Result<Summary> {
        self.json.raw("],\"systemTraceEvents\":{\"type\":\"fuchsia\",\"events\":[");
        self.is_first = true;
        for (pid, name) in std::mem::take(&mut self.processes) {
            self.separate();
            self.json.raw("{\"ph\":\"p\",\"pid\":");
            self.json.integer(pid.0);
            self.json.raw(",\"name\":");
            self.json.string(&name);
            self.json.raw(if pid.0 == 0 { ",\"sort_index\":-1}" } else { "}" });
        }
        for ((pid, tid), name) in std::mem::take(&mut self.threads) {
            self.separate();
            self.json.raw("{\"ph\":\"t\",\"pid\":");
            self.json.integer(pid.0);
            self.json.raw(",\"tid\":");
            self.json.integer(tid.0);
            self.json.raw(",\"name\":");
            self.json.string(&name);
            self.json.raw("}");
        }
        self.json.raw("]}}");
        self.json.finish()?;
        let skipped = self.skipped.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
        Ok(Summary { events: self.events, skipped, ..Summary::default() })
    }
}

/// Of several names of one object the longest stays.
fn keep_longer<K: Ord>(names: &mut BTreeMap<K, Vec<u8>>, key: K, name: &[u8]) {
    let known = names.entry(key).or_insert_with(|| name.to_vec());
    if name.len() > known.len() {
        *known = name.to_vec();
    }
}

/// Below it, which is 12 days, the roundings on the way to the digits are less than half a nanosecond together.
const ALWAYS_EXACT_MICROS: f64 = (1_u64 << 40) as f64;

/// Whether digits of microseconds are within half a nanosecond of so many ticks.
fn are_exact(digits: &[u8], ticks: Ticks, rate: TicksPerSecond) -> bool {
    let is_within = || {
        // Doubles this large have at most four digits behind the point.
        let point = digits.iter().position(|byte| *byte == b'.')?;
        let fraction = digits.get(point + 1..)?;
        let padding = 4_usize.checked_sub(fraction.len())?;
        let all = digits.get(..point)?.iter().chain(fraction).chain(std::iter::repeat_n(&b'0', padding));
        let tenths = all
            .map(|byte| u128::from(*byte - b'0'))
            .try_fold(0_u128, |sum, digit| sum.checked_mul(10)?.checked_add(digit))?;
        let rate = u128::from(rate.0.get());
        let difference = tenths.checked_mul(rate)?.abs_diff(u128::from(ticks.0) * 10_000_000_000);
        Some(difference < 5 * rate)
    };
    is_within().unwrap_or(false)
}

#[cfg(test)]
mod tests;
