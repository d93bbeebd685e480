//! Options of `trace dump-memory`.

use clap::Args;

/// Options of `dump-memory`.
#[derive(Debug, Args)]
pub struct DumpMemory {
    /// Request detailed memory dumps instead of totals
    #[arg(long)]
    pub detailed: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
