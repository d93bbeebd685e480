//! Files of other programs that are not quite as their format has it, or are in something else. The files and
//! what is
//! right about each are listed in `tests/data/cases/README.md`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use trace_tests::Sandbox;
use trace_tests::build::workspace;

/// A file, a question, the rows of the answer, and what is printed beside it.
type Case = (&'static str, &'static str, &'static [&'static str], &'static str);

const SLICES: &str = "SELECT ts, dur, name FROM slices ORDER BY ts";
const ARGUMENTS: &str = "SELECT name, args FROM slices ORDER BY ts";

const CASES: [Case; 8] = [
    (
        "M1_backslashes.json",
        SLICES,
        &["5000,1000,D:\\work\\core.py(21)", "9000,1000,ok"],
        "line 1, column 23: invalid escape in",
    ),
    (
        "M3_decimal_comma_args.json",
        ARGUMENTS,
        &["a,\"{\"\"n\"\":3}\"", "b,"],
        "1 member that cannot be read skipped",
    ),
    (
        "F1_text_ids.json",
        "SELECT process, thread, name FROM slices ORDER BY ts",
        &["Main,work,plan", "Main,rest,film"],
        "",
    ),
    (
        "N1_two_long_args.json",
        "SELECT name, dur, length(args ->> 'sql'), length(args ->> 'plan') FROM slices ORDER BY ts",
        &["query,2000,20000,20000", "ok,2000,,"],
        "",
    ),
    (
        "V1_many_arguments.json",
        "SELECT count(*), args ->> 'a15', args ->> 'a18' FROM slices, json_each(args)",
        &["18,15,last"],
        "",
    ),
    (
        "K1_instant_on_track.pftrace",
        "SELECT thread, name, ts, dur FROM slices UNION ALL SELECT thread, name, ts, NULL FROM instants",
        &["queue,job,10,10", "queue,tick,30,"],
        "",
    ),
    ("O1_atrace_z.data", "SELECT process, tid, name, dur FROM slices", &["app,100,draw,100000"], ""),
    ("I1_no_tid.json", "SELECT name, tid, thread FROM slices ORDER BY ts", &["f,47,main", "g,49,"], ""),
];

//= docs/import.md#what-is-no-json
//= docs/import.md#processes-and-threads
#[test]
fn odd_files_have_their_right_values() {
    let sandbox = Sandbox::new();
    for (file, question, rows, remark) in CASES {
        let path = workspace().join("tests/data/cases").join(file);
        let output = sandbox.trace(["query", "--format", "csv", path.to_str().unwrap(), question]);
        let [text, error] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        let found: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(found, rows, "{file}: {error}");
        assert!(error.contains(remark), "{file}: {error}");
    }
}

/// A name of a file may be any bytes.
#[test]
fn names_that_are_no_text_are_read() {
    const BEGIN: &str = r#"[{"ph":"X","name":"a","cat":"c","pid":1,"tid":1,"ts":0,"dur":5}]"#;
    let sandbox = Sandbox::new();
    let names: [&OsStr; 2] = [&b"\xff.json"[..], b"a \xfe.json"].map(OsStr::from_bytes);
    for name in names {
        std::fs::write(sandbox.work_dir().join(name), BEGIN).unwrap();
    }
    let [first, second] = names;
    let limit = OsStr::new("count(a) == 1");
    let commands: [&[&OsStr]; 12] = [
        &["query".as_ref(), first, "SELECT count(*) FROM slices".as_ref(), second],
        &["query".as_ref(), "--save".as_ref(), "a.db".as_ref(), first],
        &["assert".as_ref(), first, limit],
        &["assert".as_ref(), second, first, limit],
        &["assert".as_ref(), first, second, "--".as_ref(), limit],
        &["stats".as_ref(), first, second],
        &["dump".as_ref(), first],
        &["check".as_ref(), first],
        &["diff".as_ref(), first, second],
        &["report".as_ref(), first, "-o".as_ref(), "a.html".as_ref()],
        &["convert".as_ref(), first, "a.pftrace".as_ref()],
        &["filter".as_ref(), "--strip-args".as_ref(), first, "a.fxt".as_ref()],
    ];
    for arguments in commands {
        let output = sandbox.trace(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    // One that is missing is no statement and no limit.
    let missing: OsString = OsStr::from_bytes(b"\xfd.json").to_owned();
    let commands: [&[&OsStr]; 2] =
        [&["query".as_ref(), "SELECT 1".as_ref(), &missing], &["assert".as_ref(), first, &missing, limit]];
    for arguments in commands {
        let output = sandbox.trace(arguments);
        assert_eq!(output.status.code(), Some(6), "{arguments:?}: {output:?}");
    }
}
