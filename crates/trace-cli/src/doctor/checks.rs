//! One function for each capability.

use super::Finding;
use crate::connection;
use rustix::fs::{Access, statvfs};
use rustix::process::{Resource, getrlimit};
use std::path::Path;
use zx_sim::{ProcessFd, RuntimeDir, Vmo};

/// A few programs with buffers of the usual size.
const ENOUGH_MIB: u64 = 64;
/// Descriptors that a manager of a hundred programs needs.
const ENOUGH_DESCRIPTORS: u64 = 1024;
/// Each program without a manager has one.
const ENOUGH_WATCHES: u64 = 64;

pub(super) fn all() -> Vec<Finding> {
    vec![
        runtime_directory(),
        memory(),
        buffers(),
        descriptors(),
        watches(),
        clock(),
        processes(),
        seccomp(),
        container(),
        tracefs(),
        perf(),
    ]
}

fn runtime_directory() -> Finding {
    const NAME: &str = "runtime directory";
    let directories = connection::directories();
    let Some(first) = directories.first() else {
        return Finding::fails(NAME, "there is no place for one", "export TRACE_RUNTIME_DIR=$HOME/.trace");
    };
    match RuntimeDir::open_or_create(first) {
        Ok(_) => Finding::works(NAME, first.display().to_string()),
        Err(error) => {
            let fix = match first.symlink_metadata() {
                Ok(_) => format!("rm -rf '{0}' && mkdir -m 700 '{0}'", first.display()),
                Err(_) => format!("mkdir -m 700 -p '{}'", first.display()),
            };
            Finding::fails(NAME, error.to_string(), fix)
        }
    }
}

/// Room for buffers, in memory rather than on a disk.
fn memory() -> Finding {
    const NAME: &str = "memory for buffers";
    const TMPFS: i64 = 0x0102_1994;
    let Some(directory) = connection::directories().into_iter().find(|directory| directory.is_dir()) else {
        return Finding::fails(
            NAME,
            "there is no runtime directory",
            "mkdir -m 700 -p /dev/shm/trace-$(id -u)",
        );
    };
    let path = directory.display();
    let (Ok(space), Ok(kind)) = (statvfs(&directory), rustix::fs::statfs(&directory)) else {
        return Finding::fails(NAME, format!("{path} cannot be examined"), format!("ls -ld '{path}'"));
    };
    let mebibytes = space.f_bavail.saturating_mul(space.f_frsize) >> 20;
    if mebibytes < ENOUGH_MIB {
        let fix = "sudo mount -o remount,size=1g /dev/shm".to_owned();
        // A container's is fixed from outside.
        let fix =
            if Path::new("/.dockerenv").exists() { "docker run --shm-size=1g …".to_owned() } else { fix };
        return Finding::fails(
            NAME,
            format!("{path} has {mebibytes} MiB left, {ENOUGH_MIB} are good to have"),
            fix,
        );
    }
    #[allow(clippy::unnecessary_cast, reason = "its type differs between machines")]
    if kind.f_type as i64 != TMPFS {
        let detail =
            format!("{path} has {mebibytes} MiB left, on a disk: what is recorded is written to it twice");
        return Finding::fails(NAME, detail, "export TRACE_RUNTIME_DIR=/dev/shm/trace-$(id -u)").optional();
    }
    Finding::works(NAME, format!("{path} has {mebibytes} MiB left"))
}

/// A buffer is made, mapped and marked as in use.
fn buffers() -> Finding {
    const NAME: &str = "shared buffers";
    let made =
        tempfile::tempdir_in(connection::directories().first().map_or(Path::new("/tmp"), AsRef::as_ref))
            .map_err(|error| error.to_string())
            .and_then(|directory| {
                let vmo =
                    Vmo::create_in(directory.path(), "doctor", 1 << 20).map_err(|error| error.to_string())?;
                vmo.map().map_err(|error| error.to_string())?;
                vmo.lock_live().map_err(|error| error.to_string()).map(drop)
            });
    match made {
        Ok(()) => Finding::works(NAME, "one of 1 MiB was made, mapped and locked"),
        Err(error) => Finding::fails(NAME, error, "export TRACE_RUNTIME_DIR=/dev/shm/trace-$(id -u)"),
    }
}

fn descriptors() -> Finding {
    const NAME: &str = "descriptors";
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < ENOUGH_DESCRIPTORS => Finding::fails(
            NAME,
            format!(
                "at most {limit} per process, {ENOUGH_DESCRIPTORS} are good to have for a hundred programs"
            ),
            "sudo prlimit --pid $$ --nofile=65536",
        )
        .optional(),
        limit => Finding::works(
            NAME,
            limit.map_or_else(
                || "as many as there are".to_owned(),
                |limit| format!("at most {limit} per process"),
            ),
        ),
    }
}

fn watches() -> Finding {
    const NAME: &str = "inotify";
    let path = "/proc/sys/fs/inotify/max_user_instances";
    let limit: Option<u64> = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    match limit {
        Some(limit) if limit < ENOUGH_WATCHES => Finding::fails(
            NAME,
            format!("{limit} instances per user: programs beyond that look for a manager once a second"),
            "sudo sysctl fs.inotify.max_user_instances=1024",
        )
        .optional(),
        Some(limit) => Finding::works(NAME, format!("{limit} instances per user")),
        None => Finding::fails(
            NAME,
            "not there: programs look for a manager once a second",
            "ls /proc/sys/fs/inotify",
        )
        .optional(),
    }
}

fn clock() -> Finding {
    const NAME: &str = "clock";
    let source = zx_sim::ticks::source().name();
    if source != "monotonic" {
        return Finding::works(NAME, source);
    }
    Finding::fails(
        NAME,
        "the kernel does not keep time by the processor's counter: reading the clock costs several times as much",
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
    )
    .optional()
}

/// Descriptors of processes tell the manager who has died.
fn processes() -> Finding {
    const NAME: &str = "process descriptors";
    match ProcessFd::open(std::process::id()) {
        Ok(_) => Finding::works(NAME, "pidfd_open"),
        Err(error) => {
            Finding::fails(NAME, format!("{error}: Linux 5.3 or newer is needed, and permitted"), "uname -r")
        }
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
        Some("2") => Finding::works(NAME, "a filter is on; what recording needs was tried above"),
        Some(mode) => Finding::fails(NAME, format!("mode {mode}"), "grep Seccomp /proc/self/status"),
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
            "this is one; programs of others are recorded where the runtime directory is mounted into both",
        ),
    }
}

fn tracefs() -> Finding {
    const NAME: &str = "kernel events";
    let root = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .into_iter()
        .map(Path::new)
        .find(|path| path.join("trace_marker").symlink_metadata().is_ok());
    let Some(root) = root else {
        let fix = if Path::new("/sys/kernel/tracing").is_dir() && rustix::process::geteuid().is_root() {
            "mount -t tracefs tracefs /sys/kernel/tracing"
        } else {
            "sudo mount -o remount,mode=755 /sys/kernel/tracing"
        };
        return Finding::fails(NAME, "tracefs is not mounted, or not readable", fix).optional();
    };
    if rustix::fs::access(root.join("instances"), Access::WRITE_OK).is_ok() {
        return Finding::works(NAME, root.display().to_string());
    }
    let fix = format!("sudo chown -R $(id -un) {}", root.display());
    Finding::fails(NAME, format!("{} may not be written", root.display()), fix).optional()
}

fn perf() -> Finding {
    const NAME: &str = "perf events";
    let path = "/proc/sys/kernel/perf_event_paranoid";
    let level: Option<i32> = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    match level {
        Some(level) if level <= 2 || rustix::process::geteuid().is_root() => {
            Finding::works(NAME, format!("perf_event_paranoid is {level}"))
        }
        Some(level) => Finding::fails(
            NAME,
            format!("perf_event_paranoid is {level}"),
            "sudo sysctl kernel.perf_event_paranoid=2",
        )
        .optional(),
        None => Finding::fails(NAME, "this kernel has none", "uname -r").optional(),
    }
}
