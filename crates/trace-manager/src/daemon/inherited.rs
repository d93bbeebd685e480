//! What a manager that a command has started takes back of that command's state: it serves other callers,
//! too.
//= docs/protocol.md#who-starts-the-manager

use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Limits that a caller may have lowered for its own work.
const LIMITS: [Resource; 6] =
    [Resource::Fsize, Resource::As, Resource::Data, Resource::Nproc, Resource::Memlock, Resource::Cpu];

/// Raises what may be raised, and leaves the working directory, whose file system could not be unmounted
/// before the manager ends. What cannot be changed stays as it is: `trace record` compares it with its own.
pub(super) fn take_back() {
    LIMITS.into_iter().for_each(raise);
    let _ = setpriority_process(None, 0);
    zx_sim::process::schedule_as_usual();
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|processor| all.set(processor));
    let _ = sched_setaffinity(None, &all);
    // Under the value of a child that may be killed first, or that may not be.
    let _ = std::fs::write("/proc/self/oom_score_adj", "0");
    let _ = std::env::set_current_dir("/");
}

/// Hundreds of providers have some descriptors each. If the limit cannot be raised, fewer can be recorded.
pub(crate) fn allow_many_descriptors() {
    raise(Resource::Nofile);
}

fn raise(resource: Resource) {
    let limit = getrlimit(resource);
    // Root may raise the hard limit; for descriptors the system has a maximum.
    let most = match resource {
        Resource::Nofile => most_descriptors(),
        _ => None,
    };
    let is_more = most.is_none_or(|most| limit.maximum.is_some_and(|maximum| maximum < most));
    if is_more && setrlimit(resource, Rlimit { current: most, maximum: most }).is_ok() {
        return;
    }
    let _ = setrlimit(resource, Rlimit { current: limit.maximum, ..limit });
}

/// How many descriptors a process may have at all.
fn most_descriptors() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/fs/nr_open").ok()?.trim().parse().ok()
}
