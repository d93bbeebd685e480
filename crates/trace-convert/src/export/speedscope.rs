//! Speedscope's files: for each thread a profile of its slices, whose begins and ends are balanced, and one
//! of its samples.
//!
//! Slices that overlap cannot be in one stack: those go into further profiles of the thread, one for each
//! lane.
//! Memory holds names, threads and stacks of samples; everything else is sorted in files.
//= docs/speedscope.md#document

use crate::export::threads::{Collector, Entry, Keep, Kind, ThreadName, collect};
use crate::json::Json;
use crate::tables::Trace;
use crate::{ConvertError, Filter, Summary};
use std::io::{self, Write};
use trace_model::{Placing, Step, Stepping, Steps};
use trace_reader::sorter::{Sorter, words};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
const EXPORTER: &str = concat!("trace ", env!("CARGO_PKG_VERSION"));

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
    let mut placing = Placing::new(Stepping::new(document));
    let mut thread = None;
    let take = |entry: Entry<'_>| {
        if thread != Some(entry.thread) {
            placing.end()?;
            let document = &mut placing.place().steps;
            document.end_thread()?;
            document.thread = threads.get(entry.thread).clone();
            thread = Some(entry.thread);
        }
        match entry.kind {
            Kind::Slice => placing.push(0, &entry.interval, entry.what.to_le_bytes()),
            Kind::Sample => placing.place().steps.sample(entry.what, &stacks),
            _ => Ok(()),
        }
    };
    entries.finish(&threads.in_order(), take).map_err(ConvertError::Write)?;
    placing.end().map_err(ConvertError::Write)?;
    let Stepping { steps: mut document, left_out, .. } = placing.into_place();
    document.end_thread().map_err(ConvertError::Write)?;
    summary.events = slices + samples - left_out;
    summary.add_skipped(skipped);
    summary.add_skipped([("slices that overlap too many others", left_out)]);
    summary.add_remarks([
        ("slices without an end: until the trace ends", open),
        ("slices that overlap others: in further profiles of their threads", document.overlapping),
        ("records are missing in the trace: the name of the document says so", lost),
        ("names beyond those that there is room for, which have one name in common", names.dropped),
    ]);
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
    /// The names of its open slices; none if it has not begun.
    open: Option<Vec<u32>>,
    /// Steps of the thread's further lanes, as they are sorted.
    rest: Sorter,
    /// Samples of the thread, as text.
    samples: Samples,
    overlapping: u64,
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
            open: None,
            rest: Sorter::default(),
            samples: Samples::default(),
            overlapping: 0,
            largest: (0, 0),
        }
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
        json.string_behind("\",\"name\":", name.as_bytes());
        json.raw(",\"unit\":\"");
        json.raw(unit);
        json.integer_behind("\",\"startValue\":0,\"endValue\":", end);
        self.profiles += 1;
        self.events = 0;
    }

    fn end_profile(&mut self) {
        self.json.raw("]}");
        if self.events > self.largest.0 {
            self.largest = (self.events, self.profiles - 1);
        }
    }

    /// Writes a step of the lane whose profile is written: a slice of this name begins, or the innermost one
    /// ends.
    fn write_step(&mut self, lane: usize, at: u64, begins: Option<u32>) -> io::Result<()> {
        if self.open.is_none() {
            let addition = if lane == 0 { String::new() } else { format!(" (overlapping, {})", lane + 1) };
            self.begin_profile("evented", &addition, "nanoseconds", self.times.1 - self.times.0);
            self.json.raw(",\"events\":[");
        }
        let open = self.open.get_or_insert_default();
        let (kind, frame) = match begins {
            Some(what) => {
                open.push(what);
                ("O", what)
            }
            None => ("C", open.pop().unwrap_or_default()),
        };
        let json = &mut self.json;
        json.raw(if self.events == 0 { "{\"type\":\"" } else { ",{\"type\":\"" });
        json.raw(kind);
        json.integer_behind("\",\"frame\":", frame);
        json.integer_behind(",\"at\":", at.saturating_sub(self.times.0));
        json.raw("}");
        self.events += 1;
        json.flush_if_full()
    }

    fn sample(&mut self, stack: u32, stacks: &[Vec<u32>]) -> io::Result<()> {
        let frames = (stack as usize).checked_sub(1).and_then(|place| stacks.get(place));
        let mut text = "[".to_owned();
        for (place, frame) in frames.into_iter().flatten().enumerate() {
            text += if place == 0 { "" } else { "," };
            text += itoa::Buffer::new().format(*frame);
        }
        text.push(']');
        self.samples.stacks.push(0, text.as_bytes());
        self.samples.count += 1;
        self.samples.stacks.check()
    }

    /// Ends the profile of a lane; what has not ended does so with the trace.
    fn end_lane(&mut self, lane: usize) -> io::Result<()> {
        while self.open.as_ref().is_some_and(|open| !open.is_empty()) {
            self.write_step(lane, self.times.1, None)?;
        }
        if self.open.take().is_some() {
            self.end_profile();
        }
        Ok(())
    }

    /// Ends all profiles of the thread.
    fn end_thread(&mut self) -> io::Result<()> {
        self.end_lane(0)?;
        let mut last = 0;
        let mut rest = std::mem::take(&mut self.rest).sorted()?;
        while let Some(bytes) = rest.advance()? {
            let ([lane, at, begins], _) = words(bytes)?;
            if lane as usize != last {
                self.end_lane(last)?;
                last = lane as usize;
            }
            self.write_step(last, at, u32::try_from(begins).ok())?;
        }
        self.end_lane(last)?;
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
        self.json.list(0..count, |json, _| json.raw("1"))?;
        self.end_profile();
        Ok(())
    }

    /// Writes the names, by which profiles refer to their frames.
    fn finish(mut self, names: &[(Box<str>, Box<str>)]) -> io::Result<()> {
        self.json.integer_behind("],\"activeProfileIndex\":", self.largest.1);
        self.json.raw(",\"shared\":{\"frames\":[");
        self.json.list(names, |json, (group, name)| {
            json.string_behind("{\"name\":", name.as_bytes());
            if !group.is_empty() {
                json.string_behind(",\"file\":", group.as_bytes());
            }
            json.raw("}");
        })?;
        self.json.raw("]}}");
        self.json.finish()
    }
}

impl<W: Write> Steps for Document<W> {
    fn step(&mut self, step: &Step<'_>) -> io::Result<()> {
        let begins = step.begins.and_then(|(_, what)| Some(u32::from_le_bytes(*what.first_chunk()?)));
        if step.lane == 0 {
            return self.write_step(0, step.at, begins);
        }
        self.overlapping += u64::from(begins.is_some());
        let words = [step.lane as u64, step.at, begins.map_or(u64::MAX, u64::from)];
        self.rest.push(step.lane as u64, words.map(u64::to_le_bytes).as_flattened());
        self.rest.check()
    }
}

#[cfg(test)]
mod tests;
