//! From arguments to a command, or to a line that says what is wrong.

use super::{Cli, help, removed};
use crate::shell::exit::Failure;
use crate::shell::stdio;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Error, FromArgMatches};
use std::ffi::OsString;
use std::process::ExitCode;

/// The parser, with a short help where a command has many options.
pub fn parser() -> Command {
    with(help::shortened)
}

/// The parser for manual pages, which have all options.
pub fn described() -> Command {
    with(help::with_help_all)
}

/// The parser with a change to the commands that have many options.
fn with(change: fn(Command) -> Command) -> Command {
    ["record", "start", "live"].iter().fold(Cli::command(), |cli, name| cli.mut_subcommand(name, change))
}

/// Parses the arguments of the process, and returns the name of the command, too.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<(Cli, String), Error> {
    let mut parser = parser();
    let matches = parser.try_get_matches_from_mut(machine_behind_command(arguments))?;
    let name = matches.subcommand_name().unwrap_or_default().to_owned();
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut parser))?;
    Ok((cli, name))
}

/// The arguments with `--machine json` behind the command, before which ffx has it.
fn machine_behind_command(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let words = match arguments.get(1).and_then(|first| first.to_str()) {
        Some("--machine") => 2,
        Some(first) if first.starts_with("--machine=") => 1,
        _ => return arguments,
    };
    if arguments.len() > 1 + words {
        arguments[1..2 + words].rotate_left(words);
    }
    arguments
}

/// An error of the command line in one line, with what would be correct.
pub fn line(error: &Error, arguments: impl IntoIterator<Item = OsString>) -> String {
    let text = error.to_string();
    let lines: Vec<_> = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:")).collect();
    let joined = lines.iter().filter(|line| !line.is_empty()).copied().collect::<Vec<_>>().join("; ");
    // clap puts a list that follows a colon on lines of its own.
    let joined = joined.replace(":; ", ": ");
    // Names that others know are taken, and not suggested.
    let joined = joined.replace("'list-providers', ", "").replace("'list-providers'", "'list-programs'");
    let line = joined.strip_prefix("error: ").unwrap_or(&joined);
    let line = line.strip_suffix("; For more information, try '--help'.").unwrap_or(line);
    // A value that begins with a hyphen is no command.
    match line.split_once("; tip: to pass '-") {
        Some((line, tip)) if is_short(tip, arguments) => format!("{line}{}", near_options(error, tip)),
        Some((line, tip)) if !tip.starts_with('-') => {
            format!("{line}; for a file whose name begins with a hyphen, use -o ./-NAME")
        }
        Some((line, _)) => line.to_owned(),
        None => line.to_owned(),
    }
}

/// Whether what is unknown is an option of another tool's: a hyphen and a letter, or a number, alone, and not
/// the beginning of a longer argument.
fn is_short(behind_hyphen: &str, arguments: impl IntoIterator<Item = OsString>) -> bool {
    let argument = behind_hyphen.split('\'').next().unwrap_or_default();
    let whole = OsString::from(format!("-{argument}"));
    argument.parse::<f64>().is_ok() || arguments.into_iter().any(|argument| argument == whole)
}

/// Options of the command that begin with the letter of an unknown one.
fn near_options(error: &Error, behind_hyphen: &str) -> String {
    let text = error.to_string();
    // `Usage: trace record [OPTIONS] …`
    let words = text.lines().find_map(|line| line.strip_prefix("Usage: trace "));
    let name = words.and_then(|words| words.split(' ').next()).unwrap_or_default();
    let command = Cli::command();
    let arguments = command.find_subcommand(name).into_iter().flat_map(Command::get_arguments);
    let names = arguments.filter(|argument| !argument.is_hide_set()).filter_map(clap::Arg::get_long);
    let first = behind_hyphen.chars().next().unwrap_or_default().to_ascii_lowercase();
    let near: Vec<String> =
        names.filter(|name| name.starts_with(first)).map(|name| format!("--{name}")).collect();
    match near.is_empty() {
        true => String::new(),
        false => format!("; there are {}", near.join(", ")),
    }
}

/// Help and version go to stdout; an error is one line on stderr.
pub fn refuse(error: &Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            let text = if console::colors_enabled() { text.ansi().to_string() } else { text.to_string() };
            stdio::print(&text).map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
        }
        // With a line that says why it is a failure.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let text = Cli::command().render_help();
            let text = if console::colors_enabled() { text.ansi().to_string() } else { text.to_string() };
            let printed = stdio::print(&format!("{text}\n"));
            printed.map_or_else(|failure| failure.report(), |()| Failure::usage("no command given").report())
        }
        _ => {
            let line = removed::answer(error)
                .unwrap_or_else(|| format!("{}; see --help", line(error, std::env::args_os())));
            Failure::usage(line).report()
        }
    }
}
