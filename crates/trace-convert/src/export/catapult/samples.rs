//! Backtraces, in the two sections of Chrome's documents for them.
//= docs/catapult.md#samples

use crate::export::numbers::{short, thread_number};
use crate::json::Json;
use crate::profile::Profile;
use foldhash::HashMap;
use std::collections::BTreeSet;
use std::io::{self, Read, Seek, Write};
use tempfile::SpooledTempFile;
use trace_format::profiler::ProfilerKind;
use trace_format::units::Koid;
use trace_reader::dump::called_at;
use trace_reader::{Names, Thread, Time};

/// How much of each section waits in memory; more goes into an unlinked file.
const SPILL_BYTES: usize = 4 << 20;
/// Maximum number of stacks and parts of them; further samples have only the known part.
const MAX_FRAMES: usize = 1 << 20;

/// The contents of both sections so far.
pub(super) struct Samples {
    profile: Profile,
    /// Numbers of frames, from 1, by that of the caller (0 for none), function and module.
    known: HashMap<(u64, String, Option<usize>), u64>,
    frames: Json<SpooledTempFile>,
    samples: Json<SpooledTempFile>,
    /// Processes and threads with samples.
    threads: BTreeSet<(Koid, Koid)>,
}

impl Samples {
    pub fn new() -> Self {
        let section = || Json::new(SpooledTempFile::new(SPILL_BYTES));
        Self {
            profile: Profile::default(),
            known: HashMap::default(),
            frames: section(),
            samples: section(),
            threads: BTreeSet::new(),
        }
    }

    /// Adds a record; false if it cannot be expressed.
    pub fn record(&mut self, time: Time, thread: Thread, kind: &ProfilerKind<'_>, names: &Names) -> bool {
        let ProfilerKind::Backtrace { frames } = kind else {
            self.profile.learn(thread.process, kind);
            return true;
        };
        let frames: Vec<u64> = frames.iter().collect();
        let mut leaf = 0;
        for (depth, frame) in frames.iter().enumerate().rev() {
            let address = called_at(depth, *frame);
            let module = self.profile.place(thread.process, address).map(|place| place.module);
            // Inlined functions are inside of the others.
            for function in self.profile.functions(thread.process, address, names).into_iter().rev() {
                let Some(frame) = self.frame(leaf, function, module) else {
                    return self.sample(time, thread, leaf);
                };
                leaf = frame;
            }
        }
        self.sample(time, thread, leaf)
    }

    fn frame(&mut self, parent: u64, function: String, module: Option<usize>) -> Option<u64> {
        let key = (parent, function, module);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let number = self.known.len() as u64 + 1;
        if self.known.len() >= MAX_FRAMES {
            return None;
        }
        let json = &mut self.frames;
        json.raw(if number == 1 { "\"" } else { ",\"" });
        json.integer(number);
        json.raw("\":{\"category\":");
        let name = module.map_or(&b""[..], |module| &self.profile.module(module).name);
        json.string(name.rsplit(|byte| *byte == b'/').next().unwrap_or(name));
        json.string_behind(",\"name\":", key.1.as_bytes());
        if parent > 0 {
            json.integer_behind(",\"parent\":\"", parent);
            json.raw("\"");
        }
        json.raw("}");
        self.known.insert(key, number);
        Some(number)
    }

    fn sample(&mut self, time: Time, thread: Thread, leaf: u64) -> bool {
        // The viewer does not support samples without a stack.
        if leaf == 0 {
            return false;
        }
        self.threads.insert((thread.process, thread.thread));
        let json = &mut self.samples;
        json.integer_behind("{\"name\":\"sample\",\"pid\":", short(thread.process));
        json.integer_behind(",\"tid\":", thread_number(thread));
        json.thousandths_behind(",\"ts\":", time.nanos().0);
        json.integer_behind(",\"sf\":\"", leaf);
        json.raw("\",\"weight\":1},");
        true
    }

    /// Processes and threads with samples.
    pub fn threads(&self) -> impl Iterator<Item = (Koid, Koid)> {
        self.threads.iter().copied()
    }

    pub fn spill_if_full(&mut self) -> io::Result<()> {
        self.frames.flush_if_full()?;
        self.samples.flush_if_full()
    }

    /// Writes both sections after the events, if there is a sample.
    pub fn write<W: Write>(self, json: &mut Json<W>) -> io::Result<()> {
        if self.known.is_empty() {
            return Ok(());
        }
        json.raw(",\"samples\":[");
        json.flush()?;
        let mut samples = self.samples.into_output()?;
        // Without the comma after the last one.
        let length = samples.stream_position()?.saturating_sub(1);
        samples.rewind()?;
        io::copy(&mut samples.take(length), json.output())?;
        json.raw("],\"stackFrames\":{");
        json.append(self.frames)?;
        json.raw("}");
        Ok(())
    }
}
