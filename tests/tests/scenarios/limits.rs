//! A manager that a limited command has started serves others, which are not limited.
//= docs/protocol.md#who-starts-the-manager

use std::fs;
use std::process::{Command, Output};
use trace_tests::build::program;
use trace_tests::requirement::MemoryGroup;
use trace_tests::scene::stderr;
use trace_tests::{Archive, Requirement, Sandbox, wait_for};

/// Starts a manager from a shell that has changed its own state. It is of the usual directory, not of the
/// recording that is made with it.
fn started_by(sandbox: &Sandbox, prepare: &str) -> u32 {
    let script = format!("{prepare}; exec {} list-programs", program("trace").display());
    let prepared = sandbox.command("trace");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(sandbox.work_dir());
    prepared.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(shell.env(name, value)),
        None => drop(shell.env_remove(name)),
    });
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    sandbox.manager_pid().expect("it is running")
}

fn recorded(sandbox: &Sandbox) -> Output {
    let output = sandbox.record(&["-o", "t.fxt"], "emit", &["1", "20"]);
    assert_eq!(Archive::read(&sandbox.file("t.fxt")).events.len(), 14 * 20);
    output
}

#[test]
fn what_a_caller_has_set_for_itself_is_taken_back() {
    let sandbox = Sandbox::new();
    let manager = started_by(
        &sandbox,
        "ulimit -S -f 1 -n 64 -t 600; chrt -i -p 0 $$; ionice -c 3 -p $$; exec 7> held; flock 7; echo 500 > /proc/self/oom_score_adj; taskset -p 1 $$ > said",
    );
    let read = |name: &str| fs::read_to_string(format!("/proc/{manager}/{name}")).unwrap();
    let limits = read("limits");
    for name in ["Max open files", "Max file size", "Max cpu time"] {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), words.next(), "{name}: {line}");
    }
    assert_eq!(read("oom_score_adj"), "0\n");
    // The policy is the 41st field. Root of a container may choose the lowest one, and not leave it.
    let mut leave = Command::new("sh");
    leave.args(["-c", "chrt -i -p 0 $$ && chrt -o -p 0 $$"]);
    let policy = if leave.output().unwrap().status.success() { "0" } else { "5" };
    assert_eq!(read("stat").rsplit_once(") ").unwrap().1.split(' ').nth(38), Some(policy));
    let disk = Command::new("ionice").args(["-p", &manager.to_string()]).output().unwrap();
    assert!(!String::from_utf8_lossy(&disk.stdout).starts_with("idle"), "{disk:?}");
    let status = read("status");
    let processors =
        |text: &str| text.lines().find(|line| line.starts_with("Cpus_allowed:")).map(str::to_owned);
    assert_eq!(processors(&status), processors(&fs::read_to_string("/proc/self/status").unwrap()));
    assert_eq!(fs::read_link(format!("/proc/{manager}/cwd")).unwrap().to_str(), Some("/"));
    let held = sandbox.file("held");
    let entries = fs::read_dir(format!("/proc/{manager}/fd")).unwrap();
    let paths: Vec<_> =
        entries.map(|entry| fs::read_link(entry.unwrap().path()).unwrap_or_default()).collect();
    assert!(!paths.contains(&held), "{paths:?}");
    let output = recorded(&sandbox);
    let is_idle = policy == "5";
    assert_eq!(stderr(&output).contains("a manager of its own"), is_idle, "{}", stderr(&output));
    assert_eq!(sandbox.manager_pid(), Some(manager));
}

/// A group limits what a manager in it may use.
#[test]
fn a_caller_outside_of_the_managers_group_has_a_manager_of_its_own() {
    if !Requirement::MemoryGroups.is_met("a_caller_outside_of_the_managers_group_has_a_manager_of_its_own") {
        return;
    }
    let group = MemoryGroup::new("manager").unwrap();
    let sandbox = Sandbox::new();
    let manager = started_by(&sandbox, &format!("echo $$ > {}", group.processes().display()));
    let said = stderr(&recorded(&sandbox));
    let limit =
        format!("the control group of the running trace manager (pid {manager}) may have 536870912 bytes");
    assert!(
        said.starts_with(&format!(
            "trace: {limit} of memory at most: this recording has a manager of its own"
        )),
        "{said}"
    );
    // From inside of it the manager is as good.
    let record = format!("echo $$ > {}; exec \"$0\" \"$@\"", group.processes().display());
    let mut command = sandbox.command("trace");
    let inside = command.args(["record", "-o", "i.fxt", "--"]).arg(program("emit")).args(["1", "20"]);
    let mut shell = Command::new("bash");
    shell.args(["-c", &record]).arg(inside.get_program()).args(inside.get_args());
    shell.current_dir(sandbox.work_dir());
    inside.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(shell.env(name, value)),
        None => drop(shell.env_remove(name)),
    });
    let output = shell.output().unwrap();
    assert!(output.status.success() && !stderr(&output).contains("a manager of its own"), "{output:?}");
    trace_tests::sandbox::kill(manager, rustix::process::Signal::TERM);
}

/// What only root raises cannot be taken back by others: they get a manager of their own.
#[test]
fn a_caller_with_better_limits_has_a_manager_of_its_own() {
    let test = "a_caller_with_better_limits_has_a_manager_of_its_own";
    if !Requirement::Root.is_met(test) {
        return;
    }
    let Some(sandbox) = Sandbox::for_all_users(test) else { return };
    fs::remove_dir(sandbox.runtime_dir()).unwrap();
    // A caller without the capability to raise limits, as most are.
    let drop_rights =
        "ulimit -f 4000 -n 200; renice -n 5 $$ > said; exec setpriv --bounding-set -sys_resource,-sys_nice";
    let script = format!("{drop_rights} {} list-programs", program("trace").display());
    let prepared = sandbox.command("trace");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(sandbox.work_dir());
    prepared.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(shell.env(name, value)),
        None => drop(shell.env_remove(name)),
    });
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let manager = wait_for("the manager", || sandbox.manager_pid());
    let output = recorded(&sandbox);
    let limit = format!("the running trace manager (pid {manager}) may have 200 descriptors at most");
    let said = stderr(&output);
    assert!(said.starts_with(&format!("trace: {limit}: this recording has a manager of its own")), "{said}");
    // Without a command there is only a warning, and doctor shows it.
    let said = stderr(&sandbox.trace(["record", "--duration", "10ms", "-o", "w.fxt"]));
    assert!(said.contains(&format!("trace: warning: {limit}, less than this command\n")), "{said}");
    let output = sandbox.trace(["doctor", "--no-self-trace"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&format!("running manager      {limit}, less than this shell")), "{said}");
}
