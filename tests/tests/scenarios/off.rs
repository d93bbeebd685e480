//! The feature `off` leaves nothing of the instrumentation.

use std::path::Path;
use std::process::Command;
use trace_tests::build::{target_dir, workspace};

/// The instructions of a function in a listing, without labels and directives.
fn instructions(listing: &str, function: &str) -> Vec<String> {
    let is_start = |line: &&str| line.starts_with("_") && line.ends_with(':') && line.contains(function);
    listing
        .lines()
        .skip_while(|line| !is_start(line))
        .skip(1)
        .take_while(|line| !line.contains(".cfi_endproc"))
        .map(str::trim)
        .filter(|line| !line.starts_with('.') && !line.ends_with(':') && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn listing(directory: &Path, features: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .current_dir(workspace())
        .args(["rustc", "--release", "--package", "trace-engine", "--example", "off", "--target-dir"])
        .arg(directory)
        .args(features)
        .args(["--", "--emit", "asm", "-C", "codegen-units=1", "-C", "debuginfo=0"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let examples = std::fs::read_dir(directory.join("release/examples")).expect("examples were built");
    let mut listings: Vec<_> = examples
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|s| s == "s"))
        .collect();
    listings.sort_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
    std::fs::read_to_string(listings.last().expect("a listing was written")).expect("a listing is text")
}

#[test]
fn with_off_the_machine_code_is_that_without_macros() {
    let directory = target_dir().join("off");
    let off = listing(&directory.join("off"), &["--features", "off"]);
    let (instrumented, plain) = (instructions(&off, "instrumented"), instructions(&off, "plain"));
    // The compiler may have noticed that they are the same, and kept one of them only.
    let is_one = instrumented.is_empty() != plain.is_empty();
    assert!(is_one || instrumented == plain, "{instrumented:?} {plain:?}");
    let kept = if plain.is_empty() { instrumented } else { plain };
    assert!((5..40).contains(&kept.len()), "{kept:?}");
    assert!(!off.contains("trace_sites"), "a call site is left");
    // Without the feature they differ, so that something is compared.
    let on = listing(&directory.join("on"), &[]);
    assert!(instructions(&on, "instrumented").len() > 10 * instructions(&on, "plain").len());
    assert!(on.contains("trace_sites"));
}
