//! Asks Catapult's trace viewer what it sees in a file.
//!
//! The viewer is a page inside the Python package that has Perfetto, too. `TRACE_TEST_CATAPULT` names a
//! directory with the Node modules that drive a headless browser: docs/testing.md.

use crate::build::workspace;
use crate::perfetto::package;
use crate::requirement::{Requirement, named};
use std::path::Path;
use std::process::Command;

/// What the viewer has imported: `error`, `warnings`, numbers of `slices`, `operations` and `counters` by
/// name, of `samples` by the functions in their stacks, and of `flows` and `cpuSlices`; None, and reported as
/// skipped, where it does not run.
///
/// # Panics
/// If the viewer fails, or is required and absent.
#[must_use]
pub fn count(test: &str, trace: &Path) -> Option<serde_json::Value> {
    if !Requirement::Catapult.is_met(test) {
        return None;
    }
    let modules = named("TRACE_TEST_CATAPULT").expect("it was tried");
    let output = command(&modules, &package().expect("it was tried"), trace).output().expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("an object"))
}

/// Opens a trace in the viewer of a Python package, with the Node modules of a directory.
#[must_use]
pub(crate) fn command(modules: &Path, package: &Path, trace: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg(workspace().join("tests/catapult/count.mjs"));
    command.arg(package.join("html/trace_viewer_full.html")).arg(trace).current_dir(modules);
    command
}
