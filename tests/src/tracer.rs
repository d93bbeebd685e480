//! Runs a program up to the Nth system call of one of its threads, so that it can be killed right before or
//! after it.

use crate::sandbox::{DEADLINE, Process};
use crate::scene::freeze;
use crate::wait_for;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a thread may be left standing at a system call before it is looked at.
const INTERVAL: Duration = Duration::from_micros(50);

/// A thread that is to have a name has it after so many system calls.
const NAMED_AFTER: u32 = 50;

/// A side of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It will not be made.
    Before,
    /// It was made, and the program does not know.
    After,
}

/// A program that stands still at each system call of one thread.
///
/// All of it has to be used by the thread that made it: the kernel asks for that.
pub struct Tracer {
    process: Pid,
    /// The thread whose system calls count, by its name.
    name: &'static str,
    /// All threads, and how many system calls they have made that were looked at.
    threads: BTreeMap<Pid, u32>,
    /// System calls that the thread has begun.
    pub calls: u64,
}

/// A command that does not begin before [`Tracer::new`] lets it.
#[must_use]
pub fn held(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill -STOP $$; exec \"$0\" \"$@\""]).arg(command.get_program());
    shell.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

impl Tracer {
    /// Takes hold of a process of a command that was [`held`], and lets it go.
    ///
    /// # Panics
    /// If the kernel does not allow it.
    #[must_use]
    pub fn new(process: &Process, name: &'static str) -> Self {
        wait_for("the command to hold", || is_stopped(process.pid()).then_some(()));
        freeze(process.pid());
        let pid = Pid::from_raw(i32::try_from(process.pid()).expect("a pid"));
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(pid, options).expect("it can be traced");
        kill(pid, Signal::SIGCONT).expect("it is there");
        Self { process: pid, name, threads: BTreeMap::from([(pid, 0)]), calls: 0 }
    }

    /// Goes on to a side of the Nth system call, and says which call it is. None when `is_over` first, or
    /// when the process has ended; it is asked again and again.
    ///
    /// # Panics
    /// If nothing moves for too long.
    pub fn run_to(&mut self, call: u64, side: Side, is_over: impl FnMut() -> bool) -> Option<u64> {
        self.run_until(is_over, |calls, is_entry, _| calls == call && is_entry == (side == Side::Before))
    }

    /// Goes on to the process's end, and returns the numbers of the thread's system calls.
    ///
    /// # Panics
    /// If nothing moves for too long.
    pub fn run_to_end(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        self.run_until(
            || false,
            |_, is_entry, thread| {
                all.extend(is_entry.then(|| number(thread)));
                false
            },
        );
        all
    }

    /// Goes on until the thread stands at a call that is wanted: how many calls it has made, whether it is
    /// about to make that one, and which thread it is.
    fn run_until(
        &mut self,
        mut is_over: impl FnMut() -> bool,
        mut is_it: impl FnMut(u64, bool, Pid) -> bool,
    ) -> Option<u64> {
        // Each of some thousand stops waits for its turn twice, on a busy machine.
        let end = Instant::now() + 10 * DEADLINE;
        let mut deadline = Instant::now() + DEADLINE;
        while !is_over() && !self.threads.is_empty() {
            assert!(Instant::now() < deadline, "the program neither comes to the call nor ends");
            let threads: Vec<Pid> = self.threads.keys().copied().collect();
            let mut has_moved = false;
            for thread in threads {
                let flags = WaitPidFlag::__WALL | WaitPidFlag::WNOHANG;
                let status = match waitpid(thread, Some(flags)) {
                    Ok(WaitStatus::StillAlive) => continue,
                    Ok(status) => status,
                    Err(_) => {
                        self.threads.remove(&thread);
                        continue;
                    }
                };
                has_moved = true;
                if let Some(number) = self.handle(thread, status, &mut is_it) {
                    return Some(number);
                }
            }
            match has_moved {
                true => deadline = end.min(Instant::now() + DEADLINE),
                false => std::thread::park_timeout(INTERVAL),
            }
        }
        None
    }

    /// Lets a thread go on that has stopped, unless it is where it is wanted.
    fn handle(
        &mut self,
        thread: Pid,
        status: WaitStatus,
        is_it: &mut impl FnMut(u64, bool, Pid) -> bool,
    ) -> Option<u64> {
        let mut signal = None;
        let name = fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
        let name = name.trim();
        match status {
            WaitStatus::PtraceSyscall(_) => {
                let is_entry =
                    ptrace::syscall_info(thread).is_ok_and(|info| info.op == libc::PTRACE_SYSCALL_INFO_ENTRY);
                *self.threads.entry(thread).or_default() += u32::from(is_entry);
                if name == self.name {
                    self.calls += u64::from(is_entry);
                    if is_it(self.calls, is_entry, thread) {
                        return Some(number(thread));
                    }
                }
            }
            WaitStatus::PtraceEvent(_, _, event) if event == Event::PTRACE_EVENT_CLONE as i32 => {
                if let Ok(new) = ptrace::getevent(thread) {
                    self.threads.insert(Pid::from_raw(i32::try_from(new).expect("a tid")), 0);
                }
            }
            WaitStatus::Stopped(_, delivered) => signal = Some(delivered),
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                self.threads.remove(&thread);
                return None;
            }
            _ => {}
        }
        // Which thread it is shows when it has given itself its name.
        let is_wanted =
            name == self.name || self.threads.get(&thread).is_none_or(|calls| *calls < NAMED_AFTER);
        let resume = if is_wanted { ptrace::syscall } else { ptrace::cont };
        // It may have been killed meanwhile.
        let _ = resume(thread, signal);
        None
    }

    /// Kills the process where it stands, and waits until all its threads are gone.
    ///
    /// # Panics
    /// If they do not go.
    pub fn kill(mut self) {
        let _ = kill(self.process, Signal::SIGKILL);
        self.threads.remove(&self.process);
        wait_for("all threads to die", || {
            self.threads.retain(|thread, _| {
                let status = waitpid(*thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG));
                !matches!(status, Err(_) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)))
            });
            // Including those that it had just begun, and that were not reported yet: as long as one is not
            // waited for, the process is not over.
            let others = tasks(self.process).into_iter().filter(|thread| *thread != self.process);
            self.threads.extend(others.map(|thread| (thread, 0)));
            // While threads end, the list may leave out others.
            (self.threads.is_empty() && number_of_threads(self.process) <= 1).then_some(())
        });
    }
}

/// The threads of a process that have not been waited for.
fn tasks(process: Pid) -> Vec<Pid> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid::from_raw).collect()
}

/// How many threads a process has that have not been waited for, its first one among them.
fn number_of_threads(process: Pid) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// The number of the system call that a thread stands at.
fn number(thread: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}
