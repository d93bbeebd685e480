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
mod strings;
mod thread;

use crate::json::Json;
use crate::tables::Trace;
use crate::threads::{Collector, Entry, Keep, Kind, Names, Threads, add_skipped, collect};
use crate::{ConvertError, Filter, Summary};
use meta::Meta;
use std::collections::BTreeMap;
use std::io::{self, Write};
use thread::{Columns, Shared};

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
    let order: Vec<u32> = threads.in_order().collect();
    let main_threads = main_threads(&threads, &order);
    let mut profile = Profile {
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
    let take = |entry: Entry<'_>| {
        let is_sampled = || sampled.contains(&entry.thread);
        let (columns, shared) = profile.columns(entry.thread, is_sampled)?;
        match entry.kind {
            Kind::Sample => columns.sample(&entry, &stacks),
            _ => columns.marker(&entry, &names, shared),
        }
    };
    entries.finish(order.iter().copied(), take).map_err(ConvertError::Write)?;
    profile.end_threads(order.len()).map_err(ConvertError::Write)?;
    let Profile { meta, shared, mut json, .. } = profile;
    json.raw("],\"counters\":[");
    let infinite = counters::write(values, &counters, &names, &main_threads, base, &mut json)
        .map_err(ConvertError::Write)?;
    json.raw("],\"meta\":");
    meta.write(&shared, &mut json);
    json.raw(",\"shared\":{\"stringArray\":");
    shared.strings.write(&mut json).map_err(ConvertError::Write)?;
    json.raw("}}");
    json.finish().map_err(ConvertError::Write)?;
    meta.summarize(&mut summary, &shared, names.dropped);
    add_skipped(&mut summary, [("counter values that are no finite numbers", infinite)]);
    summary.events -= infinite;
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
    /// What is on a thread. Threads come in order; those before it are complete.
    fn columns(
        &mut self,
        thread: u32,
        is_sampled: impl FnOnce() -> bool,
    ) -> io::Result<(&mut Columns, &mut Shared)> {
        if self.columns.is_none() || self.order.get(self.place) != Some(&thread) {
            let rest = self.order.get(self.place..).unwrap_or_default();
            let next = rest.iter().position(|number| *number == thread).unwrap_or_default();
            self.end_threads(self.place + next)?;
            self.columns = Some(Columns::new(is_sampled(), self.meta.times.0));
        }
        let base = self.meta.times.0;
        Ok((self.columns.get_or_insert_with(|| Columns::new(false, base)), &mut self.shared))
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
