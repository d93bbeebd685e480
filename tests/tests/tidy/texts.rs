//! What code acts on is a type, and no text of ours.

use super::{ERRORS, files};

/// Methods that look into a text.
const METHODS: [&str; 9] = [
    "contains",
    "ends_with",
    "find",
    "rfind",
    "rsplit_once",
    "split_once",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
];

/// Texts that are not ours, and have no type: of other packages, of the system, of files.
const OTHERS: [(&str, &str); 17] = [
    // Of zstd, SQLite and clap.
    ("crates/trace-reader/src/compressed.rs", "too much memory"),
    ("crates/trace-cli/src/look/query.rs", "virtual tables may not be indexed"),
    ("crates/trace-cli/src/look/query.rs", "no such table: "),
    ("crates/trace-cli/src/args/parsing.rs", "error: "),
    ("crates/trace-cli/src/args/parsing.rs", "; For more information, try '--help'."),
    ("crates/trace-cli/src/args/parsing.rs", "; tip: to pass '-"),
    ("crates/trace-cli/src/args/parsing.rs", "Usage: trace "),
    ("crates/trace-config/src/position.rs", " at line "),
    // Of the kernel's files.
    ("crates/ktrace-provider/src/tracefs.rs", "error: "),
    ("crates/trace-cli/src/record/triggers.rs", " kB"),
    // Of the macros of `tracing`, which name an event after its place.
    ("crates/tracing-fxt/src/callsites.rs", "event "),
    ("crates/tracing-fxt/src/log_text.rs", "event "),
    // Of the harness of tests.
    ("crates/trace-engine/src/own_process.rs", "1 passed"),
    // Of JavaScript, and of the words of a counted noun.
    ("crates/trace-report/src/page.rs", "import "),
    ("crates/trace-report/src/page.rs", "export "),
    ("crates/trace-analysis/src/counted.rs", " and "),
    ("crates/trace-analysis/src/counted.rs", "metadata "),
];

/// The literals with a blank that a line looks for in a text.
fn looked_for(line: &str) -> impl Iterator<Item = &str> {
    METHODS.iter().flat_map(move |method| {
        let mut rest = line;
        std::iter::from_fn(move || {
            loop {
                let (before, after) = rest.split_once(method)?;
                rest = after;
                let is_method = before.ends_with('.');
                let Some(literal) = after.strip_prefix("(\"").filter(|_| is_method) else { continue };
                let end = literal.find("\")").unwrap_or(literal.len());
                return Some(&literal[..end]);
            }
        })
        .filter(|literal| literal.contains(' ') && literal.contains(char::is_alphabetic))
    })
}

/// The code of a file that is not a test's.
fn production(text: &str) -> &str {
    let ends = ["\nmod tests {", "\nmod texts {"].into_iter().filter_map(|begin| text.find(begin));
    ends.min().map_or(text, |end| &text[..end])
}

#[test]
fn no_code_looks_into_a_text_of_ours() {
    for (line, expected) in [
        (r#"if error.starts_with("no room in") {"#, &["no room in"][..]),
        (r#"owner.split_once(" is in use by ").or(owner.rfind(": "))"#, &[" is in use by "]),
        (r#"name.contains("app") && find("a b")"#, &[]),
    ] {
        assert!(looked_for(line).eq(expected.iter().copied()), "{line}");
    }
    let (mut used, mut ours) = ([false; OTHERS.len()], Vec::new());
    for (path, text) in files(&["rs"]) {
        let is_production = path.starts_with("crates/")
            && path.contains("/src/")
            && !path.contains("/tests/")
            && !["/tests.rs", "/testing.rs"].iter().any(|end| path.ends_with(end));
        for (number, line) in (1..).zip(production(&text).lines()).filter(|_| is_production) {
            for literal in looked_for(line).filter(|_| !line.trim_start().starts_with("//")) {
                match OTHERS.iter().position(|other| *other == (path.as_str(), literal)) {
                    Some(other) => used[other] = true,
                    None => ours.push(format!("{path}:{number} {literal:?}")),
                }
            }
        }
    }
    let found = ours.join("\n");
    assert!(ours.is_empty(), "give these a type, or list them as texts of others ({ERRORS}):\n{found}");
    let unused: Vec<_> = OTHERS.iter().zip(used).filter(|(_, used)| !used).collect();
    assert!(unused.is_empty(), "{unused:?} are listed, and nothing looks for them ({ERRORS})");
}

/// The code of a file in front of its tests.
fn shipped(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]").unwrap_or(text.len());
    (1..).zip(text[..end].lines()).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn errors_are_types() {
    for (path, text) in files(&["rs"]) {
        // These are compiled for tests alone.
        let is_of_tests = super::is_test_code(&path) || path.ends_with("/generated.rs");
        if !path.starts_with("crates/") || is_of_tests {
            continue;
        }
        for (number, line) in shipped(&text) {
            let is_text = line.contains(", String>") && line.contains("Result<");
            assert!(!is_text, "{path}:{number} has a text as an error ({ERRORS})");
        }
    }
}
