//! How much memory conversions take for an archive of 2 GB that comes through a pipe, and what they make goes
//! into one.
//!
//! `cargo build --release` first: it runs the `trace` that stands beside it. `--bytes N` makes another
//! archive; names of conversions behind it run only these.

use std::io::Write;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;
use trace_benches::large;

const BYTES: u64 = 2_000_000_000;
/// A context switch for so many events.
const SWITCH_EVERY: u64 = 10;

/// What runs, of which the last reads what the one before wrote, and whose memory counts; the first reads the
/// archive.
const CONVERSIONS: [(&str, &[&[&str]]); 8] = [
    ("FXT to Catapult", &[&["convert", "--format", "catapult", "-", "-"]]),
    ("FXT to Chrome", &[&["convert", "--format", "chrome", "-", "-"]]),
    ("FXT to Perfetto", &[&["convert", "--format", "perfetto", "-", "-"]]),
    ("FXT to CSV", &[&["convert", "--format", "csv", "-", "tables"]]),
    ("FXT to Parquet", &[&["convert", "--format", "parquet", "-", "tables.parquet"]]),
    ("query", &[&["query", "SELECT count(*) FROM slices", "-"]]),
    (
        "JSON to FXT",
        &[&["convert", "--format", "chrome", "-", "-"], &["convert", "--format", "fxt", "-", "-"]],
    ),
    (
        "Perfetto to FXT",
        &[&["convert", "--format", "perfetto", "-", "-"], &["convert", "--format", "fxt", "-", "-"]],
    ),
];

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

fn spawn(program: &Path, directory: &Path, arguments: &[&str], input: Stdio, output: Stdio) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env("TMPDIR", directory).env("SQLITE_TMPDIR", directory);
    command.stdin(input).stdout(output).stderr(Stdio::null()).spawn().expect("cargo build --release")
}

fn main() {
    let arguments = std::env::args().skip_while(|argument| argument != "--bytes").skip(1);
    // Cargo adds an option of its own.
    let arguments: Vec<String> = arguments.filter(|argument| !argument.starts_with("--")).collect();
    let bytes = arguments.first().and_then(|bytes| bytes.parse().ok()).unwrap_or(BYTES);
    let program =
        std::env::current_exe().expect("a path").ancestors().nth(2).expect("a directory").join("trace");
    println!("| conversion | GB | million events | seconds | peak MB |");
    println!("|---|---|---|---|---|");
    for (name, stages) in CONVERSIONS {
        if arguments.len() > 1 && !arguments[1..].iter().any(|wanted| wanted == name) {
            continue;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let begin = Instant::now();
        let mut children: Vec<Child> = Vec::new();
        for (place, stage) in stages.iter().enumerate() {
            let input = children.last_mut().and_then(|before| before.stdout.take());
            let input = input.map_or(Stdio::piped(), Stdio::from);
            let output = if place + 1 < stages.len() { Stdio::piped() } else { Stdio::null() };
            children.push(spawn(&program, directory.path(), stage, input, output));
        }
        let mut pipe = children[0].stdin.take().expect("a pipe");
        let events = large::write(&mut pipe, bytes, Some(SWITCH_EVERY)).expect("a reader");
        pipe.flush().expect("a reader");
        drop(pipe);
        let mut peak = 0;
        for child in &children {
            let (status, memory) = wait(child);
            assert!(status.success(), "{name}: {status}");
            peak = memory;
        }
        println!(
            "| {name} | {:.1} | {:.0} | {:.0} | {:.0} |",
            bytes as f64 / 1e9,
            events as f64 / 1e6,
            begin.elapsed().as_secs_f64(),
            peak as f64 / 1e6
        );
    }
}
