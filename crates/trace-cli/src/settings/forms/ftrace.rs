//! Which of our categories have the events that a configuration names for ftrace.

use ktrace_provider::categories::{ATRACE, GROUPS, POINT};

/// Beginnings of events that may be named without their systems, and these.
const SYSTEMS: [(&str, &str); 7] = [
    ("sched_", "sched"),
    ("binder_", "binder"),
    ("block_", "block"),
    ("ext4_", "ext4"),
    ("f2fs_", "f2fs"),
    ("clock_", "power"),
    ("suspend_resume", "power"),
];

/// The categories of an event, as `system/event`, `system/*` or the event alone; none if its system is not
/// known.
pub fn categories(event: &str) -> Option<Vec<String>> {
    let (system, name) = event.split_once('/').map_or((None, event), |(system, name)| (Some(system), name));
    let is_marker = name == "print" || name == "tracing_mark_write";
    if is_marker && system.is_none_or(|system| system == "ftrace") {
        return Some(vec![ATRACE.to_owned()]);
    }
    // Both wake a thread up; the category has the one that is recorded where it is caused.
    let name = if name == "sched_wakeup" { "sched_waking" } else { name };
    let has = |point: &&str| match (point.split_once('/'), system) {
        (Some((of_point, point)), Some(system)) => of_point == system && (point == name || name == "*"),
        (Some((_, point)), None) => point == name,
        (None, system) => system == Some(*point),
    };
    let groups = GROUPS.iter().filter(|group| group.points.iter().any(has));
    let mut found: Vec<String> = groups.map(|group| group.name.to_owned()).collect();
    let known = SYSTEMS.iter().find(|(begin, _)| name.starts_with(begin)).map(|(_, system)| *system);
    match system.or(known) {
        Some(system) if name == "*" || found.is_empty() => found.push(format!("{POINT}{system}:{name}")),
        _ => {}
    }
    (!found.is_empty()).then_some(found)
}

/// The category of the kernel that a category of atrace stands for, besides markers with its tag.
pub fn of_atrace(category: &str) -> Option<&'static str> {
    let known = [
        ("sched", "kernel:sched"),
        ("freq", "kernel:power"),
        ("idle", "kernel:power"),
        ("power", "kernel:power"),
        ("irq", "kernel:irq"),
        ("workq", "kernel:workqueue"),
        ("memory", "kernel:memory"),
    ];
    known.iter().find(|(name, _)| *name == category).map(|(_, found)| *found)
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/configurations.md#events-of-the-kernel
    #[test]
    fn events_belong_to_categories() {
        for (event, expected) in [
            ("sched/sched_switch", &["kernel:sched"][..]),
            ("sched_switch", &["kernel:sched"]),
            ("sched/sched_wakeup", &["kernel:sched"]),
            ("sched/sched_process_exit", &["kernel:meta"]),
            ("sched/*", &["kernel:meta", "kernel:sched", "kernel:tp:sched:*"]),
            ("irq/softirq_entry", &["kernel:irq"]),
            ("raw_syscalls/sys_enter", &["kernel:syscall"]),
            ("oom/mark_victim", &["kernel:oom"]),
            ("power/cpu_idle", &["kernel:power"]),
            ("power/suspend_resume", &["kernel:tp:power:suspend_resume"]),
            ("suspend_resume", &["kernel:tp:power:suspend_resume"]),
            ("sched_process_fork", &["kernel:tp:sched:sched_process_fork"]),
            ("tracing_mark_write", &["atrace"]),
            ("ftrace/print", &["atrace"]),
            ("print", &["atrace"]),
            ("mm_event/mm_event_record", &["kernel:tp:mm_event:mm_event_record"]),
        ] {
            assert_eq!(categories(event).unwrap(), expected, "{event}");
        }
        assert_eq!(categories("rss_stat_throttled"), None);
    }
}
