//! Tests that cannot run here say so where it is seen.

use std::io::Write;
use std::path::PathBuf;

/// Reports a test as skipped: appends its name and the reason to `skipped.txt` in cargo's target directory.
///
/// # Panics
/// If `TRACE_TEST_REQUIRE` names the kind of thing that is missing.
pub fn skip(test: &str, kind: &str, reason: &str) {
    let required = std::env::var("TRACE_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|required| required == kind),
        "{test}: {kind} is required here: {reason}"
    );
    let path = target_dir().join("skipped.txt");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let mut file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    writeln!(file, "{test}: {reason}").unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The directory that holds a profile's directory, which holds `deps`, which holds this executable.
fn target_dir() -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    let deps = program.ancestors().find(|path| path.ends_with("deps"));
    deps.and_then(|deps| deps.ancestors().nth(2)).expect("this program is in a target directory").to_owned()
}
