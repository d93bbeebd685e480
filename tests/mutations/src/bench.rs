//! Where the code is broken: a copy of the tracked files, which is built in a directory of its own.

use crate::Edit;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Longest that a build or a test without a mutation may take.
const LIMIT: Duration = Duration::from_secs(1200);

/// The package of the scenarios.
pub const SCENARIOS: &str = "trace-tests";

/// How a test went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Green,
    Red,
    /// The broken code does not compile.
    Unviable,
    /// The deadline came first.
    Late,
}

pub struct Bench {
    /// It keeps its place, so that what is built of it can be used again.
    pub tree: PathBuf,
    target: PathBuf,
    /// For mutations alone: it begins when the first test has been green on sound code.
    budget: Option<Duration>,
    deadline: Option<Instant>,
    /// How long each test takes on sound code.
    sound: BTreeMap<Vec<String>, Duration>,
}

impl Bench {
    pub fn new(workspace: &Path, budget: Option<Duration>) -> io::Result<Self> {
        let target = workspace.join("target/mutations");
        let bench =
            Self { tree: target.join("tree"), target, budget, deadline: None, sound: BTreeMap::new() };
        let listed = Command::new("git")
            .current_dir(workspace)
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        let names: BTreeSet<&Path> = listed.split_terminator('\0').map(Path::new).collect();
        for name in names.iter().filter(|name| workspace.join(name).is_file()) {
            write_if_new(&bench.tree.join(name), &fs::read(workspace.join(name))?)?;
            let mode = fs::metadata(workspace.join(name))?.permissions();
            fs::set_permissions(bench.tree.join(name), mode)?;
        }
        bench.remove_others(&bench.tree, &|name| names.contains(name) && workspace.join(name).is_file())?;
        Ok(bench)
    }

    fn remove_others(&self, directory: &Path, is_kept: &dyn Fn(&Path) -> bool) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                self.remove_others(&path, is_kept)?;
            } else if !is_kept(path.strip_prefix(&self.tree).expect("it is in the tree")) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Breaks the code, runs its tests until one is red, and mends the code. An error means that a test is no
    /// good.
    pub fn try_out(&mut self, edit: &Edit) -> io::Result<Outcome> {
        let path = self.tree.join(&edit.file);
        let mut outcome = Outcome::Green;
        for test in &edit.tests {
            let limit = match self.sound_time(test)? {
                Some(time) => time * 5 + Duration::from_secs(20),
                None => return Ok(Outcome::Late),
            };
            let original = fs::read_to_string(&path)?;
            let mut broken = original.clone();
            broken.replace_range(edit.range.clone(), &edit.text);
            fs::write(&path, broken)?;
            let tried = self.test(test, limit);
            fs::write(&path, original)?;
            outcome = tried?;
            if outcome != Outcome::Green {
                break;
            }
        }
        Ok(outcome)
    }

    /// How long a test takes on sound code, where it has to be green; `None` if the deadline came first.
    fn sound_time(&mut self, test: &[String]) -> io::Result<Option<Duration>> {
        if let Some(time) = self.sound.get(test) {
            return Ok(Some(*time));
        }
        let built = self.cargo(test, &["--no-run"], LIMIT)?;
        if !built.status.success() && !self.is_late() {
            return Err(io::Error::other(String::from_utf8_lossy(&built.stderr).into_owned()));
        }
        let start = Instant::now();
        match self.test(test, LIMIT)? {
            Outcome::Green => {
                self.sound.insert(test.to_vec(), start.elapsed());
                self.deadline = self.deadline.or(self.budget.map(|budget| Instant::now() + budget));
                Ok(Some(start.elapsed()))
            }
            Outcome::Late => Ok(None),
            other => Err(io::Error::other(format!("on sound code, {} is {other:?}", test.join(" ")))),
        }
    }

    fn test(&self, test: &[String], limit: Duration) -> io::Result<Outcome> {
        let built = self.cargo(test, &["--no-run"], LIMIT)?;
        if self.is_late() {
            return Ok(Outcome::Late);
        }
        if !built.status.success() {
            return Ok(Outcome::Unviable);
        }
        let output = self.cargo(test, &[], limit)?;
        if output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout);
            // Some tests are programs of their own, which have no such lines.
            let is_nothing = text.contains("running 0 tests") && !text.contains(" ... ok");
            return if is_nothing { Err(io::Error::other("no such test")) } else { Ok(Outcome::Green) };
        }
        Ok(if self.is_late() { Outcome::Late } else { Outcome::Red })
    }

    fn cargo(&self, test: &[String], option: &[&str], limit: Duration) -> io::Result<Output> {
        let left = self.deadline.map_or(limit, |deadline| deadline.saturating_duration_since(Instant::now()));
        // Rounded up: what it kills at the deadline is late, and not red.
        let seconds = (left.min(limit).as_secs() + 1).to_string();
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", &seconds, "cargo", "test"]);
        // Scenarios have the programs that they start built as `cargo build` does.
        let is_scenario = test.iter().any(|word| word == SCENARIOS);
        if !is_scenario {
            command.args(["--profile", "mutants"]);
        }
        // Options stand before the name of the test, or before what is for the test program.
        let (arguments, name) =
            test.split_at(test.iter().position(|word| word == "--").unwrap_or(test.len()));
        command.args(arguments).args(option).args(name);
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "1");
        // Enough for tests of chance to find what was broken.
        command.env("PROPTEST_CASES", "500").output()
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }
}

/// Writes a file that is not there or differs; what is the same already stays untouched, and built.
fn write_if_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("a file is in a directory"))?;
    fs::write(path, bytes)
}
