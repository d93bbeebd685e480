//! Options of `trace ktrace`.

use super::values::{FileSize, Span};
use clap::Args;
use ktrace_provider::profiler::{MAX_STACK_BYTES, STACK_BYTES};

/// Options of `ktrace`.
#[derive(Debug, Args)]
pub struct Ktrace {
    /// Use a kernel buffer of this size for each CPU. It is read a hundred times per second
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pub kernel_buffer_size: FileSize,
    /// Sample the system's metrics this often, such as 50ms
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub sample_interval: Span,
    /// Sample threads this many times per second, for recordings with the category `profile`
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub profile: Option<u64>,
    /// Copy this many bytes of a thread's stack with each sample, to find callers without frame pointers. 0
    /// uses frame pointers only
    #[arg(long, value_name = "BYTES", default_value_t = STACK_BYTES, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_STACK_BYTES)))]
    pub profile_stack: u32,
    /// Exit after one recording
    #[arg(long, hide = true)]
    pub on_demand: bool,
}
