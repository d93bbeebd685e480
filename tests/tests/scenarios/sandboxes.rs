//! Programs in sandboxes and containers.

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::SendFlags;
use rustix::process::Signal;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use trace_protocol::registry::RegistryRequest;
use trace_protocol::{Message, Txid};
use trace_tests::build::program;
use trace_tests::scene::stderr;
use trace_tests::{Archive, Requirement, Sandbox, wait_for};
use zx_sim::channel::MAX_MESSAGE_BYTES;
use zx_sim::{Channel, Handle};

const EVENTS: u64 = 500;

/// Events of the archive, by process.
fn counts(sandbox: &Sandbox, file: &str) -> Vec<usize> {
    let archive = Archive::read(&sandbox.file(file));
    let mut by_process = std::collections::BTreeMap::new();
    for event in &archive.events {
        *by_process.entry(event.event.process.0).or_insert(0) += 1;
    }
    by_process.into_values().collect()
}

/// The kernel refuses files and sockets: the descriptor is the only way, for a forked child, too.
//= docs/sandboxes.md#without-files-and-sockets
#[test]
fn a_program_without_files_and_sockets_inherits_its_manager() {
    let sandbox = Sandbox::new();
    let events = EVENTS.to_string();
    let sandboxed = program("sandboxed");
    let sandboxed = sandboxed.to_str().unwrap();
    let options = ["record", "--manager-fd", "--", sandboxed, &events];
    let output = sandbox.trace(options);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "child 0\n");
    assert_eq!(counts(&sandbox, "trace.fxt"), [EVENTS as usize; 2]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.providers.values().filter(|name| *name == "sandboxed").count(), 2);
    assert_eq!(archive.losses.len(), 0, "{:?}", archive.losses);
    // Without it the program runs on, and is not recorded.
    let output = sandbox.trace(["record", "-o", "none.fxt", "--", sandboxed, &events]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "child 0\n");
    assert!(stderr(&output).contains("no program took part"), "{}", stderr(&output));
}

/// Several programs have one connection, one after the other and at once, below a shell.
//= docs/protocol.md#shared-connections
#[test]
fn programs_share_an_inherited_connection() {
    let sandbox = Sandbox::new();
    let emit = program("emit");
    let emit = emit.to_str().unwrap();
    let script = format!("unset TRACE_RUNTIME_DIR; {emit} 1 10 & {emit} 1 10; wait; {emit} 1 10");
    let output = sandbox.trace(["record", "--manager-fd", "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(counts(&sandbox, "trace.fxt"), [140; 3]);
    // The numbers are those of the programs, not of the process that has connected.
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let recorded: std::collections::BTreeSet<u64> =
        archive.events.iter().map(|event| event.event.process.0).collect();
    assert_eq!(recorded.len(), 3);
}

/// A message that is none does not cut the others off that have the connection.
//= docs/protocol.md#shared-connections
#[test]
fn a_bad_message_leaves_a_shared_connection_to_the_others() {
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let shared = Channel::connect(&sandbox.runtime_dir().join("registry")).unwrap();
    let request = RegistryRequest::<Handle>::ShareRegistry.encode(Txid(1)).unwrap();
    shared.write(&request.bytes, request.handles).unwrap();
    wait_for("the answer", || shared.read().ok());
    for length in [0, 1, 40, MAX_MESSAGE_BYTES + 1] {
        let sent = rustix::net::send(&shared, &vec![1; length], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        assert_eq!(sent.unwrap(), length);
    }
    fcntl_setfd(shared.as_fd(), FdFlags::empty()).unwrap();
    let mut command = sandbox.command("emit");
    command.args(["1", "10"]).env_remove("TRACE_RUNTIME_DIR");
    command.env("TRACE_MANAGER_FD", shared.as_fd().as_raw_fd().to_string());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // One that has been shut down is of no use, which is reported.
    rustix::net::shutdown(&shared, rustix::net::Shutdown::Both).unwrap();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("the connection of TRACE_MANAGER_FD has ended"), "{said}");
    recording.signal(Signal::INT);
    assert!(recording.finish().status.success());
    assert_eq!(counts(&sandbox, "trace.fxt"), [140]);
}

/// What is no such connection is named, and the usual ways are tried.
//= docs/protocol.md#shared-connections
#[test]
fn a_descriptor_that_is_no_connection_is_named() {
    let sandbox = Sandbox::new();
    for (value, is_named) in [("7", true), ("x", true), ("0", true), ("-1", true), ("", false)] {
        let script = format!("TRACE_MANAGER_FD='{value}' {} 1 10", program("emit").display());
        let output = sandbox.trace(["record", "-o", "t.fxt", "--", "sh", "-c", &script]);
        assert!(output.status.success(), "{output:?}");
        let said = format!("TRACE_MANAGER_FD is \"{value}\", which is no connection with a trace manager");
        assert_eq!(stderr(&output).contains(&said), is_named, "{}", stderr(&output));
        assert_eq!(counts(&sandbox, "t.fxt"), [140]);
    }
}

/// Runs a command in namespaces of its own, with nothing of `/dev/shm` and `/tmp` but the runtime directory.
fn contained(sandbox: &Sandbox, namespaces: &[&str], command: &str) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(namespaces).args(["sh", "-c", command]);
    unshare.current_dir(sandbox.work_dir()).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
    unshare.env_remove("TRACE_RECORD");
    unshare
}

/// Records everything, while a command runs in a container.
fn record_contained(sandbox: &Sandbox, mut command: Command) -> String {
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let output = command.output().expect("it runs");
    recording.signal(Signal::INT);
    let recorded = recording.finish();
    assert!(output.status.success() && recorded.status.success(), "{output:?} {recorded:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Processes in pid and user namespaces of their own: they have the numbers of the manager's.
//= docs/sandboxes.md#in-namespaces
#[test]
fn a_program_in_namespaces_is_recorded() {
    if !Requirement::UserNamespaces.is_met("a_program_in_namespaces_is_recorded") {
        return;
    }
    let sandbox = Sandbox::new();
    let namespaces = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let emit = format!("exec {} 1 10", program("emit").display());
    let printed = record_contained(&sandbox, contained(&sandbox, &namespaces, &emit));
    assert!(printed.starts_with("1 "), "its own number is 1: {printed}");
    assert_eq!(counts(&sandbox, "trace.fxt"), [140]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert!(archive.events.iter().all(|event| event.event.process.0 > 1), "it has the manager's number");
}

/// Nothing of the system's files is there but what the program needs and the runtime directory.
//= docs/sandboxes.md#with-the-runtime-directory-alone
#[test]
fn the_runtime_directory_is_enough() {
    if !Requirement::UserNamespaces.is_met("the_runtime_directory_is_enough") {
        return;
    }
    let sandbox = Sandbox::new();
    let runtime = sandbox.runtime_dir();
    let root = sandbox.file("root");
    let directories = "usr lib lib64 bin program run".split(' ').map(|name| root.join(name));
    directories.for_each(|directory| std::fs::create_dir_all(directory).unwrap());
    let emit = program("emit");
    let binds = ["usr", "lib", "lib64", "bin"];
    let binds =
        binds.map(|name| format!("[ -e /{name} ] && mount --rbind /{name} {}/{name}", root.display()));
    let script = format!(
        "{}; mount --bind {} {root}/program; mount --bind {} {root}/run; \
         exec env TRACE_RUNTIME_DIR=/run chroot {root} /program/{} 1 10",
        binds.join("; "),
        emit.parent().unwrap().display(),
        runtime.display(),
        emit.file_name().unwrap().to_string_lossy(),
        root = root.display(),
    );
    let namespaces = ["--user", "--map-root-user", "--mount"];
    record_contained(&sandbox, contained(&sandbox, &namespaces, &script));
    assert_eq!(counts(&sandbox, "trace.fxt"), [140]);
}
