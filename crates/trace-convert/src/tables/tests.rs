//! Rows of small archives.

use super::*;
use crate::Filter;
use crate::import::json;
use std::fmt::Write as _;
use trace_reader::Disorder;

/// Rows as text, by table.
#[derive(Default)]
struct Lines(String);

impl Rows for Lines {
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        assert_eq!(cells.len(), kind.table().columns.len(), "{}", kind.table().name);
        for ((_, of), cell) in kind.table().columns.iter().zip(cells) {
            let is_of_type = match cell {
                Cell::Null => true,
                Cell::Integer(_) => *of == Type::Integer,
                Cell::Unsigned(_) => *of == Type::Unsigned,
                Cell::Double(_) => *of == Type::Double,
                Cell::Text(_) => *of == Type::Text,
            };
            assert!(is_of_type, "{cell:?} in {}", kind.table().name);
        }
        let texts: Vec<String> = cells
            .iter()
            .map(|cell| match cell {
                Cell::Null => "-".to_owned(),
                Cell::Integer(value) => value.to_string(),
                Cell::Unsigned(value) => value.to_string(),
                Cell::Double(value) => format!("{value:?}"),
                Cell::Text(text) => format!("{text:?}"),
            })
            .collect();
        writeln!(self.0, "{}: {}", kind.table().name, texts.join(" ")).unwrap();
        Ok(())
    }
}

/// An archive of JSON.
pub(super) fn archive(text: &str) -> Vec<u8> {
    let mut archive = Vec::new();
    json::import(text.as_bytes(), &mut archive).unwrap();
    archive
}

/// A trace that is read from memory.
pub(super) fn trace(archive: Vec<u8>) -> Trace {
    let bytes = Some(archive.len() as u64);
    let open = move || Ok(Box::new(io::Cursor::new(archive.clone())) as Box<dyn io::Read>);
    Trace { name: "a.fxt".to_owned(), open: Box::new(open), disorder: None, bytes }
}

pub(super) const TRACE: &str = r##"{"traceEvents":[
    {"ph":"M","pid":1,"name":"process_name","args":{"name":"app"}},
    {"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"main"}},
    {"ph":"B","ts":1,"pid":1,"tid":2,"cat":"c","name":"outer","args":{"a":1}},
    {"ph":"X","ts":2,"dur":0.5,"pid":1,"tid":2,"cat":"c","name":"inner","args":{"t":"\"é\"","d":0.5}},
    {"ph":"i","ts":3,"pid":1,"tid":2,"cat":"c","name":"now","s":"p"},
    {"ph":"C","ts":3,"pid":1,"tid":2,"cat":"c","name":"count","id":7,"args":{"n":3,"x":1.5,"t":"text"}},
    {"ph":"b","ts":3,"pid":1,"tid":2,"cat":"c","name":"job","id":"0xffffffffffffffff"},
    {"ph":"n","ts":4,"pid":1,"tid":2,"cat":"c","name":"point","id":"0xffffffffffffffff"},
    {"ph":"b","ts":5,"pid":1,"tid":2,"cat":"c","name":"part","id":"0xffffffffffffffff"},
    {"ph":"s","ts":5,"pid":1,"tid":2,"cat":"c","name":"go","id":"9"},
    {"ph":"e","ts":6,"pid":1,"tid":3,"cat":"c","name":"job","id":"0xffffffffffffffff"},
    {"ph":"E","ts":7,"pid":1,"tid":2,"args":{"b":2}},
    {"ph":"E","ts":8,"pid":1,"tid":2},
    {"ph":"f","bp":"e","ts":8,"pid":9,"tid":9,"cat":"c","name":"go","id":"9"},
    {"ph":"B","ts":9,"pid":9,"tid":9,"cat":"c","name":"open"}
  ],"systemTraceEvents":{"type":"fuchsia","events":[
    {"ph":"w","ts":1,"cpu":3,"tid":2,"prio":16},
    {"ph":"k","ts":2,"cpu":3,"out":{"tid":50,"state":3,"prio":-2147483648},"in":{"tid":2,"prio":16}},
    {"ph":"k","ts":4,"cpu":3,"out":{"tid":2,"state":3,"prio":16},"in":{"tid":50,"prio":-2147483648}},
    {"ph":"k","ts":5,"cpu":3,"out":{"tid":50,"state":3,"prio":-2147483648},"in":{"tid":2,"prio":16}},
    {"ph":"k","ts":6,"cpu":3,"out":{"tid":4,"state":1,"prio":16},"in":{"tid":6,"prio":16}}
  ]}}"##;

//= docs/tables.md#tables
//= docs/tables.md#scheduling
#[test]
fn every_kind_of_event_has_its_row() {
    let mut lines = Lines::default();
    let summary = fill(&archive(TRACE)[..], &Disorder::default(), &mut lines, Filter::default()).unwrap();
    insta::assert_snapshot!(lines.0, @r#"
    slices: 2000 500 1 2 "app" "main" "c" "inner" - "{\"t\":\"\\\"é\\\"\",\"d\":0.5}" 1 - - - 1 1 - "slice" - - -
    instants: 3000 1 2 "app" "main" "c" "now" "process" - - -
    counters: 3000 1 2 "app" "main" "c" "count" 7 "n" 3.0 3 -
    counters: 3000 1 2 "app" "main" "c" "count" 7 "x" 1.5 - -
    instants: 4000 1 2 "app" "main" "c" "point" - 18446744073709551615 - -
    flows: 5000 1 2 "app" "main" "c" "go" 9 "begin" - -
    slices: 3000 3000 1 2 "app" "main" "c" "job" 18446744073709551615 - 2 - - - 1 1 - "operation" 18446744073709551615 - -
    slices: 1000 6000 1 2 "app" "main" "c" "outer" - "{\"a\":1,\"b\":2}" 3 - - - 1 1 - "slice" - - -
    flows: 8000 9 9 - - "c" "go" 9 "end" - -
    wakeups: 1000 3 1 2 "app" "main" 16 - -
    sched: 2000 2000 3 1 2 "app" "main" 16 "blocked" -
    sched: 5000 1000 3 1 2 "app" "main" 16 - -
    slices: 5000 - 1 2 "app" "main" "c" "part" 18446744073709551615 - 4 - - - 1 1 - "operation" 18446744073709551615 - -
    slices: 9000 - 9 9 - - "c" "open" - - 5 - - - 3 1 - "slice" - - -
    sched: 6000 - 3 0 6 - - 16 - -
    threads: 0 6 - - 4
    threads: 1 2 "app" "main" 1
    threads: 1 3 "app" - 2
    threads: 9 9 - - 3
    traces: - - - - - - - - - - - - - - - - 0 - - - -
    programs: 1 "json" - - 0 - - - - - -
    "#);
    assert_eq!(summary.events, 13);
    assert_eq!(
        summary.skipped,
        [("counter arguments that are no numbers".to_owned(), 1), ("ends without a beginning".to_owned(), 1),]
    );
}

const DISORDER: &str = r#"[
    {"ph":"B","ts":2,"pid":1,"tid":2,"cat":"c","name":"inner"},
    {"ph":"E","ts":3,"pid":1,"tid":2},
    {"ph":"E","ts":4,"pid":1,"tid":2,"args":{"b":2}},
    {"ph":"B","ts":1,"pid":1,"tid":2,"cat":"c","name":"outer","args":{"a":1}},
    {"ph":"B","ts":3,"pid":1,"tid":2,"cat":"c","name":"next"},
    {"ph":"E","ts":3.5,"pid":1,"tid":2},
    {"ph":"B","ts":1,"pid":1,"tid":3,"cat":"c","name":"other"},
    {"ph":"E","ts":9,"pid":1,"tid":3},
    {"ph":"e","ts":8,"pid":1,"tid":3,"cat":"c","name":"job","id":"1"},
    {"ph":"b","ts":5,"pid":1,"tid":2,"cat":"c","name":"job","id":"1"},
    {"ph":"b","ts":5,"pid":1,"tid":2,"cat":"c","name":"away","id":"2"},
    {"ph":"e","ts":6,"pid":7,"tid":7,"cat":"c","name":"away","id":"2"},
    {"ph":"M","pid":1,"name":"process_name","args":{"name":"app"}}
  ]"#;

//= docs/tables.md#tables
#[test]
fn begins_and_ends_are_paired_in_the_order_of_time() {
    let archive = archive(DISORDER);
    let disorder = Disorder::find(&archive[..]).unwrap();
    let mut lines = Lines::default();
    let summary = fill(&archive[..], &disorder, &mut lines, Filter::default()).unwrap();
    insta::assert_snapshot!(lines.0, @r#"
    slices: 1000 8000 1 3 - - "c" "other" - - 1 - - - 2 1 - "slice" - - -
    slices: 5000 1000 1 2 - - "c" "away" 2 - 2 - - - 1 1 - "operation" 2 - -
    slices: 2000 1000 1 2 "app" - "c" "inner" - - 3 - - - 1 1 - "slice" - - -
    slices: 3000 500 1 2 "app" - "c" "next" - - 4 - - - 1 1 - "slice" - - -
    slices: 1000 3000 1 2 "app" - "c" "outer" - "{\"a\":1,\"b\":2}" 5 - - - 1 1 - "slice" - - -
    slices: 5000 3000 1 2 "app" - "c" "job" 1 - 6 - - - 1 1 - "operation" 1 - -
    threads: 1 2 "app" - 1
    threads: 1 3 "app" - 2
    threads: 7 7 - - 3
    traces: - - - - - - - - - - - - - - - - 0 - - - -
    programs: 1 "json" - - 0 - - - - - -
    "#);
    assert_eq!(summary.skipped, []);
    let crossing = "asynchronous operations with their end in another process";
    assert_eq!(summary.remarks, [(crossing.to_owned(), 1)]);
}

//= docs/tables.md#profiles
#[test]
fn samples_have_stacks_of_functions() {
    let mut lines = Lines::default();
    let archive = crate::export::folded::testing::trace();
    let summary = fill(&archive[..], &Disorder::default(), &mut lines, Filter::default()).unwrap();
    insta::assert_snapshot!(lines.0, @r#"
    stacks: 1 0 4112 "main" -
    samples: 5 7 8 - - 1 "main" -
    stacks: 2 0 4112 "main" -
    stacks: 2 1 8207 "a;b\nc" -
    stacks: 2 2 9223372036854775808 "vfs_read" -
    samples: 6 7 8 - - 2 "vfs_read" -
    samples: 7 7 8 - - 2 "vfs_read" -
    threads: 7 8 - - 1
    traces: - - - - - - - - - - - - - - - - 0 - - - -
    "#);
    assert_eq!((summary.events, summary.skipped), (3, Vec::new()));
}

//= docs/tables.md#blobs
#[test]
fn blobs_have_their_content() {
    let mut lines = Lines::default();
    for name in ["blob-data", "blob-perfetto", "blob-types", "large-attachment", "large-event"] {
        let path = format!("{}/../../tests/data/corpus/{name}.fxt", env!("CARGO_MANIFEST_DIR"));
        let archive = std::fs::read(path).unwrap();
        fill(&archive[..], &Disorder::default(), &mut lines, Filter::default()).unwrap();
    }
    let blobs: Vec<&str> = lines.0.lines().filter(|line| line.starts_with("blobs: ")).collect();
    insta::assert_snapshot!(blobs.join("\n"), @r#"
    blobs: - - - - - 1 - "name" "data" 37 "VGhpcyBpcyBzb21lIGRhdGEgdGhhdCB3ZSBhcmUgd3JpdGluZw==" -
    blobs: - - - - - 1 - "pf" "perfetto" 4 "CgIIAQ==" -
    blobs: - - - - - 1 - "" "data" 0 "" -
    blobs: - - - - - 1 - "name" "last branch" 0 "" -
    blobs: - - - - - 1 - "name" - 0 "" -
    blobs: - - - - - 1 "cat" "name" "large" 34 "U29tZSBkYXRhIHRvIHdyaXRlIGludG8gdGhlIGJ1ZmZlcg==" -
    blobs: 11801712258815 1234 5678 - - 1 "cat" "name" "large" 34 "U29tZSBkYXRhIHRvIHdyaXRlIGludG8gdGhlIGJ1ZmZlcg==" -
    "#);
}

//= docs/tables.md#csv
/// An argument of begin and end has the value of the end, as in Catapult.
//= docs/tables.md#tables
#[test]
fn an_argument_of_begin_and_end_is_there_once() {
    let slices = csv_of(
        r#"[{"ph":"B","ts":1,"pid":1,"tid":2,"name":"n","args":{"a":1,"b":2}},
            {"ph":"E","ts":2,"pid":1,"tid":2,"name":"n","args":{"c":3,"a":4}}]"#,
    )
    .remove(0);
    let slices = String::from_utf8(slices).unwrap();
    assert!(slices.contains(r#","{""b"":2,""c"":3,""a"":4}",1,"#), "{slices}");
}

#[test]
fn csv_quotes_what_needs_it() {
    let mut bytes = csv_of(TRACE);
    let slices = String::from_utf8(bytes.remove(0)).unwrap();
    insta::assert_snapshot!(slices, @r#"
    ts,dur,pid,tid,process,thread,category,name,async_id,args,id,parent_id,depth,self_dur,thread_id,program_id,ts_utc,kind,operation_id,parent_operation_id,end_reason
    2000,500,1,2,app,main,c,inner,,"{""t"":""\""é\"""",""d"":0.5}",1,3,1,500,1,1,,slice,,,
    3000,3000,1,2,app,main,c,job,18446744073709551615,,2,,,,1,1,,operation,18446744073709551615,,
    1000,6000,1,2,app,main,c,outer,,"{""a"":1,""b"":2}",3,,0,5500,1,1,,slice,,,
    5000,,1,2,app,main,c,part,18446744073709551615,,4,,,,1,1,,operation,18446744073709551615,,
    9000,,9,9,,,c,open,,,5,,0,,3,1,,slice,,,
    "#);
}

fn csv_of(text: &str) -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let mut csv = Csv::new(CsvTexts::Unchanged, |name| std::fs::File::create(path(name))).unwrap();
    fill_whole(trace(archive(text)), &mut csv, &Filter::default()).unwrap();
    csv.finish().unwrap();
    TABLES.map(|table| std::fs::read(path(table.name)).unwrap()).to_vec()
}

mod meaning;

#[cfg(feature = "sqlite")]
mod questions;
#[cfg(feature = "sqlite")]
mod views;
#[cfg(feature = "sqlite")]
pub(super) use questions::random_trace;

#[cfg(feature = "parquet")]
mod files;
