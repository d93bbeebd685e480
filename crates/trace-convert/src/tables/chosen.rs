//! Which rows of tables are selected: those whose columns are.
//= docs/selecting.md#tables

use super::{Cell, KINDS, Kind};
use crate::Filter;
use foldhash::HashMap;
use std::array;
use trace_reader::item::Koid;
use trace_reader::{Text, Thread};

/// Tables of which rows can be selected. The other tables keep all rows.
const TABLES: [Kind; 11] = [
    Kind::Slices,
    Kind::Instants,
    Kind::Counters,
    Kind::Flows,
    Kind::Threads,
    Kind::Sched,
    Kind::Wakeups,
    Kind::Logs,
    Kind::Alerts,
    Kind::Samples,
    Kind::Blobs,
];
/// The columns that are looked at.
pub const COLUMNS: [&str; 5] = ["ts", "pid", "tid", "category", "name"];
/// Where a table has them; nowhere if all of its rows are selected.
pub fn places(kind: Kind) -> [Option<usize>; COLUMNS.len()] {
    COLUMNS.map(|name| kind.table().place(name).filter(|_| TABLES.contains(&kind)))
}

/// How many answers about threads are remembered.
const MAX_ANSWERS: usize = 1 << 16;

/// Answers for rows that are complete.
#[derive(Debug)]
pub struct ChosenRows {
    filter: Filter,
    /// By table, the places of the columns.
    places: [[Option<usize>; COLUMNS.len()]; KINDS],
    threads: HashMap<Thread, bool>,
}

impl ChosenRows {
    /// None if all rows are selected.
    #[must_use]
    pub fn new(filter: &Filter) -> Option<Self> {
        if filter.keeps_all() {
            return None;
        }
        let places = array::from_fn(|number| places(Kind::ALL[number]));
        Some(Self { filter: filter.clone(), places, threads: HashMap::default() })
    }

    /// Whether a row is selected, by its cells.
    pub fn has<'c>(&mut self, kind: Kind, cell: impl Fn(usize) -> Cell<'c>) -> bool {
        let [ts, pid, tid, category, name] =
            self.places[kind as usize].map(|place| place.map_or(Cell::Null, &cell));
        let text = |cell: Cell<'c>| if let Cell::Text(text) = cell { Some(text) } else { None };
        self.has_texts(text(category), text(name)) && self.has_place(ts.number(), pid.number(), tid.number())
    }

    /// Whether a row with this category and this name is selected.
    pub fn has_texts(&self, category: Option<&str>, name: Option<&str>) -> bool {
        match (category, name) {
            (Some(category), name) => {
                let name = name.unwrap_or_default();
                self.filter.has_texts(Text(category.as_bytes()), Text(name.as_bytes()))
            }
            (None, Some(name)) => self.filter.has_name(name),
            (None, None) => true,
        }
    }

    /// Whether a row with this time and this thread is selected.
    pub fn has_place(&mut self, ts: Option<u64>, pid: Option<u64>, tid: Option<u64>) -> bool {
        ts.is_none_or(|at| self.filter.has_time(at))
            && pid
                .zip(tid)
                .is_none_or(|(pid, tid)| self.has_thread(Thread { process: Koid(pid), thread: Koid(tid) }))
    }

    fn has_thread(&mut self, thread: Thread) -> bool {
        if self.threads.len() >= MAX_ANSWERS {
            self.threads.clear();
        }
        let Self { filter, threads, .. } = self;
        *threads.entry(thread).or_insert_with(|| match thread.process {
            // The scheduler has the number of the thread alone.
            Koid(0) => filter.has_thread_number(thread.thread),
            _ => filter.has_thread(thread),
        })
    }
}
