//! Begins and ends that belong together: durations, async operations, flows.
//!
//! Those of durations follow each other on their thread, and so they do in the file. Those of operations and
//! flows may be of several threads and processes, whose parts of the file come in any order: an end may stand
//! before its begin, and a step behind both. What is over is forgotten, but for a hash of it.

use crate::item::{Event, Text, Thread, Time};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use trace_format::event::EventKind;
use trace_format::units::{Koid, Nanos, Offset, ProviderId};

/// Where and when something was begun, ended or passed.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: Offset,
    provider: ProviderId,
    nanos: Nanos,
}

/// What the events of one async operation or flow share, as a hash: that two of them collide is as likely as
/// one in 2⁶⁴ for each pair in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key(u64);

/// One operation or flow that is not over, or several that share all that tells them apart.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    id: u64,
    begins: u32,
    ends: u32,
    steps: u32,
    first_begin: Option<Place>,
    first_end: Option<Place>,
    first_step: Option<Place>,
}

/// All async operations, or all flows.
#[derive(Debug)]
struct Operations {
    names: [&'static str; 3],
    open: HashMap<Key, Open>,
    over: HashSet<Key>,
    /// Not everything that is over is known any more, so that a step without a begin means nothing.
    is_over_full: bool,
}

/// Operations that are over and still known.
const MAX_OVER: usize = 400_000;

/// A kind of problem, and its words.
type Found = (&'static str, String);

/// What has no begin or no end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unmatched {
    pub kind: &'static str,
    /// How many share what tells them apart.
    pub count: u64,
    /// The first of them.
    pub offset: Offset,
    pub provider: ProviderId,
    pub what: What,
}

/// What tells a span from others.
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

enum Part {
    Begin,
    Step,
    End,
}

/// All spans that are open.
#[derive(Debug)]
pub(super) struct Spans {
    durations: HashMap<Thread, Vec<Place>>,
    asyncs: Operations,
    flows: Operations,
    /// Spans that are open.
    count: usize,
    limit: usize,
    /// Some have been left out, so that what is not matched means nothing.
    is_full: bool,
}

impl Spans {
    pub fn new(limit: usize) -> Self {
        Self {
            durations: HashMap::new(),
            asyncs: Operations::new([
                "unmatched-async-begin",
                "unmatched-async-instant",
                "unmatched-async-end",
            ]),
            flows: Operations::new(["unmatched-flow-begin", "unmatched-flow-step", "unmatched-flow-end"]),
            count: 0,
            limit,
            is_full: false,
        }
    }

    /// Matches an event; what is wrong with it.
    pub fn event(&mut self, offset: Offset, provider: ProviderId, event: &Event<'_>) -> Option<Found> {
        let Event { thread, time, .. } = *event;
        if self.is_full {
            return None;
        }
        let place = || Place { offset, provider, nanos: time.nanos() };
        // Operations are their process's own, flows lead from process to process.
        let (operations, process, part, id) = match event.kind {
            EventKind::DurationBegin => {
                self.durations.entry(thread).or_default().push(place());
                self.count += 1;
                return self.full();
            }
            EventKind::DurationEnd => return self.end_duration(thread, event.name, time),
            EventKind::AsyncBegin { id } => (&mut self.asyncs, Some(thread.process), Part::Begin, id),
            EventKind::AsyncInstant { id } => (&mut self.asyncs, Some(thread.process), Part::Step, id),
            EventKind::AsyncEnd { id } => (&mut self.asyncs, Some(thread.process), Part::End, id),
            EventKind::FlowBegin { id } => (&mut self.flows, None, Part::Begin, id),
            EventKind::FlowStep { id } => (&mut self.flows, None, Part::Step, id),
            EventKind::FlowEnd { id } => (&mut self.flows, None, Part::End, id),
            EventKind::Instant { .. }
            | EventKind::Counter { .. }
            | EventKind::DurationComplete { .. }
            | EventKind::Unknown { .. } => return None,
        };
        let before = operations.open.len();
        operations.part(Key::new(process, event.category, event.name, id), id, part, place());
        self.count = self.count + operations.open.len() - before;
        self.full()
    }

    fn end_duration(&mut self, thread: Thread, name: Text<'_>, time: Time) -> Option<Found> {
        let Some(stack) = self.durations.get_mut(&thread) else {
            let Thread { process, thread } = thread;
            let text = format!("end of {name:?} on thread {process}/{thread}, which has nothing to end");
            return Some(("unmatched-end", text));
        };
        let begin = stack.pop();
        if stack.is_empty() {
            self.durations.remove(&thread);
        }
        self.count -= 1;
        let begin = begin?;
        (time.nanos() < begin.nanos).then(|| {
            let Place { offset, nanos, .. } = begin;
            let text = format!("ends at {}, before it begins at {nanos}, at byte {offset}", time.nanos());
            ("end-before-begin", text)
        })
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

    /// What has no begin or no end, in the order of the file.
    pub fn finish(&mut self) -> Vec<Unmatched> {
        let mut all = Vec::new();
        if self.is_full {
            return all;
        }
        for (thread, stack) in self.durations.drain() {
            all.extend(stack.into_iter().map(|Place { offset, provider, .. }| Unmatched {
                kind: "unmatched-begin",
                count: 1,
                offset,
                provider,
                what: What::Thread(thread),
            }));
        }
        self.asyncs.finish(&mut all);
        self.flows.finish(&mut all);
        all.sort_by_key(|unmatched: &Unmatched| unmatched.offset);
        all
    }
}

impl Default for Spans {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Key {
    fn new(process: Option<Koid>, category: Text<'_>, name: Text<'_>, id: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        (process.map(|process| process.0), category, name, id).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Operations {
    fn new(names: [&'static str; 3]) -> Self {
        Self { names, open: HashMap::new(), over: HashSet::new(), is_over_full: false }
    }

    fn part(&mut self, key: Key, id: u64, part: Part, place: Place) {
        if matches!(part, Part::Step) && !self.open.contains_key(&key) && self.over.contains(&key) {
            return;
        }
        let open = self.open.entry(key).or_default();
        open.id = id;
        let (count, first) = match part {
            Part::Begin => (&mut open.begins, &mut open.first_begin),
            Part::Step => (&mut open.steps, &mut open.first_step),
            Part::End => (&mut open.ends, &mut open.first_end),
        };
        *count += 1;
        first.get_or_insert(place);
        if open.begins == open.ends && open.begins > 0 {
            self.open.remove(&key);
            if self.over.len() < MAX_OVER {
                self.over.insert(key);
            } else {
                self.is_over_full = true;
            }
        }
    }

    fn finish(&mut self, all: &mut Vec<Unmatched>) {
        let [begin, step, end] = self.names;
        for open in std::mem::take(&mut self.open).into_values() {
            let Open { id, begins, ends, steps, first_begin, first_end, first_step } = open;
            let orphans = if begins == 0 && !self.is_over_full { steps } else { 0 };
            for (kind, count, place) in [
                (begin, begins.saturating_sub(ends), first_begin),
                (end, ends.saturating_sub(begins), first_end),
                (step, orphans, first_step),
            ] {
                if let (1.., Some(Place { offset, provider, .. })) = (count, place) {
                    let what = What::Id(id);
                    all.push(Unmatched { kind, count: count.into(), offset, provider, what });
                }
            }
        }
    }
}
