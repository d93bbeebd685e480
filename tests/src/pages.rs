//! The pages of the documentation: their blocks, and whether a command prints what its block shows.

use crate::build::workspace;
use std::fs;

/// What stands before a block that no test runs, with the reason behind it.
pub const NOT_RUN: &str = "Not run by a test: ";

/// Blocks of Rust are tests of this crate.
#[cfg(doctest)]
mod doctests {
    #[doc = include_str!("../../docs/getting-started.md")]
    mod getting_started {}
    #[doc = include_str!("../../docs/cookbook.md")]
    mod cookbook {}
    #[doc = include_str!("../../docs/rust.md")]
    mod rust {}
    #[doc = include_str!("../../docs/client.md")]
    mod client {}
    #[doc = include_str!("../../docs/writing.md")]
    mod writing {}
}

/// A fenced block of a page.
#[derive(Clone, Debug)]
pub struct Block {
    /// The first word behind the fence.
    pub language: String,
    /// Its lines.
    pub text: String,
    /// The line of the page that it begins in, from 1.
    pub line: usize,
    /// The last line before it that is not empty.
    pub before: String,
}

/// One command of a block, with what the block shows behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The command, of several lines where they end in a backslash.
    pub command: String,
    /// The lines that it prints, none where the page shows none.
    pub shown: Vec<String>,
}

/// The text of a page.
///
/// # Panics
/// If there is no such page.
#[must_use]
pub fn read(page: &str) -> String {
    fs::read_to_string(workspace().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// All pages, as paths from the root of the workspace.
///
/// # Panics
/// If the directory cannot be read.
#[must_use]
pub fn all() -> Vec<String> {
    let mut pages = Vec::new();
    for directory in ["docs", "docs/internals"] {
        let entries = fs::read_dir(workspace().join(directory)).expect(directory);
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let names = names.filter(|name| name.ends_with(".md"));
        pages.extend(names.map(|name| format!("{directory}/{name}")));
    }
    pages.extend(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned));
    pages.sort();
    pages
}

/// The fenced blocks of a page.
#[must_use]
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut before = String::new();
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (Some(_), Some(_)) => {
                blocks.extend(open.take());
                before.clear();
            }
            (Some(block), None) => {
                block.text += line;
                block.text.push('\n');
            }
            (None, Some(rest)) => {
                let language = rest.split([' ', ',']).next().unwrap_or_default().to_owned();
                open = Some(Block { language, text: String::new(), line: number, before: before.clone() });
            }
            (None, None) if line.trim().is_empty() => {}
            (None, None) => before = line.trim().to_owned(),
        }
    }
    blocks
}

/// The lines of a page that are in no block.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_block = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    })
}

/// The targets of a page's links and pictures.
#[must_use]
pub fn links(text: &str) -> Vec<String> {
    let starts = prose(text).flat_map(|line| line.split("](").skip(1));
    starts.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// What a page has between backticks in its text, also across the ends of lines.
#[must_use]
pub fn spans(text: &str) -> Vec<String> {
    let paragraphs = prose(text).collect::<Vec<_>>().join("\n");
    let paragraphs = paragraphs.split("\n\n");
    let spans = paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
    spans.map(|span| span.replace('\n', " ")).collect()
}

/// The headings of a page.
#[must_use]
pub fn headings(text: &str) -> Vec<&str> {
    prose(text).filter(|line| line.starts_with('#')).collect()
}

/// The anchor that a heading gets.
#[must_use]
pub fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let is_kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    kept.chars().filter(is_kept).collect::<String>().replace(' ', "-")
}

impl Block {
    /// Why no test runs it.
    #[must_use]
    pub fn not_run(&self) -> Option<&str> {
        self.before.strip_prefix(NOT_RUN)
    }

    /// The function and the file that the line before it names, of which it has a new version:
    /// `` Replace `refresh` in `src/main.rs`: ``.
    #[must_use]
    pub fn replaced(&self) -> Option<(&str, &str)> {
        self.before.strip_prefix("Replace `")?.strip_suffix("`:")?.split_once("` in `")
    }

    /// The file that the line before it names: `` `src/main.rs`: ``.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        if self.replaced().is_some() {
            return None;
        }
        let name = self.before.strip_suffix("`:")?.rsplit('`').next()?;
        Some(name).filter(|name| name.contains('.'))
    }

    /// Its commands: in a `console` block the lines behind `$ ` with what follows, else all of its lines.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let is_console = self.language == "console";
        let mut steps: Vec<Step> = Vec::new();
        let mut is_continued = false;
        for line in self.text.lines() {
            match (is_continued, line.strip_prefix("$ ")) {
                (true, _) => {
                    let step = steps.last_mut().expect("what is continued has begun");
                    step.command += &format!("\n{line}");
                }
                (false, Some(command)) if is_console => {
                    steps.push(Step { command: command.to_owned(), shown: Vec::new() });
                }
                (false, _) if is_console => {
                    let step = steps.last_mut().expect("output stands behind a command");
                    step.shown.push(line.to_owned());
                }
                (false, _) => steps.push(Step { command: line.to_owned(), shown: Vec::new() }),
            }
            let is_command = is_continued || !is_console || line.starts_with("$ ");
            is_continued = is_command && line.ends_with('\\');
        }
        steps
    }
}

/// Whether a program has printed what a page shows. All numbers are equal here, with their units, and so are
/// all widths of columns. `…` stands for anything, and for any number of lines where it is alone. Where it
/// never is, the order of the lines does not count, since several processes print at the same time.
#[must_use]
pub fn is_shown(printed: &str, shown: &[String]) -> bool {
    let printed: Vec<String> = printed.lines().map(plain).collect();
    let shown: Vec<String> = shown.iter().map(|line| plain(line)).collect();
    lines_match(&printed, &shown) || !shown.iter().any(|line| line == "…") && same_lines(printed, shown)
}

fn same_lines(mut printed: Vec<String>, mut shown: Vec<String>) -> bool {
    printed.retain(|line| !line.is_empty());
    shown.retain(|line| !line.is_empty());
    printed.sort();
    shown.sort();
    printed.len() == shown.len() && printed.iter().zip(&shown).all(|(line, shown)| matches(line, shown))
}

fn lines_match(printed: &[String], shown: &[String]) -> bool {
    match shown {
        [] => printed.iter().all(String::is_empty),
        [first, rest @ ..] if first == "…" => {
            (0..=printed.len()).any(|skipped| lines_match(&printed[skipped..], rest))
        }
        [first, rest @ ..] => printed
            .split_first()
            .is_some_and(|(line, others)| matches(line, first) && lines_match(others, rest)),
    }
}

/// Whether a line is as shown, where `…` stands for anything.
fn matches(line: &str, shown: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(last) = last.replace(part) {
            match rest.split_once(last) {
                Some((_, behind)) => rest = behind,
                None => return false,
            }
        }
    }
    match last {
        Some(last) => rest.ends_with(last),
        None => rest.is_empty(),
    }
}

/// A line without what differs between runs.
fn plain(line: &str) -> String {
    const UNITS: [&str; 13] =
        ["ns", "µs", "us", "ms", "s", "B", "kB", "MB", "GB", "KiB", "MiB", "bytes", "min"];
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let mut text = String::new();
        let mut is_number = false;
        for letter in word.chars() {
            let is_digit = letter.is_ascii_digit() || is_number && matches!(letter, '.' | ',');
            if !is_digit {
                text.push(letter);
            } else if !is_number {
                text.push('0');
            }
            is_number = is_digit;
        }
        let is_rule = word.chars().all(|letter| matches!(letter, '─' | '-' | '='));
        let is_unit = UNITS.contains(&text.as_str()) && words.last().is_some_and(|last| last.ends_with('0'));
        match (is_rule, is_unit) {
            (true, _) => words.push("-".to_owned()),
            (_, true) => {}
            _ => words.push(text),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(shown: &str, printed: &str) -> bool {
        is_shown(printed, &shown.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_and_widths_count_as_equal() {
        assert!(shows("app  4 MiB  1.5 ms", "app 12 kB 17 ns\n"));
        assert!(!shows("app 4 events", "app 4 lines\n"));
        assert!(!shows("one", "one\ntwo\n"));
        assert!(!shows("one\ntwo", "one\n"));
        assert!(shows("one\ntwo", "two\none\n") && !shows("one\n…", "two\none\n"));
    }

    #[test]
    fn an_ellipsis_stands_for_anything() {
        assert!(shows("a … c", "a b b c"));
        assert!(!shows("a … c", "a b"));
        assert!(shows("first\n…\nlast", "first\nlast"));
        assert!(shows("first\n…\nlast", "first\n1\n2\nlast"));
        assert!(!shows("first\n…\nlast", "first\n1\n2"));
    }

    #[test]
    fn blocks_have_commands_and_output() {
        let page = "Text.\n\n`a.toml`:\n\n```toml\nx = 1\n```\nNot run by a test: needs root.\n\n```console\n\
                    $ one \\\n  two\nout\n\n$ three\n```\n";
        let [file, commands] = &blocks(page)[..] else { panic!("two blocks") };
        assert_eq!((file.file(), file.not_run(), &*file.text), (Some("a.toml"), None, "x = 1\n"));
        assert_eq!((commands.file(), commands.not_run()), (None, Some("needs root.")));
        let [function] = &blocks("Replace `f` in `a.rs`:\n\n```rust,ignore\nfn f() {}\n```\n")[..] else {
            panic!("one block")
        };
        assert_eq!((function.file(), function.replaced()), (None, Some(("f", "a.rs"))));
        let step = |command: &str, shown: &[&str]| Step {
            command: command.to_owned(),
            shown: shown.iter().map(|line| (*line).to_owned()).collect(),
        };
        assert_eq!(commands.steps(), [step("one \\\n  two", &["out", ""]), step("three", &[])]);
    }
}
