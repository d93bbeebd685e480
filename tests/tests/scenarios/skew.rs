//! Programs and managers of different releases.

use super::meeting::{self, Session, World, may_mount};
use std::path::Path;
use std::process::Command;
use trace_protocol::provider::ProviderRequest;
use trace_protocol::registry::{Registration, RegistryRequest};
use trace_protocol::{Message, Txid, VersionRange};
use trace_tests::build::program;
use trace_tests::client::{Client, receive};
use trace_tests::{Archive, Requirement, Sandbox, release, wait_for};
use zx_sim::{Channel, Handle};

/// A program of a later release: both sides say which versions there are, and it runs on.
//= docs/protocol.md#versions
#[test]
fn a_provider_of_an_unknown_version_is_refused_and_logged() {
    let sandbox = Sandbox::new();
    let manager = sandbox.spawn("trace", &["manager"]);
    let _client = Client::connect(&sandbox);
    for (protocol, buffer_header, sentence) in [
        (
            VersionRange { min: 7, max: 9 },
            VersionRange::only(1),
            "it uses protocol 7 to 9, this manager supports protocol 1",
        ),
        (VersionRange::PROTOCOL, VersionRange::only(4), "it writes buffer header 4, this manager reads 1"),
    ] {
        // It appears after the one for clients.
        let path = sandbox.runtime_dir().join("registry");
        let registry = wait_for("the manager to listen to programs", || Channel::connect(&path).ok());
        let (ours, theirs) = Channel::pair().unwrap();
        let message = RegistryRequest::RegisterProvider(later(theirs, protocol, buffer_header))
            .encode(Txid::ONE_WAY)
            .unwrap();
        registry.write(&message.bytes, message.handles).unwrap();
        let request: ProviderRequest<Handle> = receive(&ours).unwrap();
        let ProviderRequest::Refused { reason } = request else { panic!("{request:?}") };
        assert_eq!(reason, sentence);
        let line = format!("program \"later\" refused: {sentence}");
        wait_for("a line in the log", || manager.stderr_so_far().contains(&line).then_some(()));
    }
}

/// The only program that wants to be recorded cannot be: that is reported while it runs, and is no success.
//= docs/recording.md#programs-that-cannot-be-recorded
//= docs/protocol.md#providers-that-cannot-be-recorded
#[test]
fn a_program_that_is_refused_is_reported_at_once() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let _client = Client::connect(&sandbox);
    let reason = "it uses protocol 7 to 9, this manager supports protocol 1";
    let mut recording =
        sandbox.spawn("trace", &["record", "-o", "t.fxt", "--", "sh", "-c", "echo ready && read _"]);
    assert_eq!(recording.line(), "ready");
    let _refused = refused(&sandbox);
    let pid = std::process::id();
    let line = format!("trace: warning: later (pid {pid}) is not recorded: {reason}\n");
    wait_for("the warning", || recording.stderr_so_far().contains(&line).then_some(()));
    recording.say("go");
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(&format!("trace: warning: later (pid {pid}): {reason}\n")), "{stderr}");

    // Beside one that is recorded it is only a warning. The status of a recording in the background has it.
    assert!(sandbox.trace(["start", "-o", "s.fxt"]).status.success());
    let _refused = refused(&sandbox);
    sandbox.spawn("emit", &["1", "1"]).succeed();
    let status = wait_for("both to be reported", || {
        let status = String::from_utf8(sandbox.trace(["status"]).stdout).expect("text");
        (status.contains("- emit (pid ") && status.contains(", 14 events, ")).then_some(status)
    });
    let line = format!("- later (pid {pid}): refused, 0 events, 0 lost; {reason}\n");
    assert!(status.contains(&line), "{status}");
    assert!(sandbox.trace(["stop"]).status.success());
}

/// Registers as a program of a later release does; its channel.
fn refused(sandbox: &Sandbox) -> Channel {
    let registry = Channel::connect(&sandbox.runtime_dir().join("registry")).unwrap();
    let (ours, theirs) = Channel::pair().unwrap();
    let protocol = VersionRange { min: 7, max: 9 };
    let message = RegistryRequest::RegisterProvider(later(theirs, protocol, VersionRange::only(1)));
    let message = message.encode(Txid::ONE_WAY).unwrap();
    registry.write(&message.bytes, message.handles).unwrap();
    ours
}

fn later(theirs: Channel, protocol: VersionRange, buffer_header: VersionRange) -> Registration<Handle> {
    Registration {
        provider: theirs.into_handle(),
        pid: 1,
        name: "later".to_owned(),
        protocol,
        buffer_header,
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

/// Manager, client and program are each of that release or of now, in all combinations.
//= docs/protocol.md#versions
#[test]
fn the_last_release_and_this_one_record_each_other() {
    if !Requirement::Release.is_met("the_last_release_and_this_one_record_each_other") {
        return;
    }
    let release = release::programs();
    for combination in 0..8 {
        let of = |place: u32, name: &str| match combination >> place & 1 {
            0 => program(name).to_owned(),
            _ => release.join(name),
        };
        let (manager, client, emit) = (of(0, "trace"), of(1, "trace"), of(2, "emit"));
        for mode in ["oneshot", "circular", "streaming"] {
            let sandbox = Sandbox::new();
            let here = |program: &Path| {
                let mut command = Command::new(program);
                command.current_dir(sandbox.work_dir()).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
                command
            };
            let mut command = here(&manager);
            command.arg("manager");
            let _manager = Sandbox::spawn_command(command);
            let socket = sandbox.runtime_dir().join("provisioner");
            wait_for("the manager to listen", || socket.exists().then_some(()));
            let mut command = here(&client);
            command.args(["record", "--buffering-mode", mode, "--output-file", "trace.fxt", "--"]);
            let output = command.arg(&emit).args(["1", "1"]).output().unwrap();
            let what =
                format!("{mode}: {} of {} under {}", emit.display(), client.display(), manager.display());
            assert!(output.status.success(), "{what}: {output:?}");
            let archive = Archive::read(&sandbox.file("trace.fxt"));
            assert_eq!(archive.events.len(), 14, "{what}");
        }
    }
}

/// Programs of that release look in fewer places than those of now, and so do its managers.
//= docs/protocol.md#where-processes-meet
#[test]
fn the_last_release_and_this_one_meet_in_any_environment() {
    let test = "the_last_release_and_this_one_meet_in_any_environment";
    if !Requirement::Release.is_met(test) || !may_mount(test) {
        return;
    }
    let sessions = [Session::Login, Session::None];
    let meet = |manager: Option<&str>, program: &str, service: Session, shell: Session| {
        let mut world = World::with_login();
        for name in ["trace", "emit"] {
            let old = world.sandbox.file(&format!("old-{name}"));
            std::fs::copy(release::programs().join(name), old).unwrap();
        }
        if let Some(manager) = manager {
            let places = "/dev/shm/trace-*/registry /run/user/*/trace/registry";
            let is_up = format!("ls {places} 2> /dev/null | grep -q registry");
            world.alice(shell, &format!("./{manager} manager & until {is_up}; do sleep 0.01; done"));
        }
        world.alice(service, &meeting::waiting(program));
        let found = world.recorded(shell);
        assert_eq!(found, ["emit"], "{manager:?} {program} {service:?} {shell:?}");
    };
    // Two of that release meet where that release says.
    let pairs = [(None, "old-emit"), (Some("trace"), "old-emit"), (Some("old-trace"), "emit")];
    std::thread::scope(|scope| {
        for (manager, program) in pairs {
            scope.spawn(move || {
                for service in sessions {
                    sessions.into_iter().for_each(|shell| meet(manager, program, service, shell));
                }
            });
        }
    });
}
