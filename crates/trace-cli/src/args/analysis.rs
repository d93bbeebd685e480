//! Options of `stats`, `assert`, `diff` and `check`.

use super::selecting::Selecting;
use super::traces;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use trace_analysis::stats::Statistic;

/// Help of `stats`.
pub const STATS_HELP: &str = "Examples:
  trace stats trace.fxt
  trace stats --by thread --sort self trace.fxt
  trace stats --category 'net*' --limit 5 trace.fxt
  trace stats --process server --from 2s --to 3s trace.fxt
  trace stats --json trace.fxt | jq '.result.durations.rows[0]'

Percentiles of up to 256 durations are exact, those of more durations off by at most 0.1 %. docs/stats.md \
describes the output.";

/// Help of `assert`.
pub const ASSERT_HELP: &str = "Examples:
  trace assert trace.fxt 'p99(render:frame) < 16ms' 'lost == 0'
  trace assert trace.fxt 'max(gap(frame)) < 50ms or count(frame) < 2'
  trace assert --file limits.txt --junit limits.xml trace.fxt

Functions: count, rate, sum, min, max, mean, p50, p99.9 and so on, of NAME, CATEGORY:NAME, self(NAME), gap(NAME) or \
counter(NAME.SERIES); lost, lost(PROGRAM), errors. Units: ns us ms s, B kB MB KiB MiB, %. * stands for any text.

Exit codes: 0 if all assertions hold, 1 if one does not, 3 if the trace does not show either, because events are \
missing or no event has the name; 2 if an assertion is invalid, 6 if the trace cannot be read. docs/stats.md has \
the rules.";

/// Help of `diff`.
pub const DIFF_HELP: &str = "Examples:
  trace diff before.fxt after.fxt
  trace diff --sort p99 --limit 5 before.fxt after.fxt
  trace diff --json before.fxt after.fxt | jq '.result.changes[0]'";

/// Options of `check`.
#[derive(Clone, Debug, Args)]
pub struct Check {
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Check that the times of events lie within the times in which their threads ran, according to the
    /// kernel
    #[arg(long)]
    pub clocks: bool,
    /// Report these kinds of problem without counting them, separated by commas
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = super::problem_kind)]
    pub allow: Vec<String>,
    /// Remember at most this many operations and flows that have begun and not ended
    #[arg(long, value_name = "COUNT", default_value_t = trace_analysis::check::MAX_OPEN_SPANS, value_parser = super::whole_number)]
    pub open_spans: usize,
    /// Use at most this much memory for strings, threads and names, in MiB
    #[arg(long, value_name = "MIB", default_value_t = trace_reader::reader::TABLE_BYTES >> 20, value_parser = super::positive_number)]
    pub table_size: usize,
    /// Whose problems count.
    #[command(flatten)]
    pub selecting: Selecting,
    /// The traces, plain or compressed with gzip or zstd; `-` is stdin
    #[arg(value_name = "FILE", required = true, add = traces())]
    pub inputs: Vec<PathBuf>,
}

/// Options of `stats`.
#[derive(Debug, Args)]
pub struct Stats {
    /// Group durations by this
    #[arg(long, value_name = "WHAT", default_value = "name")]
    pub by: By,
    /// Sort by this column, largest first
    #[arg(long, value_name = "COLUMN", default_value = "total")]
    pub sort: Sort,
    /// Show at most this many rows of each table; 0 shows all (default: 20; all with --json and --csv)
    #[arg(long, value_name = "COUNT", value_parser = super::whole_number)]
    pub limit: Option<usize>,
    /// What is counted.
    #[command(flatten)]
    pub selecting: Selecting,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub csv: bool,
    /// Put an apostrophe before texts that a spreadsheet would take for formulas
    #[arg(long, requires = "csv")]
    pub spreadsheet: bool,
    /// The traces, plain or compressed with gzip or zstd; `-` is stdin
    #[arg(value_name = "FILE", required = true, add = traces())]
    pub inputs: Vec<PathBuf>,
}

impl Stats {
    /// The options of a summary behind a recording.
    pub fn of_recording() -> Self {
        Self {
            by: By::Name,
            sort: Sort::Total,
            limit: None,
            selecting: Selecting::default(),
            json: false,
            csv: false,
            spreadsheet: false,
            inputs: Vec::new(),
        }
    }
}

/// What durations are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Category and name
    Name,
    /// Category
    Category,
    /// Process
    Process,
    /// Thread
    Thread,
}

/// A column of the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The total time
    Total,
    /// The total time without the durations inside
    #[value(name = "self")]
    Own,
    /// The number of durations
    Count,
    /// The shortest duration
    Min,
    /// The mean
    Mean,
    /// The median
    P50,
    /// The 95th percentile
    P95,
    /// The 99th percentile
    P99,
    /// The longest duration
    Max,
}

impl Sort {
    /// The number that it is.
    pub const fn statistic(self) -> Statistic {
        match self {
            Self::Total => Statistic::Total,
            Self::Own => Statistic::Own,
            Self::Count => Statistic::Count,
            Self::Min => Statistic::Min,
            Self::Mean => Statistic::Mean,
            Self::P50 => Statistic::Percentile(50.0),
            Self::P95 => Statistic::Percentile(95.0),
            Self::P99 => Statistic::Percentile(99.0),
            Self::Max => Statistic::Max,
        }
    }
}

/// Options of `assert`.
#[derive(Debug, Args)]
pub struct Assert {
    /// Read assertions from this file: one on each line, with comments that begin with #
    #[arg(long, short = 'f', value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Write the results into this file, as JUnit's XML
    #[arg(long, value_name = "FILE", value_parser = super::not_stdout())]
    pub junit: Option<PathBuf>,
    /// What the assertions are about.
    #[command(flatten)]
    pub selecting: Selecting,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The traces, plain or compressed with gzip or zstd, `-` being stdin, and the assertions, which may
    /// stand behind --
    #[arg(value_name = "FILE|ASSERTION", required = true, add = traces())]
    pub words: Vec<OsString>,
    /// The assertions
    #[arg(value_name = "ASSERTION", last = true)]
    pub assertions: Vec<String>,
}

/// Options of `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// Show the names first for which this has changed most
    #[arg(long, value_name = "NUMBER", default_value = "total")]
    pub sort: Sort,
    /// Show at most this many names; 0 shows all (default: 20; all with --json and --csv)
    #[arg(long, value_name = "COUNT", value_parser = super::whole_number)]
    pub limit: Option<usize>,
    /// What is compared of each trace.
    #[command(flatten)]
    pub selecting: Selecting,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub csv: bool,
    /// Put an apostrophe before texts that a spreadsheet would take for formulas
    #[arg(long, requires = "csv")]
    pub spreadsheet: bool,
    /// The earlier trace, plain or compressed with gzip or zstd
    #[arg(value_name = "BEFORE", add = traces())]
    pub before: PathBuf,
    /// The later trace
    #[arg(value_name = "AFTER", add = traces())]
    pub after: PathBuf,
}
