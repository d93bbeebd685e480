//! What Perfetto's trace processor sees in our files.

use serde_json::json;
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

/// What the converter for Chrome makes is seen as the archive is, but for a nanosecond of rounding in the reader.
//= docs/catapult.md#chromes-dialect
#[test]
fn perfetto_sees_the_same_in_chromes_dialect() {
    let test = "perfetto_sees_the_same_in_chromes_dialect";
    let sandbox = Sandbox::new();
    sandbox.record(&["--output-file", "demo.fxt"], "demo", &[]);
    sandbox.record(&["--output-file", "emit.fxt"], "emit", &["3", "20"]);
    for name in ["demo", "emit"] {
        for container in ["array", "object"] {
            let (archive, json) = (format!("{name}.fxt"), format!("{name}-{container}.json"));
            let arguments = ["convert", "--to", "chrome", "--container", container, &archive, &json];
            assert!(sandbox.trace(arguments).status.success());
            let ask = |file: &str, sql: &str| query(test, &sandbox.file(file), sql);
            let Some(errors) = ask(&json, ERRORS) else { return };
            assert_eq!(errors, Vec::<serde_json::Value>::new(), "{json}");
            for sql in [
                "SELECT name, count(*) AS n, round(sum(dur) / 1000.0, -1) AS micros FROM slice GROUP BY name ORDER BY name",
                "SELECT a.name AS source, b.name AS target, count(*) AS n FROM flow f JOIN slice a ON f.slice_out = a.id \
                 JOIN slice b ON f.slice_in = b.id GROUP BY 1, 2 ORDER BY 1, 2",
                "SELECT count(*) AS samples, sum(value) AS total FROM counter",
                "SELECT name, count(*) AS n FROM process WHERE pid > 0 GROUP BY name ORDER BY name",
                "SELECT name, count(*) AS n FROM thread WHERE tid > 0 GROUP BY name ORDER BY name",
            ] {
                assert_eq!(ask(&json, sql), ask(&archive, sql), "{json}: {sql}");
            }
        }
    }
}
