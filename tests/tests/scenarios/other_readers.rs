//! What Perfetto's trace processor sees in our files.

use serde_json::json;
use trace_format::loss::{LossCode, LossRecord};
use trace_format::sink::Sink;
use trace_format::units::{ProviderId, Ticks};
use trace_tests::catapult::count;
use trace_tests::perfetto::query;
use trace_tests::{Archive, Sandbox};

const ERRORS: &str = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";

#[test]
fn perfetto_loads_the_demo_without_an_error() {
    let test = "perfetto_loads_the_demo_without_an_error";
    let sandbox = Sandbox::new();
    sandbox.record(&["--output-file", "demo.fxt"], "demo", &[]);
    let trace = sandbox.file("demo.fxt");
    let Some(errors) = query(test, &trace, ERRORS) else { return };
    assert_eq!(errors, Vec::<serde_json::Value>::new());
    let archive = Archive::read(&trace);
    let slices = query(
        test,
        &trace,
        "SELECT name, count(*) AS n FROM slice WHERE name IN ('frame', 'raster tile', 'serve read') GROUP BY name \
         ORDER BY name",
    );
    let tiles = archive.events.iter().filter(|event| event.name() == "raster tile").count();
    assert_eq!(
        slices.unwrap(),
        [
            json!({"name": "frame", "n": 60}),
            json!({"name": "raster tile", "n": tiles}),
            json!({"name": "serve read", "n": tiles})
        ]
    );
    let flows = query(
        test,
        &trace,
        "SELECT a.name AS source, b.name AS target, count(*) AS n FROM flow f JOIN slice a ON f.slice_out = a.id \
         JOIN slice b ON f.slice_in = b.id GROUP BY 1, 2 ORDER BY 1, 2",
    );
    // Every arrow begins and ends in the slice that encloses its event.
    assert_eq!(
        flows.unwrap(),
        [
            json!({"source": "read texture", "target": "serve read", "n": 2 * tiles}),
            json!({"source": "render frame", "target": "present", "n": 60}),
            json!({"source": "schedule tile", "target": "raster tile", "n": tiles}),
            json!({"source": "submit", "target": "render frame", "n": 60}),
        ]
    );
}

#[test]
fn perfetto_counts_what_was_emitted() {
    let test = "perfetto_counts_what_was_emitted";
    let sandbox = Sandbox::new();
    sandbox.record(&["--categories", "emit"], "emit", &["4", "50"]);
    let trace = sandbox.file("trace.fxt");
    let Some(errors) = query(test, &trace, ERRORS) else { return };
    assert_eq!(errors, Vec::<serde_json::Value>::new());
    let counts = query(
        test,
        &trace,
        "SELECT (SELECT count(*) FROM slice WHERE name = 'scope' AND dur > 0) AS scopes, \
         (SELECT count(*) FROM slice WHERE name = 'instant' AND dur = 0) AS instants, \
         (SELECT count(*) FROM slice WHERE name = 'pair') AS pairs, \
         (SELECT count(*) FROM counter) AS samples, \
         (SELECT count(*) FROM process WHERE name = 'emit') AS processes, \
         (SELECT count(*) FROM thread WHERE name GLOB 'emit-?') AS threads",
    );
    let expected =
        json!({"scopes": 200, "instants": 200, "pairs": 200, "samples": 200, "processes": 1, "threads": 4});
    assert_eq!(counts.unwrap(), [expected]);
}

/// Everything in one table, since each question costs a start of the processor. Koids are text with `#` in
/// JSON, and nulls are not there; of blobs, pointers and large unsigned numbers the reader of archives sees
/// something else.
const EVERYTHING: &str = "SELECT 'slice' AS kind, name AS a, '' AS b, count(*) AS n, sum(dur) AS total FROM slice \
     WHERE category IS NOT 'trace' GROUP BY name \
     UNION ALL SELECT 'flow', a.name, b.name, count(*), 0 FROM flow f JOIN slice a ON f.slice_out = a.id \
     JOIN slice b ON f.slice_in = b.id GROUP BY 2, 3 \
     UNION ALL SELECT 'counter', '', '', count(*), sum(value) FROM counter \
     UNION ALL SELECT 'process', name, '', count(*), 0 FROM process WHERE pid > 0 AND name IS NOT NULL GROUP BY name \
     UNION ALL SELECT 'thread', name, '', count(*), 0 FROM thread WHERE tid > 0 AND name IS NOT NULL \
     AND NOT is_main_thread GROUP BY name \
     UNION ALL SELECT 'argument', iif(key LIKE 'debug.%' OR key LIKE 'args.%', substr(key, instr(key, '.') + 1), key) AS own, \
     ltrim(coalesce(string_value, int_value, real_value), '#'), count(*), 0 FROM slice JOIN args USING (arg_set_id) \
     WHERE category IS NOT 'trace' AND key NOT LIKE 'legacy_event.%' AND string_value IS NOT 'null' \
     AND own NOT IN ('blob', 'pointer', 'u64') GROUP BY 2, 3 \
     UNION ALL SELECT 'error', name, '', value, 0 FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0 \
     ORDER BY 1, 2, 3";

/// What the converters make is seen as the archive is, but for rounding in the reader, and for the manager's
/// marks, which only the archive has.
//= docs/catapult.md#chromes-dialect
//= docs/perfetto.md#clock
//= docs/perfetto.md#scheduling
//= docs/perfetto.md#what-other-importers-drop
#[test]
fn perfetto_sees_the_same_in_every_format() {
    let test = "perfetto_sees_the_same_in_every_format";
    let sandbox = Sandbox::new();
    sandbox.record(&["--output-file", "demo.fxt"], "demo", &[]);
    sandbox.record(&["--output-file", "emit.fxt"], "emit", &["3", "20"]);
    for (name, options, converted) in [
        ("demo", &["--format", "chrome", "--container", "array"][..], "demo-array.json"),
        ("demo", &["--format", "chrome"], "demo.json"),
        ("demo", &[], "demo.pftrace"),
        ("emit", &["--format", "chrome"], "emit.json"),
        ("emit", &[], "emit.pftrace"),
    ] {
        let archive = format!("{name}.fxt");
        let output = sandbox.trace([&["convert"], options, &[&archive, converted]].concat());
        assert!(output.status.success(), "{output:?}");
        let Some(expected) = query(test, &sandbox.file(&archive), EVERYTHING) else { return };
        let found = query(test, &sandbox.file(converted), EVERYTHING).unwrap();
        assert!(expected.len() > 10, "{archive}: {expected:?}");
        assert_eq!(found.len(), expected.len(), "{converted}: {found:?}");
        for (found, expected) in found.iter().zip(&expected) {
            for column in ["kind", "a", "b", "n"] {
                assert_eq!(found[column], expected[column], "{converted}: {found} {expected}");
            }
            // Each begin and end may be rounded another way.
            let number = |row: &serde_json::Value, column: &str| row[column].as_f64().unwrap();
            let difference = (number(found, "total") - number(expected, "total")).abs();
            assert!(difference <= 2.0 * number(expected, "n"), "{converted}: {found} {expected}");
        }
    }
}

/// Catapult's own viewer imports both dialects without a warning, and counts what the archive has.
//= docs/catapult.md#document
//= docs/catapult.md#chromes-dialect
#[test]
fn catapult_counts_the_same_and_warns_of_nothing() {
    let test = "catapult_counts_the_same_and_warns_of_nothing";
    let sandbox = Sandbox::new();
    sandbox.record(&["--output-file", "demo.fxt"], "demo", &[]);
    let by_name = |table: &str| {
        let sql = format!("SELECT name, count(*) AS n FROM {table} GROUP BY name");
        let output = sandbox.trace(["query", "--format", "json", &sql, "demo.fxt"]);
        assert!(output.status.success(), "{output:?}");
        let rows: Vec<serde_json::Value> = trace_tests::json(&output);
        let row = |row: &serde_json::Value| (row["name"].as_str().unwrap().to_owned(), row["n"].clone());
        rows.iter().map(row).collect::<serde_json::Map<_, _>>()
    };
    // An instant is a slice without length there, and a counter with an id has it in its name.
    let slices = by_name(
        "(SELECT name FROM slices WHERE async_id IS NULL UNION ALL SELECT name FROM instants WHERE scope = 'thread')",
    );
    let operations = by_name(
        "(SELECT name FROM slices WHERE async_id IS NOT NULL UNION ALL \
          SELECT name FROM instants WHERE async_id IS NOT NULL)",
    );
    let counters = by_name(
        "(SELECT name || iif(counter_id = 0, '', printf('[0x%x]', counter_id)) AS name FROM counters)",
    );
    assert!(slices.len() > 3 && !operations.is_empty() && !counters.is_empty(), "{slices:?}");
    let flows: u64 = by_name("(SELECT name FROM flows WHERE phase <> 'begin')")
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    for (options, converted) in [
        (&["--format", "catapult"][..], "demo.json"),
        (&["--format", "chrome", "--container", "array"], "array.json"),
        (&["--format", "chrome", "--container", "object"], "object.json"),
    ] {
        let output = sandbox.trace([&["convert"], options, &["demo.fxt", converted]].concat());
        assert!(output.status.success(), "{output:?}");
        let Some(found) = count(test, &sandbox.file(converted)) else { return };
        assert_eq!(found["error"], serde_json::Value::Null, "{converted}");
        assert_eq!(found["warnings"], serde_json::json!([]), "{converted}");
        assert_eq!(found["slices"].as_object(), Some(&slices), "{converted}");
        assert_eq!(found["operations"].as_object(), Some(&operations), "{converted}");
        assert_eq!(found["counters"].as_object(), Some(&counters), "{converted}");
        assert_eq!(found["flows"], flows, "{converted}");
    }
}

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

/// Two losses that overlap, and one at a moment, as both readers see them.
//= docs/perfetto.md#losses
//= docs/catapult.md#losses
#[test]
fn other_readers_see_losses() {
    let test = "other_readers_see_losses";
    let sandbox = Sandbox::new();
    sandbox.record(&["-o", "whole.fxt"], "emit", &["1", "3"]);
    let bytes = std::fs::read(sandbox.file("whole.fxt")).unwrap();
    let archive = Archive::of_bytes(&bytes);
    let own = archive.events.iter().find(|event| event.name() == "instant").expect("an event");
    let (provider, at) = (own.provider.0, own.event.timestamp.0);
    let mut lossy = Bytes(bytes);
    // A section of the provider's, as the manager writes them.
    lossy.word(1 << 4 | 2 << 16 | u64::from(provider) << 20);
    for (reason, count, first, last) in
        [(0, 1000, at, at + 5000), (6, 7, at + 1000, at + 9000), (7, 3, at, at)]
    {
        let (reason, provider) = (LossCode(reason), ProviderId(provider));
        let loss = LossRecord { provider, reason, count, first: Ticks(first), last: Ticks(last) };
        LossRecord::blob(&loss.to_bytes()).encode(&mut lossy).unwrap();
    }
    std::fs::write(sandbox.file("lossy.fxt"), &lossy.0).unwrap();
    let sql = "SELECT s.name, dur > 0 AS is_slice, p.name AS process, \
               max(iif(key GLOB '*.reason', string_value, NULL)) AS reason, \
               max(iif(key GLOB '*.count', int_value, NULL)) AS count \
               FROM slice s JOIN process_track t ON s.track_id = t.id JOIN process p USING (upid) \
               JOIN args USING (arg_set_id) WHERE s.category = 'trace:loss' GROUP BY s.id ORDER BY 2, 5, 4";
    let row = |is_slice: u64, reason: &str, count: u64| json!({"name": "lost", "is_slice": is_slice, "process": "emit", "reason": reason, "count": count});
    let expected = [
        row(0, "cleared", 3),
        row(0, "nested too deep", 7),
        row(0, "buffer full", 1000),
        row(1, "nested too deep", 7),
        row(1, "buffer full", 1000),
    ];
    for (converted, moments) in [("lossy.pftrace", 1), ("lossy.json", 2)] {
        let output = sandbox.trace(["convert", "lossy.fxt", converted]);
        assert!(output.status.success(), "{output:?}");
        let Some(found) = query(test, &sandbox.file(converted), sql) else { return };
        // In JSON an interval without length is an operation, too.
        let again = vec![expected[0].clone(); moments - 1];
        assert_eq!(found, [&again[..], &expected[..]].concat(), "{converted}");
        let errors = query(test, &sandbox.file(converted), ERRORS).unwrap();
        assert_eq!(errors, Vec::<serde_json::Value>::new(), "{converted}");
    }
    let Some(found) = count(test, &sandbox.file("lossy.json")) else { return };
    assert_eq!(found["error"], json!(null));
    // It warns of what the program wrote, at both ends of operations and flows.
    let of_program = "provided values for argument round. The last provided value will be used.";
    let warnings = found["warnings"].as_array().unwrap();
    assert!(warnings.iter().all(|text| text.as_str().unwrap().ends_with(of_program)), "{warnings:?}");
    assert_eq!(
        (&found["slices"]["lost"], &found["operations"]["lost"]),
        (&json!(null), &json!(3)),
        "{found}"
    );
}
