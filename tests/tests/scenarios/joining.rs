//! Programs that come before, during and after a recording.

use rustix::process::Signal;
use trace_protocol::controller::{
    ProvisionerRequest, ProvisionerResponse, SessionRequest, SessionResponse, StartOptions, StopOptions,
    TraceConfig,
};
use trace_tests::client::Client;
use trace_tests::{Archive, Sandbox, wait_for};

#[test]
fn a_program_started_before_any_manager_is_recorded() {
    let sandbox = Sandbox::new();
    let mut emit = sandbox.spawn("emit", &["2", "20", "--wait", "--on"]);
    emit.line();
    assert_eq!(sandbox.manager_pid(), None);
    let recording = sandbox.spawn("trace", &["record"]);
    assert_eq!(emit.line(), "on");
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    emit.succeed();
    recording.signal(Signal::INT);
    recording.succeed();
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 2 * 20 * 14);
}

#[test]
fn a_program_that_registers_during_a_recording_is_recorded() {
    let sandbox = Sandbox::new();
    let mut first = sandbox.spawn("emit", &["1", "3", "--wait", "--on"]);
    first.line();
    let recording = sandbox.spawn("trace", &["record"]);
    assert_eq!(first.line(), "on");
    let mut second = sandbox.spawn("emit", &["1", "4", "--wait", "--on"]);
    second.line();
    assert_eq!(second.line(), "on");
    first.succeed();
    second.succeed();
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    recording.signal(Signal::INT);
    recording.succeed();
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.events.len(), (3 + 4) * 14);
    assert_eq!(archive.providers.len(), 3);
}

/// More programs than the first list of an answer has room for.
#[test]
fn a_hundred_and_ten_programs_are_recorded_together() {
    const PROGRAMS: usize = 110;
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let client = Client::connect(&sandbox);
    let config = TraceConfig { buffer_size_megabytes_hint: 1, ..TraceConfig::default() };
    let mut session = client.begin(config);
    let output = session.collect();
    let started = session.ask(SessionRequest::StartTracing(StartOptions::default()));
    assert_eq!(started, SessionResponse::StartTracing(Ok(())));
    let spawn = |_| sandbox.spawn_recorded("stubborn", &["ignore-term"]);
    let mut programs: Vec<_> = (0..PROGRAMS).map(spawn).collect();
    // They have written by then.
    programs.iter_mut().for_each(|program| assert_eq!(program.line(), "ready"));
    let listed = client.ask(ProvisionerRequest::GetProviders);
    let ProvisionerResponse::Providers { listed, left_out: 0 } = listed else { panic!("{listed:?}") };
    assert_eq!(listed.len(), PROGRAMS);
    let shown = String::from_utf8(sandbox.trace(["list-programs"]).stdout).expect("text");
    assert_eq!(shown.lines().count(), PROGRAMS + 1, "{shown}");
    let answer = session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }));
    let SessionResponse::StopTracing(Ok(result)) = answer else { panic!("{answer:?}") };
    assert_eq!(result.provider_stats.len(), PROGRAMS);
    drop(session);
    let archive = Archive::of_bytes(&output.finish());
    assert_eq!(archive.providers.len(), PROGRAMS + 1);
    assert_eq!(archive.events.len(), PROGRAMS);
    assert_eq!(archive.generated().into_values().collect::<Vec<_>>(), [1; PROGRAMS]);
}

#[test]
fn a_program_outlives_its_manager_and_finds_the_next() {
    let sandbox = Sandbox::new();
    let mut emit = sandbox.spawn("emit", &["1", "6", "--wait"]);
    emit.line();
    assert!(sandbox.trace(["list-programs"]).status.success());
    let first = sandbox.manager_pid().expect("a manager was started");
    trace_tests::sandbox::kill(first, Signal::KILL);
    wait_for("the manager's end", || sandbox.manager_pid().is_none().then_some(()));
    let listed = wait_for("the program to find the next manager", || {
        let output = sandbox.trace(["list-programs"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.contains("emit").then_some(text)
    });
    assert_eq!(listed, format!("Programs:\n  emit (pid {})\n", emit.pid()));
    assert_ne!(sandbox.manager_pid(), Some(first));
    emit.succeed();
}

#[test]
fn a_synchronous_registration_says_whether_a_trace_runs() {
    let sandbox = Sandbox::new();
    let register = || {
        let output = sandbox.command("stubborn").arg("register").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(register(), "NoManager\n");
    assert!(sandbox.trace(["list-programs"]).status.success());
    assert_eq!(register(), "Registered { already_started: false }\n");
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    assert_eq!(register(), "Registered { already_started: true }\n");
    recording.signal(Signal::INT);
    recording.succeed();
}
