//! The processes and threads that exist when recording begins, from `/proc`.

use std::fs;
use trace_linux::{Kernel, Records};

/// Reports all processes and threads.
pub fn scan<R: Records>(kernel: &mut Kernel<R>) {
    for process in numbers("/proc") {
        for thread in numbers(&format!("/proc/{process}/task")) {
            kernel.belongs(thread, process);
            if let Ok(name) = fs::read(format!("/proc/{process}/task/{thread}/comm")) {
                kernel.rename(thread, name.trim_ascii_end());
            }
        }
        name(kernel, process);
    }
}

/// Reports a thread's name and its process; false if its process is about to execute another program.
pub fn name_thread<R: Records>(kernel: &mut Kernel<R>, thread: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    let comm = status.lines().find_map(|line| line.strip_prefix("Name:"));
    if let (Some(process), Some(comm)) = (process, comm) {
        kernel.belongs(thread, process);
        kernel.rename(thread, comm.trim().as_bytes());
        if process == thread {
            // The kernel's own threads have no memory, and no program.
            let is_program = status.lines().any(|line| line.starts_with("RssAnon:"));
            return name(kernel, process) || !is_program;
        }
    }
    true
}

/// A thread's name; empty if it has ended.
pub fn thread_name(thread: u32) -> Vec<u8> {
    fs::read(format!("/proc/{thread}/comm")).unwrap_or_default()
}

/// The number that a process has in its own pid namespace.
pub fn own_number(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// Names a process after its program; false if it has no arguments, as one that is about to execute another.
pub fn name<R: Records>(kernel: &mut Kernel<R>, process: u32) -> bool {
    // The kernel's own threads have none.
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let program = crate::format::cut(&line);
    let name = program.rsplit(|byte| *byte == b'/').next().unwrap_or(program);
    if !name.is_empty() {
        kernel.name_process(process, name);
    }
    !name.is_empty()
}

/// The entries of a directory that are numbers, in order.
pub(crate) fn numbers(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}
