//! Documents that are cut off, not quite JSON, or no traces.

use super::*;

/// Each document ends somewhere: in the events, before or behind them, within a name or a number.
//= docs/import.md#json
#[test]
fn a_document_cut_off_anywhere_has_the_events_before_the_cut() {
    let event =
        |ts: u32| format!(r#"{{"ph":"i","ts":{ts},"pid":5,"tid":6,"name":"n\"","args":{{"a":[{ts}]}}}}"#);
    let events = [event(1), event(2), event(3)].join(",\n");
    let switch = r#"{"ph":"k","ts":4,"cpu":0,"out":{"tid":9,"state":3},"in":{"tid":10}}"#;
    let system = format!(r#""systemTraceEvents":{{"type":"fuchsia","events":[{switch},{switch}]}}"#);
    for whole in [
        format!(r#"{{"displayTimeUnit":"ns","traceEvents":[{events}],"otherData":{{"a":12}}}}"#),
        format!(r#"{{"otherData":{{"b":"]"}},"traceEvents":[{events}],{system}}}"#),
        format!("[{events}]"),
    ] {
        let (archive, summary) = imported(&whole);
        let all = lines(&archive);
        assert_eq!((summary.warnings, summary.events), (0, 3));
        // Where an event ends.
        let ends: Vec<usize> = [(event(1)), event(2), event(3)]
            .iter()
            .map(|event| whole.find(event).unwrap() + event.len())
            .chain(whole.match_indices(switch).map(|(at, _)| at + switch.len()))
            .collect();
        assert_eq!(ends.len(), all.len());
        for cut in 1..whole.len() {
            let text = &whole[..cut];
            let (archive, summary) = imported(text);
            let expected = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(lines(&archive), all[..expected], "{text}");
            assert_eq!((summary.warnings, summary.malformed), (1, 0), "{text}");
            assert_eq!(summary.first_warnings, ["the file is cut off"], "{text}");
        }
    }
}

/// A file that cannot be read to its end.
struct Unreadable<'a>(&'a [u8]);

impl std::io::Read for Unreadable<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let length = self.0.read(to)?;
        if length > 0 { Ok(length) } else { Err(std::io::ErrorKind::InvalidData.into()) }
    }
}

/// Text in a member has its events, or its lines, before the cut as well.
//= docs/import.md#json
#[test]
fn text_that_is_cut_off_anywhere_has_what_comes_before_the_cut() {
    let event = r#"{\"ph\":\"i\",\"ts\":1,\"pid\":5,\"tid\":6,\"name\":\"a\\n\"}"#;
    let line = r"  app-5 [000] ...1 1.5: tracing_mark_write: I|5|a\\b\n";
    for (begin, part) in [
        (r#"{"traceEvents":"["#, format!("{event},")),
        (r#"{"traceEvents":[],"systemTraceEvents":""#, line.to_owned()),
    ] {
        let text = format!("{begin}{part}{part}");
        let events =
            |archive: &[u8]| lines(archive).iter().filter(|line| !line.contains("kernel-object")).count();
        for cut in begin.len()..=text.len() {
            let bytes = &text.as_bytes()[..cut];
            // A comma behind an event is not needed.
            let needed = |count: usize| begin.len() + count * part.len() - usize::from(part.ends_with(','));
            let expected = (1..=2).filter(|count| cut >= needed(*count)).count();
            let (archive, summary) = imported(&text[..cut]);
            assert_eq!((events(&archive), summary.is_cut_off), (expected, true), "{}", &text[..cut]);
            let mut archive = Vec::new();
            assert!(import(Unreadable(bytes), &mut archive).is_err());
            assert_eq!(events(&archive), expected, "{}", &text[..cut]);
        }
    }
}

/// An import that fails: what it says, and the records of the archive.
fn failing(text: &[u8]) -> (String, usize) {
    let mut archive = Vec::new();
    let error = import(text, &mut archive).unwrap_err();
    let events = match &error {
        ImportError::Stopped { summary, .. } => summary.events,
        _ => 0,
    };
    let lines = lines(&archive).len();
    assert_eq!(events, lines as u64);
    (error.to_string(), lines)
}

//= docs/import.md#what-is-no-json
#[test]
fn bad_json_outside_of_the_events_is_named_with_its_place_and_what_came_before_is_kept() {
    let good = r#"{"ph":"i","ts":1,"pid":5,"tid":6,"name":"n","cat":"c"}"#;
    for (text, kept, problem) in [
        (format!("[{good},\n x]"), 1, "line 2, column 2: expected an event, found 'x'"),
        ("once upon a time".to_owned(), 0, "line 1, column 1: expected [ or {"),
        (String::new(), 0, "line 1, column 1: the file is empty"),
        (format!("{{\"traceEvents\" [{good}]}}"), 0, "line 1, column 16: expected : after \"traceEvents\""),
        (
            format!("[{good}]\n[{good} {good}], x"),
            3,
            "line 2, column 114: expected the end of the file, found 'x'",
        ),
        (
            format!("{{\"traceEvents\":[{good}]}}\nx"),
            1,
            "line 2, column 1: expected the end of the file, found 'x'",
        ),
        (r#"{"traceEvents":null}"#.to_owned(), 0, "line 1, column 16: expected a list of events, found 'n'"),
        (
            format!("{{\"traceEvents\":[{good}],\n\n5}}"),
            1,
            "line 3, column 1: expected a member's name, found '5'",
        ),
    ] {
        assert_eq!(failing(text.as_bytes()), (problem.to_owned(), kept), "{text}");
    }
}

/// A quote or a bracket too few: the event has no end, and the next one begins within it.
//= docs/import.md#what-is-no-json
#[test]
fn an_event_without_its_end_costs_only_that_event() {
    let event = |ts: u32, more: &str| format!(r#"{{"ph":"i","ts":{ts},"pid":5,"tid":6{more}}}"#);
    let line = |ts: u32| format!(r#"0.00000{ts}000 instant 5/6 "" "" scope=thread"#);
    for broken in [
        r#"{"ph":"i","ts":2,"name":"oops,"pid":5,"tid":6}"#,
        r#"{"ph":"i","ts":2,"name":"5" pipe","pid":5,"tid":6}"#,
        r#"{"ph":"i","ts":2,"args":{"a":1},"pid":5,"args":{"b":{"c":2}"#,
        r#"{"ph":"i","ts":2,"args":{"a":[1}}"#,
        r#"{"ph":"i","ts":2,"name":a{b}"#,
    ] {
        let (found, summary) = events_of(&[event(1, ""), broken.to_owned(), event(3, "")].join(",\n "));
        assert_eq!(found, [line(1), line(3)], "{broken}");
        assert_eq!((summary.malformed, summary.is_cut_off), (1, false), "{broken}");
        assert!(summary.first_warnings[0].starts_with("line 2, column "), "{:?}", summary.first_warnings);
        // The next event is not a usual one.
        let nested = r#","args":{"a":{"b":[1]}}"#;
        let (found, _) = events_of(&[broken.to_owned(), event(3, nested), event(4, "")].join(","));
        assert_eq!(found.len(), 2, "{broken}");
        // The file cannot be read behind that.
        let mut archive = Vec::new();
        let text = format!("[{},{broken},{}", event(1, ""), event(3, nested));
        assert!(import(Unreadable(text.as_bytes()), &mut archive).is_err());
        assert_eq!(lines(&archive).len(), 2, "{broken}");
        // Nothing comes after it: the file ends within it.
        let (_, summary) = imported(&format!("[{},{broken}", event(1, "")));
        assert_eq!((summary.malformed, summary.is_cut_off), (0, true), "{broken}");
    }
    // An event that has an end too much.
    for more in ["}", "}}", "\"}", "x}"] {
        let (found, summary) = events_of(&[event(1, "") + more, event(2, ""), event(3, "")].join(","));
        assert_eq!(found, [line(1), line(2), line(3)], "{more}");
        assert_eq!((summary.malformed, summary.is_cut_off), (1, false), "{more}");
    }
    // The file is large, and has many of them.
    let text: Vec<String> = (0..20_000)
        .map(|number| match number % 100 {
            7 => r#"{"ph":"i","ts":1,"name":"oops,"pid":5}"#.to_owned(),
            _ => event(
                number % 10,
                r#","args":{"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#,
            ),
        })
        .collect();
    let (_, summary) = events_of(&text.join(","));
    assert_eq!((summary.events, summary.malformed), (19_800, 200));
}

//= docs/import.md#what-is-kept
#[test]
fn arguments_that_are_no_object_are_one_argument() {
    let event = |args: &str| format!(r#"{{"ph":"C","ts":1,"pid":5,"tid":6,"name":"n","args":{args}}}"#);
    for (args, kept) in [
        ("\"important\"", " {args=\"important\"}"),
        ("[1,{\"a\":2}]", " {args=\"[1,{\\\"a\\\":2}]\"}"),
        ("7", " {args=7i32}"),
        ("null", ""),
    ] {
        let (found, summary) = events_of(&event(args));
        assert_eq!(found, [format!("0.000001000 counter 5/6 \"\" \"n\" id=0x0{kept}")]);
        assert_eq!(summary.skipped, [], "{args}");
    }
}

/// A text with events is a document of its own.
//= docs/import.md#json
#[test]
fn all_of_a_text_with_events_is_read() {
    let event = r#"{"ph":"i","ts":1,"pid":5,"tid":6}"#;
    for text in [
        format!("[{event}][{event}]"),
        format!("{event}\n{event}\n"),
        format!("[{event}],\n{event}"),
        format!("{{\"traceEvents\":[{event},{event}]}}"),
    ] {
        for document in
            [text.clone(), format!("{{\"traceEvents\":{}}}", serde_json::to_string(&text).unwrap())]
        {
            let (archive, summary) = imported(&document);
            assert_eq!(lines(&archive).len(), 2, "{document}");
            assert_eq!(summary, Summary { events: 2, ..Summary::default() }, "{document}");
        }
    }
    let text = serde_json::to_string(&format!("[{event}]\nbye")).unwrap();
    let error = import(format!("{{\"traceEvents\":{text}}}").as_bytes(), std::io::sink()).unwrap_err();
    assert!(matches!(error, ImportError::Stopped { summary, .. } if summary.events == 1));
}

/// However many have lost their end one behind the other, the events behind them are there.
//= docs/import.md#what-is-no-json
#[test]
fn events_without_their_end_are_counted_each() {
    let event = r#"{"ph":"i","ts":1,"pid":5,"tid":6}"#;
    let line = r#"0.000001000 instant 5/6 "" "" scope=thread"#;
    for count in [1, 64, 65, 1001, 5000] {
        for (separator, begin, end) in [(",", "[", "]"), (",\n", "[\n", "\n]"), ("\n", "", "\n")] {
            let broken = vec![&event[..event.len() - 1]; count];
            let all = [vec![event], broken, vec![event; 2]].concat().join(separator);
            let (archive, summary) = imported(&format!("{begin}{all}{end}"));
            assert_eq!(lines(&archive), [line; 3], "{count} {separator:?}");
            assert_eq!((summary.malformed, summary.is_cut_off), (count as u64, false), "{separator:?}");
            let skipped = [("events that cannot be read".to_owned(), count as u64)];
            assert_eq!(summary.skipped, skipped, "{separator:?}");
        }
    }
}

/// Of events in lines, any may be odd; so may the first one be.
//= docs/import.md#what-is-no-json
#[test]
fn an_odd_line_costs_only_that_line() {
    let event = |name: &str| format!(r#"{{"ph":"i","ts":1,"pid":5,"tid":6,"name":"{name}"}}"#);
    let named = |name: &str| format!(r#"0.000001000 instant 5/6 "" "{name}" scope=thread"#);
    let (a, b) = (event("a"), event("b"));
    for odd in [
        r#"{"ph":"i","ts":1,"pid":5,"tid":7"#,
        r#"{"ph":"i","ts":1,"name":"oops,"pid":5}"#,
        r#"{"ph":"i","ts":1,"args":[,"pid":5}"#,
    ] {
        for (text, names) in [
            (format!("{odd}\n{a}\n{b}\n"), ["a", "b"]),
            (format!("{a}\n\n{odd}\r\n{b}"), ["a", "b"]),
            (format!("{odd}\n{odd}\n{a}\n{odd}\n{b}"), ["a", "b"]),
        ] {
            let (archive, summary) = imported(&text);
            assert_eq!(lines(&archive), names.map(named), "{text}");
            let count = text.matches(odd).count() as u64;
            assert_eq!(summary.skipped, [("events that cannot be read".to_owned(), count)], "{text}");
            assert!(is_lines(text.as_bytes()), "{text}");
        }
    }
    // Lines of a log, with brackets that are too many.
    for (text, skipped) in [
        (format!("{a}}}\n{b}"), "events that cannot be read"),
        (format!("{a}]}}\n{b}"), "events that cannot be read"),
        (format!("{a}\nhello\n{b}\n"), "events that cannot be read"),
        (format!("{{\"log\":\"x\"}}\n{a}\n{b}"), "events without a time that can be expressed"),
    ] {
        let (archive, summary) = imported(&text);
        assert_eq!(lines(&archive), ["a", "b"].map(named), "{text}");
        assert_eq!(summary.skipped, [(skipped.to_owned(), 1)], "{text}");
    }
    // Other documents have an event in a line, too.
    for text in [
        format!("{{\"x\":[\n{a}\n]}}"),
        format!("{{\"x\":\n\n{a}\n}}"),
        format!("{{\"traceEvents\":[],\"x\":1\n{a}\n"),
    ] {
        assert!(!is_lines(text.as_bytes()), "{text}");
    }
}

//= docs/import.md#what-is-no-json
#[test]
fn values_between_the_events_are_skipped() {
    let event = r#"{"ph":"i","ts":1,"pid":5,"tid":6}"#;
    let line = r#"0.000001000 instant 5/6 "" "" scope=thread"#;
    for odd in ["null", "7", "\"x\"", "[1,2]", "true,false"] {
        let text = format!("[{odd},{event},{odd},{event}]");
        let (archive, summary) = imported(&text);
        assert_eq!(lines(&archive), [line; 2], "{text}");
        assert_eq!(summary.skipped, [("events that cannot be read".to_owned(), 2)], "{text}");
    }
    for text in ["[12:30:01] a", "[INFO, a] b", "[1.5] a", "[2026-11-30, 12] a", "[\"a\"] b"] {
        assert!(begin::is_odd_list(text.as_bytes()), "{text}");
    }
}

//= docs/import.md#what-is-no-json
#[test]
fn bad_json_within_an_event_costs_at_most_that_event() {
    let event = |ts: u32, more: &str| format!(r#"{{"ph":"i","ts":{ts},"pid":5,"tid":6,"name":"n"{more}}}"#);
    let line = |ts: u32, more: &str| format!(r#"0.00000{ts}000 instant 5/6 "" "n" scope=thread{more}"#);
    let cases: [(&[u8], Option<&str>, &str); 15] = [
        (br#","name":"n""#, Some(""), "column 50: duplicate field `name`"),
        (br#","name":"m","name":"n","args":{"a":NaN}"#, Some(r#" {a="NaN"}"#), "column 79: expected value"),
        (br#","args":{"a":1,}"#, Some(" {a=1i32}"), "column 59: trailing comma"),
        (br#","args":{"a":NaN}"#, Some(r#" {a="NaN"}"#), "column 57: expected value"),
        (br#","args":{"a":Infinity}"#, Some(r#" {a="Infinity"}"#), "column 57: expected value"),
        (br#","args":{"a":-Infinity}"#, Some(r#" {a="-Infinity"}"#), "column 58: invalid number"),
        (b",\"args\":{\"a\":\"\xff\"}", Some(" {a=\"\u{fffd}\"}"), "column 58: invalid unicode code point"),
        (
            br#","args":{"a":"\ud800x"}"#,
            Some(" {a=\"\u{fffd}x\"}"),
            "column 64: unexpected end of hex escape",
        ),
        (
            br#","args":{"\udc00":1}"#,
            Some(" {\"\u{fffd}\"=1i32}"),
            "column 59: lone leading surrogate in hex escape",
        ),
        (b",\"args\":{\"a\":\"\tb\"}", Some(" {a=\"\\tb\"}"), "column 58: control character"),
        (br#","args":1x"#, Some(" {args=\"1x\"}"), "column 53: expected `,` or `}`"),
        (br#","args":{"a":True}"#, Some(" {a=true}"), "column 57: expected value"),
        (br#","args":{"a":"\w\n"}"#, Some(r#" {a="\\w\\n"}"#), "column 59: invalid escape"),
        (br#","args":{"a" 5}"#, None, "column 57: expected `:`"),
        (br#","args":x{"a":5}"#, None, "column 52: expected value"),
    ];
    for (bad, kept, problem) in cases {
        let before = format!("[{},\n{}", event(1, ""), event(2, "").trim_end_matches('}'));
        let behind = format!("}},{}]", event(3, ""));
        let text = [before.as_bytes(), bad, behind.as_bytes()].concat();
        let shown = String::from_utf8_lossy(&text).into_owned();
        let mut archive = Vec::new();
        let summary = import(&text[..], &mut archive).unwrap();
        let middle = kept.map(|more| line(2, more));
        let expected: Vec<String> =
            [Some(line(1, "")), middle, Some(line(3, ""))].into_iter().flatten().collect();
        assert_eq!(lines(&archive), expected, "{shown}");
        let left_out = kept.is_none().then(|| ("events that cannot be read".to_owned(), 1));
        assert_eq!(summary.skipped, Vec::from_iter(left_out), "{shown}");
        assert_eq!((summary.malformed, summary.warnings), (1, 1), "{shown}");
        let warning = &summary.first_warnings[0];
        assert!(warning.starts_with(&format!("line 2, {problem}")), "{warning}");
        assert_eq!(warning.ends_with(": skipped"), kept.is_none(), "{warning}");
    }
}

/// The event can be mended as a whole.
//= docs/import.md#what-is-no-json
#[test]
fn what_looks_like_an_event_in_an_odd_one_is_a_part_of_it() {
    for odd in ["nan", "None", r#""C:\work""#] {
        let inner = r#"{"name":"FAKE","ph":"X","ts":5,"dur":1,"pid":5,"tid":6}"#;
        let (found, summary) = events_of(&format!(
            r#"{{"ph":"i","ts":1,"pid":5,"tid":6,"args":{{"n":{odd},"d":[0,{inner}]}}}},
            {{"ph":"i","ts":2,"pid":5,"tid":6}}"#
        ));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("FAKE") && found[0].starts_with("0.000001000 instant"), "{}", found[0]);
        assert_eq!(summary.malformed, 1);
    }
}

/// The quote behind the last backslash seems to belong to the text, which ends with the event then.
//= docs/import.md#what-is-no-json
#[test]
fn a_text_that_ends_with_a_backslash_costs_nothing() {
    let (found, summary) = events_of(
        r#"{"ph":"i","ts":1,"name":"C:\dir\","pid":5,"tid":6},
        {"ph":"i","ts":2,"name":"C:\dir\","pid":5,"tid":6},{"ph":"i","ts":3,"pid":5,"tid":6}"#,
    );
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], r#"0.000001000 instant 5/6 "" "C:\\dir\\" scope=thread"#);
    assert_eq!(found[1], found[0].replace("1000", "2000"));
    assert_eq!((summary.malformed, summary.is_cut_off), (2, false));
}

//= docs/import.md#what-is-no-json
#[test]
fn a_value_that_cannot_be_told_from_the_next_member_is_left_out_and_counted() {
    let (found, summary) = events_of(
        r#"{"name":"a","ph":"X","ts":1,5,"dur":2,25,"pid":1,"tid":1,"args":{"scale":0,016600,"n":3,"m":}},
        {"name":"b","ph":"X","ts":5,"dur":2,"pid":1,"tid":1}"#,
    );
    let expected = [
        r#"0.000001500 complete 1/1 "" "a" end=0.000003750 {n=3i32}"#,
        r#"0.000005000 complete 1/1 "" "b" end=0.000007000"#,
    ];
    assert_eq!(found, expected);
    assert_eq!(summary.skipped, [("members that cannot be read".to_owned(), 2)]);
}

/// The first places are printed and all are counted, beside the remark that the file is cut off.
//= docs/import.md#what-is-no-json
#[test]
fn bad_events_are_counted_and_the_first_are_reported() {
    let good = r#"{"ph":"i","ts":1,"pid":5,"tid":6}"#;
    let bad = r#"{"ph":"i","ts":}"#;
    let (archive, summary) =
        imported(&format!("{{\"traceEvents\":[{}", format!("\n{bad},{good},").repeat(1000)));
    assert_eq!(lines(&archive).len(), 1000);
    assert_eq!((summary.malformed, summary.warnings, summary.first_warnings.len()), (1000, 1001, 10));
    assert_eq!(summary.first_warnings[0], "the file is cut off");
    assert!(summary.first_warnings[1].starts_with("line 2, column 16: expected value"));
    assert!(summary.first_warnings[9].starts_with("line 10, column 16: expected value"));
}

/// An end of a flow waits for its slice: a remark about it names the line of the end.
#[test]
fn a_bad_end_of_a_flow_does_not_spoil_its_slice() {
    let (archive, summary) = imported(
        r#"[{"ph":"f","ts":1,"pid":5,"tid":6,"id":1,"name":"\ud800"},
        {"ph":"X","ts":2,"dur":1,"pid":5,"tid":6,"name":"x"}]"#,
    );
    assert_eq!(lines(&archive).len(), 2);
    assert_eq!((summary.events, summary.malformed), (2, 1));
    assert!(summary.first_warnings[0].starts_with("line 1, "), "{:?}", summary.first_warnings);
}

/// Members that do not count may be larger than any event.
//= docs/import.md#json
#[test]
fn a_byte_order_mark_and_large_members_are_passed_over() {
    let text = format!("\u{feff}{{\"metadata\":\"{}\",\"traceEvents\":[]}}", "x".repeat(70 << 20));
    let (_, summary) = imported(&text);
    assert_eq!(summary.skipped, [("members \"metadata\"".to_owned(), 1)]);
}

//= docs/import.md#what-is-no-trace
#[test]
fn what_is_no_trace_is_named() {
    for (text, found) in [
        (
            r#"{"nodes":[{"id":1}],"startTime":1,"endTime":2,"samples":[1],"timeDeltas":[0]}"#,
            "what looks like a CPU profile of V8 (.cpuprofile)",
        ),
        (
            r#"{"snapshot":{},"nodes":[],"edges":[],"strings":[]}"#,
            "what looks like a heap snapshot of V8 (.heapsnapshot)",
        ),
        (r#"{"log":{"version":"1.2","creator":{},"entries":[]}}"#, "what looks like an HTTP archive (HAR)"),
        (r#"{"log":{"version":"1.2","cre"#, "what looks like an HTTP archive (HAR)"),
        (
            r#"{"name":"a","version":"1.0.0","dependencies":{}}"#,
            "what looks like a package's description (package.json)",
        ),
        (r#"{"a":1,"b":[{"ph":"i"}]}"#, r#"an object without traceEvents but with "a", "b""#),
        (
            r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}"#,
            r#"an object without traceEvents but with "a", "b", "c", "d", "e" and 2 more"#,
        ),
        ("{}", "an object without traceEvents"),
        (r#"[{"a":1},{"b":2}]"#, "objects in a list, 2 of them, without a phase (`ph`)"),
        (r#"{"traceEvents":[{"a":1}]}"#, "objects in a list, 1 of them, without a phase (`ph`)"),
    ] {
        assert_eq!(failing(text.as_bytes()), (format!("expected a trace, found {found}"), 0), "{text}");
    }
}
