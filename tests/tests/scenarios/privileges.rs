//! Programs with privileges that their caller does not have, and directories in another user's name.
//= docs/protocol.md#users

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace_tests::build::copy_program;
use trace_tests::sandbox::Process;
use trace_tests::{Archive, Requirement, Sandbox, native, wait_for};

const MALLORY: u32 = 4_003;
const VICTIM: u32 = 4_004;

/// Where every user may make directories, as on a real machine, but no other processes are.
struct Machine {
    sandbox: Sandbox,
    /// Has the place as long as it lives.
    holder: Process,
}

impl Machine {
    /// None where this test may not make one, which is reported.
    fn new(test: &str) -> Option<Self> {
        let sandbox = Sandbox::for_all_users(test)?;
        if !Requirement::Mounts.is_met(test) {
            return None;
        }
        let script = "mount -t tmpfs -o mode=1777 none /dev/shm && mount -t tmpfs -o mode=755 none /run && \
                      echo ready && read line";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        let mut holder = Sandbox::spawn_command(command);
        assert_eq!(holder.line(), "ready");
        Some(Self { sandbox, holder })
    }

    /// A command of a user's, in whose environment there is nothing but what is said.
    fn command(&self, uid: u32, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        let (pid, uid) = (self.holder.pid().to_string(), uid.to_string());
        command.args(["--target", &pid, "--mount", "setpriv", "--clear-groups"]);
        command.args(["--reuid", &uid, "--regid", &uid, "--"]).arg(program).args(arguments);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// A program that all users can run.
    fn public(&self, name: &str) -> PathBuf {
        let path = self.sandbox.file(name);
        if !path.exists() {
            copy_program(name, &path);
        }
        path
    }

    fn shell(&self, uid: u32, script: &str) {
        let output = self.command(uid, Path::new("sh"), &["-c", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    }

    /// A manager of Mallory's in a directory in another user's name, which any user may enter.
    fn manager_in(&self, directory: &str) -> Process {
        self.shell(MALLORY, &format!("mkdir -m 700 {directory}"));
        let mut command = self.command(MALLORY, &self.public("trace"), &["manager"]);
        command.env("TRACE_RUNTIME_DIR", directory);
        let manager = Sandbox::spawn_command(command);
        // The manager is ready when the sockets are there.
        let open = format!("chmod 666 {directory}/registry {directory}/provisioner && chmod 755 {directory}");
        wait_for("Mallory's manager", || {
            let opened = self.command(MALLORY, Path::new("sh"), &["-c", &open]).output().unwrap();
            opened.status.success().then_some(())
        });
        manager
    }

    /// What Mallory's manager knows of.
    fn providers(&self, directory: &str) -> String {
        let arguments = ["list-programs", "--machine", "json"];
        let mut command = self.command(MALLORY, &self.public("trace"), &arguments);
        command.env("TRACE_RUNTIME_DIR", directory);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Makes a program run with root's privileges for every caller.
fn set_uid(program: &Path) {
    std::os::unix::fs::chown(program, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o4755)).unwrap();
}

#[test]
fn a_set_uid_program_does_not_register_where_its_caller_says() {
    const DIRECTORY: &str = "/dev/shm/trace-0";
    let test = "privileges::a_set_uid_program_does_not_register_where_its_caller_says";
    if !Requirement::SetUid.is_met(test) {
        return;
    }
    let Some(machine) = Machine::new(test) else { return };
    let _manager = machine.manager_in(DIRECTORY);
    // As by sudo; and every other variable that says where, or when.
    let tempt = |command: &mut Command| {
        command.env("SUDO_UID", MALLORY.to_string()).env("TRACE_RUNTIME_DIR", DIRECTORY);
        command.env("TRACE_RECORD", "1").env("XDG_RUNTIME_DIR", "/dev/shm").env("HOME", "/dev/shm");
    };
    let mut register = machine.command(MALLORY, &machine.public("stubborn"), &["register"]);
    tempt(&mut register);
    let as_itself = register.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&as_itself.stdout), "Registered { already_started: false }\n");
    set_uid(&machine.public("stubborn"));
    let output = register.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "NoManager\n", "{output:?}");

    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let program = machine.sandbox.file("privileged");
    native::static_program("gcc", &["privileged.c"], &["-O2"], &program);
    let mut register = machine.command(MALLORY, &program, &[]);
    tempt(&mut register);
    let mut as_itself = Sandbox::spawn_command(register);
    assert_eq!(as_itself.line(), "ready");
    assert!(machine.providers(DIRECTORY).contains("privileged"));
    as_itself.succeed();
    wait_for("it to be forgotten", || (machine.providers(DIRECTORY) == "[]").then_some(()));
    set_uid(&program);
    let mut register = machine.command(MALLORY, &program, &[]);
    tempt(&mut register);
    let mut privileged = Sandbox::spawn_command(register);
    assert_eq!(privileged.line(), "ready");
    assert_eq!(machine.providers(DIRECTORY), "[]");
    privileged.succeed();
}

#[test]
fn taking_another_users_directory_does_not_prevent_recording() {
    let test = "privileges::taking_another_users_directory_does_not_prevent_recording";
    let Some(machine) = Machine::new(test) else { return };
    let taken = format!("/dev/shm/trace-{VICTIM}");
    let _manager = machine.manager_in(&taken);
    let (trace, emit) = (machine.public("trace"), machine.public("emit"));
    let emit = emit.to_str().unwrap();
    let record = |file: &str| {
        let output = machine.sandbox.file(file);
        let arguments = ["record", "--output-file", output.to_str().unwrap(), "--", emit, "1", "5"];
        let output = machine.command(VICTIM, &trace, &arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Archive::read(&machine.sandbox.file(file)).events.len()
    };
    assert_eq!(record("first.fxt"), 5 * 14);
    let own = PathBuf::from(format!("/tmp/trace-{VICTIM}"));
    assert!(own.is_dir(), "the manager is in the other place");
    // One that waits for a manager finds it there, too; and a second recording the same manager.
    let mut program = machine.command(VICTIM, Path::new(emit), &["1", "5", "--wait", "--on"]);
    program.env("TRACE_RECORD", "1");
    let output = machine.sandbox.file("second.fxt");
    let arguments = ["record", "--output-file", output.to_str().unwrap()];
    let recording = Sandbox::spawn_command(machine.command(VICTIM, &trace, &arguments));
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    let mut program = Sandbox::spawn_command(program);
    program.line();
    assert_eq!(program.line(), "on");
    program.succeed();
    recording.signal(rustix::process::Signal::INT);
    recording.succeed();
    assert_eq!(Archive::read(&machine.sandbox.file("second.fxt")).events.len(), 5 * 14);
    assert_eq!(machine.providers(&taken), "[]", "Mallory has learnt of nobody");
    let pid = std::fs::read_to_string(own.join("lock")).unwrap_or_default();
    if let Ok(pid) = pid.trim().parse() {
        trace_tests::sandbox::kill(pid, rustix::process::Signal::TERM);
        trace_tests::scene::wait_for_death(pid);
    }
    std::fs::remove_dir_all(own).unwrap();
}
