//! What the README and the first lines of the guide for Rust promise.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use trace_tests::build::{cargo, program, target_dir, workspace};
use trace_tests::{Archive, Sandbox, pages};

/// The first block of a language on a page.
fn block(page: &str, language: &str) -> String {
    let blocks = pages::blocks(&pages::read(page));
    let first = blocks.into_iter().find(|block| block.language == language);
    first.unwrap_or_else(|| panic!("{page} has no block of {language}")).text
}

/// An application outside of the workspace, made of exactly the guide's lines.
#[test]
fn five_lines_make_an_app_that_can_be_recorded() {
    let dependency = block("docs/rust.md", "toml");
    let program = block("docs/rust.md", "rust");
    assert_eq!(program.lines().filter(|line| !line.trim().is_empty()).count(), 5, "{program}");
    let provider = workspace().join("crates/trace-provider");
    let dependency = dependency.replace("path/to/trace-provider", provider.to_str().unwrap());
    assert!(dependency.contains(provider.to_str().unwrap()), "{dependency}");

    let sandbox = Sandbox::new();
    let app = sandbox.file("app");
    fs::create_dir_all(app.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n{dependency}\n"
    );
    fs::write(app.join("Cargo.toml"), manifest).unwrap();
    fs::write(app.join("src/main.rs"), program).unwrap();
    // The same versions as the workspace has, without a registry.
    fs::copy(workspace().join("Cargo.lock"), app.join("Cargo.lock")).unwrap();
    let cargo = |arguments: &[&str]| {
        let output = cargo()
            .current_dir(&app)
            .args(arguments)
            .env("CARGO_TARGET_DIR", target_dir().join("readme-app"))
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    cargo(&["build"]);
    let executable = target_dir().join("readme-app/debug/app");
    let output = sandbox.trace(["record", "--", executable.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert!(!archive.events.is_empty());

    let tree = cargo(&["tree", "-e", "normal", "--prefix", "none", "--no-dedupe"]);
    let crates: BTreeSet<&str> =
        tree.lines().filter(|line| !line.is_empty()).map(|line| line.trim_end_matches(" (*)")).collect();
    assert!(crates.len() <= 40, "{} crates: {crates:#?}", crates.len());
}

#[test]
fn the_two_commands_are_there() {
    let blocks = pages::blocks(&pages::read("README.md"));
    let commands = blocks.iter().filter(|block| ["console", "sh"].contains(&&*block.language));
    let commands: Vec<&str> = commands.flat_map(|block| block.text.lines()).collect();
    assert_eq!(
        commands,
        [
            "cargo build --release -p trace-cli -p demo --bin trace --example demo && target/release/trace \
             record -o demo.fxt -- target/release/examples/demo",
            "cargo test --workspace",
        ],
        "README.md has two commands, which set everything up"
    );
}

/// In a shell whose `PATH` begins with what was built, the system's commands stay what they are.
#[test]
fn programs_that_are_built_shadow_no_command() {
    let built = program("trace").parent().expect("a directory").display().to_string();
    let system = std::env::var("PATH").expect("a PATH");
    let run = |path: &str, script: &str| {
        let output = Command::new("sh").args(["-c", script]).env("PATH", path).output().expect("sh runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let path = format!("{built}:{system}");
    assert_eq!(run(&path, "command -v trace").trim_end(), format!("{built}/trace"));
    for command in ["strings", "parallel", "memory", "first", "local", "words", "pattern"] {
        let found = format!("command -v {command}");
        assert_eq!(run(&path, &found), run(&system, &found), "{command}");
    }
    // Where there are binutils, they find texts of the program.
    if !run(&system, "command -v strings").is_empty() {
        let found = run(&path, &format!("strings -n 12 {built}/trace | grep -m 1 recording"));
        assert!(found.contains("recording"), "{found:?}");
    }
}
