//! A tracefs instance of our own: its buffers, its clock and its switches are not shared.
//= docs/kernel.md#the-instance

use crate::probes::Probe;
use crate::tracefs::{self, Error, Lock, Tracefs};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The kernel's counts of a CPU's losses, since the instance was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLosses {
    /// Events that were overwritten before they were read.
    pub overrun: u64,
    /// Events that found the buffer full, if the oldest are kept.
    pub dropped: u64,
    /// Events in interrupts that came faster than earlier ones were finished.
    pub commit_overrun: u64,
}

/// An instance, until it is dropped.
#[derive(Debug)]
pub struct Instance {
    tracefs: Tracefs,
    path: PathBuf,
    /// By CPU. Closed before the instance is removed.
    pipes: Vec<(u16, File)>,
    probes: usize,
}

impl Instance {
    /// Makes this process's instance, which records nothing yet. `buffer_kilobytes` are for each CPU.
    ///
    /// # Errors
    /// The kernel refuses an operation, or has no such clock.
    pub fn create(tracefs: &Tracefs, clock: &'static str, buffer_kilobytes: u64) -> Result<Self, Error> {
        if !tracefs.clocks()?.iter().any(|known| known == clock) {
            return Err(Error::NoClock(clock));
        }
        let path = tracefs.own_instance();
        let lock = tracefs.lock();
        match fs::create_dir(&path) {
            // Left by an earlier process with the same pid.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let _ = fs::remove_dir(&path);
                fs::create_dir(&path)
            }
            made => made,
        }
        .map_err(|error| Error::File { path: path.clone(), error })?;
        let mut instance = Self { tracefs: tracefs.clone(), path, pipes: Vec::new(), probes: 0 };
        instance.set_up(clock, buffer_kilobytes, lock)?;
        Ok(instance)
    }

    fn set_up(&mut self, clock: &str, buffer_kilobytes: u64, lock: Lock) -> Result<(), Error> {
        self.set("tracing_on", "0")?;
        self.open_pipes()?;
        // From here on it is in use, and no other process removes it.
        drop(lock);
        self.set("trace_clock", clock)?;
        self.set("buffer_size_kb", &buffer_kilobytes.to_string())?;
        // The newest data is kept.
        self.set("options/overwrite", "1")
    }

    fn open_pipes(&mut self) -> Result<(), Error> {
        let directory = self.path.join("per_cpu");
        let cpus =
            fs::read_dir(&directory).map_err(|error| Error::File { path: directory.clone(), error })?;
        for entry in cpus.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            let Some(cpu) = number else {
                continue;
            };
            let path = entry.path().join("trace_pipe_raw");
            let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            let pipe = File::options().read(true).custom_flags(flags).open(&path);
            self.pipes.push((cpu, pipe.map_err(|error| Error::File { path, error })?));
        }
        self.pipes.sort_by_key(|(cpu, _)| *cpu);
        Ok(())
    }

    /// Sets one of its files.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        tracefs::write(&self.path.join(file), value)
    }

    /// Enables an event, by `system/event`.
    ///
    /// # Errors
    /// There is no such event.
    pub fn enable(&self, point: &str) -> Result<(), Error> {
        self.set(&format!("events/{point}/enable"), "1")
    }

    /// Copies what programs write into the common `trace_marker` into this instance.
    ///
    /// # Errors
    /// The kernel is too old for it.
    pub fn copy_markers(&self) -> Result<(), Error> {
        self.set("options/copy_trace_marker", "1")
    }

    /// Makes a probe; returns its event, as `system/event`.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub fn add_probe(&mut self, probe: &Probe) -> Result<String, Error> {
        let group = tracefs::own_name();
        let name = format!("p{}", self.probes);
        self.tracefs.add_probe(&probe.definition(&group, &name))?;
        self.probes += 1;
        Ok(format!("{group}/{name}"))
    }

    /// Begins or ends recording.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_tracing(&self, is_on: bool) -> Result<(), Error> {
        self.set("tracing_on", if is_on { "1" } else { "0" })
    }

    /// Its CPUs, in order.
    pub fn cpus(&self) -> impl Iterator<Item = u16> {
        self.pipes.iter().map(|(cpu, _)| *cpu)
    }

    /// Reads a CPU's next page; false if there is none now.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read_page(&mut self, index: usize, page: &mut [u8]) -> Result<bool, Error> {
        let Some((cpu, pipe)) = self.pipes.get_mut(index) else {
            return Ok(false);
        };
        loop {
            match pipe.read(page) {
                Ok(length) => {
                    if let Some(rest) = page.get_mut(length..) {
                        rest.fill(0);
                    }
                    return Ok(length > 0);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let path = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
                    return Err(Error::File { path, error });
                }
            }
        }
    }

    /// The losses of a CPU so far.
    ///
    /// # Errors
    /// The kernel does not report them.
    pub fn losses(&self, cpu: u16) -> Result<CpuLosses, Error> {
        let text = tracefs::read(&self.path.join(format!("per_cpu/cpu{cpu}/stats")))?;
        Ok(CpuLosses::parse(&text))
    }
}

impl CpuLosses {
    fn parse(text: &str) -> Self {
        let value = |name: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(':'));
            let mut found = lines.filter(|(key, _)| *key == name);
            found.next().and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
        };
        Self {
            overrun: value("overrun"),
            dropped: value("dropped events"),
            commit_overrun: value("commit overrun"),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.set_tracing(false);
        self.pipes.clear();
        let _ = fs::remove_dir(&self.path);
        if self.probes > 0 {
            self.tracefs.remove_probes(&tracefs::own_name());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/kernel.md#losses
    #[test]
    fn what_a_cpu_lost_is_three_lines_of_its_stats() {
        let text = "entries: 12\noverrun: 1582\ncommit overrun: 3\nbytes: 600\noldest event ts:  1\n\
                    now ts: 2\ndropped events: 7\nread events: 4\n";
        let losses = CpuLosses { overrun: 1582, dropped: 7, commit_overrun: 3 };
        assert_eq!(CpuLosses::parse(text), losses);
        assert_eq!(CpuLosses::parse(""), CpuLosses::default());
    }
}
