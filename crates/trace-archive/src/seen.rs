//! What the records of a buffer have said so far, as far as what is open in the end depends on it.

use trace_format::event::{Event, EventType};
use trace_format::record::{Record, RecordHeader, RecordType};
use trace_format::refs::{INLINE, StringRef};
use trace_format::units::{Koid, Ticks};

/// Durations of one thread, begun and not ended, that are remembered.
const MAX_BEGUN: usize = 64;
/// Bytes of their names that are remembered.
const MAX_NAME_BYTES: usize = 256;

/// The name of a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BegunName {
    /// An index of the buffer's table of strings.
    Index(u16),
    /// The first bytes of an inline name, not validated as UTF-8.
    Inline(Vec<u8>),
}

/// A duration that has begun with a record of its own, and has not ended so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// When it began.
    pub start: Ticks,
    /// The name of the duration.
    pub name: BegunName,
}

/// The durations of a thread that have begun and not ended, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The outermost [`MAX_BEGUN`].
    pub begun: Vec<Begun>,
    /// How many are inside of these.
    pub deeper: u64,
}

impl Stack {
    fn begin(&mut self, begun: Begun) {
        if self.begun.len() < MAX_BEGUN {
            self.begun.push(begun);
        } else {
            self.deeper += 1;
        }
    }

    fn end(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.begun.pop();
        }
    }
}

/// Threads and times of records, from one part of a buffer to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Koids of threads by their indices; 0 where there is none.
    threads: [u64; 256],
    /// By the same indices; as many as are needed.
    stacks: Vec<Stack>,
    process: u64,
    has_begins: bool,
    latest: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { threads: [0; 256], stacks: Vec::new(), process: 0, has_begins: false, latest: 0 }
    }
}

impl Seen {
    /// After records that are not known.
    #[must_use]
    pub fn of_rest() -> Self {
        Self { has_begins: true, ..Self::default() }
    }

    /// Knows threads whose definitions are in the archive already.
    pub fn define(&mut self, threads: &[(u8, u64)]) {
        for (index, koid) in threads {
            let index = usize::from(*index);
            if self.threads[index] != *koid {
                self.threads[index] = *koid;
                self.stacks.get_mut(index).map(std::mem::take);
            }
        }
    }

    /// Whether something may have begun that ends with another record.
    #[must_use]
    pub const fn has_begins(&self) -> bool {
        self.has_begins
    }

    /// The process of its threads; 0 before the first one.
    #[must_use]
    pub const fn process(&self) -> Koid {
        Koid(self.process)
    }

    /// The last time of an event.
    #[must_use]
    pub const fn latest(&self) -> Ticks {
        Ticks(self.latest)
    }

    /// What threads have begun with records of their own, and not ended. Threads without an index are left
    /// out.
    pub fn stacks(&self) -> impl Iterator<Item = (u64, &Stack)> {
        let stacks = self.threads.iter().copied().zip(&self.stacks);
        stacks.filter(|(_, stack)| !stack.begun.is_empty())
    }

    /// Takes records, and passes on thread and begin of each complete duration.
    pub fn note_records(&mut self, mut records: &[u8], mut has_ended: impl FnMut(u64, u64)) {
        while let Some((header, _)) = records.split_first_chunk() {
            let header = RecordHeader(u64::from_le_bytes(*header));
            let size = header.size().bytes().max(8);
            let Some((record, rest)) = records.split_at_checked(size) else { return };
            records = rest;
            match header.record_type() {
                Some(RecordType::Event) => {
                    if let Some((thread, begin)) = self.event(header, record) {
                        has_ended(thread, begin);
                    }
                }
                Some(RecordType::Thread) => {
                    if let Ok(Record::Thread(thread)) = Record::decode(record) {
                        self.define(&[(thread.index, thread.thread.0.0)]);
                        self.process = thread.process.0.0;
                    }
                }
                _ => {}
            }
        }
    }

    /// Thread and begin of a complete duration.
    fn event(&mut self, header: RecordHeader, record: &[u8]) -> Option<(u64, u64)> {
        const DURATION_BEGIN: u64 = EventType::DurationBegin as u64;
        const DURATION_END: u64 = EventType::DurationEnd as u64;
        const DURATION_COMPLETE: u64 = EventType::DurationComplete as u64;
        const ASYNC_BEGIN: u64 = EventType::AsyncBegin as u64;
        let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let word_at = |offset: usize| word(record.get(offset..).and_then(<[u8]>::first_chunk));
        let begin = word_at(8);
        self.latest = self.latest.max(begin);
        let index = usize::from((header.0 >> 24) as u8);
        match header.0 >> 16 & 15 {
            DURATION_BEGIN => {
                self.has_begins = true;
                if index > 0 {
                    let name = match (header.0 >> 48) as u16 {
                        name if name & INLINE == 0 => BegunName::Index(name),
                        _ => BegunName::Inline(inline_name(record)),
                    };
                    self.stack(index).begin(Begun { start: Ticks(begin), name });
                }
                None
            }
            DURATION_END => {
                if index > 0 {
                    self.stack(index).end();
                }
                None
            }
            ASYNC_BEGIN => {
                self.has_begins = true;
                None
            }
            DURATION_COMPLETE => {
                self.latest = self.latest.max(word(record.last_chunk()));
                let thread = match index {
                    0 => word_at(24),
                    index => self.threads[index],
                };
                Some((thread, begin))
            }
            _ => None,
        }
    }

    fn stack(&mut self, index: usize) -> &mut Stack {
        if self.stacks.len() <= index {
            self.stacks.resize(index + 1, Stack::default());
        }
        &mut self.stacks[index]
    }
}

/// The first bytes of the name that an event has in itself.
fn inline_name(record: &[u8]) -> Vec<u8> {
    match Record::decode(record) {
        Ok(Record::Event(Event { name: StringRef::Inline(name), .. })) => {
            name[..name.len().min(MAX_NAME_BYTES)].to_vec()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::ByteSink;
    use trace_format::argument::Arguments;
    use trace_format::event::EventKind;
    use trace_format::refs::ThreadRef;
    use trace_format::thread::ThreadRecord;
    use trace_format::units::{ProcessKoid, StringIndex, ThreadIndex, ThreadKoid};

    fn encoded(record: &Record<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        record.encode(&mut ByteSink(&mut out)).unwrap();
        out
    }

    fn event(thread: ThreadRef, begin: u64, kind: EventKind) -> Vec<u8> {
        let [category, name] = [StringRef::Empty; 2];
        let arguments = Arguments::from_slice(&[]);
        encoded(&Record::Event(Event { timestamp: Ticks(begin), thread, category, name, kind, arguments }))
    }

    #[test]
    fn complete_durations_are_found_with_their_threads() {
        let process = ProcessKoid(Koid(70));
        let [inline, defined] = [71, 72].map(|koid| ThreadKoid(Koid(koid)));
        let index = ThreadIndex::new(3).unwrap();
        let complete = EventKind::DurationComplete { end: Ticks(150) };
        let defines = encoded(&Record::Thread(ThreadRecord { index: 3, process, thread: defined }));
        let inline = ThreadRef::Inline { process, thread: inline };
        let mut seen = Seen::default();
        let mut found = Vec::new();
        seen.note_records(&[defines, event(inline, 100, complete)].concat(), |thread, begin| {
            found.push((thread, begin));
        });
        // A thread is known in the next part.
        let more = [event(ThreadRef::Index(index), 90, complete), event(inline, 7, EventKind::DurationEnd)];
        seen.note_records(&more.concat(), |thread, begin| found.push((thread, begin)));
        assert_eq!(found, [(71, 100), (72, 90)]);
        assert_eq!((seen.has_begins(), seen.latest()), (false, Ticks(150)));
        // Half a record is none.
        seen.note_records(&event(inline, 200, complete)[..16], |_, _| panic!("half a record"));
    }

    #[test]
    fn begins_that_need_an_end_are_noticed() {
        let thread = ThreadRef::Inline { process: ProcessKoid(Koid(70)), thread: ThreadKoid(Koid(71)) };
        for kind in [EventKind::DurationBegin, EventKind::AsyncBegin { id: 5 }] {
            let mut seen = Seen::default();
            seen.note_records(&event(thread, 5, kind), |_, _| panic!("no complete duration"));
            assert_eq!((seen.has_begins(), seen.latest()), (true, Ticks(5)));
        }
        assert!(Seen::of_rest().has_begins());
    }

    #[test]
    fn what_has_begun_and_not_ended_is_kept_by_thread() {
        let process = ProcessKoid(Koid(70));
        let thread = |index| ThreadRef::Index(ThreadIndex::new(index).unwrap());
        let (begin, end) = (EventKind::DurationBegin, EventKind::DurationEnd);
        let mut seen = Seen::default();
        seen.define(&[(1, 71), (3, 72)]);
        let note = |seen: &mut Seen, thread, at, kind| seen.note_records(&event(thread, at, kind), |_, _| ());
        let starts = |seen: &Seen| {
            let starts = |stack: &Stack| stack.begun.iter().map(|begun| begun.start.0).collect::<Vec<_>>();
            seen.stacks().map(|(thread, stack)| (thread, starts(stack), stack.deeper)).collect::<Vec<_>>()
        };
        // An end whose begin is not there ends nothing that begins later.
        for (index, at, kind) in
            [(3, 1, end), (3, 2, begin), (3, 3, begin), (1, 4, begin), (3, 5, end), (1, 6, end)]
        {
            note(&mut seen, thread(index), at, kind);
        }
        let inline = ThreadRef::Inline { process, thread: ThreadKoid(Koid(99)) };
        note(&mut seen, inline, 7, begin);
        assert_eq!(starts(&seen), [(72, vec![2], 0)]);
        for at in 10..10 + MAX_BEGUN as u64 + 1 {
            note(&mut seen, thread(3), at, begin);
        }
        assert_eq!(seen.stacks().map(|(_, stack)| (stack.begun.len(), stack.deeper)).next(), Some((64, 2)));
        for at in 200..200 + MAX_BEGUN as u64 {
            note(&mut seen, thread(3), at, end);
        }
        assert_eq!(starts(&seen), [(72, vec![2, 10], 0)]);
        // Another thread gets the index.
        seen.define(&[(3, 72)]);
        assert_eq!(starts(&seen).len(), 1);
        seen.define(&[(3, 73)]);
        assert_eq!(starts(&seen), []);
    }

    #[test]
    fn names_are_kept_as_records_have_them() {
        let mut seen = Seen::default();
        seen.define(&[(3, 72)]);
        let long = "x".repeat(300);
        for name in [StringRef::Index(StringIndex::new(5).unwrap()), StringRef::Inline(long.as_bytes())] {
            let thread = ThreadRef::Index(ThreadIndex::new(3).unwrap());
            let (category, arguments) = (StringRef::Inline(b"app"), Arguments::from_slice(&[]));
            let (timestamp, kind) = (Ticks(1), EventKind::DurationBegin);
            let event = Event { timestamp, thread, category, name, kind, arguments };
            seen.note_records(&encoded(&Record::Event(event)), |_, _| ());
        }
        let names: Vec<_> =
            seen.stacks().flat_map(|(_, stack)| &stack.begun).map(|begun| &begun.name).collect();
        assert_eq!(names, [&BegunName::Index(5), &BegunName::Inline(vec![b'x'; 256])]);
    }

    /// A reader that resumes after the definitions does not read them again.
    #[test]
    fn threads_are_known_whose_definitions_were_read_before() {
        let mut seen = Seen::of_rest();
        seen.define(&[(3, 72)]);
        let index = ThreadRef::Index(ThreadIndex::new(3).unwrap());
        let mut found = Vec::new();
        let complete = event(index, 90, EventKind::DurationComplete { end: Ticks(95) });
        seen.note_records(&complete, |thread, begin| found.push((thread, begin)));
        assert_eq!(found, [(72, 90)]);
    }
}
