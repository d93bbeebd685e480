//! Tests that cannot run here say so where it is seen.

use std::io::Write;

/// Reports a test as skipped: appends its name and the reason to `target/skipped.txt`.
///
/// # Panics
/// If `TRACE_TEST_REQUIRE` names the kind of thing that is missing.
pub fn skip(test: &str, kind: &str, reason: &str) {
    let required = std::env::var("TRACE_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|required| required == kind),
        "{test}: {kind} is required here: {reason}"
    );
    let path = crate::build::target_dir().join("skipped.txt");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let mut file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    writeln!(file, "{test}: {reason}").unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
