//! Counters of the processor and the kernel for each thread, by `perf_event_open`, sampled together with the
//! metrics.
//= docs/kernel.md#counters-of-threads

use crate::records::EngineRecords;
use crate::{perf, processes, report};
use perf_event::events::{Event, Hardware, Software};
use perf_event::{Builder, Counter};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::EventKind;
use trace_linux::{Kernel, Records};
use zx_sim::ticks;

/// Prefix of all of their categories.
const PREFIX: &str = "cpu:";

/// A kind of counter.
#[derive(Debug)]
pub struct Kind {
    /// Its category; its name follows the colon.
    pub category: &'static str,
    /// A description, for people.
    pub description: &'static str,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Software(Software),
    Hardware(Hardware),
}

const fn software(category: &'static str, source: Software, description: &'static str) -> Kind {
    Kind { category, description, source: Source::Software(source) }
}

const fn hardware(category: &'static str, source: Hardware, description: &'static str) -> Kind {
    Kind { category, description, source: Source::Hardware(source) }
}

/// All of them.
pub const KINDS: [Kind; 11] = [
    software("cpu:task-clock", Software::TASK_CLOCK, "Nanoseconds that each thread has run"),
    software("cpu:context-switches", Software::CONTEXT_SWITCHES, "How often each thread went off its CPU"),
    software("cpu:cpu-migrations", Software::CPU_MIGRATIONS, "How often each thread went to another CPU"),
    software("cpu:page-faults", Software::PAGE_FAULTS, "Page faults of each thread"),
    hardware("cpu:cycles", Hardware::CPU_CYCLES, "Cycles of each thread"),
    hardware("cpu:instructions", Hardware::INSTRUCTIONS, "Instructions of each thread"),
    hardware("cpu:cache-references", Hardware::CACHE_REFERENCES, "Cache accesses of each thread"),
    hardware("cpu:cache-misses", Hardware::CACHE_MISSES, "Cache misses of each thread"),
    hardware("cpu:branches", Hardware::BRANCH_INSTRUCTIONS, "Branches of each thread"),
    hardware("cpu:branch-misses", Hardware::BRANCH_MISSES, "Mispredicted branches of each thread"),
    hardware("cpu:bus-cycles", Hardware::BUS_CYCLES, "Bus cycles of each thread"),
];

/// Whether an entry of a recording's list is a counter.
#[must_use]
pub fn is_counter(entry: &str) -> bool {
    match entry.strip_suffix('*') {
        Some(prefix) => prefix.starts_with(PREFIX),
        None => KINDS.iter().any(|kind| kind.category == entry),
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        self.category.strip_prefix(PREFIX).unwrap_or(self.category)
    }

    /// Counts for a thread from now on; in the kernel only if this user may measure that.
    fn count(&self, thread: u32) -> io::Result<Counter> {
        match self.source {
            Source::Software(source) => count(source, thread),
            Source::Hardware(source) => count(source, thread),
        }
    }
}

fn count(source: impl Event + Copy, thread: u32) -> io::Result<Counter> {
    let pid = i32::try_from(thread).unwrap_or(i32::MAX);
    let build = |with_kernel: bool| {
        let mut builder = Builder::new(source);
        builder.observe_pid(pid).any_cpu().enabled(true);
        if with_kernel {
            builder.include_kernel();
        }
        builder.build()
    };
    build(true).or_else(|_| build(false))
}

#[derive(Debug, Default)]
struct Thread {
    /// Its counters, by their place in [`KINDS`], with the last reported value of each.
    counters: Vec<(usize, Counter, Option<u64>)>,
    /// Its reported name, which changes when it executes another program.
    name: Vec<u8>,
}

/// The counters of threads.
pub struct CpuCounters {
    wanted: Vec<usize>,
    threads: BTreeMap<u32, Thread>,
    kernel: Kernel<EngineRecords>,
    interval: Duration,
    next: Instant,
    /// The process is out of descriptors, which has been reported.
    is_full: bool,
}

impl CpuCounters {
    /// Starts counting; none if no counter is wanted, or none is available, which is reported.
    pub fn start(is_wanted: impl Fn(&str) -> bool, interval: Duration) -> Option<Self> {
        let mut wanted: Vec<usize> =
            (0..KINDS.len()).filter(|kind| is_wanted(KINDS[*kind].category)).collect();
        // Every process may measure itself.
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let mut missing = Vec::new();
        wanted.retain(|kind| {
            let is_counted = KINDS[*kind].count(own);
            missing.extend(is_counted.as_ref().err().map(|_| KINDS[*kind].category));
            is_counted.is_ok()
        });
        if !missing.is_empty() {
            report(&format!("this machine does not count {}", missing.join(", ")));
        }
        if wanted.is_empty() {
            return None;
        }
        // One descriptor for each counter of each thread.
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        let mut kernel = Kernel::new(EngineRecords::new());
        processes::scan(&mut kernel);
        let mut counters =
            Self { wanted, threads: BTreeMap::new(), kernel, interval, next: Instant::now(), is_full: false };
        counters.sample_if_due();
        Some(counters)
    }

    /// When the next sample is due.
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Takes a sample if one is due.
    pub fn sample_if_due(&mut self) {
        if Instant::now() >= self.next {
            self.find_threads();
            self.sample();
            while self.next <= Instant::now() {
                self.next += self.interval;
            }
        }
    }

    /// The last sample.
    pub fn finish(mut self) {
        self.sample();
    }

    /// Starts counting for new threads. Those that have ended are reported once more, and forgotten.
    fn find_threads(&mut self) {
        let found: BTreeSet<u32> = perf::threads().into_iter().collect();
        for thread in &found {
            if self.is_full || self.threads.contains_key(thread) {
                continue;
            }
            let mut counters = Vec::new();
            for kind in &self.wanted {
                match KINDS[*kind].count(*thread) {
                    Ok(counter) => counters.push((*kind, counter, None)),
                    Err(error) if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
                        self.is_full = true;
                        report("counters: out of descriptors; further threads are not counted for");
                    }
                    // It has ended, or belongs to another user.
                    Err(_) => {}
                }
            }
            let name = processes::thread_name(*thread);
            let is_named = processes::name_thread(&mut self.kernel, *thread);
            let name = if is_named { name } else { Vec::new() };
            self.threads.insert(*thread, Thread { counters, name });
        }
        let gone: Vec<u32> = self.threads.keys().filter(|thread| !found.contains(thread)).copied().collect();
        for thread in gone {
            if let Some(mut counters) = self.threads.remove(&thread) {
                counters.record(&mut self.kernel, thread);
            }
        }
    }

    fn sample(&mut self) {
        for (thread, counters) in &mut self.threads {
            // Only one that has run may have another name.
            if counters.record(&mut self.kernel, *thread) {
                let name = processes::thread_name(*thread);
                if name != counters.name && processes::name_thread(&mut self.kernel, *thread) {
                    counters.name = name;
                }
            }
        }
    }
}

impl Thread {
    /// Records the counts that have changed; false if none has.
    fn record(&mut self, kernel: &mut Kernel<EngineRecords>, thread: u32) -> bool {
        let mut has_changed = false;
        for (kind, counter, recorded) in &mut self.counters {
            let Ok(read) = counter.read_count_and_time() else {
                continue;
            };
            // The processor has few counters at a time, so that they take turns.
            let share = (read.time_enabled, read.time_running);
            let count = match share {
                (enabled, running) if running > 0 && running < enabled => {
                    (u128::from(read.count) * u128::from(enabled) / u128::from(running)) as u64
                }
                _ => read.count,
            };
            if *recorded == Some(count) {
                continue;
            }
            *recorded = Some(count);
            has_changed = true;
            let name = KINDS[*kind].name();
            let value =
                Argument { name: kernel.writer.constant(b"value"), value: ArgumentValue::Uint64(count) };
            let koids = kernel.thread(thread);
            let category = KINDS[*kind].category.as_bytes();
            let id = EventKind::Counter { id: thread.into() };
            kernel.writer.event(ticks::now(), koids, category, name.as_bytes(), id, &[value]);
        }
        has_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/kernel.md#counters-of-threads
    #[test]
    fn counters_are_asked_for_by_name_or_together() {
        for entry in ["cpu:cycles", "cpu:task-clock", "cpu:*", "cpu:cache-*"] {
            assert!(is_counter(entry), "{entry}");
        }
        for entry in ["cpu", "cpu:mine", "*", "cp*", "app"] {
            assert!(!is_counter(entry), "{entry}");
        }
        assert_eq!(KINDS[0].name(), "task-clock");
    }
}
