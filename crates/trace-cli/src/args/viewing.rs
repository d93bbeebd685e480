//! Options of the commands that show a trace in a browser.

use super::traces;
use super::values::Moment;
use clap::Args;
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
    /// The trace
    #[arg(value_name = "FILE", add = traces())]
    pub input: PathBuf,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Write the page to this file, or to stdout (`-`) (default: the trace's name with the ending .html or
    /// .svg)
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// Write a picture of the timeline for documents, as SVG. Implied by a FILE that ends in .svg
    #[arg(long)]
    pub svg: bool,
    /// Begin the picture at this time from the beginning of the trace, such as 1.5s, 300ms or 20us
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,
    /// End the picture at this time from the beginning of the trace
    #[arg(long, value_name = "TIME")]
    pub to: Option<Moment>,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    /// The trace, in any format that `trace convert` reads; `-` is stdin
    #[arg(value_name = "FILE", add = traces())]
    pub input: PathBuf,
}
