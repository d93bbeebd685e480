//! Several recordings at once: a command gets a manager of its own where the usual one is in use.

use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::wait_for_death;
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

//= docs/recording.md#a-manager-of-a-recordings-own
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
            ": this recording has a manager of its own, for the programs",
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
//= docs/recording.md#a-manager-of-a-recordings-own
#[test]
fn what_a_killed_manager_of_a_recordings_own_leaves_is_recovered() {
    let sandbox = Sandbox::new();
    let first = recording(&sandbox);
    fs::write(sandbox.file("page"), "").unwrap();
    let mut own = sandbox.spawn(
        "trace",
        &[
            "record",
            "-o",
            "own.fxt",
            "--",
            "sh",
            "-c",
            "echo $$; exec \"$0\" page",
            trace_tests::build::program("living").to_str().unwrap(),
        ],
    );
    let program: u32 = own.line().trim().parse().unwrap();
    // Its events are recorded when it prints this.
    assert_eq!(own.line(), "printed by the program");
    let output = sandbox.trace(["list-programs"]);
    let listed = format!("Programs:\n  living (pid {program}), only in the recording of pid {}\n", own.pid());
    assert_eq!(String::from_utf8_lossy(&output.stdout), listed);
    let directory = own_directories(&sandbox).pop().unwrap();
    let name = directory.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with(&format!("own-{}-", own.pid())), "{name}");
    let lock = fs::read_to_string(directory.join("lock")).unwrap();
    let manager: u32 = lock.trim().parse().unwrap();
    kill(manager, Signal::KILL);
    kill(own.pid(), Signal::KILL);
    fs::remove_file(sandbox.file("page")).unwrap();
    drop(own.finish());
    [program, manager].into_iter().for_each(wait_for_death);
    let output = sandbox.trace(["recover", "-o", "recovered.fxt"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("recovered.fxt")).events.len(), 503);
    assert!(directory.exists());
    let output = sandbox.record(&["-o", "next.fxt"], "emit", &["1", "1"]);
    assert!(output.status.success(), "{output:?}");
    assert!(!directory.exists());
    first.signal(Signal::INT);
    first.succeed();
}

/// One ends while the next begins, again and again.
//= docs/recording.md#a-manager-of-a-recordings-own
#[test]
fn short_recordings_at_once_are_all_complete() {
    let sandbox = Sandbox::new();
    std::thread::scope(|scope| {
        for lane in 0..4 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for number in 0..10 {
                    let file = format!("{lane}-{number}.fxt");
                    let output = sandbox.record(&["-o", &file], "emit", &["1", "1"]);
                    assert!(output.status.success(), "{output:?}");
                    let archive = Archive::read(&sandbox.file(&file));
                    assert_eq!(
                        (programs(&archive), archive.events.len()),
                        (vec!["trace_manager", "emit"], 14)
                    );
                }
            });
        }
    });
}

/// The options cannot be read again.
//= docs/recording.md#a-manager-of-a-recordings-own
#[test]
fn options_from_a_pipe_are_refused_with_the_recording_in_the_way() {
    let sandbox = Sandbox::new();
    let first = recording(&sandbox);
    let mut own = sandbox.spawn("trace", &["record", "-c", "-", "--", "true"]);
    own.say("output-file = \"own.fxt\"");
    own.close_stdin();
    let output = own.finish();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the trace manager is in use by"), "{output:?}");
    first.signal(Signal::INT);
    first.succeed();
}

/// It waits like any other manager.
//= docs/recording.md#a-manager-of-a-recordings-own
#[test]
fn a_manager_of_a_recordings_own_takes_no_processor() {
    let sandbox = Sandbox::new();
    let first = recording(&sandbox);
    let mut own = sandbox.spawn(
        "trace",
        &[
            "record",
            "--allow-empty",
            "-o",
            "own.fxt",
            "--",
            "sh",
            "-c",
            "echo on; sleep 1; echo off; read end",
        ],
    );
    assert_eq!(own.line(), "on");
    let directory = own_directories(&sandbox).pop().unwrap();
    let manager = fs::read_to_string(directory.join("lock")).unwrap();
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", manager.trim())).unwrap();
        let fields: Vec<String> =
            stat.rsplit(')').next().unwrap().split_whitespace().map(str::to_owned).collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    assert_eq!(own.line(), "off");
    let used = ticks() - before;
    assert!(used < 20, "{used} of 100 ticks: it spins");
    own.say("end");
    own.succeed();
    first.signal(Signal::INT);
    first.succeed();
}

/// Without a command, programs are wanted that the other recording has.
//= docs/recording.md#a-manager-of-a-recordings-own
#[test]
fn what_records_programs_that_run_is_refused() {
    let sandbox = Sandbox::new();
    let first = recording(&sandbox);
    for arguments in [&["record", "--duration", "1"][..], &["start"]] {
        let output = sandbox.trace(arguments);
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("the trace manager is in use by"),
            "{output:?}"
        );
    }
    assert!(own_directories(&sandbox).is_empty());
    first.signal(Signal::INT);
    first.succeed();
}

/// Another command that looks for programs may find a manager before the recording that has started it.
//= docs/recording.md#a-manager-of-a-recordings-own
#[test]
fn a_manager_of_a_recordings_own_waits_for_its_recording_and_ends_with_it() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["list-programs"]).status.success());
    let directory = sandbox.runtime_dir().join(format!("own-{}-1", std::process::id()));
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = sandbox.command("trace");
        command.args(arguments).env("TRACE_RUNTIME_DIR", &directory);
        command
    };
    let mut manager = Sandbox::spawn_command(run(&["manager", "--on-demand"]));
    wait_for("the manager", || directory.join("provisioner").exists().then_some(()));
    for _ in 0..3 {
        // By the list of the usual manager, and directly.
        assert!(sandbox.trace(["list-programs"]).status.success());
        assert!(run(&["list-programs"]).output().unwrap().status.success());
        assert!(manager.is_running());
    }
    let emit = trace_tests::build::program("emit").to_str().unwrap();
    let output = run(&["record", "-o", "own.fxt", "--", emit, "1", "1"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("own.fxt")).events.len(), 14);
    manager.succeed();
    assert!(!directory.exists());
}
