//! Breaks the code, one place at a time, and looks whether tests go red.
//!
//! * `mutations --draw SEED --seconds N`: mutants in what differs from the parent, drawn by the seed, as many
//!   as fit. Where nothing differs in the files of the list, mutants of the whole list, whose survivors are
//!   reported and no error.
//! * `mutations --shard K/N`: the part K of N of the list.
//! * `mutations --mutants WORDS...`: mutants whose names hold one of these.
//! * `mutations --patches [WORDS...]`: patches, or those whose names hold one of these.
//! * `mutations --check`: each patch has one place, and the list is no longer than a week of nights.
//!
//! Mutants are those of `cargo mutants --list` in the files of `.cargo/mutants.toml`. Patches are in
//! `tests/patches.toml`.
#![forbid(unsafe_code)]

mod bench;
mod mutant;
mod patch;

use bench::{Bench, Outcome};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Mutants that are drawn: more than fit.
const DRAWN: usize = 30;

/// Packages that others depend on, behind those.
const ORDER: [&str; 8] = [
    "trace-manager",
    "trace-analysis",
    "trace-model",
    "trace-archive",
    "trace-engine",
    "trace-reader",
    "trace-protocol",
    "trace-format",
];

/// A change of one place.
struct Edit {
    name: String,
    file: PathBuf,
    range: Range<usize>,
    text: String,
    /// Arguments of `cargo test`, of which one has to go red.
    tests: Vec<Vec<String>>,
    /// Whether it is no error that no test goes red.
    may_survive: bool,
    /// Whether it is an error that it does not compile.
    is_patch: bool,
}

impl Edit {
    /// The directory of its package.
    fn package(&self) -> &str {
        self.file.iter().nth(1).and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// One package goes before what it depends on, so that a broken one does not have others compiled again;
    /// scenarios, which need everything, are last.
    fn turn(&self) -> (bool, usize, Vec<Vec<String>>) {
        let is_scenario = self.tests.iter().flatten().any(|word| word == bench::SCENARIOS);
        let place = ORDER.iter().position(|name| self.file.starts_with(Path::new("crates").join(name)));
        (is_scenario, place.map_or(0, |place| place + 1), self.tests.clone())
    }
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the package is inside the workspace")
}

/// What git says, if it succeeds and says something.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(workspace()).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success() && !text.trim().is_empty()).then_some(text)
}

/// What has been changed since the state that was published last, or else by the newest commit.
fn mutants_in_diff(root: &Path) -> Result<Vec<Edit>, String> {
    let head = git(&["rev-parse", "HEAD"]);
    let published = git(&["merge-base", "origin/main", "HEAD"]).filter(|base| Some(base) != head.as_ref());
    let base = published.unwrap_or_else(|| "HEAD~1".to_owned());
    // As cargo-mutants reads it, whatever the user's configuration of git says.
    const DIFF: [&str; 5] = ["diff", "--no-ext-diff", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"];
    if git(&["rev-parse", "--verify", base.trim()]).is_none() {
        println!("git has no {}, so the diff is not known", base.trim());
        return Ok(Vec::new());
    }
    let Some(diff) = git(&[&DIFF[..], &[base.trim()]].concat()) else { return Ok(Vec::new()) };
    let path = root.with_file_name("diff");
    fs::write(&path, diff).map_err(|error| error.to_string())?;
    mutant::in_diff(root, &path)
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

/// The edits that the arguments ask for, and of how many they were taken.
fn chosen(arguments: &[&str], root: &Path) -> Result<(Vec<Edit>, String), String> {
    let all = || mutant::list(root);
    let (mut edits, of) = match arguments {
        ["--draw", seed, ..] => {
            let in_diff = mutants_in_diff(root)?;
            let (mut edits, of) =
                if in_diff.is_empty() { (all()?, "the list") } else { (in_diff, "the diff") };
            // What survives elsewhere is not this change's doing.
            edits.iter_mut().for_each(|edit| edit.may_survive = of == "the list");
            let of = format!("{} mutants in {of}", edits.len());
            edits.sort_by_cached_key(|edit| drawn(seed, &edit.name));
            edits.truncate(DRAWN);
            (edits, of)
        }
        ["--shard", shard] => {
            let numbers = shard.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
            let (k, n): (usize, usize) = numbers.filter(|(k, n)| k < n).ok_or("K/N, K from 0")?;
            let edits = all()?;
            let of = format!("{} mutants in the list", edits.len());
            (edits.into_iter().skip(k).step_by(n).collect(), of)
        }
        ["--mutants", words @ ..] => {
            let edits = all()?;
            let of = format!("{} mutants in the list", edits.len());
            (
                edits
                    .into_iter()
                    .filter(|edit| words.iter().any(|words| edit.name.contains(words)))
                    .collect(),
                of,
            )
        }
        ["--patches", words @ ..] => {
            let mut edits = patch::edits(root)?;
            let of = format!("{} patches", edits.len());
            edits.retain(|edit| words.is_empty() || words.iter().any(|words| edit.name.contains(words)));
            (edits, of)
        }
        _ => {
            return Err(
                "mutations --draw SEED --seconds N | --shard K/N | --mutants WORDS... | --patches [WORDS...]"
                    .to_owned(),
            );
        }
    };
    match arguments {
        // Few packages fit: others for each seed.
        ["--draw", seed, ..] => edits.sort_by_cached_key(|edit| (drawn(seed, edit.package()), edit.turn())),
        _ => edits.sort_by_key(Edit::turn),
    }
    Ok((edits, of))
}

fn run(arguments: &[&str]) -> Result<bool, String> {
    let start = Instant::now();
    let seconds = match arguments {
        [.., "--seconds", seconds] => Some(seconds.parse().map_err(|_| "not a number of seconds")?),
        _ => None,
    };
    if arguments == ["--check"] {
        println!("{} patches have one place each", patch::edits(workspace())?.len());
        println!("{} mutants are in the list", mutant::list(workspace())?.len());
        return Ok(true);
    }
    let mut bench =
        Bench::new(workspace(), seconds.map(Duration::from_secs)).map_err(|error| error.to_string())?;
    let (edits, of) = chosen(arguments, &bench.tree.clone())?;
    let (mut red, mut green, mut failed, mut unviable, mut untried) = (0, 0, 0, 0, 0);
    for edit in &edits {
        let began = Instant::now();
        let (word, count) = match bench.try_out(edit) {
            Ok(Outcome::Late) => break,
            Ok(Outcome::Red) => ("red", &mut red),
            Ok(Outcome::Unviable) if edit.is_patch => ("DOES NOT COMPILE", &mut failed),
            Ok(Outcome::Unviable) => ("does not compile", &mut unviable),
            Ok(Outcome::Green) if edit.may_survive => ("not red", &mut green),
            Ok(Outcome::Green) => ("NOT RED", &mut failed),
            Err(error) => {
                println!("{error}");
                if edit.may_survive { ("not tried", &mut untried) } else { ("NOT TRIED", &mut failed) }
            }
        };
        *count += 1;
        println!("{word} after {:.1} s: {}", began.elapsed().as_secs_f32(), edit.name);
    }
    let tried = red + green + failed + unviable;
    println!(
        "{tried} of {} that were chosen from {of} were tried in {} s: {red} red, {green} not red outside the \
         diff, {unviable} do not compile; of {untried} the tests are red without them",
        edits.len(),
        start.elapsed().as_secs()
    );
    println!("{red} passed, {failed} failed");
    if tried == 0 && !has_nothing_to_try(arguments, &edits) {
        return Err("nothing was tried".to_owned());
    }
    Ok(failed == 0)
}

/// A change may have no mutants; words in the arguments are meant to find something.
fn has_nothing_to_try(arguments: &[&str], edits: &[Edit]) -> bool {
    edits.is_empty() && matches!(arguments, ["--draw", ..])
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A patch without a place breaks nothing, and one with two breaks something else some day.
    #[test]
    fn each_patch_has_one_place() {
        patch::edits(workspace()).unwrap();
    }
}
