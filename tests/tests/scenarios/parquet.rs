//! Other programs read the tables of Parquet files.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fs;
use std::path::Path;
use trace_tests::Sandbox;
use trace_tests::build::workspace;
use trace_tests::tables::{Peer, Rows, questions};

fn convert(sandbox: &Sandbox, arguments: &[&str]) {
    let output = sandbox.trace(["convert", "--format", "parquet"].iter().chain(arguments));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Rows as `trace query` has them, without the names of the columns.
fn queried(sandbox: &Sandbox, sql: &str, traces: &[&str]) -> Rows {
    let output = sandbox.trace(["query", "--format", "json", sql].iter().chain(traces));
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Row> = trace_tests::json(&output);
    rows.into_iter().map(|row| Value::Array(row.0)).collect()
}

/// The values of an object, in its order.
struct Row(Vec<Value>);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Row;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
                let mut values = Vec::new();
                while let Some((_, value)) = map.next_entry::<String, Value>()? {
                    values.push(value);
                }
                Ok(Row(values))
            }
        }
        deserializer.deserialize_map(Values)
    }
}

/// The tables and columns, as `trace query --schema` has them.
fn tables(sandbox: &Sandbox) -> Vec<(String, String)> {
    let output = sandbox.trace(["query", "--schema"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let table = |line: &str| {
        let (name, columns) = line.strip_prefix("CREATE TABLE ")?.split_once(" (")?;
        let columns = columns.strip_suffix(");")?.split(", ");
        let columns: Vec<&str> = columns.filter_map(|column| Some(column.split_once(' ')?.0)).collect();
        Some((name.to_owned(), columns.join(", ")))
    };
    text.lines().filter_map(table).collect()
}

/// Equal numbers may be written differently.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Number(_), Value::Number(_)) => {
            a == b || a.as_f64() == b.as_f64() && !(a.is_i64() && b.is_i64())
        }
        _ => a == b,
    }
}

fn compare(what: &str, found: &[Value], expected: &[Value]) {
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(is_equal(found, expected), "{what}: row {place} is {found}, not {expected}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

fn sorted(mut rows: Rows) -> Rows {
    rows.sort_by_key(ToString::to_string);
    rows
}

/// A recording of programs, and traces of other formats with the kinds of row that it does not have.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.record(&["-o", "demo.fxt"], "demo", &[]);
    let samples = workspace().join("tests/data/samples");
    fs::copy(samples.join("linux_ftrace_text.txt"), sandbox.file("kernel.txt")).expect("a sample");
    let odd = r#"[
        {"ph":"b","ts":3,"pid":1,"tid":2,"cat":"c","name":"job","id":"0xffffffffffffffff","args":{"é":"\"\n"}},
        {"ph":"C","ts":4,"pid":1,"tid":2,"name":"count","args":{"x":0.1,"n":9007199254740993}},
        {"ph":"X","ts":9,"dur":0,"pid":1,"tid":2,"name":""},
        {"ph":"X","ts":0.001,"dur":90,"pid":1,"tid":2,"name":"late"}
    ]"#;
    fs::write(sandbox.file("odd.json"), odd).expect("a file");
    sandbox
}

//= docs/tables.md#parquet
#[test]
fn duckdb_reads_what_query_answers() {
    const TEST: &str = "parquet::duckdb_reads_what_query_answers";
    let sandbox = sandbox();
    for (trace, directory) in [("demo.fxt", "demo"), ("kernel.txt", "kernel"), ("odd.json", "odd")] {
        convert(&sandbox, &[trace, directory]);
        let tables = tables(&sandbox);
        assert_eq!(tables.len(), 15);
        let all: Vec<String> =
            tables.iter().map(|(name, columns)| format!("SELECT {columns} FROM {name}")).collect();
        let in_order =
            "SELECT count(*) FROM (SELECT ts < lag(ts) OVER (ORDER BY file_row_number) AS is_less FROM \
                        read_parquet('slices.parquet', file_row_number = true)) WHERE is_less"
                .replace("slices.parquet", &sandbox.file(directory).join("slices.parquet").to_string_lossy());
        let questions: Vec<String> = all.iter().cloned().chain([in_order]).collect();
        let Some(mut answers) = Peer::DuckDb.ask(TEST, &sandbox.file(directory), &questions) else { return };
        assert_eq!(answers.pop(), Some(vec![serde_json::json!([0])]), "the order of {trace}");
        for ((found, sql), (name, _)) in answers.into_iter().zip(&all).zip(&tables) {
            compare(&format!("{name} of {trace}"), &sorted(found), &sorted(queried(&sandbox, sql, &[trace])));
        }
    }
}

fn answers_alike(test: &str, peer: Peer) {
    let sandbox = Sandbox::new();
    sandbox.record(&["-o", "demo.fxt"], "demo", &[]);
    convert(&sandbox, &["demo.fxt", "demo"]);
    let questions = questions();
    assert_eq!(questions.len(), 10);
    let Some(answers) = peer.ask(test, &sandbox.file("demo"), &questions) else { return };
    for (sql, found) in questions.iter().zip(&answers) {
        assert!(!found.is_empty(), "{sql}");
        compare(sql, found, &queried(&sandbox, sql, &["demo.fxt"]));
    }
}

//= docs/tables.md#parquet
#[test]
fn duckdb_answers_alike() {
    answers_alike("parquet::duckdb_answers_alike", Peer::DuckDb);
}

/// Spark takes half a minute to start, and is large: it runs where it is installed.
//= docs/tables.md#parquet
#[test]
fn spark_answers_alike() {
    answers_alike("parquet::spark_answers_alike", Peer::Spark);
}

/// The directories of all traces are one table with three columns more.
//= docs/tables.md#many-traces
#[test]
fn traces_in_one_directory_are_one_table() {
    const TEST: &str = "parquet::traces_in_one_directory_are_one_table";
    let sandbox = sandbox();
    let partitioned = |trace: &str| convert(&sandbox, &["--partitioned", trace, "all"]);
    ["demo.fxt", "odd.json", "odd.json"].into_iter().for_each(partitioned);
    let entries = |path: &Path| -> Vec<String> {
        let entries =
            fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").file_name());
        entries.map(|name| name.to_string_lossy().into_owned()).collect()
    };
    assert_eq!(entries(&sandbox.file("all")).len(), 15);
    assert_eq!(entries(&sandbox.file("all/slices")).len(), 2, "a date, and none");
    let odd = "all/slices/date=__HIVE_DEFAULT_PARTITION__/host=__HIVE_DEFAULT_PARTITION__/trace=odd";
    assert_eq!(entries(&sandbox.file(odd)), ["0.parquet"]);
    let questions = [
        "SELECT trace, count(*), sum(dur) FROM slices GROUP BY trace ORDER BY trace",
        "SELECT count(*) FROM slices WHERE date >= '2026-01-01' AND trace = 'demo'",
        "SELECT DISTINCT slices.host FROM slices JOIN traces USING (trace) WHERE traces.host = slices.host",
        "SELECT DISTINCT CAST(date AS VARCHAR) FROM slices WHERE trace = 'demo'",
    ]
    .map(str::to_owned);
    let Some(answers) = Peer::DuckDb.ask(TEST, &sandbox.file("all"), &questions) else { return };
    let by_name = "SELECT CASE trace WHEN 'demo.fxt' THEN 'demo' ELSE 'odd' END, count(*), sum(dur) FROM slices \
                   GROUP BY trace ORDER BY trace";
    compare("all", &answers[0], &queried(&sandbox, by_name, &["demo.fxt", "odd.json"]));
    let demo = "SELECT count(*) FROM slices";
    compare("one", &answers[1], &queried(&sandbox, demo, &["demo.fxt"]));
    compare("hosts", &answers[2], &queried(&sandbox, "SELECT host FROM traces", &["demo.fxt"]));
    let date = "SELECT date(start_utc / 1000000000, 'unixepoch') FROM traces";
    compare("dates", &answers[3], &queried(&sandbox, date, &["demo.fxt"]));

    for (arguments, expected) in [
        (&["--format", "csv", "--partitioned", "odd.json", "x"][..], "--partitioned is for --format parquet"),
        (&["--format", "parquet", "--partitioned", "odd.json"], "--partitioned needs OUT"),
    ] {
        let output = sandbox.trace(["convert"].iter().chain(arguments));
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected));
    }
}
