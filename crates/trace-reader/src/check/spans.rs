//! Begins and ends that belong together: durations, async operations, flows.
//!
//! Durations and operations are paired in the order of their times, which is that of the file for most
//! threads and operations; the others are sorted first. Of names, only hashes are kept.
//= docs/meaning.md#which-begin-an-end-belongs-to

use super::flows::{FlowPart, Flows};
use super::late::{LateParts, Part};
use super::nesting::{Nesting, Over};
use super::operations::{Ended, Operations};
use crate::disorder::{Disorder, OperationKey};
use crate::item::{Event, Text, Thread};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use trace_format::event::EventKind;
use trace_format::units::{Nanos, Offset, ProviderId};

/// The position of a begin, end or step.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventPosition {
    pub offset: Offset,
    pub provider: ProviderId,
}

/// A hash that stands for what it was made of: two of them collide with a probability of one in 2⁶⁴ for each
/// pair in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Key(pub u64);

/// The remark about ends of durations that have another name or category than their begin.
pub(super) const MISMATCHED: &str = "mismatched-end";

/// A kind of problem, and its description.
pub(super) type Found = (&'static str, String);

/// A span without begin or end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unmatched {
    pub kind: &'static str,
    /// How many have the same identity.
    pub count: u64,
    /// The first of them.
    pub place: EventPosition,
    pub what: What,
}

/// The identity of a span: what distinguishes it from others.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Thread(Thread),
    Id(u64),
}

impl Unmatched {
    pub fn text(&self) -> String {
        let Self { kind, what, .. } = self;
        match what {
            What::Thread(Thread { process, thread }) => {
                format!("a begin on thread {process}/{thread} that has no end")
            }
            What::Id(id) if kind.ends_with("begin") => format!("id {id:#x} has no end"),
            What::Id(id) => format!("id {id:#x} was not begun"),
        }
    }
}

/// A duration that has begun.
#[derive(Clone, Copy, Debug)]
struct OpenDuration {
    place: EventPosition,
    begin: Nanos,
    category: Key,
    name: Key,
}

/// All spans that are open.
#[derive(Debug)]
pub(super) struct Spans<'a> {
    disorder: &'a Disorder,
    late: LateParts,
    durations: HashMap<Thread, Vec<OpenDuration>>,
    nesting: Nesting,
    operations: Operations,
    flows: Flows,
    /// Spans that are open.
    count: usize,
    limit: usize,
    /// Some have been dropped, so that an unmatched one means nothing.
    is_full: bool,
}

impl<'a> Spans<'a> {
    pub fn new(limit: usize, disorder: &'a Disorder) -> Self {
        Self {
            disorder,
            late: LateParts::default(),
            durations: HashMap::new(),
            nesting: Nesting::default(),
            operations: Operations::default(),
            flows: Flows::default(),
            count: 0,
            limit,
            is_full: false,
        }
    }

    /// Matches an event, and passes on what is wrong with it.
    pub fn event(
        &mut self,
        offset: Offset,
        provider: ProviderId,
        event: &Event<'_>,
        found: &mut impl FnMut(Found),
    ) {
        let Event { thread, time, category, name, .. } = *event;
        if self.is_full {
            return;
        }
        let place = EventPosition { offset, provider };
        let part = |is_end, id| {
            let category = Key::of_text(category);
            Part { is_end, id, at: time.nanos(), thread, place, category, name }
        };
        match event.kind {
            EventKind::DurationBegin => self.part(&part(false, None), category, found),
            EventKind::DurationEnd => self.part(&part(true, None), category, found),
            EventKind::AsyncBegin { id } => self.part(&part(false, Some(id)), category, found),
            EventKind::AsyncEnd { id } => self.part(&part(true, Some(id)), category, found),
            EventKind::FlowBegin { id } => self.flow(id, FlowPart::Begin, place, found),
            EventKind::FlowStep { id } => self.flow(id, FlowPart::Step, place, found),
            EventKind::FlowEnd { id } => self.flow(id, FlowPart::End, place, found),
            EventKind::DurationComplete { end } => {
                let (begin, end) = (time.nanos(), end.to_nanos(time.rate));
                // One that ends before it begins is reported as that.
                if begin <= end {
                    let over = Over { thread, begin, end, place, name };
                    self.nesting.duration(&over, self.disorder).into_iter().for_each(found);
                }
            }
            // An instant of an operation need not have one.
            EventKind::AsyncInstant { .. }
            | EventKind::Instant { .. }
            | EventKind::Counter { .. }
            | EventKind::Unknown { .. } => {}
        }
    }

    fn flow(&mut self, id: u64, part: FlowPart, place: EventPosition, found: &mut impl FnMut(Found)) {
        let before = self.flows.len();
        self.flows.part(id, part, place);
        self.count = self.count + self.flows.len() - before;
        self.full().into_iter().for_each(found);
    }

    fn part(&mut self, part: &Part<'_>, category: Text<'_>, found: &mut impl FnMut(Found)) {
        let is_late = match part.id {
            None => self.disorder.has_thread(part.thread),
            Some(id) => self.disorder.has_operation(OperationKey::new(category, id)),
        };
        if is_late { self.late.push(part) } else { self.in_order(part, found) }
    }

    fn in_order(&mut self, part: &Part<'_>, found: &mut impl FnMut(Found)) {
        match (part.id, part.is_end) {
            (None, false) => {
                let Part { at: begin, thread, place, category, name, .. } = *part;
                let open = OpenDuration { place, begin, category, name: Key::of_text(name) };
                self.durations.entry(thread).or_default().push(open);
            }
            (None, true) => return self.end(part, found),
            (Some(id), false) => self.operations.begin(part, id),
            (Some(id), true) => {
                return match self.operations.end(part, id) {
                    Ended::One(remark) => {
                        self.count -= 1;
                        remark.into_iter().for_each(found);
                    }
                    Ended::Nothing(problem) => found(problem),
                };
            }
        }
        self.count += 1;
        self.full().into_iter().for_each(found);
    }

    /// Ends the innermost duration of a thread.
    fn end(&mut self, part: &Part<'_>, found: &mut impl FnMut(Found)) {
        let Part { at: end, thread, place, category, name, .. } = *part;
        let Thread { process, thread: number } = thread;
        let Some(stack) = self.durations.get_mut(&thread) else {
            let text = format!("end of {name:?} on thread {process}/{number}, which has nothing to end");
            return found(("unmatched-end", text));
        };
        let Some(open) = stack.pop() else { return };
        if stack.is_empty() {
            self.durations.remove(&thread);
        }
        self.count -= 1;
        // An end need not have a name or a category.
        let is_other = |of_end: Key, of_begin: Key| of_end != Key::of_text(Text(b"")) && of_end != of_begin;
        if is_other(Key::of_text(name), open.name) || is_other(category, open.category) {
            let text = format!(
                "end of {name:?} on thread {process}/{number}, where what began last has another name or category"
            );
            found((MISMATCHED, text));
        }
        let over = Over { thread, begin: open.begin, end, place, name };
        self.nesting.duration(&over, self.disorder).into_iter().for_each(found);
    }

    fn full(&mut self) -> Option<Found> {
        self.is_full = self.count > self.limit;
        self.is_full.then(|| {
            let limit = self.limit;
            let text =
                format!("more than {limit} spans are open at a time: from here on they are not matched");
            ("spans-full", text)
        })
    }

    /// Spans without begin or end, in the order of the file; passes on everything else.
    pub fn finish(&mut self, mut found: impl FnMut(EventPosition, Found)) -> io::Result<Vec<Unmatched>> {
        let mut late = std::mem::take(&mut self.late);
        late.finish(|part| {
            if !self.is_full {
                self.in_order(&part, &mut |problem| found(part.place, problem));
            }
        })?;
        self.nesting.finish(&mut found)?;
        let mut all = Vec::new();
        if self.is_full {
            return Ok(all);
        }
        for (thread, stack) in self.durations.drain() {
            all.extend(stack.into_iter().map(|open| Unmatched {
                kind: "unmatched-begin",
                count: 1,
                place: open.place,
                what: What::Thread(thread),
            }));
        }
        self.operations.finish(&mut all);
        self.flows.finish(&mut all);
        all.sort_by_key(|unmatched: &Unmatched| unmatched.place.offset);
        Ok(all)
    }
}

impl Key {
    pub fn new(what: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// FNV-1a, which is quick for names.
    pub fn of_text(text: Text<'_>) -> Self {
        let byte = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, byte))
    }
}
