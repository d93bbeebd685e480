//! Breaks the code in known ways, one at a time, and looks whether the named test goes red.
//!
//! `mutations WORDS`: those whose name holds the words. `mutations --all`. `mutations --draw SEED`: those
//! whose file, test or entry differs from `origin/main`, and five more that the seed decides; ten where
//! nothing differs. The list is `tests/mutations.json`.
//!
//! A mutation either is an edit, made in a copy of the tracked files, or a switch that is compiled in and
//! that the environment turns on (`trace_format::mutants`), for tests that run whole programs. Each test is
//! run once without any mutation, and has to be green.
#![forbid(unsafe_code)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use trace_tests::build::workspace;

/// How long a test may take, in seconds. One that does not end is red.
const LIMIT_S: u32 = 600;
/// Drawn beside those that changed, and where nothing has.
const DRAWN: usize = 5;
const DRAWN_ALONE: usize = 10;

/// One way to break the code.
#[derive(PartialEq)]
struct Mutation {
    name: String,
    file: PathBuf,
    how: How,
    /// Arguments of `cargo test`; the last is the name of a test, or the beginning of several.
    test: Vec<String>,
}

#[derive(PartialEq)]
enum How {
    Edit { from: String, to: String },
    Switch(String),
}

impl Mutation {
    fn of(value: &Value) -> Option<Self> {
        let text = |field: &str| value[field].as_str().map(str::to_owned);
        let test = value["test"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let how = match text("switch") {
            Some(switch) => How::Switch(switch),
            None => How::Edit { from: text("from")?, to: text("to")? },
        };
        Some(Self { name: text("name")?, file: PathBuf::from(text("file")?), how, test })
    }

    fn list(text: &str) -> serde_json::Result<Vec<Self>> {
        let list: Vec<Value> = serde_json::from_str(text)?;
        Ok(list
            .iter()
            .map(|value| Self::of(value).expect("name, file, test, and switch or from and to"))
            .collect())
    }

    /// Where its test may stand: a file or a directory.
    fn test_places(&self) -> Vec<PathBuf> {
        let behind = |option: &str| {
            let place = self.test.iter().position(|argument| argument == option)?;
            self.test.get(place + 1).map(String::as_str)
        };
        let package = behind("-p").map_or(PathBuf::from("tests"), |name| Path::new("crates").join(name));
        let modules: PathBuf = self.test.last().into_iter().flat_map(|path| path.split("::")).collect();
        let root = behind("--test").map_or(package.join("src"), |test| package.join("tests").join(test));
        let within = modules.ancestors().filter(|path| !path.as_os_str().is_empty());
        let mut places: Vec<PathBuf> =
            within.map(|path| root.join(path).with_added_extension("rs")).collect();
        places.extend(behind("--test").map(|_| root.with_added_extension("rs")));
        places
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

/// Where tests run.
struct Bench {
    /// A workspace, which keeps its place so that what is built of it can be used again.
    root: PathBuf,
    /// A copy of the files that git tracks or would, below that workspace. Cargo names what it builds after
    /// the paths of packages in their workspace: so nothing of the copy is taken for a part of the original.
    copy: PathBuf,
    /// Where the original is built: the copy has all other packages in common with it.
    target: PathBuf,
}

impl Bench {
    fn new() -> io::Result<Self> {
        // <target>/<profile>/mutations
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).ok_or(io::ErrorKind::NotFound)?.to_owned();
        let root = target.join("mutations");
        let bench = Self { copy: root.join(TREE), root, target };
        bench.refresh()?;
        Ok(bench)
    }

    /// Makes the copy what the tracked files are now; what is the same already stays untouched, and built.
    fn refresh(&self) -> io::Result<()> {
        let tracked = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .ok_or_else(|| io::Error::other("git ls-files failed"))?;
        let is_of_root = |name: &&str| ["Cargo.toml", "Cargo.lock"].contains(name);
        let tracked: BTreeSet<&str> =
            tracked.split('\0').filter(|name| !name.is_empty() && !is_of_root(name)).collect();
        for name in tracked.iter().filter(|name| workspace().join(name).is_file()) {
            write_if_new(&self.copy.join(name), &fs::read(workspace().join(name))?)?;
        }
        let manifest = fs::read_to_string(workspace().join("Cargo.toml"))?;
        write_if_new(&self.root.join("Cargo.toml"), below_tree(&manifest).as_bytes())?;
        write_if_new(&self.root.join("Cargo.lock"), &fs::read(workspace().join("Cargo.lock"))?)?;
        self.remove_others(&self.copy, &tracked)
    }

    fn remove_others(&self, directory: &Path, tracked: &BTreeSet<&str>) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.strip_prefix(&self.copy).expect("it is in the copy").to_string_lossy();
            if path.is_dir() {
                self.remove_others(&path, tracked)?;
            } else if !tracked.contains(&*name) || !workspace().join(&*name).is_file() {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Runs the test of a mutation, with the switch turned on if there is one.
    fn test(&self, mutation: &Mutation, is_broken: bool) -> io::Result<Outcome> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", &LIMIT_S.to_string(), env!("CARGO"), "test"]).args(&mutation.test);
        match &mutation.how {
            // One crate is compiled again and again here.
            How::Edit { .. } => command.current_dir(&self.copy).env("CARGO_INCREMENTAL", "1"),
            How::Switch(_) => command.current_dir(workspace()),
        };
        if let (How::Switch(switch), true) = (&mutation.how, is_broken) {
            command.env("TRACE_MUTANT", switch);
        }
        // Enough for tests of chance to find what was broken.
        let output = command.env("CARGO_TARGET_DIR", &self.target).env("PROPTEST_CASES", "500").output()?;
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let has_tests = stdout.lines().any(|line| line.starts_with("test ") && !line.contains("result:"));
        // Some tests are programs of their own, which say what they did or die.
        let is_program = !stdout.contains("running ") && !stdout.trim().is_empty();
        let has_died = ["panicked at", "(signal:"].iter().any(|word| stderr.contains(word));
        let has_run = has_tests || is_program || has_died;
        let is_error = |line: &&str| line.contains("error");
        Ok(match (has_run, output.status.success()) {
            (true, true) => Outcome::Green,
            (true, false) => Outcome::Red,
            (false, _) => Outcome::None(stderr.lines().filter(is_error).take(3).collect()),
        })
    }

    /// Breaks the code, runs the test, and mends the code. Why it is not as it should be.
    fn try_out(&self, mutation: &Mutation) -> io::Result<Option<String>> {
        let why = |outcome: Outcome| match outcome {
            Outcome::Red => None,
            other => Some(format!("the test is {other:?}")),
        };
        let How::Edit { from, to } = &mutation.how else {
            return Ok(why(self.test(mutation, true)?));
        };
        let path = self.copy.join(&mutation.file);
        let original = fs::read_to_string(&path)?;
        let places = original.matches(from).count();
        if places != 1 {
            return Ok(Some(format!("its code is there {places} times, not once")));
        }
        fs::write(&path, original.replacen(from, to, 1))?;
        let outcome = self.test(mutation, true);
        fs::write(&path, &original)?;
        Ok(why(outcome?))
    }
}

/// Where in its workspace the copy is.
const TREE: &str = "tree";

/// A workspace's manifest, with all of its packages moved into the tree.
fn below_tree(manifest: &str) -> String {
    let mut manifest = manifest.replace("path = \"", &format!("path = \"{TREE}/"));
    for directory in ["benches", "crates", "examples", "tests"] {
        for end in ["/", "\""] {
            manifest =
                manifest.replace(&format!("\"{directory}{end}"), &format!("\"{TREE}/{directory}{end}"));
        }
    }
    manifest
}

/// Writes a file that is not there or differs; what is the same already stays untouched, and built.
fn write_if_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("a file is in a directory"))?;
    fs::write(path, bytes)
}

/// What git says, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(workspace()).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a mutation, its file or its test differs from `origin/main`.
fn changed(mutations: &[Mutation]) -> Vec<bool> {
    let base = git(&["merge-base", "origin/main", "HEAD"]).unwrap_or_default();
    let names = git(&["diff", "--name-only", base.trim()]).filter(|_| !base.is_empty()).unwrap_or_default();
    let files: BTreeSet<&Path> = names.lines().map(Path::new).collect();
    let before = git(&["show", &format!("{}:tests/mutations.json", base.trim())]);
    let before = before.and_then(|text| Mutation::list(&text).ok());
    let is_changed = |mutation: &Mutation| {
        let is_new = before.as_ref().is_some_and(|before| !before.contains(mutation));
        is_new
            || files.contains(mutation.file.as_path())
            || mutation.test_places().iter().any(|place| files.contains(place.as_path()))
    };
    mutations.iter().map(is_changed).collect()
}

/// Another order for each seed.
fn drawn(seed: &str, name: &str) -> u64 {
    // FNV-1a, and its bits mixed once more: neighbouring names differ in few.
    let hash =
        seed.bytes().chain([0]).chain(name.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Those that the arguments ask for.
fn chosen(all: Vec<Mutation>, arguments: &[&str]) -> Option<Vec<Mutation>> {
    let chosen = match arguments {
        ["--all"] => all,
        ["--draw", seed] => {
            let is_changed = changed(&all);
            let (mut chosen, mut others) = (Vec::new(), Vec::new());
            for (mutation, is_changed) in all.into_iter().zip(is_changed) {
                if is_changed { chosen.push(mutation) } else { others.push(mutation) }
            }
            others.sort_by_key(|mutation| drawn(seed, &mutation.name));
            others.truncate(if chosen.is_empty() { DRAWN_ALONE } else { DRAWN });
            chosen.extend(others);
            chosen
        }
        [words] if !words.starts_with('-') => {
            all.into_iter().filter(|mutation| mutation.name.contains(words)).collect()
        }
        _ => return None,
    };
    Some(chosen)
}

fn main() -> io::Result<ExitCode> {
    let all = Mutation::list(&fs::read_to_string(workspace().join("tests/mutations.json"))?)?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(mutations) = chosen(all, &arguments) else {
        eprintln!("mutations WORDS | --all | --draw SEED");
        return Ok(ExitCode::from(2));
    };
    let bench = Bench::new()?;
    let (mut killed, mut failed) = (0, 0);
    let mut sound: BTreeMap<&[String], bool> = BTreeMap::new();
    for mutation in &mutations {
        let why = match sound.get(mutation.test.as_slice()) {
            Some(true) => None,
            Some(false) => Some("without it the test is no good".to_owned()),
            None => {
                let outcome = bench.test(mutation, false)?;
                sound.insert(&mutation.test, outcome == Outcome::Green);
                (outcome != Outcome::Green).then(|| format!("without it the test is {outcome:?}"))
            }
        };
        match why.map_or_else(|| bench.try_out(mutation), |why| Ok(Some(why)))? {
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
