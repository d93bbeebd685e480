//! The command that is recorded.

use crate::connection;
use crate::shell::exit::{Failure, NOT_EXECUTABLE, NOT_FOUND};
use crate::shell::stdio;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use trace_archive::problem;
use trace_protocol::names::{MANAGER_FD_VARIABLE, RECORD_VARIABLE, RUNTIME_VARIABLE};
use zx_sim::ProcessFd;

/// Where the C library looks for commands without the variable.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A connection that commands inherit.
fn shared(runtime_dir: &Path) -> Result<zx_sim::Channel, Failure> {
    connection::shared(runtime_dir)
        .map_err(|error| Failure::new(format!("--manager-fd: {}", problem(&error))))
}

/// A running command.
#[derive(Debug)]
pub struct RecordedCommand {
    child: Child,
    /// Readable when the command has ended, until it is waited for.
    process: Option<ProcessFd>,
    name: String,
    /// Whether it was sent a signal that ends it.
    was_ended: Cell<bool>,
}

/// Whether a command can be executed, as far as that shows before.
pub fn check(command: &[String]) -> Result<(), Failure> {
    let Some(program) = command.first() else {
        return Ok(());
    };
    if path_of(program).is_some() {
        return Ok(());
    }
    let is_there = paths_of(program).iter().any(|path| path.exists());
    Err(cannot_run(program, if is_there { Errno::ACCESS } else { Errno::NOENT }.into()))
}

/// The file that is executed for a program's name.
pub fn path_of(program: &str) -> Option<PathBuf> {
    let flags = AtFlags::EACCESS;
    let may_run = |path: &PathBuf| path.is_file() && accessat(CWD, path, Access::EXEC_OK, flags).is_ok();
    paths_of(program).into_iter().find(may_run)
}

fn paths_of(program: &str) -> Vec<PathBuf> {
    if program.contains('/') {
        return vec![PathBuf::from(program)];
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    std::env::split_paths(&path).map(|directory| directory.join(program)).collect()
}

fn cannot_run(program: &str, error: std::io::Error) -> Failure {
    let (code, what) = match error.kind() {
        ErrorKind::NotFound => (NOT_FOUND, "command not found".to_owned()),
        _ => (NOT_EXECUTABLE, format!("command cannot be executed: {error}")),
    };
    Failure::with_code(code, format!("{program}: {what}"))
}

impl RecordedCommand {
    /// Starts a command whose providers find the manager of a runtime directory. If stdout is used for the
    /// trace, the command's output goes to stderr.
    pub fn spawn(
        command: &[String],
        runtime_dir: &Path,
        is_stdout_taken: bool,
        shares_manager: bool,
    ) -> Result<Option<Self>, Failure> {
        let Some((program, arguments)) = command.split_first() else {
            return Ok(None);
        };
        let mut child = Command::new(program);
        child.args(arguments).env(RUNTIME_VARIABLE, runtime_dir).env(RECORD_VARIABLE, "1");
        // Open until the command has been started.
        let shared = shares_manager.then(|| shared(runtime_dir)).transpose()?;
        match &shared {
            Some(shared) => child.env(MANAGER_FD_VARIABLE, shared.as_fd().as_raw_fd().to_string()),
            None => child.env_remove(MANAGER_FD_VARIABLE),
        };
        if is_stdout_taken {
            let stderr = stdio::duplicate_stderr();
            child.stdout(stderr.map_err(|error| Failure::new(format!("cannot duplicate stderr: {error}")))?);
        }
        let mut child = child.spawn().map_err(|error| cannot_run(program, error))?;
        drop(shared);
        match ProcessFd::open(child.id()) {
            Ok(process) => {
                let (name, was_ended) = (program.clone(), Cell::new(false));
                Ok(Some(Self { child, process: Some(process), name, was_ended }))
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(Failure::new(format!("{program}: {error}")))
            }
        }
    }

    /// A descriptor that becomes readable when it has ended, once.
    pub fn take_process(&mut self) -> Option<ProcessFd> {
        self.process.take()
    }

    /// Its process.
    pub fn pid(&self) -> u64 {
        u64::from(self.child.id())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Whether a signal from this tool ended it.
    pub fn has_obeyed(&self, status: ExitStatus) -> bool {
        let ours = [Signal::TERM, Signal::KILL].map(Signal::as_raw);
        self.was_ended.get() && status.signal().is_some_and(|signal| ours.contains(&signal))
    }

    fn signal(&self, signal: Signal) {
        self.was_ended.set(true);
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended just now; its pid stays reserved until it is waited for.
            let _ = kill_process(pid, signal);
        }
    }
}
