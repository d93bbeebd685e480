//! How recordings end: exit codes, durations, Ctrl-C, providers that do not answer.

use rustix::process::Signal;
use std::path::Path;
use std::time::{Duration, Instant};
use trace_tests::build::program;
use trace_tests::{Archive, Sandbox, wait_for};

fn path(name: &str) -> &'static str {
    program(name).to_str().expect("a path in UTF-8")
}

#[test]
fn the_commands_code_is_the_tools() {
    let sandbox = Sandbox::new();
    for (code, expected) in [("0", 0), ("1", 1), ("42", 42), ("255", 255)] {
        let output = sandbox.trace(["record", "--", path("emit"), "1", "1", "--exit", code]);
        assert_eq!(output.status.code(), Some(expected), "{output:?}");
        assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 14);
    }
}

#[test]
fn stdout_belongs_to_the_command() {
    let sandbox = Sandbox::new();
    let output = sandbox.trace(["record", "--", "/bin/echo", "hello"]);
    assert_eq!(output.stdout, b"hello\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("the program links no trace provider"), "{stderr}");
    assert!(Archive::read(&sandbox.file("trace.fxt")).events.is_empty());
}

/// Waits until a program under `trace record` runs.
fn wait_for_child(recording: &trace_tests::sandbox::Process, name: &str) -> u32 {
    wait_for("the command to run", || {
        let children =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", recording.pid())).ok()?;
        let pids = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
        let comm = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        pids.into_iter().find(|pid| comm(*pid).trim() == name)
    })
}

#[test]
fn ctrl_c_reaches_the_command_and_keeps_the_data() {
    let sandbox = Sandbox::new();
    let mut recording = sandbox.spawn("trace", &["record", "--", path("emit"), "2", "30", "--wait"]);
    let pid: u32 = recording.line().parse().unwrap();
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    recording.signal_group(Signal::INT);
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(128 + 2), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.providers.values().collect::<Vec<_>>(), ["trace_manager", "emit"]);
    assert_eq!(sandbox.files(), ["trace.fxt"]);
}

#[test]
fn ctrl_c_without_a_command_saves_what_others_did() {
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the manager", || sandbox.manager_pid());
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    let mut emit = sandbox.spawn("emit", &["1", "5", "--wait", "--on"]);
    emit.line();
    assert_eq!(emit.line(), "on");
    assert!(emit.finish().status.success());
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 70);
}

#[test]
fn sigterm_to_the_tool_ends_the_command_too() {
    let sandbox = Sandbox::new();
    let mut recording = sandbox.spawn("trace", &["record", "--", path("emit"), "1", "1", "--wait"]);
    recording.line();
    recording.signal(Signal::TERM);
    // Its input stays open until then, or it would end by itself.
    wait_for("the end of the recording", || (!recording.is_running()).then_some(()));
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(128 + 15), "{output:?}");
    assert_eq!(sandbox.files(), ["trace.fxt"]);
}

#[test]
fn a_duration_ends_the_command_politely_and_then_for_good() {
    let sandbox = Sandbox::new();
    let begin = Instant::now();
    let output = sandbox.trace(["record", "--duration", "0.3", "--", path("stubborn"), "ignore-term"]);
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    assert!(begin.elapsed() >= Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 1);

    let output = sandbox.trace(["record", "--duration", "0.3", "--", path("stubborn"), "park"]);
    assert_eq!(output.status.code(), Some(128 + 15), "{output:?}");
}

#[test]
fn a_stopped_provider_is_given_up_and_its_data_kept() {
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record", "--duration", "1", "--", path("stubborn"), "stop"]);
    let pid = wait_for_child(&recording, "stubborn");
    let output = recording.finish();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("did not stop"), "{stderr}");
    assert!(stderr.contains(&format!("waiting for stubborn (pid {pid}) to stop")), "{stderr}");
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.events.iter().map(|event| event.name()).collect::<Vec<_>>(), ["here"]);
    assert_eq!(archive.events[0].event.process.0, u64::from(pid));
}
