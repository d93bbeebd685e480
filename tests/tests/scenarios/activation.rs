//! A manager that is started with the socket for clients, as systemd starts one for a socket unit.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use trace_protocol::controller::{ProvisionerRequest, ProvisionerResponse};
use trace_tests::build::{copy_program, program, workspace};
use trace_tests::{Archive, Requirement, Sandbox, wait_for};

const ALICE: u32 = 4_001;

/// Does what systemd does for a socket unit: it listens, and starts the manager when a client has connected.
struct SocketUnit {
    socket: OwnedFd,
}

impl SocketUnit {
    fn new(sandbox: &Sandbox) -> Self {
        Self { socket: listening(&sandbox.runtime_dir().join("provisioner"), SocketType::SEQPACKET) }
    }

    /// A connection waits to be accepted.
    fn has_client(&self) -> bool {
        let mut sockets = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    /// Starts the manager with the socket.
    fn start(&self, command: Command) -> Child {
        start(command, self.socket.try_clone().unwrap().into(), "LISTEN_PID=$$ LISTEN_FDS=1")
    }

    /// Runs a client, and the manager as soon as the client has connected; both to their end.
    fn serve(&self, sandbox: &Sandbox, client: &[&str]) -> Output {
        assert!(!self.has_client(), "a program has connected to the socket for clients");
        let client = sandbox.spawn("trace", client);
        wait_for("the client to connect", || self.has_client().then_some(()));
        let mut manager = self.start(manager(sandbox, &["--idle-timeout", "0.3"]));
        let output = client.finish();
        assert!(output.status.success(), "{output:?}");
        assert!(manager.wait().unwrap().success());
        output
    }
}

fn listening(path: &Path, kind: SocketType) -> OwnedFd {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&socket, 128).unwrap();
    socket
}

fn manager(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = sandbox.command("trace");
    command.arg("manager").args(arguments);
    command
}

/// Starts a command with a descriptor as its number 3, and with variables of which `$$` is its own pid.
fn start(command: Command, descriptor: Stdio, variables: &str) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 3<&0 </dev/null; {variables} exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(descriptor).stdout(Stdio::null()).stderr(Stdio::piped());
    shell.spawn().expect("a shell")
}

//= docs/install.md#managers-that-systemd-starts
#[test]
fn a_client_starts_the_manager_and_programs_do_not() {
    let sandbox = Sandbox::new();
    let unit = SocketUnit::new(&sandbox);
    let path = sandbox.runtime_dir().join("provisioner");
    let inode = std::fs::metadata(&path).unwrap().ino();
    let mut waiting = sandbox.spawn("emit", &["1", "1", "--wait"]);
    waiting.line();
    // The program waits for a manager, and is there as soon as one is. It starts none when that has ended.
    for _ in 0..2 {
        let output = unit.serve(&sandbox, &["list-programs", "--machine", "json"]);
        let list: serde_json::Value = trace_tests::json(&output);
        let pids: Vec<_> = list.as_array().unwrap().iter().map(|entry| entry["pid"].as_u64()).collect();
        assert_eq!(pids, [Some(u64::from(waiting.pid()))]);
        // The socket is systemd's; the other one is the manager's.
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);
        assert!(!sandbox.runtime_dir().join("registry").exists());
    }
    waiting.succeed();
    let emit = program("emit").to_str().unwrap();
    unit.serve(&sandbox, &["record", "--", emit, "1", "1"]);
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 14);
    assert!(!unit.has_client());
}

#[test]
fn the_manager_is_the_peer_of_those_who_connect() {
    let sandbox = Sandbox::new();
    let unit = SocketUnit::new(&sandbox);
    let path = sandbox.runtime_dir().join("provisioner");
    let mut manager = unit.start(manager(&sandbox, &[]));
    wait_for("the manager", || sandbox.runtime_dir().join("registry").exists().then_some(()));
    let client = trace_tests::client::Client(zx_sim::Channel::connect(&path).unwrap());
    assert_eq!(client.0.peer().unwrap().pid, manager.id());
    // From its first answer on it handles signals.
    let answer = client.ask(ProvisionerRequest::GetProviders);
    assert_eq!(answer, ProvisionerResponse::Providers { listed: Vec::new(), left_out: 0 });
    trace_tests::sandbox::kill(manager.id(), rustix::process::Signal::TERM);
    assert!(manager.wait().unwrap().success());
    assert!(path.exists());
}

#[test]
fn a_manager_takes_nothing_but_the_socket_that_it_needs() {
    let sandbox = Sandbox::new();
    let path = sandbox.runtime_dir().join("provisioner");
    let said = |descriptor: Stdio, variables: &str| {
        let output = start(manager(&sandbox, &[]), descriptor, variables).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        text.strip_prefix(&format!("trace: {}: ", path.display())).unwrap_or(&text).to_owned()
    };
    const ONE: &str = "LISTEN_PID=$$ LISTEN_FDS=1";
    const NONE: &str = "handle is not a listening Unix socket of type SEQPACKET\n";
    let right = || Stdio::from(SocketUnit::new(&sandbox).socket);
    assert_eq!(said(right(), "LISTEN_PID=$$ LISTEN_FDS=2"), "LISTEN_FDS is 2, expected 0 to 1\n");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(said(Stdio::null(), ONE), NONE);
    // By the time that the number is looked at it is that of a file of the manager's own, which keeps it.
    assert_eq!(said(Stdio::null(), "exec 3<&-; LISTEN_PID=$$ LISTEN_FDS=1"), NONE);
    assert_eq!(said(listening(&path, SocketType::STREAM).into(), ONE), NONE);
    std::fs::remove_file(&path).unwrap();
    let (connected, _other) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .unwrap();
    assert_eq!(said(connected.into(), ONE), NONE);
    let other = sandbox.file("provisioner");
    assert_eq!(
        said(listening(&other, SocketType::SEQPACKET).into(), ONE),
        format!("the socket that this process was started with listens at {}\n", other.display())
    );
    assert!(!path.exists());

    // What is meant for another process is left alone.
    let mut child =
        start(manager(&sandbox, &["--idle-timeout", "0.1"]), Stdio::null(), "LISTEN_PID=1 LISTEN_FDS=1");
    assert!(child.wait().unwrap().success());
}

/// A setting of the unit of the manager for all users.
fn setting(name: &str) -> String {
    let unit =
        std::fs::read_to_string(workspace().join("packaging/systemd/system/trace-manager.service")).unwrap();
    let found = unit.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    found.unwrap_or_else(|| panic!("no {name} in the unit")).to_owned()
}

/// With the capabilities that the unit leaves it, root's manager records what another user runs.
#[test]
fn the_capabilities_of_the_unit_are_enough() {
    let test = "activation::the_capabilities_of_the_unit_are_enough";
    if !Requirement::OtherProcesses.is_met(test) {
        return;
    }
    let Some(sandbox) = Sandbox::for_all_users(test) else { return };
    let capabilities = setting("CapabilityBoundingSet").to_lowercase().replace("cap_", "+");
    let arguments = setting("ExecStart");
    let arguments: Vec<&str> = arguments.split(' ').skip(2).collect();
    assert_eq!(arguments, ["--all-users", "--idle-timeout", "30s"]);
    let unit = SocketUnit::new(&sandbox);
    let mode = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(sandbox.runtime_dir().join("provisioner"), mode).unwrap();

    let command = manager(&sandbox, &arguments);
    let mut limited = Command::new("setpriv");
    limited.args(["--no-new-privs", "--inh-caps=-all", "--bounding-set"]);
    limited.arg(format!("-all,{}", capabilities.replace(' ', ",")));
    limited.arg(command.get_program()).args(command.get_args());
    limited.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env_remove("TRACE_RECORD");
    let mut manager = unit.start(limited);
    let of_alice = |name: &str| {
        let path = sandbox.file(name);
        copy_program(name, &path);
        path
    };
    let (trace, emit) = (of_alice("trace"), of_alice("emit"));
    let output = Command::new(trace)
        .args(["record", "-o", "alice.fxt", "--"])
        .arg(emit)
        .args(["1", "1"])
        .current_dir(sandbox.work_dir())
        .env("TRACE_RUNTIME_DIR", sandbox.runtime_dir())
        .uid(ALICE)
        .gid(ALICE)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("alice.fxt")).events.len(), 14);
    let status = std::fs::read_to_string(format!("/proc/{}/status", manager.id())).unwrap();
    let bounding = status.lines().find(|line| line.starts_with("CapBnd:")).unwrap();
    // CAP_SYS_PTRACE is number 19.
    assert_eq!(bounding, format!("CapBnd:\t{:016x}", 1u64 << 19));
    trace_tests::sandbox::kill(manager.id(), rustix::process::Signal::TERM);
    assert!(manager.wait().unwrap().success());
}
