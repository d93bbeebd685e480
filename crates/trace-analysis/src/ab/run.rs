//! The numbers of one recording.

use crate::names::Whats;
use crate::quantiles::Budget;
use crate::spans::{Span, Unfinished};
use crate::stats::{Spread, Statistic};
use crate::walk::{Visitor, walk};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use trace_format::scopes::Ending;
use trace_model::{Chosen, Shape};
use trace_reader::{Disorder, ReadError};

/// Durations of a thread that wait for what encloses them. Beyond that, the older half counts as outside.
const MAX_WAITING: usize = 1 << 16;

/// A category and a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Whether it is of asynchronous operations.
    pub is_operation: bool,
    /// The category.
    pub category: String,
    /// The name.
    pub name: String,
}

/// The durations of a name in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// The statistic; none without an ended duration, or without memory for it.
    pub value: Option<f64>,
    /// Those that have ended.
    pub count: u64,
    /// Those that have not.
    pub unfinished: u64,
    /// The time of all that have ended, in nanoseconds.
    pub total: u64,
    /// The time of the durations directly inside them, by name, in nanoseconds.
    pub inside: BTreeMap<Name, u64>,
}

/// The numbers of one recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// By name.
    pub names: BTreeMap<Name, Numbers>,
    /// What is missing in it, in a few words each.
    pub missing: Vec<String>,
}

impl Run {
    /// The numbers of what is chosen of an archive. Parts of a duration need not be chosen themselves.
    ///
    /// # Errors
    /// As [`walk`].
    pub fn of(
        mut input: impl Read,
        disorder: &Disorder,
        chosen: Option<&Chosen>,
        statistic: Statistic,
    ) -> Result<Self, ReadError> {
        Self::read(&mut input, disorder, chosen, statistic)
    }

    fn read(
        input: &mut dyn Read,
        disorder: &Disorder,
        chosen: Option<&Chosen>,
        statistic: Statistic,
    ) -> Result<Self, ReadError> {
        let (summing, walked) = walk(input, disorder, chosen, Summing::default())?;
        let whats = &walked.whats;
        let name = |what: u32, is_operation| Name {
            is_operation,
            category: whats.category(what).to_owned(),
            name: whats.name(what).to_owned(),
        };
        let mut names: BTreeMap<Name, Numbers> = BTreeMap::new();
        for ((what, is_operation), spread) in summing.spreads {
            let numbers = names.entry(name(what, is_operation)).or_default();
            numbers.value = (spread.count > 0).then(|| statistic.of(&spread)).flatten();
            (numbers.count, numbers.unfinished) = (spread.count, spread.unfinished);
            numbers.total = u64::try_from(spread.total).unwrap_or(u64::MAX);
        }
        for ((outer, inner), time) in summing.inside {
            names.entry(name(outer, false)).or_default().inside.insert(name(inner, false), time);
        }
        Ok(Self { names, missing: walked.losses.reasons() })
    }
}

/// A duration that has ended: its begin, its time and its name.
type Waiting = (u64, u64, u32);

#[derive(Default)]
struct Summing {
    spreads: HashMap<(u32, bool), Spread>,
    /// By thread.
    waiting: Vec<Vec<Waiting>>,
    /// The time of inner durations, by the outer name and the inner one.
    inside: HashMap<(u32, u32), u64>,
    budget: Budget,
}

impl Visitor for Summing {
    /// Durations of a thread come in the order of their ends, so that those inside another have come before.
    fn span(&mut self, span: &Span, _whats: &Whats) {
        if span.shape != Shape::Poll {
            let key = (span.what, span.shape == Shape::Operation);
            self.spreads.entry(key).or_default().push(span, &mut self.budget);
        }
        self.part(span, true);
    }

    fn left_out(&mut self, span: &Span) {
        self.part(span, false);
    }

    fn unfinished(&mut self, open: &Unfinished, _whats: &Whats) {
        if open.shape != Shape::Poll {
            let is_left_out = open.ending.is_some_and(|(ending, _)| ending != Ending::Death);
            let spread = self.spreads.entry((open.what, open.shape == Shape::Operation)).or_default();
            spread.unfinished += u64::from(!is_left_out);
        }
    }
}

impl Summing {
    /// A duration, which is a part of one around it, and may have parts that count.
    fn part(&mut self, span: &Span, has_parts: bool) {
        if span.shape == Shape::Operation {
            return;
        }
        let thread = span.thread as usize;
        if self.waiting.len() <= thread {
            self.waiting.resize_with(thread + 1, Vec::new);
        }
        let waiting = &mut self.waiting[thread];
        while let Some((_, time, inner)) = waiting.pop_if(|(begin, ..)| *begin >= span.begin) {
            if !has_parts {
                continue;
            }
            let sum = self.inside.entry((span.what, inner)).or_default();
            *sum = sum.saturating_add(time);
        }
        if waiting.len() >= MAX_WAITING {
            waiting.drain(..MAX_WAITING / 2);
        }
        waiting.push((span.begin, span.duration(), span.what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Archive;
    use trace_format::event::EventKind;

    fn name(name: &str) -> Name {
        Name { is_operation: false, category: "c".into(), name: name.into() }
    }

    //= docs/ab.md#parts
    #[test]
    fn what_lies_directly_inside_counts_for_its_outer_duration() {
        let archive = Archive::new()
            .complete(1, "leaf", 10, 20)
            .complete(1, "leaf", 30, 45)
            .complete(1, "inner", 5, 50)
            .complete(2, "elsewhere", 20, 40)
            .complete(1, "leaf", 60, 61)
            .complete(1, "outer", 0, 100)
            .event(1, "open", EventKind::DurationBegin, 200);
        let run = Run::of(archive.bytes(), &Disorder::default(), None, Statistic::Percentile(50.0)).unwrap();
        assert!(run.missing.is_empty());
        let inside = |outer: &str| -> Vec<(String, u64)> {
            run.names[&name(outer)].inside.iter().map(|(name, time)| (name.name.clone(), *time)).collect()
        };
        assert_eq!(inside("outer"), [("inner".to_owned(), 45), ("leaf".to_owned(), 1)]);
        assert_eq!(inside("inner"), [("leaf".to_owned(), 25)]);
        assert_eq!((inside("leaf"), inside("elsewhere")), (vec![], vec![]));
        let of = |text: &str| {
            let numbers = &run.names[&name(text)];
            (numbers.value, numbers.count, numbers.unfinished, numbers.total)
        };
        assert_eq!(of("leaf"), (Some(10.0), 3, 0, 26));
        assert_eq!(of("open"), (None, 0, 1, 0));
    }

    #[test]
    fn losses_are_named() {
        let archive = Archive::new().complete(1, "leaf", 10, 20).loss(7);
        let run = Run::of(archive.bytes(), &Disorder::default(), None, Statistic::Count).unwrap();
        assert_eq!(run.missing.len(), 1, "{:?}", run.missing);
        assert_eq!(run.names[&name("leaf")].value, Some(1.0));
    }
}
