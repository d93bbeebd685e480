//! A buffer that becomes full.

use std::fs;
use std::process::Command;
use trace_format::record::{RecordHeader, RecordType};
use trace_tests::archive::Value;
use trace_tests::client::Client;
use trace_tests::{Archive, Requirement, Sandbox};

#[test]
fn a_full_buffer_keeps_a_prefix_and_counts_the_rest() {
    const EVENTS: u64 = 60_000;
    const THREADS: u64 = 4;
    let sandbox = Sandbox::new();
    let page = sandbox.file("page");
    fs::write(&page, [0; 4096]).unwrap();
    let oneshot = ["--buffering-mode", "oneshot"];
    let output = sandbox.record(&oneshot, "burst", &[page.to_str().unwrap(), &EVENTS.to_string()]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let kept = archive.events.len() as u64;
    assert!(kept > 40_000 && kept < THREADS * EVENTS, "{kept}");
    for events in archive.by_thread_and_time("event").values() {
        let numbers: Vec<u64> = events.iter().map(|event| event.u64("n")).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "gaps");
    }
    assert_eq!(archive.filled_up.len(), 1);
    assert_eq!(archive.providers[&archive.filled_up[0]], "burst");
    // Everything that was emitted was kept or counted.
    let stderr = String::from_utf8_lossy(&output.stderr);
    let dropped = THREADS * EVENTS - kept;
    assert!(stderr.contains(&format!("lost {dropped} records")), "{kept} kept; {stderr}");
}

/// Where the definitions have no room, strings stand in their events. None of these is missing, and each has
/// its own texts, whichever thread came to a site first.
//= docs/buffer.md#a-full-durable-region
#[test]
fn a_program_with_more_strings_than_there_is_room_for_loses_nothing() {
    const ROUNDS: u64 = 3;
    const THREADS: u64 = 2;
    const SITES: usize = 64;
    for mode in ["oneshot", "circular", "streaming"] {
        let sandbox = Sandbox::new();
        let options = ["--buffering-mode", mode, "--buffer-size", "1"];
        sandbox.record(&options, "strings", &[&ROUNDS.to_string()]);
        let output = sandbox.trace(["check", "trace.fxt"]);
        assert!(output.status.success(), "{mode}: {output:?}");
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        assert_eq!(archive.losses, [], "{mode}");
        let expected = SITES as u64 * ROUNDS * THREADS;
        assert_eq!(archive.generated().into_values().collect::<Vec<_>>(), [expected], "{mode}");
        let long = |name: &str, site: usize| format!("{name} {site} {}", "0123456789".repeat(70));
        let mut found: Vec<(String, String, u64)> = Vec::new();
        for event in &archive.events {
            let [(argument, Value::Uint64(round))] = &event.event.arguments[..] else { panic!("{event:?}") };
            found.push((event.name(), argument.to_str().into_owned(), *round));
        }
        let of_site = |site| {
            let rounds = (0..ROUNDS).flat_map(|round| [round; THREADS as usize]);
            rounds.map(move |round| (long("name", site), long("argument", site), round))
        };
        let mut all: Vec<_> = (0..SITES).flat_map(of_site).collect();
        found.sort();
        all.sort();
        assert!(found == all, "{mode}: {} of {expected} events", found.len());
        // Some found room, and most did not.
        let bytes = fs::read(sandbox.file("trace.fxt")).unwrap();
        let definitions = strings(&bytes);
        assert!((20..2 * SITES).contains(&definitions), "{mode}: {definitions}");
    }
}

/// How many strings an archive defines.
fn strings(archive: &[u8]) -> usize {
    let mut rest = archive;
    let mut found = 0;
    while let Some(header) = rest.first_chunk::<8>() {
        let header = RecordHeader(u64::from_le_bytes(*header));
        found += usize::from(header.record_type() == Some(RecordType::String));
        rest = &rest[header.size().bytes()..];
    }
    found
}

//= docs/recording.md#what-is-lost
#[test]
fn a_loss_fails_where_that_is_asked_for_and_the_command_does_not() {
    let sandbox = Sandbox::new();
    for (events, code, expected) in [("100000", "0", 4), ("100000", "7", 7), ("1", "0", 0)] {
        let emit = trace_tests::build::program("emit").to_str().unwrap();
        let options = ["record", "--fail-on-loss", "--buffering-mode", "oneshot"];
        let output = sandbox.trace([&options[..], &["--", emit, "1", events, "--exit", code]].concat());
        assert_eq!(output.status.code(), Some(expected), "{events} {code}: {output:?}");
    }
    sandbox.record(&["--buffering-mode", "oneshot"], "emit", &["1", "100000"]);
}

/// Unmounts when the test is over, however it ends.
pub(super) struct Mounted(pub std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Memory that is as small as that of many containers: the size that fits is named, and is one.
//= docs/recording.md#advice
#[test]
fn where_memory_is_small_a_smaller_buffer_is_advised() {
    if !Requirement::Mounts.is_met("where_memory_is_small_a_smaller_buffer_is_advised") {
        return;
    }
    let sandbox = Sandbox::new();
    let directory = sandbox.runtime_dir();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=8m,mode=700", "none"]).arg(&directory);
    assert!(mount.status().unwrap().success());
    let _mounted = Mounted(directory.clone());
    let emit = trace_tests::build::program("emit").to_string_lossy().into_owned();
    let output = sandbox.trace(["record", "--buffer-size", "16", "-o", "none.fxt", "--", &emit, "1", "1"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "{said}");
    let (_, behind) = said.split_once("; record with --buffer-size ").unwrap_or_else(|| panic!("{said}"));
    let (size, _) = behind.split_once(", or use another: ").unwrap();
    let output = sandbox.record(&["--buffer-size", size, "-o", "some.fxt"], "emit", &["1", "1"]);
    assert_eq!(Archive::read(&sandbox.file("some.fxt")).events.len(), 14, "{output:?}");
}

/// The program runs on untraced, and the tool says which directory lacks how much.
#[test]
fn a_runtime_directory_without_room_is_named() {
    if !Requirement::Mounts.is_met("a_runtime_directory_without_room_is_named") {
        return;
    }
    let sandbox = Sandbox::new();
    let directory = sandbox.runtime_dir();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m,mode=700", "none"]).arg(&directory);
    assert!(mount.status().unwrap().success());
    let _mounted = Mounted(directory.clone());
    let emit = trace_tests::build::program("emit").to_string_lossy().into_owned();
    let output = sandbox.trace(["record", "--", &emit, "1", "1"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{stderr}");
    let words = [
        "no room in",
        &*directory.to_string_lossy(),
        // The buffer, and pages for open scopes.
        "4329472 bytes needed",
        "use another: export TRACE_RUNTIME_DIR=",
    ];
    assert!(words.iter().all(|word| stderr.contains(word)), "{stderr}");
    // It has not waited for a start that does not come.
    assert!(!stderr.contains("has not answered in time"), "{stderr}");
    assert!(Archive::read(&sandbox.file("trace.fxt")).events.is_empty());
}

/// Writing fails at some byte: what is whole before it is kept, the cause is named, and the rest can be
/// recovered.
//= docs/recovery.md#a-sessions-directory
#[test]
fn a_trace_that_cannot_be_written_any_further_keeps_what_is_whole() {
    let mut random = 12_345_u64;
    let mut limits = vec![0, 7, 8, 9, 16, 200, 500, 1000, 3_000_000, 3_500_000, 3_800_000];
    for _ in 0..12 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        limits.push(random >> 32 & 0xf_ffff);
    }
    for limit in limits {
        let sandbox = Sandbox::new();
        // Its own files are not to be limited.
        let _manager = sandbox.spawn("trace", &["manager"]);
        let _client = Client::connect(&sandbox);
        let page = sandbox.file("page");
        fs::write(&page, [0; 4096]).unwrap();
        let trace = trace_tests::build::program("trace");
        let burst = trace_tests::build::program("burst");
        let output = Command::new("prlimit")
            .arg(format!("--fsize={limit}:{limit}"))
            .arg(trace)
            .args(["record", "--buffering-mode", "oneshot", "--"])
            .arg(burst)
            .arg(&page)
            .arg("20000")
            .current_dir(sandbox.work_dir())
            .env("TRACE_RUNTIME_DIR", sandbox.runtime_dir())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{limit}: {stderr}");
        assert!(stderr.contains("cannot write the trace: File too large"), "{limit}: {stderr}");
        assert!(!sandbox.file("trace.fxt").exists());
        let file = sandbox.file("trace.partial.fxt");
        if !file.exists() {
            // Nothing was recorded yet, only said who records.
            assert!(limit < 1000, "{limit}");
            continue;
        }
        let kept = fs::metadata(&file).unwrap().len();
        assert!(kept <= limit, "{limit}: {kept}");
        assert!(kept + 600 > limit, "{limit}: {kept}");
        // The file ends in the middle of the buffer. There may be a gap: what a thread that ended early has
        // left of a slab is used by another one, whose events before that stand further behind.
        let archive = Archive::read(&file);
        for events in archive.by_thread_and_time("event").values() {
            assert!(events.iter().map(|event| event.u64("n")).is_sorted_by(|a, b| a < b), "{limit}");
        }
        let output = sandbox.trace(["recover"]);
        assert!(output.status.success(), "{limit}: {output:?}");
        let archive = Archive::read(&sandbox.file("recovered.fxt"));
        let lost: u64 = archive.losses.iter().map(|loss| loss.count).sum();
        assert_eq!(archive.events.len() as u64 + lost, 80_000, "{limit}");
        for events in archive.by_thread_and_time("event").values() {
            assert!(events.iter().map(|event| event.u64("n")).eq(0..events.len() as u64), "{limit}");
        }
        assert!(!file.exists(), "{limit}");
    }
}
