//! Rows of the records of an archive.

use super::spans::{Ended, Late, Open, Spans};
use super::{Cell, Kind, Rows};
use crate::filter::Filter;
use crate::json::Json;
use crate::{ConvertError, Summary, source};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read, Sink};
use trace_format::event::{EventKind, Scope};
use trace_format::kernel_object::{TYPE_PROCESS, TYPE_THREAD};
use trace_format::scheduling::{
    IDLE_WEIGHT, INCOMING_WEIGHT_ARGUMENT, OUTGOING_WEIGHT_ARGUMENT, WAKER_ARGUMENT, WEIGHT_ARGUMENT,
};
use trace_format::units::Koid;
use trace_reader::item::{Scheduling, ThreadState};
use trace_reader::{Arguments, Disorder, Event, Item, Names, Resolved, Text, Thread, Time, Value};

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
    let mut filler = Filler {
        rows,
        filter,
        spans: Spans::default(),
        late: Late::new(disorder),
        crossing: 0,
        running: HashMap::new(),
        processes: BTreeMap::new(),
        threads: BTreeMap::new(),
        seen: BTreeSet::new(),
        json: Json::new(io::sink()),
        last_thread: None,
        skipped: BTreeMap::new(),
        events: 0,
    };
    let end = source::for_each(input, |record| filler.record(record))?;
    filler.finish().map_err(ConvertError::Write)?;
    let remarks = (filler.crossing > 0).then(|| (CROSSING.to_owned(), filler.crossing));
    Ok(Summary { remarks: Vec::from_iter(remarks), ..end.summary(filler.events, filler.skipped) })
}

/// The remark about operations in more than one process.
const CROSSING: &str = "asynchronous operations end in another process than they began in";

/// The thread that a CPU runs.
struct Running {
    since: u64,
    thread: Thread,
    prio: Option<i64>,
}

struct Filler<'a, R> {
    rows: &'a mut R,
    filter: Filter,
    spans: Spans,
    late: Late<'a>,
    /// Operations that ended in another process than they began in.
    crossing: u64,
    running: HashMap<u16, Running>,
    processes: BTreeMap<Koid, String>,
    /// Names of threads, with the processes that they are reported to belong to.
    threads: BTreeMap<Koid, (Option<Koid>, String)>,
    seen: BTreeSet<Thread>,
    /// The thread of the last event, which is known already.
    last_thread: Option<Thread>,
    json: Json<Sink>,
    skipped: BTreeMap<&'static str, u64>,
    events: u64,
}

fn nanos(time: Time) -> i64 {
    i64::try_from(time.nanos().0).unwrap_or(i64::MAX)
}

fn integer(value: u64) -> Cell<'static> {
    Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn text<'a>(text: &'a Option<Cow<'_, str>>) -> Cell<'a> {
    text.as_deref().map_or(Cell::Null, Cell::Text)
}

/// Names of a thread and its process.
struct Whose<'a> {
    thread: Thread,
    process_name: Option<Cow<'a, str>>,
    thread_name: Option<Cow<'a, str>>,
}

impl<'a> Whose<'a> {
    fn new(thread: Thread, names: &'a Names) -> Self {
        Self {
            thread,
            process_name: names.process(thread.process).map(Text::to_str),
            thread_name: names.thread(thread).map(Text::to_str),
        }
    }

    /// The four columns.
    fn cells(&self) -> [Cell<'_>; 4] {
        [
            Cell::Unsigned(self.thread.process.0),
            Cell::Unsigned(self.thread.thread.0),
            text(&self.process_name),
            text(&self.thread_name),
        ]
    }
}

/// Arguments as a JSON object, made in a scratch buffer; none if there are none.
fn json_of(json: &mut Json<Sink>, arguments: &Arguments<'_>) -> Option<String> {
    if arguments.is_empty() {
        return None;
    }
    json.raw("{");
    for (place, (name, value)) in arguments.iter().enumerate() {
        if place > 0 {
            json.raw(",");
        }
        json.string(name.as_bytes());
        json.raw(":");
        json.value(&value);
    }
    json.raw("}");
    Some(json.take())
}

fn state_text(state: ThreadState) -> Cell<'static> {
    state.text().map_or(Cell::Null, Cell::Text)
}

fn whole(arguments: &Arguments<'_>, name: &str) -> Option<i64> {
    match arguments.find(name)? {
        Value::Int32(value) => Some(value.into()),
        Value::Uint32(value) => Some(value.into()),
        Value::Int64(value) => Some(value),
        Value::Uint64(value) => i64::try_from(value).ok(),
        _ => None,
    }
}

impl<R: Rows> Filler<'_, R> {
    fn skip(&mut self, kind: &'static str) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    fn record(&mut self, record: &Resolved<'_>) -> io::Result<()> {
        let names = record.names;
        match &record.item {
            Item::Event(event) => return self.event(event, names),
            Item::Log { time, thread, message } => {
                self.events += 1;
                self.seen.insert(*thread);
                let whose = Whose::new(*thread, names);
                let [pid, tid, process, name] = whose.cells();
                let message = message.to_str();
                let cells = [Cell::Integer(nanos(*time)), pid, tid, process, name, Cell::Text(&message)];
                return self.rows.row(Kind::Logs, &cells);
            }
            Item::KernelObject { object_type: TYPE_PROCESS, koid, name, .. } => {
                self.processes.insert(*koid, name.to_str().into_owned());
            }
            Item::KernelObject { object_type: TYPE_THREAD, koid, name, .. } => {
                self.threads.insert(*koid, (names.process_of(*koid), name.to_str().into_owned()));
            }
            Item::Scheduling { time, kind, arguments } => {
                return self.scheduling(*time, kind, arguments, names);
            }
            Item::Blob { .. } | Item::LargeBlob { .. } => self.skip("blobs"),
            Item::LargeBlobPart { .. } => {}
            Item::UserspaceObject { .. } => self.skip("userspace objects"),
            Item::KernelObject { .. } => self.skip("kernel objects that are no process or thread"),
            Item::Loss(_) => self.skip("loss records"),
            Item::ProviderEvent { .. } => self.skip("provider events"),
            Item::Profiler { .. } => self.skip("profiler records"),
            Item::Unknown { .. } => self.skip("records of unknown type"),
            Item::Ledger(_)
            | Item::Function(_)
            | Item::Magic
            | Item::ProviderInfo { .. }
            | Item::ProviderSection
            | Item::Initialization { .. }
            | Item::String { .. }
            | Item::Thread { .. }
            | Item::Malformed { .. }
            | Item::Damage { .. } => {}
        }
        Ok(())
    }

    //= docs/tables.md#tables
    fn event(&mut self, event: &Event<'_>, names: &Names) -> io::Result<()> {
        if !self.filter.keeps(event.category.as_bytes(), event.name.as_bytes()) {
            return Ok(());
        }
        self.events += 1;
        if self.last_thread.replace(event.thread) != Some(event.thread) {
            self.seen.insert(event.thread);
        }
        let at = event.time.nanos().0;
        let (category, name) = (event.category.to_str(), event.name.to_str());
        // A counter has a row for each argument.
        let has_args = !matches!(event.kind, EventKind::Counter { .. });
        let args = has_args.then(|| json_of(&mut self.json, &event.arguments)).flatten();
        let open = |async_id: Option<u64>| Open {
            at,
            thread: event.thread,
            category: category.as_ref().into(),
            name: name.as_ref().into(),
            async_id,
            args: args.as_deref().unwrap_or_default().into(),
        };
        let phase = match event.kind {
            EventKind::DurationBegin => return self.part(open(None), false, names),
            EventKind::AsyncBegin { id } => return self.part(open(Some(id)), false, names),
            EventKind::DurationEnd => return self.part(open(None), true, names),
            EventKind::AsyncEnd { id } => return self.part(open(Some(id)), true, names),
            EventKind::DurationComplete { end } => {
                let end = Time { ticks: end, ..event.time }.nanos().0;
                return self.slice(&open(None), Some(end), names);
            }
            EventKind::Instant { .. } | EventKind::AsyncInstant { .. } => "",
            EventKind::Counter { id } => return self.counter(event, id, names),
            EventKind::FlowBegin { .. } => "begin",
            EventKind::FlowStep { .. } => "step",
            EventKind::FlowEnd { .. } => "end",
            EventKind::Unknown { .. } => {
                self.events -= 1;
                self.skip("events of unknown type");
                return Ok(());
            }
        };
        let whose = Whose::new(event.thread, names);
        let [pid, tid, process, thread] = whose.cells();
        let args = args.as_deref().map_or(Cell::Null, Cell::Text);
        let (kind, what, id) = match event.kind {
            EventKind::Instant { scope } => {
                let scope = match scope {
                    Scope::Global => Cell::Text("global"),
                    Scope::Process => Cell::Text("process"),
                    Scope::Thread => Cell::Text("thread"),
                };
                (Kind::Instants, scope, Cell::Null)
            }
            EventKind::AsyncInstant { id } => (Kind::Instants, Cell::Null, Cell::Unsigned(id)),
            EventKind::FlowBegin { id } | EventKind::FlowStep { id } | EventKind::FlowEnd { id } => {
                (Kind::Flows, Cell::Unsigned(id), Cell::Text(phase))
            }
            _ => return Ok(()),
        };
        let (category, name) = (Cell::Text(&category), Cell::Text(&name));
        self.rows.row(kind, &[integer(at), pid, tid, process, thread, category, name, what, id, args])
    }

    /// A begin or an end; it waits if its thread is out of order.
    fn part(&mut self, part: Open, is_end: bool, names: &Names) -> io::Result<()> {
        if self.late.has(&part) {
            self.late.push(&part, is_end);
            return Ok(());
        }
        match self.matched(part, is_end) {
            Some((open, end)) => self.slice(&open, Some(end), names),
            None => Ok(()),
        }
    }

    /// A span that this part completes, and its end.
    fn matched(&mut self, part: Open, is_end: bool) -> Option<(Open, u64)> {
        if !is_end {
            if !self.spans.begin(part) {
                self.skip("spans beyond those that can be open");
            }
            return None;
        }
        let mut open = match self.spans.end(&part) {
            Ended::Span(open) => open,
            Ended::Crossing(open) => {
                self.crossing += 1;
                open
            }
            Ended::Nothing => {
                self.skip("ends without a beginning");
                return None;
            }
        };
        // The end's arguments follow.
        if open.args.is_empty() {
            open.args = part.args;
        } else if !part.args.is_empty() {
            let first = open.args.strip_suffix('}').unwrap_or_default();
            open.args = format!("{first},{}", &part.args[1..]).into();
        }
        Some((open, part.at))
    }

    fn slice(&mut self, open: &Open, end: Option<u64>, names: &Names) -> io::Result<()> {
        self.rows.row(Kind::Slices, &slice_cells(open, end, Whose::new(open.thread, names).cells()))
    }

    /// A row for each argument that is a number.
    fn counter(&mut self, event: &Event<'_>, id: u64, names: &Names) -> io::Result<()> {
        let whose = Whose::new(event.thread, names);
        let [pid, tid, process, thread] = whose.cells();
        let (category, name) = (event.category.to_str(), event.name.to_str());
        for (series, value) in event.arguments.iter() {
            let (value, integer) = match value {
                Value::Int32(value) => (f64::from(value), Some(i64::from(value))),
                Value::Uint32(value) => (f64::from(value), Some(i64::from(value))),
                Value::Int64(value) => (value as f64, Some(value)),
                Value::Uint64(value) => (value as f64, i64::try_from(value).ok()),
                Value::Double(value) => (value, None),
                _ => {
                    self.skip("counter arguments that are no numbers");
                    continue;
                }
            };
            let series = series.to_str();
            let cells = [
                Cell::Integer(nanos(event.time)),
                pid,
                tid,
                process,
                thread,
                Cell::Text(&category),
                Cell::Text(&name),
                Cell::Unsigned(id),
                Cell::Text(&series),
                Cell::Double(value),
                integer.map_or(Cell::Null, Cell::Integer),
            ];
            self.rows.row(Kind::Counters, &cells)?;
        }
        Ok(())
    }

    //= docs/tables.md#scheduling
    fn scheduling(
        &mut self,
        time: Time,
        kind: &Scheduling,
        arguments: &Arguments<'_>,
        names: &Names,
    ) -> io::Result<()> {
        let of = |thread: Koid| Thread { process: names.process_of(thread).unwrap_or_default(), thread };
        let (cpu, outgoing, state, incoming, prio, is_idle) = match kind {
            Scheduling::ContextSwitch { cpu, outgoing_state, outgoing, incoming } => {
                let prio = whole(arguments, INCOMING_WEIGHT_ARGUMENT);
                let is_idle = prio == Some(IDLE_WEIGHT.into());
                let went_idle = whole(arguments, OUTGOING_WEIGHT_ARGUMENT) == Some(IDLE_WEIGHT.into());
                let outgoing = (!went_idle).then(|| of(*outgoing));
                (*cpu, outgoing, *outgoing_state, of(*incoming), prio, is_idle)
            }
            Scheduling::LegacyContextSwitch {
                cpu,
                outgoing_state,
                outgoing,
                incoming,
                incoming_priority,
                ..
            } => {
                let is_idle = incoming.process.0 == 0 && *incoming_priority == 0;
                let prio = Some(i64::from(*incoming_priority));
                (u16::from(*cpu), Some(*outgoing), *outgoing_state, *incoming, prio, is_idle)
            }
            Scheduling::ThreadWakeup { cpu, thread } => {
                let whose = Whose::new(of(*thread), names);
                self.seen.insert(whose.thread);
                let [pid, tid, process, name] = whose.cells();
                let prio = whole(arguments, WEIGHT_ARGUMENT).map_or(Cell::Null, Cell::Integer);
                let waker = match arguments.find(WAKER_ARGUMENT) {
                    Some(Value::Koid(waker)) => Cell::Unsigned(waker.0),
                    _ => Cell::Null,
                };
                let cpu = Cell::Integer((*cpu).into());
                let cells = [Cell::Integer(nanos(time)), cpu, pid, tid, process, name, prio, waker];
                return self.rows.row(Kind::Wakeups, &cells);
            }
            Scheduling::FiberSwitch { .. } => {
                self.skip("fiber switches");
                return Ok(());
            }
        };
        let at = time.nanos().0;
        if let Some(running) = self.running.remove(&cpu) {
            // An unreported switch lies between.
            let is_same = outgoing.is_some_and(|outgoing| outgoing.thread == running.thread.thread);
            let state = if is_same { state_text(state) } else { Cell::Null };
            self.ran(cpu, &running, Some(at), state, names)?;
        }
        if !is_idle {
            self.seen.insert(incoming);
            self.running.insert(cpu, Running { since: at, thread: incoming, prio });
        }
        Ok(())
    }

    fn ran(
        &mut self,
        cpu: u16,
        running: &Running,
        end: Option<u64>,
        state: Cell<'_>,
        names: &Names,
    ) -> io::Result<()> {
        // Its process may have become known meanwhile.
        let Thread { process, thread } = running.thread;
        let process = if process == Koid(0) { names.process_of(thread).unwrap_or(process) } else { process };
        let whose = Whose::new(Thread { process, thread }, names);
        let [pid, tid, process, name] = whose.cells();
        let length = end.map_or(Cell::Null, |end| integer(end.saturating_sub(running.since)));
        let prio = running.prio.map_or(Cell::Null, Cell::Integer);
        let cpu = Cell::Integer(cpu.into());
        self.rows
            .row(Kind::Sched, &[integer(running.since), length, cpu, pid, tid, process, name, prio, state])
    }

    /// Writes spans that have not ended, and the threads.
    fn finish(&mut self) -> io::Result<()> {
        let mut names = Vec::new();
        for thread in &self.seen {
            let process = self.processes.get(&thread.process).cloned();
            let owned =
                |(owner, _): &&(Option<Koid>, String)| owner.is_none_or(|owner| owner == thread.process);
            let name = self.threads.get(&thread.thread).filter(owned).map(|(_, name)| name.clone());
            names.push((*thread, process, name));
        }
        for (thread, (owner, name)) in &self.threads {
            let thread = Thread { process: owner.unwrap_or_default(), thread: *thread };
            if !self.seen.contains(&thread) {
                let process = self.processes.get(&thread.process).cloned();
                names.push((thread, process, Some(name.clone())));
            }
        }
        names.sort();
        let of = |thread: &Thread| {
            let found = names.binary_search_by_key(thread, |(thread, ..)| *thread).ok()?;
            names.get(found)
        };
        fn cell(name: Option<&String>) -> Cell<'_> {
            name.map_or(Cell::Null, |name| Cell::Text(name))
        }
        let whose = |thread: &Thread| {
            let found = of(thread);
            [
                Cell::Unsigned(thread.process.0),
                Cell::Unsigned(thread.thread.0),
                cell(found.and_then(|found| found.1.as_ref())),
                cell(found.and_then(|found| found.2.as_ref())),
            ]
        };
        self.late.take().finish(|part, is_end| match self.matched(part, is_end) {
            Some((open, end)) => {
                self.rows.row(Kind::Slices, &slice_cells(&open, Some(end), whose(&open.thread)))
            }
            None => Ok(()),
        })?;
        for open in std::mem::take(&mut self.spans).rest() {
            self.rows.row(Kind::Slices, &slice_cells(&open, None, whose(&open.thread)))?;
        }
        let mut running: Vec<_> = self.running.drain().collect();
        running.sort_by_key(|(cpu, running)| (running.since, *cpu));
        for (cpu, running) in running {
            let [pid, tid, process, name] = whose(&running.thread);
            let prio = running.prio.map_or(Cell::Null, Cell::Integer);
            let cpu = Cell::Integer(cpu.into());
            let cells = [integer(running.since), Cell::Null, cpu, pid, tid, process, name, prio, Cell::Null];
            self.rows.row(Kind::Sched, &cells)?;
        }
        for (thread, ..) in &names {
            self.rows.row(Kind::Threads, &whose(thread))?;
        }
        Ok(())
    }
}

fn slice_cells<'a>(open: &'a Open, end: Option<u64>, whose: [Cell<'a>; 4]) -> [Cell<'a>; 10] {
    let [pid, tid, process, thread] = whose;
    [
        integer(open.at),
        end.map_or(Cell::Null, |end| integer(end.saturating_sub(open.at))),
        pid,
        tid,
        process,
        thread,
        Cell::Text(&open.category),
        Cell::Text(&open.name),
        open.async_id.map_or(Cell::Null, Cell::Unsigned),
        if open.args.is_empty() { Cell::Null } else { Cell::Text(&open.args) },
    ]
}
