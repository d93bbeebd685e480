//! Takes the rows of a trace's tables.

use super::{Entry, Kind, Names, Threads, when};
use crate::export::losses;
use crate::export::threads::entries::Entries;
use crate::members::joined;
use crate::tables::{Cell, ChosenRows, ColumnSet, Intervals, Kind as Table, Rows};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use trace_model::Interval;
use trace_reader::Numbered;

/// Functions in all different stacks of samples; further ones are counted.
const MAX_FRAMES: usize = 16 << 20;
/// Different counters; the values of further ones are counted.
const MAX_COUNTERS: usize = 100_000;

/// What a format has a place for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Slices of threads, without their arguments.
    #[default]
    Slices,
    /// The same and samples.
    Stacks,
    /// Everything that is at a time or has a value.
    Timeline,
}

/// A counter's identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Counter {
    pub pid: u64,
    pub what: u32,
    pub id: u64,
    pub series: Box<str>,
}

/// What a loss says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub first: Option<u64>,
    pub last: Option<u64>,
    pub provider: u64,
    pub reason: String,
    pub count: u64,
}

/// Losses that are kept one by one.
const MAX_LOSSES: usize = 1000;

/// All that was collected of a trace.
#[derive(Default)]
pub(crate) struct Collector {
    keep: Keep,
    /// The rows that are kept; none if all are.
    chosen: Option<ChosenRows>,
    pub threads: Threads,
    /// Categories and names of events; modules and names of functions.
    pub names: Names,
    pub entries: Entries,
    intervals: Intervals,
    /// Functions of the stacks of samples, by their names, the outermost first.
    pub stacks: Vec<Vec<u32>>,
    frames: usize,
    /// By counter instead of thread; what else there is has the bits of the value.
    pub values: Entries,
    pub counters: Numbered<Counter>,
    pub losses: Vec<Lost>,
    /// Records that are missing in the trace.
    pub lost: u64,
    /// The process of a provider, by its number.
    pub provider_pids: BTreeMap<u64, u64>,
    /// Slices, samples and other things that were kept.
    pub slices: u64,
    pub samples: u64,
    /// Threads with samples.
    pub sampled: BTreeSet<u32>,
    pub others: u64,
    /// Of those, slices that have not ended.
    pub open: u64,
    /// What has no place, by its kind.
    pub skipped: BTreeMap<&'static str, u64>,
    /// The first and the last moment.
    pub times: Option<(u64, u64)>,
    /// What the trace says of itself.
    pub start_utc: Option<i64>,
    pub start_ts: Option<u64>,
}

/// A module's file name.
fn file_name(module: &str) -> &str {
    module.rsplit('/').next().unwrap_or(module)
}

impl Collector {
    pub fn new(keep: Keep, chosen: Option<ChosenRows>) -> Self {
        Self { keep, chosen, ..Self::default() }
    }

    fn skip(&mut self, kind: &'static str) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    fn seen(&mut self, from: u64, to: u64) {
        let times = self.times.get_or_insert((from, to));
        *times = (times.0.min(from), times.1.max(to));
    }

    fn saw(&mut self, interval: &Interval) {
        let Interval { begin, end, .. } = *interval;
        self.seen(begin, if end == u64::MAX { begin } else { end });
    }

    /// Keeps something; `pid` and `tid` say where. Returns the number of the thread, if there is room for it.
    fn push(&mut self, [pid, tid]: [&Cell<'_>; 2], entry: Entry<'_>) -> io::Result<Option<u32>> {
        let thread = self.threads.number(pid.or_zero(), tid.or_zero());
        match thread {
            Some(thread) => {
                self.saw(&entry.interval);
                self.entries.push(&Entry { thread, ..entry })?;
            }
            None => self.skip("events of threads beyond those that there is room for"),
        }
        Ok(thread)
    }

    fn slice(&mut self, cells: &[Cell<'_>; 16], is_chosen: bool) -> io::Result<()> {
        let [ts, dur, pid, tid, _, _, category, name, async_id, args, .., provider] = cells;
        let is_operation = !matches!(async_id, Cell::Null);
        let interval = self.intervals.next(ts.or_zero(), dur.number());
        if !is_chosen {
            // It is in the stacks of what is inside of it, and its time is not theirs.
            if self.keep == Keep::Slices && !is_operation {
                let what = self.names.number(category.text(), name.text());
                let entry = Entry { thread: 0, kind: Kind::LeftOut, interval, what, more: b"" };
                self.push([pid, tid], entry)?;
            }
            return Ok(());
        }
        if is_operation && self.keep != Keep::Timeline {
            self.skip("asynchronous operations");
            self.saw(&interval);
            return Ok(());
        }
        let mut more = args.text();
        if !more.is_empty() && self.keep != Keep::Timeline {
            self.skip("sets of arguments");
            more = "";
        }
        let with_id = async_id.number().map(|id| with_id(id, args.text()));
        let more = with_id.as_deref().unwrap_or(more).as_bytes();
        let what = self.names.number(category.text(), name.text());
        let kind = if is_operation { Kind::Operation } else { Kind::Slice };
        if self.push([pid, tid], Entry { thread: 0, kind, interval, what, more })?.is_some() {
            self.slices += 1;
            self.open += u64::from(interval.end == u64::MAX);
        }
        if let (Some(provider), Some(pid)) = (provider.number(), pid.number())
            && self.provider_pids.len() < MAX_LOSSES
        {
            self.provider_pids.entry(provider).or_insert(pid);
        }
        Ok(())
    }

    /// Something without a length.
    fn point(
        &mut self,
        kind: Kind,
        whose: [&Cell<'_>; 2],
        ts: &Cell<'_>,
        [category, name]: [&str; 2],
        more: &str,
    ) -> io::Result<()> {
        let at = ts.or_zero();
        let what = self.names.number(category, name);
        let entry = Entry { thread: 0, kind, interval: when(at, at), what, more: more.as_bytes() };
        self.others += u64::from(self.push(whose, entry)?.is_some());
        Ok(())
    }

    fn sample(&mut self, cells: &[Cell<'_>; 6]) -> io::Result<()> {
        let [ts, pid, tid, _, _, stack] = cells;
        let (what, at) = (stack.or_zero() as u32, ts.or_zero());
        let entry = Entry { thread: 0, kind: Kind::Sample, interval: when(at, at), what, more: b"" };
        let thread = self.push([pid, tid], entry)?;
        self.samples += u64::from(thread.is_some());
        self.sampled.extend(thread);
        Ok(())
    }

    /// A function of a stack.
    fn frame(&mut self, cells: &[Cell<'_>; 5]) {
        let [id, _, _, function, module] = cells;
        let id = id.or_zero() as usize;
        if id > self.stacks.len() {
            self.stacks.resize_with(id, Vec::new);
        }
        if self.frames == MAX_FRAMES {
            return self.skip("functions of stacks beyond those that there is room for");
        }
        self.frames += 1;
        let what = self.names.number(file_name(module.text()), function.text());
        if let Some(stack) = id.checked_sub(1).and_then(|place| self.stacks.get_mut(place)) {
            stack.push(what);
        }
    }

    fn value(&mut self, cells: &[Cell<'_>; 10]) -> io::Result<()> {
        let [ts, pid, tid, _, _, category, name, id, series, value] = cells;
        let Cell::Double(value) = *value else { return Ok(()) };
        let (at, id, pid) = (ts.or_zero(), id.or_zero(), pid.or_zero());
        if self.threads.number(pid, tid.or_zero()).is_none() {
            self.skip("counter values of threads beyond those that there is room for");
            return Ok(());
        }
        let what = self.names.number(category.text(), name.text());
        let counter = Counter { pid, what, id, series: series.text().into() };
        let Some(thread) = self.counters.number(counter, MAX_COUNTERS) else {
            self.skip("counter values of counters beyond those that there is room for");
            return Ok(());
        };
        self.seen(at, at);
        self.others += 1;
        let (interval, more) = (when(at, at), &value.to_le_bytes());
        self.values.push(&Entry { thread, kind: Kind::Sample, interval, what: 0, more })
    }

    fn loss(&mut self, cells: &[Cell<'_>; 5]) {
        let [first, last, provider, reason, count] = cells;
        let count = count.or_zero();
        self.lost = self.lost.saturating_add(count);
        if count > 0 && self.losses.len() < MAX_LOSSES {
            // A loss whose time is not known ends at 0.
            let last = last.number().filter(|last| *last > 0);
            let first = last.and(first.number());
            let (provider, reason) = (provider.or_zero(), reason.text().to_owned());
            self.losses.push(Lost { first, last, provider, reason, count });
        }
    }
}

/// Arguments, and the number of an operation or a flow before them.
fn with_id(id: u64, args: &str) -> String {
    joined(&format!("{{\"id\":{id}}}"), args)
}

impl Rows for Collector {
    fn wanted(&self) -> ColumnSet {
        let mut wanted = ColumnSet::NONE;
        let whose = ["ts", "pid", "tid", "category", "name"];
        wanted.add_named(Table::Slices, &whose);
        wanted.add_named(Table::Slices, &["dur", "async_id", "args", "program_id"]);
        for table in [Table::Threads, Table::Losses, Table::Programs, Table::Traces] {
            wanted.add_all(table);
        }
        let of_points = [
            (Table::Instants, &["async_id", "args"][..]),
            (Table::Flows, &["flow_id", "phase", "args"]),
            (Table::Counters, &["counter_id", "series", "value"]),
            (Table::Logs, &["message"]),
        ];
        for (table, columns) in of_points {
            wanted.add_named(table, &["ts"]);
            if self.keep == Keep::Timeline {
                wanted.add_named(table, &whose);
                wanted.add_named(table, columns);
            }
        }
        for table in [Table::Sched, Table::Wakeups, Table::Samples, Table::Blobs] {
            wanted.add_named(table, &["ts"]);
        }
        if self.keep != Keep::Slices {
            wanted.add_named(Table::Samples, &["pid", "tid", "stack_id"]);
            wanted.add_named(Table::Stacks, &["id", "function", "module"]);
        }
        wanted
    }

    fn pair(&mut self, rows: u64) {
        self.intervals.pair(rows);
    }

    fn row(&mut self, table: Table, cells: &[Cell<'_>]) -> io::Result<()> {
        let is_timeline = self.keep == Keep::Timeline;
        let has = |chosen: &mut ChosenRows| {
            chosen.has(table, |place| cells.get(place).copied().unwrap_or(Cell::Null))
        };
        let is_chosen = self.chosen.as_mut().is_none_or(has);
        match table {
            Table::Slices => return self.slice(Cell::first(cells)?, is_chosen),
            _ if !is_chosen => {}
            Table::Threads => {
                let [pid, tid, process, thread] = Cell::first(cells)?;
                self.threads.name(pid.or_zero(), tid.or_zero(), process.text(), thread.text());
            }
            Table::Losses => self.loss(Cell::first(cells)?),
            Table::Traces => {
                self.start_ts = table.cell(cells, "start_ts").number();
                for name in ["start_ts", "end_ts"] {
                    table.cell(cells, name).number().into_iter().for_each(|at| self.seen(at, at));
                }
                self.start_utc = match table.cell(cells, "start_utc") {
                    Cell::Integer(value) => Some(value),
                    _ => None,
                };
            }
            Table::Samples if self.keep == Keep::Slices => self.skip("samples"),
            Table::Samples => return self.sample(Cell::first(cells)?),
            Table::Stacks => self.frame(Cell::first(cells)?),
            Table::Instants if is_timeline => {
                let [ts, pid, tid, _, _, category, name, _, id, args] = Cell::first(cells)?;
                let with_id = id.number().map(|id| with_id(id, args.text()));
                let more = with_id.as_deref().unwrap_or(args.text());
                return self.point(Kind::Instant, [pid, tid], ts, [category.text(), name.text()], more);
            }
            Table::Flows if is_timeline => {
                let [ts, pid, tid, _, _, category, name, id, phase, args] = Cell::first(cells)?;
                let more = format!("{} {} {}", id.or_zero(), phase.text(), args.text());
                return self.point(Kind::Flow, [pid, tid], ts, [category.text(), name.text()], &more);
            }
            Table::Logs if is_timeline => {
                let [ts, pid, tid, _, _, message] = Cell::first(cells)?;
                return self.point(Kind::Log, [pid, tid], ts, ["log", "log"], message.text());
            }
            Table::Counters if is_timeline => return self.value(Cell::first(cells)?),
            Table::Instants => self.skip_at("instants", cells),
            Table::Flows => self.skip_at("flow events", cells),
            Table::Logs => self.skip_at("log entries", cells),
            Table::Counters => self.skip_at("counter values", cells),
            Table::Sched => self.skip_at("context switches", cells),
            Table::Wakeups => self.skip_at("wakeups", cells),
            Table::Blobs => self.skip("blobs"),
            Table::Programs => {
                let [id, pid] = ["id", "pid"].map(|name| table.cell(cells, name).number());
                if let Some((id, pid)) = id.zip(pid) {
                    self.provider_pids.entry(id).or_insert(pid);
                }
            }
            // Alerts are instants, too.
            Table::Alerts => {}
        }
        Ok(())
    }
}

impl Collector {
    /// Adds losses as operations of the first thread of their process, at the end if they have no time.
    pub fn push_losses(&mut self) -> io::Result<()> {
        let last = self.times.unwrap_or_default().1;
        let order = self.threads.in_order();
        for lost in std::mem::take(&mut self.losses) {
            let pid = self.provider_pids.get(&lost.provider).copied();
            let of_process = |number: &u32| Some(self.threads.get(*number).pid) == pid;
            let Some(thread) = order.iter().copied().find(of_process) else {
                self.skip("losses of processes without events");
                continue;
            };
            let at = lost.first.or(lost.last).unwrap_or(last);
            let interval = when(at, lost.last.map_or(at, |end| end.max(at)));
            let what = self.names.number(losses::CATEGORY, losses::LOST);
            let args =
                serde_json::json!({"reason": lost.reason, "count": lost.count, "provider": lost.provider});
            let args = args.to_string();
            self.saw(&interval);
            let more = args.as_bytes();
            self.entries.push(&Entry { thread, kind: Kind::Operation, interval, what, more })?;
        }
        Ok(())
    }

    fn skip_at(&mut self, kind: &'static str, cells: &[Cell<'_>]) {
        self.skip(kind);
        if let Some(at) = cells.first().and_then(Cell::number) {
            self.seen(at, at);
        }
    }
}
