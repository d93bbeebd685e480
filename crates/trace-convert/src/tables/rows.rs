//! Rows of the records of an archive.

mod arguments;
mod blobs;
mod finish;
mod profile;
mod providers;
mod scheduling;
mod session;
mod slice;
mod whose;

use super::spans::{Late, Of, Open, Role, Spans};
use super::{Cell, ColumnSet, KINDS, Kind, Rows};
use crate::filter::{Filter, Selected};
use crate::filtered::process_of;
use crate::members::{distinct, joined};
use crate::{ConvertError, Summary, source};
use arguments::{KnownTexts, Objects};
use profile::Samples;
use providers::Providers;
use scheduling::Running;
use session::Session;
pub use session::{Origin, origin};
use slice::Slice;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read};
use trace_format::event::{EventKind, Scope};
use trace_format::kernel_object::{TYPE_CHANNEL, TYPE_PROCESS, TYPE_THREAD};
use trace_format::units::{Koid, ProviderId, Ticks};
use trace_model::{Ended, Partings, parent_operation_of, poll_of};
use trace_reader::{
    Disorder, DisorderFinder, Event, Item, MANAGER, Mark, Names, Resolved, Text, Thread, Time,
};
use whose::{ThreadNames, Whose};

/// Fills tables from an archive, after an earlier pass has found its disorder.
///
/// # Errors
/// The input is no archive or cannot be read, or a row cannot be written.
pub fn fill(
    input: impl Read,
    disorder: &Disorder,
    rows: &mut impl Rows,
    filter: Filter,
) -> Result<Summary, ConvertError> {
    let mut filler = Filler::new(disorder, rows, filter);
    let end = source::for_each(input, |record| filler.record(record))?;
    filler.finish(end)
}

/// How an archive was read whose order was not known.
pub enum FirstPass {
    /// All rows are right. Another pass takes this disorder, which is none but for names.
    InOrder(Summary, Disorder),
    /// Begins and ends are out of order, or something was named behind its rows: these are of no use, and the
    /// tables are to be filled anew with this.
    OutOfOrder(Disorder),
}

/// The same where the archive's order is not known.
///
/// # Errors
/// As of [`fill`].
pub fn fill_in_order(
    input: impl Read,
    rows: &mut impl Rows,
    filter: Filter,
) -> Result<FirstPass, ConvertError> {
    let in_order = Disorder::default();
    let mut filler = Filler::new(&in_order, rows, filter);
    let mut finder = DisorderFinder::default();
    let mut end = source::for_each(input, |record| {
        if let Item::Event(event) = &record.item
            && !matches!(event.kind, EventKind::DurationComplete { .. })
        {
            finder.event(event);
        }
        if finder.has_parts_in_order() { filler.record(record) } else { Ok(()) }
    })?;
    let disorder = finder.finish().with_names(std::mem::take(&mut end.names));
    if !disorder.has_parts_in_order() || filler.is_named_late {
        return Ok(FirstPass::OutOfOrder(disorder));
    }
    Ok(FirstPass::InOrder(filler.finish(end)?, disorder))
}

/// The remark about operations in more than one process.
const CROSSING: &str = "asynchronous operations with their end in another process";
/// The remark about operations with two names.
const MISNAMED: &str = "asynchronous operations with another name at their end";

struct Filler<'a, R> {
    rows: &'a mut R,
    wanted: ColumnSet,
    /// By table: whether names of threads, and whether arguments are wanted.
    has_names: [bool; KINDS],
    has_args: [bool; KINDS],
    /// Whether it is wanted which operations slices belong to.
    has_operations: bool,
    /// By table: whether categories and names of events are wanted.
    has_category: [bool; KINDS],
    has_name: [bool; KINDS],
    selection: Selected,
    spans: Spans,
    partings: Partings,
    late: Late<'a>,
    /// Operations that ended in another process than they began in.
    crossing: u64,
    /// Operations that ended with another name than they began with.
    misnamed: u64,
    running: HashMap<u16, Running>,
    processes: BTreeMap<Koid, String>,
    threads: ThreadNames,
    /// A process or thread was named behind rows that have its name.
    is_named_late: bool,
    /// The names at the end of the trace, if they are known.
    names: Option<&'a Names>,
    /// Threads that occur, numbered from 1.
    seen: HashMap<Thread, i64, foldhash::fast::RandomState>,
    /// Their processes.
    seen_processes: HashSet<Koid, foldhash::fast::RandomState>,
    /// The thread of the last event, with its number.
    last_thread: (Thread, i64),
    providers: Providers,
    session: Session,
    /// Whether events about the session are looked at.
    has_session: bool,
    samples: Samples,
    /// A large blob whose pieces come.
    large: Option<blobs::Unfinished>,
    /// How many slices there are.
    slices: i64,
    objects: Option<Objects>,
    /// Categories and names of complete events.
    categories: KnownTexts,
    event_names: KnownTexts,
    skipped: BTreeMap<&'static str, u64>,
    events: u64,
}

fn nanos(time: Time) -> i64 {
    i64::try_from(time.nanos().0).unwrap_or(i64::MAX)
}

fn integer(value: u64) -> Cell<'static> {
    Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn text_if(is_wanted: bool, text: Text<'_>) -> Cow<'_, str> {
    if is_wanted { text.to_str() } else { Cow::Borrowed("") }
}

/// An event that is a part of a slice, by whose category and name it is paired.
fn part_of(
    event: &Event<'_>,
    async_id: Option<u64>,
    of: Option<Of>,
    provider: ProviderId,
    args: Option<&str>,
) -> Open {
    let Event { time, thread, category, name, .. } = *event;
    let [category, name] = [category, name].map(|text| text.to_str().into());
    let args = args.unwrap_or_default().into();
    let ending = event.ending().map(|(ending, _)| ending);
    Open { at: time.nanos().0, rows: 0, thread, provider, category, name, async_id, of, args, ending }
}

/// The table in which an event has its row.
fn kind_of(event: EventKind) -> Option<Kind> {
    Some(match event {
        EventKind::DurationBegin
        | EventKind::DurationEnd
        | EventKind::DurationComplete { .. }
        | EventKind::AsyncBegin { .. }
        | EventKind::AsyncEnd { .. } => Kind::Slices,
        EventKind::Instant { .. } | EventKind::AsyncInstant { .. } => Kind::Instants,
        EventKind::Counter { .. } => Kind::Counters,
        EventKind::FlowBegin { .. } | EventKind::FlowStep { .. } | EventKind::FlowEnd { .. } => Kind::Flows,
        EventKind::Unknown { .. } => return None,
    })
}

impl<'a, R: Rows> Filler<'a, R> {
    fn new(disorder: &'a Disorder, rows: &'a mut R, filter: Filter) -> Self {
        let wanted = rows.wanted();
        let has = |names: &[&str]| std::array::from_fn(|place| wanted.has_any_of(Kind::ALL[place], names));
        Self {
            has_session: wanted.has(Kind::Traces)
                || wanted.has(Kind::Alerts)
                || Kind::ALL.iter().any(|kind| wanted.has_any_of(*kind, &["ts_utc"])),
            wanted,
            has_names: has(&["process", "thread"]),
            has_args: has(&["args"]),
            has_operations: wanted.has_any_of(Kind::Slices, &["kind", "operation_id", "parent_operation_id"]),
            has_category: has(&["category"]),
            has_name: has(&["name"]),
            rows,
            selection: Selected::new(filter),
            spans: Spans::default(),
            partings: Partings::default(),
            late: Late::new(disorder),
            crossing: 0,
            misnamed: 0,
            running: HashMap::new(),
            processes: BTreeMap::new(),
            threads: ThreadNames::default(),
            is_named_late: false,
            names: disorder.names(),
            seen: HashMap::default(),
            seen_processes: HashSet::default(),
            last_thread: (Thread::default(), 0),
            providers: Providers::default(),
            session: Session::default(),
            samples: Samples::default(),
            large: None,
            slices: 0,
            objects: None,
            categories: KnownTexts::default(),
            event_names: KnownTexts::default(),
            skipped: BTreeMap::new(),
            events: 0,
        }
    }

    fn finish(mut self, end: source::End) -> Result<Summary, ConvertError> {
        self.finish_rows().map_err(ConvertError::Write)?;
        let mut summary = end.summary(self.events, self.skipped);
        summary.add_remarks([(CROSSING, self.crossing), (MISNAMED, self.misnamed)]);
        Ok(summary)
    }

    fn skip(&mut self, kind: &'static str) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    /// The number of a thread that occurs.
    fn number(&mut self, thread: Thread) -> i64 {
        if self.last_thread.0 != thread || self.last_thread.1 == 0 {
            let next = self.seen.len() as i64 + 1;
            let number = *self.seen.entry(thread).or_insert(next);
            if number == next {
                self.seen_processes.insert(thread.process);
            }
            self.last_thread = (thread, number);
        }
        self.last_thread.1
    }

    /// The wall clock at a time, in nanoseconds since 1970, as far as the trace tells it.
    fn utc(&self, at: u64) -> Cell<'static> {
        self.session.utc(at)
    }

    fn record(&mut self, record: &Resolved<'_>) -> io::Result<()> {
        let names = record.names;
        if self.wanted.has(Kind::Traces) {
            self.session.record(record);
        }
        if self.large.is_some() && !matches!(record.item, Item::LargeBlobPart { .. }) {
            self.end_large_blob(Some(names))?;
        }
        self.partings.note(record);
        match &record.item {
            Item::Event(event) => return self.event(event, record.provider, names),
            Item::Log { time, thread, message } => {
                self.events += u64::from(self.selection.keeps_record(&record.item) != Some(false));
                self.number(*thread);
                let whose = self.whose(Kind::Logs, *thread, names);
                let [pid, tid, process, name] = whose.cells();
                let message = message.to_str();
                let utc = self.utc(time.nanos().0);
                let cells = [Cell::Integer(nanos(*time)), pid, tid, process, name, Cell::Text(&message), utc];
                return self.rows.row(Kind::Logs, &cells);
            }
            Item::KernelObject { object_type: TYPE_PROCESS, koid, name, .. } => {
                self.name_process(*koid, *name);
            }
            Item::KernelObject { object_type: TYPE_THREAD, koid, name, arguments, .. } => {
                self.name_thread(*koid, process_of(arguments), *name);
            }
            Item::Scheduling { time, kind, arguments } => {
                return self.scheduling(*time, kind, arguments, names);
            }
            Item::Loss(loss) => return self.rows.row(Kind::Losses, &self.providers.loss(loss)),
            Item::Ledger(ledger) => self.providers.ledger(ledger),
            Item::ProviderInfo { name } => self.providers.info(record.provider, *name),
            Item::Initialization { rate } => self.providers.rate(record.provider, *rate),
            Item::Blob { name, blob_type, payload } => {
                return self.blob(record.provider, *name, *blob_type, payload, names);
            }
            Item::LargeBlob { category, name, event, payload, payload_bytes } => {
                let event = event.map(|(time, thread, _)| (time, thread));
                let texts = [*category, *name];
                return self.large_blob(record.provider, texts, event, payload, *payload_bytes, names);
            }
            Item::LargeBlobPart { payload } => return self.large_blob_part(payload, names),
            Item::UserspaceObject { .. } => self.skip("userspace objects"),
            Item::KernelObject { object_type: TYPE_CHANNEL, koid: Koid(0), arguments, .. }
                if record.provider == MANAGER =>
            {
                if !self.providers.describe(arguments) {
                    self.skip("descriptions of programs beyond those that there is room for");
                }
            }
            Item::KernelObject { .. } => self.skip("kernel objects that are no process or thread"),
            Item::ProviderEvent { .. } => self.skip("program events"),
            Item::Profiler { time, thread, kind } => return self.profiler(*time, *thread, kind, names),
            Item::Unknown { .. } => self.skip("records of unknown type"),
            Item::Function(_)
            | Item::FurtherArguments(_)
            | Item::Magic
            | Item::ProviderSection
            | Item::String { .. }
            | Item::Thread { .. }
            | Item::Malformed { .. }
            | Item::Damage { .. } => {}
        }
        Ok(())
    }

    //= docs/tables.md#tables
    fn event(&mut self, event: &Event<'_>, provider: ProviderId, names: &Names) -> io::Result<()> {
        let is_about_session = self.has_session && event.category.as_bytes() == session::CATEGORY;
        if is_about_session {
            self.session.event(event, provider);
        }
        if Mark::of(provider, event).is_some() {
            return Ok(());
        }
        // All of them have rows, of which others take what is selected: here they only count.
        let is_kept = self.selection.keeps(event);
        self.number(event.thread);
        let Some(table) = kind_of(event.kind) else {
            self.skip("events of unknown type");
            return Ok(());
        };
        self.events += u64::from(is_kept);
        if is_about_session {
            let utc = self.utc(event.time.nanos().0);
            session::alert(event, &self.whose(Kind::Alerts, event.thread, names), utc, self.rows)?;
        }
        if !self.wanted.has(table) {
            return Ok(());
        }
        // A counter has a row for each argument.
        let has_args = table != Kind::Counters && self.has_args[table as usize];
        let mut objects = self.objects.take().unwrap_or_default();
        let object = if has_args { objects.object(&event.arguments) } else { None };
        let args_of = object.as_deref();
        let added = match event.kind {
            EventKind::DurationComplete { end } => self.complete(event, end, provider, args_of, names),
            _ => self.other(event, table, provider, args_of, names),
        };
        drop(object);
        self.objects = Some(objects);
        added
    }

    /// The operation that a duration belongs to, if that is wanted.
    #[inline]
    fn of(&self, event: &Event<'_>) -> Option<Of> {
        if !self.has_operations {
            return None;
        }
        let poll = poll_of(event).or_else(|| self.late.first_poll(event)).map(Of::Poll);
        poll.or_else(|| self.within(event))
    }

    /// The operation in which one began, if that is wanted.
    fn within(&self, event: &Event<'_>) -> Option<Of> {
        if self.has_operations { parent_operation_of(event).map(Of::Within) } else { None }
    }

    /// A duration whose begin and end are one event.
    #[inline]
    fn complete(
        &mut self,
        event: &Event<'_>,
        end: Ticks,
        provider: ProviderId,
        args: Option<&str>,
        names: &Names,
    ) -> io::Result<()> {
        let kind = Kind::Slices;
        self.spans.has_ended(event.thread, event.time.nanos().0);
        if self.late.has_thread(event.thread) {
            let end = Time { ticks: end, ..event.time }.nanos().0;
            let part = part_of(event, None, self.of(event), provider, args);
            self.late.push(&part, Role::Complete(end));
            return Ok(());
        }
        self.slices += 1;
        if !self.wanted.has_columns(kind) {
            return self.rows.row(kind, &[]);
        }
        let whose = self.whose(kind, event.thread, names);
        let of = self.of(event);
        let Self { rows, session, slices, categories, event_names, last_thread, .. } = self;
        let (has_category, has_name) = (self.has_category[kind as usize], self.has_name[kind as usize]);
        let slice = Slice {
            at: event.time,
            end: Some(Time { ticks: end, ..event.time }),
            begun_at: None,
            thread: event.thread,
            provider,
            category: if has_category { &categories.shown(event.category, event.keys.0) } else { "" },
            name: if has_name { &event_names.shown(event.name, event.keys.1) } else { "" },
            async_id: None,
            of,
            args,
            ending: None,
        };
        slice.add(*rows, session, whose.cells(), *slices, last_thread.1)
    }

    /// Any other event.
    fn other(
        &mut self,
        event: &Event<'_>,
        table: Kind,
        provider: ProviderId,
        args: Option<&str>,
        names: &Names,
    ) -> io::Result<()> {
        let open = |async_id, of| part_of(event, async_id, of, provider, args);
        let at = event.time.nanos().0;
        let category = text_if(self.has_category[table as usize], event.category);
        let name = text_if(self.has_name[table as usize], event.name);
        let phase = match event.kind {
            EventKind::DurationBegin => {
                return self.part(open(None, self.of(event)), Role::Begin, names);
            }
            EventKind::AsyncBegin { id } => {
                return self.part(open(Some(id), self.within(event)), Role::Begin, names);
            }
            EventKind::DurationEnd => return self.part(open(None, None), Role::End, names),
            EventKind::AsyncEnd { id } => return self.part(open(Some(id), None), Role::End, names),
            EventKind::Counter { id } => return self.counter(event, id, [&category, &name], names),
            EventKind::FlowBegin { .. } => "begin",
            EventKind::FlowStep { .. } => "step",
            EventKind::FlowEnd { .. } => "end",
            _ => "",
        };
        let whose = self.whose(table, event.thread, names);
        let [pid, tid, process, thread] = whose.cells();
        let args = Cell::from(args);
        let (what, id) = match event.kind {
            EventKind::Instant { scope } => {
                let scope = match scope {
                    Scope::Global => Cell::Text("global"),
                    Scope::Process => Cell::Text("process"),
                    Scope::Thread => Cell::Text("thread"),
                };
                (scope, Cell::Null)
            }
            EventKind::AsyncInstant { id } => (Cell::Null, Cell::Unsigned(id)),
            EventKind::FlowBegin { id } | EventKind::FlowStep { id } | EventKind::FlowEnd { id } => {
                (Cell::Unsigned(id), Cell::Text(phase))
            }
            _ => return Ok(()),
        };
        let (category, name) = (Cell::Text(&category), Cell::Text(&name));
        self.rows.row(
            table,
            &[integer(at), pid, tid, process, thread, category, name, what, id, args, self.utc(at)],
        )
    }

    /// A begin or an end; it waits if its thread is out of order.
    fn part(&mut self, part: Open, role: Role, names: &Names) -> io::Result<()> {
        if self.late.has(&part) {
            self.late.push(&part, role);
            return Ok(());
        }
        match self.matched(part, role) {
            Some((open, end)) => self.slice(&Slice::of(&open, Some(end)), names),
            None => Ok(()),
        }
    }

    /// A span that this part completes, and its end.
    fn matched(&mut self, mut part: Open, role: Role) -> Option<(Open, u64)> {
        if role == Role::Begin {
            part.rows = self.slices;
            if !self.spans.begin(part) {
                self.skip("spans beyond those that can be open");
            }
            return None;
        }
        let mut open = match self.spans.end(&part) {
            Ended::Begun(open) => open,
            Ended::Crossing(open) => {
                self.crossing += 1;
                open
            }
            Ended::Misnamed(open) => {
                self.misnamed += u64::from(!part.name.is_empty());
                open
            }
            Ended::Refused => return None,
            Ended::Nothing => {
                self.skip("ends without a beginning");
                return None;
            }
        };
        // The end's arguments follow.
        if open.args.is_empty() {
            open.args = part.args;
        } else if !part.args.is_empty() {
            let joined = joined(&open.args, &part.args);
            open.args = distinct(&joined).unwrap_or(joined).into();
        }
        Some((open, part.at))
    }

    fn slice(&mut self, slice: &Slice<'_, u64>, names: &Names) -> io::Result<()> {
        let whose = self.whose(Kind::Slices, slice.thread, names);
        self.slice_row(slice, whose.cells())
    }

    fn slice_row(&mut self, slice: &Slice<'_, u64>, whose: [Cell<'_>; 4]) -> io::Result<()> {
        let number = self.number(slice.thread);
        if let (Some(begun_at), None) = (slice.begun_at, slice.async_id) {
            self.rows.pair((self.slices - begun_at) as u64);
        }
        self.slices += 1;
        slice.add(self.rows, &self.session, whose, self.slices, number)
    }

    /// A row for each argument that is a number.
    fn counter(
        &mut self,
        event: &Event<'_>,
        id: u64,
        [category, name]: [&str; 2],
        names: &Names,
    ) -> io::Result<()> {
        let whose = self.whose(Kind::Counters, event.thread, names);
        let [pid, tid, process, thread] = whose.cells();
        for (series, value) in event.arguments.iter() {
            let Some(number) = value.number() else {
                self.skip("counter arguments that are no numbers");
                continue;
            };
            let series = series.to_str();
            let cells = [
                Cell::Integer(nanos(event.time)),
                pid,
                tid,
                process,
                thread,
                Cell::Text(category),
                Cell::Text(name),
                Cell::Unsigned(id),
                Cell::Text(&series),
                Cell::Double(number),
                Cell::from(value.integer()),
                self.utc(event.time.nanos().0),
            ];
            self.rows.row(Kind::Counters, &cells)?;
        }
        Ok(())
    }
}
