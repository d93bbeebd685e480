//! Spellings that are no more, with those that took their place.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options by their command, and what to give instead.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("ab", "--keep", "it is --save-runs DIR"),
    ("live", "--name", NAMES),
    ("query", "--output", "a format is --format FORMAT, and a file is where the shell redirects stdout"),
    ("query", "--sql-file", "it is --file FILE"),
    ("record", "--name", NAMES),
    ("live", "--provider", PROGRAM),
    ("record", "--provider", PROGRAM),
    ("start", "--provider", PROGRAM),
    ("start", "--name", "the name of a recording is --label NAME"),
];
const NAMES: &str = "names cannot be chosen while recording, because programs switch events by category: give \
                     --category LIST, and choose names when you look at the trace, as with trace stats --name";

const PROGRAM: &str = "--program NAME chooses the programs of a recording";

/// Commands, and what to give instead.
const COMMANDS: &[(&str, &str)] = &[("config", "trace record --print-config")];

/// What took the place of a spelling that is unknown now.
pub fn answer(error: &Error) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let unknown = context(ContextKind::InvalidArg)?;
            let usage = error.get(ContextKind::Usage)?.to_string();
            let words = usage.split("Usage: trace ").nth(1)?;
            let command = words.split_whitespace().next()?;
            let of = |(name, option, _): &&(&str, &str, &str)| *name == command && *option == unknown;
            let (_, option, instead) = OPTIONS.iter().find(of)?;
            Some(format!("trace {command} has no {option} any more: {instead}"))
        }
        ErrorKind::InvalidSubcommand => {
            let unknown = context(ContextKind::InvalidSubcommand)?;
            let (command, instead) = COMMANDS.iter().find(|(command, _)| *command == unknown)?;
            Some(format!("there is no trace {command} any more: it is {instead}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;

    #[test]
    fn every_removed_spelling_is_answered_with_the_new_one() {
        for (command, option, instead) in OPTIONS {
            let error = Cli::try_parse_from(["trace", command, option, "x"]).expect_err("it is removed");
            assert_eq!(answer(&error), Some(format!("trace {command} has no {option} any more: {instead}")));
        }
        for (command, instead) in COMMANDS {
            let error = Cli::try_parse_from(["trace", command]).expect_err("it is removed");
            assert_eq!(
                answer(&error),
                Some(format!("there is no trace {command} any more: it is {instead}"))
            );
        }
    }
}
