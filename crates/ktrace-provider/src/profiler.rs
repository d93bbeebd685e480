//! A sampling profiler: where the user's threads are, so many times a second that they run.
//= docs/kernel.md#profiles

mod modules;

use crate::perf::{self, COMM, FORK, Feed, IS_EXEC, LOST, Rings, Synchronized, TRAILER_BYTES};
use crate::processes;
use crate::records::EngineRecords;
use modules::Modules;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag};
use std::collections::HashMap;
use trace_engine::raw;
use trace_format::profiler::{Frames, MAX_FRAMES, Profiler as ProfilerRecord, ProfilerKind};
use trace_format::record::Record;
use trace_format::refs::ThreadRef;
use trace_format::slab::LossReason;
use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};
use trace_linux::{Kernel, Records};

/// What it is switched on by.
pub const CATEGORY: &str = "profile";

/// Kinds of records, as the kernel numbers them.
const MMAP: u32 = 1;
const SAMPLE: u32 = 9;
/// Frames from here on are no addresses, but say whose the following are.
const FIRST_MARK: u64 = u64::MAX - 4094;

/// Samples of threads, from here on.
pub struct Profiler {
    feed: Feed<Item>,
    kernel: Kernel<EngineRecords>,
    processes: HashMap<u32, Modules>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    at: u64,
    process: u32,
    thread: u32,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// Innermost first.
    Sample(Vec<u64>),
    Map(Mapping),
    Name {
        name: Vec<u8>,
        is_program: bool,
    },
    Thread {
        process: u32,
        thread: u32,
        parent: u32,
    },
    Lost(u64),
}

/// A part of a file that is mapped to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where it begins.
    pub start: u64,
    /// Its bytes.
    pub length: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// The file.
    pub file: Vec<u8>,
}

fn builder(hertz: u64) -> Builder<'static> {
    let mut builder = perf::builder(Software::CPU_CLOCK);
    builder
        .sample(SampleFlag::CALLCHAIN)
        .sample_frequency(hertz)
        .exclude_callchain_kernel(true)
        .mmap(true)
        .comm(true)
        .comm_exec(true)
        .task(true);
    builder
}

impl Profiler {
    /// Begins; in the kernel, too, where this user may know that: what a thread called it from.
    #[must_use]
    pub fn start(hertz: u64, rate: u64) -> Self {
        let mut kernel = Kernel::new(EngineRecords::new());
        let sees_kernel = builder(hertz).include_kernel().observe_self().any_cpu().build().is_ok();
        let rings = Rings::open("samples", || {
            let mut builder = builder(hertz);
            if sees_kernel {
                builder.include_kernel();
            } else {
                builder.exclude_kernel(true);
            }
            builder
        });
        processes::scan(&mut kernel);
        Self { feed: Feed::new(rings, rate, |item| item.at), kernel, processes: HashMap::new() }
    }

    /// Takes what the kernel has told.
    pub fn drain(&mut self) {
        self.feed.read(Item::parse).into_iter().for_each(|item| self.tell(item));
    }

    /// Takes the rest.
    pub fn finish(mut self) {
        self.feed.rest(Item::parse).into_iter().for_each(|item| self.tell(item));
    }

    fn tell(&mut self, item: Item) {
        let Item { at, process, thread, what } = item;
        match what {
            What::Sample(frames) => {
                self.kernel.belongs(thread, process);
                let modules = self.processes.entry(process).or_insert_with(|| Modules::of_process(process));
                let writer = &mut self.kernel.writer;
                // What is not known yet of where its code is, first.
                modules.tell_new(|kind| write(writer, at, (process, thread), kind));
                let frames = &frames[..frames.len().min(MAX_FRAMES)];
                write(writer, at, (process, thread), ProfilerKind::Backtrace { frames: Frames::new(frames) });
            }
            What::Map(mapping) => {
                let modules = self.processes.entry(process).or_insert_with(|| Modules::of_process(process));
                modules.add(mapping);
            }
            What::Name { name, is_program } => {
                self.kernel.belongs(thread, process);
                self.kernel.rename(thread, &name);
                if is_program {
                    self.kernel.name_process(process, &name);
                    // Nothing of what was mapped is there any more; what is will be told.
                    self.processes.insert(process, Modules::default());
                }
            }
            What::Thread { process: new, thread, parent } => {
                self.kernel.belongs(thread, new);
                if new != parent {
                    let modules = self.processes.entry(parent).or_insert_with(|| Modules::of_process(parent));
                    let inherited = modules.inherited();
                    self.processes.insert(new, inherited);
                }
            }
            What::Lost(count) => raw::add_losses(LossReason::KernelOverrun, count, at, at),
        }
    }
}

fn write(writer: &mut EngineRecords, at: u64, (process, thread): (u32, u32), kind: ProfilerKind<'_>) {
    let thread = ThreadRef::Inline {
        process: ProcessKoid(Koid(process.into())),
        thread: ThreadKoid(Koid(thread.into())),
    };
    writer.at(at, &Record::Profiler(ProfilerRecord { timestamp: Ticks(at), thread, kind }));
}

impl Item {
    /// None for what does not matter.
    fn parse(kind: u32, flags: u16, bytes: &[u8], clock: &Synchronized) -> Option<Self> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        if kind == SAMPLE {
            // Process and thread, time, CPU, and how many frames follow.
            let count = usize::try_from(u64_at(24)?).ok()?;
            let words = bytes.get(32..)?.as_chunks::<8>().0.get(..count)?;
            let frames = words.iter().map(|word| u64::from_le_bytes(*word));
            let frames: Vec<u64> = frames.filter(|frame| *frame < FIRST_MARK).collect();
            let what = What::Sample(frames);
            return Some(Self { process: u32_at(0)?, thread: u32_at(4)?, at: clock.ticks(u64_at(8)?), what });
        }
        let body = bytes.len().checked_sub(TRAILER_BYTES)?;
        let what = match kind {
            MMAP => What::Map(Mapping {
                start: u64_at(8)?,
                length: u64_at(16)?,
                offset: u64_at(24)?,
                file: crate::format::cut(bytes.get(32..body)?).to_vec(),
            }),
            COMM => What::Name {
                name: crate::format::cut(bytes.get(8..body)?).to_vec(),
                is_program: flags & IS_EXEC != 0,
            },
            FORK => What::Thread { process: u32_at(0)?, parent: u32_at(4)?, thread: u32_at(8)? },
            LOST => What::Lost(u64_at(8)?),
            _ => return None,
        };
        let at = clock.ticks(u64_at(body + 8)?);
        Some(Self { process: u32_at(body)?, thread: u32_at(body + 4)?, at, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    //= docs/kernel.md#profiles
    #[test]
    fn samples_and_mappings_are_read() {
        let clock = Synchronized { nanos: 1000, ticks: 5000, rate: 2_000_000_000 };
        let own = 7 | 8 << 32;
        let sample = bytes(&[own, 1010, 1, 4, u64::MAX - 511, 0x1000, 0x2000, 0x3000]);
        let item = |what| Item { at: 5020, process: 7, thread: 8, what };
        let parsed = Item::parse(SAMPLE, 0, &sample, &clock);
        assert_eq!(parsed, Some(item(What::Sample(vec![0x1000, 0x2000, 0x3000]))));
        // More frames than there are.
        assert_eq!(Item::parse(SAMPLE, 0, &bytes(&[own, 1010, 1, 4, 1]), &clock), None);
        let name = u64::from_le_bytes(*b"/bin/ls\0");
        let mmap = bytes(&[own, 0x40_0000, 0x1000, 0x2000, name, own, 1010, 1]);
        let mapping = Mapping { start: 0x40_0000, length: 0x1000, offset: 0x2000, file: b"/bin/ls".to_vec() };
        assert_eq!(Item::parse(MMAP, 0, &mmap, &clock), Some(item(What::Map(mapping))));
        let fork = bytes(&[9 | 7 << 32, 10 | 8 << 32, 0, own, 1010, 1]);
        let thread = What::Thread { process: 9, thread: 10, parent: 7 };
        assert_eq!(Item::parse(FORK, 0, &fork, &clock), Some(item(thread)));
    }
}
