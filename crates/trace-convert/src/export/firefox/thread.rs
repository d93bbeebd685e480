//! A thread of the profile: its markers and samples.

use super::markers::{FlowPart, MAX_INTEGER, Schemas};
use super::milliseconds;
use super::stacks::Stacks;
use crate::export::threads::{Entry, Kind, Names, ThreadName};
use crate::json::Json;
use std::io::{self, Write};
use tempfile::SpooledTempFile;
use trace_model::Interval;

/// So much of a column waits in memory; more of it goes into a file.
const SPILL_BYTES: usize = 1 << 20;

/// What all threads have in common.
#[derive(Default)]
pub struct Shared {
    pub strings: Names,
    pub schemas: Schemas,
    pub categories: Categories,
    /// Slices that no stack has, because they overlap others.
    pub overlapping: u64,
    /// Stacks beyond those that there is room for.
    pub dropped_stacks: u64,
}

/// Categories of events, numbered from 1; 0 is for all others.
#[derive(Default)]
pub struct Categories(Vec<String>);

/// Categories with a number of their own.
const MAX_CATEGORIES: usize = 200;

impl Categories {
    fn number(&mut self, category: &str) -> u32 {
        let known = self.known(category);
        if known > 0 || category.is_empty() || self.0.len() == MAX_CATEGORIES {
            return known;
        }
        self.0.push(category.to_owned());
        self.0.len() as u32
    }

    fn known(&self, category: &str) -> u32 {
        self.0.iter().position(|known| known == category).map_or(0, |place| place as u32 + 1)
    }

    /// All of them.
    pub fn list(&self) -> &[String] {
        &self.0
    }
}

/// The values of a column, separated by commas.
struct Column {
    json: Json<SpooledTempFile>,
    count: u64,
}

impl Default for Column {
    fn default() -> Self {
        Self { json: Json::new(SpooledTempFile::new(SPILL_BYTES)), count: 0 }
    }
}

impl Column {
    /// Begins a value.
    fn next(&mut self) -> io::Result<&mut Json<SpooledTempFile>> {
        self.json.flush_if_full()?;
        if self.count > 0 {
            self.json.raw(",");
        }
        self.count += 1;
        Ok(&mut self.json)
    }

    /// Writes the column as a member.
    fn write<W: Write>(self, name: &str, json: &mut Json<W>) -> io::Result<()> {
        json.raw(",\"");
        json.raw(name);
        json.raw("\":[");
        json.append(self.json)?;
        json.raw("]");
        Ok(())
    }
}

/// What is on a thread so far.
#[derive(Default)]
pub struct Columns {
    /// Whether it has samples: otherwise, slices are.
    is_sampled: bool,
    base: u64,
    data: Column,
    name: Column,
    start: Column,
    end: Column,
    phase: Column,
    category: Column,
    stack: Column,
    time: Column,
    weight: Column,
    stacks: Stacks,
    /// Stacks of the open slices.
    open: Vec<Option<u32>>,
    /// When the stack changed last.
    changed: Option<u64>,
}

impl Columns {
    pub fn new(is_sampled: bool, base: u64) -> Self {
        Self { is_sampled, base, ..Self::default() }
    }

    /// How many markers and samples there are.
    pub fn count(&self) -> u64 {
        self.name.count + self.stack.count
    }

    /// Adds a sample.
    pub fn sample(&mut self, entry: &Entry<'_>, stacks: &[Vec<u32>]) -> io::Result<()> {
        let frames = (entry.what as usize).checked_sub(1).and_then(|place| stacks.get(place));
        let mut stack = None;
        for frame in frames.into_iter().flatten() {
            stack = self.stacks.number(stack, *frame);
        }
        self.write_stack(stack)?;
        milliseconds(self.time.next()?, entry.interval.begin.saturating_sub(self.base));
        Ok(())
    }

    fn write_stack(&mut self, stack: Option<u32>) -> io::Result<()> {
        let json = self.stack.next()?;
        match stack {
            Some(stack) => json.integer(stack),
            None => json.raw("null"),
        }
        Ok(())
    }

    /// Adds a marker; whether it is a slice in the thread's stack.
    pub fn marker(
        &mut self,
        entry: &Entry<'_>,
        is_nested: bool,
        names: &Names,
        shared: &mut Shared,
    ) -> io::Result<()> {
        shared.overlapping += u64::from(entry.kind == Kind::Slice && !is_nested);
        let (category, name) = names.get(entry.what);
        self.name.next()?.integer(shared.strings.text(name));
        let category = shared.categories.number(category);
        self.category.next()?.integer(category);
        let Interval { begin, end, .. } = entry.interval;
        milliseconds(self.start.next()?, begin.saturating_sub(self.base));
        let is_interval = matches!(entry.kind, Kind::Slice | Kind::Operation);
        // An interval without an end is its beginning alone.
        let (phase, end) = match end {
            u64::MAX => ("2", None),
            end if is_interval => ("1", Some(end.saturating_sub(self.base))),
            _ => ("0", None),
        };
        self.phase.next()?.raw(phase);
        let json = self.end.next()?;
        match end {
            Some(end) => milliseconds(json, end),
            None => json.raw("null"),
        }
        let more = std::str::from_utf8(entry.more).unwrap_or_default();
        let json = self.data.next()?;
        let (kind, arguments, flow) = match entry.kind {
            Kind::Slice => ("slice", more, None),
            Kind::Operation => ("operation", more, None),
            Kind::Log => ("log", more, None),
            Kind::Flow => {
                let mut parts = more.splitn(3, ' ');
                let mut next = || parts.next().unwrap_or_default();
                let (id, phase, arguments) = (next(), next(), next());
                let id = id.parse::<u64>().unwrap_or_default();
                let id = shared.strings.text(&format!("{id:#x}"));
                let kind = match phase {
                    "begin" => "flow begin",
                    "step" => "flow step",
                    _ => "flow end",
                };
                (kind, arguments, Some(FlowPart { id, is_last: phase == "end" }))
            }
            Kind::Instant | Kind::Sample | Kind::LeftOut => ("instant", more, None),
        };
        shared.schemas.write(kind, is_nested, arguments, flow, json);
        Ok(())
    }

    /// The stack of slices changes: one of this name begins, or the innermost one ends.
    pub fn step(&mut self, at: u64, begins: Option<u32>) -> io::Result<()> {
        if self.is_sampled {
            return Ok(());
        }
        self.stretch(at)?;
        match begins {
            Some(what) => {
                let stack = self.stacks.number(self.open.last().copied().flatten(), what);
                self.open.push(stack);
            }
            None => _ = self.open.pop(),
        }
        Ok(())
    }

    /// Writes the stretch from the last change until now as a sample.
    fn stretch(&mut self, at: u64) -> io::Result<()> {
        if let Some(from) = self.changed.replace(at)
            && at > from
        {
            self.write_stack(self.open.last().copied().flatten())?;
            milliseconds(self.time.next()?, from.saturating_sub(self.base));
            milliseconds(self.weight.next()?, at - from);
        }
        Ok(())
    }

    /// Writes the thread.
    pub fn write<W: Write>(
        mut self,
        thread: &ThreadName,
        is_main: bool,
        times: (u64, u64),
        names: &Names,
        shared: &mut Shared,
        json: &mut Json<W>,
    ) -> io::Result<()> {
        while !self.open.is_empty() {
            self.step(times.1, None)?;
        }
        json.raw("{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,\
                  \"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true,\"name\":");
        json.string(thread.thread().as_bytes());
        json.raw(",\"isMainThread\":");
        json.raw(if is_main { "true" } else { "false" });
        json.string_behind(",\"processName\":", thread.process().as_bytes());
        json.integer_behind(",\"pid\":\"", thread.pid);
        json.raw("\",\"tid\":");
        if thread.tid <= MAX_INTEGER {
            json.integer(thread.tid);
        } else {
            json.string(thread.tid.to_string().as_bytes());
        }
        json.raw(",\"samples\":{\"weightType\":\"");
        json.raw(if self.is_sampled { "samples" } else { "tracing-ms" });
        json.integer_behind("\",\"length\":", self.stack.count);
        self.stack.write("stack", json)?;
        self.time.write("time", json)?;
        if self.is_sampled {
            json.raw(",\"weight\":null");
        } else {
            self.weight.write("weight", json)?;
        }
        json.integer_behind("},\"markers\":{\"length\":", self.name.count);
        for (name, column) in [
            ("data", self.data),
            ("name", self.name),
            ("startTime", self.start),
            ("endTime", self.end),
            ("phase", self.phase),
            ("category", self.category),
        ] {
            column.write(name, json)?;
        }
        json.raw("}");
        let Shared { strings, categories, .. } = shared;
        let is_sampled = self.is_sampled;
        let category = |group: &str| (!is_sampled).then(|| categories.known(group));
        self.stacks.write(names, category, strings, json)?;
        shared.dropped_stacks += self.stacks.dropped;
        json.raw("}");
        json.flush_if_full()
    }
}
