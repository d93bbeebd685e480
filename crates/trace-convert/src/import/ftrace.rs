//! The text of Linux's ftrace, alone or in a page of systrace's.
//= docs/import.md#ftrace

mod line;
mod perf;

use super::ended::{End, Ended};
use super::writer::Writer;
use super::{BYTE_ORDER_MARK, ImportError, LINE_BYTES};
use crate::Summary;
use line::{Event, Line, Parser};
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read, Write};
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::{EventKind, Scope};
use trace_format::scheduling::ThreadState;
use trace_linux::{IRQ, Kernel, OTHER, POWER, Records, SYSCALL, inline};

/// How many losses before the first event are kept: one of each CPU.
const MAX_FIRST_LOSSES: usize = 1 << 12;

/// How much of a text shows what it is.
const START_BYTES: u64 = 64 << 10;

/// Whether a file begins like ftrace's text, or like the output of `perf script`.
#[must_use]
pub fn is_ftrace(start: &[u8]) -> bool {
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    has_lines(start) || perf::is_perf(start)
}

/// Whether a text begins like one of ftrace's.
pub(super) fn has_lines(start: &[u8]) -> bool {
    let parser = Parser::new();
    let is_head = |line: &&[u8]| line.trim_ascii().is_empty() || parser.is_head(line);
    let mut lines = start.split(|byte| *byte == b'\n').filter(|line| !is_head(line));
    // Other tools write only few lines before it.
    lines.by_ref().take(20).any(|line| line.starts_with(b"# tracer:") || parser.line(line).is_some())
}

/// Converts ftrace's text, or the output of `perf script`, into an archive.
///
/// # Errors
/// The input cannot be read, or the archive cannot be written.
pub fn import(mut input: impl Read, mut output: impl Write) -> Result<Summary, ImportError> {
    import_from(&mut input, &mut output)
}

fn import_from(input: &mut dyn Read, output: &mut dyn Write) -> Result<Summary, ImportError> {
    let (mut start, end) = (Vec::new(), End::default());
    let mut input = Ended::new(input, &end);
    let read = input.by_ref().take(START_BYTES).read_to_end(&mut start);
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&start);
    let input = &mut text.chain(input).chain(end);
    if !has_lines(text) && perf::is_perf(text) {
        return perf::import(input, output);
    }
    let mut writer = Writer::in_time(output, "ftrace");
    let result =
        read.map_err(ImportError::Read).and_then(|_| write_lines(input, &mut writer, Ends::WithLine));
    ImportError::ended(result, writer.finish("text of ftrace's"))
}

/// Where a text ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ends {
    /// With the end of a line, else its last line is cut off.
    WithLine,
    Anywhere,
}

/// Writes the events of a text, which come in the order of their times.
pub(super) fn write_lines<W: Write>(
    input: impl Read,
    writer: &mut Writer<W>,
    ends: Ends,
) -> Result<(), ImportError> {
    let mut importer = Importer::new(writer);
    let result = lines(input, &mut importer, ends);
    importer.end();
    result
}

/// Whether a line has its end, or is a piece of one that is too long.
fn is_whole_line(line: &[u8]) -> bool {
    line.ends_with(b"\n") || line.len() == LINE_BYTES
}

/// The reader's position in a file.
#[derive(PartialEq)]
enum Part {
    /// In a page, outside of the trace.
    Page,
    /// In the trace of a page, where lines may end like those of a program's text.
    PageTrace,
    Trace,
}

fn lines<W: Write>(
    input: impl Read,
    importer: &mut Importer<&mut Writer<W>>,
    ends: Ends,
) -> Result<(), ImportError> {
    let parser = Parser::new();
    let mut input = BufReader::with_capacity(LINE_BYTES, input);
    let mut bytes = Vec::new();
    let mut part = Part::Trace;
    loop {
        bytes.clear();
        let length = input.by_ref().take(LINE_BYTES as u64).read_until(b'\n', &mut bytes);
        if length.map_err(ImportError::Read)? == 0 {
            return Ok(());
        }
        let text = importer.text(&bytes);
        let line = text.as_bytes().trim_ascii_end();
        let start = line.trim_ascii_start();
        match part {
            Part::Trace if start.starts_with(b"<") && parser.line(line).is_none() => part = Part::Page,
            Part::Page if start.starts_with(b"# tracer:") => part = Part::PageTrace,
            Part::PageTrace if start.starts_with(b"</script") || start == b"\\n\";" => part = Part::Page,
            _ => {}
        }
        let line = if part == Part::PageTrace { line.strip_suffix(b"\\n\\").unwrap_or(line) } else { line };
        let start = line.trim_ascii();
        if part != Part::Page && !start.is_empty() && !start.starts_with(b"#") {
            match ends == Ends::Anywhere || is_whole_line(&bytes) {
                true => importer.line(&parser, line),
                false => importer.kernel.writer.cut_off(),
            }
        }
        importer.kernel.writer.flush_if_full().map_err(ImportError::Write)?;
    }
}

struct Importer<R> {
    kernel: Kernel<R>,
    /// The time of the line before.
    last: Option<u64>,
    /// Losses before the first event, which has their time.
    first_losses: Vec<(u16, Option<u64>)>,
    /// Lines that have replacement characters.
    mended_lines: u64,
}

impl<R: Records> Importer<R> {
    fn new(writer: R) -> Self {
        Self { kernel: Kernel::new(writer), last: None, first_losses: Vec::new(), mended_lines: 0 }
    }

    /// A line as UTF-8.
    fn text<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(bytes);
        self.mended_lines += u64::from(matches!(text, Cow::Owned(_)));
        text
    }

    /// Counts a line that is no event.
    fn other_line(&mut self, text: &[u8]) {
        let start = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        self.kernel.writer.leave_out("lines that are no events");
        self.kernel.writer.warn(format!("no event of ftrace's: {start}"));
    }

    fn line(&mut self, parser: &Parser, text: &[u8]) {
        if let Some((cpu, count)) = parser.lost(text) {
            match self.last {
                Some(last) => self.kernel.lost(last, cpu, count),
                None if self.first_losses.len() < MAX_FIRST_LOSSES => self.first_losses.push((cpu, count)),
                None => self.kernel.writer.leave_out("losses before the first event"),
            }
            return;
        }
        let Some(line) = parser.line(text) else {
            if self.last.is_none() && parser.is_head(text) {
                return;
            }
            return self.other_line(text);
        };
        self.losses_before(line.at);
        self.last = Some(line.at);
        if let Some(tgid) = line.tgid {
            self.kernel.belongs(line.tid, tgid);
        }
        if !line.task.starts_with(b"<") {
            self.kernel.rename_if_unknown(line.tid, line.task);
        }
        let event = parser.event(line.name, line.text);
        self.event(&line, event);
    }

    /// Writes the losses that were reported before the first event, at its time.
    fn losses_before(&mut self, at: u64) {
        for (cpu, count) in std::mem::take(&mut self.first_losses) {
            self.kernel.lost(at, cpu, count);
        }
    }

    /// Reports what is known only at the end.
    fn end(&mut self) {
        self.losses_before(0);
        if self.mended_lines > 0 {
            let lines = match self.mended_lines {
                1 => "1 line is".to_owned(),
                count => format!("{count} lines are"),
            };
            self.kernel.writer.warn(format!("{lines} not UTF-8: U+FFFD replaces invalid bytes"));
        }
    }

    fn event(&mut self, line: &Line<'_>, event: Event<'_>) {
        let kernel = &mut self.kernel;
        let Line { at, cpu, tid, .. } = *line;
        match event {
            Event::Switch { outgoing, state, incoming } => {
                kernel.switch(at, cpu, &outgoing, thread_state(state), &incoming);
            }
            Event::Waking { woken, cpu, is_again } => {
                let waker = (!line.is_interrupt).then_some(tid);
                match is_again {
                    true => kernel.wakeup(at, cpu, &woken, waker),
                    false => kernel.waking(at, cpu, &woken, waker),
                }
            }
            Event::Marker(text) => kernel.marker(at, tid, text),
            Event::Renamed { tid, name } => kernel.rename(tid, name),
            Event::NewTask { tid: new, name, is_thread } => {
                let creator = kernel.thread(tid).process.0 as u32;
                kernel.belongs(new, if is_thread { creator } else { new });
                kernel.rename(new, name);
            }
            Event::Interrupt { name, number } => {
                let thread = kernel.cpu(cpu);
                let arguments = [
                    argument(kernel, b"irq #", ArgumentValue::Uint32(number)),
                    argument(kernel, b"name", ArgumentValue::String(inline(name))),
                ];
                kernel.writer.event(at, thread, IRQ, b"irq", EventKind::DurationBegin, &arguments);
            }
            Event::SoftInterrupt { name, number } => {
                let thread = kernel.cpu(cpu);
                let arguments = [
                    argument(kernel, b"vec", ArgumentValue::Uint32(number)),
                    argument(kernel, b"name", ArgumentValue::String(inline(name))),
                ];
                kernel.writer.event(at, thread, IRQ, b"softirq", EventKind::DurationBegin, &arguments);
            }
            Event::InterruptEnd => {
                let thread = kernel.cpu(cpu);
                kernel.writer.event(at, thread, IRQ, b"", EventKind::DurationEnd, &[]);
            }
            Event::SystemCall { name } => {
                let thread = kernel.thread(tid);
                kernel.writer.event(at, thread, SYSCALL, &name, EventKind::DurationBegin, &[]);
            }
            Event::SystemCallEnd => {
                let thread = kernel.thread(tid);
                kernel.writer.event(at, thread, SYSCALL, b"", EventKind::DurationEnd, &[]);
            }
            Event::Power { cpu, state } => {
                let thread = kernel.cpu(cpu);
                let value = argument(kernel, b"state", ArgumentValue::Int64(state));
                let kind = EventKind::Counter { id: cpu.into() };
                kernel.writer.event(at, thread, POWER, line.name, kind, &[value]);
            }
            Event::FrequencyLimits { cpu, min, max } => {
                let thread = kernel.cpu(cpu);
                let arguments = [
                    argument(kernel, b"min", ArgumentValue::Int64(min)),
                    argument(kernel, b"max", ArgumentValue::Int64(max)),
                ];
                let kind = EventKind::Counter { id: cpu.into() };
                kernel.writer.event(at, thread, POWER, line.name, kind, &arguments);
            }
            Event::Other { fields } => self.other(line, &fields),
        }
    }

    /// A tracepoint without a meaning of its own: an instant with its fields.
    fn other(&mut self, line: &Line<'_>, fields: &[(&[u8], &[u8])]) {
        let kernel = &mut self.kernel;
        let mut arguments = Vec::new();
        if fields.is_empty() && !line.text.is_empty() {
            arguments.push(argument(kernel, b"text", ArgumentValue::String(inline(line.text))));
        }
        for (name, value) in fields {
            let whole = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            let value = match whole {
                Some(whole) => ArgumentValue::Int64(whole),
                None => ArgumentValue::String(kernel.writer.string(value)),
            };
            arguments.push(argument(kernel, name, value));
        }
        let thread = if line.tid == 0 { kernel.cpu(line.cpu) } else { kernel.thread(line.tid) };
        let kind = EventKind::Instant { scope: Scope::Thread };
        kernel.writer.event(line.at, thread, OTHER, line.name, kind, &arguments);
    }
}

fn argument<'a>(kernel: &mut Kernel<impl Records>, name: &'a [u8], value: ArgumentValue<'a>) -> Argument<'a> {
    Argument { name: kernel.writer.string(name), value }
}

/// A state's letter; that of a preempted thread has a `+` after it.
//= docs/import.md#kernel-events
fn thread_state(letter: u8) -> ThreadState {
    match letter {
        b'R' => ThreadState::RUNNING,
        b'T' | b't' => ThreadState::SUSPENDED,
        b'Z' => ThreadState::DYING,
        b'X' | b'x' => ThreadState::DEAD,
        _ => ThreadState::BLOCKED,
    }
}

#[cfg(test)]
mod tests;
