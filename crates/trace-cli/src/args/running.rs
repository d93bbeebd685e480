//! Options of commands about a recording that is running: `stop`, `snapshot` and `flush`.

use super::values::Span;
use crate::args::completion;
use clap::Args;
use clap_complete::ArgValueCompleter;
use std::path::PathBuf;

/// Options of `stop`.
#[derive(Debug, Args)]
pub struct Stop {
    /// The recording's number, as `trace status` shows it; needed only if several are running
    #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub number: Option<u64>,
    /// Write the trace to this file (default: the file that `trace status` shows)
    #[arg(long, short = 'o', alias = "output-file", value_name = "FILE", conflicts_with = "abort")]
    pub output: Option<PathBuf>,
    /// Print more about each program
    #[arg(long, short, conflicts_with = "abort")]
    pub verbose: bool,
    /// Print the summary as JSON on stdout; of a recording that is discarded, what `trace status` shows
    #[arg(long)]
    pub json: bool,
    /// Do not report requested categories without events
    #[arg(long, conflicts_with = "abort")]
    pub no_verify_trace: bool,
    /// Discard the recording
    #[arg(long)]
    pub abort: bool,
}

/// Options of `snapshot`.
#[derive(Debug, Args)]
pub struct Snapshot {
    /// Save only the last part of this length, such as 10s
    #[arg(long, value_name = "TIME")]
    pub last: Option<Span>,
    /// Save the recording in which the program with this name or process id takes part; needed only if
    /// several recordings are running
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::provider_names))]
    pub program: Option<String>,
    /// Write the trace to this file; its name selects the format, as with record (default: snapshot.fxt, or
    /// snapshot-1.fxt and so on if that exists)
    #[arg(long, short = 'o', alias = "output-file", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print a summary as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// Options of `flush`.
#[derive(Debug, Args)]
pub struct Flush {
    /// The recording's number, as `trace status` shows it; needed only if several are running
    #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub number: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
