//! Questions to a trace, and its tables as files.

use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::process::{Output, Stdio};
use trace_tests::{Answer, Sandbox, sandbox::kill};

const TRACE: &str = r#"[
    {"ph": "X", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2, "name": "read", "cat": "io", "args": {"size": 10}},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 4, "dur": 0.5, "name": "read", "cat": "io", "args": {"size": 30}},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 5, "dur": 1, "name": "say \"hi, you\"", "cat": "io"},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 5, "name": "depth", "args": {"n": 0.25}}
]"#;

const SQL: &str = "SELECT name, count(*) AS n, avg(json_extract(args, '$.size')) AS size FROM slices \
                   GROUP BY name ORDER BY n DESC; SELECT value FROM counters";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.json"), TRACE).unwrap();
    sandbox
}

/// A name with spaces is no SQL because of them.
#[test]
fn a_missing_trace_is_named_whatever_its_name_is() {
    let sandbox = Sandbox::new();
    for arguments in [["my missing.fxt", "SELECT 1"], ["SELECT 1", "my missing.fxt"]] {
        let output = sandbox.trace([&["query"][..], &arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("my missing.fxt") && !said.contains("SQL"), "{said}");
    }
}

/// What is printed by a command that succeeds.
fn printed(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.trace(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code and words of a command that fails.
fn refused(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, String) {
    let output = sandbox.trace(arguments);
    assert!(!output.status.success(), "{output:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

//= docs/tables.md#questions
#[test]
fn answers_come_as_a_table_csv_or_json() {
    let sandbox = sandbox();
    let table = printed(&sandbox, &["query", SQL, "trace.json"]);
    assert_eq!(
        table,
        " name           n  size\n read           2  20.0\n say \"hi, you\"  1\n value\n  0.25\n"
    );
    let csv = printed(&sandbox, &["query", "--format", "csv", SQL, "trace.json"]);
    assert_eq!(csv, "name,n,size\nread,2,20.0\n\"say \"\"hi, you\"\"\",1,\nvalue\n0.25\n");
    fs::write(sandbox.file("question.sql"), SQL).unwrap();
    let json = printed(&sandbox, &["query", "--format", "json", "--file", "question.sql", "trace.json"]);
    assert_eq!(
        json,
        r#"{
"version": 1,
"command": "query",
"traces": [{"bytes":null,"end_ns":null,"file":"trace.json","start_ns":null}],
"result": [
{"columns": ["name","n","size"], "rows": [
{"name":"read","n":2,"size":20.0},
{"name":"say \"hi, you\"","n":1,"size":null}
]},
{"columns": ["value"], "rows": [
{"value":0.25}
]}
],
  "losses": [],
  "problems": [],
  "exit": {
    "code": 0,
    "of": "trace"
  }
}
"#
    );
    // A statement that fails behind others.
    let output = sandbox.trace(["query", "--json", "SELECT 1 AS a; SELECT b FROM none", "trace.json"]);
    let answer = Answer::of(&output);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(answer.result, serde_json::json!([{"columns": ["a"], "rows": [{"a": 1}]}]));
    let text = "SQL: no such table: none; See trace query --schema";
    let problem = serde_json::json!({
        "file": null, "kind": "failed", "count": null, "text": text, "at_byte": null, "places": [],
    });
    assert_eq!(answer.problems, [problem]);
    // Also with the trace first.
    assert_eq!(printed(&sandbox, &["query", "trace.json", SQL]), table);
    // Of several traces.
    fs::write(sandbox.file("other.json"), r#"[{"ph":"X","pid":9,"tid":9,"ts":1,"dur":1,"name":"read"}]"#)
        .unwrap();
    let sql = "SELECT trace, count(*) FROM slices WHERE name = 'read' GROUP BY trace";
    let expected = "trace,count(*)\nother.json,1\ntrace.json,2\n";
    for order in [["trace.json", sql, "other.json"], ["other.json", "trace.json", sql]] {
        let arguments = [&["query", "--format", "csv"][..], &order].concat();
        assert_eq!(printed(&sandbox, &arguments), expected);
    }
    let (code, said) = refused(&sandbox, &["query", "SELECT * FROM slice", "trace.json"]);
    let expected = "trace: SQL: no such table: slice; did you mean slices? See trace query --schema\n";
    assert_eq!((code, said.as_str()), (Some(2), expected));
    let schema = printed(&sandbox, &["query", "--schema"]);
    assert_eq!(schema.lines().filter(|line| line.starts_with("CREATE TABLE ")).count(), 15);
    assert!(schema.contains("\n-- the view steps (id, name, step_id, step, ts, dur)\n"), "{schema}");
    let threads = "CREATE TABLE threads (pid INTEGER, tid INTEGER, process TEXT, thread TEXT, id INTEGER);";
    assert!(schema.contains(threads));
}

/// A document is whole whatever ends the statements.
//= docs/json.md#rules
#[test]
fn a_signal_closes_the_document() {
    let sandbox = sandbox();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n";
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = sandbox.command("trace");
        let mut child =
            command.args(["query", "--json", endless, "trace.json"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut text = vec![0; 1000];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut text).unwrap();
        kill(child.id(), signal);
        stdout.read_to_end(&mut text).unwrap();
        let status = child.wait().unwrap();
        let answer = Answer::of(&Output { status, stdout: text, stderr: Vec::new() });
        assert_eq!(status.code(), Some(code));
        let rows = answer.result[0]["rows"].as_array().unwrap();
        let last = rows.last().unwrap()["x"].as_u64().unwrap();
        assert_eq!(last, rows.len() as u64);
    }
}

/// Statements without rows, and none at all.
//= docs/json.md#query
#[test]
fn statements_without_rows_have_a_document() {
    let sandbox = sandbox();
    for arguments in [
        &["query", "--json", "CREATE TEMP TABLE t AS SELECT 1", "trace.json"][..],
        &["query", "--json", "--save", "tables.db", "trace.json"],
    ] {
        let answer = Answer::of(&sandbox.trace(arguments));
        assert_eq!((answer.result, answer.traces.len()), (serde_json::json!([]), 1));
    }
}

//= docs/tables.md#questions
#[test]
fn invalid_queries_are_reported() {
    let sandbox = sandbox();
    let (code, said) = refused(&sandbox, &["query", "SELECT missing FROM slices", "trace.json"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("no such column: missing"), "{said}");
    let (code, said) = refused(&sandbox, &["query", "SELECT 1"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("give SQL and a trace"), "{said}");
    let (code, said) = refused(&sandbox, &["query", "SELECT 1", "missing.fxt"]);
    assert_eq!(code, Some(6));
    assert!(said.contains("cannot read missing.fxt"), "{said}");
}

/// Statements may come from others: they have the trace, and no other file.
//= docs/tables.md#questions
#[test]
fn statements_read_the_trace_and_do_nothing_else() {
    let sandbox = sandbox();
    fs::write(sandbox.file("other.db"), "").unwrap();
    let before = sandbox.files();
    for (sql, refused_is) in [
        ("ATTACH 'made.db' AS made", "ATTACH or VACUUM with the file \"made.db\""),
        ("ATTACH 'other.db' AS other", "ATTACH or VACUUM with the file \"other.db\""),
        ("ATTACH DATABASE ':memory:' AS other", "ATTACH or VACUUM with the file \":memory:\""),
        ("DETACH main", "DETACH main"),
        ("VACUUM", "ATTACH or VACUUM with the file \"\""),
        ("VACUUM INTO 'made.db'", "ATTACH or VACUUM with the file \"made.db\""),
        ("PRAGMA journal_mode = WAL", "PRAGMA journal_mode"),
        ("PRAGMA writable_schema = ON", "PRAGMA writable_schema"),
        ("PRAGMA temp_store_directory = '.'", "PRAGMA temp_store_directory"),
        ("SELECT * FROM pragma_table_info('slices')", "PRAGMA table_info"),
        ("SELECT load_extension('./made.so')", "the function load_extension"),
        ("SELECT LOAD_EXTENSION('./made.so', 'x')", "the function load_extension"),
        ("CREATE TABLE made (a)", "CREATE TABLE made"),
        (
            "CREATE TEMP TABLE a (x); CREATE TEMP TRIGGER made AFTER INSERT ON a BEGIN SELECT 1; END",
            "CREATE TRIGGER made",
        ),
        ("CREATE VIRTUAL TABLE temp.made USING slices", "CREATE VIRTUAL TABLE made USING slices"),
        ("CREATE TABLE made AS SELECT * FROM slices", "CREATE TABLE made"),
        ("CREATE VIRTUAL TABLE made USING fts5(a)", "CREATE VIRTUAL TABLE made USING fts5"),
        ("INSERT INTO slices (name) VALUES ('x')", "INSERT INTO slices"),
        ("DROP TABLE slices", "DROP TABLE slices"),
        ("ANALYZE", "ANALYZE"),
        ("BEGIN; SELECT 1; COMMIT", "a transaction"),
        ("SAVEPOINT made", "a transaction"),
        ("SELECT 1; EXPLAIN ATTACH 'made.db' AS made", "ATTACH or VACUUM"),
    ] {
        let (code, said) = refused(&sandbox, &["query", sql, "trace.json"]);
        assert_eq!(code, Some(2), "{sql}: {said}");
        let expected = format!("SQL: {refused_is}");
        let advice = "is refused: statements may read the trace and create views and temporary tables";
        assert!(said.contains(&expected) && said.contains(advice), "{sql}: {said}");
        assert_eq!(sandbox.files(), before, "{sql}");
    }
    // Others are wrong, and not only refused.
    for (sql, expected) in [
        (
            "CREATE INDEX made ON slices (name)",
            "virtual tables may not be indexed; a temporary table may: CREATE TEMP TABLE t AS SELECT …",
        ),
        (
            "CREATE TRIGGER made AFTER INSERT ON slices BEGIN SELECT 1; END",
            "cannot create triggers on virtual tables",
        ),
        ("UPDATE slices SET name = 'x'", "table slices may not be modified"),
        ("DELETE FROM slices", "table slices may not be modified"),
        ("ALTER TABLE slices RENAME TO made", "table slices may not be altered"),
        ("DELETE FROM sqlite_temp_master", "table sqlite_temp_master may not be modified"),
    ] {
        let (code, said) = refused(&sandbox, &["query", sql, "trace.json"]);
        assert_eq!((code, said), (Some(2), format!("trace: SQL: {expected}\n")), "{sql}");
    }
    let (code, said) =
        refused(&sandbox, &["query", "INSERT INTO sqlite_master (name) VALUES ('x')", "trace.json"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("sqlite_master may not be modified"), "{said}");

    let sql = "CREATE VIEW reads AS SELECT * FROM slices WHERE name = 'read'; CREATE TEMP TABLE kept AS SELECT * FROM reads; \
               CREATE INDEX temp.by_name ON kept (name); INSERT INTO kept SELECT * FROM kept; \
               UPDATE kept SET dur = 1; DELETE FROM kept WHERE ts > 2000; CREATE TEMP VIEW long AS SELECT * FROM reads WHERE dur > 1000; \
               WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) \
               SELECT (SELECT count(*) FROM reads), (SELECT count(*) FROM long), max(i), \
               (SELECT sum(value) FROM reads, json_each(reads.args)), (SELECT sum(dur) FROM kept) FROM n; \
               DROP VIEW long; DROP VIEW reads; DROP INDEX by_name; DROP TABLE kept";
    let answer = printed(&sandbox, &["query", "--format", "csv", sql, "trace.json"]);
    assert_eq!(answer.lines().last(), Some("2,1,3,40,2"));
    assert_eq!(sandbox.files(), before);
}

/// The saved tables are those of the questions, with the slices' places in each other.
//= docs/tables.md#saving
#[test]
fn tables_are_saved_to_a_database() {
    let sandbox = sandbox();
    let output = sandbox.trace(["query", "--save", "saved.db", "trace.json"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "trace: 15 tables in saved.db\n");
    assert!(output.status.success() && output.stdout.is_empty());
    let bytes = fs::read(sandbox.file("saved.db")).unwrap();
    assert!(bytes.starts_with(b"SQLite format 3\0"));
    assert_eq!(sandbox.files().iter().filter(|name| name.contains("saved")).count(), 1);
    // Again, with a question.
    let answer =
        printed(&sandbox, &["query", "--save", "saved.db", "SELECT sum(dur) FROM slices", "trace.json"]);
    assert_eq!(answer, " sum(dur)\n     3500\n");
    // A trace that cannot be read leaves the database of before.
    fs::write(sandbox.file("bad.json"), "[nonsense").unwrap();
    let (code, said) = refused(&sandbox, &["query", "--save", "saved.db", "bad.json"]);
    assert_eq!(code, Some(6));
    assert!(said.contains("bad.json: line 1, column 2:"), "{said}");
    assert_eq!(fs::read(sandbox.file("saved.db")).unwrap(), bytes);
    // Nor does it replace what it reads.
    for (output, expected) in [
        ("trace.json", "trace.json is both input and output"),
        ("-", "this cannot be written to stdout: expected a name, such as ./-"),
        ("missing/saved.db", "cannot write missing/saved.db"),
    ] {
        let (_, said) = refused(&sandbox, &["query", "--save", output, "trace.json"]);
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(fs::read_to_string(sandbox.file("trace.json")).unwrap(), TRACE);
}

//= docs/tables.md#csv
//= docs/tables.md#parquet
#[test]
fn tables_are_files_of_a_directory() {
    let sandbox = sandbox();
    printed(&sandbox, &["convert", "--format", "csv", "trace.json"]);
    let read = |name: &str| fs::read_to_string(sandbox.file("trace.tables").join(name)).unwrap();
    assert_eq!(
        read("slices.csv"),
        "ts,dur,pid,tid,process,thread,category,name,async_id,args,id,parent_id,depth,self_dur,thread_id,program_id,ts_utc,kind,operation_id,parent_operation_id,end_reason\n\
         1500,2000,1,2,,,io,read,,\"{\"\"size\"\":10}\",1,,0,2000,1,1,,slice,,,\n\
         4000,500,1,2,,,io,read,,\"{\"\"size\"\":30}\",2,,0,500,1,1,,slice,,,\n\
         5000,1000,1,2,,,io,\"say \"\"hi, you\"\"\",,,3,,0,1000,1,1,,slice,,,\n"
    );
    assert_eq!(read("threads.csv"), "pid,tid,process,thread,id\n1,2,,,1\n");
    assert_eq!(
        read("programs.csv"),
        "id,name,generated,archived,lost,pid,parent_pid,command_line,start_ts,end_ts,end_reason\n1,json,,,0,,,,,,\n"
    );
    assert_eq!(fs::read_dir(sandbox.file("trace.tables")).unwrap().count(), 15);

    printed(&sandbox, &["convert", "--format", "csv", "trace.json", "runs/run=1"]);
    assert_eq!(fs::read_dir(sandbox.file("runs/run=1")).unwrap().count(), 15);

    // Again, into the directory that is there; what else is in it stays.
    fs::write(sandbox.file("trace.tables").join("notes"), "mine").unwrap();
    printed(&sandbox, &["convert", "--format", "csv", "--category", "none", "trace.json", "trace.tables"]);
    assert_eq!(read("slices.csv").lines().count(), 1);
    assert_eq!(read("notes"), "mine");

    let (code, said) = refused(&sandbox, &["convert", "--format", "csv", "trace.json", "-"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("name a directory"), "{said}");

    printed(&sandbox, &["convert", "--format", "parquet", "trace.json", "parquet"]);
    let files: Vec<_> =
        fs::read_dir(sandbox.file("parquet")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 15);
    assert!(files.iter().all(|file| fs::read(file).unwrap().starts_with(b"PAR1")));
}

/// Names that begin as formulas do, and some that do not.
const NAMES: &str = r#"[
    {"ph": "C", "pid": 1, "tid": 2, "ts": 1, "name": "=1+1", "cat": "-c", "args": {"@n": -5}},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 2, "name": "+x", "args": {"n": -0.5}},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 3, "name": "-x", "args": {"n": 7}},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 4, "name": "@x", "args": {"n": 7}},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 5, "name": "\tx", "args": {"n": 7}},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 6, "name": "\rx", "args": {"n": 7}},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 7, "name": "x=1", "args": {"n": 7}},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 8, "name": "a,\"b\"", "args": {"n": 7}},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 9, "name": "=a,\"b\"", "args": {"n": 7}}
]"#;

//= docs/tables.md#csv
#[test]
fn a_spreadsheet_takes_no_name_in_statistics_for_a_formula() {
    const SLICES: &str = r#"[
        {"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "name": "=1+1", "cat": "@c"},
        {"ph": "X", "pid": 1, "tid": 2, "ts": 5, "dur": 2, "name": "a,b", "cat": "-1"}
    ]"#;
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.json"), SLICES).unwrap();
    for (option, name) in [(&[][..], "@c,=1+1,"), (&["--spreadsheet"], r#""'@c","'=1+1","#)] {
        for command in [&["stats", "trace.json"][..], &["diff", "trace.json", "trace.json"]] {
            let found = printed(&sandbox, &[command, &["--csv"], option].concat());
            let lines: Vec<&str> = found.lines().collect();
            assert!(lines.iter().any(|line| line.starts_with(&format!("duration,{name}"))), "{found}");
            // A text, too, if it reads as a number.
            let category = if option.is_empty() { "-1" } else { "\"'-1\"" };
            let begin = format!("duration,{category},\"a,b\",");
            assert!(lines.iter().any(|line| line.starts_with(&begin)), "{found}");
        }
    }
    let (code, said) = refused(&sandbox, &["stats", "--spreadsheet", "trace.json"]);
    assert!(code == Some(2) && said.contains("--csv"), "{said}");
}

//= docs/tables.md#csv
#[test]
fn a_spreadsheet_takes_no_text_for_a_formula() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.json"), NAMES).unwrap();
    let plain = ["=1+1", "+x", "-x", "@x", "\tx", "\"\rx\"", "x=1", r#""a,""b""""#, r#""=a,""b""""#];
    let safe = [
        r#""'=1+1""#,
        r#""'+x""#,
        r#""'-x""#,
        r#""'@x""#,
        "\"'\tx\"",
        "\"'\rx\"",
        "x=1",
        r#""a,""b""""#,
        r#""'=a,""b""""#,
    ];
    let rows = |names: &[&str], row: &dyn Fn(usize, &str) -> String| -> String {
        names.iter().enumerate().map(|(number, name)| row(number, name)).collect()
    };
    let values = ["-5.0,-5", "-0.5,", "7.0,7", "7.0,7", "7.0,7", "7.0,7", "7.0,7", "7.0,7", "7.0,7"];
    for (names, [minus, at, column, both], options) in [
        (plain, ["-c", "@n", "=n", "+a,\"\"b\"\""], &[][..]),
        (safe, ["\"'-c\"", "\"'@n\"", "\"'=n\"", "'+a,\"\"b\"\""], &["--spreadsheet"]),
    ] {
        let convert = [&["convert", "--format", "csv"], options, &["trace.json", "tables"]].concat();
        printed(&sandbox, &convert);
        let found = fs::read_to_string(sandbox.file("tables/counters.csv")).unwrap();
        let (header, found) = found.split_once('\n').unwrap();
        assert_eq!(header, "ts,pid,tid,process,thread,category,name,counter_id,series,value,integer,ts_utc");
        let row = |number: usize, name: &str| {
            let (category, series) = if number == 0 { (minus, at) } else { ("", "n") };
            format!("{}000,1,2,,,{category},{name},0,{series},{},\n", number + 1, values[number])
        };
        assert_eq!(found, rows(&names, &row));

        let sql = "SELECT name AS '=n', value AS '+a,\"b\"', integer, NULL, '' FROM counters; SELECT '' AS x; SELECT NULL AS x";
        let query = [&["query", "--format", "csv"], options, &[sql, "trace.json"]].concat();
        let row = |number: usize, name: &str| format!("{name},{},,\n", values[number]);
        let expected =
            format!("{column},\"{both}\",integer,NULL,''\n{}x\n\"\"\nx\n\"\"\n", rows(&names, &row));
        assert_eq!(printed(&sandbox, &query), expected);
    }
    for (arguments, expected) in [
        (
            &["convert", "--format", "parquet", "--spreadsheet", "trace.json"][..],
            "--spreadsheet is for --format csv",
        ),
        (&["convert", "--spreadsheet", "trace.json", "x.pftrace"], "--spreadsheet is for --format csv"),
        (&["query", "--spreadsheet", "SELECT 1", "trace.json"], "--spreadsheet is for --format csv"),
        (
            &["query", "--spreadsheet", "--json", "SELECT 1", "trace.json"],
            "--spreadsheet is for --format csv",
        ),
    ] {
        let (code, said) = refused(&sandbox, arguments);
        assert_eq!((code, said), (Some(2), format!("trace: {expected}\n")));
    }
}

/// Each statement fills other tables, and what is skipped is said at the end.
//= docs/tables.md#tables
#[test]
fn what_one_statement_skips_is_said_behind_all() {
    let sandbox = Sandbox::new();
    let end = r#"[{"ph":"X","ts":1,"dur":1,"pid":1,"tid":2,"name":"a"},{"ph":"C","ts":5,"pid":1,"tid":2,"name":"c","args":{"n":"x"}}]"#;
    fs::write(sandbox.file("skipped.json"), end).unwrap();
    let counted = "SELECT count(*) FROM counters";
    for sql in [counted, &format!("{counted}; SELECT count(*) FROM threads")] {
        let output = sandbox.trace(["query", sql, "skipped.json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.contains("counter argument that is no number"),
            "{sql}: {said}"
        );
    }
}

/// What cannot be read, or cannot be expressed and must be, leaves no directory behind.
//= docs/tables.md#csv
#[test]
fn a_directory_that_is_not_complete_is_removed() {
    let sandbox = sandbox();
    fs::write(sandbox.file("bad.json"), "[nonsense]").unwrap();
    let (code, said) = refused(&sandbox, &["convert", "--format", "csv", "bad.json", "tables"]);
    assert_eq!(code, Some(6));
    assert!(said.contains("bad.json: line 1, column 2:"), "{said}");
    assert!(!sandbox.file("tables").exists());

    fs::write(sandbox.file("lossy.json"), "[{\"ph\":\"P\",\"ts\":1},{\"ph\":\"i\",\"ts\":1}]").unwrap();
    let (code, said) = refused(&sandbox, &["convert", "--strict", "--format", "csv", "lossy.json", "tables"]);
    assert_eq!(code, Some(4));
    assert!(said.contains("--strict: 1 record"), "{said}");
    assert!(!sandbox.file("tables").exists());
}
