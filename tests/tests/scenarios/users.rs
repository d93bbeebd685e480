//! One manager for all users, and programs of other pid namespaces.
//= docs/protocol.md#users

use rustix::process::Signal;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use trace_format::units::ProviderId;
use trace_tests::build::copy_program;
use trace_tests::sandbox::Process;
use trace_tests::scene::wait_for_death;
use trace_tests::{Archive, Requirement, Sandbox, wait_for};

const ALICE: u32 = 4_001;
const BOB: u32 = 4_002;

/// A program where every user can run it, wherever this tree is.
fn public(sandbox: &Sandbox, name: &str) -> PathBuf {
    let path = sandbox.file(name);
    if !path.exists() {
        copy_program(name, &path);
    }
    path
}

fn command_of(sandbox: &Sandbox, uid: u32, name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(public(sandbox, name));
    command.args(arguments).current_dir(sandbox.work_dir());
    command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env_remove("TRACE_RECORD");
    command.uid(uid).gid(uid);
    command
}

/// A program of a user's that waits for a line of input.
fn waiting(sandbox: &Sandbox, uid: u32) -> Process {
    let mut program = Sandbox::spawn_command(command_of(sandbox, uid, "emit", &["1", "5", "--wait"]));
    program.line();
    program
}

fn run(sandbox: &Sandbox, uid: u32, arguments: &[&str]) -> Output {
    command_of(sandbox, uid, "trace", arguments).output().unwrap()
}

fn pids(output: &Output) -> Vec<u64> {
    assert!(output.status.success(), "{output:?}");
    let list: serde_json::Value = trace_tests::json(output);
    let mut pids: Vec<_> =
        list.as_array().unwrap().iter().map(|entry| entry["pid"].as_u64().unwrap()).collect();
    pids.sort_unstable();
    pids
}

/// A manager of root's for all users, when it listens.
fn manager(sandbox: &Sandbox) -> Process {
    let manager = sandbox.spawn("trace", &["manager", "--all-users"]);
    let socket = sandbox.runtime_dir().join("provisioner");
    wait_for("the manager's socket", || socket.exists().then_some(()));
    manager
}

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_client_sees_and_records_what_its_user_may_see() {
    let test = "users::a_client_sees_and_records_what_its_user_may_see";
    let Some(sandbox) = Sandbox::for_all_users(test) else { return };
    let manager = manager(&sandbox);
    let (alices, bobs, roots) = (waiting(&sandbox, ALICE), waiting(&sandbox, BOB), waiting(&sandbox, 0));
    let mut everybody = [&alices, &bobs, &roots].map(|program| u64::from(program.pid()));
    everybody.sort_unstable();
    let listed = |uid| pids(&run(&sandbox, uid, &["list-programs", "--machine", "json"]));
    wait_for("all to be registered", || (listed(0) == everybody).then_some(()));
    assert_eq!(listed(ALICE), [u64::from(alices.pid())]);
    assert_eq!(listed(BOB), [u64::from(bobs.pid())]);
    assert!(listed(4_003).is_empty());
    let doctor = run(&sandbox, ALICE, &["doctor", "--no-self-trace", "--machine", "json"]);
    let findings: serde_json::Value = trace_tests::json(&doctor);
    let detail = |name| {
        let of_name = |finding: &&serde_json::Value| finding["capability"] == name;
        findings.as_array().unwrap().iter().find(of_name).map(|finding| finding["detail"].clone())
    };
    let directory = sandbox.runtime_dir().display().to_string();
    let expected = format!("{directory}, of root's manager, which makes the buffers elsewhere");
    assert_eq!(detail("runtime directory"), Some(expected.into()));
    assert_eq!(detail("shared buffers"), None);

    // Alice's recording has her programs, and only root can open its buffers.
    let recording = Sandbox::spawn_command(command_of(&sandbox, ALICE, "trace", &["record"]));
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    assert!(sandbox.runtime_dir().join(format!("recording.{ALICE}")).exists());
    let entries = std::fs::read_dir(sandbox.runtime_dir()).unwrap().map(Result::unwrap);
    for entry in entries {
        let (kind, path) = (entry.file_type().unwrap(), entry.path());
        let expected = if kind.is_dir() { 0o700 } else { 0o666 };
        if kind.is_dir() || kind.is_socket() {
            assert_eq!(mode_of(&path), expected, "{}", path.display());
        } else {
            assert_eq!(mode_of(&path) & 0o022, 0, "{}", path.display());
        }
    }
    // Root, who would have them twice, is refused; Bob records his own meanwhile, and sees his own recording.
    let refused = run(&sandbox, 0, &["record", "--duration", "1"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.starts_with("trace: unable to start trace: the trace manager is in use by \""), "{said}");
    let bobs_recording =
        Sandbox::spawn_command(command_of(&sandbox, BOB, "trace", &["record", "-o", "bobs.fxt"]));
    wait_for("the recording to be announced", || {
        bobs_recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    assert!(sandbox.runtime_dir().join(format!("recording.{BOB}")).exists());
    let recorded_by = |uid| {
        let listed = run(&sandbox, uid, &["list-programs", "--json"]);
        let listed: serde_json::Value = trace_tests::json(&listed);
        let entries = listed.as_array().unwrap().iter();
        entries.map(|entry| entry["recorded_by"].as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(recorded_by(ALICE), [Some(u64::from(recording.pid()))]);
    assert_eq!(recorded_by(BOB), [Some(u64::from(bobs_recording.pid()))]);
    alices.succeed();
    bobs.succeed();
    bobs_recording.signal(Signal::INT);
    bobs_recording.succeed();
    let archive = Archive::read(&sandbox.file("bobs.fxt"));
    let names: Vec<_> = archive.providers.values().map(String::as_str).collect();
    assert_eq!((names, archive.events.len()), (vec!["trace_manager", "emit"], 5 * 14));
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let names: Vec<_> = archive.providers.values().map(String::as_str).collect();
    assert_eq!(names, ["trace_manager", "emit"]);

    // Root's has the programs of all users.
    let recording =
        Sandbox::spawn_command(command_of(&sandbox, 0, "trace", &["record", "--output-file", "all.fxt"]));
    let late = waiting(&sandbox, BOB);
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    roots.succeed();
    late.succeed();
    recording.signal(Signal::INT);
    recording.succeed();
    let archive = Archive::read(&sandbox.file("all.fxt"));
    assert_eq!(archive.providers.len(), 3, "{:?}", archive.providers);
    manager.signal(Signal::TERM);
    manager.succeed();
}

/// The manager dies with a user's recording: root saves it for the user.
//= docs/recovery.md#recordings-with-a-manager-for-all-users
#[test]
fn what_is_left_of_a_users_recording_is_saved_by_root_for_the_user() {
    let test = "users::what_is_left_of_a_users_recording_is_saved_by_root_for_the_user";
    let Some(sandbox) = Sandbox::for_all_users(test) else { return };
    let manager = manager(&sandbox);
    let recording =
        Sandbox::spawn_command(command_of(&sandbox, ALICE, "trace", &["record", "-o", "alices.fxt"]));
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    // It has recorded all that it does when it prints, and lives on.
    std::fs::write(sandbox.file("wait"), "").unwrap();
    let mut alices = Sandbox::spawn_command(command_of(&sandbox, ALICE, "living", &["wait"]));
    assert_eq!(alices.line(), "printed by the program");
    manager.signal(Signal::KILL);
    let output = recording.finish();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("sudo trace recover "), "{said}");
    alices.signal(Signal::KILL);
    wait_for_death(alices.pid());
    let output = run(&sandbox, ALICE, &["recover", "-o", "mine.fxt"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.ends_with("recordings with root's manager for all users: sudo trace recover\n"), "{said}");
    let output = run(&sandbox, 0, &["recover", "-o", "recovered.fxt"]);
    assert!(output.status.success(), "{output:?}");
    let found = std::fs::metadata(sandbox.file("recovered.fxt")).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o777), (ALICE, 0o600));
    assert_eq!(Archive::read(&sandbox.file("recovered.fxt")).events.len(), 503);
}

#[test]
fn only_root_serves_all_users() {
    let test = "users::only_root_serves_all_users";
    let Some(sandbox) = Sandbox::for_all_users(test) else { return };
    let refused = run(&sandbox, ALICE, &["manager", "--all-users"]);
    assert_eq!(refused.status.code(), Some(125));
    assert_eq!(
        String::from_utf8_lossy(&refused.stderr),
        "trace: only a manager that root starts can serve all users\n"
    );
}

/// A program may be in a directory that another user has made, and does not reveal to that user what it does.
#[test]
fn a_program_registers_with_its_own_users_manager_or_roots() {
    let test = "users::a_program_registers_with_its_own_users_manager_or_roots";
    let Some(sandbox) = Sandbox::for_all_users(test) else { return };
    // Alice's manager, in a directory that she has opened to all users since.
    std::os::unix::fs::chown(sandbox.runtime_dir(), Some(ALICE), Some(ALICE)).unwrap();
    let set_mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(sandbox.runtime_dir(), mode).unwrap();
    };
    set_mode(0o700);
    let _manager = Sandbox::spawn_command(command_of(&sandbox, ALICE, "trace", &["manager"]));
    for name in ["registry", "provisioner"] {
        let socket = sandbox.runtime_dir().join(name);
        wait_for("a socket", || socket.exists().then_some(()));
        std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    }
    set_mode(0o755);
    let register = |uid| {
        let output = command_of(&sandbox, uid, "stubborn", &["register"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(register(ALICE), "Registered { already_started: false }\n");
    assert_eq!(register(BOB), "NoManager\n");
    assert_eq!(register(0), "NoManager\n");
    let refused = run(&sandbox, BOB, &["list-programs"]);
    assert_eq!(refused.status.code(), Some(125));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("belongs to user 4001, not to user 4002: not used"), "{stderr}");
}

/// In its own pid namespace the program is number 1, as many others are in theirs.
#[test]
fn a_program_of_another_pid_namespace_has_the_managers_number_for_it() {
    let test = "users::a_program_of_another_pid_namespace_has_the_managers_number_for_it";
    if !Requirement::PidNamespaces.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    let mut command = sandbox.command("emit");
    let emit = command.get_program().to_owned();
    command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).arg(emit).args(["1", "5", "--wait", "--on"]);
    command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env("TRACE_RECORD", "1");
    let mut inside = Sandbox::spawn_command(command);
    assert_eq!((inside.line(), inside.line()), ("1".to_owned(), "on".to_owned()));
    let outside = pids(&sandbox.trace(["list-programs", "--machine", "json"]));
    let [pid] = outside[..] else { panic!("{outside:?}") };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let numbers = status.lines().find(|line| line.starts_with("NSpid:")).unwrap();
    let numbers: Vec<_> = numbers.split_whitespace().skip(1).collect();
    assert_eq!(numbers[numbers.len() - 2..], [pid.to_string().as_str(), "1"]);
    inside.succeed();
    recording.signal(Signal::INT);
    recording.succeed();
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.providers[&ProviderId(1)], "emit");
    assert_eq!(archive.events.len(), 5 * 14);
    assert!(archive.events.iter().all(|event| event.event.process.0 == pid));
}
