//! Where the rules stand. Every message of the tidy test names one of them.

use super::{files, has_heading};
use std::fs;
use trace_tests::build::workspace;

macro_rules! rules {
    ($($name:ident = $heading:literal;)*) => {
        $(pub const $name: &str = $heading;)*
        /// The name and the heading of each rule.
        const ALL: &[(&str, &str)] = &[$((stringify!($name), $heading)),*];
    };
}

rules! {
    CRATES = "docs/internals/style.md#crates";
    FILES = "docs/internals/style.md#files-and-names";
    PROSE = "docs/internals/style.md#prose";
    ERRORS = "docs/internals/style.md#errors";
    OUTPUT = "docs/internals/style.md#output-and-environment";
    UNSAFE_CODE = "docs/internals/style.md#unsafe-and-concurrency";
    DOCUMENTATION = "docs/internals/style.md#documentation";
    TESTS = "docs/internals/style.md#tests";
    DEPENDENCIES = "docs/internals/style.md#dependencies";
    GLOSSARY = "docs/internals/style.md#glossary";
    REPLACED = "docs/internals/style.md#words-to-replace";
    COMMITS = "CONTRIBUTING.md#commits";
}

#[test]
fn rules_are_headings() {
    for (name, rule) in ALL {
        let (page, heading) = rule.split_once('#').expect("a heading");
        let text =
            fs::read_to_string(workspace().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(has_heading(&text, heading), "{name}: no heading {rule} ({DOCUMENTATION})");
    }
}

/// A message without a rule leaves its reader to guess what to do instead.
#[test]
fn every_check_names_its_rule() {
    let mut count = 0;
    for (path, text) in files(&["rs"]).iter().filter(|(path, _)| path.starts_with("tests/tests/tidy")) {
        for test in text.split("\n#[test]\n").skip(1) {
            let (code, _) = test.split_once("\n}\n").unwrap_or((test, ""));
            let name = code.split(['(', ' ']).nth(1).unwrap_or_default();
            let names_one = ALL.iter().any(|(rule, _)| code.contains(&format!("{{{rule}}}")));
            assert!(names_one, "{path}: no message of {name} names its rule ({DOCUMENTATION})");
            count += 1;
        }
    }
    assert!(count > 25, "{count} tests are found ({DOCUMENTATION})");
}
