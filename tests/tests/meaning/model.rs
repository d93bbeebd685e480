//! What a list of records means, by the rules of docs/meaning.md, docs/check.md and docs/tables.md, written a
//! second time: slow, without a line of the product, and over the whole trace at once.

use super::records::{Kind, Record, Thread};
use std::collections::{BTreeMap, BTreeSet};

/// Added to the places of records that count as the last ones.
const BEHIND_ALL: usize = 1 << 60;

/// A slice of a thread.
#[derive(Clone, Debug)]
pub struct Slice {
    pub thread: Thread,
    pub category: String,
    pub name: String,
    pub begin: u64,
    /// None if it is open: it was begun and never ended.
    pub end: Option<u64>,
    /// The place of its parent among the slices.
    pub parent: Option<usize>,
    /// Its length without the times of the slices directly inside it.
    pub own: Option<u64>,
    /// It is a poll of an operation, and no duration of its own.
    pub is_poll: bool,
    /// It begins in another slice of its thread and ends after it.
    pub overlaps: bool,
    /// The place of its begin among the records, in the order of their times.
    begun: usize,
    /// The same of its end, for one of a begin and an end.
    ended: Option<usize>,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    pub process: u64,
    pub category: String,
    pub name: String,
    pub id: u64,
    pub begin: u64,
    pub end: Option<u64>,
}

/// The slice that a flow leaves and the one that it enters, by their places.
pub type Arrow = (usize, usize);

/// What a trace means.
#[derive(Clone, Debug, Default)]
pub struct Meaning {
    pub records: Vec<Record>,
    /// Names of threads, where a test compares them.
    pub names: BTreeMap<Thread, &'static str>,
    pub slices: Vec<Slice>,
    pub operations: Vec<Operation>,
    /// None if a part of a flow is at the edge of a slice, where readers may choose.
    pub arrows: Option<Vec<Arrow>>,
    /// Kinds of problems and remarks about what belongs together, with their numbers.
    pub problems: BTreeMap<&'static str, u64>,
}

impl Meaning {
    /// Whether the file has begins and ends in the order of their times, all of which belong together, slices
    /// of a thread begin at times of their own, and operations of one id follow each other in one process.
    pub fn is_in_order(&self) -> bool {
        let mut last = 0;
        let mut processes: BTreeMap<u64, u64> = BTreeMap::new();
        let are_in_order = self.records.iter().all(|record| {
            // Readers sort complete slices.
            let is_whole = matches!(record.kind, Kind::Complete { .. } | Kind::Poll { .. });
            let is_in_order = is_whole || record.at >= last;
            last = last.max(if is_whole { 0 } else { record.at });
            let is_of_one = match record.kind {
                Kind::OperationBegin { id } | Kind::OperationInstant { id } | Kind::OperationEnd { id } => {
                    *processes.entry(id).or_insert(record.thread.process) == record.thread.process
                }
                _ => true,
            };
            is_in_order && is_of_one
        });
        let mut open = BTreeSet::new();
        let is_one_at_a_time = self.records.iter().all(|record| match record.kind {
            Kind::OperationBegin { id } => open.insert(id),
            Kind::OperationEnd { id } => open.remove(&id),
            _ => true,
        });
        let mut begins = BTreeSet::new();
        let begin_apart = self.slices.iter().all(|slice| begins.insert((slice.thread, slice.begin)));
        let is_open = |record: &Record| record.kind == Kind::Open;
        let has_open = self.records.iter().any(is_open);
        are_in_order && is_one_at_a_time && begin_apart && self.problems.is_empty() && !has_open
    }

    /// The first moment at which anything but a counter is.
    pub fn first(&self) -> Option<u64> {
        let is_point = |record: &&Record| {
            matches!(
                record.kind,
                Kind::Instant
                    | Kind::OperationInstant { .. }
                    | Kind::FlowBegin { .. }
                    | Kind::FlowStep { .. }
                    | Kind::FlowEnd { .. }
                    | Kind::Log
            )
        };
        let others = self.records.iter().filter(is_point);
        let begins = self.slices.iter().map(|slice| slice.begin);
        let begins = begins.chain(self.operations.iter().map(|operation| operation.begin));
        begins.chain(others.map(|record| record.at)).min()
    }

    pub fn of(records: &[Record]) -> Self {
        let mut meaning = Self { records: records.to_vec(), ..Self::default() };
        let open = records.iter().filter(|record| record.kind == Kind::Open).count();
        meaning.report("open-scope", open as u64);
        meaning.pair();
        meaning.nest();
        meaning.join_operations();
        meaning.join_flows();
        meaning
    }

    fn report(&mut self, kind: &'static str, count: u64) {
        if count > 0 {
            *self.problems.entry(kind).or_default() += count;
        }
    }

    /// The records of some kinds, in the order of their times; those of one time in the order of the file.
    fn in_order(&self, is_wanted: impl Fn(&Kind) -> bool) -> Vec<Record> {
        let mut wanted = self.without_void();
        wanted.retain(|record| is_wanted(&record.kind));
        wanted.sort_by_key(|record| record.at);
        wanted
    }

    /// The records without the begins of slices that a later record replaces. A begin that says that it has
    /// no end is replaced by a complete record of the same thread and time, and by another such begin.
    fn without_void(&self) -> Vec<Record> {
        let is_void = |(place, record): (usize, &Record)| {
            let is_same = |later: &Record| {
                let is_slice = matches!(later.kind, Kind::Open | Kind::Complete { .. } | Kind::Poll { .. });
                is_slice && (later.thread, later.at) == (record.thread, record.at)
            };
            record.kind == Kind::Open && self.records[place + 1..].iter().any(is_same)
        };
        let records = self.records.iter().enumerate();
        records.filter(|numbered| !is_void(*numbered)).map(|(_, record)| record.clone()).collect()
    }

    /// Slices: an end ends the innermost open begin of its thread, whatever its name.
    fn pair(&mut self) {
        let mut stacks: BTreeMap<Thread, Vec<usize>> = BTreeMap::new();
        let is_wanted = |kind: &Kind| {
            let is_poll = matches!(kind, Kind::PollBegin { .. } | Kind::Poll { .. });
            is_poll || matches!(kind, Kind::Begin | Kind::Open | Kind::End | Kind::Complete { .. })
        };
        for (step, record) in self.in_order(is_wanted).into_iter().enumerate() {
            let Record { at, thread, category, name, kind } = record;
            let stack = stacks.entry(thread).or_default();
            if kind == Kind::End {
                let Some(begun) = stack.pop() else {
                    self.report("unmatched-end", 1);
                    continue;
                };
                let slice = &mut self.slices[begun];
                slice.end = Some(at);
                slice.ended = Some(step);
                // An end without a name or a category says nothing about it.
                let differs = |of_end: &str, of_begin: &str| !of_end.is_empty() && of_end != of_begin;
                if differs(&name, &slice.name) || differs(&category, &slice.category) {
                    self.report("mismatched-end", 1);
                }
                continue;
            }
            let (end, ended) = match kind {
                Kind::Complete { end } | Kind::Poll { end, .. } => (Some(end), None),
                // A later end closes another begin than this one.
                Kind::Open => (None, None),
                _ => (None, Some(usize::MAX)),
            };
            if ended.is_some() {
                stack.push(self.slices.len());
            }
            let is_poll = matches!(kind, Kind::PollBegin { .. } | Kind::Poll { .. });
            let (parent, own, overlaps) = (None, None, false);
            // It counts as recorded behind all others.
            let begun = if kind == Kind::Open { BEHIND_ALL + step } else { step };
            let begin = at;
            let slice =
                Slice { thread, category, name, begin, end, parent, own, is_poll, overlaps, begun, ended };
            self.slices.push(slice);
        }
        let open: usize = stacks.values().map(Vec::len).sum();
        self.report("unmatched-begin", open as u64);
    }

    /// Parents, own times and overlaps: every slice is compared with every other one of its thread.
    fn nest(&mut self) {
        let slices = self.slices.clone();
        for (place, slice) in self.slices.iter_mut().enumerate() {
            let around = slices.iter().enumerate().filter(|(_, other)| encloses(other, &slices[place]));
            // Of all that enclose it, the one that ends first, then the one that begins last.
            let innermost = around
                .min_by_key(|(_, found)| (last(found), u64::MAX - found.begin, usize::MAX - found.begun));
            slice.parent = innermost.map(|(other, _)| other);
        }
        for place in 0..self.slices.len() {
            let inside = self.slices.iter().filter(|slice| slice.parent == Some(place));
            let inside: Vec<(u64, u64)> = inside.map(|slice| (slice.begin, last(slice))).collect();
            let slice = &mut self.slices[place];
            slice.own = slice.end.map(|end| end - slice.begin - union(inside));
        }
        let mut order: Vec<usize> =
            (0..self.slices.len()).filter(|place| slices[*place].end.is_some()).collect();
        order.sort_by_key(|place| {
            let slice = &slices[*place];
            (slice.thread, slice.begin, u64::MAX - last(slice), slice.begun)
        });
        // Each is compared with those that began before it, as docs/check.md says.
        for (count, place) in order.iter().enumerate() {
            let slice = &slices[*place];
            self.slices[*place].overlaps = order[..count].iter().any(|other| overlap(&slices[*other], slice));
        }
        let overlapping = self.slices.iter().filter(|slice| slice.overlaps).count();
        self.report("overlapping-durations", overlapping as u64);
        // A reader needs a further row for all that overlap anything.
        for place in 0..slices.len() {
            self.slices[place].overlaps = slices.iter().any(|other| overlap(other, &slices[place]));
        }
    }

    /// Operations: by process, category and id, in the order of time.
    fn join_operations(&mut self) {
        let is_wanted = |kind: &Kind| matches!(kind, Kind::OperationBegin { .. } | Kind::OperationEnd { .. });
        let mut open: Vec<usize> = Vec::new();
        for Record { at, thread, category, name, kind } in self.in_order(is_wanted) {
            let process = thread.process;
            let id = match kind {
                Kind::OperationBegin { id } => {
                    open.push(self.operations.len());
                    self.operations.push(Operation { process, category, name, id, begin: at, end: None });
                    continue;
                }
                Kind::OperationEnd { id } => id,
                _ => continue,
            };
            let last_open = |matches: &dyn Fn(&Operation) -> bool| {
                open.iter().rposition(|place| {
                    let operation = &self.operations[*place];
                    operation.id == id && operation.category == category && matches(operation)
                })
            };
            let named = last_open(&|found| found.process == process && found.name == name);
            let of_key = last_open(&|found| found.process == process);
            let elsewhere = last_open(&|found| found.process != process && found.name == name);
            let (found, remark) = match (named, of_key, elsewhere) {
                (Some(found), ..) => (found, None),
                (_, Some(found), _) => (found, (!name.is_empty()).then_some("mismatched-async-end")),
                (.., Some(found)) => (found, Some("crossing-async")),
                _ => {
                    self.report("unmatched-async-end", 1);
                    continue;
                }
            };
            self.operations[open.remove(found)].end = Some(at);
            remark.into_iter().for_each(|remark| self.report(remark, 1));
        }
        self.report("unmatched-async-begin", open.len() as u64);
    }

    /// Flows: problems by id alone; arrows from each part to the next.
    fn join_flows(&mut self) {
        let is_wanted = |kind: &Kind| {
            matches!(kind, Kind::FlowBegin { .. } | Kind::FlowStep { .. } | Kind::FlowEnd { .. })
        };
        let parts = self.in_order(is_wanted);
        let id = |kind: &Kind| match kind {
            Kind::FlowBegin { id } | Kind::FlowStep { id } | Kind::FlowEnd { id } => *id,
            _ => 0,
        };
        let ids: BTreeSet<u64> = parts.iter().map(|record| id(&record.kind)).collect();
        let mut arrows = Some(Vec::new());
        for flow in ids {
            let of_flow = || parts.iter().filter(|record| id(&record.kind) == flow);
            let count = |wanted: Kind| of_flow().filter(|record| record.kind == wanted).count() as u64;
            let begins = count(Kind::FlowBegin { id: flow });
            let steps = count(Kind::FlowStep { id: flow });
            let ends = count(Kind::FlowEnd { id: flow });
            self.report("unmatched-flow-begin", begins.saturating_sub(ends));
            if begins == 0 {
                self.report("unmatched-flow-end", ends);
                self.report("unmatched-flow-step", steps);
            }
            let mut from = None;
            for part in of_flow() {
                let Some(slice) = self.around(part) else {
                    arrows = None;
                    continue;
                };
                let entered = (!matches!(part.kind, Kind::FlowBegin { .. })).then_some(slice);
                if let (Some(arrows), Some(from), Some(entered)) = (&mut arrows, from, entered) {
                    arrows.push((from, entered));
                }
                from = (!matches!(part.kind, Kind::FlowEnd { .. })).then_some(slice);
            }
        }
        self.arrows = arrows;
    }

    /// The innermost slice around a record; None if there is none, or if another one begins, ends or overlaps
    /// there.
    pub fn around(&self, record: &Record) -> Option<usize> {
        let of_thread = || self.slices.iter().enumerate().filter(|(_, slice)| slice.thread == record.thread);
        let is_edge = |slice: &Slice| slice.begin == record.at || slice.end == Some(record.at);
        let is_around = |slice: &Slice| slice.begin < record.at && record.at < last(slice);
        let around: Vec<usize> =
            of_thread().filter(|(_, slice)| is_around(slice)).map(|(at, _)| at).collect();
        // Readers take an instant for a slice, in which what comes next may be for them.
        let instants = self.records.iter().filter(|other| other.kind == Kind::Instant);
        let before = instants.filter(|other| other.thread == record.thread && other.at <= record.at);
        let after_edge = |instant: &Record| {
            // What begins with an instant is for readers in it, and keeps it open.
            of_thread().filter(|(_, slice)| slice.begin != instant.at).any(|(_, slice)| {
                [Some(slice.begin), slice.end]
                    .iter()
                    .flatten()
                    .any(|edge| (instant.at + 1..record.at).contains(edge))
            })
        };
        if !before.into_iter().all(after_edge) || of_thread().any(|(_, slice)| is_edge(slice)) {
            return None;
        }
        // One of them is inside all others.
        around.iter().copied().find(|inner| {
            let others = around.iter().filter(|other| *other != inner);
            others.into_iter().all(|other| encloses(&self.slices[*other], &self.slices[*inner]))
        })
    }
}

/// The end of a slice; an open one lasts forever.
fn last(slice: &Slice) -> u64 {
    slice.end.unwrap_or(u64::MAX)
}

/// Whether a slice encloses another.
fn encloses(outer: &Slice, inner: &Slice) -> bool {
    if outer.thread != inner.thread || outer.begun == inner.begun {
        return false;
    }
    // Pairs are inside each other as their records are. What is open encloses all that begins later.
    if let (Some(ended), Some(inner_ended)) = (outer.ended, inner.ended) {
        return outer.begun < inner.begun
            && inner.begun < ended
            && (inner_ended < ended || outer.end.is_none());
    }
    if inner.end == Some(inner.begin) {
        let is_before = (outer.begin, outer.begun) < (inner.begin, inner.begun);
        // The end of a pair may have a later record at the same time.
        let ends_later = last(outer) == inner.begin && outer.ended.is_some_and(|ended| ended > inner.begun);
        return is_before && (last(outer) > inner.begin || ends_later);
    }
    let key = |slice: &Slice| (slice.begin, u64::MAX - last(slice), slice.begun);
    last(inner) <= last(outer) && key(outer) < key(inner)
}

/// Whether a slice begins in another one and ends after it.
fn overlap(other: &Slice, slice: &Slice) -> bool {
    other.thread == slice.thread
        && other.begin < slice.begin
        && slice.begin < last(other)
        && last(other) < last(slice)
}

/// How long at least one of the stretches lasts.
fn union(mut stretches: Vec<(u64, u64)>) -> u64 {
    stretches.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (begin, end) in stretches {
        sum += end.max(until) - begin.max(until);
        until = until.max(end);
    }
    sum
}
