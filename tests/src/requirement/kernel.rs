//! The kernel's own events.

use super::Requirement;
use super::trial::{Scratch, run};
use crate::kernel::{ROOT, alone};
use crate::sandbox::in_time;
use perf_event::Builder;
use perf_event::events::Software;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An instance of a trial, which is removed when this is dropped.
struct Instance(PathBuf);

impl Instance {
    fn new(name: &str) -> Result<Self, String> {
        let path = Path::new(ROOT).join(format!("instances/trace_tests_{name}_{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    fn set(&self, name: &str, value: &str) -> Result<(), String> {
        let path = self.0.join(name);
        fs::write(&path, value).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Waits for a word in what is recorded.
    fn wait_for(&self, word: &str) -> Result<(), String> {
        let path = self.0.join("trace");
        let has_word = || fs::read_to_string(&path).is_ok_and(|text| text.contains(word)).then_some(());
        in_time(has_word).ok_or_else(|| format!("{}: no {word}", path.display()))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

pub fn tracefs() -> Result<(), String> {
    Requirement::Root.tried()?;
    // Not by two processes at once, which would mount it twice.
    let only_one = alone();
    if !Path::new(ROOT).join("instances").exists() {
        run(Command::new("mount").args(["-t", "tracefs", "nodev", ROOT]))?;
    }
    drop(only_one);
    let instance = Instance::new("events")?;
    instance.set("events/sched/sched_switch/enable", "1")?;
    let read = instance.wait_for(": sched_switch: ");
    instance.set("events/sched/sched_switch/enable", "0")?;
    read
}

pub fn markers() -> Result<(), String> {
    Requirement::Tracefs.tried()?;
    let instance = Instance::new("markers")?;
    // Others that record markers would have this one, too.
    let _alone = alone();
    instance.set("options/copy_trace_marker", "1")?;
    let marker = Path::new(ROOT).join("trace_marker");
    fs::write(&marker, "tried").map_err(|error| format!("{}: {error}", marker.display()))?;
    let read = instance.wait_for("tried");
    instance.set("options/copy_trace_marker", "0")?;
    read
}

/// From Linux 6.11 on.
pub fn thread_numbers() -> Result<(), String> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit()).map_while(|part| part.parse().ok());
    let number = (numbers.next().unwrap_or(0_u32), numbers.next().unwrap_or(0_u32));
    let reason = || format!("Linux {release} does not report the numbers of threads in pid namespaces");
    (number >= (6, 11)).then_some(()).ok_or_else(reason)
}

pub fn perf() -> Result<(), String> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    let opened = builder.exclude_kernel(true).observe_self().any_cpu().build();
    opened.map(drop).map_err(|error| format!("perf_event_open: {error}"))
}

pub fn perf_tool() -> Result<(), String> {
    let scratch = Scratch::new();
    let data = scratch.write("perf.data", "");
    let record = ["record", "--quiet", "--event", "cpu-clock", "--output"];
    run(Command::new("perf").args(record).arg(data).arg("true")).map(drop)
}

pub fn kernel_perf() -> Result<(), String> {
    Requirement::Root.tried()?;
    let mut builder = Builder::new(Software::CPU_CLOCK);
    let opened = builder.include_kernel().observe_self().any_cpu().build();
    opened.map_err(|error| format!("perf_event_open with the kernel: {error}"))?;
    let symbols = fs::read_to_string("/proc/kallsyms").map_err(|error| format!("/proc/kallsyms: {error}"))?;
    let is_known = |line: &str| line.ends_with(" vfs_read") && !line.starts_with("0000000000000000");
    let reason = || "/proc/kallsyms has no addresses".to_owned();
    symbols.lines().any(is_known).then_some(()).ok_or_else(reason)
}
