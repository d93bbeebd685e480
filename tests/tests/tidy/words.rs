//! Words of comments and pages.

use super::{PROSE, files};

/// Words that leave open which thread, process or user acts. Comments and pages name it.
const VAGUE: [&str; 4] = ["whoever", "somebody", "nobody", "told"];

/// The comment of a line of Rust or C, or one that it may be part of.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let is_inner = line == "*" || line.starts_with("* ");
    let start = if is_inner { Some(0) } else { line.find("//").or_else(|| line.find("/*")) };
    start.map(|start| &line[start..])
}

/// The first vague word of a text.
fn vague_word(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let mut words = text.split(|letter: char| !letter.is_alphanumeric());
    words.find_map(|word| VAGUE.into_iter().find(|vague| *vague == word))
}

#[test]
fn comments_and_pages_name_the_actor() {
    for (line, expected) in [
        ("/// Whoever reads it.", Some("whoever")),
        ("let x = 1; // Nobody's.", Some("nobody")),
        (" * The caller is told.", Some("told")),
        ("*told = nobody();", None),
        ("//! A retold story.", None),
    ] {
        assert_eq!(comment(line).and_then(vague_word), expected, "{line}");
    }
    for (path, text) in files(&["rs", "h", "c", "cc", "mjs", "md"]) {
        // This file quotes the words.
        let is_exempt = path == "tests/tests/tidy/words.rs";
        for (line, text) in (1..).zip(text.lines()).filter(|_| !is_exempt) {
            let prose = if path.ends_with(".md") { Some(text) } else { comment(text) };
            // A citation repeats a heading.
            let prose = prose.filter(|prose| !prose.starts_with("//= "));
            let found = prose.and_then(vague_word);
            assert!(found.is_none(), "{path}:{line} has the word {found:?} ({PROSE}): {}", text.trim());
        }
    }
}
