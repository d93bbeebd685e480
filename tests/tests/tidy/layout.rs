//! Files and names, and what the page of the house style says of them.

use super::{
    CRATES, DOCUMENTATION, EDGES, ERRORS, FILES, GLOSSARY, NOT_SHIPPED, REPLACED, UNSAFE, UNSAFE_CODE, files,
    has_unsafe_code, is_test_code,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use trace_tests::build::workspace;

/// Longest file, in lines, tests included.
const MAX_LINES: usize = 700;

/// Longest source file of a crate, in lines without its tests.
const MAX_CODE_LINES: usize = 600;

/// Source files that may be longer, and why they are not split.
const LONG: [(&str, &str); 3] = [
    ("crates/trace-cli/src/args.rs", "the options of one command line, whose commands are read together"),
    ("crates/trace-cli/src/record.rs", "to be split by the states of a recording"),
    ("crates/trace-engine/src/api/macros.rs", "the forms of macros, which share their inner ones"),
];

/// Names that say nothing of what is in a file.
const EMPTY_NAMES: [&str; 8] =
    ["common", "helper", "helpers", "misc", "shared", "util", "utils", "utilities"];

/// Source files of crates, without those that have only tests.
fn sources() -> Vec<(String, String)> {
    let mut files = files(&["rs"]);
    files.retain(|(path, _)| path.starts_with("crates/") && path.contains("/src/") && !is_test_code(path));
    assert!(files.len() > 500, "source files are not found");
    files
}

/// The code of a file before its tests.
fn code(text: &str) -> &str {
    text.split("\nmod tests {").next().unwrap_or(text)
}

#[test]
fn files_are_not_too_long() {
    for (path, text) in files(&["rs", "mjs"]) {
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{path} has {lines} lines ({FILES})");
    }
    for (path, text) in sources() {
        let lines = code(&text).lines().count();
        let is_listed = LONG.iter().any(|(long, _)| *long == path);
        assert!(
            lines <= MAX_CODE_LINES || is_listed,
            "{path} has {lines} lines without its tests: split it, or list it with the reason ({FILES})"
        );
        assert!(
            lines > MAX_CODE_LINES || !is_listed,
            "{path} is no longer long: remove it from LONG ({FILES})"
        );
    }
    for (path, _) in LONG {
        assert!(workspace().join(path).exists(), "{path} is listed and does not exist ({FILES})");
    }
}

#[test]
fn files_are_named_by_their_nouns() {
    for (path, _) in files(&["rs"]).iter().filter(|(path, _)| path.contains("/src/")) {
        assert!(!path.ends_with("/mod.rs"), "{path}: put foo.rs beside foo/ ({FILES})");
        let is_empty = |part: &str| EMPTY_NAMES.contains(&part.trim_end_matches(".rs"));
        let found = path.split('/').find(|part| is_empty(part));
        assert!(found.is_none(), "{path}: {found:?} does not say what is in it ({FILES})");
    }
}

#[test]
fn modules_say_why_they_exist() {
    for (path, text) in sources() {
        assert!(text.starts_with("//!"), "{path} has no module doc ({DOCUMENTATION})");
    }
}

#[test]
fn no_name_begins_with_get() {
    for (path, text) in sources() {
        let found = code(&text).lines().find(|line| line.contains("fn get_"));
        assert!(found.is_none(), "{path}: {found:?} ({FILES})");
    }
}

/// Folders have the names of their packages, and lints stand in one place.
#[test]
fn crates_lie_flat_and_share_their_lints() {
    for entry in fs::read_dir(workspace().join("crates")).expect("crates").flatten() {
        let name = entry.file_name().into_string().expect("UTF-8");
        let Ok(manifest) = fs::read_to_string(entry.path().join("Cargo.toml")) else { continue };
        assert!(
            manifest.contains(&format!("\nname = \"{name}\"\n")),
            "crates/{name} has another name ({CRATES})"
        );
        // It has no code.
        let has_lints = manifest.contains("[lints]\nworkspace = true") || name == "workspace-hack";
        assert!(has_lints, "crates/{name} does not have the lints of the workspace ({CRATES})");
    }
}

/// What it offers would serve any other program as well.
#[test]
fn zx_sim_does_not_know_what_it_is_used_for() {
    for (path, text) in sources().iter().filter(|(path, _)| path.starts_with("crates/zx-sim/")) {
        let found = text.lines().find(|line| line.contains("trace") || line.contains("tracing"));
        assert!(found.is_none(), "{path}: {found:?} ({CRATES})");
    }
}

#[test]
fn listed_modules_have_unsafe_code() {
    for path in UNSAFE {
        let text = fs::read_to_string(workspace().join(path)).unwrap_or_default();
        assert!(has_unsafe_code(&text), "{path} has no unsafe code: remove it from UNSAFE ({UNSAFE_CODE})");
    }
}

/// Lower case without a full stop, since programs put them behind a colon.
#[test]
fn texts_of_errors_are_parts_of_sentences() {
    for (path, text) in sources() {
        for line in text.lines().filter(|line| line.trim_start().starts_with("#[error(\"")) {
            let text = line.trim_start().trim_start_matches("#[error(\"");
            let mut first = text.chars();
            let is_word =
                first.next().is_some_and(char::is_uppercase) && first.next().is_some_and(char::is_lowercase);
            assert!(!is_word, "{path}: {text} begins with a capital ({ERRORS})");
            assert!(
                !text.contains(".\")") && !text.contains(".\","),
                "{path}: {text} has a full stop ({ERRORS})"
            );
        }
    }
}

/// The lines of a section and of those below it.
fn section<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let level = heading.find(' ').expect("a heading");
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    let is_next = |line: &&str| line.starts_with('#') && line.find(' ').is_some_and(|found| found <= level);
    lines.take_while(|line| !is_next(line)).collect()
}

/// The rows of the tables of a section and of those below it, as cells.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let rows = section(page, heading).into_iter().filter(|line| line.starts_with("| "));
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// What a text has between backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn style() -> String {
    fs::read_to_string(workspace().join("docs/internals/style.md")).expect("the house style")
}

/// Each crate that the page names exists.
#[test]
fn crates_of_the_style_exist() {
    let known: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).chain(NOT_SHIPPED).collect();
    let rows = rows(&style(), "## Crates");
    assert!(rows.len() > 5, "the table of crates is not found ({CRATES})");
    for row in &rows[1..] {
        let unknown: Vec<&str> = code_spans(&row[0]).filter(|name| !known.contains(name)).collect();
        assert!(unknown.is_empty(), "no such crate: {unknown:?} ({CRATES})");
    }
}

/// Whether a text has a word that is no part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text.as_bytes()[..at], &text.as_bytes()[at + word.len()..]);
        !is_part(before.last()) && !is_part(after.first())
    })
}

/// The entries of the lists of a section: each with its word, and what that is.
fn entries(page: &str, heading: &str) -> Vec<(String, String)> {
    let section = section(page, heading).join(" ");
    let entries = section.split("* **").skip(1);
    entries
        .map(|entry| {
            let (word, rest) = entry.split_once("**: ").unwrap_or_else(|| panic!("{entry} ({GLOSSARY})"));
            let (is, _) = rest.split_once(" *Not:* ").unwrap_or_else(|| panic!("{entry} ({GLOSSARY})"));
            (word.to_owned(), is.to_owned())
        })
        .collect()
}

#[test]
fn the_glossary_is_that_of_the_code() {
    assert!(has_word("a Line { }", "Line") && !has_word("RawLine, Lines, Line_", "Line"), "{GLOSSARY}");
    let (page, sources) = (style(), sources());
    let glossary = entries(&page, "## Glossary");
    assert!(glossary.len() > 50, "the lists are not found ({GLOSSARY})");
    let mut words = BTreeSet::new();
    for (word, is) in &glossary {
        assert!(words.insert(word), "{word} is explained twice ({GLOSSARY})");
        for name in code_spans(is).filter(|name| name.starts_with(char::is_uppercase)) {
            let kinds = ["struct", "enum", "trait", "type"].map(|kind| format!("{kind} {name}"));
            let is_defined = |text: &str| kinds.iter().any(|kind| has_word(text, kind));
            assert!(sources.iter().any(|(_, text)| is_defined(text)), "{word}: no type {name} ({GLOSSARY})");
        }
    }
}

#[test]
fn words_to_replace_are_still_used() {
    let (page, sources) = (style(), sources());
    let rows = rows(&page, "### Words to replace");
    assert!(rows.len() > 10, "the table is not found ({REPLACED})");
    for row in &rows[1..] {
        assert_eq!(row.len(), 3, "{row:?} ({REPLACED})");
        for word in code_spans(&row[0]) {
            let is_type = word.starts_with(char::is_uppercase);
            let is_used = sources
                .iter()
                .any(|(_, text)| if is_type { has_word(text, word) } else { text.contains(word) });
            assert!(is_used, "no crate uses {word:?} any more: remove its row ({REPLACED})");
        }
    }
}

/// Documents for maintainers have a place of their own.
#[test]
fn the_style_is_linked() {
    for page in ["CONTRIBUTING.md", "docs/README.md"] {
        let text = fs::read_to_string(Path::new(workspace()).join(page)).expect(page);
        assert!(text.contains("internals/style.md)"), "{page} does not link the house style ({FILES})");
    }
}
