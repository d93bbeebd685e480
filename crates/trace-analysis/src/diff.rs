//! The difference of two archives, by name.

use crate::stats::{Row, Spread, Statistic, Stats};
use std::collections::BTreeMap;

/// One name in two archives.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// The category.
    pub category: &'a str,
    /// The name.
    pub name: &'a str,
    /// Whether it is an asynchronous operation.
    pub is_operation: bool,
    /// In the first archive, if it is there.
    pub before: Option<&'a Spread>,
    /// In the second archive, if it is there.
    pub after: Option<&'a Spread>,
}

/// What is compared of each name.
pub const STATISTICS: [Statistic; 4] =
    [Statistic::Total, Statistic::Mean, Statistic::Percentile(99.0), Statistic::Count];

impl Change<'_> {
    /// By how much a number has changed.
    #[must_use]
    pub fn by(&self, statistic: Statistic) -> f64 {
        statistic.or_zero(self.after) - statistic.or_zero(self.before)
    }
}

/// The names of both archives, which were summed up by name; those that changed most come first.
#[must_use]
pub fn changes<'a>(before: &'a Stats, after: &'a Stats, statistic: Statistic) -> Vec<Change<'a>> {
    let mut changes: BTreeMap<(bool, &str, &str), Change<'a>> = BTreeMap::new();
    for (stats, is_after) in [(before, false), (after, true)] {
        for (rows, is_operation) in [(&stats.durations, false), (&stats.operations, true)] {
            for Row { group, spread } in rows {
                let category = group.category.as_deref().unwrap_or_default();
                let name = group.name.as_deref().unwrap_or_default();
                let new = Change { category, name, is_operation, before: None, after: None };
                let change = changes.entry((is_operation, category, name)).or_insert(new);
                *(if is_after { &mut change.after } else { &mut change.before }) = Some(spread);
            }
        }
    }
    let mut changes: Vec<Change<'a>> = changes.into_values().collect();
    changes.sort_by(|a, b| b.by(statistic).abs().total_cmp(&a.by(statistic).abs()));
    changes
}
