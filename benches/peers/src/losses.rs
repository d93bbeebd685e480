//! What is missing of a process that is killed: events that it had recorded, as it says by a counter in
//! shared memory, and that the file lacks.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tracing_subscriber::prelude::*;

const ROLE: &str = "TRACE_PEER_VICTIM";
/// Between two events.
const PAUSE: Duration = Duration::from_micros(10);

const VICTIMS: [&str; 2] = ["tracing-perfetto-file", "tracing-chrome"];

/// A counter in a file.
fn counter(path: &Path) -> &'static AtomicU64 {
    let file =
        File::options().read(true).write(true).create(true).truncate(false).open(path).expect("a file");
    file.set_len(8).expect("it has room");
    // SAFETY: a new mapping of a file of 8 bytes, which stays.
    unsafe {
        let address = libc::mmap(
            std::ptr::null_mut(),
            8,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(address, libc::MAP_FAILED);
        &*address.cast()
    }
}

fn paths(directory: &Path) -> (PathBuf, PathBuf) {
    (directory.join("trace"), directory.join("counter"))
}

/// Whether this process is one that is killed.
pub fn is_victim() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// Records events without end.
pub fn play() -> ! {
    let role = std::env::var(ROLE).expect("it is a victim");
    let (name, directory) = role.split_once(' ').expect("a name and a directory");
    let (trace, recorded) = paths(Path::new(directory));
    let recorded = counter(&recorded);
    let _guard: Box<dyn std::any::Any> = if name == VICTIMS[0] {
        let file = File::create(&trace).expect("a file");
        let (layer, guard) = tracing_perfetto_file::PerfettoLayer::builder(file).build();
        tracing_subscriber::registry().with(layer).init();
        Box::new(guard)
    } else {
        let (layer, guard) = tracing_chrome::ChromeLayerBuilder::new().file(&trace).build();
        tracing_subscriber::registry().with(layer).init();
        Box::new(guard)
    };
    loop {
        tracing::info!("instant");
        recorded.fetch_add(1, Ordering::Release);
        let begin = Instant::now();
        while begin.elapsed() < PAUSE {
            std::hint::spin_loop();
        }
    }
}

/// Events in a file of Chrome's JSON.
fn events_of_chrome(bytes: &[u8]) -> u64 {
    String::from_utf8_lossy(bytes).matches("\"ph\":\"i\"").count() as u64
}

/// A number of Protocol Buffers, and what is behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let number = bytes[..length].iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f));
    Some((number, &bytes[length..]))
}

/// Packets of a Perfetto trace that have a field of this number.
fn packets_with(field: u64, mut bytes: &[u8]) -> u64 {
    let mut found = 0;
    while let Some((tag, behind)) = varint(bytes) {
        let Some((length, behind)) = varint(behind) else { break };
        if tag != 10 || behind.len() < length as usize {
            break;
        }
        let (mut packet, next) = behind.split_at(length as usize);
        while let Some((tag, behind)) = varint(packet) {
            found += u64::from(tag >> 3 == field);
            let length = match tag & 7 {
                0 => varint(behind).map(|(_, rest)| behind.len() - rest.len()),
                1 => Some(8),
                2 => varint(behind).map(|(length, rest)| behind.len() - rest.len() + length as usize),
                _ => Some(4),
            };
            packet = length.and_then(|length| behind.get(length..)).unwrap_or_default();
        }
        bytes = next;
    }
    found
}

/// Of one trial: how many events were recorded, and how many of them the file has.
fn trial(name: &str, number: u64) -> (u64, u64) {
    /// Of a packet: what happened on a thread.
    const TRACK_EVENT: u64 = 11;
    let directory = tempfile::tempdir().expect("a directory");
    let (trace, recorded) = paths(directory.path());
    let recorded = counter(&recorded);
    let mut victim = Command::new(std::env::current_exe().expect("a path"))
        .env(ROLE, format!("{name} {}", directory.path().display()))
        .spawn()
        .expect("the program runs");
    // Between 100 and 10 000 events.
    let enough = 100 + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 9_900;
    while recorded.load(Ordering::Acquire) < enough {
        std::thread::yield_now();
    }
    victim.kill().expect("it runs");
    victim.wait().expect("it was killed");
    let bytes = std::fs::read(trace).expect("the file is there");
    let kept = if name == VICTIMS[0] { packets_with(TRACK_EVENT, &bytes) } else { events_of_chrome(&bytes) };
    (recorded.load(Ordering::Acquire), kept)
}

/// A table of all.
pub fn print(trials: u64) {
    println!("| subscriber | kills | recorded | lost | in how many kills | most at once |");
    println!("|---|---|---|---|---|---|");
    for name in VICTIMS {
        let results: Vec<_> = (0..trials).map(|number| trial(name, number)).collect();
        let lost: Vec<u64> = results.iter().map(|(recorded, kept)| recorded.saturating_sub(*kept)).collect();
        let recorded: u64 = results.iter().map(|(recorded, _)| recorded).sum();
        let concerned = lost.iter().filter(|lost| **lost > 0).count();
        println!(
            "| {name} | {trials} | {recorded} | {} ({:.0} %) | {concerned} | {} |",
            lost.iter().sum::<u64>(),
            100.0 * lost.iter().sum::<u64>() as f64 / recorded as f64,
            lost.iter().max().unwrap_or(&0),
        );
    }
}
