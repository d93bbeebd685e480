//! Tables at a terminal: no line is wider than it, and nothing of a name is missing.

use super::tools::Terminal;
use std::fmt::Write as _;
use trace_tests::Sandbox;
use trace_tests::build::program;

const PROCESS: &str = "a-process-whose-name-says-in-full-which-service-of-which-department-it-is";
const CATEGORY: &str = "a category that is long because it has the names of all of its parents in it";
const NAME: &str =
    "an event whose name is a whole sentence, with the reason why it was recorded at this place";

/// A trace whose names are longer than a terminal is wide; an event is so much longer in the second.
fn document(length: u64) -> String {
    let mut text = format!(
        r#"[{{"ph":"M","name":"process_name","pid":1,"tid":1,"ts":0,"args":{{"name":"{PROCESS}"}}}}"#
    );
    for number in 0..40 {
        let _ = write!(
            text,
            r#",{{"ph":"X","cat":"{CATEGORY}","name":"{NAME}","pid":1,"tid":1,"ts":{},"dur":{}}}"#,
            number * 1000,
            length + number
        );
        let _ = write!(
            text,
            r#",{{"ph":"i","cat":"{CATEGORY}","name":"{NAME}","pid":1,"tid":1,"ts":{}}}"#,
            number * 1000
        );
        let _ = write!(
            text,
            r#",{{"ph":"C","cat":"{CATEGORY}","name":"{NAME}","pid":1,"ts":{},"args":{{"{CATEGORY}":{}}}}}"#,
            number * 1000,
            number * 123_456_789
        );
    }
    text + "]"
}

/// The letters of a text, in their order.
fn letters(text: &str) -> String {
    text.chars().filter(|char| !char.is_whitespace()).collect()
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let plain = |part: &str| {
        let digits = part.trim_start_matches(|char: char| char.is_ascii_digit() || char == ';');
        digits.strip_prefix('m').map_or_else(|| format!("\u{1b}[{part}"), str::to_owned)
    };
    parts.fold(first, |text, part| text + &plain(part))
}

/// What a command prints at a terminal.
fn at_terminal(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let (_, seen) = Terminal::new(sandbox, arguments).finish();
    // Progress is drawn over, and cleared.
    let seen = without_colours(&seen.replace("\u{1b}[2K", "\n"));
    let is_row = |line: &&str| !line.starts_with("trace: ") && !line.trim_start().starts_with("fix: ");
    for line in seen.split(['\r', '\n']).filter(is_row) {
        let width = line.chars().count();
        assert!(width <= 80, "{arguments:?}: {width} columns: {line:?}");
    }
    seen
}

/// A terminal that cannot move its cursor gets lines that stay as they are.
//= docs/command-line.md#environment
#[test]
fn a_dumb_terminal_gets_no_line_that_changes() {
    let sandbox = Sandbox::new();
    let emit = program("emit").to_str().unwrap();
    let record = ["record", "-o", "a.fxt", "--", emit, "1", "3"];
    for term in ["dumb", ""] {
        let (code, seen) = Terminal::with(&sandbox, &record, &[("TERM", term)]).finish();
        assert_eq!(code, Some(0), "{seen}");
        assert!(!seen.contains('\u{1b}') && seen.contains("42 events of 1 program in a.fxt"), "{seen}");
        let (code, seen) = Terminal::with(&sandbox, &["live"], &[("TERM", term)]).finish();
        let expected = "trace: the terminal is dumb (TERM): --json prints a line for each update\r\n";
        assert_eq!((code, &*seen), (Some(2), expected));
    }
}

//= docs/command-line.md#tables
#[test]
fn tables_fit_into_the_terminal_and_have_all_of_every_name() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.file("a.json"), document(100)).unwrap();
    std::fs::write(sandbox.file("b.json"), document(900)).unwrap();
    let sql = "SELECT process, category, name, ts, dur, pid, tid, depth, id FROM slices LIMIT 2";
    let commands: [(&[&str], &[&str]); 6] = [
        (&["stats", "a.json"], &[PROCESS, CATEGORY, NAME]),
        (&["stats", "--by", "thread", "a.json"], &[PROCESS]),
        (&["diff", "a.json", "b.json"], &[CATEGORY, NAME]),
        (&["query", sql, "a.json"], &[PROCESS, CATEGORY, NAME]),
        (&["query", "SELECT * FROM slices LIMIT 1", "a.json"], &[]),
        (&["check", "a.json"], &[]),
    ];
    for (arguments, names) in &commands {
        let seen = at_terminal(&sandbox, arguments);
        // A cell that is alone in its lines is whole, when the blanks are left out.
        let output = sandbox.trace(arguments.iter().copied());
        let piped = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let mut all = [letters(&seen), letters(&piped)].map(|text| text.chars().collect::<Vec<_>>());
        all.iter_mut().for_each(|letters| letters.sort_unstable());
        assert_eq!(all[0], all[1], "{arguments:?}: {seen}");
        assert!(names.iter().all(|name| piped.contains(name)), "{piped}");
    }
}

//= docs/command-line.md#tables
#[test]
fn the_findings_of_the_doctor_fit_into_the_terminal() {
    let seen = at_terminal(&Sandbox::new(), &["doctor", "--no-self-trace"]);
    assert!(seen.contains("\nOK    clock"), "{seen}");
}

/// The summary, and the programs that are running, with the longest name that a program can have.
#[test]
fn a_summary_fits_into_the_terminal() {
    let sandbox = Sandbox::new();
    let name = "a-long-name-".repeat(8);
    let path = program("memory").to_str().unwrap().to_owned();
    let seen =
        at_terminal(&sandbox, &["record", "-o", "t.fxt", "--duration", "300ms", "--", &path, &name, "1"]);
    let (_, table) = seen.split_once("program   ").expect("a table");
    let (table, _) = table.split_once("trace: ").expect("a line behind it");
    let parts = table.lines().skip(1).map(|line| line.split("  ").next().unwrap_or_default().trim());
    assert_eq!(parts.collect::<String>(), name, "{seen}");
}
