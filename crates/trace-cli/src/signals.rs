//! Which signals end a command.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Signals that end a recording: those of Ctrl-C, `kill`, a closed terminal, and Ctrl-\. If one of the last
/// two is ignored when the program starts, as under `nohup`, it stays ignored.
//= docs/recording.md#how-a-recording-ends
pub fn ending() -> Vec<i32> {
    let ignored = ignored();
    let ends = |signal: &i32| matches!(*signal, SIGINT | SIGTERM) || !is_in(ignored, *signal);
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(ends).collect()
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
