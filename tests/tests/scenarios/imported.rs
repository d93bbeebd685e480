//! Traces of other software: what Perfetto's reader sees in the original, it sees in what was made of it.

use std::path::Path;
use trace_tests::Sandbox;
use trace_tests::perfetto::query;

const SLICES: &str = "SELECT name, ts, dur FROM slice ORDER BY ts, dur, name";
/// What programs wrote; of interrupts the original has other names.
const MARKED_SLICES: &str = "SELECT s.name, s.ts, s.dur, tid FROM slice s JOIN thread_track t ON s.track_id = t.id \
     JOIN thread USING (utid) WHERE s.name LIKE 'work %' ORDER BY ts";
const COUNTERS: &str = "SELECT ts, value, count(*) AS n FROM counter GROUP BY ts, value ORDER BY ts, value";
const MARKED_COUNTERS: &str = "SELECT ts, value, count(*) AS n FROM counter c JOIN track t ON c.track_id = t.id \
     WHERE t.name LIKE 'iter%' GROUP BY ts, value ORDER BY ts, value";
const FLOWS: &str = "SELECT a.ts AS t1, a.name AS n1, b.ts AS t2, b.name AS n2 FROM flow f \
     JOIN slice a ON f.slice_out = a.id JOIN slice b ON f.slice_in = b.id ORDER BY 1, 3, 2, 4";
/// An archive's idle threads have numbers of their own.
const SCHED: &str = "SELECT ts, dur, cpu, iif(tid >= 0x7fff0000, 0, tid) AS tid, priority \
     FROM sched JOIN thread USING (utid) ORDER BY ts, cpu";
const ERRORS: &str = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0 \
     AND name <> 'mismatched_sched_switch_tids'";

/// A file, what is asked, and how many rows of each the original has.
type Case = (&'static str, &'static [(&'static str, usize)]);

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

//= docs/import.md#events
//= docs/import.md#kernel-events
//= docs/import.md#markers
//= docs/import.md#track-events
#[test]
fn perfetto_sees_in_an_import_what_it_sees_in_the_original() {
    let test = "perfetto_sees_in_an_import_what_it_sees_in_the_original";
    let sandbox = Sandbox::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples");
    for (name, questions) in CASES {
        let original = samples.join(name);
        for converted in ["imported.fxt", "imported.pftrace"] {
            let output = sandbox.trace(["convert", original.to_str().unwrap(), converted]);
            assert!(output.status.success(), "{output:?}");
            let converted = sandbox.file(converted);
            for &(sql, rows) in questions {
                // Its reader of archives leaves out when a CPU is idle.
                if sql == SCHED && converted.extension().unwrap() == "fxt" {
                    continue;
                }
                let Some(expected) = query(test, &original, sql) else { return };
                assert_eq!(expected.len(), rows, "{name}: {sql}");
                let found = query(test, &converted, sql).unwrap();
                assert_eq!(found, expected, "{name} as {}: {sql}", converted.display());
            }
            assert_eq!(
                query(test, &converted, ERRORS),
                Some(Vec::new()),
                "{name} as {}",
                converted.display()
            );
        }
    }
}
