//! Members of events whose values are of an unusual kind.

use super::*;

//= docs/import.md#what-is-kept
#[test]
fn lengths_that_cannot_be_expressed_are_counted() {
    let slice = |dur: &str| format!(r#"{{"ph":"X","ts":5,"pid":5,"tid":6,"name":"n","cat":"c"{dur}}}"#);
    for dur in ["-1", "-0.001", "\"-1\"", "\"long\"", "\"\"", "1e30", "18446744073709551.615", "true", "[1]"]
    {
        let (found, summary) = events_of(&[slice(&format!(",\"dur\":{dur}")), slice("")].join(","));
        assert_eq!(found, [r#"0.000005000 complete 5/6 "c" "n" end=0.000005000"#], "{dur}");
        let skipped = [("complete durations whose length cannot be expressed".to_owned(), 1)];
        assert_eq!(summary.skipped, skipped, "{dur}");
    }
    for (dur, end) in
        [("\"2.5\"", "0.000007500"), ("null", "0.000005000"), ("0", "0.000005000"), ("1e-3", "0.000005001")]
    {
        let (found, summary) = events_of(&slice(&format!(",\"dur\":{dur}")));
        assert_eq!(found, [format!(r#"0.000005000 complete 5/6 "c" "n" end={end}"#)], "{dur}");
        assert_eq!(summary, Summary { events: 1, ..Summary::default() });
    }
}

//= docs/import.md#crossing-slices
#[test]
fn crossing_slices_end_by_name() {
    let part = |ph: &str, name: &str, ts: u32| {
        format!(r#"{{"ph":"{ph}","pid":5,"tid":6,"cat":"c","name":"{name}","ts":{ts}}}"#)
    };
    let parts = [
        ("B", "a", 1),
        ("B", "b", 2),
        ("E", "a", 3),
        ("B", "d", 4),
        ("E", "b", 5),
        ("E", "d", 6),
        ("E", "z", 7),
    ];
    let (found, summary) = events_of(&parts.map(|(ph, name, ts)| part(ph, name, ts)).join(","));
    let expected = [
        r#"0.000001000 begin 5/6 "c" "a""#,
        r#"0.000002000 begin 5/6 "c" "b""#,
        r#"0.000003000 end 5/6 "" """#,
        r#"0.000003000 end 5/6 "c" "a""#,
        r#"0.000004000 begin 5/6 "c" "d""#,
        r#"0.000006000 end 5/6 "c" "d""#,
        r#"0.000007000 end 5/6 "c" "z""#,
    ];
    assert_eq!(found, expected);
    assert_eq!(summary.skipped, [("ends of slices that ended with another".to_owned(), 1)]);
    // Where times are not in order, readers have to put them into it.
    let (found, summary) =
        events_of(&[part("B", "a", 5), part("B", "b", 1), part("E", "a", 6), part("E", "b", 2)].join(","));
    assert_eq!((found.len(), summary), (4, Summary { events: 4, ..Summary::default() }));
}

//= docs/import.md#arguments
#[test]
fn text_that_is_a_number_is_one_in_a_counter() {
    let event = |phase: &str| {
        let args = r#"{"a":"42","b":"-1.5","c":" 1e3 ","d":"18446744073709551615","e":"+4","f":"0x1f","g":"NaN","h":"inf","i":"","j":"4 KiB"}"#;
        format!(r#"{{"ph":"{phase}","ts":1,"pid":5,"tid":6,"name":"n","cat":"c","args":{args}}}"#)
    };
    let text = r#"f="0x1f", g="NaN", h="inf", i="", j="4 KiB"}"#;
    let (found, _) = events_of(&[event("C"), event("i")].join(","));
    let counter = format!("a=42i32, b=-1.5, c=1000.0, d=18446744073709551615u64, e=4i32, {text}");
    assert_eq!(found[0], format!(r#"0.000001000 counter 5/6 "c" "n" id=0x0 {{{counter}"#));
    let instant = format!(r#"a="42", b="-1.5", c=" 1e3 ", d="18446744073709551615", e="+4", {text}"#);
    assert_eq!(found[1], format!(r#"0.000001000 instant 5/6 "c" "n" scope=thread {{{instant}"#));
}

//= docs/import.md#thread-times
#[test]
fn thread_times_become_arguments_and_come_back() {
    let event = |members: &str| format!(r#"{{"pid":5,"tid":6,"name":"n","cat":"c",{members}}}"#);
    let (archive, summary) = imported(&format!(
        "[{}]",
        [
            event(r#""ph":"X","ts":1,"dur":1,"tts":1000,"tdur":0.5,"args":{"a":1}"#),
            event(r#""ph":"B","ts":2,"tts":"2194525525.25""#),
            event(r#""ph":"E","ts":3,"tts":0"#),
            event(r#""ph":"i","ts":4,"tts":-1"#),
            event(r#""ph":"i","ts":5,"tts":"now","tdur":null"#),
            event(r#""ph":"C","ts":6,"tts":7,"args":{"a":1}"#),
        ]
        .join(",")
    ));
    let expected = [
        r#"0.000001000 complete 5/6 "c" "n" end=0.000002000 {a=1i32, thread_ts=1000000i32, thread_dur=500i32}"#,
        r#"0.000002000 begin 5/6 "c" "n" {thread_ts=2194525525250i64}"#,
        r#"0.000003000 end 5/6 "c" "n" {thread_ts=0i32}"#,
        r#"0.000004000 instant 5/6 "c" "n" scope=thread"#,
        r#"0.000005000 instant 5/6 "c" "n" scope=thread"#,
        r#"0.000006000 counter 5/6 "c" "n" id=0x0 {a=1i32}"#,
    ];
    assert_eq!(lines(&archive), expected);
    let skipped = [("thread times of counters", 1), ("thread times that cannot be expressed", 2)];
    assert_eq!(summary.skipped, skipped.map(|(kind, count)| (kind.to_owned(), count)));

    let mut json = Vec::new();
    let dialect = Dialect::Chrome(Container::Array);
    catapult::convert_in_memory(&archive[..], &mut json, Options { dialect, ..Options::default() }).unwrap();
    let json = String::from_utf8(json).unwrap();
    for members in [
        r#""ph":"X","dur":1.0,"args":{"a":1},"tts":1000.0,"tdur":0.5}"#,
        r#""ph":"B","tts":2194525525.25}"#,
        r#""ph":"E","tts":0.0}"#,
    ] {
        assert!(json.contains(members), "{members} in {json}");
    }
    assert!(!json.contains("thread_"), "{json}");
    let (again, _) = imported(&json);
    // Ends have no name there.
    let expected = expected.map(|line| line.replace(r#" end 5/6 "c" "n""#, r#" end 5/6 "" """#));
    assert_eq!(lines(&again), expected);
}

/// Fifteen arguments fill an event: the second thread time is in a blob.
//= docs/import.md#thread-times
#[test]
fn thread_times_are_arguments_behind_all_others() {
    let arguments: Vec<String> = (0..14).map(|number| format!("\"a{number}\":0")).collect();
    let arguments = arguments.join(",");
    let (found, summary) =
        events_of(&format!(r#"{{"ph":"X","ts":1,"tts":1,"tdur":1,"args":{{{arguments}}}}}"#));
    assert!(found[0].starts_with("- further-arguments "), "{}", found[0]);
    assert!(found[1].ends_with("a13=0i32, thread_ts=1000i32, thread_dur=1000i32}"), "{}", found[1]);
    assert_eq!(summary.skipped, []);
}
