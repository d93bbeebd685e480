//! Whether the recordings of a trace were written to their ends.
//!
//! A trace that is cut off between two records looks whole, and so does one that is still being written. But
//! the manager writes an instant where a recording begins and another behind everything else.
//! Source: `docs/protocol.md`, the manager's own provider.

use crate::item::{Event, Item, Resolved};
use trace_format::event::EventKind;
use trace_format::units::{Offset, ProviderId};

/// The manager's own provider.
pub const MANAGER: ProviderId = ProviderId(0);
/// How many recordings without an end are remembered.
const MAX_OPEN: usize = 1000;

/// The recordings of a trace so far that have not ended.
#[derive(Debug, Default)]
pub struct Recordings {
    open: Vec<Offset>,
}

impl Recordings {
    /// Takes a record, in the order of the trace.
    #[inline]
    pub fn record(&mut self, record: &Resolved<'_>) {
        if record.provider == MANAGER
            && let Item::Event(event) = &record.item
        {
            self.event(record.offset, event);
        }
    }

    //= docs/check.md#problems
    #[cold]
    fn event(&mut self, offset: Offset, event: &Event<'_>) {
        if event.category.as_bytes() != b"trace" || !matches!(event.kind, EventKind::Instant { .. }) {
            return;
        }
        match event.name.as_bytes() {
            b"recording" if self.open.len() < MAX_OPEN => self.open.push(offset),
            b"recording_end" | b"recovered" => _ = self.open.pop(),
            _ => {}
        }
    }

    /// Where recordings begin that have no end, at most 1000.
    #[must_use]
    pub fn without_end(&self) -> &[Offset] {
        &self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;
    use trace_format::argument::Arguments;
    use trace_format::event::{Event, Scope};
    use trace_format::metadata::Metadata;
    use trace_format::record::Record;
    use trace_format::refs::{StringRef, ThreadRef};
    use trace_format::sink::Sink;
    use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};

    struct Words(Vec<u64>);

    impl Sink for Words {
        fn word(&mut self, word: u64) {
            self.0.push(word);
        }
    }

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
        recordings.without_end().iter().map(|offset| offset.0).collect()
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
