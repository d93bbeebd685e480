//! A recording of the command's own: `trace record` beside it, with the same options.

use crate::shell::exit::{self, Failure};
use crate::shell::stdio;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much of what the recorded command prints is shown when the screen is gone.
const KEPT_BYTES: usize = 64 << 10;
/// The exit code of `trace record` when SIGTERM has ended its command.
const TERMINATED: u8 = 128 + 15;
/// How long to wait for the rest of it: a command that was detached may keep its end for ever.
const REST_WAIT: Duration = Duration::from_millis(500);

/// The arguments for `trace record`: all but the options that only `trace live` has. The last ones are those
/// of the command.
pub fn arguments(all: impl IntoIterator<Item = OsString>, of_command: usize) -> Vec<OsString> {
    let mut options: Vec<OsString> = all.into_iter().skip(2).collect();
    let command = options.split_off(options.len().saturating_sub(of_command));
    let mut arguments = Vec::new();
    let mut options = options.into_iter();
    while let Some(argument) = options.next() {
        if argument == "--interval" {
            options.next();
        } else if argument != "--json" && !argument.as_encoded_bytes().starts_with(b"--interval=") {
            arguments.push(argument);
        }
    }
    arguments.extend(command);
    arguments
}

fn record(arguments: &[OsString]) -> Result<Command, Failure> {
    let tool = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find the trace tool itself: {error}")))?;
    let mut command = Command::new(tool);
    command.args(["record", "--parent", &std::process::id().to_string()]).args(arguments);
    Ok(command)
}

fn cannot_start(error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot start trace record: {error}"))
}

/// Another recording is running. `trace record` says so, and how to end it.
pub fn in_the_way(arguments: &[OsString]) -> Result<u8, Failure> {
    let status = record(arguments)?.status().map_err(|error| cannot_start(&error))?;
    Ok(exit::of_command(status))
}

/// What is going on with the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Recording,
    Stopping,
}

/// How it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Its exit code.
    pub code: u8,
    /// The trace is known to be complete: the exit code is not one of those of a recording that has failed or
    /// was given up, which those of some commands are, too.
    pub is_saved: bool,
}

impl End {
    fn of(status: ExitStatus, state: State) -> Self {
        let code = exit::of_command(status);
        let is_saved =
            status.signal().is_none() && !exit::NOT_RECORDED.contains(&code) && code != exit::INTERRUPTED;
        // The command has ended as it was asked to.
        let code = if state == State::Stopping && code == TERMINATED { 0 } else { code };
        Self { code, is_saved }
    }
}

/// The recording.
pub struct Own {
    child: Child,
    printed: Option<(Arc<Mutex<Printed>>, Receiver<()>)>,
    state: State,
}

/// The last that the recording and its command have printed.
#[derive(Default)]
struct Printed {
    bytes: VecDeque<u8>,
    left_out: u64,
}

impl Printed {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let extra = self.bytes.len().saturating_sub(KEPT_BYTES);
        self.bytes.drain(..extra);
        self.left_out += extra as u64;
    }
}

/// Where goes what the recording and its command print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// It is kept until the end.
    Kept,
    /// To stderr, beside lines of JSON.
    Stderr,
    /// Where it went without this command.
    Same,
}

impl Own {
    /// Begins a recording.
    pub fn begin(arguments: &[OsString], output: Output) -> Result<Self, Failure> {
        let mut command = record(arguments)?;
        command.stdin(Stdio::null());
        if output != Output::Kept {
            if output == Output::Stderr {
                command.stdout(stdio::duplicate_stderr().map_err(|error| cannot_start(&error))?);
            } else {
                // Ctrl-C is for this command, which passes it on once.
                command.process_group(0);
            }
            let child = command.spawn().map_err(|error| cannot_start(&error))?;
            return Ok(Self { child, printed: None, state: State::Recording });
        }
        let (mut reader, writer) = std::io::pipe().map_err(|error| cannot_start(&error))?;
        command.stdout(writer.try_clone().map_err(|error| cannot_start(&error))?).stderr(writer);
        let child = command.spawn().map_err(|error| cannot_start(&error))?;
        drop(command);
        let printed = Arc::new(Mutex::new(Printed::default()));
        let (ended, end) = channel();
        let kept = printed.clone();
        let thread = std::thread::Builder::new().name("trace-output".to_owned());
        let reading = thread.spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(&bytes[..read]);
            }
            drop(ended);
        });
        reading.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
        Ok(Self { child, printed: Some((printed, end)), state: State::Recording })
    }

    /// Has it end, and saved; or, the second time, given up.
    pub fn stop(&mut self) {
        self.state = State::Stopping;
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Its pid stays reserved until it is waited for. One that was stopped ends, too.
            let _ = kill_process(pid, Signal::TERM);
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, and prints what it has printed.
    pub fn finish(mut self) -> Result<End, Failure> {
        let status = self.child.wait();
        if let Some((printed, end)) = self.printed.take() {
            let _ = end.recv_timeout(REST_WAIT);
            let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
            if printed.left_out > 0 {
                stdio::say!("trace: {} bytes of output before this are left out", printed.left_out);
            }
            stdio::report(&String::from_utf8_lossy(printed.bytes.make_contiguous()));
        }
        let status =
            status.map_err(|error| Failure::new(format!("cannot wait for trace record: {error}")))?;
        Ok(End::of(status, self.state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_live_are_not_those_of_record() {
        let of = |line: &str, of_command| arguments(line.split(' ').map(OsString::from), of_command);
        assert_eq!(of("trace live", 0), Vec::<OsString>::new());
        assert_eq!(of("trace live --json --interval 1s", 0), Vec::<OsString>::new());
        assert_eq!(
            of("trace live --interval=1s -o a.fxt -- ./app --json --interval 1s", 4),
            ["-o", "a.fxt", "--", "./app", "--json", "--interval", "1s"]
        );
        assert_eq!(of("trace live --json ./app --json", 2), ["./app", "--json"]);
    }

    #[test]
    fn what_is_not_known_to_be_saved_is_not_called_so() {
        let end = |status, state| End::of(ExitStatus::from_raw(status), state);
        let ended = |code, is_saved| End { code, is_saved };
        assert_eq!(end(0, State::Recording), ended(0, true));
        assert_eq!(end(7 << 8, State::Recording), ended(7, true));
        // Its command was killed, which is not its own end.
        assert_eq!(end(137 << 8, State::Recording), ended(137, true));
        assert_eq!(end(9, State::Recording), ended(137, false));
        for code in [125, 126, 127, 130] {
            assert_eq!(end(code << 8, State::Stopping), ended(code as u8, false));
        }
        assert_eq!(end(143 << 8, State::Stopping), ended(0, true));
        assert_eq!(end(15, State::Stopping), ended(0, false));
    }

    #[test]
    fn the_last_output_is_kept() {
        let mut printed = Printed::default();
        printed.push(&[b'a'; 1000]);
        printed.push(&vec![b'b'; KEPT_BYTES]);
        assert_eq!((printed.bytes.len(), printed.left_out), (KEPT_BYTES, 1000));
        assert!(printed.bytes.iter().all(|byte| *byte == b'b'));
    }
}
