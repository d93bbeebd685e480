//! One clock for all processes.

use crate::child::{self, receive_bytes, receive_number, send_number};
use rustix::time::ClockId;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use zx_sim::Channel;
use zx_sim::ticks::{self, Clock, Source};

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

fn file_in(directory: &Path) -> PathBuf {
    directory.join("ticks")
}

/// A file that holds what `clock` says.
fn text_of(boot: &str, clock: Clock) -> String {
    format!("{boot}\n{}\n{}\n", clock.source.name(), clock.ticks_per_second)
}

fn receive_path(channel: &Channel) -> PathBuf {
    PathBuf::from(String::from_utf8(receive_bytes(channel)).unwrap())
}

fn send_path(channel: &Channel, path: &Path) {
    channel.write(path.to_str().unwrap().as_bytes(), Vec::new()).unwrap();
}

#[test]
fn time_goes_forward_from_process_to_process_at_one_rate() {
    const ROUNDS: usize = 2000;
    let Some(child) = child::start(|channel| {
        let clock = Clock::load_or_create(&receive_path(&channel)).unwrap();
        assert_eq!(clock.source, ticks::source());
        channel.write(clock.source.name().as_bytes(), Vec::new()).unwrap();
        // Before the parent can read the clock for the first time.
        let mut last = ticks::now();
        send_number(&channel, clock.ticks_per_second);
        for _ in 0..ROUNDS {
            let theirs = receive_number(&channel);
            assert!(last <= theirs, "{last} and then {theirs}");
            last = ticks::now();
            assert!(theirs <= last, "{theirs} and then {last}");
            send_number(&channel, last);
        }
    }) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::load_or_create(directory.path()).unwrap();
    send_path(&child.channel, directory.path());
    assert_eq!(receive_bytes(&child.channel), clock.source.name().as_bytes());
    assert_eq!(receive_number(&child.channel), clock.ticks_per_second);
    for _ in 0..ROUNDS {
        let ours = ticks::now();
        send_number(&child.channel, ours);
        let theirs = receive_number(&child.channel);
        assert!(ours <= theirs, "{ours} and then {theirs}");
    }
    child.finish();
}

#[test]
fn ticks_never_go_back_in_a_thread() {
    let mut last = ticks::now();
    for _ in 0..1_000_000 {
        let next = ticks::now();
        assert!(last <= next, "{last} and then {next}");
        last = next;
    }
}

/// Ticks, and the kernel's time in nanoseconds at that moment: of many readings the one that took least.
fn ticks_and_nanos() -> (u64, u64) {
    // The one that is adjusted, if that is where ticks come from.
    let is_adjusted = ticks::source() == Source::Monotonic;
    let kernels_clock = if is_adjusted { ClockId::Monotonic } else { ClockId::MonotonicRaw };
    let readings = (0..100).map(|_| {
        let before = ticks::now();
        let time = rustix::time::clock_gettime(kernels_clock);
        let after = ticks::now();
        (after - before, before, time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    });
    let (_, ticks, nanos) = readings.min().unwrap();
    (ticks, nanos)
}

#[test]
fn ticks_are_as_long_as_the_clock_says() {
    let clock = Clock::measure();
    let (first_ticks, first_nanos) = ticks_and_nanos();
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        std::thread::yield_now();
    }
    let (last_ticks, last_nanos) = ticks_and_nanos();
    let seconds = (last_nanos - first_nanos) as f64 / 1e9;
    let ratio = (last_ticks - first_ticks) as f64 / clock.ticks_per_second as f64 / seconds;
    assert!((ratio - 1.0).abs() < 1e-4, "{clock:?} is wrong by {ratio}");
}

#[test]
fn the_first_one_decides() {
    let directory = tempfile::tempdir().unwrap();
    let first = Clock { source: ticks::source(), ticks_per_second: 123_456_789 };
    std::fs::write(file_in(directory.path()), text_of(&boot_id(), first)).unwrap();
    assert_eq!(Clock::load_or_create(directory.path()).unwrap(), first);
    assert_eq!(directory.path().read_dir().unwrap().count(), 1);
}

//= docs/protocol.md#where-processes-meet
#[test]
fn directories_agree_with_each_other() {
    let base = tempfile::tempdir().unwrap();
    let [own, other, shared] = ["own", "other", "shared"].map(|name| base.path().join(name));
    for directory in [&own, &other, &shared] {
        std::fs::create_dir(directory).unwrap();
    }
    let clock = |ticks_per_second| Clock { source: ticks::source(), ticks_per_second };
    // Of one that everyone may write to, nothing is taken.
    clock(5).impose(&shared).unwrap();
    std::fs::set_permissions(&shared, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    clock(7).impose(&other).unwrap();
    assert_eq!(Clock::agreed(&own, &[shared, base.path().join("none"), other.clone()]).unwrap(), clock(7));
    assert_eq!(Clock::load_or_create(&own).unwrap(), clock(7));
    clock(9).impose(&own).unwrap();
    assert_eq!(Clock::agreed(&own, &[other]).unwrap(), clock(9), "what it has stays");
}

#[test]
fn what_does_not_hold_for_this_boot_is_replaced() {
    let clock = Clock::measure();
    let boot = boot_id();
    let wrong = Clock { source: ticks::source(), ticks_per_second: 123_456_789 };
    let other_boot = "00000000-1111-2222-3333-444444444444";
    for text in [
        text_of(other_boot, wrong),
        format!("{boot}\nhpet\n123456789\n"),
        format!("{boot}\n{}\n0\n", wrong.source.name()),
        format!("{boot}\n{}\nmany\n", wrong.source.name()),
        format!("{boot}\n"),
        String::new(),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = file_in(directory.path());
        std::fs::write(&file, &text).unwrap();
        let found = Clock::load_or_create(directory.path()).unwrap();
        assert_eq!(found.source, clock.source, "{text:?}");
        let ratio = found.ticks_per_second as f64 / clock.ticks_per_second as f64;
        assert!((ratio - 1.0).abs() < 1e-3, "{text:?}: {found:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text_of(&boot, found));
        assert_eq!(directory.path().read_dir().unwrap().count(), 1, "nothing else is left");
    }
}

/// The kernel gives both the same rate, so the test compares the file that they use.
#[test]
fn of_two_processes_one_writes_the_file() {
    const ROUNDS: usize = 50;
    let Some(child) = child::start(|channel| {
        for _ in 0..ROUNDS {
            let directory = receive_path(&channel);
            let clock = Clock::load_or_create(&directory).unwrap();
            let file = std::fs::metadata(file_in(&directory)).unwrap();
            send_number(&channel, clock.ticks_per_second);
            send_number(&channel, file.ino());
        }
    }) else {
        return;
    };
    let wrong = Clock { source: ticks::source(), ticks_per_second: 1 };
    for round in 0..ROUNDS {
        let directory = tempfile::tempdir().unwrap();
        if round % 2 == 1 {
            std::fs::write(file_in(directory.path()), text_of("another boot", wrong)).unwrap();
        }
        send_path(&child.channel, directory.path());
        let clock = Clock::load_or_create(directory.path()).unwrap();
        let file = std::fs::metadata(file_in(directory.path())).unwrap();
        assert_eq!(receive_number(&child.channel), clock.ticks_per_second);
        assert_eq!(receive_number(&child.channel), file.ino());
    }
    child.finish();
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    child::assert_error(
        Clock::load_or_create(&missing),
        &format!("cannot use {}: No such file or directory (os error 2)", file_in(&missing).display()),
    );
}
