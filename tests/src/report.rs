//! Uses the page of a trace in a headless browser, and reads what it says.
//!
//! `TRACE_TEST_CATAPULT` names a directory with the Node modules that drive the browser: docs/testing.md.

use crate::Sandbox;
use crate::build::workspace;
use crate::requirement::{Requirement, named};
use crate::sandbox::Process;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether axe judges the accessibility of each view, which takes half of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accessibility {
    /// What axe finds in each view is in the result.
    Judged,
    /// Nothing is found.
    NotJudged,
}

/// What `tests/report/drive.mjs` has seen in a page while it searched a name; None, and reported as skipped,
/// where no browser runs.
///
/// # Panics
/// If the browser cannot be run, or is required and absent.
#[must_use]
pub fn drive(test: &str, page: &Path, name: &str, accessibility: Accessibility) -> Option<serde_json::Value> {
    if !Requirement::Browser.is_met(test) {
        return None;
    }
    let modules = named("TRACE_TEST_CATAPULT").expect("it was tried");
    let script = workspace().join("tests/report/drive.mjs");
    let mut command = Command::new("node");
    command.arg(script);
    if accessibility == Accessibility::NotJudged {
        command.arg("--without-axe");
    }
    let output = command.arg(page).arg(name).current_dir(modules).output().expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("an object"))
}

/// What is on the pages of many traces, as their own modules read it: objects as `tests/report/rows.mjs`
/// describes them. None, and reported as skipped, where Node does not run.
///
/// # Panics
/// If a page cannot be read, or Node is required and absent.
#[must_use]
pub fn rows(test: &str, pages: &[PathBuf]) -> Option<Vec<serde_json::Value>> {
    if !Requirement::Node.is_met(test) {
        return None;
    }
    let mut command = Command::new("node");
    command.arg(workspace().join("tests/report/rows.mjs"));
    Some(objects(command, pages))
}

/// The objects that a program prints in lines, one for each of the files whose names it reads.
///
/// # Panics
/// If it fails.
pub(crate) fn objects(mut command: Command, files: &[PathBuf]) -> Vec<serde_json::Value> {
    let mut lines = tempfile::tempfile().expect("a temporary file");
    for file in files {
        writeln!(lines, "{}", file.display()).expect("it can be written");
    }
    lines.rewind().expect("it can be read");
    let output = command.stdin(lines).output().expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Vec<_> = text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(found.len(), files.len());
    found
}

/// The same as [`drive`] with `tests/report/live.drive.mjs` and the page of a running recording: a process
/// that says
/// what it has seen when the recording ends.
///
/// # Panics
/// If the browser is required and absent.
#[must_use]
pub fn drive_live(test: &str, address: &str) -> Option<Process> {
    if !Requirement::Browser.is_met(test) {
        return None;
    }
    let modules = named("TRACE_TEST_CATAPULT").expect("it was tried");
    let mut command = Command::new("node");
    command.arg(workspace().join("tests/report/live.drive.mjs")).arg(address).current_dir(modules);
    Some(Sandbox::spawn_command(command))
}
