//! A recording of the command's own: `trace record` beside it, with the same options.

use crate::exit::{self, Failure};
use crate::stdio;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
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
    command.arg("record").args(arguments);
    Ok(command)
}

fn cannot_start(error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot start trace record: {error}")).in_record()
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
            // Its pid stays reserved until it is waited for.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, and prints what it has printed. Its exit code.
    pub fn finish(mut self) -> Result<u8, Failure> {
        let status = self.child.wait();
        if let Some((printed, end)) = self.printed.take() {
            let _ = end.recv_timeout(REST_WAIT);
            let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
            if printed.left_out > 0 {
                stdio::say!("trace: {} bytes of output before this are left out", printed.left_out);
            }
            stdio::report(&String::from_utf8_lossy(printed.bytes.make_contiguous()));
        }
        let code = status.map(exit::of_command);
        let code = code.map_err(|error| Failure::new(format!("cannot wait for trace record: {error}")))?;
        // The command has ended as it was asked to.
        Ok(if self.state == State::Stopping && code == TERMINATED { 0 } else { code })
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
    fn the_last_output_is_kept() {
        let mut printed = Printed::default();
        printed.push(&[b'a'; 1000]);
        printed.push(&vec![b'b'; KEPT_BYTES]);
        assert_eq!((printed.bytes.len(), printed.left_out), (KEPT_BYTES, 1000));
        assert!(printed.bytes.iter().all(|byte| *byte == b'b'));
    }
}
