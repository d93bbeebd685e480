//! tracefs, as far as scenarios need it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Where it is mounted.
pub const ROOT: &str = "/sys/kernel/tracing";

/// The instances of providers.
#[must_use]
pub fn instances() -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(ROOT).join("instances")).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ktrace_provider_"))
    };
    entries.map(|entry| entry.path()).filter(is_ours).collect()
}

/// The instance of a provider's process.
#[must_use]
pub fn instance_of(pid: u32) -> PathBuf {
    Path::new(ROOT).join(format!("instances/ktrace_provider_{pid}"))
}

/// A statistic of an instance, summed over all CPUs, such as `overrun`.
///
/// # Panics
/// If the kernel does not report it.
#[must_use]
pub fn sum(instance: &Path, name: &str) -> u64 {
    let cpus = fs::read_dir(instance.join("per_cpu")).expect("CPUs").flatten();
    cpus.map(|cpu| {
        let stats = fs::read_to_string(cpu.path().join("stats")).expect("stats");
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.expect("a line of that name").trim().parse::<u64>().expect("a number")
    })
    .sum()
}

/// A lock that only one scenario has at a time, also of other processes: for those that look at what is
/// common to all.
///
/// # Panics
/// If there can be no lock.
#[must_use]
pub fn alone() -> File {
    let file = File::create(crate::build::target_dir().join("kernel.lock")).expect("a file");
    file.lock().expect("a lock");
    file
}

/// What others could notice: the settings outside of instances.
#[must_use]
pub fn settings() -> Vec<(String, String)> {
    let names = [
        "trace_clock",
        "tracing_on",
        "buffer_size_kb",
        "set_event",
        "trace_options",
        "current_tracer",
        "dynamic_events",
        "uprobe_events",
    ];
    names
        .iter()
        .map(|name| (name.to_string(), fs::read_to_string(Path::new(ROOT).join(name)).unwrap_or_default()))
        .collect()
}
