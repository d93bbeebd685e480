//! Services and shells of different environments find each other: each world has its own `/dev/shm`, `/tmp`
//! and
//! `/run`, and processes that end with it.
//= docs/protocol.md#where-processes-meet

use std::process::{Command, Stdio};
use trace_tests::build::copy_program;
use trace_tests::sandbox::Process;
use trace_tests::{Archive, Requirement, Sandbox, json, wait_for};

/// A user without a name.
pub(super) const ALICE: u32 = 4_011;
/// Where a world has its programs and leaves its files.
const WORK: &str = "/run/work";

/// The command of a user's service that waits for the end of the world.
pub(super) fn waiting(program: &str) -> String {
    format!(
        "(sleep 1000 | ./{program} 1 5 --wait > service.out) & until [ -s service.out ]; do sleep 0.01; done"
    )
}

/// A machine of its own, as far as processes can meet in it.
pub(super) struct World {
    pub sandbox: Sandbox,
    shell: Process,
}

/// The environment of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Session {
    /// Of a login session.
    Login,
    /// Of a system's service, cron or a container.
    None,
}

impl World {
    pub fn new() -> Self {
        let sandbox = Sandbox::new();
        for name in ["trace", "emit", "stubborn"] {
            copy_program(name, &sandbox.file(name));
        }
        let work = sandbox.work_dir();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        std::fs::set_permissions(&work, open).unwrap();
        let set_up = format!(
            "mount -t tmpfs none /run && mkdir -p {WORK} /run/user && mount --bind '{}' {WORK} && cd {WORK} && \
             mount -t tmpfs -o mode=1777 none /dev/shm && mount -t tmpfs -o mode=1777 none /tmp && echo up; exec bash",
            work.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["bash", "-c", &set_up]).stdin(Stdio::piped());
        for name in ["TRACE_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TRACE_RECORD"] {
            command.env_remove(name);
        }
        let mut shell = Sandbox::spawn_command(command);
        assert_eq!(shell.line(), "up");
        Self { sandbox, shell }
    }

    /// As [`World::new`], in which the user is logged in.
    pub fn with_login() -> Self {
        let mut world = Self::new();
        world.log_in();
        world
    }

    fn log_in(&mut self) {
        self.run(&format!("mkdir -m 700 /run/user/{ALICE} && chown {ALICE}:{ALICE} /run/user/{ALICE}"));
    }

    /// Runs a command in root's shell, which has to succeed.
    pub fn run(&mut self, command: &str) {
        self.shell.say(&format!("{{ {command} ; }} < /dev/null > said 2>&1; echo $?"));
        let code = self.shell.line();
        let said = std::fs::read_to_string(self.sandbox.file("said")).unwrap();
        assert_eq!(code, "0", "{command}: {said}");
    }

    /// Runs a command of the user's.
    pub fn alice(&mut self, session: Session, command: &str) {
        std::fs::write(self.sandbox.file("command"), command).unwrap();
        let environment = match session {
            Session::Login => format!("XDG_RUNTIME_DIR=/run/user/{ALICE} "),
            Session::None => String::new(),
        };
        self.run(&format!(
            "{environment}setpriv --reuid {ALICE} --regid {ALICE} --clear-groups bash -e command"
        ));
    }

    /// What the last command has said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.sandbox.file("said")).unwrap()
    }

    /// Records for a second, and returns the names of the programs that took part.
    pub fn recorded(&mut self, session: Session) -> Vec<String> {
        self.alice(session, "rm -f t.fxt; ./trace record --duration 1s -o t.fxt");
        let archive = Archive::read(&self.sandbox.file("t.fxt"));
        archive.providers.into_values().filter(|name| name != "trace_manager").collect()
    }
}

pub(super) fn may_mount(test: &str) -> bool {
    [Requirement::Root, Requirement::Mounts, Requirement::PidNamespaces].iter().all(|one| one.is_met(test))
}

/// What is there before the recording begins.
#[derive(Clone, Copy, Debug)]
enum First {
    Service,
    Directory,
    Manager,
}

//= docs/protocol.md#where-processes-meet
#[test]
fn a_service_and_a_shell_meet_in_any_environment() {
    if !may_mount("a_service_and_a_shell_meet_in_any_environment") {
        return;
    }
    let sessions = [Session::Login, Session::None];
    let meet = |first: First| {
        for service in sessions {
            for shell in sessions {
                let mut world = World::with_login();
                match first {
                    First::Service => {}
                    First::Directory => world.alice(shell, "./trace list-programs || true"),
                    First::Manager => world.alice(
                        shell,
                        "./trace manager & until [ -S /dev/shm/trace-*/registry ]; do sleep 0.01; done",
                    ),
                }
                world.alice(service, &waiting("emit"));
                assert_eq!(world.recorded(shell), ["emit"], "{first:?} {service:?} {shell:?}");
            }
        }
    };
    std::thread::scope(|scope| {
        for first in [First::Service, First::Directory, First::Manager] {
            scope.spawn(move || meet(first));
        }
    });
}

/// The directory of a session appears, and one is deleted, while the service and a manager run.
//= docs/protocol.md#where-processes-meet
#[test]
fn login_and_logout_part_nobody() {
    if !may_mount("login_and_logout_part_nobody") {
        return;
    }
    let mut world = World::new();
    world.alice(Session::None, &waiting("emit"));
    world.log_in();
    assert_eq!(world.recorded(Session::Login), ["emit"]);
    // The manager of that recording waits for the next one; the last session's end deletes files of the user.
    world.run("rm -rf /dev/shm/trace-* /run/user/*");
    let registry = format!("/dev/shm/trace-{ALICE}/registry");
    world.run(&format!("until [ -S {registry} ]; do sleep 0.01; done"));
    assert_eq!(world.recorded(Session::None), ["emit"]);
    // Another one has taken its place before it looked.
    world.run("rm -rf /dev/shm/trace-*");
    world.alice(Session::None, &format!("./trace manager & until [ -S {registry} ]; do sleep 0.01; done"));
    world.alice(Session::None, "until ./trace list-programs | grep -q emit; do sleep 0.01; done");
    assert_eq!(world.recorded(Session::None), ["emit"]);
    // With nothing else there, too.
    let mut world = World::new();
    world.alice(Session::None, &waiting("emit"));
    world.run("rm -rf /dev/shm/trace-*");
    assert_eq!(world.recorded(Session::None), ["emit"]);
}

/// Another user has the names, until he gives them back.
//= docs/protocol.md#where-processes-meet
#[test]
fn squatters_part_nobody() {
    if !may_mount("squatters_part_nobody") {
        return;
    }
    let squat = |base: &str| format!("mkdir {base}/trace-{ALICE} && chown 1:1 {base}/trace-{ALICE}");
    let mut world = World::with_login();
    world.run(&squat("/dev/shm"));
    world.alice(Session::None, &waiting("emit"));
    assert_eq!(world.recorded(Session::Login), ["emit"]);
    let mut world = World::with_login();
    world.run(&format!("{}; {}", squat("/dev/shm"), squat("/tmp")));
    world.alice(Session::Login, &waiting("emit"));
    assert_eq!(world.recorded(Session::None), ["emit"]);
    // The service waits elsewhere when the name is free again.
    let mut world = World::new();
    world.run(&squat("/dev/shm"));
    world.alice(Session::None, &waiting("emit"));
    world.run("rmdir /dev/shm/trace-*");
    assert_eq!(world.recorded(Session::None), ["emit"]);
}

/// Where programs, clients and managers of earlier releases look, there is a way to the manager, and no other
/// manager can begin.
//= docs/protocol.md#where-processes-meet
#[test]
fn earlier_releases_find_the_manager() {
    if !may_mount("earlier_releases_find_the_manager") {
        return;
    }
    let mut world = World::with_login();
    let place = format!("/run/user/{ALICE}/trace");
    world.alice(
        Session::None,
        &format!(
            "./trace manager & until [ -L {place}/provisioner -a -L {place}/registry ]; do sleep 0.01; done"
        ),
    );
    let elsewhere = format!("export TRACE_RUNTIME_DIR={place}; ");
    world.alice(Session::None, &format!("{elsewhere}{}", waiting("emit")));
    world.alice(Session::None, &format!("{elsewhere}./trace list-programs --json"));
    let listed: serde_json::Value = trace_tests::Answer::parse(&world.said()).into_result();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    world.alice(Session::None, &format!("{elsewhere}./trace record --duration 1s -o t.fxt"));
    let archive = Archive::read(&world.sandbox.file("t.fxt"));
    assert!(archive.providers.into_values().any(|name| name == "emit"));
    world.alice(Session::None, &format!("{elsewhere}! ./trace manager"));
    assert!(world.said().contains("a manager is already running in"), "{}", world.said());
    // One rate of the clock.
    world.run(&format!("cmp /dev/shm/trace-{ALICE}/ticks {place}/ticks"));
    world.run("kill -TERM $(pgrep -x trace)");
    wait_for("the end of the links", || {
        world.run(&format!("ls {place}; ls /dev/shm/trace-{ALICE}"));
        (!world.said().contains("registry") && !world.said().contains("provisioner")).then_some(())
    });
}

/// One that was there first goes on, and is found.
//= docs/protocol.md#where-processes-meet
#[test]
fn a_manager_of_an_earlier_release_is_found() {
    if !may_mount("a_manager_of_an_earlier_release_is_found") {
        return;
    }
    let mut world = World::with_login();
    let place = format!("/run/user/{ALICE}/trace");
    world.alice(
        Session::None,
        &format!(
            "TRACE_RUNTIME_DIR={place} ./trace manager & until [ -S {place}/registry ]; do sleep 0.01; done"
        ),
    );
    world.alice(Session::None, &waiting("emit"));
    assert_eq!(world.recorded(Session::None), ["emit"]);
    world.run(&format!("[ ! -e /dev/shm/trace-{ALICE}/registry ]"));
}

/// Sockets alone may be deleted, as by a clean-up of `/tmp`.
#[test]
fn a_manager_without_sockets_makes_them_again() {
    let sandbox = Sandbox::new();
    let manager = sandbox.spawn("trace", &["manager"]);
    let registry = sandbox.runtime_dir().join("registry");
    let is_there = || registry.exists().then_some(());
    wait_for("the manager", is_there);
    std::fs::remove_file(&registry).unwrap();
    wait_for("the socket again", is_there);
    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    emit.line();
    sandbox.wait_for_providers(1);
    // All of it, with a recording in the background.
    assert!(sandbox.trace(["start", "-o", "t.fxt"]).status.success());
    std::fs::remove_dir_all(sandbox.runtime_dir()).unwrap();
    wait_for("the directory again", is_there);
    emit.close_stdin();
    emit.succeed();
    // A program that starts afterwards is in it, too.
    sandbox.spawn_recorded("emit", &["1", "1"]).succeed();
    let output = sandbox.trace(["stop"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        Archive::read(&sandbox.file("t.fxt")).providers.into_values().filter(|name| name == "emit").count(),
        2
    );
    let listed: serde_json::Value = json(&sandbox.trace(["list-programs", "--json"]));
    assert_eq!(listed.as_array().unwrap().len(), 0);
    drop(manager);
}

/// What another process has put in the places of the links is left alone: systemd listens there itself.
#[test]
fn links_that_were_replaced_are_given_up() {
    if !may_mount("links_that_were_replaced_are_given_up") {
        return;
    }
    let mut world = World::with_login();
    let place = format!("/run/user/{ALICE}/trace");
    world.alice(
        Session::None,
        &format!(
            "./trace manager & until [ -L {place}/provisioner -a -L {place}/registry ]; do sleep 0.01; done"
        ),
    );
    // Another manager has the place when the first one has looked, and let go of the lock.
    world.alice(
        Session::None,
        &format!(
            "rm {place}/provisioner; export TRACE_RUNTIME_DIR={place}; \
             (until ./trace manager; do sleep 0.1; done) > other.out 2>&1 & \
             until [ -S {place}/registry -a ! -L {place}/registry ]; do sleep 0.01; done"
        ),
    );
    world.run(&format!("kill -TERM $(cat /dev/shm/trace-{ALICE}/lock)"));
    world.run(&format!("until [ ! -e /dev/shm/trace-{ALICE}/registry ]; do sleep 0.01; done"));
    world.run(&format!("[ -S {place}/registry -a -S {place}/provisioner ]"));
}
