//! Records itself as the lines of its input say, and answers each with a line.
//!
//! | line | does |
//! |---|---|
//! | `start CATEGORIES MODE MIB` | begins a local recording |
//! | `events N` | records N events more, on two threads in turns |
//! | `nested` | records durations in each other |
//! | `provide`, `leave` | makes a provider, and drops it |
//! | `stop` | ends the recording |
//! | `flush FILE` | delivers the recording, in pieces that are put together in a file |
//! | `file FILE` | flushes it into a file |
//! | `snapshot FILE [MS]` | writes what there is, or what ended in the last so many ms |
//! | `prepare FILE`, `request`, `signal` | a snapshot that is requested, here or in the handler of a signal |
//! | `requests N` | N events, with a request behind each, of which only the last is waited for |
//! | `fork` | what a child finds of the recording |
//! | `served FILE` | a child that begins a recording before its first event, and requests a snapshot |
//! | `orphan` | a child that records itself, forks a child that stays, prints its number, and dies |
//! | `forks N` | N children, each of which records itself, while a thread uses what such recordings have |

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trace_provider::startup::BufferMode;
use trace_provider::{
    Scope, TraceProvider, counter, duration, duration_begin, duration_end, instant, local, startup,
};

const PATIENCE: Duration = Duration::from_secs(30);

extern "C" fn on_signal(_signal: libc::c_int) {
    local::request_snapshot();
}

fn record(numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| instant!("local", "event", Scope::Thread, "number" => number));
}

fn shown<T>(result: std::io::Result<T>, show: impl FnOnce(T) -> String) -> String {
    result.map_or_else(|error| format!("error: {error}"), show)
}

fn summary(result: std::io::Result<local::Summary>) -> String {
    shown(result, |summary| format!("{} events, {:?} dropped", summary.events, summary.dropped))
}

fn flush(file: &str) -> String {
    let (mut bytes, mut lengths, mut lasts) = (Vec::new(), Vec::new(), 0);
    let flushed = local::flush(|piece, is_last| {
        bytes.extend_from_slice(piece);
        lengths.push(piece.len());
        lasts += u32::from(is_last);
    });
    if flushed.is_ok() {
        std::fs::write(file, bytes).expect("a file");
    }
    let longest = lengths.iter().max().unwrap_or(&0);
    format!("{} in {} pieces, the longest of {longest}, {lasts} last", summary(flushed), lengths.len())
}

/// What a forked child sees: neither a recording that goes on nor one that is over.
fn fork() -> String {
    // SAFETY: the child ends by itself.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_none = !local::is_recording() && local::flush(|_, _| {}).is_err();
        // SAFETY: no memory is touched.
        unsafe { libc::_exit(i32::from(!is_none)) };
    }
    let mut status = 0;
    // SAFETY: the child of this process, and a number to write to.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    format!("child {status}")
}

/// Whether a child's provider serves requests, although its first event is in a recording of its own.
fn served(file: &str) -> String {
    // SAFETY: the child ends by itself.
    let child = unsafe { libc::fork() };
    if child == 0 {
        local::start(&startup::Options::of("local")).expect("a recording");
        record(0..10);
        local::prepare_snapshot(Path::new(file), None);
        local::request_snapshot();
        let is_served = local::wait_for_snapshot(PATIENCE) && local::flush(|_, _| {}).is_ok();
        // SAFETY: no memory is touched.
        unsafe { libc::_exit(i32::from(!is_served)) };
    }
    let mut status = 0;
    // SAFETY: the child of this process, and a number to write to.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    format!("child {status}")
}

/// The number of a process that stays, and whose parent, a child of this process, has left a recording.
fn orphan() -> String {
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    // SAFETY: the child ends by itself.
    let child = unsafe { libc::fork() };
    if child == 0 {
        local::start(&startup::Options::of("local")).expect("a recording");
        record(0..100);
        // SAFETY: the grandchild stays until it is killed.
        let grandchild = unsafe { libc::fork() };
        if grandchild == 0 {
            // Nothing waits for the end of its output.
            for number in 0..3 {
                // SAFETY: a number.
                unsafe { libc::close(number) };
            }
            loop {
                std::thread::park();
            }
        }
        write!(writer, "{grandchild}").expect("a reader");
        std::process::abort();
    }
    drop(writer);
    let mut status = 0;
    // SAFETY: the child of this process, and a number to write to.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    let mut number = [0; 20];
    let length = std::io::Read::read(&mut reader, &mut number).expect("a number");
    String::from_utf8_lossy(&number[..length]).into_owned()
}

/// How many children, forked while a thread holds each lock again and again, could not record themselves in
/// time.
fn forks(children: u64) -> String {
    const SECONDS: u32 = 20;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                local::prepare_snapshot(Path::new("never"), None);
                let _ = local::flush(|_, _| {});
            }
        });
        let mut failed = 0;
        for _ in 0..children {
            // SAFETY: the child ends by itself.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: a number; the signal ends the child.
                unsafe { libc::alarm(SECONDS) };
                local::prepare_snapshot(Path::new("never"), None);
                let is_flushed =
                    local::start(&startup::Options::of("local")).is_ok() && local::flush(|_, _| {}).is_ok();
                // SAFETY: no memory is touched.
                unsafe { libc::_exit(i32::from(!is_flushed)) };
            }
            let mut status = 0;
            // SAFETY: the child of this process, and a number to write to.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            failed += u64::from(status != 0);
        }
        is_over.store(true, Ordering::Relaxed);
        format!("{failed} failed")
    })
}

fn main() {
    let mut provider = None;
    let mut sent = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[..] {
            ["start", categories, mode, size] => {
                let mode = if mode == "circular" { BufferMode::Circular } else { BufferMode::Oneshot };
                let buffer_mebibytes = size.parse().expect("a number");
                let options = startup::Options { mode, buffer_mebibytes, ..startup::Options::of(categories) };
                shown(local::start(&options), |()| "started".to_owned())
            }
            ["events", count] => {
                let count: u64 = count.parse().expect("a number");
                let (middle, end) = (sent + count / 2, sent + count);
                std::thread::spawn(move || record(sent..middle)).join().expect("a thread");
                record(middle..end);
                sent = end;
                format!("{sent} sent")
            }
            ["nested"] => {
                duration!("local", "outer", "number" => 1_u64);
                instant!("local", "at", Scope::Thread, "text" => "a\nb");
                {
                    duration!("local", "inner");
                    counter!("other", "count", 0, "value" => -5_i32);
                }
                duration_begin!("local", "open");
                instant!("local", "below", Scope::Thread);
                duration_end!("local", "open");
                "nested".to_owned()
            }
            ["provide"] => {
                provider = Some(TraceProvider::new("local"));
                "provided".to_owned()
            }
            ["leave"] => {
                provider = None;
                "left".to_owned()
            }
            ["stop"] => format!("{} {} {}", local::is_recording(), local::stop(), local::is_recording()),
            ["flush", file] => flush(file),
            ["file", file] => summary(local::flush_to_file(Path::new(file))),
            ["snapshot", file] => summary(local::snapshot_to_file(Path::new(file), None)),
            ["snapshot", file, last] => {
                let last = Duration::from_millis(last.parse().expect("a number"));
                summary(local::snapshot_to_file(Path::new(file), Some(last)))
            }
            ["prepare", file] => {
                local::prepare_snapshot(Path::new(file), None);
                "prepared".to_owned()
            }
            ["request"] => {
                local::request_snapshot();
                format!("{}", local::wait_for_snapshot(PATIENCE))
            }
            ["signal"] => {
                // SAFETY: the handler only asks for a snapshot.
                unsafe {
                    libc::signal(libc::SIGUSR1, on_signal as *const () as libc::sighandler_t);
                    libc::raise(libc::SIGUSR1);
                }
                format!("{}", local::wait_for_snapshot(PATIENCE))
            }
            ["requests", count] => {
                for _ in 0..count.parse::<u64>().expect("a number") {
                    record(sent..sent + 1);
                    sent += 1;
                    local::request_snapshot();
                }
                format!("{}", local::wait_for_snapshot(PATIENCE))
            }
            ["fork"] => fork(),
            ["orphan"] => orphan(),
            ["served", file] => served(file),
            ["forks", count] => forks(count.parse().expect("a number")),
            _ => panic!("{line}"),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("a reader");
    }
    drop(provider);
}
