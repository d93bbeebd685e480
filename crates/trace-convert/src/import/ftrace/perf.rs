//! The text of `perf script`: samples with their stacks, and tracepoints.
//= docs/import.md#perf

mod functions;

use super::line::{Line, Parser as Events};
use super::{Importer as Kernels, LINE_BYTES, is_whole_line};
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
/// The longest name of a thread.
const MAX_COMM_BYTES: usize = 15;
/// The time of an entry begins before this.
const MAX_HEAD_BYTES: usize = 256;
/// How many numbers in the line of a sample may be its address.
const MAX_NUMBERS: usize = 16;
/// How many digits an address of the kernel has.
const KERNEL_DIGITS: usize = 16;

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
    time: Regex,
    task: Regex,
    event: Regex,
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
            time: regex(r"\s(\d+)\.(\d{1,9}):\s"),
            // The number of a thread is the last one: a name may have numbers. Letters of `misc` and the time
            // of day may be behind it.
            task: regex(concat!(
                r"^\s*(\S(?:.*\S)?)\s+(?:(-?\d+)/)?(-?\d+)\s+(?:\[(\d+)\]\s+)?",
                r"(?:[KUHGgMESp]{1,4}\s+)?(?:\d+-\d+-\d+ \d+:\d+:\d+\.\d+\s+)?$"
            )),
            event: regex(r"^(?:\d+\s+)?([^\s:](?:\S*[^\s:])?):(?:\s+(.*))?$"),
            frame: regex(r"^\s*([0-9a-f]+)\s+(\S.*?)\s+\((.*)\)$"),
            comm: regex(r": PERF_RECORD_COMM(?: exec)?: (.*):(\d+)/(\d+)$"),
            fork: regex(r": PERF_RECORD_FORK\((\d+):(\d+)\)"),
            mapping: regex(r": PERF_RECORD_MMAP2? (\d+)/(\d+): "),
            modifiers: regex(r"^[^:]+(?::[ukhHGpPSDIWeb]+)?$"),
        }
    }

    /// None for a line that is none, or that can be read in several ways.
    fn head<'a>(&self, line: &'a [u8]) -> Option<Head<'a>> {
        let times = self.time.captures_iter(line);
        let times = times.take_while(|time| time.get(0).is_some_and(|place| place.start() < MAX_HEAD_BYTES));
        let mut heads = times.filter_map(|time| self.head_with(line, &time));
        let first = heads.next()?;
        // A time in the text of an event has the whole head before it, which is no name.
        heads.all(|head| head.comm.len() > MAX_COMM_BYTES).then_some(first)
    }

    /// What a line is if it has its time there.
    fn head_with<'a>(&self, line: &'a [u8], time: &Captures<'a>) -> Option<Head<'a>> {
        let place = time.get(0)?;
        let found = self.task.captures(&line[..=place.start()])?;
        let event = self.event.captures(line[place.end()..].trim_ascii_start())?;
        let fraction = text(time, 2);
        let scale = 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
        let nanos = number::<u64>(time, 2)? * scale;
        // Without a thread it is -1.
        let task = |group| number::<i64>(&found, group).map(|task| u32::try_from(task).unwrap_or(0));
        Some(Head {
            comm: text(&found, 1),
            pid: task(2),
            tid: task(3)?,
            cpu: number(&found, 4),
            at: number::<u64>(time, 1)?.checked_mul(1_000_000_000)?.checked_add(nanos)?,
            event: text(&event, 1),
            rest: text(&event, 2),
        })
    }

    /// The function of a sample in its line, and whether that is all of the text. Other data of the sample
    /// may be before it, and the target of a branch behind it. None if it is not sure where it begins.
    fn own_frame<'a>(&self, rest: &'a [u8]) -> Option<(Frame<'a>, bool)> {
        let end = memchr::memmem::find(rest, b") => ").map_or(rest.len(), |at| at + 1);
        // Numbers behind it are other addresses.
        let is_behind = |byte: &&u8| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace();
        let behind = rest[..end].iter().rev().take_while(is_behind).count();
        let text = &rest[..end - behind];
        let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let is_number = |at: &usize| {
            let begins = text[*at].is_ascii_hexdigit() && (*at == 0 || text[*at - 1].is_ascii_whitespace());
            begins && text.get(*at + digits(*at)).is_some_and(u8::is_ascii_whitespace)
        };
        let numbers = (0..text.len()).rev().filter(is_number).take(MAX_NUMBERS);
        let (at, frame) =
            numbers.map(|at| (at, self.frame(&text[at..]))).find_map(|(at, frame)| Some((at, frame?)))?;
        // A word such as `add` is not taken for an address behind another one.
        let is_sure = at == 0 || text[at].is_ascii_digit() || digits(at) == KERNEL_DIGITS;
        is_sure.then_some((frame, at == 0 && text.len() == rest.len()))
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
        self.modifiers.is_match(event) || event.contains(&b'/') || event.starts_with(b"mem:0x")
    }
}

/// Whether a file begins like this: with entries, of which one has a stack or is a tracepoint.
pub(super) fn is_perf(start: &[u8]) -> bool {
    let parser = Parser::new();
    let is_text = |line: &&[u8]| !line.trim_ascii().is_empty() && !line.starts_with(b"#") && !is_record(line);
    let mut is_behind_head = false;
    for line in start.split(|byte| *byte == b'\n').filter(is_text) {
        let line = line.trim_ascii_end();
        match parser.head(line) {
            Some(head) if !parser.is_counter(head.event) => return true,
            Some(head) if parser.own_frame(head.rest).is_some() => return true,
            Some(_) => is_behind_head = true,
            None => return is_behind_head && parser.frame(line).is_some(),
        }
    }
    false
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
    /// Frames are in lines of their own, behind which there is an empty line.
    has_lines: bool,
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
                if self.sample.as_ref().is_some_and(|sample| sample.has_lines) {
                    self.is_cut_off();
                }
                return Ok(());
            }
            if !is_whole_line(&bytes) {
                self.is_cut_off();
                return Ok(());
            }
            let text = self.kernel.text(&bytes);
            self.line(text.as_bytes().trim_ascii_end());
            self.kernel.kernel.writer.flush_if_full().map_err(ImportError::Write)?;
        }
    }

    /// The last line, and the sample that it belongs to, are not whole.
    fn is_cut_off(&mut self) {
        self.sample = None;
        self.kernel.kernel.writer.cut_off();
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
        // Another line with a time, or without space before it, begins an entry of a form that is not known.
        if !line[0].is_ascii_whitespace() || self.parser.time.is_match(line) {
            self.end_of_sample();
        }
        match self.parser.frame(line) {
            Some(frame) if self.sample.is_some() => {
                self.frame(&frame);
                self.sample.iter_mut().for_each(|sample| sample.has_lines = true);
            }
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
        self.sample = Some(Sample { at: head.at, thread, is_counted, frames: Vec::new(), has_lines: false });
        if is_counted {
            if self.sampled.len() <= MAX_EVENTS {
                self.sampled.insert(head.event.into());
            }
            let is_all = match self.parser.own_frame(head.rest) {
                Some((frame, is_all)) => {
                    self.frame(&frame);
                    is_all
                }
                None => head.rest.is_empty(),
            };
            if !is_all {
                self.kernel.kernel.writer.skip("texts beside samples");
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
        let Sample { at, thread, is_counted, frames, .. } = sample;
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
