//! A table of hosts that make it hard for a library to be their guest: each hostility with each way to be
//! one.
//!
//! A host is a program of its own, `tests/examples/hosts` or `tests/native/hosts.c`, which looks after its
//! own descriptors, signals and children. Here is what it has to show to the outside: how it ends, what it
//! says, and what is recorded.

use crate::build::program;
use crate::requirement::MemoryGroup;
use crate::sandbox::{Sandbox, in_time};
use crate::{Archive, wait_for};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use trace_client::connection::announces_recording;

/// Events of each name.
const EVENTS: usize = 10;

/// The ways to be a guest.
pub const WAYS: [&str; 5] = ["provider", "polled", "client", "local", "startup"];

/// What one host has to show.
struct Expected {
    /// The exit code, or the signal as a negative number.
    status: i32,
    /// Events named `before`, `after`, `child` and `end`.
    counts: [usize; 4],
    /// A part of what it says; empty if it says nothing.
    says: &'static str,
}

/// A manager of the test's records it.
fn is_managed(way: &str) -> bool {
    matches!(way, "provider" | "polled")
}

fn expected(way: &str, hostility: &str) -> Expected {
    let is_managed = is_managed(way);
    let is_client = way == "client";
    let all = [EVENTS, EVENTS, 0, 0];
    let none = [0; 4];
    let is = |status, counts, says| Expected { status, counts, says };
    match hostility {
        "close" if way == "polled" => is(0, [EVENTS, 0, 0, 0], "its descriptors were closed"),
        "forks" if is_managed => is(0, [EVENTS, EVENTS, 3 * EVENTS, 0], ""),
        "threads" if is_managed => is(0, [EVENTS, EVENTS, 4 * EVENTS, 0], ""),
        "small files" if is_client => is(0, none, "cannot write the trace: File too large"),
        "small files" if !is_managed => is(0, none, "(ulimit -f)"),
        "smaller files" if matches!(way, "local" | "startup") => is(0, all, "(ulimit -f)"),
        "few numbers" => is(0, none, if way == "provider" { "not traced: " } else { "files" }),
        "little space" if !is_client => is(0, none, "cannot map"),
        "little memory" if is_client => is(0, none, ""),
        "little memory" => is(0, none, "of memory"),
        "exit" | "returns" | "_exit" | "abort" => {
            let status = [("exit", 7), ("returns", 0), ("_exit", 7), ("abort", -6)];
            let status =
                status.into_iter().find(|(name, _)| *name == hostility).map_or(0, |(_, status)| status);
            let is_late = matches!(hostility, "exit" | "returns") && !is_client;
            is(status, [EVENTS, 0, 0, if is_late { EVENTS } else { 0 }], "")
        }
        "first thread" => is(7, all, ""),
        "constructs" if is_managed => is(0, all, "the trace manager has not answered in time"),
        _ => is(0, all, ""),
    }
}

/// A program that is a host in each way.
pub struct Host<'a> {
    /// Its executable.
    pub program: &'a Path,
    /// What it needs in its environment.
    pub environment: &'a [(&'a str, &'a Path)],
}

/// Runs hosts of some ways, and looks what is wrong with each.
///
/// # Panics
/// If one of them is not all right, with the reasons.
pub fn check(host: &Host<'_>, ways: &[&str], hostility: &str) {
    let problems = std::thread::scope(|scope| {
        let cells: Vec<_> =
            ways.iter().map(|way| (way, scope.spawn(|| problem(host, way, hostility)))).collect();
        let problems = cells.into_iter().filter_map(|(way, cell)| {
            let problem = cell.join().unwrap_or_else(|_| Some("the test has failed".to_owned()))?;
            Some(format!("{way}: {problem}"))
        });
        problems.collect::<Vec<_>>()
    });
    assert!(problems.is_empty(), "hosts that are hostile by {hostility:?}:\n{}", problems.join("\n"));
}

/// What is wrong with a host.
fn problem(host: &Host<'_>, way: &str, hostility: &str) -> Option<String> {
    let sandbox = Sandbox::new();
    let is_managed = is_managed(way);
    let mebibytes = if hostility.starts_with("little") { "64" } else { "4" };
    if is_managed {
        let options = ["start", "--buffering-mode", "oneshot", "--buffer-size", mebibytes];
        let output = sandbox.trace(options);
        assert!(output.status.success(), "{output:?}");
    }
    let group =
        (hostility == "little memory").then(|| MemoryGroup::of("24M", way).expect("a group can be made"));
    let mut command = Command::new(host.program);
    command
        .args([way, hostility])
        .arg(sandbox.work_dir())
        .current_dir(sandbox.work_dir())
        .env("TRACE_RUNTIME_DIR", sandbox.runtime_dir())
        .env("TRACE_MARKERS", "always")
        .env("TRACE_STARTUP_FILE", "trace.fxt")
        .env("HOSTS_TOOL", program("trace"))
        .env_remove("TRACE_RECORD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(sandbox.file("stderr.txt")).expect("a file"));
    command.envs(host.environment.iter().copied());
    group.iter().for_each(|group| _ = command.env("HOSTS_GROUP", group.processes()));
    let mut child = command.spawn().expect("it runs");
    let Some(status) = in_time(|| child.try_wait().expect("it can be waited for")) else {
        let _ = child.kill();
        let _ = child.wait();
        return Some("it hangs".to_owned());
    };
    let read = |name: &str| std::fs::read_to_string(sandbox.file(name)).unwrap_or_default();
    let status = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
    let Expected { status: expected, counts, says } = expected(way, hostility);
    if status != expected {
        return Some(format!("it ends with {status}: {} {}", read("problem"), read("stderr.txt")));
    }
    let said = format!("{}{}", read("error"), read("stderr.txt"));
    if !said.contains(says) || says.is_empty() && !said.is_empty() {
        return Some(format!("it says {said:?}, expected {says:?}"));
    }
    let found = counts_of(&sandbox, way);
    (found != counts).then(|| format!("recorded are {found:?}, expected {counts:?}"))
}

/// How many events are recorded of each name.
fn counts_of(sandbox: &Sandbox, way: &str) -> [usize; 4] {
    if is_managed(way) {
        sandbox.trace(["stop"]);
    }
    if way == "client" {
        let is_over = || !announces_recording(&sandbox.runtime_dir());
        wait_for("the recording to end", || is_over().then_some(()));
    }
    let (file, partial) = (sandbox.file("trace.fxt"), sandbox.file("trace.partial.fxt"));
    // What a client's manager has not written into its file is in the buffers.
    if !file.exists() && !is_managed(way) {
        sandbox.trace(["recover", "-o", "trace.fxt"]);
    }
    let archive = match (file.exists(), partial.exists()) {
        (true, _) => Archive::read(&file),
        (false, true) if way == "client" => Archive::read_prefix(&partial),
        _ => return [0; 4],
    };
    ["before", "after", "child", "end"]
        .map(|name| archive.events.iter().filter(|event| event.name() == name).count())
}
