//! Options of `ab`.

use super::analysis::Sort;
use super::selecting::Within;
use super::values::{BufferSize, CategoryList};
use crate::args::bad_value::BadValue;
use clap::Args;
use std::path::PathBuf;

/// Help of `ab`.
pub const AB_HELP: &str = "Examples:
  trace ab --runs 30 -- ./old -- ./new
  trace ab --name 'parse*' --min-effect 2% -- ./old file.txt -- ./new file.txt
  trace ab --save-runs runs -- ./old -- ./new
  trace ab --judge runs --statistic p99

Runs come in blocks of old, new, new, old, or new, old, old, new. If the commands contain --, the middle one \
separates them. Ctrl-C ends the comparison after the current run and judges the runs so far; a second Ctrl-C ends \
the current run immediately.

Exit codes: 0 if nothing takes longer, 1 if something does, 3 if the runs do not show either, because events are \
missing or there are too few runs or names; 125 if a run fails. docs/ab.md has the rules.";

/// Options of `ab`.
#[derive(Debug, Args)]
pub struct Ab {
    /// Record each command at most this often; an odd number is rounded up, to whole blocks (default: 30)
    #[arg(long, value_name = "COUNT", value_parser = super::number_of_runs, conflicts_with = "judge")]
    pub runs: Option<usize>,
    /// Run each command this many times beforehand, without counting these runs
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = super::whole_number)]
    pub warmup: usize,
    /// Make all runs, even if the answer is known earlier
    #[arg(long)]
    pub all_runs: bool,
    /// Compare this value of each name
    #[arg(long, value_name = "NUMBER", default_value = "p50")]
    pub statistic: Sort,
    /// Ignore changes up to this percentage, such as 0.5%
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub min_effect: f64,
    /// What of the recordings is judged.
    #[command(flatten)]
    pub within: Within,
    /// Record only these categories, separated by commas, as trace record does
    #[arg(long, visible_alias = "category", value_name = "LIST", conflicts_with = "judge")]
    pub categories: Option<CategoryList>,
    /// Use buffers of this size in each program, in MiB or with a unit (default: 4)
    #[arg(long, value_name = "SIZE", conflicts_with = "judge")]
    pub buffer_size: Option<BufferSize>,
    /// Use this seed for the order of runs and the bootstrap's samples (default: a new one each time)
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64))]
    pub seed: Option<u64>,
    /// Keep the recordings in this new directory
    #[arg(long, value_name = "DIR", conflicts_with = "judge", value_parser = super::not_stdout())]
    pub save_runs: Option<PathBuf>,
    /// Judge the recordings that --save-runs has stored in this directory, without running commands
    #[arg(long, value_name = "DIR", conflicts_with = "commands")]
    pub judge: Option<PathBuf>,
    /// Show at most this many names; 0 shows all (default: 20; all with --json)
    #[arg(long, value_name = "COUNT", value_parser = super::whole_number)]
    pub limit: Option<usize>,
    /// Write the results into this file, as JUnit's XML
    #[arg(long, value_name = "FILE", value_parser = super::not_stdout())]
    pub junit: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The old command with its arguments, --, and the new one
    #[arg(value_name = "OLD -- NEW", last = true, required_unless_present = "judge")]
    pub commands: Vec<String>,
}

/// A percentage as a part of the whole.
fn percent(text: &str) -> Result<f64, BadValue> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=1000.0).contains(number));
    number.map(|number| number / 100.0).ok_or_else(|| "expected a percentage, such as 0.5%".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_parts() {
        assert_eq!((percent("1%"), percent("0.5"), percent("0%")), (Ok(0.01), Ok(0.005), Ok(0.0)));
        for wrong in ["", "x", "-1%", "1%%", "nan", "2000%"] {
            assert!(percent(wrong).unwrap_err().to_string().contains("expected a percentage"), "{wrong}");
        }
    }
}
