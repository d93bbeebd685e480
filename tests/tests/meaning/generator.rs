//! Small random traces, in which times are equal often and slices overlap.

use super::model::Meaning;
use super::random::Random;
use super::records::{Kind, Record, SERIES, Thread};

/// Names of slices, operations, flows, counters and instants have no name in common, because some readers do
/// not distinguish these.
const SLICES: [&str; 3] = ["a", "b", "c"];
const OPERATIONS: [&str; 2] = ["p", "q"];
const CATEGORIES: [&str; 2] = ["x", "y"];
/// Two processes have a thread of one number.
const THREADS: [Thread; 3] = [
    Thread { process: 100, thread: 201 },
    Thread { process: 101, thread: 201 },
    Thread { process: 100, thread: 202 },
];
/// Times begin here, so that none is 0.
const BASE_NS: u64 = 1_000_000;

/// What a trace has, each in half of all.
#[derive(Clone, Copy, Debug)]
struct Features {
    pairs: bool,
    completes: bool,
    operations: bool,
    flows: bool,
    moments: bool,
    /// Begins without an end, and ends without a begin.
    open: bool,
    /// Ends with the name or category of another slice, or without a name.
    other_ends: bool,
    /// Records of a thread in another order than their times.
    disorder: bool,
    /// Slices that are polls of an operation.
    polls: bool,
    /// Begins that say that they have no end.
    unended: bool,
}

struct Generator<'a> {
    random: &'a mut Random,
    features: Features,
    threads: u64,
    /// Nanoseconds between two times.
    unit: u64,
    /// So many times are possible.
    span: u64,
    records: Vec<Record>,
}

/// A trace, with or without begins that say that they have no end.
pub fn trace(random: &mut Random, unended: bool) -> Vec<Record> {
    let mut is = || random.below(2) == 0;
    let mut features = Features {
        pairs: is(),
        completes: is(),
        operations: is(),
        flows: is(),
        moments: is(),
        open: is(),
        other_ends: is(),
        disorder: is(),
        polls: is(),
        unended,
    };
    if !(features.pairs || features.completes || features.operations) {
        features.pairs = true;
    }
    let unit = if is() { 1000 } else { 1 };
    let threads = [1, 1, 2, 3][random.below(4) as usize];
    let span = 3 + random.below(20);
    let steps = 1 + random.below(10);
    let mut generator = Generator { random, features, threads, unit, span, records: Vec::new() };
    if features.pairs {
        (0..threads).for_each(|thread| generator.pairs(THREADS[thread as usize], steps));
    }
    for _ in 0..steps {
        if features.completes && generator.one_in(2) {
            generator.complete();
        }
        if features.unended && generator.one_in(4) {
            generator.unended();
        }
        if features.operations && generator.one_in(2) {
            generator.operation();
        }
        if features.moments && generator.one_in(3) {
            generator.moment();
        }
    }
    generator.order();
    if features.flows {
        generator.flows();
    }
    generator.records
}

impl Generator<'_> {
    fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.below(of.len() as u64) as usize]
    }

    fn category(&mut self) -> &'static str {
        if self.one_in(6) { CATEGORIES[1] } else { CATEGORIES[0] }
    }

    fn thread(&mut self) -> Thread {
        THREADS[self.random.below(self.threads) as usize]
    }

    fn at(&self, time: u64) -> u64 {
        // Odd, unless times are whole microseconds.
        BASE_NS + self.unit * time + if self.unit == 1 { 333 } else { 0 }
    }

    fn any_time(&mut self) -> u64 {
        let time = self.random.below(self.span);
        self.at(time)
    }

    fn push(&mut self, at: u64, thread: Thread, category: &str, name: &str, kind: Kind) {
        let (category, name) = (category.to_owned(), name.to_owned());
        self.records.push(Record { at, thread, category, name, kind });
    }

    /// Begins and ends of a thread, in order.
    fn pairs(&mut self, thread: Thread, steps: u64) {
        let mut time = self.random.below(3);
        let mut stack: Vec<(&str, &str)> = Vec::new();
        for _ in 0..steps {
            let at = self.at(time);
            if stack.is_empty() && self.features.open && self.one_in(6) {
                let name = self.pick(&SLICES);
                self.push(at, thread, CATEGORIES[0], name, Kind::End);
            } else if stack.is_empty() || (stack.len() < 4 && self.one_in(2)) {
                let (category, name) = (self.category(), self.pick(&SLICES));
                stack.push((category, name));
                let kind = if self.is_poll() { Kind::PollBegin { of: 1 } } else { Kind::Begin };
                self.push(at, thread, category, name, kind);
            } else {
                let begun = stack.pop().expect("it is not empty");
                self.end(at, thread, begun);
            }
            time += [0, 1, 1, 2][self.random.below(4) as usize];
        }
        while let Some(begun) = stack.pop() {
            if !self.features.open || self.one_in(2) {
                let at = self.at(time);
                self.end(at, thread, begun);
                time += self.random.below(3);
            }
        }
    }

    fn end(&mut self, at: u64, thread: Thread, (category, name): (&str, &str)) {
        let (mut of_end, mut named) = (category, name);
        if self.features.other_ends && self.one_in(3) {
            match self.random.below(3) {
                0 => (of_end, named) = ("", ""),
                1 => named = self.pick(&SLICES),
                _ => of_end = self.category(),
            }
        }
        self.push(at, thread, of_end, named, Kind::End);
    }

    fn is_poll(&mut self) -> bool {
        self.features.polls && self.one_in(4)
    }

    fn complete(&mut self) {
        let (thread, category, name) = (self.thread(), self.category(), self.pick(&SLICES));
        let begin = self.random.below(self.span);
        let end = begin + self.random.below(6);
        let end = self.at(end);
        let kind = if self.is_poll() { Kind::Poll { of: 1, end } } else { Kind::Complete { end } };
        self.push(self.at(begin), thread, category, name, kind);
    }

    /// A begin that says that it has no end. One in three is followed by the complete record of the same
    /// slice.
    fn unended(&mut self) {
        let (at, thread, category, name) =
            (self.any_time(), self.thread(), self.category(), self.pick(&SLICES));
        self.push(at, thread, category, name, Kind::Open);
        if self.one_in(3) {
            let end = at + self.unit * self.random.below(6);
            self.push(at, thread, category, name, Kind::Complete { end });
        }
    }

    fn operation(&mut self) {
        let (thread, category, name) = (self.thread(), self.category(), self.pick(&OPERATIONS));
        let id = 1 + self.random.below(2);
        let begin = self.any_time();
        self.push(begin, thread, category, name, Kind::OperationBegin { id });
        if self.features.open && self.one_in(4) {
            return;
        }
        let end = begin + self.unit * self.random.below(8);
        let named = if self.features.other_ends && self.one_in(4) { self.pick(&OPERATIONS) } else { name };
        let ended_on = if self.features.open && self.one_in(4) { self.thread() } else { thread };
        self.push(end, ended_on, category, named, Kind::OperationEnd { id });
    }

    /// An instant, a sample of a counter, or a log record.
    fn moment(&mut self) {
        let (at, thread, category) = (self.any_time(), self.thread(), self.category());
        match self.random.below(3) {
            0 => self.push(at, thread, category, "i", Kind::Instant),
            1 => {
                let id = 5 * self.random.below(2);
                let samples = vec![(SERIES.to_owned(), self.random.below(100) as i64)];
                self.push(at, thread, category, "m", Kind::Counter { id, samples });
            }
            _ => {
                let message = format!("message {}", self.records.len());
                self.push(at, thread, "", &message, Kind::Log);
            }
        }
    }

    /// Brings the records into the order of a file: mostly that of the times, in which a complete slice
    /// stands where it ends, and sometimes the records of one thread behind those of another.
    fn order(&mut self) {
        let by_begin = self.one_in(2);
        self.records.sort_by_key(|record| match record.kind {
            Kind::Complete { end } | Kind::Poll { end, .. } if !by_begin => end,
            _ => record.at,
        });
        if self.features.unended && self.one_in(2) {
            self.records.sort_by_key(|record| record.kind == Kind::Open);
        }
        if !self.features.disorder || self.records.len() < 2 {
            return;
        }
        match self.random.below(3) {
            // As from the buffers of several threads or providers.
            0 => self.records.sort_by_key(|record| record.thread),
            1 => {
                let middle = self.random.below(self.records.len() as u64) as usize;
                self.records.rotate_left(middle);
            }
            _ => {
                let count = self.records.len() as u64;
                let (one, other) = (self.random.below(count), self.random.below(count));
                self.records.swap(one as usize, other as usize);
            }
        }
    }

    /// Flows between slices, whose parts are away from the edges of slices. An id is used again after its
    /// end.
    fn flows(&mut self) {
        let meaning = Meaning::of(&self.records);
        let (category, name) = (CATEGORIES[0], "f");
        let mut id = 7;
        let mut free_from = 0;
        for _ in 0..1 + self.random.below(2) {
            let mut parts: Vec<(u64, Thread, usize)> = Vec::new();
            for _ in 0..6 {
                let (at, thread) = (self.any_time(), self.thread());
                let probe =
                    Record { at, thread, category: String::new(), name: String::new(), kind: Kind::Instant };
                if at >= free_from
                    && let Some(slice) = meaning.around(&probe)
                {
                    parts.push((at, thread, slice));
                }
            }
            parts.sort_unstable();
            parts.dedup_by(|next, before| next.0 == before.0 || next.2 == before.2);
            parts.truncate(3);
            let Some(last) = parts.len().checked_sub(1).filter(|last| *last > 0) else { continue };
            for (part, (at, thread, _)) in parts.iter().enumerate() {
                let kind = match part {
                    0 => Kind::FlowBegin { id },
                    part if part == last => Kind::FlowEnd { id },
                    _ => Kind::FlowStep { id },
                };
                self.push(*at, *thread, category, name, kind);
            }
            if self.one_in(2) {
                id += 1;
            } else {
                free_from = parts[last].0 + 1;
            }
        }
    }
}
