//! Takes the rows of a trace's tables: everything that is drawn goes into a sorter, everything else is
//! summed up at once.

use crate::entry::{Entry, Flow, LEFT_OUT, OPEN};
use crate::lengths::Lengths;
use crate::sorting::Sorting;
use crate::states::{States, Stretch};
use crate::texts::{Texts, Whats};
use crate::tracks::{Kind, Track, Tracks};
use crate::waits::Waits;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use trace_convert::Filter;
use trace_convert::tables::{Cell, ChosenRows, ColumnSet, Intervals, Kind as Table, Rows};
use trace_format::units::{Koid, Thread};

/// Flow events that are drawn; further ones are counted.
const MAX_FLOWS: usize = 1_000_000;
/// Losses that are drawn.
const MAX_LOSSES: usize = 1000;
/// What a provider has lost in an interval.
#[derive(Clone, Debug)]
pub struct Loss {
    pub first: Option<u64>,
    pub last: Option<u64>,
    pub provider: u64,
    pub reason: String,
    /// How many records; none if that is unknown.
    pub count: Option<u64>,
}

/// What the trace says of itself: columns of the table `traces`.
pub type SessionInfo = Vec<(&'static str, String)>;

/// Columns that are used of the tables with many rows. Names of threads are in the table of threads.
const COLUMNS: [(Table, &[&str]); 6] = [
    (Table::Slices, &["ts", "dur", "pid", "tid", "category", "name", "async_id", "args", "program_id"]),
    (Table::Instants, &["ts", "pid", "tid", "category", "name", "args"]),
    (Table::Counters, &["ts", "pid", "tid", "category", "name", "counter_id", "series", "value"]),
    (Table::Flows, &["ts", "pid", "tid", "category", "name", "flow_id", "phase"]),
    (Table::Sched, &["ts", "dur", "cpu", "pid", "tid", "prio", "end_state"]),
    (Table::Wakeups, &["ts", "tid"]),
];
/// Tables of which all is used.
const WHOLE: [Table; 5] = [Table::Threads, Table::Logs, Table::Losses, Table::Programs, Table::Traces];

/// All that a page has of a trace.
#[derive(Default)]
pub struct Collector {
    pub texts: Texts,
    pub whats: Whats,
    pub tracks: Tracks,
    pub sorting: Sorting,
    intervals: Intervals,
    chosen: Option<ChosenRows>,
    /// The first and the last moment.
    pub times: Option<(u64, u64)>,
    /// The greatest common divisor of all times and lengths.
    pub unit: u64,
    pub flows: Vec<Flow>,
    pub dropped_flows: u64,
    pub waits: Waits,
    states: States,
    stretches: Vec<Stretch>,
    pub lengths: Lengths,
    pub losses: Vec<Loss>,
    pub dropped_losses: u64,
    pub providers: BTreeMap<u64, String>,
    /// Which processes the slices of a provider are of.
    pub provider_processes: BTreeSet<(u64, u64)>,
    pub session_info: SessionInfo,
    last_provider: (u64, u64),
    args: String,
}

/// The cells of the columns that say which thread a row is of.
fn thread(cells: &[Cell<'_>], from: usize) -> Thread {
    let [pid, tid] = [0, 1].map(|place| cells.get(from + place).and_then(Cell::number).unwrap_or_default());
    Thread { process: Koid(pid), thread: Koid(tid) }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Whether something that begins at a time is selected, as far as that is concerned.
fn has_time(chosen: &mut Option<ChosenRows>, at: u64) -> bool {
    chosen.as_mut().is_none_or(|chosen| chosen.has_place(Some(at), None, None))
}

impl Collector {
    /// Takes what a filter keeps.
    pub fn new(filter: &Filter) -> Self {
        Self { chosen: ChosenRows::new(filter), ..Self::default() }
    }

    /// Whether a row is not selected.
    #[inline]
    fn leaves_out<'c>(&mut self, table: Table, cell: impl Fn(usize) -> Cell<'c>) -> bool {
        match &mut self.chosen {
            None => false,
            Some(chosen) => !is_chosen(chosen, table, cell),
        }
    }

    /// Takes the times of something, which are those of the trace whatever is selected.
    //= docs/selecting.md#rules
    fn seen(&mut self, at: u64, length: u64) {
        let end = if length == OPEN { at } else { at.saturating_add(length) };
        let times = self.times.get_or_insert((at, end));
        *times = (times.0.min(at), times.1.max(end));
    }

    fn measure(&mut self, time: u64) {
        if self.unit != 1 && (self.unit == 0 || !time.is_multiple_of(self.unit)) {
            self.unit = gcd(self.unit, time);
        }
    }

    fn push(&mut self, entry: Entry, args: &str) {
        self.measure(entry.at);
        let mut end = entry.at;
        let track = &mut self.tracks.list[entry.track as usize];
        track.count += 1;
        let kind = track.kind;
        if kind != Kind::Counter && entry.length != OPEN {
            self.measure(entry.length);
            end = entry.end();
        }
        if kind.has_length() {
            self.lengths.add(entry.length);
        }
        let times = self.times.get_or_insert((entry.at, end));
        *times = (times.0.min(entry.at), times.1.max(end));
        self.sorting.push(entry, args);
    }

    /// Takes a slice, of whose row only these cells are made.
    #[inline]
    fn slice<'c>(&mut self, cell: impl Fn(usize) -> Cell<'c>) {
        let [ts, dur, pid, tid, category, name] = [0, 1, 2, 3, 6, 7].map(&cell);
        let [async_id, args, provider] = [8, 9, 15].map(&cell);
        let [pid, tid, provider] = [pid, tid, provider].map(|cell| cell.or_zero());
        let provider = (provider, pid);
        if self.last_provider != provider && self.provider_processes.len() < MAX_LOSSES {
            self.provider_processes.insert(provider);
            self.last_provider = provider;
        }
        let (at, length) = (ts.or_zero(), dur.number().unwrap_or(OPEN));
        let (args, order) = (args.text(), self.intervals.next_order());
        if self.leaves_out(Table::Slices, cell) {
            return self.seen(at, length);
        }
        let what = self.whats.number(&mut self.texts, category.text(), name.text());
        let owner = self.tracks.thread(Thread { process: Koid(pid), thread: Koid(tid) });
        let Some(id) = async_id.number() else {
            let track = self.tracks.number(Track::new(Kind::Thread, owner.into()));
            self.push(Entry { order, ..Entry::new(at, length, track, what) }, args);
            return;
        };
        let process = self.tracks.process_of(owner);
        let track = self.tracks.number(Track { what, ..Track::new(Kind::Operations, process.into()) });
        // The operation's number is shown beside its arguments.
        self.with_args(Entry::new(at, length, track, what), |json| {
            _ = match args.strip_prefix('{') {
                Some(rest) => write!(json, "{{\"async_id\":{id},{rest}"),
                None => write!(json, "{{\"async_id\":{id}}}"),
            };
        });
    }

    /// Takes an entry whose arguments are written as JSON.
    fn with_args(&mut self, entry: Entry, args: impl FnOnce(&mut String)) {
        let mut json = std::mem::take(&mut self.args);
        json.clear();
        args(&mut json);
        self.push(entry, &json);
        self.args = json;
    }

    fn instant(&mut self, cells: &[Cell<'_>; 10]) {
        let [ts, _, _, _, _, category, name, _, _, args] = cells;
        let what = self.whats.number(&mut self.texts, category.text(), name.text());
        let owner = self.tracks.thread(thread(cells, 1));
        let track = self.tracks.number(Track::new(Kind::Instants, owner.into()));
        self.push(Entry::new(ts.or_zero(), 0, track, what), args.text());
    }

    fn log(&mut self, cells: &[Cell<'_>; 6]) {
        let [ts, _, _, _, thread_name, message] = cells;
        let what = self.whats.number(&mut self.texts, "", message.text());
        let owner = self.tracks.thread(thread(cells, 1));
        let process = self.tracks.process_of(owner);
        let track = self.tracks.number(Track::new(Kind::Logs, process.into()));
        self.with_args(Entry::new(ts.or_zero(), 0, track, what), |json| {
            _ = write!(json, "{{\"thread\":{}}}", serde_json::Value::from(thread_name.text()));
        });
    }

    fn counter(&mut self, cells: &[Cell<'_>; 11]) {
        let [ts, _, _, _, _, category, name, id, series, value, _] = cells;
        let Cell::Double(value) = *value else { return };
        let what = self.whats.number(&mut self.texts, category.text(), name.text());
        let owner = self.tracks.thread(thread(cells, 1));
        let process = self.tracks.process_of(owner);
        let series = self.texts.number(series.text());
        let id = id.or_zero();
        let track = Track { what, id, series, ..Track::new(Kind::Counter, process.into()) };
        let track = self.tracks.number(track);
        self.push(Entry::new(ts.or_zero(), value.to_bits(), track, what), "");
    }

    fn flow(&mut self, cells: &[Cell<'_>; 10]) {
        let [ts, _, _, _, _, category, name, id, phase, _] = cells;
        if self.flows.len() >= MAX_FLOWS {
            self.dropped_flows += 1;
            return;
        }
        let (id, at, phase) = (id.or_zero(), ts.or_zero(), Flow::phase(phase.text()));
        self.measure(at);
        self.seen(at, 0);
        let (mut what, mut of) = (0, LEFT_OUT);
        if !self.leaves_out(Table::Flows, |place| cells[place]) {
            what = self.whats.number(&mut self.texts, category.text(), name.text());
            of = self.tracks.thread(thread(cells, 1));
        }
        self.flows.push(Flow { what, id, at, thread: of, phase });
    }

    fn sched(&mut self, cells: &[Cell<'_>; 9]) {
        let [ts, dur, cpu, _, _, _, _, prio, end_state] = cells;
        let thread = thread(cells, 3);
        let place = (Some(thread.process.0), Some(thread.thread.0));
        let has_thread = self.chosen.as_mut().is_none_or(|chosen| chosen.has_place(None, place.0, place.1));
        let who = if has_thread { self.tracks.thread(thread) } else { LEFT_OUT };
        let (at, length) = (ts.or_zero(), dur.number().unwrap_or(OPEN));
        let chosen = &mut self.chosen;
        self.waits.ran(thread.thread.0, who, at, |from| has_thread && has_time(chosen, from));
        if has_thread && has_time(&mut self.chosen, at) {
            let track = self.tracks.number(Track::new(Kind::Cpu, cpu.or_zero()));
            self.with_args(Entry::new(at, length, track, who), |json| {
                _ = write!(json, "{{\"tid\":{}", thread.thread.0);
                if let Some(prio) = prio.number() {
                    _ = write!(json, ",\"prio\":{prio}");
                }
                if let Cell::Text(state) = end_state {
                    _ = write!(json, ",\"end_state\":{}", serde_json::Value::from(*state));
                }
                json.push('}');
            });
        } else {
            self.seen(at, length);
        }
        let end_state = if let Cell::Text(state) = end_state { Some(*state) } else { None };
        let mut stretches = std::mem::take(&mut self.stretches);
        self.states.ran(thread.thread.0, who, (at, length), end_state, |stretch| stretches.push(stretch));
        stretches.drain(..).for_each(|stretch| self.stretch(who, stretch));
        self.stretches = stretches;
    }

    /// A thread is in a state for a time.
    fn stretch(&mut self, thread: u32, Stretch { at, length, state }: Stretch) {
        if thread == LEFT_OUT || !has_time(&mut self.chosen, at) {
            return self.seen(at, length);
        }
        let what = self.whats.number(&mut self.texts, "", state.text());
        let track = self.tracks.number(Track::new(Kind::States, thread.into()));
        self.push(Entry::new(at, length, track, what), "");
    }

    /// Takes what is only known when there are no more rows.
    pub fn finish(&mut self) {
        std::mem::take(&mut self.states).finish(|thread, stretch| self.stretch(thread, stretch));
        // What is drawn counts from it.
        if let Some((first, _)) = self.times {
            self.measure(first);
        }
    }
}

/// Out of the way of whole traces.
#[inline(never)]
fn is_chosen<'c>(chosen: &mut ChosenRows, table: Table, cell: impl Fn(usize) -> Cell<'c>) -> bool {
    chosen.has(table, cell)
}

impl Rows for Collector {
    fn wanted(&self) -> ColumnSet {
        let mut wanted = ColumnSet::NONE;
        for (table, columns) in COLUMNS {
            wanted.add_named(table, columns);
        }
        for table in WHOLE {
            wanted.add_all(table);
        }
        wanted
    }

    fn pair(&mut self, rows: u64) {
        self.intervals.pair(rows);
    }

    #[inline]
    fn row_of<'c, const N: usize>(
        &mut self,
        table: Table,
        cell: impl Fn(usize) -> Cell<'c>,
    ) -> io::Result<()> {
        if table == Table::Slices {
            self.slice(cell);
            return Ok(());
        }
        let cells: [Cell<'_>; N] = std::array::from_fn(cell);
        self.row(table, &cells)
    }

    fn row(&mut self, table: Table, cells: &[Cell<'_>]) -> io::Result<()> {
        // Where others depend on what a row says, it is asked later.
        let is_asked = !matches!(table, Table::Slices | Table::Flows | Table::Sched | Table::Wakeups);
        let cell = |place: usize| cells.get(place).copied().unwrap_or(Cell::Null);
        if is_asked && self.leaves_out(table, cell) {
            let has_time = match table {
                Table::Instants | Table::Logs => true,
                Table::Counters => matches!(table.cell(cells, "value"), Cell::Double(_)),
                _ => false,
            };
            if has_time && let Some(at) = cells.first().and_then(Cell::number) {
                self.seen(at, 0);
            }
            return Ok(());
        }
        match table {
            Table::Slices => {
                let cells = Cell::first::<16>(cells)?;
                self.slice(|place| cells[place]);
            }
            Table::Instants => self.instant(Cell::first(cells)?),
            Table::Counters => self.counter(Cell::first(cells)?),
            Table::Flows => self.flow(Cell::first(cells)?),
            Table::Logs => self.log(Cell::first(cells)?),
            Table::Sched => self.sched(Cell::first(cells)?),
            Table::Wakeups => {
                let [ts, _, _, tid, ..] = Cell::first::<8>(cells)?;
                let (tid, at) = (tid.or_zero(), ts.or_zero());
                self.waits.woken(tid, at);
                self.states.woken(tid, at);
            }
            Table::Threads => {
                let [_, _, process, name, _] = Cell::first(cells)?;
                let thread = self.tracks.thread(thread(cells, 0));
                self.tracks.name(&mut self.texts, thread, process.text(), name.text());
            }
            Table::Losses => {
                let [first, last, provider, reason, count] = Cell::first(cells)?;
                let provider = provider.or_zero();
                let (first, last, count) = (first.number(), last.number(), count.number());
                if self.losses.len() >= MAX_LOSSES {
                    self.dropped_losses += 1;
                } else if count != Some(0) {
                    self.losses.push(Loss { first, last, provider, reason: reason.text().to_owned(), count });
                }
            }
            Table::Programs => {
                let [id, name, ..] = Cell::first::<5>(cells)?;
                self.providers.insert(id.or_zero(), name.text().to_owned());
            }
            Table::Traces => {
                for name in ["start_ts", "end_ts"] {
                    table.cell(cells, name).number().into_iter().for_each(|at| self.seen(at, 0));
                }
                for ((name, _), cell) in table.table().columns.iter().zip(cells) {
                    match cell {
                        Cell::Null => {}
                        Cell::Text(text) => self.session_info.push((name, (*text).to_owned())),
                        Cell::Double(value) => self.session_info.push((name, value.to_string())),
                        cell => self.session_info.push((name, cell.or_zero().to_string())),
                    }
                }
            }
            // Alerts are instants, too. The page has no samples and no blobs.
            Table::Alerts | Table::Samples | Table::Stacks | Table::Blobs => {}
        }
        Ok(())
    }
}
