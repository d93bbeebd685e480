//! Statements that are answered without SQLite's machine for each row: numbers, sums and extremes of one
//! table's rows or of groups of them, which is what most questions are. The groups become a temporary
//! table, and SQLite computes, sorts and limits the rest from that.
//!
//! Only statements of a small grammar are taken, whose meaning is certain: `SELECT` with columns by which
//! is grouped, aggregates of whole numbers, and arithmetic; `FROM` a table; `WHERE` with comparisons of
//! columns with literals, joined by `AND`; `GROUP BY` columns; `HAVING`, `ORDER BY` and `LIMIT`. SQLite
//! answers all others.

mod grouping;
mod tokens;

pub use grouping::{Answer, Function, Grouping, Question};

use crate::tables::store::{Width, width_of};
use crate::tables::{Kind, Type};
use grouping::Condition;
use tokens::{Token, tokens};

/// The table of groups.
pub const GROUPS: &str = "trace groups";
/// Functions of one value that may stand around aggregates.
const FUNCTIONS: [&str; 9] =
    ["abs", "coalesce", "format", "ifnull", "length", "lower", "printf", "round", "upper"];
/// Aggregates of a column.
const AGGREGATES: [(&str, Function); 6] = [
    ("count", Function::Count),
    ("sum", Function::Sum),
    ("total", Function::Total),
    ("avg", Function::Mean),
    ("min", Function::Least),
    ("max", Function::Greatest),
];
/// Names of columns that tables have besides their own.
const OTHER_COLUMNS: [&str; 5] = ["trace", "ts_end", "rowid", "oid", "_rowid_"];
/// Doubles are exact up to here.
const EXACT: f64 = 9e15;

/// A statement that is answered directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direct {
    pub question: Question,
    /// The columns of the table of groups.
    pub definition: String,
    /// The statement about that table.
    pub sql: String,
}

/// What a part of a statement is rewritten for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Item,
    Having,
    Order,
    Limit,
}

/// A statement while it is recognized.
struct Recognizer<'a> {
    kind: Kind,
    keys: Vec<usize>,
    values: Vec<(Function, Option<usize>)>,
    aliases: Vec<&'a str>,
}

/// The direct answer of a statement; none if SQLite has to answer it.
pub fn recognize(sql: &str) -> Option<Direct> {
    let tokens = tokens(sql)?;
    let mut rest = tokens.as_slice();
    if let [before @ .., Token::Sign(";")] = rest {
        rest = before;
    }
    rest = rest.strip_prefix(&[*rest.first().filter(|token| token.is_word("select"))?])?;
    let clauses = Clauses::of(rest)?;
    let name = clauses.table.text();
    let kind = Kind::ALL.into_iter().find(|kind| kind.table().name.eq_ignore_ascii_case(name))?;
    let items = split(clauses.items);
    let items: Vec<(&[Token<'_>], Option<&str>)> = items.into_iter().map(aliased).collect();
    let aliases = items.iter().filter_map(|(_, alias)| *alias).collect();
    let mut recognizer = Recognizer { kind, keys: Vec::new(), values: Vec::new(), aliases };
    if let Some(groups) = clauses.groups {
        let keys: Option<Vec<usize>> =
            split(groups).into_iter().map(|group| recognizer.key(group, &items)).collect();
        recognizer.keys = keys?;
    } else if clauses.having.is_some() {
        return None;
    }
    let conditions = clauses.conditions.map_or(Some(Vec::new()), |tokens| conditions(kind, tokens))?;
    let mut sql = String::from("SELECT ");
    for (number, (item, alias)) in items.iter().enumerate() {
        sql += if number > 0 { ", " } else { "" };
        sql += &recognizer.rewrite(item, Part::Item)?;
        sql += &alias.map_or_else(String::new, |alias| format!(" AS \"{alias}\""));
    }
    sql += &format!(" FROM temp.\"{GROUPS}\"");
    for (tokens, part, word) in [
        (clauses.having, Part::Having, "WHERE"),
        (clauses.order, Part::Order, "ORDER BY"),
        (clauses.limit, Part::Limit, "LIMIT"),
    ] {
        if let Some(tokens) = tokens {
            sql += &format!(" {word} {}", recognizer.rewrite(tokens, part)?);
        }
    }
    let Recognizer { keys, values, .. } = recognizer;
    if keys.is_empty() && values.is_empty() {
        return None;
    }
    let definition = definition(kind, &keys, values.len());
    Some(Direct { question: Question { kind, conditions, keys, values }, definition, sql })
}

/// Columns of groups have the types of the table's; aggregates have none.
fn definition(kind: Kind, keys: &[usize], values: usize) -> String {
    let of = |place: &usize| if kind.table().columns[*place].1 == Type::Text { "TEXT" } else { "INTEGER" };
    let keys = keys.iter().enumerate().map(|(number, place)| format!("\"group key {number}\" {}", of(place)));
    let values = (0..values).map(|number| format!("\"group value {number}\""));
    keys.chain(values).collect::<Vec<String>>().join(", ")
}

/// The clauses of a statement behind `SELECT`.
struct Clauses<'t, 'a> {
    items: &'t [Token<'a>],
    table: Token<'a>,
    conditions: Option<&'t [Token<'a>]>,
    groups: Option<&'t [Token<'a>]>,
    having: Option<&'t [Token<'a>]>,
    order: Option<&'t [Token<'a>]>,
    limit: Option<&'t [Token<'a>]>,
}

impl<'t, 'a> Clauses<'t, 'a> {
    fn of(tokens: &'t [Token<'a>]) -> Option<Self> {
        let from = tokens.iter().position(|token| token.is_word("from"))?;
        let (items, rest) = tokens.split_at(from);
        let (table, mut rest) = rest.get(1..)?.split_first()?;
        let mut clause = |words: &[&str]| -> Option<Option<&'t [Token<'a>]>> {
            let is_here = words.iter().zip(rest).filter(|(word, token)| token.is_word(word)).count();
            if is_here < words.len() {
                return Some(None);
            }
            let behind = &rest[words.len()..];
            let is_next = |token: &Token<'_>| {
                ["where", "group", "having", "order", "limit"].iter().any(|word| token.is_word(word))
            };
            let end = behind.iter().position(is_next).unwrap_or(behind.len());
            let (clause, next) = behind.split_at(end);
            rest = next;
            if clause.is_empty() { None } else { Some(Some(clause)) }
        };
        let conditions = clause(&["where"])?;
        let groups = clause(&["group", "by"])?;
        let having = clause(&["having"])?;
        let order = clause(&["order", "by"])?;
        let limit = clause(&["limit"])?;
        let is_table = matches!(table, Token::Word(_));
        (is_table && rest.is_empty() && !items.is_empty()).then_some(Self {
            items,
            table: *table,
            conditions,
            groups,
            having,
            order,
            limit,
        })
    }
}

/// Parts between commas outside of parentheses.
fn split<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut depth = 0_usize;
    let is_comma = |token: &Token<'_>| {
        match token {
            Token::Sign("(") => depth += 1,
            Token::Sign(")") => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *token == Token::Sign(",")
    };
    tokens.split(is_comma).collect()
}

/// An item, and the name that it has in the answer.
fn aliased<'t, 'a>(item: &'t [Token<'a>]) -> (&'t [Token<'a>], Option<&'a str>) {
    match item {
        [before @ .., by, Token::Word(alias)] if by.is_word("as") => (before, Some(alias)),
        [
            before @ ..,
            Token::Sign(")") | Token::Word(_) | Token::Number(_) | Token::Text(_),
            Token::Word(alias),
        ] => (&item[..=before.len()], Some(alias)),
        _ => (item, None),
    }
}

/// The place of a column of the table.
fn place_of(kind: Kind, name: &str) -> Option<usize> {
    kind.table().columns.iter().position(|(column, _)| column.eq_ignore_ascii_case(name))
}

impl Recognizer<'_> {
    /// The column of a term of `GROUP BY`.
    fn key(&self, term: &[Token<'_>], items: &[(&[Token<'_>], Option<&str>)]) -> Option<usize> {
        let place = match term {
            [Token::Word(name)] => place_of(self.kind, name).or_else(|| {
                let is_named =
                    |alias: Option<&str>| alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name));
                match items.iter().find(|(_, alias)| is_named(*alias))?.0 {
                    [Token::Word(column)] if !is_other_column(name) => place_of(self.kind, column),
                    _ => None,
                }
            }),
            [Token::Number(number)] => match items.get(number.parse::<usize>().ok()?.checked_sub(1)?)?.0 {
                [Token::Word(column)] => place_of(self.kind, column),
                _ => None,
            },
            _ => None,
        }?;
        let (name, of) = self.kind.table().columns[place];
        let is_groupable = of != Type::Double && (of != Type::Text || width_of(name, of) == Width::Narrow);
        is_groupable.then_some(place)
    }

    /// A part of the statement, about the table of groups.
    fn rewrite(&mut self, tokens: &[Token<'_>], part: Part) -> Option<String> {
        if tokens.is_empty() {
            return None;
        }
        if part == Part::Order {
            let terms = split(tokens);
            let terms: Option<Vec<String>> = terms.into_iter().map(|term| self.order_term(term)).collect();
            return terms.map(|terms| terms.join(", "));
        }
        let mut rewritten = Vec::new();
        let mut rest = tokens;
        let mut is_behind_value = false;
        while let Some((token, behind)) = rest.split_first() {
            rest = behind;
            // Without a value before it, it stands for all columns.
            if *token == Token::Sign("*") && !is_behind_value {
                return None;
            }
            is_behind_value = !matches!(token, Token::Sign(sign) if *sign != ")");
            let text = match token {
                Token::Word(word) if behind.first() == Some(&Token::Sign("(")) => {
                    match AGGREGATES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
                        Some((_, function)) => {
                            let (value, behind) = self.aggregate(*function, behind)?;
                            rest = behind;
                            value
                        }
                        None if FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(word)) => {
                            (*word).to_owned()
                        }
                        None => return None,
                    }
                }
                Token::Word(word) => self.word(word, part)?,
                Token::Sign(";") => return None,
                Token::Number(text) | Token::Text(text) | Token::Sign(text) => (*text).to_owned(),
            };
            rewritten.push(text);
        }
        Some(rewritten.join(" "))
    }

    /// A term of `ORDER BY`: the name of an item may be that of a column of the table, if it stands alone.
    fn order_term(&mut self, term: &[Token<'_>]) -> Option<String> {
        let is_order = |token: &Token<'_>| {
            ["asc", "desc", "nulls", "first", "last"].iter().any(|word| token.is_word(word))
        };
        let end = term.iter().position(is_order).unwrap_or(term.len());
        let (by, order) = term.split_at(end);
        if !order.iter().all(is_order) {
            return None;
        }
        let order: String = order.iter().map(|token| format!(" {}", token.text())).collect();
        let by = match by {
            [Token::Word(name)] if self.alias(name).is_some() => format!("\"{}\"", self.alias(name)?),
            by => self.rewrite(by, Part::Having)?,
        };
        Some(by + &order)
    }

    fn alias(&self, name: &str) -> Option<&str> {
        self.aliases.iter().copied().find(|alias| alias.eq_ignore_ascii_case(name))
    }

    /// A word that is no function.
    fn word(&self, word: &str, part: Part) -> Option<String> {
        let is_alias = self.alias(word).is_some();
        let place = place_of(self.kind, word);
        match part {
            Part::Limit => word.eq_ignore_ascii_case("offset").then(|| word.to_owned()),
            // Which of the two is meant depends on where it stands.
            Part::Having if is_alias && (place.is_some() || is_other_column(word)) => None,
            Part::Having if is_alias => Some(format!("\"{}\"", self.alias(word)?)),
            Part::Having if ["and", "or", "not"].iter().any(|known| known.eq_ignore_ascii_case(word)) => {
                Some(word.to_owned())
            }
            Part::Item | Part::Having | Part::Order => {
                let number = self.keys.iter().position(|key| Some(*key) == place)?;
                Some(format!("\"group key {number}\""))
            }
        }
    }

    /// An aggregate, whose parenthesis comes first, and what is behind it.
    fn aggregate<'t, 'a>(
        &mut self,
        function: Function,
        tokens: &'t [Token<'a>],
    ) -> Option<(String, &'t [Token<'a>])> {
        let [Token::Sign("("), argument, Token::Sign(")"), behind @ ..] = tokens else { return None };
        let value = match argument {
            Token::Sign("*") if function == Function::Count => (function, None),
            Token::Word(name) => {
                let place = place_of(self.kind, name)?;
                let of = self.kind.table().columns[place].1;
                let is_whole = matches!(of, Type::Integer | Type::Unsigned);
                (is_whole || function == Function::Count).then_some((function, Some(place)))?
            }
            _ => return None,
        };
        let number = self.values.iter().position(|known| *known == value).unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        // The sign has no meaning, except that an aggregate has no affinity, while a column has one.
        Some((format!("+\"group value {number}\""), behind))
    }
}

fn is_other_column(name: &str) -> bool {
    OTHER_COLUMNS.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// Comparisons that all have to hold.
fn conditions(kind: Kind, tokens: &[Token<'_>]) -> Option<Vec<Condition>> {
    let mut conditions = Vec::new();
    let mut rest = tokens;
    loop {
        let [Token::Word(column), behind @ ..] = rest else { return None };
        let place = place_of(kind, column)?;
        let (condition, behind) = condition(kind, place, behind)?;
        conditions.push(condition);
        match behind {
            [] => return Some(conditions),
            [and, next @ ..] if and.is_word("and") => rest = next,
            _ => return None,
        }
    }
}

/// A comparison of a column, and what is behind it.
fn condition<'t, 'a>(
    kind: Kind,
    place: usize,
    tokens: &'t [Token<'a>],
) -> Option<(Condition, &'t [Token<'a>])> {
    match tokens {
        [is, not, null, rest @ ..] if is.is_word("is") && not.is_word("not") && null.is_word("null") => {
            return Some((Condition::IsThere { place, is_there: true }, rest));
        }
        [is, null, rest @ ..] if is.is_word("is") && null.is_word("null") => {
            return Some((Condition::IsThere { place, is_there: false }, rest));
        }
        _ => {}
    }
    let (name, of) = kind.table().columns[place];
    if of == Type::Text {
        let [Token::Sign("=" | "=="), Token::Text(text), rest @ ..] = tokens else { return None };
        let text = text.strip_prefix('\'')?.strip_suffix('\'')?.replace("''", "'");
        return (width_of(name, of) == Width::Narrow).then_some((Condition::Is { place, text }, rest));
    }
    if of == Type::Double {
        return None;
    }
    let ((from, to), rest) = match tokens {
        [between, rest @ ..] if between.is_word("between") => {
            let (low, rest) = number(rest)?;
            let [and, rest @ ..] = rest else { return None };
            let (high, rest) = number(rest).filter(|_| and.is_word("and"))?;
            ((low.range(">=")?.0, high.range("<=")?.1), rest)
        }
        [Token::Sign(sign), rest @ ..] => {
            let (number, rest) = number(rest)?;
            (number.range(sign)?, rest)
        }
        _ => return None,
    };
    Some((Condition::Between { place, from, to }, rest))
}

#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Double(f64),
}

/// A number with or without a sign, and what is behind it.
fn number<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(Number, &'t [Token<'a>])> {
    let (sign, text, rest) = match tokens {
        [Token::Sign("-"), Token::Number(text), rest @ ..] => ("-", text, rest),
        [Token::Number(text), rest @ ..] => ("", text, rest),
        _ => return None,
    };
    let text = format!("{sign}{text}");
    let number = match text.parse::<i64>() {
        Ok(number) => Number::Whole(number),
        Err(_) => Number::Double(text.parse::<f64>().ok().filter(|number| number.abs() < EXACT)?),
    };
    Some((number, rest))
}

impl Number {
    /// The whole numbers for which a comparison with it holds; a range from 1 to 0 if there are none.
    fn range(self, sign: &str) -> Option<(i64, i64)> {
        const NONE: (i64, i64) = (1, 0);
        let (low, high) = match self {
            Self::Whole(number) => (number, number),
            Self::Double(number) => (number.floor() as i64, number.ceil() as i64),
        };
        Some(match sign {
            "=" | "==" if low == high => (low, low),
            "=" | "==" => NONE,
            "<" => high.checked_sub(1).map_or(NONE, |to| (i64::MIN, to)),
            "<=" => (i64::MIN, low),
            ">" => low.checked_add(1).map_or(NONE, |from| (from, i64::MAX)),
            ">=" => (high, i64::MAX),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod generated;
#[cfg(test)]
mod tests;
