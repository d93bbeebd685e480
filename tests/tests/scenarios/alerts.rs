//! Alerts: each is an event of the archive, and those that a client does not come round to are counted.

use rustix::process::Signal;
use std::process::Output;
use trace_format::event::{EventKind, Scope};
use trace_format::units::{Koid, ProviderId};
use trace_tests::archive::{MANAGER, ResolvedEvent, Value};
use trace_tests::proxy::Proxy;
use trace_tests::sandbox::Process;
use trace_tests::{Archive, Sandbox, wait_for};

const MODES: [&str; 3] = ["oneshot", "circular", "streaming"];

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A recording that goes on until it is interrupted.
fn record(sandbox: &Sandbox, options: &[&str]) -> Process {
    let recording = sandbox.spawn("trace", &[&["record"], options].concat());
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    recording
}

/// Has a program raise its alert so often, and end.
fn raise(mut program: Process, times: u32) {
    for _ in 0..times {
        program.say("now");
        assert_eq!(program.line(), "raised");
    }
    program.close_stdin();
    program.succeed();
}

fn stop(recording: Process) -> Output {
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    output
}

/// An archive in which nothing is wrong.
fn checked(sandbox: &Sandbox) -> Archive {
    let output = sandbox.trace(["check", "trace.fxt"]);
    assert!(output.status.success(), "{output:?}");
    Archive::read(&sandbox.file("trace.fxt"))
}

fn shown(event: &ResolvedEvent) -> String {
    let arguments = event.arguments.iter().map(|(name, value)| match value {
        Value::String(text) => format!(" {}={:?}", name.to_str(), text.to_str()),
        value => format!(" {}={value:?}", name.to_str()),
    });
    format!("{}/{}{}", event.category.to_str(), event.name.to_str(), arguments.collect::<String>())
}

//= docs/format.md#alerts
#[test]
fn an_alert_is_an_event_whatever_is_selected() {
    for mode in MODES {
        let sandbox = Sandbox::new();
        let recording = record(&sandbox, &["--categories", "stubborn", "--buffering-mode", mode]);
        raise(sandbox.spawn_recorded("stubborn", &["alert", "stall"]), 1);
        stop(recording);
        let archive = checked(&sandbox);
        let events: Vec<_> = archive.events.iter().map(|event| &event.event).collect();
        let found: Vec<_> = events.iter().map(|event| shown(event)).collect();
        assert_eq!(found, ["stubborn/here", "trace/alert name=\"stall\""], "{mode}");
        assert!(matches!(events[1].kind, EventKind::Instant { scope: Scope::Thread }), "{mode}");
        assert_eq!(events[1].thread, events[0].thread, "{mode}");
        assert_eq!(archive.generated().into_values().collect::<Vec<_>>(), [2], "{mode}");
        let own = archive.manager_events.iter().map(|event| event.name.to_str().into_owned());
        assert_eq!(own.collect::<Vec<_>>(), ["recording", "recording_end"], "{mode}");
        let sql =
            "SELECT a.name, a.tid, i.name FROM alerts a JOIN instants i ON i.ts = a.ts AND i.tid = a.tid";
        let output = sandbox.trace(["query", "--format", "csv", sql, "trace.fxt"]);
        let expected = format!("name,tid,name\nstall,{},alert\n", events[1].thread.0);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{mode}: {output:?}");
    }
}

/// A program that does not say at its registration that it records its alerts. Behind the proxy this one does
/// so all the same, as the proxy takes only the word away.
//= docs/format.md#alerts
#[test]
fn the_manager_records_alerts_of_programs_that_do_not() {
    for mode in MODES {
        let sandbox = Sandbox::new();
        let recording = record(&sandbox, &["--categories", "stubborn", "--buffering-mode", mode]);
        let proxy = Proxy::of_earlier_release(&sandbox, "earlier");
        let mut command = sandbox.command("stubborn");
        command.args(["alert", "stall"]);
        command.env("TRACE_RUNTIME_DIR", proxy.directory()).env("TRACE_RECORD", "1");
        raise(Sandbox::spawn_command(command), 2);
        let _ = proxy.finish();
        stop(recording);
        let archive = checked(&sandbox);
        // The proxy's connection is this process's.
        let process = Koid(u64::from(std::process::id()));
        let [begin, first, second, end] = &archive.manager_events[..] else {
            panic!("{mode}: {:?}", archive.manager_events)
        };
        for alert in [first, second] {
            assert_eq!(shown(alert), "trace/alert name=\"stall\"", "{mode}");
            assert!(matches!(alert.kind, EventKind::Instant { scope: Scope::Process }), "{mode}");
            assert_eq!((alert.process, alert.thread), (process, process), "{mode}");
            assert!(begin.timestamp < alert.timestamp && alert.timestamp < end.timestamp, "{mode}");
        }
        assert!(first.timestamp < second.timestamp, "{mode}");
        // What the manager writes is in no program's ledger.
        let generated: Vec<(ProviderId, u64)> = archive.generated().into_iter().collect();
        assert_eq!(generated.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [3], "{mode}");
        assert!(generated.iter().all(|(provider, _)| *provider != MANAGER));
    }
}

/// An alert that is the last thing a program does ends the recording all the same.
//= docs/protocol.md#alerts
#[test]
fn a_program_may_end_as_soon_as_it_has_raised_its_alert() {
    let sandbox = Sandbox::new();
    let mut recording = record(&sandbox, &["--trigger", "last:stop"]);
    raise(sandbox.spawn_recorded("stubborn", &["alert", "last"]), 1);
    wait_for("the end of the recording", || (!recording.is_running()).then_some(()));
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("trace: alert last: stopping\n"), "{}", stderr(&output));
}

/// A client that does not run while alerts are raised: it hears of the last 16, and how many there were
/// before.
//= docs/protocol.md#alerts
#[test]
fn alerts_that_a_client_does_not_come_round_to_are_counted() {
    let sandbox = Sandbox::new();
    let triggers = ["--trigger", "look:snapshot", "--trigger", "enough:stop", "--cooldown", "1h"];
    let mut recording = record(&sandbox, &triggers);
    let [looking, ending] =
        ["look", "enough"].map(|alert| sandbox.spawn_recorded("stubborn", &["alert", alert]));
    wait_for("both programs to be registered", || (registered(&sandbox) == 2).then_some(()));
    recording.signal(Signal::STOP);
    // The manager has taken in what a program has raised when it has seen its end.
    for (program, times, left) in [(looking, 40, 1), (ending, 1, 0)] {
        raise(program, times);
        wait_for("the program's end", || (registered(&sandbox) == left).then_some(()));
    }
    recording.signal(Signal::CONT);
    wait_for("the end of the recording", || (!recording.is_running()).then_some(()));
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("trace: alert enough: stopping\n"), "{said}");
    // Of 41 alerts the last 16 wait; if the client had asked for one before it was stopped, it has the first,
    // too.
    let lines = |dropped: u32, skipped: u32| {
        said.contains(&format!(
            "trace: alert look: {skipped} more within 3600s of a snapshot were ignored\n\
             trace: lost {dropped} alerts that came too fast\n"
        ))
    };
    assert!(lines(24, 15) || lines(25, 14), "{said}");
    // The archive has all of them.
    let archive = checked(&sandbox);
    let alerts = archive.events.iter().filter(|event| event.name() == "alert").count();
    assert_eq!(alerts, 41);
}

/// How many programs the manager knows.
fn registered(sandbox: &Sandbox) -> usize {
    let output = sandbox.trace(["list-programs", "--machine", "json"]);
    let providers: serde_json::Value = trace_tests::json(&output);
    providers.as_array().expect("a list").len()
}

/// However fast they come and however soon the program ends: of those that took no snapshot each is counted.
//= docs/recording.md#how-a-recording-ends
#[test]
fn every_alert_that_took_no_snapshot_is_counted() {
    let sandbox = Sandbox::new();
    let stubborn = trace_tests::build::program("stubborn").to_str().unwrap();
    let script = r#"yes | head -n 300 | "$0" alert boom"#;
    let output = sandbox.trace(["record", "--trigger", "boom:snapshot", "--", "sh", "-c", script, stubborn]);
    assert!(output.status.success(), "{output:?}");
    let raised = checked(&sandbox).events.iter().filter(|event| event.name() == "alert").count();
    assert_eq!(raised, 300);
    let said = stderr(&output);
    let snapshots =
        said.lines().filter(|line| line.contains("alert boom: ") && line.contains("snapshot in")).count();
    let counted = said.lines().filter(|line| {
        ["were ignored", "too fast", "as the recording ended"].iter().any(|end| line.contains(end))
    });
    let number = |line: &str| line.split(' ').find_map(|word| word.parse::<usize>().ok()).unwrap();
    assert_eq!(snapshots + counted.map(number).sum::<usize>(), 300, "{said}");
}

/// What follows an alert is recorded, too, for a while: in our words, and in Perfetto's.
//= docs/recording.md#triggers
#[test]
fn a_recording_ends_some_time_after_an_alert() {
    let config = "buffers { size_kb: 4096 fill_policy: RING_BUFFER }\n\
                  data_sources { config { name: \"track_event\" } }\n\
                  trigger_config { trigger_mode: STOP_TRACING triggers { name: \"stall\" stop_delay_ms: 3000 } }\n";
    for options in [&["--trigger", "stall:stop+3s"][..], &["-c", "config.pbtx", "--txt"]] {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.file("config.pbtx"), config).unwrap();
        let recording = record(&sandbox, options);
        let mut program = sandbox.spawn_recorded("stubborn", &["alert", "stall"]);
        let raise = |program: &mut Process| {
            program.say("now");
            assert_eq!(program.line(), "raised");
        };
        raise(&mut program);
        wait_for("the trigger", || {
            recording.stderr_so_far().contains("alert stall: stopping in 3s").then_some(())
        });
        // It changes nothing.
        raise(&mut program);
        let output = recording.finish();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stderr(&output).matches("stopping in").count(), 1, "{output:?}");
        program.close_stdin();
        program.succeed();
        let archive = checked(&sandbox);
        let alerts: Vec<_> = archive.events.iter().filter(|event| event.name() == "alert").collect();
        assert_eq!(alerts.len(), 2, "{options:?}");
        let end = archive.manager_events.iter().find(|event| event.name.to_str() == "recording_end").unwrap();
        let lasted = end.nanos().0 - alerts[0].event.nanos().0;
        assert!(lasted >= 3_000_000_000, "{options:?}: {lasted}");
    }
    let sandbox = Sandbox::new();
    let output = sandbox.trace(["start", "--trigger", "stall:stop+3s"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("here an alert stops at once"), "{output:?}");
}

/// Each signal takes its action, and the recording goes on if that does not end it.
//= docs/recording.md#triggers
#[test]
fn signals_take_snapshots_and_end_the_recording() {
    let sandbox = Sandbox::new();
    let options = ["--trigger", "SIGUSR2:snapshot", "--trigger", "SIGUSR1:stop", "--cooldown", "1h"];
    let recording = record(&sandbox, &options);
    let mut program = sandbox.spawn_recorded("stubborn", &["alert", "stall"]);
    program.say("now");
    assert_eq!(program.line(), "raised");
    recording.signal(Signal::USR2);
    wait_for("the snapshot", || {
        recording.stderr_so_far().contains("trace: SIGUSR2: snapshot in trace-snapshot-1.fxt\n").then_some(())
    });
    let snapshot = Archive::read(&sandbox.file("trace-snapshot-1.fxt"));
    assert_eq!(snapshot.events.iter().filter(|event| event.name() == "alert").count(), 1);
    program.say("now");
    assert_eq!(program.line(), "raised");
    recording.signal(Signal::USR1);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("trace: SIGUSR1: stopping\n"), "{output:?}");
    assert_eq!(checked(&sandbox).events.iter().filter(|event| event.name() == "alert").count(), 2);
    program.close_stdin();
    program.succeed();
}

/// A limit that no program reaches does nothing; one that a program exceeds ends the recording.
//= docs/recording.md#triggers
#[test]
fn memory_beyond_a_limit_ends_the_recording() {
    let sandbox = Sandbox::new();
    let options = ["--trigger", "rss(stubborn)>100GB:snapshot", "--trigger", "rss(stubborn)>150MB:stop"];
    let recording = record(&sandbox, &[&options[..], &["--trigger", "rss(other)>1KB:stop"]].concat());
    let mut program = sandbox.spawn_recorded("stubborn", &["grow"]);
    assert_eq!(program.line(), "recorded");
    program.say("now");
    wait_for("the limit", || recording.stderr_so_far().contains(": stopping\n").then_some(()));
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("trace: rss(stubborn)>150MB: stopping\n") && !said.contains("snapshot"), "{said}");
    assert_eq!(checked(&sandbox).events.len(), 1);
    program.close_stdin();
    program.succeed();
}

/// Limits that the durations do not exceed do nothing; one that they exceed takes a snapshot with them, and
/// the next ends the recording.
//= docs/recording.md#triggers
#[test]
fn durations_beyond_a_limit_take_a_snapshot_and_end_the_recording() {
    let sandbox = Sandbox::new();
    let gate = sandbox.file("gate");
    std::fs::write(&gate, []).unwrap();
    let never = ["p99(live:work)>3600s:stop", "count(live:work)>500:stop", "count(work:live)>0:stop"];
    let options: Vec<&str> =
        never.iter().chain(&["count(live:work)>499:snapshot"]).flat_map(|text| ["--trigger", text]).collect();
    let recording = record(&sandbox, &options);
    let program = sandbox.spawn_recorded("living", &[gate.to_str().unwrap()]);
    let taken = "trace: count(live:work) > 499: snapshot in trace-snapshot-1.fxt\n";
    wait_for("the snapshot", || recording.stderr_so_far().contains(taken).then_some(()));
    let of = |archive: &Archive| archive.events.iter().filter(|event| event.name() == "work").count();
    assert_eq!(of(&Archive::read(&sandbox.file("trace-snapshot-1.fxt"))), 500);
    std::fs::remove_file(&gate).unwrap();
    program.succeed();
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(!stderr(&output).contains("stopping"), "{output:?}");
    assert_eq!(of(&checked(&sandbox)), 500);

    std::fs::write(&gate, []).unwrap();
    let recording = record(&sandbox, &["--trigger", "count(live:w*)>499:stop"]);
    let program = sandbox.spawn_recorded("living", &[gate.to_str().unwrap()]);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("trace: count(live:w*) > 499: stopping\n"), "{output:?}");
    assert_eq!(of(&checked(&sandbox)), 500);
    std::fs::remove_file(&gate).unwrap();
    program.succeed();
}
