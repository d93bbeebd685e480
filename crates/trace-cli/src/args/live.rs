//! Options of `live`.

use super::record::Recording;
use super::values::Span;
use crate::args::values::ConfigFile;
use clap::Args;
use std::path::PathBuf;

/// Help of `live`.
pub const HELP: &str = "Examples:
  trace live                     the running recording, or one of all programs
  trace live -- ./app               record a program into trace.fxt, and watch
  trace live --categories gfx -o app.fxt -- ./app
  trace live --json --interval 1s | jq .programs

q or Ctrl-C quits. A recording that the command has begun ends then and is saved, as with trace record; one that was \
running goes on. Tab shows one program after the other.

Numbers of durations are of the last five seconds. The command only reads what programs record: it can neither stop \
nor delay a recording that is not its own. docs/live.md describes the screen.

Exit codes: as with trace record for a recording of its own, and 0 if quitting has ended the command; 0 after \
quitting or when the running recording ends; 125 if it cannot be observed.";

/// Options of `live`.
#[derive(Debug, Args)]
pub struct Live {
    /// Print a line of JSON for each update on stdout, instead of the screen. The command's own output goes
    /// to stderr
    #[arg(long)]
    pub json: bool,
    /// The interval between updates, from 50ms to 10s
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub interval: Span,
    /// Read options of a new recording from this file, as with trace record. Options of the command line
    /// override it
    #[arg(long, short = 'c', value_name = "FILE", value_parser = super::config_path())]
    pub config: Option<PathBuf>,
    /// Print the options that would be used for a new recording, as TOML
    #[arg(long, conflicts_with = "json")]
    pub print_config: bool,
    /// The options of a new recording.
    #[command(flatten)]
    pub recording: Recording,
}

impl Live {
    /// The file that `--config` names.
    pub fn config_file(&self) -> Option<ConfigFile<'_>> {
        self.config.as_deref().map(|path| ConfigFile { path, is_text_proto: false })
    }
}
