//! The limits of the running manager: one that another command has started may have tighter ones than this
//! command's own manager would have.
//= docs/protocol.md#who-starts-the-manager

use crate::connection::cgroup;
use std::fs;

/// Limits of a process, by their names in `/proc/PID/limits`.
const LIMITS: [Needed; 4] = [
    Needed { name: "Max open files", what: "descriptors", enough: ENOUGH_DESCRIPTORS },
    Needed { name: "Max file size", what: "bytes of a file", enough: u64::MAX },
    Needed { name: "Max address space", what: "bytes of memory", enough: u64::MAX },
    Needed { name: "Max data size", what: "bytes of data", enough: u64::MAX },
];
/// Of more descriptors no recording is short: each of hundreds of programs has some.
const ENOUGH_DESCRIPTORS: u64 = 4096;
/// The policy of a process that runs when no other does: sched(7).
const SCHED_IDLE: &str = "5";
/// In the command line of a manager that a command has started. Others are as they were meant to be.
const ON_DEMAND: &str = "--on-demand";

/// A limit that a recording may need.
struct Needed {
    name: &'static str,
    what: &'static str,
    /// With so much it does not need more.
    enough: u64,
}

/// What a process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pid: u32,
    /// The hard limits, in the order of [`LIMITS`]; none where there is none.
    limits: [Option<u64>; LIMITS.len()],
    nice: i32,
    /// It runs when nothing else does.
    is_idle: bool,
    group: cgroup::Limits,
}

impl State {
    /// That of a process; none if it cannot be seen.
    pub fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // `42 (its name) S 1 …`, with the niceness as the 19th field and the policy as the 41st:
        // proc_pid_stat(5).
        let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(16);
        let nice = fields.next()?.parse().ok()?;
        let is_idle = fields.nth(21)? == SCHED_IDLE;
        let limits = LIMITS.map(|limit| hard_limit(&text, limit.name));
        Some(Self { pid, limits, nice, is_idle, group: cgroup::Limits::of(pid) })
    }

    /// What it has less of than another process, in a sentence.
    pub fn tighter_than(&self, other: &Self) -> Option<String> {
        let pid = self.pid;
        let limits = LIMITS.iter().zip(self.limits).zip(other.limits);
        let tighter = limits.filter_map(|((limit, own), other)| {
            let own = own.filter(|own| *own < limit.enough && other.is_none_or(|other| *own < other))?;
            Some(format!("the running trace manager (pid {pid}) may have {own} {} at most", limit.what))
        });
        let manager = || format!("the running trace manager (pid {pid})");
        let nicer = (self.nice > other.nice).then(|| format!("{} has niceness {}", manager(), self.nice));
        let idler =
            (self.is_idle && !other.is_idle).then(|| format!("{} runs when nothing else does", manager()));
        let less =
            |own: Option<u64>, other: Option<u64>| own.filter(|own| other.is_none_or(|other| *own < other));
        let memory = less(self.group.memory, other.group.memory).map(|bytes| {
            format!("the control group of {} may have {bytes} bytes of memory at most", manager())
        });
        let processors = less(self.group.processors, other.group.processors).map(|thousandths| {
            let processors = thousandths as f64 / 1000.0;
            format!("the control group of {} may have {processors} processors at most", manager())
        });
        tighter.chain(nicer).chain(idler).chain(memory).chain(processors).next()
    }

    /// In a few words.
    pub fn summary(&self) -> String {
        let descriptors = self.limits[0].map_or_else(|| "no limit of".to_owned(), |limit| limit.to_string());
        format!("pid {}, {descriptors} descriptors, niceness {}", self.pid, self.nice)
    }
}

/// `Max open files            1024                 524288               files`
fn hard_limit(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Why a recording should have a manager of its own, if the running one was started by another command.
pub fn obstacle(connection: &trace_client::Connection) -> Option<String> {
    if connection.is_new() {
        return None;
    }
    let manager = connection.manager()?;
    let line = fs::read(format!("/proc/{manager}/cmdline")).ok()?;
    let is_on_demand = line.split(|byte| *byte == 0).any(|argument| argument == ON_DEMAND.as_bytes());
    let state = State::of(manager).filter(|_| is_on_demand)?;
    state.tighter_than(&State::of(std::process::id())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_compared_with_another() {
        let own = State::of(std::process::id()).unwrap();
        assert_eq!(own.tighter_than(&own), None);
        let of =
            |limits, nice| State { pid: 7, limits, nice, is_idle: false, group: cgroup::Limits::default() };
        let free = of([None; 4], 0);
        let text = |state: &State| state.tighter_than(&free);
        assert_eq!(
            text(&of([Some(64), None, None, None], 0)).as_deref(),
            Some("the running trace manager (pid 7) may have 64 descriptors at most")
        );
        assert_eq!(
            text(&of([None, Some(4000), None, None], 5)).as_deref(),
            Some("the running trace manager (pid 7) may have 4000 bytes of a file at most")
        );
        assert_eq!(
            text(&of([None; 4], 5)).as_deref(),
            Some("the running trace manager (pid 7) has niceness 5")
        );
        let idle = State { is_idle: true, ..free.clone() };
        assert_eq!(
            text(&idle).as_deref(),
            Some("the running trace manager (pid 7) runs when nothing else does")
        );
        assert_eq!(idle.tighter_than(&idle), None);
        let group = |memory, processors| {
            text(&State { group: cgroup::Limits { memory, processors }, ..free.clone() }).unwrap_or_default()
        };
        let of_group = "the control group of the running trace manager (pid 7) may have";
        assert_eq!(group(Some(5), Some(500)), format!("{of_group} 5 bytes of memory at most"));
        assert_eq!(group(None, Some(500)), format!("{of_group} 0.5 processors at most"));
        assert_eq!(text(&of([Some(4096), None, None, None], 0)), None, "it is enough");
        assert_eq!(free.tighter_than(&of([Some(64), None, None, None], 5)), None);
        let lines = "Limit   Soft Limit   Hard Limit   Units\nMax open files   1024   524288   files\n\
                     Max file size   unlimited   unlimited   bytes\n";
        assert_eq!(
            (hard_limit(lines, "Max open files"), hard_limit(lines, "Max file size")),
            (Some(524_288), None)
        );
    }
}
