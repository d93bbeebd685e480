//! The end of an archive: everything that was still going on, or happened, in the last so many seconds.

use crate::item::{Event, EventKind, Item, Koid, ProviderId, Thread};
use crate::reader::Reader;
use crate::recordings::Mark;
use crate::records::ReadError;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, BufWriter, Read, Write};
use std::time::Duration;
use trace_format::units::{Ticks, TicksPerSecond};

/// How much is written at once.
const WRITE_BYTES: usize = 256 << 10;
/// Begins without an end so far that are remembered; those beyond are kept.
const MAX_OPEN: usize = 1 << 20;

/// Which end is wanted.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    /// The time that counts as now, in the ticks of the archive.
    pub now: u64,
    /// The same for providers that have ended before.
    pub ended: BTreeMap<ProviderId, u64>,
    /// How far back; everything when absent.
    pub last: Option<Duration>,
    /// The numbers of the records that begin before that and end later, or not at all.
    pub begins: HashSet<u64>,
}

/// What of a provider there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Who it is.
    pub provider: ProviderId,
    /// How far its first record lies back, from now or from its end, at most what was asked for; none if it
    /// has no event.
    pub covered: Option<Duration>,
    /// How long ago it ended; 0 if it has not.
    pub ended: Duration,
    /// Its events.
    pub events: u64,
}

/// What a copy has.
#[derive(Debug)]
pub struct Copied {
    /// Each provider.
    pub coverage: Vec<Coverage>,
    /// Why the rest of the archive could not be read.
    pub stopped: Option<ReadError>,
}

/// Why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The input is no archive, or nothing could be read of it.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The copy cannot be written.
    #[error("cannot write")]
    Write(#[from] io::Error),
}

fn span(ticks: u64, rate: TicksPerSecond) -> Duration {
    Duration::from_nanos(Ticks(ticks).to_nanos(rate).0)
}

/// What begins and ends with records of its own.
#[derive(PartialEq, Eq, Hash)]
enum Row {
    Thread(Thread),
    Operation(Koid, Vec<u8>, u64),
    Flow(Koid, Vec<u8>, u64),
}

/// A begin without an end so far.
struct Open {
    number: u64,
    is_in_tail: bool,
}

/// What has begun and not ended.
#[derive(Default)]
struct Begun {
    /// The numbers of the records, by their rows, and whether each is in the tail by its own time.
    rows: HashMap<Row, Vec<Open>>,
    count: usize,
    /// Times of ends of operations whose begins follow: other threads have written them.
    early: HashMap<Row, Vec<(Ticks, bool)>>,
    early_count: usize,
    /// The begins of what has an end in the tail.
    kept: HashSet<u64>,
}

impl Begun {
    fn note(&mut self, number: u64, event: &Event<'_>, is_in_tail: bool) {
        let (process, category) = (event.thread.process, event.category.as_bytes());
        let operation = |id| Row::Operation(process, category.to_vec(), id);
        let flow = |id| Row::Flow(process, category.to_vec(), id);
        match event.kind {
            EventKind::DurationBegin => self.begin(Row::Thread(event.thread), number, is_in_tail),
            EventKind::DurationEnd => _ = self.end(&Row::Thread(event.thread), is_in_tail),
            EventKind::AsyncBegin { id } => {
                let row = operation(id);
                // One id may have several ends.
                let ends = self.early.get_mut(&row);
                match ends.and_then(|ends| ends.pop_if(|(end, _)| *end >= event.time.ticks)) {
                    None => self.begin(row, number, is_in_tail),
                    Some((_, is_end_in_tail)) => {
                        self.early_count -= 1;
                        if self.early.get(&row).is_some_and(Vec::is_empty) {
                            self.early.remove(&row);
                        }
                        self.kept.extend((is_end_in_tail && !is_in_tail).then_some(number));
                    }
                }
            }
            EventKind::AsyncEnd { id } => {
                let row = operation(id);
                if !self.end(&row, is_in_tail) && self.early_count < MAX_OPEN {
                    self.early_count += 1;
                    self.early.entry(row).or_default().push((event.time.ticks, is_in_tail));
                }
            }
            EventKind::FlowBegin { id } => self.begin(flow(id), number, is_in_tail),
            EventKind::FlowStep { id } => {
                let begun = self.rows.get(&flow(id)).and_then(|begun| begun.last());
                self.kept.extend(begun.filter(|_| is_in_tail).map(|begun| begun.number));
            }
            EventKind::FlowEnd { id } => _ = self.end(&flow(id), is_in_tail),
            _ => {}
        }
    }

    fn begin(&mut self, row: Row, number: u64, is_in_tail: bool) {
        if self.count < MAX_OPEN {
            self.count += 1;
            self.rows.entry(row).or_default().push(Open { number, is_in_tail });
        } else if !is_in_tail {
            self.kept.insert(number);
        }
    }

    /// False if nothing was open.
    fn end(&mut self, row: &Row, is_in_tail: bool) -> bool {
        let Some(begun) = self.rows.get_mut(row) else { return false };
        if let Some(Open { number, is_in_tail: is_begin_in_tail }) = begun.pop() {
            self.count -= 1;
            if is_in_tail && !is_begin_in_tail {
                self.kept.insert(number);
            }
        }
        if begun.is_empty() {
            self.rows.remove(row);
        }
        true
    }

    fn finish(mut self) -> HashSet<u64> {
        // A flow that does not go on has nothing to be joined with.
        let rows = self.rows.into_iter().filter(|(row, _)| !matches!(row, Row::Flow(..)));
        let open = rows.flat_map(|(_, open)| open).filter(|open| !open.is_in_tail);
        self.kept.extend(open.map(|open| open.number));
        self.kept
    }
}

impl Tail {
    /// Finds the begins of what goes on in the tail, of which [`Tail::copy`] would see the end too late.
    ///
    /// # Errors
    /// The input is no archive. Where only a part of it can be read, that part counts.
    pub fn note_begins(&mut self, input: impl Read) -> Result<(), ReadError> {
        if self.last.is_none() {
            return Ok(());
        }
        let mut reader = Reader::new(input)?;
        let mut begun = Begun::default();
        let mut number = 0;
        while let Ok(Some(resolved)) = reader.next_item() {
            if let Item::Event(event) = &resolved.item
                && event.ending().is_none()
            {
                begun.note(number, event, !self.has_ended_before(resolved.provider, event));
            }
            number += 1;
        }
        self.begins = begun.finish();
        Ok(())
    }

    /// The time that counts as now for a provider.
    fn now_of(&self, provider: ProviderId) -> u64 {
        self.ended.get(&provider).copied().unwrap_or(self.now)
    }

    /// Whether an event ended before the tail begins.
    fn has_ended_before(&self, provider: ProviderId, event: &Event<'_>) -> bool {
        let end = match event.kind {
            EventKind::DurationComplete { end } => end,
            _ => event.time.ticks,
        };
        let age = span(self.now_of(provider).saturating_sub(end.0), event.time.rate);
        self.last.is_some_and(|last| age > last)
    }

    /// Copies an archive without events that ended before; definitions and everything else stay, and
    /// [`Tail::begins`].
    ///
    /// # Errors
    /// The input is no archive, or the copy cannot be written.
    pub fn copy(&self, input: impl Read, output: impl Write) -> Result<Copied, TailError> {
        let mut reader = Reader::new(input)?;
        let mut output = BufWriter::with_capacity(WRITE_BYTES, output);
        let mut coverage: BTreeMap<ProviderId, Coverage> = BTreeMap::new();
        let mut has_content = false;
        let mut numbers = 0..;
        let stopped = loop {
            let resolved = match reader.next_item() {
                Ok(Some(resolved)) => resolved,
                Ok(None) => break None,
                Err(error) if has_content => break Some(error),
                Err(error) => return Err(error.into()),
            };
            has_content |= resolved.item.is_content();
            let provider = resolved.provider;
            let now = self.now_of(provider);
            let number: u64 = numbers.next().unwrap_or(u64::MAX);
            // What says that it has no end has not ended before.
            if let Item::Event(event) = resolved.item
                && event.ending().is_none()
            {
                let rate = event.time.rate;
                let ended = span(self.now.saturating_sub(now), rate);
                let found = Coverage { provider, covered: None, ended, events: 0 };
                let found = coverage.entry(provider).or_insert(found);
                // An event that ended before the tail begins proves that the buffer covers all of the tail.
                let covered = span(now.saturating_sub(event.time.ticks.0), rate);
                let covered = self.last.map_or(covered, |last| covered.min(last));
                found.covered = Some(found.covered.map_or(covered, |before| before.max(covered)));
                if self.has_ended_before(provider, &event) && !self.begins.contains(&number) {
                    continue;
                }
                found.events += u64::from(Mark::of(provider, &event).is_none());
            }
            output.write_all(resolved.bytes)?;
        };
        output.flush()?;
        Ok(Copied { coverage: coverage.into_values().collect(), stopped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encode;
    use std::num::NonZeroU64;
    use trace_format::argument::Arguments;
    use trace_format::event::Event as Encoded;
    use trace_format::initialization::Initialization;
    use trace_format::metadata::Metadata;
    use trace_format::record::Record;
    use trace_format::refs::{StringRef, ThreadRef};
    use trace_format::units::{ProcessKoid, ThreadKoid};

    const RATE: TicksPerSecond = TicksPerSecond(NonZeroU64::new(1_000_000_000).unwrap());

    /// An event by its time, its thread and its name.
    fn event(at: u64, thread: u64, name: &str, kind: EventKind) -> Vec<u8> {
        let thread = ThreadRef::Inline { process: ProcessKoid(Koid(7)), thread: ThreadKoid(Koid(thread)) };
        let (category, name) = (StringRef::Inline(b"app"), StringRef::Inline(name.as_bytes()));
        let arguments = Arguments::from_slice(&[]);
        encode(&Record::Event(Encoded { timestamp: Ticks(at), thread, category, name, kind, arguments }))
    }

    fn tail_of(events: &[Vec<u8>]) -> Vec<(u64, String)> {
        let mut archive = encode(&Record::Metadata(Metadata::TraceInfoMagic));
        archive.extend(encode(&Record::Initialization(Initialization { ticks_per_second: RATE })));
        archive.extend(events.concat());
        let mut tail = Tail { now: 1000, last: Some(Duration::from_nanos(100)), ..Tail::default() };
        tail.note_begins(&archive[..]).unwrap();
        let mut copy = Vec::new();
        let copied = tail.copy(&archive[..], &mut copy).unwrap();
        let mut reader = Reader::new(&copy[..]).unwrap();
        let mut found = Vec::new();
        while let Some(resolved) = reader.next_item().unwrap() {
            if let Item::Event(event) = resolved.item {
                found.push((event.time.ticks.0, event.name.to_str().into_owned()));
            }
        }
        assert_eq!(copied.coverage.iter().map(|coverage| coverage.events).sum::<u64>(), found.len() as u64);
        found
    }

    //= docs/recording.md#in-the-background
    #[test]
    fn what_ends_in_the_tail_or_goes_on_has_its_begin() {
        let (begin, end) = (EventKind::DurationBegin, EventKind::DurationEnd);
        let (op_begin, op_end) = (|id| EventKind::AsyncBegin { id }, |id| EventKind::AsyncEnd { id });
        let found = tail_of(&[
            event(10, 1, "outer", begin),
            event(20, 1, "over", begin),
            event(30, 1, "over", end),
            event(40, 2, "open", begin),
            event(50, 1, "operation", op_begin(5)),
            event(51, 1, "other", op_begin(6)),
            event(52, 1, "other", op_end(6)),
            event(60, 3, "complete", EventKind::DurationComplete { end: Ticks(899) }),
            event(70, 3, "complete", EventKind::DurationComplete { end: Ticks(900) }),
            event(910, 2, "inner", begin),
            event(920, 2, "inner", end),
            event(930, 1, "outer", end),
            // Its begin was overwritten.
            event(935, 1, "lost", end),
            event(940, 9, "operation", op_end(5)),
            // Other threads have written their ends, and these are read first.
            event(81, 9, "early and over", op_end(7)),
            event(80, 3, "early and over", op_begin(7)),
            event(945, 9, "early", op_end(8)),
            event(946, 9, "early", op_end(8)),
            event(82, 3, "early", op_begin(8)),
            event(83, 3, "early", op_begin(8)),
            event(90, 3, "flow", EventKind::FlowBegin { id: 1 }),
            event(91, 3, "flow over", EventKind::FlowBegin { id: 2 }),
            event(92, 3, "flow over", EventKind::FlowEnd { id: 2 }),
            event(93, 3, "flow alone", EventKind::FlowBegin { id: 3 }),
            event(950, 3, "flow", EventKind::FlowStep { id: 1 }),
            event(960, 3, "flow", EventKind::FlowEnd { id: 1 }),
        ]);
        let expected = [
            (10, "outer"),
            (40, "open"),
            (50, "operation"),
            (70, "complete"),
            (910, "inner"),
            (920, "inner"),
            (930, "outer"),
            (935, "lost"),
            (940, "operation"),
            (945, "early"),
            (946, "early"),
            (82, "early"),
            (83, "early"),
            (90, "flow"),
            (950, "flow"),
            (960, "flow"),
        ];
        assert_eq!(found, expected.map(|(at, name)| (at, name.to_owned())));
    }
}
