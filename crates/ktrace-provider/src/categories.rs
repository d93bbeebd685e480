//! The tracepoints of each category.
//= docs/kernel.md#categories

use trace_format::categories::excludes;
use trace_format::markers;

/// A category of the kernel's.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: &'static str,
    /// A description, for people.
    pub description: &'static str,
    /// Tracepoints, as `system/event`; a system alone stands for all of its events.
    pub points: &'static [&'static str],
}

/// All of them; the name stands for every other.
pub const ALL: &str = "kernel";
/// Names of processes and threads, wanted with every other.
pub const META: &str = "kernel:meta";
/// Markers that programs write into `trace_marker`.
pub const ATRACE: &str = markers::CATEGORY;
/// Texts in `trace_marker` that are not Android's markers.
pub const PROBE: &str = "kernel:probe";
/// No events of its own: keeps those that the kernel's buffer holds since the previous recording.
pub const RETAIN: &str = "kernel:retain";
/// Prefix of all of the kernel's categories, as an entry of a list.
pub const EACH: &str = "kernel:*";
/// Markers of one application: `kernel:atrace:name`.
pub const APPLICATION: &str = markers::OF_APPLICATION;
/// A single tracepoint: `kernel:tp:system:event`.
pub const POINT: &str = "kernel:tp:";

/// The categories, of which [`ALL`] is none.
pub const GROUPS: [Group; 15] = [
    Group {
        name: META,
        description: "Names of processes and threads",
        points: &[
            "task/task_newtask",
            "task/task_rename",
            "sched/sched_process_exec",
            "sched/sched_process_exit",
            "sched/sched_process_free",
        ],
    },
    Group {
        name: "kernel:sched",
        description: "Context switches and wakeups",
        points: &["sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup_new"],
    },
    Group {
        name: "kernel:irq",
        description: "Hard and soft interrupts",
        points: &["irq/irq_handler_entry", "irq/irq_handler_exit", "irq/softirq_entry", "irq/softirq_exit"],
    },
    Group {
        name: "kernel:syscall",
        description: "System calls",
        points: &["raw_syscalls/sys_enter", "raw_syscalls/sys_exit"],
    },
    Group {
        name: "kernel:vm",
        description: "Page faults",
        points: &["exceptions/page_fault_user", "exceptions/page_fault_kernel"],
    },
    Group {
        name: "kernel:power",
        description: "Frequencies and idle states of the CPUs",
        points: &["power/cpu_frequency", "power/cpu_idle"],
    },
    Group {
        name: "kernel:workqueue",
        description: "Work that the kernel has put off",
        points: &["workqueue/workqueue_execute_start", "workqueue/workqueue_execute_end"],
    },
    Group {
        name: "kernel:contention",
        description: "Waiting for the kernel's locks",
        points: &["lock/contention_begin", "lock/contention_end"],
    },
    Group { name: "kernel:memory", description: "Resident memory of processes", points: &["kmem/rss_stat"] },
    Group { name: "kernel:oom", description: "Out of memory", points: &["oom"] },
    Group { name: PROBE, description: "Probes, and text in trace_marker", points: &[] },
    Group { name: "kernel:ipc", description: "Nothing: Linux has no such events", points: &[] },
    Group { name: "kernel:arch", description: "Nothing: Linux has no such events", points: &[] },
    Group { name: "kernel:restricted", description: "Nothing: Linux has no such mode", points: &[] },
    Group { name: ATRACE, description: "Markers that programs write into trace_marker", points: &[] },
];

/// The kernel's events that a recording wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSelection {
    /// Tracepoints of the categories: category, then `system/event` or a system alone.
    pub points: Vec<(&'static str, &'static str)>,
    /// Single tracepoints, as `system/event`; the event may be `*`.
    pub single: Vec<String>,
    /// Probes, by their locations.
    pub probes: Vec<String>,
    /// Markers that programs write into `trace_marker`.
    pub markers: bool,
    /// The applications whose markers these are; none for all.
    pub applications: Vec<String>,
    /// Other texts in it.
    pub texts: bool,
    /// Events that the buffer holds since the previous recording.
    pub retains: bool,
}

impl EventSelection {
    /// The events of categories: `is_wanted` selects names, `listed` has the entries of the recording's list.
    pub fn new(is_wanted: impl Fn(&str) -> bool, listed: &[String]) -> Self {
        let has_all = is_wanted(ALL);
        let has =
            |name: &str| is_wanted(name) || (has_all && name != ATRACE && !excludes(listed, name.as_bytes()));
        let markers = markers::tags(&is_wanted, listed) != 0;
        let mut wanted = Self { markers, texts: has(PROBE), ..Self::default() };
        // As in Fuchsia: a recording of everything begins with an empty buffer.
        wanted.retains = !has_all && listed.iter().any(|entry| entry == RETAIN);
        for group in GROUPS.iter().filter(|group| has(group.name)) {
            wanted.points.extend(group.points.iter().map(|point| (group.name, *point)));
        }
        for entry in listed {
            if let Some((system, event)) = entry.strip_prefix(POINT).and_then(|point| point.split_once(':')) {
                wanted.single.push(format!("{system}/{event}"));
            } else if crate::probes::is_probe(entry) {
                wanted.probes.push(entry.clone());
            } else if let Some(name) = entry.strip_prefix(APPLICATION) {
                wanted.applications.push(name.to_owned());
            }
        }
        wanted.markers |= !wanted.applications.is_empty();
        if !wanted.is_nothing() && !has(META) && !excludes(listed, META.as_bytes()) {
            wanted.points.extend(GROUPS[0].points.iter().map(|point| (META, *point)));
        }
        wanted
    }

    /// Whether context switches are part of it.
    #[must_use]
    pub fn has_switches(&self) -> bool {
        self.points.iter().any(|(_, point)| *point == "sched/sched_switch")
    }

    /// Whether nothing is selected.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.points.is_empty()
            && self.single.is_empty()
            && self.probes.is_empty()
            && !self.markers
            && !self.texts
    }
}

/// Whether an entry of a recording's list is for the kernel.
#[must_use]
pub fn is_of_kernel(entry: &str) -> bool {
    entry == ALL || is_of_markers(entry) || entry.starts_with("kernel:")
}

/// Whether an entry of a recording's list is for markers, of all tags or of one.
#[must_use]
pub fn is_of_markers(entry: &str) -> bool {
    entry == ATRACE || entry.starts_with(markers::OF_TAG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(listed: &[&str]) -> EventSelection {
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        let is_wanted = |name: &str| {
            let matches = |entry: &str| match entry.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == entry,
            };
            listed.iter().any(|entry| matches(entry)) && !excludes(&listed, name.as_bytes())
        };
        EventSelection::new(is_wanted, &listed)
    }

    fn categories(listed: &[&str]) -> Vec<&'static str> {
        let mut found: Vec<_> = wanted(listed).points.into_iter().map(|(category, _)| category).collect();
        found.dedup();
        found
    }

    //= docs/kernel.md#categories
    #[test]
    fn a_category_has_its_points_and_the_names() {
        assert_eq!(categories(&["kernel:sched"]), ["kernel:sched", META]);
        assert_eq!(categories(&["kernel:meta"]), [META]);
        assert_eq!(categories(&["kernel:irq", "kernel:sched"]), ["kernel:sched", "kernel:irq", META]);
        assert_eq!(categories(&["kernel:sched", "-kernel:meta"]), ["kernel:sched"]);
        assert_eq!(wanted(&["app"]), EventSelection::default());
        assert!(wanted(&["app"]).is_nothing());
    }

    //= docs/kernel.md#categories
    #[test]
    fn kernel_stands_for_all_and_atrace_for_itself() {
        let all = wanted(&["kernel"]);
        let points: usize = GROUPS.iter().map(|group| group.points.len()).sum();
        assert_eq!((all.points.len(), all.markers, all.texts), (points, false, true));
        assert_eq!(wanted(&["kernel:*"]).points.len(), points);
        assert!(!categories(&["kernel", "-kernel:syscall"]).contains(&"kernel:syscall"));
        let markers = wanted(&["atrace"]);
        assert_eq!((markers.markers, markers.texts), (true, false));
        assert_eq!(categories(&["atrace"]), [META]);
    }

    //= docs/kernel.md#categories
    #[test]
    fn markers_are_those_of_applications_if_these_are_named() {
        let some = wanted(&["kernel:atrace:app", "kernel:atrace:/bin/b"]);
        assert_eq!(
            (some.markers, some.texts, &*some.applications),
            (true, false, &["app", "/bin/b"].map(String::from)[..])
        );
        // As programs of one name have them written.
        assert_eq!(wanted(&["kernel:atrace:app", "atrace"]).applications, ["app"]);
        // A marker in the kernel's buffer has no tag.
        for list in [&["atrace:view"][..], &["atrace:*"], &["atrace", "-atrace:view"]] {
            assert!(wanted(list).markers && wanted(list).applications.is_empty(), "{list:?}");
        }
        for list in [&["atrace:views"][..], &["atrace", "-atrace"], &["atrace:view", "-atrace:*"]] {
            assert!(!wanted(list).markers, "{list:?}");
        }
        assert_eq!(wanted(&["atrace"]).applications, [""; 0]);
    }

    //= docs/kernel.md#categories
    #[test]
    fn single_points_are_named() {
        let single = wanted(&["kernel:tp:block:block_rq_issue", "kernel:kprobe:do_sys_openat2"]);
        assert_eq!(single.single, ["block/block_rq_issue"]);
        assert_eq!(single.probes, ["kernel:kprobe:do_sys_openat2"]);
        assert_eq!(categories(&["kernel:tp:block:*"]), [META]);
    }
}
