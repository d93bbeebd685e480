//! What a door says, as rows of text that can be counted and compared.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// What rows are about. Each is compared by itself, so that a door may be right about one and wrong about
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Slices of threads: track, name, begin, length.
    Slices,
    /// The same with the name of the parent.
    Parents,
    /// The same with their own times.
    SelfTimes,
    /// Slices with the names of their threads.
    Names,
    /// Operations: process, name, begin, length.
    Operations,
    Instants,
    Logs,
    Counters,
    /// Parts of flows.
    Flows,
    /// Arrows from slice to slice.
    Arrows,
    /// Count, sum and greatest length of each name.
    Sums,
    /// The sum of the own times of each name.
    SelfSums,
    /// The own time of each stack of slices.
    Stacks,
    /// Kinds of problems and their numbers.
    Problems,
}

/// So many letters of a row are shown.
const MAX_SHOWN: usize = 120;

/// Rows, each with the number of times that it occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(BTreeMap<String, i64>);

/// The rows of a door about all that it can tell.
pub type Answer = BTreeMap<Class, Rows>;

impl Rows {
    pub fn add(&mut self, row: String) {
        *self.0.entry(row).or_default() += 1;
    }

    /// Rows that are only here, and rows that are only there.
    fn difference(&self, other: &Self) -> (Self, Self) {
        let less = |these: &Self, others: &Self| {
            let rows = these.0.iter().map(|(row, count)| (row, count - others.0.get(row).unwrap_or(&0)));
            Self(rows.filter(|(_, count)| *count > 0).map(|(row, count)| (row.clone(), count)).collect())
        };
        (less(self, other), less(other, self))
    }

    /// Every row, with the number of times that it occurs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(row, count)| (&**row, *count))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, row: &str) -> bool {
        let Some(count) = self.0.get_mut(row) else { return false };
        *count -= 1;
        if *count == 0 {
            self.0.remove(row);
        }
        true
    }
}

impl Display for Rows {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (number, (row, count)) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            let row: String = row.chars().take(MAX_SHOWN).collect();
            let times = if *count == 1 { String::new() } else { format!(" ({count} times)") };
            write!(f, "{separator}{row}{times}")?;
        }
        Ok(())
    }
}

/// What a door should say.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    pub answer: Answer,
    /// A row, and another one that may be in its place where a format cannot hold the first.
    instead: Vec<(Class, String, String)>,
    /// Rows that may be missing.
    optional: Vec<(Class, String)>,
}

impl Expected {
    pub fn add(&mut self, class: Class, row: String) {
        self.answer.entry(class).or_default().add(row);
    }

    pub fn allow(&mut self, class: Class, row: &str, instead: String) {
        self.instead.push((class, row.to_owned(), instead));
    }

    pub fn allow_missing(&mut self, class: Class, row: &str) {
        self.optional.push((class, row.to_owned()));
    }

    /// The rows of a class that a door has left out, and those that it has made up.
    pub fn difference(&self, found: &Answer, class: Class) -> Option<(Rows, Rows)> {
        let none = Rows::default();
        let expected = self.answer.get(&class).unwrap_or(&none);
        let (mut missing, mut extra) = expected.difference(found.get(&class).unwrap_or(&none));
        for (_, row, instead) in self.instead.iter().filter(|(of, ..)| *of == class) {
            if missing.0.contains_key(row) && extra.take(instead) {
                missing.take(row);
            }
        }
        for (_, row) in self.optional.iter().filter(|(of, _)| *of == class) {
            missing.take(row);
        }
        (!missing.is_empty() || !extra.is_empty()).then_some((missing, extra))
    }
}
