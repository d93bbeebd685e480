//! A small language of limits for what is in a trace.
//!
//! `p99(render:frame) < 16ms and lost == 0`: [`Assertion`] is such a line, and [`evaluate`] says whether it
//! holds.
//= docs/stats.md#assertions

pub mod evaluate;
mod parse;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use std::fmt;
use trace_model::Shape;
use trace_model::pattern::{Pattern, Piece};

pub use parse::ParseError;

/// A condition on a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Assertion {
    /// A value and its limit.
    Comparison(Comparison),
    /// All of these.
    And(Vec<Assertion>),
    /// One of these.
    Or(Vec<Assertion>),
}

/// A value and its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The value.
    pub value: Value,
    /// How they are compared.
    pub operator: Operator,
    /// The limit.
    pub limit: Limit,
}

/// A value of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number of what a source has.
    Of(Function, Source),
    /// How many records were lost, of all providers or those with a name.
    Lost(Option<Pattern>),
    /// How many problems reading the trace met.
    Errors,
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// How many.
    Count,
    /// How many for each second of the trace.
    Rate,
    /// Their sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The mean.
    Mean,
    /// The value that this many of a hundred do not exceed.
    Percentile(f64),
}

/// Where values come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// How long durations and operations lasted.
    Events(Selector),
    /// The time of durations without those directly in them.
    SelfTime(Selector),
    /// From the end of one to the begin of the next.
    Gap(Selector),
    /// The values of a counter, of all series or those with a name.
    Counter(Selector, Option<Pattern>),
}

/// Selects events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// By what they are; without a kind, all but polls, of which each name has to be of one kind.
    pub kind: Option<Kind>,
    /// By their category; without one, of any.
    pub category: Option<Pattern>,
    /// By their name.
    pub name: Pattern,
}

/// Kinds of what lasts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Asynchronous operations.
    Operation,
    /// Durations of threads that are no polls.
    Slice,
    /// Durations in which a thread works on an operation.
    Poll,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Operation, Self::Slice, Self::Poll];

    /// As it stands in an assertion.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Slice => "slice",
            Self::Poll => "poll",
        }
    }

    /// The kind of what was recorded in a way.
    pub(crate) const fn of(shape: Shape) -> Self {
        match shape {
            Shape::Operation => Self::Operation,
            Shape::Poll => Self::Poll,
            Shape::Complete | Shape::Pair => Self::Slice,
        }
    }
}

/// A name that both operations and durations have. A percentile of both together would mean nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixed {
    /// The name.
    pub name: String,
    /// How many operations have it.
    pub operations: u64,
    /// How many durations have it.
    pub slices: u64,
}

impl Mixed {
    /// The message with the way out: how an assertion says which kind it means.
    #[must_use]
    pub fn with_choice(&self) -> String {
        let name = Pattern::new([Piece::Text(self.name.clone())]);
        format!("{self}: write operation({name}) or slice({name})")
    }
}

impl fmt::Display for Mixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, operations, slices } = self;
        let name = Pattern::new([Piece::Text(name.clone())]);
        write!(f, "{name} is the name of operations ({operations}) and of durations ({slices})")
    }
}

/// How a value is compared with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Less.
    Less,
    /// Less or equal.
    AtMost,
    /// Greater.
    Greater,
    /// Greater or equal.
    AtLeast,
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The number.
    pub number: f64,
    /// The unit.
    pub unit: Option<Unit>,
}

/// A unit of limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    text: &'static str,
    dimension: Dimension,
    factor: f64,
}

/// What is measured in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Size,
    /// Hundredths.
    Share,
}

impl Unit {
    const ALL: [Self; 10] = [
        Self::new("ns", Dimension::Time, 1.0),
        Self::new("us", Dimension::Time, 1e3),
        Self::new("ms", Dimension::Time, 1e6),
        Self::new("s", Dimension::Time, 1e9),
        Self::new("B", Dimension::Size, 1.0),
        Self::new("kB", Dimension::Size, 1e3),
        Self::new("MB", Dimension::Size, 1e6),
        Self::new("KiB", Dimension::Size, 1024.0),
        Self::new("MiB", Dimension::Size, 1_048_576.0),
        Self::new("%", Dimension::Share, 1.0),
    ];

    const fn new(text: &'static str, dimension: Dimension, factor: f64) -> Self {
        Self { text, dimension, factor }
    }

    /// What it measures, and how many of the smallest units it has.
    #[must_use]
    pub const fn factor(self) -> (Dimension, f64) {
        (self.dimension, self.factor)
    }
}

impl Limit {
    /// In nanoseconds, bytes or percent.
    #[must_use]
    pub fn base(self) -> f64 {
        self.number * self.unit.map_or(1.0, |unit| unit.factor().1)
    }
}

impl Operator {
    const ALL: [Self; 6] =
        [Self::AtMost, Self::AtLeast, Self::Equal, Self::NotEqual, Self::Less, Self::Greater];

    const fn text(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }
}

impl Value {
    /// Whether it is a time; a counter's value may be anything.
    pub(crate) const fn is_time(&self) -> bool {
        matches!(
            self,
            Self::Of(
                Function::Sum | Function::Min | Function::Max | Function::Mean | Function::Percentile(_),
                Source::Events(_) | Source::SelfTime(_) | Source::Gap(_)
            )
        )
    }

    /// Whether it is a plain number.
    pub(crate) const fn is_number(&self) -> bool {
        matches!(self, Self::Of(Function::Count | Function::Rate, _) | Self::Lost(_) | Self::Errors)
    }
}

impl Source {
    /// What it selects.
    #[must_use]
    pub const fn selector(&self) -> &Selector {
        match self {
            Self::Events(selector)
            | Self::SelfTime(selector)
            | Self::Gap(selector)
            | Self::Counter(selector, _) => selector,
        }
    }
}

impl Selector {
    /// Whether it selects events of a category and a name.
    #[must_use]
    pub fn matches(&self, category: &str, name: &str) -> bool {
        self.name.matches(name)
            && self.category.as_ref().is_none_or(|pattern| pattern.matches_category(category))
    }

    /// Whether it selects what is of a kind, if it has a matching category and name.
    pub(crate) fn is_for(&self, kind: Kind) -> bool {
        self.kind.map_or(kind != Kind::Poll, |wanted| wanted == kind)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = self.kind {
            write!(f, "{}(", kind.text())?;
        }
        if let Some(category) = &self.category {
            write!(f, "{category}:")?;
        }
        write!(f, "{}", self.name)?;
        if self.kind.is_some() { write!(f, ")") } else { Ok(()) }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(selector) => write!(f, "{selector}"),
            Self::SelfTime(selector) => write!(f, "self({selector})"),
            Self::Gap(selector) => write!(f, "gap({selector})"),
            Self::Counter(selector, None) => write!(f, "counter({selector})"),
            Self::Counter(selector, Some(series)) => write!(f, "counter({selector}.{series})"),
        }
    }
}

impl Function {
    /// All but percentiles, with their words.
    const NAMED: [(&str, Self); 6] = [
        ("count", Self::Count),
        ("rate", Self::Rate),
        ("sum", Self::Sum),
        ("min", Self::Min),
        ("max", Self::Max),
        ("mean", Self::Mean),
    ];
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, Self::NAMED.iter().find(|(_, of)| of == self)) {
            (Self::Percentile(percent), _) => write!(f, "p{percent}"),
            (_, named) => write!(f, "{}", named.map_or("", |(word, _)| word)),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(function, source) => write!(f, "{function}({source})"),
            Self::Lost(None) => write!(f, "lost"),
            Self::Lost(Some(provider)) => write!(f, "lost({provider})"),
            Self::Errors => write!(f, "errors"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.unit.map_or("", |unit| unit.text))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.value, self.operator.text(), self.limit)
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, word) = match self {
            Self::Comparison(comparison) => return write!(f, "{comparison}"),
            Self::And(parts) => (parts, " and "),
            Self::Or(parts) => (parts, " or "),
        };
        for (place, part) in parts.iter().enumerate() {
            if place > 0 {
                write!(f, "{word}")?;
            }
            match part {
                Self::Comparison(comparison) => write!(f, "{comparison}")?,
                _ => write!(f, "({part})")?,
            }
        }
        Ok(())
    }
}
