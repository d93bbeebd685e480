//! Track events as events of an archive.
//= docs/import.md#track-events

use super::Importer;
use super::koid;
use super::lanes::waiting;
use super::sequence::{Names, Sequence, sequence};
use super::tracks::{INSTRUCTIONS_NAME, THREAD_TIME_NAME, TrackScope};
use crate::export::perfetto::messages::{
    DebugAnnotation, LegacyEvent, TYPE_COUNTER, TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END, TrackEvent,
};
use crate::import::writer::{FLOW, FLOWS_OF_OPERATIONS, WAITING, Writer};
use foldhash::HashSet;
use std::borrow::Cow;
use std::io::Write;
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::{EventKind, Scope};
use trace_format::refs::StringRef;
use trace_format::units::{Koid, Ticks};
use trace_linux::{MAX_STRING_BYTES, Records};
use trace_reader::Thread;

/// Maximum depth of nested values.
const MAX_DEPTH: usize = 32;
const SCOPE_GLOBAL: i32 = 1;
const SCOPE_PROCESS: i32 = 2;
const SCOPE_THREAD: i32 = 3;
/// The phase of names of processes and threads.
const METADATA: u8 = b'M';
const FLOW_IN: i32 = 1;
const FLOW_OUT: i32 = 2;
const FLOW_INOUT: i32 = 3;

/// What the names of an event's arguments may take: each nested one has those around it in its own.
const MAX_NESTED_BYTES: usize = 16 << 20;

/// Leaf values.
#[derive(Default)]
struct Flat<'a> {
    /// Names and values, whose text is still to be put into the table.
    arguments: Vec<(Cow<'a, str>, ArgumentValue<'a>)>,
    /// What the names take.
    bytes: usize,
    /// The number of further values.
    rest: usize,
}

fn lookup<'a>(names: &'a Names, iid: Option<u64>, text: Option<&'a str>) -> &'a str {
    text.or_else(|| names.get(&iid?).map(|name| &*name.text)).unwrap_or_default()
}

/// Categories with commas between, cut at the limit of a text.
fn joined(categories: &[&str]) -> String {
    let mut all = String::new();
    for (number, category) in categories.iter().enumerate() {
        if all.len() > MAX_STRING_BYTES {
            break;
        }
        all.push_str(if number == 0 { "" } else { "," });
        all.push_str(category);
    }
    all
}

/// The contents of an event, without its time and position.
struct Resolved<'a> {
    category: Cow<'a, str>,
    name: &'a str,
    arguments: Flat<'a>,
}

impl<'a> Resolved<'a> {
    fn new(sequence: &'a Sequence, event: &'a TrackEvent) -> Self {
        let interned = event.category_iids.iter().filter_map(|iid| sequence.categories.get(iid));
        let categories = interned.map(|name| &*name.text).chain(event.categories.iter().map(String::as_str));
        // More do not fit, as there is a comma between two.
        let categories: Vec<&str> = categories.take(MAX_STRING_BYTES).collect();
        let category = match categories.as_slice() {
            [one] => Cow::Borrowed(*one),
            several => Cow::Owned(joined(several)),
        };
        let legacy = event.legacy_event.as_ref().and_then(|legacy| legacy.name_iid);
        let name = lookup(&sequence.names, event.name_iid.or(legacy), event.name.as_deref());
        let mut arguments = Flat::default();
        for annotation in &event.debug_annotations {
            flatten(&mut arguments, sequence, "", annotation, MAX_DEPTH);
        }
        Self { category, name, arguments }
    }
}

/// Nested values have the names of both levels, as Perfetto shows them.
//= docs/import.md#track-events
fn flatten<'a>(
    flat: &mut Flat<'a>,
    sequence: &'a Sequence,
    prefix: &str,
    annotation: &'a DebugAnnotation,
    depth: usize,
) {
    if flat.bytes >= MAX_NESTED_BYTES {
        flat.rest += leaves(annotation, depth);
        return;
    }
    let own = lookup(&sequence.argument_names, annotation.name_iid, annotation.name.as_deref());
    let name = match (prefix, own) {
        ("", own) => Cow::Borrowed(own),
        (prefix, "") => Cow::Owned(prefix.to_owned()),
        (prefix, own) => Cow::Owned(format!("{prefix}.{own}")),
    };
    if depth > 0 && !annotation.dict_entries.is_empty() {
        return annotation
            .dict_entries
            .iter()
            .for_each(|entry| flatten(flat, sequence, &name, entry, depth - 1));
    }
    if depth > 0 && !annotation.array_values.is_empty() {
        for (number, entry) in annotation.array_values.iter().enumerate() {
            if flat.bytes < MAX_NESTED_BYTES {
                flatten(flat, sequence, &format!("{name}[{number}]"), entry, depth - 1);
            } else {
                flat.rest += leaves(entry, depth - 1);
            }
        }
        return;
    }
    let text = annotation.string_value.as_deref().or(annotation.legacy_json_value.as_deref());
    let interned = || sequence.argument_texts.get(&annotation.string_value_iid?).map(|name| &*name.text);
    let value = if let Some(value) = annotation.bool_value {
        ArgumentValue::Bool(value)
    } else if let Some(value) = annotation.uint_value {
        ArgumentValue::Uint64(value)
    } else if let Some(value) = annotation.int_value {
        ArgumentValue::Int64(value)
    } else if let Some(value) = annotation.double_value {
        ArgumentValue::Double(value)
    } else if let Some(value) = annotation.pointer_value {
        ArgumentValue::Pointer(value)
    } else if let Some(text) = text.or_else(interned) {
        ArgumentValue::String(StringRef::inline(text))
    } else {
        ArgumentValue::Null
    };
    flat.bytes += name.len();
    flat.arguments.push((name, value));
}

/// The number of leaf values in a value.
fn leaves(annotation: &DebugAnnotation, depth: usize) -> usize {
    let inner = match (annotation.dict_entries.as_slice(), annotation.array_values.as_slice()) {
        ([], []) => return 1,
        ([], entries) | (entries, _) => entries,
    };
    if depth == 0 {
        return 1;
    }
    inner.iter().map(|entry| leaves(entry, depth - 1)).sum()
}

/// The older way to attach a flow to a slice; an error if the direction is missing.
fn bound_flow(event: &TrackEvent) -> Result<Option<EventKind>, ()> {
    let Some(legacy) = &event.legacy_event else { return Ok(None) };
    let Some(id) = legacy.bind_id else { return Ok(None) };
    match legacy.flow_direction {
        Some(FLOW_IN) => Ok(Some(EventKind::FlowEnd { id })),
        Some(FLOW_OUT) => Ok(Some(EventKind::FlowBegin { id })),
        Some(FLOW_INOUT) => Ok(Some(EventKind::FlowStep { id })),
        _ => Err(()),
    }
}

/// Flows that pass through an event, and those that end there.
fn flows(event: &TrackEvent) -> impl Iterator<Item = EventKind> {
    let bound = bound_flow(event).ok().flatten();
    let steps = event.flow_ids.iter().chain(&event.flow_ids_old);
    let ends = event.terminating_flow_ids.iter().chain(&event.terminating_flow_ids_old);
    // The order decides which of them begins.
    let steps = steps.map(|&id| EventKind::FlowStep { id });
    bound.into_iter().chain(steps).chain(ends.map(|&id| EventKind::FlowEnd { id }))
}

impl<W: Write> Importer<W> {
    pub(super) fn event(&mut self, id: u32, at: u64, event: &TrackEvent) {
        let Some(sequence) = sequence(&mut self.sequences, &mut self.room, id) else { return };
        let resolved = Resolved::new(sequence, event);
        let uuid = event.track_uuid.or(sequence.track).unwrap_or(0);
        // Track 0 belongs to no thread if an event asks for it, but older events belong to their sequence's
        // thread.
        let is_older = event.track_uuid.is_none() || event.kind.is_none();
        let place = match sequence.thread.filter(|_| uuid == 0 && is_older) {
            Some(thread) => TrackScope::Thread(thread),
            None => self.tracks.place(uuid),
        };
        let place = event.legacy_event.as_ref().map_or(place, |legacy| overridden(place, legacy));
        let phase = event.legacy_event.as_ref().and_then(|legacy| u8::try_from(legacy.phase?).ok());
        if phase == Some(METADATA) {
            let (writer, described) = (&mut self.kernel.writer, &self.described);
            return metadata(writer, described, place.thread(), resolved.name, event);
        }
        // Where slices are; instants and older events of processes are on the main thread.
        let is_lane = matches!(place, TrackScope::Lane(_));
        let is_slice = matches!(event.kind, Some(TYPE_SLICE_BEGIN | TYPE_SLICE_END));
        let thread = if is_lane || is_slice && place.waits() { waiting(uuid) } else { place.thread() };
        let has_flows = flows(event).next().is_some();
        if thread == waiting(uuid) && (has_flows || matches!(phase, Some(b's' | b't' | b'f'))) {
            self.lanes.has_flow(&mut self.room, uuid, resolved.name);
        }
        let writer = &mut self.kernel.writer;
        writer.skip_many("arguments whose names exceed 16 MiB", resolved.arguments.rest as u64);
        writer.skip_many("flows without a direction", bound_flow(event).is_err().into());
        let mut arguments = Vec::with_capacity(resolved.arguments.arguments.len());
        for (name, value) in &resolved.arguments.arguments {
            let value = match value {
                ArgumentValue::String(StringRef::Inline(text)) => ArgumentValue::String(writer.string(text)),
                other => *other,
            };
            arguments.push(Argument { name: writer.string(name.as_bytes()), value });
        }
        let mut write = |place: Thread, at: u64, kind: EventKind, arguments: &[Argument<'_>]| {
            let (category, name) = match kind {
                // All parts of a flow have one name.
                EventKind::FlowBegin { .. } | EventKind::FlowStep { .. } | EventKind::FlowEnd { .. }
                    if has_flows =>
                {
                    (FLOW, FLOW)
                }
                _ => (resolved.category.as_bytes(), resolved.name.as_bytes()),
            };
            writer.event(at, place, category, name, kind, arguments);
        };
        let mut lost_flows = false;
        let begins_slice = match event.kind.unwrap_or(0) {
            TYPE_SLICE_BEGIN => true,
            0 => matches!(phase, Some(b'B' | b'X')),
            _ => false,
        };
        match event.kind.unwrap_or(0) {
            TYPE_SLICE_BEGIN => {
                write(thread, at, EventKind::DurationBegin, &arguments);
                flows(event).for_each(|flow| write(thread, at, flow, &[]));
            }
            TYPE_SLICE_END => {
                flows(event).for_each(|flow| write(thread, at, flow, &[]));
                write(thread, at, EventKind::DurationEnd, &arguments);
            }
            TYPE_INSTANT => instant(&mut write, at, (thread, place), event, &arguments),
            TYPE_COUNTER => {}
            _ => match &event.legacy_event {
                Some(legacy)
                    if phase == Some(b'f')
                        && legacy.bind_to_enclosing != Some(true)
                        && self.waiting.push(thread, at, &flow_end(legacy, &resolved)) =>
                {
                    writer.skip_many("arguments of flows", arguments.len() as u64);
                }
                Some(legacy) => {
                    match legacy_event(&mut write, at, (thread, place), (event, legacy), &arguments) {
                        Ok(lost) => lost_flows = lost,
                        Err(phase) => writer.skip(format!("events of phase {phase:?}")),
                    }
                }
                None => writer.skip("track events without a type"),
            },
        }
        if lost_flows {
            self.kernel.writer.skip(FLOWS_OF_OPERATIONS);
        }
        if begins_slice {
            for end in self.waiting.take(thread, at) {
                self.flow_end(thread, at, &end);
            }
        }
        self.counters(id, at, (uuid, place), event);
    }

    /// Writes the end of a flow that has waited for a slice.
    pub(super) fn flow_end(&mut self, thread: Thread, at: u64, end: &[u8]) {
        let Some((id, rest)) = end.split_first_chunk() else { return };
        let (category, name) = rest.split_at(rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len()));
        let kind = EventKind::FlowEnd { id: u64::from_le_bytes(*id) };
        self.kernel.writer.event(at, thread, category, name.get(1..).unwrap_or_default(), kind, &[]);
    }

    /// The counters of an event, on its own track or additional ones.
    fn counters(&mut self, id: u32, at: u64, (uuid, place): (u64, TrackScope), event: &TrackEvent) {
        let Some(sequence) = sequence(&mut self.sequences, &mut self.room, id) else { return };
        let own = (event.kind == Some(TYPE_COUNTER)).then_some(uuid);
        let tracks = [&event.extra_counter_track_uuids, &sequence.counters];
        let tracks = tracks.into_iter().find(|tracks| !tracks.is_empty());
        let whole = own
            .zip(event.counter_value)
            .into_iter()
            .chain(tracks.into_iter().flatten().copied().zip(event.extra_counter_values.iter().copied()));
        let mut values = Vec::new();
        for (uuid, value) in whole {
            let counter = self.tracks.counter(uuid);
            let mut value = value.saturating_mul(counter.multiplier);
            if counter.is_incremental {
                value = sequence.sums.add(&mut self.room, uuid, value);
            }
            values.push((uuid, ArgumentValue::Int64(value)));
        }
        let tracks = [&event.extra_double_counter_track_uuids, &sequence.double_counters];
        let tracks = tracks.into_iter().find(|tracks| !tracks.is_empty());
        let doubles = own.zip(event.double_counter_value).into_iter().chain(
            tracks.into_iter().flatten().copied().zip(event.extra_double_counter_values.iter().copied()),
        );
        values.extend(doubles.map(|(uuid, value)| (uuid, ArgumentValue::Double(value))));
        let (time, instructions) = sequence.thread_counters(event);
        for (uuid, value) in values {
            if !self.tracks.is_described(uuid) {
                self.wait(at, uuid, value);
                continue;
            }
            let thread = self.tracks.place(uuid).thread();
            let counter =
                EventKind::Counter { id: self.tracks.counter_id(&mut self.room, thread.process, uuid) };
            let name = self.tracks.name(uuid).unwrap_or_default().to_owned();
            self.count(at, thread, &name, counter, value);
        }
        for (name, value) in [(THREAD_TIME_NAME, time), (INSTRUCTIONS_NAME, instructions)] {
            if let Some(value) = value {
                // One counter for each thread.
                let thread = place.thread();
                let counter = EventKind::Counter { id: thread.thread.0 };
                self.count(at, thread, name, counter, ArgumentValue::Int64(value));
            }
        }
    }

    /// Writes a value of a counter whose description comes later, if it comes.
    fn wait(&mut self, at: u64, uuid: u64, value: ArgumentValue<'_>) {
        let value = Argument { name: StringRef::Empty, value };
        let kind = EventKind::Counter { id: 0 };
        self.kernel.writer.event(at, waiting(uuid), b"", b"", kind, &[value]);
    }

    fn count(&mut self, at: u64, thread: Thread, name: &str, kind: EventKind, value: ArgumentValue<'_>) {
        let writer = &mut self.kernel.writer;
        let value = Argument { name: writer.string(b"value"), value };
        writer.event(at, thread, b"", name.as_bytes(), kind, &[value]);
    }
}

/// The end of a flow while it waits: its id, its category, a zero byte, its name.
fn flow_end(legacy: &LegacyEvent, resolved: &Resolved<'_>) -> Vec<u8> {
    let category = resolved.category.replace('\0', "");
    [&older_id(legacy).to_le_bytes(), category.as_bytes(), b"\0", resolved.name.as_bytes()].concat()
}

fn older_id(legacy: &LegacyEvent) -> u64 {
    legacy.unscoped_id.or(legacy.local_id).or(legacy.global_id).unwrap_or(0)
}

/// The older way to name a thread or a process, for those that no descriptor has named.
fn metadata(
    writer: &mut Writer<impl Write>,
    described: &HashSet<Thread>,
    thread: Thread,
    what: &str,
    event: &TrackEvent,
) {
    let name = event.debug_annotations.first().and_then(|value| value.string_value.as_deref());
    let name = name.filter(|name| !name.is_empty());
    let is_known = |thread| described.contains(&thread);
    match (what, name) {
        ("process_name", _) if is_known(Thread { thread: Koid(0), ..thread }) => {}
        ("thread_name", _) if is_known(thread) => {}
        ("process_name", Some(name)) => writer.name_process(thread.process, name.as_bytes()),
        ("thread_name", Some(name)) => writer.name_thread(thread, name.as_bytes()),
        ("process_name" | "thread_name", None) => {}
        (other, _) => writer.skip(format!("metadata {other}")),
    }
}

/// The older kind of event; an error is a phase that has no record. True if its flows are lost.
fn legacy_event(
    write: &mut impl FnMut(Thread, u64, EventKind, &[Argument<'_>]),
    at: u64,
    (thread, place): (Thread, TrackScope),
    (event, legacy): (&TrackEvent, &LegacyEvent),
    arguments: &[Argument<'_>],
) -> Result<bool, char> {
    let id = older_id(legacy);
    let phase = u8::try_from(legacy.phase.unwrap_or(0)).unwrap_or(b'?');
    let kind = match phase {
        b'B' => {
            write(thread, at, EventKind::DurationBegin, arguments);
            flows(event).for_each(|flow| write(thread, at, flow, &[]));
            return Ok(false);
        }
        b'E' => {
            flows(event).for_each(|flow| write(thread, at, flow, &[]));
            write(thread, at, EventKind::DurationEnd, arguments);
            return Ok(false);
        }
        b'X' => {
            let length = u64::try_from(legacy.duration_us.unwrap_or(0)).unwrap_or(0).saturating_mul(1000);
            let end = at.saturating_add(length);
            if flows(event).next().is_none() && !matches!(place, TrackScope::Lane(_)) {
                write(thread, at, EventKind::DurationComplete { end: Ticks(end) }, arguments);
                return Ok(false);
            }
            write(thread, at, EventKind::DurationBegin, arguments);
            flows(event).for_each(|flow| write(thread, at, flow, &[]));
            write(thread, end, EventKind::DurationEnd, &[]);
            return Ok(false);
        }
        b'I' | b'i' | b'R' => {
            let (thread, place) = match legacy.instant_event_scope {
                Some(SCOPE_GLOBAL) => (Thread::default(), TrackScope::Global),
                Some(SCOPE_PROCESS) => (thread, TrackScope::Process(thread)),
                Some(SCOPE_THREAD) => (thread, TrackScope::Thread(thread)),
                _ => (thread, place),
            };
            instant(write, at, (thread, place), event, arguments);
            return Ok(false);
        }
        b'b' | b'S' => EventKind::AsyncBegin { id },
        b'n' | b'T' | b'p' => EventKind::AsyncInstant { id },
        b'e' | b'F' => EventKind::AsyncEnd { id },
        b's' => EventKind::FlowBegin { id },
        b't' => EventKind::FlowStep { id },
        b'f' => EventKind::FlowEnd { id },
        other => return Err(char::from(other)),
    };
    write(thread, at, kind, arguments);
    Ok(flows(event).next().is_some())
}

/// An instant. If flows pass through it, it becomes a span without length, for flows pass through spans.
fn instant(
    write: &mut impl FnMut(Thread, u64, EventKind, &[Argument<'_>]),
    at: u64,
    (thread, place): (Thread, TrackScope),
    event: &TrackEvent,
    arguments: &[Argument<'_>],
) {
    let scope = match place {
        // The owner of the track is known later.
        _ if thread.process == WAITING => Scope::Thread,
        TrackScope::Thread(_) | TrackScope::Lane(_) => Scope::Thread,
        TrackScope::Process(_) => Scope::Process,
        TrackScope::Global => Scope::Global,
    };
    if flows(event).next().is_none() {
        return write(thread, at, EventKind::Instant { scope }, arguments);
    }
    write(thread, at, EventKind::DurationBegin, arguments);
    flows(event).for_each(|flow| write(thread, at, flow, &[]));
    write(thread, at, EventKind::DurationEnd, &[]);
}

/// Older events may have their own process and thread.
fn overridden(place: TrackScope, legacy: &LegacyEvent) -> TrackScope {
    if legacy.pid_override.is_none() && legacy.tid_override.is_none() {
        return place;
    }
    let own = place.thread();
    TrackScope::Thread(Thread {
        process: legacy.pid_override.map_or(own.process, koid),
        thread: legacy.tid_override.map_or(own.thread, koid),
    })
}
