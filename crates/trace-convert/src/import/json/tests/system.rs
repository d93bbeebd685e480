//! What stands beside the events.

use super::*;

//= docs/import.md#beside-the-events
#[test]
fn names_and_the_scheduler_come_along() {
    let text = r#"{"traceEvents":[
        {"ph":"M","pid":9,"name":"process_name","args":{"name":"shell"}},
        {"ph":"M","pid":9,"tid":10,"name":"thread_name","args":{"name":"main"}},
        {"ph":"M","pid":9,"name":"process_sort_index","args":{"sort_index":1}},
        {"ph":"P","pid":9,"ts":1}],
        "systemTraceEvents":{"type":"fuchsia","events":[
        {"ph":"p","pid":1,"name":"init"},{"ph":"t","pid":1,"tid":2,"name":"t"},
        {"ph":"k","ts":3.0,"cpu":0,"out":{"tid":9,"state":3,"prio":20},"in":{"tid":10,"prio":-2147483648}},
        {"ph":"k","ts":3.0,"cpu":1,"out":{"pid":1,"tid":9,"state":2,"prio":0},"in":{"pid":1,"tid":10,"prio":20}},
        {"ph":"w","ts":4.0,"cpu":1,"tid":9,"prio":20}]},"stackFrames":{}}"#;
    let (archive, summary) = imported(text);
    let found = lines(&archive);
    for (line, words) in found.iter().zip([
        "#9 \"shell\"",
        "#10 \"main\"",
        "#1 \"init\"",
        "#2 \"t\"",
        "outgoing_weight=20i32",
        "context-switch",
        "weight=20i32",
    ]) {
        assert!(line.contains(words), "{line}: {words}");
    }
    assert_eq!(found.len(), 7);
    let skipped = ["events of phase \"P\"", "members \"stackFrames\"", "metadata process_sort_index"];
    assert_eq!(summary.skipped, skipped.map(|what| (what.to_owned(), 1)));
}

//= docs/import.md#beside-the-events
#[test]
fn unknown_members_are_one_kind() {
    let members: String = (0..500_000).map(|number| format!("\"member {number}\":0,")).collect();
    let (_, summary) = imported(&format!("{{{members}\"samples\":[],\"traceEvents\":[]}}"));
    let expected = [("members \"samples\"".to_owned(), 1), ("members of other names".to_owned(), 500_000)];
    assert_eq!(summary.skipped, expected);
}

//= docs/import.md#beside-the-events
#[test]
fn switches_without_priorities_get_none() {
    let switch = |out: &str, into: &str| {
        format!(r#"{{"ph":"k","ts":3,"cpu":1,"out":{{"tid":9,"state":3{out}}},"in":{{"tid":10{into}}}}}"#)
    };
    let named = r#"{"ph":"t","pid":1,"tid":9,"name":"named"}"#;
    let wakeup = r#"{"ph":"w","ts":4,"cpu":1,"tid":9}"#;
    for (out, into, expected, threads) in [
        ("", "", "", 0),
        (r#","prio":5"#, "", " {outgoing_weight=5i32}", 0),
        (r#","pid":1"#, r#","pid":2"#, "", 1),
        (r#","pid":1,"prio":5"#, r#","pid":0"#, " {outgoing_weight=5i32}", 0),
        (r#","pid":1"#, r#","prio":5"#, " {incoming_weight=5i32}", 0),
        (
            r#","pid":1,"prio":5"#,
            r#","pid":2,"prio":256"#,
            " {outgoing_weight=5i32, incoming_weight=256i32}",
            1,
        ),
    ] {
        let text = format!(
            r#"{{"systemTraceEvents":{{"type":"fuchsia","events":[{named},{},{wakeup}]}}}}"#,
            switch(out, into)
        );
        let (archive, summary) = imported(&text);
        let found = lines(&archive);
        let switch = format!("0.000003000 context-switch cpu=1 9 blocked -> 10{expected}");
        let (objects, scheduling) = found.split_at(1 + threads);
        assert_eq!(scheduling, [&switch[..], "0.000004000 thread-wakeup cpu=1 9"], "{text}");
        // The other thread has no name, but a process.
        assert!(
            objects[1..].iter().all(|line| line.contains("#10 \"\"") && line.contains("process=")),
            "{objects:?}"
        );
        assert_eq!(summary, Summary::default(), "{text}");

        let mut json = Vec::new();
        catapult::convert(&archive[..], &mut json).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert_eq!(json.matches("prio").count(), expected.matches("weight").count(), "{json}");
    }
}
