//! Slices that readers with stacks would misunderstand in the order of their records. Exporters write them
//! behind all others, as steps of lanes.
//!
//! What an exporter needs to write a begin or an end is made when its record is read, and waits with it.
//= docs/meaning.md#overlap

use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::io;
use trace_format::event::EventKind;
use trace_format::scopes::Ending;
use trace_model::{Begin, Ended, Interval, Lanes, Odd, OperationKey, Pairing, Unended, token};
use trace_reader::sorter::{Sorter, changed, words};
use trace_reader::{Event, Thread, ThreadNumbers, Time};

/// The bytes of what belongs to begins that have no end so far: of durations, and of operations.
const MAX_OPEN_BYTES: usize = 8 << 20;
/// The remark about begins beyond those that may be open.
const TOO_MANY: &str = "begins of slices beyond 500 000 or 8 MiB that are open";
/// Threads that are distinguished.
const MAX_THREADS: usize = 1 << 20;
/// The remark about parts of slices of others.
const TOO_MANY_THREADS: &str = "events of threads beyond a million";
/// What waits in memory; a file holds the rest.
const RUN_BYTES: usize = 16 << 20;
/// What ends for which nothing is open are called.
const UNMATCHED: &str = "ends without a beginning";
/// The remark about slices for which there were no lanes.
const LEFT_OUT: &str = "slices beyond 1000 that overlap, or 500 000 that are open";
/// Set in the word of a role if the part is selected.
const KEPT_BIT: u32 = 8;
/// Added to the numbers of records that count as the last ones.
const BEHIND_ALL: u64 = 1 << 62;
/// In place of the length of a slice's begin: there is none, and this is a part of a flow.
const FLOW: u64 = u64::MAX;

/// What a part does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Complete,
    Begin,
    /// A begin that has no end, unless a later record has it.
    Open,
    End,
    OperationBegin,
    OperationInstant,
    OperationEnd,
    Flow,
    /// A slice without length for the reader.
    Moment,
}

impl Role {
    const ALL: [Self; 9] = [
        Self::Complete,
        Self::Begin,
        Self::Open,
        Self::End,
        Self::OperationBegin,
        Self::OperationInstant,
        Self::OperationEnd,
        Self::Flow,
        Self::Moment,
    ];
}

/// The parts of odd slices.
#[derive(Debug, Default)]
pub(crate) struct OddSlices {
    odd: Odd,
    parts: Sorter,
    encoded: Vec<u8>,
    numbers: ThreadNumbers,
    /// By their numbers.
    threads: Vec<Thread>,
    /// Parts of threads for which there was no number.
    unnumbered: u64,
}

/// The lane of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    pub thread: Thread,
    /// 0 for the thread's own track.
    pub number: usize,
}

/// A begin, a moment or an end of an operation.
pub(crate) struct OperationPart<'a> {
    pub thread: Thread,
    /// The id of the operation.
    pub id: u64,
    pub at: u64,
    pub bytes: &'a [u8],
}

/// Writes odd slices. Bytes are those that were made of the records.
pub(crate) trait WriteOdd {
    /// A slice begins. Its end, if it has one, is known, and what belongs to that.
    fn begin(&mut self, lane: Lane, interval: &Interval, begin: &[u8], end: &[u8]) -> io::Result<()>;
    /// What is written in place of an end: the reason for which there is none, and the time so far in
    /// nanoseconds.
    fn ending(&mut self, ending: Ending, lasted_ns: u64) -> Vec<u8>;
    /// The innermost slice of a lane ends.
    fn end(&mut self, lane: Lane, at: u64) -> io::Result<()>;
    /// A part of a flow, which belongs to the innermost slice of a lane.
    fn flow(&mut self, lane: Lane, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// An operation begins, which is numbered.
    fn operation_begin(&mut self, number: u64, begin: &OperationPart<'_>) -> io::Result<()>;
    /// A moment of an operation; without a number, of one that has not begun.
    fn operation_instant(&mut self, number: Option<u64>, instant: &OperationPart<'_>) -> io::Result<()>;
    /// An operation ends; without a number, one that has not begun.
    fn operation_end(&mut self, number: Option<u64>, end: &OperationPart<'_>) -> io::Result<()>;
}

/// What became of the parts.
pub(crate) struct Written {
    /// Kinds of what could not be written, with their counts.
    pub skipped: [(&'static str, u64); 4],
    /// So many more ends were kept than are selected themselves: an end is kept if its begin was.
    pub more_ends: i64,
}

/// A begin without an end so far.
struct Begun {
    at: u64,
    /// It is selected, and so is its end.
    is_kept: bool,
    thread: u64,
    record: u64,
    /// Another record has its end, if it has one.
    is_pair: bool,
    bytes: Vec<u8>,
}

impl Begin for Begun {
    fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// An operation that has begun, and the length of what its writer may keep of that.
struct BegunOperation {
    number: u64,
    bytes: usize,
    is_kept: bool,
}

impl Begin for BegunOperation {
    fn heap_bytes(&self) -> usize {
        self.bytes
    }
}

impl OddSlices {
    pub fn new(odd: Odd) -> Self {
        Self { odd, parts: Sorter::with_runs_of(RUN_BYTES), ..Self::default() }
    }

    /// Whether slices of a thread have to wait.
    pub fn has_thread(&self, thread: Thread) -> bool {
        self.odd.has_thread(thread)
    }

    /// Whether an event is a part of a slice that has to wait, or of a flow in one.
    #[inline]
    pub fn has(&self, event: &Event<'_>) -> bool {
        match event.kind {
            EventKind::DurationBegin
            | EventKind::DurationEnd
            | EventKind::DurationComplete { .. }
            | EventKind::FlowBegin { .. }
            | EventKind::FlowStep { .. }
            | EventKind::FlowEnd { .. } => self.odd.has_thread(event.thread),
            EventKind::AsyncBegin { id } | EventKind::AsyncInstant { id } | EventKind::AsyncEnd { id } => {
                self.odd.has_operation(&OperationKey::of(event, id))
            }
            _ => false,
        }
    }

    /// Whether an event may be kept though it is not selected itself, as its begin decides.
    pub fn depends_on_begin(kind: EventKind) -> bool {
        matches!(
            kind,
            EventKind::DurationBegin
                | EventKind::DurationEnd
                | EventKind::AsyncBegin { .. }
                | EventKind::AsyncEnd { .. }
        )
    }

    /// Takes an event, with what is written of it, and whether it is selected. One that is not can only be a
    /// begin or an end.
    pub fn push(&mut self, event: &Event<'_>, bytes: &[u8], is_kept: bool) {
        let at = event.time.nanos().0;
        let (role, end) = match event.kind {
            EventKind::DurationBegin if event.ending().is_some() => (Role::Open, 0),
            EventKind::DurationBegin => (Role::Begin, 0),
            EventKind::DurationEnd => (Role::End, 0),
            EventKind::Instant { .. } => (Role::Moment, at),
            EventKind::DurationComplete { end } => {
                (Role::Complete, Time { ticks: end, ..event.time }.nanos().0.max(at))
            }
            EventKind::AsyncBegin { .. } => (Role::OperationBegin, 0),
            EventKind::AsyncInstant { .. } => (Role::OperationInstant, 0),
            EventKind::AsyncEnd { .. } => (Role::OperationEnd, 0),
            _ => return,
        };
        let id = match event.kind {
            EventKind::AsyncBegin { id } | EventKind::AsyncInstant { id } | EventKind::AsyncEnd { id } => id,
            _ => 0,
        };
        let OperationKey { category, .. } = OperationKey::of(event, id);
        self.add((role, is_kept), event.thread, at, [end, token(event.name), category, id], bytes);
    }

    /// Takes a part of a flow, with what is written of it.
    pub fn push_flow(&mut self, thread: Thread, at: u64, bytes: &[u8]) {
        self.add((Role::Flow, true), thread, at, [0; 4], bytes);
    }

    fn add(&mut self, (role, is_kept): (Role, bool), of: Thread, at: u64, rest: [u64; 4], bytes: &[u8]) {
        let Some(thread) = self.numbers.number(of, MAX_THREADS) else {
            self.unnumbered += 1;
            return;
        };
        if thread == self.threads.len() {
            self.threads.push(of);
        }
        let [end, name, category, id] = rest;
        let role = role as u64 | u64::from(is_kept) << KEPT_BIT;
        let head = [role, thread as u64, at, end, name, category, id];
        self.encoded.clear();
        self.encoded.extend_from_slice(head.map(u64::to_le_bytes).as_flattened());
        self.encoded.extend_from_slice(bytes);
        self.parts.push(at, &self.encoded);
    }

    /// Writes all slices.
    pub fn finish(self, writer: &mut impl WriteOdd) -> io::Result<Written> {
        let Self { odd, parts, threads, unnumbered, .. } = self;
        let mut pairs = Pairs::default();
        let mut operations = Operations::default();
        parts.finish(|entry| {
            let ([role, number, at, end, name, category, id], bytes) = words(entry)?;
            let (role, is_kept) = (role & ((1 << KEPT_BIT) - 1), role >> KEPT_BIT & 1 == 1);
            let thread = *threads.get(number as usize).ok_or_else(changed)?;
            match Role::ALL.get(role as usize) {
                Some(Role::Complete) => pairs.complete(number, at, end, bytes),
                Some(Role::Begin) => pairs.begin(number, at, is_kept, bytes),
                Some(Role::Open) => pairs.open(number, at, is_kept, bytes),
                Some(Role::End) => pairs.end(number, at, is_kept, bytes),
                Some(Role::Flow) => pairs.flow(number, at, bytes),
                Some(Role::Moment) => pairs.moment(number, at, bytes),
                Some(role) => {
                    let part = OperationPart { thread, id, at, bytes };
                    operations.part((*role, is_kept), category, name, &part, writer)?;
                }
                None => return Err(changed()),
            }
            Ok(())
        })?;
        let refused = pairs.unended.refused();
        pairs.end_all(|number, at| {
            let thread = threads.get(number as usize)?;
            let (ending, lasted_ns) = odd.partings().of(thread.process, at)?;
            Some(writer.ending(ending, lasted_ns))
        });
        let Pairs { lanes, pairing, more_ends, unselected, .. } = pairs;
        // Whether what is open on a lane is a slice.
        let mut are_slices: HashMap<Lane, Vec<bool>, RandomState> = HashMap::default();
        let left_out = lanes.finish(|step| {
            let thread = *threads.get(step.track as usize).ok_or_else(changed)?;
            let lane = Lane { thread, number: step.lane };
            let of_lane = are_slices.entry(lane).or_default();
            let Some((interval, bytes)) = step.begins else {
                return if of_lane.pop() == Some(true) { writer.end(lane, step.at) } else { Ok(()) };
            };
            let (length, bytes) = bytes.split_first_chunk().ok_or_else(changed)?;
            let length = u64::from_le_bytes(*length);
            of_lane.push(length != FLOW);
            if length == FLOW {
                return writer.flow(lane, step.at, bytes);
            }
            let (begin, end) = bytes.split_at_checked(length as usize).ok_or_else(changed)?;
            writer.begin(lane, &interval, begin, end)
        })?;
        let too_many = pairing.refused() + refused + operations.pairing.refused();
        let unmatched = (UNMATCHED, pairing.unmatched() - unselected);
        Ok(Written {
            skipped: [(TOO_MANY, too_many), (TOO_MANY_THREADS, unnumbered), (LEFT_OUT, left_out), unmatched],
            more_ends: more_ends + operations.more_ends,
        })
    }
}

/// Durations of threads, which come in the order of their begins and ends.
struct Pairs {
    lanes: Lanes,
    pairing: Pairing<Begun>,
    unended: Unended<u64, Begun>,
    record: u64,
    bytes: Vec<u8>,
    more_ends: i64,
    /// Ends for which nothing is open, and which are not selected.
    unselected: u64,
}

impl Default for Pairs {
    fn default() -> Self {
        let pairing = Pairing::default().with_bytes(MAX_OPEN_BYTES);
        let unended = Unended::new(MAX_OPEN_BYTES);
        Self {
            lanes: Lanes::default(),
            pairing,
            unended,
            record: 0,
            bytes: Vec::new(),
            more_ends: 0,
            unselected: 0,
        }
    }
}

impl Pairs {
    fn push(&mut self, thread: u64, interval: &Interval, begin: &[u8], end: &[u8]) {
        self.add(thread, interval, begin.len() as u64, begin, end);
    }

    /// What has one record, which is the next one.
    fn whole(&mut self, begin: u64, end: u64) -> Interval {
        self.record += 1;
        Interval { begin, end, begun: self.record, ended: self.record }
    }

    fn flow(&mut self, thread: u64, at: u64, bytes: &[u8]) {
        let interval = self.whole(at, at);
        self.add(thread, &interval, FLOW, bytes, &[]);
    }

    fn moment(&mut self, thread: u64, at: u64, bytes: &[u8]) {
        let interval = self.whole(at, at);
        self.push(thread, &interval, bytes, &[]);
    }

    fn add(&mut self, thread: u64, interval: &Interval, length: u64, begin: &[u8], end: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(begin);
        self.bytes.extend_from_slice(end);
        self.lanes.push(thread, interval, &self.bytes);
    }

    fn complete(&mut self, thread: u64, begin: u64, end: u64, bytes: &[u8]) {
        self.unended.has_ended(thread, begin);
        let interval = self.whole(begin, end);
        self.push(thread, &interval, bytes, &[]);
    }

    fn begin(&mut self, thread: u64, at: u64, is_kept: bool, bytes: &[u8]) {
        self.record += 1;
        let begun = Begun { at, is_kept, thread, record: self.record, is_pair: true, bytes: bytes.to_vec() };
        self.pairing.begin(thread as usize, begun);
    }

    fn open(&mut self, thread: u64, at: u64, is_kept: bool, bytes: &[u8]) {
        self.record += 1;
        let record = BEHIND_ALL + self.record;
        let begun = Begun { at, is_kept, thread, record, is_pair: false, bytes: bytes.to_vec() };
        self.unended.begin(thread, at, begun);
    }

    fn end(&mut self, thread: u64, at: u64, is_kept: bool, bytes: &[u8]) {
        self.record += 1;
        match self.pairing.end(thread as usize) {
            Ended::Nothing => self.unselected += u64::from(!is_kept),
            ended => {
                let Some(begun) = ended.begun() else { return };
                self.more_ends += i64::from(begun.is_kept) - i64::from(is_kept);
                self.pair(thread, begun, at, bytes);
            }
        }
    }

    fn pair(&mut self, thread: u64, begun: Begun, end: u64, bytes: &[u8]) {
        if !begun.is_kept {
            return;
        }
        let ended = if begun.is_pair { self.record } else { begun.record };
        let interval = Interval { begin: begun.at, end, begun: begun.record, ended };
        self.push(thread, &interval, &begun.bytes, bytes);
    }

    /// Ends what has no end, the innermost first, with what is written in place of the end of a begin by
    /// itself.
    fn end_all(&mut self, mut ending: impl FnMut(u64, u64) -> Option<Vec<u8>>) {
        let mut open: Vec<Begun> = self.pairing.take_threads().map(|(_, begun)| begun).collect();
        let unended = std::mem::replace(&mut self.unended, Unended::new(0));
        open.extend(unended.into_rest());
        open.sort_unstable_by_key(|begun| (begun.thread, begun.at, begun.record));
        for begun in open.into_iter().rev() {
            self.record += 1;
            let end = if begun.is_pair { ending(begun.thread, begun.at) } else { None };
            self.pair(begun.thread, begun, u64::MAX, &end.unwrap_or_default());
        }
    }
}

/// Operations that have begun.
struct Operations {
    pairing: Pairing<BegunOperation>,
    next: u64,
    more_ends: i64,
}

impl Default for Operations {
    fn default() -> Self {
        Self { pairing: Pairing::default().with_bytes(MAX_OPEN_BYTES), next: 0, more_ends: 0 }
    }
}

impl Operations {
    fn part(
        &mut self,
        (role, is_kept): (Role, bool),
        category: u64,
        name: u64,
        part: &OperationPart<'_>,
        writer: &mut impl WriteOdd,
    ) -> io::Result<()> {
        let key = &OperationKey { process: part.thread.process, category, id: part.id };
        match role {
            Role::OperationBegin => {
                let number = self.next;
                let begun = BegunOperation { number, bytes: part.bytes.len(), is_kept };
                if !self.pairing.begin_operation(key, name, begun) || !is_kept {
                    return Ok(());
                }
                self.next += 1;
                writer.operation_begin(number, part)
            }
            Role::OperationEnd => match self.pairing.end_operation(key, name) {
                Ended::Refused => Ok(()),
                ended => {
                    let begun = ended.begun();
                    let is_wanted = begun.as_ref().map_or(is_kept, |begun| begun.is_kept);
                    self.more_ends += i64::from(is_wanted) - i64::from(is_kept);
                    if !is_wanted {
                        return Ok(());
                    }
                    writer.operation_end(begun.map(|begun| begun.number), part)
                }
            },
            _ => {
                let begun = self.pairing.operation(key, name).filter(|begun| begun.is_kept);
                writer.operation_instant(begun.map(|begun| begun.number), part)
            }
        }
    }
}

#[cfg(test)]
mod tests;
