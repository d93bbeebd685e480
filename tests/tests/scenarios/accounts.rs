//! What documents of `--json` say of their traces, whichever command reads them.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::process::Stdio;
use trace_tests::{Answer, Sandbox, build};

/// A measurement, for which a trace needs no sample.
const SPEC: &str = r#"{"measure": [{"type": "duration", "event_name": "x", "event_category": "c"}]}"#;

/// What a document says of its traces.
fn account(answer: &Answer) -> [Vec<Value>; 3] {
    let mut problems = answer.problems.clone();
    // What `check` alone adds, and what follows from the answer.
    problems.retain(|problem| problem["kind"] != "failed");
    for problem in &mut problems {
        problem.as_object_mut().unwrap().remove("is_allowed");
    }
    [answer.traces.clone(), answer.losses.clone(), problems]
}

/// Asks a command for a trace, which may be stdin.
fn asked(sandbox: &Sandbox, arguments: &[&str], stdin: Stdio) -> Option<Answer> {
    let output = sandbox.command("trace").args(arguments).stdin(stdin).output().unwrap();
    (!output.stdout.is_empty()).then(|| Answer::of(&output))
}

/// Compares the accounts of all commands with that of `check`, and returns it.
fn account_of_all(sandbox: &Sandbox, trace: &str) -> Option<[Vec<Value>; 3]> {
    fs::write(sandbox.file("spec.json"), SPEC).unwrap();
    let checked = account(&asked(sandbox, &["check", "--json", trace], Stdio::null())?);
    if checked[1].is_empty() && checked[2].is_empty() {
        return Some(checked);
    }
    let commands: [&[&str]; 7] = [
        &["stats", "--json", trace],
        &["assert", "--json", trace, "count(x) >= 0"],
        &["measure", "--json", "--spec-file", "spec.json", trace],
        &["convert", "--json", "--format", "csv", "-o", "tables", trace],
        &["convert", "--json", "-o", "out.pftrace", trace],
        &["filter", "--json", "--strip-args", trace, "out.fxt"],
        &["query", "--json", "SELECT 1", trace],
    ];
    for arguments in commands {
        // A trace without anything has no Perfetto form, and what is no trace has an error.
        let Some(answer) = asked(sandbox, arguments, Stdio::null()) else { continue };
        let [traces, losses, problems] = account(&answer);
        assert_eq!([&losses, &problems], [&checked[1], &checked[2]], "{arguments:?}");
        if arguments[0] != "query" {
            assert_eq!(traces, checked[0], "{arguments:?}");
        }
    }
    let answer = asked(sandbox, &["diff", "--json", trace, trace], Stdio::null()).unwrap();
    let twice = checked.clone().map(|list| [&list[..], &list].concat());
    assert_eq!(account(&answer), twice, "diff of {trace}");
    Some(checked)
}

/// Each kind of loss and problem that an archive can have.
//= docs/json.md#the-document
#[test]
fn all_commands_say_of_an_archive_what_check_finds() {
    let sandbox = Sandbox::new();
    let corpus = build::workspace().join("tests/data/corpus");
    let mut kinds = std::collections::BTreeSet::new();
    let mut losses = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".fxt") || fs::metadata(&path).unwrap().len() > 30_000 {
            continue;
        }
        fs::copy(&path, sandbox.file(&name)).unwrap();
        let Some([_, lost, problems]) = account_of_all(&sandbox, &name) else { continue };
        losses += lost.len();
        kinds.extend(problems.iter().map(|problem| problem["kind"].as_str().unwrap().to_owned()));
    }
    assert_eq!(losses, 1);
    assert_eq!(kinds.len(), 29, "{kinds:?}");
}

/// Imports: what is cut off, and what cannot be read.
//= docs/json.md#the-document
#[test]
fn all_commands_say_of_an_import_what_check_finds() {
    let sandbox = Sandbox::new();
    let event = r#"{"ph":"X","pid":1,"tid":2,"ts":1,"dur":5,"name":"x","cat":"c"}"#;
    let backwards = event.replace("\"dur\":5", "\"dur\":-5");
    let cases = [
        ("whole.json", format!("[{event}]"), &[][..]),
        ("cut.json", format!("[{event},{{\"ph\":\"X\",\"na"), &["truncated"]),
        (
            "broken.json",
            format!("[{event},{{\"ph\" 7}},{backwards},{event}]"),
            &["malformed", "not-imported"],
        ),
    ];
    for (name, text, expected) in cases {
        fs::write(sandbox.file(name), text).unwrap();
        let [traces, losses, problems] = account_of_all(&sandbox, name).unwrap();
        assert_eq!((traces.len(), losses.len()), (1, 0));
        let kinds: Vec<&str> = problems.iter().map(|problem| problem["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, expected, "{name}: {problems:?}");
    }
}

/// Stdin can be read once, and is read for the answer and for the account.
//= docs/json.md#the-document
#[test]
fn stdin_has_the_account_of_its_file() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("spec.json"), SPEC).unwrap();
    let loss = fs::read(build::workspace().join("tests/data/corpus/loss.fxt")).unwrap();
    fs::write(sandbox.file("loss.fxt"), &loss).unwrap();
    let expected = account(&asked(&sandbox, &["check", "--json", "loss.fxt"], Stdio::null()).unwrap());
    for arguments in [
        &["check", "--json", "-"][..],
        &["stats", "--json", "-"],
        &["assert", "--json", "-", "count(x) == 0"],
        &["measure", "--json", "--spec-file", "spec.json", "-"],
        &["convert", "--json", "--format", "csv", "-o", "tables", "-"],
        &["filter", "--json", "--strip-args", "-", "out.fxt"],
        &["query", "--json", "SELECT 1", "-"],
        &["query", "--json", "SELECT count(*) FROM losses", "-"],
    ] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, &loss).unwrap();
        drop(writer);
        for stdin in [File::open(sandbox.file("loss.fxt")).unwrap().into(), Stdio::from(reader)] {
            let answer = asked(&sandbox, arguments, stdin).expect("an answer");
            let [traces, mut losses, mut problems] = account(&answer);
            for of_trace in losses.iter_mut().chain(&mut problems) {
                assert_eq!(of_trace["file"], "stdin", "{arguments:?}");
                of_trace["file"] = json!("loss.fxt");
            }
            assert_eq!([&losses, &problems], [&expected[1], &expected[2]], "{arguments:?}");
            assert_eq!(traces[0]["file"], "stdin");
        }
    }
}
