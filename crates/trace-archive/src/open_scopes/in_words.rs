//! What the threads of a program were in, in words: for the line about its death.

use super::{Durable, OpenScope, OpenScopes, Wanted};
use crate::seen::{BegunName, Seen};
use trace_format::buffer::Layout;
use trace_format::scopes::{ENTRIES, TRACK};
use trace_format::shown::Lasting;
use trace_format::units::{Ticks, TicksPerSecond};
use trace_reader::buffer::Source;

/// Threads that are described in words.
const MAX_DESCRIBED: usize = 3;
/// Bytes of a name in words.
const MAX_NAME_BYTES: usize = 100;

impl OpenScopes {
    /// Adds what threads have begun with records of their own, for [`OpenScopes::in_words`].
    pub fn add_begun(&mut self, source: &impl Source, layout: &Layout, seen: &Seen) {
        let mut wanted = Wanted::default();
        for (thread, stack) in seen.stacks() {
            wanted.threads.insert(thread);
            wanted.strings.extend(stack.begun.iter().filter_map(|begun| match begun.name {
                BegunName::Index(index) => Some(index),
                BegunName::Inline(_) => None,
            }));
        }
        if wanted.threads.is_empty() {
            return;
        }
        let durable = Durable::read(source, layout, &wanted).unwrap_or_default();
        for (thread, stack) in seen.stacks() {
            let innermost = stack.begun.len() - 1;
            for (depth, begun) in stack.begun.iter().enumerate() {
                let name = match &begun.name {
                    BegunName::Index(index) => durable.text(*index),
                    BegunName::Inline(name) => name.clone(),
                };
                let deeper = if depth == innermost { stack.deeper } else { 0 };
                let (start, category) = (begun.start, Vec::new());
                self.scopes.push(OpenScope {
                    thread,
                    start,
                    category,
                    name,
                    is_ended: false,
                    deeper,
                    thread_micros: None,
                });
            }
        }
        self.scopes.sort_by_key(OpenScope::key);
        self.names.extend(durable.names);
    }

    /// What the threads are in at a time, in words: the one first whose innermost scope has lasted longest.
    /// Empty if they are in nothing. Names are not escaped.
    #[must_use]
    pub fn in_words(&self, at: Ticks, rate: TicksPerSecond) -> String {
        let by_thread = self.scopes.chunk_by(|one, other| one.thread == other.thread);
        let mut threads: Vec<&[OpenScope]> = by_thread.filter(|scopes| !scopes[0].is_ended).collect();
        threads.sort_by_key(|scopes| scopes.last().map(|innermost| innermost.start.0));
        let mut parts: Vec<String> =
            threads.iter().take(MAX_DESCRIBED).map(|scopes| self.thread(scopes, at, rate)).collect();
        let more = threads.len().saturating_sub(MAX_DESCRIBED);
        parts.extend((more > 0).then(|| format!("{more} more threads were in something")));
        parts.extend(self.has_more.then(|| "what further threads were in is not known".to_owned()));
        parts.join("; ")
    }

    fn thread(&self, scopes: &[OpenScope], at: Ticks, rate: TicksPerSecond) -> String {
        let short =
            |name: &[u8]| String::from_utf8_lossy(&name[..name.len().min(MAX_NAME_BYTES)]).into_owned();
        // A hostile program gives several slots to one thread.
        let mut path: Vec<String> = scopes.iter().take(ENTRIES).map(|scope| short(&scope.name)).collect();
        let Some(innermost) = scopes.last() else { return String::new() };
        path.extend((innermost.deeper > 0).then(|| format!("{} more", innermost.deeper)));
        let thread = match self.names.get(&innermost.thread) {
            Some(name) => format!("{:?}", short(name)),
            None => innermost.thread.to_string(),
        };
        let what = if innermost.thread & TRACK == 0 { "thread" } else { "track" };
        let nanos = Ticks(at.0.saturating_sub(innermost.start.0)).to_nanos(rate).0;
        format!("{what} {thread} was in {} for {}", path.join(" > "), Lasting(nanos as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{File, RATE};
    use super::*;
    use crate::session_info::record;
    use trace_format::argument::Arguments;
    use trace_format::event::{Event, EventKind};
    use trace_format::record::Record;
    use trace_format::refs::{StringRef, ThreadRef};
    use trace_format::scopes::field;
    use trace_format::units::{StringIndex, ThreadIndex};

    #[test]
    fn durations_that_have_begun_with_a_record_are_among_them_in_words() {
        let file = File::new().slot(0, 71, &[(200, 2)]);
        let mut records = Vec::new();
        for (at, name) in [
            (100, StringRef::Index(StringIndex::new(3).unwrap())),
            (300, StringRef::Inline(b"inline")),
            (400, StringRef::Index(StringIndex::new(9).unwrap())),
        ] {
            let event = Event {
                timestamp: Ticks(at),
                thread: ThreadRef::Index(ThreadIndex::new(1).unwrap()),
                category: StringRef::Empty,
                name,
                kind: EventKind::DurationBegin,
                arguments: Arguments::from_slice(&[]),
            };
            record(&Record::Event(event), &mut records);
        }
        let mut open = file.read();
        let mut seen = Seen::default();
        seen.define(&[(1, 71)]);
        seen.note_records(&records, |_, _| ());
        open.add_begun(&file, &file.layout, &seen);
        assert_eq!(
            open.in_words(Ticks(1_400), RATE),
            "thread 71 was in guilty > request > inline > (unknown) for 1 µs"
        );
    }

    #[test]
    fn the_thread_that_is_longest_in_its_innermost_scope_comes_first() {
        let file = File::new();
        let file = (0..5_u64).fold(file, |file, number| {
            file.slot(number as usize, 80 + number, &[(10, 2), (1000 - number * 100, 3)])
        });
        assert_eq!(
            file.read().in_words(Ticks(2000), RATE),
            "thread 84 was in request > guilty for 1.4 µs; thread 83 was in request > guilty for 1.3 µs; \
             thread 82 was in request > guilty for 1.2 µs; 2 more threads were in something"
        );
        let missing = File::new().slot(0, 71, &[(1000, 2)]);
        missing.words.borrow_mut()[(1 << 17) + field::REFUSED] = 1;
        assert_eq!(
            missing.read().in_words(Ticks(2000), RATE),
            "thread 71 was in request for 1 µs; what further threads were in is not known"
        );
        assert_eq!(File::new().read().in_words(Ticks(2000), RATE), "");
    }
}
