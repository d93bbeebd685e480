//! Commands that take several traces.

use serde_json::{Value, json};
use std::fs;
use trace_tests::{Answer, Sandbox};

/// Two traces with one slice of each length, and a file that is none.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for (name, length) in [("a.json", 5), ("b.json", 7)] {
        let text = format!(r#"[{{"ph":"X","pid":1,"tid":2,"ts":1,"dur":{length},"name":"x","cat":"c"}}]"#);
        fs::write(sandbox.file(name), text).unwrap();
    }
    fs::write(sandbox.file("bad"), "no trace\n").unwrap();
    sandbox
}

fn run(sandbox: &Sandbox, code: i32, arguments: &[&str]) -> String {
    let output = sandbox.trace(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

//= docs/command-line.md#several-traces
#[test]
fn each_trace_has_its_answer() {
    let sandbox = sandbox();
    let csv = run(&sandbox, 0, &["stats", "--csv", "a.json", "b.json"]);
    let rows: Vec<(&str, &str)> = csv
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .map(|cells| (cells[0], cells[6]))
        .collect();
    assert_eq!(rows, [("trace", "total_ns"), ("a.json", "5000"), ("b.json", "7000")]);
    let text = run(&sandbox, 0, &["stats", "a.json", "b.json"]);
    assert_eq!(text.matches(".json: 1 event in ").count(), 2, "{text}");
    // One that cannot be read does not keep the command from the others.
    let limits = ["assert", "a.json", "bad", "b.json", "max(x) < 6us"];
    let expected = "passed      a.json: max(x) < 6us: 5 µs\nfailed      b.json: max(x) < 6us: 7 µs\n";
    assert_eq!(run(&sandbox, 6, &limits), expected);
    let behind = ["assert", "--junit", "x.xml", "a.json", "b.json", "--", "max(x) < 6us"];
    assert_eq!(run(&sandbox, 1, &behind), expected);
    let document = fs::read_to_string(sandbox.file("x.xml")).unwrap();
    assert_eq!(document.matches("<testsuite ").count(), 2, "{document}");
    assert_eq!(run(&sandbox, 0, &["assert", "a.json", "b.json", "--", "max(x) < 8us"]).lines().count(), 2);
    let text = run(&sandbox, 6, &["check", "a.json", "bad", "b.json"]);
    assert_eq!(text.matches("clean\n").count(), 2, "{text}");
    let lines = run(&sandbox, 0, &["dump", "--json", "a.json", "b.json"]);
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let slices = records.filter(|record| record["kind"] == "complete");
    let slices: Vec<_> = slices.map(|slice| json!([slice["file"], slice["end_ns"]])).collect();
    assert_eq!(slices, [json!(["a.json", 6000]), json!(["b.json", 8000])]);
    let lines = run(&sandbox, 0, &["dump", "a.json", "b.json"]);
    let headings: Vec<&str> = lines.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(headings, ["# a.json", "# b.json"]);
    run(&sandbox, 0, &["report", "a.json", "b.json"]);
    assert!(sandbox.file("a.html").exists() && sandbox.file("b.html").exists());
    run(&sandbox, 2, &["report", "-o", "c.html", "a.json", "b.json"]);
    run(&sandbox, 2, &["check", "-", "-"]);
}

//= docs/command-line.md#several-traces
#[test]
fn programs_get_a_list_of_results() {
    let sandbox = sandbox();
    for (code, arguments) in [
        (0, &["stats", "--json", "a.json", "b.json"][..]),
        (6, &["stats", "--json", "a.json", "bad", "b.json"]),
        (0, &["check", "--json", "a.json", "b.json"]),
        (0, &["assert", "--json", "a.json", "b.json", "count(x) == 1"]),
        (1, &["assert", "--json", "a.json", "b.json", "count(x) == 2"]),
        (3, &["assert", "--json", "a.json", "b.json", "max(y) < 1s"]),
        (0, &["convert", "--json", "--format", "csv", "-o", "out", "a.json", "b.json"]),
        (0, &["filter", "--json", "--strip-args", "-o", "out", "a.json", "b.json"]),
    ] {
        let output = sandbox.trace(arguments);
        let answer = Answer::of(&output);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let files: Vec<&str> = answer.traces.iter().map(|trace| trace["file"].as_str().unwrap()).collect();
        assert_eq!(files, ["a.json", "b.json"], "{arguments:?}");
        assert_eq!(answer.result.as_array().map(Vec::len), Some(2), "{arguments:?}");
        let unread = answer.problems.iter().filter(|problem| problem["kind"] == "unread");
        let unread: Vec<&str> = unread.map(|problem| problem["file"].as_str().unwrap()).collect();
        assert_eq!(unread, if code == 6 { &["bad"][..] } else { &[] }, "{arguments:?}");
    }
    assert_eq!(run(&sandbox, 6, &["check", "--json", "bad", "bad"]), "");
}

//= docs/command-line.md#several-traces
#[test]
fn outputs_of_several_traces_are_files_of_a_directory() {
    let sandbox = sandbox();
    run(&sandbox, 0, &["convert", "--format", "perfetto", "-o", "out", "a.json", "b.json"]);
    let rows =
        |sql: &str, files: &[&str]| run(&sandbox, 0, &[&["query", "--format", "csv", sql], files].concat());
    let files = ["out/a.pftrace", "out/b.pftrace"];
    assert_eq!(rows("SELECT dur FROM slices ORDER BY 1", &files), "dur\n5000\n7000\n");
    run(&sandbox, 0, &["filter", "--strip-args", "-o", "out", "a.json", "b.json"]);
    assert_eq!(rows("SELECT dur FROM slices", &["out/b.fxt"]), "dur\n7000\n");
    // A second name is the output, and further ones need a directory.
    run(&sandbox, 2, &["convert", "--format", "perfetto", "a.json", "b.json", "c.pftrace"]);
    run(&sandbox, 2, &["convert", "-o", "out", "a.json", "b.json"]);
    run(&sandbox, 2, &["convert", "--format", "csv", "-o", "-", "a.json", "b.json"]);
    run(&sandbox, 2, &["filter", "--strip-args", "-o", "-", "a.json", "b.json"]);
    // What the shell has made of a pattern with two matches.
    let before = fs::read(sandbox.file("b.json")).unwrap();
    for format in ["fxt", "perfetto", "csv", "folded"] {
        run(&sandbox, 2, &["convert", "--format", format, "a.json", "b.json"]);
    }
    assert_eq!(fs::read(sandbox.file("b.json")).unwrap(), before);
    for _ in 0..2 {
        run(&sandbox, 0, &["convert", "--format", "speedscope", "a.json", "again.json"]);
    }
    fs::create_dir(sandbox.file("other")).unwrap();
    fs::copy(sandbox.file("a.json"), sandbox.file("other/a.json")).unwrap();
    run(&sandbox, 2, &["convert", "--format", "csv", "-o", "out", "a.json", "other/a.json"]);
    // One that cannot be read.
    run(&sandbox, 6, &["convert", "--format", "csv", "-o", "third", "a.json", "bad", "b.json"]);
    assert!(sandbox.file("third/a.tables").is_dir() && sandbox.file("third/b.tables").is_dir());
    run(&sandbox, 0, &["convert", "--format", "parquet", "--partitioned", "-o", "lake", "a.json", "b.json"]);
    assert!(sandbox.file("lake/slices").is_dir());
}

/// A failure about one trace is no reason to leave out the others.
//= docs/command-line.md#several-traces
#[test]
fn a_failure_of_one_trace_leaves_the_others_their_turn() {
    let sandbox = sandbox();
    let other = r#"[{"ph":"X","pid":9,"tid":9,"ts":1,"dur":1,"name":"x","cat":"c"}]"#;
    fs::write(sandbox.file("other.json"), other).unwrap();
    let filter = ["filter", "--json", "--process", "1", "-o", "out", "other.json", "a.json"];
    let answer = Answer::parse(&run(&sandbox, 1, &filter));
    assert_eq!((&answer.traces[0]["file"], answer.traces.len()), (&json!("a.json"), 1));
    let [failed] = &answer.problems[..] else { panic!("{answer:?}") };
    assert_eq!((&failed["kind"], &failed["file"]), (&json!("failed"), &json!("other.json")));
    assert!(sandbox.file("out/a.fxt").is_file() && !sandbox.file("out/other.fxt").exists());
    // What cannot be expressed in the format.
    let counter = r#"[{"ph":"X","pid":1,"tid":2,"ts":1,"dur":5,"name":"x"},{"ph":"C","pid":1,"ts":1,"name":"n","args":{"v":1}}]"#;
    fs::write(sandbox.file("counter.json"), counter).unwrap();
    let strict = ["convert", "--strict", "--stacks", "slices", "--format", "folded", "-o", "out"];
    run(&sandbox, 4, &[&strict[..], &["counter.json", "b.json"]].concat());
    assert_eq!(fs::read_to_string(sandbox.file("out/b.folded")).unwrap().lines().count(), 1);
    // The results for a system of continuous integration have each trace.
    run(&sandbox, 6, &["assert", "--junit", "x.xml", "a.json", "bad", "--", "max(x) < 6us"]);
    let junit = fs::read_to_string(sandbox.file("x.xml")).unwrap();
    let suites: Vec<&str> = junit.lines().filter(|line| line.starts_with("<testsuite ")).collect();
    let expected = [
        "<testsuite name=\"a.json\" tests=\"1\" failures=\"0\" errors=\"0\">",
        "<testsuite name=\"bad\" tests=\"1\" failures=\"0\" errors=\"1\">",
    ];
    assert_eq!(suites, expected);
    // Of one trace, too: old results would be taken for those of now.
    run(&sandbox, 6, &["assert", "--junit", "x.xml", "bad", "max(x) < 6us"]);
    let junit = fs::read_to_string(sandbox.file("x.xml")).unwrap();
    assert!(junit.contains(expected[1]) && !junit.contains("a.json"), "{junit}");
}
