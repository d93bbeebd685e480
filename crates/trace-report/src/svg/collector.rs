//! Takes the rows of a trace's tables that are in the window.

use super::counters::Buckets;
use super::layout::WIDTH;
use crate::entry::{Entry, Flow, LEFT_OUT, OPEN};
use crate::texts::{Texts, Whats};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use trace_convert::Filter;
use trace_convert::tables::{Cell, ChosenRows, ColumnSet, Intervals, Kind as Table, Rows};
use trace_format::units::Koid;
use trace_reader::sorter::Sorter;
use trace_reader::{Numbered, ThreadNumbers};

/// Threads and series of counters that are looked at; the events of further ones are counted.
const MAX_OWNERS: usize = 20_000;
/// Flow events that are looked at.
const MAX_FLOWS: usize = 500_000;
/// Losses that are drawn one by one.
const MAX_LOSSES: usize = 200;
/// Providers whose processes are known.
const MAX_PROVIDERS: usize = 1000;

/// What there are times of, in a pass of its own.
#[derive(Default)]
pub struct Times(pub Option<(u64, u64)>);

impl Times {
    fn seen(&mut self, from: u64, to: u64) {
        let times = self.0.get_or_insert((from, to));
        *times = (times.0.min(from), times.1.max(to));
    }
}

impl Rows for Times {
    fn wanted(&self) -> ColumnSet {
        let mut wanted = ColumnSet::NONE;
        wanted.add_named(Table::Slices, &["ts", "dur"]);
        for table in [Table::Instants, Table::Counters, Table::Flows, Table::Logs] {
            wanted.add_named(table, &["ts"]);
        }
        wanted.add_named(Table::Losses, &["first_ts", "last_ts"]);
        wanted.add_named(Table::Traces, &["start_ts", "end_ts"]);
        wanted
    }

    fn row(&mut self, table: Table, cells: &[Cell<'_>]) -> io::Result<()> {
        match table {
            Table::Slices => {
                let [ts, dur] = Cell::first(cells)?;
                let at = ts.or_zero();
                self.seen(at, at.saturating_add(dur.or_zero()));
            }
            Table::Instants | Table::Counters | Table::Flows | Table::Logs => {
                let [ts] = Cell::first(cells)?;
                let at = ts.or_zero();
                self.seen(at, at);
            }
            Table::Losses => {
                let [first, last] = Cell::first(cells)?;
                for at in [first, last].into_iter().filter_map(Cell::number).filter(|at| *at > 0) {
                    // A loss alone does not make the trace longer.
                    if self.0.is_some() {
                        self.seen(at, at);
                    }
                }
            }
            Table::Traces => {
                for name in ["start_ts", "end_ts"] {
                    table.cell(cells, name).number().into_iter().for_each(|at| self.seen(at, at));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A thread of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    pub pid: u64,
    pub tid: u64,
    /// Number of its name; 0 if it has none.
    pub name: u32,
}

fn thread(pid: u64, tid: u64) -> trace_reader::Thread {
    trace_reader::Thread { process: Koid(pid), thread: Koid(tid) }
}

/// A track: the slices of a thread, or asynchronous operations of one name in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// By the thread's number.
    Thread(u32),
    /// By process and name.
    Operations(u64, u32),
}

/// What a provider has lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub times: Option<(u64, u64)>,
    pub provider: u64,
    pub reason: String,
    pub count: u64,
}

/// A counter's series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    pub pid: u64,
    pub what: u32,
    pub id: u64,
    pub series: u32,
}

/// Points in time that are drawn together: how many, and the name of the first.
pub type Points = BTreeMap<u16, (u64, u64, u32)>;

/// All that is in the window.
#[derive(Default)]
pub struct Collector {
    /// The window: its beginning and its end.
    pub window: (u64, u64),
    /// The window ends with the trace.
    is_to_end: bool,
    chosen: Option<ChosenRows>,
    pub texts: Texts,
    pub whats: Whats,
    pub threads: Vec<Thread>,
    thread_numbers: ThreadNumbers,
    pub processes: BTreeMap<u64, u32>,
    /// Tracks with slices, each with their number and time in the window.
    pub tracks: Vec<(Owner, u64, u64)>,
    track_numbers: Numbered<Owner>,
    pub slices: Sorter,
    intervals: Intervals,
    pub slice_count: u64,
    pub open: u64,
    /// Instants and logs by thread and pixel.
    pub points: BTreeMap<u32, Points>,
    pub point_count: u64,
    pub series: BTreeMap<Series, Buckets>,
    pub value_count: u64,
    pub flows: Vec<Flow>,
    pub losses: Vec<Loss>,
    pub lost: u64,
    pub provider_pids: BTreeSet<(u64, u64)>,
    pub skipped: BTreeMap<&'static str, u64>,
}

impl Collector {
    pub fn new(window: (u64, u64), is_to_end: bool, filter: &Filter) -> Self {
        Self { window, is_to_end, chosen: ChosenRows::new(filter), ..Self::default() }
    }

    fn is_chosen(&mut self, table: Table, cells: &[Cell<'_>]) -> bool {
        let cell = |place: usize| cells.get(place).copied().unwrap_or(Cell::Null);
        self.chosen.as_mut().is_none_or(|chosen| chosen.has(table, cell))
    }

    fn skip(&mut self, kind: &'static str) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    /// Whether something is at least partly in the window.
    fn has(&self, from: u64, to: u64) -> bool {
        self.has_begun(from) && to >= self.window.0
    }

    /// Whether a time is before the end of the window, or at that of the trace.
    fn has_begun(&self, at: u64) -> bool {
        at < self.window.1 || self.is_to_end && at == self.window.1
    }

    /// The pixel of a time in the window.
    pub fn pixel(&self, at: u64) -> f64 {
        let (from, to) = self.window;
        let length = (to - from).max(1) as f64;
        (at.clamp(from, to) - from) as f64 / length * WIDTH
    }

    fn thread(&mut self, pid: &Cell<'_>, tid: &Cell<'_>) -> Option<u32> {
        let (pid, tid) = (pid.or_zero(), tid.or_zero());
        let Some(number) = self.thread_numbers.number(thread(pid, tid), MAX_OWNERS) else {
            self.skip("events of threads beyond those that there is room for");
            return None;
        };
        if number == self.threads.len() {
            self.threads.push(Thread { pid, tid, name: 0 });
            self.processes.entry(pid).or_default();
        }
        Some(number as u32)
    }

    fn slice(&mut self, cells: &[Cell<'_>; 16]) -> io::Result<()> {
        let [ts, dur, pid, tid, _, _, category, name, async_id, _, .., provider] = cells;
        if let (Some(provider), Some(pid)) = (provider.number(), pid.number())
            && self.provider_pids.len() < MAX_PROVIDERS
        {
            self.provider_pids.insert((provider, pid));
        }
        let order = self.intervals.next_order();
        let (at, length) = (ts.or_zero(), dur.number().unwrap_or(OPEN));
        let end = at.saturating_add(length);
        if !self.has(at, end) || !self.is_chosen(Table::Slices, cells) {
            return Ok(());
        }
        let Some(thread) = self.thread(pid, tid) else { return Ok(()) };
        let what = self.whats.number(&mut self.texts, category.text(), name.text());
        let owner = match async_id {
            Cell::Null => Owner::Thread(thread),
            _ => Owner::Operations(self.threads[thread as usize].pid, what),
        };
        let Some(track) = self.track_numbers.number(owner, MAX_OWNERS) else {
            self.skip("slices of tracks beyond those that there is room for");
            return Ok(());
        };
        if track as usize == self.tracks.len() {
            self.tracks.push((owner, 0, 0));
        }
        let inside = end.min(self.window.1) - at.max(self.window.0).min(self.window.1);
        let (_, count, sum) = &mut self.tracks[track as usize];
        (*count, *sum) = (*count + 1, sum.saturating_add(inside));
        self.slice_count += 1;
        self.open += u64::from(end == OPEN);
        self.slices.push(at, &Entry { at, length, track, what, order }.encode());
        self.slices.check()
    }

    fn point(&mut self, [ts, pid, tid]: [&Cell<'_>; 3], category: &str, name: &str) {
        let at = ts.or_zero();
        if !self.has(at, at) {
            return;
        }
        let Some(thread) = self.thread(pid, tid) else { return };
        let what = self.whats.number(&mut self.texts, category, name);
        let pixel = self.pixel(at) as u16;
        let points = self.points.entry(thread).or_default();
        let (count, ..) = points.entry(pixel).or_insert((0, at, what));
        *count += 1;
        self.point_count += 1;
    }

    fn value(&mut self, cells: &[Cell<'_>; 10]) {
        let [ts, pid, tid, _, _, category, name, id, series, value] = cells;
        let Cell::Double(value) = *value else { return };
        let at = ts.or_zero();
        if !value.is_finite() || !self.has_begun(at) {
            return;
        }
        let Some(thread) = self.thread(pid, tid) else { return };
        let pid = self.threads[thread as usize].pid;
        let what = self.whats.number(&mut self.texts, category.text(), name.text());
        let series = self.texts.number(series.text());
        let key = Series { pid, what, id: id.or_zero(), series };
        if self.series.len() == MAX_OWNERS && !self.series.contains_key(&key) {
            self.skip("counter values of series beyond those that there is room for");
            return;
        }
        let is_in = self.has(at, at);
        let pixel = is_in.then(|| self.pixel(at) as u16);
        self.value_count += u64::from(is_in);
        self.series.entry(key).or_default().add(at, pixel, value);
    }

    fn flow(&mut self, cells: &[Cell<'_>; 9]) {
        let [ts, pid, tid, _, _, category, name, id, phase] = cells;
        if self.flows.len() == MAX_FLOWS {
            return self.skip("flow events beyond those that there is room for");
        }
        let (mut thread, mut what) = (LEFT_OUT, 0);
        if self.is_chosen(Table::Flows, cells) {
            let Some(number) = self.thread(pid, tid) else { return };
            (thread, what) = (number, self.whats.number(&mut self.texts, category.text(), name.text()));
        }
        let (id, at, phase) = (id.or_zero(), ts.or_zero(), Flow::phase(phase.text()));
        self.flows.push(Flow { id, at, phase, thread, what });
    }

    fn loss(&mut self, cells: &[Cell<'_>; 5]) {
        let [first, last, provider, reason, count] = cells;
        let (first, last) = (first.number(), last.number().filter(|last| *last > 0));
        let count = count.or_zero();
        self.lost = self.lost.saturating_add(count);
        let times = last.map(|last| (first.unwrap_or(last).min(last), last));
        let is_in = times.is_none_or(|(from, to)| self.has(from, to));
        if count > 0 && is_in && self.losses.len() < MAX_LOSSES {
            let (provider, reason) = (provider.or_zero(), reason.text().to_owned());
            self.losses.push(Loss { times, provider, reason, count });
        }
    }
}

impl Rows for Collector {
    fn wanted(&self) -> ColumnSet {
        let mut wanted = ColumnSet::NONE;
        let whose = ["ts", "pid", "tid", "category", "name"];
        wanted.add_named(Table::Slices, &["dur", "async_id", "provider"]);
        for table in [Table::Slices, Table::Instants, Table::Flows, Table::Counters] {
            wanted.add_named(table, &whose);
        }
        wanted.add_named(Table::Flows, &["flow_id", "phase"]);
        wanted.add_named(Table::Counters, &["counter_id", "series", "value"]);
        wanted.add_named(Table::Logs, &["ts", "pid", "tid", "message"]);
        for table in [Table::Threads, Table::Losses, Table::Programs] {
            wanted.add_all(table);
        }
        for table in [Table::Sched, Table::Samples, Table::Blobs] {
            wanted.add_named(table, &["ts"]);
            if self.chosen.is_some() {
                wanted.add_named(table, &whose);
            }
        }
        wanted
    }

    fn pair(&mut self, rows: u64) {
        self.intervals.pair(rows);
    }

    fn row(&mut self, table: Table, cells: &[Cell<'_>]) -> io::Result<()> {
        // Where others depend on what a row says, it is asked later.
        let is_asked = !matches!(table, Table::Slices | Table::Flows);
        if is_asked && !self.is_chosen(table, cells) {
            return Ok(());
        }
        match table {
            Table::Slices => return self.slice(Cell::first(cells)?),
            Table::Instants => {
                let [ts, pid, tid, _, _, category, name] = Cell::first(cells)?;
                self.point([ts, pid, tid], category.text(), name.text());
            }
            Table::Logs => {
                let [ts, pid, tid, _, _, message] = Cell::first(cells)?;
                self.point([ts, pid, tid], "log", message.text());
            }
            Table::Counters => self.value(Cell::first(cells)?),
            Table::Flows => self.flow(Cell::first(cells)?),
            Table::Threads => {
                let [pid, tid, process, name] = Cell::first(cells)?;
                let (pid, tid) = (pid.or_zero(), tid.or_zero());
                // Only of those that occur.
                if let Some(number) = self.thread_numbers.number(thread(pid, tid), self.threads.len()) {
                    self.threads[number].name = self.texts.number(name.text());
                }
                if let Some(name) = self.processes.get_mut(&pid).filter(|_| !process.text().is_empty()) {
                    *name = self.texts.number(process.text());
                }
            }
            Table::Losses => self.loss(Cell::first(cells)?),
            Table::Programs => {
                let [id, pid] = ["id", "pid"].map(|name| table.cell(cells, name).number());
                self.provider_pids.extend(id.zip(pid));
            }
            Table::Sched | Table::Samples | Table::Blobs => {
                let at = cells.first().and_then(Cell::number);
                if at.is_none_or(|at| self.has(at, at)) {
                    self.skip(match table {
                        Table::Sched => "context switches",
                        Table::Samples => "samples",
                        _ => "blobs",
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }
}
