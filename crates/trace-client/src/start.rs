//! Starts a manager that ends when it is not needed any more.

use crate::connection::connect;
use crate::error::{Error, Result};
use rustix::fs::Access;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trace_protocol::names::RUNTIME_VARIABLE;
use zx_sim::guest::detached::{Detached, Program};
use zx_sim::{Channel, RuntimeDir};

/// The messages of a manager that was started on demand.
const LOG: &str = "manager.log";
/// The name of the executable.
const TOOL: &str = "trace";
/// How long a manager may take to start, on the busiest machine: one that cannot start reports that.
const START_WAIT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// How long one that was faster is given to listen.
const RESTART_INTERVAL: Duration = Duration::from_millis(200);
/// The exit code of a manager in whose directory another one runs. Programs that fail have other ones.
pub const ALREADY_RUNNING: u8 = 3;

/// The executable `trace`, in which the manager is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tool {
    /// The first in the directories of PATH.
    #[default]
    InPath,
    /// This one.
    At(PathBuf),
    /// The running program, which is `trace` itself.
    ThisProgram,
}

impl Tool {
    fn path(&self) -> Result<PathBuf> {
        match self {
            Self::InPath => find_in_path(Path::new(TOOL)).ok_or(Error::NoTool),
            // A name alone is looked for, too.
            Self::At(path) => {
                let found = path.parent().filter(|parent| parent.as_os_str().is_empty());
                Ok(found.and_then(|_| find_in_path(path)).unwrap_or_else(|| path.clone()))
            }
            Self::ThisProgram => std::env::current_exe().map_err(Error::CannotStart),
        }
    }
}

fn find_in_path(name: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // An empty entry is the current directory, where anything may be.
    let directories = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    let mut files = directories.map(|directory| directory.join(name));
    files.find(|file| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok())
}

/// Starts a manager in a directory, and connects to it. One for all users finds its directory itself.
pub(crate) fn start_manager(directory: &Path, tool: &Tool, is_for_all: bool) -> Result<Channel> {
    let tool = tool.path()?;
    let failed = |source| Error::Directory { directory: directory.to_owned(), source };
    let open = if is_for_all { RuntimeDir::open_or_create_for_all } else { RuntimeDir::open_or_create };
    let runtime = open(directory).map_err(failed)?;
    // Another client's manager may be writing it at this moment.
    let log = runtime.append_to_file(LOG)?;
    let mut manager = start(&tool, directory, &log, is_for_all)?;
    let deadline = Instant::now() + START_WAIT;
    loop {
        if let Some(channel) = connect(directory, None)? {
            return Ok(channel);
        }
        match manager.try_wait() {
            Ok(None) => {}
            // Another client's manager was faster, and will listen in a moment, unless it dies before.
            Ok(Some(status)) if status.code() == Some(ALREADY_RUNNING.into()) => {
                std::thread::sleep(RESTART_INTERVAL);
                if let Some(channel) = connect(directory, None)? {
                    return Ok(channel);
                }
                manager = start(&tool, directory, &log, is_for_all)?;
            }
            Err(error) => return Err(Error::CannotStart(error)),
            Ok(Some(_)) => {
                let text = std::fs::read_to_string(directory.join(LOG)).unwrap_or_default();
                let why = text.lines().last().unwrap_or("it reported no reason").to_owned();
                return Err(Error::DidNotStart(why));
            }
        }
        if Instant::now() >= deadline {
            manager.kill();
            return Err(Error::StartTimeout(START_WAIT));
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
}

fn start(tool: &Path, directory: &Path, log: &File, is_for_all: bool) -> Result<Detached> {
    let messages = log.try_clone().map_err(Error::CannotStart)?.into();
    let mut arguments = vec!["trace-manager", "manager", "--on-demand"];
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    environment.retain(|(name, _)| name != RUNTIME_VARIABLE);
    if is_for_all {
        // Where it has the buffers is a directory of root's own.
        arguments.push("--all-users");
    } else {
        environment.push((RUNTIME_VARIABLE.into(), directory.into()));
    }
    let arguments = arguments.into_iter().map(OsString::from).collect();
    let program = Program { path: tool.into(), arguments, environment, messages };
    Detached::start(program).map_err(Error::CannotStart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_not_there_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let tool = Tool::At(directory.path().join("trace"));
        let error = start_manager(&directory.path().join("run"), &tool, false).unwrap_err();
        assert_eq!(error.to_string(), "cannot start a trace manager");
        // One that ends says why.
        let tool = Tool::At("/bin/false".into());
        let error = start_manager(&directory.path().join("run"), &tool, false).unwrap_err();
        assert_eq!(error.to_string(), "the trace manager did not start: it reported no reason");
    }
}
