//! Processes that are no children of the program.
//!
//! A program may wait for any child of its own, ignore their ends, or have a handler for them: a process that
//! a library starts must not be among them. So an intermediate process starts it, which is cloned without a
//! signal for its end: only calls that ask for such clones see it. It reports how the process ends, until it
//! is killed; from then on the process belongs to the system.
//!
//! Invariants:
//!
//! * **D1** Between `clone` and `execve` a process only makes system calls, with numbers and with memory that
//!   was prepared before.
//! * **D2** The intermediate is waited for by this module alone, and is killed only before that.
#![allow(unsafe_code)]

use crate::channel::pair;
use crate::guest::beyond_standard;
use crate::guest::thread::without_signals;
use rustix::fs::{Mode, OFlags};
use rustix::net::SocketType;
use std::ffi::{CStr, CString, OsString, c_char};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// What to start.
#[derive(Debug)]
pub struct Program {
    /// The path of its executable.
    pub path: OsString,
    /// Its arguments, its own name first.
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Standard error; it has no other descriptor that leads anywhere.
    pub messages: OwnedFd,
}

/// A process that was started, until this is dropped; it runs on then.
#[derive(Debug)]
pub struct Detached {
    intermediate: libc::pid_t,
    /// What the intermediate reports.
    reports: OwnedFd,
    process: Option<libc::pid_t>,
}

/// The kinds of reports, which have a number each.
const STARTED: i32 = 0;
const FAILED: i32 = 1;
const ENDED: i32 = 2;

impl Detached {
    /// Starts a program, without signals that are blocked or SIGPIPE ignored.
    ///
    /// # Errors
    /// There can be no more processes or descriptors, or a text has a NUL. That the program cannot be
    /// executed is an error of [`Detached::try_wait`].
    pub fn start(program: Program) -> io::Result<Self> {
        let text = |text: OsString| CString::new(text.into_vec()).map_err(io::Error::other);
        let path = text(program.path)?;
        let arguments = program.arguments.into_iter().map(text).collect::<io::Result<Vec<_>>>()?;
        let environment = program.environment.into_iter().map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            text(name)
        });
        let environment = environment.collect::<io::Result<Vec<_>>>()?;
        let (arguments, environment) = (pointers(&arguments), pointers(&environment));
        let nowhere = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let (reader, writer) = pair(SocketType::SEQPACKET).map_err(io::Error::other)?;
        let ordinary = |descriptor| beyond_standard(descriptor).map_err(io::Error::other);
        let [nowhere, writer, messages] =
            [ordinary(nowhere)?, ordinary(writer)?, ordinary(program.messages)?];
        let reports = ordinary(reader)?;
        let prepared = Prepared {
            path: &path,
            arguments: &arguments,
            environment: &environment,
            nowhere: nowhere.as_raw_fd(),
            messages: messages.as_raw_fd(),
            reports: writer.as_raw_fd(),
            parent: std::process::id(),
        };
        // SAFETY: what the clone does is `intermediate` (D1).
        let cloned = without_signals(|| match unsafe { clone(0) } {
            // SAFETY: this is the clone, which has no other thread.
            Ok(0) => unsafe { prepared.intermediate() },
            cloned => cloned,
        });
        Ok(Self { intermediate: cloned?, reports, process: None })
    }

    /// How it ended; none as long as it has not.
    ///
    /// # Errors
    /// It could not be executed, or that is not known.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        loop {
            let mut report = [0; 8];
            let length = match rustix::io::read(&self.reports, &mut report) {
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
                length => length?,
            };
            let number = i32::from_ne_bytes([report[4], report[5], report[6], report[7]]);
            match i32::from_ne_bytes([report[0], report[1], report[2], report[3]]) {
                STARTED if length == report.len() => self.process = Some(number),
                FAILED => return Err(io::Error::from_raw_os_error(number)),
                ENDED => {
                    self.process = None;
                    return Ok(Some(ExitStatus::from_raw(number)));
                }
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// Kills it.
    pub fn kill(mut self) {
        // One that has ended is waited for by the intermediate, which has not reported that.
        if let (Ok(None), Some(process)) = (self.try_wait(), self.process) {
            // SAFETY: numbers.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        // SAFETY: numbers, and no place for a status. Nothing else waits for the process (D2).
        unsafe {
            if libc::waitpid(self.intermediate, core::ptr::null_mut(), libc::__WCLONE | libc::WNOHANG) == 0 {
                // Where a filter of system calls forbids that, it is left alone.
                let is_killed = libc::kill(self.intermediate, libc::SIGKILL) == 0;
                while is_killed
                    && libc::waitpid(self.intermediate, core::ptr::null_mut(), libc::__WCLONE) == -1
                    && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
                {}
            }
        }
    }
}

/// The addresses of texts, and a null behind them.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([core::ptr::null()]).collect()
}

/// A copy of this process, with a copy of this thread alone, and a signal to its parent when it ends.
///
/// # Safety
/// The clone only does what a process without other threads may do whose locks can be held for ever.
unsafe fn clone(signal: libc::c_int) -> io::Result<libc::pid_t> {
    // Zeros in any order: the stack goes on, and there are no places for numbers.
    // SAFETY: a call that takes numbers; the rest is the caller's promise.
    let cloned = unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(signal), 0, 0, 0, 0) };
    if cloned < 0 { Err(io::Error::last_os_error()) } else { Ok(cloned as libc::pid_t) }
}

/// All that clones need.
struct Prepared<'a> {
    path: &'a CStr,
    arguments: &'a [*const c_char],
    environment: &'a [*const c_char],
    nowhere: RawFd,
    messages: RawFd,
    reports: RawFd,
    parent: u32,
}

impl Prepared<'_> {
    /// Starts the process, waits for its end, and reports it.
    ///
    /// # Safety
    /// This is a clone, with no thread but this (D1).
    unsafe fn intermediate(&self) -> ! {
        // SAFETY: system calls with numbers, and memory of this function's.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The program may have it ignored: then there would be no status.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            if libc::getppid() as u32 != self.parent {
                libc::_exit(1);
            }
            match clone(libc::SIGCHLD) {
                Ok(0) => self.process(),
                Ok(process) => {
                    self.report(STARTED, process);
                    // It holds nothing of the program's but that.
                    libc::syscall(libc::SYS_close_range, 0, self.reports - 1, 0);
                    libc::syscall(libc::SYS_close_range, self.reports + 1, libc::c_uint::MAX, 0);
                    let mut status = 0;
                    while libc::waitpid(process, &raw mut status, 0) == -1 {}
                    self.report(ENDED, status);
                }
                Err(error) => self.report(FAILED, error.raw_os_error().unwrap_or(0)),
            }
            libc::_exit(0)
        }
    }

    /// Becomes the program.
    ///
    /// # Safety
    /// As of [`Prepared::intermediate`].
    unsafe fn process(&self) -> ! {
        let mut none = core::mem::MaybeUninit::uninit();
        // SAFETY: system calls with numbers; a set that the first call initializes; lists that end in null.
        unsafe {
            for (number, descriptor) in [self.nowhere, self.nowhere, self.messages].into_iter().enumerate() {
                libc::dup2(descriptor, number as RawFd);
            }
            // Before Linux 5.11 they stay.
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), core::ptr::null_mut());
            libc::execve(self.path.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr());
            self.report(FAILED, io::Error::last_os_error().raw_os_error().unwrap_or(0));
            libc::_exit(127)
        }
    }

    fn report(&self, kind: i32, number: i32) {
        let (kind, number) = (kind.to_ne_bytes(), number.to_ne_bytes());
        let bytes = [kind[0], kind[1], kind[2], kind[3], number[0], number[1], number[2], number[3]];
        // SAFETY: a number, and memory of this function's. The socket has room for all reports.
        unsafe { libc::write(self.reports, bytes.as_ptr().cast(), bytes.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn start(script: &str) -> Detached {
        let _alone = crate::guest::apart::COPIES.lock();
        let program = Program {
            path: "/bin/sh".into(),
            arguments: ["sh", "-c", script].map(OsString::from).into(),
            environment: vec![("NAME".into(), "value".into())],
            messages: std::fs::File::create("/dev/null").unwrap().into(),
        };
        Detached::start(program).unwrap()
    }

    fn end(detached: &mut Detached) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = detached.try_wait()? {
                return Ok(status);
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_process_reports_its_end_and_is_no_child() {
        let mut detached = start("test $NAME = value && ! test -e /proc/self/fd/3 && exit 7");
        // SAFETY: a number, and no place for a status.
        let waited = unsafe { libc::waitpid(-1, core::ptr::null_mut(), libc::WNOHANG) };
        assert_eq!((waited, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::ECHILD)));
        assert_eq!(end(&mut detached).unwrap().code(), Some(7));
    }

    #[test]
    fn a_process_runs_on_or_is_killed() {
        let is_gone = |process: libc::pid_t| crate::process::start_time(process as u64).is_none();
        for is_killed in [true, false] {
            let mut detached = start("while :; do sleep 0.01; done");
            let deadline = Instant::now() + Duration::from_secs(60);
            while detached.process.is_none() {
                assert!(detached.try_wait().unwrap().is_none() && Instant::now() < deadline);
            }
            let process = detached.process.unwrap();
            match is_killed {
                true => detached.kill(),
                false => {
                    drop(detached);
                    assert!(!is_gone(process));
                    // SAFETY: a number of a process that this has started.
                    unsafe { libc::kill(process, libc::SIGKILL) };
                }
            }
            while !is_gone(process) {
                assert!(Instant::now() < deadline, "it does not end");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn what_cannot_be_executed_is_an_error() {
        let program = Program {
            path: "/no/such/program".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            messages: std::fs::File::create("/dev/null").unwrap().into(),
        };
        let mut detached = Detached::start(program).unwrap();
        assert_eq!(end(&mut detached).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
