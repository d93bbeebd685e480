//! How fast programs can stream without a loss, beside copying the same bytes through a socket into a file,
//! in one run.
//!
//! Real processes: `trace record`, its manager, and a program that writes events of 32 bytes at a rate. The
//! rate is doubled until something is lost, and then halved in on, ten seconds each, so that what is found
//! can be kept up. One slow phase of the machine decides such a search, so there are three: the best shows
//! what can be kept up, and the median how often. `--soak GIB` records so much at half the highest rate that
//! was found, or `--at RATE`, and fails if anything is missing; `--test` makes it short.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Bytes of an event in the archive.
const EVENT_BYTES: u64 = 32;
const CHUNK_BYTES: usize = 64 << 10;

/// What became of a recording.
struct Outcome {
    lost: u64,
    archived: u64,
}

struct Bench {
    directory: tempfile::TempDir,
    /// In memory, as a user's runtime directory is: what is on a disk is written back while it is written.
    runtime: tempfile::TempDir,
    programs: PathBuf,
}

impl Bench {
    /// Records a program that writes so many events on each thread at a rate.
    fn record(&self, threads: u64, events: u64, rate: u64) -> Outcome {
        let file = self.directory.path().join("trace.fxt");
        let [threads, events, rate] = [threads, events, rate].map(|number| number.to_string());
        let runtime = self.runtime.path().join("run");
        let output = Command::new(self.programs.join("trace"))
            .args(["record", "--buffering-mode", "streaming", "--buffer-size", "64", "--output-file"])
            .arg(&file)
            .arg("--")
            .arg(self.programs.join("examples/stream"))
            .args([threads, events, rate])
            .env("TRACE_RUNTIME_DIR", &runtime)
            .output()
            .expect("trace runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let checked = Command::new(self.programs.join("trace")).args(["check", "--json"]).arg(&file).output();
        let report = checked.expect("trace runs").stdout;
        let report: serde_json::Value = serde_json::from_slice(&report).expect("a report");
        let losses = report["losses"].as_array().expect("a list");
        let lost = losses.iter().filter_map(|loss| loss["count"].as_u64()).sum();
        let programs = report["result"]["programs"].as_array().expect("a list");
        let of_program = programs.iter().find(|program| program["name"] == "stream");
        let archived = of_program.and_then(|program| program["events"].as_u64()).expect("its events");
        Outcome { lost, archived }
    }

    /// What the running manager has taken of the processors so far.
    fn manager_seconds(&self) -> f64 {
        let pid = std::fs::read_to_string(self.runtime.path().join("run/lock")).unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        (ticks(11) + ticks(12)) / 100.0
    }
}

/// Bytes per second through a socket into a file.
fn copy_rate(directory: &Path, bytes: u64) -> f64 {
    let (mut from, mut to) = UnixStream::pair().expect("sockets");
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let chunk = vec![0x5a; CHUNK_BYTES];
            for _ in 0..bytes / CHUNK_BYTES as u64 {
                to.write_all(&chunk).expect("the other end reads");
            }
        });
        let mut file = File::create(directory.join("copy")).expect("a file");
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = from.read(&mut chunk) {
            file.write_all(&chunk[..length]).expect("there is room");
        }
    });
    let rate = bytes as f64 / begin.elapsed().as_secs_f64();
    let _ = std::fs::remove_file(directory.join("copy"));
    rate
}

/// The highest rate of events on each of so many threads at which nothing is lost, and what the manager costs
/// then, in seconds per GB.
fn search(bench: &Bench, threads: u64, first: u64, seconds: f64, steps: u32) -> (u64, f64) {
    let (mut good, mut bad, mut cost) = (0, None, 0.0);
    let (mut rate, mut steps) = (first, steps);
    while steps > 0 {
        let events = ((rate as f64 * seconds) as u64).max(1000);
        let before = bench.manager_seconds();
        let outcome = bench.record(threads, events, rate);
        assert_eq!(outcome.archived + outcome.lost, threads * events, "a loss that nobody counted");
        if outcome.lost == 0 {
            good = rate;
            // A manager that has ended meanwhile took its counts with it.
            let after = bench.manager_seconds();
            let seconds = if after > before { after - before } else { after };
            cost = seconds / ((threads * events * EVENT_BYTES) as f64 / 1e9);
        } else {
            bad = Some(rate);
        }
        // Until something is lost the rate is doubled.
        steps -= u32::from(bad.is_some() || seconds < 1.0);
        rate = bad.map_or(rate * 2, |bad| good.midpoint(bad));
    }
    (good, cost)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str| -> Option<u64> {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1)?.parse().ok()
    };
    let is_test = arguments.iter().any(|argument| argument == "--test");
    let program = std::env::current_exe().expect("a path");
    let programs = program.ancestors().nth(2).expect("it is in a profile's directory").to_owned();
    let directory = tempfile::tempdir().expect("a directory");
    let in_memory = Path::new("/dev/shm");
    let in_memory = if in_memory.is_dir() { in_memory } else { directory.path() };
    let runtime = tempfile::tempdir_in(in_memory).expect("a directory");
    let bench = Bench { directory, runtime, programs };
    let mut rate = number("--at");
    if rate.is_none() {
        let (first, seconds, steps, copied, searches) =
            if is_test { (100_000, 0.05, 1, 64 << 20, 1) } else { (4_000_000, 10.0, 4, 4 << 30, 3) };
        let floor = copy_rate(bench.directory.path(), copied);
        println!("copying through a socket into a file: {:.0} MB/s\n", floor / 1e6);
        println!("| threads | events/s without a loss | median | MB/s | of the copy | manager, s per GB |");
        println!("|---|---|---|---|---|---|");
        for threads in [1, 2] {
            let mut found: Vec<_> =
                (0..searches).map(|_| search(&bench, threads, first / threads, seconds, steps)).collect();
            found.sort_by_key(|(each, _)| *each);
            let median = threads * found[found.len() / 2].0;
            let (each, cost) = *found.last().expect("there was a search");
            let (events, bytes) = (threads * each, (threads * each * EVENT_BYTES) as f64);
            println!(
                "| {threads} | {events} | {median} | {:.0} | {:.2} | {cost:.2} |",
                bytes / 1e6,
                bytes / floor
            );
            rate = rate.or(Some(each / 2));
        }
    }
    let (Some(gib), Some(rate)) = (number("--soak"), rate) else {
        return ExitCode::SUCCESS;
    };
    let events = (gib << 30) / EVENT_BYTES;
    let outcome = bench.record(1, events, rate);
    println!("\n{gib} GiB at {rate} events/s: {} archived, {} lost", outcome.archived, outcome.lost);
    if (outcome.archived, outcome.lost) == (events, 0) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
