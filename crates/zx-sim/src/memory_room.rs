//! How much memory a process may still use: its control group has a limit, or one around it, of either
//! version (cgroups(7)). The kernel ends a process whose group has no memory left.

use std::fs::read_to_string;
use std::path::Path;

/// Where groups are mounted, the first version's first. In a container it may be the container's own group
/// that is mounted there: its parents are looked at, too.
const PLACES: [(&str, [&str; 2]); 2] = [
    ("/sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes"]),
    ("/sys/fs/cgroup", ["memory.max", "memory.current"]),
];

/// Bytes of memory that the control groups of this process have room for; none where there is no limit, or
/// none that can be seen. Reads some files.
#[must_use]
pub fn memory_room() -> Option<u64> {
    room_in(&read_to_string("/proc/self/cgroup").ok()?, &PLACES)
}

/// From lines such as `4:memory:/a/b` or `0::/a/b`.
fn room_in(groups: &str, places: &[(&str, [&str; 2])]) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        let kind = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
        for ((place, files), prefix) in places.iter().zip([":memory:/", "::/"]) {
            let Some(path) = kind.strip_prefix(prefix) else { continue };
            let mut directory = Path::new(place).join(path);
            while directory.starts_with(place) {
                let [limit, used] = files.map(|name| number(&directory, name, ""));
                if let (Some(limit), Some(used)) = (limit, used) {
                    let room = limit.saturating_sub(used.saturating_sub(of_files(&directory)));
                    least = Some(room.min(least.unwrap_or(room)));
                }
                directory.pop();
            }
        }
    }
    least
}

/// The number behind a name in a file; none for `max`.
#[inline(never)]
fn number(directory: &Path, file: &str, name: &str) -> Option<u64> {
    let text = read_to_string(directory.join(file)).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok())
}

/// Copies of files on disks, which give way. The first version has those of groups inside apart.
fn of_files(directory: &Path) -> u64 {
    let names = ["active_file ", "inactive_file ", "total_active_file ", "total_inactive_file "];
    let [active, inactive, all_active, all_inactive] =
        names.map(|name| number(directory, "memory.stat", name).unwrap_or(0));
    (active.saturating_add(inactive)).max(all_active.saturating_add(all_inactive))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_least_room_of_all_groups_counts() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        let places =
            [(first.to_str().unwrap(), ["limit", "usage"]), (second.to_str().unwrap(), ["max", "current"])];
        for place in [&first, &second] {
            std::fs::create_dir_all(place.join("a/b")).unwrap();
        }
        let room = |groups: &str| room_in(groups, &places);
        let groups = "9:name=systemd:/\n4:memory:/a/b\n0::/a\n";
        assert_eq!(room(groups), None);
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
        write(second.join("a/max"), "max\n");
        write(second.join("a/current"), "10\n");
        assert_eq!(room(groups), None);
        write(second.join("a/max"), "100\n");
        assert_eq!(room(groups), Some(90));
        write(second.join("a/memory.stat"), "anon 9\nactive_file 3\ninactive_file 4\nfile 20\n");
        assert_eq!(room(groups), Some(97));
        write(first.join("limit"), "50\n");
        write(first.join("usage"), "60\n");
        assert_eq!(room(groups), Some(0));
        write(first.join("memory.stat"), "active_file 3\ntotal_active_file 30\ntotal_inactive_file 1\n");
        assert_eq!(room(groups), Some(21));
        // A container's own group, whose path is of the machine.
        assert_eq!(room("4:memory:/machine/container\n"), Some(21));
        assert_eq!(room("4:memory:/a\n2:cpu,cpuacct:/\nodd\n"), Some(21));
    }
}
