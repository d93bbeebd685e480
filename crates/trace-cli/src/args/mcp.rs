//! Options of `mcp`.

use super::values::Span;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Help of `mcp`.
pub const HELP: &str = "Examples:
  trace mcp                         traces beneath the working directory
  trace mcp ~/traces /var/tmp/ci    traces beneath two directories
  trace mcp --allow-record .        the agent may record, and so run commands

The agent starts the server: add the command `trace` with the arguments `mcp` and DIR to its configuration. \
docs/mcp.md describes the tools and the limits.

The server exits with code 0 at the end of stdin and on Ctrl-C.";

/// Options of `mcp`.
#[derive(Debug, Args)]
pub struct Mcp {
    /// Offer the tool `record`, which runs any command that the agent chooses and writes traces beneath DIR
    #[arg(long)]
    pub allow_record: bool,
    /// Abort a call that takes longer than this
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub timeout: Span,
    /// Only traces beneath these directories can be read (default: the working directory)
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directories: Vec<PathBuf>,
}
