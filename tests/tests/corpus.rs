//! The conformance corpus against the reader, the encoder and the tool.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use trace_analysis::check::KINDS;
use trace_format::record::Record;
use trace_format::sink::Sink;
use trace_reader::Records;
use trace_tests::Sandbox;
use trace_tests::corpus::{File, TABLE_HEADING, cases, directory, expected, files, table};

const HINT: &str = "run `cargo run -p trace-tests --example corpus` and look at what has changed";

fn committed(file: &File, suffix: &str) -> Vec<u8> {
    let path = directory().join(&file.name).with_added_extension(suffix);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; {HINT}", path.display()))
}

#[test]
fn the_committed_files_are_those_that_are_made() {
    let package = ["README.md", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "src"];
    let mut names = BTreeSet::from(package.map(str::to_owned));
    for file in files() {
        assert!(committed(&file, "fxt") == file.bytes, "{}: {HINT}", file.name);
        let found = String::from_utf8(committed(&file, "txt")).unwrap();
        assert_eq!(found, expected(&file.bytes), "{}: {HINT}", file.name);
        assert!(names.insert(format!("{}.fxt", file.name)) && names.insert(format!("{}.txt", file.name)));
    }
    let found: BTreeSet<String> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, names, "{HINT}");
    let page = fs::read_to_string(directory().join("README.md")).unwrap();
    assert_eq!(page.split_once(TABLE_HEADING).unwrap().1, table(), "{HINT}");
    let package = fs::read_to_string(directory().join("src/lib.rs")).unwrap();
    assert!(package.ends_with(&cases()), "{HINT}");
}

#[test]
fn every_kind_of_record_and_problem_is_there() {
    let mut kinds = BTreeSet::new();
    let mut problems = BTreeSet::new();
    for file in files() {
        for line in expected(&file.bytes).lines() {
            match line.strip_prefix("! ").or_else(|| line.strip_prefix("~ ")) {
                Some(problem) => problems.insert(problem.split(' ').next().unwrap().to_owned()),
                None => kinds.insert(line.split(' ').nth(3).unwrap().to_owned()),
            };
        }
    }
    for kind in [
        "magic",
        "provider-info",
        "provider-section",
        "provider-event",
        "initialization",
        "string",
        "thread",
        "instant",
        "counter",
        "begin",
        "end",
        "complete",
        "async-begin",
        "async-instant",
        "async-end",
        "flow-begin",
        "flow-step",
        "flow-end",
        "event-11",
        "blob",
        "loss",
        "userspace-object",
        "kernel-object",
        "context-switch",
        "thread-wakeup",
        "legacy-context-switch",
        "fiber-switch",
        "log",
        "module",
        "mmap",
        "backtrace",
        "large-blob",
        "large-attachment",
        "unknown",
        "malformed",
        "damage",
    ] {
        assert!(kinds.contains(kind), "no file has a record of kind {kind}");
    }
    // Two kinds are about limits that are too large for a small file, one about a month, one about other
    // formats, one about recordings of the manager's; one has to be asked for.
    let beyond = ["spans-full", "tables-full", "time-outlier", "undecodable", "no-end", "clock-skew"];
    for kind in KINDS.iter().filter(|kind| !beyond.contains(kind)) {
        assert!(problems.contains(*kind), "no file has a problem of kind {kind}");
    }
}

/// Collects what is encoded.
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }
}

#[test]
fn what_was_decoded_is_encoded_to_the_same_words() {
    // Reserved bits, later versions and what is only read are not written back.
    let only_read = ["reserved", "unknown", "extended", "scopes", "inline", "fiber-switch", "32752"];
    let mut count = 0;
    for file in files() {
        for raw in Records::of_slice(&file.bytes).map_while(Result::ok) {
            let Ok(record) = Record::decode(raw.bytes) else { continue };
            if record.words() != raw.size {
                continue;
            }
            let mut again = Bytes(Vec::new());
            match record.encode(&mut again) {
                Ok(()) if again.0 == raw.bytes => count += 1,
                result => {
                    let is_known = only_read.iter().any(|part| file.name.contains(part));
                    assert!(is_known, "{} at {}: {result:?} {record:?}", file.name, raw.offset);
                }
            }
        }
    }
    assert!(count > 1000, "{count}");
}

#[test]
fn the_tool_prints_what_the_corpus_says() {
    let sandbox = Sandbox::new();
    for file in files() {
        let path = directory().join(&file.name).with_added_extension("fxt");
        let text = String::from_utf8(committed(&file, "txt")).unwrap();
        let (found, lines): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with("! ") || line.starts_with("~ "));
        let (problems, remarks): (Vec<&str>, Vec<&str>) =
            found.into_iter().partition(|line| line.starts_with("! "));
        let run = |arguments: &[&str]| {
            let output = sandbox.trace(arguments.iter().map(OsStr::new).chain([path.as_os_str()]));
            (String::from_utf8(output.stdout).expect("text"), output.status.code())
        };
        let is_lost = problems.iter().any(|problem| problem.starts_with("! lost "));
        let (dumped, code) = run(&["dump"]);
        assert_eq!(dumped.lines().collect::<Vec<_>>(), lines, "{}", file.name);
        assert_eq!(code, Some(if is_lost { 6 } else { 0 }), "{}", file.name);

        let (json, code) = run(&["check", "--json"]);
        assert_eq!(code, Some(i32::from(!problems.is_empty())), "{}", file.name);
        let answer = trace_tests::Answer::parse(&json);
        let report = serde_json::json!({"problems": answer.problems, "remarks": answer.result["remarks"]});
        let found = |kind: &str, mark: char| -> Vec<String> {
            let found = report[kind].as_array().expect("a list").iter();
            found
                .map(|found| {
                    let offset = found["at_byte"].as_u64().expect("a number");
                    format!(
                        "{mark} {} {} {offset:#010x}",
                        found["kind"].as_str().expect("text"),
                        found["count"]
                    )
                })
                .collect()
        };
        assert_eq!(found("problems", '!'), problems, "{}", file.name);
        assert_eq!(found("remarks", '~'), remarks, "{}", file.name);

        let (raw, _) = run(&["dump", "--raw"]);
        assert_eq!(raw.lines().count(), lines.len(), "{}", file.name);
        let (json, _) = run(&["dump", "--json"]);
        for (object, line) in json.lines().zip(&lines) {
            let object: serde_json::Value = serde_json::from_str(object).expect("JSON");
            let mut words = line.split(' ');
            let offset = format!("{:#010x}", object["at_byte"].as_u64().expect("a number"));
            assert_eq!(words.next(), Some(&*offset), "{}: {line}", file.name);
            assert_eq!(words.next(), Some(&*object["program_id"].to_string()), "{}: {line}", file.name);
            assert_eq!(words.nth(1), object["kind"].as_str(), "{}: {line}", file.name);
        }
        assert_eq!(json.lines().count(), lines.len(), "{}", file.name);
    }
}
