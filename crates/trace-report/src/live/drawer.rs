//! Makes messages of the records of a recording.

use super::batch::{Batch, Begun, Object, Point, Slice, add_list};
use super::running::{Ran, Running};
use super::shorten;
use crate::entry::OPEN;
use crate::tracks::{Kind, Track, Tracks};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use trace_analysis::Shape;
use trace_analysis::live::{Live, Mark, Snapshot};
use trace_format::units::{Koid, ProviderId};

use trace_reader::{Item, Names, Resolved, Thread};

/// Tracks that are drawn; what would be on further ones is only counted.
const MAX_TRACKS: usize = 10_000;
/// Slices that have begun and not ended, of which pages know.
const MAX_OPEN: usize = 1000;
/// Names of durations of the whole recording that a message has.
const MAX_SUMS: usize = 100;
/// Bytes of a counter's series that are kept.
const MAX_SERIES_BYTES: usize = 200;
/// Names that threads and processes are given again, of which pages know.
const MAX_RENAMINGS: usize = 100_000;

/// What was lost or missed between two messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The name of the provider.
    pub provider: String,
    /// Its process.
    pub pid: u64,
    /// How it came, for people.
    pub reason: &'static str,
    /// How many records.
    pub count: u64,
}

/// What a message is about beside records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment<'a> {
    /// The time, in nanoseconds of the recording's clock.
    pub now: u64,
    /// The same on the wall clock, in milliseconds since 1970.
    pub clock_ms: f64,
    /// Names of threads and processes.
    pub names: Option<&'a Names>,
    /// What was lost since the last message.
    pub losses: &'a [Loss],
    /// For people, with which the sums of the whole recording come.
    pub table: Option<&'a Value>,
}

/// What is new since the last message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Names and numbers, which all later messages need; empty if there are no new ones.
    pub names: String,
    /// The slices that have not ended, for pages that come later; none if they are still the same.
    pub open: Option<String>,
    /// Everything else.
    pub update: String,
}

/// How much of each kind there was so far: as many rows as the tables of the archive have.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    slices: u64,
    operations: u64,
    instants: u64,
    counters: u64,
    flows: u64,
    logs: u64,
    sched: u64,
}

/// All durations of a name.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    total: u64,
    longest: u64,
}

/// How many of each list pages know.
#[derive(Debug, Default)]
struct Known {
    texts: usize,
    whats: usize,
    threads: usize,
    processes: usize,
    tracks: usize,
    /// The names of threads and processes that are known.
    thread_names: Vec<Option<Box<[u8]>>>,
    process_names: Vec<(Koid, Option<Box<[u8]>>)>,
    renamings: usize,
}

/// Sums records up, and makes messages of them.
#[derive(Debug, Default)]
pub struct Drawer {
    live: Live,
    drawing: Drawing,
    running: Running,
    known: Known,
    /// Slices that pages know to be open: their tracks, begins and names.
    open: HashSet<Begun>,
    /// Times in messages count from here.
    base: Option<u64>,
    /// The time of the last message.
    last: Option<u64>,
}

/// What marks become.
#[derive(Debug, Default)]
struct Drawing {
    tracks: Tracks,
    batch: Batch,
    totals: Totals,
    sums: Vec<Sum>,
    /// Names of the series of counters, by their numbers on tracks.
    series: Vec<String>,
    series_numbers: HashMap<String, u32>,
    /// What is on no track, because there are too many.
    undrawn: u64,
}

/// The track of a duration or an operation.
fn track_of(shape: Shape, what: u32, process: u32, thread: u32) -> Track {
    match shape {
        Shape::Operation => Track { what, ..Track::new(Kind::Operations, process.into()) },
        _ => Track::new(Kind::Thread, thread.into()),
    }
}

impl Drawing {
    fn track(&mut self, track: Track) -> Option<u32> {
        if self.tracks.list.len() < MAX_TRACKS || self.tracks.is_known(&track) {
            return Some(self.tracks.number(track));
        }
        self.undrawn += 1;
        None
    }

    fn series(&mut self, series: &str) -> Option<u32> {
        if let Some(number) = self.series_numbers.get(series) {
            return Some(*number);
        }
        // Each has a track at least.
        if self.series.len() >= MAX_TRACKS {
            self.undrawn += 1;
            return None;
        }
        let number = self.series.len() as u32;
        self.series.push(series.to_owned());
        self.series_numbers.insert(series.to_owned(), number);
        Some(number)
    }

    #[inline]
    fn take(&mut self, mark: Mark<'_>) {
        let mut track = None;
        match mark {
            Mark::Span(span) => {
                match span.shape {
                    Shape::Operation => self.totals.operations += 1,
                    _ => self.totals.slices += 1,
                }
                let of = track_of(span.shape, span.what, span.process, span.thread);
                // A poll is no duration of that name.
                if span.shape != Shape::Poll {
                    let place = span.what as usize;
                    if self.sums.len() <= place {
                        self.sums.resize(place + 1, Sum::default());
                    }
                    let sum = &mut self.sums[place];
                    sum.count += 1;
                    sum.total = sum.total.saturating_add(span.duration());
                    sum.longest = sum.longest.max(span.duration());
                }
                if let Some(track) = self.track(of) {
                    let slice = Slice { at: span.begin, length: span.duration(), track, what: span.what };
                    self.batch.slices.push(slice);
                }
            }
            Mark::Instant(point) => {
                self.totals.instants += 1;
                track =
                    self.track(Track::new(Kind::Instants, point.thread.into())).map(|track| (track, point));
            }
            Mark::Log(point) => {
                self.totals.logs += 1;
                track = self.track(Track::new(Kind::Logs, point.process.into())).map(|track| (track, point));
            }
            Mark::Flow(_) => self.totals.flows += 1,
            Mark::Sample { point, id, series, value } => {
                self.totals.counters += 1;
                let series = series.to_str();
                let series = self.series(&series[..series.floor_char_boundary(MAX_SERIES_BYTES)]);
                let Some(series) = series else { return };
                let of =
                    Track { what: point.what, id, series, ..Track::new(Kind::Counter, point.process.into()) };
                if let Some(track) = self.track(of) {
                    self.batch.samples.push(Point { at: point.at, track, what: value.to_bits() });
                }
            }
        }
        if let Some((track, point)) = track {
            self.batch.points.push(Point { at: point.at, track, what: point.what.into() });
        }
    }
}

impl Drawer {
    /// Takes the next record.
    #[inline]
    pub fn record(&mut self, record: &Resolved<'_>) {
        let Self { live, drawing, .. } = self;
        live.record_to(record, &mut |mark| drawing.take(mark));
        if let Item::Scheduling { time, kind, arguments } = &record.item
            && let Some(ran) = self.running.switch(time.nanos().0, kind, arguments, record.names)
        {
            self.ran(ran);
        }
    }

    fn ran(&mut self, Ran { cpu, thread, from, to }: Ran) {
        self.drawing.totals.sched += 1;
        let what = self.live.thread(thread);
        if let Some(track) = self.drawing.track(Track::new(Kind::Cpu, cpu.into())) {
            let slice = Slice { at: from, length: to.saturating_sub(from), track, what };
            self.drawing.batch.slices.push(slice);
        }
    }

    /// The statistics at a time in nanoseconds, with the first `most` names.
    pub fn snapshot(&mut self, now: u64, most: usize) -> Snapshot {
        self.live.snapshot(now, most)
    }

    /// Forgets a provider that takes no more part.
    pub fn forget(&mut self, provider: ProviderId) {
        self.live.forget(provider);
    }

    /// What has come since the last message.
    pub fn message(&mut self, moment: Moment<'_>) -> Message {
        let Moment { now, clock_ms, names, losses, table } = moment;
        let mut gone = std::mem::take(&mut self.open);
        let opened = self.opened(&mut gone);
        let base = self.base.unwrap_or_else(|| self.first().unwrap_or(now));
        self.base = Some(base);
        let from = self.last.replace(now).unwrap_or(base);
        let relative = |time: u64| time.wrapping_sub(base) as i64;
        let mut update = Object::new();
        update.insert("base".to_owned(), base.to_string().into());
        update.insert("from".to_owned(), relative(from).into());
        update.insert("now".to_owned(), relative(now).into());
        update.insert("clock".to_owned(), clock_ms.into());
        self.drawing.batch.write(base, &mut gone, &mut update);
        let gone = gone.iter().map(|(track, at, what)| json!([track, relative(*at), what]));
        add_list(&mut update, "gone", gone);
        let losses = losses.iter().map(|Loss { provider, pid, reason, count }| {
            json!([relative(from), relative(now), provider, reason, count, [pid.to_string()]])
        });
        add_list(&mut update, "losses", losses);
        update.insert("totals".to_owned(), self.totals());
        if let Some(table) = table {
            update.insert("table".to_owned(), table.clone());
            self.write_sums(&mut update);
        }
        let open = opened.then(|| self.open_slices(base));
        Message { names: self.names(names), open, update: Value::from(update).to_string() }
    }

    /// The time of the first thing that was recorded since the last message.
    fn first(&self) -> Option<u64> {
        let Batch { slices, points, samples, .. } = &self.drawing.batch;
        let points = points.iter().chain(samples).map(|point| point.at);
        slices.iter().map(|slice| slice.at).chain(points).min()
    }

    /// Finds the slices that have not ended, adds those that have begun since the last message, and leaves
    /// those that pages know and that are no longer among them. Whether those that have not ended are others
    /// now.
    fn opened(&mut self, known: &mut HashSet<Begun>) -> bool {
        let Self { live, drawing, open, .. } = self;
        let mut has_new = false;
        for of in live.unfinished() {
            if open.len() >= MAX_OPEN {
                break;
            }
            let track = track_of(of.shape, of.what, of.process, of.thread);
            let Some(track) = drawing.track(track) else { continue };
            let slice = Slice { at: of.begin, length: OPEN, track, what: of.what };
            if open.insert(slice.begun()) && !known.remove(&slice.begun()) {
                has_new = true;
                drawing.batch.slices.push(slice);
            }
        }
        has_new || !known.is_empty()
    }

    /// All slices that have not ended, as an update.
    fn open_slices(&self, base: u64) -> String {
        let slices = self.open.iter().map(|&(track, at, what)| Slice { at, length: OPEN, track, what });
        let mut batch = Batch { slices: slices.collect(), ..Batch::default() };
        let mut out = Object::new();
        out.insert("base".to_owned(), base.to_string().into());
        batch.write(base, &mut HashSet::new(), &mut out);
        Value::from(out).to_string()
    }

    fn totals(&self) -> Value {
        let Totals { slices, operations, instants, counters, flows, logs, sched } = self.drawing.totals;
        json!({
            "slices": slices,
            "operations": operations,
            "instants": instants,
            "counters": counters,
            "flows": flows,
            "logs": logs,
            "sched": sched,
            "thinned": self.drawing.batch.thinned,
            "undrawn": self.drawing.undrawn,
        })
    }

    /// The names with most time in the whole recording: number, count, time, and the longest.
    fn write_sums(&self, out: &mut Object) {
        let mut sums: Vec<(usize, &Sum)> =
            self.drawing.sums.iter().enumerate().filter(|(_, sum)| sum.count > 0).collect();
        let key = |(what, sum): &(usize, &Sum)| (Reverse(sum.total), *what);
        let more = sums.len().saturating_sub(MAX_SUMS);
        if more > 0 {
            sums.select_nth_unstable_by_key(MAX_SUMS, key);
            sums.truncate(MAX_SUMS);
        }
        sums.sort_by_key(key);
        let sums =
            sums.iter().map(|(what, Sum { count, total, longest })| json!([what, count, total, longest]));
        out.insert("sums".to_owned(), sums.collect());
        out.insert("more_sums".to_owned(), more.into());
    }

    /// Names and numbers that pages do not know yet.
    fn names(&mut self, names: Option<&Names>) -> String {
        let Self { live, drawing, known, .. } = self;
        let mut out = Object::new();
        let whats = live.whats();
        let texts = known.texts..whats.texts();
        add_list(&mut out, "texts", texts.map(|text| shorten(whats.text_of(text as u32)).into()));
        known.texts = whats.texts();
        let new = (known.whats..whats.len()).map(|what| whats.what(what as u32));
        add_list(&mut out, "whats", new.map(|what| json!([what.category, what.name])));
        known.whats = whats.len();
        let threads = live.threads();
        if known.threads < threads.len() {
            let new: Vec<(Thread, u32)> = threads.skip(known.threads).collect();
            for (thread, process) in &new {
                if *process as usize == known.process_names.len() {
                    known.process_names.push((thread.process, None));
                }
            }
            // Numbers of more than 53 bits would lose digits.
            let threads = new.iter().map(|(thread, process)| json!([thread.thread.0.to_string(), process]));
            add_list(&mut out, "threads", threads);
            let processes = known.process_names[known.processes..].iter();
            add_list(&mut out, "processes", processes.map(|(process, _)| process.0.to_string().into()));
            known.processes = known.process_names.len();
            known.threads += new.len();
            known.thread_names.resize(known.threads, None);
        }
        let tracks = drawing.tracks.list[known.tracks..].iter().map(|track| {
            let Track { kind, owner, what, id, series, .. } = *track;
            let is_counter = kind == Kind::Counter;
            let series = drawing.series.get(series as usize).filter(|_| is_counter);
            json!([kind as u8, owner, what, id.to_string(), series.map_or("", String::as_str)])
        });
        add_list(&mut out, "tracks", tracks);
        known.tracks = drawing.tracks.list.len();
        if let Some(names) = names {
            rename(&mut out, live, known, names);
        }
        if out.is_empty() { String::new() } else { Value::from(out).to_string() }
    }
}

/// Adds the names of threads and processes that are new.
fn rename(out: &mut Object, live: &Live, known: &mut Known, names: &Names) {
    let mut new: [Vec<(usize, String)>; 2] = Default::default();
    let mut renamings = known.renamings;
    let mut take =
        |place: usize, number: usize, old: &mut Option<Box<[u8]>>, name: Option<trace_reader::Text<'_>>| {
            let Some(name) = name.filter(|name| old.as_deref() != Some(name.as_bytes())) else { return };
            // The first name always is known.
            if old.is_some() {
                if renamings >= MAX_RENAMINGS {
                    return;
                }
                renamings += 1;
            }
            *old = Some(name.as_bytes().into());
            new[place].push((number, shorten(&name.to_str()).to_owned()));
        };
    for (number, ((thread, _), old)) in live.threads().zip(&mut known.thread_names).enumerate() {
        take(0, number, old, names.thread(thread));
    }
    for (number, (process, old)) in known.process_names.iter_mut().enumerate() {
        take(1, number, old, names.process(*process));
    }
    known.renamings = renamings;
    for (name, new) in ["thread_names", "process_names"].iter().zip(&new) {
        add_list(out, name, new.iter().map(|(number, name)| json!([number, name])));
    }
}

#[cfg(test)]
mod tests;
