//! What is needed, what is left behind, and what happens without it.

use rustix::process::Signal;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use trace_tests::archive::Scheduled;
use trace_tests::build::copy_program;
use trace_tests::kernel::{alone, instance_of, instances, settings};
use trace_tests::scene::wait_for_death;
use trace_tests::skip::skip;
use trace_tests::{Archive, Requirement, Sandbox, wait_for};

/// The process of the only provider that records.
fn provider() -> u32 {
    wait_for("an instance", || {
        let name = instances().pop()?.file_name()?.to_str()?.to_owned();
        name.strip_prefix("ktrace_provider_")?.parse().ok()
    })
}

/// All users can read the settings afterwards, and they are as before.
//= docs/kernel.md#the-instance
#[test]
fn tracefs_is_left_as_it_was_found() {
    if !Requirement::Tracefs.is_met("tracefs_is_left_as_it_was_found") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    // What other processes have left is removed by the next one that starts.
    assert!(sandbox.trace(["record", "--categories", "kernel:meta", "--", "true"]).status.success());
    let before = settings();
    let command = ["--", "sh", "-c", "read end"];
    for signal in [None, Some(Signal::TERM)] {
        let categories = "kernel,atrace,kernel:tp:block:*,kernel:uprobe:/bin/true:0x10";
        let mut recording =
            sandbox.spawn("trace", &[&["record", "--categories", categories], &command[..]].concat());
        let provider = provider();
        if let Some(signal) = signal {
            let enabled = instance_of(provider).join("events/sched/sched_switch/enable");
            wait_for("the recording", || {
                (std::fs::read_to_string(&enabled).ok()?.trim() == "1").then_some(())
            });
            trace_tests::sandbox::kill(provider, signal);
            wait_for_death(provider);
        }
        recording.say("end");
        let output = recording.finish();
        assert!(output.status.success(), "{output:?}");
        wait_for("the instance to go", || (!instance_of(provider).exists()).then_some(()));
        assert_eq!(settings(), before, "{signal:?}");
        assert!(!Archive::read(&sandbox.file("trace.fxt")).scheduling.is_empty(), "{signal:?}");
    }
}

/// A provider that was killed leaves its instance; the next one removes it. The recording that it was in goes
/// on.
//= docs/kernel.md#the-instance
#[test]
fn what_a_killed_provider_left_the_next_one_removes() {
    if !Requirement::Tracefs.is_met("what_a_killed_provider_left_the_next_one_removes") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    // What other processes have left is removed by the next one that starts.
    assert!(sandbox.trace(["record", "--categories", "kernel:meta", "--", "true"]).status.success());
    let before = settings();
    let categories = "kernel:sched,kernel:uprobe:/bin/true:0x10";
    let command = ["--", "sh", "-c", "echo begun; read end"];
    let mut recording =
        sandbox.spawn("trace", &[&["record", "--categories", categories], &command[..]].concat());
    assert_eq!(recording.line(), "begun");
    let killed = provider();
    trace_tests::sandbox::kill(killed, Signal::KILL);
    wait_for_death(killed);
    recording.say("end");
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    assert!(instance_of(killed).exists());
    // What had come until then is kept, and the rest is a loss.
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert!(archive.threads.values().any(|name| name == "kthreadd"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the kernel is not recorded from then on"), "{said}");
    let stats = sandbox.trace(["stats", "--json", "trace.fxt"]);
    let losses = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert!(losses.contains("the rest is missing"), "{losses}");

    let output = sandbox.trace(["record", "--categories", "kernel:sched", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    assert!(!instance_of(killed).exists());
    wait_for("all instances to go", || instances().is_empty().then_some(()));
    assert_eq!(settings(), before);
}

/// A user with a runtime directory of his own, and programs that he may start.
struct User {
    sandbox: Sandbox,
    home: PathBuf,
}

const USER: u32 = 4_003;

impl User {
    /// None if this process cannot act for other users, which is reported.
    fn new(test: &str) -> Option<Self> {
        let sandbox = Sandbox::for_all_users(test)?;
        for name in ["trace", "pattern"] {
            copy_program(name, &sandbox.file(name));
        }
        let home = sandbox.file("home");
        std::fs::create_dir(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(USER), Some(USER)).unwrap();
        Some(Self { sandbox, home })
    }

    fn runtime_dir(&self) -> PathBuf {
        self.home.join("run")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.sandbox.file("trace"));
        command.current_dir(&self.home).env("TRACE_RUNTIME_DIR", self.runtime_dir());
        command
    }

    /// The doctor's finding for this user where the kernel reports nothing to users.
    fn diagnosis(&self, name: &str) -> serde_json::Value {
        let doctor = self.command();
        let script = "echo 3 > paranoid && mount --bind paranoid /proc/sys/kernel/perf_event_paranoid && \
                      exec setpriv --reuid \"$1\" --regid \"$1\" --clear-groups \"$0\" doctor --no-self-trace --json";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        command.arg(doctor.get_program()).arg(USER.to_string()).current_dir(self.sandbox.work_dir());
        let output = command.env("TRACE_RUNTIME_DIR", self.runtime_dir()).output().unwrap();
        let found: serde_json::Value = trace_tests::json(&output);
        found.as_array().unwrap().iter().find(|found| found["capability"] == name).unwrap().clone()
    }

    /// Records a program that answers itself 200 times; what was said of the kernel, and the archive.
    fn record(&self) -> (Vec<String>, Archive) {
        let mut command = self.command();
        command.uid(USER).gid(USER).args(["record", "--categories", "kernel:sched,pattern", "--"]);
        let output = command.arg(self.sandbox.file("pattern")).args(["200", "5", "20"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let of_kernel = said.lines().filter(|line| line.contains("kernel ")).map(str::to_owned).collect();
        (of_kernel, Archive::read(&self.home.join("trace.fxt")))
    }
}

/// How often a thread is said to go.
fn goes(archive: &Archive, thread: u64) -> usize {
    let is_it = |scheduled: &&Scheduled| matches!(scheduled, Scheduled::Switch { outgoing, .. } if *outgoing == thread);
    archive.scheduling.iter().filter(is_it).count()
}

/// A user without privileges gets one message, with the command that helps. Everything else is recorded, and
/// when the user's own threads run.
//= docs/kernel.md#access
//= docs/kernel.md#without-privileges
#[test]
fn without_rights_one_sentence_says_what_to_do() {
    let test = "without_rights_one_sentence_says_what_to_do";
    if !Requirement::Tracefs.is_met(test) {
        return;
    }
    let Some(user) = User::new(test) else { return };
    let _alone = alone();
    let (said, archive) = user.record();
    let command = format!(
        "sudo TRACE_RUNTIME_DIR={} {} ktrace",
        user.runtime_dir().display(),
        user.sandbox.file("trace").display()
    );
    let missing = "kernel events need the privilege to write to /sys/kernel/tracing/instances, which this user does not have";
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let events = archive.events.iter().filter(|event| event.event.category.as_bytes() == b"pattern").count();
    assert_eq!(events, 3 * 200 + 2 * 5 + 20 + 2);
    if paranoid.trim().parse::<i32>().is_ok_and(|paranoid| paranoid > 2) {
        assert_eq!(
            said,
            [format!("trace: ktrace_provider: kernel events are not recorded: {missing}: {command}")]
        );
        return skip(test, "perf", "this kernel tells users nothing");
    }
    let rest = "without it only context switches of this user's programs are recorded";
    assert_eq!(said, [format!("trace: ktrace_provider: {missing}: {command}; {rest}")]);
    let (ping, pong) = (archive.thread("ping"), archive.thread("pong"));
    // A round may be answered before a thread has gone to rest; resting has no other way.
    assert!(goes(&archive, ping) > 5 && goes(&archive, pong) > 0);
    let check = user.command().args(["check", "--clocks", "trace.fxt"]).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

/// The command that is said does help.
//= docs/kernel.md#access
//= docs/install.md#whether-a-machine-can-record
#[test]
fn roots_provider_serves_a_users_manager() {
    let test = "roots_provider_serves_a_users_manager";
    if !Requirement::Tracefs.is_met(test) || !Requirement::Mounts.is_met(test) {
        return;
    }
    let Some(user) = User::new(test) else { return };
    let _alone = alone();
    let mut manager = user.command();
    manager.uid(USER).gid(USER).arg("manager");
    let _manager = Sandbox::spawn_command(manager);
    wait_for("the manager's socket", || user.runtime_dir().join("registry").exists().then_some(()));
    let before = settings();
    let help = format!(
        "sudo TRACE_RUNTIME_DIR={} {} ktrace",
        user.runtime_dir().display(),
        user.sandbox.file("trace").display()
    );
    for name in ["kernel events", "perf events"] {
        let found = user.diagnosis(name);
        assert!(found["works"] == false && found["fix"] == help.as_str(), "{found}");
    }
    // As sudo would run it.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec env {}", help.strip_prefix("sudo ").unwrap()));
    command.env("SUDO_UID", USER.to_string());
    let mut provider = Sandbox::spawn_command(command);
    assert_eq!(provider.line(), "ready");
    for name in ["kernel events", "perf events"] {
        let found = user.diagnosis(name);
        assert!(found["works"] == true && found["fix"].is_null(), "{found}");
    }
    assert_eq!(settings(), before);
    let (said, archive) = user.record();
    assert_eq!(said, [""; 0]);
    assert!(goes(&archive, archive.thread("ping")) > 5);
    // What no user may know.
    assert!(archive.scheduling.iter().any(|scheduled| matches!(scheduled, Scheduled::Wakeup { .. })));
    assert_eq!(archive.threads[&2], "kthreadd");
}
