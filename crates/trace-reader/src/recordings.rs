//! Whether the recordings of a trace were written to their ends, and what they were to record.
//!
//! A trace that is cut off between two records looks whole, and so does one that is still being written. But
//! the manager writes an instant where a recording begins and another behind everything else.
//! Source: `docs/protocol.md`, the manager's own provider.

use crate::item::{Event, Item, Resolved, Value};
use trace_format::categories::selects;
use trace_format::event::EventKind;
use trace_format::units::{Offset, ProviderId};

/// The manager's own provider.
pub const MANAGER: ProviderId = ProviderId(0);
/// How many recordings without an end are remembered.
const MAX_OPEN: usize = 1000;

/// Texts of the manager's own records that may have been cut are at least as long, in bytes.
/// Source: `docs/protocol.md`, the manager's own provider.
const CUT_BYTES: usize = 3_990;

/// An event by which the manager says where a recording begins and ends. It is no event of a program, so it
/// counts only where each record does.
//= docs/protocol.md#the-managers-own-provider
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A recording begins.
    Begin,
    /// It ends.
    End,
    /// It was recovered later, in place of an end.
    Recovered,
}

impl Mark {
    /// The mark that an event of a provider is, if it is one.
    #[inline]
    #[must_use]
    pub fn of(provider: ProviderId, event: &Event<'_>) -> Option<Self> {
        if provider == MANAGER { Self::of_manager(event) } else { None }
    }

    #[cold]
    fn of_manager(event: &Event<'_>) -> Option<Self> {
        if event.category != "trace" || !matches!(event.kind, EventKind::Instant { .. }) {
            return None;
        }
        match event.name.as_bytes() {
            b"recording" => Some(Self::Begin),
            b"recording_end" => Some(Self::End),
            b"recovered" => Some(Self::Recovered),
            _ => None,
        }
    }
}

/// A recording that has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unended {
    /// Where it begins.
    pub offset: Offset,
    /// When it has begun, in nanoseconds since 1970, if it says so.
    pub wall_clock_ns: Option<u64>,
}

/// The recordings of a trace so far.
#[derive(Debug, Default)]
pub struct Recordings {
    /// Those that have not ended.
    open: Vec<Unended>,
    /// The categories that each was to record; none of one that does not say so.
    requested: Vec<Option<Vec<String>>>,
    has_programs: bool,
}

impl Recordings {
    /// Takes a record, in the order of the trace.
    #[inline]
    pub fn record(&mut self, record: &Resolved<'_>) {
        if record.provider == MANAGER {
            if let Item::Event(event) = &record.item {
                self.event(record.offset, event);
            }
        } else if !self.has_programs {
            // A program that was not recorded is only introduced.
            self.has_programs = !matches!(record.item, Item::ProviderInfo { .. });
        }
    }

    //= docs/check.md#problems
    #[cold]
    fn event(&mut self, offset: Offset, event: &Event<'_>) {
        match Mark::of_manager(event) {
            Some(Mark::Begin) => {
                if self.open.len() < MAX_OPEN {
                    let wall_clock_ns = match event.arguments.find("wall_clock_ns") {
                        Some(Value::Uint64(nanos)) => Some(nanos),
                        _ => None,
                    };
                    self.open.push(Unended { offset, wall_clock_ns });
                }
                if self.requested.len() < MAX_OPEN {
                    self.requested.push(requested(event));
                }
            }
            Some(Mark::End | Mark::Recovered) => _ = self.open.pop(),
            None => {}
        }
    }

    /// The trace is of recordings, none of which had a program.
    #[must_use]
    pub fn are_without_programs(&self) -> bool {
        !self.requested.is_empty() && !self.has_programs
    }

    /// The trace is of recordings, none of which was to record a category. Recordings of releases that do not
    /// say so were to record all.
    #[must_use]
    pub fn have_left_out(&self, category: &str) -> bool {
        // Alerts are recorded whatever is selected.
        if category == "trace" {
            return false;
        }
        let leaves_out = |requested: &Option<Vec<String>>| {
            requested.as_ref().is_some_and(|requested| !selects(requested, &[], category.as_bytes()))
        };
        !self.requested.is_empty() && self.requested.iter().all(leaves_out)
    }

    /// Recordings that have no end, at most 1000.
    #[must_use]
    pub fn without_end(&self) -> &[Unended] {
        &self.open
    }
}

/// The categories that a recording was to record.
fn requested(event: &Event<'_>) -> Option<Vec<String>> {
    let Some(Value::String(text)) = event.arguments.find("selected") else {
        return None;
    };
    let text = text.to_str();
    (text.len() < CUT_BYTES)
        .then(|| text.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;
    use crate::testing::Words;
    use trace_format::argument::Arguments;
    use trace_format::event::{Event, Scope};
    use trace_format::metadata::Metadata;
    use trace_format::record::Record;
    use trace_format::refs::{StringRef, ThreadRef};
    use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};

    /// Where recordings begin that have no end, in an archive of instants of some providers, categories and
    /// names.
    fn without_end(instants: &[(u32, &str, &str)]) -> Vec<u64> {
        let mut words = Words(Vec::new());
        let mut write = |record: Record<'_>| record.encode(&mut words).unwrap();
        write(Record::Metadata(Metadata::TraceInfoMagic));
        for (provider, category, name) in instants {
            write(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(*provider), name: b"app" }));
            let koid = Koid(7);
            write(Record::Event(Event {
                timestamp: Ticks(1),
                thread: ThreadRef::Inline { process: ProcessKoid(koid), thread: ThreadKoid(koid) },
                category: StringRef::Inline(category.as_bytes()),
                name: StringRef::Inline(name.as_bytes()),
                kind: EventKind::Instant { scope: Scope::Global },
                arguments: Arguments::from_slice(&[]),
            }));
        }
        let trace = crate::testing::bytes(&words.0);
        let mut reader = Reader::of_slice(&trace).unwrap();
        let mut recordings = Recordings::default();
        while let Some(record) = reader.next_item().unwrap() {
            recordings.record(&record);
        }
        recordings.without_end().iter().map(|unended| unended.offset.0).collect()
    }

    //= docs/check.md#problems
    #[test]
    fn a_recording_needs_its_end() {
        let (begin, end) = ((0, "trace", "recording"), (0, "trace", "recording_end"));
        let recovered = (0, "trace", "recovered");
        let none: [u64; 0] = [];
        assert_eq!(without_end(&[begin]), [24]);
        assert_eq!(without_end(&[begin, end]), none);
        assert_eq!(without_end(&[begin, recovered]), none);
        // Behind each other.
        assert_eq!(without_end(&[begin, end, begin, end]), none);
        assert_eq!(without_end(&[begin, end, begin]).len(), 1);
        assert_eq!(without_end(&[begin, begin]).len(), 2);
        assert_eq!(without_end(&[end]), none);
        // A program may record what it wants.
        for other in [(1, "trace", "recording"), (0, "app", "recording"), (0, "trace", "recordings")] {
            assert_eq!(without_end(&[other]), none, "{other:?}");
        }
        assert_eq!(without_end(&[begin, (1, "trace", "recording_end")]).len(), 1);
        assert_eq!(without_end(&vec![begin; 2 * MAX_OPEN]).len(), MAX_OPEN);
    }
}
