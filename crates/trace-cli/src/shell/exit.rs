//! Exit codes of all commands.
//= docs/command-line.md#exit-codes

use crate::shell::stdio::say;
use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use trace_protocol::controller::Refusal;

/// All of them, and what they mean.
pub const TABLE: &[(&str, &str)] = &[
    ("0", "done; the answer is yes"),
    (
        "1",
        "the answer is no: a limit is broken, a trace has problems, something takes longer, there is no sample, \
         this machine cannot record",
    ),
    ("2", "the command line or a configuration is wrong; nothing was done"),
    (
        "3",
        "cannot tell: events are missing, or there are too few runs; of manager: another one has the runtime directory",
    ),
    ("4", "events were lost (record --fail-on-loss), or the output lacks something (convert --strict)"),
    ("5", "nothing is recorded: no recording runs or can be recovered, or no program was recorded"),
    ("6", "a trace cannot be read, or not all of it; what could be read was answered"),
    ("125", "the command could not do it: a full disk, a port in use, no permission"),
    ("126, 127", "the command that was to be recorded cannot be executed, or was not found"),
    ("128 + n", "signal n ended the command; 130 after Ctrl-C"),
];

/// The answer is no.
pub const NO: u8 = 1;
/// The command line, or a configuration, is wrong.
pub const USAGE: u8 = 2;
/// The traces do not tell.
pub const UNDECIDED: u8 = 3;
/// Events were lost, or the output lacks something.
pub const LOST: u8 = 4;
/// There is no recording, or no program was recorded.
pub const NOTHING_RECORDED: u8 = 5;
/// A trace cannot be read, or not to its end.
pub const UNREADABLE: u8 = 6;
/// The tool could not do it.
pub const FAILURE: u8 = 125;
/// The command that was to be recorded cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command that was to be recorded was not found.
pub const NOT_FOUND: u8 = 127;
/// The tool could not record the command, or not run it.
pub const NOT_RECORDED: RangeInclusive<u8> = FAILURE..=NOT_FOUND;
/// Aborted by the user.
pub const INTERRUPTED: u8 = 130;
const SIGNAL_BASE: i32 = 128;

/// A failure that ends the tool: one line for the user, and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// What failed, why, and what to do about it.
    pub text: String,
    /// Why the manager did not begin the recording, if that is what failed.
    pub refusal: Option<Box<Refusal>>,
}

impl Failure {
    /// The tool could not do it.
    pub fn new(text: impl Into<String>) -> Self {
        Self::with_code(FAILURE, text)
    }

    /// A failure with an exit code of its own.
    pub fn with_code(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), refusal: None }
    }

    /// The command line, or a configuration, is wrong.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::with_code(USAGE, text)
    }

    /// A trace cannot be read, or not to its end.
    pub fn unreadable(text: impl Into<String>) -> Self {
        Self::with_code(UNREADABLE, text)
    }

    /// The failure of a recording. A command that is recorded may have any code; 125 is the tool's.
    #[must_use]
    pub fn of_record(self) -> Self {
        Self { code: if self.code == UNREADABLE { FAILURE } else { self.code }, ..self }
    }

    /// There is no recording, or no program was recorded.
    pub fn nothing_recorded(text: impl Into<String>) -> Self {
        Self::with_code(NOTHING_RECORDED, text)
    }

    /// Prints it on stderr, in one line.
    pub fn report(&self) -> ExitCode {
        say!("trace: {}", self.text.replace('\n', " "));
        ExitCode::from(self.code)
    }
}

/// The exit code for the end of a command.
pub fn of_command(status: ExitStatus) -> u8 {
    let of_exit = |code| u8::try_from(code).unwrap_or(u8::MAX);
    status.code().map_or_else(|| of_signal(status.signal().unwrap_or(0)), of_exit)
}

/// The exit code for a signal.
pub fn of_signal(signal: i32) -> u8 {
    u8::try_from(SIGNAL_BASE + signal).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commands_end_becomes_the_tools() {
        assert_eq!(of_command(ExitStatus::from_raw(0)), 0);
        assert_eq!(of_command(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(of_command(ExitStatus::from_raw(9)), 137);
        assert_eq!(of_command(ExitStatus::from_raw(15)), 143);
    }
}
