//! Whether assertions hold.
//!
//! What is missing in a trace may be just what an assertion is about. So a comparison that holds for what is
//! there is incomplete, and one that does not hold has failed only if no missing event could make it hold:
//! `Values::bounds` says where the true value lies.
//= docs/stats.md#verdicts

use super::{Assertion, Comparison, Function, Kind, Mixed, Operator, Selector, Source, Value};
use crate::names::Whats;
use crate::quantiles::{Budget, Quantiles};
use crate::spans::{Span, Unfinished};
use crate::walk::{Sample, Visitor, Walked, walk};
use std::collections::HashMap;
use std::io::{self, Read};
use trace_format::scopes::Ending;
use trace_format::units::Offset;
use trace_model::pattern::Pattern;
use trace_model::{Chosen, Shape};
use trace_reader::sorter::{Sorter, words};
use trace_reader::{Disorder, ReadError};

/// The result of an assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It holds.
    Passed,
    /// The trace cannot tell.
    Incomplete,
    /// It does not hold.
    Failed,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The comparison.
    pub comparison: Comparison,
    /// The verdict on it.
    pub verdict: Verdict,
    /// The value of what is in the trace.
    pub value: Option<f64>,
    /// Why the trace cannot tell.
    pub why: Vec<String>,
    /// There was nothing with the selected name.
    pub is_missing: bool,
}

/// The result of an assertion.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The verdict on it.
    pub verdict: Verdict,
    /// Its comparisons.
    pub findings: Vec<Finding>,
}

/// The range in which the true value lies.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    const ANY: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    const fn exactly(value: f64) -> Self {
        Self { low: value, high: value }
    }

    const fn at_least(low: f64) -> Self {
        Self { low, high: f64::INFINITY }
    }

    const fn at_most(high: f64) -> Self {
        Self { low: f64::NEG_INFINITY, high }
    }

    /// Whether a comparison holds for no value of the range.
    fn refute(self, operator: Operator, limit: f64) -> bool {
        let Self { low, high } = self;
        match operator {
            Operator::Less => low >= limit,
            Operator::AtMost => low > limit,
            Operator::Greater => high <= limit,
            Operator::AtLeast => high < limit,
            Operator::Equal => limit < low || limit > high,
            Operator::NotEqual => low == limit && high == limit,
        }
    }
}

impl Operator {
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
            Self::Greater => value > limit,
            Self::AtLeast => value >= limit,
            Self::Equal => value == limit,
            Self::NotEqual => value != limit,
        }
    }
}

/// The values of a source.
#[derive(Debug, Default)]
struct Values {
    /// How many were selected; of gaps, the events around them.
    selected: u64,
    /// How many have a value.
    count: u64,
    /// Instants, and spans that have not ended: they count, and have no duration.
    without: u64,
    unfinished: u64,
    /// How long the longest of all that have not ended had lasted, in nanoseconds.
    open_for: Option<u64>,
    all: Option<Extent>,
    quantiles: Quantiles,
    /// Of durations that one event has recorded: a missing event does not change them.
    certain: Option<Extent>,
    /// A selected name that both operations and durations have.
    mixed: Option<Mixed>,
}

/// The sum and the ends of some values.
#[derive(Clone, Copy, Debug)]
struct Extent {
    sum: f64,
    min: f64,
    max: f64,
}

impl Extent {
    #[inline]
    fn add(known: &mut Option<Self>, value: f64) {
        let Self { sum, min, max } = known.get_or_insert(Self { sum: 0.0, min: value, max: value });
        *sum += value;
        (*min, *max) = (min.min(value), max.max(value));
    }
}

impl Values {
    fn push(&mut self, value: f64, is_certain: bool, budget: &mut Budget) {
        self.count += 1;
        Extent::add(&mut self.all, value);
        self.quantiles.push(value, budget);
        if is_certain {
            Extent::add(&mut self.certain, value);
        }
    }

    /// Everything that occurred.
    const fn occurrences(&self) -> u64 {
        self.count + self.without
    }

    fn of(&self, function: Function, seconds: f64) -> Option<f64> {
        let occurrences = self.occurrences() as f64;
        match (function, self.all) {
            (Function::Count, _) => Some(occurrences),
            (Function::Rate, _) => (seconds > 0.0).then(|| occurrences / seconds),
            (_, None) => None,
            (Function::Sum, Some(all)) => Some(all.sum),
            (Function::Min, Some(all)) => Some(all.min),
            (Function::Max, Some(all)) => Some(all.max),
            (Function::Mean, Some(all)) => Some(all.sum / self.count as f64),
            (Function::Percentile(percent), Some(all)) => {
                // The values of a counter may be no numbers, for which there is no range.
                self.quantiles.percentile(percent).map(|found| found.max(all.min).min(all.max))
            }
        }
    }

    /// Where the true value lies if events are missing.
    //= docs/stats.md#verdicts
    fn bounds(&self, function: Function, source: &Source, has_losses: bool) -> Bounds {
        // A missing event would lie in a gap, and make two of it; or within a duration.
        let certain = match (function, source) {
            (_, Source::Gap(_)) => return Bounds::ANY,
            (Function::Count, _) => return Bounds::at_least(self.occurrences() as f64),
            _ if !has_losses || self.count == 0 => self.all,
            (_, Source::SelfTime(_)) => return Bounds::ANY,
            _ => self.certain,
        };
        match (function, certain) {
            (Function::Sum, Some(certain)) if !matches!(source, Source::Counter(..)) => {
                Bounds::at_least(certain.sum)
            }
            (Function::Min, Some(certain)) => Bounds::at_most(certain.min),
            (Function::Max, Some(certain)) => Bounds::at_least(certain.max),
            _ => Bounds::ANY,
        }
    }
}

/// What an archive has for some assertions.
#[derive(Debug)]
pub struct Evaluation {
    sources: Vec<(Source, Values)>,
    /// What the pass has found besides.
    pub walked: Walked,
    /// More that is missing, such as what an import has left out, each in a few words.
    pub missing: Vec<String>,
    /// Further problems of reading.
    pub errors: u64,
    /// The time that rates are of.
    seconds: f64,
}

impl Evaluation {
    /// Reads an archive for some assertions about what is chosen.
    ///
    /// # Errors
    /// As [`walk`].
    pub fn of(
        mut input: impl Read,
        disorder: &Disorder,
        chosen: Option<&Chosen>,
        assertions: &[Assertion],
    ) -> Result<Self, ReadError> {
        Self::read(&mut input, disorder, chosen, assertions)
    }

    fn read(
        input: &mut dyn Read,
        disorder: &Disorder,
        chosen: Option<&Chosen>,
        assertions: &[Assertion],
    ) -> Result<Self, ReadError> {
        let mut found: Vec<&Source> = Vec::new();
        assertions.iter().for_each(|assertion| sources(assertion, &mut found));
        let mut kept: Vec<Kept> = Vec::new();
        for source in found {
            if !kept.iter().any(|kept| kept.source == *source) {
                let is_gap = matches!(source, Source::Gap(_));
                let starts = is_gap.then(Sorter::default);
                let (values, counts) = (Values::default(), HashMap::new());
                kept.push(Kept { source: source.clone(), values, starts, counts });
            }
        }
        let collecting = Collecting { kept, matching: Vec::new(), budget: Budget::default() };
        let (collecting, walked) = walk(input, disorder, chosen, collecting)?;
        let sources =
            collecting.finish(&walked.whats).map_err(|source| ReadError::Io { offset: Offset(0), source })?;
        let times = walked.times.map(|times| chosen.map_or(times, |chosen| chosen.within(times)));
        let seconds = times.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9);
        Ok(Self { sources, walked, missing: Vec::new(), errors: 0, seconds })
    }

    /// The verdict on an assertion.
    #[must_use]
    pub fn verdict(&self, assertion: &Assertion) -> Outcome {
        let join = |parts: &[Assertion], join: fn(Verdict, Verdict) -> Verdict, start| {
            let outcomes: Vec<Outcome> = parts.iter().map(|part| self.verdict(part)).collect();
            let verdict = outcomes.iter().map(|outcome| outcome.verdict).fold(start, join);
            Outcome { verdict, findings: outcomes.into_iter().flat_map(|outcome| outcome.findings).collect() }
        };
        match assertion {
            Assertion::Comparison(comparison) => {
                let finding = self.finding(comparison);
                Outcome { verdict: finding.verdict, findings: vec![finding] }
            }
            Assertion::And(parts) => join(parts, Verdict::max, Verdict::Passed),
            Assertion::Or(parts) => join(parts, Verdict::min, Verdict::Failed),
        }
    }

    //= docs/stats.md#verdicts
    fn finding(&self, comparison: &Comparison) -> Finding {
        let (operator, limit) = (comparison.operator, comparison.limit.base());
        let losses = &self.walked.losses;
        let (value, bounds, mut why, is_missing) = match &comparison.value {
            Value::Of(function, source) => self.of_source(*function, source),
            Value::Lost(provider) => {
                let has_name = |name: &str| provider.as_ref().is_none_or(|pattern| pattern.matches(name));
                let is_there = losses.providers.iter().any(|name| has_name(name));
                let lost = losses.lost(has_name) as f64;
                let may_be_more = losses.may_be_more() || !self.missing.is_empty();
                let why = may_be_more.then(|| "more may be lost than the trace reports".to_owned());
                let bounds = if may_be_more { Bounds::at_least(lost) } else { Bounds::exactly(lost) };
                match provider {
                    Some(_) if !is_there => (None, Bounds::ANY, vec![no_provider(&losses.providers)], false),
                    _ => (Some(lost), bounds, Vec::from_iter(why), false),
                }
            }
            Value::Errors => {
                let errors = (losses.errors() + self.errors) as f64;
                (Some(errors), Bounds::exactly(errors), Vec::new(), false)
            }
        };
        let verdict = match value {
            _ if bounds.refute(operator, limit) => Verdict::Failed,
            Some(value) if why.is_empty() && operator.holds(value, limit) => Verdict::Passed,
            _ => Verdict::Incomplete,
        };
        // What breaks a limit need not have ended.
        let is_kept = value.is_some_and(|value| operator.holds(value, limit));
        let value = match verdict {
            Verdict::Failed if (value.is_none() || is_kept) && bounds.low.is_finite() => Some(bounds.low),
            _ => value,
        };
        if verdict != Verdict::Incomplete {
            why.clear();
        }
        Finding { comparison: comparison.clone(), verdict, value, why, is_missing }
    }

    /// The value of a source, its bounds, why they are not the value, and whether there was nothing of it.
    fn of_source(&self, function: Function, source: &Source) -> (Option<f64>, Bounds, Vec<String>, bool) {
        let none = Values::default();
        let values =
            self.sources.iter().find(|(known, _)| known == source).map_or(&none, |(_, values)| values);
        if let Some(mixed) = &values.mixed {
            return (None, Bounds::ANY, vec![mixed.with_choice()], false);
        }
        let value = values.of(function, self.seconds);
        let mut why: Vec<String> =
            self.walked.losses.reasons().into_iter().chain(self.missing.clone()).collect();
        if self.walked.dropped_begins > 0 {
            why.push("too many spans were open at a time".to_owned());
        }
        if self.walked.other_names > 0 {
            why.push("the trace has too many names to distinguish them".to_owned());
        }
        let category = source.selector().category.as_ref().and_then(Pattern::exact);
        let is_left_out =
            |one: &&str| values.selected == 0 && self.walked.losses.recordings.have_left_out(one);
        if let Some(category) = category.filter(is_left_out) {
            why.push(format!("the category {category} was not recorded"));
        }
        let has_losses = !why.is_empty();
        let is_counted = matches!(function, Function::Count | Function::Rate);
        if values.unfinished > 0 && (!is_counted || matches!(source, Source::Gap(_))) {
            why.push(match values.unfinished {
                1 => "one of them has not ended".to_owned(),
                count => format!("{count} of them have not ended"),
            });
        }
        // Those that had not ended are left out, and had lasted so long by then.
        let open_for = match (function, source) {
            (Function::Max, Source::Events(_)) => values.open_for.map(|nanos| nanos as f64),
            _ => None,
        };
        let with_open = |bounds: Bounds| match open_for {
            Some(open) if open > bounds.low => Bounds::at_least(open),
            _ => bounds,
        };
        let is_missing = values.selected == 0;
        if value.is_none() {
            let what = match (function, source) {
                (Function::Rate, _) => "the trace has no length",
                _ if values.count > 0 => "too many different values for percentiles",
                (_, Source::Counter(..)) => "no such counter",
                (_, Source::Gap(_)) if !is_missing => "there is no gap between them",
                _ if is_missing => "no such event",
                _ => "none of them has a duration",
            };
            why.insert(0, what.to_owned());
            return (None, with_open(Bounds::ANY), why, is_missing);
        }
        let bounds = match (why.is_empty(), value) {
            (true, Some(value)) => Bounds::exactly(value),
            _ => values.bounds(function, source, has_losses),
        };
        (value, with_open(bounds), why, is_missing)
    }
}

/// The sources of an assertion.
fn sources<'a>(assertion: &'a Assertion, found: &mut Vec<&'a Source>) {
    match assertion {
        Assertion::Comparison(Comparison { value: Value::Of(_, source), .. }) => found.push(source),
        Assertion::Comparison(_) => {}
        Assertion::And(parts) | Assertion::Or(parts) => {
            parts.iter().for_each(|part| sources(part, found));
        }
    }
}

/// A source while its values are collected.
struct Kept {
    source: Source,
    values: Values,
    /// For gaps, what begins and ends, by its begin.
    starts: Option<Sorter>,
    /// Without a wanted kind, how many operations and durations each selected name has.
    counts: HashMap<u32, [u64; 2]>,
}

impl Kept {
    /// Whether what lasted is selected, whose category and name are.
    #[inline]
    fn selects(&mut self, what: u32, shape: Shape) -> bool {
        let (kind, selector) = (Kind::of(shape), self.source.selector());
        // Operations have no time of their own.
        let is_without = kind == Kind::Operation && matches!(self.source, Source::SelfTime(_));
        if !selector.is_for(kind) || is_without {
            return false;
        }
        if selector.kind.is_none() {
            self.counts.entry(what).or_default()[usize::from(kind == Kind::Slice)] += 1;
        }
        true
    }

    /// The first selected name that both operations and durations have.
    fn mixed(&self, whats: &Whats) -> Option<Mixed> {
        let mixed = self.counts.iter().filter(|(_, counts)| !counts.contains(&0));
        let (what, [operations, slices]) = mixed.min_by_key(|(what, _)| **what)?;
        Some(Mixed { name: whats.name(*what).to_owned(), operations: *operations, slices: *slices })
    }
}

struct Collecting {
    kept: Vec<Kept>,
    /// Of each pair of category and name, the sources that select it.
    matching: Vec<Box<[u32]>>,
    budget: Budget,
}

/// Where one event follows another: a thread, or for operations a process.
fn line(of: u32, is_operation: bool) -> u64 {
    u64::from(of) << 1 | u64::from(is_operation)
}

impl Collecting {
    #[inline]
    fn select(&mut self, what: u32, whats: &Whats) {
        while self.matching.len() <= what as usize {
            let number = self.matching.len() as u32;
            let (category, name) = (whats.category(number), whats.name(number));
            let matches = |kept: &Kept| {
                let selector: &Selector = kept.source.selector();
                selector.matches(category, name)
            };
            let found = self.kept.iter().enumerate().filter(|(_, kept)| matches(kept));
            self.matching.push(found.map(|(place, _)| place as u32).collect());
        }
    }

    /// Around gaps.
    fn gap(kept: &mut Kept, line: u64, begin: u64, end: u64) {
        let words = [line, begin, end].map(u64::to_le_bytes);
        if let Some(starts) = &mut kept.starts {
            starts.push(begin, words.as_flattened());
        }
    }

    /// Gaps, in the order of begins.
    //= docs/stats.md#gaps
    fn finish(self, whats: &Whats) -> io::Result<Vec<(Source, Values)>> {
        let mut budget = self.budget;
        let mut sources = Vec::new();
        for kept in self.kept {
            let mixed = kept.mixed(whats);
            let Kept { source, mut values, starts, .. } = kept;
            values.mixed = mixed;
            if let Some(starts) = starts {
                let mut ends: HashMap<u64, u64> = HashMap::new();
                starts.finish(|bytes| {
                    let ([line, begin, end], _) = words(bytes)?;
                    let last = ends.get(&line).copied();
                    if let Some(gap) = last.and_then(|last| begin.checked_sub(last)) {
                        values.push(gap as f64, false, &mut budget);
                    }
                    ends.insert(line, last.map_or(end, |last| last.max(end)));
                    Ok(())
                })?;
            }
            sources.push((source, values));
        }
        Ok(sources)
    }
}

impl Visitor for Collecting {
    #[inline]
    fn span(&mut self, span: &Span, whats: &Whats) {
        self.select(span.what, whats);
        let Self { kept, matching, budget } = self;
        for place in &matching[span.what as usize] {
            let kept = &mut kept[*place as usize];
            if !kept.selects(span.what, span.shape) {
                continue;
            }
            let is_complete = span.shape == Shape::Complete;
            kept.values.selected += 1;
            match &kept.source {
                Source::Events(_) => kept.values.push(span.duration() as f64, is_complete, budget),
                Source::SelfTime(_) => kept.values.push(span.own as f64, false, budget),
                Source::Gap(_) => {
                    let is_operation = span.shape == Shape::Operation;
                    let of = if is_operation { span.process } else { span.thread };
                    Self::gap(kept, line(of, is_operation), span.begin, span.end);
                }
                Source::Counter(..) => {}
            }
        }
    }

    fn unfinished(&mut self, open: &Unfinished, whats: &Whats) {
        self.select(open.what, whats);
        for place in &self.matching[open.what as usize] {
            let kept = &mut self.kept[*place as usize];
            let is_gap = matches!(kept.source, Source::Gap(_));
            if !matches!(kept.source, Source::Counter(..)) && kept.selects(open.what, open.shape) {
                kept.values.selected += 1;
                kept.values.without += u64::from(!is_gap);
                if let Some((ending, lasted)) = open.ending {
                    kept.values.open_for = kept.values.open_for.max(lasted);
                    // The recording is complete without its end.
                    if ending != Ending::Death {
                        continue;
                    }
                }
                kept.values.unfinished += 1;
            }
        }
    }

    fn instant(&mut self, what: u32, thread: u32, at: u64, whats: &Whats) {
        self.select(what, whats);
        for place in &self.matching[what as usize] {
            let kept = &mut self.kept[*place as usize];
            if kept.source.selector().kind.is_some() {
                continue;
            }
            kept.values.selected += 1;
            match &kept.source {
                Source::Events(_) => kept.values.without += 1,
                Source::Gap(_) => Self::gap(kept, line(thread, false), at, at),
                Source::SelfTime(_) | Source::Counter(..) => {}
            }
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, _whats: &Whats) {
        let Self { kept, matching, budget } = self;
        for place in &matching[sample.what as usize] {
            let kept = &mut kept[*place as usize];
            let is_wanted =
                |series: &Option<Pattern>| series.as_ref().is_none_or(|series| series.matches(sample.series));
            if matches!(&kept.source, Source::Counter(_, series) if is_wanted(series)) {
                kept.values.selected += 1;
                kept.values.push(sample.value, true, budget);
            }
        }
    }

    fn wants_samples(&mut self, what: u32, whats: &Whats) -> bool {
        self.select(what, whats);
        let is_counter = |place: &u32| matches!(self.kept[*place as usize].source, Source::Counter(..));
        self.matching[what as usize].iter().any(is_counter)
    }
}

/// Most names of providers in a message.
const MAX_NAMED: usize = 5;

/// That no provider has a name, and which ones there are.
fn no_provider(names: &[String]) -> String {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let more = if names.len() > MAX_NAMED { ", …" } else { "" };
    names.truncate(MAX_NAMED);
    match names.is_empty() {
        true => "no such program: the trace has none".to_owned(),
        false => format!("no such program; there are {}{more}", names.join(", ")),
    }
}
