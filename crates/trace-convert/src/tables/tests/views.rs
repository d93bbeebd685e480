//! Views of operations that began in each other.

use super::questions::asked;
use super::*;
use crate::tables::sqlite::{Database, VIEWS};

/// A request of 100 µs with two steps that overlap, one of which has a step of its own; the request's id is
/// used again by one without a step; a duration of another thread belongs to the first step.
const NESTED: &str = r##"[
    {"ph":"b","ts":0,"pid":1,"tid":1,"cat":"c","name":"request","id2":{"local":"0x1"}},
    {"ph":"b","ts":10,"pid":1,"tid":1,"cat":"c","name":"read","id2":{"local":"0x2"},"args":{"parent-operation":1}},
    {"ph":"b","ts":20,"pid":1,"tid":2,"cat":"c","name":"write","id2":{"local":"0x3"},"args":{"parent-operation":1}},
    {"ph":"b","ts":25,"pid":1,"tid":2,"cat":"c","name":"disk","id2":{"local":"0x4"},"args":{"parent-operation":3}},
    {"ph":"X","ts":12,"dur":5,"pid":1,"tid":3,"cat":"c","name":"half","args":{"parent-operation":2}},
    {"ph":"e","ts":30,"pid":1,"tid":1,"cat":"c","name":"read","id2":{"local":"0x2"}},
    {"ph":"e","ts":35,"pid":1,"tid":2,"cat":"c","name":"disk","id2":{"local":"0x4"}},
    {"ph":"e","ts":40,"pid":1,"tid":2,"cat":"c","name":"write","id2":{"local":"0x3"}},
    {"ph":"e","ts":100,"pid":1,"tid":1,"cat":"c","name":"request","id2":{"local":"0x1"}},
    {"ph":"b","ts":200,"pid":1,"tid":1,"cat":"c","name":"request","id2":{"local":"0x1"}},
    {"ph":"e","ts":230,"pid":1,"tid":1,"cat":"c","name":"request","id2":{"local":"0x1"}},
    {"ph":"b","ts":300,"pid":1,"tid":1,"cat":"c","name":"lost","id2":{"local":"0x5"},"args":{"parent-operation":99}},
    {"ph":"b","ts":300,"pid":1,"tid":1,"cat":"c","name":"self","id2":{"local":"0x6"},"args":{"parent-operation":6}},
    {"ph":"e","ts":300,"pid":1,"tid":1,"cat":"c","name":"lost","id2":{"local":"0x5"}},
    {"ph":"e","ts":310,"pid":1,"tid":1,"cat":"c","name":"self","id2":{"local":"0x6"}},
    {"ph":"b","ts":5,"pid":2,"tid":9,"cat":"c","name":"other","id2":{"local":"0x8"},"args":{"parent-operation":1}},
    {"ph":"e","ts":9,"pid":2,"tid":9,"cat":"c","name":"other","id2":{"local":"0x8"}}
]"##;

const TREE: &str = "SELECT one.name, one.ts / 1000 AS us, parent.name AS parent, root.name AS root, one.depth
    FROM operations AS one LEFT JOIN operations AS parent ON parent.id = one.parent_id
    JOIN operations AS root ON root.id = one.root_id ORDER BY one.ts, one.name";
const STEPS: &str =
    "SELECT name, step, ts / 1000 AS us, dur / 1000 AS long FROM steps ORDER BY name, ts, step";

/// Rows without the types of their cells.
fn plain(database: &Database, sql: &str) -> Vec<String> {
    let cell = |cell: &str| match cell.trim_matches(['[', ']']) {
        "Null" => "-".to_owned(),
        cell => cell[cell.find('(').map_or(0, |at| at + 1)..].trim_matches(['"', ')']).to_owned(),
    };
    let mut rows = asked(database, sql);
    rows.pop();
    rows.iter().map(|row| row.split(", ").map(cell).collect::<Vec<_>>().join(" ")).collect()
}

//= docs/tables.md#steps-of-operations
#[test]
fn operations_have_a_tree_and_steps() {
    let database = Database::open(vec![trace(archive(NESTED))]).unwrap();
    assert_eq!(
        plain(&database, TREE),
        [
            "name us parent root depth",
            "request 0 - request 0",
            "other 5 - other 0",
            "read 10 request request 1",
            "write 20 request request 1",
            "disk 25 write request 2",
            "request 200 - request 0",
            "lost 300 - lost 0",
            "self 300 - self 0",
        ]
    );
    assert_eq!(
        plain(&database, STEPS),
        [
            "name step us long",
            "disk - 25 10",
            "other - 5 4",
            "read - 10 2",
            "read half 12 5",
            "read - 17 13",
            "request - 0 10",
            "request read 10 20",
            "request write 20 20",
            "request - 40 60",
            "request - 200 30",
            "self - 300 10",
            "write - 20 5",
            "write disk 25 10",
            "write - 35 5",
        ]
    );
}

//= docs/tables.md#steps-of-operations
#[test]
fn views_of_several_traces_and_of_saved_ones_are_the_same() {
    let other = Trace { name: "b.fxt".to_owned(), ..trace(archive(NESTED)) };
    let both = Database::open(vec![trace(archive(NESTED)), other]).unwrap();
    let one = Database::open(vec![trace(archive(NESTED))]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for view in VIEWS {
        let columns = view.columns.join(", ");
        let sql = format!("SELECT {columns} FROM {} ORDER BY id, ts", view.name);
        let expected = asked(&one, &sql);
        for name in ["a.fxt", "b.fxt"] {
            let sql = format!("SELECT {columns} FROM {} WHERE trace = '{name}' ORDER BY id, ts", view.name);
            assert_eq!(asked(&both, &sql), expected, "{}", view.name);
        }
        assert_eq!(asked(&one, &format!("SELECT * FROM {} ORDER BY id, ts", view.name)), expected);
        for (name, database) in [("one.db", &one), ("both.db", &both)] {
            let path = directory.path().join(format!("{}-{name}", view.name));
            database.save(&path).unwrap();
            let saved = rusqlite::Connection::open(&path).unwrap();
            let sql = format!("SELECT * FROM {} ORDER BY id, ts", view.name);
            assert_eq!(asked(database, &sql), super::questions::asked_of_saved(&saved, &sql), "{name}");
        }
    }
}
