//! Processes and threads with texts, decimals, or nothing in place of their numbers.

use super::events_of;

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

/// Such a number of the file is replaced: text and number remain two.
#[test]
fn a_number_behind_a_text_that_has_it_is_replaced() {
    let events = r#"
        {"ph":"i","ts":1,"pid":"p","tid":1,"name":"a"},
        {"ph":"i","ts":2,"pid":2147483647,"tid":1,"name":"b"}"#;
    assert_eq!(
        found(events),
        [
            r#"- kernel-object process #2147483647 "p""#,
            r#"0.000001000 instant 2147483647/1 "" "a" scope=thread"#,
            r#"- kernel-object process #2147483646 "2147483647""#,
            r#"0.000002000 instant 2147483646/1 "" "b" scope=thread"#,
        ]
    );
}
