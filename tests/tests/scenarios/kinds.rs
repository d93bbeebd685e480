//! Records of every kind, from a program's macros to what readers see.

use serde_json::{Value, json};
use trace_tests::Sandbox;
use trace_tests::perfetto::query;
use trace_tests::sandbox::json;

/// The objects of a dump, of the provider's own kinds, without place and time.
fn records(sandbox: &Sandbox) -> Vec<Value> {
    let output = sandbox.trace(["dump", "--json", "trace.fxt"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let definitions = ["magic", "provider-info", "initialization", "string", "thread", "kernel-object"];
    objects
        .filter(|object| object["program_id"] != 0)
        .filter(|object| !definitions.contains(&object["kind"].as_str().expect("text")))
        .map(|mut object| {
            let fields = object.as_object_mut().expect("an object");
            for field in ["version", "at_byte", "program_id", "ns", "ticks"] {
                fields.remove(field);
            }
            object
        })
        .collect()
}

#[test]
fn records_of_every_kind_come_through() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&[], "kinds", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let check = sandbox.trace(["check", "trace.fxt"]);
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stdout));

    let records = records(&sandbox);
    let process = &records[0]["process"];
    let who = |mut object: Value| {
        object["process"] = process.clone();
        object["thread"] = process.clone();
        object
    };
    let (cpu_0, cpu_1) = ((1 << 25) | 1, (1 << 25) | 2);
    let weights = |incoming: i32, outgoing: i32| {
        json!([
            {"name": "incoming_weight", "type": "int32", "value": incoming},
            {"name": "outgoing_weight", "type": "int32", "value": outgoing},
        ])
    };
    let expected = [
        who(json!({"kind": "log", "message": "a message with grün"})),
        who(json!({
            "kind": "large-blob", "category": "kinds", "name": "packet", "payload": "4500001c", "payload_bytes": 4,
            "args": [{"name": "port", "type": "uint32", "value": 443}],
        })),
        json!({
            "kind": "large-attachment", "category": "kinds", "name": "shader",
            "payload": "766f6964206d61696e2829207b7d", "payload_bytes": 14,
        }),
        json!({"kind": "blob", "name": "piece", "blob_type": 1, "payload": "6c6576656c3d37"}),
        json!({
            "kind": "context-switch", "cpu": 0, "outgoing_state": 1, "outgoing_state_text": "running",
            "outgoing_thread": cpu_1, "incoming_thread": cpu_0, "args": weights(5, i32::MIN),
        }),
        json!({
            "kind": "thread-wakeup", "cpu": 0, "thread": cpu_1,
            "args": [
                {"name": "weight", "type": "int32", "value": 7},
                {"name": "waker", "type": "koid", "value": cpu_0},
            ],
        }),
        json!({
            "kind": "context-switch", "cpu": 0, "outgoing_state": 3, "outgoing_state_text": "blocked",
            "outgoing_thread": cpu_0, "incoming_thread": cpu_1, "args": weights(7, 5),
        }),
    ];
    assert_eq!(records[..expected.len()], expected);
    // Behind everything the manager says how it adds up.
    let (ledger, records) = records.split_last().expect("a ledger");
    assert_eq!((&ledger["kind"], &ledger["generated"]), (&json!("ledger"), &ledger["archived"]));
    let rest: Vec<(&str, &str, u64)> = records[expected.len()..]
        .iter()
        .map(|record| {
            let text = |field: &str| record[field].as_str().expect("text");
            (text("kind"), text("name"), record["thread"].as_u64().expect("a number"))
        })
        .collect();
    let own = process.as_u64().expect("a number");
    let [queue_0, queue_1] = [1, 2].map(|number| 1 << 63 | 1 << 24 | number);
    let expected = [
        ("begin", "pushed", own),
        ("flow-begin", "job", own),
        ("end", "pushed", own),
        ("begin", "moved", own),
        ("flow-step", "job", own),
        ("end", "moved", own),
        ("begin", "popped", own),
        ("flow-end", "job", own),
        ("end", "popped", own),
        ("begin", "draw", queue_0),
        ("flow-begin", "frame", queue_0),
        ("end", "draw", queue_0),
        ("begin", "draw", queue_1),
        ("flow-end", "frame", queue_1),
        ("end", "draw", queue_1),
    ];
    assert_eq!(rest, expected);
}

#[test]
fn perfetto_sees_what_it_knows_of_them() {
    let test = "perfetto_sees_what_it_knows_of_them";
    let sandbox = Sandbox::new();
    sandbox.record(&[], "kinds", &[]);
    let trace = sandbox.file("trace.fxt");
    let errors = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";
    let Some(errors) = query(test, &trace, errors) else { return };
    assert_eq!(errors, Vec::<Value>::new());
    let threads = query(
        test,
        &trace,
        "SELECT thread.name AS thread, slice.name AS slice FROM slice JOIN thread_track ON slice.track_id = \
         thread_track.id JOIN thread USING (utid) WHERE slice.name = 'draw' ORDER BY ts",
    );
    let expected =
        [json!({"thread": "queue 0", "slice": "draw"}), json!({"thread": "queue 1", "slice": "draw"})];
    assert_eq!(threads.unwrap(), expected);
    let flows = query(
        test,
        &trace,
        "SELECT a.name AS source, b.name AS target FROM flow f JOIN slice a ON f.slice_out = a.id \
         JOIN slice b ON f.slice_in = b.id ORDER BY a.ts",
    );
    let flow = |source: &str, target: &str| json!({"source": source, "target": target});
    assert_eq!(flows.unwrap(), [flow("pushed", "moved"), flow("moved", "popped"), flow("draw", "draw")]);
    let scheduled = query(
        test,
        &trace,
        "SELECT thread.name AS thread, priority FROM sched JOIN thread USING (utid) ORDER BY ts",
    );
    let expected =
        [json!({"thread": "guest cpu 0", "priority": 5}), json!({"thread": "guest cpu 1", "priority": 7})];
    assert_eq!(scheduled.unwrap(), expected);
}

/// What a program newer than its manager records is archived, counted and named; readers pass over it.
//= docs/buffer.md#kinds-that-are-not-known
#[test]
fn kinds_of_later_versions_come_through() {
    let test = "kinds_of_later_versions_come_through";
    for mode in ["oneshot", "circular", "streaming"] {
        let sandbox = Sandbox::new();
        let output =
            sandbox.record(&["--buffering-mode", mode, "--output-file", "t.fxt"], "hostile", &["newer"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !stderr.contains("invalid"), "{mode}: {stderr}");
        let check = sandbox.trace(["check", "--json", "t.fxt"]);
        assert_eq!(check.status.code(), Some(0), "{mode}: {}", String::from_utf8_lossy(&check.stdout));
        let report: Value = json(&check);
        let kind =
            |what: &str, number: u64, count: u64| json!({"what": what, "type": number, "count": count});
        let expected = json!({
            "records": 70, "metadata": 0, "events": 10, "arguments": 0,
            "types": [
                kind("records", 11, 10),
                kind("records", 12, 10),
                kind("records", 13, 10),
                kind("records", 14, 10),
                kind("scheduling records", 9, 10),
                kind("profiler records", 5, 10),
                kind("large records", 3, 5),
                kind("large blobs", 2, 5),
                kind("events", 11, 2),
                kind("events", 12, 2),
                kind("events", 13, 2),
                kind("events", 14, 2),
                kind("events", 15, 2),
                kind("blobs", 9, 10),
            ],
        });
        assert_eq!(report["unknown"], expected, "{mode}");
        let text = sandbox.trace(["check", "t.fxt"]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        let line = "skipped: 5 large blobs of type 2, of a later version of the format\n";
        assert!(text.contains(line), "{mode}: {text}");
        let line = "kept: 10 blobs of type 9, of a later version of the format\n";
        assert!(text.contains(line), "{mode}: {text}");
        // Everything that the program has generated is there.
        let ledger = sandbox.trace(["dump", "--json", "t.fxt"]);
        let ledger = String::from_utf8(ledger.stdout).expect("text");
        let ledger = ledger.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let ledger: Vec<Value> = ledger.filter(|object| object["kind"] == "ledger").collect();
        assert_eq!(ledger.len(), 1, "{mode}");
        assert_eq!((&ledger[0]["generated"], &ledger[0]["archived"]), (&json!(100), &json!(100)), "{mode}");
        // All readers pass over them.
        let tens: Vec<Value> = (0..10).map(|number| json!({"n": 10 * number})).collect();
        let sql = "SELECT args->>'n' AS n FROM instants WHERE category = 'hostile' ORDER BY ts";
        let rows = sandbox.trace(["query", "--format", "json", sql, "t.fxt"]);
        assert_eq!(json::<Value>(&rows), json!(tens), "{mode}");
        for (format, name, events) in [
            ("catapult", "t.json", 10),
            ("perfetto", "t.pftrace", 20),
            ("csv", "tables", 10),
            ("fxt", "u.fxt", 20),
        ] {
            let output = sandbox.trace(["convert", "--format", format, "t.fxt", "-o", name]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{mode}, {format}: {stderr}");
            assert!(stderr.contains(&format!("trace: {events} events in ")), "{mode}, {format}: {stderr}");
        }
        for trace in ["t.fxt", "t.pftrace"] {
            let sql = "SELECT count(*) AS n FROM slice WHERE category = 'hostile'";
            let Some(rows) = query(test, &sandbox.file(trace), sql) else { continue };
            assert_eq!(rows, [json!({"n": 10})], "{mode}, {trace}");
        }
    }
}
