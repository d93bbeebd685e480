//! Answers of SQL: those of the tables that are filled as needed equal those of a saved database, which has
//! real tables.

use super::*;
use crate::tables::sqlite::{Answers, AskError, Database};
use crate::tables::store::Limits;
use proptest::prelude::*;

/// Columns, rows and ends of answers, as text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found(Vec<String>);

impl Answers for Found {
    fn begin(&mut self, columns: &[String]) -> io::Result<()> {
        self.0.push(columns.join(" "));
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        self.0.push(format!("{cells:?}"));
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.0.push("end".to_owned());
        Ok(())
    }
}

pub(super) fn asked(database: &Database, sql: &str) -> Vec<String> {
    let mut found = Found::default();
    database.ask(sql, &mut found).unwrap_or_else(|error| panic!("{sql}: {error}"));
    found.0
}

/// Names, ids and places of slices.
pub(super) fn slices_asked(archive: Vec<u8>) -> Vec<Vec<String>> {
    struct Texts(Vec<Vec<String>>);
    impl Answers for Texts {
        fn begin(&mut self, _: &[String]) -> io::Result<()> {
            Ok(())
        }
        fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
            self.0.push(cells.iter().map(csv_text).collect());
            Ok(())
        }
        fn end(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut found = Texts(Vec::new());
    let database = Database::open(vec![trace(archive)]).unwrap();
    database.ask("SELECT name, id, parent_id, depth, self_dur FROM slices", &mut found).unwrap();
    found.0
}

/// The same as [`asked`] of a saved database.
pub(super) fn asked_of_saved(connection: &rusqlite::Connection, sql: &str) -> Vec<String> {
    use rusqlite::types::ValueRef;
    let mut statement = connection.prepare(sql).unwrap();
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = Found(vec![columns.join(" ")]);
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let cells: Vec<Cell<'_>> = (0..columns.len())
            .map(|place| match row.get_ref(place).unwrap() {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(value) => Cell::Integer(value),
                ValueRef::Real(value) => Cell::Double(value),
                ValueRef::Text(text) | ValueRef::Blob(text) => Cell::Text(str::from_utf8(text).unwrap()),
            })
            .collect();
        found.row(&cells).unwrap();
    }
    found.end().unwrap();
    found.0
}

#[test]
fn an_error_shows_its_place_and_not_the_statements_behind_it() {
    let database = Database::open(vec![trace(archive(TRACE))]).unwrap();
    let error = |sql: &str| database.ask(sql, &mut Found::default()).unwrap_err().to_string();
    let sql = "SELECT 1;\nSELECT nme\nFROM slices; SELECT 'what follows'";
    assert_eq!(error(sql), "no such column: nme, at: nme");
    let long = format!("SELECT {} FROM slices", "a".repeat(80));
    assert_eq!(error(&long), format!("no such column: {0}, at: {1}…", "a".repeat(80), "a".repeat(60)));
}

/// Statements whose answers have one order.
const STATEMENTS: [&str; 44] = [
    "SELECT * FROM slices ORDER BY id",
    "SELECT count(*), sum(dur), min(ts), max(ts) FROM slices",
    "SELECT name, count(*), sum(dur) FROM slices GROUP BY name",
    "SELECT tid, name, category, count(*), max(dur) FROM slices GROUP BY tid, name, category",
    "SELECT name, max(name), count(*), group_concat(id) FROM slices GROUP BY name",
    "SELECT * FROM slices GROUP BY id",
    "SELECT async_id, count(*) FROM slices GROUP BY async_id",
    "SELECT args, count(*) FROM slices GROUP BY args",
    "SELECT DISTINCT name, depth FROM slices ORDER BY 1, 2",
    "SELECT count(*) FROM (SELECT DISTINCT thread FROM slices)",
    "SELECT name, count(*) FROM slices WHERE dur > 2000 GROUP BY name HAVING count(*) > 1",
    "SELECT id FROM slices WHERE name = 'a' ORDER BY id",
    "SELECT id FROM slices WHERE name = 'A' COLLATE NOCASE ORDER BY id",
    "SELECT id FROM slices WHERE name IN ('a', 'b', 'missing') ORDER BY id",
    "SELECT id FROM slices WHERE name = 5 OR tid = '2' ORDER BY id",
    "SELECT id FROM slices WHERE ts > 2000.5 AND ts <= 9000 AND dur < 3e3 ORDER BY id",
    "SELECT id FROM slices WHERE async_id = -1 OR name = NULL OR dur IS NULL ORDER BY id",
    "SELECT a.id, b.id FROM slices a JOIN slices b ON a.tid = b.tid AND a.ts = b.ts ORDER BY 1, 2",
    "SELECT a.id, b.id FROM slices a JOIN slices b ON a.tid = b.tid AND b.ts >= a.ts AND b.ts < a.ts + a.dur \
     ORDER BY 1, 2",
    "SELECT a.id, b.id FROM slices a JOIN slices b ON a.ts = b.ts ORDER BY 1, 2",
    "SELECT a.id, i.name FROM slices a JOIN instants i ON i.ts BETWEEN a.ts AND a.ts + a.dur ORDER BY 1, 2",
    "SELECT a.id, b.name FROM slices a LEFT JOIN slices b ON b.id = a.parent_id AND b.tid = a.tid ORDER BY 1",
    "SELECT i.ts, s.id FROM instants i JOIN slices s ON s.name = i.name AND s.tid = i.tid ORDER BY 1, 2",
    "SELECT id, (SELECT count(*) FROM slices b WHERE b.thread_id = a.thread_id AND b.ts < a.ts) FROM slices a \
     ORDER BY id",
    "SELECT t.id, t.tid, count(s.id) FROM threads t LEFT JOIN slices s ON s.thread_id = t.id GROUP BY t.id, t.tid",
    "SELECT integer, value, series FROM counters WHERE integer >= 3 ORDER BY ts, series, integer, value",
    "SELECT flow_id, phase, count(*) FROM flows GROUP BY flow_id, phase",
    // Answered without SQLite's machine for each row, or only nearly so.
    "SELECT count(*) FROM slices",
    "SELECT count(*), count(dur), count(args), sum(dur), total(dur), avg(dur), min(dur), max(dur) FROM slices \
     WHERE name = 'missing'",
    "SELECT count(*), count(async_id), total(dur), avg(dur), min(async_id), max(async_id) FROM slices",
    "SELECT name, count(*), count(dur), count(args), sum(dur), total(dur), avg(dur), min(dur), max(dur), \
     min(async_id), sum(tid) FROM slices GROUP BY name",
    "SELECT count(*), max(ts) FROM slices WHERE name = 'a' AND dur >= 2000.5 AND async_id IS NULL",
    "SELECT async_id, tid, avg(dur) AS mean FROM slices WHERE dur IS NOT NULL GROUP BY 1, tid ORDER BY mean DESC, 1, 2",
    "SELECT thread, name AS n, count(*) c FROM slices GROUP BY thread, n HAVING c > 1 OR sum(dur) > 9e3 ORDER BY c, n, 1",
    "SELECT name, sum(dur) AS dur FROM slices GROUP BY name ORDER BY dur DESC, name LIMIT 2 OFFSET 1",
    "SELECT name, count(*) < name, max(dur) AS most FROM slices GROUP BY name HAVING most < name OR name = '' ORDER BY 1",
    "SELECT name, depth, sum(self_dur), round(avg(dur) / 1e3, 2) FROM slices GROUP BY name, depth ORDER BY 3, 1, 2",
    "SELECT name, count(*) FROM instants WHERE ts BETWEEN 3000 AND 9000.5 GROUP BY name",
    "SELECT name, series, sum(integer), min(integer), avg(integer) FROM counters GROUP BY name, series",
    "SELECT category, count(*), max(flow_id) FROM flows WHERE phase = 'begin' GROUP BY category",
    "SELECT process, thread, count(*) FROM threads GROUP BY process, thread",
    "SELECT reason, sum(count) FROM losses GROUP BY reason",
    "SELECT ts_utc, count(*) FROM slices GROUP BY ts_utc",
    "SELECT name, sum(self_dur) FROM slices WHERE async_id IS NULL GROUP BY 1 ORDER BY 2 DESC, 1",
];

/// Asks everything of both.
fn compare(archive: Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("saved.db");
    Database::open(vec![trace(archive.clone())]).unwrap().save(&path).unwrap();
    let saved = rusqlite::Connection::open(&path).unwrap();
    // Of one database, and of a new one for each statement: with other columns there already, and with nearly
    // everything in files.
    let open = |limits| Database::with_limits(vec![trace(archive.clone())], Vec::new(), limits).unwrap();
    let all = open(Limits::default());
    for sql in STATEMENTS {
        let expected = asked_of_saved(&saved, sql);
        assert_eq!(asked(&all, sql), expected, "{sql}");
        assert_eq!(asked(&open(Limits::default()), sql), expected, "alone: {sql}");
        assert_eq!(asked(&open(Limits { columns: 0, texts: 2 }), sql), expected, "in files: {sql}");
    }
}

//= docs/tables.md#questions
#[test]
fn answers_equal_those_of_real_tables() {
    compare(archive(TRACE));
    compare(archive(DISORDER));
}

/// When it is found, groups and blocks of columns are there already.
//= docs/tables.md#questions
#[test]
fn answers_about_a_trace_that_gets_out_of_order_late_are_those_of_all_rows() {
    let mut events = Vec::new();
    for number in 0..100 {
        for (part, ts) in [("B", 10 * number), ("E", 10 * number + 5)] {
            events.push(format!(
                r#"{{"ph":"{part}","ts":{ts},"pid":1,"tid":2,"cat":"c","name":"n{}"}}"#,
                number % 3
            ));
        }
    }
    for (part, ts) in [("E", 2000), ("B", 1500), ("E", 1900), ("B", 1600)] {
        events.push(format!(r#"{{"ph":"{part}","ts":{ts},"pid":1,"tid":2,"cat":"c","name":"late"}}"#));
    }
    let archive = archive(&format!("[{}]", events.join(",")));
    compare(archive.clone());
    let database = Database::open(vec![trace(archive)]).unwrap();
    let sql = "SELECT name, count(*), sum(dur), max(depth) FROM slices GROUP BY name";
    assert_eq!(asked(&database, sql)[1], r#"[Text("late"), Integer(2), Integer(800000), Integer(1)]"#);
}

/// Names that come behind what they name take another pass, and others none.
//= docs/meaning.md#names
#[test]
fn answers_have_the_last_names() {
    use super::meaning::name_of;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let event = r#"{"ph":"X","ts":1,"dur":2,"pid":1,"tid":2,"name":"a"}"#.to_owned();
    let names = [name_of("process", "app"), name_of("thread", "main")];
    let sql = "SELECT process, thread FROM slices UNION ALL SELECT process, thread FROM threads";
    for (first, second, expected) in
        [(&names[..], vec![event.clone()], 1), (std::slice::from_ref(&event), names.to_vec(), 2)]
    {
        let archive = archive(&format!("[{}]", [first, &second].concat().join(",")));
        compare(archive.clone());
        let opened = Arc::new(AtomicU64::new(0));
        let mut counted = trace(archive);
        let mut open = std::mem::replace(&mut counted.open, Box::new(|| Err(io::Error::other("open"))));
        let count = opened.clone();
        counted.open = Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            open()
        });
        let database = Database::open(vec![counted]).unwrap();
        let before = opened.load(Ordering::Relaxed);
        let row = r#"[Text("app"), Text("main")]"#;
        assert_eq!(asked(&database, sql)[1..3], [row, row]);
        assert_eq!(opened.load(Ordering::Relaxed) - before, expected);
    }
}

/// Some events of few names, times and numbers, as JSON.
pub(in crate::tables) fn random_trace() -> impl Strategy<Value = String> {
    prop::collection::vec(event(), 0..60).prop_map(|events| format!("[{}]", events.join(",")))
}

fn event() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "A", "é", "5", ""]);
    let id = prop::sample::select(vec!["0x1", "0xffffffffffffffff", "0x7fffffffffffffff", "7"]);
    let kind = prop::sample::select(vec!["X", "X", "X", "B", "E", "i", "C", "b", "e", "s", "f"]);
    (kind, name, id, 0..20_u64, 0..8_u64, 1..4_u64).prop_map(|(kind, name, id, ts, dur, tid)| {
        format!(
            r#"{{"ph":"{kind}","ts":{ts},"dur":{dur},"pid":1,"tid":{tid},"cat":"c{dur}","name":"{name}","id":"{id}",
               "s":"t","args":{{"n":{dur}}}}}"#
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn answers_about_any_trace_equal_those_of_real_tables(text in random_trace()) {
        compare(archive(&text));
    }
}

//= docs/tables.md#questions
#[test]
fn statements_are_answered_in_order() {
    let database = Database::open(vec![trace(archive(TRACE))]).unwrap();
    assert_eq!(asked(&database, "SELECT 1"), ["1", "[Integer(1)]", "end"]);
    assert!(database.summaries().is_empty(), "nothing was read for that");
    let sql = "CREATE VIEW long AS SELECT name, dur FROM slices WHERE dur > 0;
               SELECT * FROM long ORDER BY dur;
               SELECT json_extract(args, '$.b'), value FROM slices, counters WHERE slices.name = 'outer' LIMIT 1;";
    assert_eq!(
        asked(&database, sql),
        [
            "name dur",
            r#"[Text("inner"), Integer(500)]"#,
            r#"[Text("job"), Integer(3000)]"#,
            r#"[Text("outer"), Integer(6000)]"#,
            "end",
            "json_extract(args, '$.b') value",
            "[Integer(2), Double(3.0)]",
            "end",
        ]
    );
    assert_eq!(database.summaries().first().map(|summary| summary.events), Some(13));
    let error = database.ask("SELECT missing FROM slices", &mut Found::default()).unwrap_err();
    assert!(matches!(error, AskError::Query(_)));
    assert!(error.to_string().contains("no such column: missing"), "{error}");
}

/// Which columns are there from earlier questions makes no difference.
//= docs/tables.md#questions
#[test]
fn columns_that_come_one_after_the_other_agree_with_all_at_once() {
    let open = || Database::open(vec![trace(archive(TRACE))]).unwrap();
    for table in TABLES {
        let all = format!("SELECT * FROM {}", table.name);
        let expected = asked(&open(), &all);
        for first in 0..table.columns.len() {
            let database = open();
            for place in 0..table.columns.len() {
                let (column, _) = table.columns[(first + place) % table.columns.len()];
                asked(&database, &format!("SELECT {column} FROM {} AS t", table.name));
            }
            assert_eq!(asked(&database, &all), expected, "{} from column {first} on", table.name);
        }
    }
}

//= docs/tables.md#tables
#[test]
fn a_trace_that_is_out_of_order_is_read_again() {
    let database = Database::open(vec![trace(archive(DISORDER))]).unwrap();
    let sql = "SELECT group_concat(name || ' ' || dur, ', ' ORDER BY name) FROM slices";
    let expected = r#"[Text("away 1000, inner 1000, job 3000, next 500, other 8000, outer 3000")]"#;
    assert_eq!(asked(&database, sql)[1], expected);
}

//= docs/tables.md#questions
#[test]
fn several_traces_are_told_apart() {
    let other = Trace { name: "b.fxt".to_owned(), ..trace(archive(DISORDER)) };
    let database = Database::open(vec![trace(archive(TRACE)), other]).unwrap();
    let sql = "SELECT trace, count(*), max(id), sum(depth) FROM slices GROUP BY trace";
    assert_eq!(
        asked(&database, sql)[1..3],
        [
            r#"[Text("a.fxt"), Integer(5), Integer(5), Integer(1)]"#,
            r#"[Text("b.fxt"), Integer(6), Integer(6), Integer(2)]"#,
        ]
    );
    assert_eq!(asked(&database, "SELECT * FROM threads LIMIT 1")[0], "pid tid process thread id trace");
}

//= docs/tables.md#ends
#[test]
fn slices_around_a_time_are_found_by_their_ends() {
    let database = Database::open(vec![trace(archive(TRACE))]).unwrap();
    let sql = "SELECT name FROM slices WHERE tid = 2 AND ts <= 2100 AND ts_end > 2100 ORDER BY depth";
    assert_eq!(asked(&database, sql), ["name", r#"[Text("outer")]"#, r#"[Text("inner")]"#, "end"]);
    // Again and again, as a join does.
    let sql = "WITH RECURSIVE t(at) AS (SELECT 0 UNION ALL SELECT at + 500 FROM t WHERE at < 9000)
               SELECT at, group_concat(name ORDER BY depth) FROM t JOIN slices ON tid = 2 AND async_id IS NULL AND ts <= at \
               AND ts_end > at GROUP BY at HAVING count(*) > 1";
    assert_eq!(
        asked(&database, sql),
        ["at group_concat(name ORDER BY depth)", r#"[Integer(2000), Text("outer,inner")]"#, "end"]
    );
}

//= docs/tables.md#functions
#[test]
fn percentiles_and_histograms_are_functions() {
    let database = Database::open(vec![trace(archive(TRACE))]).unwrap();
    let sql = "WITH n(i) AS (VALUES (10), (20), (30), (NULL), (40), (0), (-1.5))
               SELECT percentile(i, 50), percentile(i, 100), percentile(i, 1), percentile(i, 75), hist(i) FROM n";
    let expected = r#"[Double(10.0), Double(40.0), Double(-1.5), Double(30.0), Text("{\"<0\":1,\"0\":1,\"8\":1,\"16\":2,\"32\":1}")]"#;
    assert_eq!(asked(&database, sql)[1], expected);
    assert_eq!(
        asked(&database, "SELECT percentile(dur, 99), hist(dur) FROM slices WHERE 0")[1],
        "[Null, Null]"
    );
    let thousand = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
                    SELECT percentile(i, 99.9), percentile(i, 7), percentile(i, 55) FROM n";
    assert_eq!(asked(&database, thousand)[1], "[Double(999.0), Double(70.0), Double(550.0)]");
    for wrong in [
        "percentile(dur, 101)",
        "percentile(dur, 0.99)",
        "percentile(dur, 0)",
        "percentile(dur, dur)",
        "percentile(dur, NULL)",
        "percentile(name, 5)",
    ] {
        let sql = format!("SELECT {wrong} FROM slices");
        assert!(database.ask(&sql, &mut Found::default()).is_err(), "{wrong}");
    }
}
