//! Which statements are answered directly, and how.

use super::*;
use crate::tables::slices;

fn place(name: &str) -> usize {
    Kind::Slices.table().place(name).unwrap()
}

#[test]
fn groups_are_recognized() {
    let direct = recognize(
        "select Name, count(*) AS n, round(sum(dur) / 1e6, 1) ms FROM slices WHERE dur >= 2.5 AND name = 'it''s' \
         GROUP BY 1 HAVING n > 1 AND max(dur) < 9 ORDER BY ms DESC, name LIMIT 3 OFFSET 1;",
    )
    .unwrap();
    let expected = Question {
        kind: Kind::Slices,
        conditions: vec![
            Condition::Between { place: slices::DUR, from: 3, to: i64::MAX },
            Condition::Is { place: place("name"), text: "it's".to_owned() },
        ],
        keys: vec![place("name")],
        values: vec![
            (Function::Count, None),
            (Function::Sum, Some(slices::DUR)),
            (Function::Greatest, Some(slices::DUR)),
        ],
    };
    assert_eq!(direct.question, expected);
    assert_eq!(
        direct.sql,
        "SELECT \"group key 0\", +\"group value 0\" AS \"n\", round ( +\"group value 1\" / 1e6 , 1 ) AS \"ms\" \
         FROM temp.\"trace groups\" WHERE \"n\" > 1 AND +\"group value 2\" < 9 \
         ORDER BY \"ms\" DESC, \"group key 0\" LIMIT 3 OFFSET 1"
    );
    assert_eq!(
        direct.definition,
        "\"group key 0\" TEXT, \"group value 0\", \"group value 1\", \"group value 2\""
    );
}

#[test]
fn comparisons_are_ranges_of_whole_numbers() {
    let range = |condition: &str| {
        let direct = recognize(&format!("SELECT count(*) FROM slices WHERE dur {condition}")).unwrap();
        match direct.question.conditions[..] {
            [Condition::Between { from, to, .. }] => (from, to),
            _ => panic!("{condition}"),
        }
    };
    assert_eq!(range("= 5"), (5, 5));
    assert_eq!(range("= 5.5"), (1, 0));
    assert_eq!(range("== 5.0"), (5, 5));
    assert_eq!(range("< 5"), (i64::MIN, 4));
    assert_eq!(range("< 5.5"), (i64::MIN, 5));
    assert_eq!(range("< -9223372036854775808"), (1, 0));
    assert_eq!(range("<= -5.5"), (i64::MIN, -6));
    assert_eq!(range("> 9223372036854775807"), (1, 0));
    assert_eq!(range("> 5.5"), (6, i64::MAX));
    assert_eq!(range(">= 5.5"), (6, i64::MAX));
    assert_eq!(range("BETWEEN 2 AND 7.5"), (2, 7));
}

#[test]
fn other_statements_are_left_to_sqlite() {
    for sql in [
        "SELECT name FROM slices",
        "SELECT * FROM slices",
        "SELECT * FROM slices GROUP BY name",
        "SELECT name, * FROM slices GROUP BY name",
        "SELECT (*), count(*) FROM slices GROUP BY name",
        "SELECT name, count(*) FROM slices",
        "SELECT tid, count(*) FROM slices GROUP BY name",
        "SELECT count(*), name || 'x' FROM slices GROUP BY tid",
        "SELECT count(DISTINCT name) FROM slices",
        "SELECT max(name) FROM slices",
        "SELECT sum(value) FROM counters",
        "SELECT value, count(*) FROM counters GROUP BY value",
        "SELECT args, count(*) FROM slices GROUP BY args",
        "SELECT min(dur, 5) FROM slices",
        "SELECT sum(dur + 1) FROM slices",
        "SELECT sum(dur) FILTER (WHERE dur > 5) FROM slices",
        "SELECT sum(dur) OVER () FROM slices",
        "SELECT percentile(dur, 50) FROM slices",
        "SELECT count(*) FROM slices AS s",
        "SELECT count(*) FROM slices, threads",
        "SELECT count(*) FROM slices JOIN threads",
        "SELECT count(*) FROM (SELECT 1)",
        "SELECT count(*) FROM missing",
        "SELECT count(*) FROM slices UNION SELECT 1",
        "SELECT count(*) FROM slices WHERE name = 5",
        "SELECT count(*) FROM slices WHERE name > 'a'",
        "SELECT count(*) FROM slices WHERE name LIKE 'a'",
        "SELECT count(*) FROM slices WHERE name = 'a' COLLATE NOCASE",
        "SELECT count(*) FROM slices WHERE dur = '5'",
        "SELECT count(*) FROM slices WHERE dur > 1e300",
        "SELECT count(*) FROM slices WHERE dur > 5 OR dur < 3",
        "SELECT count(*) FROM slices WHERE dur > ts",
        "SELECT count(*) FROM slices WHERE dur > 1 + 1",
        "SELECT count(*) FROM slices WHERE ts_end > 5",
        "SELECT count(*) FROM slices WHERE",
        "SELECT count(*) FROM slices GROUP BY name COLLATE NOCASE",
        "SELECT count(*) FROM slices GROUP BY name || ''",
        "SELECT count(*) FROM slices GROUP BY 1",
        "SELECT count(*) FROM slices GROUP BY 2",
        "SELECT count(*) FROM slices HAVING count(*) > 1",
        "SELECT trace, count(*) FROM slices GROUP BY trace",
        "SELECT name AS trace, count(*) FROM slices GROUP BY trace",
        "SELECT name, sum(dur) AS dur FROM slices GROUP BY name ORDER BY dur + 1",
        "SELECT name, sum(dur) AS dur FROM slices GROUP BY name HAVING dur > 1",
        "SELECT name, count(*) FROM slices GROUP BY name ORDER BY name COLLATE NOCASE",
        "SELECT name, count(*) FROM slices GROUP BY name ORDER BY ts",
        "SELECT name, count(*) FROM slices GROUP BY name LIMIT (SELECT 1)",
        "SELECT name IS NULL, count(*) FROM slices GROUP BY name",
        "SELECT (SELECT 1), count(*) FROM slices",
        "SELECT DISTINCT name FROM slices",
        "SELECT random(), count(*) FROM slices",
        "EXPLAIN SELECT count(*) FROM slices",
        "WITH a AS (SELECT 1) SELECT count(*) FROM slices",
        "SELECT count(*) FROM slices; SELECT 1",
        "SELECT , count(*) FROM slices",
        "SELECT FROM slices",
        "SELECT",
        "",
    ] {
        assert_eq!(recognize(sql), None, "{sql}");
    }
}
