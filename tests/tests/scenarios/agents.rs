//! `trace mcp`: what agents are answered.

mod jail;
mod limits;
mod peers;
mod recording;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use trace_tests::Sandbox;
use trace_tests::agent::Agent;
use trace_tests::build::workspace;

/// Nested slices, an operation, an instant, a counter, and a name that is dangerous to show.
const TRACE: &str = r#"[
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "app"}},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 4, "name": "frame", "cat": "gfx"},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 2, "dur": 1, "name": "read", "cat": "io", "args": {"size": 10}},
    {"ph": "X", "pid": 1, "tid": 3, "ts": 6, "dur": 3, "name": "read", "cat": "io", "args": {"size": 30}},
    {"ph": "i", "pid": 1, "tid": 2, "ts": 3, "s": "t", "name": "hit\u001b]0;x\u0007\u202e", "cat": "gfx"},
    {"ph": "C", "pid": 1, "tid": 2, "ts": 5, "name": "depth", "cat": "io", "args": {"n": 7}}
]"#;

/// The same, in which one thing takes longer.
fn slower() -> String {
    TRACE.replace("\"dur\": 3", "\"dur\": 5")
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("a.json"), TRACE).unwrap();
    sandbox
}

/// The hash of a file, by another program.
fn sha256(sandbox: &Sandbox, name: &str) -> String {
    let output = Command::new("sha256sum").arg(sandbox.file(name)).output().expect("sha256sum runs");
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().to_owned()
}

//= docs/mcp.md#protocol
#[test]
fn a_client_finds_the_tools() {
    let sandbox = sandbox();
    let mut command = sandbox.command("trace");
    command.arg("mcp");
    let mut agent = Agent::start(command);
    let begun = agent.initialize("2025-06-18");
    assert_eq!(begun["protocolVersion"], "2025-06-18");
    assert_eq!(begun["capabilities"], json!({"tools": {}}));
    assert_eq!(begun["serverInfo"]["name"], "trace");
    assert_eq!(agent.ask("ping", &json!({}))["result"], json!({}));
    let tools = agent.ask("tools/list", &json!({}));
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["overview", "top", "window", "query", "compare"]);
    assert_eq!(agent.ask("resources/list", &json!({}))["error"]["code"], -32601);
    assert_eq!(agent.ask("tools/call", &json!({"name": "record"}))["error"]["code"], -32602);
    assert_eq!(agent.finish().code(), Some(0));
}

//= docs/mcp.md#tools
#[test]
fn each_tool_answers_exactly() {
    let sandbox = sandbox();
    fs::write(sandbox.file("b.json"), slower()).unwrap();
    fs::write(sandbox.file("notes.txt"), "no trace").unwrap();
    let mut agent = Agent::new(&sandbox, &[]);
    let list = agent.object("overview", &json!({}));
    let names: Vec<&Value> = list["rows"].as_array().unwrap().iter().map(|row| &row[0]).collect();
    assert_eq!(names, ["a.json", "b.json"]);
    assert_eq!(list["rows"][0][1], TRACE.len());

    let overview = agent.object("overview", &json!({"trace": "a.json"}));
    let about =
        |answer: &Value| (answer["trace"].clone(), answer["sha256"].clone(), answer["window_ns"].clone());
    let expected = (json!("a.json"), json!(sha256(&sandbox, "a.json")), json!([1000, 9000]));
    assert_eq!(about(&overview), expected);
    let losses = json!({"lost": 0, "balance": "unknown: no program has counted its records"});
    assert_eq!(
        (&overview["losses"], &overview["duration_ns"], &overview["events"]),
        (&losses, &json!(8000), &json!(5))
    );
    assert_eq!(
        (&overview["columns"], &overview["rows"]),
        (
            &json!(["what", "name", "pid", "threads", "slices", "instants", "counters", "flows", "total_ns"]),
            &json!([
                ["process", "app", 1, 2, 3, 1, 1, 0, 8000],
                ["category", "io", null, 2, 2, 0, 1, 0, 4000],
                ["category", "gfx", null, 1, 1, 1, 0, 0, 4000],
            ])
        )
    );

    let top = agent.object("top", &json!({"trace": "a.json", "sort": "self"}));
    assert_eq!(about(&top), expected);
    let columns = ["kind", "category", "name", "count", "total_ns", "self_ns", "p50_ns", "p99_ns", "max_ns"];
    assert_eq!(top["columns"], json!(columns));
    let (frame, read) = (
        json!(["duration", "gfx", "frame", 1, 4000, 3000, 4000, 4000, 4000]),
        json!(["duration", "io", "read", 2, 4000, 4000, 1000, 3000, 3000]),
    );
    assert_eq!(top["rows"], json!([read, frame]));
    // The SQL that is shown gives the same answer.
    let again = agent.object("query", &json!({"trace": "a.json", "sql": top["sql"]}));
    assert_eq!(
        (&again["columns"], &again["rows"], &again["sql"]),
        (&top["columns"], &top["rows"], &top["sql"])
    );
    for (arguments, rows) in [
        (json!({"trace": "a.json", "sort": "max"}), json!([frame, read])),
        (json!({"trace": "a.json", "sort": "max", "limit": 1}), json!([frame])),
        (json!({"trace": "a.json", "category": "g*"}), json!([frame])),
        (json!({"trace": "a.json", "category": "g?x"}), json!([])),
        (json!({"trace": "a.json", "category": "io", "process": "1"}), json!([read])),
        (json!({"trace": "a.json", "process": "ap*", "to_ns": 1500}), json!([frame])),
        (json!({"trace": "a.json", "process": "other"}), json!([])),
        (json!({"trace": "a.json", "from_ns": 5000, "to_ns": 5999}), json!([frame])),
    ] {
        assert_eq!(agent.object("top", &arguments)["rows"], rows, "{arguments}");
    }

    let window = agent.object("window", &json!({"trace": "a.json", "from_ns": 2500, "to_ns": 6000}));
    assert_eq!(window["window_ns"], json!([2500, 6000]));
    assert_eq!(window["columns"], json!(["what", "ts", "dur", "depth", "category", "name", "detail"]));
    let second = json!({"pid": 1, "tid": 3, "process": "app", "thread": null,
        "rows": [["slice", 6000, 3000, 0, "io", "read", "{\"size\":30}"]]});
    assert_eq!(
        window["rows"],
        json!([
            {"pid": 1, "tid": 2, "process": "app", "thread": null, "rows": [
                ["slice", 1000, 4000, 0, "gfx", "frame", null],
                ["slice", 2000, 1000, 1, "io", "read", "{\"size\":10}"],
                ["instant", 3000, null, null, "gfx", "hit\\u{1b}]0;x\\u{7}\\u{202e}", null],
                ["counter", 5000, null, null, "io", "depth", "n = 7"],
            ]},
            second,
        ])
    );
    let long = agent.object("window", &json!({"trace": "a.json", "min_dur_ns": 2000, "name": "read"}));
    assert_eq!(long["rows"], json!([second]));

    let sql = "SELECT name, json_extract(args, '$.size') AS size FROM slices WHERE name = 'read' ORDER BY size DESC";
    let query = agent.object("query", &json!({"trace": "a.json", "sql": sql}));
    assert_eq!(about(&query), expected);
    assert_eq!((&query["sql"], &query["columns"]), (&json!(sql), &json!(["name", "size"])));
    assert_eq!((&query["rows"], &query["next"]), (&json!([["read", 30], ["read", 10]]), &Value::Null));

    let compare = agent.object("compare", &json!({"before": "a.json", "after": "b.json"}));
    assert_eq!(about(&compare["before"]), expected);
    assert_eq!(
        about(&compare["after"]),
        (json!("b.json"), json!(sha256(&sandbox, "b.json")), json!([1000, 11000]))
    );
    assert_eq!(
        compare["rows"],
        json!([
            ["duration", "io", "read", 4000, 6000, 2000, 3000, 3000, 5000, 2, 2],
            ["duration", "gfx", "frame", 4000, 4000, 4000, 4000, 4000, 4000, 1, 1],
        ])
    );
    assert_eq!(agent.finish().code(), Some(0));
}

//= docs/mcp.md#tools
#[test]
fn a_wrong_call_says_what_would_be_right() {
    let sandbox = sandbox();
    let mut agent = Agent::new(&sandbox, &[]);
    let long = "x".repeat(70_000);
    for (tool, arguments, expected) in [
        ("top", json!({}), "trace: missing"),
        ("top", json!({"trace": 1}), "trace: expected text"),
        (
            "top",
            json!({"trace": "a.json", "srot": "max"}),
            "no such argument: srot, did you mean sort?; there are",
        ),
        (
            "top",
            json!({"trace": "a.json", "sort": "mean"}),
            "sort: expected one of total, self, count, p99, max",
        ),
        ("top", json!({"trace": "a.json", "limit": 0}), "limit: expected at least 1"),
        ("top", json!({"trace": "a.json", "from_ns": 1.5}), "from_ns: expected a whole number"),
        (
            "window",
            json!({"trace": "a.json", "from_ns": 2, "to_ns": 1}),
            "from_ns: the window ends before it begins: 2 > 1",
        ),
        ("query", json!({"trace": "a.json", "sql": "SELECT * FROM slice"}), "did you mean slices?"),
        ("query", json!({"trace": "a.json", "sql": ""}), "SQL: expected one statement, found none"),
        (
            "query",
            json!({"trace": "a.json", "sql": "SELECT 1; SELECT 2"}),
            "SQL: expected one statement, found several",
        ),
        (
            "query",
            json!({"trace": "a.json", "sql": "CREATE TEMP TABLE t AS SELECT 1"}),
            "SQL: the statement does more than read",
        ),
        (
            "query",
            json!({"trace": "a.json", "sql": "CREATE VIEW v AS SELECT 1"}),
            "SQL: the statement does more than read",
        ),
        ("query", json!({"trace": "a.json", "sql": "ATTACH '/etc/passwd' AS x"}), "is refused"),
        ("query", json!({"trace": "a.json", "sql": "SELECT readfile('/etc/passwd')"}), "no such function"),
        ("query", json!({"trace": "a.json", "sql": long}), "sql: a statement has at most 65536 bytes"),
        (
            "query",
            json!({"trace": "a.json", "sql": format!("SELECT {}1", "1,".repeat(40))}),
            "41 columns; expected at most 32",
        ),
        (
            "query",
            json!({"trace": "a.json", "sql": "SELECT 1", "cursor": "1-0"}),
            "cursor: it belongs to another call",
        ),
        ("compare", json!({"before": "a.json"}), "after: missing"),
    ] {
        let why = agent.call(tool, &arguments).expect_err(&format!("{arguments}"));
        assert!(why.contains(expected), "{tool}: {why}");
    }
    fs::write(sandbox.file("text.json"), "no trace").unwrap();
    let why = agent.call("overview", &json!({"trace": "text.json"})).unwrap_err();
    assert!(why.contains("text.json: expected a Fuchsia trace"), "{why}");
    assert_eq!(agent.finish().code(), Some(0));
}

/// A trace with many names, some of them long or dangerous.
fn many(events: u32) -> String {
    let event = |number: u32| {
        let name = match number % 7 {
            0 => format!("\"quoted\" \\ {number}"),
            1 => format!("größer\u{202e}\n{number}"),
            2 => format!("{number} {}", "long ".repeat(number as usize % 60)),
            _ => format!("plain {number}"),
        };
        let (tid, ts) = (number % 5, 10 * number);
        json!({"ph": "X", "pid": 1, "tid": tid, "ts": ts, "dur": number, "name": name, "cat": "many"})
    };
    Value::from((1..=events).map(event).collect::<Vec<_>>()).to_string()
}

fn rows(pages: &[Value]) -> Vec<Value> {
    pages.iter().flat_map(|page| page["rows"].as_array().unwrap().clone()).collect()
}

//= docs/mcp.md#pages
#[test]
fn the_pages_of_an_answer_together_are_the_whole() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("many.json"), many(600)).unwrap();
    let mut agent = Agent::new(&sandbox, &[]);
    let sql = "SELECT ts, name, length(name) AS n FROM slices ORDER BY ts";
    let pages = agent.pages("query", &json!({"trace": "many.json", "sql": sql}));
    assert!(pages.len() > 4, "{}", pages.len());
    // Nearly all of the room is used.
    assert!(pages[..pages.len() - 1].iter().all(|page| page.to_string().len() > 5500));
    let output = sandbox.trace(["query", "--format", "json", sql, "many.json"]);
    let whole: Vec<Value> = trace_tests::json(&output);
    let whole: Vec<Value> =
        whole.iter().map(|row| json!([row["ts"], shown(&row["name"]), row["n"]])).collect();
    assert_eq!(rows(&pages), whole);
    // What stands once in an answer is the same in each.
    let about: BTreeSet<String> = pages
        .iter()
        .map(|page| json!([page["sha256"], page["sql"], page["window_ns"], page["losses"]]).to_string())
        .collect();
    assert_eq!(about.len(), 1);

    let window = agent.pages("window", &json!({"trace": "many.json"}));
    let of_threads: Vec<Value> =
        rows(&window).iter().flat_map(|thread| thread["rows"].as_array().unwrap().clone()).collect();
    let order: Vec<Value> = of_threads.iter().map(|row| row[1].clone()).collect();
    let mut expected: Vec<u32> = (1..=600).collect();
    expected.sort_by_key(|number| (number % 5, *number));
    assert_eq!(order, expected.iter().map(|number| json!(10_000 * number)).collect::<Vec<_>>());

    let top = agent.pages("top", &json!({"trace": "many.json"}));
    let totals: Vec<Value> = rows(&top).iter().map(|row| row[4].clone()).collect();
    assert_eq!(totals, (1..=600).rev().map(|number| json!(1000 * number)).collect::<Vec<_>>());

    let compare = agent.pages("compare", &json!({"before": "many.json", "after": "many.json"}));
    assert_eq!(rows(&compare).len(), 600);

    for number in 0..200 {
        fs::write(sandbox.file(&format!("{number:03}-{}.json", "x".repeat(50))), "[]").unwrap();
    }
    let list = agent.pages("overview", &json!({}));
    assert!(list.len() > 1);
    assert_eq!(rows(&list).len(), 201);
}

/// A name as it is shown: escaped, and cut.
fn shown(name: &Value) -> Value {
    name.as_str().unwrap().replace('\n', "\\n").replace('\u{202e}', "\\u{202e}").into()
}

//= docs/mcp.md#pages
#[test]
fn a_trace_that_changes_is_read_again_and_its_cursors_end() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("a.json"), many(400)).unwrap();
    let mut agent = Agent::new(&sandbox, &[]);
    let mut arguments = json!({"trace": "a.json", "sql": "SELECT name FROM slices ORDER BY ts"});
    let first = agent.object("query", &arguments);
    arguments["cursor"] = first["next"].clone();
    let second = agent.object("query", &arguments);
    assert_ne!(second["rows"], first["rows"]);
    fs::write(sandbox.file("new"), many(401)).unwrap();
    fs::rename(sandbox.file("new"), sandbox.file("a.json")).unwrap();
    let why = agent.call("query", &arguments).unwrap_err();
    assert!(why.contains("the trace has changed since"), "{why}");
    let hash = agent.object("overview", &json!({"trace": "a.json"}))["sha256"].clone();
    assert_eq!(hash, sha256(&sandbox, "a.json"));
    assert_ne!(hash, first["sha256"]);
    // More traces than are kept open.
    for name in ["b.json", "c.json", "d.json", "e.json", "f.json"] {
        fs::write(sandbox.file(name), TRACE).unwrap();
        assert_eq!(agent.object("overview", &json!({"trace": name}))["events"], 5);
    }
    assert_eq!(agent.object("overview", &json!({"trace": "a.json"}))["sha256"], hash);
}

//= docs/mcp.md#answers
#[test]
fn losses_stand_in_each_answer_that_they_concern() {
    let sandbox = Sandbox::new();
    fs::copy(workspace().join("tests/data/corpus/loss.fxt"), sandbox.file("loss.fxt")).unwrap();
    let mut agent = Agent::new(&sandbox, &[]);
    let (first, last) = (18_765_284_782_899_i64, 75_060_280_125_030_i64);
    let row = json!(["corpus", "durable region full", 1000, first, last]);
    let mut losses = |from: Option<i64>, to: Option<i64>| {
        let arguments = json!({"trace": "loss.fxt", "from_ns": from, "to_ns": to});
        let losses = agent.object("window", &arguments)["losses"].clone();
        (losses["lost"].clone(), losses["lost_elsewhere"].clone(), losses["first"].clone())
    };
    let within = (json!(1000), Value::Null, json!([row]));
    let elsewhere = (json!(0), json!(1000), Value::Null);
    for (from, to, expected) in [
        (None, None, &within),
        (Some(last), Some(last), &within),
        (Some(last + 1), Some(last + 2), &elsewhere),
        (Some(0), Some(first - 1), &elsewhere),
        (Some(0), Some(first), &within),
    ] {
        assert_eq!(losses(from, to), *expected, "{from:?} to {to:?}");
    }
    let overview = agent.object("overview", &json!({"trace": "loss.fxt"}));
    assert_eq!(overview["losses"]["lost"], 1000);
}
