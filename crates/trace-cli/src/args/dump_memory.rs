//! Options of `trace dump-memory`.

use clap::Args;

/// Options of `dump-memory`.
#[derive(Debug, Args)]
pub struct DumpMemory {
    /// Ask for everything that programs know, not only for sums
    #[arg(long)]
    pub detailed: bool,
}
