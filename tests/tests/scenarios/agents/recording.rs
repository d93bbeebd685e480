//! Traces that agents record.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use trace_tests::agent::Agent;
use trace_tests::build::program;
use trace_tests::sandbox::kill;
use trace_tests::scene::wait_for_death;
use trace_tests::{Sandbox, wait_for};

/// A command that says its pid in a file, and runs until it is ended.
fn endless(sandbox: &Sandbox) -> Value {
    let _ = fs::remove_file(sandbox.file("pid"));
    json!({"output": "a.fxt", "command": ["sh", "-c", "echo $$ > new && mv new pid && exec tail -f /dev/null"]})
}

fn pid(sandbox: &Sandbox) -> u32 {
    wait_for("the command", || fs::read_to_string(sandbox.file("pid")).ok()?.trim().parse().ok())
}

//= docs/mcp.md#recording
#[test]
fn a_command_is_recorded_and_its_trace_described() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.file("sub")).unwrap();
    let mut agent = Agent::new(&sandbox, &["--allow-record"]);
    let tools = agent.ask("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(tools[5]["name"], "record");
    assert_eq!(tools[5]["annotations"]["readOnlyHint"], false);
    let kinds = program("kinds").to_str().unwrap();
    let command = json!({"output": "sub/a.fxt", "command": [kinds], "categories": ["kinds"]});
    let overview = agent.object("record", &command);
    assert_eq!(overview["trace"], "sub/a.fxt");
    let recorded = overview["recorded"].as_str().unwrap();
    assert!(recorded.contains("events of 1 program"), "{recorded}");
    assert_eq!(overview["losses"]["balance"], "the records of the program add up");
    let output = sandbox.trace(["query", "--format", "csv", "SELECT count(*) FROM slices", "sub/a.fxt"]);
    let slices: u64 = String::from_utf8(output.stdout).unwrap().lines().last().unwrap().parse().unwrap();
    assert!(slices > 0);
    let rows = overview["rows"].as_array().unwrap().clone();
    let processes = rows.iter().filter(|row| row[0] == "process").map(|row| row[4].as_u64().unwrap());
    assert_eq!(processes.sum::<u64>(), slices);
    assert_eq!(fs::read_dir(sandbox.file("sub")).unwrap().count(), 1);
    assert_eq!(agent.finish().code(), Some(0));
}

//= docs/mcp.md#recording
#[test]
fn a_recording_replaces_no_file_and_goes_nowhere_else() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.file("in")).unwrap();
    fs::write(sandbox.file("in/old.fxt"), "old").unwrap();
    symlink("../made.fxt", sandbox.file("in/link.fxt")).unwrap();
    symlink("..", sandbox.file("in/up")).unwrap();
    let before = (sandbox.files(), fs::read_dir(sandbox.file("in")).unwrap().count());
    let mut agent = Agent::new(&sandbox, &["--allow-record", "in"]);
    for (arguments, expected) in [
        (json!({"output": "../made.fxt", "duration_s": 1}), "leads out"),
        (json!({"output": "/tmp/made.fxt", "duration_s": 1}), "outside the directories"),
        (json!({"output": "up/made.fxt", "duration_s": 1}), "leads out"),
        (json!({"output": "link.fxt", "duration_s": 1}), "there is a file with this name already"),
        (json!({"output": "old.fxt", "duration_s": 1}), "there is a file with this name already"),
        (json!({"output": "missing/made.fxt", "duration_s": 1}), "there is no such file"),
        (json!({"output": "made.json", "duration_s": 1}), "expected a name that ends in .fxt"),
        (json!({"output": "made.fxt/", "duration_s": 1}), "expected a name that ends in .fxt"),
        (json!({"output": "made.fxt"}), "duration_s or command: missing"),
        (json!({"output": "made.fxt", "duration_s": 0}), "duration_s: expected a number above 0"),
        (json!({"output": "made.fxt", "duration_s": 601}), "at most 600"),
        (json!({"output": "made.fxt", "duration_s": "1"}), "duration_s: expected a number"),
        (json!({"output": "made.fxt", "command": "ls"}), "command: expected a list of texts"),
        (json!({"output": "made.fxt", "command": ["a\0"]}), "command: expected a list of texts"),
        (json!({"output": "made.fxt", "command": ["./missing"]}), "./missing: command not found"),
        (json!({"output": "made.fxt", "duration_s": 1, "categories": ["-"]}), "the recording failed"),
        (json!({"duration_s": 1}), "output: missing"),
        (json!({"output": "made.fxt", "duration": 1}), "did you mean duration_s?"),
    ] {
        let why = agent.call("record", &arguments).expect_err(&arguments.to_string());
        assert!(why.contains(expected), "{arguments}: {why}");
    }
    assert_eq!((sandbox.files(), fs::read_dir(sandbox.file("in")).unwrap().count()), before);
    assert_eq!(fs::read_to_string(sandbox.file("in/old.fxt")).unwrap(), "old");
}

//= docs/mcp.md#recording
#[test]
fn a_recording_ends_when_it_is_cancelled_and_leaves_no_file() {
    let sandbox = Sandbox::new();
    let mut agent = Agent::new(&sandbox, &["--allow-record"]);
    let id = agent.request("tools/call", &json!({"name": "record", "arguments": endless(&sandbox)}));
    let command = pid(&sandbox);
    // Others need not wait for it.
    assert_eq!(agent.object("overview", &json!({}))["rows"], json!([]));
    agent.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            .to_string(),
    );
    wait_for_death(command);
    assert_eq!(agent.finish().code(), Some(0));
    assert_eq!(sandbox.files(), ["pid"]);
}

//= docs/mcp.md#recording
#[test]
fn a_recording_ends_with_the_server() {
    let sandbox = Sandbox::new();
    for by_signal in [true, false] {
        let mut agent = Agent::new(&sandbox, &["--allow-record"]);
        agent.request("tools/call", &json!({"name": "record", "arguments": endless(&sandbox)}));
        let command = pid(&sandbox);
        if by_signal {
            kill(agent.pid(), Signal::TERM);
        } else {
            drop(agent.take_input());
        }
        assert_eq!(agent.end().code(), Some(0));
        wait_for_death(command);
        assert_eq!(sandbox.files(), ["pid"]);
    }
}

/// Whatever ends the server, nothing of it goes on, and what was recorded is still there.
//= docs/mcp.md#recording
#[test]
fn a_recording_ends_with_a_killed_server_and_what_it_has_is_kept() {
    let sandbox = Sandbox::new();
    let mut agent = Agent::new(&sandbox, &["--allow-record"]);
    agent.request("tools/call", &json!({"name": "record", "arguments": endless(&sandbox)}));
    let command = pid(&sandbox);
    kill(agent.pid(), Signal::KILL);
    assert_eq!(agent.end().code(), None);
    wait_for_death(command);
    let files = sandbox.files();
    let partial = files.iter().find(|name| name.ends_with(".partial")).expect("what was recorded");
    wait_for("the end of the recording", || {
        // One without an end is not clean.
        sandbox.trace(["check", partial]).status.success().then_some(())
    });
}
