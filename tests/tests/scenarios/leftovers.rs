//! Recordings that programs have left: of which process they are, and how long they stay.

use super::full::Mounted;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;
use trace_tests::sandbox::kill;
use trace_tests::scene::{Scene, freeze, stderr, wait_for_death};
use trace_tests::{Archive, Requirement, Sandbox, build, native, wait_for};

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
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr(&output).contains("starting (pid 1 in another container) records itself into"),
        "{output:?}"
    );
    for arguments in [["recover", "--delete", "--older-than", "0"].as_slice(), &["list-programs"]] {
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

/// Where the file system maps another file in place of the one that is open, a mapping keeps no mark: what
/// cannot be known is not deleted.
//= docs/recovery.md#a-sessions-directory
#[test]
fn on_overlays_what_may_live_is_kept() {
    if !Requirement::Mounts.is_met("leftovers::on_overlays_what_may_live_is_kept") {
        return;
    }
    let sandbox = Sandbox::new();
    // Below it, a file system that overlays accept in every namespace.
    let (below, directory) = (sandbox.file("below"), sandbox.runtime_dir());
    std::fs::create_dir(&below).unwrap();
    let mount = |kind: &str, options: &str, at: &Path| {
        let status = Command::new("mount").args(["-t", kind, "none", "-o", options]).arg(at).status();
        assert!(status.unwrap().success(), "{kind} {options}");
        Mounted(at.to_owned())
    };
    let _below = mount("tmpfs", "size=64m", &below);
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| {
        std::fs::DirBuilder::new().mode(0o700).create(below.join(name)).unwrap();
        below.join(name).display().to_string()
    });
    let _above =
        mount("overlay", &format!("userxattr,lowerdir={lower},upperdir={upper},workdir={work}"), &directory);
    let refused = |said: &str| {
        let output = sandbox.trace(["recover", "-o", "never.fxt"]);
        assert!(stderr(&output).contains(said), "{output:?}");
        assert_eq!(Scene::sessions_of(&sandbox).len(), 1);
    };

    // A program that records itself is found by its number and its start.
    let mut running = Sandbox::spawn_command(starting(&sandbox, &[], 1, 100, "wait"));
    assert_eq!(running.line(), "ready");
    refused("records itself into");
    running.signal(Signal::KILL);
    let _ = running.finish();
    assert_eq!(recovered(&sandbox), BTreeSet::from([1]));
    let session = Scene::sessions_of(&sandbox).remove(0);
    // Another program has the number by now.
    let manifest = std::fs::read_to_string(session.join("manifest.jsonl")).unwrap();
    let pid = std::fs::read_to_string(session.join("lock")).unwrap();
    let own = std::process::id().to_string();
    std::fs::write(session.join("lock"), &own).unwrap();
    let reused = manifest
        .replace(&format!("\"manager_pid\":{pid}"), &format!("\"manager_pid\":{own}"))
        .replace("\"boot_clock_ns\":", "\"boot_clock_ns\":1,\"was\":");
    std::fs::write(session.join("manifest.jsonl"), reused).unwrap();
    assert_eq!(recovered(&sandbox), BTreeSet::from([1]));
    assert!(sandbox.trace(["recover", "--delete", "--older-than", "0"]).status.success());
    assert!(Scene::sessions_of(&sandbox).is_empty());

    // One that has not learnt of its manager's death has the buffer open.
    let recording = sandbox.spawn("trace", &["record", "-o", "dead.fxt"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let mut command = starting(&sandbox, &[], 2, 100, "wait");
    command.env_remove("TRACE_STARTUP").env("TRACE_RECORD", "1");
    let mut running = Sandbox::spawn_command(command);
    assert_eq!(running.line(), "ready");
    let manager = sandbox.manager_pid().expect("a manager runs");
    freeze(running.pid());
    kill(manager, Signal::KILL);
    wait_for_death(manager);
    let _ = recording.finish();
    refused("still running");
    running.signal(Signal::CONT);
    running.say("end");
    running.succeed();
    assert!(sandbox.trace(["recover", "-o", "dead.fxt"]).status.success());
    assert!(Archive::read(&sandbox.file("dead.fxt")).events.iter().all(|event| event.u64("number") == 2));
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
    assert_eq!(recover("newest.fxt"), (Some(125), true, BTreeSet::from([2, 3])));
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
    assert_eq!(output.status.code(), Some(125));
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
            stderr(&sandbox.trace(["list-programs"]))
                .contains(&format!("{next} programs recorded themselves"))
        );
    };
    assert_eq!(next, 12);
    let refused = "trace: not recorded from the start: no room in ";
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
        "trace: recordings of programs take too much room in {}: deleted 1 of the oldest\n",
        directory.display()
    );
    assert_eq!(small.leave(4..6), expected.repeat(2));
    assert_eq!(recovered(&small.sandbox), (2..6).collect());
}
