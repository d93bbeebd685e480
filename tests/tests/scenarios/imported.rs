//! Traces of other software: what Perfetto's reader sees in the original, it sees in what was made of it.

use std::path::Path;
use trace_tests::Sandbox;
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
const REFUSED: [&str; 6] = [
    "event-complete-backwards",
    "event-counter-bool",
    "event-name-lies",
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
    assert_eq!((names.len(), rows), (17, 15));
}
