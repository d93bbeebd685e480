//! What it costs to record the scheduler, beside other recorders: `cargo bench -p trace-benches --bench
//! kernel_overhead`.
//!
//! `hackbench` sends messages between processes as fast as it can, and says how long that took: by itself,
//! and recorded by us, by `perf sched record` and by `trace-cmd`, in turn. As root, with Debian's packages
//! `rt-tests`, `linux-perf` and `trace-cmd`; missing tools are reported and skipped.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;
use trace_tests::build::workspace;

const RUNS: usize = 9;
const LOAD: [&str; 7] = ["hackbench", "-g", "2", "-f", "10", "-l", "4000"];
/// Where files are no part of the matter.
const DIRECTORY: &str = "/dev/shm/kernel-overhead";
/// An instance of trace-cmd's own, so that other users of tracefs are not disturbed.
const INSTANCE: &str = "/sys/kernel/tracing/instances/kernel_overhead";

struct Recorder {
    name: &'static str,
    /// What stands before the load.
    before: Vec<String>,
    seconds: Vec<f64>,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Runs the load; what it says that it took, or why it did not run.
fn run(before: &[String]) -> Result<f64, String> {
    let all: Vec<&str> = before.iter().map(String::as_str).chain(LOAD).collect();
    let output = Command::new(all[0])
        .args(&all[1..])
        .current_dir(DIRECTORY)
        .env("TRACE_RUNTIME_DIR", Path::new(DIRECTORY).join("run"))
        .output()
        .map_err(|error| format!("{}: {error}", all[0]))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let time = text.lines().find_map(|line| line.strip_prefix("Time: ")?.trim().parse().ok());
    // A trace-cmd that fails after the load, while it restores the settings, has recorded it.
    time.ok_or_else(|| String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned())
}

fn main() {
    let _ = std::fs::remove_dir_all(DIRECTORY);
    std::fs::create_dir_all(DIRECTORY).expect("a directory in memory");
    let trace = workspace().join("target/release/trace");
    // Some containers do not let trace-cmd write what it sets to what it is.
    std::fs::write(Path::new(DIRECTORY).join("one"), "1\n").expect("a file");
    std::fs::write(Path::new(DIRECTORY).join("none"), "").expect("a file");
    let around_trace_cmd = format!(
        "mkdir {INSTANCE}; mount --bind {DIRECTORY}/one /proc/sys/kernel/ftrace_enabled; \
         for file in {INSTANCE}/set_ftrace_filter {INSTANCE}/set_ftrace_notrace {INSTANCE}/set_ftrace_pid; do \
         mount --bind {DIRECTORY}/none $file; done; exec \"$@\""
    );
    let mut trace_cmd = words("unshare -m sh -c");
    trace_cmd.extend([around_trace_cmd, "sh".to_owned()]);
    trace_cmd.extend(words(
        "trace-cmd record -q -B kernel_overhead -b 8192 -e sched_switch -e sched_waking -e sched_wakeup_new -o trace.dat",
    ));
    let ours = format!(
        "{} record --categories kernel:sched --buffering-mode streaming --buffer-size 64MiB -o trace.fxt --",
        trace.display()
    );
    let recorder = |name, before| Recorder { name, before, seconds: Vec::new() };
    let mut recorders = vec![
        recorder("nobody", Vec::new()),
        recorder("trace record", words(&ours)),
        recorder("perf sched record", words("perf sched record -q -o perf.data --")),
        recorder("trace-cmd record", trace_cmd),
    ];
    recorders.retain(|recorder| match run(&recorder.before) {
        Ok(_) => true,
        Err(why) => {
            println!("{}: left out: {why}", recorder.name);
            false
        }
    });
    for _ in 0..RUNS {
        for recorder in &mut recorders {
            recorder.seconds.push(run(&recorder.before).expect("it ran before"));
            let _ = std::fs::remove_dir(INSTANCE);
        }
    }
    for recorder in &mut recorders {
        recorder.seconds.sort_by(f64::total_cmp);
    }
    let alone = recorders[0].seconds.clone();
    println!("{:<20} {:>8} {:>8} {:>12} {:>12}", "recorded by", "best s", "median s", "best +%", "median +%");
    for recorder in &recorders {
        let (best, median) = (recorder.seconds[0], recorder.seconds[RUNS / 2]);
        let more = |time: f64, alone: f64| (time / alone - 1.0) * 100.0;
        println!(
            "{:<20} {best:>8.3} {median:>8.3} {:>12.1} {:>12.1}",
            recorder.name,
            more(best, alone[0]),
            more(median, alone[RUNS / 2])
        );
    }
    for file in ["trace.fxt", "perf.data", "trace.dat"] {
        let bytes = std::fs::metadata(Path::new(DIRECTORY).join(file)).map_or(0, |metadata| metadata.len());
        println!("{file}: {:.1} MB", bytes as f64 / 1e6);
    }
    let _ = std::fs::remove_dir_all(DIRECTORY);
}
