//! Programs that record themselves, without a manager.

use rustix::process::Signal;
use std::collections::BTreeSet;
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::{Scene, stderr, wait_for_death};
use trace_tests::{Archive, Sandbox, wait_for};

/// A program that does what it is asked to.
struct Local {
    process: Process,
}

impl Local {
    fn new(sandbox: &Sandbox) -> Self {
        Self { process: sandbox.spawn("local", &[]) }
    }

    fn ask(&mut self, line: &str) -> String {
        self.process.say(line);
        self.process.line()
    }

    fn expect<const N: usize>(&mut self, lines: [[&str; 2]; N]) {
        for [line, answer] in lines {
            assert_eq!(self.ask(line), answer, "{line}");
        }
    }
}

/// The events of an archive of all that was recorded: none twice, and as many as the program has generated.
fn numbers(sandbox: &Sandbox, file: &str) -> BTreeSet<u64> {
    let numbers = snapshot(sandbox, file);
    let generated: u64 = Archive::read(&sandbox.file(file)).generated().into_values().sum();
    assert_eq!(numbers.len() as u64, generated, "{file}");
    numbers
}

/// The events of a snapshot, none twice.
fn snapshot(sandbox: &Sandbox, file: &str) -> BTreeSet<u64> {
    let archive = Archive::read(&sandbox.file(file));
    let numbers: BTreeSet<u64> = archive.events.iter().map(|event| event.u64("number")).collect();
    assert_eq!(numbers.len(), archive.events.len(), "{file}");
    numbers
}

fn all(range: std::ops::Range<u64>) -> BTreeSet<u64> {
    range.collect()
}

//= docs/rust.md#recordings-inside-one-process
#[test]
fn it_is_delivered_in_pieces_and_as_a_file() {
    let sandbox = Sandbox::new();
    let mut program = Local::new(&sandbox);
    program.expect([
        ["events 10", "10 sent"],
        ["flush none.fxt", "error: there is no local recording in 0 pieces, the longest of 0, 0 last"],
        ["start local oneshot 4", "started"],
        ["start local oneshot 4", "error: this process is recorded already"],
        ["events 10000", "10010 sent"],
        ["stop", "true true false"],
        ["events 10", "10020 sent"],
        ["fork", "child 0"],
    ]);
    let answer = program.ask("flush pieces.fxt");
    assert!(answer.starts_with("10000 events, Some(0) dropped in "), "{answer}");
    assert!(answer.ends_with(" pieces, the longest of 65536, 1 last"), "{answer}");
    assert_eq!(numbers(&sandbox, "pieces.fxt"), all(10..10_010));
    assert!(Scene::sessions_of(&sandbox).is_empty());
    program.expect([
        ["start * circular 1", "started"],
        ["events 100", "10120 sent"],
        ["file later.fxt", "100 events, Some(0) dropped"],
        ["stop", "false false false"],
    ]);
    assert_eq!(numbers(&sandbox, "later.fxt"), all(10_020..10_120));
    assert!(Scene::sessions_of(&sandbox).is_empty());
    assert_eq!(sandbox.files(), ["later.fxt", "pieces.fxt"]);
}

/// Events that were written over are missing, too.
//= docs/rust.md#recordings-inside-one-process
#[test]
fn what_a_circular_buffer_has_written_over_is_counted() {
    const EVENTS: u64 = 60_000;
    let sandbox = Sandbox::new();
    let mut program = Local::new(&sandbox);
    program.expect([["start local circular 1", "started"], ["events 60000", "60000 sent"]]);
    for line in ["snapshot part.fxt", "file all.fxt"] {
        let answer = program.ask(line);
        let numbers: Vec<u64> =
            answer.split(|char: char| !char.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        let [events, dropped] = numbers[..] else { panic!("{answer}") };
        assert_eq!(events + dropped, EVENTS, "{answer}");
        assert!(events > 0 && dropped > 0, "{answer}");
        let file = line.split(' ').nth(1).unwrap();
        assert_eq!(snapshot(&sandbox, file).len() as u64, events, "{answer}");
    }
}

//= docs/rust.md#recordings-inside-one-process
#[test]
fn snapshots_are_taken_while_it_goes_on_by_anyone() {
    let sandbox = Sandbox::new();
    let mut program = Local::new(&sandbox);
    program.expect([
        ["snapshot none.fxt", "error: there is no local recording"],
        ["provide", "provided"],
        ["start local circular 4", "started"],
        ["events 1000", "1000 sent"],
        ["snapshot first.fxt", "1000 events, Some(0) dropped"],
        ["events 1000", "2000 sent"],
        ["prepare requested.fxt", "prepared"],
        ["request", "true"],
        ["events 1000", "3000 sent"],
        ["prepare signalled.fxt", "prepared"],
        ["signal", "true"],
        // An hour has all of it, and no time at all has nothing.
        ["snapshot hour.fxt 3600000", "3000 events, Some(0) dropped"],
        ["snapshot nothing.fxt 0", "0 events, Some(0) dropped"],
        ["file all.fxt", "3000 events, Some(0) dropped"],
    ]);
    let found = ["first", "requested", "signalled", "hour", "all"].map(|name| {
        let numbers = snapshot(&sandbox, &format!("{name}.fxt"));
        assert_eq!(numbers, all(0..numbers.len() as u64), "{name}");
        numbers.len()
    });
    assert_eq!(found, [1000, 2000, 3000, 3000, 3000]);
    assert_eq!(program.process.stderr_so_far(), "");
}

/// One that comes while a snapshot is being written has another one written.
//= docs/rust.md#recordings-inside-one-process
#[test]
fn every_request_is_served() {
    let sandbox = Sandbox::new();
    let mut program = Local::new(&sandbox);
    program.expect([
        ["provide", "provided"],
        ["start local oneshot 4", "started"],
        ["events 20000", "20000 sent"],
        ["prepare requested.fxt", "prepared"],
    ]);
    for round in 1..=5 {
        program.expect([["requests 200", "true"]]);
        assert_eq!(snapshot(&sandbox, "requested.fxt"), all(0..20_000 + 200 * round));
    }
}

/// What a child does first may be to begin a recording of its own: it is a provider as its parent is.
//= docs/rust.md#recordings-inside-one-process
#[test]
fn a_child_that_records_itself_first_has_a_provider() {
    let sandbox = Sandbox::new();
    Local::new(&sandbox).expect([["provide", "provided"], ["served served.fxt", "child 0"]]);
    assert_eq!(snapshot(&sandbox, "served.fxt"), all(0..10));
}

/// What its parent has kept is not the child's, and what the child has is not its own child's.
//= docs/recovery.md#a-sessions-directory
#[test]
fn a_recording_is_over_when_its_process_is_dead_whoever_stays() {
    let sandbox = Sandbox::new();
    let mut program = Local::new(&sandbox);
    program.expect([
        ["start local oneshot 4", "started"],
        ["events 10", "10 sent"],
        ["stop", "true true false"],
    ]);
    let stays: u32 = program.ask("orphan").parse().unwrap();
    let output = sandbox.trace(["recover", "-o", "orphan.fxt"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(snapshot(&sandbox, "orphan.fxt"), all(0..100));
    kill(stays, Signal::KILL);
    program.expect([["file own.fxt", "10 events, Some(0) dropped"]]);
}

#[test]
fn a_child_that_is_forked_while_a_lock_is_held_records_itself() {
    let sandbox = Sandbox::new();
    Local::new(&sandbox).expect([["forks 200", "0 failed"]]);
    assert_eq!(Scene::sessions_of(&sandbox), [] as [std::path::PathBuf; 0]);
}

/// In both orders: the recording that comes later takes over, and one that is there already has the program.
//= docs/rust.md#recordings-inside-one-process
#[test]
fn a_recording_of_a_manager_takes_over() {
    let sandbox = Sandbox::new();
    let mut program = Local::new(&sandbox);
    program.expect([
        ["start local oneshot 4", "started"],
        ["provide", "provided"],
        ["events 500", "500 sent"],
    ]);
    let [startup] = &Scene::sessions_of(&sandbox)[..] else { panic!("one directory") };
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the program to be recorded", || (!startup.join("provider-1").exists()).then_some(()));
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    program.expect([
        ["events 500", "1000 sent"],
        ["snapshot none.fxt", "error: there is no local recording"],
        ["stop", "false false false"],
        ["start local oneshot 4", "error: this process is recorded already"],
        ["file own.fxt", "500 events, Some(0) dropped"],
    ]);
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(numbers(&sandbox, "own.fxt"), all(0..500));
    assert_eq!(numbers(&sandbox, "trace.fxt"), all(0..1000));
    assert!(Scene::sessions_of(&sandbox).is_empty());
    // It is over.
    let answer = wait_for("the program to be free", || {
        Some(program.ask("start local oneshot 4")).filter(|answer| answer == "started")
    });
    assert_eq!(answer, "started");
    program.expect([["events 5", "1005 sent"], ["file later.fxt", "5 events, Some(0) dropped"]]);
    assert_eq!(numbers(&sandbox, "later.fxt"), all(1000..1005));
}

/// The recordings of one connection, and the connections of one recording.
//= docs/protocol.md#what-was-recorded-before
#[test]
fn whatever_was_recorded_before_is_taken_over_again_and_again() {
    let sandbox = Sandbox::new();
    let mut program = Local::new(&sandbox);
    let mut sent = 0;
    let mut record = |program: &mut Local, count: u64| {
        sent += count;
        assert_eq!(program.ask(&format!("events {count}")), format!("{sent} sent"));
    };
    let is_free = |program: &mut Local| (program.ask("start local oneshot 4") == "started").then_some(());
    let is_taken = |program: &mut Local| {
        (program.ask("snapshot none.fxt") == "error: there is no local recording").then_some(())
    };
    let recording = |file| {
        let recording = sandbox.spawn("trace", &["record", "-o", file]);
        wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
        recording
    };
    program.expect([["provide", "provided"]]);
    for file in ["a.fxt", "b.fxt", "c.fxt"] {
        wait_for("the program to be free", || is_free(&mut program));
        record(&mut program, 100);
        let recording = recording(file);
        wait_for("the program to be recorded", || is_taken(&mut program));
        record(&mut program, 100);
        recording.signal(Signal::INT);
        recording.succeed();
    }
    let recording = recording("d.fxt");
    for _ in 0..3 {
        program.expect([["leave", "left"]]);
        wait_for("the program to be free", || is_free(&mut program));
        record(&mut program, 10);
        program.expect([["provide", "provided"]]);
        wait_for("the program to be recorded", || is_taken(&mut program));
        record(&mut program, 10);
    }
    recording.signal(Signal::INT);
    recording.succeed();
    for (file, expected) in [("a.fxt", 0..200), ("b.fxt", 200..400), ("c.fxt", 400..600), ("d.fxt", 600..660)]
    {
        assert_eq!(numbers(&sandbox, file), all(expected), "{file}");
    }
}

#[test]
fn a_program_that_dies_is_recovered() {
    for is_stopped in [false, true] {
        let sandbox = Sandbox::new();
        let mut program = Local::new(&sandbox);
        program.expect([["start local oneshot 4", "started"], ["events 300", "300 sent"]]);
        if is_stopped {
            program.expect([["stop", "true true false"]]);
        }
        kill(program.process.pid(), Signal::KILL);
        wait_for_death(program.process.pid());
        let output = sandbox.trace(["recover", "-o", "local.fxt"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(numbers(&sandbox, "local.fxt"), all(0..300));
    }
}

/// What a program prints of its events, without times; durations are called that.
fn echoed(program: Local) -> Vec<String> {
    let output = program.process.finish();
    assert!(output.status.success(), "{output:?}");
    let plain = |line: &str| {
        let (time, rest) = line.split_at(12);
        assert!(time.trim().parse::<f64>().is_ok() || time.trim().is_empty(), "{line}");
        let words: Vec<&str> = rest.split(' ').collect();
        let is_unit = |word: &str| ["ns", "µs", "ms", "s"].contains(&word);
        let is_lasting = |at: usize| {
            words[at].parse::<f64>().is_ok() && words.get(at + 1).is_some_and(|word| is_unit(word))
        };
        let shown = (0..words.len()).filter(|at| *at == 0 || !is_lasting(at - 1));
        let shown: Vec<&str> = shown.map(|at| if is_lasting(at) { "LASTING" } else { words[at] }).collect();
        shown.join(" ")
    };
    stderr(&output).lines().map(plain).collect()
}

/// A program with this in its environment.
fn echoing(sandbox: &Sandbox, categories: &str) -> Local {
    let mut command = sandbox.command("local");
    command.env("TRACE_ECHO", categories);
    let mut program = Local { process: Sandbox::spawn_command(command) };
    program.expect([["provide", "provided"]]);
    program
}

//= docs/rust.md#events-on-the-terminal
#[test]
fn events_are_printed_while_they_are_recorded() {
    let sandbox = Sandbox::new();
    let mut program = echoing(&sandbox, "1");
    program.expect([["nested", "nested"]]);
    wait_for("the events", || program.process.stderr_so_far().contains("local:outer").then_some(()));
    assert_eq!(
        echoed(program),
        [
            "  local  local:outer LASTING number=1",
            "  local    local:at text=\"a\\nb\"",
            "  local    local:inner LASTING",
            "  local      other:count = value=-5",
            "  local    local:open begins",
            "  local      local:below",
            "  local    local:open ends",
        ]
    );
    let mut program = echoing(&sandbox, "oth*");
    program.expect([["nested", "nested"]]);
    assert_eq!(echoed(program), ["  local  other:count = value=-5"]);
    let mut program = echoing(&sandbox, "0");
    program.expect([["nested", "nested"]]);
    assert_eq!(echoed(program), [""; 0]);
    assert!(Scene::sessions_of(&sandbox).is_empty(), "nothing is left");
}

/// A flood is counted, and a recording that begins meanwhile is printed, too.
//= docs/rust.md#events-on-the-terminal
#[test]
fn a_flood_of_events_is_counted_and_recordings_are_printed() {
    let sandbox = Sandbox::new();
    let mut program = echoing(&sandbox, "1");
    program.expect([["events 5000", "5000 sent"]]);
    let own = Scene::sessions_of(&sandbox);
    assert_eq!(own.len(), 1);
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    wait_for("the program to be recorded", || {
        // What the program had of its own is deleted when it has gone over.
        let sessions = Scene::sessions_of(&sandbox);
        (sessions.len() == 1 && sessions != own).then_some(())
    });
    program.expect([["nested", "nested"]]);
    let lines = echoed(program);
    recording.signal(Signal::INT);
    recording.succeed();
    let more = lines.iter().filter_map(|line| line.trim().strip_prefix("… ")?.strip_suffix(" events more"));
    let more: usize = more.map(|count| count.parse::<usize>().unwrap()).sum();
    let printed = lines.iter().filter(|line| line.contains("local:event")).count();
    assert_eq!(printed + more, 5000, "{lines:?}");
    assert!(printed >= 100 && more > 0, "{printed} printed, {more} not");
    assert_eq!(lines.iter().filter(|line| line.contains("local:outer")).count(), 1);
    // What was recorded to be printed is in no archive.
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.events.len(), 7);
    assert!(Scene::sessions_of(&sandbox).is_empty(), "nothing is left");
}
