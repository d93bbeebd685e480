//! Opens profiles with the programs that they are for.
//!
//! `TRACE_TEST_PROFILERS` names a directory with the packages `speedscope` and `profiler-cli`, each unpacked:
//! docs/testing.md.

use crate::build::workspace;
use crate::requirement::{Requirement, named};
use crate::wait_for;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Where a package is.
pub(crate) fn package(name: &str) -> Result<PathBuf, String> {
    let folder = named("TRACE_TEST_PROFILERS")?.join(name).join("package");
    if folder.is_dir() { Ok(folder) } else { Err(format!("there is no {}", folder.display())) }
}

fn succeeded(output: &Output) -> &[u8] {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    &output.stdout
}

/// What speedscope has read of a file: `title`, `errors` and `saved`, the document that it saves. None, and
/// reported as skipped, where it does not run.
///
/// # Panics
/// If it fails, or is required and absent.
#[must_use]
pub fn speedscope(test: &str, file: &Path) -> Option<Value> {
    if !Requirement::Speedscope.is_met(test) {
        return None;
    }
    let modules = named("TRACE_TEST_CATAPULT").expect("it was tried");
    let package = package("speedscope").expect("it was tried");
    let output = speedscope_command(&modules, &package, file).output().expect("node runs");
    Some(serde_json::from_slice(succeeded(&output)).expect("an object"))
}

/// Opens a file with the speedscope of a package, with the Node modules of a directory.
pub(crate) fn speedscope_command(modules: &Path, package: &Path, file: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg(workspace().join("tests/profilers/speedscope.mjs"));
    command.arg(package).arg(file).current_dir(modules);
    command
}

/// What the Firefox Profiler answers to questions about a file, which are commands of its package. None, and
/// reported as skipped, where it does not run.
///
/// # Panics
/// If it fails, or is required and absent.
#[must_use]
pub fn firefox(test: &str, file: &Path, questions: &[&[&str]]) -> Option<Vec<Value>> {
    if !Requirement::FirefoxProfiler.is_met(test) {
        return None;
    }
    let package = package("profiler-cli").expect("it was tried");
    let sessions = tempfile::tempdir().expect("a directory");
    let node = |arguments: &[&str]| {
        let mut command = Command::new("node");
        command.arg(package.join("dist/profiler-cli.js")).args(arguments).args(["--session", SESSION]);
        // It neither looks for symbols nor answers other sessions.
        command.env("PROFILER_CLI_SESSION_DIR", sessions.path()).env("PROFILER_CLI_NO_SYMBOLICATE", "1");
        command
    };
    // Its own command gives the process that holds the profile half a second to start.
    let holder = node(&["--daemon", file.to_str().expect("UTF-8")]).stdout(Stdio::null()).spawn();
    let holder = Holder(holder.expect("node runs"));
    let is_loaded = || node(&["status"]).output().ok()?.status.success().then_some(());
    wait_for("the profile is loaded", is_loaded);
    let answers = questions.iter().map(|question| {
        let output = node(&[question, &["--json"][..]].concat()).output().expect("node runs");
        serde_json::from_slice(succeeded(&output)).expect("an object")
    });
    let answers = answers.collect();
    drop(holder);
    Some(answers)
}

/// The name of the session.
const SESSION: &str = "test";

/// The process that holds a profile.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
