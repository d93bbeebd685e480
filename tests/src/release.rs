//! The last release, built from its commit, whose programs meet today's.

use crate::build::{cargo, target_dir, workspace};
use std::path::PathBuf;
use std::process::Command;

/// The commit of the last release.
const RELEASE: &str = include_str!("../release");

/// Where the release's sources and what is built of them are.
fn directory() -> PathBuf {
    target_dir().join("releases").join(RELEASE.trim())
}

/// Where its programs are, built or not.
#[must_use]
pub fn programs() -> PathBuf {
    directory().join("target/debug")
}

/// Builds it if it is not built, which takes minutes and is only done if `TRACE_TEST_BUILD_RELEASE` is set.
///
/// # Errors
/// It is not built, and the variable is not set; or its commit is not in this clone.
///
/// # Panics
/// If it does not build.
pub(crate) fn build() -> Result<(), String> {
    let commit = RELEASE.trim();
    if ["emit", "trace"].iter().all(|name| programs().join(name).exists()) {
        return Ok(());
    }
    if std::env::var_os("TRACE_TEST_BUILD_RELEASE").is_none() {
        return Err(format!("the release {commit} is not built: TRACE_TEST_BUILD_RELEASE=1 does it"));
    }
    let directory = directory();
    let sources = directory.join("sources");
    std::fs::create_dir_all(&sources).expect("a directory");
    let archive = directory.join("sources.tar");
    let mut git = Command::new("git");
    git.current_dir(workspace()).args(["archive", commit, "--output"]).arg(&archive);
    if !git.status().is_ok_and(|status| status.success()) {
        return Err(format!("the commit of the release, {commit}, is not in this clone"));
    }
    let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&sources).status();
    assert!(unpacked.is_ok_and(|status| status.success()), "{} cannot be unpacked", archive.display());
    let built = cargo()
        .current_dir(&sources)
        .args(["build", "--quiet", "--locked", "--bins"])
        .args(["--package", "trace-cli", "--package", "trace-tests"])
        .env("CARGO_TARGET_DIR", directory.join("target"))
        .status();
    assert!(built.is_ok_and(|status| status.success()), "{commit} does not build");
    Ok(())
}
