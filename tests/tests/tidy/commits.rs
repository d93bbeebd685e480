//! The form of commits.

use super::COMMITS;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use trace_tests::build::workspace;
use trace_tests::skip::skip;

/// The last commit of the old form.
const BASE: &str = "4fef45c6921c4545c8265c0380c78690666695e4";

/// Longest subject, in characters.
const MAX_SUBJECT: usize = 72;

/// Areas beside the crates.
const OTHER_AREAS: [&str; 13] = [
    "benches",
    "build",
    "ci",
    "docs",
    "examples",
    "fuzz",
    "ktrace",
    "model",
    "packaging",
    "style",
    "tests",
    "tidy",
    "workspace",
];

/// Beginnings of subjects that do not say what changed.
const EMPTY: [&str; 16] = [
    "address comments",
    "address review",
    "apply review",
    "clean up",
    "fix bugs",
    "fix issues",
    "fix problems",
    "fix stuff",
    "fix some",
    "fix things",
    "fix what",
    "improve things",
    "mend what",
    "various",
    "wip",
    "work on",
];

/// The areas: the crates without `trace-` in front, and the rest of the repository.
fn areas() -> BTreeSet<String> {
    let folders = fs::read_dir(workspace().join("crates")).expect("crates").flatten();
    let names = folders.map(|folder| folder.file_name().into_string().expect("UTF-8"));
    let crates = names.map(|name| name.strip_prefix("trace-").map_or(name.clone(), str::to_owned));
    crates.chain(OTHER_AREAS.map(str::to_owned)).collect()
}

/// What is wrong with a commit's subject.
fn problem_of_subject(subject: &str, areas: &BTreeSet<String>) -> Option<String> {
    let length = subject.chars().count();
    if length > MAX_SUBJECT {
        return Some(format!("{length} characters, at most {MAX_SUBJECT}"));
    }
    // git's own subject.
    if subject.starts_with("Revert \"") {
        return None;
    }
    let Some((named, change)) = subject.split_once(": ") else {
        return Some("no area: write `area: verb object`".to_owned());
    };
    if let Some(unknown) = named.split(", ").find(|area| !areas.contains(*area)) {
        return Some(format!("no area is named {unknown:?}; there are {areas:?}"));
    }
    if named.split(", ").count() > 2 {
        return Some("at most two areas".to_owned());
    }
    if ["an attack", "a review", "reviewers", "feedback"].iter().any(|empty| change.contains(empty)) {
        return Some("it says who found something, and not what changed".to_owned());
    }
    if !change.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        return Some("the verb behind the area begins with a small letter".to_owned());
    }
    if change.ends_with('.') {
        return Some("a full stop at the end".to_owned());
    }
    if !change.contains(' ') {
        return Some("a verb without an object".to_owned());
    }
    let is_empty = |empty: &&&str| {
        change.strip_prefix(**empty).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    EMPTY.iter().find(is_empty).map(|empty| format!("{empty:?} does not say what changed"))
}

/// Whether a body has text beside its trailers.
fn has_reason(body: &str) -> bool {
    let is_trailer = |line: &str| {
        let key = line.split_once(':').map_or("", |(key, _)| key);
        let is_of_git = key.to_ascii_lowercase().ends_with("-by") || key == "Change-Id";
        is_of_git || line.starts_with("(cherry picked from commit ")
    };
    body.lines().any(|line| !line.trim().is_empty() && !is_trailer(line))
}

/// What git prints; the reason if it fails.
fn git(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(workspace()).args(arguments);
    // A hook that runs the tests has set these, perhaps for another repository.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let output = command.output().map_err(|error| format!("git does not run: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// The commits since the base, each as its hash, subject and body.
fn commits() -> Result<Vec<[String; 3]>, String> {
    // A source archive may lie inside of another repository.
    if !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        return Err("the workspace is not the root of a repository".to_owned());
    }
    git(&["rev-parse", "--verify", "--quiet", &format!("{BASE}^{{commit}}")])
        .map_err(|_| format!("the history does not reach back to {BASE}"))?;
    let log = git(&["log", "--no-merges", "--format=%h%x00%s%x00%b%x01", &format!("{BASE}..HEAD")])?;
    let commits = log.split('\u{1}').map(str::trim_start).filter(|commit| !commit.is_empty());
    let fields = commits.map(|commit| {
        let mut fields = commit.splitn(3, '\0').map(str::to_owned);
        [(); 3].map(|()| fields.next().unwrap_or_default())
    });
    Ok(fields.collect())
}

#[test]
fn subjects_say_what_changed_where() {
    let areas = areas();
    for (subject, is_right) in [
        ("manager: refuse a second recording of one program", true),
        ("zx-sim: close descriptors that SO_PASSPIDFD adds", true),
        ("manager, client: confirm parts of lent files", true),
        ("docs: move the cost tables to performance.md", true),
        ("Manager: refuse a second recording", false),
        ("manager: Refuse a second recording", false),
        ("manager: refuse a second recording.", false),
        ("nowhere: refuse a second recording", false),
        ("refuse a second recording of one program", false),
        ("manager: various repairs", false),
        ("manager: mend what an attack found", false),
        ("manager: repair what a review found", false),
        ("manager, client, cli: refuse a second recording", false),
        ("Revert \"manager: refuse a second recording\"", true),
        ("manager: refactor", false),
        ("manager: moreover, a long line that says which of its commands are not answered", false),
        ("tests: move the helpers of scenarios", true),
    ] {
        let problem = problem_of_subject(subject, &areas);
        assert_eq!(problem.is_none(), is_right, "{subject}: {problem:?} ({COMMITS})");
    }
    assert!(has_reason("It failed.\n") && !has_reason("\nCo-Authored-By: A\n"), "{COMMITS}");
    let commits = match commits() {
        Ok(commits) => commits,
        Err(reason) => return skip("tidy::commits::subjects_say_what_changed_where", "history", &reason),
    };
    let mut wrong = Vec::new();
    for [hash, subject, body] in &commits {
        wrong.extend(
            problem_of_subject(subject, &areas).map(|problem| format!("{hash} {subject}: {problem}")),
        );
        if !has_reason(body) {
            wrong.push(format!("{hash} {subject}: no body; give the reason and what showed that it works"));
        }
    }
    assert!(wrong.is_empty(), "({COMMITS}) {wrong:#?}");
}

/// The examples of the page are judged as the page says.
#[test]
fn examples_of_subjects_are_judged() {
    let page = fs::read_to_string(workspace().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let section = page.split("\n## Commits\n").nth(1).unwrap_or_else(|| panic!("no section ({COMMITS})"));
    let rows =
        section.lines().take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with("| "));
    let areas = areas();
    let mut count = 0;
    for row in rows.skip(1) {
        let cells: Vec<&str> =
            row.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
        let [before, after] = cells[..] else { panic!("{row} ({COMMITS})") };
        assert!(problem_of_subject(before, &areas).is_some(), "{before} passes ({COMMITS})");
        assert_eq!(problem_of_subject(after, &areas), None, "{after} ({COMMITS})");
        count += 1;
    }
    assert!(count > 2, "the examples are not found ({COMMITS})");
    let missing: Vec<_> = OTHER_AREAS.iter().filter(|area| !section.contains(&format!("`{area}`"))).collect();
    assert!(missing.is_empty(), "the page lacks the areas {missing:?} ({COMMITS})");
}
