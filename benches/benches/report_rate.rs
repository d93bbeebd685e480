//! The page of `trace report`: its size, how fast it is made and in how much memory, and how fast it comes up
//! in a browser and follows its user.
//!
//! `cargo build --release` first: it runs the `trace` that stands beside it. The browser is run where
//! `TRACE_TEST_CATAPULT` names a directory with `playwright-core`; `-- page` leaves it out.

use std::fs;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;
use trace_benches::archive::nested;
use trace_reader::Reader;
use trace_tests::build::workspace;

/// What is made: a name, slices, and whether each has a number. With `--test` a thousandth.
const PAGES: [(&str, u64, bool); 4] = [
    ("without arguments", 500_000, false),
    ("with a number each", 500_000, true),
    ("folded, with a number each", 2_000_000, true),
    ("folded, without arguments", 6_000_000, false),
];
const RUNS: usize = 5;
/// Has this program write an archive.
const WRITE: &str = "--write";

/// Waits for a child; its largest memory in bytes.
fn wait(child: &Child) -> (ExitStatus, u64) {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child is ours and has not been waited for; both pointers are to memory of the right size,
    // and zeros are a valid `rusage`.
    let usage = unsafe {
        libc::wait4(child.id() as i32, &raw mut status, 0, usage.as_mut_ptr());
        usage.assume_init()
    };
    (ExitStatus::from_raw(status), usage.ru_maxrss as u64 * 1024)
}

fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("cargo build --release")
}

/// Runs a command; how long it took, and the most memory that it had, in bytes.
fn run(command: &mut Command) -> (f64, u64) {
    let begin = Instant::now();
    let (status, memory) = wait(&spawn(command));
    assert!(status.success(), "{status}");
    (begin.elapsed().as_secs_f64(), memory)
}

/// Nanoseconds for each event of decoding an archive in a file, which is the floor.
fn decoded(archive: &Path, events: u64) -> f64 {
    let begin = Instant::now();
    let mut reader = Reader::new(fs::File::open(archive).expect("the archive")).expect("an archive");
    while let Some(record) = reader.next_item().expect("a sound archive") {
        black_box(record.offset);
    }
    begin.elapsed().as_secs_f64() * 1e9 / events as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [WRITE, path, events, has_argument] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..]
    {
        let archive = nested(events.parse().expect("a number"), has_argument == "true");
        fs::write(path, archive).expect("room for the archive");
        return;
    }
    let is_test = arguments.iter().any(|argument| argument == "--test");
    let modules =
        std::env::var_os("TRACE_TEST_CATAPULT").filter(|_| !arguments.iter().any(|of| of == "page"));
    let (divisor, runs) = if is_test { (1000, 1) } else { (1, RUNS) };
    let program =
        std::env::current_exe().expect("a path").ancestors().nth(2).expect("a directory").join("trace");
    let directory = tempfile::tempdir().expect("a directory");
    let (archive, page) = (directory.path().join("a.fxt"), directory.path().join("a.html"));
    println!("{runs} runs; ns for each event are the median, `decoded` those of reading alone\n");
    println!("| slices | page, MB | bytes each | decoded, ns | made, ns | million events/s | peak MB |");
    println!("|---|---|---|---|---|---|---|");
    let mut shown = Vec::new();
    for (name, events, has_argument) in PAGES {
        let events = events / divisor;
        // The largest memory of this process would count as that of its children.
        let own = std::env::current_exe().expect("a path");
        let mut write = Command::new(own);
        run(write.arg(WRITE).arg(&archive).arg(events.to_string()).arg(has_argument.to_string()));
        let (mut floor, mut times, mut most) = (Vec::new(), Vec::new(), 0);
        for _ in 0..runs {
            floor.push(decoded(&archive, events));
            let mut command = Command::new(&program);
            command.arg("report").arg(&archive).arg("-o").arg(&page).env("TMPDIR", directory.path());
            let (seconds, memory) = run(&mut command);
            times.push(seconds * 1e9 / events as f64);
            most = most.max(memory);
        }
        let bytes = fs::metadata(&page).expect("a page").len();
        let nanos = median(times);
        println!(
            "| {events} {name} | {:.2} | {:.1} | {:.0} | {nanos:.0} | {:.2} | {:.0} |",
            bytes as f64 / 1e6,
            bytes as f64 / events as f64,
            median(floor),
            1e3 / nanos,
            most as f64 / 1e6
        );
        if let Some(modules) = &modules {
            let script = workspace().join("tests/report/frames.mjs");
            let output = Command::new("node").arg(script).arg(&page).current_dir(modules).output();
            let output = output.expect("node");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
            shown.push((format!("{events} {name}"), found));
        }
    }
    if shown.is_empty() {
        println!("\nTRACE_TEST_CATAPULT names no directory with playwright-core: no browser was run");
        return;
    }
    println!("\nIn milliseconds, from the navigation on, and for each frame of the main thread:\n");
    println!(
        "| slices | first screen | timeline | all decoded | frame, median | frame, p95 | … processor time | frames missed | rectangles |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, found) in shown {
        let number = |member: &str| found[member].as_f64().expect("a number");
        println!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} % | {} |",
            number("first"),
            number("timeline"),
            number("all"),
            number("median"),
            number("p95"),
            number("cpuP95"),
            number("missed") * 100.0,
            found["rectangles"]
        );
    }
}
