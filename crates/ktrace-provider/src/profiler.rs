//! A sampling profiler: samples the stacks of the user's running threads, a given number of times per second.
//= docs/kernel.md#profiles

mod code;
mod modules;
mod names;
mod perf_map;
mod sample;
mod tables;
mod unwind;

use crate::perf::{self, Feed, Kind, RING_BYTES, Rings};
use crate::processes;
use crate::records::EngineRecords;
use crate::symbols::Functions;
use modules::{Modules, Shared};
use names::Names;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag};
use sample::{Item, REGISTERS, Sample, What};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use trace_engine::ffi;
use trace_format::profiler::{Frames, MAX_FRAMES, Profiler as ProfilerRecord, ProfilerKind};
use trace_format::record::Record;
use trace_format::refs::ThreadRef;
use trace_format::slab::LossReason;
use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};
use trace_linux::{Kernel, Records};

/// The category that enables it.
pub const CATEGORY: &str = "profile";

/// The default size of a stack copy.
pub const STACK_BYTES: u32 = 16 << 10;
/// The maximum that fits into a record of the kernel.
pub const MAX_STACK_BYTES: u32 = 60 << 10;

/// The usual maximum size of a sample besides the copy of its stack.
const SAMPLE_BYTES: usize = 1 << 10;
/// Sizes of rings that hold copies of stacks.
const MIN_RING_BYTES: usize = 32 << 10;
const MAX_RING_BYTES: usize = 4 << 20;
/// How long the rings may wait while samples are processed.
const COLLECT_INTERVAL: Duration = Duration::from_millis(5);
/// Frames of samples that wait for names; beyond it, these are written without names.
const MAX_WAITING_FRAMES: usize = 1 << 20;

/// The sampling options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Samples per second.
    pub hertz: u64,
    /// Size of the stack copy, in bytes, for finding callers; 0 to follow frame pointers alone.
    pub stack_bytes: u32,
}

/// Samples of threads, from here on.
pub struct Profiler {
    feed: Feed<Item>,
    kernel: Kernel<EngineRecords>,
    processes: HashMap<u32, Modules>,
    shared: Shared,
    names: Names,
    /// Samples whose functions their program may still name.
    waiting: HashMap<u32, Vec<Written>>,
    waiting_frames: usize,
}

/// A sample as it is written.
struct Written {
    at: u64,
    thread: u32,
    frames: Vec<u64>,
}

fn builder(hertz: u64) -> Builder<'static> {
    let mut builder = perf::builder(Software::CPU_CLOCK);
    builder
        .sample(SampleFlag::CALLCHAIN)
        .sample_frequency(hertz)
        .mmap(true)
        .mmap2(true)
        .comm(true)
        .comm_exec(true)
        .task(true);
    builder
}

/// Room for the samples of the given number of milliseconds.
fn ring_bytes(sampling: Sampling, milliseconds: u64) -> usize {
    let samples = sampling.hertz * milliseconds / 1000 + 2;
    let bytes = usize::try_from(samples).unwrap_or(usize::MAX);
    let bytes = bytes.saturating_mul(sampling.stack_bytes as usize + SAMPLE_BYTES);
    bytes.clamp(MIN_RING_BYTES, MAX_RING_BYTES).next_power_of_two()
}

fn open_rings(sampling: Sampling, sees_kernel: bool) -> Rings {
    let plain = || {
        let mut builder = builder(sampling.hertz);
        if sees_kernel {
            builder.include_kernel();
        } else {
            builder.exclude_kernel(true).exclude_callchain_kernel(true);
        }
        builder
    };
    let deep = || {
        let mut builder = plain();
        builder.sample(SampleFlag::REGS_USER).sample_regs_user(REGISTERS);
        builder.sample(SampleFlag::STACK_USER).sample_stack_user(sampling.stack_bytes & !7);
        builder
    };
    // Rings are read every 10 ms, and less often on a busy machine. Half of the lockable memory is for
    // threads with smaller rings.
    let mut kinds = Vec::new();
    if REGISTERS != 0 && sampling.stack_bytes > 0 {
        let budget = perf::locked_bytes() / 2;
        kinds.extend([40, 20, 10, 0].map(|milliseconds| {
            let bytes = [milliseconds, milliseconds / 2].map(|room| ring_bytes(sampling, room));
            Kind { builder: &deep, bytes, budget }
        }));
    }
    kinds.push(Kind { builder: &plain, bytes: RING_BYTES, budget: usize::MAX });
    Rings::open("samples", &kinds)
}

impl Profiler {
    /// Starts sampling; includes the kernel's part of the stacks if this user may see it.
    #[must_use]
    pub fn start(sampling: Sampling, rate: u64) -> Self {
        let mut kernel = Kernel::new(EngineRecords::new());
        let sees_kernel = builder(sampling.hertz).include_kernel().observe_self().any_cpu().build().is_ok();
        let names = Names::new(if sees_kernel { Functions::of_kernel() } else { Functions::default() });
        let rings = open_rings(sampling, sees_kernel);
        processes::scan(&mut kernel);
        Self {
            feed: Feed::new(rings, rate, |item| item.at),
            kernel,
            processes: HashMap::new(),
            shared: Shared::default(),
            names,
            waiting: HashMap::new(),
            waiting_frames: 0,
        }
    }

    /// Processes the samples that the kernel has written.
    pub fn drain(&mut self) {
        let mut collected = Instant::now();
        for item in self.feed.read(Item::parse) {
            self.take(item);
            // If a file had to be read, the rings have filled meanwhile.
            if collected.elapsed() >= COLLECT_INTERVAL {
                self.feed.collect(Item::parse);
                collected = Instant::now();
            }
        }
        let waiting: Vec<u32> = self.waiting.keys().copied().collect();
        for process in waiting {
            if self.names.has_more(process) {
                self.retry(process, false);
            }
        }
    }

    /// Processes the rest.
    pub fn finish(mut self) {
        self.feed.rest(Item::parse).into_iter().for_each(|item| self.take(item));
        self.retry_all();
    }

    fn modules(&mut self, process: u32) -> &mut Modules {
        self.processes.entry(process).or_insert_with(|| Modules::of_process(process))
    }

    fn take(&mut self, item: Item) {
        let Item { at, process, thread, what } = item;
        match what {
            What::Sample(sample) => self.sample(at, process, thread, sample),
            What::Map(mapping) => self.modules(process).add(mapping),
            What::Name { name, is_program } => {
                self.kernel.belongs(thread, process);
                self.kernel.rename(thread, &name);
                if is_program {
                    self.kernel.name_process(process, &name);
                    self.forget(process);
                    // The earlier mappings are gone; the new ones are reported from here on.
                    self.processes.insert(process, Modules::default());
                }
            }
            What::Thread { process: new, thread, parent } => {
                self.kernel.belongs(thread, new);
                if new != parent {
                    let inherited = self.modules(parent).inherited();
                    self.processes.insert(new, inherited);
                }
            }
            What::Exit if thread == process => {
                self.forget(process);
                // Other threads may go on without the first.
                if processes::numbers(&format!("/proc/{process}/task")).len() <= 1 {
                    self.processes.remove(&process);
                }
            }
            What::Exit => {}
            What::Lost(count) => ffi::add_losses(LossReason::KernelOverrun, count, at, at),
        }
    }

    //= docs/kernel.md#profiles
    fn sample(&mut self, at: u64, process: u32, thread: u32, sample: Sample) {
        self.kernel.belongs(thread, process);
        self.modules(process);
        let Some(modules) = self.processes.get_mut(&process) else {
            return;
        };
        modules.load(process, !sample.kernel.is_empty(), &mut self.shared);
        let writer = &mut self.kernel.writer;
        // First the modules and mappings of its code that were not written yet.
        modules.write_new(|kind| writer.define(&record(at, (process, thread), kind)));
        let unwound = modules.unwind(&sample, &mut self.shared.cache);
        let mut frames = sample.kernel;
        match unwound {
            Some(unwound) if unwound.is_whole || unwound.frames.len() >= sample.user.len() => {
                frames.extend(unwound.frames);
            }
            _ => frames.extend(sample.user),
        }
        frames.truncate(MAX_FRAMES);
        let is_complete = self.names.write_new(process, &frames, modules, |function| {
            writer.define(&Record::Blob(function.to_bytes().blob()));
        });
        if is_complete {
            writer.at(
                at,
                &record(at, (process, thread), ProfilerKind::Backtrace { frames: Frames::new(&frames) }),
            );
            return;
        }
        self.waiting_frames += frames.len();
        self.waiting.entry(process).or_default().push(Written { at, thread, frames });
        if self.waiting_frames > MAX_WAITING_FRAMES {
            self.retry_all();
        }
    }

    /// A process ends, or runs another program.
    fn forget(&mut self, process: u32) {
        if self.names.has_more(process) || self.waiting.contains_key(&process) {
            self.retry(process, true);
        }
        self.names.remove(process);
    }

    fn retry_all(&mut self) {
        let waiting: Vec<u32> = self.waiting.keys().copied().collect();
        waiting.into_iter().for_each(|process| self.retry(process, true));
    }

    /// Writes samples of a process that waited for names; samples that still lack some only at the end.
    fn retry(&mut self, process: u32, is_end: bool) {
        let (Some(samples), Some(modules)) = (self.waiting.remove(&process), self.processes.get(&process))
        else {
            return;
        };
        let writer = &mut self.kernel.writer;
        let mut left = Vec::new();
        for sample in samples {
            let is_complete = self.names.write_new(process, &sample.frames, modules, |function| {
                writer.define(&Record::Blob(function.to_bytes().blob()));
            });
            if is_complete || is_end {
                let frames = Frames::new(&sample.frames);
                let kind = ProfilerKind::Backtrace { frames };
                writer.at(sample.at, &record(sample.at, (process, sample.thread), kind));
                self.waiting_frames -= sample.frames.len();
            } else {
                left.push(sample);
            }
        }
        if !left.is_empty() {
            self.waiting.insert(process, left);
        }
    }
}

fn record(at: u64, (process, thread): (u32, u32), kind: ProfilerKind<'_>) -> Record<'_> {
    let thread = ThreadRef::Inline {
        process: ProcessKoid(Koid(process.into())),
        thread: ThreadKoid(Koid(thread.into())),
    };
    Record::Profiler(ProfilerRecord { timestamp: Ticks(at), thread, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/kernel.md#profiles
    #[test]
    fn rings_have_room_for_what_comes_between_two_looks() {
        let bytes = |hertz, stack_bytes| ring_bytes(Sampling { hertz, stack_bytes }, 40);
        assert_eq!(bytes(99, STACK_BYTES), 128 << 10);
        assert_eq!(bytes(999, STACK_BYTES), 1 << 20);
        assert_eq!(bytes(1, 0), MIN_RING_BYTES);
        assert_eq!(bytes(100_000, MAX_STACK_BYTES), MAX_RING_BYTES);
    }
}
