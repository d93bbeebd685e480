//! Exit codes of all commands.
//= docs/command-line.md#exit-codes

use crate::shell::stdio::say;
use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use trace_protocol::controller::Refusal;

/// All of them, and what they mean.
const TABLE: &[(&str, &str)] = &[
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

/// What commands have beside 0 and 2, and signals.
const OF_COMMANDS: &[(&[&str], &[u8])] = &[
    (&["record"], &[1, 4, 5, 125, 126, 127]),
    (&["live"], &[4, 5, 125, 126, 127]),
    (&["doctor"], &[1, 125]),
    (&["recover"], &[5, 6, 125]),
    (&["start"], &[125]),
    (&["stop", "snapshot", "flush", "dump-memory"], &[5, 125]),
    (&["status", "list-programs", "list-categories", "list-category-groups", "time"], &[125]),
    (&["report", "view", "stats", "query", "dump", "diff"], &[6, 125]),
    (&["check", "measure", "filter"], &[1, 6, 125]),
    (&["assert"], &[1, 3, 6, 125]),
    (&["ab"], &[1, 3, 6, 125]),
    (&["convert"], &[1, 4, 6, 125]),
    (&["manager"], &[3, 125]),
    (&["mcp", "ktrace", "completions", "man"], &[125]),
];

/// The rows of the table that a command has; of another name, all.
pub fn rows_of(command: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = OF_COMMANDS.iter().find(|(names, _)| names.contains(&command)).map(|(_, codes)| *codes);
    let has = move |row: &&(&str, &str)| {
        let code: u8 = row.0.split([' ', ',']).next().and_then(|code| code.parse().ok()).unwrap_or(0);
        own.is_none_or(|codes| [0, USAGE, SIGNAL_BASE as u8].contains(&code) || codes.contains(&code))
    };
    TABLE.iter().filter(has).copied()
}

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

    //= docs/command-line.md#exit-codes
    #[test]
    fn the_codes_of_commands_are_those_of_the_page() {
        let page = include_str!("../../../../docs/command-line.md");
        let row = |(names, codes): &(&[&str], &[u8])| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
            format!("| {} | {} |\n", names.join(", "), codes.join(", "))
        };
        let table =
            format!("| command | codes |\n|---|---|\n{}\n", OF_COMMANDS.iter().map(row).collect::<String>());
        assert!(page.contains(&table), "{table}");
        let codes = |command: &str| rows_of(command).map(|(code, _)| code).collect::<Vec<_>>();
        assert_eq!(codes("dump"), ["0", "2", "6", "125", "128 + n"]);
        assert_eq!(codes("live"), ["0", "2", "4", "5", "125", "126, 127", "128 + n"]);
        assert_eq!(codes("trace").len(), TABLE.len());
    }

    #[test]
    fn a_commands_end_becomes_the_tools() {
        assert_eq!(of_command(ExitStatus::from_raw(0)), 0);
        assert_eq!(of_command(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(of_command(ExitStatus::from_raw(9)), 137);
        assert_eq!(of_command(ExitStatus::from_raw(15)), 143);
    }
}
