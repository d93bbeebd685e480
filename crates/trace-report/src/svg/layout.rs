//! Which tracks a picture has, and where.

use super::collector::{Collector, Owner, Series};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use trace_convert::tables::series_title;

/// Pixels of the window.
pub const WIDTH: f64 = 1000.0;
/// Pixels of the titles, left of it.
pub const GUTTER: f64 = 180.0;
pub const MARGIN: f64 = 10.0;
/// Heights: of the title, the time axis, a process's title, a row, a row of points, and a counter.
pub const HEAD: f64 = 26.0;
pub const AXIS: f64 = 22.0;
pub const PROCESS: f64 = 22.0;
pub const ROW: f64 = 18.0;
pub const POINTS: f64 = 12.0;
pub const COUNTER: f64 = 30.0;
/// Between tracks.
const GAP: f64 = 4.0;

/// Threads, kinds of operations and series of counters of a picture.
const MAX_THREADS: usize = 40;
const MAX_OPERATIONS: usize = 16;
const MAX_SERIES: usize = 16;

/// What is shown, and how many of each kind are not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub threads: BTreeSet<u32>,
    /// Tracks of those threads, and of operations.
    pub tracks: BTreeSet<u32>,
    pub series: BTreeSet<Series>,
    pub hidden_threads: u64,
    pub hidden_operations: u64,
    pub hidden_series: u64,
    /// Slices and points that are on what is not shown.
    pub hidden_events: u64,
}

impl Shown {
    /// Those with the most time in the window; of threads without slices, those with the most points.
    pub fn of(collector: &Collector) -> Self {
        let mut shown = Self::default();
        let mut threads: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut operations = Vec::new();
        for (track, (owner, count, sum)) in (0_u32..).zip(&collector.tracks) {
            match owner {
                Owner::Thread(thread) => _ = threads.insert(*thread, (*sum, *count)),
                Owner::Operations(..) => operations.push((Reverse(*sum), track, *count)),
            }
        }
        for (thread, points) in &collector.points {
            let count = points.values().map(|(count, ..)| count).sum::<u64>();
            threads.entry(*thread).or_default().1 += count;
        }
        let mut threads: Vec<_> = threads
            .into_iter()
            .map(|(thread, (sum, count))| (Reverse(sum), Reverse(count), thread))
            .collect();
        threads.sort_unstable();
        let hidden = threads.split_off(threads.len().min(MAX_THREADS));
        shown.hidden_threads = hidden.len() as u64;
        shown.hidden_events = hidden.iter().map(|(_, Reverse(count), _)| count).sum();
        shown.threads = threads.into_iter().map(|(.., thread)| thread).collect();
        operations.sort_unstable();
        let hidden = operations.split_off(operations.len().min(MAX_OPERATIONS));
        shown.hidden_operations = hidden.len() as u64;
        shown.hidden_events += hidden.iter().map(|(.., count)| count).sum::<u64>();
        shown.tracks = operations.into_iter().map(|(_, track, _)| track).collect();
        for (track, (owner, ..)) in (0_u32..).zip(&collector.tracks) {
            if matches!(owner, Owner::Thread(thread) if shown.threads.contains(thread)) {
                shown.tracks.insert(track);
            }
        }
        shown.hidden_series = collector.series.len().saturating_sub(MAX_SERIES) as u64;
        shown.series = collector.series.keys().take(MAX_SERIES).cloned().collect();
        shown
    }
}

/// Something with a title and a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    pub kind: LaneKind,
    pub y: f64,
    pub height: f64,
    pub title: String,
}

/// What is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// A process, by its number.
    Process(u64),
    /// A thread: points, if it has any, and slices below them.
    Thread(u32),
    /// Operations, by their track.
    Operations(u32),
    /// A counter.
    Counter(Series),
}

/// All places.
#[derive(Debug, Default)]
pub struct Layout {
    pub lanes: Vec<Lane>,
    /// Where the first row of a track is.
    pub tracks: BTreeMap<u32, f64>,
    /// The middle of a thread's first row.
    pub threads: BTreeMap<u32, f64>,
    /// From where to where a process's tracks go.
    pub processes: BTreeMap<u64, (f64, f64)>,
    /// The lower end of all.
    pub bottom: f64,
}

fn named(name: &str, other: &str, number: u64) -> String {
    if name.is_empty() { format!("{other} {number}") } else { format!("{name} {number}") }
}

impl Layout {
    /// Places what is shown; `rows` has the rows of each track.
    pub fn of(collector: &Collector, shown: &Shown, rows: &[u32]) -> Self {
        let mut layout = Self { bottom: HEAD + AXIS, ..Self::default() };
        let text = |number: u32| collector.texts.text(number);
        let what = |number: u32| {
            let (_, name) = collector.whats.list().get(number as usize).copied().unwrap_or_default();
            text(name)
        };
        let mut threads: Vec<u32> = shown.threads.iter().copied().collect();
        threads.sort_by_key(|number| {
            let thread = &collector.threads[*number as usize];
            // The main thread first, then by number.
            (thread.pid, thread.tid != thread.pid, thread.tid)
        });
        let track_of = |thread: u32| {
            let is_its = |track: &&u32| collector.tracks[**track as usize].0 == Owner::Thread(thread);
            shown.tracks.iter().find(is_its).copied()
        };
        for (pid, name) in &collector.processes {
            let mut lanes = Vec::new();
            for thread in threads.iter().filter(|number| collector.threads[**number as usize].pid == *pid) {
                let track = track_of(*thread);
                let points = if collector.points.contains_key(thread) { POINTS } else { 0.0 };
                let height = points + track.map_or(0.0, |track| f64::from(rows[track as usize]) * ROW);
                let of = &collector.threads[*thread as usize];
                let title = named(text(of.name), "thread", of.tid);
                lanes.push((LaneKind::Thread(*thread), height, title, track, points));
            }
            for track in &shown.tracks {
                if let (Owner::Operations(of, name), ..) = collector.tracks[*track as usize]
                    && of == *pid
                {
                    let (height, title) = (f64::from(rows[*track as usize]) * ROW, what(name).to_owned());
                    lanes.push((LaneKind::Operations(*track), height, title, Some(*track), 0.0));
                }
            }
            for series in shown.series.iter().filter(|series| series.pid == *pid) {
                let title = series_title(what(series.what), text(series.series), series.id);
                lanes.push((LaneKind::Counter(series.clone()), COUNTER, title, None, 0.0));
            }
            if lanes.is_empty() {
                continue;
            }
            let top = layout.bottom;
            layout.push(LaneKind::Process(*pid), PROCESS, named(text(*name), "process", *pid));
            for (kind, height, title, track, points) in lanes {
                let y = layout.bottom;
                if let Some(track) = track {
                    layout.tracks.insert(track, y + points);
                }
                if let LaneKind::Thread(thread) = kind {
                    let row = if track.is_some() { ROW } else { 0.0 };
                    layout.threads.insert(thread, y + (points + row) / 2.0);
                }
                layout.push(kind, height, title);
            }
            layout.processes.insert(*pid, (top, layout.bottom));
        }
        layout
    }

    fn push(&mut self, kind: LaneKind, height: f64, title: String) {
        self.lanes.push(Lane { kind, y: self.bottom, height, title });
        self.bottom += height + GAP;
    }
}
