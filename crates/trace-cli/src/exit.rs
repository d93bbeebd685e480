//! Exit codes of all commands.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | success |
//! | 1 | the tool failed; `check`: problems; `assert`: failed; `ab`: slower; `measure`, `record`: no sample |
//! | 2 | the command line is wrong; `check`, `assert`: the trace cannot be read; `ab`: a run failed |
//! | 3 | `manager`: another one has the runtime directory; `assert`, `ab`: the traces cannot tell |
//! | 4 | `record --fail-on-loss`: something was lost |
//! | 5 | `record`: the command was run, and no program was recorded |
//! | 125 | `record`: the tool failed |
//! | 126 | `record`: the command cannot be executed |
//! | 127 | `record`: the command was not found |
//! | 128 + n | `record`: signal n ended the command before the recording was over; 130: given up by Ctrl-C |
//! | else | `record`: what the command returned |

use crate::stdio::say;
use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use trace_protocol::controller::Refusal;

/// The tool failed.
pub const FAILURE: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// `manager`: another one has the runtime directory.
pub use trace_client::start::ALREADY_RUNNING;
/// `assert`, `ab`: the traces cannot tell.
pub const INCOMPLETE: u8 = 3;
/// `record --fail-on-loss`: something was lost.
pub const LOST: u8 = 4;
/// `record`: the command was run, and no program was recorded.
pub const NOTHING_RECORDED: u8 = 5;
/// `record`: the tool failed.
pub const RECORD_FAILURE: u8 = 125;
/// `record`: the command cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// `record`: the command was not found.
pub const NOT_FOUND: u8 = 127;
/// `record`: the tool failed, or the command could not be run.
pub const NOT_RECORDED: RangeInclusive<u8> = RECORD_FAILURE..=NOT_FOUND;
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
    /// The tool failed.
    pub fn new(text: impl Into<String>) -> Self {
        Self::with_code(FAILURE, text)
    }

    /// A failure with an exit code of its own.
    pub fn with_code(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), refusal: None }
    }

    /// The command line is wrong.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::with_code(USAGE, text)
    }

    /// The same failure while recording.
    #[must_use]
    pub fn in_record(self) -> Self {
        let code = if self.code == FAILURE { RECORD_FAILURE } else { self.code };
        Self { code, ..self }
    }

    /// Prints it on stderr, in one line.
    pub fn report(&self) -> ExitCode {
        say!("trace: {}", self.text.replace('\n', " "));
        ExitCode::from(self.code)
    }
}

/// The exit code for the end of a command.
pub fn of_command(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| SIGNAL_BASE + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
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

    #[test]
    fn failures_while_recording_have_a_code_of_their_own() {
        assert_eq!(Failure::new("x").in_record().code, 125);
        assert_eq!(Failure::usage("x").in_record().code, 2);
        let not_found = Failure::with_code(NOT_FOUND, "x");
        assert_eq!(not_found.in_record().code, 127);
    }
}
