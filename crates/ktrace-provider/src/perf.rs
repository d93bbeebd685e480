//! What the kernel tells of threads by `perf_event_open`: the rings that it writes to, whose threads they are
//! of, and its clock.
//= docs/kernel.md#without-rights

use crate::{processes, tell};
use perf_event::events::Event;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use rustix::time::{ClockId, clock_gettime};
use std::os::unix::fs::MetadataExt;
use zx_sim::ticks::{self, Source};

/// Room for what happens between two looks: of a program that is recorded, and of others.
const RING_BYTES: [usize; 2] = [64 << 10, 8 << 10];

/// Kinds of records, as the kernel numbers them.
pub(crate) const LOST: u32 = 2;
pub(crate) const COMM: u32 = 3;
pub(crate) const FORK: u32 = 7;
/// Of a name: it comes from the start of a program.
pub(crate) const IS_EXEC: u16 = 1 << 13;
/// What stands at the end of each record that is no sample: process, thread, time, CPU.
pub(crate) const TRAILER_BYTES: usize = 24;

/// An event whose records say whose they are, and when.
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

/// What the kernel writes records to: one for each thread and CPU.
pub(crate) struct Rings {
    rings: Vec<Sampler>,
    cpus: usize,
}

impl Rings {
    /// Follows the threads of the user's programs and what they start; first those of the process that
    /// records, from which a recorded program comes. How many the kernel has no room for is told.
    pub fn open(what: &str, builder: impl Fn() -> Builder<'static>) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut rings = Vec::new();
        let mut refused = 0;
        let mut why = None;
        for (thread, bytes) in targets() {
            if refused > 0 {
                refused += 1;
                continue;
            }
            for cpu in 0..cpus {
                let ring = builder()
                    .observe_pid(i32::try_from(thread).unwrap_or(i32::MAX))
                    .one_cpu(cpu)
                    .inherit(true)
                    .build()
                    .and_then(|counter| counter.sampled(bytes));
                match ring {
                    Ok(ring) => rings.push(ring),
                    // It has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                        break;
                    }
                    Err(error) => {
                        refused += 1;
                        why = Some(error);
                        break;
                    }
                }
            }
        }
        if let Some(why) = why {
            tell(&format!("{what}: {refused} threads are not followed: {why}"));
        }
        Self { rings, cpus }
    }

    /// The CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = u16> {
        (0..self.cpus).filter_map(|cpu| u16::try_from(cpu).ok())
    }

    /// Gives kind, flags and bytes of all records that have come.
    pub fn read(&mut self, mut take: impl FnMut(u32, u16, &[u8])) {
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                take(record.ty(), record.misc(), &record.to_contiguous());
            }
        }
    }
}

/// What rings tell, in the order of its times.
pub(crate) struct Feed<T> {
    rings: Rings,
    /// What is younger than the moment at which the reading of all began: another ring may still tell of
    /// before.
    waiting: Vec<T>,
    at: fn(&T) -> u64,
    rate: u64,
}

impl<T> Feed<T> {
    pub fn new(rings: Rings, rate: u64, at: fn(&T) -> u64) -> Self {
        Self { rings, waiting: Vec::new(), at, rate }
    }

    /// What has come, as far as its order is certain.
    pub fn read(&mut self, parse: impl Fn(u32, u16, &[u8], &Synchronized) -> Option<T>) -> Vec<T> {
        let clock = Synchronized::now(self.rate);
        let begun = ticks::now();
        let waiting = &mut self.waiting;
        self.rings.read(|kind, flags, bytes| waiting.extend(parse(kind, flags, bytes, &clock)));
        let at = self.at;
        waiting.sort_by_key(at);
        let due = waiting.partition_point(|item| at(item) <= begun);
        waiting.drain(..due).collect()
    }

    /// All that has come and waited; nothing more is to come.
    pub fn rest(&mut self, parse: impl Fn(u32, u16, &[u8], &Synchronized) -> Option<T>) -> Vec<T> {
        let mut rest = self.read(parse);
        rest.append(&mut self.waiting);
        rest
    }
}

/// The threads to follow, with the room that each gets.
fn targets() -> Vec<(u32, usize)> {
    let [first, other] = RING_BYTES;
    let mut targets: Vec<_> = threads_of(parent()).into_iter().map(|thread| (thread, first)).collect();
    targets.extend(others().into_iter().map(|thread| (thread, other)));
    targets
}

/// The threads of the user's programs, first those of the process that records; the newest are the likeliest
/// to be meant.
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

/// The kernel's clock and ours, at one moment.
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
        // The one that was interrupted least.
        let pairs = std::iter::repeat_with(pair).take(5).min_by_key(|(span, _)| *span);
        pairs.map_or(Self { nanos: 0, ticks: 0, rate }, |(_, pair)| pair)
    }

    /// Our time of one of the kernel's.
    pub fn ticks(&self, nanos: u64) -> u64 {
        if ticks::source() == Source::Monotonic {
            return nanos;
        }
        let away = i128::from(nanos) - i128::from(self.nanos);
        let ticks = i128::from(self.ticks) + away * i128::from(self.rate) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(0)
    }
}
