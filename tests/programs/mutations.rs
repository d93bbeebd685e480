//! Breaks the code in known ways, one at a time, and looks whether the named test goes red.
//!
//! `cargo run -p trace-tests --bin mutations [WORDS]`: those whose name holds the words; all without. Works on a copy
//! of the tracked files, so that nothing happens to the originals. The list is `tests/mutations.json`.
#![forbid(unsafe_code)]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use trace_tests::build::workspace;

/// One way to break the code.
struct Mutation {
    name: String,
    file: PathBuf,
    from: String,
    to: String,
    /// Arguments of `cargo test`; the last is the name of a test, or the beginning of several.
    test: Vec<String>,
}

impl Mutation {
    fn of(value: &Value) -> Option<Self> {
        let text = |field: &str| value[field].as_str().map(str::to_owned);
        let test = value["test"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let (name, file) = (text("name")?, PathBuf::from(text("file")?));
        Some(Self { name, file, from: text("from")?, to: text("to")?, test })
    }
}

/// How a test went.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Green,
    Red,
    /// It was not built, or there is none of this name.
    None(String),
}

fn test(directory: &Path, arguments: &[String]) -> std::io::Result<Outcome> {
    let output = Command::new(env!("CARGO"))
        .current_dir(directory)
        .arg("test")
        .args(arguments)
        .env("CARGO_TARGET_DIR", directory.join("target"))
        // One crate is compiled again and again here.
        .env("CARGO_INCREMENTAL", "1")
        // Enough for tests of chance to find what was broken.
        .env("PROPTEST_CASES", "500")
        .output()?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let has_tests = stdout.lines().any(|line| line.starts_with("test ") && !line.contains("result:"));
    // Some tests are programs of their own, which say what they did or die.
    let is_program = !stdout.contains("running ") && !stdout.trim().is_empty();
    let has_died = ["panicked at", "(signal:"].iter().any(|word| stderr.contains(word));
    let has_run = has_tests || is_program || has_died;
    Ok(match (has_run, output.status.success()) {
        (true, true) => Outcome::Green,
        (true, false) => Outcome::Red,
        (false, _) => Outcome::None(stderr.lines().filter(|line| line.contains("error")).take(3).collect()),
    })
}

/// Copies the tracked files.
fn copy(to: &Path) -> std::io::Result<()> {
    let output = Command::new("git").current_dir(workspace()).args(["ls-files", "-z"]).output()?;
    for name in String::from_utf8_lossy(&output.stdout).split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (workspace().join(name), to.join(name));
        if from.is_file() {
            fs::create_dir_all(to.parent().expect("a file is in a directory"))?;
            fs::copy(from, to)?;
        }
    }
    Ok(())
}

fn main() -> std::io::Result<ExitCode> {
    let words = std::env::args().nth(1).unwrap_or_default();
    let list = fs::read_to_string(workspace().join("tests/mutations.json"))?;
    let list: Vec<Value> = serde_json::from_str(&list)?;
    let mutations: Vec<Mutation> =
        list.iter().map(|value| Mutation::of(value).expect("name, file, from, to and test")).collect();
    let directory = tempfile::tempdir()?;
    copy(directory.path())?;
    let (mut killed, mut failed) = (0, 0);
    for mutation in mutations.iter().filter(|mutation| mutation.name.contains(&words)) {
        let path = directory.path().join(&mutation.file);
        let original = fs::read_to_string(&path)?;
        let places = original.matches(&mutation.from).count();
        let mut outcome = match test(directory.path(), &mutation.test)? {
            Outcome::Green if places == 1 => None,
            Outcome::Green => Some(format!("its code is there {places} times, not once")),
            other => Some(format!("without it the test is {other:?}")),
        };
        if outcome.is_none() {
            fs::write(&path, original.replacen(&mutation.from, &mutation.to, 1))?;
            outcome = match test(directory.path(), &mutation.test)? {
                Outcome::Red => None,
                other => Some(format!("the test is {other:?}")),
            };
            fs::write(&path, &original)?;
        }
        match outcome {
            None => {
                killed += 1;
                println!("red as it should be: {}", mutation.name);
            }
            Some(why) => {
                failed += 1;
                println!("NOT RED: {}: {why}", mutation.name);
            }
        }
    }
    println!("{killed} passed, {failed} failed");
    Ok(if failed == 0 && killed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
