//! What the records of a buffer have said so far, as far as what is open in the end depends on it.

use trace_format::event::EventType;
use trace_format::record::{Record, RecordHeader, RecordType};
use trace_format::units::{Koid, Ticks};

/// Threads and times of records, from one part of a buffer to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Koids of threads by their indices; 0 where there is none.
    threads: [u64; 256],
    process: u64,
    has_begins: bool,
    latest: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { threads: [0; 256], process: 0, has_begins: false, latest: 0 }
    }
}

impl Seen {
    /// After records that are not known.
    #[must_use]
    pub fn of_rest() -> Self {
        Self { has_begins: true, ..Self::default() }
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
                        self.threads[usize::from(thread.index)] = thread.thread.0.0;
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
        const DURATION_COMPLETE: u64 = EventType::DurationComplete as u64;
        const ASYNC_BEGIN: u64 = EventType::AsyncBegin as u64;
        let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let word_at = |offset: usize| word(record.get(offset..).and_then(<[u8]>::first_chunk));
        let begin = word_at(8);
        self.latest = self.latest.max(begin);
        match header.0 >> 16 & 15 {
            DURATION_BEGIN | ASYNC_BEGIN => {
                self.has_begins = true;
                None
            }
            DURATION_COMPLETE => {
                self.latest = self.latest.max(word(record.last_chunk()));
                let thread = match (header.0 >> 24) as u8 {
                    0 => word_at(24),
                    index => self.threads[usize::from(index)],
                };
                Some((thread, begin))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::ByteSink;
    use trace_format::argument::Arguments;
    use trace_format::event::{Event, EventKind};
    use trace_format::refs::{StringRef, ThreadRef};
    use trace_format::thread::ThreadRecord;
    use trace_format::units::{ProcessKoid, ThreadIndex, ThreadKoid};

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
}
