//! One event of a JSON trace, and what comes beside the events.
//= docs/import.md#events

use super::number::{id, nanos};
use crate::import::waiting::Waiting;
use crate::import::writer::{FLOW, Writer, thread_ref};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{EventKind, Scope};
use trace_format::record::Record;
use trace_format::refs::ThreadRef;
use trace_format::scheduling::{
    INCOMING_WEIGHT_ARGUMENT, OUTGOING_WEIGHT_ARGUMENT, Scheduling, ThreadState, WEIGHT_ARGUMENT,
};
use trace_format::units::{Koid, ThreadKoid, Ticks};
use trace_linux::{Records, hash, inline};
use trace_reader::Thread;

/// Most arguments of an event of the format.
const MAX_ARGUMENTS: usize = 15;

/// The members that count, values as they are written; others are passed over.
pub(super) struct Entry<'a> {
    pub ph: Option<Cow<'a, str>>,
    pub name: Option<&'a str>,
    pub cat: Option<&'a str>,
    pub ts: Option<&'a str>,
    pub dur: Option<&'a str>,
    pub pid: Option<&'a str>,
    pub tid: Option<&'a str>,
    pub id: Option<&'a str>,
    pub id2: Option<&'a str>,
    pub s: Option<Cow<'a, str>>,
    pub bp: Option<Cow<'a, str>>,
    pub bind_id: Option<&'a str>,
    pub flow_in: bool,
    pub flow_out: bool,
    pub args: Vec<(Cow<'a, str>, &'a str)>,
}

/// The same as `serde_json` finds them.
#[derive(Deserialize)]
struct RawEntry<'a> {
    #[serde(borrow)]
    ph: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    cat: Option<&'a RawValue>,
    #[serde(borrow)]
    ts: Option<&'a RawValue>,
    #[serde(borrow)]
    dur: Option<&'a RawValue>,
    #[serde(borrow)]
    pid: Option<&'a RawValue>,
    #[serde(borrow)]
    tid: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    id2: Option<&'a RawValue>,
    #[serde(borrow)]
    s: Option<Cow<'a, str>>,
    #[serde(borrow)]
    bp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    bind_id: Option<&'a RawValue>,
    #[serde(default)]
    flow_in: bool,
    #[serde(default)]
    flow_out: bool,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl<'a> RawEntry<'a> {
    fn entry(self) -> Result<Entry<'a>, serde_json::Error> {
        let args = self.args.map(RawValue::get).filter(|args| args.starts_with('{'));
        let args = match args {
            Some(args) => serde_json::from_str::<Members<'_>>(args)?.0,
            None => Vec::new(),
        };
        Ok(Entry {
            ph: self.ph,
            name: self.name.map(RawValue::get),
            cat: self.cat.map(RawValue::get),
            ts: self.ts.map(RawValue::get),
            dur: self.dur.map(RawValue::get),
            pid: self.pid.map(RawValue::get),
            tid: self.tid.map(RawValue::get),
            id: self.id.map(RawValue::get),
            id2: self.id2.map(RawValue::get),
            s: self.s,
            bp: self.bp,
            bind_id: self.bind_id.map(RawValue::get),
            flow_in: self.flow_in,
            flow_out: self.flow_out,
            args: args.into_iter().map(|(name, value)| (name, value.get())).collect(),
        })
    }
}

/// The members of an object, in order.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Borrowed<'de>>()? {
                    members.push((key.0, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// Text that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

/// Text, or the text of another value.
fn text(raw: &str) -> Cow<'_, str> {
    let plain = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    if let Some(plain) = plain.filter(|plain| !plain.contains('\\')) {
        return Cow::Borrowed(plain);
    }
    let found: Result<Borrowed<'_>, _> = serde_json::from_str(raw);
    found.map_or(Cow::Borrowed(raw), |text| text.0)
}

pub(super) struct Importer<W> {
    pub writer: Writer<W>,
    /// Ends of flows that go to their thread's next slice.
    waiting: Waiting,
}

impl<W: Write> Importer<W> {
    pub fn new(writer: Writer<W>) -> Self {
        Self { writer, waiting: Waiting::default() }
    }

    /// Writes what waits for a slice that never came.
    pub fn end(&mut self) -> Result<(), serde_json::Error> {
        self.waiting.rest().iter().try_for_each(|(_, at, event)| self.event_at(event, Some(*at)))
    }

    /// Ends of flows that have waited for this slice.
    //= docs/import.md#events
    fn slice_begins(&mut self, thread: Thread, at: u64) -> Result<(), serde_json::Error> {
        self.waiting.take(thread, at).iter().try_for_each(|event| self.event_at(event, Some(at)))
    }

    /// A process or thread: its number; of one that has a name instead, that name's hash.
    fn koid(raw: Option<&str>) -> Koid {
        Koid(raw.map_or(0, id))
    }

    pub fn event(&mut self, text_of_event: &[u8]) -> Result<(), serde_json::Error> {
        self.event_at(text_of_event, None)
    }

    /// An event at the beginning of some bytes if it is of the usual form; its length.
    pub fn plain_event(&mut self, bytes: &[u8]) -> Option<usize> {
        let (entry, length) = super::plain::event(bytes)?;
        self.entry(&entry, &bytes[..length], None).ok().map(|()| length)
    }

    /// An event, at its time or at another.
    fn event_at(&mut self, text_of_event: &[u8], at: Option<u64>) -> Result<(), serde_json::Error> {
        let entry = serde_json::from_slice::<RawEntry<'_>>(text_of_event)?.entry()?;
        self.entry(&entry, text_of_event, at)
    }

    fn entry(
        &mut self,
        entry: &Entry<'_>,
        text_of_event: &[u8],
        at: Option<u64>,
    ) -> Result<(), serde_json::Error> {
        let thread = Thread { process: Self::koid(entry.pid), thread: Self::koid(entry.tid) };
        let phase = entry.ph.as_deref().unwrap_or_default();
        if phase == "M" {
            self.metadata(entry, thread);
            return Ok(());
        }
        let is_late = at.is_some();
        let Some(at) = at.or_else(|| entry.ts.and_then(nanos)) else {
            self.writer.skip("events without a time that can be expressed");
            return Ok(());
        };
        let goes_to_next = phase == "f" && entry.bp.as_deref() != Some("e");
        if goes_to_next && !is_late && self.waiting.push(thread, at, text_of_event) {
            return Ok(());
        }
        let own_id = || {
            let local = entry.id2.map(|id2| hash(id2.as_bytes()));
            entry.id.map(id).or(local).unwrap_or(0)
        };
        let kind = match phase {
            "B" => EventKind::DurationBegin,
            "E" => EventKind::DurationEnd,
            "X" => {
                let length = entry.dur.and_then(nanos).unwrap_or(0);
                EventKind::DurationComplete { end: Ticks(at.saturating_add(length)) }
            }
            "i" | "I" | "R" => EventKind::Instant {
                scope: match entry.s.as_deref() {
                    Some("g") => Scope::Global,
                    Some("p") => Scope::Process,
                    _ => Scope::Thread,
                },
            },
            "C" => EventKind::Counter { id: own_id() },
            "b" | "S" => EventKind::AsyncBegin { id: own_id() },
            "n" | "T" | "p" => EventKind::AsyncInstant { id: own_id() },
            "e" | "F" => EventKind::AsyncEnd { id: own_id() },
            "s" => EventKind::FlowBegin { id: own_id() },
            "t" => EventKind::FlowStep { id: own_id() },
            "f" => EventKind::FlowEnd { id: own_id() },
            other => {
                self.writer.skip(format!("events of phase {other:?}"));
                return Ok(());
            }
        };
        let (name, category) = (entry.name.map(text), entry.cat.map(text));
        self.write(at, thread, (category, name), kind, &entry.args);
        if let Some(id) = entry.bind_id.map(id) {
            let flow = match (entry.flow_in, entry.flow_out) {
                (false, true) => Some(EventKind::FlowBegin { id }),
                (true, true) => Some(EventKind::FlowStep { id }),
                (true, false) => Some(EventKind::FlowEnd { id }),
                (false, false) => None,
            };
            flow.into_iter().for_each(|flow| self.writer.event(at, thread, FLOW, FLOW, flow, &[]));
        }
        match kind {
            EventKind::DurationBegin | EventKind::DurationComplete { .. } => self.slice_begins(thread, at),
            _ => Ok(()),
        }
    }

    fn write(
        &mut self,
        at: u64,
        thread: Thread,
        (category, name): (Option<Cow<'_, str>>, Option<Cow<'_, str>>),
        kind: EventKind,
        members: &[(Cow<'_, str>, &str)],
    ) {
        for _ in members.iter().skip(MAX_ARGUMENTS) {
            self.writer.skip("arguments beyond the fifteenth");
        }
        let members = &members[..members.len().min(MAX_ARGUMENTS)];
        let texts: Vec<Option<Cow<'_, str>>> =
            members.iter().map(|(_, raw)| raw.starts_with('"').then(|| text(raw))).collect();
        let mut arguments = Vec::with_capacity(members.len());
        for ((name, raw), text) in members.iter().zip(&texts) {
            let name = self.writer.string(name.as_bytes());
            let value = match text {
                Some(text) => ArgumentValue::String(self.writer.string(text.as_bytes())),
                None => plain_value(raw),
            };
            arguments.push(Argument { name, value });
        }
        let (category, name) = (category.unwrap_or_default(), name.unwrap_or_default());
        self.writer.event(at, thread, category.as_bytes(), name.as_bytes(), kind, &arguments);
    }

    /// Names of processes and threads.
    fn metadata(&mut self, entry: &Entry<'_>, thread: Thread) {
        let what = entry.name.map(text).unwrap_or_default();
        let name = entry.args.iter().find(|(key, _)| key == "name");
        let name = name.filter(|(_, raw)| raw.starts_with('"')).map(|(_, raw)| text(raw));
        match (what.as_ref(), name) {
            ("process_name", Some(name)) => self.writer.name_process(thread.process, name.as_bytes()),
            ("thread_name", Some(name)) => self.writer.name_thread(thread, name.as_bytes()),
            (other, _) => self.writer.skip(format!("metadata {other}")),
        }
    }

    /// What stands beside the events.
    //= docs/import.md#beside-the-events
    pub fn member(&mut self, name: &str, value: &[u8]) -> Result<(), serde_json::Error> {
        match name {
            "systemTraceEvents" if value.starts_with(b"{") => {
                #[derive(Deserialize)]
                struct System<'a> {
                    #[serde(borrow, default)]
                    events: Vec<SystemEvent<'a>>,
                }

                let system: System<'_> = serde_json::from_slice(value)?;
                system.events.iter().for_each(|event| self.system_event(event));
            }
            "displayTimeUnit" => {}
            other => self.writer.skip(format!("member {other}")),
        }
        Ok(())
    }

    /// What the scheduler did; with process numbers it is of the older kind.
    fn scheduling(&mut self, event: &SystemEvent<'_>) {
        let Some(timestamp) = event.ts.and_then(|ts| nanos(ts.get())).map(Ticks) else {
            return self.writer.skip("scheduling without a time that can be expressed");
        };
        let weight = |name: &'static str, weight: Option<i32>| {
            weight
                .map(|weight| Argument { name: inline(name.as_bytes()), value: ArgumentValue::Int32(weight) })
        };
        let cpu = event.cpu;
        let is_written = match (&event.out, &event.r#in) {
            (Some(out), Some(into)) if out.pid.is_some() => self.writer.at(
                timestamp.0,
                &Record::Scheduling(Scheduling::LegacyContextSwitch {
                    timestamp,
                    cpu: u8::try_from(cpu).unwrap_or(u8::MAX),
                    outgoing_state: ThreadState(out.state),
                    outgoing: out.thread(),
                    incoming: into.thread(),
                    outgoing_priority: u8::try_from(out.prio.unwrap_or(0)).unwrap_or(0),
                    incoming_priority: u8::try_from(into.prio.unwrap_or(0)).unwrap_or(0),
                }),
            ),
            (Some(out), Some(into)) => {
                let weights =
                    [weight(OUTGOING_WEIGHT_ARGUMENT, out.prio), weight(INCOMING_WEIGHT_ARGUMENT, into.prio)];
                let weights: Vec<_> = weights.into_iter().flatten().collect();
                self.writer.at(
                    timestamp.0,
                    &Record::Scheduling(Scheduling::ContextSwitch {
                        timestamp,
                        cpu,
                        outgoing_state: ThreadState(out.state),
                        outgoing: ThreadKoid(Koid(out.tid)),
                        incoming: ThreadKoid(Koid(into.tid)),
                        arguments: Arguments::from_slice(&weights),
                    }),
                )
            }
            _ => {
                let weights: Vec<_> = weight(WEIGHT_ARGUMENT, event.prio).into_iter().collect();
                self.writer.at(
                    timestamp.0,
                    &Record::Scheduling(Scheduling::ThreadWakeup {
                        timestamp,
                        cpu,
                        thread: ThreadKoid(Koid(event.tid)),
                        arguments: Arguments::from_slice(&weights),
                    }),
                )
            }
        };
        if !is_written {
            self.writer.skip("scheduling that cannot be expressed");
        }
    }

    fn system_event(&mut self, event: &SystemEvent<'_>) {
        let name = event.name.as_deref().unwrap_or_default().as_bytes();
        let thread = Thread { process: Koid(event.pid), thread: Koid(event.tid) };
        match event.ph.as_ref() {
            "p" => self.writer.name_process(thread.process, name),
            "t" => self.writer.name_thread(thread, name),
            "k" | "w" => self.scheduling(event),
            other => self.writer.skip(format!("system events of phase {other:?}")),
        }
    }
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
    fn thread(&self) -> ThreadRef {
        thread_ref(Thread { process: Koid(self.pid.unwrap_or(0)), thread: Koid(self.tid) })
    }
}

/// A value that is no text; what has parts is its own text.
//= docs/import.md#arguments
fn plain_value(raw: &str) -> ArgumentValue<'_> {
    match raw.as_bytes().first() {
        Some(b't') => ArgumentValue::Bool(true),
        Some(b'f') => ArgumentValue::Bool(false),
        Some(b'n') => ArgumentValue::Null,
        Some(b'{' | b'[') => ArgumentValue::String(inline(raw.as_bytes())),
        _ => number(raw),
    }
}

fn number(raw: &str) -> ArgumentValue<'_> {
    if let Ok(value) = raw.parse::<i32>() {
        return ArgumentValue::Int32(value);
    }
    if let Ok(value) = raw.parse::<i64>() {
        return ArgumentValue::Int64(value);
    }
    if let Ok(value) = raw.parse::<u64>() {
        return ArgumentValue::Uint64(value);
    }
    ArgumentValue::Double(raw.parse().unwrap_or(f64::NAN))
}
