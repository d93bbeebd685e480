//! The feature `off` leaves nothing of the instrumentation.

use std::fs;
use std::path::Path;
use trace_tests::build::{cargo, target_dir, workspace};

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

/// Two programs of the same source, one of which has the feature: a workspace of their own, so that nothing
/// is built for them but what an application builds.
fn write_programs(directory: &Path) {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        // What is the same already stays as it was built.
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::write(path, text).expect("a file");
        }
    };
    write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"on\", \"off\"]\n");
    let read = |name: &str| fs::read_to_string(workspace().join(name)).expect("a file");
    write("Cargo.lock", &read("Cargo.lock"));
    let engine = workspace().join("crates/trace-engine");
    for (name, features) in [("on", ""), ("off", "\"off\"")] {
        let package = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        let engine = format!("trace-engine = {{ path = {engine:?}, features = [{features}] }}\n");
        write(&format!("{name}/Cargo.toml"), &format!("{package}\n[dependencies]\n{engine}"));
        write(&format!("{name}/src/main.rs"), &read("crates/trace-engine/examples/off.rs"));
    }
}

/// The machine code of one of them.
fn listing(directory: &Path, name: &str) -> String {
    let output = cargo()
        .current_dir(directory)
        .args(["rustc", "--release", "--offline", "--package", name, "--target-dir", "target"])
        .args(["--", "--emit", "asm", "-C", "codegen-units=1", "-C", "debuginfo=0"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let built = fs::read_dir(directory.join("target/release/deps")).expect("it was built");
    let mut listings: Vec<_> = built
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|s| s == "s"))
        .filter(|path| {
            path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{name}-")))
        })
        .collect();
    listings.sort_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
    fs::read_to_string(listings.last().expect("a listing was written")).expect("a listing is text")
}

#[test]
fn with_off_the_machine_code_is_that_without_macros() {
    let directory = target_dir().join("off");
    write_programs(&directory);
    let off = listing(&directory, "off");
    let (instrumented, plain) = (instructions(&off, "instrumented"), instructions(&off, "plain"));
    // The compiler may have noticed that they are the same, and kept one of them only.
    let is_one = instrumented.is_empty() != plain.is_empty();
    assert!(is_one || instrumented == plain, "{instrumented:?} {plain:?}");
    let kept = if plain.is_empty() { instrumented } else { plain };
    assert!((5..40).contains(&kept.len()), "{kept:?}");
    assert!(!off.contains("trace_sites"), "a call site is left");
    // Without the feature they differ, so that something is compared.
    let on = listing(&directory, "on");
    assert!(instructions(&on, "instrumented").len() > 10 * instructions(&on, "plain").len());
    assert!(on.contains("trace_sites"));
}
