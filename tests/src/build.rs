//! Builds the programs that scenarios spawn, once, and finds them.
//!
//! The paths come from cargo's own output, so that the tests work with an empty target directory and wherever
//! it is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The root of the workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is inside the workspace")
}

/// A cargo of its own for a test, without what the harness of tests has in its environment: with that, cargo
/// would build packages anew.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(workspace()).env_remove(FOR_HARNESS);
    command
}

/// Set where tests print how long they took. Cargo would build packages anew for it, and rustc would name
/// symbols in another way.
pub const FOR_HARNESS: &str = "RUSTC_BOOTSTRAP";

/// Where cargo builds.
#[must_use]
pub fn target_dir() -> PathBuf {
    let program = program("trace");
    // <target>/<profile>/trace
    program.ancestors().nth(2).expect("programs are in a profile's directory").to_owned()
}

/// The path of an executable of the workspace: a program or an example.
///
/// # Panics
/// If the workspace does not build, or has no such program.
#[must_use]
pub fn program(name: &str) -> &'static Path {
    static PROGRAMS: OnceLock<HashMap<String, PathBuf>> = OnceLock::new();
    let programs = PROGRAMS.get_or_init(|| {
        let programs = messages().iter().filter_map(|message| {
            let name = message["target"]["name"].as_str()?.to_owned();
            Some((name, PathBuf::from(message["executable"].as_str()?)))
        });
        programs.collect()
    });
    programs.get(name).unwrap_or_else(|| panic!("no program {name} was built"))
}

/// Copies a program to where every user can run it, wherever the workspace is.
///
/// Another process writes the copy: programs that other tests start meanwhile would inherit a file that is
/// open for writing here, and while it is open anywhere it cannot be executed.
///
/// # Panics
/// If it cannot be copied.
pub fn copy_program(name: &str, to: &Path) {
    let status = Command::new("install").args(["-m", "755"]).arg(program(name)).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "{name} cannot be copied to {}", to.display());
}

/// Libraries of the workspace: all files that were built for them.
///
/// # Panics
/// If the workspace does not build.
#[must_use]
pub fn libraries() -> Vec<PathBuf> {
    let files = messages().iter().filter_map(|message| message["filenames"].as_array());
    files.flatten().filter_map(|name| Some(PathBuf::from(name.as_str()?))).collect()
}

/// What cargo says of the one build that all tests use. Examples are among it, so that cargo counts the
/// features that tests ask of packages: then `cargo test --workspace` has built everything below already.
fn messages() -> &'static [serde_json::Value] {
    static MESSAGES: OnceLock<Vec<serde_json::Value>> = OnceLock::new();
    MESSAGES.get_or_init(|| {
        let mut command = cargo();
        command.args(["build", "--message-format=json-render-diagnostics"]);
        command.args(["--workspace", "--lib", "--bins", "--examples"]);
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        let output = command.stderr(Stdio::inherit()).output().expect("cargo runs");
        assert!(output.status.success(), "cargo build failed");
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    })
}
