//! Groups of rows, with what is asked of each.

use crate::tables::store::{Block, Texts, Watcher};
use crate::tables::{Kind, Type};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::io;

/// Most groups; SQLite does the grouping if there are more.
const MAX_GROUPS: usize = 1 << 16;
/// Values of the first column whose groups are found by an index.
const DENSE: usize = 1 << 14;

/// What is asked of the values of a column in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Count,
    Sum,
    Total,
    Mean,
    Least,
    Greatest,
}

/// What a row has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A number with a sign is in a range.
    Between { place: usize, from: i64, to: i64 },
    /// A column has a text.
    Is { place: usize, text: String },
    /// A column has a value, or none.
    IsThere { place: usize, is_there: bool },
}

impl Condition {
    pub const fn place(&self) -> usize {
        match self {
            Self::Between { place, .. } | Self::Is { place, .. } | Self::IsThere { place, .. } => *place,
        }
    }
}

/// Groups of a table's rows: those with equal values in the columns `keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub kind: Kind,
    pub conditions: Vec<Condition>,
    pub keys: Vec<usize>,
    /// Functions, and their columns; of none, the rows are counted.
    pub values: Vec<(Function, Option<usize>)>,
}

impl Question {
    /// The columns that it needs, by their bits.
    pub fn columns(&self) -> u64 {
        let conditions = self.conditions.iter().map(Condition::place);
        let values = self.values.iter().filter_map(|(_, place)| *place);
        conditions
            .chain(self.keys.iter().copied())
            .chain(values)
            .fold(0, |columns, place| columns | 1 << place)
    }
}

/// A value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Null,
    Integer(i64),
    Double(f64),
    Text(String),
}

/// A condition whose text has become its number.
enum Test {
    Between(i64, i64),
    Is(u64),
    IsThere(bool),
}

impl Test {
    #[inline]
    fn holds(&self, value: Option<u64>) -> bool {
        match self {
            Self::Between(from, to) => value.is_some_and(|value| (*from..=*to).contains(&(value as i64))),
            Self::Is(text) => value == Some(*text),
            Self::IsThere(is_there) => value.is_some() == *is_there,
        }
    }
}

/// The groups by the values of a column, within those by the columns before.
#[derive(Default)]
struct Key {
    /// By the number of a text, from 0: the group, from 1. Only of the first column.
    dense: Vec<u32>,
    numbers: HashMap<(u32, Option<u64>), u32, foldhash::fast::RandomState>,
    last: Option<((u32, Option<u64>), u32)>,
    /// By group: the group before, and the value.
    groups: Vec<(u32, Option<u64>)>,
}

impl Key {
    #[inline]
    fn number(&mut self, before: u32, value: Option<u64>, is_first_text: bool) -> u32 {
        if is_first_text
            && let Some(text) = value
            && (text as usize) < DENSE
        {
            let place = text as usize;
            if place >= self.dense.len() {
                self.dense.resize(place + 1, 0);
            }
            if self.dense[place] == 0 {
                self.groups.push((before, value));
                self.dense[place] = self.groups.len() as u32;
            }
            return self.dense[place] - 1;
        }
        let of = (before, value);
        if let Some((last, number)) = self.last
            && last == of
        {
            return number;
        }
        let next = self.groups.len() as u32;
        let number = *self.numbers.entry(of).or_insert(next);
        if number == next {
            self.groups.push(of);
        }
        self.last = Some((of, number));
        number
    }
}

/// What is known of the values of a column in a group.
#[derive(Clone, Copy, Default)]
struct State {
    count: u64,
    value: i64,
}

/// Takes rows, and groups them.
pub struct Grouping<'a> {
    question: &'a Question,
    tests: Vec<(usize, Test)>,
    keys: Vec<Key>,
    /// By group, how many rows it has.
    rows: Vec<u64>,
    /// By group and function.
    states: Vec<State>,
    /// SQLite has to answer.
    has_given_up: bool,
}

impl<'a> Grouping<'a> {
    /// None if a text of a condition has no number.
    pub fn new(question: &'a Question, mut number: impl FnMut(&str) -> Option<u64>) -> Option<Self> {
        let mut tests = Vec::new();
        for condition in &question.conditions {
            let test = match condition {
                Condition::Between { from, to, .. } => Test::Between(*from, *to),
                Condition::Is { text, .. } => Test::Is(number(text)?),
                Condition::IsThere { is_there, .. } => Test::IsThere(*is_there),
            };
            tests.push((condition.place(), test));
        }
        let (keys, rows, states) = (Vec::new(), Vec::new(), Vec::new());
        let mut grouping = Self { question, tests, keys, rows, states, has_given_up: false };
        grouping.again();
        Some(grouping)
    }

    fn has_texts(&self) -> bool {
        let Question { kind, conditions, keys, .. } = self.question;
        let mut keys = keys.iter();
        keys.any(|place| is_text(*kind, *place))
            || conditions.iter().any(|c| matches!(c, Condition::Is { .. }))
    }

    /// The groups in the order of their values, with the values and what is asked; none if SQLite has to
    /// answer.
    pub fn finish(self, texts: &Texts) -> Option<Vec<Vec<Answer>>> {
        if self.has_given_up || self.has_texts() && texts.has_unnumbered() {
            return None;
        }
        let Question { kind, keys, values, .. } = self.question;
        let mut groups = Vec::new();
        for (group, rows) in self.rows.iter().enumerate() {
            let mut answers = Vec::new();
            let mut number = group;
            for (key, place) in self.keys.iter().zip(keys).rev() {
                let (before, value) = key.groups.get(number)?;
                answers.push(match value {
                    None => Answer::Null,
                    Some(text) if is_text(*kind, *place) => {
                        Answer::Text(texts.numbered(*text as u32)?.to_owned())
                    }
                    Some(value) => Answer::Integer(*value as i64),
                });
                number = *before as usize;
            }
            answers.reverse();
            let states = &self.states[group * values.len()..][..values.len()];
            answers.extend(values.iter().zip(states).map(|((function, place), state)| match place {
                Some(_) => function.of(*state),
                None => Answer::Integer(*rows as i64),
            }));
            groups.push(answers);
        }
        groups.sort_by(|a, b| {
            let pairs = a.iter().zip(b).take(keys.len());
            pairs.map(|(a, b)| compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        Some(groups)
    }
}

fn is_text(kind: Kind, place: usize) -> bool {
    kind.table().columns.get(place).is_some_and(|(_, of)| *of == Type::Text)
}

/// The order of values of one column.
fn compare(a: &Answer, b: &Answer) -> Ordering {
    match (a, b) {
        (Answer::Null, Answer::Null) => Ordering::Equal,
        (Answer::Null, _) => Ordering::Less,
        (_, Answer::Null) => Ordering::Greater,
        (Answer::Integer(a), Answer::Integer(b)) => a.cmp(b),
        (Answer::Text(a), Answer::Text(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}

impl Function {
    /// Adds a value; false if the sum is too large for SQLite's integers.
    #[inline]
    fn add(self, state: &mut State, value: i64) -> bool {
        let is_first = state.count == 0;
        state.count += 1;
        state.value = match self {
            Self::Count => 0,
            Self::Sum | Self::Total | Self::Mean => match state.value.checked_add(value) {
                Some(sum) => sum,
                None => return false,
            },
            Self::Least if !is_first => state.value.min(value),
            Self::Greatest if !is_first => state.value.max(value),
            Self::Least | Self::Greatest => value,
        };
        true
    }

    /// As SQLite computes it from integers.
    fn of(self, State { count, value }: State) -> Answer {
        match self {
            Self::Count => Answer::Integer(count as i64),
            Self::Total => Answer::Double(value as f64),
            _ if count == 0 => Answer::Null,
            Self::Mean => Answer::Double(value as f64 / count as f64),
            Self::Sum | Self::Least | Self::Greatest => Answer::Integer(value),
        }
    }
}

impl Watcher for Grouping<'_> {
    fn again(&mut self) {
        let Question { keys, values, .. } = self.question;
        self.keys = keys.iter().map(|_| Key::default()).collect();
        // Without columns there is one group, even of no rows.
        let groups = usize::from(keys.is_empty());
        self.rows = vec![0; groups];
        self.states = vec![State::default(); groups * values.len()];
        self.has_given_up = false;
    }

    fn rows(&mut self, kind: Kind, rows: usize, columns: &[(usize, &Block)]) -> io::Result<()> {
        let Self { question, tests, keys, rows: counts, states, has_given_up } = self;
        if kind != question.kind || *has_given_up {
            return Ok(());
        }
        let missing = || io::Error::other("a column is missing");
        let block = |place: usize| {
            let found = columns.iter().find(|(of, _)| *of == place);
            found.map(|(_, block)| *block).ok_or_else(missing)
        };
        let tests =
            tests.iter().map(|(place, test)| Ok((block(*place)?, test))).collect::<io::Result<Vec<_>>>()?;
        let mut groups = Vec::new();
        for (number, (place, key)) in question.keys.iter().zip(keys).enumerate() {
            groups.push((block(*place)?, key, number == 0 && is_text(kind, *place)));
        }
        let mut values = Vec::new();
        for (number, (function, place)) in question.values.iter().enumerate() {
            if let Some(place) = place {
                values.push((number, *function, block(*place)?));
            }
        }
        let each = question.values.len();
        for row in 0..rows {
            if !tests.iter().all(|(block, test)| test.holds(block.get(row))) {
                continue;
            }
            let mut group = 0;
            for (block, key, is_first_text) in &mut groups {
                group = key.number(group, block.get(row), *is_first_text);
            }
            let group = group as usize;
            if group == counts.len() {
                counts.push(0);
                states.resize(counts.len() * each, State::default());
            }
            counts[group] += 1;
            for (number, function, block) in &values {
                if let Some(value) = block.get(row)
                    && !function.add(&mut states[group * each + number], value as i64)
                {
                    *has_given_up = true;
                    return Ok(());
                }
            }
        }
        *has_given_up =
            counts.len() > MAX_GROUPS || groups.iter().any(|(_, key, _)| key.groups.len() > MAX_GROUPS);
        Ok(())
    }
}
