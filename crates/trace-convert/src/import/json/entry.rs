//! One event of a JSON trace.
//= docs/import.md#events

use super::number::{id, id2, nanos};
use super::numbering::Numbering;
use super::open_operations::OpenOperations;
use super::open_slices::OpenSlices;
use super::plain::{PlainEvent, Span};
use super::postponed::{Part, Postponed};
use super::system::NamedThreads;
use crate::import::ImportError;
use crate::import::waiting::Waiting;
use crate::import::writer::{FLOW, Writer};
use crate::members::{Borrowed, Members};
use crate::{THREAD_DUR, THREAD_TS};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::io::Write;
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::{EventKind, Scope};
use trace_format::refs::StringRef;
use trace_format::units::Ticks;
use trace_linux::Records;
use trace_reader::Thread;

/// The members that are used, with values as they are written; others are skipped.
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
    pub tts: Option<&'a str>,
    pub tdur: Option<&'a str>,
    pub args: Args<'a>,
}

/// Names and values of arguments.
pub(super) enum Args<'a> {
    /// Of an event without escapes in its values.
    Plain {
        text: &'a str,
        places: &'a [(Span, Span)],
    },
    Parsed(Vec<(Cow<'a, str>, &'a RawValue)>),
}

impl Args<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Plain { places, .. } => places.len(),
            Self::Parsed(args) => args.len(),
        }
    }

    /// A name, and the value as it is written.
    fn get(&self, number: usize) -> Option<(&str, &str)> {
        match self {
            Self::Plain { text, places } => {
                let (name, value) = places.get(number)?;
                let name = name.range();
                Some((text.get(name.start + 1..name.end - 1)?, text.get(value.range())?))
            }
            Self::Parsed(args) => args.get(number).map(|(name, value)| (&**name, value.get())),
        }
    }
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
    s: Option<&'a RawValue>,
    #[serde(borrow)]
    bp: Option<&'a RawValue>,
    #[serde(borrow)]
    bind_id: Option<&'a RawValue>,
    #[serde(borrow)]
    flow_in: Option<&'a RawValue>,
    #[serde(borrow)]
    flow_out: Option<&'a RawValue>,
    #[serde(borrow)]
    tts: Option<&'a RawValue>,
    #[serde(borrow)]
    tdur: Option<&'a RawValue>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl<'a> RawEntry<'a> {
    fn entry(self) -> Result<Entry<'a>, serde_json::Error> {
        let args = match self.args {
            Some(args) if args.get().starts_with('{') => serde_json::from_str::<Members<'_>>(args.get())?.0,
            Some(args) if args.get() != "null" => vec![(Cow::Borrowed("args"), args)],
            _ => Vec::new(),
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
            s: self.s.map(|s| text(s.get())).transpose()?,
            bp: self.bp.map(|bp| text(bp.get())).transpose()?,
            bind_id: self.bind_id.map(RawValue::get),
            flow_in: is_true(self.flow_in),
            flow_out: is_true(self.flow_out),
            tts: self.tts.map(RawValue::get),
            tdur: self.tdur.map(RawValue::get),
            args: Args::Parsed(args),
        })
    }
}

fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// Whether a text is an event: it has a phase, and a time or a process.
pub(super) fn is_event(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        ph: Cow<'a, str>,
        ts: Option<IgnoredAny>,
        pid: Option<IgnoredAny>,
    }

    serde_json::from_slice::<Event<'_>>(text)
        .is_ok_and(|event| !event.ph.is_empty() && (event.ts.is_some() || event.pid.is_some()))
}

/// Text, or the text of another value.
pub(super) fn text(raw: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let Some(text) = raw.strip_prefix('"') else {
        return Ok(Cow::Borrowed(raw));
    };
    match text.strip_suffix('"').filter(|plain| !plain.contains('\\')) {
        Some(plain) => Ok(Cow::Borrowed(plain)),
        None => serde_json::from_str::<Borrowed<'_>>(raw).map(|text| text.0),
    }
}

/// Text without escapes, or the text of another value.
#[inline]
fn plain_text(raw: &str) -> &str {
    raw.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(raw)
}

/// The texts of an entry, without their escapes.
struct Texts<'a> {
    category: Cow<'a, str>,
    name: Cow<'a, str>,
    /// The text of each argument; none if it is not text. Of a plain event there are none.
    arguments: Vec<Option<Cow<'a, str>>>,
}

impl<'a> Texts<'a> {
    #[inline]
    fn of(entry: &Entry<'a>) -> Result<Self, serde_json::Error> {
        if let Args::Plain { .. } = entry.args {
            let plain = |raw: Option<&'a str>| Cow::Borrowed(raw.map_or("", plain_text));
            return Ok(Self { category: plain(entry.cat), name: plain(entry.name), arguments: Vec::new() });
        }
        let text_or_empty = |raw: Option<&'a str>| raw.map_or(Ok(Cow::default()), text);
        let (category, name) = (text_or_empty(entry.cat)?, text_or_empty(entry.name)?);
        let mut arguments = Vec::new();
        if let Args::Parsed(args) = &entry.args {
            arguments.reserve_exact(args.len());
            for (_, raw) in args {
                let raw = raw.get();
                arguments.push(if raw.starts_with('"') { Some(text(raw)?) } else { None });
            }
        }
        Ok(Self { category, name, arguments })
    }

    /// The text of an argument; none if it is not text.
    #[inline]
    fn argument<'t>(&'t self, entry: &'t Entry<'_>, number: usize) -> Option<&'t str> {
        match entry.args {
            Args::Plain { .. } => {
                let (_, raw) = entry.args.get(number)?;
                raw.starts_with('"').then(|| plain_text(raw))
            }
            Args::Parsed(_) => self.arguments.get(number)?.as_deref(),
        }
    }
}

/// Most events have no more.
type Few<T> = SmallVec<[T; 6]>;

pub(super) struct Importer<W> {
    pub writer: Writer<W>,
    pub numbering: Numbering,
    /// From the first text on that has no number yet.
    pub postponed: Option<Postponed>,
    /// Ends of flows that go to their thread's next slice.
    waiting: Waiting,
    open_slices: OpenSlices,
    open_operations: OpenOperations,
    pub named_threads: NamedThreads,
    /// Objects in lists of events so far.
    pub objects: u64,
    /// At least one of them is an event.
    pub has_phases: bool,
    /// The archive has contents of the file.
    pub has_any: bool,
}

impl<W: Write> Importer<W> {
    pub fn new(writer: Writer<W>) -> Self {
        Self {
            writer,
            numbering: Numbering::default(),
            postponed: None,
            waiting: Waiting::default(),
            open_slices: OpenSlices::default(),
            open_operations: OpenOperations::default(),
            named_threads: NamedThreads::default(),
            objects: 0,
            has_phases: false,
            has_any: false,
        }
    }

    /// Works off what has waited for numbers.
    pub fn catch_up(&mut self) -> Result<(), ImportError> {
        self.numbering.complete();
        let Some(postponed) = self.postponed.take() else { return Ok(()) };
        let mut parts = postponed.parts().map_err(ImportError::Wait)?;
        while let Some((part, text)) = parts.next().map_err(ImportError::Wait)? {
            // All of it was read before.
            let _ = match part {
                Part::Event => self.event(text),
                Part::SystemEvent => self.system_event(text),
                Part::SystemText => {
                    self.system_text(&String::from_utf8_lossy(text))?;
                    Ok(())
                }
            };
            self.writer.flush_if_full().map_err(ImportError::Write)?;
        }
        Ok(())
    }

    /// Writes data that waited for a slice that never came.
    pub fn end(&mut self) -> Result<(), serde_json::Error> {
        self.waiting.rest().iter().try_for_each(|(_, at, event)| self.event_at(event, Some(*at)))
    }

    /// Ends of flows that have waited for this slice.
    //= docs/import.md#events
    fn slice_begins(&mut self, thread: Thread, at: u64) -> Result<(), serde_json::Error> {
        self.waiting.take(thread, at).iter().try_for_each(|event| self.event_at(event, Some(at)))
    }

    pub fn event(&mut self, text_of_event: &[u8]) -> Result<(), serde_json::Error> {
        self.event_at(text_of_event, None)
    }

    /// An event of the usual form; false if it is none, and nothing was done.
    pub fn plain_event(&mut self, event: &PlainEvent, text: &[u8], arguments: &[(Span, Span)]) -> bool {
        event.entry(text, arguments).is_some_and(|entry| self.entry(&entry, text, None).is_ok())
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
        // Before anything is written or counted.
        let texts = Texts::of(entry)?;
        let thread = self.numbering.thread((entry.pid, entry.tid), &mut self.writer)?;
        let Some(thread) = thread.filter(|_| self.postponed.is_none()) else {
            self.postponed.get_or_insert_default().push(Part::Event, text_of_event);
            return Ok(());
        };
        let phase = entry.ph.as_deref().unwrap_or_default();
        self.objects += 1;
        self.has_phases |= !phase.is_empty();
        if phase == "M" {
            self.metadata(entry, &texts, thread);
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
        let own_id = || entry.id.map(id).or(entry.id2.map(id2)).unwrap_or(0);
        let kind = match phase {
            "B" => {
                self.open_slices.begin(thread, at, &texts.category, &texts.name);
                EventKind::DurationBegin
            }
            "E" => {
                let Some(within) = self.open_slices.end(thread, at, &texts.category, &texts.name) else {
                    self.writer.skip("ends of slices that ended with another");
                    return Ok(());
                };
                for _ in 0..within {
                    self.writer.event(at, thread, b"", b"", EventKind::DurationEnd, &[]);
                }
                EventKind::DurationEnd
            }
            "X" => {
                let length = entry.dur.map_or(Some(0), nanos);
                let Some(end) = length.and_then(|length| at.checked_add(length)).map(Ticks) else {
                    self.writer.skip("complete durations whose length cannot be expressed");
                    return Ok(());
                };
                EventKind::DurationComplete { end }
            }
            "i" | "I" | "R" => EventKind::Instant {
                scope: match entry.s.as_deref() {
                    Some("g") => Scope::Global,
                    Some("p") => Scope::Process,
                    _ => Scope::Thread,
                },
            },
            "C" => EventKind::Counter { id: own_id() },
            "b" | "S" => {
                let id = own_id();
                self.open_operations.begin(thread.process, &texts.category, id, &texts.name, at);
                EventKind::AsyncBegin { id }
            }
            "n" | "T" | "p" => EventKind::AsyncInstant { id: own_id() },
            "e" | "F" => {
                let id = own_id();
                let id = self.open_operations.end(thread.process, &texts.category, id, &texts.name, at);
                EventKind::AsyncEnd { id }
            }
            "s" => EventKind::FlowBegin { id: own_id() },
            "t" => EventKind::FlowStep { id: own_id() },
            "f" => EventKind::FlowEnd { id: own_id() },
            other => {
                let is_phase = other.chars().nth(1).is_none();
                self.writer.skip(match is_phase {
                    true => format!("events of phase {other:?}"),
                    false => "events of other phases".to_owned(),
                });
                return Ok(());
            }
        };
        self.write(at, thread, &texts, kind, entry);
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

    fn write(&mut self, at: u64, thread: Thread, texts: &Texts<'_>, kind: EventKind, entry: &Entry<'_>) {
        let is_counter = matches!(kind, EventKind::Counter { .. });
        let mut arguments = Few::new();
        for place in 0..entry.args.len() {
            let Some((name, raw)) = entry.args.get(place) else { break };
            let name = self.writer.string(name.as_bytes());
            let value = match texts.argument(entry, place) {
                Some(text) if is_counter && is_number(text) => number(text.trim()),
                Some(text) => ArgumentValue::String(self.writer.string(text.as_bytes())),
                None => plain_value(raw),
            };
            arguments.push(Argument { name, value });
        }
        if entry.tts.is_some() || entry.tdur.is_some() {
            self.thread_times(entry, is_counter, &mut arguments);
        }
        self.has_any = true;
        self.writer.event(at, thread, texts.category.as_bytes(), texts.name.as_bytes(), kind, &arguments);
    }

    /// The times of the thread's clock become arguments.
    //= docs/import.md#thread-times
    fn thread_times(&mut self, entry: &Entry<'_>, is_counter: bool, arguments: &mut Few<Argument<'_>>) {
        for (name, raw) in [(THREAD_TS, entry.tts), (THREAD_DUR, entry.tdur)] {
            let Some(raw) = raw else { continue };
            match nanos(raw) {
                None => self.writer.skip("thread times that cannot be expressed"),
                // They would become series of the counter.
                Some(_) if is_counter => self.writer.skip("thread times of counters"),
                Some(time) => {
                    let name = self.writer.string(name.as_bytes());
                    arguments.push(Argument { name, value: whole(time) });
                }
            }
        }
    }

    /// Names of processes and threads.
    fn metadata(&mut self, entry: &Entry<'_>, texts: &Texts<'_>, thread: Thread) {
        let mut numbers = (0..entry.args.len())
            .filter(|number| entry.args.get(*number).is_some_and(|(key, _)| key == "name"));
        let name = numbers.find_map(|number| texts.argument(entry, number));
        self.has_any |= name.is_some();
        match (&*texts.name, name) {
            ("process_name", Some(name)) => self.writer.name_process(thread.process, name.as_bytes()),
            ("thread_name", Some(name)) => self.writer.name_thread(thread, name.as_bytes()),
            (other, _) => self.writer.skip(format!("metadata {other}")),
        }
    }

    /// Counts an event that is not valid JSON, or so many of which none can be read.
    //= docs/import.md#what-is-no-json
    pub fn malformed(&mut self, error: &ImportError, skipped: u64) {
        self.writer.skip_many("events that cannot be read", skipped);
        let fate = match skipped {
            0 => String::new(),
            1 => ": skipped".to_owned(),
            more => format!(": {more} events skipped"),
        };
        self.writer.malformed(format!("{error}{fate}"), skipped.max(1));
    }
}

/// A value that is not text; a list or object is represented by its JSON text.
//= docs/import.md#arguments
fn plain_value(raw: &str) -> ArgumentValue<'_> {
    match raw.as_bytes().first() {
        Some(b't') => ArgumentValue::Bool(true),
        Some(b'f') => ArgumentValue::Bool(false),
        Some(b'n') => ArgumentValue::Null,
        Some(b'{' | b'[') => ArgumentValue::String(StringRef::inline(raw)),
        _ => number(raw),
    }
}

fn number(raw: &str) -> ArgumentValue<'_> {
    if let Ok(value) = raw.parse::<i64>() {
        return i32::try_from(value).map_or(ArgumentValue::Int64(value), ArgumentValue::Int32);
    }
    if let Ok(value) = raw.parse::<u64>() {
        return ArgumentValue::Uint64(value);
    }
    ArgumentValue::Double(raw.parse().unwrap_or(f64::NAN))
}

fn whole(value: u64) -> ArgumentValue<'static> {
    if let Ok(value) = i32::try_from(value) {
        return ArgumentValue::Int32(value);
    }
    i64::try_from(value).map_or(ArgumentValue::Uint64(value), ArgumentValue::Int64)
}

/// Whether a text is a number in decimal.
fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok_and(f64::is_finite)
}
