//! What a scan of a table has to find, as agreed with SQLite when it plans a statement.

use crate::tables::store::{Width, width_of};
use crate::tables::{Kind, Type};

/// A comparison of a column with a value that is known when the scan begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// One of them, of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    pub place: usize,
    pub comparison: Comparison,
}

/// A scan: the rows for which all terms hold, whose values SQLite passes in the same order; and those with
/// equal values in some columns one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub terms: Vec<Term>,
    pub groups: Vec<usize>,
    /// The table's columns that are read, by their bits.
    pub used: u64,
}

/// Columns besides those that are written to files: the trace that a row is of, and where a slice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    Trace,
    End,
}

/// The name of the trace's column, behind all others.
pub const TRACE: &str = "trace";
/// The name of the end's column, where there is one.
pub const END: &str = "ts_end";

/// The computed column at a place behind those of the table.
pub fn computed(kind: Kind, place: usize) -> Option<Computed> {
    match place.checked_sub(kind.table().columns.len())? {
        0 => Some(Computed::Trace),
        _ => Some(Computed::End),
    }
}

/// Whether a table has a column for the ends.
pub fn has_end(kind: Kind) -> bool {
    kind.table().place("dur").is_some()
}

/// The columns of the table that a use of columns needs, by their bits.
pub fn needed(kind: Kind, used: u64) -> u64 {
    let table = kind.table();
    let own = used & ((1 << table.columns.len()) - 1);
    let has_end = used >> (table.columns.len() + 1) & 1 != 0;
    let of_end = ["ts", "dur"].into_iter().filter_map(|name| table.place(name));
    own | if has_end { of_end.map(|place| 1 << place).sum() } else { 0 }
}

/// Whether a term can be tested here.
pub fn is_testable(kind: Kind, Term { place, comparison }: Term) -> bool {
    let is_range = comparison != Comparison::Equal;
    match kind.table().columns.get(place) {
        Some((_, Type::Integer | Type::Unsigned)) => true,
        Some((name, of @ Type::Text)) => !is_range && width_of(name, *of) == Width::Narrow,
        Some((_, Type::Double)) => false,
        None => computed(kind, place) == Some(Computed::End) && is_range,
    }
}

/// Whether rows can be grouped by a column.
pub fn is_groupable(kind: Kind, place: usize) -> bool {
    is_testable(kind, Term { place, comparison: Comparison::Equal })
}

/// Part of the rows that a term is expected to leave.
pub fn share(kind: Kind, Term { place, comparison }: Term) -> f64 {
    let name = kind.table().columns.get(place).map_or("", |(name, _)| *name);
    match (comparison, name) {
        (Comparison::Equal, "id" | "ts" | "async_id" | "flow_id" | "parent_id") => 1e-6,
        (Comparison::Equal, "name" | "tid" | "thread" | "thread_id") => 0.02,
        (Comparison::Equal, _) => 0.2,
        _ => 0.3,
    }
}

const COMPARISONS: [(Comparison, char); 5] = [
    (Comparison::Equal, '='),
    (Comparison::Less, '<'),
    (Comparison::AtMost, '['),
    (Comparison::Greater, '>'),
    (Comparison::AtLeast, ']'),
];

impl Plan {
    /// As text that SQLite keeps: a letter and a place for each term and group, and the columns.
    pub fn encode(&self) -> String {
        let letter = |comparison: Comparison| {
            COMPARISONS.iter().find(|(of, _)| *of == comparison).map_or('=', |(_, letter)| *letter)
        };
        let terms = self.terms.iter().map(|term| format!("{}{} ", letter(term.comparison), term.place));
        let groups = self.groups.iter().map(|place| format!("g{place} "));
        terms.chain(groups).chain([format!("u{}", self.used)]).collect()
    }

    /// The plan that was encoded.
    pub fn decode(text: &str) -> Self {
        let mut plan = Self::default();
        for word in text.split_whitespace() {
            let (letter, number) = word.split_at(1);
            let Ok(number) = number.parse::<u64>() else { continue };
            let place = number as usize;
            let comparison = COMPARISONS.iter().find(|(_, of)| letter.starts_with(*of));
            match (comparison, letter) {
                (Some((comparison, _)), _) => plan.terms.push(Term { place, comparison: *comparison }),
                (None, "g") => plan.groups.push(place),
                (None, _) => plan.used = number,
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_as_text() {
        let term = |place, comparison| Term { place, comparison };
        let terms = COMPARISONS.iter().map(|(comparison, _)| term(11, *comparison)).collect();
        let plan = Plan { terms, groups: vec![7, 0], used: 1 << 63 | 5 };
        assert_eq!(Plan::decode(&plan.encode()), plan);
        assert_eq!(Plan::decode(""), Plan::default());
    }

    #[test]
    fn ends_need_begins_and_lengths() {
        let end = Kind::Slices.table().columns.len() + 1;
        assert_eq!(needed(Kind::Slices, 1 << end | 1 << 7), 1 << 0 | 1 << 1 | 1 << 7);
        assert_eq!(needed(Kind::Slices, 1 << (end - 1)), 0);
    }
}
