//! Speedscope's files: for each thread a profile of its slices, whose begins and ends are balanced, and one
//! of its samples.
//!
//! Slices that overlap cannot be in one stack: those go into further profiles of the thread. Memory holds
//! names, threads and stacks of samples; everything else is sorted in files.
//= docs/speedscope.md#document

use crate::json::Json;
use crate::tables::Trace;
use crate::threads::{Collector, Entry, Keep, Kind, Step, Steps, ThreadName, add_skipped, collect};
use crate::{ConvertError, Filter, Summary};
use std::io::{self, Write};
use trace_reader::sorter::Sorter;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
const EXPORTER: &str = concat!("trace ", env!("CARGO_PKG_VERSION"));
/// Profiles of slices that a thread has at most; overlapping slices that are in none of them are counted.
const MAX_PROFILES: u32 = 16;

/// Converts a trace.
///
/// # Errors
/// The input is no archive or cannot be read, or the output cannot be written.
pub fn convert(trace: Trace, mut output: impl Write, filter: Filter) -> Result<Summary, ConvertError> {
    write(trace, &mut output, filter)
}

fn write(mut trace: Trace, output: &mut dyn Write, filter: Filter) -> Result<Summary, ConvertError> {
    let (collector, mut summary) = collect(&mut trace, filter, Keep::Stacks)?;
    let mut document = Document::new(Json::new(output), &collector);
    document.begin(&trace.name, collector.lost);
    let Collector { threads, names, entries, stacks, slices, samples, open, lost, skipped, .. } = collector;
    let mut thread = None;
    let take = |entry: Entry<'_>| {
        if thread != Some(entry.thread) {
            document.end_thread()?;
            document.thread = threads.get(entry.thread).clone();
            thread = Some(entry.thread);
        }
        match entry.kind {
            Kind::Slice => document.slice(&entry)?,
            Kind::Sample => document.sample(entry.what, &stacks),
            _ => {}
        }
        document.flush()
    };
    entries.finish(threads.in_order(), take).map_err(ConvertError::Write)?;
    document.end_thread().map_err(ConvertError::Write)?;
    summary.events = slices + samples - document.beyond;
    add_skipped(&mut summary, skipped);
    add_skipped(&mut summary, [("overlapping slices beyond 15 at a time", document.beyond)]);
    let remarks = [
        ("slices without an end: they end with the trace", open),
        ("slices that overlap others: they are in further profiles of their threads", document.overlapping),
        ("records are missing in the trace: the name of the document says so", lost),
        ("names beyond those that there is room for, which have one name in common", names.dropped),
    ];
    let remarks = remarks.into_iter().filter(|(_, count)| *count > 0);
    summary.remarks.extend(remarks.map(|(remark, count)| (remark.to_owned(), count)));
    document.finish(names.list()).map_err(ConvertError::Write)?;
    Ok(summary)
}

/// The document so far.
struct Document<W> {
    json: Json<W>,
    thread: ThreadName,
    /// The first and the last moment.
    times: (u64, u64),
    /// Profiles that have begun.
    profiles: u32,
    /// Of the profile that is written: how many events it has.
    events: u64,
    steps: Steps,
    /// Slices of the thread that overlap, as they are sorted.
    rest: Sorter,
    rest_count: u64,
    /// Samples of the thread, as text.
    samples: Samples,
    overlapping: u64,
    beyond: u64,
    /// The profile with the most events.
    largest: (u64, u32),
}

/// Stacks of the samples of a thread, which wait until its slices are written.
#[derive(Default)]
struct Samples {
    stacks: Sorter,
    count: u64,
}

impl<W: Write> Document<W> {
    fn new(json: Json<W>, collector: &Collector) -> Self {
        Self {
            json,
            thread: ThreadName::default(),
            times: collector.times.unwrap_or_default(),
            profiles: 0,
            events: 0,
            steps: Steps::default(),
            rest: Sorter::default(),
            rest_count: 0,
            samples: Samples::default(),
            overlapping: 0,
            beyond: 0,
            largest: (0, 0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.json.flush_if_full()
    }

    /// Losses are part of the name, which the viewer shows above all profiles.
    fn begin(&mut self, name: &str, lost: u64) {
        let json = &mut self.json;
        json.raw("{\"$schema\":\"");
        json.raw(SCHEMA);
        json.raw("\",\"exporter\":\"");
        json.raw(EXPORTER);
        json.raw("\",\"name\":");
        if lost > 0 {
            json.string(format!("{name} ({lost} lost)").as_bytes());
        } else {
            json.string(name.as_bytes());
        }
        json.raw(",\"profiles\":[");
    }

    /// Begins a profile of the thread.
    fn begin_profile(&mut self, kind: &str, addition: &str, unit: &str, end: u64) {
        let name = format!("{}{addition}", self.thread.title());
        let json = &mut self.json;
        json.raw(if self.profiles == 0 { "{\"type\":\"" } else { ",{\"type\":\"" });
        json.raw(kind);
        json.raw("\",\"name\":");
        json.string(name.as_bytes());
        json.raw(",\"unit\":\"");
        json.raw(unit);
        json.raw("\",\"startValue\":0,\"endValue\":");
        json.integer(end);
        self.profiles += 1;
        self.events = 0;
    }

    fn end_profile(&mut self) {
        self.json.raw("]}");
        if self.events > self.largest.0 {
            self.largest = (self.events, self.profiles - 1);
        }
    }

    fn begin_slices(&mut self, addition: &str) {
        let length = self.times.1 - self.times.0;
        self.begin_profile("evented", addition, "nanoseconds", length);
        self.json.raw(",\"events\":[");
    }

    /// Adds a slice to the profile, or to what is left for the next one.
    fn slice(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        if self.steps.is_new() {
            self.begin_slices("");
        }
        self.add(entry.at, entry.length, entry.what)
    }

    fn add(&mut self, at: u64, length: u64, what: u32) -> io::Result<()> {
        let slice = Entry { thread: 0, kind: Kind::Slice, at, length, what, more: b"" };
        let (json, times, events) = (&mut self.json, self.times, &mut self.events);
        let is_in = self.steps.push(&slice, |step| {
            write_step(json, step, times, events);
            Ok(())
        })?;
        if !is_in {
            let words = [at, length, what.into()];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.rest.push(0, &bytes);
            self.rest.check()?;
            self.rest_count += 1;
        }
        Ok(())
    }

    fn sample(&mut self, stack: u32, stacks: &[Vec<u32>]) {
        let frames = (stack as usize).checked_sub(1).and_then(|place| stacks.get(place));
        let mut text = "[".to_owned();
        for (place, frame) in frames.into_iter().flatten().enumerate() {
            text += if place == 0 { "" } else { "," };
            text += itoa::Buffer::new().format(*frame);
        }
        text.push(']');
        self.samples.stacks.push(0, text.as_bytes());
        self.samples.count += 1;
    }

    fn end_slices(&mut self) -> io::Result<()> {
        let (json, times, events) = (&mut self.json, self.times, &mut self.events);
        self.steps.finish(times.1, |step| {
            write_step(json, step, times, events);
            json.flush_if_full()
        })?;
        self.steps = Steps::default();
        self.end_profile();
        Ok(())
    }

    /// Ends all profiles of the thread.
    fn end_thread(&mut self) -> io::Result<()> {
        if !self.steps.is_new() {
            self.end_slices()?;
        }
        self.overlapping += self.rest_count;
        let mut number = 1;
        while self.rest_count > 0 {
            let mut rest = std::mem::take(&mut self.rest).sorted()?;
            if number == MAX_PROFILES {
                self.beyond += std::mem::take(&mut self.rest_count);
                break;
            }
            self.rest_count = 0;
            number += 1;
            self.begin_slices(&format!(" (overlapping, {number})"));
            while let Some(bytes) = rest.advance()? {
                let words = bytes.as_chunks::<8>().0.first_chunk::<3>();
                let words = words.ok_or_else(|| io::Error::other("what was sorted has changed"))?;
                let [at, length, what] = words.map(u64::from_le_bytes);
                self.add(at, length, what as u32)?;
                self.json.flush_if_full()?;
            }
            self.end_slices()?;
        }
        self.end_samples()
    }

    /// Writes the profile of samples, each of which counts as one: how much time it stands for is not in the
    /// trace.
    fn end_samples(&mut self) -> io::Result<()> {
        let Samples { stacks, count } = std::mem::take(&mut self.samples);
        if count == 0 {
            return Ok(());
        }
        self.begin_profile("sampled", " (samples)", "none", count);
        self.json.raw(",\"samples\":[");
        let mut sorted = stacks.sorted()?;
        while let Some(text) = sorted.advance()? {
            self.json.raw(if self.events == 0 { "" } else { "," });
            self.json.raw(std::str::from_utf8(text).unwrap_or("[]"));
            self.json.flush_if_full()?;
            self.events += 1;
        }
        self.json.raw("],\"weights\":[");
        for place in 0..count {
            self.json.raw(if place == 0 { "1" } else { ",1" });
            self.json.flush_if_full()?;
        }
        self.end_profile();
        Ok(())
    }

    /// Writes the names, by which profiles refer to their frames.
    fn finish(mut self, names: &[(Box<str>, Box<str>)]) -> io::Result<()> {
        self.json.raw("],\"activeProfileIndex\":");
        self.json.integer(self.largest.1);
        self.json.raw(",\"shared\":{\"frames\":[");
        for (place, (group, name)) in names.iter().enumerate() {
            self.json.raw(if place == 0 { "{\"name\":" } else { ",{\"name\":" });
            self.json.string(name.as_bytes());
            if !group.is_empty() {
                self.json.raw(",\"file\":");
                self.json.string(group.as_bytes());
            }
            self.json.raw("}");
            self.json.flush_if_full()?;
        }
        self.json.raw("]}}");
        self.json.finish()
    }
}

fn write_step<W: Write>(json: &mut Json<W>, step: Step, times: (u64, u64), events: &mut u64) {
    json.raw(if *events == 0 { "{\"type\":\"" } else { ",{\"type\":\"" });
    json.raw(if step.is_end { "C\",\"frame\":" } else { "O\",\"frame\":" });
    json.integer(step.what);
    json.raw(",\"at\":");
    json.integer(step.at.saturating_sub(times.0));
    json.raw("}");
    *events += 1;
}

#[cfg(test)]
mod tests;
