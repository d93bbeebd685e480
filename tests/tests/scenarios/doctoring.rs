//! What is wrong with a machine, and that the command which is named for it helps, and does nothing else.
//!
//! Each problem is made in a shell, which then runs that command and asks again.

use super::places::state;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use trace_tests::build::program;
use trace_tests::{Answer, Requirement, Sandbox};

const MALLORY: u32 = 4_007;

/// What the doctor finds, in a shell that has run a script before.
struct Shell<'a> {
    sandbox: &'a Sandbox,
    /// What the shell is started by, such as `unshare --mount`.
    prefix: &'a [&'a str],
}

impl Shell<'_> {
    /// The doctor's findings, and the runtime directory that it has used.
    fn findings(&self, script: &str) -> (Value, PathBuf) {
        let doctor = format!("{} doctor --no-self-trace --json", program("trace").display());
        let script = format!("{script}\necho \"$TRACE_RUNTIME_DIR\"\nexec {doctor}\n");
        let arguments = [self.prefix, &["sh", "-c", &script]].concat();
        let mut command = Command::new(arguments[0]);
        command.args(&arguments[1..]).current_dir(self.sandbox.work_dir());
        command.env("TRACE_RUNTIME_DIR", self.sandbox.runtime_dir());
        // This is root already.
        let sudo = self.sandbox.file("sudo");
        if !sudo.exists() {
            fs::write(&sudo, "#!/bin/sh\nexec env \"$@\"\n").unwrap();
            fs::set_permissions(&sudo, Permissions::from_mode(0o755)).unwrap();
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.sandbox.work_dir().display()));
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let begin = said.find("{\n  \"version\"");
        let begin = begin.unwrap_or_else(|| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)));
        let directory = said[..begin].lines().last().unwrap();
        (Answer::parse(&said[begin..]).into_result(), directory.into())
    }

    /// The one command that is named for a problem, which it solves.
    fn solved(&self, name: &str, problem: &str) -> String {
        // What does not work on this machine anyway, as tracefs that is not mounted.
        let (found, _) = self.findings("");
        let before: Vec<_> = broken(&found).into_iter().map(|found| found["capability"].clone()).collect();
        let is_new = |found: &&Value| !before.contains(&found["capability"]);
        let (found, _) = self.findings(problem);
        let broken_now: Vec<_> = broken(&found).into_iter().filter(is_new).collect();
        let [broken_now] = broken_now[..] else { panic!("{name}: {broken_now:?}") };
        assert_eq!(broken_now["capability"], name);
        let fix = broken_now["fix"].as_str().unwrap_or_else(|| panic!("{broken_now}")).to_owned();
        for word in ["rm ", "chmod", "chown", "mode=", "paranoid"] {
            assert!(!fix.contains(word), "{fix}");
        }
        let (found, directory) = self.findings(&format!("{problem}\n{fix} > said\n"));
        let still: Vec<_> = broken(&found).into_iter().filter(is_new).collect();
        assert!(still.is_empty(), "{fix}: {still:?}");
        if directory != self.sandbox.runtime_dir() {
            fs::remove_dir_all(directory).unwrap();
        }
        fix
    }
}

/// The findings of what does not work.
fn broken(found: &Value) -> Vec<&Value> {
    found.as_array().unwrap().iter().filter(|found| found["works"] == false).collect()
}

/// What `trace record` says where it does not begin, with this exit code.
fn refusal(sandbox: &Sandbox, directory: &Path, code: i32) -> String {
    let mut command = sandbox.command("trace");
    let output = command.args(["record", "--", "true"]).env("TRACE_RUNTIME_DIR", directory).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

//= docs/install.md#whether-a-machine-can-record
#[test]
fn a_runtime_directory_that_cannot_be_used_is_left_alone() {
    let is_root = Requirement::Root.is_met("a_runtime_directory_that_cannot_be_used_is_left_alone");
    let set_mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let make = |path: &Path, mode| {
        fs::create_dir(path).unwrap();
        set_mode(path, mode);
        fs::write(path.join("precious"), "as it was").unwrap();
    };
    // One that others may only read needs another mode at most.
    let sandbox = Sandbox::new();
    let readable = sandbox.file("readable");
    make(&readable, 0o755);
    let said = refusal(&sandbox, &readable, 125);
    let remedy = format!("; chmod 700 {}, or use another: export ", readable.display());
    assert!(said.contains("has mode 0755") && said.contains(&remedy), "{said}");
    type Problem<'a> = (&'a str, &'a dyn Fn(&Path) -> PathBuf);
    let problems: [Problem<'_>; 6] = [
        ("has mode 0777", &|base| {
            make(&base.join("open"), 0o777);
            base.join("open")
        }),
        ("is a symbolic link", &|base| {
            make(&base.join("real"), 0o700);
            symlink(base.join("real"), base.join("link")).unwrap();
            base.join("link")
        }),
        ("is not a directory", &|base| {
            fs::write(base.join("file"), "as it was").unwrap();
            base.join("file")
        }),
        ("where other users may replace it", &|base| {
            make(&base.join("shared"), 0o777);
            base.join("shared/run")
        }),
        ("cannot create", &|base| base.join("missing/run")),
        ("belongs to user 4007", &|base| {
            make(&base.join("others"), 0o700);
            chown(base.join("others"), Some(MALLORY), Some(MALLORY)).unwrap();
            base.join("others")
        }),
    ];
    for (what, problem) in &problems[..if is_root { 6 } else { 5 }] {
        let sandbox = Sandbox::new();
        let base = sandbox.file("base");
        fs::create_dir(&base).unwrap();
        let directory = problem(&base);
        let before = state(&base);
        let shell = Shell { sandbox: &sandbox, prefix: &[] };
        let set = format!("export TRACE_RUNTIME_DIR='{}'", directory.display());
        let fix = shell.solved("runtime directory", &set);
        assert!(fix.starts_with("export TRACE_RUNTIME_DIR=\"$(mktemp -d "), "{what}: {fix}");
        let said = refusal(&sandbox, &directory, if *what == "is not a directory" { 2 } else { 125 });
        assert!(said.contains(what) && said.ends_with(&format!("; use another: {fix}\n")), "{what}: {said}");
        assert_eq!(state(&base), before, "{what}");
    }
}

/// What a user has configured for recordings is not for the doctor's own one.
#[test]
fn the_users_configuration_is_not_that_of_the_recording_of_itself() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.file("config/trace")).unwrap();
    let options = "program = [\"nosuch\"]\ncategories = [\"nosuch\"]\n";
    fs::write(sandbox.file("config/trace/config.toml"), options).unwrap();
    let mut command = sandbox.command("trace");
    command.args(["doctor", "--json"]).env("XDG_CONFIG_HOME", sandbox.file("config"));
    let output = command.output().unwrap();
    let found: Value = trace_tests::json(&output);
    let of_itself = found.as_array().unwrap().iter().find(|found| found["capability"] == "recording");
    assert_eq!(of_itself.unwrap()["works"], true, "{found}");
}

/// With mounts that no other process sees.
const PRIVATE: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];

//= docs/install.md#whether-a-machine-can-record
#[test]
fn a_full_or_slow_directory_is_replaced() {
    let sandbox = Sandbox::new();
    let on_disk = sandbox.file("run");
    fs::create_dir(&on_disk).unwrap();
    fs::set_permissions(&on_disk, Permissions::from_mode(0o700)).unwrap();
    let is_in_memory = rustix::fs::statfs(&on_disk).unwrap().f_type == 0x0102_1994;
    let shell = Shell { sandbox: &sandbox, prefix: &[] };
    if !is_in_memory {
        let fix =
            shell.solved("memory for buffers", &format!("export TRACE_RUNTIME_DIR='{}'", on_disk.display()));
        assert!(fix.starts_with("export TRACE_RUNTIME_DIR=\"$(mktemp -d /dev/shm/"), "{fix}");
    }
    if !Requirement::Mounts.is_met("a_full_or_slow_directory_is_replaced") {
        return;
    }
    let shell = Shell { sandbox: &sandbox, prefix: &PRIVATE };
    let mount = "mount -t tmpfs -o size=1m,mode=700 none \"$TRACE_RUNTIME_DIR\"";
    let fix = shell.solved("memory for buffers", mount);
    let said = "said=$(TRACE record -- EMIT 1 1 2>&1)\nprintf '%s' \"$said\" > recorded\n";
    let said = said.replace("TRACE", program("trace").to_str().unwrap());
    shell.findings(&format!("{mount}\n{}", said.replace("EMIT", program("emit").to_str().unwrap())));
    let said = fs::read_to_string(sandbox.file("recorded")).unwrap();
    assert!(said.contains("no room in") && said.contains(&format!("; use another: {fix}\n")), "{said}");
}

/// The kernel's own settings are stood in for, so that nothing else on this machine has to live with them.
//= docs/install.md#whether-a-machine-can-record
#[test]
fn limits_and_settings_are_raised() {
    if !Requirement::Mounts.is_met("limits_and_settings_are_raised") {
        return;
    }
    let sandbox = Sandbox::new();
    let shell = Shell { sandbox: &sandbox, prefix: &PRIVATE };
    let stand_in = |name: &str, value: &str, place: &str| {
        (format!("echo {value} > {name}\nmount --bind {name} {place}"), sandbox.file(name))
    };

    if Requirement::Sysctl.is_met("limits_and_settings_are_raised") {
        let place = "/proc/sys/fs/inotify/max_user_instances";
        let before = fs::read_to_string(place).unwrap();
        let (problem, file) = stand_in("instances", "32", place);
        let fix = shell.solved("inotify", &problem);
        assert_eq!(fix, "sysctl fs.inotify.max_user_instances=1024");
        assert_eq!(fs::read_to_string(file).unwrap(), "1024\n");
        assert_eq!(fs::read_to_string(place).unwrap(), before);
    }

    let sources = "/sys/devices/system/clocksource/clocksource0";
    let current = format!("{sources}/current_clocksource");
    let (problem, file) = stand_in("current", "hpet", &current);
    let (available, _) = stand_in("available", "'tsc hpet'", &format!("{sources}/available_clocksource"));
    let is_tsc = fs::read_to_string(&current).unwrap().trim() == "tsc";
    if is_tsc {
        let fix = shell.solved("clock", &format!("{problem}\n{available}"));
        assert_eq!(fix, format!("sh -c 'echo tsc > {current}'"));
        assert_eq!(fs::read_to_string(file).unwrap(), "tsc\n");
        // Where the kernel has found the counter to be no good, there is nothing to be done.
        let (none, _) = stand_in("available", "hpet", &format!("{sources}/available_clocksource"));
        let (found, _) = shell.findings(&format!("{problem}\n{none}"));
        let clock = found.as_array().unwrap().iter().find(|found| found["capability"] == "clock").unwrap();
        assert!(clock["works"] == false && clock["fix"].is_null(), "{clock}");
    }

    let few = "prlimit --pid $$ --nofile=512:512";
    if !Requirement::Limits.is_met("limits_and_settings_are_raised") {
        let (found, _) = shell.findings(few);
        let broken = found.as_array().unwrap().iter().find(|found| found["works"] == false).unwrap();
        assert!(broken["capability"] == "descriptors" && broken["fix"].is_null(), "{broken}");
        return;
    }
    let fix = shell.solved("descriptors", few);
    assert_eq!(fix, "prlimit --pid $$ --nofile=:65536");
    let said = "ulimit -Sn > soft; ulimit -Hn > hard";
    shell.findings(&format!("{few}\n{fix}\n{said}"));
    let read = |name: &str| fs::read_to_string(sandbox.file(name)).unwrap();
    assert_eq!((read("soft").as_str(), read("hard").as_str()), ("512\n", "65536\n"));
}

/// Wherever it is mounted, once or more.
const UNMOUNT: &str = "for place in /sys/kernel/tracing /sys/kernel/debug; do \
                       while mountpoint -q $place; do umount --lazy $place; done; done";

//= docs/install.md#whether-a-machine-can-record
#[test]
fn the_kernels_files_are_mounted() {
    let test = "the_kernels_files_are_mounted";
    if !Requirement::Mounts.is_met(test) || !Requirement::Tracefs.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let shell = Shell { sandbox: &sandbox, prefix: &PRIVATE };
    let fix = shell.solved("kernel events", UNMOUNT);
    assert_eq!(fix, "sudo mount -t tracefs nodev /sys/kernel/tracing");
}
