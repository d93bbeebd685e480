//! How much memory `trace check` takes for an archive of 2 GB, and how long it takes against copying the
//! file.
//!
//! `cargo build --release` first: it runs the `trace` that stands beside it. `--bytes N` makes a smaller
//! archive.

use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use trace_benches::large;

const BYTES: u64 = 2_000_000_000;

/// Largest memory of the children that were waited for, in bytes.
fn peak_of_children() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to memory of the right size, which the call fills, and zeros are a valid
    // `rusage`.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_maxrss as u64 * 1024
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--bytes").skip(1);
    let bytes = arguments.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(BYTES);
    let program =
        std::env::current_exe().expect("a path").ancestors().nth(2).expect("a directory").join("trace");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("large.fxt");
    let events =
        large::write(File::create(&path).expect("a file"), bytes, None).expect("room for the archive");
    let size = path.metadata().expect("a file").len();

    let start = Instant::now();
    let (mut file, mut buffer) = (File::open(&path).expect("a file"), vec![0; 1 << 20]);
    while file.read(&mut buffer).expect("a file") > 0 {}
    let reading = start.elapsed();

    let start = Instant::now();
    let output = Command::new(&program).arg("check").arg(&path).stderr(Stdio::inherit()).output();
    let Ok(output) = output else {
        eprintln!("{} is not there: cargo build --release", program.display());
        return ExitCode::FAILURE;
    };
    let checking = start.elapsed();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.ends_with("clean\n"), "{text}");
    assert!(text.contains(&format!(" {events} events ")), "{text}");
    let strings = u64::from(large::PROVIDERS) * u64::from(large::STRINGS);
    println!(
        "archive: {:.2} GB, {events} events, {strings} strings, {} flows open at a time",
        size as f64 / 1e9,
        large::OPEN_FLOWS
    );
    println!("peak memory of trace check: {:.1} MB", peak_of_children() as f64 / 1e6);
    println!(
        "time: {:.1} s, {:.1} million events/s, {:.2} GB/s; reading the file alone {:.1} s",
        checking.as_secs_f64(),
        events as f64 / checking.as_secs_f64() / 1e6,
        size as f64 / checking.as_secs_f64() / 1e9,
        reading.as_secs_f64()
    );
    ExitCode::SUCCESS
}
