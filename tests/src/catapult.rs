//! Asks Catapult's trace viewer what it sees in a file.
//!
//! The viewer is a page inside the Python package that has Perfetto, too. `TRACE_TEST_CATAPULT` names a
//! directory with the Node modules that drive a headless browser: docs/testing.md.

use crate::build::workspace;
use crate::perfetto::package;
use crate::report::objects;
use crate::requirement::{Requirement, named};
use std::path::{Path, PathBuf};
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

/// The slices, operations, counters and flows that the viewer has imported from each of many traces, for one
/// start of the browser: objects as `tests/catapult/rows.mjs` describes them. None as [`count`].
///
/// # Panics
/// As [`count`].
#[must_use]
pub fn rows(test: &str, traces: &[PathBuf]) -> Option<Vec<serde_json::Value>> {
    if !Requirement::Catapult.is_met(test) {
        return None;
    }
    let modules = named("TRACE_TEST_CATAPULT").expect("it was tried");
    let package = package().expect("it was tried");
    Some(objects(script("rows.mjs", &modules, &package), traces))
}

/// Opens a trace in the viewer of a Python package, with the Node modules of a directory.
#[must_use]
pub(crate) fn command(modules: &Path, package: &Path, trace: &Path) -> Command {
    let mut command = script("count.mjs", modules, package);
    command.arg(trace);
    command
}

fn script(name: &str, modules: &Path, package: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg(workspace().join("tests/catapult").join(name));
    command.arg(package.join("html/trace_viewer_full.html")).current_dir(modules);
    command
}
