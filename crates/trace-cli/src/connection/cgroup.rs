//! Limits of control groups, of both versions: cgroups(7).

use std::fs;
use std::path::{Path, PathBuf};

/// What the group of a process may use; none where that has no limit, or cannot be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processors, in thousandths.
    pub processors: Option<u64>,
}

/// The directories of a process's group and of those around it, for one kind of limit.
struct Group {
    directories: Vec<PathBuf>,
    is_first_version: bool,
}

impl Limits {
    /// Those of a process.
    pub fn of(pid: u32) -> Self {
        let least = |controller: &str, limit: fn(&Path, bool) -> Option<u64>| {
            let group = Group::of(pid, controller)?;
            group.directories.iter().filter_map(|directory| limit(directory, group.is_first_version)).min()
        };
        Self { memory: least("memory", memory), processors: least("cpu", processors) }
    }
}

fn memory(directory: &Path, is_first_version: bool) -> Option<u64> {
    /// What the first version has for none.
    const NO_LIMIT: u64 = 1 << 62;
    let name = if is_first_version { "memory.limit_in_bytes" } else { "memory.max" };
    number(directory, name).filter(|limit| *limit < NO_LIMIT)
}

fn processors(directory: &Path, is_first_version: bool) -> Option<u64> {
    let (quota, period) = if is_first_version {
        (number(directory, "cpu.cfs_quota_us")?, number(directory, "cpu.cfs_period_us")?)
    } else {
        let text = fs::read_to_string(directory.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        (quota.parse().ok()?, period.parse().ok()?)
    };
    quota.checked_mul(1000)?.checked_div(period)
}

/// None for `max` and `-1`.
fn number(directory: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(directory.join(name)).ok()?.trim().parse().ok()
}

impl Group {
    fn of(pid: u32, controller: &str) -> Option<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::find(&groups, &mounts, controller)
    }

    /// From lines such as `4:memory:/a/b` or `0::/a/b`, and from lines about mounts such as
    /// `35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory`: proc_pid_mountinfo(5).
    fn find(groups: &str, mounts: &str, controller: &str) -> Option<Self> {
        let has = |list: &str| list.split(',').any(|name| name == controller);
        let lines = || groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let first = lines().find(|(controllers, _)| has(controllers));
        let (controllers, path) =
            first.or_else(|| lines().find(|(controllers, _)| controllers.is_empty()))?;
        let is_first_version = !controllers.is_empty();
        let (root, place) = mounts.lines().find_map(|line| {
            let (mount, system) = line.split_once(" - ")?;
            let mut system = system.split(' ');
            let (kind, options) = (system.next()?, system.nth(1)?);
            let is_it = if is_first_version { kind == "cgroup" && has(options) } else { kind == "cgroup2" };
            let mut mount = mount.split(' ').skip(3);
            is_it.then_some((mount.next()?, mount.next()?))
        })?;
        let below = Path::new(path).strip_prefix(root).ok()?;
        let group = Path::new(place).join(below);
        let directories = group.ancestors().take_while(|directory| directory.starts_with(place));
        Some(Self { directories: directories.map(Path::to_owned).collect(), is_first_version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 /box /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn groups_are_found_in_both_versions() {
        let find = |groups, controller| {
            let group = Group::find(groups, MOUNTS, controller)?;
            let names = group.directories.iter().map(|directory| directory.to_str().unwrap().to_owned());
            Some((names.collect::<Vec<_>>().join(" "), group.is_first_version))
        };
        let groups = "4:memory:/box/a\n2:cpu,cpuacct:/\n0::/x/y\n";
        let memory = "/sys/fs/cgroup/memory/a /sys/fs/cgroup/memory";
        assert_eq!(find(groups, "memory"), Some((memory.to_owned(), true)));
        assert_eq!(find(groups, "cpu"), Some(("/sys/fs/cgroup/cpu/".to_owned(), true)));
        let unified = "/sys/fs/cgroup/unified/x/y /sys/fs/cgroup/unified/x /sys/fs/cgroup/unified";
        assert_eq!(find(groups, "pids"), Some((unified.to_owned(), false)));
        // Outside of what is mounted here, or not mounted.
        assert_eq!(find("4:memory:/other\n", "memory"), None);
        assert_eq!(find("", "memory"), None);
    }

    #[test]
    fn limits_are_read_in_both_versions() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let write = |name: &str, text: &str| fs::write(place.join(name), text).unwrap();
        assert_eq!((memory(place, true), processors(place, false)), (None, None));
        for (text, limit) in [("9223372036854771712\n", None), ("1048576\n", Some(1 << 20))] {
            write("memory.limit_in_bytes", text);
            assert_eq!(memory(place, true), limit);
        }
        for (text, limit) in [("max\n", None), ("1048576\n", Some(1 << 20))] {
            write("memory.max", text);
            assert_eq!(memory(place, false), limit);
        }
        for (text, limit) in [("max 100000\n", None), ("150000 100000\n", Some(1500)), ("1 0\n", None)] {
            write("cpu.max", text);
            assert_eq!(processors(place, false), limit);
        }
        write("cpu.cfs_period_us", "100000\n");
        for (text, limit) in [("-1\n", None), ("50000\n", Some(500))] {
            write("cpu.cfs_quota_us", text);
            assert_eq!(processors(place, true), limit);
        }
    }
}
