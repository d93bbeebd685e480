//! Traces of other software: what Perfetto's reader sees in the original, it sees in what was made of it.

use std::path::Path;
use trace_tests::Sandbox;
use trace_tests::catapult::count;
use trace_tests::perfetto::query_all;

/// What is asked: rows of a kind with two texts and three numbers.
type Question = &'static str;

const SLICES: Question = "SELECT 'slice' AS kind, name AS a, '' AS b, ts AS t, dur AS n, 0 AS m FROM slice";
/// What programs wrote; of interrupts the original has other names.
const MARKED_SLICES: Question = "SELECT 'slice' AS kind, s.name AS a, '' AS b, s.ts AS t, dur AS n, tid AS m FROM slice s \
     JOIN thread_track t ON s.track_id = t.id JOIN thread USING (utid) WHERE s.name LIKE 'work %'";
const COUNTERS: Question = "SELECT 'counter' AS kind, '' AS a, '' AS b, ts AS t, value AS n, count(*) AS m FROM counter \
     GROUP BY ts, value";
const MARKED_COUNTERS: Question = "SELECT 'counter' AS kind, '' AS a, '' AS b, ts AS t, value AS n, count(*) AS m \
     FROM counter c JOIN track t ON c.track_id = t.id WHERE t.name LIKE 'iter%' GROUP BY ts, value";
const FLOWS: Question = "SELECT 'flow' AS kind, a.name AS a, b.name AS b, a.ts AS t, b.ts AS n, 0 AS m FROM flow f \
     JOIN slice a ON f.slice_out = a.id JOIN slice b ON f.slice_in = b.id";
/// An archive's idle threads have numbers of their own.
const SCHED: Question = "SELECT 'sched' AS kind, cpu || '' AS a, priority || '' AS b, ts AS t, dur AS n, \
     iif(tid >= 0x7fff0000, 0, tid) AS m FROM sched JOIN thread USING (utid)";
const ERRORS: Question = "SELECT 'error' AS kind, name AS a, '' AS b, 0 AS t, value AS n, 0 AS m FROM stats \
     WHERE severity IN ('error', 'data_loss') AND value > 0 AND name <> 'mismatched_sched_switch_tids'";

/// A file, what is asked, and how many rows the original has for that.
type Case = (&'static str, &'static [(Question, usize)]);

const CASES: [Case; 14] = [
    ("catapult_flow_simple.json", &[(SLICES, 5)]),
    ("catapult_instance_counters.json", &[(SLICES, 2), (COUNTERS, 8)]),
    ("catapult_instant_events.json", &[(SLICES, 5)]),
    ("catapult_nestable_async.json", &[(SLICES, 11)]),
    ("linux_ftrace_text.txt", &[(MARKED_SLICES, 519), (MARKED_COUNTERS, 519), (SCHED, 1272)]),
    ("linux_tracebox_sched.pftrace", &[(MARKED_SLICES, 685), (MARKED_COUNTERS, 685), (SCHED, 1325)]),
    ("perfetto_cpu_frequency_limits.systrace", &[(COUNTERS, 24)]),
    ("perfetto_flow_events_json_v2.json", &[(SLICES, 7), (FLOWS, 4)]),
    ("perfetto_json__json_incomplete.json", &[(SLICES, 1)]),
    ("perfetto_json__json_trailing_comma.json", &[(SLICES, 2)]),
    ("perfetto_json__string_ts_and_dur.json", &[(SLICES, 2)]),
    ("perfetto_parser_track_event_flow_events_track_event.pftrace", &[(SLICES, 11)]),
    ("perfetto_parser_track_event_track_event_counters.pftrace", &[(SLICES, 7), (COUNTERS, 18)]),
    ("perfetto_parser_track_event_track_event_tracks.pftrace", &[(SLICES, 15)]),
];

/// What is made of each. Perfetto's reader of archives leaves out when a CPU is idle, and of a flow all ends
/// but the first.
const FORMATS: [&str; 2] = ["fxt", "pftrace"];

/// All questions as one.
fn asked(questions: &[Question]) -> String {
    format!("{} ORDER BY kind, t, a, b, n, m", questions.join(" UNION ALL "))
}

//= docs/import.md#events
//= docs/import.md#kernel-events
//= docs/import.md#markers
//= docs/import.md#track-events
#[test]
fn perfetto_sees_in_an_import_what_it_sees_in_the_original() {
    let test = "perfetto_sees_in_an_import_what_it_sees_in_the_original";
    let sandbox = Sandbox::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples");
    let mut all = Vec::new();
    for (name, questions) in CASES {
        let original = samples.join(name);
        let questions: Vec<Question> = questions.iter().map(|(question, _)| *question).collect();
        all.push((original.clone(), asked(&questions)));
        for format in FORMATS {
            let converted = sandbox.file(&format!("{name}.{format}"));
            let arguments = ["convert", original.to_str().unwrap(), converted.to_str().unwrap()];
            let output = sandbox.trace(arguments);
            assert!(output.status.success(), "{output:?}");
            let is_left_out = |question: &str| format == "fxt" && [FLOWS, SCHED].contains(&question);
            let asked_of = questions.iter().copied().filter(|question| !is_left_out(question));
            all.push((converted, asked(&asked_of.chain([ERRORS]).collect::<Vec<_>>())));
        }
    }
    let Some(answers) = query_all(test, &all) else { return };
    let mut answers = answers.into_iter();
    for (name, questions) in CASES {
        let expected = answers.next().unwrap();
        assert_eq!(expected.len(), questions.iter().map(|(_, rows)| rows).sum::<usize>(), "{name}");
        for converted in FORMATS {
            let kinds_left_out: &[&str] = if converted == "fxt" { &["flow", "sched"] } else { &[] };
            let expected: Vec<_> = expected
                .iter()
                .filter(|row| !kinds_left_out.contains(&row["kind"].as_str().unwrap()))
                .cloned()
                .collect();
            let found = answers.next().unwrap();
            let different = found.iter().zip(&expected).find(|(found, expected)| found != expected);
            assert_eq!(different, None, "{name} as {converted}");
            assert_eq!(found.len(), expected.len(), "{name} as {converted}: {:?}", found.last());
        }
    }
}

/// Everything but scheduling and names, of slices, instants, counters, flows and their arguments.
const EVENTS: &str = "SELECT 'slice' AS kind, s.name AS a, category AS b, s.ts AS t, dur AS n, tid FROM slice s \
       LEFT JOIN thread_track t ON s.track_id = t.id LEFT JOIN thread USING (utid) \
     UNION ALL SELECT 'counter', t.name, '', c.ts, value, 0 FROM counter c JOIN track t ON c.track_id = t.id \
     UNION ALL SELECT 'flow', a.name, b.name, a.ts, b.ts, 0 FROM flow f \
       JOIN slice a ON f.slice_out = a.id JOIN slice b ON f.slice_in = b.id ORDER BY 1, 4, 2, 3, 5";

/// What Perfetto's reader of archives refuses, warns of or has nothing for.
const REFUSED: [&str; 8] = [
    "event-complete-backwards",
    "event-counter-bool",
    "event-name-lies",
    "event-mismatched-async-end",
    "event-overlapping",
    "event-times",
    "event-unknown",
    "event-without-id",
];

/// Of the conformance corpus' events, Perfetto sees in its own format what it sees in the archive.
//= docs/perfetto.md#events
//= docs/perfetto.md#flows
#[test]
fn perfetto_sees_the_corpus_alike_in_both_formats() {
    let test = "perfetto_sees_the_corpus_alike_in_both_formats";
    let sandbox = Sandbox::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus");
    let (mut names, mut questions) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_event = name.starts_with("event-") && name.ends_with(".fxt");
        if !is_event || REFUSED.iter().any(|refused| name.starts_with(refused)) {
            continue;
        }
        let converted = sandbox.file(&format!("{name}.pftrace"));
        let output = sandbox.trace(["convert", path.to_str().unwrap(), converted.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        names.push(name.to_owned());
        questions.extend([path, converted].map(|path| (path, EVENTS.to_owned())));
    }
    let Some(answers) = query_all(test, &questions) else { return };
    let (pairs, _) = answers.as_chunks::<2>();
    for (name, [archive, converted]) in names.iter().zip(pairs) {
        assert_eq!(archive, converted, "{name}");
    }
    let rows: usize = pairs.iter().map(|[archive, _]| archive.len()).sum();
    assert_eq!((names.len(), rows), (22, 25));
}

/// A slice of one microsecond.
fn slice(name: &str, ts: u32, more: &str) -> String {
    format!(r#"{{"ph":"X","pid":1,"tid":2,"cat":"c","name":"{name}","ts":{ts},"dur":1{more}}}"#)
}

/// A file's name and text, the formats to convert it to, what is asked, how many rows the original has for
/// that, and the exit code of the conversion.
type Unusual<'a> = (&'a str, Vec<u8>, &'a [&'a str], Question, usize, i32);

/// What Perfetto's reader sees in small JSON files, it sees in what is made of them: in files that are not
/// quite JSON, crossing begins and ends, text as a counter's value, times of threads.
//= docs/import.md#what-is-no-json
//= docs/import.md#crossing-slices
//= docs/import.md#arguments
//= docs/import.md#thread-times
#[test]
fn perfetto_sees_in_unusual_json_what_it_sees_in_the_original() {
    const SEEN: Question = "SELECT 'slice' AS kind, s.name AS a, '' AS b, s.ts AS t, s.dur AS n, s.depth AS m FROM slice s \
         UNION ALL SELECT 'counter', '', '', ts, value, count(*) FROM counter GROUP BY ts, value";
    const THREAD_TIMES: Question =
        "SELECT 'times' AS kind, name AS a, '' AS b, ts AS t, thread_ts AS n, thread_dur AS m FROM slice";
    let part = |ph: &str, name: &str, ts: u32| {
        format!(r#"{{"ph":"{ph}","pid":1,"tid":2,"cat":"c","name":"{name}","ts":{ts}}}"#)
    };
    let among = |bad: &[u8]| {
        let (before, behind) = (slice("good", 1, ""), slice("good", 9, ""));
        [b"[", before.as_bytes(), b",", bad, b",", behind.as_bytes(), b"]"].concat()
    };
    let all = ["fxt", "pftrace", "json"];
    let cases: [Unusual<'_>; 8] = [
        ("comma", among(br#"{"ph":"X","pid":1,"tid":2,"name":"bad","ts":5,"dur":1,}"#), &all, SEEN, 3, 6),
        (
            "line",
            among(b"{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"name\":\"b\nad\",\"ts\":5,\"dur\":1}"),
            // Perfetto's reader of JSON shows `\n` as it is written.
            &["fxt", "pftrace"],
            SEEN,
            3,
            6,
        ),
        (
            "utf8",
            among(b"{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"name\":\"b\xffad\",\"ts\":5,\"dur\":1}"),
            &all,
            SEEN,
            3,
            6,
        ),
        ("nan", among(slice("bad", 5, r#","args":{"a":NaN,"b":-Infinity}"#).as_bytes()), &all, SEEN, 3, 6),
        (
            "crossing",
            format!(
                "[{},{},{},{}]",
                part("B", "a", 1),
                part("B", "b", 2),
                part("E", "a", 3),
                part("B", "c", 4)
            )
            .into(),
            &all,
            SEEN,
            3,
            0,
        ),
        (
            "nested",
            [("B", "a", 1), ("B", "a", 2), ("B", "b", 3), ("E", "b", 4), ("E", "a", 5), ("E", "a", 7)]
                .map(|(ph, name, ts)| part(ph, name, ts))
                .join(",")
                .into_bytes(),
            &all,
            SEEN,
            3,
            0,
        ),
        (
            "counter",
            r#"[{"ph":"C","pid":1,"name":"n","ts":1,"args":{"a":"42","b":"1.5","c":" 7","d":"-3"}}]"#.into(),
            &all,
            SEEN,
            4,
            0,
        ),
        (
            "times",
            format!(
                "[{},{}]",
                slice("a", 1, r#","tts":1000,"tdur":0.5"#),
                slice("b", 5, r#","tts":"2000.25","tdur":1"#)
            )
            .into(),
            &["json"],
            THREAD_TIMES,
            2,
            0,
        ),
    ];
    let sandbox = Sandbox::new();
    let mut all = Vec::new();
    for (name, json, formats, question, _, code) in &cases {
        let original = sandbox.file(&format!("{name}.original.json"));
        let json = if json.starts_with(b"[") { json.clone() } else { [b"[", &json[..], b"]"].concat() };
        std::fs::write(&original, json).unwrap();
        all.push((original.clone(), asked(&[question])));
        for format in *formats {
            let converted = sandbox.file(&format!("{name}.{format}"));
            let target = if *format == "json" { &["--format", "chrome"][..] } else { &[] };
            let files = [original.to_str().unwrap(), converted.to_str().unwrap()];
            let output = sandbox.trace([&["convert"], target, &files].concat());
            assert_eq!(output.status.code(), Some(*code), "{output:?}");
            all.push((converted, asked(&[question])));
        }
    }
    let test = "perfetto_sees_in_unusual_json_what_it_sees_in_the_original";
    let Some(answers) = query_all(test, &all) else { return };
    let mut answers = answers.into_iter();
    for (name, _, formats, _, rows, _) in cases {
        let expected = answers.next().unwrap();
        assert_eq!(expected.len(), rows, "{name}: {expected:?}");
        for format in formats {
            assert_eq!(answers.next().unwrap(), expected, "{name} as {format}");
        }
    }
}

/// All that could be read of a malformed trace is written, and the exit code says that it was not all.
//= docs/import.md#json
//= docs/import.md#what-is-no-json
//= docs/import.md#what-is-cut-off
//= docs/check.md#problems
#[test]
fn what_could_be_read_of_malformed_json_is_written() {
    let sandbox = Sandbox::new();
    let good = [slice("a", 1, ""), slice("b", 2, "")].join(",\n");
    let bad = format!(
        "{{\"traceEvents\":[{good},\n{},\n{}]}}",
        slice("c", 3, ",\"args\":{\"x\" 5}"),
        slice("d", 4, "")
    );
    let place = "trace: line 3, column 75: expected `:` in ";
    let malformed = "trace: bad.json: 1 event could not be read and was skipped";
    let stops = format!("[{good}\n}}]");
    let stopped =
        "trace: bad.json: line 3, column 1: expected an event, found '}'; what comes before is converted";
    let cut = format!("{{\"traceEvents\":[{good},{}", &slice("c", 3, "")[..40]);
    for (text, events, code, said) in [
        (&bad, 3, 6, &[place, malformed][..]),
        (&stops, 2, 6, &[stopped]),
        (&cut, 2, 0, &["trace: the file is cut off"]),
    ] {
        std::fs::write(sandbox.file("bad.json"), text).unwrap();
        for target in [
            &["out.fxt"][..],
            &["out.pftrace"],
            &["--format", "chrome", "out.json"],
            &["--format", "csv", "tables"],
        ] {
            let output = target.last().unwrap();
            let [options @ .., _] = target else { unreachable!() };
            let converted = sandbox.trace([&["convert"], options, &["bad.json", output]].concat());
            let stderr = String::from_utf8_lossy(&converted.stderr).into_owned();
            assert_eq!(converted.status.code(), Some(code), "{output}: {stderr}");
            for words in said {
                assert!(stderr.lines().any(|line| line.starts_with(words)), "{output}: {words} in {stderr}");
            }
            if *output == "tables" {
                let slices = std::fs::read_to_string(sandbox.file("tables/slices.csv")).unwrap();
                assert_eq!(slices.lines().count(), events + 1, "{stderr}");
                std::fs::remove_dir_all(sandbox.file("tables")).unwrap();
                continue;
            }
            if *output == "out.fxt" {
                let counted =
                    sandbox.trace(["query", "--format", "csv", "SELECT count(*) FROM slices", "out.fxt"]);
                assert_eq!(counted.stdout, format!("count(*)\n{events}\n").into_bytes(), "{text}");
            }
            std::fs::remove_file(sandbox.file(output)).unwrap();
        }
        let checked = sandbox.trace(["check", "bad.json"]);
        assert_eq!(checked.status.code(), Some(if std::ptr::eq(text, &stops) { 6 } else { 1 }), "{text}");
        let report = String::from_utf8_lossy(&checked.stdout);
        let end = format!("\ntruncated: 1\n  byte {}, program 1: the input ends here", cut.len());
        assert_eq!(report.contains(&end), std::ptr::eq(text, &cut), "{checked:?}");
        let unread = "\n1 event could not be read and was skipped\n";
        assert_eq!(report.contains(unread), std::ptr::eq(text, &bad), "{checked:?}");
        assert!(!std::ptr::eq(text, &bad) || !report.contains("clean"), "{checked:?}");
    }
}

//= docs/import.md#what-is-no-json
#[test]
fn half_of_a_surrogate_pair_is_mended_and_not_skipped() {
    let sandbox = Sandbox::new();
    let text = format!("[{},{}]", slice("a\\ud800", 1, ""), slice("b", 2, ""));
    std::fs::write(sandbox.file("half.json"), text).unwrap();
    let converted = sandbox.trace(["convert", "half.json", "half.fxt"]);
    let stderr = String::from_utf8_lossy(&converted.stderr).into_owned();
    assert_eq!(converted.status.code(), Some(6), "{stderr}");
    assert!(stderr.ends_with("trace: half.json: 1 event is not valid and was mended\n"), "{stderr}");
    let found = sandbox.trace(["query", "--json", "SELECT name FROM slices", "half.fxt"]);
    let names: serde_json::Value = trace_tests::json(&found);
    assert_eq!(names, serde_json::json!([{"name": "a\u{fffd}"}, {"name": "b"}]));
}

/// Catapult takes threads of priority 0 for idle ones: those without a priority must not get it.
//= docs/import.md#beside-the-events
#[test]
fn catapult_sees_the_switches_of_a_file_without_priorities() {
    let sandbox = Sandbox::new();
    let switch = |ts: u32, out: u32, into: u32| {
        format!(
            r#"{{"ph":"k","ts":{ts},"cpu":0,"out":{{"pid":1,"tid":{out},"state":3}},"in":{{"pid":1,"tid":{into}}}}}"#
        )
    };
    let thread = |tid: u32| format!(r#"{{"ph":"t","pid":1,"tid":{tid},"name":"thread {tid}"}}"#);
    let events =
        [thread(2), thread(3), switch(1, 2, 3), switch(2, 3, 2), switch(3, 2, 3), switch(4, 3, 2)].join(",");
    let original = sandbox.file("original.json");
    let json =
        format!(r#"{{"traceEvents":[],"systemTraceEvents":{{"type":"fuchsia","events":[{events}]}}}}"#);
    std::fs::write(&original, json).unwrap();
    let output = sandbox.trace(["convert", "--format", "catapult", "original.json", "converted.json"]);
    assert!(output.status.success(), "{output:?}");
    let test = "catapult_sees_the_switches_of_a_file_without_priorities";
    for file in [original, sandbox.file("converted.json")] {
        let Some(found) = count(test, &file) else { return };
        assert_eq!(found["cpuSlices"], 3, "{file:?}: {found}");
        assert_eq!(found["warnings"], serde_json::json!([]), "{file:?}");
    }
}
