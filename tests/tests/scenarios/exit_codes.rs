//! Every command, with each of its exit codes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use trace_tests::build::program;
use trace_tests::{Answer, Sandbox, pages};

/// What a run has instead of what commands usually have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Its stdout is full.
    Room,
    /// Its runtime directory cannot be made.
    Runtime,
    /// Its runtime directory is a file.
    Directory,
    /// There is no directory for temporary files.
    Temporary,
}

use Without::{Directory, Nothing, Room, Runtime, Temporary};

const LIMIT_THAT_HOLDS: &str = "count(a) == 2";
const SPEC: &str = r#"{"measure": [{"type": "duration", "event_name": "NAME", "event_category": "c"}]}"#;

/// Traces and other files.
fn prepare(sandbox: &Sandbox) {
    let write = |name: &str, text: &[u8]| fs::write(sandbox.file(name), text).unwrap();
    let slice = |at: usize, length: usize| {
        format!(r#"{{"ph":"X","pid":1,"tid":2,"ts":{at},"dur":{length},"name":"a","cat":"c"}}"#)
    };
    let events = [slice(1, 5), slice(10, 5)].join(",");
    write("a.json", format!("[{events}]").as_bytes());
    write("strict.json", format!(r#"[{events},{{"ph":"?","pid":1,"tid":2,"ts":20,"name":"b"}}]"#).as_bytes());
    write("open.json", format!(r#"[{events},{{"ph":"B","pid":1,"tid":2,"ts":20,"name":"b"}}]"#).as_bytes());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(format!("[{}]", vec![events; 1000].join(",")).as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    write("cut.json.gz", &packed[..packed.len() / 2]);
    write("a.spec", SPEC.replace("NAME", "a").as_bytes());
    write("none.spec", SPEC.replace("NAME", "none").as_bytes());
    for directory in ["same", "slower", "unreadable", "few", "ui", "empty"] {
        fs::create_dir(sandbox.file(directory)).unwrap();
    }
    write("ui/index.html", b"<title>UI</title>");
    for pair in 1..=20_usize {
        for (side, longer) in [("old", 0), ("new", 10)] {
            let run = |length| format!("[{}]", slice(1, length + pair % 3));
            write(&format!("same/{pair:04}-{side}.fxt"), run(100).as_bytes());
            write(&format!("slower/{pair:04}-{side}.fxt"), run(100 + longer).as_bytes());
            write(&format!("unreadable/{pair:04}-{side}.fxt"), b"once upon a time");
            if pair == 1 {
                write(&format!("few/{pair:04}-{side}.fxt"), run(100).as_bytes());
            }
        }
    }
}

struct Runs<'a> {
    sandbox: &'a Sandbox,
    seen: BTreeMap<String, BTreeSet<i32>>,
    wrong: Vec<String>,
    /// The commands that have printed a document, with its code.
    answered: BTreeSet<(String, i32)>,
}

/// Commands that have `--json` and may run a second time.
const REPEATABLE: [&str; 16] = [
    "ab",
    "assert",
    "check",
    "convert",
    "diff",
    "doctor",
    "filter",
    "list-categories",
    "list-category-groups",
    "list-programs",
    "measure",
    "query",
    "record",
    "stats",
    "status",
    "time",
];

impl Runs<'_> {
    fn has(&mut self, code: i32, command: &str) {
        self.seen.entry(command.to_owned()).or_default().insert(code);
    }

    /// Runs a command, which has this exit code.
    fn run(&mut self, code: i32, without: Without, arguments: &[&str]) {
        let mut command = self.sandbox.command("trace");
        command.args(arguments);
        match without {
            Nothing => {}
            Room => _ = command.stdout(File::options().write(true).open("/dev/full").unwrap()),
            Runtime => _ = command.env("TRACE_RUNTIME_DIR", self.sandbox.file("missing/run")),
            Directory => _ = command.env("TRACE_RUNTIME_DIR", self.sandbox.file("a.json")),
            Temporary => _ = command.env("TMPDIR", "/missing"),
        }
        let output = command.output().unwrap();
        if output.status.code() != Some(code)
            || code != 0 && output.stderr.is_empty() && output.stdout.is_empty()
        {
            self.wrong.push(format!("expected {code} of {arguments:?}, without {without:?}: {output:?}"));
        }
        self.has(code, arguments[0]);
        if without == Nothing
            && REPEATABLE.contains(&arguments[0])
            && !["-", "--print-config"].iter().any(|other| arguments.contains(other))
        {
            self.answer(code, arguments);
        }
    }

    /// What programs get: one document with the exit code, or nothing.
    //= docs/json.md#the-document
    fn answer(&mut self, code: i32, arguments: &[&str]) {
        let output = self.sandbox.trace([&arguments[..1], &["--json"], &arguments[1..]].concat());
        let is_right = output.status.code() == Some(code) && (code != 0 || !output.stdout.is_empty());
        if !is_right {
            self.wrong.push(format!("expected {code} of {arguments:?} with --json: {output:?}"));
        }
        if !output.stdout.is_empty() {
            let answer = Answer::of(&output);
            assert_eq!(answer.command, arguments[0]);
            // What stderr says is in the document, too.
            let is_told = |problem: &serde_json::Value| {
                ["unread", "failed"].iter().any(|kind| problem["kind"] == *kind)
            };
            if code == 6 && !answer.problems.iter().any(is_told) {
                self.wrong.push(format!("no problem of {arguments:?} says why: {answer:?}"));
            }
            self.answered.insert((arguments[0].to_owned(), code));
        }
    }

    fn runs(&mut self, all: &[(i32, Without, &[&str])]) {
        for (code, without, arguments) in all {
            self.run(*code, *without, arguments);
        }
    }
}

/// The codes that the page lists for each command, beside 0 and 2.
fn listed() -> BTreeMap<String, BTreeSet<i32>> {
    let page = pages::read("docs/command-line.md");
    let (_, table) = page.split_once("| command | codes |\n|---|---|\n").expect("the table");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let row = |line: &str| -> (Vec<String>, BTreeSet<i32>) {
        let cells: Vec<&str> = line.split('|').collect();
        let commands = cells[1].split(", ").map(|name| name.trim().trim_matches('`').to_owned()).collect();
        (commands, cells[2].split(", ").map(|code| code.trim().parse().expect("a code")).collect())
    };
    rows.map(row)
        .flat_map(|(commands, codes)| commands.into_iter().map(move |name| (name, codes.clone())))
        .collect()
}

/// All that read a trace.
fn read(runs: &mut Runs) {
    let of_one: [&[&str]; 7] = [
        &["stats"],
        &["query", "SELECT count(*) FROM slices"],
        &["dump"],
        &["check"],
        &["assert", "a.json", LIMIT_THAT_HOLDS],
        &["measure", "--spec-file", "a.spec"],
        &["diff", "a.json"],
    ];
    for arguments in of_one {
        let of = |file: &'static str| match arguments {
            ["assert", _, limit] => vec!["assert", file, limit],
            arguments => [arguments, &[file]].concat(),
        };
        runs.run(0, Nothing, &of("a.json"));
        runs.run(2, Nothing, &[&of("a.json")[..], &["--frobnicate"]].concat());
        runs.run(6, Nothing, &of("missing.fxt"));
        runs.run(6, Nothing, &of("cut.json.gz"));
        runs.run(125, Room, &of("a.json"));
    }
    runs.runs(&[
        (1, Nothing, &["check", "open.json"]),
        (1, Nothing, &["assert", "a.json", "count(a) == 3"]),
        (3, Nothing, &["assert", "a.json", "p99(none) < 1ms"]),
        (2, Nothing, &["assert", "a.json", "p99(a) < soon"]),
        (125, Nothing, &["assert", "--junit", "/missing/a.xml", "a.json", LIMIT_THAT_HOLDS]),
        (1, Nothing, &["measure", "--spec-file", "none.spec", "a.json"]),
        (2, Nothing, &["measure", "--spec-file", "a.json", "a.json"]),
        (2, Nothing, &["query", "SELECT nothing", "a.json"]),
        (0, Nothing, &["report", "a.json"]),
        (2, Nothing, &["report"]),
        (2, Nothing, &["report", "a.json", "-o", "a.pdf"]),
        (2, Nothing, &["report", "--from", "5s", "--to", "6s", "a.json", "-o", "a.svg"]),
        (6, Nothing, &["report", "cut.json.gz"]),
        (125, Nothing, &["report", "a.json", "-o", "/missing/a.html"]),
        (2, Nothing, &["view"]),
        (6, Nothing, &["view", "--no-open", "--ui", "ui", "missing.fxt"]),
        (0, Nothing, &["convert", "a.json", "a.pftrace"]),
        (1, Nothing, &["convert", "a.json", "a.folded"]),
        (2, Nothing, &["convert", "a.json", "a.txt"]),
        (
            2,
            Nothing,
            &["convert", "--format", "catapult", "--system-event-output-file", "s.json", "a.json", "s.json"],
        ),
        (2, Nothing, &["stats", "--category", "", "a.json"]),
        (4, Nothing, &["convert", "--strict", "strict.json", "b.pftrace"]),
        (6, Nothing, &["convert", "cut.json.gz", "cut.pftrace"]),
        (125, Nothing, &["convert", "a.json", "/missing/a.pftrace"]),
        (0, Nothing, &["filter", "--strip-args", "a.json", "b.fxt"]),
        (125, Temporary, &["view", "--no-open", "--ui", "ui", "b.fxt"]),
        (1, Nothing, &["filter", "--process", "nobody", "a.json", "c.fxt"]),
        (2, Nothing, &["filter", "a.json", "c.fxt"]),
        (6, Nothing, &["filter", "--strip-args", "cut.json.gz", "c.fxt"]),
        (125, Nothing, &["filter", "--strip-args", "a.json", "/missing/c.fxt"]),
        (0, Nothing, &["ab", "--judge", "same"]),
        (1, Nothing, &["ab", "--judge", "slower"]),
        (2, Nothing, &["ab", "--judge", "missing"]),
        (3, Nothing, &["ab", "--judge", "few"]),
        (6, Nothing, &["ab", "--judge", "unreadable"]),
        (125, Room, &["ab", "--judge", "same"]),
    ]);
}

fn record(runs: &mut Runs) {
    let emit = program("emit").to_str().unwrap().to_owned();
    for command in ["record", "live"] {
        let begin: &[&str] = if command == "live" { &["live", "--json"] } else { &["record"] };
        let mut run = |code, without, options: &[&str], app: &[&str]| {
            let name = format!("{command}-{code}.fxt");
            runs.run(code, without, &[begin, &["-o", &name], options, &["--"], app].concat());
        };
        run(0, Nothing, &[], &[&emit, "1", "3"]);
        run(2, Nothing, &["--duration", "soon"], &[&emit, "1", "3"]);
        let small = ["--buffering-mode", "oneshot", "--buffer-size", "1", "--fail-on-loss"];
        run(4, Nothing, &small, &[&emit, "1", "20000"]);
        run(5, Nothing, &[], &["true"]);
        run(126, Nothing, &[], &["./a.json"]);
        run(127, Nothing, &[], &["./missing"]);
        run(125, Runtime, &[], &[&emit, "1", "3"]);
        run(2, Directory, &[], &[&emit, "1", "3"]);
        run(143, Nothing, &["--allow-empty"], &["sh", "-c", "kill -TERM $$"]);
        run(7, Nothing, &["--allow-empty"], &["sh", "-c", "exit 7"]);
    }
    runs.run(1, Nothing, &["record", "-o", "s.fxt", "--spec-file", "none.spec", "--", &emit, "1", "3"]);
    for command in ["record", "live"] {
        let codes = runs.seen.get_mut(command).unwrap();
        assert!(codes.remove(&143) && codes.remove(&7), "those of commands");
    }
}

fn background(runs: &mut Runs) {
    for command in ["stop", "snapshot", "flush", "dump-memory"] {
        runs.run(5, Nothing, &[command]);
        runs.run(2, Nothing, &[command, "--frobnicate"]);
    }
    runs.runs(&[
        (0, Nothing, &["start", "-o", "background.fxt"]),
        (2, Nothing, &["start", "--frobnicate"]),
        (125, Runtime, &["start", "-o", "other.fxt"]),
        (3, Nothing, &["manager"]),
        (0, Nothing, &["status"]),
        (0, Nothing, &["list-programs"]),
        (0, Nothing, &["list-categories"]),
        (0, Nothing, &["list-category-groups"]),
        (0, Nothing, &["flush"]),
        (0, Nothing, &["snapshot"]),
        (0, Nothing, &["dump-memory"]),
        (125, Nothing, &["snapshot", "-o", "/missing/s.fxt"]),
        (125, Room, &["flush", "--json"]),
        (125, Room, &["dump-memory", "--json"]),
        (125, Nothing, &["stop", "-o", "/missing/s.fxt"]),
        (0, Nothing, &["stop"]),
    ]);
    let of_managers = [
        "status",
        "stop",
        "snapshot",
        "flush",
        "dump-memory",
        "recover",
        "list-programs",
        "list-categories",
        "manager",
        "start",
    ];
    for command in of_managers {
        runs.run(2, Directory, &[command]);
    }
    runs.run(2, Directory, &["recover", "--list"]);
    for command in ["status", "list-programs", "list-categories", "list-category-groups"] {
        runs.run(2, Nothing, &[command, "--frobnicate"]);
        runs.run(125, Room, &[command, "--json"]);
    }
}

/// Those around recordings.
fn others(runs: &mut Runs) {
    runs.runs(&[
        (0, Nothing, &["doctor", "--no-self-trace"]),
        (1, Runtime, &["doctor", "--no-self-trace"]),
        (1, Directory, &["doctor", "--no-self-trace"]),
        (2, Nothing, &["doctor", "--frobnicate"]),
        (125, Room, &["doctor", "--no-self-trace"]),
        (2, Nothing, &["recover", "--frobnicate"]),
        (5, Nothing, &["recover", "empty"]),
        (0, Nothing, &["recover", "--list", "empty"]),
        (5, Nothing, &["recover", "missing"]),
        (5, Nothing, &["recover", "--list", "missing"]),
        (5, Nothing, &["recover", "--delete", "missing"]),
        (2, Nothing, &["recover", "--delete", "a.json"]),
        (125, Room, &["recover", "--list", "--json", "empty"]),
        (0, Nothing, &["time"]),
        (2, Nothing, &["time", "--frobnicate"]),
        (125, Room, &["time"]),
        (0, Nothing, &["record", "--print-config"]),
        (2, Nothing, &["record", "--print-config", "-c", "missing.toml"]),
        (125, Room, &["record", "--print-config"]),
        (0, Nothing, &["manager", "--on-demand", "--idle-timeout", "100ms"]),
        (2, Nothing, &["manager", "--frobnicate"]),
        (125, Runtime, &["manager"]),
        (0, Nothing, &["completions", "bash"]),
        (2, Nothing, &["completions", "none"]),
        (125, Room, &["completions", "bash"]),
        (0, Nothing, &["man", "man"]),
        (2, Nothing, &["man"]),
        (125, Nothing, &["man", "a.json"]),
        (0, Nothing, &["mcp"]),
        (2, Nothing, &["mcp", "--frobnicate"]),
        (125, Nothing, &["mcp", "missing"]),
        (2, Nothing, &["ktrace", "--frobnicate"]),
    ]);
}

//= docs/command-line.md#exit-codes
#[test]
fn every_command_has_each_of_its_exit_codes() {
    let sandbox = Sandbox::new();
    prepare(&sandbox);
    let mut runs =
        Runs { sandbox: &sandbox, seen: BTreeMap::new(), wrong: Vec::new(), answered: BTreeSet::new() };
    // Before there is a manager.
    others(&mut runs);
    read(&mut runs);
    record(&mut runs);
    background(&mut runs);
    // These serve until they are ended, the first one where there is a kernel's trace; a recording that
    // cannot be read is in a scenario of recovery.
    runs.has(0, "ktrace");
    runs.has(125, "ktrace");
    runs.has(0, "view");
    runs.has(6, "recover");
    assert!(runs.wrong.is_empty(), "{:#?}", runs.wrong);
    let mut expected = listed();
    expected.values_mut().for_each(|codes| codes.extend([0, 2]));
    assert_eq!(runs.seen, expected);
    // `doctor` has another code on another machine.
    let answered = runs.answered.iter().filter(|(command, _)| command != "doctor");
    let mut codes: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    answered.for_each(|(command, code)| codes.entry(command).or_default().push(*code));
    let expected: [(&str, &[i32]); 15] = [
        ("ab", &[0, 1, 3]),
        ("assert", &[0, 1, 3, 6]),
        ("check", &[0, 1, 6]),
        ("convert", &[0, 6]),
        ("diff", &[0, 6]),
        ("filter", &[0, 6]),
        ("list-categories", &[0]),
        ("list-category-groups", &[0]),
        ("list-programs", &[0]),
        ("measure", &[0, 1, 6]),
        ("query", &[0, 6]),
        ("record", &[0, 1, 4, 5, 7, 143]),
        ("stats", &[0, 6]),
        ("status", &[0]),
        ("time", &[0]),
    ];
    assert_eq!(codes, expected.map(|(command, codes)| (command, codes.to_vec())).into());
}
