//! `ktrace-provider`: kernel events for recordings of other programs.
#![forbid(unsafe_code)]

use clap::Parser;
use ktrace_provider::profiler::{MAX_STACK_BYTES, STACK_BYTES, Sampling};
use std::process::ExitCode;
use trace_format::shown::Shown;

/// Provide kernel events to recordings, until Ctrl-C.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Examples:
  sudo ktrace-provider &
  trace record --categories kernel:sched,app -- ./app

trace record starts a provider by itself if it has the privileges."
)]
struct Arguments {
    /// Use a kernel buffer of this size for each CPU, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 8192)]
    buffer_size_kb: u64,
    /// Sample the system's metrics this often, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    sample_interval_ms: u64,
    /// Sample threads this many times per second, for recordings with the category `profile`
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    profile: Option<u64>,
    /// Copy this many bytes of a thread's stack with each sample, to find callers without frame pointers. 0
    /// uses frame pointers only
    #[arg(long, value_name = "BYTES", default_value_t = STACK_BYTES, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_STACK_BYTES)))]
    profile_stack: u32,
    /// Exit after one recording
    #[arg(long)]
    on_demand: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = ktrace_provider::Options {
        is_on_demand: arguments.on_demand,
        buffer_kilobytes: arguments.buffer_size_kb,
        sample_interval: std::time::Duration::from_millis(arguments.sample_interval_ms),
        sampling: arguments.profile.map(|hertz| Sampling { hertz, stack_bytes: arguments.profile_stack }),
        help: "sudo ktrace-provider".to_owned(),
    };
    match ktrace_provider::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            zx_sim::debuglog::write(&format!("ktrace-provider: {}", Shown(&failure.to_string())));
            ExitCode::FAILURE
        }
    }
}
