//! Parsers of files in `/proc`.

/// Time of a CPU, in the kernel's units, of which only the ratio matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    user: u64,
    system: u64,
    idle: u64,
    waiting: u64,
}

impl CpuTimes {
    /// The shares since then: not idle, in programs, in the kernel, waiting for disks; in percent. None if no
    /// time has passed.
    pub fn shares_since(&self, before: &Self) -> Option<[f64; 4]> {
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let (user, system) = (since(self.user, before.user), since(self.system, before.system));
        let (idle, waiting) = (since(self.idle, before.idle), since(self.waiting, before.waiting));
        let all = user + system + idle + waiting;
        (all > 0.0).then(|| [user + system, user, system, waiting].map(|part| 100.0 * part / all))
    }
}

/// The times of each CPU, and of all together.
pub fn cpu_times(text: &str) -> Vec<(Option<u16>, CpuTimes)> {
    let of_line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?;
        let cpu = if cpu.is_empty() { None } else { Some(cpu.parse().ok()?) };
        let times: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let at = |index: usize| times.get(index).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; guests are part of the first two.
        let times = CpuTimes {
            user: at(0) + at(1),
            system: at(2) + at(5) + at(6) + at(7),
            idle: at(3),
            waiting: at(4),
        };
        Some((cpu, times))
    };
    text.lines().filter_map(of_line).collect()
}

/// The load of the last minute, and how many threads could run now.
pub fn load(text: &str) -> Option<(f64, u64)> {
    let mut words = text.split_ascii_whitespace();
    let load = words.next()?.parse().ok()?;
    let runnable = words.nth(2)?.split('/').next()?.parse().ok()?;
    Some((load, runnable))
}

/// Microseconds in which some, and in which all, waited.
pub fn pressure(text: &str) -> Option<(u64, u64)> {
    let total = |head: &str| {
        let line = text.lines().find(|line| line.starts_with(head))?;
        line.split_once("total=")?.1.trim().parse().ok()
    };
    // For CPUs, older kernels do not report the second.
    Some((total("some ")?, total("full ").unwrap_or(0)))
}

/// `Name:   123 kB`, in bytes.
pub fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let number: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}

/// `name 123`
pub fn value(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    rest.trim().parse().ok()
}

/// The activity of a disk since the system started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub busy_milliseconds: u64,
}

/// Disks that have ever been used; partitions are not reported.
pub fn disks(text: &str) -> Vec<(String, Disk)> {
    const SECTOR_BYTES: u64 = 512;
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |index: usize| words.get(index)?.parse::<u64>().ok();
        let disk = Disk {
            read_bytes: number(5)? * SECTOR_BYTES,
            written_bytes: number(9)? * SECTOR_BYTES,
            busy_milliseconds: number(12)?,
        };
        (disk != Disk::default()).then(|| (words[2].to_owned(), disk))
    };
    let mut disks: Vec<(String, Disk)> = text.lines().filter_map(of_line).collect();
    // A partition has the name of its disk, followed by a number.
    let names: Vec<String> = disks.iter().map(|(name, _)| name.clone()).collect();
    let is_part = |name: &str| {
        names.iter().any(|disk| {
            let rest = name.strip_prefix(disk.as_str()).map(|rest| rest.strip_prefix('p').unwrap_or(rest));
            rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    disks.retain(|(name, _)| !is_part(name));
    disks
}

/// The traffic of a network interface since the system started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub dropped: u64,
}

/// Interfaces that have ever carried anything.
pub fn interfaces(text: &str) -> Vec<(String, Interface)> {
    let of_line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let numbers: Vec<u64> = rest.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let interface = Interface {
            received_bytes: *numbers.first()?,
            sent_bytes: *numbers.get(8)?,
            dropped: numbers.get(3)? + numbers.get(11)?,
        };
        (interface != Interface::default()).then(|| (name.trim().to_owned(), interface))
    };
    text.lines().filter_map(of_line).collect()
}

/// The memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    pub anon: u64,
    pub file: u64,
    pub shmem: u64,
    pub swap: u64,
}

/// From `status`; none for the kernel's own threads, which have no memory.
pub fn resident(text: &str) -> Option<Resident> {
    Some(Resident {
        anon: kilobytes(text, "RssAnon")?,
        file: kilobytes(text, "RssFile")?,
        shmem: kilobytes(text, "RssShmem")?,
        swap: kilobytes(text, "VmSwap").unwrap_or(0),
    })
}

/// The name of a process's first thread. From `status`.
pub fn thread_name(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("Name:")).unwrap_or_default().trim()
}

/// Page faults of a process so far: all that needed no disk, and those that did. From `stat`.
pub fn faults(text: &str) -> Option<(u64, u64)> {
    // The name may contain anything; after it come state, parent, group, session, terminal, its group, flags.
    let mut words = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(7);
    let minor = words.next()?.parse().ok()?;
    let major = words.nth(1)?.parse().ok()?;
    Some((minor, major))
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/kernel.md#metrics
    #[test]
    fn cpus_are_busy_with_what_is_not_idle() {
        let times = |text: &str| cpu_times(text);
        let before = times("cpu  100 0 100 800 0 0 0 0 0 0\ncpu1 50 0 50 400 0 0 0 0\nintr 5\n");
        let now = times("cpu  150 10 120 900 20 0 0 0 0 0\ncpu1 70 0 60 410 10 0 0 0\nintr 9\n");
        assert_eq!(before.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [None, Some(1)]);
        assert_eq!(now[0].1.shares_since(&before[0].1), Some([40.0, 30.0, 10.0, 10.0]));
        assert_eq!(now[1].1.shares_since(&before[1].1), Some([60.0, 40.0, 20.0, 20.0]));
        assert_eq!(now[1].1.shares_since(&now[1].1), None);
    }

    //= docs/kernel.md#metrics
    #[test]
    fn load_pressure_and_memory_are_read() {
        assert_eq!(load("0.32 1.91 2.89 3/81 13850\n"), Some((0.32, 3)));
        let text = "some avg10=0.07 avg60=3.81 avg300=7.51 total=15004999107\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        assert_eq!(pressure(text), Some((15_004_999_107, 12)));
        assert_eq!(pressure("some avg10=0.07 avg60=3.81 avg300=7.51 total=5\n"), Some((5, 0)));
        assert_eq!(pressure(""), None);
        let text = "MemFree:        18636360 kB\nCached:          4963592 kB\nSwapCached:            0 kB\n";
        assert_eq!(kilobytes(text, "MemFree"), Some(18_636_360 * 1024));
        assert_eq!(kilobytes(text, "Cached"), Some(4_963_592 * 1024));
        assert_eq!(kilobytes(text, "Mem"), None);
        assert_eq!(value("pgfault 77\npgmajfault 5\n", "pgmajfault"), Some(5));
    }

    //= docs/kernel.md#metrics
    #[test]
    fn disks_and_interfaces_that_do_something_are_read() {
        let text = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
                     254       0 vda 100 0 8 5 20 0 16 7 0 33 44 0 0 0 0 0 0\n\
                     254       1 vda1 100 0 8 5 20 0 16 7 0 33 44 0 0 0 0 0 0\n\
                     259       0 nvme0n1 1 0 2 5 20 0 4 7 0 3 44\n\
                     259       1 nvme0n1p1 1 0 2 5 20 0 4 7 0 3 44\n";
        let disk = |read: u64, written: u64, busy_milliseconds| Disk {
            read_bytes: read * 512,
            written_bytes: written * 512,
            busy_milliseconds,
        };
        assert_eq!(disks(text), [("vda".to_owned(), disk(8, 16, 33)), ("nvme0n1".to_owned(), disk(2, 4, 3))]);
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes\n\
                    lo: 139 7 0 1 0 0 0 0 150 7 0 2 0 0 0 0\n  ifb0:  0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let lo = Interface { received_bytes: 139, sent_bytes: 150, dropped: 3 };
        assert_eq!(interfaces(text), [("lo".to_owned(), lo)]);
    }

    //= docs/kernel.md#metrics
    #[test]
    fn processes_have_memory_and_faults() {
        let text = "Name:\tapp\nVmSwap:\t 4 kB\nRssAnon:\t     156 kB\nRssFile:\t    2020 kB\nRssShmem:\t       8 kB\n";
        let expected = Resident { anon: 156 << 10, file: 2020 << 10, shmem: 8 << 10, swap: 4 << 10 };
        assert_eq!(resident(text), Some(expected));
        assert_eq!(resident("Name:\tkthreadd\n"), None);
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 1234 55 6 7 0 0 0 0 20 0 1 0";
        assert_eq!(faults(stat), Some((1234, 6)));
        assert_eq!(faults("7 (app"), None);
    }
}
