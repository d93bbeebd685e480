//! Another implementation of the protocol judges the server.

use serde_json::{Value, json};
use std::process::Command;
use trace_tests::build::{program, workspace};
use trace_tests::tables::python;
use trace_tests::{Requirement, Sandbox};

//= docs/mcp.md#protocol
#[test]
fn the_client_of_the_python_package_gets_the_same_answers() {
    if !Requirement::Mcp.is_met("agents::peers::the_client_of_the_python_package_gets_the_same_answers") {
        return;
    }
    let sandbox = Sandbox::new();
    for name in ["a.fxt", "b.fxt"] {
        sandbox.record(&["-o", name], "demo", &[]);
    }
    let mut client = Command::new(python());
    client.arg(workspace().join("tests/mcp/client.py")).arg(program("trace")).arg(".");
    let output = client.current_dir(sandbox.work_dir()).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = trace_tests::json(&output);
    assert_eq!(found["versions"], json!(["2025-11-25", "2026-07-28"]));
    assert_eq!(found["tools"], json!(["overview", "top", "window", "query", "compare"]));
    let sql = "SELECT ts, name FROM slices ORDER BY ts, id";
    let output = sandbox.trace(["query", "--format", "json", sql, "a.fxt"]);
    let whole: Vec<Value> = trace_tests::json(&output);
    let whole: Vec<Value> = whole.iter().map(|row| json!([row["ts"], row["name"]])).collect();
    assert!(!whole.is_empty());
    assert_eq!(found["rows"], json!(whole));
    assert_eq!(found["query"], json!([[whole.len()]]));
    assert!(found["pages"].as_u64().unwrap() > 1);
    let top = found["top"].as_array().unwrap();
    assert!(!top.is_empty() && top.len() <= 3);
}
