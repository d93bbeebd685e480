//! Folded stacks, a line for each, for tools that draw flame graphs: stacks of samples with their numbers, or
//! of slices with their own time.
//= docs/folded.md#lines

mod label;
mod slices;

pub use slices::convert_slices;

use crate::profile::{Profile, is_of_kernel};
use crate::{ConvertError, Filter, Selected, Summary, source};
use foldhash::HashMap;
use label::push;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use trace_format::profiler::ProfilerKind;
use trace_reader::dump::called_at;
use trace_reader::{Item, Mark, Names, Resolved, Thread};

/// Maximum total size of different stacks in bytes; samples of further ones are counted.
const MAX_BYTES: usize = 256 << 20;
/// Memory of a stack besides its text.
const ENTRY_BYTES: usize = 64;
/// Suffix of the kernel's functions, as the tools expect it.
const OF_KERNEL: &str = "_[k]";

/// What stacks begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// The process.
    #[default]
    Processes,
    /// The process, and in it the thread.
    Threads,
}

/// Converts the samples of an archive.
///
/// # Errors
/// The input is no archive or cannot be read, or the output cannot be written.
pub fn convert(
    mut input: impl Read,
    mut output: impl Write,
    filter: Filter,
    roots: Roots,
) -> Result<Summary, ConvertError> {
    write(&mut input, &mut output, filter, roots)
}

fn write(
    input: &mut dyn Read,
    output: &mut dyn Write,
    filter: Filter,
    roots: Roots,
) -> Result<Summary, ConvertError> {
    let mut folder = Folder { roots, selected: Selected::new(filter), ..Folder::default() };
    let end = source::for_each(input, |record| {
        folder.record(record);
        Ok(())
    })?;
    let mut stacks: Vec<_> = folder.stacks.into_iter().collect();
    stacks.sort_unstable();
    for (stack, count) in stacks {
        writeln!(output, "{stack} {count}").map_err(ConvertError::Write)?;
    }
    output.flush().map_err(ConvertError::Write)?;
    Ok(end.summary(folder.samples, folder.skipped))
}

#[derive(Default)]
struct Folder {
    roots: Roots,
    selected: Selected,
    profile: Profile,
    stacks: HashMap<String, u64>,
    bytes: usize,
    samples: u64,
    skipped: BTreeMap<&'static str, u64>,
}

impl Folder {
    fn record(&mut self, record: &Resolved<'_>) {
        match &record.item {
            Item::Profiler { kind: ProfilerKind::Backtrace { .. }, .. }
                if self.selected.keeps_record(&record.item) == Some(false) => {}
            Item::Profiler { thread, kind: ProfilerKind::Backtrace { frames }, .. } => {
                let frames: Vec<u64> = frames.iter().collect();
                let stack = self.stack(*thread, &frames, record.names);
                self.add(stack);
            }
            Item::Profiler { thread, kind, .. } => self.profile.learn(thread.process, kind),
            Item::Event(event) if Mark::of(record.provider, event).is_some() => {}
            Item::Event(_) => *self.skipped.entry("events").or_default() += 1,
            _ => {}
        }
    }

    fn stack(&mut self, thread: Thread, frames: &[u64], names: &Names) -> String {
        let process = names.process(thread.process).or_else(|| names.thread(thread));
        let mut stack = String::new();
        push(
            &mut stack,
            &process.map_or_else(|| thread.process.0.to_string(), |name| name.to_str().into_owned()),
        );
        if self.roots == Roots::Threads {
            stack.push(';');
            let name = names.thread(thread).map(|name| name.to_str().into_owned());
            push(&mut stack, &name.unwrap_or_else(|| format!("thread {}", thread.thread.0)));
        }
        for (depth, frame) in frames.iter().enumerate().rev() {
            let address = called_at(depth, *frame);
            for function in self.profile.functions(thread.process, address, names).iter().rev() {
                stack.push(';');
                push(&mut stack, function);
                stack.push_str(if is_of_kernel(address) { OF_KERNEL } else { "" });
            }
        }
        stack
    }

    fn add(&mut self, stack: String) {
        if let Some(count) = self.stacks.get_mut(&stack) {
            *count += 1;
        } else if self.bytes + stack.len() + ENTRY_BYTES > MAX_BYTES {
            *self.skipped.entry("samples of further stacks").or_default() += 1;
            return;
        } else {
            self.bytes += stack.len() + ENTRY_BYTES;
            self.stacks.insert(stack, 1);
        }
        self.samples += 1;
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use trace_format::function::{FunctionRecord, KERNEL};
    use trace_format::metadata::MAGIC_WORD;
    use trace_format::profiler::{Frames, Profiler, ProfilerKind};
    use trace_format::record::Record;
    use trace_format::refs::ThreadRef;
    use trace_format::sink::SliceSink;
    use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};

    /// Three samples of process 7, in functions that the trace names.
    pub fn trace() -> Vec<u8> {
        let mut bytes = MAGIC_WORD.to_le_bytes().to_vec();
        let mut add = |record: Record<'_>| {
            let mut words = [0; 256];
            let mut sink = SliceSink::new(&mut words);
            record.encode(&mut sink).unwrap();
            bytes.extend(sink.words().iter().flat_map(|word| word.to_le_bytes()));
        };
        let thread = ThreadRef::Inline { process: ProcessKoid(Koid(7)), thread: ThreadKoid(Koid(8)) };
        for (process, start, name) in
            [(Koid(7), 0x1000, "main"), (Koid(7), 0x2000, "a;b\nc"), (KERNEL, 1 << 63, "vfs_read")]
        {
            let function = FunctionRecord { process, start, length: 0x100, name: name.as_bytes() };
            add(Record::Blob(function.to_bytes().blob()));
        }
        for (at, frames) in
            [(5, &[0x1010][..]), (6, &[1 << 63, 0x2010, 0x1011]), (7, &[1 << 63, 0x2010, 0x1011])]
        {
            let kind = ProfilerKind::Backtrace { frames: Frames::new(frames) };
            add(Record::Profiler(Profiler { timestamp: Ticks(at), thread, kind }));
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::testing::trace;
    use super::*;
    use trace_format::metadata::MAGIC_WORD;

    //= docs/folded.md#lines
    #[test]
    fn each_stack_is_a_line_with_its_number_of_samples() {
        let mut output = Vec::new();
        let summary = convert(&*trace(), &mut output, Filter::default(), Roots::Processes).unwrap();
        let lines = "7;main 1\n7;main;a:b c;vfs_read_[k] 2\n";
        assert_eq!(String::from_utf8(output).unwrap(), lines);
        assert_eq!((summary.events, summary.skipped), (3, Vec::new()));
        let mut output = Vec::new();
        convert(&MAGIC_WORD.to_le_bytes()[..], &mut output, Filter::default(), Roots::Processes).unwrap();
        assert_eq!(output, b"");
    }

    //= docs/folded.md#lines
    #[test]
    fn stacks_begin_with_the_thread_if_that_is_asked_for() {
        let mut output = Vec::new();
        convert(&*trace(), &mut output, Filter::default(), Roots::Threads).unwrap();
        let lines = "7;thread_8;main 1\n7;thread_8;main;a:b c;vfs_read_[k] 2\n";
        assert_eq!(String::from_utf8(output).unwrap(), lines);
    }
}
