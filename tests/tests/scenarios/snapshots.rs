//! Copies of a recording that goes on, and halves that are handed over before they are full.

use std::collections::BTreeMap;
use std::fs;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{
    FlushError, ProvisionerResponse, SessionRequest, SessionResponse, SnapshotError, StartOptions,
    StopOptions, TraceConfig,
};
use trace_tests::client::{Client, Session};
use trace_tests::sandbox::Process;
use trace_tests::{Archive, Sandbox, wait_for};

const THREADS: usize = 4;

struct Scene {
    sandbox: Sandbox,
    client: Client,
    session: Session,
    _manager: Process,
    _burst: Process,
}

impl Scene {
    /// `burst` records, with a pause of so many microseconds after each event, and has written this many.
    fn begin(mode: BufferingMode, megabytes: u32, pause: &str, events: u64) -> Self {
        let sandbox = Sandbox::new();
        let page = sandbox.file("page");
        fs::write(&page, [0; 4096]).unwrap();
        let manager = sandbox.spawn("trace", &["manager"]);
        let client = Client::connect(&sandbox);
        let mut session = client.begin(TraceConfig {
            buffering_mode: mode,
            buffer_size_megabytes_hint: megabytes,
            ..TraceConfig::default()
        });
        let started = session.ask(SessionRequest::StartTracing(StartOptions::default()));
        assert_eq!(started, SessionResponse::StartTracing(Ok(())));
        let limit = u64::MAX.to_string();
        let burst = sandbox.spawn_recorded("burst", &[page.to_str().unwrap(), &limit, pause]);
        let scene = Self { sandbox, client, session, _manager: manager, _burst: burst };
        scene.wait_until_written(events);
        scene
    }

    fn counted(&self) -> Vec<u64> {
        let bytes = fs::read(self.sandbox.file("page")).expect("the page");
        bytes.as_chunks::<8>().0.iter().take(THREADS).map(|word| u64::from_le_bytes(*word)).collect()
    }

    fn wait_until_written(&self, events: u64) {
        let is_written = || self.counted().iter().all(|counted| *counted > events).then_some(());
        wait_for("the program to write", is_written);
    }

    /// Takes a snapshot; the numbers of each thread in it.
    fn snapshot(&self) -> BTreeMap<u64, Vec<u64>> {
        let (answer, bytes) = self.client.snapshot();
        let ProvisionerResponse::TakeSnapshot(Ok(result)) = answer else { panic!("{answer:?}") };
        let [stats] = &result.provider_stats[..] else { panic!("{result:?}") };
        assert_eq!((stats.name.as_str(), stats.disposition.as_str()), ("burst", "recording"));
        assert_eq!((stats.problem.as_str(), stats.malformed_records), ("", Some(0)));
        let archive = Archive::of_bytes(&bytes);
        let names: Vec<_> = archive.manager_events.iter().map(|event| event.name.to_str()).collect();
        assert_eq!(names, ["recording", "recording_end"]);
        assert_eq!(stats.events_archived, Some(archive.events.len() as u64));
        numbers(&archive)
    }

    fn stop(&mut self) {
        let answer = self.session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }));
        assert!(matches!(answer, SessionResponse::StopTracing(Ok(_))), "{answer:?}");
    }
}

/// By thread, in the order of the file.
fn numbers(archive: &Archive) -> BTreeMap<u64, Vec<u64>> {
    let mut threads: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut koids = BTreeMap::new();
    for event in &archive.events {
        let (thread, koid) = (event.u64("thread"), event.event.thread.0);
        assert_eq!(*koids.entry(thread).or_insert(koid), koid, "an event of another thread");
        threads.entry(thread).or_default().push(event.u64("n"));
    }
    threads
}

//= docs/protocol.md#snapshot
#[test]
fn a_snapshot_has_all_that_was_written_before_it_and_no_program_stops() {
    let mut scene = Scene::begin(BufferingMode::Oneshot, 4, "100", 100);
    let output = scene.session.collect();
    for round in 0..3 {
        let before = scene.counted();
        let numbers = scene.snapshot();
        let after = scene.counted();
        for (thread, (before, after)) in (0..).zip(before.into_iter().zip(after)) {
            let found = &numbers[&thread];
            let all = found.len() as u64;
            assert!(found.iter().copied().eq(0..all), "round {round}, thread {thread}: gaps");
            assert!((before..=after + 1).contains(&all), "thread {thread}: {before} {all} {after}");
        }
        scene.wait_until_written(scene.counted().into_iter().max().unwrap());
    }
    // The session's own archive has nothing of it twice.
    let counted = scene.counted();
    scene.stop();
    drop(scene.session);
    let archive = Archive::of_bytes(&output.finish());
    for (thread, counted) in (0..).zip(counted) {
        let found = &numbers(&archive)[&thread];
        assert!(found.iter().copied().eq(0..found.len() as u64), "thread {thread}");
        assert!(found.len() as u64 >= counted, "thread {thread}");
    }
}

/// Four threads write as fast as they can, and the buffer goes round while it is copied.
#[test]
fn snapshots_of_a_buffer_that_goes_round_have_nothing_torn() {
    let scene = Scene::begin(BufferingMode::Circular, 1, "0", 100_000);
    let mut events = 0;
    for round in 0..20 {
        for (thread, numbers) in scene.snapshot() {
            assert!(numbers.is_sorted_by(|one, next| one < next), "round {round}, thread {thread}");
            events += numbers.len();
        }
    }
    assert!(events > 0, "nothing was ever found");
}

//= docs/protocol.md#flush
#[test]
fn a_flush_hands_over_what_there_is_while_recording_goes_on() {
    // Far from full.
    let mut scene = Scene::begin(BufferingMode::Streaming, 64, "100", 500);
    let output = scene.session.collect();
    let count = || {
        let bytes = output.so_far();
        let archive = if bytes.is_empty() { Archive::default() } else { Archive::of_prefix(&bytes) };
        numbers(&archive).values().map(Vec::len).sum::<usize>() as u64
    };
    assert_eq!(count(), 0);
    for _ in 0..3 {
        let counted = scene.counted().iter().sum::<u64>();
        let answer = scene.session.ask(SessionRequest::FlushBuffers);
        assert_eq!(answer, SessionResponse::FlushBuffers(Ok(())));
        wait_for("what was written before the flush", || (count() >= counted).then_some(()));
    }
    scene.stop();
    assert_eq!(
        scene.session.ask(SessionRequest::FlushBuffers),
        SessionResponse::FlushBuffers(Err(FlushError::Aborted))
    );
    drop(scene.session);
    let archive = Archive::of_bytes(&output.finish());
    for (thread, found) in &mut numbers(&archive) {
        found.sort_unstable();
        assert!(found.iter().copied().eq(0..found.len() as u64), "thread {thread}: gaps, or twice");
    }
}

#[test]
fn without_a_recording_there_is_no_snapshot() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let client = Client::connect(&sandbox);
    let refused = ProvisionerResponse::TakeSnapshot(Err(SnapshotError::NotStarted));
    assert_eq!(client.snapshot(), (refused.clone(), Vec::new()));
    let mut session = client.begin(TraceConfig::default());
    assert_eq!(
        session.ask(SessionRequest::FlushBuffers),
        SessionResponse::FlushBuffers(Err(FlushError::NotStarted))
    );
    assert_eq!(client.snapshot(), (refused, Vec::new()));
}

fn said(output: &std::process::Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether the kernel says how a process ended to others than its parent.
fn knows_how_programs_end() -> bool {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let process = zx_sim::ProcessFd::open(child.id()).unwrap();
    child.wait().unwrap();
    process.exit_status().is_some()
}

/// How programs ended that the client did not start; the same words every time.
//= docs/protocol.md#how-a-program-ended
#[test]
fn how_other_programs_ended_is_said() {
    let says = |expected: &'static str| if knows_how_programs_end() { expected } else { "ended" };
    let sandbox = Sandbox::new();
    for round in 0..3 {
        let file = format!("{round}.fxt");
        said(&sandbox.trace(["start", "-o", &file]));
        for arguments in [&["emit", "1", "1"][..], &["emit", "1", "2", "--exit", "3"], &["stubborn", "abort"]]
        {
            let _ = sandbox.command(arguments[0]).args(&arguments[1..]).output().unwrap();
        }
        let output = sandbox.trace(["stop", "--json"]);
        let report: serde_json::Value = trace_tests::json(&output);
        let ends =
            report["programs"].as_array().unwrap().iter().map(|one| one["end_reason"].as_str().unwrap());
        let ends: Vec<&str> = ends.map(|end| end.trim_end_matches(" (core dumped)")).collect();
        assert_eq!(ends, ["ended", says("exit status 3"), says("killed by SIGABRT")], "{round}");
    }
}

/// Runs a program to its end, however that is, and waits until the recording has what it left.
fn run_to_its_end(sandbox: &Sandbox, name: &str, arguments: &[&str]) {
    let _ = sandbox.command(name).args(arguments).output().unwrap();
    wait_for("the program's part to be written", || {
        let status = sandbox.trace(["status", "--json"]);
        let status: serde_json::Value = trace_tests::json(&status);
        status[0]["programs"].as_array().unwrap().is_empty().then_some(())
    });
}

/// The one that has crashed above all.
//= docs/protocol.md#snapshot
#[test]
fn a_snapshot_has_what_ended_programs_recorded() {
    for mode in ["oneshot", "circular", "streaming"] {
        let sandbox = Sandbox::new();
        let page = sandbox.file("page");
        fs::write(&page, [0; 4096]).unwrap();
        said(&sandbox.trace(["start", "--buffering-mode", mode, "-o", "all.fxt"]));
        run_to_its_end(&sandbox, "burst", &[page.to_str().unwrap(), "500"]);
        run_to_its_end(&sandbox, "stubborn", &["abort"]);
        for round in 0..2 {
            let said = said(&sandbox.trace(["snapshot", "-o", "snapshot.fxt"]));
            let archive = Archive::read(&sandbox.file("snapshot.fxt"));
            let all = numbers_of(&archive, "burst");
            let expected: BTreeMap<u64, Vec<u64>> =
                (0..THREADS as u64).map(|thread| (thread, (0..500).collect())).collect();
            assert!(all == expected, "{mode}, {round}: {said}");
            let here = archive.events.iter().filter(|event| event.event.name.to_str() == "here").count();
            assert_eq!(here, 1, "{mode}, {round}: {said}");
            let ended = |name: &str, how: &str| {
                let is_named = |line: &&str| line.starts_with(&format!("trace: {name} (pid "));
                said.lines().filter(is_named).any(|line| line.contains(how))
            };
            let killed = if knows_how_programs_end() { "): killed by SIGABRT" } else { "): ended " };
            assert!(ended("burst", "): ended ") && ended("stubborn", killed), "{mode}: {said}");
            assert!(said.contains("trace: no period is covered by all programs\n"), "{mode}: {said}");
        }
        // The recording has everything once.
        said(&sandbox.trace(["stop"]));
        let archive = Archive::read(&sandbox.file("all.fxt"));
        assert_eq!(archive.events.len(), 4 * 500 + 1, "{mode}");
    }
}

/// By thread, the numbers of one program's events.
fn numbers_of(archive: &Archive, program: &str) -> BTreeMap<u64, Vec<u64>> {
    let mut threads: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for event in archive.events.iter().filter(|event| event.event.category.to_str() == program) {
        threads.entry(event.u64("thread")).or_default().push(event.u64("n"));
    }
    threads.values_mut().for_each(|numbers| numbers.sort_unstable());
    threads
}

/// What is used counts, not the buffers' sizes, and the oldest make room for the newest.
//= docs/protocol.md#snapshot
#[test]
fn of_ended_programs_so_much_is_kept() {
    let sandbox = Sandbox::new();
    let page = sandbox.file("page");
    let options = ["--buffer-size", "16", "--keep-ended", "1MiB", "--buffering-mode", "oneshot"];
    said(&sandbox.trace([&["start"][..], &options].concat()));
    // Each has used some 600 KiB: two are too many.
    for count in [3000, 3001] {
        fs::write(&page, [0; 4096]).unwrap();
        run_to_its_end(&sandbox, "burst", &[page.to_str().unwrap(), &count.to_string()]);
    }
    let said_of = said(&sandbox.trace(["snapshot"]));
    let archive = Archive::read(&sandbox.file("snapshot.fxt"));
    assert_eq!(numbers_of(&archive, "burst").values().map(Vec::len).sum::<usize>(), 4 * 3001);
    let given_up = said_of
        .lines()
        .filter(|line| line.ends_with("): it is not kept, as --keep-ended has no room for it"));
    assert_eq!(given_up.count(), 1, "{said_of}");
    said(&sandbox.trace(["stop"]));

    said(&sandbox.trace(["start", "-o", "none.fxt", "--keep-ended", "1KiB"]));
    run_to_its_end(&sandbox, "stubborn", &["once"]);
    let said_of = said(&sandbox.trace(["snapshot", "-o", "none-kept.fxt"]));
    assert!(said_of.contains("): it is not kept, as --keep-ended has no room for it\n"), "{said_of}");
    assert_eq!(Archive::read(&sandbox.file("none-kept.fxt")).events.len(), 0);
    said(&sandbox.trace(["stop"]));
}

/// A program's own end is what counts, not the time of the snapshot.
//= docs/protocol.md#snapshot
#[test]
fn the_last_of_an_ended_program_is_before_its_end() {
    let sandbox = Sandbox::new();
    let page = sandbox.file("page");
    fs::write(&page, [0; 4096]).unwrap();
    said(&sandbox.trace(["start", "--buffering-mode", "circular"]));
    run_to_its_end(&sandbox, "stubborn", &["once"]);
    // For 1.5 s.
    run_to_its_end(&sandbox, "burst", &[page.to_str().unwrap(), "6", "250000"]);
    said(&sandbox.trace(["snapshot", "--last", "1s"]));
    let archive = Archive::read(&sandbox.file("snapshot.fxt"));
    assert_eq!(archive.events.iter().filter(|event| event.event.name.to_str() == "here").count(), 1);
    for numbers in numbers_of(&archive, "burst").values() {
        assert!(!numbers.contains(&0) && numbers.contains(&5), "{numbers:?}");
    }
    said(&sandbox.trace(["stop"]));
}

//= docs/recording.md#in-the-background
#[test]
fn a_snapshot_without_a_name_replaces_nothing_and_an_empty_one_no_good_one() {
    let sandbox = Sandbox::new();
    let snapshot = |arguments: &[&str]| said(&sandbox.trace([&["snapshot"], arguments].concat()));
    assert!(sandbox.trace(["start", "--buffering-mode", "oneshot", "-o", "a.fxt"]).status.success());
    sandbox.spawn_recorded("emit", &["1", "1"]).succeed();
    assert!(snapshot(&[]).ends_with("trace: 14 events in snapshot.fxt\n"));
    assert!(snapshot(&[]).ends_with("trace: 14 events in snapshot-1.fxt\n"));
    assert!(sandbox.trace(["stop"]).status.success());
    assert!(sandbox.trace(["start", "--buffering-mode", "oneshot", "-o", "b.fxt"]).status.success());
    let kept = std::fs::read(sandbox.file("snapshot.fxt")).expect("the snapshot");
    assert!(snapshot(&["-o", "snapshot.fxt"]).ends_with("trace: 0 events; snapshot.fxt stays as it was\n"));
    assert_eq!(std::fs::read(sandbox.file("snapshot.fxt")).expect("the snapshot"), kept);
    let refused = sandbox.trace(["snapshot", "-o", "s.txt"]);
    assert_eq!(refused.status.code(), Some(2));
    let reason = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(reason.ends_with("end the name in .fxt, .json, .pftrace or .folded\n"), "{reason}");
    assert!(sandbox.trace(["stop", "--abort"]).status.success());
}
