//! Mutants: cargo-mutants lists them, for the files of `.cargo/mutants.toml`.

use crate::Edit;
use regex::RegexSet;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// So many mutants are through in a week of nights.
const MOST: usize = 2000;

/// As `cargo mutants --list --json` writes them.
#[derive(Deserialize)]
struct Mutant {
    name: String,
    file: PathBuf,
    package: String,
    span: Span,
    replacement: String,
}

#[derive(Deserialize)]
struct Span {
    start: Position,
    end: Position,
}

#[derive(Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

#[derive(Deserialize)]
struct Config {
    exclude_re: Vec<String>,
}

/// All mutants of the list.
pub fn list(root: &Path) -> Result<Vec<Edit>, String> {
    let edits = edits(root, None)?;
    if edits.len() > MOST {
        return Err(format!("{} mutants in .cargo/mutants.toml are more than {MOST}", edits.len()));
    }
    Ok(edits)
}

/// Those in a diff.
pub fn in_diff(root: &Path, diff: &Path) -> Result<Vec<Edit>, String> {
    edits(root, Some(diff))
}

fn edits(root: &Path, diff: Option<&Path>) -> Result<Vec<Edit>, String> {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["mutants", "--list", "--json"]);
    command.args(diff.iter().flat_map(|diff| [Path::new("--in-diff"), diff]));
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("cargo mutants: {}", String::from_utf8_lossy(&output.stderr)));
    }
    // A diff without Rust gives no list at all.
    let list = if output.stdout.is_empty() { b"[]".as_slice() } else { &output.stdout };
    let mutants: Vec<Mutant> = serde_json::from_slice(list).map_err(|error| error.to_string())?;
    // It does not apply these to fields that are left out.
    let config = fs::read_to_string(root.join(".cargo/mutants.toml")).map_err(|error| error.to_string())?;
    let config: Config = toml::from_str(&config).map_err(|error| error.to_string())?;
    let excluded = RegexSet::new(config.exclude_re).map_err(|error| error.to_string())?;
    mutants
        .into_iter()
        .filter(|mutant| !excluded.is_match(&mutant.name))
        .map(|mutant| mutant.edit(root))
        .collect()
}

impl Mutant {
    fn edit(self, root: &Path) -> Result<Edit, String> {
        let text = fs::read_to_string(root.join(&self.file)).map_err(|error| error.to_string())?;
        let at = |position: &Position| offset(&text, position).ok_or(format!("{}: no such place", self.name));
        let range = at(&self.span.start)?..at(&self.span.end)?;
        let tests = vec![["-p", &self.package, "--tests"].map(str::to_owned).to_vec()];
        let (name, file, text) = (self.name, self.file, self.replacement);
        Ok(Edit { name, file, range, text, tests, may_survive: false, is_patch: false })
    }
}

/// Lines and columns count from 1, and columns are characters.
fn offset(text: &str, position: &Position) -> Option<usize> {
    let mut lines = text.split_inclusive('\n');
    let before: usize = lines.clone().take(position.line - 1).map(str::len).sum();
    let line = lines.nth(position.line - 1)?;
    let column = line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(position.column - 1)?;
    Some(before + column)
}
