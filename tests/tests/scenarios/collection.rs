//! Our reading of traces compared with that of Perfetto's trace processor, row by row, over a directory of
//! your own.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace_tests::perfetto::{Rows, query};
use trace_tests::{Requirement, Sandbox};

/// The environment variable that names the directory.
const COLLECTION: &str = "TRACE_TEST_COLLECTION";
/// Rows that are shown of a file, of either side.
const SHOWN: usize = 5;

/// The rows that Perfetto's processor sees, in the words of the tables of `trace query`. Slices on tracks
/// that are no thread's have no thread here, but an instant of a process that flows go through is on its main
/// thread. System calls are not distinguished, for a trace does not have their names.
const THEIRS: &str = "\
    SELECT 'slice' AS kind, s.ts AS ts, s.dur AS n, \
      CASE WHEN t.type = 'cpu_irq' THEN 'irq' WHEN t.type = 'cpu_softirq' THEN 'softirq' \
           WHEN s.name GLOB 'sys_*' THEN 'sys' ELSE coalesce(s.name, '') END AS name, \
      coalesce(tp.pid, pp.pid, 0) AS pid, \
      CASE WHEN t.type IN ('thread_execution', 'thread_track_event') THEN th.tid \
           WHEN pp.pid IS NOT NULL AND s.dur = 0 AND s.id IN (SELECT slice_out FROM flow UNION SELECT slice_in FROM flow) \
           THEN pp.pid ELSE 0 END AS tid \
    FROM slice s JOIN track t ON s.track_id = t.id \
      LEFT JOIN thread_track tt ON s.track_id = tt.id LEFT JOIN thread th USING (utid) \
      LEFT JOIN process tp ON th.upid = tp.upid \
      LEFT JOIN process_track pt ON s.track_id = pt.id LEFT JOIN process pp ON pt.upid = pp.upid \
    UNION ALL SELECT 'counter', c.ts, iif(t.name = 'cpuidle' AND c.value = 4294967295, -1, c.value), \
      CASE t.name WHEN 'cpufreq' THEN 'cpu_frequency' WHEN 'cpuidle' THEN 'cpu_idle' ELSE t.name END, 0, 0 \
    FROM counter c JOIN track t ON c.track_id = t.id \
    WHERE t.type GLOB '*counter_track_event' \
      OR t.type IN ('atrace_counter', 'cpu_frequency', 'cpu_idle', 'thread_time', 'thread_instructions') \
    UNION ALL SELECT 'sched', ts, dur, cpu || ' ' || priority, 0, tid FROM sched JOIN thread USING (utid) WHERE tid <> 0";

/// What we see. Numbers from 0x7fff0000 on are CPUs; process 0 is that of threads whose process is not known.
const OURS: &str = "\
    SELECT 'slice' AS kind, ts, coalesce(dur, -1) AS n, iif(name GLOB 'sys_*', 'sys', coalesce(name, '')) AS name, \
      pid, iif(async_id IS NULL AND tid < 0x7fff0000, tid, 0) AS tid FROM slices \
    UNION ALL SELECT 'slice', ts, 0, coalesce(name, ''), pid, iif(async_id IS NULL AND scope = 'thread', tid, 0) \
      FROM instants WHERE coalesce(category, '') NOT IN ('kernel:meta', 'kernel:probe', 'kernel:tp') \
    UNION ALL SELECT 'counter', ts, value, name, 0, 0 FROM counters \
    UNION ALL SELECT 'sched', ts, coalesce(dur, -1), cpu || ' ' || prio, 0, tid FROM sched";

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// How often each row is there.
fn counted(rows: &Rows) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for row in rows {
        let text = |column: &str| match &row[column] {
            Value::String(text) => text.clone(),
            // A whole number is one in either answer, whatever its type is there.
            Value::Number(number) => number.as_f64().unwrap().to_string(),
            other => other.to_string(),
        };
        let row = ["kind", "ts", "n", "name", "pid", "tid"].map(text).join(" ");
        *counts.entry(row).or_default() += 1;
    }
    counts
}

/// The rows of one answer that the other does not have.
fn missing(of: &BTreeMap<String, i64>, other: &BTreeMap<String, i64>) -> Vec<String> {
    let more = |row: &String, count: i64| count - other.get(row).copied().unwrap_or(0);
    of.iter().filter(|(row, count)| more(row, **count) > 0).map(|(row, _)| row.clone()).collect()
}

#[test]
fn perfetto_reads_a_collection_as_we_do() {
    let test = "perfetto_reads_a_collection_as_we_do";
    if !Requirement::Collection.is_met(test) {
        return;
    }
    let directory = std::env::var_os(COLLECTION).expect("it was tried");
    let sandbox = Sandbox::new();
    let mut differing = Vec::new();
    let mut compared = 0;
    for path in files(Path::new(&directory)) {
        let output = sandbox.trace(["query", "--format", "json", OURS, path.to_str().unwrap()]);
        if !output.status.success() {
            println!("{}: {}", path.display(), String::from_utf8_lossy(&output.stderr).trim());
            continue;
        }
        let ours = counted(&trace_tests::json(&output));
        let Some(theirs) = query(test, &path, THEIRS) else { return };
        let theirs = counted(&theirs);
        let (only_theirs, only_ours) = (missing(&theirs, &ours), missing(&ours, &theirs));
        compared += 1;
        let rows: i64 = theirs.values().sum();
        println!(
            "{}: {rows} rows, {} only Perfetto's, {} only ours",
            path.display(),
            only_theirs.len(),
            only_ours.len()
        );
        for (whose, rows) in [("Perfetto", &only_theirs), ("ours", &only_ours)] {
            rows.iter().take(SHOWN).for_each(|row| println!("  {whose}: {row}"));
        }
        if !only_theirs.is_empty() || !only_ours.is_empty() {
            differing.push(path);
        }
    }
    assert!(compared > 0, "no trace in {}", Path::new(&directory).display());
    assert_eq!(differing, Vec::<PathBuf>::new(), "of {compared} traces; --nocapture shows the rows");
}
