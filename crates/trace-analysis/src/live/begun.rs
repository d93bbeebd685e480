//! What programs have begun and not ended with records of their own, such as spans of `tracing`.

use std::collections::{HashMap, HashSet};
use trace_model::{Begin, Ended, OperationKey, Pairing, token};
use trace_reader::item::{EventKind, ProviderId};
use trace_reader::{Event, Thread, ThreadNumbers};

/// Threads of a program that are distinguished.
const MAX_THREADS: usize = 10_000;
/// What may be open in a program.
const MAX_OPEN: usize = 100_000;
/// The bytes of their names.
const MAX_BYTES: usize = 16 << 20;

/// The begin of a duration or an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Where it began.
    pub thread: Thread,
    /// When it began, in nanoseconds.
    pub at: u64,
    /// The category; invalid UTF-8 is replaced.
    pub category: Box<str>,
    /// The name; invalid UTF-8 is replaced.
    pub name: Box<str>,
}

impl Begin for Begun {
    fn heap_bytes(&self) -> usize {
        self.category.len() + self.name.len()
    }
}

/// A program's.
#[derive(Debug)]
struct Program {
    numbers: ThreadNumbers,
    pairing: Pairing<Begun>,
    /// When operations ended whose begins were not read so far: another thread has written them.
    early: HashMap<OperationKey, Vec<u64>>,
    early_count: usize,
    /// Records that it has written and that were not read.
    missed: u64,
    /// It begins spans or operations with records of their own.
    has_begins: bool,
}

impl Default for Program {
    fn default() -> Self {
        let pairing = Pairing::default().with_count(MAX_OPEN).with_bytes(MAX_BYTES);
        Self {
            numbers: ThreadNumbers::default(),
            pairing,
            early: HashMap::new(),
            early_count: 0,
            missed: 0,
            has_begins: false,
        }
    }
}

/// Of each program of a recording that is observed.
#[derive(Debug, Default)]
pub struct BegunByProgram {
    programs: HashMap<ProviderId, Program>,
    /// Programs that have lost records, among which there may be ends.
    incomplete: HashSet<ProviderId>,
}

impl BegunByProgram {
    /// Takes an event, in the order of the recording.
    pub fn event(&mut self, provider: ProviderId, event: &Event<'_>) {
        use EventKind::{AsyncBegin, AsyncEnd, DurationBegin, DurationEnd};
        if !matches!(event.kind, DurationBegin | DurationEnd | AsyncBegin { .. } | AsyncEnd { .. })
            || self.incomplete.contains(&provider)
        {
            return;
        }
        let program = self.programs.entry(provider).or_default();
        program.has_begins = true;
        let Program { numbers, pairing, early, early_count, .. } = program;
        let at = event.time.nanos().0;
        let begun = || Begun {
            thread: event.thread,
            at,
            category: event.category.to_str().into(),
            name: event.name.to_str().into(),
        };
        match event.kind {
            DurationBegin | DurationEnd => {
                let Some(thread) = numbers.number(event.thread, MAX_THREADS) else { return };
                if event.kind == DurationBegin {
                    pairing.begin(thread, begun());
                } else {
                    let _ = pairing.end(thread);
                }
            }
            AsyncBegin { id } => {
                let key = OperationKey::of(event, id);
                // One id may have several ends.
                let ends = early.get_mut(&key);
                if ends.is_some_and(|ends| ends.pop_if(|end| *end >= at).is_some()) {
                    *early_count -= 1;
                    if early.get(&key).is_some_and(Vec::is_empty) {
                        early.remove(&key);
                    }
                } else {
                    pairing.begin_operation(&key, token(event.name), begun());
                }
            }
            AsyncEnd { id } => {
                let key = OperationKey::of(event, id);
                if pairing.end_operation(&key, token(event.name)) == Ended::Nothing {
                    if *early_count >= MAX_OPEN {
                        early.clear();
                        *early_count = 0;
                    }
                    early.entry(key).or_default().push(at);
                    *early_count += 1;
                }
            }
            _ => {}
        }
    }

    /// Records of a program have not come, so many altogether: what is open begins anew.
    pub fn set_missed(&mut self, provider: ProviderId, missed: u64) {
        let program = self.programs.entry(provider).or_default();
        if program.missed != missed {
            *program = Program { missed, ..Program::default() };
        }
    }

    /// A program has lost records: from here on, nothing is known of it. True if something had been.
    pub fn set_incomplete(&mut self, provider: ProviderId) -> bool {
        self.incomplete.insert(provider);
        self.programs.remove(&provider).is_some_and(|program| program.has_begins)
    }

    /// A program has ended.
    pub fn forget(&mut self, provider: ProviderId) {
        self.programs.remove(&provider);
        self.incomplete.remove(&provider);
    }

    /// What is open on the threads of a program, thread by thread, the outermost first.
    #[must_use]
    pub fn on_threads(&self, provider: ProviderId) -> Vec<Vec<&Begun>> {
        let Some(Program { pairing, .. }) = self.programs.get(&provider) else { return Vec::new() };
        let open: Vec<(usize, &Begun)> = pairing.on_threads().collect();
        let threads = open.chunk_by(|(one, _), (other, _)| one == other);
        threads.map(|open| open.iter().map(|(_, begun)| *begun).collect()).collect()
    }

    /// The operations of a program that are open.
    pub fn operations(&self, provider: ProviderId) -> impl Iterator<Item = &Begun> {
        self.programs.get(&provider).into_iter().flat_map(|program| program.pairing.operations())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Archive;
    use trace_reader::{Item, Reader};

    const PROVIDER: ProviderId = ProviderId(1);

    fn add(begun: &mut BegunByProgram, archive: &Archive) {
        let mut reader = Reader::new(archive.bytes()).unwrap();
        while let Some(record) = reader.next_item().unwrap() {
            if let Item::Event(event) = &record.item {
                begun.event(record.provider, event);
            }
        }
    }

    fn begin_and_end() -> Archive {
        let (begin, end) = (EventKind::DurationBegin, EventKind::DurationEnd);
        Archive::new()
            .event(1, "outer", begin, 10)
            .event(1, "over", begin, 20)
            .event(2, "other", begin, 25)
            .event(1, "over", end, 30)
            .event(1, "inner", begin, 40)
            .complete(1, "complete", 41, 42)
            .event(1, "request", EventKind::AsyncBegin { id: 5 }, 50)
            .event(2, "answered", EventKind::AsyncBegin { id: 6 }, 51)
            .event(1, "answered", EventKind::AsyncEnd { id: 6 }, 52)
            .event(3, "lost", end, 53)
            .event(2, "from another thread", EventKind::AsyncEnd { id: 7 }, 60)
            .event(2, "from another thread", EventKind::AsyncEnd { id: 7 }, 61)
            .event(3, "from another thread", EventKind::AsyncBegin { id: 7 }, 55)
            .event(3, "from another thread", EventKind::AsyncBegin { id: 7 }, 56)
            // Another one of this id.
            .event(3, "again", EventKind::AsyncEnd { id: 8 }, 54)
            .event(3, "again", EventKind::AsyncBegin { id: 8 }, 70)
    }

    type Named<'a> = (u64, &'a str);

    fn names(begun: &BegunByProgram) -> (Vec<Vec<Named<'_>>>, Vec<Named<'_>>) {
        let threads = begun.on_threads(PROVIDER);
        let threads = threads.iter().map(|open| open.iter().map(|begun| (begun.at, &*begun.name)).collect());
        let operations = begun.operations(PROVIDER).map(|begun| (begun.at, &*begun.name));
        let mut operations: Vec<Named<'_>> = operations.collect();
        operations.sort_unstable();
        (threads.collect(), operations)
    }

    //= docs/recording.md#triggers
    #[test]
    fn what_has_begun_and_not_ended_is_known_by_thread_and_by_operation() {
        let mut begun = BegunByProgram::default();
        begun.set_missed(PROVIDER, 0);
        add(&mut begun, &begin_and_end());
        let open = (
            vec![vec![(10, "outer"), (40, "inner")], vec![(25, "other")]],
            vec![(50, "request"), (70, "again")],
        );
        assert_eq!(names(&begun), open);
        // The end of an id that was used again is all that waits.
        assert_eq!((begun.programs[&PROVIDER].early.len(), begun.programs[&PROVIDER].early_count), (1, 1));
        begun.set_missed(PROVIDER, 0);
        assert_eq!(names(&begun), open);
        // Among what was missed may be ends.
        begun.set_missed(PROVIDER, 7);
        assert_eq!(names(&begun), <_>::default());
        add(&mut begun, &Archive::new().event(1, "inner", EventKind::DurationEnd, 60));
        add(&mut begun, &Archive::new().event(1, "next", EventKind::DurationBegin, 70));
        assert_eq!(names(&begun).0, [[(70, "next")]]);
        assert_eq!([begun.set_incomplete(PROVIDER), begun.set_incomplete(PROVIDER)], [true, false]);
        add(&mut begun, &begin_and_end());
        assert_eq!(names(&begun), <_>::default());
        // Another program gets the number.
        begun.forget(PROVIDER);
        add(&mut begun, &begin_and_end());
        assert_eq!(names(&begun), open);
    }
}
