//! Metrics of the system and of its processes, from `/proc`, sampled at a chosen rate.
//= docs/kernel.md#metrics

mod parse;
mod processes;

use crate::records::EngineRecords;
use parse::{CpuTimes, Disk, Interface};
use processes::Processes;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::EventKind;
use trace_format::units::{Koid, Thread};
use trace_linux::{Kernel, Records};
use zx_sim::ticks;

/// Stands for all of them but [`PSS`].
pub const ALL: &str = "system_metrics";
/// The older name of [`MEMORY`].
pub const MEMORY_ALIAS: &str = "memory:kernel";
const CPU: &str = "system_metrics:cpu";
const MEMORY: &str = "system_metrics:memory";
const PROCESSES: &str = "system_metrics:processes";
/// Costs more than the others: the kernel walks through the pages of each process.
const PSS: &str = "system_metrics:pss";
const DISK: &str = "system_metrics:disk";
const NET: &str = "system_metrics:net";

/// The categories and their descriptions.
pub const CATEGORIES: [(&str, &str); 8] = [
    (ALL, "All metrics of the system but pss"),
    (CPU, "How busy each CPU is, load, and pressure"),
    (MEMORY, "Free and cached memory, page faults"),
    (MEMORY_ALIAS, "The same as system_metrics:memory"),
    (PROCESSES, "Resident memory and page faults of each process"),
    (PSS, "Each process's share of memory, which is costly"),
    (DISK, "What disks read and write"),
    (NET, "What network interfaces receive and send"),
];

/// The wanted metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each category")]
pub struct MetricSet {
    /// Use of CPUs.
    pub cpu: bool,
    /// Memory of the system.
    pub memory: bool,
    /// Memory of processes.
    pub processes: bool,
    /// Shares of memory.
    pub pss: bool,
    /// Disks.
    pub disk: bool,
    /// Network interfaces.
    pub net: bool,
}

impl MetricSet {
    /// The metrics of categories.
    pub fn new(is_wanted: impl Fn(&str) -> bool) -> Self {
        let all = is_wanted(ALL);
        let has = |name| all || is_wanted(name);
        Self {
            cpu: has(CPU),
            memory: has(MEMORY) || is_wanted(MEMORY_ALIAS),
            processes: has(PROCESSES),
            pss: is_wanted(PSS),
            disk: has(DISK),
            net: has(NET),
        }
    }

    /// Whether nothing is selected.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether an entry of a recording's list is for metrics.
#[must_use]
pub fn is_metric(entry: &str) -> bool {
    entry == ALL || entry == MEMORY_ALIAS || entry.starts_with("system_metrics:")
}

/// Samples metrics.
pub struct MetricsSampler {
    wanted: MetricSet,
    interval: Duration,
    next: Instant,
    kernel: Kernel<EngineRecords>,
    /// The thread that metrics of the whole system are recorded with.
    own: Thread,
    cpus: BTreeMap<Option<u16>, CpuTimes>,
    pressure: BTreeMap<&'static str, (u64, u64)>,
    faults: Option<(u64, u64)>,
    disks: BTreeMap<String, Disk>,
    interfaces: BTreeMap<String, Interface>,
    processes: Processes,
    /// The time of the last sample.
    last: Option<Instant>,
    /// The same, in ticks: all metrics of a sample have one time, and rates cover the time up to it.
    at: u64,
}

impl MetricsSampler {
    /// Begins with a sample.
    #[must_use]
    pub fn start(wanted: MetricSet, interval: Duration) -> Self {
        let koid = |number| Koid(u64::from(number));
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let own = Thread { process: koid(std::process::id()), thread: koid(thread) };
        let mut metrics = Self {
            wanted,
            interval,
            next: Instant::now(),
            kernel: Kernel::new(EngineRecords::new()),
            own,
            cpus: BTreeMap::new(),
            pressure: BTreeMap::new(),
            faults: None,
            disks: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            processes: Processes::default(),
            last: None,
            at: 0,
        };
        if wanted.processes || wanted.pss {
            crate::processes::scan(&mut metrics.kernel);
        }
        metrics.sample_if_due();
        metrics
    }

    /// When the next sample is due.
    #[must_use]
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Takes a sample if one is due; on a fixed grid, however long it takes.
    pub fn sample_if_due(&mut self) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.sample();
        while self.next <= Instant::now() {
            self.next += self.interval;
        }
    }

    /// The last sample, so that the last moments are covered, too.
    pub fn finish(mut self) {
        self.sample();
    }

    fn sample(&mut self) {
        let now = Instant::now();
        self.at = ticks::now();
        let since = self.last.replace(now).map(|last| (now - last).as_secs_f64());
        if self.wanted.cpu {
            self.sample_cpus();
            self.sample_load(since);
        }
        if self.wanted.memory {
            self.sample_memory(since);
        }
        if self.wanted.processes || self.wanted.pss {
            let Self { processes, kernel, wanted, at, .. } = self;
            processes.sample(*at, kernel, wanted.processes, wanted.pss);
        }
        if self.wanted.disk {
            self.sample_disks(since);
        }
        if self.wanted.net {
            self.sample_interfaces(since);
        }
    }

    fn sample_cpus(&mut self) {
        for (cpu, times) in parse::cpu_times(&read("/proc/stat")) {
            let Some(before) = self.cpus.insert(cpu, times) else {
                continue;
            };
            let Some([busy, user, system, waiting]) = times.shares_since(&before) else {
                continue;
            };
            let thread = cpu.map_or(self.own, |cpu| self.kernel.cpu(cpu));
            let name = if cpu.is_some() { "cpu" } else { "cpus" };
            let values = [("busy", busy), ("user", user), ("system", system), ("iowait", waiting)];
            counter(self.at, &mut self.kernel, thread, CPU, name, cpu.map_or(0, u64::from), &doubles(values));
        }
    }

    fn sample_load(&mut self, since: Option<f64>) {
        if let Some((load, runnable)) = parse::load(&read("/proc/loadavg")) {
            let values =
                [("load", ArgumentValue::Double(load)), ("runnable", ArgumentValue::Uint64(runnable))];
            counter(self.at, &mut self.kernel, self.own, CPU, "load", 0, &values);
        }
        for what in ["cpu", "memory", "io"] {
            let Some(total) = parse::pressure(&read(&format!("/proc/pressure/{what}"))) else {
                continue;
            };
            if let (Some(before), Some(since)) = (self.pressure.insert(what, total), since) {
                // Microseconds in which some, or all, waited.
                let share = |now: u64, before: u64| now.saturating_sub(before) as f64 / since / 1e4;
                let values = [("some", share(total.0, before.0)), ("full", share(total.1, before.1))];
                let name = format!("pressure {what}");
                counter(self.at, &mut self.kernel, self.own, CPU, &name, 0, &doubles(values));
            }
        }
    }

    fn sample_memory(&mut self, since: Option<f64>) {
        let text = read("/proc/meminfo");
        let values = [
            ("free", "MemFree"),
            ("available", "MemAvailable"),
            ("cached", "Cached"),
            ("buffers", "Buffers"),
            ("shmem", "Shmem"),
            ("swap free", "SwapFree"),
        ];
        let values: Vec<_> = values
            .into_iter()
            .filter_map(|(name, key)| Some((name, ArgumentValue::Uint64(parse::kilobytes(&text, key)?))))
            .collect();
        counter(self.at, &mut self.kernel, self.own, MEMORY, "memory", 0, &values);
        let text = read("/proc/vmstat");
        if let (Some(all), Some(major)) = (parse::value(&text, "pgfault"), parse::value(&text, "pgmajfault"))
            && let (Some(before), Some(since)) = (self.faults.replace((all, major)), since)
        {
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / since;
            let values = [("faults/s", rate(all, before.0)), ("major faults/s", rate(major, before.1))];
            counter(self.at, &mut self.kernel, self.own, MEMORY, "page faults", 0, &doubles(values));
        }
    }

    fn sample_disks(&mut self, since: Option<f64>) {
        for (name, disk) in parse::disks(&read("/proc/diskstats")) {
            let before = self.disks.insert(name.clone(), disk);
            if let (Some(before), Some(since)) = (before, since) {
                let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / since;
                let values = [
                    ("read B/s", rate(disk.read_bytes, before.read_bytes)),
                    ("written B/s", rate(disk.written_bytes, before.written_bytes)),
                    ("busy", rate(disk.busy_milliseconds, before.busy_milliseconds) / 10.0),
                ];
                let name = format!("disk {name}");
                counter(self.at, &mut self.kernel, self.own, DISK, &name, 0, &doubles(values));
            }
        }
    }

    fn sample_interfaces(&mut self, since: Option<f64>) {
        for (name, interface) in parse::interfaces(&read("/proc/net/dev")) {
            let before = self.interfaces.insert(name.clone(), interface);
            if let (Some(before), Some(since)) = (before, since) {
                let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / since;
                let values = [
                    ("received B/s", rate(interface.received_bytes, before.received_bytes)),
                    ("sent B/s", rate(interface.sent_bytes, before.sent_bytes)),
                    ("dropped/s", rate(interface.dropped, before.dropped)),
                ];
                let name = format!("net {name}");
                counter(self.at, &mut self.kernel, self.own, NET, &name, 0, &doubles(values));
            }
        }
    }
}

fn doubles<const N: usize>(values: [(&'static str, f64); N]) -> [(&'static str, ArgumentValue<'static>); N] {
    values.map(|(name, value)| (name, ArgumentValue::Double(value)))
}

/// Empty if there is no such file.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// A counter with these values now. The id distinguishes counters with the same name and process.
fn counter(
    at: u64,
    kernel: &mut Kernel<impl Records>,
    thread: Thread,
    category: &str,
    name: &str,
    id: u64,
    values: &[(&'static str, ArgumentValue<'_>)],
) {
    if values.is_empty() {
        return;
    }
    let arguments: Vec<_> = values
        .iter()
        .map(|(name, value)| Argument { name: kernel.writer.constant(name.as_bytes()), value: *value })
        .collect();
    let kind = EventKind::Counter { id };
    kernel.writer.event(at, thread, category.as_bytes(), name.as_bytes(), kind, &arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/kernel.md#metrics
    #[test]
    fn all_is_all_but_what_is_costly() {
        let wanted = |list: &[&str]| MetricSet::new(|name| list.contains(&name));
        let all = MetricSet { cpu: true, memory: true, processes: true, pss: false, disk: true, net: true };
        assert_eq!(wanted(&[ALL]), all);
        assert_eq!(wanted(&[ALL, PSS]), MetricSet { pss: true, ..all });
        assert_eq!(wanted(&[MEMORY_ALIAS]), MetricSet { memory: true, ..MetricSet::default() });
        assert!(wanted(&["kernel"]).is_nothing());
        for (name, _) in CATEGORIES {
            assert!(is_metric(name) && !wanted(&[name]).is_nothing(), "{name}");
        }
    }
}
