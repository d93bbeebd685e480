//! The text of `perf script`: samples with their stacks, and tracepoints.
//= docs/import.md#perf

mod functions;

use super::line::{Line, Parser as Events};
use super::{Importer as Kernels, LINE_BYTES};
use crate::Summary;
use crate::import::ImportError;
use crate::import::writer::{Writer, thread_ref};
use foldhash::{HashMap, HashSet};
use functions::{Frame, Functions};
use regex::bytes::{Captures, Regex};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::str::FromStr;
use trace_format::function::FunctionRecord;
use trace_format::profiler::{FLAG_EXECUTABLE, Frames, MAX_FRAMES, MAX_MODULE_BYTES, Profiler, ProfilerKind};
use trace_format::record::Record;
use trace_format::units::{Koid, Ticks};
use trace_linux::Records;
use trace_reader::Thread;

/// Names of sampled events that the remark about several ones has at most.
const MAX_EVENTS: usize = 10;
/// Processes and modules whose mappings are remembered.
const MAX_MAPPED: usize = 1 << 20;

/// The head of an entry.
struct Head<'a> {
    comm: &'a [u8],
    pid: Option<u32>,
    tid: u32,
    cpu: Option<u16>,
    at: u64,
    event: &'a [u8],
    rest: &'a [u8],
}

struct Parser {
    head: Regex,
    frame: Regex,
    comm: Regex,
    fork: Regex,
    mapping: Regex,
    modifiers: Regex,
}

fn text<'a>(captures: &Captures<'a>, group: usize) -> &'a [u8] {
    captures.get(group).map_or(b"", |found| found.as_bytes())
}

fn number<T: FromStr>(captures: &Captures<'_>, group: usize) -> Option<T> {
    std::str::from_utf8(text(captures, group)).ok()?.parse().ok()
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl Parser {
    fn new() -> Self {
        let regex = |pattern: &str| Regex::new(&format!("(?s-u){pattern}")).expect("a pattern of this file");
        Self {
            head: regex(concat!(
                r"^\s*(\S.*?)\s+(?:(-?\d+)/\s*)?(-?\d+)\s+(?:\[(\d+)\]\s+)?",
                r"(\d+)\.(\d{1,9}):\s+(?:\d+\s+)?([^\s:](?:\S*[^\s:])?):(?:\s+(.*))?$"
            )),
            frame: regex(r"^\s*([0-9a-f]+)\s+(\S.*?)\s+\((.*)\)$"),
            comm: regex(r": PERF_RECORD_COMM(?: exec)?: (.*):(\d+)/(\d+)$"),
            fork: regex(r": PERF_RECORD_FORK\((\d+):(\d+)\)"),
            mapping: regex(r": PERF_RECORD_MMAP2? (\d+)/(\d+): "),
            modifiers: regex(r"^[^:]+(?::[ukhHGpPSDIWeb]+)?$"),
        }
    }

    fn head<'a>(&self, line: &'a [u8]) -> Option<Head<'a>> {
        let found = self.head.captures(line)?;
        let fraction = text(&found, 6);
        let scale = 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
        let nanos = number::<u64>(&found, 6)? * scale;
        // Without a thread it is -1.
        let task = |group| number::<i64>(&found, group).map(|task| u32::try_from(task).unwrap_or(0));
        Some(Head {
            comm: text(&found, 1),
            pid: task(2),
            tid: task(3)?,
            cpu: number(&found, 4),
            at: number::<u64>(&found, 5)?.checked_mul(1_000_000_000)?.checked_add(nanos)?,
            event: text(&found, 7),
            rest: text(&found, 8),
        })
    }

    /// `401136 work+0x19 (/tmp/prog)`
    fn frame<'a>(&self, line: &'a [u8]) -> Option<Frame<'a>> {
        let found = self.frame.captures(line)?;
        let (mut name, mut module) = (text(&found, 2), text(&found, 3));
        // The last parenthesis, but for `(/tmp/prog (deleted))`.
        let is_deleted = module.ends_with(b" (deleted)");
        let end = module.len() - if is_deleted { b" (deleted)".len() } else { 0 };
        if let Some(at) = memchr::memmem::rfind(&module[..end], b" (") {
            let start = found.get(2)?.start();
            name = line[start..found.get(3)?.start() + at].trim_ascii_end();
            module = &module[at + 2..];
        }
        let plus = memchr::memmem::rfind(name, b"+0x");
        let offset = plus.and_then(|at| hex(&name[at + 3..]));
        let name = if offset.is_some() { &name[..plus?] } else { name };
        Some(Frame { address: hex(text(&found, 1))?, name, offset, module })
    }

    /// Whether an event counts or samples, and is no tracepoint.
    fn is_counter(&self, event: &[u8]) -> bool {
        self.modifiers.is_match(event) || event.contains(&b'/')
    }
}

/// Whether a file begins like this.
pub(super) fn is_perf(start: &[u8]) -> bool {
    let parser = Parser::new();
    let is_text = |line: &&[u8]| !line.trim_ascii().is_empty() && !line.starts_with(b"#");
    let mut lines = start.split(|byte| *byte == b'\n').filter(is_text);
    let Some(head) = lines.find(|line| !is_record(line)).and_then(|line| parser.head(line.trim_ascii_end()))
    else {
        return false;
    };
    let has_frame = |line: &[u8]| parser.frame(line.trim_ascii_end()).is_some();
    has_frame(head.rest) || lines.next().is_some_and(has_frame) || !parser.is_counter(head.event)
}

fn is_record(line: &[u8]) -> bool {
    memchr::memmem::find(line, b": PERF_RECORD_").is_some()
}

/// Converts such a text into an archive.
pub(super) fn import(input: &mut dyn Read, output: &mut dyn Write) -> Result<Summary, ImportError> {
    let mut importer = Importer {
        parser: Parser::new(),
        events: Events::new(),
        kernel: Kernels::new(Writer::sorted(output, "perf")),
        sample: None,
        functions: Functions::default(),
        mapped: HashSet::default(),
        mappings: Vec::new(),
        sampled: BTreeSet::new(),
    };
    let result = importer.lines(input);
    importer.end();
    ImportError::ended(result, importer.kernel.kernel.writer.finish("text of perf script"))
}

struct Sample {
    at: u64,
    thread: Thread,
    /// Whether it counts without a stack.
    is_counted: bool,
    frames: Vec<u64>,
}

/// The first sample of a process in a region of a module.
struct Mapped {
    at: u64,
    thread: Thread,
    region: u32,
}

struct Importer<W> {
    parser: Parser,
    events: Events,
    kernel: Kernels<Writer<W>>,
    /// The last one, whose frames follow.
    sample: Option<Sample>,
    functions: Functions,
    /// Regions of modules that a process has.
    mapped: HashSet<(Koid, u32)>,
    mappings: Vec<Mapped>,
    /// Names of events that have samples.
    sampled: BTreeSet<Box<[u8]>>,
}

impl<W: Write> Importer<W> {
    fn lines(&mut self, input: &mut dyn Read) -> Result<(), ImportError> {
        let mut input = BufReader::with_capacity(LINE_BYTES, input);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let length = input.by_ref().take(LINE_BYTES as u64).read_until(b'\n', &mut bytes);
            if length.map_err(ImportError::Read)? == 0 {
                return Ok(());
            }
            let text = self.kernel.text(&bytes);
            self.line(text.as_bytes().trim_ascii_end());
            self.kernel.kernel.writer.flush_if_full().map_err(ImportError::Write)?;
        }
    }

    fn line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return self.end_of_sample();
        }
        if line.starts_with(b"#") {
            return;
        }
        if is_record(line) {
            return self.record(line);
        }
        if let Some(head) = self.parser.head(line) {
            self.end_of_sample();
            return self.entry(&head);
        }
        match self.parser.frame(line) {
            Some(frame) if self.sample.is_some() => self.frame(&frame),
            _ => self.kernel.other_line(line),
        }
    }

    /// A record about tasks: which process a thread belongs to.
    fn record(&mut self, line: &[u8]) {
        let kernel = &mut self.kernel.kernel;
        if let Some(found) = self.parser.comm.captures(line) {
            if let (Some(pid), Some(tid)) = (number(&found, 2), number(&found, 3)) {
                kernel.belongs(tid, pid);
                kernel.rename(tid, text(&found, 1));
            }
        } else if let Some(found) =
            self.parser.fork.captures(line).or_else(|| self.parser.mapping.captures(line))
            && let (Some(pid), Some(tid)) = (number(&found, 1), number(&found, 2))
        {
            kernel.belongs(tid, pid);
        }
    }

    fn entry(&mut self, head: &Head<'_>) {
        let kernel = &mut self.kernel.kernel;
        if let Some(pid) = head.pid {
            kernel.belongs(head.tid, pid);
        }
        // Of a thread whose name perf does not know, it is the number.
        if !head.comm.starts_with(b":") {
            kernel.rename(head.tid, head.comm);
        }
        let thread = match (head.tid, head.cpu) {
            (0, Some(cpu)) => kernel.cpu(cpu),
            _ => kernel.thread(head.tid),
        };
        let is_counted = self.parser.is_counter(head.event);
        self.sample = Some(Sample { at: head.at, thread, is_counted, frames: Vec::new() });
        if is_counted {
            if self.sampled.len() <= MAX_EVENTS {
                self.sampled.insert(head.event.into());
            }
            match self.parser.frame(head.rest) {
                Some(frame) => self.frame(&frame),
                None if head.rest.is_empty() => {}
                None => self.kernel.kernel.writer.skip("texts beside samples"),
            }
            return;
        }
        let name = head.event.rsplit(|byte| *byte == b':').next().unwrap_or_default();
        let line = Line {
            task: head.comm,
            tid: head.tid,
            tgid: head.pid,
            cpu: head.cpu.unwrap_or(0),
            at: head.at,
            is_interrupt: false,
            name,
            text: head.rest,
        };
        let event = self.events.event(name, head.rest);
        self.kernel.event(&line, event);
    }

    fn frame(&mut self, frame: &Frame<'_>) {
        let Some(sample) = &mut self.sample else { return };
        if sample.frames.len() >= MAX_FRAMES {
            return self.kernel.kernel.writer.skip("outer frames beyond 255 of a stack");
        }
        let (address, region) = self.functions.address(frame, !sample.frames.is_empty());
        sample.frames.push(address);
        let thread = sample.thread;
        if let Some(region) = region
            && self.mapped.len() < MAX_MAPPED
            && self.mapped.insert((thread.process, region))
        {
            self.mappings.push(Mapped { at: sample.at, thread, region });
        }
    }

    fn end_of_sample(&mut self) {
        let Some(sample) = self.sample.take() else { return };
        let Sample { at, thread, is_counted, frames } = sample;
        if frames.is_empty() {
            if is_counted {
                self.kernel.kernel.writer.skip("samples without a stack");
            }
            return;
        }
        let kind = ProfilerKind::Backtrace { frames: Frames::new(&frames) };
        let record = Profiler { timestamp: Ticks(at), thread: thread_ref(thread), kind };
        if !self.kernel.kernel.writer.at(at, &Record::Profiler(record)) {
            self.kernel.kernel.writer.skip("samples that are too large");
        }
    }

    /// Writes the modules of each process.
    fn modules(&mut self) {
        let mut ids: HashMap<Koid, u16> = HashMap::default();
        for Mapped { at, thread, region } in std::mem::take(&mut self.mappings) {
            let next = ids.entry(thread.process).or_default();
            let id = *next;
            *next = next.saturating_add(1);
            let region = self.functions.region(region);
            // Of a long name, the end is kept.
            let cut = region.module.len().saturating_sub(MAX_MODULE_BYTES);
            let is_start = |place: &usize| region.module.get(*place).is_none_or(|byte| byte & 0xc0 != 0x80);
            let name = &region.module[(cut..).find(is_start).unwrap_or(cut)..];
            let module = ProfilerKind::Module { id, name, build_id: b"" };
            let (start, linked_at, length) = (region.base, region.linked_at, functions::REGION_BYTES);
            let mmap = ProfilerKind::Mmap { module: id, flags: FLAG_EXECUTABLE, start, length, linked_at };
            for kind in [module, mmap] {
                let record = Profiler { timestamp: Ticks(at), thread: thread_ref(thread), kind };
                self.kernel.kernel.writer.define(&Record::Profiler(record));
            }
        }
    }

    /// Writes modules and the names of all functions, which come before everything that has a time: a module
    /// takes the place of functions at its addresses.
    fn end(&mut self) {
        self.end_of_sample();
        self.kernel.end();
        self.modules();
        let writer = &mut self.kernel.kernel.writer;
        for (start, length, name) in self.functions.all() {
            let function = FunctionRecord { process: trace_format::function::KERNEL, start, length, name };
            writer.define(&Record::Blob(function.to_bytes().blob()));
        }
        writer.skip_many("functions without room for their names", self.functions.lost());
        if self.sampled.len() > 1 {
            let names: Vec<_> = self.sampled.iter().map(|name| String::from_utf8_lossy(name)).collect();
            writer.warn(format!("there are samples of several events: {}", names.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests;
