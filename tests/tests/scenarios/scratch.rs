//! Directories that commands make for recordings of their own: nothing of them is left.

use rustix::process::Signal;
use std::path::{Path, PathBuf};
use trace_tests::sandbox::Process;
use trace_tests::{Sandbox, wait_for};

/// The environment of a process, or what is left of it when it ends.
fn environment(process: &Path) -> Vec<u8> {
    std::fs::read(process.join("environ")).unwrap_or_default()
}

/// The processes that name a runtime directory.
fn processes_of(directory: &Path) -> Vec<PathBuf> {
    let variable = format!("TRACE_RUNTIME_DIR={}", directory.display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_it = |process: &PathBuf| {
        environment(process).split(|byte| *byte == 0).any(|set| set == variable.as_bytes())
    };
    processes.filter(is_it).collect()
}

/// The directory in which a command records: that which its recorder names.
fn directory_of(command: u32) -> PathBuf {
    let of_child = |process: PathBuf| {
        let status = std::fs::read_to_string(process.join("status")).ok()?;
        let arguments = std::fs::read(process.join("cmdline")).ok()?;
        let is_it = status.contains(&format!("\nPPid:\t{command}\n"))
            && arguments.split(|byte| *byte == 0).nth(1) == Some(b"record");
        let environment = environment(&process);
        let mut set = environment.split(|byte| *byte == 0);
        let directory = set.find_map(|set| set.strip_prefix(b"TRACE_RUNTIME_DIR="));
        let directory = directory.filter(|_| is_it)?;
        Some(PathBuf::from(String::from_utf8(directory.to_vec()).unwrap()))
    };
    wait_for("a recording", || {
        let mut processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        processes.find_map(of_child)
    })
}

/// Nothing of a command that has ended is left.
fn is_gone(directory: &Path) {
    assert!(!directory.exists(), "{}", directory.display());
    assert_eq!(processes_of(directory), Vec::<PathBuf>::new());
}

/// A command that records, and the directory in which it does.
fn recording(sandbox: &Sandbox, arguments: &[&str]) -> (Process, PathBuf) {
    let mut command = sandbox.command("trace");
    command.args(arguments).env("TMPDIR", sandbox.work_dir());
    let process = Sandbox::spawn_command(command);
    let directory = directory_of(process.pid());
    (process, directory)
}

#[test]
fn the_doctor_leaves_nothing_however_it_ends() {
    let sandbox = Sandbox::new();
    let (doctor, directory) = recording(&sandbox, &["doctor"]);
    doctor.finish();
    is_gone(&directory);
    let interrupts: [fn(&Process); 2] =
        [|doctor| doctor.signal_group(Signal::INT), |doctor| doctor.signal(Signal::TERM)];
    for interrupt in interrupts {
        let (doctor, directory) = recording(&sandbox, &["doctor"]);
        interrupt(&doctor);
        let output = doctor.finish();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        is_gone(&directory);
    }
}

#[test]
fn the_next_command_removes_what_a_killed_one_has_left() {
    const AB: &[&str] = &["ab", "--runs", "1", "--", "sleep", "60", "--", "sleep", "60"];
    let sandbox = Sandbox::new();
    for arguments in [&["doctor"][..], AB] {
        let (killed, directory) = recording(&sandbox, arguments);
        killed.signal(Signal::KILL);
        killed.finish();
        wait_for("the end of its processes", || processes_of(&directory).is_empty().then_some(()));
        let (mut next, other) = recording(&sandbox, arguments);
        is_gone(&directory);
        // The second one ends a run at once.
        wait_for("its end", || {
            next.signal(Signal::INT);
            (!next.is_running()).then_some(())
        });
        assert_eq!(next.finish().status.code(), Some(130));
        is_gone(&other);
        assert_eq!(sandbox.files(), [""; 0]);
    }
}
