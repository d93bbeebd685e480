//! The `trace` command: options, progress, advice and exit codes around the other crates.
#![forbid(unsafe_code)]

mod args;
mod check;
mod command;
mod connection;
mod convert;
mod dump;
mod exit;
mod input;
mod list;
mod manager;
mod output;
mod progress;
mod record;
mod recover;
mod summary;
mod version;

use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use exit::Failure;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    // A file that must not grow any more is an error like any other.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    if !matches!(cli.command, Command::Recover(_) | Command::Manager(_)) {
        recover::remind();
    }
    let result = match cli.command {
        Command::Record(options) => record::run(options).map_err(Failure::in_record),
        Command::ListProviders(options) => list::providers(&options).map(|()| 0),
        Command::ListCategories(options) => list::categories(&options).map(|()| 0),
        Command::Check(options) => check::run(&options),
        Command::Dump(options) => dump::run(&options).map(|()| 0),
        Command::Convert(options) => convert::run(&options).map(|()| 0),
        Command::Recover(options) => recover::run(&options).map(|()| 0),
        Command::Manager(options) => manager::run(&options).map(|()| 0),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

/// Help and version go to stdout; a mistake is one line on stderr.
fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Failure::usage("no command given; see trace --help").report()
        }
        _ => {
            let text = error.to_string();
            let lines: Vec<_> =
                text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:")).collect();
            let joined = lines.iter().filter(|line| !line.is_empty()).copied().collect::<Vec<_>>().join("; ");
            let line = joined.strip_prefix("error: ").unwrap_or(&joined);
            let line = line.strip_suffix("; For more information, try '--help'.").unwrap_or(line);
            Failure::usage(format!("{line}; see --help")).report()
        }
    }
}
