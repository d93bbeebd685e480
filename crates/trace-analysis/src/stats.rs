//! Sums over an archive: durations, operations, instants and counters.

use crate::assertion::Kind;
use crate::names::Whats;
use crate::quantiles::{Budget, Quantiles};
use crate::spans::{Span, Unfinished};
use crate::walk::{Sample, ThreadNames, Visitor, Walked, Walker, walk};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use trace_format::scopes::Ending;
use trace_model::{Chosen, Shape};
use trace_reader::{Disorder, Input, ReadError, Reader, Resolved};

/// How many series of counters are distinguished; further ones are left out.
const MAX_SERIES: usize = 10_000;

/// What durations are summed up by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Category and name.
    #[default]
    Name,
    /// Category.
    Category,
    /// Process.
    Process,
    /// Thread.
    Thread,
}

/// Selects events and how they are summed up.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How.
    pub by: By,
    /// Only what is chosen; all if nothing is said.
    pub chosen: Option<Chosen>,
}

/// Spans in numbers.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// Those that have ended.
    pub count: u64,
    /// Their time in nanoseconds.
    pub total: u128,
    /// Their time without the durations directly in them.
    pub own: u128,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// For percentiles of their time.
    pub quantiles: Quantiles,
    /// Those that have begun and not ended.
    pub unfinished: u64,
    /// Those of them of which the trace says why.
    pub open: BTreeMap<Ending, u64>,
    /// The longest time that one of these had lasted by then, in nanoseconds.
    pub open_for: Option<u64>,
}

impl Spread {
    #[inline]
    pub(crate) fn push(&mut self, span: &Span, budget: &mut Budget) {
        let duration = span.duration();
        self.min = if self.count == 0 { duration } else { self.min.min(duration) };
        self.max = self.max.max(duration);
        self.count += 1;
        self.total += u128::from(duration);
        self.own += u128::from(span.own);
        self.quantiles.push(duration as f64, budget);
    }

    /// The mean in nanoseconds; none of no span.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total as f64 / self.count as f64)
    }

    /// A percentile in nanoseconds, never beyond the shortest and the longest.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let found = self.quantiles.percentile(percent)?;
        Some(found.clamp(self.min as f64, self.max as f64))
    }
}

/// What of a name is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The time of all together.
    Total,
    /// That time without the durations inside.
    Own,
    /// How many.
    Count,
    /// The shortest.
    Min,
    /// The mean.
    Mean,
    /// The time that so many of a hundred do not exceed.
    Percentile(f64),
    /// The longest.
    Max,
}

impl Statistic {
    /// The number of some durations; none if it is not known.
    #[must_use]
    pub fn of(self, spread: &Spread) -> Option<f64> {
        match self {
            Self::Total => Some(spread.total as f64),
            Self::Own => Some(spread.own as f64),
            Self::Count => Some(spread.count as f64),
            Self::Min => Some(spread.min as f64),
            Self::Mean => spread.mean(),
            Self::Percentile(percent) => spread.percentile(percent),
            Self::Max => Some(spread.max as f64),
        }
    }

    /// The number of durations that need not be there; 0 of none.
    #[must_use]
    pub fn or_zero(self, spread: Option<&Spread>) -> f64 {
        spread.and_then(|spread| self.of(spread)).unwrap_or(0.0)
    }
}

/// What a row is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// The category, if it is by category or name.
    pub category: Option<String>,
    /// The name, if it is by name.
    pub name: Option<String>,
    /// The process, if it is by process or thread.
    pub pid: Option<u64>,
    /// Its name.
    pub process: Option<String>,
    /// The thread, if it is by thread.
    pub tid: Option<u64>,
    /// Its name.
    pub thread: Option<String>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is about.
    pub group: Group,
    /// The numbers.
    pub spread: Spread,
}

/// How often an instant happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instants {
    /// Its category.
    pub category: String,
    /// Its name.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// The values of a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its process.
    pub pid: u64,
    /// The name of that.
    pub process: Option<String>,
    /// Its category.
    pub category: String,
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: u64,
    /// The name of the value.
    pub series: String,
    /// How many samples.
    pub count: u64,
    /// The earliest value.
    pub first: f64,
    /// The latest value.
    pub last: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// The mean of all samples.
    pub mean: f64,
}

/// The sums of an archive.
#[derive(Debug)]
pub struct Stats {
    /// Durations of threads, in the order of [`Group`].
    pub durations: Vec<Row>,
    /// Asynchronous operations.
    pub operations: Vec<Row>,
    /// Polls of operations.
    pub polls: Vec<Row>,
    /// Instants.
    pub instants: Vec<Instants>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Samples of counters that were too many to be distinguished.
    pub other_samples: u64,
    /// What else the pass has found.
    pub walked: Walked,
}

impl Stats {
    /// Sums up an archive.
    ///
    /// # Errors
    /// As [`walk`].
    pub fn of(mut input: impl Read, disorder: &Disorder, options: &Options) -> Result<Self, ReadError> {
        Self::read(&mut input, disorder, options)
    }

    fn read(input: &mut dyn Read, disorder: &Disorder, options: &Options) -> Result<Self, ReadError> {
        let (summing, walked) = walk(input, disorder, options.chosen.as_ref(), Summing::new(options))?;
        Ok(summing.finish(walked))
    }
}

/// The sums of an archive that its caller reads.
pub struct Sums<'a>(Walker<'a, Summing<'a>>);

impl<'a> Sums<'a> {
    /// Sums after an earlier pass has found the disorder of the archive.
    #[must_use]
    pub fn new(disorder: &'a Disorder, options: &'a Options) -> Self {
        Self(Walker::new(disorder, options.chosen.as_ref(), Summing::new(options)))
    }

    /// Takes a record, in the order of the archive.
    #[inline]
    pub fn record(&mut self, record: &Resolved<'_>) {
        self.0.record(record);
    }

    /// Whether there was anything but definitions.
    #[must_use]
    pub const fn has_content(&self) -> bool {
        self.0.has_content()
    }

    /// The sums of an archive that was read to its end, or to an error.
    ///
    /// # Errors
    /// As of [`Walker::finish`].
    pub fn finish<I: Input>(
        self,
        reader: &Reader<I>,
        stopped: Option<ReadError>,
    ) -> Result<Stats, ReadError> {
        let (summing, walked) = self.0.finish(reader, stopped)?;
        Ok(summing.finish(walked))
    }
}

/// Where a span counts.
#[derive(Clone, Copy)]
struct Target {
    what: u32,
    thread: u32,
    process: u32,
    shape: Shape,
}

/// Process number, pair, id and series.
type CounterKey = (u32, u32, u64, u32);

struct Summing<'a> {
    options: &'a Options,
    /// By kind, and by the number of what they are summed up by.
    spreads: [Vec<Option<Box<Spread>>>; Kind::ALL.len()],
    instants: Vec<u64>,
    series: HashMap<String, u32, RandomState>,
    counters: HashMap<CounterKey, Values, RandomState>,
    other_samples: u64,
    budget: Budget,
}

/// Samples of one counter.
#[derive(Clone, Copy, Debug)]
struct Values {
    count: u64,
    first: (u64, f64),
    last: (u64, f64),
    min: f64,
    max: f64,
    sum: f64,
}

impl<'a> Summing<'a> {
    fn new(options: &'a Options) -> Self {
        Self {
            options,
            spreads: Default::default(),
            instants: Vec::new(),
            series: HashMap::default(),
            counters: HashMap::default(),
            other_samples: 0,
            budget: Budget::default(),
        }
    }

    #[inline]
    fn spread(&mut self, of: Target, whats: &Whats) -> &mut Spread {
        let place = match self.options.by {
            By::Name => of.what,
            By::Category => whats.what(of.what).category,
            By::Process => of.process,
            By::Thread => of.thread,
        } as usize;
        let rows = &mut self.spreads[Kind::of(of.shape) as usize];
        if rows.len() <= place {
            rows.resize_with(place + 1, || None);
        }
        rows[place].get_or_insert_default()
    }
}

impl Visitor for Summing<'_> {
    #[inline]
    fn span(&mut self, span: &Span, whats: &Whats) {
        let mut budget = self.budget;
        let Span { what, thread, process, shape, .. } = *span;
        self.spread(Target { what, thread, process, shape }, whats).push(span, &mut budget);
        self.budget = budget;
    }

    fn unfinished(&mut self, open: &Unfinished, whats: &Whats) {
        let Unfinished { what, thread, process, shape, .. } = *open;
        let spread = self.spread(Target { what, thread, process, shape }, whats);
        spread.unfinished += 1;
        if let Some((ending, lasted)) = open.ending {
            *spread.open.entry(ending).or_default() += 1;
            spread.open_for = spread.open_for.max(lasted);
        }
    }

    fn instant(&mut self, what: u32, _thread: u32, _at: u64, _whats: &Whats) {
        let place = what as usize;
        if self.instants.len() <= place {
            self.instants.resize(place + 1, 0);
        }
        self.instants[place] += 1;
    }

    fn wants_samples(&mut self, _what: u32, _whats: &Whats) -> bool {
        true
    }

    fn sample(&mut self, sample: &Sample<'_>, _whats: &Whats) {
        let series = match self.series.get(sample.series) {
            Some(series) => *series,
            None if self.series.len() >= MAX_SERIES => {
                self.other_samples += 1;
                return;
            }
            None => {
                let new = self.series.len() as u32;
                *self.series.entry(sample.series.to_owned()).or_insert(new)
            }
        };
        let key = (sample.process, sample.what, sample.id, series);
        if self.counters.len() >= MAX_SERIES && !self.counters.contains_key(&key) {
            self.other_samples += 1;
            return;
        }
        let (now, value) = ((sample.at, sample.value), sample.value);
        let new = Values { count: 0, first: now, last: now, min: value, max: value, sum: 0.0 };
        let values = self.counters.entry(key).or_insert(new);
        values.count += 1;
        values.sum += value;
        (values.min, values.max) = (values.min.min(value), values.max.max(value));
        // Samples of one time keep their order.
        if now.0 < values.first.0 {
            values.first = now;
        }
        if now.0 >= values.last.0 {
            values.last = now;
        }
    }
}

impl Summing<'_> {
    fn finish(mut self, walked: Walked) -> Stats {
        let [operations, durations, polls] =
            std::mem::take(&mut self.spreads).map(|spreads| self.rows(spreads, &walked));
        let whats = &walked.whats;
        let names =
            |what: usize| (whats.category(what as u32).to_owned(), whats.name(what as u32).to_owned());
        let instants = self.instants.iter().enumerate().filter(|(_, count)| **count > 0);
        let instants = instants.map(|(what, count)| {
            let (category, name) = names(what);
            Instants { category, name, count: *count }
        });
        let mut instants: Vec<Instants> = instants.collect();
        instants.sort_by(|a, b| (&a.category, &a.name).cmp(&(&b.category, &b.name)));
        let series: HashMap<u32, &String> =
            self.series.iter().map(|(text, number)| (*number, text)).collect();
        let counters = self.counters.drain().map(|((place, what, id, number), values)| {
            let (koid, process) = &walked.processes[place as usize];
            let (category, name) = names(what as usize);
            Counter {
                pid: koid.0,
                process: process.clone(),
                category,
                name,
                id,
                series: series.get(&number).map_or_else(String::new, |text| (*text).clone()),
                count: values.count,
                first: values.first.1,
                last: values.last.1,
                min: values.min,
                max: values.max,
                mean: values.sum / values.count as f64,
            }
        });
        let mut counters: Vec<Counter> = counters.collect();
        counters.sort_by(|a, b| {
            let key = |of: &Counter| (of.category.clone(), of.name.clone(), of.series.clone(), of.pid, of.id);
            key(a).cmp(&key(b))
        });
        Stats { durations, operations, polls, instants, counters, other_samples: self.other_samples, walked }
    }

    fn rows(&self, spreads: Vec<Option<Box<Spread>>>, walked: &Walked) -> Vec<Row> {
        let whats = &walked.whats;
        let spreads = spreads.into_iter().enumerate().filter_map(|(place, spread)| Some((place, *spread?)));
        let mut rows: Vec<Row> = spreads
            .map(|(place, spread)| {
                let mut group = Group::default();
                match self.options.by {
                    By::Name => {
                        group.category = Some(whats.category(place as u32).to_owned());
                        group.name = Some(whats.name(place as u32).to_owned());
                    }
                    By::Category => group.category = Some(whats.text_of(place as u32).to_owned()),
                    By::Process => {
                        let (koid, name) = &walked.processes[place];
                        (group.pid, group.process) = (Some(koid.0), name.clone());
                    }
                    By::Thread => {
                        let ThreadNames { thread, process_name, thread_name } = walked.threads[place].clone();
                        (group.pid, group.process) = (Some(thread.process.0), process_name);
                        (group.tid, group.thread) = (Some(thread.thread.0), thread_name);
                    }
                }
                Row { group, spread }
            })
            .collect();
        rows.sort_by(|a, b| a.group.cmp(&b.group));
        rows
    }
}
