//! A recording that a client has asked for: `trace record` in a process of its own.
//!
//! It writes into a file that the server has made, so that nothing decides meanwhile where the trace goes.
//= docs/mcp.md#recording

use super::error::CallError;
use super::jail::Jail;
use super::tools::{Arguments, RECORD};
use crate::files::output::OutputFile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use serde_json::{Map, Value};
use std::io::{Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest recording.
pub const MAX_SECONDS: u64 = 600;
/// The same of a command, unless the client says something else.
const COMMAND_SECONDS: f64 = 60.0;
/// How long a recording may take to begin and to end, besides.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to end when it is stopped, before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// What is kept of the messages: their end.
const PRINTED_BYTES: usize = 500;
const CHUNK_BYTES: usize = 4096;

/// A recording.
#[derive(Debug)]
pub struct Recording {
    /// The number of the call.
    pub number: u64,
    /// The path of the trace, as the client has named it.
    pub path: String,
    child: Child,
    /// Becomes readable when the process has ended.
    end: OwnedFd,
    messages: Option<ChildStderr>,
    printed: Vec<u8>,
    output: Option<OutputFile>,
    deadline: Instant,
    is_stopping: bool,
    is_over: bool,
}

impl Recording {
    /// Begins one.
    pub fn start(jail: &Jail, number: u64, arguments: &Map<String, Value>) -> Result<Self, CallError> {
        let arguments = Arguments { tool: RECORD, arguments };
        arguments.check_names()?;
        let path = arguments.required("output")?.to_owned();
        let strings = |name: &str| match arguments.arguments.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(all)) => {
                let texts =
                    all.iter().map(|one| one.as_str().filter(|text| !text.contains('\0')).map(str::to_owned));
                texts
                    .collect::<Option<Vec<String>>>()
                    .ok_or_else(|| CallError::expected(name, "a list of texts"))
            }
            Some(_) => Err(CallError::expected(name, "a list of texts")),
        };
        let (command, categories) = (strings("command")?, strings("categories")?);
        let seconds = match arguments.arguments.get("duration_s") {
            None | Some(Value::Null) if command.is_empty() => {
                return Err(CallError::Missing { argument: "duration_s or command".to_owned() });
            }
            None | Some(Value::Null) => COMMAND_SECONDS,
            Some(value) => value.as_f64().unwrap_or(0.0),
        };
        // Also not of something that is not a number.
        if !(seconds > 0.0 && seconds <= MAX_SECONDS as f64) {
            let expected = format!("a number above 0, and at most {MAX_SECONDS}");
            return Err(CallError::expected("duration_s", expected));
        }
        if !path.ends_with(".fxt") {
            let argument = format!("output: {path}");
            return Err(CallError::Expected { argument, expected: "a name that ends in .fxt".to_owned() });
        }
        let file = jail.new_file(&path).map_err(|error| CallError::Output { path: path.clone(), error })?;
        let mut output = OutputFile::create_in(file.directory, file.path, file.name)
            .map_err(crate::shell::exit::Failure::from)?;
        let failed = CallError::Record;
        let tool = std::env::current_exe().map_err(failed)?;
        let mut recorder = Command::new(tool);
        let millis = (seconds * 1000.0).ceil();
        recorder.args([
            "record",
            "--parent",
            &std::process::id().to_string(),
            "-o",
            "-",
            "--return-child-result=false",
            "--duration",
            &format!("{millis}ms"),
        ]);
        if !categories.is_empty() {
            recorder.arg(format!("--categories={}", categories.join(",")));
        }
        if !command.is_empty() {
            recorder.arg("--").args(&command);
        }
        if let Some(directory) = jail.paths().next() {
            recorder.current_dir(directory);
        }
        // The command is in the same group, and ends with it.
        recorder.process_group(0).stdin(Stdio::null()).stderr(Stdio::piped());
        recorder.stdout(output.file().try_clone().map_err(failed)?);
        let mut child = recorder.spawn().map_err(failed)?;
        let messages = child.stderr.take();
        let end = pidfd_open(pid(&child), PidfdFlags::empty()).map_err(|error| {
            let _ = kill_process_group(pid(&child), Signal::KILL);
            failed(error.into())
        })?;
        let deadline = Instant::now() + Duration::from_secs_f64(seconds) + PATIENCE;
        let output = Some(output);
        let (printed, is_stopping, is_over) = (Vec::new(), false, false);
        Ok(Self { number, path, child, end, messages, printed, output, deadline, is_stopping, is_over })
    }

    /// Becomes readable when the recording is over.
    pub fn end(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// Where messages come; none once there will be no more.
    pub fn messages(&self) -> Option<BorrowedFd<'_>> {
        self.messages.as_ref().map(AsFd::as_fd)
    }

    /// When it has to be [pressed](Self::press).
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Takes messages that have come.
    pub fn read(&mut self) {
        let Some(messages) = &mut self.messages else { return };
        let mut chunk = [0; CHUNK_BYTES];
        match messages.read(&mut chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) | Ok(0) => self.messages = None,
            Ok(length) => {
                self.printed.extend_from_slice(&chunk[..length]);
                let surplus = self.printed.len().saturating_sub(PRINTED_BYTES);
                self.printed.drain(..surplus);
            }
        }
    }

    /// Ends it without a result, and leaves no file.
    pub fn stop(&mut self) {
        if !self.is_stopping {
            self.is_stopping = true;
            self.deadline = Instant::now() + GRACE;
            self.output = None;
            let _ = kill_process_group(pid(&self.child), Signal::TERM);
        }
    }

    /// Ends it after its time: in a way that it can follow first.
    pub fn press(&mut self) {
        if self.is_stopping {
            let _ = kill_process_group(pid(&self.child), Signal::KILL);
            self.deadline = Instant::now() + GRACE;
        } else {
            self.stop();
        }
    }

    /// The result, once the recording is over: what it has printed, or why it failed.
    pub fn finish(mut self) -> Result<String, CallError> {
        let status = self.child.wait().map_err(CallError::Record)?;
        self.is_over = true;
        // The command may have left processes that hold the pipe open.
        while self.messages.as_ref().is_some_and(has_more) {
            self.read();
        }
        let printed = String::from_utf8_lossy(&self.printed).trim().to_owned();
        let Some(mut output) = self.output.take() else {
            return Err(CallError::RecordingTooLong);
        };
        if !status.success() {
            return Err(CallError::RecordingFailed { status, printed });
        }
        if output.file().stream_position().is_ok_and(|written| written == 0) {
            return Err(CallError::RecordingEmpty { printed });
        }
        output.finish().map_err(crate::shell::exit::Failure::from)?;
        Ok(printed)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.stop();
        let limit = Timespec { tv_sec: GRACE.as_secs() as i64, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(&self.end, PollFlags::IN)], Some(&limit));
        let _ = kill_process_group(pid(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

fn has_more(messages: &ChildStderr) -> bool {
    let mut waits = [PollFd::new(messages, PollFlags::IN)];
    matches!(poll(&mut waits, Some(&Timespec::default())), Ok(1..))
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}
