//! Options of `trace ktrace`.

use super::values::{FileSize, Span};
use clap::Args;
use ktrace_provider::profiler::{MAX_STACK_BYTES, STACK_BYTES};

/// Options of `ktrace`.
#[derive(Debug, Args)]
pub struct Ktrace {
    /// Size of the kernel's own buffer for each CPU, from which it is read a hundred times a second
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pub kernel_buffer_size: FileSize,
    /// How often figures of the system are sampled, such as 50ms
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub sample_interval: Span,
    /// How often a second threads are sampled, for recordings that want the category profile
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub profile: Option<u64>,
    /// How much of a thread's stack is copied with each sample, in bytes, to find callers without frame
    /// pointers; 0 to follow frame pointers alone
    #[arg(long, value_name = "BYTES", default_value_t = STACK_BYTES, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_STACK_BYTES)))]
    pub profile_stack: u32,
    /// End after one recording
    #[arg(long, hide = true)]
    pub on_demand: bool,
}
