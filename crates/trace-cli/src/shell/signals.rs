//! Which signals end a command.

use crate::shell::exit::Failure;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Signals that end a recording: those of Ctrl-C, `kill`, a closed terminal, and Ctrl-\. If one of the last
/// two is ignored when the program starts, as under `nohup`, it stays ignored.
//= docs/recording.md#how-a-recording-ends
pub fn ending() -> Vec<i32> {
    let ignored = ignored();
    let ends = |signal: &i32| matches!(*signal, SIGINT | SIGTERM) || !is_in(ignored, *signal);
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(ends).collect()
}

/// Becomes true when a signal comes that ends a recording, whatever else handles it.
pub fn note_signals() -> Result<Arc<AtomicBool>, Failure> {
    let has_come = Arc::new(AtomicBool::new(false));
    for signal in ending() {
        signal_hook::flag::register(signal, has_come.clone())
            .map_err(|error| Failure::new(format!("cannot handle signals: {error}")))?;
    }
    Ok(has_come)
}

/// Has this program get SIGTERM when its parent ends, however that ends.
///
/// # Errors
/// Its parent is not this process any more.
pub fn end_with(parent: i32) -> Result<(), Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::new(format!("cannot watch process {parent}: {why}"));
    let watched = set_parent_process_death_signal(Some(Signal::TERM));
    watched.map_err(|error| failed(&io::Error::from(error)))?;
    // It may have ended just before.
    match getppid().map(Pid::as_raw_pid) {
        Some(found) if found == parent => Ok(()),
        _ => Err(failed(&"it is not the parent of this one, or has ended")),
    }
}

/// The set of ignored signals, as the kernel reports it; none if it does not.
fn ignored() -> u64 {
    parse(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn parse(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn is_in(mask: u64, signal: i32) -> bool {
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_found() {
        let mask = parse("Name:\ttrace\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001005\nSigCgt:\t0\n");
        let signals = [SIGHUP, SIGINT, SIGQUIT, 13];
        assert_eq!(signals.map(|signal| is_in(mask, signal)), [true, false, true, true]);
        assert_eq!(parse(""), 0);
    }
}
