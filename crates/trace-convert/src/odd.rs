//! Slices that readers with stacks would misunderstand in the order of their records. Exporters write them
//! behind all others, as steps of lanes.
//!
//! What an exporter needs to write a begin or an end is made when its record is read, and waits with it.
//= docs/meaning.md#overlap

use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::io;
use trace_format::event::EventKind;
use trace_format::units::Koid;
use trace_model::{Interval, Lanes, Odd, OperationKey, token};
use trace_reader::sorter::Sorter;
use trace_reader::{Event, Thread, ThreadNumbers, Time};

/// Begins that have no end so far, and the bytes of what belongs to them: of durations, and of operations.
const MAX_OPEN: usize = 500_000;
const MAX_OPEN_BYTES: usize = 8 << 20;
/// The remark about begins beyond that.
const TOO_MANY: &str = "begins of slices beyond 500 000 or 8 MiB that are open";
/// Threads that are distinguished.
const MAX_THREADS: usize = 1 << 20;
/// The remark about parts of slices of others.
const TOO_MANY_THREADS: &str = "events of threads beyond a million";
/// What waits in memory; a file holds the rest.
const RUN_BYTES: usize = 16 << 20;
/// The remark about ends for which nothing is open.
pub(crate) const UNMATCHED: &str = "ends without a begin were left out";
/// The remark about slices for which there were no lanes.
const LEFT_OUT: &str = "slices beyond 1000 that overlap, or 500 000 that are open";
const HEAD_WORDS: usize = 7;

/// What a part does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Complete,
    Begin,
    End,
    OperationBegin,
    OperationInstant,
    OperationEnd,
}

impl Role {
    const ALL: [Self; 6] = [
        Self::Complete,
        Self::Begin,
        Self::End,
        Self::OperationBegin,
        Self::OperationInstant,
        Self::OperationEnd,
    ];
}

/// The parts of odd slices.
#[derive(Debug)]
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

/// Writes odd slices. Bytes are those that were made of the records.
pub(crate) trait WriteOdd {
    /// A slice begins. Its end, if it has one, is known, and what belongs to that.
    fn begin(&mut self, lane: Lane, interval: &Interval, begin: &[u8], end: &[u8]) -> io::Result<()>;
    /// The innermost slice of a lane ends.
    fn end(&mut self, lane: Lane, at: u64) -> io::Result<()>;
    /// An operation begins, which is numbered.
    fn operation_begin(&mut self, number: u64, thread: Thread, at: u64, begin: &[u8]) -> io::Result<()>;
    /// A moment of an operation; without a number, of one that has not begun.
    fn operation_instant(
        &mut self,
        number: Option<u64>,
        thread: Thread,
        at: u64,
        instant: &[u8],
    ) -> io::Result<()>;
    /// An operation ends; without a number, one that has not begun.
    fn operation_end(
        &mut self,
        number: Option<u64>,
        of: (Thread, u64),
        at: u64,
        end: &[u8],
    ) -> io::Result<()>;
}

/// What could not be written as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Kinds of what the format cannot express.
    pub skipped: [(&'static str, u64); 3],
    /// Ends of threads' slices for which nothing was open.
    pub unmatched: u64,
}

/// A begin without an end so far.
struct Open {
    at: u64,
    record: u64,
    begin: Vec<u8>,
}

/// An operation that has begun.
struct OpenOperation {
    number: u64,
    name: u64,
    /// The length of what belongs to its begin.
    bytes: usize,
}

impl OddSlices {
    pub fn new(odd: Odd) -> Self {
        Self {
            odd,
            parts: Sorter::with_runs_of(RUN_BYTES),
            encoded: Vec::new(),
            numbers: ThreadNumbers::default(),
            threads: Vec::new(),
            unnumbered: 0,
        }
    }

    /// Whether an event is a part of a slice that has to wait.
    #[inline]
    pub fn has(&self, event: &Event<'_>) -> bool {
        match event.kind {
            EventKind::DurationBegin | EventKind::DurationEnd | EventKind::DurationComplete { .. } => {
                self.odd.has_thread(event.thread)
            }
            EventKind::AsyncBegin { id } | EventKind::AsyncInstant { id } | EventKind::AsyncEnd { id } => {
                self.odd.has_operation(&OperationKey::of(event, id))
            }
            _ => false,
        }
    }

    /// Takes an event, with what is written of it.
    pub fn push(&mut self, event: &Event<'_>, bytes: &[u8]) {
        let at = event.time.nanos().0;
        let (role, end) = match event.kind {
            EventKind::DurationBegin => (Role::Begin, 0),
            EventKind::DurationEnd => (Role::End, 0),
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
        let Some(thread) = self.numbers.number(event.thread, MAX_THREADS) else {
            self.unnumbered += 1;
            return;
        };
        if thread == self.threads.len() {
            self.threads.push(event.thread);
        }
        let OperationKey { category, .. } = OperationKey::of(event, id);
        let head: [u64; HEAD_WORDS] = [role as u64, thread as u64, at, end, token(event.name), category, id];
        self.encoded.clear();
        self.encoded.extend_from_slice(head.map(u64::to_le_bytes).as_flattened());
        self.encoded.extend_from_slice(bytes);
        self.parts.push(at, &self.encoded);
    }

    /// Writes all slices.
    pub fn finish(self, writer: &mut impl WriteOdd) -> io::Result<Counts> {
        let Self { parts, threads, unnumbered, .. } = self;
        let mut pairs = Pairs::default();
        let mut open_operations = OpenOperations::default();
        parts.finish(|entry| {
            let (head, bytes) = split(entry)?;
            let [role, number, at, end, name, category, id] = head;
            let thread = *threads.get(number as usize).ok_or_else(changed)?;
            match Role::ALL.get(role as usize) {
                Some(Role::Complete) => pairs.complete(number, at, end, bytes),
                Some(Role::Begin) => pairs.begin(number, at, bytes),
                Some(Role::End) => pairs.end(number, at, bytes),
                Some(role) => {
                    let key = OperationKey { process: thread.process, category, id };
                    open_operations.part(*role, &key, name, (thread, at), bytes, writer)?;
                }
                None => return Err(changed()),
            }
            Ok(())
        })?;
        let Pairs { lanes, refused, unmatched, .. } = pairs.unended();
        let left_out = lanes.finish(|step| {
            let thread = *threads.get(step.track as usize).ok_or_else(changed)?;
            let lane = Lane { thread, number: step.lane };
            match step.begins {
                Some((interval, bytes)) => {
                    let (length, bytes) = bytes.split_first_chunk().ok_or_else(changed)?;
                    let (begin, end) =
                        bytes.split_at_checked(u64::from_le_bytes(*length) as usize).ok_or_else(changed)?;
                    writer.begin(lane, &interval, begin, end)
                }
                None => writer.end(lane, step.at),
            }
        })?;
        let too_many = refused + open_operations.refused;
        let skipped = [(TOO_MANY, too_many), (TOO_MANY_THREADS, unnumbered), (LEFT_OUT, left_out)];
        Ok(Counts { skipped, unmatched })
    }
}

fn changed() -> io::Error {
    io::Error::other("what was sorted has changed")
}

fn split(entry: &[u8]) -> io::Result<([u64; HEAD_WORDS], &[u8])> {
    let head = entry.as_chunks::<8>().0.first_chunk::<HEAD_WORDS>().ok_or_else(changed)?;
    Ok((head.map(u64::from_le_bytes), entry.get(8 * HEAD_WORDS..).unwrap_or_default()))
}

/// Durations of threads, which come in the order of their begins and ends.
#[derive(Default)]
struct Pairs {
    lanes: Lanes,
    open: HashMap<u64, (Vec<Open>, u64), RandomState>,
    count: usize,
    open_bytes: usize,
    record: u64,
    refused: u64,
    unmatched: u64,
    bytes: Vec<u8>,
}

impl Pairs {
    fn push(&mut self, thread: u64, interval: &Interval, begin: &[u8], end: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&(begin.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(begin);
        self.bytes.extend_from_slice(end);
        self.lanes.push(thread, interval, &self.bytes);
    }

    fn complete(&mut self, thread: u64, begin: u64, end: u64, bytes: &[u8]) {
        self.record += 1;
        let interval = Interval { begin, end, begun: self.record, ended: self.record };
        self.push(thread, &interval, bytes, &[]);
    }

    fn begin(&mut self, thread: u64, at: u64, bytes: &[u8]) {
        self.record += 1;
        let (open, refused) = self.open.entry(thread).or_default();
        if self.count >= MAX_OPEN || self.open_bytes + bytes.len() > MAX_OPEN_BYTES || *refused > 0 {
            *refused += 1;
            self.refused += 1;
            return;
        }
        self.count += 1;
        self.open_bytes += bytes.len();
        open.push(Open { at, record: self.record, begin: bytes.to_vec() });
    }

    fn end(&mut self, thread: u64, at: u64, bytes: &[u8]) {
        self.record += 1;
        let (open, refused) = self.open.entry(thread).or_default();
        if let Some(less) = refused.checked_sub(1) {
            *refused = less;
            return;
        }
        let Some(Open { at: begin, record: begun, begin: of_begin }) = open.pop() else {
            self.unmatched += 1;
            return;
        };
        self.count -= 1;
        self.open_bytes -= of_begin.len();
        let interval = Interval { begin, end: at, begun, ended: self.record };
        self.push(thread, &interval, &of_begin, bytes);
    }

    /// With what has not ended.
    fn unended(mut self) -> Self {
        for (thread, (mut open, _)) in std::mem::take(&mut self.open) {
            while let Some(Open { at: begin, record: begun, begin: of_begin }) = open.pop() {
                self.record += 1;
                let interval = Interval { begin, end: u64::MAX, begun, ended: self.record };
                self.push(thread, &interval, &of_begin, &[]);
            }
        }
        self
    }
}

/// Operations that have begun.
#[derive(Default)]
struct OpenOperations {
    open: HashMap<OperationKey, Vec<OpenOperation>, RandomState>,
    /// The processes in which operations of a category, name and id began, the last one last.
    begun_in: HashMap<(u64, u64, u64), Vec<Koid>, RandomState>,
    next: u64,
    count: usize,
    open_bytes: usize,
    refused: u64,
}

impl OpenOperations {
    //= docs/meaning.md#operations
    fn part(
        &mut self,
        role: Role,
        key: &OperationKey,
        name: u64,
        (thread, at): (Thread, u64),
        bytes: &[u8],
        writer: &mut impl WriteOdd,
    ) -> io::Result<()> {
        if role == Role::OperationBegin {
            if self.count >= MAX_OPEN || self.open_bytes + bytes.len() > MAX_OPEN_BYTES {
                self.refused += 1;
                return Ok(());
            }
            self.count += 1;
            self.open_bytes += bytes.len();
            let number = self.next;
            self.next += 1;
            self.open.entry(*key).or_default().push(OpenOperation { number, name, bytes: bytes.len() });
            self.begun_in.entry((key.category, name, key.id)).or_default().push(thread.process);
            return writer.operation_begin(number, thread, at, bytes);
        }
        let number = match self.place(key, name) {
            Some((key, place)) if role == Role::OperationEnd => self.remove(&key, place),
            Some((key, place)) => {
                self.open.get(&key).and_then(|open| open.get(place)).map(|open| open.number)
            }
            None => None,
        };
        match (role, number) {
            (Role::OperationEnd, number) => writer.operation_end(number, (thread, key.id), at, bytes),
            _ => writer.operation_instant(number, thread, at, bytes),
        }
    }

    /// The last open operation with the name in its process, or the last there; else the last with the name
    /// in another process.
    fn place(&self, key: &OperationKey, name: u64) -> Option<(OperationKey, usize)> {
        let named = |key: OperationKey| {
            let open = self.open.get(&key)?;
            Some((key, open.iter().rposition(|open| open.name == name)?))
        };
        let innermost = || Some((*key, self.open.get(key)?.len().checked_sub(1)?));
        let elsewhere = || {
            let processes = self.begun_in.get(&(key.category, name, key.id))?;
            processes.iter().rev().find_map(|process| named(OperationKey { process: *process, ..*key }))
        };
        named(*key).or_else(innermost).or_else(elsewhere)
    }

    fn remove(&mut self, key: &OperationKey, place: usize) -> Option<u64> {
        let open = self.open.get_mut(key)?;
        let OpenOperation { number, name, bytes } = open.remove(place);
        if open.is_empty() {
            self.open.remove(key);
        }
        self.count -= 1;
        self.open_bytes -= bytes;
        let named = (key.category, name, key.id);
        if let Some(processes) = self.begun_in.get_mut(&named) {
            processes.iter().rposition(|process| *process == key.process).map(|last| processes.remove(last));
            if processes.is_empty() {
                self.begun_in.remove(&named);
            }
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests;
