//! Documents, and what comes of them.

use super::*;
use crate::export::catapult::{self, Container, Dialect, Options};
use crate::import::testing::lines;

fn imported(text: &str) -> (Vec<u8>, Summary) {
    let mut archive = Vec::new();
    let summary = import(text.as_bytes(), &mut archive).unwrap_or_else(|error| panic!("{error} in {text}"));
    (archive, summary)
}

fn events_of(events: &str) -> (Vec<String>, Summary) {
    let (archive, summary) = imported(&format!("[{events}]"));
    (lines(&archive), summary)
}

//= docs/import.md#events
//= docs/import.md#arguments
#[test]
fn every_phase_becomes_its_record() {
    let cases = [
        (r#""ph":"B","name":"n","cat":"c""#, r#"0.000001500 begin 5/6 "c" "n""#),
        (r#""ph":"E""#, r#"0.000001500 end 5/6 "" """#),
        (r#""ph":"X","name":"n","cat":"c","dur":2"#, r#"0.000001500 complete 5/6 "c" "n" end=0.000003500"#),
        (r#""ph":"X","name":"n","cat":"c""#, r#"0.000001500 complete 5/6 "c" "n" end=0.000001500"#),
        (r#""ph":"i","name":"n","cat":"a,b","s":"g""#, r#"0.000001500 instant 5/6 "a,b" "n" scope=global"#),
        (
            r#""ph":"C","name":"n","cat":"c","id":"0xff","args":{"a":1}"#,
            r#"0.000001500 counter 5/6 "c" "n" id=0xff {a=1i32}"#,
        ),
        (r#""ph":"b","name":"n","cat":"c","id":9"#, r#"0.000001500 async-begin 5/6 "c" "n" id=0x9"#),
        (
            r#""ph":"e","name":"n","cat":"c","id2":{ "local": "0x9" }"#,
            r#"0.000001500 async-end 5/6 "c" "n" id=0x9"#,
        ),
        (r#""ph":"n","name":"n","cat":"c","id":9"#, r#"0.000001500 async-instant 5/6 "c" "n" id=0x9"#),
        (r#""ph":"F","name":"n","cat":"c","id":9"#, r#"0.000001500 async-end 5/6 "c" "n" id=0x9"#),
        (r#""ph":"s","name":"n","cat":"c","id":"7""#, r#"0.000001500 flow-begin 5/6 "c" "n" id=0x7"#),
        (r#""ph":"t","name":"n","cat":"c","id":"7""#, r#"0.000001500 flow-step 5/6 "c" "n" id=0x7"#),
        (r#""ph":"f","name":"n","cat":"c","id":"7","bp":"e""#, r#"0.000001500 flow-end 5/6 "c" "n" id=0x7"#),
    ];
    for (members, expected) in cases {
        let (found, summary) = events_of(&format!(r#"{{"ts":1.5,"pid":5,"tid":"6",{members}}}"#));
        assert_eq!(found, [expected], "{members}");
        assert_eq!(summary, Summary { events: 1, ..Summary::default() });
    }
    let values = r#"{"b":true,"i":-5,"l":4294967296,"u":18446744073709551615,"d":0.5,"s":"x\"y\u00fc","n":null,"o":{"k":[1, 2]},"e":1e3}"#;
    let (found, _) =
        events_of(&format!(r#"{{"ph":"i","ts":0,"pid":1,"tid":2,"name":"n","cat":"c","args":{values}}}"#));
    let expected = r#"{b=true, i=-5i32, l=4294967296i64, u=18446744073709551615u64, d=0.5, s="x\"yü", n=null, o="{\"k\":[1, 2]}", e=1000.0}"#;
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with(expected), "{}", found[0]);
}

//= docs/import.md#json
#[test]
fn containers_may_be_cut_off_and_have_a_comma_too_many() {
    let event = r#"{"ph":"i","ts":1,"pid":5,"tid":6,"name":"n","cat":"c"}"#;
    for (text, events, is_cut) in [
        (format!("[{event},{event}]"), 2, false),
        (format!(" [ {event} , {event} , ]"), 2, false),
        (format!("[{event},{event}"), 2, true),
        (format!("[{event},{{\"ph\":\"i\",\"ts\""), 1, true),
        (format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{event}]}}"), 1, false),
        (format!("{{\"otherData\":{{\"a\":[1]}},\"traceEvents\":[{event},]"), 1, true),
        (format!("{{\"traceEvents\":{}}}", serde_json::to_string(&format!("[{event}]")).unwrap()), 1, false),
        ("[]".to_owned(), 0, false),
        ("{\"traceEvents\":[]}".to_owned(), 0, false),
    ] {
        let (archive, summary) = imported(&text);
        assert_eq!((summary.events, summary.warnings), (events, u64::from(is_cut)), "{text}");
        assert_eq!(lines(&archive).len() as u64, events);
    }
}

//= docs/import.md#json
#[test]
fn events_may_be_in_lines_without_a_list() {
    let line = |name: &str| format!("{{\"ph\":\"i\",\"ts\":1,\"pid\":5,\"tid\":6,\"name\":\"{name}\"}}\n");
    let named = |name: &str| format!(r#"0.000001000 instant 5/6 "" "{name}" scope=thread"#);
    let (a, b, c) = (line("a"), line("b"), line("c"));
    for (text, names, is_cut) in [
        (format!("{a}{b}{c}"), &["a", "b", "c"][..], false),
        (format!("{a}\n // the next one\n{b},\n{}", c.trim_end()), &["a", "b", "c"], false),
        (format!("{a}{b}{}", &c[..20]), &["a", "b"], true),
        (format!("{a}[{b}]{{\"traceEvents\":[{c}]}}"), &["a", "b", "c"], false),
    ] {
        let (archive, summary) = imported(&text);
        assert_eq!(lines(&archive), names.iter().map(|name| named(name)).collect::<Vec<_>>(), "{text}");
        assert_eq!((summary.is_cut_off, summary.malformed), (is_cut, 0), "{text}");
    }
    // A program was killed while it wrote a line, and another one went on.
    let (archive, summary) = imported(&format!("{a}{}\n{b}{c}", &b[..20]));
    assert_eq!(lines(&archive), ["a", "b", "c"].map(named));
    assert_eq!(summary.malformed, 1);
    assert!(is_lines(a.as_bytes()) && !is_lines(b"{\"traceEvents\":[]}") && !is_lines(&a.as_bytes()[..20]));
}

//= docs/import.md#json
#[test]
fn comments_are_passed_over() {
    let event = r#"{"ph":"i","ts":1,"pid":5,"tid":6,"name":"n//n","cat":"/*c*/"}"#;
    let expected = r#"0.000001000 instant 5/6 "/*c*/" "n//n" scope=thread"#;
    let text = format!("/* \"}}] */ // [\n[ // a \" in it\n{event} /**/,/*/ {{ */{event}]//");
    let (archive, summary) = imported(&text);
    assert_eq!(lines(&archive), [expected; 2]);
    assert_eq!(summary, Summary { events: 2, ..Summary::default() });
    // One within an event is mended.
    let (archive, summary) = imported(&text.replace("\"pid\"", "// it's \"}\n\"pid\""));
    assert_eq!(lines(&archive), [expected; 2]);
    assert_eq!((summary.events, summary.malformed, summary.skipped), (2, 2, Vec::new()));
}

//= docs/import.md#what-is-no-trace
#[test]
fn a_trace_of_which_nothing_can_be_read_is_an_error() {
    let error_of = |text: &str| import(text.as_bytes(), std::io::sink()).map_err(|error| error.to_string());
    let nothing = "taken for a JSON trace, but nothing in it can be read; ";
    for (text, skipped) in [
        // Nanoseconds since 1970, which are no microseconds.
        (
            r#"[{"ph":"X","ts":1764500000000000000,"dur":1,"pid":1,"tid":1,"name":"a"}]"#,
            "events without a time that can be expressed: 1",
        ),
        (
            r#"[{"ph":"N","ts":1},{"ph":"O","ts":1},{"ph":"q"},{"ph":"M","name":"thread_name","args":{"name":"t"},"tid":1}]"#,
            "events of phase \"N\": 1, events of phase \"O\": 1, events without a time that can be expressed: 1",
        ),
    ] {
        assert_eq!(error_of(text), Err(format!("{nothing}{skipped}")), "{text}");
    }
    for empty in [
        "[]",
        "{\"traceEvents\":[]}",
        "{\"traceEvents\":[],\"otherData\":{},\"metadata\":{}}",
        r#"[{"ph":"M","name":"process_labels","pid":1,"args":{"labels":"x"}}]"#,
    ] {
        assert_eq!(error_of(empty).unwrap().events, 0, "{empty}");
    }
}

/// What Fuchsia's and Chrome's dialects have of an archive comes back: every event, argument and nanosecond.
//= docs/import.md#round-trips
#[test]
fn a_document_of_ours_comes_back() {
    let text = r#"[{"ph":"B","ts":52227822672.068,"pid":5,"tid":6,"name":"n","cat":"c","args":{"a":-1,"t":"x"}},
        {"ph":"C","ts":52227822672.069,"pid":5,"tid":6,"name":"n","cat":"c","id":"0x7","args":{"u":18446744073709551615}},
        {"ph":"b","ts":1124610290919.28,"pid":5,"tid":6,"name":"n","cat":"c","id":"0x8000000000000001"},
        {"ph":"f","ts":1124610290919.281,"pid":5,"tid":6,"bp":"e","name":"n","cat":"c","id":"9223372036854775809"},
        {"ph":"X","ts":1,"pid":5,"tid":6,"name":"n","cat":"c","dur":0.001,"args":{"d":0.1,"b":false,"s":"\u0001"}},
        {"ph":"M","pid":5,"name":"process_name","args":{"name":"p"}}]"#;
    let (first, _) = imported(text);
    for dialect in [Dialect::Fuchsia, Dialect::Chrome(Container::Array), Dialect::Chrome(Container::Object)] {
        let mut json = Vec::new();
        catapult::convert_in_memory(&first[..], &mut json, Options { dialect, ..Options::default() })
            .unwrap();
        let (again, _) = imported(std::str::from_utf8(&json).unwrap());
        let mut expected = lines(&first);
        if dialect != Dialect::Fuchsia {
            // Beyond 64 bits with a sign.
            expected[1] = expected[1].replace("18446744073709551615u64", "1.8446744073709552e19");
        }
        assert_eq!(lines(&again), expected, "{dialect:?}");
    }
}

//= docs/import.md#events
#[test]
fn what_is_cut_from_a_name_is_counted() {
    let name = "x".repeat(32_001);
    let (archive, summary) = imported(&format!(r#"[{{"ph":"i","ts":1,"pid":5,"tid":6,"name":"{name}"}}]"#));
    let cut = format!("{:?}", &name[1..]);
    assert!(lines(&archive)[0].contains(&cut));
    assert_eq!(summary.skipped, [("ends of names and categories beyond 32 000 bytes".to_owned(), 1)]);
    let (_, summary) = imported(&format!(r#"[{{"ph":"i","ts":1,"pid":5,"tid":6,"name":{cut}}}]"#));
    assert_eq!(summary.skipped, []);
}

//= docs/import.md#events
#[test]
fn an_end_of_a_flow_goes_to_the_next_slice_unless_it_says_otherwise() {
    let flow =
        |members: &str| format!(r#"{{"ph":"f","pid":5,"tid":6,"cat":"c","name":"go","id":"9",{members}}}"#);
    let slice = |tid: u32, ts: u32| {
        format!(r#"{{"ph":"X","pid":5,"tid":{tid},"cat":"c","name":"n","ts":{ts},"dur":1}}"#)
    };
    let (found, summary) = events_of(
        &[flow(r#""ts":1"#), slice(7, 2), slice(6, 3), flow(r#""ts":4,"bp":"e""#), flow(r#""ts":5"#)]
            .join(","),
    );
    let ends: Vec<&str> = found.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(ends, ["0.000002000", "0.000003000", "0.000003000", "0.000004000", "0.000005000"]);
    let kinds: Vec<&str> = found.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(kinds, ["complete", "complete", "flow-end", "flow-end", "flow-end"]);
    assert_eq!(summary.events, 5);
}

//= docs/import.md#events
#[test]
fn slices_may_have_flows() {
    let slice = |members: &str| {
        format!(r#"{{"ph":"X","ts":1,"dur":1,"pid":5,"tid":6,"cat":"c","name":"n",{members}}}"#)
    };
    let (found, _) = events_of(
        &[
            slice(r#""bind_id":"0x9","flow_out":true"#),
            slice(r#""bind_id":"0x9","flow_out":true,"flow_in":true"#),
            slice(r#""bind_id":"0x9","flow_in":true,"flow_out":false"#),
            slice(r#""bind_id":"0x9""#),
        ]
        .join(","),
    );
    let flows: Vec<&str> = found.iter().map(String::as_str).filter(|line| line.contains("flow")).collect();
    assert_eq!(
        flows,
        [
            r#"0.000001000 flow-begin 5/6 "flow" "flow" id=0x9"#,
            r#"0.000001000 flow-step 5/6 "flow" "flow" id=0x9"#,
            r#"0.000001000 flow-end 5/6 "flow" "flow" id=0x9"#,
        ]
    );
}

mod batches;
mod damaged;
mod further;
mod numbering;
mod round_trip;
mod system;
mod tools;
mod values;
