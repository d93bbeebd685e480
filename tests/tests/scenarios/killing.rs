//! Providers that die in the middle of it.

use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use trace_tests::{Archive, Sandbox, wait_for};

const THREADS: usize = 4;

/// What each thread says it has written.
fn counted(page: &std::path::Path) -> Vec<u64> {
    let bytes = fs::read(page).expect("the page");
    bytes.as_chunks::<8>().0.iter().take(THREADS).map(|word| u64::from_le_bytes(*word)).collect()
}

/// Every event whose macro has returned is in the archive or, where the machine was too slow to save the
/// buffer or to kill, counted as lost; none is there twice, and at most the one under way is uncertain.
#[test]
fn kill_9_in_the_middle_of_writing_loses_nothing() {
    let mut exact_rounds = 0;
    for round in 0..10_u64 {
        let sandbox = Sandbox::new();
        let page = sandbox.file("page");
        fs::write(&page, [0; 4096]).unwrap();
        let burst = trace_tests::build::program("burst").to_str().unwrap();
        let recording = sandbox.spawn("trace", &["record", "--", burst, page.to_str().unwrap()]);
        // Another moment each time, and long before the buffer is full.
        let threshold = 200 + round * 900;
        let pid = wait_for("the burst to write", || {
            let children = format!("/proc/{0}/task/{0}/children", recording.pid());
            let children = fs::read_to_string(children).ok()?;
            let is_under_way = counted(&page).iter().sum::<u64>() > threshold;
            let pids = children.split_whitespace().map(|pid| pid.parse::<u32>().expect("a pid"));
            let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            is_under_way.then(|| pids.into_iter().find(|pid| name(pid).trim() == "burst")).flatten()
        });
        trace_tests::sandbox::kill(pid, Signal::KILL);
        let output = recording.finish();
        assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
        let counted = counted(&page);
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        let mut archived = vec![BTreeSet::new(); THREADS];
        for event in &archive.events {
            let is_new = archived[event.u64("thread") as usize].insert(event.u64("n"));
            assert!(is_new, "round {round}: {} of thread {} twice", event.u64("n"), event.u64("thread"));
        }
        let sum = archived.iter().map(|numbers| numbers.len() as u64).sum::<u64>();
        let lost = archive.losses.iter().map(|loss| loss.count).sum::<u64>();
        let expected = counted.iter().sum::<u64>();
        assert!(
            (expected..=expected + THREADS as u64).contains(&(sum + lost)),
            "round {round}: {sum} archived and {lost} lost of {expected}"
        );
        if lost > 0 {
            continue;
        }
        exact_rounds += 1;
        for (thread, (numbers, counted)) in archived.iter().zip(counted).enumerate() {
            let archived = numbers.len() as u64;
            assert!(numbers.iter().copied().eq(0..archived), "round {round}, thread {thread}: gaps");
            assert!(
                archived == counted || archived == counted + 1,
                "round {round}, thread {thread}: {archived} archived, {counted} counted"
            );
        }
    }
    assert!(exact_rounds > 0, "no kill came before the first loss");
}

#[test]
fn one_event_before_an_abrupt_exit_is_in_the_archive() {
    for _ in 0..5 {
        let sandbox = Sandbox::new();
        sandbox.record(&[], "stubborn", &["once"]);
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        assert_eq!(archive.events.iter().map(|event| event.name()).collect::<Vec<_>>(), ["here"]);
    }
}

#[test]
fn a_command_ended_by_a_signal_is_recorded() {
    let sandbox = Sandbox::new();
    let stubborn = trace_tests::build::program("stubborn").to_str().unwrap();
    let output = sandbox.trace(["record", "--", stubborn, "signal", "6"]);
    assert_eq!(output.status.code(), Some(128 + 6), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 1);
}

#[test]
fn whatever_ends_a_program_its_events_stay() {
    let stubborn = trace_tests::build::program("stubborn").to_str().unwrap();
    for (how, code, expected) in [
        ("exec", 0, &["here"][..]),
        ("abort", 128 + 6, &["here"]),
        ("panic", 128 + 6, &["here", "about to panic"]),
    ] {
        let sandbox = Sandbox::new();
        let output = sandbox.trace(["record", "--", stubborn, how]);
        assert_eq!(output.status.code(), Some(code), "{how}: {output:?}");
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        assert_eq!(archive.events.iter().map(|event| event.name()).collect::<Vec<_>>(), expected, "{how}");
    }
}

/// The same word for the same run, every time.
//= docs/recording.md#how-a-program-ended
#[test]
fn how_the_command_ended_is_said() {
    let sandbox = Sandbox::new();
    let [emit, stubborn] =
        ["emit", "stubborn"].map(|name| trace_tests::build::program(name).to_str().unwrap());
    for (command, expected) in [
        ([emit, "1", "1", "--exit", "0"].as_slice(), "ended"),
        (&[emit, "1", "1", "--exit", "3"], "exit status 3"),
        (&[stubborn, "once"], "ended"),
        (&[stubborn, "signal", "9"], "killed by SIGKILL"),
        (&[stubborn, "signal", "15"], "killed by SIGTERM"),
    ] {
        for _ in 0..5 {
            let output = sandbox.trace([&["record", "--json", "--"], command].concat());
            let report: serde_json::Value = trace_tests::json(&output);
            assert_eq!(report["programs"][0]["end_reason"], expected, "{command:?}: {report}");
        }
    }
}
