//! Options of `mcp`.

use super::values::Span;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Help of `mcp`.
pub const HELP: &str = "Examples:
  trace mcp                         traces beneath the working directory
  trace mcp ~/traces /var/tmp/ci    those beneath two directories
  trace mcp --allow-record .        may also record, which runs any command

An agent starts the server itself: its configuration has the command `trace` with the arguments `mcp` and DIR. \
docs/mcp.md describes the tools and the limits.

The server ends when its stdin does, or on Ctrl-C; the exit code is 0 then.";

/// Options of `mcp`.
#[derive(Debug, Args)]
pub struct Mcp {
    /// Offer the tool `record`, which runs commands of the agent's choice and writes traces beneath DIR
    #[arg(long)]
    pub allow_record: bool,
    /// End a call that takes longer than this
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub timeout: Span,
    /// Only traces beneath these directories can be read (default: the working directory)
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directories: Vec<PathBuf>,
}
