//! Options of `trace filter`.

use super::traces;
use clap::Args;
use std::path::PathBuf;

/// What follows the options in the help.
pub const HELP: &str = "Examples:
  trace filter --redact-strings trace.fxt public.fxt.zst
  trace filter --strip-args trace.fxt public.fxt
  trace filter --keep-args bytes,status trace.fxt public.fxt
  trace filter --category 'net*,-net:noise' trace.fxt net.fxt
  trace filter --process server --process 4711 trace.fxt server.fxt
  trace filter --category net --redact-strings capture.json.gz - | trace dump -

Input formats: FXT, Chrome's JSON, ftrace's text and Perfetto's format, recognized by their first bytes.

Options are combined: an event is kept if both its category and its process are. Names and categories of events, \
names of arguments and numbers stay: look at the result, such as with trace dump, before you pass it on. \
docs/filter.md lists what each option removes.

Exit codes: 0 if the result has all that is to be kept, 1 if the trace has no such process, 6 if it could not be \
read to its end.";

/// Options of `filter`.
#[derive(Debug, Args)]
pub struct Filter {
    /// Remove the arguments of events, and the contents of blobs
    #[arg(long)]
    pub strip_args: bool,
    /// Remove the arguments of events but those with these names, separated by commas. May be repeated
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub keep_args: Vec<String>,
    /// Replace names of processes, threads and other objects, texts in arguments, and log messages by
    /// placeholders, the same for the same text, and remove the contents of blobs
    #[arg(long)]
    pub redact_strings: bool,
    /// Keep only events of these categories, separated by commas; * stands for any text, -NAME excludes, and
    /// #NAME is a group. May be repeated
    #[arg(long, visible_alias = "categories", value_name = "LIST", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true)]
    pub category: Vec<String>,
    /// Keep only what belongs to these processes, by name, in which * stands for any text, or number,
    /// separated by commas. May be repeated
    #[arg(long, value_name = "PROCESSES", value_delimiter = ',')]
    pub process: Vec<String>,
    /// Print a summary as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// The trace, plain or compressed with gzip or zstd, and the output, in FXT format, compressed if its
    /// name ends in .zst or .gz; `-` is stdin or stdout. With -o DIR, all are traces
    #[arg(value_name = "FILE", required = true, add = traces())]
    pub files: Vec<PathBuf>,
    /// Write the result to this file, or one result for each of several traces to this directory
    #[arg(short = 'o', long, alias = "output-file", value_name = "FILE")]
    pub output: Option<PathBuf>,
}
