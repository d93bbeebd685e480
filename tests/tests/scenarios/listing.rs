//! Who is there, and what they know.

use rustix::process::Signal;
use trace_tests::{Sandbox, wait_for};

#[test]
fn running_programs_and_their_categories_are_listed() {
    let sandbox = Sandbox::new();
    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    emit.line();
    let output = sandbox.trace(["list-programs"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("Programs:\n  emit (pid {})\n", emit.pid()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(&*sandbox.runtime_dir().to_string_lossy()), "{stderr}");

    let output = sandbox.trace(["list-programs", "--machine", "json"]);
    let list: serde_json::Value = trace_tests::json(&output);
    let started = zx_sim::process::start_time(emit.pid().into()).expect("it runs");
    assert_eq!(
        list,
        serde_json::json!([{"id": 1, "name": "emit", "pid": emit.pid(), "started": started,
            "recorded_by": null, "recorded_by_started": null}])
    );

    let output = sandbox.trace(["list-categories"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Known categories\n  emit\n  other\n");
    let output = sandbox.trace(["list-categories", "--machine", "json"]);
    let list: serde_json::Value = trace_tests::json(&output);
    assert_eq!(
        list,
        serde_json::json!([
            {"name": "emit", "description": ""},
            {"name": "other", "description": ""},
        ])
    );
    emit.succeed();
}

/// A program that does not answer is named; one that answers is listed.
//= docs/protocol.md#known-categories
#[test]
fn a_program_that_does_not_answer_is_named() {
    let sandbox = Sandbox::new();
    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    emit.line();
    let mut stubborn = sandbox.spawn("stubborn", &["alert", "stall"]);
    sandbox.wait_for_providers(2);
    emit.signal(Signal::STOP);
    let said = format!("the categories of emit (pid {}) are not listed: it is stopped", emit.pid());
    for _ in 0..2 {
        let output = sandbox.trace(["list-categories"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "Known categories\n  stubborn\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("trace: {said}\n"));
    }
    let output = sandbox.trace(["list-categories", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["result"], serde_json::json!([{"name": "stubborn", "description": ""}]));
    let problem = serde_json::json!({
        "file": null, "kind": "silent", "count": 1, "text": said, "at_byte": null, "places": []
    });
    assert_eq!(document["problems"], serde_json::json!([problem]));
    assert_eq!(document["exit"]["code"], 0);

    // It is the only one, and is not overlooked.
    stubborn.close_stdin();
    stubborn.succeed();
    wait_for("the other to go", || {
        let output = sandbox.trace(["list-programs"]);
        (!String::from_utf8_lossy(&output.stdout).contains("stubborn")).then_some(())
    });
    let output = sandbox.trace(["list-categories"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("trace: {said}\n"));

    emit.signal(Signal::CONT);
    let output = sandbox.trace(["list-categories"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Known categories\n  emit\n  other\n");
    assert!(output.stderr.is_empty(), "{output:?}");
    emit.succeed();
}

#[test]
fn a_second_recording_is_refused_and_questions_are_answered() {
    let sandbox = Sandbox::new();
    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    emit.line();
    let recording = sandbox.spawn("trace", &["record", "--output-file", "first.fxt"]);
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    let output = sandbox.trace(["record", "--output-file", "second.fxt", "--duration", "1"]);
    assert_eq!(output.status.code(), Some(125));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let first = format!("{} record --output-file first.fxt", trace_tests::build::program("trace").display());
    let pid = recording.pid();
    let in_use = format!("the trace manager is in use by \"{first}\" (pid {pid})");
    assert_eq!(stderr, format!("trace: unable to start trace: {in_use}; kill -INT {pid} ends it\n"));
    let stopped = sandbox.trace(["stop"]);
    let expected = format!(
        "trace: no recording in the background; {first} (pid {pid}) is recording: end it with kill -INT {pid}\n"
    );
    assert_eq!((stopped.status.code(), String::from_utf8_lossy(&stopped.stderr)), (Some(5), expected.into()));
    assert!(sandbox.trace(["list-programs"]).status.success());
    recording.signal(Signal::INT);
    recording.succeed();
    emit.succeed();
    assert_eq!(sandbox.files(), ["first.fxt"]);
}
