//! Recordings that programs have left: of which process they are, and how long they stay.

use super::full::Mounted;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::process::Command;
use trace_tests::scene::{Scene, stderr};
use trace_tests::{Archive, Requirement, Sandbox, build, native};

/// `starting` with a number, which records itself.
fn starting(sandbox: &Sandbox, prefix: &[&str], number: u64, events: u64, way: &str) -> Command {
    let program = sandbox.command("starting");
    let mut command = match prefix {
        [] => program,
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program.get_program());
            command
        }
    };
    let numbers = [number, events, 0].map(|number| number.to_string());
    command.args(numbers).arg(way).current_dir(sandbox.work_dir());
    command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env("TRACE_STARTUP", "start");
    command.env("TRACE_STARTUP_BUFFER_SIZE", "5");
    command
}

/// The programs that are recovered, by their numbers.
fn recovered(sandbox: &Sandbox) -> BTreeSet<u64> {
    let output = sandbox.trace(["recover", "--startup", "-o", "left.fxt"]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("left.fxt"));
    archive.events.iter().map(|event| event.u64("number")).collect()
}

/// In its own pid namespace the program is number 1, as many others are in theirs; and as one is here.
//= docs/recovery.md#a-sessions-directory
#[test]
fn a_recording_in_a_container_is_running_as_long_as_its_program() {
    let test = "leftovers::a_recording_in_a_container_is_running_as_long_as_its_program";
    if !Requirement::PidNamespaces.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let container = ["unshare", "--pid", "--fork", "--kill-child"];
    let mut running = Sandbox::spawn_command(starting(&sandbox, &container, 1, 100, "wait"));
    assert_eq!(running.line(), "ready");
    let output = sandbox.trace(["recover", "-o", "never.fxt"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("starting (pid 1 in another container) records itself into"),
        "{output:?}"
    );
    for arguments in [["recover", "--delete", "--older-than", "0"].as_slice(), &["list-providers"]] {
        sandbox.trace(arguments);
    }
    assert_eq!(Scene::sessions_of(&sandbox).len(), 1);
    // Its number is used here all the time.
    running.signal(Signal::KILL);
    let _ = running.finish();
    // The first process of a namespace cannot kill itself.
    let output = starting(&sandbox, &container, 2, 100, "exit").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(recovered(&sandbox), BTreeSet::from([1, 2]));
    assert!(Scene::sessions_of(&sandbox).is_empty());
}

/// As after a restart of the machine: one archive has one clock, so that each takes a call.
//= docs/recovery.md#recovery
#[test]
fn recordings_of_two_clocks_are_recovered_one_clock_at_a_time() {
    let sandbox = Sandbox::new();
    let leave =
        |number| assert!(starting(&sandbox, &[], number, 100, "exit").output().unwrap().status.success());
    leave(1);
    let clock = sandbox.runtime_dir().join("ticks");
    let text = std::fs::read_to_string(&clock).unwrap();
    let rate: u64 = text.lines().last().unwrap().parse().unwrap();
    std::fs::write(&clock, text.replace(&rate.to_string(), &(rate + 1000).to_string())).unwrap();
    (2..4).for_each(leave);
    let recover = |file: &str| {
        let output = sandbox.trace(["recover", "-o", file]);
        let events = Archive::read(&sandbox.file(file)).events;
        let numbers: BTreeSet<u64> = events.iter().map(|event| event.u64("number")).collect();
        (output.status.code(), stderr(&output).contains("not saved yet: 1 recording;"), numbers)
    };
    assert_eq!(recover("newest.fxt"), (Some(1), true, BTreeSet::from([2, 3])));
    assert_eq!(recover("oldest.fxt"), (Some(0), false, BTreeSet::from([1])));
}

/// One that cannot be locked is named, and the others are saved.
//= docs/recovery.md#recovery
#[test]
fn a_recording_that_cannot_be_locked_keeps_no_other_from_being_saved() {
    let sandbox = Sandbox::new();
    for number in [1, 2] {
        assert!(starting(&sandbox, &[], number, 100, "exit").output().unwrap().status.success());
    }
    let [first, _] = &Scene::sessions_of(&sandbox)[..] else { panic!("two recordings") };
    let lock = first.join("lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let output = sandbox.trace(["recover", "-o", "one.fxt"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&*lock.to_string_lossy()), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("one.fxt")).events.len(), 202);
    assert_eq!(Scene::sessions_of(&sandbox), std::slice::from_ref(first));
}

/// Memory as small as that of many containers, in which recordings may take 16 MiB.
struct Small {
    sandbox: Sandbox,
    _mounted: Mounted,
}

impl Small {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let directory = sandbox.runtime_dir();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64m,mode=700", "none"]).arg(&directory);
        assert!(mount.status().unwrap().success());
        Self { sandbox, _mounted: Mounted(directory) }
    }

    /// Leaves the recordings of these programs, of 5 MiB each, and returns what they have printed.
    fn leave(&self, numbers: std::ops::Range<u64>) -> String {
        let leave = |number| stderr(&starting(&self.sandbox, &[], number, 100_000, "kill").output().unwrap());
        numbers.map(leave).collect()
    }
}

//= docs/recovery.md#how-long-it-is-kept
#[test]
fn what_was_offered_is_not_deleted_for_the_next_recording() {
    if !Requirement::Mounts.is_met("leftovers::what_was_offered_is_not_deleted_for_the_next_recording") {
        return;
    }
    let small = Small::new();
    let sandbox = &small.sandbox;
    assert_eq!(small.leave(0..4), "");
    let output = sandbox.record(&["-o", "next.fxt"], "emit", &["1", "5"]);
    assert!(
        stderr(&output).contains("4 programs recorded themselves; save that with: trace recover"),
        "{output:?}"
    );
    // The manager, and the next program that records itself, would have room for less.
    let output = sandbox.record(&["-o", "next.fxt"], "emit", &["1", "5"]);
    assert_eq!(Archive::read(&sandbox.file("next.fxt")).events.len(), 5 * 14, "{output:?}");
    // Until there is no room at all.
    let mut next = 4;
    let said = loop {
        let said = small.leave(next..next + 1);
        if !said.is_empty() {
            break said;
        }
        next += 1;
        assert!(
            stderr(&sandbox.trace(["list-providers"]))
                .contains(&format!("{next} programs recorded themselves"))
        );
    };
    assert_eq!(next, 12);
    let refused = "trace provider: not recorded from the start: no room in ";
    assert!(said.starts_with(refused) && said.lines().count() == 1, "{said}");
    let output = sandbox.trace(["record", "-o", "no.fxt", "--buffer-size", "16", "--", "true"]);
    assert!(
        stderr(&output).contains("12 programs recorded themselves; save that with: trace recover"),
        "{output:?}"
    );
    assert_eq!(recovered(sandbox), (0..12).collect());
}

/// Nor where the clock that counts from the machine's start runs ahead, by eleven days here.
//= docs/recovery.md#how-long-it-is-kept
#[test]
fn a_clock_that_runs_ahead_makes_nothing_older() {
    if !Requirement::TimeNamespaces.is_met("leftovers::a_clock_that_runs_ahead_makes_nothing_older") {
        return;
    }
    let sandbox = Sandbox::new();
    assert!(!starting(&sandbox, &[], 1, 100, "kill").output().unwrap().status.success());
    let trace = sandbox.command("trace");
    let mut command = Command::new("unshare");
    command
        .args(["--time", "--boottime", "1000000"])
        .arg(trace.get_program())
        .args(["record", "-o", "next.fxt", "--"]);
    command.arg(build::program("emit")).args(["1", "5"]).current_dir(sandbox.work_dir());
    command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(recovered(&sandbox), BTreeSet::from([1]));
}

/// Nor where the wall clock is set forward, by a month here; it decides about what is of another boot.
//= docs/recovery.md#how-long-it-is-kept
#[test]
fn a_wall_clock_that_is_set_forward_makes_nothing_older() {
    if !Requirement::Compilers.is_met("leftovers::a_wall_clock_that_is_set_forward_makes_nothing_older") {
        return;
    }
    let sandbox = Sandbox::new();
    let clock = sandbox.file("forward.so");
    native::program("gcc", &["forward.c"], &["-shared", "-fPIC", "-O2"], &clock);
    let later = |arguments: &[&str]| {
        let output = sandbox.command("trace").args(arguments).env("LD_PRELOAD", &clock).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Scene::sessions_of(&sandbox).len()
    };
    let emit = build::program("emit").to_string_lossy();
    let record = || later(&["record", "-o", "next.fxt", "--", &emit, "1", "5"]);
    let delete = || later(&["recover", "--delete", "--older-than", "7"]);
    (1..3).for_each(|number| {
        assert!(!starting(&sandbox, &[], number, 100, "kill").output().unwrap().status.success());
    });
    assert_eq!((record(), delete()), (2, 2));
    let first = Scene::sessions_of(&sandbox).remove(0);
    let manifest = first.join("manifest.jsonl");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let (before, rest) = text.split_once("\"boot_id\":\"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    std::fs::write(&manifest, format!("{before}\"boot_id\":\"another\"{after}")).unwrap();
    assert_eq!((delete(), recovered(&sandbox).len()), (1, 1));
}

//= docs/recovery.md#how-long-it-is-kept
#[test]
fn programs_that_record_themselves_do_not_fill_the_memory() {
    if !Requirement::Mounts.is_met("leftovers::programs_that_record_themselves_do_not_fill_the_memory") {
        return;
    }
    let small = Small::new();
    assert_eq!(small.leave(0..4), "");
    let directory = small.sandbox.runtime_dir();
    let expected = format!(
        "trace provider: recordings of programs take too much room in {}: deleted 1 of the oldest\n",
        directory.display()
    );
    assert_eq!(small.leave(4..6), expected.repeat(2));
    assert_eq!(recovered(&small.sandbox), (2..6).collect());
}
