//! Which part of a duration accounts for its change: its own time, or that of durations directly inside it.
//= docs/ab.md#parts

use super::interval::middle;
use super::run::{Name, Numbers};
use std::collections::BTreeSet;

/// A part of a duration. Times are nanoseconds for each duration, on average over a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The durations directly inside; none is the own time.
    pub name: Option<Name>,
    /// With the old command.
    pub before: f64,
    /// With the new one.
    pub after: f64,
    /// The middle of the differences of all pairs.
    pub change: f64,
}

/// The parts of a name in pairs of runs, in which it always occurs; those whose time has changed most come
/// first.
#[must_use]
pub fn parts(pairs: &[(&Numbers, &Numbers)]) -> Vec<Part> {
    let inside = pairs.iter().flat_map(|(old, new)| old.inside.keys().chain(new.inside.keys()));
    let names: BTreeSet<&Name> = inside.collect();
    let part = |name: Option<&Name>| {
        let of = |numbers: &Numbers| {
            let time = match name {
                Some(name) => numbers.inside.get(name).copied().unwrap_or(0),
                None => numbers.total.saturating_sub(numbers.inside.values().sum()),
            };
            time as f64 / numbers.count.max(1) as f64
        };
        let (old, new): (Vec<f64>, Vec<f64>) = pairs.iter().map(|(old, new)| (of(old), of(new))).unzip();
        let differences: Vec<f64> = old.iter().zip(&new).map(|(old, new)| new - old).collect();
        Part { name: name.cloned(), before: middle(&old), after: middle(&new), change: middle(&differences) }
    };
    let mut parts: Vec<Part> = names.into_iter().map(Some).chain(std::iter::once(None)).map(part).collect();
    parts.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
    parts
}

/// The part that carries a change in this direction, and its share of what all parts have changed in it.
#[must_use]
pub fn carrier(parts: &[Part], is_more: bool) -> Option<(&Part, f64)> {
    let sign = if is_more { 1.0 } else { -1.0 };
    let all: f64 = parts.iter().map(|part| (part.change * sign).max(0.0)).sum();
    let largest = parts.iter().max_by(|a, b| (a.change * sign).total_cmp(&(b.change * sign)))?;
    (all > 0.0).then(|| (largest, largest.change * sign / all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Name {
        Name { is_operation: false, category: "c".into(), name: name.into() }
    }

    fn numbers(total: u64, inside: &[(&str, u64)]) -> Numbers {
        let inside = inside.iter().map(|(inner, time)| (name(inner), *time)).collect();
        Numbers { count: 10, total, inside, ..Numbers::default() }
    }

    //= docs/ab.md#parts
    #[test]
    fn the_part_that_changed_most_carries_the_change() {
        let old = numbers(1000, &[("a", 300), ("b", 400)]);
        let new = numbers(1200, &[("a", 260), ("b", 590), ("c", 40)]);
        let disturbed = numbers(90_000, &[("a", 300), ("b", 400)]);
        let found = parts(&[(&old, &new), (&old, &new), (&old, &new), (&disturbed, &new)]);
        let found: Vec<(Option<&str>, f64)> =
            found.iter().map(|part| (part.name.as_ref().map(|name| &*name.name), part.change)).collect();
        assert_eq!(found, [(Some("b"), 19.0), (Some("a"), -4.0), (Some("c"), 4.0), (None, 1.0)]);
        let found = parts(&[(&old, &new)]);
        let (largest, share) = carrier(&found, true).unwrap();
        assert_eq!((largest.name.clone(), share), (Some(name("b")), 19.0 / 24.0));
        let (largest, share) = carrier(&found, false).unwrap();
        assert_eq!((largest.name.clone(), share), (Some(name("a")), 1.0));
        assert_eq!(carrier(&parts(&[(&old, &old)]), true), None);
        let own = parts(&[(&numbers(100, &[]), &numbers(150, &[]))]);
        assert_eq!(carrier(&own, true).map(|(part, share)| (part.name.clone(), share)), Some((None, 1.0)));
    }
}
