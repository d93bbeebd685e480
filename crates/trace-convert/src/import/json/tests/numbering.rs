//! Processes and threads with texts, decimals, or nothing in place of their numbers.

use super::{events_of, imported};
use crate::import::testing::lines;

fn found(events: &str) -> Vec<String> {
    let (lines, summary) = events_of(events);
    assert_eq!(summary.warnings, 0, "{events}");
    lines
}

//= docs/import.md#processes-and-threads
#[test]
fn texts_are_names_and_have_the_highest_free_numbers() {
    let events = r#"
        {"ph":"i","ts":1,"pid":2147483646,"tid":1,"name":"a"},
        {"ph":"i","ts":2,"pid":"Main","tid":"work","name":"b"},
        {"ph":"i","ts":3,"pid":"Main","tid":"re\u0073t","name":"c"},
        {"ph":"i","ts":4,"pid":"Main","tid":"work","name":"d"},
        {"ph":"i","ts":5,"pid":7,"tid":"work","name":"e"},
        {"ph":"i","ts":6,"pid":"7","tid":1.5,"name":"f"}"#;
    assert_eq!(
        found(events),
        [
            r#"0.000001000 instant 2147483646/1 "" "a" scope=thread"#,
            r#"- kernel-object process #2147483647 "Main""#,
            r#"- kernel-object thread #2147483645 "work" {process=#2147483647}"#,
            r#"0.000002000 instant 2147483647/2147483645 "" "b" scope=thread"#,
            r#"- kernel-object thread #2147483644 "rest" {process=#2147483647}"#,
            r#"0.000003000 instant 2147483647/2147483644 "" "c" scope=thread"#,
            r#"0.000004000 instant 2147483647/2147483645 "" "d" scope=thread"#,
            r#"- kernel-object thread #2147483643 "work" {process=#7}"#,
            r#"0.000005000 instant 7/2147483643 "" "e" scope=thread"#,
            r#"- kernel-object thread #2147483642 "1.5" {process=#7}"#,
            r#"0.000006000 instant 7/2147483642 "" "f" scope=thread"#,
        ]
    );
}

//= docs/import.md#processes-and-threads
#[test]
fn names_of_metadata_come_behind_those_of_texts() {
    let events = r#"
        {"ph":"M","pid":"p","tid":"t","name":"thread_name","args":{"name":"one"}},
        {"ph":"i","ts":1,"pid":"p","tid":"t","name":"a"},
        {"ph":"M","pid":"p","name":"process_name","args":{"name":"two"}}"#;
    assert_eq!(
        found(events),
        [
            r#"- kernel-object process #2147483647 "p""#,
            r#"- kernel-object thread #2147483646 "t" {process=#2147483647}"#,
            r#"- kernel-object thread #2147483646 "one" {process=#2147483647}"#,
            r#"0.000001000 instant 2147483647/2147483646 "" "a" scope=thread"#,
            r#"- kernel-object process #2147483647 "two""#,
        ]
    );
}

//= docs/import.md#processes-and-threads
#[test]
fn numbers_count_by_value_and_a_missing_thread_is_its_process() {
    let events = r#"
        {"ph":"i","ts":1,"pid":1,"tid":2,"name":"a"},
        {"ph":"i","ts":2,"pid":1.0,"tid":2.0,"name":"b"},
        {"ph":"i","ts":3,"pid":1e0,"tid":"0x2","name":"c"},
        {"ph":"i","ts":4,"pid":47,"name":"d"},
        {"ph":"i","ts":5,"pid":47.0,"tid":null,"name":"e"},
        {"ph":"i","ts":6,"pid":9007199254740993.0,"tid":-1,"name":"f"},
        {"ph":"i","ts":7,"name":"g"}"#;
    assert_eq!(
        found(events),
        [
            r#"0.000001000 instant 1/2 "" "a" scope=thread"#,
            r#"0.000002000 instant 1/2 "" "b" scope=thread"#,
            r#"0.000003000 instant 1/2 "" "c" scope=thread"#,
            r#"0.000004000 instant 47/47 "" "d" scope=thread"#,
            r#"0.000005000 instant 47/47 "" "e" scope=thread"#,
            r#"0.000006000 instant 9007199254740993/18446744073709551615 "" "f" scope=thread"#,
            r#"0.000007000 instant 0/0 "" "g" scope=thread"#,
        ]
    );
}

//= docs/import.md#processes-and-threads
#[test]
fn a_number_of_the_file_is_never_that_of_a_text() {
    for number in ["2147483647", "\"2147483647\"", "2.147483647e9", "\"0x7FFFFFFF\"", r#""\u0032147483647""#]
    {
        let events = format!(
            r#"
            {{"ph":"i","ts":1,"pid":"p","tid":1,"name":"a"}},
            {{"ph":"i","ts":2,"pid":"q","tid":{number},"name":"b"}}"#
        );
        assert_eq!(
            found(&events),
            [
                r#"- kernel-object process #2147483646 "p""#,
                r#"0.000001000 instant 2147483646/1 "" "a" scope=thread"#,
                r#"- kernel-object process #2147483645 "q""#,
                r#"0.000002000 instant 2147483645/2147483647 "" "b" scope=thread"#,
            ],
            "{number}"
        );
    }
}

//= docs/import.md#processes-and-threads
#[test]
fn numbers_of_system_events_are_never_those_of_texts() {
    let (archive, summary) = imported(
        r#"{"traceEvents":[{"ph":"i","ts":1,"pid":"p","tid":1,"name":"a"},
            {"ph":"i","ts":2,"pid":3,"tid":4,"name":"b"}],
        "systemTraceEvents":{"type":"fuchsia","events":[
            {"ph":"p","pid":2147483647,"name":"one"},
            {"ph":"t","pid":3,"tid":2147483646,"name":"two"},
            {"ph":"k","ts":3,"cpu":0,"out":{"pid":2147483645,"tid":4,"state":1,"prio":5},
             "in":{"tid":2147483644,"prio":6}}]}}"#,
    );
    assert_eq!(summary.warnings, 0);
    assert_eq!(
        lines(&archive)[..4],
        [
            r#"- kernel-object process #2147483643 "p""#,
            r#"0.000001000 instant 2147483643/1 "" "a" scope=thread"#,
            r#"0.000002000 instant 3/4 "" "b" scope=thread"#,
            r#"- kernel-object process #2147483647 "one""#,
        ]
    );
}

//= docs/import.md#processes-and-threads
#[test]
fn numbers_in_the_kernels_text_are_never_those_of_texts() {
    let kernel = "# tracer: nop\\n   foo-2147483647 [000] d..3 1.000001: sched_switch: prev_comm=foo \
                  prev_pid=2147483647 prev_prio=120 prev_state=S ==> next_comm=bar next_pid=2147483646 \
                  next_prio=120\\n";
    let event = r#"{"ph":"i","ts":1,"pid":3,"tid":"s","name":"a"}"#;
    let (archive, _) = imported(&format!(r#"{{"traceEvents":[{event}],"systemTraceEvents":"{kernel}"}}"#));
    assert_eq!(lines(&archive)[0], r#"- kernel-object thread #2147483645 "s" {process=#3}"#);
}

/// More than is kept in memory.
//= docs/import.md#processes-and-threads
#[test]
fn many_events_wait_for_a_number_at_the_end() {
    let event = |number: usize| {
        format!(r#"{{"ph":"i","ts":{number},"pid":"p","tid":{number},"name":"a name that is long"}},"#)
    };
    let events: String = (0..20_000).map(event).collect();
    let last = r#"{"ph":"i","ts":20000,"pid":2147483647,"tid":1,"name":"b"}"#;
    let lines = found(&format!("{events}{last}"));
    assert_eq!(lines[0], r#"- kernel-object process #2147483646 "p""#);
    assert_eq!(lines.len(), 20_002);
    for (number, line) in lines[1..20_001].iter().enumerate() {
        let at = number * 1000;
        let expected =
            format!(r#"0.{at:09} instant 2147483646/{number} "" "a name that is long" scope=thread"#);
        assert_eq!(*line, expected);
    }
    assert_eq!(lines[20_001], r#"0.020000000 instant 2147483647/1 "" "b" scope=thread"#);
}
