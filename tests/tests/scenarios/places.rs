//! Runtime directories that another user has prepared: nothing outside of them is followed, made or changed.
//= docs/protocol.md#users

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use trace_tests::{Requirement, Sandbox};
use zx_sim::{Channel, Listener};

const MALLORY: u32 = 4_005;

/// Everything below a directory: kind, mode, owner, time of the last change and content.
pub(super) fn state(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut state = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        let facts = fs::symlink_metadata(&path).unwrap();
        let mut text = format!("{:o} {} {}.{}", facts.mode(), facts.uid(), facts.ctime(), facts.ctime_nsec());
        if facts.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if facts.is_file() {
            text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
        state.insert(path, text);
    }
    state
}

/// A sandbox without a runtime directory, and a place outside that has something in it.
fn scene() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    fs::remove_dir(sandbox.runtime_dir()).unwrap();
    let outside = sandbox.file("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "as it was").unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).unwrap();
    (sandbox, outside)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Client, manager and a program refuse the directory, and say why.
fn assert_refused(sandbox: &Sandbox, expected: &str) {
    let said = |output: Output| {
        assert!(!output.status.success(), "{expected}: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for arguments in [&["list-programs"][..], &["record", "--duration", "1"], &["manager"]] {
        let text = said(sandbox.trace(arguments));
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    let output = sandbox.command("stubborn").arg("register").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "NoManager\n");
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let (sandbox, outside) = scene();
    symlink(&outside, sandbox.runtime_dir()).unwrap();
    let before = state(&outside);
    assert_refused(&sandbox, "is a symbolic link, which is not followed");
    fs::remove_file(sandbox.runtime_dir()).unwrap();
    symlink(outside.join("new"), sandbox.runtime_dir()).unwrap();
    assert_refused(&sandbox, "is a symbolic link, which is not followed");
    assert_eq!(state(&outside), before);
}

#[test]
fn a_directory_that_others_may_change_is_not_used() {
    let (sandbox, outside) = scene();
    let directory = sandbox.runtime_dir();
    fs::create_dir(&directory).unwrap();
    set_mode(&directory, 0o777);
    assert_refused(&sandbox, "has mode 0777, expected 0700");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    // One in it can be replaced by any user at any time.
    let within = directory.join("run");
    let mut command = sandbox.command("trace");
    let output = command.arg("list-programs").env("TRACE_RUNTIME_DIR", &within).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("where other users may replace it"), "{text}");
    assert!(!within.exists() && outside.join("precious").exists());
}

#[test]
fn a_directory_of_another_user_is_not_used() {
    let test = "places::a_directory_of_another_user_is_not_used";
    if !Requirement::Root.is_met(test) {
        return;
    }
    let (sandbox, _) = scene();
    let directory = sandbox.runtime_dir();
    fs::create_dir(&directory).unwrap();
    set_mode(&directory, 0o700);
    chown(&directory, Some(MALLORY), Some(MALLORY)).unwrap();
    let before = state(&directory);
    assert_refused(&sandbox, "belongs to user 4005, not to user 0");
    assert_eq!(state(&directory), before);
}

/// Another user listens on sockets where a manager's would be.
#[test]
fn sockets_of_another_user_are_not_connected_to() {
    let test = "places::sockets_of_another_user_are_not_connected_to";
    if !Requirement::Root.is_met(test) {
        return;
    }
    let (sandbox, _) = scene();
    let directory = sandbox.runtime_dir();
    fs::create_dir(&directory).unwrap();
    set_mode(&directory, 0o755);
    chown(&directory, Some(MALLORY), Some(MALLORY)).unwrap();
    set_mode(sandbox.work_dir().parent().unwrap(), 0o755);
    let public = sandbox.file("trace");
    trace_tests::build::copy_program("trace", &public);
    // A listening socket has the credentials of the process that called `listen`.
    let mut mallory = std::process::Command::new(&public);
    mallory.arg("manager").env("TRACE_RUNTIME_DIR", &directory).uid(MALLORY).gid(MALLORY);
    set_mode(&directory, 0o700);
    let _manager = Sandbox::spawn_command(mallory);
    for name in ["registry", "provisioner"] {
        let socket = directory.join(name);
        trace_tests::wait_for("a socket", || socket.exists().then_some(()));
    }
    let output = sandbox.trace(["list-programs"]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("belongs to user 4005, not to user 0: not used"), "{text}");
    let output = sandbox.command("stubborn").arg("register").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "NoManager\n");
}

/// In a directory of one's own: dead sockets are replaced, links in place of its files are not followed.
#[test]
fn what_stands_in_the_way_is_replaced_or_refused_and_not_followed() {
    let (sandbox, outside) = scene();
    let directory = sandbox.runtime_dir();
    fs::create_dir(&directory).unwrap();
    set_mode(&directory, 0o700);
    for name in ["registry", "provisioner"] {
        drop(Listener::bind(&directory.join(name)).unwrap());
        // Programs that other tests begin just now have the socket until they are executed.
        let connected = || Channel::connect(&directory.join(name));
        trace_tests::wait_for("the end of the socket", || connected().is_err().then_some(()));
    }
    assert!(sandbox.trace(["list-programs"]).status.success());
    let manager = sandbox.manager_pid().expect("a manager was started");
    trace_tests::sandbox::kill(manager, rustix::process::Signal::KILL);
    trace_tests::wait_for("its end", || sandbox.manager_pid().is_none().then_some(()));

    let precious = outside.join("precious");
    let before = state(&outside);
    for name in ["lock", "ticks.new", "manager.log", "registry", "provisioner"] {
        let path = directory.join(name);
        let _ = fs::remove_file(&path);
        let _ = fs::remove_file(directory.join("ticks"));
        symlink(&precious, &path).unwrap();
        let output = sandbox.trace(["list-programs"]);
        // A socket is put in the place of the link; a file is not made.
        assert_eq!(
            output.status.success(),
            ["registry", "provisioner"].contains(&name),
            "{name}: {output:?}"
        );
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(text.contains(name.trim_end_matches(".new")), "{name}: {text}");
        }
        assert_eq!(state(&outside), before, "{name}");
        fs::remove_file(&path).unwrap();
        if let Some(manager) = sandbox.manager_pid() {
            trace_tests::sandbox::kill(manager, rustix::process::Signal::KILL);
            trace_tests::wait_for("its end", || sandbox.manager_pid().is_none().then_some(()));
        }
    }
}
