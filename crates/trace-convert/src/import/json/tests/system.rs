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

/// Beside its own events, a trace of Chrome has the kernel's as text.
//= docs/import.md#beside-the-events
#[test]
fn text_of_ftrace_comes_along() {
    let switch = |at: u32, from: &str, to: &str| {
        format!(
            "  app-10 [000] ...1 1.{at:06}: sched_switch: prev_comm=a prev_pid={from} prev_prio=120 \
             prev_state=S ==> next_comm=b next_pid={to} next_prio=120\\n"
        )
    };
    let text = [switch(100, "10", "0"), switch(300, "0", "10")].concat();
    let interrupt = "  app-10 [000] d.h1 1.0004: softirq_entry: vec=7 [action=SCHED]\\n  \
                     app-10 [000] d.h1 1.0005: softirq_exit: vec=7 [action=SCHED]\\n";
    let events = r#""traceEvents":[{"name":"a","ph":"X","ts":1000150,"dur":20,"pid":1,"tid":1},
        {"name":"b","ph":"E","ts":1000190,"pid":1,"tid":1}]"#;
    let system = format!(r##""systemTraceEvents":"# tracer: nop\n#\n{text}{interrupt}""##);
    for document in [format!("{{{events},{system}}}"), format!("{{{system},{events}}}")] {
        let (archive, summary) = imported(&document);
        let mut found = lines(&archive);
        found.retain(|line| !line.contains("kernel-object"));
        found.sort();
        insta::allow_duplicates! {
            insta::assert_snapshot!(found.join("\n"), @r#"
            1.000100000 context-switch cpu=0 10 blocked -> 2147418112 {outgoing_weight=120i32, incoming_weight=-2147483648i32}
            1.000150000 complete 1/1 "" "a" end=1.000170000
            1.000190000 end 1/1 "" "b"
            1.000300000 context-switch cpu=0 2147418112 blocked -> 10 {outgoing_weight=-2147483648i32, incoming_weight=120i32}
            1.000400000 begin 0/2147418112 "kernel:irq" "softirq" {vec=7u32, name="SCHED"}
            1.000500000 end 0/2147418112 "kernel:irq" "softirq"
            "#);
        }
        assert_eq!((summary.events, summary.skipped, summary.warnings), (4, Vec::new(), 0));
    }
}

/// Text of many lines has line breaks, whatever is odd in one of them.
//= docs/import.md#beside-the-events
#[test]
fn a_backslash_in_system_text_costs_no_line() {
    let line = |at: u32, text: &str| format!(r"  app-5 [000] ...1 1.{at}: tracing_mark_write: {text}\n");
    let text = [line(1, "B|5|a"), line(2, r"I|5|C:\dir\q"), line(3, "E|5")].concat();
    let (archive, _) = imported(&format!(r#"{{"traceEvents":[],"systemTraceEvents":"{text}"}}"#));
    let mut found = lines(&archive);
    found.retain(|line| !line.contains("kernel-object"));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[1].contains(r#""C:\\dir\\q""#), "{}", found[1]);
}

//= docs/import.md#beside-the-events
#[test]
fn other_system_text_is_counted() {
    for text in ["", "no trace", "a\\ud800b"] {
        let document = format!(r#"{{"traceEvents":[],"systemTraceEvents":"{text}"}}"#);
        let (archive, summary) = imported(&document);
        assert_eq!(lines(&archive), [""; 0]);
        assert_eq!(summary.skipped, [("members \"systemTraceEvents\"".to_owned(), 1)], "{text}");
    }
    // A name that is not quite JSON.
    let line = "a\tb-7 [000] 1.0: tracing_mark_write: C|1|q|1";
    let (archive, _) = imported(&format!(r#"{{"traceEvents":[],"systemTraceEvents":"{line}"}}"#));
    assert!(lines(&archive).iter().any(|line| line.contains("counter 1/7 \"atrace\" \"q\"")));
    // Only what is too large for a value.
    let large = |bytes: usize| {
        let text = line.replace('\t', " ") + "\\n" + &" ".repeat(bytes);
        imported(&format!(r#"{{"traceEvents":[],"systemTraceEvents":"{text}"}}"#)).1
    };
    assert_eq!(large(1 << 20).skipped, []);
    assert_eq!(large(65 << 20).skipped, [("members \"systemTraceEvents\"".to_owned(), 1)]);
    // The file ends within it.
    let mut archive = Vec::new();
    let cut = format!(r#"{{"traceEvents":[],"systemTraceEvents":"{line}"#);
    assert!(import(cut.as_bytes(), &mut archive).unwrap().is_cut_off);
}
