//! Koids and names of this process, and the death of others.

use crate::error::{Error, Result};
use crate::sys;
use crate::wait::{Signals, wait_one};
use rustix::process::{Pid, PidfdFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Instant;

/// The koid of this process: its pid.
#[must_use]
pub fn process_koid() -> u64 {
    u64::from(std::process::id())
}

/// The koid of the calling thread: its tid.
#[must_use]
pub fn thread_koid() -> u64 {
    u64::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap_or(0)
}

/// The name of this process: the last part of the path it was started by, else the kernel's name.
#[must_use]
pub fn process_name() -> String {
    std::env::args_os()
        .next()
        .as_deref()
        .and_then(|path| std::path::Path::new(path).file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !name.is_empty())
        .or_else(|| Some(std::fs::read_to_string("/proc/self/comm").ok()?.trim_end().to_owned()))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The name of the calling thread, at most 15 bytes; a thread without a name of its own has its process's.
#[must_use]
pub fn thread_name() -> String {
    rustix::thread::name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// When the process of a pid was started, in clock ticks since the machine was; none if there is none, or if
/// it has ended and only its parent has to learn that.
///
/// Together with the pid it names one process: a pid is used again, the time is not.
#[must_use]
pub fn start_time(pid: u64) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // `42 (its name) S 1 …`, with the time as the 22nd field: proc_pid_stat(5).
    let (_, fields) = stat.rsplit_once(") ").filter(|(_, state)| !state.starts_with(['Z', 'X']))?;
    fields.split(' ').nth(19)?.parse().ok()
}

/// Whether a process is stopped, by a signal or a debugger; none if that cannot be found out.
#[must_use]
pub fn is_stopped(pid: u64) -> Option<bool> {
    // `42 (its name) T 1 …`
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, state) = stat.rsplit_once(") ")?;
    Some(state.starts_with(['T', 't']))
}

/// Takes this thread's processor and disk time back from the classes that get what others leave (`chrt`,
/// `ionice`), as far as it may. To leave the former takes a limit of niceness that users rarely have.
pub fn schedule_as_usual() {
    sys::schedule_as_usual();
}

/// While it lives, this thread of root's makes and opens files with the rights of another user, who owns what
/// it makes. Of the other groups it keeps its own.
#[derive(Debug)]
pub struct FilesAs {
    before: (u32, u32),
    /// It is of one thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl FilesAs {
    /// As a user and a group.
    ///
    /// # Errors
    /// This process may not act as that user.
    pub fn new(uid: u32, gid: u32) -> std::io::Result<Self> {
        let before = sys::set_file_user(uid, gid);
        let files = Self { before, _thread: std::marker::PhantomData };
        // No user and no group have this number: nothing is set.
        let is_set = uid != u32::MAX && sys::set_file_user(u32::MAX, u32::MAX) == (uid, gid);
        is_set.then_some(files).ok_or_else(|| rustix::io::Errno::PERM.into())
    }
}

impl Drop for FilesAs {
    fn drop(&mut self) {
        let (uid, gid) = self.before;
        // The user first: only root may set the group back.
        sys::set_file_user(uid, gid);
        sys::set_file_user(uid, gid);
    }
}

/// Another process, for as long as it is the same one. Readable in a wait when it has ended.
#[derive(Debug)]
pub struct ProcessFd(OwnedFd);

impl ProcessFd {
    /// The process that has a pid now.
    ///
    /// # Errors
    /// There is none.
    pub fn open(pid: u32) -> Result<Self> {
        let failed = |source| Error::io(format!("cannot find process {pid}"), source);
        let raw =
            i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| failed(rustix::io::Errno::SRCH))?;
        rustix::process::pidfd_open(raw, PidfdFlags::empty()).map(Self).map_err(failed)
    }

    /// Whether it has ended, with all its threads.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        wait_one(self, Signals::READABLE, Some(Instant::now()))
            .is_ok_and(|signals| signals.contains(Signals::READABLE))
    }
}

impl ProcessFd {
    /// How it ended, once its parent has reaped it, on Linux 6.15 and newer.
    #[must_use]
    pub fn exit_status(&self) -> Option<ExitStatus> {
        sys::wait_status(self).map(ExitStatus::from_raw)
    }
}

/// Names of the signals from 1 on that end a process, or stop it.
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// How a process ended, in words: "exit status 3", "killed by SIGSEGV (core dumped)". "ended" for any other
/// status.
#[must_use]
pub fn end_in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code @ 1..), _) => format!("exit status {code}"),
        (_, Some(signal)) => {
            let name = usize::try_from(signal - 1).ok().and_then(|place| SIGNALS.get(place));
            let name = name.map_or_else(|| format!("signal {signal}"), |name| (*name).to_owned());
            let core = if status.core_dumped() { " (core dumped)" } else { "" };
            format!("killed by {name}{core}")
        }
        _ => "ended".to_owned(),
    }
}

impl AsFd for ProcessFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_described_in_words() {
        assert_eq!(end_in_words(ExitStatus::from_raw(0)), "ended");
        assert_eq!(end_in_words(ExitStatus::from_raw(3 << 8)), "exit status 3");
        assert_eq!(end_in_words(ExitStatus::from_raw(9)), "killed by SIGKILL");
        assert_eq!(end_in_words(ExitStatus::from_raw(11 | 0x80)), "killed by SIGSEGV (core dumped)");
        assert_eq!(end_in_words(ExitStatus::from_raw(31)), "killed by SIGSYS");
        assert_eq!(end_in_words(ExitStatus::from_raw(64)), "killed by signal 64");
    }
}
