//! Koids and names of this process, and the death of others.

use crate::error::{Error, Result};
use crate::wait::{Signals, wait_one};
use rustix::process::{Pid, PidfdFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// What this process is called: the last part of the path it was started by, else the kernel's name.
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

/// What the calling thread is called, at most 15 bytes; a thread without a name of its own has its process's.
#[must_use]
pub fn thread_name() -> String {
    rustix::thread::name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
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

impl AsFd for ProcessFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
