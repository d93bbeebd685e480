//! What was open when a program ended, a recording was stopped, or a snapshot was taken.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use trace_tests::build::program;
use trace_tests::deep::{Done, recorded, told};
use trace_tests::requirement::MemoryGroup;
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::{Scene, stderr, stdout, wait_for_death};
use trace_tests::{Archive, Requirement, Sandbox, wait_for};

const DEATH: &str = "open at death";

fn path(name: &str) -> &'static str {
    program(name).to_str().expect("a path in UTF-8")
}

/// All scopes of the first thread end.
fn end_all(done: &mut BTreeMap<String, Done>) {
    for name in ["deep", "lane-deep"] {
        if let Some(first) = done.get_mut(name) {
            first.ended += first.open.len() + first.deeper as usize;
            (first.open, first.deeper) = (Vec::new(), 0);
        }
    }
}

/// How many programs die in each way.
fn deaths() -> u64 {
    std::env::var("DEATHS").map_or(20, |text| text.parse().expect("DEATHS is a number"))
}

/// Each kind of death, in each mode: what is open is what the program says.
//= docs/buffer.md#open-scopes
#[test]
fn what_was_open_at_a_death_is_what_the_program_says() {
    let ways = ["kill", "segfault", "abort", "overflow", "panic-abort", "panic"];
    let modes = ["oneshot", "circular", "streaming"];
    for seed in 0..deaths() {
        for (number, how) in ways.iter().enumerate() {
            let mode = modes[(seed as usize + number) % modes.len()];
            let sandbox = Sandbox::new();
            let seed_text = seed.to_string();
            let arguments = ["record", "--buffering-mode", mode, "--", path("deep"), &seed_text, how];
            let output = sandbox.trace(arguments);
            assert!(sandbox.file("trace.fxt").exists(), "{how}, {mode}, seed {seed}: {output:?}");
            let archive = Archive::read(&sandbox.file("trace.fxt"));
            let mut expected = told(&String::from_utf8_lossy(&output.stdout));
            let mut reason = DEATH;
            if *how == "panic" {
                // It ends the scopes of its thread, and then the provider.
                end_all(&mut expected);
                reason = "open at stop";
            }
            assert_eq!(recorded(&archive, reason), expected, "{how}, {mode}, seed {seed}");
        }
    }
}

/// A recording of nothing but what was open replaces an earlier one.
#[test]
fn what_was_open_is_worth_a_file() {
    let sandbox = Sandbox::new();
    for _ in 0..2 {
        std::fs::write(sandbox.file("trace.fxt"), "an earlier one").unwrap();
        let output = sandbox.trace(["record", "--", path("deep"), "1", "first"]);
        let found = recorded(&Archive::read(&sandbox.file("trace.fxt")), DEATH);
        let first = Done { open: vec!["one".to_owned()], ..Done::default() };
        assert_eq!(found.into_values().collect::<Vec<_>>(), [first], "{output:?}");
    }
}

/// A forked child that dies in its first scopes has recorded nothing before.
//= docs/buffer.md#fork
#[test]
fn what_was_open_in_a_child_is_there() {
    let sandbox = Sandbox::new();
    let output = sandbox.trace(["record", "-o", "child.fxt", "--", path("spans"), "child"]);
    let sql = "SELECT name, end_reason, depth FROM slices ORDER BY ts";
    let found = stdout(&sandbox.trace(["query", "--format", "csv", sql, "child.fxt"]));
    assert_eq!(
        found, "name,end_reason,depth\nrequest,open at death,0\nguilty,open at death,1\n",
        "{output:?}"
    );
}

/// The kernel ends a program in a group that has used up its memory.
//= docs/buffer.md#open-scopes
#[test]
fn what_was_open_when_there_was_no_memory_is_what_the_program_says() {
    if !Requirement::MemoryGroups.is_met("what_was_open_when_there_was_no_memory_is_what_the_program_says") {
        return;
    }
    for seed in 0..deaths() {
        let group = MemoryGroup::new("dying").expect("a group can be made");
        let sandbox = Sandbox::new();
        let script =
            format!("echo $$ >{} && exec {} {seed} memory", group.processes().display(), path("deep"));
        let output = sandbox.trace(["record", "--", "sh", "-c", &script]);
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        let expected = told(&String::from_utf8_lossy(&output.stdout));
        assert_eq!(recorded(&archive, DEATH), expected, "seed {seed}");
        assert!(stderr(&output).contains("killed by SIGKILL"), "{output:?}");
    }
}

/// A recording, and a program in it that waits in its scopes; with what it has said.
fn waiting(sandbox: &Sandbox, options: &[&str], seed: u64) -> (Process, Process, BTreeMap<String, Done>) {
    let recording = sandbox.spawn("trace", &[&["record"], options].concat());
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let mut program = sandbox.spawn_recorded("deep", &[&seed.to_string(), "wait"]);
    let said = said(&mut program);
    (recording, program, said)
}

fn said(program: &mut Process) -> BTreeMap<String, Done> {
    let mut text = String::new();
    while !text.ends_with("end\n") {
        text += &(program.line() + "\n");
    }
    told(&text)
}

//= docs/buffer.md#open-scopes
#[test]
fn what_is_open_at_a_stop_and_at_a_snapshot_is_there_too() {
    for (seed, mode) in [(1, "oneshot"), (2, "circular"), (3, "streaming")] {
        let sandbox = Sandbox::new();
        let (recording, _program, expected) = waiting(&sandbox, &["--buffering-mode", mode], seed);
        let output = sandbox.trace(["snapshot", "-o", "snapshot.fxt"]);
        assert!(output.status.success(), "{output:?}");
        let mut snapshot = recorded(&Archive::read(&sandbox.file("snapshot.fxt")), "open at snapshot");
        if mode == "streaming" {
            // What was handed over is in the archive alone.
            snapshot
                .values_mut()
                .zip(expected.values())
                .for_each(|(done, expected)| done.ended = expected.ended);
        }
        assert_eq!(snapshot, expected, "{mode}");
        // What has ended is not in the last moments, what is open is.
        let output = sandbox.trace(["snapshot", "--last", "1ms", "-o", "last.fxt"]);
        assert!(output.status.success(), "{output:?}");
        let last = recorded(&Archive::read(&sandbox.file("last.fxt")), "open at snapshot");
        let open = |done: &BTreeMap<String, Done>| -> Vec<(String, Vec<String>)> {
            let open = done.iter().filter(|(_, done)| !done.open.is_empty());
            open.map(|(name, done)| (name.clone(), done.open.clone())).collect()
        };
        assert_eq!(open(&last), open(&expected), "{mode}");
        recording.signal(Signal::INT);
        recording.finish();
        assert_eq!(recorded(&Archive::read(&sandbox.file("trace.fxt")), "open at stop"), expected, "{mode}");
    }
}

//= docs/buffer.md#open-scopes
#[test]
fn what_was_open_when_everything_died_is_recovered() {
    for (seed, mode) in [(4, "oneshot"), (5, "circular"), (6, "streaming")] {
        let sandbox = Sandbox::new();
        let (recording, program, expected) = waiting(&sandbox, &["--buffering-mode", mode], seed);
        let manager = sandbox.manager_pid().expect("a manager");
        for pid in [manager, program.pid()] {
            kill(pid, Signal::KILL);
            wait_for_death(pid);
        }
        drop(recording);
        let output = sandbox.trace(["recover", "-o", "recovered.fxt"]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(recorded(&Archive::read(&sandbox.file("recovered.fxt")), DEATH), expected, "{mode}");
    }
}

/// Scopes that began in the program's own buffer: those that end in the manager's have their records there.
//= docs/protocol.md#what-was-recorded-before
#[test]
fn what_is_open_when_a_recording_goes_on_in_another_buffer_is_there_once() {
    for (seed, how) in [(7, "wait"), (8, "end")] {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command("deep");
        command.args([&seed.to_string(), how]).env("TRACE_STARTUP", "deep");
        let mut program = Sandbox::spawn_command(command);
        let mut expected = said(&mut program);
        let [startup] = &Scene::sessions_of(&sandbox)[..] else { panic!("one directory") };
        let recording = sandbox.spawn("trace", &["record"]);
        wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
        wait_for("the hand-over", || (!startup.join("provider-1").exists()).then_some(()));
        program.say("go on");
        program.succeed();
        recording.signal(Signal::INT);
        recording.finish();
        let mut reason = DEATH;
        if how == "end" {
            // It has dropped its provider.
            reason = "open at stop";
            end_all(&mut expected);
        }
        assert_eq!(recorded(&Archive::read(&sandbox.file("trace.fxt")), reason), expected, "{how}");
    }
}

/// What has begun and not ended, by name, with the reason.
fn open_slices(sandbox: &Sandbox, file: &str) -> Vec<String> {
    let sql = "SELECT name, kind, end_reason, \
               json_extract(args, '$.lasted_ns') > 0 AND json_extract(args, '$.end') = end_reason FROM slices \
               WHERE dur IS NULL ORDER BY name";
    let output = sandbox.trace(["query", "--format", "csv", sql, file]);
    assert!(output.status.success(), "{output:?}");
    stdout(&output).lines().skip(1).map(str::to_owned).collect()
}

/// Begins and ends of `tracing` spans are records of their own: the archive says why there is no end.
//= docs/protocol.md#provider-descriptions
#[test]
fn spans_without_an_end_have_the_reason_of_their_program() {
    let sandbox = Sandbox::new();
    let of = |reason: &str| {
        let open = ["inner,operation", "inner,poll", "operation,operation", "outer,operation", "outer,poll"];
        open.map(|name| format!("{name},{reason},1"))
    };
    let output = sandbox.trace(["record", "-o", "death.fxt", "--", path("spans"), "open", "abort"]);
    assert_eq!(stdout(&output), "open\n", "{output:?}");
    assert_eq!(open_slices(&sandbox, "death.fxt"), of(DEATH));
    let said = stderr(&output);
    assert!(said.contains("killed by SIGABRT; thread \"spans\" was in outer > inner for "), "{said}");
    // In the formats of viewers, too.
    for format in ["json", "perfetto"] {
        let output = sandbox.trace(["convert", "--format", format, "death.fxt"]);
        assert!(output.status.success(), "{output:?}");
    }
    let exported: Value = serde_json::from_slice(&fs::read(sandbox.file("death.json")).unwrap()).unwrap();
    let reason = |name: &str| {
        let events = exported["traceEvents"].as_array().unwrap();
        let begun = events.iter().find(|event| event["name"] == name && event["ph"] == "B").unwrap();
        (begun["args"]["end"].clone(), begun["args"]["lasted_ns"].as_u64().unwrap() > 0)
    };
    assert_eq!([reason("outer"), reason("inner")], [(json!(DEATH), true), (json!(DEATH), true)]);
    let perfetto = fs::read(sandbox.file("death.pftrace")).unwrap();
    let count = perfetto.windows(DEATH.len()).filter(|text| *text == DEATH.as_bytes()).count();
    assert_eq!(count, 2);
    let recording = sandbox.spawn("trace", &["record", "-o", "stop.fxt"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let mut program = sandbox.spawn_recorded("spans", &["open", "wait"]);
    assert_eq!(program.line(), "open");
    let output = sandbox.trace(["snapshot", "-o", "snapshot.fxt"]);
    assert!(output.status.success(), "{output:?}");
    recording.signal(Signal::INT);
    recording.finish();
    assert_eq!(open_slices(&sandbox, "snapshot.fxt"), of("open at snapshot"));
    assert_eq!(open_slices(&sandbox, "stop.fxt"), of("open at stop"));
    // They are complete recordings of all that has ended, and the time so far counts.
    for file in ["snapshot.fxt", "stop.fxt"] {
        assert!(sandbox.trace(["check", file]).status.success(), "{file}");
        for (limit, code) in [("max(outer) < 1ns", 1), ("max(ended) < 100s", 0)] {
            let output = sandbox.trace(["assert", file, limit]);
            assert_eq!(output.status.code(), Some(code), "{file}: {limit}: {output:?}");
        }
    }
    let stats: Value = trace_tests::json(&sandbox.trace(["stats", "--json", "stop.fxt"]));
    let outer = stats["polls"]["rows"].as_array().unwrap().iter().find(|row| row["name"] == "outer").unwrap();
    assert_eq!((&outer["open"], &outer["unfinished"]), (&json!({"open at stop": 1}), &json!(1)), "{outer}");
    assert!(outer["longest_open_ns"].as_u64().unwrap() > 0, "{outer}");
    let output = sandbox.trace(["stats", "stop.fxt"]);
    assert!(stdout(&output).contains("(3 open at stop, "), "{output:?}");
}

/// A scope that hangs is noticed while it does.
//= docs/recording.md#triggers
#[test]
fn a_scope_that_is_open_for_too_long_triggers() {
    let sandbox = Sandbox::new();
    let trigger = ["--trigger", "open(deep:one)>200ms:snapshot", "--cooldown", "600"];
    let (recording, _program, expected) = waiting(&sandbox, &trigger, 9);
    let is_open = |done: &Done| done.open.iter().any(|name| name == "one");
    assert!(expected.values().any(is_open), "{expected:?}");
    wait_for("the snapshot", || sandbox.file("trace-snapshot-1.fxt").exists().then_some(()));
    recording.signal(Signal::INT);
    let output = stderr(&recording.finish());
    let said = |line: &&str| line.starts_with("trace: open(deep:one) > 200ms: thread \"");
    let line = output.lines().find(said).unwrap_or_else(|| panic!("{output}"));
    assert!(line.contains(" of deep (pid ") && line.contains(", in one for "), "{line}");
    let snapshot = Archive::read(&sandbox.file("trace-snapshot-1.fxt"));
    assert!(recorded(&snapshot, "open at snapshot").values().any(is_open));
}

/// So is a span of `tracing`, and an operation.
//= docs/recording.md#triggers
#[test]
fn a_span_or_an_operation_that_is_open_for_too_long_triggers() {
    let sandbox = Sandbox::new();
    let limits = ["open(spans:outer)>200ms:snapshot", "open(spans:operation)>200ms:snapshot"];
    let never = "open(spans:ended)>200ms:stop";
    let arguments = ["record", "--trigger", limits[0], "--trigger", limits[1], "--trigger", never];
    let recording = sandbox.spawn("trace", &arguments);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let mut program = sandbox.spawn_recorded("spans", &["open", "wait"]);
    assert_eq!(program.line(), "open");
    let both = |text: &str| text.matches("snapshot in trace-snapshot-").count() == 2;
    wait_for("the snapshots", || both(&recording.stderr_so_far()).then_some(()));
    recording.signal(Signal::INT);
    let output = stderr(&recording.finish());
    let said = |text: &str| output.lines().any(|line| line.contains(text));
    assert!(said("trace: open(spans:outer) > 200ms: thread \"spans\" of spans (pid "), "{output}");
    assert!(said(" is in outer > inner, in outer for "), "{output}");
    assert!(said("trace: open(spans:operation) > 200ms: spans (pid "), "{output}");
    assert!(said(" has had operation open for "), "{output}");
}
