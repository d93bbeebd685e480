//! The process that reads traces and answers questions about them.
//!
//! Traces and SQL are untrusted, and may take any time and memory: the server kills this process when a call
//! takes too long or is cancelled, and the kernel refuses it memory beyond a limit. The next call starts
//! another one. It has traces open that were asked about before.
//= docs/mcp.md#limits

use super::archive::Open;
use super::error::CallError;
use super::jail::Jail;
use super::lines::{Line, Lines};
use super::tools;
use crate::shell::exit::Failure;
use crate::shell::stdio::{Stdout, closed_is_enough};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The first argument of such a process.
pub const NAME: &str = "mcp-worker";
/// Most memory, as addresses that it may use.
const MEMORY_BYTES: u64 = 3 << 30;
/// Longest temporary file.
const FILE_BYTES: u64 = 8 << 30;
/// Bytes of a result that are read at a time.
const CHUNK_BYTES: usize = 16 << 10;

/// What the server has of the process.
#[derive(Debug)]
pub struct Worker {
    directories: Vec<PathBuf>,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    lines: Lines,
}

impl Worker {
    /// None so far: the first call starts it.
    pub const fn new(directories: Vec<PathBuf>) -> Self {
        Self { directories, process: None }
    }

    /// Begins a call.
    pub fn ask(&mut self, request: &Value) -> Result<(), CallError> {
        let process = match &mut self.process {
            Some(process) => process,
            none => none.insert(start(&self.directories).map_err(CallError::Start)?),
        };
        // It reads all of it before it does anything.
        process.input.write_all(format!("{request}\n").as_bytes()).map_err(|_| self.end())
    }

    /// Where its result comes.
    pub fn output(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(|process| process.output.as_fd())
    }

    /// Reads what has come. None while the result is not complete.
    pub fn read(&mut self) -> Option<Result<String, CallError>> {
        let process = self.process.as_mut()?;
        let mut chunk = [0; CHUNK_BYTES];
        let length = match process.output.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return None,
            Err(_) | Ok(0) => return Some(Err(self.end())),
            Ok(length) => length,
        };
        let Line::Whole(line) = process.lines.push(&chunk[..length]).into_iter().next()? else {
            return Some(Err(self.end()));
        };
        let result: Value = serde_json::from_slice(&line).unwrap_or_default();
        Some(match (result["ok"].as_str(), result["error"].as_str()) {
            (Some(text), _) => Ok(text.to_owned()),
            (None, error) => {
                let error = error.unwrap_or("the process that reads traces has failed");
                Err(CallError::There(error.to_owned()))
            }
        })
    }

    /// Ends the process, whatever it does.
    pub fn kill(&mut self) {
        self.end();
    }

    /// Why it has ended, or was ended.
    fn end(&mut self) -> CallError {
        let gibibytes = MEMORY_BYTES >> 30;
        let Some(mut process) = self.process.take() else {
            return CallError::Ended { why: "it did not run".to_owned(), gibibytes };
        };
        let _ = process.child.kill();
        let why = match process.child.wait() {
            Ok(status) => {
                status.signal().map_or_else(|| status.to_string(), |signal| format!("signal {signal}"))
            }
            Err(error) => error.to_string(),
        };
        CallError::Ended { why, gibibytes }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start(directories: &[PathBuf]) -> io::Result<Process> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg(NAME)
        .arg(std::process::id().to_string())
        .args(directories)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let missing = || io::Error::other("it has no pipes");
    let input = child.stdin.take().ok_or_else(missing)?;
    let output = child.stdout.take().ok_or_else(missing)?;
    Ok(Process { child, input, output, lines: Lines::default() })
}

/// The process: answers a call on each line. Its arguments are the server's pid, and the directories.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    // It would otherwise finish its call before it notices that the server has died.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let server = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
    if getppid().map(Pid::as_raw_pid) != server {
        return Ok(());
    }
    let directories: Vec<PathBuf> = arguments.map(Into::into).collect();
    limit(Resource::As, MEMORY_BYTES);
    limit(Resource::Fsize, FILE_BYTES);
    limit(Resource::Core, 0);
    // Names of files in traces are untrusted.
    trace_convert::read_no_files();
    let mut open = Open::new(Jail::open(&directories)?);
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::new(format!("cannot read a call: {error}")))?;
        let request: Value = serde_json::from_str(&line).unwrap_or_default();
        let empty = serde_json::Map::new();
        let tool = request["tool"].as_str().unwrap_or_default();
        let arguments = request["arguments"].as_object().unwrap_or(&empty);
        let result = match tools::call(&mut open, tool, arguments, request["note"].as_str()) {
            Ok(text) => json!({"ok": text}),
            Err(why) => json!({"error": why.to_string()}),
        };
        let written = Stdout.write_all(format!("{result}\n").as_bytes());
        if written.is_err() {
            return closed_is_enough(written);
        }
    }
    Ok(())
}

/// Lowers a limit; one that is lower stays.
fn limit(resource: Resource, most: u64) {
    let Rlimit { current, maximum } = getrlimit(resource);
    let lower = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    let _ = setrlimit(resource, Rlimit { current: lower(current), maximum: lower(maximum) });
}
