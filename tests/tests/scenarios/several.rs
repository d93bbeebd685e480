//! Several recordings at once: a command gets a manager of its own where the usual one is in use.

use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use trace_tests::sandbox::{Process, kill};
use trace_tests::{Archive, Sandbox, wait_for};

/// A recording that goes on until it is interrupted.
fn recording(sandbox: &Sandbox) -> Process {
    let recording = sandbox.spawn("trace", &["record", "-o", "first.fxt"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    recording
}

/// The runtime directories of managers of recordings' own.
fn own_directories(sandbox: &Sandbox) -> Vec<PathBuf> {
    let entries = fs::read_dir(sandbox.runtime_dir()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("own-")).collect()
}

fn programs(archive: &Archive) -> Vec<&str> {
    archive.providers.values().map(String::as_str).collect()
}

//= docs/recording.md#several-recordings-at-once
#[test]
fn commands_are_recorded_beside_each_other_and_beside_programs_that_run() {
    let sandbox = Sandbox::new();
    let first = recording(&sandbox);
    let mut others = Vec::new();
    let emit = trace_tests::build::program("emit").to_str().unwrap();
    for number in 1..=3 {
        let file = format!("own-{number}.fxt");
        let script = format!("{emit} 1 {number}00; exit {number}");
        others.push((number, sandbox.spawn("trace", &["record", "-o", &file, "--", "sh", "-c", &script])));
    }
    let program = sandbox.spawn_recorded("emit", &["1", "10"]);
    program.succeed();
    for (number, other) in others {
        let output = other.finish();
        assert_eq!(output.status.code(), Some(number), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().next().unwrap();
        let [begin, end] = [
            "trace: the trace manager is in use by \"",
            ": this recording has one of its own, for the programs",
        ];
        assert!(line.starts_with(begin) && line.contains(end), "{said}");
        let archive = Archive::read(&sandbox.file(&format!("own-{number}.fxt")));
        assert_eq!(
            (programs(&archive), archive.events.len()),
            (vec!["trace_manager", "emit"], number as usize * 1400)
        );
    }
    first.signal(Signal::INT);
    first.succeed();
    let archive = Archive::read(&sandbox.file("first.fxt"));
    assert_eq!((programs(&archive), archive.events.len()), (vec!["trace_manager", "emit"], 140));
    // Managers of their own end with their recordings.
    wait_for("the directories to go", || own_directories(&sandbox).is_empty().then_some(()));
    assert_eq!(sandbox.files(), ["first.fxt", "own-1.fxt", "own-2.fxt", "own-3.fxt"]);
}

/// Whatever is killed, what was recorded is found, and the next recording removes what is left.
//= docs/recording.md#several-recordings-at-once
#[test]
fn what_a_killed_manager_of_a_recordings_own_leaves_is_recovered() {
    let sandbox = Sandbox::new();
    let first = recording(&sandbox);
    let mut own = sandbox.spawn(
        "trace",
        &[
            "record",
            "-o",
            "own.fxt",
            "--",
            "sh",
            "-c",
            "\"$0\" 1 100 --wait",
            trace_tests::build::program("emit").to_str().unwrap(),
        ],
    );
    let _ready = own.line();
    let directory = own_directories(&sandbox).pop().unwrap();
    assert_eq!(directory.file_name().unwrap().to_string_lossy(), format!("own-{}", own.pid()));
    let lock = fs::read_to_string(directory.join("lock")).unwrap();
    let manager: u32 = lock.trim().parse().unwrap();
    kill(manager, Signal::KILL);
    kill(own.pid(), Signal::KILL);
    drop(own.finish());
    wait_for("the program to end", || {
        let output = sandbox.trace(["recover", "-o", "recovered.fxt"]);
        output.status.success().then_some(())
    });
    assert_eq!(Archive::read(&sandbox.file("recovered.fxt")).events.len(), 1400);
    assert!(directory.exists());
    let output = sandbox.record(&["-o", "next.fxt"], "emit", &["1", "1"]);
    assert!(output.status.success(), "{output:?}");
    assert!(!directory.exists());
    first.signal(Signal::INT);
    first.succeed();
}

/// Without a command, programs are wanted that the other recording has.
//= docs/recording.md#several-recordings-at-once
#[test]
fn what_records_programs_that_run_is_refused() {
    let sandbox = Sandbox::new();
    let first = recording(&sandbox);
    for arguments in [&["record", "--duration", "1"][..], &["start"]] {
        let output = sandbox.trace(arguments);
        assert_eq!(output.status.code(), Some(if arguments[0] == "record" { 125 } else { 1 }), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("the trace manager is in use by"),
            "{output:?}"
        );
    }
    assert!(own_directories(&sandbox).is_empty());
    first.signal(Signal::INT);
    first.succeed();
}
