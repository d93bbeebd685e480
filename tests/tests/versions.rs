//! Programs whose dependencies bring two versions of the engine.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use trace_tests::build::{cargo, workspace};

/// What the engine is made of.
const CRATES: [&str; 3] = ["trace-engine", "trace-format", "zx-ticks"];
/// The version of this workspace, and a later one.
const VERSIONS: [&str; 2] = [env!("CARGO_PKG_VERSION"), "99.0.0"];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// A workspace of another version, with the engine alone.
fn write_other_version(directory: &Path) {
    for name in CRATES {
        copy(&workspace().join("crates").join(name), &directory.join("crates").join(name));
    }
    let root = fs::read_to_string(workspace().join("Cargo.toml")).expect("the manifest");
    let root =
        root.replace(&format!("version = \"{}\"", VERSIONS[0]), &format!("version = \"{}\"", VERSIONS[1]));
    let with_members = |line: &str| match line.starts_with("members = ") {
        true => r#"members = ["crates/*"]"#.to_owned(),
        false => line.to_owned(),
    };
    let root = root.lines().map(with_members).collect::<Vec<_>>().join("\n");
    assert!(root.contains(VERSIONS[1]) && root.contains(r#"members = ["crates/*"]"#));
    fs::write(directory.join("Cargo.toml"), root).expect("a manifest");
}

/// A program that depends on the engine in these places.
fn resolve(directory: &Path, engines: &[&Path]) -> std::process::Output {
    let dependencies: Vec<String> = engines
        .iter()
        .zip(["one", "other"])
        .map(|(path, name)| format!("{name} = {{ package = \"trace-engine\", path = {path:?} }}\n"))
        .collect();
    let manifest = format!(
        "[package]\nname = \"app\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{}",
        dependencies.concat()
    );
    fs::create_dir_all(directory.join("src")).expect("a directory");
    fs::write(directory.join("src/main.rs"), "fn main() {}\n").expect("a program");
    fs::write(directory.join("Cargo.toml"), manifest).expect("a manifest");
    let mut command = cargo();
    command.args(["metadata", "--offline", "--format-version", "1"]).current_dir(directory);
    command.output().expect("cargo runs")
}

//= docs/buffer.md#one-engine
#[test]
fn cargo_refuses_two_versions_of_the_engine_in_one_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let other = directory.path().join("other");
    write_other_version(&other);
    let [ours, others] = [workspace(), &*other].map(|root| root.join("crates/trace-engine"));
    for engine in [&ours, &others] {
        let output = resolve(&directory.path().join("app"), &[engine]);
        assert!(output.status.success(), "one is well: {}", String::from_utf8_lossy(&output.stderr));
    }
    let output = resolve(&directory.path().join("app"), &[&ours, &others]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let reason = "links to the native library `trace-engine`";
    assert!(!output.status.success() && stderr.contains(reason), "{stderr}");
}
