//! Processed profiles of the Firefox Profiler, of a documented version: its own upgraders read older ones.
//!
//! Everything that is on a thread is a marker; samples are samples, and of a thread without any, its slices
//! are, too: each stretch between two changes of its stack, with its length as weight. Columns of a thread
//! wait in unlinked files until the thread is complete.
//= docs/firefox.md#document

mod counters;
mod markers;
mod meta;
mod stacks;
mod thread;

use crate::export::threads::{Collector, Entry, Keep, Kind, Names, Threads, collect};
use crate::json::Json;
use crate::tables::Trace;
use crate::{ConvertError, Filter, Summary};
use meta::Meta;
use std::collections::BTreeMap;
use std::io::{self, Write};
use thread::{Columns, Shared};
use trace_model::{Placing, Step, Stepping, Steps};

/// The version of the format. Later ones move the tables of threads to where they are shared.
const VERSION: u32 = 57;

/// Converts a trace.
///
/// # Errors
/// The input is no archive or cannot be read, or the output cannot be written.
pub fn convert(trace: Trace, mut output: impl Write, filter: Filter) -> Result<Summary, ConvertError> {
    write(trace, &mut output, filter)
}

fn write(mut trace: Trace, output: &mut dyn Write, filter: Filter) -> Result<Summary, ConvertError> {
    let (mut collector, mut summary) = collect(&mut trace, filter, Keep::Timeline)?;
    collector.push_losses().map_err(ConvertError::Write)?;
    let mut json = Json::new(output);
    json.raw("{\"libs\":[],\"pages\":[],\"profilerOverhead\":[],\"threads\":[");
    let meta = Meta::new(&trace.name, &collector);
    let Collector { threads, names, entries, stacks, sampled, values, counters, .. } = collector;
    let order = threads.in_order();
    let main_threads = main_threads(&threads, &order);
    let profile = Profile {
        threads: &threads,
        names: &names,
        main_threads: &main_threads,
        order: &order,
        place: 0,
        columns: None,
        meta,
        shared: Shared::default(),
        json,
    };
    let base = profile.meta.times.0;
    let mut placing = Placing::new(Stepping::new(profile));
    let take = |entry: Entry<'_>| {
        if !placing.place().steps.is_at(entry.thread) {
            placing.end()?;
            placing.place().steps.begin_thread(entry.thread, sampled.contains(&entry.thread))?;
        }
        if entry.kind == Kind::Slice {
            let bytes = [&entry.what.to_le_bytes(), entry.more].concat();
            return placing.push(0, &entry.interval, bytes);
        }
        placing.flush()?;
        let Profile { columns, shared, .. } = &mut placing.place().steps;
        match (columns, entry.kind) {
            (None, _) => Ok(()),
            (Some(columns), Kind::Sample) => columns.sample(&entry, &stacks),
            (Some(columns), _) => columns.marker(&entry, false, &names, shared),
        }
    };
    entries.finish(&order, take).map_err(ConvertError::Write)?;
    placing.end().map_err(ConvertError::Write)?;
    let Stepping { steps: mut profile, left_out, .. } = placing.into_place();
    profile.end_threads(order.len()).map_err(ConvertError::Write)?;
    let Profile { meta, shared, mut json, .. } = profile;
    json.raw("],\"counters\":[");
    let infinite = counters::write(values, counters.list(), &names, &main_threads, base, &mut json)
        .map_err(ConvertError::Write)?;
    json.raw("],\"meta\":");
    meta.write(&shared, &mut json);
    json.raw(",\"shared\":{\"stringArray\":");
    json.raw("[");
    json.list(shared.strings.list(), |json, (_, text)| json.string(text.as_bytes()))
        .map_err(ConvertError::Write)?;
    json.raw("]}}");
    json.finish().map_err(ConvertError::Write)?;
    meta.summarize(&mut summary, &shared, names.dropped);
    let skipped = [
        ("counter values that are no finite numbers", infinite),
        ("slices that overlap too many others", left_out),
    ];
    summary.add_skipped(skipped);
    summary.events -= infinite + left_out;
    Ok(summary)
}

/// The thread that stands for each process, by its place: the one of its number, or else its first.
fn main_threads(threads: &Threads, order: &[u32]) -> BTreeMap<u64, usize> {
    let mut main_threads = BTreeMap::new();
    for (place, number) in order.iter().enumerate() {
        let thread = threads.get(*number);
        let main = main_threads.entry(thread.pid).or_insert(place);
        if thread.tid == thread.pid {
            *main = place;
        }
    }
    main_threads
}

/// The profile so far.
struct Profile<'a, W> {
    threads: &'a Threads,
    names: &'a Names,
    main_threads: &'a BTreeMap<u64, usize>,
    order: &'a [u32],
    /// The place of the thread that is written next, and what is on it.
    place: usize,
    columns: Option<Columns>,
    meta: Meta,
    shared: Shared,
    json: Json<W>,
}

impl<W: Write> Profile<'_, W> {
    /// Whether this is the thread that is written next, and something is on it.
    fn is_at(&self, thread: u32) -> bool {
        self.columns.is_some() && self.order.get(self.place) == Some(&thread)
    }

    /// Something is on a thread. Threads come in order; those before it are complete.
    fn begin_thread(&mut self, thread: u32, is_sampled: bool) -> io::Result<()> {
        let rest = self.order.get(self.place..).unwrap_or_default();
        let next = rest.iter().position(|number| *number == thread).unwrap_or_default();
        self.end_threads(self.place + next)?;
        self.columns = Some(Columns::new(is_sampled, self.meta.times.0));
        Ok(())
    }

    /// Writes the threads before a place.
    fn end_threads(&mut self, until: usize) -> io::Result<()> {
        while self.place < until {
            let thread = self.threads.get(self.order[self.place]);
            let is_main = self.main_threads.get(&thread.pid) == Some(&self.place);
            let base = self.meta.times.0;
            let columns = self.columns.take().unwrap_or_else(|| Columns::new(false, base));
            self.json.raw(if self.place == 0 { "" } else { "," });
            self.meta.thread(self.place, columns.count());
            columns.write(thread, is_main, self.meta.times, self.names, &mut self.shared, &mut self.json)?;
            self.place += 1;
        }
        Ok(())
    }
}

impl<W: Write> Steps for Profile<'_, W> {
    fn step(&mut self, step: &Step<'_>) -> io::Result<()> {
        let Some(columns) = &mut self.columns else { return Ok(()) };
        let slice = step.begins.and_then(|(interval, bytes)| {
            let (what, more) = bytes.split_first_chunk()?;
            Some(Entry { thread: 0, kind: Kind::Slice, interval, what: u32::from_le_bytes(*what), more })
        });
        let is_nested = step.lane == 0;
        if is_nested {
            columns.step(step.at, slice.map(|slice| slice.what))?;
        }
        match slice {
            Some(slice) => columns.marker(&slice, is_nested, self.names, &mut self.shared),
            None => Ok(()),
        }
    }
}

/// A time in milliseconds, to the nanosecond.
fn milliseconds<W: Write>(json: &mut Json<W>, nanos: u64) {
    json.integer(nanos / 1_000_000);
    let rest = nanos % 1_000_000;
    if rest > 0 {
        let digits = format!(".{rest:06}");
        json.raw(digits.trim_end_matches('0'));
    }
}

#[cfg(test)]
mod tests;
