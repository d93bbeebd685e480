//! Thread events from `perf_event_open`: the rings that the kernel writes to, the threads that they belong
//! to, and their clock.
//= docs/kernel.md#without-privileges

use crate::{processes, report};
use perf_event::events::Event;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use rustix::time::{ClockId, clock_gettime};
use std::os::unix::fs::MetadataExt;
use zx_sim::ticks::{self, Source};

/// Size of a ring, enough for the events between two reads: for a program that is recorded, and for others.
pub(crate) const RING_BYTES: [usize; 2] = [64 << 10, 8 << 10];

/// Kinds of records, as the kernel numbers them.
pub(crate) const LOST: u32 = 2;
pub(crate) const COMM: u32 = 3;
pub(crate) const FORK: u32 = 7;
/// Flag of a name: it comes from the start of a program.
pub(crate) const IS_EXEC: u16 = 1 << 13;
/// The end of each record other than samples: process, thread, time, CPU.
pub(crate) const TRAILER_BYTES: usize = 24;

/// Maximum memory for rings that root locks, who has no limit.
const ROOT_LOCKED_BYTES: usize = 256 << 20;

/// Events of one kind, and the rings that they go to.
pub(crate) struct Kind<'a> {
    /// The event.
    pub builder: &'a dyn Fn() -> Builder<'static>,
    /// Size of a ring: for a thread of the process that records, and for others. Powers of two.
    pub bytes: [usize; 2],
    /// Maximum number of bytes of all rings of this kind and of those before it.
    pub budget: usize,
}

/// An event whose records have their thread and their time.
pub(crate) fn builder(event: impl Event) -> Builder<'static> {
    let mut builder = Builder::new(event);
    let clock = if ticks::source() == Source::Monotonic { Clock::MONOTONIC } else { Clock::MONOTONIC_RAW };
    builder
        .sample_id_all(true)
        .sample(SampleFlag::TID)
        .sample(SampleFlag::TIME)
        .sample(SampleFlag::CPU)
        .clockid(clock)
        .enabled(true);
    builder
}

/// The rings that the kernel writes records to: one for each thread and CPU.
pub(crate) struct Rings {
    rings: Vec<Sampler>,
    cpus: usize,
}

impl Rings {
    /// Follows the threads of the user's programs and their children; the process that records comes first,
    /// as the recorded program is its child. If the kernel or the budget has no room for an event of one
    /// kind, this thread and all further ones get the next kind. The number of threads without any is
    /// reported.
    pub fn open(what: &str, kinds: &[Kind<'_>]) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut rings = Vec::new();
        let mut refused = 0;
        let mut why = None;
        let mut kinds = kinds.iter();
        let mut kind = kinds.next();
        let mut spent = 0;
        for (thread, is_first) in targets() {
            while let Some(Kind { builder, bytes, budget }) = kind {
                let bytes = bytes[usize::from(!is_first)];
                if spent + bytes * cpus <= *budget {
                    match rings_of(thread, cpus, bytes, builder) {
                        Ok(of_thread) => {
                            spent += bytes * of_thread.len();
                            rings.extend(of_thread);
                            break;
                        }
                        Err(error) => why = Some(error),
                    }
                }
                kind = kinds.next();
            }
            refused += usize::from(kind.is_none());
        }
        if let Some(why) = why.filter(|_| refused > 0) {
            report(&format!("{what}: threads that are not followed: {refused}: {why}"));
        }
        Self { rings, cpus }
    }

    /// The CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = u16> {
        (0..self.cpus).filter_map(|cpu| u16::try_from(cpu).ok())
    }

    /// Passes on kind, flags and bytes of all new records.
    pub fn read(&mut self, mut take: impl FnMut(u32, u16, &[u8])) {
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                take(record.ty(), record.misc(), &record.to_contiguous());
            }
        }
    }
}

/// The events of all rings, in the order of their times.
pub(crate) struct Feed<T> {
    rings: Rings,
    /// Events younger than the moment at which the current pass over the rings began: another ring may still
    /// deliver older ones.
    waiting: Vec<T>,
    at: fn(&T) -> u64,
    rate: u64,
}

impl<T> Feed<T> {
    pub fn new(rings: Rings, rate: u64, at: fn(&T) -> u64) -> Self {
        Self { rings, waiting: Vec::new(), at, rate }
    }

    /// Empties the rings; their events wait for their order.
    pub fn collect(&mut self, parse: impl Fn(u32, u16, &[u8], &Synchronized) -> Option<T>) {
        let clock = Synchronized::now(self.rate);
        let waiting = &mut self.waiting;
        self.rings.read(|kind, flags, bytes| waiting.extend(parse(kind, flags, bytes, &clock)));
    }

    /// The events whose order is certain.
    pub fn read(&mut self, parse: impl Fn(u32, u16, &[u8], &Synchronized) -> Option<T>) -> Vec<T> {
        let begun = ticks::now();
        self.collect(parse);
        let waiting = &mut self.waiting;
        let at = self.at;
        waiting.sort_by_key(at);
        let due = waiting.partition_point(|item| at(item) <= begun);
        waiting.drain(..due).collect()
    }

    /// All remaining events; no further ones come.
    pub fn rest(&mut self, parse: impl Fn(u32, u16, &[u8], &Synchronized) -> Option<T>) -> Vec<T> {
        let mut rest = self.read(parse);
        rest.append(&mut self.waiting);
        rest
    }
}

/// A ring for each CPU of a thread; none for one that has ended meanwhile.
fn rings_of(
    thread: u32,
    cpus: usize,
    bytes: usize,
    builder: impl Fn() -> Builder<'static>,
) -> std::io::Result<Vec<Sampler>> {
    let ring = |cpu| {
        let thread = i32::try_from(thread).unwrap_or(i32::MAX);
        let counter = builder().observe_pid(thread).one_cpu(cpu).inherit(true).build()?;
        counter.sampled(bytes)
    };
    match (0..cpus).map(ring).collect() {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(Vec::new()),
        rings => rings,
    }
}

/// How many bytes the kernel lets this user lock for rings.
pub(crate) fn locked_bytes() -> usize {
    if rustix::process::geteuid().is_root() {
        return ROOT_LOCKED_BYTES;
    }
    let kilobytes = std::fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or_default();
    let for_each_cpu = kilobytes.trim().parse::<usize>().unwrap_or(0).saturating_mul(1024);
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    for_each_cpu.saturating_mul(cpus).saturating_add(limit).min(ROOT_LOCKED_BYTES)
}

/// The threads to follow, and whether they are of the process that records.
fn targets() -> Vec<(u32, bool)> {
    let mut targets: Vec<_> = threads_of(parent()).into_iter().map(|thread| (thread, true)).collect();
    targets.extend(others().into_iter().map(|thread| (thread, false)));
    targets
}

/// The threads of the user's programs, first those of the process that records; the newest come first, as
/// they are the most likely to be wanted.
pub(crate) fn threads() -> Vec<u32> {
    threads_of(parent()).into_iter().chain(others()).collect()
}

fn parent() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())
}

fn threads_of(process: u32) -> Vec<u32> {
    processes::numbers(&format!("/proc/{process}/task"))
}

fn others() -> Vec<u32> {
    let (parent, user) = (parent(), rustix::process::getuid().as_raw());
    let is_ours = |process: &u32| {
        let directory = format!("/proc/{process}");
        let owner = std::fs::metadata(&directory).map(|metadata| metadata.uid());
        // The kernel's own threads are root's, and run no program.
        let is_program = || std::fs::read(format!("{directory}/cmdline")).is_ok_and(|line| !line.is_empty());
        *process != std::process::id()
            && *process != parent
            && owner.is_ok_and(|owner| owner == user)
            && is_program()
    };
    processes::numbers("/proc").into_iter().rev().filter(is_ours).flat_map(threads_of).collect()
}

/// The kernel's clock and the trace's, at one moment.
pub(crate) struct Synchronized {
    pub nanos: u64,
    pub ticks: u64,
    pub rate: u64,
}

impl Synchronized {
    pub fn now(rate: u64) -> Self {
        let pair = || {
            let before = ticks::now();
            let time = clock_gettime(ClockId::MonotonicRaw);
            let after = ticks::now();
            let nanos = time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs();
            (after - before, Self { nanos, ticks: before + (after - before) / 2, rate })
        };
        // The reading with the shortest interruption.
        let pairs = std::iter::repeat_with(pair).take(5).min_by_key(|(span, _)| *span);
        pairs.map_or(Self { nanos: 0, ticks: 0, rate }, |(_, pair)| pair)
    }

    /// The trace's time for one of the kernel's.
    pub fn ticks(&self, nanos: u64) -> u64 {
        if ticks::source() == Source::Monotonic {
            return nanos;
        }
        let away = i128::from(nanos) - i128::from(self.nanos);
        let ticks = i128::from(self.ticks) + away * i128::from(self.rate) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(0)
    }
}
