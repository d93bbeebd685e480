//! Begins and ends that belong together: durations, async operations, flows.
//!
//! Those of durations follow each other on their thread: in the file as well, or they are sorted first. Those
//! of operations and flows may be of several threads and processes, whose parts of the file come in any
//! order: an end may stand before its begin, and a step behind both. Of spans that are over, only a hash is
//! kept.

use super::late::{Late, LateDurations};
use super::nesting::{MAX_KEPT, Nesting, OVERLAPPING, Over};
use crate::disorder::Disorder;
use crate::item::{Event, Text, Thread};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use trace_format::event::EventKind;
use trace_format::units::{Koid, Nanos, Offset, ProviderId};

/// The position of a begin, end or step.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventPosition {
    pub offset: Offset,
    pub provider: ProviderId,
}

/// The identity of an async operation or flow, as a hash: two of them collide with a probability of one in
/// 2⁶⁴ for each pair in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Key(u64);

/// One operation or flow that is not over, or several with the same identity.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    id: u64,
    process: Koid,
    /// The identity that it shares with parts in other processes.
    crossing: Key,
    begins: u32,
    ends: u32,
    /// Begins or ends that were matched elsewhere.
    joined: u32,
    steps: u32,
    first_begin: Option<EventPosition>,
    first_end: Option<EventPosition>,
    first_step: Option<EventPosition>,
}

/// Which parts belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Async operations: those of a process, by category, name and id.
    Process,
    /// Flows: those of the trace, by their id alone.
    Trace,
}

impl Scope {
    /// The kinds of problem for a begin, a step and an end without the rest.
    const fn names(self) -> [&'static str; 3] {
        match self {
            Self::Process => ["unmatched-async-begin", "unmatched-async-instant", "unmatched-async-end"],
            Self::Trace => ["unmatched-flow-begin", "unmatched-flow-step", "unmatched-flow-end"],
        }
    }
}

/// All async operations, or all flows.
#[derive(Debug)]
struct Operations {
    scope: Scope,
    open: HashMap<Key, Open>,
    over: HashSet<Key>,
    /// Some operations that are over were forgotten, so that a step without a begin means nothing.
    is_over_full: bool,
}

/// The remark about operations that end in another process than they began in.
pub(super) const CROSSING: &str = "crossing-async";

/// Operations that are over and still remembered.
const MAX_OVER: usize = 400_000;

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
    /// An operation that ended in another process.
    Crossing {
        id: u64,
        begun_in: Koid,
        ended_in: Koid,
    },
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
            What::Crossing { id, begun_in, ended_in } => {
                format!("id {id:#x} was begun in process {begun_in} and ended in process {ended_in}")
            }
        }
    }
}

enum Part {
    Begin,
    Step,
    End,
}

/// A duration that has begun.
#[derive(Clone, Copy, Debug)]
struct OpenDuration {
    place: EventPosition,
    begin: Nanos,
    name: Key,
}

/// All spans that are open.
#[derive(Debug)]
pub(super) struct Spans<'a> {
    disorder: &'a Disorder,
    late: LateDurations,
    durations: HashMap<Thread, Vec<OpenDuration>>,
    nesting: Nesting,
    asyncs: Operations,
    flows: Operations,
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
            late: LateDurations::default(),
            durations: HashMap::new(),
            nesting: Nesting::default(),
            asyncs: Operations::new(Scope::Process),
            flows: Operations::new(Scope::Trace),
            count: 0,
            limit,
            is_full: false,
        }
    }

    /// Matches an event; returns the problem with it.
    pub fn event(&mut self, offset: Offset, provider: ProviderId, event: &Event<'_>) -> Option<Found> {
        let Event { thread, time, name, .. } = *event;
        if self.is_full {
            return None;
        }
        let place = EventPosition { offset, provider };
        let (operations, part, id) = match event.kind {
            EventKind::DurationBegin | EventKind::DurationEnd => {
                let is_end = event.kind == EventKind::DurationEnd;
                let late = Late { is_end, at: time.nanos(), thread, place, name };
                if self.disorder.has_thread(thread) {
                    self.late.push(&late);
                    return None;
                }
                return self.duration(&late);
            }
            EventKind::AsyncBegin { id } => (&mut self.asyncs, Part::Begin, id),
            EventKind::AsyncInstant { id } => (&mut self.asyncs, Part::Step, id),
            EventKind::AsyncEnd { id } => (&mut self.asyncs, Part::End, id),
            EventKind::FlowBegin { id } => (&mut self.flows, Part::Begin, id),
            EventKind::FlowStep { id } => (&mut self.flows, Part::Step, id),
            EventKind::FlowEnd { id } => (&mut self.flows, Part::End, id),
            EventKind::DurationComplete { end } => {
                let (begin, end) = (time.nanos(), end.to_nanos(time.rate));
                let over = Over { thread, begin, end, place, name };
                // One that ends before it begins is reported as that.
                return (begin <= end).then(|| self.nesting.duration(&over, self.disorder))?;
            }
            EventKind::Instant { .. } | EventKind::Counter { .. } | EventKind::Unknown { .. } => return None,
        };
        let before = operations.open.len();
        operations.part(event, id, part, place);
        self.count = self.count + operations.open.len() - before;
        self.full()
    }

    fn duration(&mut self, late: &Late<'_>) -> Option<Found> {
        let Late { is_end, at, thread, place, name } = *late;
        if !is_end {
            let open = OpenDuration { place, begin: at, name: Key::of_name(name) };
            self.durations.entry(thread).or_default().push(open);
            self.count += 1;
            return self.full();
        }
        let Some(stack) = self.durations.get_mut(&thread) else {
            let Thread { process, thread } = thread;
            let text = format!("end of {name:?} on thread {process}/{thread}, which has nothing to end");
            return Some(("unmatched-end", text));
        };
        let open = stack.pop();
        let named = Key::of_name(name);
        let is_outer = |open: &OpenDuration| open.name == named;
        let is_of_outer =
            open.is_some_and(|open| !is_outer(&open)) && stack.iter().rev().take(MAX_KEPT).any(is_outer);
        if stack.is_empty() {
            self.durations.remove(&thread);
        }
        self.count -= 1;
        if is_of_outer {
            let Thread { process, thread } = thread;
            let text =
                format!("end of {name:?} on thread {process}/{thread}, in which another has not ended");
            return Some((OVERLAPPING, text));
        }
        let over = Over { thread, begin: open?.begin, end: at, place, name };
        self.nesting.duration(&over, self.disorder)
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

    /// Spans without begin or end, and remarks, in the order of the file.
    pub fn finish(&mut self, mut found: impl FnMut(EventPosition, Found)) -> io::Result<Vec<Unmatched>> {
        let mut late = std::mem::take(&mut self.late);
        late.finish(|late| {
            let problem = if self.is_full { None } else { self.duration(&late) };
            problem.into_iter().for_each(|problem| found(late.place, problem));
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
        self.asyncs.finish(&mut all);
        self.flows.finish(&mut all);
        all.sort_by_key(|unmatched: &Unmatched| unmatched.place.offset);
        Ok(all)
    }
}

impl Key {
    fn new(what: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// FNV-1a, which is quick for names.
    fn of_name(name: Text<'_>) -> Self {
        let byte = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, byte))
    }
}

impl Operations {
    fn new(scope: Scope) -> Self {
        Self { scope, open: HashMap::new(), over: HashSet::new(), is_over_full: false }
    }

    fn part(&mut self, event: &Event<'_>, id: u64, part: Part, place: EventPosition) {
        let process = event.thread.process;
        let (key, crossing) = match self.scope {
            Scope::Process => {
                let crossing = (event.category, event.name, id);
                (Key::new((process.0, crossing)), Key::new(crossing))
            }
            Scope::Trace => (Key::new(id), Key::default()),
        };
        if matches!(part, Part::Step) && !self.open.contains_key(&key) && self.over.contains(&key) {
            return;
        }
        let open = self.open.entry(key).or_insert_with(|| Open { id, process, crossing, ..Open::default() });
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
        let mut open = std::mem::take(&mut self.open);
        match self.scope {
            Scope::Process => join_across_processes(&mut open, all),
            // A flow that has begun once may end in several places.
            Scope::Trace => {
                for (key, open) in &mut open {
                    if open.begins > 0 || self.is_over_full || self.over.contains(key) {
                        open.joined = open.ends.saturating_sub(open.begins);
                    }
                }
            }
        }
        let [begin, step, end] = self.scope.names();
        for open in open.into_values() {
            let Open { id, begins, ends, joined, steps, first_begin, first_end, first_step, .. } = open;
            let has_begin = begins > 0 || joined > 0 || self.is_over_full;
            let orphans = if has_begin { 0 } else { steps };
            for (kind, count, place) in [
                (begin, begins.saturating_sub(ends + joined), first_begin),
                (end, ends.saturating_sub(begins + joined), first_end),
                (step, orphans, first_step),
            ] {
                if let (1.., Some(place)) = (count, place) {
                    all.push(Unmatched { kind, count: count.into(), place, what: What::Id(id) });
                }
            }
        }
    }
}

/// Joins the ends of operations with begins in other processes, as Perfetto's and Catapult's readers do.
fn join_across_processes(open: &mut HashMap<Key, Open>, all: &mut Vec<Unmatched>) {
    let mut crossing: HashMap<Key, Vec<&mut Open>> = HashMap::new();
    for open in open.values_mut() {
        crossing.entry(open.crossing).or_default().push(open);
    }
    for of_key in crossing.into_values() {
        let (mut begun, mut ended): (Vec<_>, Vec<_>) = of_key
            .into_iter()
            .filter(|open| open.begins != open.ends)
            .partition(|open| open.begins > open.ends);
        let place = |place: Option<EventPosition>| place.map(|place| place.offset);
        begun.sort_by_key(|open| place(open.first_begin));
        ended.sort_by_key(|open| place(open.first_end));
        for ended in &mut ended {
            for begun in &mut begun {
                let [count, left] =
                    [&*begun, &*ended].map(|open| open.begins.abs_diff(open.ends) - open.joined);
                let count = count.min(left);
                if let (1.., Some(place)) = (count, ended.first_end) {
                    begun.joined += count;
                    ended.joined += count;
                    let (id, begun_in, ended_in) = (ended.id, begun.process, ended.process);
                    let what = What::Crossing { id, begun_in, ended_in };
                    all.push(Unmatched { kind: CROSSING, count: count.into(), place, what });
                }
            }
        }
    }
}
