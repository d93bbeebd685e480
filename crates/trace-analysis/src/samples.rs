//! The measurements of a test specification: samples from events.
//!
//! Events are kept until all of them are there, since they have to be processed in the order of their times;
//! only those that some measurement may need, in 48 bytes each.
//= docs/measure.md#samples

use serde::Deserialize;
use std::collections::HashMap;
use std::io::Read;
use trace_reader::item::{Event, EventKind, Koid, Value};
use trace_reader::{Item, ReadError, Reader};

/// The measured quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The durations of spans with a name.
    Duration(Exactly),
    /// From one event to the next of another kind.
    #[expect(missing_docs, reason = "their names say it")]
    TimeBetween { first: Exactly, first_anchor: Anchor, second: Exactly, second_anchor: Anchor },
    /// The values of an argument.
    #[expect(missing_docs, reason = "their names say it")]
    ArgumentValue { event: Exactly, argument: String },
}

/// Selects events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exactly {
    /// By their name.
    pub name: String,
    /// By their category.
    pub category: String,
}

/// Selects an end of a span.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Anchor {
    /// Its begin.
    #[default]
    Begin,
    /// Its end.
    End,
}

/// The results of measuring a trace.
#[derive(Debug)]
pub struct Measured {
    /// The samples of each measurement.
    pub samples: Vec<Vec<f64>>,
    /// Why the rest of the trace could not be read.
    pub stopped: Option<ReadError>,
}

/// Takes the samples of all measurements.
///
/// # Errors
/// The input is no trace.
pub fn measure(quantities: &[&Quantity], mut input: impl Read) -> Result<Measured, ReadError> {
    read(quantities, &mut input)
}

fn read(quantities: &[&Quantity], input: &mut dyn Read) -> Result<Measured, ReadError> {
    let mut samples = Samples::new(quantities);
    let mut reader = Reader::new(input)?;
    let mut has_content = false;
    let stopped = loop {
        match reader.next_item() {
            Ok(Some(resolved)) => {
                has_content |= resolved.item.is_content();
                if let Item::Event(event) = resolved.item {
                    samples.push(&event);
                }
            }
            Ok(None) => break None,
            Err(error) if has_content => break Some(error),
            Err(error) => return Err(error),
        }
    };
    Ok(Measured { samples: samples.finish(), stopped })
}

/// The shape of an event, as far as measurements use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shape {
    Instant,
    /// With its end.
    Complete(u64),
    Begin,
    End,
    /// Of an asynchronous operation or a flow.
    SpanBegin(SpanKind, u64),
    SpanEnd(SpanKind, u64),
    /// Only its argument counts.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SpanKind {
    Async,
    Flow,
}

/// The kept part of an event.
struct Kept {
    at: u64,
    shape: Shape,
    thread: (Koid, Koid),
    /// Category and name.
    what: u32,
    /// An argument for a measurement.
    argument: Option<(u32, u64)>,
}

struct Samples<'a> {
    quantities: &'a [&'a Quantity],
    /// Ends of durations close the innermost open one, so all of them count if durations are measured.
    has_durations: bool,
    whats: HashMap<(Vec<u8>, Vec<u8>), u32>,
    /// By number of category and name: whether some measurement names it.
    is_named: Vec<bool>,
    kept: Vec<Kept>,
}

fn nanos(event: &Event<'_>) -> u64 {
    event.time.nanos().0
}

impl Exactly {
    fn matches(&self, category: &[u8], name: &[u8]) -> bool {
        self.category.as_bytes() == category && self.name.as_bytes() == name
    }
}

impl<'a> Samples<'a> {
    fn new(quantities: &'a [&'a Quantity]) -> Self {
        let is_duration = |quantity: &&Quantity| matches!(quantity, Quantity::Duration(_));
        Self {
            quantities,
            has_durations: quantities.iter().any(is_duration),
            whats: HashMap::new(),
            is_named: Vec::new(),
            kept: Vec::new(),
        }
    }

    fn what(&mut self, event: &Event<'_>) -> u32 {
        let key = (event.category.as_bytes().to_vec(), event.name.as_bytes().to_vec());
        if let Some(what) = self.whats.get(&key) {
            return *what;
        }
        let is_named = self.quantities.iter().any(|quantity| match quantity {
            Quantity::Duration(event) | Quantity::ArgumentValue { event, .. } => {
                event.matches(&key.0, &key.1)
            }
            Quantity::TimeBetween { first, second, .. } => {
                first.matches(&key.0, &key.1) || second.matches(&key.0, &key.1)
            }
        });
        self.is_named.push(is_named);
        let what = u32::try_from(self.is_named.len() - 1).unwrap_or(u32::MAX);
        self.whats.insert(key, what);
        what
    }

    /// Adds an event.
    fn push(&mut self, event: &Event<'_>) {
        let what = self.what(event);
        let shape = match event.kind {
            EventKind::Instant { .. } => Shape::Instant,
            EventKind::DurationComplete { end } => Shape::Complete(end.to_nanos(event.time.rate).0),
            EventKind::DurationBegin => Shape::Begin,
            EventKind::DurationEnd => Shape::End,
            EventKind::AsyncBegin { id } => Shape::SpanBegin(SpanKind::Async, id),
            EventKind::AsyncEnd { id } => Shape::SpanEnd(SpanKind::Async, id),
            EventKind::FlowBegin { id } => Shape::SpanBegin(SpanKind::Flow, id),
            EventKind::FlowEnd { id } => Shape::SpanEnd(SpanKind::Flow, id),
            _ => Shape::Other,
        };
        let nests = self.has_durations && matches!(shape, Shape::Begin | Shape::End);
        if self.is_named[what as usize] || nests {
            let thread = (event.thread.process, event.thread.thread);
            self.kept.push(Kept { at: nanos(event), shape, thread, what, argument: self.argument(event) });
        }
    }

    /// An event feeds the first measurement of an argument that matches it.
    fn argument(&self, event: &Event<'_>) -> Option<(u32, u64)> {
        (0..).zip(self.quantities).find_map(|(index, quantity)| match quantity {
            Quantity::ArgumentValue { event: pattern, argument }
                if pattern.matches(event.category.as_bytes(), event.name.as_bytes()) =>
            {
                match event.arguments.find(argument) {
                    Some(Value::Uint64(value)) => Some((index, value)),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    /// The samples of each measurement.
    fn finish(mut self) -> Vec<Vec<f64>> {
        // Events of one time keep the order of the file.
        self.kept.sort_by_key(|kept| kept.at);
        let names: HashMap<u32, &(Vec<u8>, Vec<u8>)> =
            self.whats.iter().map(|(key, what)| (*what, key)).collect();
        let is = |pattern: &Exactly, what: u32| {
            names.get(&what).is_some_and(|(category, name)| pattern.matches(category, name))
        };
        let spans = if self.has_durations { spans(&self.kept) } else { Vec::new() };
        let measure = |(index, quantity): (u32, &&Quantity)| match quantity {
            Quantity::Duration(pattern) => {
                let of_pattern = spans.iter().filter(|(what, _)| is(pattern, *what));
                of_pattern.map(|(_, nanos)| millis(*nanos)).collect()
            }
            Quantity::TimeBetween { first, first_anchor, second, second_anchor } => {
                let first = |kept: &Kept| anchored(kept, *first_anchor).filter(|_| is(first, kept.what));
                let second = |kept: &Kept| anchored(kept, *second_anchor).filter(|_| is(second, kept.what));
                between(&self.kept, first, second)
            }
            Quantity::ArgumentValue { .. } => {
                let values = self.kept.iter().filter_map(|kept| kept.argument);
                values.filter(|(of, _)| *of == index).map(|(_, value)| value as f64).collect()
            }
        };
        (0..).zip(self.quantities).map(measure).collect()
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// All spans that have ended, in the order of their ends: the name of their end, and their length.
fn spans(kept: &[Kept]) -> Vec<(u32, u64)> {
    let mut stacks: HashMap<(Koid, Koid), Vec<u64>> = HashMap::new();
    let mut open: HashMap<(SpanKind, u32, u64), u64> = HashMap::new();
    let mut spans = Vec::new();
    for event in kept {
        match event.shape {
            Shape::Complete(end) => spans.push((event.what, end.saturating_sub(event.at))),
            Shape::Begin => stacks.entry(event.thread).or_default().push(event.at),
            Shape::End => {
                // Any end closes the innermost.
                if let Some(begin) = stacks.get_mut(&event.thread).and_then(Vec::pop) {
                    spans.push((event.what, event.at - begin));
                }
            }
            Shape::SpanBegin(kind, id) => {
                // A second begin of an open span is ignored.
                open.entry((kind, event.what, id)).or_insert(event.at);
            }
            Shape::SpanEnd(kind, id) => {
                if let Some(begin) = open.remove(&(kind, event.what, id)) {
                    spans.push((event.what, event.at - begin));
                }
            }
            Shape::Instant | Shape::Other => {}
        }
    }
    spans
}

/// When an event counts for an anchor, if it does.
fn anchored(kept: &Kept, anchor: Anchor) -> Option<u64> {
    match (kept.shape, anchor) {
        (Shape::Instant, _) => Some(kept.at),
        (Shape::Complete(_) | Shape::Begin | Shape::SpanBegin(..), Anchor::Begin) => Some(kept.at),
        (Shape::Complete(end), Anchor::End) => Some(end),
        (Shape::End | Shape::SpanEnd(..), Anchor::End) => Some(kept.at),
        _ => None,
    }
}

/// From each first event to the next second one; another first one before that replaces the earlier.
fn between(
    kept: &[Kept],
    first: impl Fn(&Kept) -> Option<u64>,
    second: impl Fn(&Kept) -> Option<u64>,
) -> Vec<f64> {
    let mut pending: Option<u64> = None;
    let mut samples = Vec::new();
    for event in kept {
        if let Some(at) = second(event)
            && let Some(begin) = pending.take()
        {
            samples.push(millis(at.saturating_sub(begin)));
        }
        if let Some(at) = first(event) {
            pending = Some(at);
        }
    }
    samples
}
