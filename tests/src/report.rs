//! Uses the page of a trace in a headless browser, and reads what it says.
//!
//! `TRACE_TEST_CATAPULT` names a directory with the Node modules that drive the browser: docs/testing.md.

use crate::Sandbox;
use crate::build::workspace;
use crate::requirement::{Requirement, named};
use crate::sandbox::Process;
use std::path::Path;
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

/// The same with `tests/report/live.drive.mjs` and the page of a running recording: a process that says
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
