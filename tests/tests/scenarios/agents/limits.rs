//! What one client, one call and one line can take up.

use super::{TRACE, sandbox};
use rustix::io::ioctl_fionread;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use trace_tests::agent::{Agent, result};
use trace_tests::sandbox::kill;
use trace_tests::scene::{child_of, wait_for_death};
use trace_tests::{Sandbox, wait_for};

/// SQL that never ends.
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

fn query(sql: &str) -> Value {
    json!({"name": "query", "arguments": {"trace": "a.json", "sql": sql}})
}

/// The process that reads traces, once it runs.
fn worker(agent: &Agent) -> u32 {
    wait_for("the process that reads", || child_of(agent.pid(), "trace"))
}

//= docs/mcp.md#limits
#[test]
fn a_call_ends_after_its_time_and_others_go_on() {
    let sandbox = sandbox();
    let mut agent = Agent::new(&sandbox, &["--timeout", "1s"]);
    let endless = agent.request("tools/call", &query(ENDLESS));
    // Others wait for it, except for those of the protocol.
    let waiting = agent.request("tools/call", &query("SELECT 7 AS n"));
    let ping = agent.request("ping", &json!({}));
    assert_eq!(agent.message(), json!({"jsonrpc": "2.0", "id": ping, "result": {}}));
    let response = agent.message();
    assert_eq!(response["id"], endless);
    let why = result(&response).unwrap_err();
    assert!(why.starts_with("the call took longer than 1s and was ended"), "{why}");
    let response = agent.message();
    assert_eq!(response["id"], waiting);
    assert!(result(&response).unwrap().contains("\"rows\":[[7]]"));
    assert_eq!(agent.finish().code(), Some(0));
}

//= docs/mcp.md#limits
#[test]
fn a_cancelled_call_ends_without_an_answer() {
    let sandbox = sandbox();
    let mut agent = Agent::new(&sandbox, &["--timeout", "1h"]);
    let endless = agent.request("tools/call", &query(ENDLESS));
    let waiting = agent.request("tools/call", &query("SELECT 1"));
    let process = worker(&agent);
    for id in [waiting, endless] {
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        agent.say(&cancel.to_string());
    }
    let answer = agent.object("query", &json!({"trace": "a.json", "sql": "SELECT 7 AS n"}));
    assert_eq!(answer["rows"], json!([[7]]));
    wait_for_death(process);
}

//= docs/mcp.md#limits
#[test]
fn only_so_many_calls_wait() {
    let sandbox = sandbox();
    let mut agent = Agent::new(&sandbox, &["--timeout", "1h"]);
    let ids: Vec<u64> = (0..17).map(|_| agent.request("tools/call", &query(ENDLESS))).collect();
    let refused = agent.message();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(ids[16]), &json!(-32000)));
}

//= docs/mcp.md#limits
#[test]
fn a_call_that_needs_too_much_memory_fails_alone() {
    let sandbox = sandbox();
    let mut command = std::process::Command::new("sh");
    let trace = sandbox.command("trace");
    command.args(["-c", "ulimit -v 600000; exec \"$0\" mcp"]).arg(trace.get_program());
    command.current_dir(sandbox.work_dir());
    let mut agent = Agent::start(command);
    agent.initialize("2025-11-25");
    // Each has 60 MB.
    let sql = format!("SELECT {}1", "hex(zeroblob(30000000)), ".repeat(12));
    let why = agent.call("query", &json!({"trace": "a.json", "sql": sql})).unwrap_err();
    assert!(why.contains("memory"), "{why}");
    assert_eq!(agent.object("overview", &json!({"trace": "a.json"}))["events"], 5);
}

//= docs/mcp.md#limits
#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let sandbox = sandbox();
    let mut agent = Agent::new(&sandbox, &[]);
    agent.say(&query(&"x".repeat(1 << 20)).to_string());
    let response = agent.message();
    let expected = json!({"code": -32600, "message": "a line has more than 1048576 bytes"});
    assert_eq!((&response["error"], &response["id"]), (&expected, &Value::Null));
    assert_eq!(agent.ask("ping", &json!({}))["result"], json!({}));
    // One that is as long as it may be.
    let mut longest = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":""#.to_owned();
    longest += &"x".repeat((1 << 20) - longest.len() - 3);
    agent.say(&format!("{longest}\"}}}}"));
    assert_eq!(agent.message(), json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
}

//= docs/mcp.md#protocol
#[test]
fn garbage_is_answered_and_the_end_of_the_input_ends_the_server() {
    let sandbox = sandbox();
    let mut agent = Agent::new(&sandbox, &[]);
    let deep = "[".repeat(100_000);
    for line in ["{", "null", "\u{1b}[2J", "{\"jsonrpc\":", &deep] {
        agent.say(line);
        let response = agent.message();
        assert!(
            [-32700, -32600].contains(&response["error"]["code"].as_i64().unwrap()),
            "{line}: {response}"
        );
        assert_eq!(response["id"], Value::Null);
    }
    let mut input = agent.take_input();
    input.write_all(b"\xff\xfe\n").unwrap();
    assert_eq!(agent.message()["error"]["code"], -32700);
    // A call is answered behind the end, and so is a line that is cut off there.
    let call =
        json!({"jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": query("SELECT 7 AS n")});
    input.write_all(format!("{call}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"meth").as_bytes()).unwrap();
    drop(input);
    assert_eq!(agent.message()["error"]["code"], -32700);
    let response = agent.message();
    assert_eq!(response["id"], "last");
    assert!(result(&response).unwrap().contains("\"rows\":[[7]]"));
    assert_eq!(agent.line(), None);
    assert_eq!(agent.end().code(), Some(0));
}

/// Nothing more is read of a client that does not read, and a signal ends the server all the same.
//= docs/mcp.md#limits
#[test]
fn a_client_that_stops_reading_is_not_read_either() {
    let sandbox = sandbox();
    let mut agent = Agent::new(&sandbox, &[]);
    let mut input = agent.take_input();
    let writer = std::thread::spawn(move || {
        let list = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
        let mut written = 0;
        while input.write_all(list).is_ok() {
            written += list.len();
        }
        written
    });
    // Its pipe is full.
    wait_for("the server to stop", || (ioctl_fionread(agent.output()).unwrap() >= 60_000).then_some(()));
    kill(agent.pid(), Signal::TERM);
    assert_eq!(agent.end().code(), Some(0));
    // What was read is what the pipes and the server have room for.
    let written = writer.join().unwrap();
    assert!(written < 300_000, "{written}");
}

//= docs/mcp.md#limits
#[test]
fn no_process_outlives_the_server() {
    let sandbox = sandbox();
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let mut agent = Agent::new(&sandbox, &["--timeout", "1h"]);
        agent.request("tools/call", &query(ENDLESS));
        let process = worker(&agent);
        kill(agent.pid(), signal);
        let code = agent.end().code();
        assert_eq!(code, (signal != Signal::KILL).then_some(0));
        wait_for_death(process);
    }
    // Nor does it outlive a client that has gone without a word.
    let mut agent = Agent::new(&sandbox, &["--timeout", "1h"]);
    agent.request("tools/call", &query(ENDLESS));
    let process = worker(&agent);
    drop(agent.take_input());
    let pid = agent.pid();
    agent.close_output();
    wait_for_death(pid);
    wait_for_death(process);
}

//= docs/mcp.md#limits
#[test]
fn a_process_that_reads_and_dies_is_replaced() {
    let sandbox = sandbox();
    let mut agent = Agent::new(&sandbox, &[]);
    let id = agent.request("tools/call", &query(ENDLESS));
    kill(worker(&agent), Signal::ABORT);
    let response = agent.message();
    assert_eq!(response["id"], id);
    let why = result(&response).unwrap_err();
    assert!(why.starts_with("the process that reads traces ended (signal 6)"), "{why}");
    assert_eq!(agent.object("overview", &json!({"trace": "a.json"}))["events"], 5);
}

/// A compressed trace that is a thousand times as large as its file.
//= docs/mcp.md#limits
#[test]
fn a_compressed_trace_that_is_huge_takes_its_time_and_no_more() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("a.json"), TRACE).unwrap();
    let file = fs::File::create(sandbox.file("bomb.json.zst")).unwrap();
    let mut encoder = zstd::Encoder::new(file, 1).unwrap();
    encoder.write_all(b"[").unwrap();
    let event = r#"{"ph":"X","pid":1,"tid":2,"ts":1,"dur":4,"name":"frame"},"#.repeat(1000);
    for _ in 0..1000 {
        encoder.write_all(event.as_bytes()).unwrap();
    }
    encoder.finish().unwrap();
    let mut agent = Agent::new(&sandbox, &["--timeout", "1s"]);
    let why = agent.call("overview", &json!({"trace": "bomb.json.zst"})).unwrap_err();
    assert!(why.starts_with("the call took longer than 1s"), "{why}");
    assert_eq!(agent.object("overview", &json!({"trace": "a.json"}))["events"], 5);
}
