//! One function for each capability.

use super::Finding;
use crate::connection::state::{self, State};
use crate::connection::{self, ENOUGH_MIB, free_mebibytes, is_in_memory, is_roots, own_directory};
use crate::record::kernel;
use crate::record::recover;
use crate::shell::caller;
use indicatif::HumanBytes;
use ktrace_provider::tracefs::Tracefs;
use rustix::process::{Resource, getrlimit};
use std::fmt::Display;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trace_archive::recovery::Session;
use trace_protocol::names::RUNTIME_VARIABLE;
use zx_sim::{ProcessFd, RuntimeDir, Vmo};

/// Number of descriptors that a manager of a hundred programs needs.
const ENOUGH_DESCRIPTORS: u64 = 1024;
/// The least number of a person's account, not of the system's.
const FIRST_USER: u32 = 1000;
/// Number of inotify instances: each program without a manager has one.
const ENOUGH_WATCHES: u64 = 64;

pub(super) fn all() -> Vec<Finding> {
    let (directory, usable) = runtime_directory();
    let mut all = vec![directory];
    if let Some(directory) = usable {
        // Without a usable directory, these would fail for the same reason.
        all.extend([memory(&directory), buffers(&directory)]);
        all.extend(logout(Path::new("/"), rustix::process::geteuid().as_raw(), &directory));
    }
    all.extend(running_manager());
    all.push(leftovers());
    all.extend([descriptors(), watches(), clock(), processes(), seccomp(), container()]);
    all.extend([kernel_events(), perf()]);
    all
}

/// A problem of the directory. The fix names another one in one shell: a service that is started elsewhere
/// would not be found there.
fn of_directory(name: &'static str, detail: impl Display) -> Finding {
    let fix = own_directory();
    let elsewhere = match &fix {
        Some(_) => {
            format!("; the fix is for this shell and what it starts, set {RUNTIME_VARIABLE} for others, too")
        }
        None => String::new(),
    };
    Finding::fails(name, format!("{detail}{elsewhere}"), fix)
}

/// The command, with `sudo` if necessary.
fn as_root(command: &str) -> String {
    if rustix::process::geteuid().is_root() { command.to_owned() } else { format!("sudo {command}") }
}

/// The finding, and the directory if buffers are made there and it is usable.
fn runtime_directory() -> (Finding, Option<PathBuf>) {
    const NAME: &str = "runtime directory";
    // A manager that runs is used, wherever it is.
    let found = connection::find().ok().flatten().map(|manager| manager.directory().to_owned());
    let metadata = found.as_ref().and_then(|directory| std::fs::metadata(directory).ok());
    // Others may look into one that is for all, and write into none.
    let is_for_all = metadata
        .as_ref()
        .is_some_and(|found| found.mode() & 0o077 != 0 && found.mode() & 0o022 == 0 && found.uid() == 0);
    let is_callers = metadata.is_some_and(|found| caller::is_callers(found.uid()));
    if let Some(roots) = found.as_ref().filter(|directory| is_roots(directory) || is_for_all) {
        let detail = format!("{}, of root's manager, which makes the buffers elsewhere", roots.display());
        return (Finding::works(NAME, detail), None);
    }
    if let Some(callers) = found.as_ref().filter(|_| is_callers) {
        let detail = format!("{}, of the manager of the user who has called sudo", callers.display());
        return (Finding::works(NAME, detail), None);
    }
    let Some(first) = found.or_else(|| connection::directories().into_iter().next()) else {
        return (of_directory(NAME, "no directory is suitable"), None);
    };
    match RuntimeDir::open_or_create(&first) {
        Ok(_) => (Finding::works(NAME, first.display().to_string()), Some(first)),
        Err(error) => (of_directory(NAME, error), None),
    }
}

/// What the manager that runs may use, if one does: another command may have started it.
//= docs/protocol.md#who-starts-the-manager
fn running_manager() -> Option<Finding> {
    const NAME: &str = "running manager";
    let connection = connection::find().ok().flatten()?;
    let state = State::of(connection.manager()?)?;
    Some(match state::obstacle(&connection) {
        None => Finding::works(NAME, state.summary()),
        Some(obstacle) => {
            let detail = format!("{obstacle}, less than this shell: it ends 30 s after its last recording");
            Finding::fails(NAME, detail, None).optional()
        }
    })
}

/// Room for buffers, in memory rather than on a disk.
fn memory(directory: &Path) -> Finding {
    const NAME: &str = "memory for buffers";
    let path = directory.display();
    let Some(mebibytes) = free_mebibytes(directory) else {
        return of_directory(NAME, format!("{path} cannot be examined"));
    };
    if mebibytes < ENOUGH_MIB {
        let detail = format!("{path} has {mebibytes} MiB left, at least {ENOUGH_MIB} are recommended");
        return of_directory(NAME, detail);
    }
    if !is_in_memory(directory) {
        let detail =
            format!("{path} has {mebibytes} MiB left, on a disk: recorded data is written to it twice");
        let helps = |command: &String| command.contains("/dev/shm/") && is_in_memory(Path::new("/dev/shm"));
        return Finding::fails(NAME, detail, own_directory().filter(helps)).optional();
    }
    Finding::works(NAME, format!("{path} has {mebibytes} MiB left"))
}

/// Creates, maps and locks a buffer.
fn buffers(directory: &Path) -> Finding {
    const NAME: &str = "shared buffers";
    let made = tempfile::tempdir_in(directory).map_err(|error| error.to_string()).and_then(|directory| {
        let vmo = Vmo::create_in(directory.path(), "doctor", 1 << 20).map_err(|error| error.to_string())?;
        vmo.marked().and_then(|vmo| vmo.map()).map_err(|error| error.to_string()).map(drop)
    });
    match made {
        Ok(()) => Finding::works(NAME, "created, mapped and locked one of 1 MiB"),
        Err(error) => of_directory(NAME, error),
    }
}

/// systemd deletes what a user has in `/dev/shm` when the last session ends (`RemoveIPC`, logind.conf(5)),
/// also the buffers of a service of this user's, unless the user lingers.
fn logout(root: &Path, uid: u32, directory: &Path) -> Option<Finding> {
    const NAME: &str = "logout";
    if uid < FIRST_USER || !directory.starts_with("/dev/shm") || !root.join("run/systemd/users").exists() {
        return None;
    }
    let users = std::fs::read_to_string(root.join("etc/passwd")).ok()?;
    // name:password:uid:…
    let is_it = |line: &&str| line.split(':').nth(2) == Some(&uid.to_string());
    let name = users.lines().find(is_it)?.split(':').next()?;
    if root.join("var/lib/systemd/linger").join(name).exists() {
        return Some(Finding::works(NAME, format!("{name} lingers: buffers stay at the last logout")));
    }
    let detail = "the last logout may delete buffers in /dev/shm, also of services of this user (RemoveIPC)";
    Some(Finding::fails(NAME, detail, Some("loginctl enable-linger".to_owned())).optional())
}

/// Interrupted recordings that can be recovered.
//= docs/recovery.md#how-long-it-is-kept
fn leftovers() -> Finding {
    const NAME: &str = "leftover recordings";
    let left = recover::waiting();
    left.iter().for_each(Session::announce);
    let bytes = left.iter().flat_map(Session::pieces).map(|piece| piece.bytes).fold(0, u64::saturating_add);
    match left.len() {
        0 => Finding::works(NAME, "none"),
        count => {
            let detail = format!("{count} interrupted, with {}", HumanBytes(bytes));
            Finding::fails(NAME, detail, Some("trace recover --list".to_owned())).optional()
        }
    }
}

fn descriptors() -> Finding {
    const NAME: &str = "descriptors";
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < ENOUGH_DESCRIPTORS => Finding::fails(
            NAME,
            format!(
                "at most {limit} per process, {ENOUGH_DESCRIPTORS} are recommended for a hundred programs"
            ),
            // Only the hard limit, of this shell and its children.
            may_raise_limits().then(|| as_root("prlimit --pid $$ --nofile=:65536")),
        )
        .optional(),
        limit => Finding::works(
            NAME,
            limit.map_or_else(
                || "no limit per process".to_owned(),
                |limit| format!("at most {limit} per process"),
            ),
        ),
    }
}

/// Whether root may raise limits: not in every container, and in no user namespace.
fn may_raise_limits() -> bool {
    const SYS_RESOURCE: u64 = 1 << 24;
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    let capabilities = status_line("CapEff").and_then(|digits| u64::from_str_radix(&digits, 16).ok());
    let users = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let has_all_users = users.is_empty() || users.split_whitespace().eq(["0", "0", "4294967295"]);
    has_all_users && capabilities.is_none_or(|has| has & SYS_RESOURCE != 0)
}

fn watches() -> Finding {
    const NAME: &str = "inotify";
    let path = "/proc/sys/fs/inotify/max_user_instances";
    let limit: Option<u64> = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    match limit {
        Some(limit) if limit < ENOUGH_WATCHES => Finding::fails(
            NAME,
            format!("{limit} instances per user: programs beyond that look for a manager once a second"),
            Some(as_root("sysctl fs.inotify.max_user_instances=1024")),
        )
        .optional(),
        Some(limit) => Finding::works(NAME, format!("{limit} instances per user")),
        None => {
            Finding::fails(NAME, "not available: programs look for a manager once a second", None).optional()
        }
    }
}

fn clock() -> Finding {
    const NAME: &str = "clock";
    let source = zx_sim::ticks::source().name();
    if source != "monotonic" {
        return Finding::works(NAME, source);
    }
    // A change can be suggested only if the kernel has found the counter reliable.
    let sources = Path::new("/sys/devices/system/clocksource/clocksource0");
    let available = std::fs::read_to_string(sources.join("available_clocksource")).unwrap_or_default();
    let is_available = available.split_whitespace().any(|name| name == "tsc");
    let fix = format!("sh -c 'echo tsc > {}'", sources.join("current_clocksource").display());
    Finding::fails(
        NAME,
        "the kernel does not keep time by the processor's counter: reading the clock costs several times as much",
        is_available.then(|| as_root(&fix)),
    )
    .optional()
}

/// Descriptors of processes report to the manager which ones have died.
fn processes() -> Finding {
    const NAME: &str = "process descriptors";
    match ProcessFd::open(std::process::id()) {
        Ok(_) => Finding::works(NAME, "pidfd_open"),
        Err(error) => Finding::fails(
            NAME,
            format!("{error}: Linux 5.3 or newer is required, and pidfd_open must be permitted"),
            None,
        ),
    }
}

fn status_line(name: &str) -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(|value| value.trim().to_owned()))
}

fn seccomp() -> Finding {
    const NAME: &str = "seccomp";
    match status_line("Seccomp").as_deref() {
        Some("0") => Finding::works(NAME, "no filter"),
        Some("2") => Finding::works(NAME, "a filter is active; the checks above ran under it"),
        Some(mode) => Finding::fails(NAME, format!("mode {mode}"), None),
        None => Finding::works(NAME, "unknown: there is no /proc"),
    }
}

fn container() -> Finding {
    const NAME: &str = "container";
    let marks = ["/.dockerenv", "/run/.containerenv"];
    let mark = marks.into_iter().find(|path| Path::new(path).exists());
    let is_nested = status_line("NSpid").is_some_and(|pids| pids.split_whitespace().count() > 1);
    match (mark, is_nested) {
        (None, false) => Finding::works(NAME, "none"),
        _ => Finding::works(
            NAME,
            "this is one; programs outside are recorded if the runtime directory is mounted into both",
        ),
    }
}

/// The same message as that of a recording without kernel events, with the command that it names.
fn kernel_events() -> Finding {
    const NAME: &str = "kernel events";
    let Err(error) = Tracefs::find(&kernel::help()) else {
        return Finding::works(NAME, "tracefs is accessible");
    };
    if let Some(pid) = kernel::running() {
        return Finding::works(NAME, format!("process {pid} provides them"));
    }
    let (detail, fix) = error.with_remedy();
    Finding::fails(NAME, detail, fix).optional()
}

/// The access of a user to the events of its own programs; root's provider has those of all.
fn perf() -> Finding {
    const NAME: &str = "perf events";
    let path = "/proc/sys/kernel/perf_event_paranoid";
    let level: Option<i32> = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    match level {
        Some(level) if level <= 2 || rustix::process::geteuid().is_root() => {
            Finding::works(NAME, format!("perf_event_paranoid is {level}"))
        }
        Some(level) => match kernel::running() {
            Some(pid) => Finding::works(NAME, format!("process {pid} has them")),
            None => {
                let detail = format!("perf_event_paranoid is {level}");
                Finding::fails(NAME, detail, Some(kernel::help())).optional()
            }
        },
        None => Finding::fails(NAME, "this kernel has none", None).optional(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_user_whose_buffers_a_logout_deletes_is_warned() {
        let root = tempfile::tempdir().unwrap();
        let found = |uid, directory: &str| {
            logout(root.path(), uid, Path::new(directory)).map(|finding| (finding.works, finding.fix))
        };
        assert_eq!(found(1001, "/dev/shm/trace-1001"), None, "without systemd");
        for directory in ["run/systemd/users", "etc", "var/lib/systemd/linger"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        fs::write(root.path().join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nann:x:1001:1001::/:/bin/sh\n")
            .unwrap();
        let fix = Some("loginctl enable-linger".to_owned());
        assert_eq!(found(1001, "/dev/shm/trace-1001"), Some((false, fix)));
        assert_eq!((found(1001, "/tmp/trace-1001"), found(0, "/dev/shm/trace-0")), (None, None));
        fs::write(root.path().join("var/lib/systemd/linger/ann"), "").unwrap();
        assert_eq!(found(1001, "/dev/shm/trace-1001"), Some((true, None)));
    }
}
