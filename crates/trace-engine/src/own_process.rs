//! Tests that change what is common to a process: they have one for themselves.

use std::process::Command;

/// The program that runs these tests, if they are of another processor.
const RUNNER: &str = "TRACE_TEST_RUNNER";
const IS_CHILD: &str = "TRACE_TEST_CHILD";

/// Whether this is a process for this test alone; otherwise runs it in one.
///
/// # Panics
/// If it fails there.
pub(crate) fn is_own_process(test: &str) -> bool {
    if std::env::var_os(IS_CHILD).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("a path");
    let mut command = Command::new(std::env::var_os(RUNNER).unwrap_or_else(|| program.clone().into()));
    if std::env::var_os(RUNNER).is_some() {
        command.arg(program);
    }
    let output = command.args(["--exact", test]).env(IS_CHILD, "1").output();
    let output = output.expect("it is started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}
