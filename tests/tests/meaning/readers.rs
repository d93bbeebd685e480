//! What readers of other software see in converted files.

use super::commands::{number, text};
use super::doors::{
    FIRST_LANE, FIRST_REPLACED, Format, LAST_LANE, Peer, REPLACED, arrow_row, counter_row, log_row, name_row,
    parent_row, slice_row,
};
use super::model::Meaning;
use super::rows::{Answer, Class};
use serde_json::Value;
use std::path::PathBuf;
use trace_tests::perfetto::{Version, query_all_in};

/// A converted file.
pub struct Converted<'a> {
    pub path: PathBuf,
    /// Of the trace that it was converted from.
    pub meaning: &'a Meaning,
}

/// What a reader sees in each file; None, and reported as skipped, where it does not run.
pub fn read(test: &str, peer: Peer, files: &[Converted<'_>]) -> Option<Vec<Answer>> {
    match peer {
        Peer::Perfetto(version) => perfetto(test, version, files),
        Peer::Viewer => viewer(test, files),
        Peer::Page => page(test, files),
    }
}

/// All rows in one table, since each question takes as long as reading a small trace. A log record is an
/// entry of Android's log or a slice with an argument `message`.
const ALL: &str = "\
    WITH all_slices AS (SELECT s.*, tt.utid AS utid, \
      EXISTS (SELECT 1 FROM args a WHERE a.arg_set_id = s.arg_set_id AND a.key GLOB '*.message') AS is_log \
      FROM slice s LEFT JOIN thread_track tt ON s.track_id = tt.id) \
    SELECT 'slice' AS kind, p.pid AS pid, th.tid AS tid, s.category AS category, s.name AS name, s.ts AS ts, \
      s.dur AS dur, s.parent_id AS parent, o.name AS other, NULL AS value, th.name AS thread \
      FROM all_slices s JOIN thread th USING (utid) LEFT JOIN process p USING (upid) \
      LEFT JOIN slice o ON s.parent_id = o.id WHERE NOT s.is_log \
    UNION ALL SELECT 'operation', p.pid, NULL, s.category, s.name, s.ts, s.dur, NULL, NULL, NULL, NULL \
      FROM all_slices s LEFT JOIN process_track pt ON s.track_id = pt.id LEFT JOIN process p USING (upid) \
      WHERE s.utid IS NULL AND NOT s.is_log \
    UNION ALL SELECT 'log', p.pid, th.tid, NULL, a.string_value, s.ts, NULL, NULL, NULL, NULL, NULL \
      FROM all_slices s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key GLOB '*.message' \
      LEFT JOIN thread th ON s.utid = th.utid LEFT JOIN process p USING (upid) WHERE s.is_log \
    UNION ALL SELECT 'log', p.pid, th.tid, NULL, l.msg, l.ts, NULL, NULL, NULL, NULL, NULL \
      FROM android_logs l LEFT JOIN thread th USING (utid) LEFT JOIN process p USING (upid) \
    UNION ALL SELECT 'counter', p.pid, NULL, NULL, t.name, c.ts, NULL, NULL, NULL, c.value, NULL \
      FROM counter c JOIN process_counter_track t ON c.track_id = t.id LEFT JOIN process p USING (upid) \
    UNION ALL SELECT 'arrow', NULL, NULL, NULL, a.name, a.ts, b.ts, NULL, b.name, NULL, NULL \
      FROM flow f JOIN slice a ON f.slice_out = a.id JOIN slice b ON f.slice_in = b.id \
    UNION ALL SELECT 'error', NULL, NULL, NULL, name, value, NULL, NULL, NULL, NULL, NULL \
      FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";

fn perfetto(test: &str, version: Version, files: &[Converted<'_>]) -> Option<Vec<Answer>> {
    let questions: Vec<_> = files.iter().map(|file| (file.path.clone(), ALL.to_owned())).collect();
    let tables = query_all_in(version, test, &questions)?;
    let answers = tables.iter().zip(files).map(|(rows, file)| {
        let mut answer = Answer::new();
        let mut add = |class: Class, row: String| answer.entry(class).or_default().add(row);
        let instants = file.meaning.instants();
        let has_unmatched_ends = ["unmatched-end", "unmatched-async-end"]
            .iter()
            .any(|kind| file.meaning.problems.contains_key(kind));
        for row in rows {
            let (category, at) = (text(row, "category"), number(row, "ts"));
            // How the processor shows an event of Chrome's without a name.
            let name = Some(text(row, "name")).filter(|name| *name != "[No name]").unwrap_or("");
            // -1 is that of a slice that has not ended.
            let length = row["dur"].as_u64();
            match text(row, "kind") {
                "slice" => {
                    let track = track(&row["pid"], &row["tid"]);
                    let slice = slice_row(track, category, name, at, length);
                    let parent = (!row["parent"].is_null()).then(|| text(row, "other"));
                    if !instants.contains(name) {
                        add(Class::Parents, parent_row(&slice, parent));
                    }
                    add(Class::Slices, slice);
                    let thread = row["thread"].as_str();
                    thread.into_iter().for_each(|thread| add(Class::Names, name_row(thread, name)));
                }
                "operation" => add(Class::Operations, slice_row(&row["pid"], category, name, at, length)),
                "log" => add(Class::Logs, log_row(track(&row["pid"], &row["tid"]), name, at)),
                "counter" => {
                    let value = row["value"].as_f64().unwrap_or(f64::NAN);
                    add(Class::Counters, counter_row(&row["pid"], name, at, value));
                }
                // The processor counts ends without a begin, and parts of flows outside of slices, too.
                "error" if name == "misplaced_end_event" && has_unmatched_ends => {}
                "error" if name.starts_with("flow_") && file.meaning.arrows.is_none() => {}
                "error" => add(Class::Problems, format!("{name} {at}")),
                _ => {
                    let to = (text(row, "other").to_owned(), number(row, "dur"));
                    let peer = Peer::Perfetto(version);
                    add(Class::Arrows, arrow_row(peer, (name.to_owned(), at), to));
                }
            }
        }
        answer
    });
    Some(answers.collect())
}

fn page(test: &str, files: &[Converted<'_>]) -> Option<Vec<Answer>> {
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    let answers = trace_tests::report::rows(test, &paths)?.into_iter().map(|found| {
        let mut answer = Answer::new();
        let mut add = |class: Class, row: String| answer.entry(class).or_default().add(row);
        let rows = |table: &str| found[table].as_array().into_iter().flatten();
        let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let whole = |value: &Value| word(value).parse().unwrap_or(u64::MAX);
        for row in rows("slices") {
            let track = format!("{}/{}", word(&row[0]), word(&row[1]));
            let slice = slice_row(track, &word(&row[2]), &word(&row[3]), whole(&row[4]), row[5].as_u64());
            add(Class::Parents, parent_row(&slice, row[6].as_str()));
            add(Class::Slices, slice);
        }
        for row in rows("operations") {
            let (process, category) = (word(&row[0]), word(&row[1]));
            let row = slice_row(process, &category, &word(&row[2]), whole(&row[3]), row[4].as_u64());
            add(Class::Operations, row);
        }
        for row in rows("instants") {
            let track = format!("{}/{}", word(&row[0]), word(&row[1]));
            add(Class::Instants, slice_row(track, &word(&row[2]), &word(&row[3]), whole(&row[4]), Some(0)));
        }
        for row in rows("counters") {
            let [process, category, name, id, series] = [0, 1, 2, 3, 4].map(|place| word(&row[place]));
            let name = format!("{category}:{name}#{id}.{series}");
            let value = row[6].as_f64().unwrap_or(f64::NAN);
            add(Class::Counters, counter_row(process, &name, whole(&row[5]), value));
        }
        answer
    });
    Some(answers.collect())
}

fn track(process: &Value, thread: &Value) -> String {
    match thread.as_u64() {
        Some(FIRST_LANE..=LAST_LANE) => format!("{process}/lane"),
        Some(FIRST_REPLACED..FIRST_LANE) => format!("{process}/{REPLACED}"),
        Some(thread) => format!("{process}/{thread}"),
        None => "global".to_owned(),
    }
}

fn viewer(test: &str, files: &[Converted<'_>]) -> Option<Vec<Answer>> {
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    let found = trace_tests::catapult::rows(test, &paths)?;
    let answers = found.iter().zip(files).map(|(found, file)| {
        let mut answer = Answer::new();
        let mut add = |class: Class, row: String| answer.entry(class).or_default().add(row);
        let instants = file.meaning.instants();
        let rows = |table: &str| found[table].as_array().into_iter().flatten();
        let word = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let whole = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
        if let Some(error) = found["error"].as_str() {
            add(Class::Slices, format!("the viewer fails: {error}"));
        }
        for row in rows("slices") {
            let (category, name) = (word(&row[2]), word(&row[3]));
            let track = track(&row[0], &row[1]);
            let slice = slice_row(track, &category, &name, whole(&row[4]), row[5].as_u64());
            if !instants.contains(&*name) {
                add(Class::Parents, parent_row(&slice, row[6].as_str()));
            }
            add(Class::Slices, slice);
            row[7].as_str().into_iter().for_each(|thread| add(Class::Names, name_row(thread, &name)));
        }
        for row in rows("operations") {
            let (category, name) = (word(&row[1]), word(&row[2]));
            let row = slice_row(&row[0], &category, &name, whole(&row[3]), row[4].as_u64());
            add(Class::Operations, row);
        }
        for row in rows("counters") {
            let name = format!("{}.{}", word(&row[1]), word(&row[2]));
            let value = row[4].as_f64().unwrap_or(f64::NAN);
            add(Class::Counters, counter_row(&row[0], &name, whole(&row[3]), value));
        }
        for row in rows("flows") {
            let (from, to) = (word(&row[0]), word(&row[2]));
            add(Class::Arrows, arrow_row(Peer::Viewer, (from, whole(&row[1])), (to, whole(&row[3]))));
        }
        answer
    });
    Some(answers.collect())
}

/// The formats that a reader is given, and the names of the files.
pub fn converted_name(name: &str, format: Format) -> String {
    match format {
        Format::Perfetto => format!("{name}.converted.pftrace"),
        Format::Chrome => format!("{name}.chrome.json"),
        Format::Catapult => format!("{name}.catapult.json"),
        Format::Page => format!("{name}.page.html"),
    }
}
