//! JSON for Catapult, in two dialects: that of Fuchsia's exporter, record by record and field by field, and
//! Chrome's own, which Perfetto reads too.
//!
//! One document on one line: events in the order of their records, then names, and in Fuchsia's dialect the
//! scheduler's events. Memory holds the names and the reader's tables; data that has to come last waits in an
//! unlinked file.

mod event;
mod large;
mod losses;
mod recording;
mod samples;
mod system;

use crate::filter::Filter;
use crate::flows::Flows;
use crate::json::Json;
use crate::losses::Losses;
use crate::{ConvertError, Summary, source};
use large::LargeBlob;
use recording::Recording;
use samples::Samples;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use system::System;
use trace_format::kernel_object::{PROCESS_ARGUMENT, TYPE_CHANNEL, TYPE_PROCESS, TYPE_THREAD};
use trace_format::units::{Koid, ProviderId, TicksPerSecond};
use trace_reader::{Item, Resolved, Thread, Value};

/// The dialect of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As Fuchsia's exporter writes it. Perfetto refuses it.
    #[default]
    Fuchsia,
    /// As Chrome writes it.
    Chrome(Container),
}

/// The container of Chrome's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// `[…]`.
    Array,
    /// `{"traceEvents":[…]}`.
    Object,
}

/// Options of a conversion.
#[derive(Default)]
pub struct Options<'a> {
    /// The dialect.
    pub dialect: Dialect,
    /// Selects events.
    pub filter: Filter,
    /// The output of Fuchsia's system events, one per line, if they do not go into the document.
    pub system_output: Option<&'a mut dyn Write>,
}

/// Converts an archive as Fuchsia's exporter does.
///
/// # Errors
/// As [`convert_with`].
pub fn convert(input: impl Read, output: impl Write) -> Result<Summary, ConvertError> {
    convert_with(input, output, Options::default())
}

/// Converts an archive.
///
/// If the position in a damaged archive is lost, the document is ended properly after the events before, and
/// the error is returned.
//= docs/catapult.md#document
///
/// # Errors
/// The input is no archive or cannot be read, or the output cannot be written.
pub fn convert_with(
    input: impl Read,
    output: impl Write,
    options: Options<'_>,
) -> Result<Summary, ConvertError> {
    let mut exporter = Exporter {
        json: Json::new(output),
        dialect: options.dialect,
        filter: options.filter,
        is_first: true,
        system: System::new(),
        samples: (options.dialect == Dialect::Chrome(Container::Object)).then(|| Box::new(Samples::new())),
        large: None,
        losses: Losses::default(),
        losses_written: 0,
        last_nanos: 0,
        recording: Recording::default(),
        flows: Flows::default(),
        further_ends: 0,
        last_thread: None,
        skipped: BTreeMap::new(),
        events: 0,
        rate: None,
        have_rates_differed: false,
    };
    exporter.json.raw(match options.dialect {
        Dialect::Fuchsia | Dialect::Chrome(Container::Object) => {
            "{\"displayTimeUnit\":\"ns\",\"traceEvents\":["
        }
        Dialect::Chrome(Container::Array) => "[",
    });
    let end = source::for_each(input, |record| {
        exporter.record(record);
        exporter.json.flush_if_full()?;
        exporter.samples.as_mut().map_or(Ok(()), |samples| samples.spill_if_full())?;
        exporter.system.spill_if_full()
    })?;
    let have_rates_differed = exporter.have_rates_differed;
    let remarks = (exporter.further_ends > 0).then(|| (FURTHER_ENDS.to_owned(), exporter.further_ends));
    let (events, skipped) = exporter.finish(options.system_output).map_err(ConvertError::Write)?;
    let mut summary = end.summary(events, skipped);
    summary.remarks.extend(remarks);
    if have_rates_differed {
        summary.warnings += 1;
        summary.first_warnings.push("events have been timed with different tick rates".to_owned());
    }
    Ok(summary)
}

/// The manager's own provider.
const MANAGER: ProviderId = ProviderId(0);
/// The remark about flows that end in several places.
const FURTHER_ENDS: &str = "flows end once more: Catapult shows an arrow to the first end";

struct Exporter<W> {
    json: Json<W>,
    dialect: Dialect,
    filter: Filter,
    is_first: bool,
    system: System,
    /// In dialects that have a section for them.
    samples: Option<Box<Samples>>,
    /// A large blob of which more follows.
    large: Option<LargeBlob>,
    losses: Losses,
    /// How many losses were written, which number them.
    losses_written: u64,
    /// The time of the last event in Chrome's dialect, for losses without one.
    last_nanos: u64,
    /// How the trace was recorded, as far as Chrome's dialect says it.
    recording: Recording,
    flows: Flows,
    /// Ends of flows that had ended, for which Fuchsia's dialect has no arrows.
    further_ends: u64,
    /// The thread of the last event, and its text.
    last_thread: Option<(Thread, String)>,
    skipped: BTreeMap<&'static str, u64>,
    events: u64,
    /// Rate of the first time written.
    rate: Option<TicksPerSecond>,
    have_rates_differed: bool,
}

impl<W: Write> Exporter<W> {
    fn record(&mut self, record: &Resolved<'_>) {
        if let Item::LargeBlobPart { payload } = record.item {
            return self.large_part(payload);
        }
        let lost = if self.is_chrome() { self.losses.record(record) } else { None };
        match &record.item {
            Item::Event(event) => {
                if record.provider == recording::MANAGER && self.is_chrome() {
                    self.recording.learn(event);
                }
                self.event(event);
            }
            Item::Log { time, thread, message } => self.log(*time, *thread, *message),
            Item::KernelObject { object_type: TYPE_PROCESS, koid, name, .. } => {
                self.system.name_process(*koid, name.as_bytes());
            }
            Item::KernelObject { object_type: TYPE_THREAD, koid, name, arguments } => {
                let process = arguments.iter().find_map(|(name, value)| match value {
                    Value::Koid(process) if name == PROCESS_ARGUMENT => Some(process),
                    _ => None,
                });
                if let Some(process) = process {
                    self.system.name_thread(process, *koid, name.as_bytes());
                }
            }
            // What the manager says about providers.
            Item::KernelObject { object_type: TYPE_CHANNEL, koid: Koid(0), .. }
                if record.provider == MANAGER => {}
            Item::KernelObject { .. } => self.skip("kernel objects that are no process or thread"),
            Item::Blob { .. } => self.skip("blobs"),
            Item::Loss(_) => match lost {
                Some(lost) => self.lost(&lost),
                None => self.skip("loss records"),
            },
            // Only of use to `trace check`.
            Item::Ledger(_) | Item::Function(_) => {}
            Item::ProviderEvent { .. } => self.skip("provider events"),
            Item::UserspaceObject { .. } => self.skip("userspace objects"),
            Item::Scheduling { time, kind, arguments } if self.dialect == Dialect::Fuchsia => {
                self.have_rates_differed |= *self.rate.get_or_insert(time.rate) != time.rate;
                if !self.system.scheduling(*time, kind, arguments) {
                    self.skip("fiber switches");
                }
            }
            Item::Scheduling { .. } => self.skip("scheduling records"),
            Item::Profiler { time, thread, kind } => {
                let samples = self.samples.as_mut();
                if !samples.is_some_and(|samples| samples.record(*time, *thread, kind, record.names)) {
                    self.skip("profiler records");
                }
            }
            Item::LargeBlob { category, name, event, payload, payload_bytes } => {
                self.large_blob(*category, *name, event.as_ref(), payload, *payload_bytes);
            }
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

    /// Ends the document; returns the number of its events, and what it lacks.
    fn finish(
        mut self,
        system_output: Option<&mut dyn Write>,
    ) -> std::io::Result<(u64, BTreeMap<&'static str, u64>)> {
        self.end_large();
        match (self.dialect, system_output) {
            (Dialect::Fuchsia, Some(output)) => {
                self.system.write(output, "\n", true)?;
                self.json.raw("]}");
            }
            (Dialect::Fuchsia, None) => {
                self.json.raw("],\"systemTraceEvents\":{\"type\":\"fuchsia\",\"events\":[");
                self.json.flush()?;
                self.system.write(self.json.output(), ",", false)?;
                self.json.raw("]}}");
            }
            (Dialect::Chrome(container), _) => {
                self.names_as_events();
                self.json.raw("]");
                if let Some(samples) = self.samples.take() {
                    samples.write(&mut self.json)?;
                }
                if container == Container::Object {
                    self.recording.write(&mut self.json);
                    self.json.raw("}");
                }
            }
        }
        self.json.finish()?;
        Ok((self.events, self.skipped))
    }
}

#[cfg(test)]
mod tests;
