//! README and the architecture, which are read first: their lengths, and whether the code map is true.

use super::{CRATES, DOCUMENTATION, EDGES, NOT_SHIPPED, files};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use trace_tests::build::workspace;
use trace_tests::pages;

/// Most words of README, as `wc -w` counts them.
const README_WORDS: usize = 900;

/// Most words of an entry of the code map.
const ENTRY_WORDS: usize = 25;

/// Most columns of a line of these pages.
const COLUMNS: usize = 110;

/// README, the architecture, and the pages of its details.
fn wrapped_pages() -> impl Iterator<Item = String> {
    let internals = pages::all().into_iter().filter(|page| page.starts_with("docs/internals/"));
    internals
        .chain(["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/ARCHITECTURE.md"].map(str::to_owned))
}

/// The part of a page from a heading to the next one of the same level or a higher one.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let begin = page.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading:?}")) + 1;
    let behind = &page[begin + heading.len()..];
    let level = heading.split(' ').next().expect("marks").len();
    let ends = (1..=level).filter_map(|level| behind.find(&format!("\n{} ", "#".repeat(level))));
    ends.min().map_or(behind, |end| &behind[..end])
}

/// The entries of the lists of a text: the columns that each is indented by, and its text.
fn entries(text: &str) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let inner = line.trim_start();
        let indented = line.len() - inner.len();
        if let Some(entry) = inner.strip_prefix("* ") {
            entries.push((indented, entry.to_owned()));
            is_open = true;
        } else if is_open && indented > 0 {
            let (_, entry) = entries.last_mut().expect("an entry is open");
            *entry += &format!(" {inner}");
        } else {
            is_open = false;
        }
    }
    entries
}

/// What an entry is about: what it has between backticks in front of its colon.
pub(super) fn subjects(entry: &str) -> Vec<&str> {
    entry.split(": ").next().unwrap_or_default().split('`').skip(1).step_by(2).collect()
}

/// The entries of a section of a page, without their places.
pub(super) fn entries_of(page: &str, heading: &str) -> Vec<String> {
    entries(section(&pages::read(page), heading)).into_iter().map(|(_, entry)| entry).collect()
}

#[test]
fn readme_is_short() {
    let words = pages::read("README.md").split_whitespace().count();
    assert!(
        words <= README_WORDS,
        "README.md has at most {README_WORDS} words, not {words}: move details to the page that they belong to \
         ({DOCUMENTATION})"
    );
}

/// A command is one line, because it is copied, and a word cannot be cut.
#[test]
fn front_pages_are_wrapped() {
    for page in wrapped_pages() {
        let text = pages::read(&page);
        let commands: BTreeSet<usize> = pages::blocks(&text)
            .into_iter()
            .filter(|block| ["console", "sh"].contains(&&*block.language))
            .flat_map(|block| block.line..=block.line + block.text.lines().count())
            .collect();
        for (number, line) in (1..).zip(text.lines()) {
            let width = line.chars().count();
            let can_be_cut = line.trim_start_matches(['*', ' ']).contains(' ');
            assert!(
                width <= COLUMNS || commands.contains(&number) || !can_be_cut,
                "{page}:{number} has {width} columns: lines of this page are wrapped at {COLUMNS}, rows of \
                 tables too ({DOCUMENTATION})"
            );
        }
    }
}

#[test]
fn entries_of_the_code_map_are_short() {
    let map = entries_of("docs/ARCHITECTURE.md", "## Code map");
    let files = entries(&pages::read("docs/internals/files.md")).into_iter().map(|(_, entry)| entry);
    let mut count = 0;
    for entry in map.into_iter().chain(files) {
        count += 1;
        let words = entry.split_whitespace().count();
        assert!(
            words <= ENTRY_WORDS,
            "an entry of the code map has at most {ENTRY_WORDS} words, not {words}; details belong into \
             docs/internals ({DOCUMENTATION}): {entry}"
        );
    }
    assert!(count > 100, "{count}");
}

/// Source files of a folder, without tests and folders in it.
fn source_files(folder: &std::path::Path) -> usize {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".rs") && name != "tests.rs").count()
}

#[test]
fn the_code_map_has_all_crates_and_folders() {
    let page = pages::read("docs/ARCHITECTURE.md");
    let mut crates = BTreeSet::new();
    let mut folders = BTreeSet::new();
    let mut current = String::new();
    for (indented, entry) in entries(section(&page, "## Code map")) {
        let names = subjects(&entry);
        assert!(!names.is_empty(), "an entry of the code map begins with a crate or a folder: {entry}");
        if indented == 0 {
            names[0].clone_into(&mut current);
            crates.extend(names.into_iter().map(str::to_owned));
            continue;
        }
        for name in names {
            let root = workspace().join("crates").join(&current);
            let is_there = root.join("src").join(name).is_dir() || root.join(name).is_dir();
            assert!(is_there, "docs/ARCHITECTURE.md has a folder {name} of {current}, which does not exist");
            folders.insert(format!("{current}/{}", name.trim_end_matches('/')));
        }
    }
    let known: BTreeSet<String> =
        EDGES.iter().map(|(name, _)| *name).chain(NOT_SHIPPED).map(str::to_owned).collect();
    assert_eq!(
        crates, known,
        "the code map of docs/ARCHITECTURE.md has all crates, and no others ({DOCUMENTATION})"
    );
    for (name, _) in EDGES {
        let Ok(sources) = fs::read_dir(workspace().join("crates").join(name).join("src")) else { continue };
        for folder in sources.flatten().filter(|entry| entry.path().is_dir()) {
            let folder_name = format!("{name}/{}", folder.file_name().to_string_lossy());
            let is_large = source_files(&folder.path()) > 1;
            assert!(
                !is_large || folders.contains(&folder_name),
                "the code map of docs/ARCHITECTURE.md has each folder of several files, and lacks {folder_name}"
            );
        }
    }
}

/// Files and folders that these pages name, as far as they need for being found.
#[test]
fn the_architecture_names_what_exists() {
    let sources = files(&["rs", "h", "c", "js", "mjs", "md"]);
    let mut count = 0;
    for page in wrapped_pages().filter(|page| page.starts_with("docs/")) {
        for span in pages::spans(&pages::read(&page)) {
            // What is built is not in a clone.
            let is_output = span.starts_with("target/");
            let is_file = [".rs", ".h", ".js"].iter().any(|end| span.ends_with(end)) && !span.contains('*');
            let is_folder = span.ends_with('/') && !span.contains([' ', '*']);
            if is_output || (!is_file && !is_folder) {
                continue;
            }
            count += 1;
            let is_there = sources.iter().any(|(path, _)| {
                let path = format!("/{path}");
                let name = format!("/{span}");
                if is_file { path.ends_with(&name) } else { path.contains(&name) }
            });
            assert!(is_there, "{page} names `{span}`, which does not exist ({DOCUMENTATION})");
        }
    }
    assert!(count > 200, "{count}");
}

#[test]
fn crates_use_what_stands_below_them_in_the_architecture() {
    let page = pages::read("docs/ARCHITECTURE.md");
    let list = section(&page, "### Who may use whom");
    let mut levels: BTreeMap<&str, usize> = BTreeMap::new();
    let mut level = 0;
    for line in list.lines() {
        level += usize::from(line.starts_with(|first: char| first.is_ascii_digit()));
        if level > 0 {
            levels.extend(line.split('`').skip(1).step_by(2).map(|name| (name, level)));
        }
    }
    for (name, used) in EDGES {
        let place = |name| levels.get(name).unwrap_or_else(|| panic!("the list of levels lacks {name}"));
        for other in used {
            assert!(
                place(name) < place(other),
                "a crate uses crates further down: docs/ARCHITECTURE.md has {other}, which {name} uses, at or \
                 above it ({CRATES})"
            );
        }
    }
}

#[test]
fn entries_are_found() {
    let page =
        "# A\n\n## B\n\n* `a`, `b`: one\n  two\n  * `c/`: three `d`\n\ntext\n\n* `e` more\n\n### C\n\n## D\n";
    let expected = [(0, "`a`, `b`: one two"), (2, "`c/`: three `d`"), (0, "`e` more")];
    let found = entries(section(page, "## B"));
    assert_eq!(found, expected.map(|(indented, entry)| (indented, entry.to_owned())));
    assert_eq!(section(page, "### C"), "\n", "{DOCUMENTATION}");
    assert_eq!(subjects(&found[0].1), ["a", "b"]);
    assert_eq!(subjects(&found[1].1), ["c/"]);
}
