//! What commands print for programs, against the page that describes it; and what a trace says of its
//! programs.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Output;
use trace_tests::build::{program, workspace};
use trace_tests::{Sandbox, wait_for};

/// The members of the objects of each section of the page.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(workspace().join("docs/json.md")).unwrap();
    let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in page.lines() {
        if line.starts_with("## ") || line.starts_with("### ") {
            heading = line.trim_start_matches(['#', ' ']).to_owned();
        } else if let Some(row) = line.strip_prefix("| `") {
            let cell = row.split(" | ").next().unwrap();
            let names = cell.split(',').map(|name| name.trim_matches(['`', ' ']).to_owned());
            sections.entry(heading.clone()).or_default().extend(names);
        }
    }
    sections
}

fn members(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap_or_else(|| panic!("{value}")).keys().cloned().collect()
}

/// stdout is one value, and nothing else.
fn value(output: &Output) -> Value {
    trace_tests::json(output)
}

const SPEC: &str = r#"{"measure": [{"type": "argument_value", "event_name": "scope", "event_category": "emit",
    "argument_name": "round", "argument_unit": "B"}]}"#;

//= docs/json.md#rules
//= docs/json.md#query
#[test]
fn what_programs_get_has_the_members_of_its_page() {
    let sandbox = Sandbox::new();
    let path = |name: &str| program(name).to_str().unwrap();
    let ask = |arguments: &[&str]| value(&sandbox.trace(arguments));
    let mut found: Vec<(&str, Value)> = Vec::new();
    let recorded = ask(&["record", "--json", "-o", "a.fxt", "--", path("emit"), "1", "2"]);
    found.push(("Programs", recorded["programs"][0].clone()));
    found.push(("`record`, `stop`, `recover`", recorded));

    let live = ["live", "--json", "--interval", "100ms", "-o", "live.fxt", "--"];
    // Long enough to be seen on a busy machine.
    let command = ["sh", "-c", "\"$0\" 1 2; sleep 1", path("emit")];
    let output = sandbox.trace([&live[..], &command].concat());
    let lines: Vec<Value> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .map(|line| line.unwrap_or_else(|error| panic!("{error}: {output:?}")))
        .collect();
    assert!(!lines.is_empty(), "{output:?}");
    found.extend(lines.into_iter().map(|line| ("`live`", line)));

    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    emit.line();
    sandbox.wait_for_providers(1);
    found.push(("`list-programs`", ask(&["list-programs", "--json"])[0].clone()));
    found.push(("`list-categories`", ask(&["list-categories", "--json"])[0].clone()));
    found.push(("`start`, `status`", ask(&["start", "--json", "-o", "b.fxt"])));
    found.push(("`start`, `status`", ask(&["status", "--json"])[0].clone()));
    let mut of_snapshot = ask(&["snapshot", "--json", "-o", "c.fxt"]);
    let program = of_snapshot["programs"][0].take();
    assert!(program["covered_ns"].is_null() || program["covered_ns"].is_u64(), "{program}");
    let mut program = program.as_object().unwrap().clone();
    assert!(program.remove("covered_ns").is_some() && program.remove("ended_ns_ago").is_some());
    found.push(("Programs", program.into()));
    found.push(("`snapshot`", of_snapshot));
    found.push(("`flush`", ask(&["flush", "--json"])));
    found.push(("`dump-memory`", ask(&["dump-memory", "--json"])));
    found.push(("`recover --list`", ask(&["recover", "--list", "--json"])[0].clone()));
    found.push(("`record`, `stop`, `recover`", ask(&["stop", "--json"])));
    emit.succeed();

    found.push(("`recover --delete`", ask(&["recover", "--delete", "--json"])));
    found.push(("`doctor`", ask(&["doctor", "--no-self-trace", "--json"])[0].clone()));
    found.push(("`time`", ask(&["time", "--json"])));
    found.push(("`convert`", ask(&["convert", "--json", "a.fxt", "a.pftrace"])));
    found.push(("`convert`", ask(&["convert", "--json", "--format", "csv", "a.fxt", "tables"])));
    found.push(("`filter`", ask(&["filter", "--json", "--strip-args", "a.fxt", "b.fxt"])));
    fs::write(sandbox.file("spec.json"), SPEC).unwrap();
    found.push(("`measure`", ask(&["measure", "--json", "--spec-file", "spec.json", "a.fxt"])));
    found.push(("`check`", ask(&["check", "--json", "a.fxt"])));

    let mut documented = documented();
    let document = documented.remove("The document").unwrap();
    let whole: Value = serde_json::from_slice(&sandbox.trace(["check", "--json", "a.fxt"]).stdout).unwrap();
    assert_eq!(members(&whole), document);
    let shown: BTreeSet<&String> = documented.keys().collect();
    let tried: BTreeSet<String> = found.iter().map(|(section, _)| (*section).to_owned()).collect();
    assert_eq!(shown, tried.iter().collect(), "each section is tried");
    for (section, object) in &found {
        assert_eq!(members(object), documented[*section], "{section}: {object}");
        assert!(*section != "`live`" || object["version"] == 1, "{section}: {object}");
    }
    for arguments in [
        &["stats", "--json", "a.fxt"][..],
        &["assert", "--json", "a.fxt", "lost == 0"],
        &["diff", "--json", "a.fxt", "a.fxt"],
    ] {
        assert!(ask(arguments).is_object(), "{arguments:?}");
    }
    assert!(ask(&["list-category-groups", "--json"]).is_object());
    let answer = ask(&["query", "--json", "SELECT 1 AS a, 2 AS a, 3 AS b, 4 AS a", "a.fxt"]);
    assert_eq!(answer, json!([{"a": 1, "a:1": 2, "b": 3, "a:2": 4}]));

    // An error is a line on stderr, and stdout is empty.
    for arguments in [
        &["convert", "--json", "missing.fxt", "b.json"][..],
        &["convert", "--json", "a.fxt", "-"],
        &["filter", "--json", "--strip-args", "a.fxt", "-"],
        &["measure", "--json", "--spec-file", "spec.json", "missing.fxt"],
        &["check", "--json", "missing.fxt"],
        &["snapshot", "--json"],
        &["snapshot", "--json", "-o", "-"],
        &["stop", "--json", "-o", "-"],
        &["flush", "--json"],
        &["stop", "--json"],
    ] {
        let output = sandbox.trace(arguments);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert_eq!(output.stderr.iter().filter(|byte| **byte == b'\n').count(), 1, "{output:?}");
    }
}

fn rows(sandbox: &Sandbox, sql: &str, file: &str) -> Value {
    value(&sandbox.trace(["query", "--json", sql, file]))
}

//= docs/protocol.md#provider-descriptions
//= docs/tables.md#tables
#[test]
fn a_trace_says_what_its_programs_were_and_how_they_ended() {
    let sandbox = Sandbox::new();
    let emit = program("emit").to_str().unwrap();
    let stays = {
        let mut process = sandbox.spawn("emit", &["1", "1", "--wait"]);
        process.line();
        process
    };
    let started = sandbox.trace(["start", "-o", "a.fxt"]);
    assert!(started.status.success(), "{started:?}");
    let mut killed = sandbox.spawn_recorded("emit", &["1", "2", "--wait", "--on"]);
    killed.line();
    // One that dies before it is being recorded is something else.
    assert_eq!(killed.line(), "on");
    killed.signal(Signal::KILL);
    let pid = killed.pid();
    killed.finish();
    wait_for("its end", || {
        let status = value(&sandbox.trace(["status", "--json"]));
        (status[0]["ended"].as_array()?.len() == 1).then_some(())
    });
    let stopped = sandbox.trace(["stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    let found = rows(
        &sandbox,
        "SELECT pid, parent_pid, command_line, end_reason, end_ts IS NULL AS is_there, \
         start_ts BETWEEN 1 AND (SELECT end_ts FROM traces) AS has_start, \
         end_ts BETWEEN start_ts AND (SELECT end_ts FROM traces) AS has_end FROM programs WHERE id > 0 ORDER BY id",
        "a.fxt",
    );
    let reason = found[1]["end_reason"].clone();
    // Kernels before 6.15 do not tell how a process of others has ended.
    assert!(["killed by SIGKILL", "ended"].iter().any(|words| reason == *words), "{found}");
    let expected = json!([
        {
            "pid": stays.pid(), "parent_pid": null, "command_line": format!("{emit} 1 1 --wait"),
            "end_reason": null, "is_there": 1, "has_start": 1, "has_end": null,
        },
        {
            "pid": pid, "parent_pid": null, "command_line": format!("{emit} 1 2 --wait --on"),
            "end_reason": reason, "is_there": 0, "has_start": 1, "has_end": 1,
        },
    ]);
    assert_eq!(found, expected);
    stays.succeed();

    // What events cost, and the wall clock beside the time.
    let costs = rows(
        &sandbox,
        "SELECT instant_cost_ns BETWEEN 1 AND 1e6 AS i, duration_cost_ns BETWEEN 1 AND 1e6 AS d, \
         counter_cost_ns BETWEEN 1 AND 1e6 AS c, utc_offset > 1e18 AS u \
         FROM traces",
        "a.fxt",
    );
    assert_eq!(costs, json!([{"i": 1, "d": 1, "c": 1, "u": 1}]));
    let stats = value(&sandbox.trace(["stats", "--json", "a.fxt"]));
    // Programs have recorded nothing.
    assert_eq!(stats["tracing"]["total_ns"].as_f64(), Some(0.0), "{stats}");
    assert!(stats["tracing"]["instant_cost_ns"].as_f64().unwrap() > 0.0, "{stats}");
    let text = String::from_utf8(sandbox.trace(["stats", "a.fxt"]).stdout).unwrap();
    assert!(text.contains("\ntracing: about "), "{text}");

    // Without metadata, nothing of this.
    let output = sandbox.trace(["record", "--no-metadata", "-o", "b.fxt", "--", emit, "1", "1"]);
    assert!(output.status.success(), "{output:?}");
    let found = rows(
        &sandbox,
        "SELECT pid, command_line, start_ts, (SELECT instant_cost_ns FROM traces) AS cost, \
         (SELECT max(ts_utc) FROM instants) AS utc FROM programs",
        "b.fxt",
    );
    assert_eq!(
        found,
        json!([{"pid": null, "command_line": null, "start_ts": null, "cost": null, "utc": null}])
    );
    let stats = value(&sandbox.trace(["stats", "--json", "b.fxt"]));
    assert!(stats["tracing"].is_null(), "{stats}");
}
