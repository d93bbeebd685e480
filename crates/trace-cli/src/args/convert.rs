//! Options of `trace convert`.

use super::format::Target;
use super::selecting::Selecting;
use super::traces;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// Convert to this format (default: the format of OUT's name)
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Target>,
    /// Select the container of Chrome's events
    #[arg(long, value_name = "CONTAINER")]
    pub container: Option<Container>,
    /// Keep only events whose whole name matches this regular expression, or that --category selects. May be
    /// repeated
    #[arg(long, value_name = "REGEX")]
    pub pattern: Vec<String>,
    /// What is converted.
    #[command(flatten)]
    pub selecting: Selecting,
    /// Fold stacks of samples, or of slices with their own time in nanoseconds (--format folded)
    #[arg(long, value_name = "STACKS", default_value = "samples")]
    pub stacks: Stacks,
    /// Begin each stack with its process and its thread instead of the process alone (--format folded)
    #[arg(long)]
    pub by_thread: bool,
    /// Write Catapult's system events into a separate file, one per line
    #[arg(long, value_name = "FILE", value_parser = super::not_stdout())]
    pub system_event_output_file: Option<PathBuf>,
    /// Add the trace to those in OUT: write the table T to OUT/T/date=/host=/trace=/0.parquet, which
    /// databases read as one table of many traces (--format parquet)
    #[arg(long)]
    pub partitioned: bool,
    /// Put an apostrophe before texts that a spreadsheet would take for formulas (--format csv)
    #[arg(long)]
    pub spreadsheet: bool,
    /// Fail if the format cannot express everything in the trace
    #[arg(long)]
    pub strict: bool,
    /// Convert with N threads (default: the number of processors). The result does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Print a summary as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// The trace, plain or compressed with gzip or zstd, and the output; `-` is stdin or stdout (default: the
    /// input's name with the format's suffix, or .tables). With -o DIR, all are traces
    #[arg(value_name = "FILE", required_unless_present = "input_file", add = traces())]
    pub files: Vec<PathBuf>,
    /// Alias of FILE, for compatibility with Fuchsia's trace2json
    #[arg(long, value_name = "FILE", hide = true)]
    pub input_file: Option<PathBuf>,
    /// Write the result to this file, or one result for each of several traces to this directory
    #[arg(short = 'o', long, alias = "output-file", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What is folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Stacks {
    /// Stacks of a profile, each with its number of samples
    #[default]
    Samples,
    /// Names of slices that are in each other, with the time that is not in inner ones
    Slices,
}

/// The JSON value that holds the events of Chrome's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Container {
    /// Only the list of events
    Array,
    /// An object that has the list as `traceEvents`
    Object,
}
