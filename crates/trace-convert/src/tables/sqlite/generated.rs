//! Statements that are made at random have the answers that they have of tables which SQLite has stored.

use super::{Answers, Database};
use crate::tables::tests::{archive, random_trace, trace};
use crate::tables::{Cell, Kind, Type};
use proptest::prelude::*;
use std::io;

/// Statements about one archive.
const STATEMENTS: usize = 40;

/// Numbers that choose, as long as there are any; after them, all is the first choice.
struct Choices(std::vec::IntoIter<u16>);

impl Choices {
    fn below(&mut self, number: usize) -> usize {
        usize::from(self.0.next().unwrap_or(0)) % number
    }

    fn of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len())]
    }

    /// True once in so many times.
    fn once_in(&mut self, number: usize) -> bool {
        self.below(number) == number - 1
    }

    fn column(&mut self, kind: Kind) -> (&'static str, Type) {
        let columns = kind.table().columns;
        columns[self.below(columns.len())]
    }

    fn number(&mut self) -> &'static str {
        self.of(&[
            "0",
            "1",
            "2",
            "3000",
            "5000.0",
            "2000.5",
            "-1",
            "1e3",
            "-0.5",
            "7",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "1e30",
            "8e15",
            ".5",
            "+3",
            "- 1",
            "1e-3",
            "NULL",
            "'5'",
        ])
    }

    fn text(&mut self) -> &'static str {
        self.of(&["'a'", "'A'", "'c'", "'missing'", "''", "'é'", "'it''s'", "5", "NULL", "'begin'", "name"])
    }

    fn aggregate(&mut self, kind: Kind) -> String {
        if self.once_in(4) {
            return "count(*)".to_owned();
        }
        let function = self.of(&[
            "sum",
            "count",
            "min",
            "max",
            "avg",
            "total",
            "SUM",
            "count ",
            "group_concat",
            "max",
            "min",
        ]);
        let (column, of) = self.column(kind);
        // A sum of doubles depends on their order, and one of texts is no question.
        let column = if of == Type::Integer || of == Type::Unsigned { column } else { "*" };
        match (function, column) {
            (_, "*") => "count(*)".to_owned(),
            (function, column) if self.once_in(12) => format!("{function}(DISTINCT {column})"),
            (function, column) => format!("{function}({column})"),
        }
    }

    /// A value of a group.
    fn value(&mut self, kind: Kind, keys: &[String]) -> String {
        let part = |choices: &mut Self| match choices.below(4) {
            0 if !keys.is_empty() => keys[choices.below(keys.len())].clone(),
            1 => choices.number().to_owned(),
            _ => choices.aggregate(kind),
        };
        let first = part(self);
        match self.below(8) {
            0 => format!(
                "{first} {} {}",
                self.of(&["+", "-", "*", "/", "%", "||", "<", "=", "!="]),
                part(self)
            ),
            1 => format!("round({first} / 1e3, 2)"),
            2 => format!("coalesce({first}, {})", part(self)),
            3 => format!("({first}) - {}", part(self)),
            4 => format!("printf('%s|%d', {first}, {})", part(self)),
            _ => first,
        }
    }

    fn condition(&mut self, kind: Kind) -> String {
        let (column, of) = self.column(kind);
        match self.below(6) {
            0 => format!("{column} IS NULL"),
            1 => format!("{column} is not null"),
            2 if of != Type::Text => format!("{column} BETWEEN {} AND {}", self.number(), self.number()),
            _ if of == Type::Text => {
                format!("{column} {} {}", self.of(&["=", "==", "=", ">", "!="]), self.text())
            }
            _ => format!("{column} {} {}", self.of(&["<", "<=", ">", ">=", "=", "==", "<>"]), self.number()),
        }
    }

    /// A statement about a table with the columns of this one, whose name it takes.
    fn statement(&mut self, kind: Kind) -> impl Fn(&str) -> String + use<> {
        let keys: Vec<String> = (0..self.below(4)).map(|_| self.column(kind).0.to_owned()).collect();
        let mut items = Vec::new();
        let mut aliases = Vec::new();
        for number in 0..=self.below(4) {
            let item = match self.below(3) {
                0 if !keys.is_empty() => keys[self.below(keys.len())].clone(),
                _ => self.value(kind, &keys),
            };
            items.push(match self.below(4) {
                0 => {
                    let alias = match self.below(4) {
                        0 => self.column(kind).0.to_owned(),
                        _ => format!("x{number}"),
                    };
                    aliases.push(alias.clone());
                    format!("{item}{}{alias}", self.of(&[" AS ", " "]))
                }
                _ => item,
            });
        }
        let mut by = keys.clone();
        by.extend(aliases.iter().cloned());
        let conditions: Vec<String> = (0..self.below(4)).map(|_| self.condition(kind)).collect();
        let mut rest = String::new();
        if !conditions.is_empty() {
            rest += &format!(" WHERE {}", conditions.join(self.of(&[" AND ", " and ", " AND ", " OR "])));
        }
        if !keys.is_empty() {
            let mut groups = keys.clone();
            // All keys stay: a column that no group is made by could be that of any row.
            if self.once_in(5) {
                groups.insert(0, "1".to_owned());
            } else if self.once_in(5) && !aliases.is_empty() {
                groups.insert(0, aliases[0].clone());
            }
            rest += &format!(" GROUP BY {}", groups.join(", "));
            if self.once_in(3) {
                let operator = self.of(&[">", "<=", "=", "!="]);
                let left =
                    if self.once_in(3) { by[self.below(by.len())].clone() } else { self.value(kind, &keys) };
                rest += &format!(" HAVING {left} {operator} {}", self.number());
            }
        }
        // All items at the end make the order of the answers a total one.
        let mut order = Vec::new();
        for _ in 0..self.below(3) {
            let by = if by.is_empty() || self.once_in(2) {
                self.value(kind, &keys)
            } else {
                by[self.below(by.len())].clone()
            };
            order.push(by + self.of(&["", " DESC", " ASC", " NULLS LAST", " desc nulls first"]));
        }
        order.extend((1..=items.len()).map(|place| place.to_string()));
        rest += &format!(" ORDER BY {}", order.join(", "));
        if self.once_in(3) {
            rest +=
                &format!(" LIMIT {}{}", self.of(&["3", "0", "-1", "1"]), self.of(&["", " OFFSET 1", ", 2"]));
        }
        rest += self.of(&["", ";", " "]);
        let items = items.join(", ");
        move |name: &str| format!("SELECT {items} FROM {name}{rest}")
    }
}

/// Columns and rows, as text.
#[derive(Default)]
struct Found(Vec<String>);

impl Answers for Found {
    fn begin(&mut self, columns: &[String]) -> io::Result<()> {
        self.0.push(columns.len().to_string());
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        self.0.push(format!("{cells:?}"));
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn asked(database: &Database, sql: &str) -> Result<Vec<String>, String> {
    let mut found = Found::default();
    database.ask(sql, &mut found).map(|()| found.0).map_err(|error| error.to_string())
}

/// Compares answers; returns how many statements had one.
fn compare(archive: &[u8], choices: &mut Choices) -> usize {
    let database = Database::open(vec![trace(archive.to_vec())]).unwrap();
    let kinds = [Kind::Slices, Kind::Slices, Kind::Counters, Kind::Flows, Kind::Instants, Kind::Threads];
    for name in kinds[1..].iter().map(|kind| kind.table().name) {
        asked(&database, &format!("CREATE TEMP TABLE stored_{name} AS SELECT * FROM {name}")).unwrap();
    }
    let mut answered = 0;
    for _ in 0..STATEMENTS {
        let kind = kinds[choices.below(kinds.len())];
        let statement = choices.statement(kind);
        let name = kind.table().name;
        let sql = statement(name);
        match (asked(&database, &sql), asked(&database, &statement(&format!("stored_{name}")))) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{sql}"),
            (Err(_), Err(_)) => continue,
            (found, expected) => panic!("{sql}: {found:?} instead of {expected:?}"),
        }
        answered += 1;
    }
    answered
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    //= docs/tables.md#questions
    #[test]
    fn any_statement_has_the_answer_of_a_stored_table(
        text in random_trace(),
        numbers in prop::collection::vec(any::<u16>(), STATEMENTS * 60),
    ) {
        compare(&archive(&text), &mut Choices(numbers.into_iter()));
    }
}

/// Not only statements that are refused are made.
#[test]
fn many_of_the_statements_have_an_answer() {
    let numbers = (0..60_000_u64).map(|number| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u16);
    let mut choices = Choices(numbers.collect::<Vec<u16>>().into_iter());
    let answered: usize = (0..10).map(|_| compare(&archive(crate::tables::tests::TRACE), &mut choices)).sum();
    assert!(answered > 100, "{answered}");
}
