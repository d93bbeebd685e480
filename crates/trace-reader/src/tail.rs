//! The end of an archive: everything that was still going on, or happened, in the last so many seconds.

use crate::item::{Event, EventKind, Item, Koid, ProviderId, Thread};
use crate::reader::Reader;
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
}

/// What has begun and not ended.
#[derive(Default)]
struct Begun {
    /// The numbers of the records, by their rows, and whether each is in the tail by its own time.
    rows: HashMap<Row, Vec<(u64, bool)>>,
    count: usize,
    /// The begins of what has an end in the tail.
    kept: HashSet<u64>,
}

impl Begun {
    fn note(&mut self, number: u64, event: &Event<'_>, is_in_tail: bool) {
        let operation = |id| Row::Operation(event.thread.process, event.category.as_bytes().to_vec(), id);
        let (row, is_begin) = match event.kind {
            EventKind::DurationBegin => (Row::Thread(event.thread), true),
            EventKind::DurationEnd => (Row::Thread(event.thread), false),
            EventKind::AsyncBegin { id } => (operation(id), true),
            EventKind::AsyncEnd { id } => (operation(id), false),
            _ => return,
        };
        if !is_begin {
            let Some(begun) = self.rows.get_mut(&row) else { return };
            if let Some((begin, is_begin_in_tail)) = begun.pop() {
                self.count -= 1;
                if is_in_tail && !is_begin_in_tail {
                    self.kept.insert(begin);
                }
            }
            if begun.is_empty() {
                self.rows.remove(&row);
            }
        } else if self.count < MAX_OPEN {
            self.count += 1;
            self.rows.entry(row).or_default().push((number, is_in_tail));
        } else if !is_in_tail {
            self.kept.insert(number);
        }
    }

    fn finish(mut self) -> HashSet<u64> {
        let open = self.rows.into_values().flatten();
        self.kept.extend(open.filter(|(_, is_in_tail)| !is_in_tail).map(|(number, _)| number));
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
                found.events += 1;
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
        ];
        assert_eq!(found, expected.map(|(at, name)| (at, name.to_owned())));
    }
}
