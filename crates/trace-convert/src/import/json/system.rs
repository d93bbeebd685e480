//! Members beside the events: names and scheduling events from Fuchsia's exporter, and members that an
//! archive cannot express.
//= docs/import.md#beside-the-events

use super::entry::Importer;
use super::number::nanos;
use super::postponed::Part;
use crate::import::ImportError;
use crate::import::ftrace::{self, Ends};
use crate::import::writer::thread_ref;
use foldhash::HashSet;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::Write;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::record::Record;
use trace_format::scheduling::{
    INCOMING_WEIGHT_ARGUMENT, OUTGOING_WEIGHT_ARGUMENT, Scheduling, ThreadState, WEIGHT_ARGUMENT,
};
use trace_format::units::{Koid, ThreadKoid, Ticks};
use trace_linux::{Records, inline};
use trace_reader::Thread;

/// Members of the format that an archive cannot express.
const MEMBERS: [&str; 11] = [
    "androidProcessDump",
    "cgroupDump",
    "controllerTraceDataKey",
    "metadata",
    "otherData",
    "powerTraceAsString",
    "samples",
    "stackFrames",
    "systemTraceEvents",
    "traceAnnotations",
    "traceEvents",
];

/// Maximum number of remembered threads with names.
const MAX_NAMED_THREADS: usize = 1 << 20;

/// Threads whose names came with their processes.
#[derive(Debug, Default)]
pub(super) struct NamedThreads(HashSet<Thread>);

impl NamedThreads {
    /// Remembers a thread; false if it is known, or there is no room.
    fn insert(&mut self, thread: Thread) -> bool {
        self.0.len() < MAX_NAMED_THREADS && self.0.insert(thread)
    }
}

impl<W: Write> Importer<W> {
    /// A member of the document without events.
    pub fn member(&mut self, name: &str) {
        match name {
            "displayTimeUnit" => {}
            name if MEMBERS.contains(&name) => self.writer.skip(format!("members {name:?}")),
            _ => self.writer.skip("members of other names"),
        }
    }

    /// The kernel's events as ftrace's text.
    pub fn system_text(&mut self, text: &str) -> Result<(), ImportError> {
        if !ftrace::has_lines(text.as_bytes()) {
            self.member("systemTraceEvents");
            return Ok(());
        }
        self.numbering.take_all(text);
        if let Some(postponed) = &mut self.postponed {
            postponed.push(Part::SystemText, text.as_bytes());
            return Ok(());
        }
        self.has_any = true;
        self.writer.within(|writer| ftrace::write_lines(text.as_bytes(), writer, Ends::Anywhere))
    }

    pub fn system_event(&mut self, text: &[u8]) -> Result<(), serde_json::Error> {
        let event: SystemEvent<'_> = serde_json::from_slice(text)?;
        let name = event.name.as_deref().unwrap_or_default().as_bytes();
        let thread =
            Thread { process: self.numbering.take(event.pid), thread: self.numbering.take(event.tid) };
        for side in event.out.iter().chain(&event.r#in) {
            self.numbering.take(side.pid.unwrap_or(0));
            self.numbering.take(side.tid);
        }
        if let Some(postponed) = &mut self.postponed {
            postponed.push(Part::SystemEvent, text);
            return Ok(());
        }
        self.has_any = true;
        match event.ph.as_ref() {
            "p" => self.writer.name_process(thread.process, name),
            "t" => {
                self.named_threads.insert(thread);
                self.writer.name_thread(thread, name);
            }
            "k" | "w" => self.scheduling(&event),
            other => self.writer.skip(format!("system events of phase {other:?}")),
        }
        Ok(())
    }

    /// Records the process of a thread without a name, as reported by a switch: by an empty name, once.
    fn report_process(&mut self, side: &Side) {
        if side.pid.is_some_and(|pid| pid != 0) && self.named_threads.insert(side.thread()) {
            self.writer.name_thread(side.thread(), b"");
        }
    }

    /// A scheduling event.
    fn scheduling(&mut self, event: &SystemEvent<'_>) {
        let Some(timestamp) = event.ts.and_then(|ts| nanos(ts.get())).map(Ticks) else {
            return self.writer.skip("scheduling without a time that can be expressed");
        };
        let weight = |name: &'static str, weight: Option<i32>| {
            weight
                .map(|weight| Argument { name: inline(name.as_bytes()), value: ArgumentValue::Int32(weight) })
        };
        let cpu = event.cpu;
        let weights = match (&event.out, &event.r#in) {
            (Some(out), Some(into)) => {
                [weight(OUTGOING_WEIGHT_ARGUMENT, out.prio), weight(INCOMING_WEIGHT_ARGUMENT, into.prio)]
            }
            _ => [weight(WEIGHT_ARGUMENT, event.prio), None],
        };
        let weights: Vec<_> = weights.into_iter().flatten().collect();
        let arguments = Arguments::from_slice(&weights);
        let scheduling = match (&event.out, &event.r#in) {
            (Some(out), Some(into)) => legacy_switch(timestamp, cpu, out, into).unwrap_or_else(|| {
                self.report_process(out);
                self.report_process(into);
                Scheduling::ContextSwitch {
                    timestamp,
                    cpu,
                    outgoing_state: ThreadState(out.state),
                    outgoing: ThreadKoid(Koid(out.tid)),
                    incoming: ThreadKoid(Koid(into.tid)),
                    arguments,
                }
            }),
            _ => Scheduling::ThreadWakeup { timestamp, cpu, thread: ThreadKoid(Koid(event.tid)), arguments },
        };
        if !self.writer.at(timestamp.0, &Record::Scheduling(scheduling)) {
            self.writer.skip("scheduling that cannot be expressed");
        }
    }
}

/// The older record, which has processes, and always has priorities: none if one is missing or does not fit.
fn legacy_switch(timestamp: Ticks, cpu: u16, out: &Side, into: &Side) -> Option<Scheduling<'static>> {
    let priority = |side: &Side| u8::try_from(side.prio?).ok();
    out.pid?;
    Some(Scheduling::LegacyContextSwitch {
        timestamp,
        cpu: u8::try_from(cpu).ok()?,
        outgoing_state: ThreadState(out.state),
        outgoing: thread_ref(out.thread()),
        incoming: thread_ref(into.thread()),
        outgoing_priority: priority(out)?,
        incoming_priority: priority(into)?,
    })
}

/// One of Fuchsia's system events.
#[derive(Deserialize)]
struct SystemEvent<'a> {
    #[serde(borrow)]
    ph: Cow<'a, str>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    pid: u64,
    #[serde(default)]
    tid: u64,
    #[serde(borrow)]
    ts: Option<&'a RawValue>,
    #[serde(default)]
    cpu: u16,
    prio: Option<i32>,
    out: Option<Side>,
    r#in: Option<Side>,
}

/// A thread that ran, or runs.
#[derive(Deserialize)]
struct Side {
    pid: Option<u64>,
    tid: u64,
    #[serde(default)]
    state: u8,
    prio: Option<i32>,
}

impl Side {
    fn thread(&self) -> Thread {
        Thread { process: Koid(self.pid.unwrap_or(0)), thread: Koid(self.tid) }
    }
}
