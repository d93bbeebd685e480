//! The measurements of a test specification: samples from events.
//!
//! Events are kept until all of them are there, since they have to be processed in the order of their times;
//! only those that some measurement may need, in 48 bytes each.
//= docs/measure.md#samples

use crate::assertion::{Kind, Mixed};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use trace_model::{Begin, OperationKey, Pairing, poll_of, token};
use trace_reader::item::{Event, EventKind, Koid, Value};
use trace_reader::{Item, ReadError, Reader, Text, Thread, ThreadNumbers, has_first_poll};

/// The measured quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// How long what has a name lasted: what is of a kind, or all but polls.
    Duration(Exactly, Option<Kind>),
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
    /// Measurements whose name both operations and durations have, by their places.
    pub mixed: Vec<(usize, Mixed)>,
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
    let (samples, mixed) = samples.finish();
    Ok(Measured { samples, mixed, stopped })
}

/// The shape of an event, as far as measurements use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shape {
    Instant,
    /// With its end.
    Complete(u64),
    Begin,
    End,
    OperationBegin(u64),
    OperationEnd(u64),
    FlowBegin(u64),
    FlowEnd(u64),
    /// Only its argument counts.
    Other,
}

/// The kept part of an event.
struct Kept {
    at: u64,
    shape: Shape,
    thread: Thread,
    /// Category and name.
    what: u32,
    /// Of a duration: it is a poll of an operation.
    is_poll: bool,
    /// An argument for a measurement.
    argument: Option<(u32, u64)>,
}

struct Samples<'a> {
    quantities: &'a [&'a Quantity],
    /// An end may have another name than its begin, so all of them count if durations are measured.
    has_durations: bool,
    whats: HashMap<(Vec<u8>, Vec<u8>), u32>,
    /// By number of category and name: whether some measurement names it.
    is_named: Vec<bool>,
    kept: Vec<Kept>,
    /// Durations of which operations say later that they are polls: processes, categories with names, and
    /// begins.
    first_polls: HashSet<(Koid, u32, u64)>,
}

fn nanos(event: &Event<'_>) -> u64 {
    event.time.nanos().0
}

impl Exactly {
    fn matches(&self, category: &[u8], name: &[u8]) -> bool {
        // As everywhere, what is no UTF-8 is replaced.
        Text(category).to_str() == self.category && Text(name).to_str() == self.name
    }
}

impl<'a> Samples<'a> {
    fn new(quantities: &'a [&'a Quantity]) -> Self {
        let is_duration = |quantity: &&Quantity| matches!(quantity, Quantity::Duration(..));
        Self {
            quantities,
            has_durations: quantities.iter().any(is_duration),
            whats: HashMap::new(),
            is_named: Vec::new(),
            kept: Vec::new(),
            first_polls: HashSet::new(),
        }
    }

    fn what(&mut self, event: &Event<'_>) -> u32 {
        let key = (event.category.as_bytes().to_vec(), event.name.as_bytes().to_vec());
        if let Some(what) = self.whats.get(&key) {
            return *what;
        }
        let is_named = self.quantities.iter().any(|quantity| match quantity {
            Quantity::Duration(event, _) | Quantity::ArgumentValue { event, .. } => {
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
        if let EventKind::AsyncBegin { .. } = event.kind
            && has_first_poll(event)
        {
            self.first_polls.insert((event.thread.process, what, nanos(event)));
        }
        let shape = match event.kind {
            EventKind::Instant { .. } => Shape::Instant,
            EventKind::DurationComplete { end } => Shape::Complete(end.to_nanos(event.time.rate).0),
            EventKind::DurationBegin if event.ending().is_some() => Shape::Other,
            EventKind::DurationBegin => Shape::Begin,
            EventKind::DurationEnd => Shape::End,
            EventKind::AsyncBegin { id } => Shape::OperationBegin(id),
            EventKind::AsyncEnd { id } => Shape::OperationEnd(id),
            EventKind::FlowBegin { id } => Shape::FlowBegin(id),
            EventKind::FlowEnd { id } => Shape::FlowEnd(id),
            _ => Shape::Other,
        };
        let is_paired =
            matches!(shape, Shape::Begin | Shape::End | Shape::OperationBegin(_) | Shape::OperationEnd(_));
        if self.is_named[what as usize] || self.has_durations && is_paired {
            let (at, argument) = (nanos(event), self.argument(event));
            let is_poll = matches!(shape, Shape::Begin | Shape::Complete(_)) && poll_of(event).is_some();
            self.kept.push(Kept { at, shape, thread: event.thread, what, is_poll, argument });
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

    /// The samples of each measurement, and those that would mix operations and durations.
    fn finish(mut self) -> (Vec<Vec<f64>>, Vec<(usize, Mixed)>) {
        // Events of one time keep the order of the file.
        self.kept.sort_by_key(|kept| kept.at);
        mark_polls(&mut self.kept, &self.first_polls);
        let names: HashMap<u32, &(Vec<u8>, Vec<u8>)> =
            self.whats.iter().map(|(key, what)| (*what, key)).collect();
        let is = |pattern: &Exactly, what: u32| {
            names.get(&what).is_some_and(|(category, name)| pattern.matches(category, name))
        };
        let spans = if self.has_durations { spans(&self.kept, &names) } else { Vec::new() };
        let measure = |(index, quantity): (u32, &&Quantity)| match quantity {
            Quantity::Duration(pattern, wanted) => {
                let is_poll = |span: &Lasted| span.kind == Some(Kind::Poll);
                let has_polls = spans.iter().any(|span| is_poll(span) && is(pattern, span.what));
                let is_wanted = |kind| match (wanted, kind) {
                    (Some(_), _) => kind == *wanted,
                    // A flow with the name of polls connects these.
                    (None, None) => !has_polls,
                    (None, Some(kind)) => kind != Kind::Poll,
                };
                let of_pattern = spans.iter().filter(|span| is_wanted(span.kind) && is(pattern, span.what));
                of_pattern.map(|span| millis(span.nanos)).collect()
            }
            Quantity::TimeBetween { first, first_anchor, second, second_anchor } => {
                let first = |kept: &Kept| anchored(kept, *first_anchor).filter(|_| is(first, kept.what));
                let second = |kept: &Kept| anchored(kept, *second_anchor).filter(|_| is(second, kept.what));
                between(&self.kept, first, second)
            }
            Quantity::ArgumentValue { .. } => {
                let own = self.kept.iter().filter(|kept| !kept.is_poll).filter_map(|kept| kept.argument);
                own.filter(|(of, _)| *of == index).map(|(_, value)| value as f64).collect()
            }
        };
        let samples = (0..).zip(self.quantities).map(measure).collect();
        let mixed = self.quantities.iter().enumerate().filter_map(|(place, quantity)| {
            let Quantity::Duration(pattern, None) = quantity else { return None };
            let count = |kind: Kind| {
                spans.iter().filter(|span| span.kind == Some(kind) && is(pattern, span.what)).count() as u64
            };
            let (operations, slices) = (count(Kind::Operation), count(Kind::Slice));
            let mixed = Mixed { name: pattern.name.clone(), operations, slices };
            (operations > 0 && slices > 0).then_some((place, mixed))
        });
        (samples, mixed.collect())
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// When something began, its category and name, and what it is; none of a flow.
struct Begun {
    at: u64,
    what: u32,
    kind: Option<Kind>,
}

impl Begin for Begun {}

/// Marks polls of which operations say so later, and the ends of all polls: they are none of durations.
fn mark_polls(kept: &mut [Kept], first: &HashSet<(Koid, u32, u64)>) {
    if !first.is_empty() {
        for kept in kept.iter_mut().filter(|kept| kept.shape == Shape::Begin) {
            kept.is_poll |= first.contains(&(kept.thread.process, kept.what, kept.at));
        }
    }
    if !kept.iter().any(|kept| kept.is_poll) {
        return;
    }
    let mut begun: HashMap<(Thread, u32), Vec<bool>> = HashMap::new();
    for kept in kept {
        match kept.shape {
            Shape::Begin => begun.entry((kept.thread, kept.what)).or_default().push(kept.is_poll),
            Shape::End => {
                let open = begun.get_mut(&(kept.thread, kept.what));
                kept.is_poll = open.and_then(Vec::pop).unwrap_or(false);
            }
            _ => {}
        }
    }
}

/// What has lasted.
struct Lasted {
    what: u32,
    kind: Option<Kind>,
    nanos: u64,
}

/// All spans that have ended, in the order of their ends.
fn spans(kept: &[Kept], names: &HashMap<u32, &(Vec<u8>, Vec<u8>)>) -> Vec<Lasted> {
    let mut threads = ThreadNumbers::default();
    let mut pairing: Pairing<Begun> = Pairing::default();
    let mut flows: HashMap<(u32, u64), u64> = HashMap::new();
    let mut spans = Vec::new();
    for Kept { at, shape, thread, what, is_poll, .. } in kept {
        let (at, what) = (*at, *what);
        let of_thread = Some(if *is_poll { Kind::Poll } else { Kind::Slice });
        let mut number = || threads.number(*thread, usize::MAX).unwrap_or_default();
        let operation = |id| {
            let (category, name) = names
                .get(&what)
                .map_or((&[][..], &[][..]), |(category, name)| (category.as_slice(), name.as_slice()));
            let key = OperationKey { process: thread.process, category: token(Text(category)), id };
            (key, token(Text(name)))
        };
        let begun = match *shape {
            Shape::Complete(end) => {
                spans.push(Lasted { what, kind: of_thread, nanos: end.saturating_sub(at) });
                None
            }
            Shape::Begin => {
                pairing.begin(number(), Begun { at, what, kind: of_thread });
                None
            }
            Shape::End => pairing.end(number()).begun(),
            Shape::OperationBegin(id) => {
                let (key, name) = operation(id);
                pairing.begin_operation(&key, name, Begun { at, what, kind: Some(Kind::Operation) });
                None
            }
            Shape::OperationEnd(id) => {
                let (key, name) = operation(id);
                pairing.end_operation(&key, name).begun()
            }
            Shape::FlowBegin(id) => {
                // A second begin of an open flow is ignored.
                flows.entry((what, id)).or_insert(at);
                None
            }
            Shape::FlowEnd(id) => flows.remove(&(what, id)).map(|at| Begun { at, what, kind: None }),
            Shape::Instant | Shape::Other => None,
        };
        spans.extend(begun.map(|Begun { at: begin, what, kind }| Lasted {
            what,
            kind,
            nanos: at.saturating_sub(begin),
        }));
    }
    spans
}

/// When an event counts for an anchor, if it does.
fn anchored(kept: &Kept, anchor: Anchor) -> Option<u64> {
    if kept.is_poll {
        return None;
    }
    match (kept.shape, anchor) {
        (Shape::Instant, _) => Some(kept.at),
        (
            Shape::Complete(_) | Shape::Begin | Shape::OperationBegin(_) | Shape::FlowBegin(_),
            Anchor::Begin,
        ) => Some(kept.at),
        (Shape::Complete(end), Anchor::End) => Some(end),
        (Shape::End | Shape::OperationEnd(_) | Shape::FlowEnd(_), Anchor::End) => Some(kept.at),
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
