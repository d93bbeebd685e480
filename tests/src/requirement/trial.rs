//! A command that is tried.

use crate::sandbox::in_time;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{File, Permissions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Longest command and longest error in a reason, in characters.
const MAX_CHARS: usize = 200;

/// Runs a command without input.
///
/// # Errors
/// As [`run_with`].
pub fn run(command: &mut Command) -> Result<String, String> {
    run_with(command, "")
}

/// Runs a command that reads an input, and returns its output.
///
/// # Errors
/// It cannot be started, fails or does not end: the command, and the line of its messages that has the error.
pub fn run_with(command: &mut Command, input: &str) -> Result<String, String> {
    let (mut output, mut messages) = (file(), file());
    let mut stdin = file();
    stdin.write_all(input.as_bytes()).expect("it can be written");
    stdin.rewind().expect("it can be read");
    command.stdin(stdin).stdout(shared(&output)).stderr(shared(&messages)).process_group(0);
    let spawned = command.spawn();
    let failed = |why: &str| format!("{}: {why}", shown(command));
    let mut child = spawned.map_err(|error| failed(&error.to_string()))?;
    let Some(status) = in_time(|| child.try_wait().ok().flatten()) else {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let _ = kill_process_group(group.expect("a pid"), Signal::KILL);
        let _ = child.wait();
        return Err(failed("it does not end"));
    };
    let output = text(&mut output);
    if status.success() {
        return Ok(output);
    }
    let said = error_in(&text(&mut messages)).or_else(|| error_in(&output));
    Err(failed(&said.unwrap_or_else(|| status.to_string())))
}

fn file() -> File {
    tempfile::tempfile().expect("a temporary file")
}

fn shared(file: &File) -> Stdio {
    file.try_clone().expect("a descriptor").into()
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("it can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first line, or the one with the name of an exception: interpreters print before it where it was
/// raised.
fn error_in(messages: &str) -> Option<String> {
    let mut lines = messages.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next();
    let has_name = |line: &&str| line.split_once(": ").is_some_and(|(name, _)| name.ends_with("Error"));
    lines.find(has_name).or(first).map(shortened)
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

fn shown(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().replace('\n', " ")).collect();
    shortened(&words.join(" "))
}

/// A directory for a trial, which every user may enter.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("trace-trial-").tempdir().expect("a directory");
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("an open directory");
        Self(directory)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir(&path).expect("a directory");
        path
    }
}
