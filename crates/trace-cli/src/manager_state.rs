//! The limits of the running manager: one that another command has started may have tighter ones than this
//! command's own manager would have.
//= docs/protocol.md#who-starts-the-manager

use std::fs;

/// Limits of a process that a recording may need: its name in `/proc/PID/limits`, and what runs out.
const LIMITS: [(&str, &str); 4] = [
    ("Max open files", "descriptors"),
    ("Max file size", "bytes of a file"),
    ("Max address space", "bytes of memory"),
    ("Max data size", "bytes of data"),
];

/// What a process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pid: u32,
    /// The hard limits, in the order of [`LIMITS`]; none where there is none.
    limits: [Option<u64>; LIMITS.len()],
    nice: i32,
}

impl State {
    /// That of a process; none if it cannot be seen.
    pub fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // `42 (its name) S 1 …`, with the niceness as the 19th field: proc_pid_stat(5).
        let nice = stat.rsplit_once(") ")?.1.split(' ').nth(16)?.parse().ok()?;
        let limits = LIMITS.map(|(name, _)| hard_limit(&text, name));
        Some(Self { pid, limits, nice })
    }

    /// What it has less of than another process, in a sentence.
    pub fn tighter_than(&self, other: &Self) -> Option<String> {
        let pid = self.pid;
        let limits = LIMITS.iter().zip(self.limits).zip(other.limits);
        let tighter = limits.filter_map(|((limit, own), other)| {
            let own = own.filter(|own| other.is_none_or(|other| *own < other))?;
            Some(format!("the running trace manager (pid {pid}) may have {own} {} at most", limit.1))
        });
        let nicer = (self.nice > other.nice)
            .then(|| format!("the running trace manager (pid {pid}) has niceness {}", self.nice));
        tighter.chain(nicer).next()
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
    State::of(connection.manager()?)?.tighter_than(&State::of(std::process::id())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_compared_with_another() {
        let own = State::of(std::process::id()).unwrap();
        assert_eq!(own.tighter_than(&own), None);
        let of = |limits, nice| State { pid: 7, limits, nice };
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
        assert_eq!(free.tighter_than(&of([Some(64), None, None, None], 5)), None);
        let lines = "Limit   Soft Limit   Hard Limit   Units\nMax open files   1024   524288   files\n\
                     Max file size   unlimited   unlimited   bytes\n";
        assert_eq!(
            (hard_limit(lines, "Max open files"), hard_limit(lines, "Max file size")),
            (Some(524_288), None)
        );
    }
}
