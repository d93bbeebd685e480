//! Probes: locations in the kernel or in programs that become tracepoints.
//= docs/kernel.md#probes

/// A probe, as described by a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// `p` at the beginning, `r` at the end of a function.
    letter: char,
    /// The location: a symbol, perhaps with an offset, or a file and an offset.
    target: String,
    /// The fetched arguments, in the kernel's language.
    arguments: Vec<String>,
}

const KINDS: [(&str, char); 4] = [
    ("kernel:kprobe:", 'p'),
    ("kernel:kretprobe:", 'r'),
    ("kernel:uprobe:", 'p'),
    ("kernel:uretprobe:", 'r'),
];

/// Whether a category is a probe.
#[must_use]
pub fn is_probe(category: &str) -> bool {
    KINDS.iter().any(|(head, _)| category.starts_with(head))
}

impl Probe {
    /// `kernel:kprobe:do_sys_openat2;path=+0($arg2):ustring`; none if it is none.
    #[must_use]
    pub fn parse(category: &str) -> Option<Self> {
        let (rest, letter) =
            KINDS.iter().find_map(|(head, letter)| Some((category.strip_prefix(head)?, *letter)))?;
        let mut parts = rest.split(';');
        let target = parts.next().filter(|target| !target.is_empty())?.to_owned();
        Some(Self { letter, target, arguments: parts.map(str::to_owned).collect() })
    }

    /// The name of its events: the location.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.target
    }

    /// The line that makes it, with a group and a name of this provider's.
    #[must_use]
    pub fn definition(&self, group: &str, name: &str) -> String {
        let mut line = format!("{}:{group}/{name} {}", self.letter, self.target);
        for argument in &self.arguments {
            line.push(' ');
            line.push_str(argument);
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/kernel.md#probes
    #[test]
    fn a_probe_is_what_the_kernel_wants_to_read() {
        let line = |category: &str| Probe::parse(category).unwrap().definition("g", "p0");
        assert_eq!(line("kernel:kprobe:do_sys_openat2"), "p:g/p0 do_sys_openat2\n");
        assert_eq!(
            line("kernel:kprobe:do_sys_openat2;dfd=$arg1;path=+0($arg2):ustring"),
            "p:g/p0 do_sys_openat2 dfd=$arg1 path=+0($arg2):ustring\n"
        );
        assert_eq!(line("kernel:kretprobe:vfs_read;$retval"), "r:g/p0 vfs_read $retval\n");
        assert_eq!(line("kernel:uprobe:/bin/app:0x1040"), "p:g/p0 /bin/app:0x1040\n");
        assert_eq!(Probe::parse("kernel:uprobe:"), None);
        assert_eq!(Probe::parse("kernel:sched"), None);
        assert!(is_probe("kernel:uretprobe:/bin/app:0x1040") && !is_probe("kernel:sched"));
    }
}
