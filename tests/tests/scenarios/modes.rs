//! Circular and streaming recordings of real programs.

use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::Instant;
use trace_format::slab::LossReason;
use trace_tests::sandbox::Process;
use trace_tests::{Archive, Sandbox, wait_for};

const THREADS: u64 = 4;

fn burst() -> &'static str {
    trace_tests::build::program("burst").to_str().unwrap()
}

fn page(sandbox: &Sandbox) -> String {
    let page = sandbox.file("page");
    fs::write(&page, [0; 4096]).unwrap();
    page.to_str().unwrap().to_owned()
}

fn counted(page: &str) -> Vec<u64> {
    let bytes = fs::read(page).expect("the page");
    bytes.as_chunks::<8>().0.iter().take(THREADS as usize).map(|word| u64::from_le_bytes(*word)).collect()
}

fn record(mode: &str, size: &str, each: u64) -> (Sandbox, Archive) {
    let sandbox = Sandbox::new();
    let page = page(&sandbox);
    let options = ["--buffering-mode", mode, "--buffer-size", size];
    sandbox.record(&options, "burst", &[&page, &each.to_string()]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(counted(&page), [each; THREADS as usize]);
    // By counts that have nothing to do with what was archived or lost.
    assert_eq!(archive.generated().into_values().collect::<Vec<_>>(), [THREADS * each]);
    let output = sandbox.trace(["check", "--allow", "loss,provider-event", "trace.fxt"]);
    assert!(output.status.success(), "{output:?}");
    (sandbox, archive)
}

fn numbers(archive: &Archive) -> Vec<Vec<u64>> {
    let threads = archive.by_thread("event");
    threads.values().map(|events| events.iter().map(|event| event.u64("n")).collect()).collect()
}

/// The numbers of each thread in their own order: a slab that stayed with a thread when its half was saved
/// comes later.
fn sorted_numbers(archive: &Archive) -> Vec<Vec<u64>> {
    let mut threads = numbers(archive);
    threads.iter_mut().for_each(|numbers| numbers.sort_unstable());
    threads
}

fn assert_nothing_twice(archive: &Archive) {
    for numbers in sorted_numbers(archive) {
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "something is there twice");
    }
}

/// Strictly growing: in order, and nothing twice.
fn assert_in_order(archive: &Archive) {
    for numbers in numbers(archive) {
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "out of order, or twice");
    }
}

/// How often the threads of a process have waited so far.
fn waits(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let statuses = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap());
    let waits = statuses.map(|status| {
        let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        waits.unwrap().trim().parse::<u64>().unwrap()
    });
    waits.sum()
}

/// Program, manager and client of a stream in which nothing happens wake seldom, each.
//= docs/buffer.md#streaming
#[test]
fn an_idle_stream_sleeps() {
    const MOST_PER_SECOND: f64 = 20.0;
    let sandbox = Sandbox::new();
    let page = page(&sandbox);
    let program = ["--buffering-mode", "streaming", "--", burst(), &page, "2", "2000000"];
    let recording = sandbox.spawn("trace", &[&["record"][..], &program].concat());
    wait_for("an event of each thread", || counted(&page).iter().all(|count| *count > 0).then_some(()));
    let burst = trace_tests::scene::child_of(recording.pid(), "burst").unwrap();
    let pids = [burst, sandbox.manager_pid().unwrap(), recording.pid()];
    let (begin, before) = (Instant::now(), pids.map(waits));
    wait_for("another event", || counted(&page).iter().any(|count| *count > 1).then_some(()));
    let after = pids.map(waits);
    let most = MOST_PER_SECOND * begin.elapsed().as_secs_f64();
    for (pid, (before, after)) in pids.iter().zip(before.iter().zip(after)) {
        assert!(((after - before) as f64) < most, "{pid} of {pids:?}: {} waits", after - before);
    }
}

#[test]
fn a_circular_recording_keeps_the_newest_and_counts_the_rest() {
    const EACH: u64 = 50_000;
    let (_, archive) = record("circular", "1", EACH);
    for numbers in numbers(&archive) {
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "a hole");
        assert_eq!(numbers.last(), Some(&(EACH - 1)));
    }
    let overwritten = archive.lost(LossReason::Overwritten);
    assert!(overwritten > 0);
    assert_eq!(archive.events.len() as u64 + overwritten, THREADS * EACH);
    assert_eq!(archive.losses.len(), 1, "{:?}", archive.losses);
    // The newest of what is missing is not newer than the newest of what is there.
    let newest = archive.events.iter().map(|event| event.event.timestamp).max().unwrap();
    assert!(archive.losses[0].first < archive.losses[0].last && archive.losses[0].last <= newest);
    assert_eq!(archive.filled_up, [], "nothing was refused");
}

/// The buffer holds everything, if the halves go round.
#[test]
fn a_streamed_recording_is_complete_where_there_is_room() {
    // Of 48 bytes: more than a half holds, and less than both do, however slowly they are saved.
    const EACH: u64 = 300_000;
    let (sandbox, archive) = record("streaming", "64", EACH);
    assert_eq!(sorted_numbers(&archive), vec![(0..EACH).collect::<Vec<_>>(); THREADS as usize]);
    assert_eq!(archive.losses, []);
    let output = sandbox.trace(["check", "trace.fxt"]);
    assert!(output.status.success(), "{output:?}");
    // More than one part of the provider is in the file: one for each half.
    let dump = String::from_utf8(sandbox.trace(["dump", "trace.fxt"]).stdout).unwrap();
    assert!(dump.lines().filter(|line| line.ends_with(" 1 - provider-section")).count() >= 1);
    assert_eq!(archive.providers.values().collect::<Vec<_>>(), ["trace_manager", "burst"]);
}

//= docs/protocol.md#losses
#[test]
fn a_stream_that_is_too_fast_loses_only_what_is_counted() {
    const EACH: u64 = 200_000;
    let (_, archive) = record("streaming", "1", EACH);
    assert_nothing_twice(&archive);
    let lost = archive.lost(LossReason::NotSaved) + archive.lost(LossReason::NotRetired);
    assert_eq!(archive.events.len() as u64 + lost, THREADS * EACH);
    assert_eq!(archive.losses.iter().map(|loss| loss.count).sum::<u64>(), lost);
    assert_eq!(archive.filled_up.is_empty(), lost == 0);
    for loss in &archive.losses {
        assert!(loss.first <= loss.last);
    }
}

/// Starts a recording of endless writers and kills them after so many events.
fn kill_after(sandbox: &Sandbox, mode: &str, events: u64) -> (Vec<u64>, Archive) {
    let page = page(sandbox);
    let options = ["record", "--buffering-mode", mode, "--buffer-size", "1", "--", burst(), &page];
    let recording = sandbox.spawn("trace", &options);
    wait_for("events", || (counted(&page).iter().sum::<u64>() > events).then_some(()));
    kill_burst(&recording);
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    (counted(&page), Archive::read(Path::new(&sandbox.file("trace.fxt"))))
}

fn kill_burst(recording: &Process) {
    let pid = wait_for("the burst", || {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", recording.pid())).ok()?;
        let pids = children.split_whitespace().map(|pid| pid.parse::<u32>().expect("a pid"));
        let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        pids.into_iter().find(|pid| name(pid).trim() == "burst")
    });
    trace_tests::sandbox::kill(pid, Signal::KILL);
}

/// What was written is archived or counted as lost, but for the one event that each thread was inside of.
#[test]
fn kill_9_of_a_circular_recording_loses_only_what_is_counted() {
    for round in 0..5 {
        let sandbox = Sandbox::new();
        let (counted, archive) = kill_after(&sandbox, "circular", 50_000 + round * 7_000);
        // A thread that was killed between its ticket and the ticket's slab leaves what the slab held, which
        // may be older than what others have taken meanwhile.
        assert_in_order(&archive);
        for (thread, counted) in counted.iter().enumerate() {
            let of_thread = archive.events.iter().filter(|event| event.u64("thread") == thread as u64);
            if let Some(last) = of_thread.map(|event| event.u64("n")).max() {
                assert!(last + 1 == *counted || last == *counted, "{last} archived, {counted} counted");
            }
        }
        assert_accounted(&archive, archive.lost(LossReason::Overwritten), &counted);
    }
}

#[test]
fn kill_9_of_a_stream_loses_only_what_is_counted() {
    for round in 0..5 {
        let sandbox = Sandbox::new();
        let (counted, archive) = kill_after(&sandbox, "streaming", 50_000 + round * 7_000);
        assert_nothing_twice(&archive);
        let lost = archive.lost(LossReason::NotSaved) + archive.lost(LossReason::NotRetired);
        assert_accounted(&archive, lost, &counted);
    }
}

fn assert_accounted(archive: &Archive, lost: u64, counted: &[u64]) {
    let generated: u64 = counted.iter().sum();
    let known = archive.events.len() as u64 + lost;
    assert!(known >= generated && known <= generated + THREADS, "{known} known, {generated} generated");
    let by_ledger = archive.generated().into_values().sum::<u64>();
    assert!(by_ledger.abs_diff(generated) <= THREADS, "{by_ledger} by the ledger, {generated} generated");
    assert_eq!(archive.losses.iter().map(|loss| loss.count).sum::<u64>(), lost, "{:?}", archive.losses);
}

/// What `--json` says of a recording.
fn report(output: &std::process::Output) -> serde_json::Value {
    trace_tests::json(output)
}

//= docs/recording.md#buffering-modes
#[test]
fn a_file_is_streamed_if_nothing_else_is_asked_for() {
    let sandbox = Sandbox::new();
    let emit = trace_tests::build::program("emit").to_str().unwrap();
    let output = sandbox.trace(["record", "--json", "-o", "a.fxt", "--", emit, "1", "2"]);
    let all = report(&output);
    let [provider] = all["programs"].as_array().unwrap().as_slice() else { panic!("{all}") };
    assert_eq!(provider["buffering_mode"], "streaming");
    assert_eq!(
        (&all["events"], &all["lost"], &provider["end_reason"]),
        (&28.into(), &0.into(), &"ended".into())
    );
    let answer = trace_tests::Answer::of(&output);
    assert_eq!((&answer.traces[0]["file"], answer.problems.len()), (&"a.fxt".into(), 0));
    assert_eq!(answer.code_is_of(), "command");
    // The command's own output has made room for it.
    let pid = provider["pid"].as_u64().unwrap().to_string();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.lines().any(|line| line.starts_with(&pid)), "{said}");

    assert!(sandbox.trace(["start", "-o", "b.fxt"]).status.success());
    let status = report(&sandbox.trace(["status", "--json"]));
    assert_eq!(status[0]["buffering_mode"], "streaming");
    assert!(sandbox.command("emit").args(["1", "2"]).output().unwrap().status.success());
    let all = report(&sandbox.trace(["stop", "--json"]));
    assert_eq!(all["programs"][0]["buffering_mode"], "streaming");
    assert_eq!(all["events"], 28);

    // A command that the recording has ended has another code than the recording.
    let command = ["record", "--json", "-o", "c.fxt", "--duration", "300ms", "--", "sleep", "60"];
    let answer =
        trace_tests::Answer::of(&sandbox.trace([&command[..4], &["--allow-empty"], &command[4..]].concat()));
    assert_eq!(answer.code_is_of(), "trace");
    let output = sandbox.trace(["record", "--json", "-o", "-", "--", emit, "1", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "trace: --json: the trace goes to stdout already\n");
}

//= docs/recording.md#what-is-lost
#[test]
fn what_was_lost_is_said_for_programs_too() {
    const EACH: u64 = 50_000;
    let sandbox = Sandbox::new();
    let page = page(&sandbox);
    let options = ["record", "--json", "--fail-on-loss", "--buffering-mode", "oneshot", "--buffer-size", "1"];
    let output = sandbox.trace([&options[..], &["--", burst(), &page, &EACH.to_string()]].concat());
    assert_eq!(output.status.code(), Some(4));
    let all = report(&output);
    let provider = &all["programs"][0];
    let [events, lost] = ["events", "lost"].map(|key| provider[key].as_u64().unwrap());
    assert!(lost > 0);
    assert_eq!(events + lost, THREADS * EACH);
    assert_eq!(provider["generated"].as_u64(), Some(THREADS * EACH));
    assert_eq!(all["lost"].as_u64(), Some(lost));
    let answer = trace_tests::Answer::of(&output);
    assert_eq!(answer.code_is_of(), "trace");
    let loss = serde_json::json!({
        "file": "trace.fxt", "program": "burst", "program_id": 1, "code": 0, "reason": "buffer full", "count": lost,
        "first_ns": null, "last_ns": null, "is_intended": false,
    });
    assert_eq!(answer.losses, [loss]);
    let advice = all["advice"][0].as_str().unwrap();
    assert!(advice.starts_with("nothing would have been lost with: --buffer-size "), "{advice}");
}
