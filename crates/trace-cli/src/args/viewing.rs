//! Options of the commands that show a trace in a browser.

use super::selecting::{Selecting, Within};
use super::traces;
use crate::args::completion;
use clap::Args;
use clap_complete::ArgValueCompleter;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of `view`.
#[derive(Debug, Args)]
pub struct View {
    /// Show the copy of the UI in this directory, or `https://ui.perfetto.dev`
    #[arg(long, value_name = "DIR")]
    pub ui: Option<PathBuf>,
    /// Print the address instead of opening a browser
    #[arg(long)]
    pub no_open: bool,
    /// Show the running recording, or a new one, while it records
    #[arg(long, conflicts_with = "ui")]
    pub live: bool,
    /// Show only events of these categories, separated by commas; * stands for any text, and -NAME excludes.
    /// With `--live`: record only these, as with trace record
    #[arg(long, visible_alias = "category", value_name = "LIST", allow_hyphen_values = true, add = ArgValueCompleter::new(completion::category_list))]
    pub categories: Option<String>,
    /// What else of a FILE is shown.
    #[command(flatten)]
    pub within: Within,
    /// With `--live`: record, or show the recording of, only programs with this name, as with trace live
    #[arg(long, value_name = "NAME", requires = "live", add = ArgValueCompleter::new(completion::provider_names))]
    pub program: Vec<String>,
    /// With `--live`: write the trace to this file (default: trace.fxt, or trace-1.fxt if that exists)
    #[arg(long, short = 'o', alias = "output-file", value_name = "FILE", requires = "live")]
    pub output: Option<PathBuf>,
    /// With `--live`: read further options of a new recording from this file, as with trace record
    #[arg(long, short = 'c', value_name = "FILE", requires = "live", value_parser = super::config_path())]
    pub config: Option<PathBuf>,
    /// The trace
    #[arg(value_name = "FILE", required_unless_present = "live", add = traces())]
    pub input: Option<PathBuf>,
    /// With `--live`: the program to run and record, with its arguments
    #[arg(value_name = "COMMAND", last = true, requires = "live")]
    pub command: Vec<OsString>,
}

impl View {
    /// What of a file is shown.
    pub fn selecting(&self) -> Selecting {
        let category = self.categories.iter().flat_map(|list| list.split(',')).map(str::to_owned).collect();
        Selecting { category, within: self.within.clone() }
    }

    /// The arguments of `trace record` for a recording of the command's own; none if no option is about one.
    pub fn of_record(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> =
            self.program.iter().map(|name| format!("--program={name}").into()).collect();
        if let Some(categories) = &self.categories {
            // A list may begin with a hyphen.
            arguments.push(format!("--categories={categories}").into());
        }
        for (option, file) in [("--output", &self.output), ("--config", &self.config)] {
            arguments.extend(file.iter().flat_map(|file| [option.into(), file.clone().into_os_string()]));
        }
        if !self.command.is_empty() {
            arguments.push("--".into());
            arguments.extend(self.command.iter().cloned());
        }
        arguments
    }
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Write the page to this file, or to stdout (`-`) (default: the trace's name with the ending .html or
    /// .svg)
    #[arg(long, short = 'o', alias = "output-file", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write a picture of the timeline for documents, as SVG. It begins at --from and ends at --to. Implied
    /// by a FILE that ends in .svg
    #[arg(long)]
    pub svg: bool,
    /// What the page or the picture has.
    #[command(flatten)]
    pub selecting: Selecting,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    /// The traces, in any format that `trace convert` reads; `-` is stdin
    #[arg(value_name = "FILE", required = true, add = traces())]
    pub inputs: Vec<PathBuf>,
}
