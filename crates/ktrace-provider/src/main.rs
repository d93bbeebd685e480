//! `ktrace-provider`: the kernel, for recordings of other programs.
#![forbid(unsafe_code)]

use clap::Parser;
use ktrace_provider::profiler::{MAX_STACK_BYTES, STACK_BYTES, Sampling};
use std::process::ExitCode;
use trace_format::shown::Shown;

/// Provides events of the kernel to recordings, until Ctrl-C.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Examples:
  sudo ktrace-provider &
  trace record --categories kernel:sched,app -- ./app

trace record starts one by itself where it has the rights."
)]
struct Arguments {
    /// Size of the kernel's buffer for each CPU, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 8192)]
    buffer_size_kb: u64,
    /// How often figures of the system are sampled, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    sample_interval_ms: u64,
    /// How often a second threads are sampled, for recordings that want the category profile
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    profile: Option<u64>,
    /// How much of a thread's stack is copied with each sample, in bytes, to find callers without frame
    /// pointers; 0 to follow frame pointers alone
    #[arg(long, value_name = "BYTES", default_value_t = STACK_BYTES, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_STACK_BYTES)))]
    profile_stack: u32,
    /// End after one recording
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
