//! Programs that start while a recording is running: their first event is recorded, whichever process started
//! them.
//= docs/protocol.md#a-recording-is-announced

use rustix::process::Signal;
use std::process::Output;
use std::time::Duration;
use trace_format::units::ProviderId;
use trace_protocol::controller::{SessionRequest, SessionResponse, StartOptions, StopOptions, TraceConfig};
use trace_protocol::provider::ProviderRequest;
use trace_protocol::registry::{Registration, RegistryRequest};
use trace_protocol::{Message, Txid, VersionRange};
use trace_tests::client::{Client, receive};
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::{freeze, stderr};
use trace_tests::{Archive, Sandbox, wait_for};
use zx_sim::{Channel, Handle, Listener};

fn succeeds(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let output = sandbox.trace(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

/// Waits for a program's end.
fn said(program: Process) -> String {
    let output = program.finish();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The numbers of each provider's events.
fn numbers(archive: &Archive) -> Vec<Vec<u64>> {
    let of = |id: &ProviderId| {
        let events = archive.events.iter().filter(|event| event.provider == *id);
        events.map(|event| event.u64("n")).collect()
    };
    archive.providers.keys().filter(|id| id.0 != 0).map(of).collect()
}

#[test]
fn every_event_of_twenty_short_programs_is_recorded() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start"]);
    let programs: Vec<_> = (0..20).map(|_| sandbox.spawn("first", &["10"])).collect();
    programs.into_iter().for_each(|program| drop(said(program)));
    let output = succeeds(&sandbox, &["stop"]);
    assert!(stderr(&output).contains("trace: 200 events of 20 programs in "), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(numbers(&archive), vec![(0..10).collect::<Vec<u64>>(); 20]);
    succeeds(&sandbox, &["check", "trace.fxt"]);
}

#[test]
fn a_synchronous_registration_waits_for_the_start_too() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start"]);
    let program = said(sandbox.spawn("first", &["10", "synchronously"]));
    assert!(program.starts_with("Registered { already_started: true }\n"), "{program}");
    succeeds(&sandbox, &["stop"]);
    assert_eq!(numbers(&Archive::read(&sandbox.file("trace.fxt"))), [(0..10).collect::<Vec<u64>>()]);
}

//= docs/buffer.md#fork
#[test]
fn a_forked_child_of_a_program_that_was_not_recorded_is_recorded_from_its_first_event_on() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start"]);
    said(sandbox.spawn("forking", &["events", "nested"]));
    let output = succeeds(&sandbox, &["stop"]);
    assert!(stderr(&output).contains("trace: 8 events of 3 programs in "), "{output:?}");
}

/// What the program took to make its provider and to drop it, while a manager is frozen, and what it said.
fn times_beside_a_frozen_manager(sandbox: &Sandbox) -> (u64, u64, String) {
    let manager = sandbox.manager_pid().expect("a manager runs");
    freeze(manager);
    let output = sandbox.spawn("first", &["10"]).finish();
    kill(manager, Signal::CONT);
    let times = String::from_utf8_lossy(&output.stdout).into_owned();
    let (made, dropped) = times.trim().split_once(' ').expect("two numbers");
    (made.parse().unwrap(), dropped.parse().unwrap(), stderr(&output))
}

const LATE: &str = "trace: program \"first\": the trace manager has not answered in time; \
                    events are not recorded until it does\n";

/// A wait would take 1 s at least; on a busy machine anything may take a while.
#[test]
fn a_frozen_manager_that_records_nothing_is_not_waited_for() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["list-programs"]);
    let (made, dropped, said) = times_beside_a_frozen_manager(&sandbox);
    assert!(made < 1000 && dropped < 1000, "{made} ms, {dropped} ms");
    assert_eq!(said, "");
}

#[test]
fn a_frozen_manager_that_records_is_waited_for_for_a_second_and_the_program_is_named() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start"]);
    let (made, dropped, said) = times_beside_a_frozen_manager(&sandbox);
    assert_eq!(said, LATE);
    assert!((1000..5000).contains(&made) && dropped < 1000, "{made} ms, {dropped} ms");
    // Its registration waits in the queue; it has ended when the manager reads it.
    let output = succeeds(&sandbox, &["stop"]);
    let text = stderr(&output);
    assert!(text.contains("  ended before its start\n"), "{text}");
    assert!(text.contains("it could not join in time: what it did before is not recorded"), "{text}");
    assert!(text.contains("trace: 0 events of 1 program in "), "{text}");
    succeeds(&sandbox, &["check", "--allow", "loss", "trace.fxt"]);
}

#[test]
fn a_program_that_could_not_join_in_time_is_named_and_recorded_from_then_on() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start"]);
    let manager = sandbox.manager_pid().expect("a manager runs");
    freeze(manager);
    let mut program = sandbox.spawn("emit", &["1", "1", "--wait", "--on"]);
    let pid = program.line();
    kill(manager, Signal::CONT);
    assert_eq!(program.line(), "on");
    said(program);
    let text = stderr(&succeeds(&sandbox, &["stop"]));
    let late = "it could not join in time: what it did before is not recorded";
    assert!(text.contains(&format!("trace: warning: emit (pid {pid}): {late}\n")), "{text}");
    assert!(text.contains("trace: 14 events of 1 program in "), "{text}");
}

#[test]
fn a_program_that_ends_with_an_empty_buffer_has_ended_before_its_start() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let client = Client::connect(&sandbox);
    let mut session = client.begin(TraceConfig::default());
    let output = session.collect();
    let started = session.ask(SessionRequest::StartTracing(StartOptions::default()));
    assert_eq!(started, SessionResponse::StartTracing(Ok(())));
    let registry = Channel::connect(&sandbox.runtime_dir().join("registry")).unwrap();
    let (ours, theirs) = Channel::pair().unwrap();
    let message = RegistryRequest::RegisterProvider(registration(theirs)).encode(Txid::ONE_WAY).unwrap();
    registry.write(&message.bytes, message.handles).unwrap();
    let initialize: ProviderRequest<Handle> = receive(&ours).unwrap();
    assert!(matches!(initialize, ProviderRequest::Initialize { .. }), "{initialize:?}");
    drop((initialize, ours));
    let answer = session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }));
    let SessionResponse::StopTracing(Ok(result)) = answer else { panic!("{answer:?}") };
    let [stats] = &result.provider_stats[..] else { panic!("{result:?}") };
    assert_eq!((stats.disposition.as_str(), stats.problem.as_str()), ("ended before its start", ""));
    assert_eq!((stats.events_archived, stats.records_dropped), (Some(0), Some(0)));
    drop(session);
    let archive = Archive::of_bytes(&output.finish());
    assert_eq!(archive.providers.values().map(String::as_str).collect::<Vec<_>>(), ["trace_manager", "late"]);
}

fn registration(provider: Channel) -> Registration<Handle> {
    Registration {
        provider: provider.into_handle(),
        pid: 1,
        name: "late".to_owned(),
        protocol: VersionRange::PROTOCOL,
        buffer_header: VersionRange::only(1),
        tick_source: zx_sim::ticks::source().name().to_owned(),
        dumps_memory: false,
        parent: None,
        records_alerts: true,
        numbers_threads: false,
        backs_buffer: false,
        redacts: false,
        has_scopes: false,
        answers_dumps: false,
        command_line: None,
    }
}

/// Whether a program asks a manager that never answers for an answer, which it then waits for.
fn asks_for_an_answer(files: &[&str], variable: Option<&str>) -> bool {
    let sandbox = Sandbox::new();
    let registry = Listener::bind(&sandbox.runtime_dir().join("registry")).unwrap();
    files.iter().for_each(|name| std::fs::write(sandbox.runtime_dir().join(name), "").unwrap());
    let mut command = sandbox.command("first");
    command.arg("1").envs(variable.map(|value| ("TRACE_RECORD", value)));
    let program = Sandbox::spawn_command(command);
    let connection = wait_for("a connection", || registry.accept().ok());
    let message = wait_for("a registration", || connection.read().ok());
    let (txid, _) = RegistryRequest::<Handle>::decode(&message.bytes, message.handles).unwrap();
    drop((connection, registry));
    said(program);
    txid != Txid::ONE_WAY
}

//= docs/protocol.md#versions
#[test]
fn a_program_waits_where_a_recording_is_announced_and_below_record_of_any_release() {
    let own = format!("recording.{}", rustix::process::geteuid().as_raw());
    assert!(!asks_for_an_answer(&[], None));
    assert!(!asks_for_an_answer(&["recording.4001"], None));
    assert!(asks_for_an_answer(&["recording.all"], None));
    assert!(asks_for_an_answer(&[&own], None));
    // A manager of the last release announces nothing.
    assert!(asks_for_an_answer(&[], Some("1")));
    assert!(!asks_for_an_answer(&[], Some("0")));
}

#[test]
fn what_a_killed_manager_has_announced_keeps_no_program_waiting() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start"]);
    let file = sandbox.runtime_dir().join("recording.all");
    assert!(file.exists());
    kill(sandbox.manager_pid().unwrap(), Signal::KILL);
    wait_for("the manager's end", || sandbox.manager_pid().is_none().then_some(()));
    assert!(file.exists());
    let begin = std::time::Instant::now();
    said(sandbox.spawn("first", &["1"]));
    assert!(begin.elapsed() < Duration::from_secs(1));
    succeeds(&sandbox, &["list-programs"]);
    assert!(!file.exists(), "the next manager has removed it");
    succeeds(&sandbox, &["start"]);
    assert!(file.exists());
    succeeds(&sandbox, &["stop"]);
    assert!(!file.exists());
}
