//! The scopes that a program had open, read from the pages behind its buffer, and written as begins without
//! an end.
//!
//! Nothing in the pages is trusted: a slot counts if two copies of it are the same and its word and owner
//! were the same before, between and after; names come from the definitions of the buffer.
//= docs/buffer.md#open-scopes

mod in_words;

use crate::framing;
use crate::session_info::{argument, inline, object, record, text};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use trace_format::argument::{ArgumentValue, Arguments};
use trace_format::buffer::Layout;
use trace_format::event::{Event, EventKind};
use trace_format::initialization::Initialization;
use trace_format::kernel_object::{PROCESS_ARGUMENT, TYPE_THREAD};
use trace_format::record::{Record, RecordHeader};
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scopes::{
    DEEPER_ARGUMENT, END_ARGUMENT, Ending, HEADER_BYTES, LASTED_ARGUMENT, SCOPES_MAGIC, SCOPES_VERSION,
    SLOT_BYTES, SLOTS, Slot, SlotWords, THREAD_TIME_ARGUMENT, field,
};
use trace_format::units::{Koid, ProcessKoid, ProviderId, ThreadKoid, Ticks, TicksPerSecond};
use trace_reader::buffer::Source;

/// Stands for a name that has no definition.
const UNKNOWN: &str = "(unknown)";
/// Bytes of categories and names together: others are unknown.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// How often a slot is read that changes meanwhile.
const ATTEMPTS: usize = 16;

/// A scope that was open when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenScope {
    /// The thread that has begun it.
    pub thread: u64,
    /// When it began.
    pub start: Ticks,
    /// The category as raw bytes, not validated as UTF-8.
    pub category: Vec<u8>,
    /// The name as raw bytes, not validated as UTF-8.
    pub name: Vec<u8>,
    /// The thread has ended.
    pub is_ended: bool,
    /// How many scopes inside of it are only counted.
    pub deeper: u64,
    /// Processor time of the thread at the begin, in microseconds, if that was recorded.
    pub thread_micros: Option<u64>,
}

/// The scopes that a program had open: thread by thread, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenScopes {
    process: u64,
    /// By thread and begin.
    scopes: Vec<OpenScope>,
    /// The names of threads.
    names: HashMap<u64, Vec<u8>>,
    /// Threads have begun scopes for which there was no slot.
    has_more: bool,
    /// The indices of the threads, by which events of the buffer refer to them.
    indices: Vec<(u8, u64)>,
}

impl OpenScope {
    /// No two open scopes of a program have one.
    fn key(&self) -> (u64, u64) {
        (self.thread, self.start.0)
    }
}

impl OpenScopes {
    /// Reads what is open now, in the pages behind a buffer; nothing if there are none.
    pub fn read(source: &impl Source, layout: &Layout) -> Self {
        Self::read_since(source, layout, Ticks(u64::MAX))
    }

    /// Reads what is open now on threads whose outermost scope began before a time.
    pub fn read_since(source: &impl Source, layout: &Layout, before: Ticks) -> Self {
        Self::try_read(source, layout, before).ok().flatten().unwrap_or_default()
    }

    fn try_read(source: &impl Source, layout: &Layout, before: Ticks) -> io::Result<Option<Self>> {
        let base = layout.total_bytes;
        let header: [u64; 8] = words(source, base)?;
        let run = header[field::RUN];
        if header[field::MAGIC] != SCOPES_MAGIC || header[field::VERSION] != SCOPES_VERSION || run == 0 {
            return Ok(None);
        }
        let mut slots = Vec::new();
        let mut all = vec![0; (SLOTS * SLOT_BYTES) as usize];
        let read = source.read_at(base + HEADER_BYTES, &mut all)?;
        for (slot, bytes) in all[..read].chunks_exact(SLOT_BYTES as usize).enumerate() {
            let words = of_bytes(bytes);
            let is_wanted = |slot: Slot<'_>| {
                let mut on_tracks = slot.scopes_of_tracks();
                // A thread's outermost scope began first.
                let of_thread =
                    |slot: Slot<'_>| slot.scopes().next().is_none_or(|scope| scope.start < before.0);
                on_tracks.any(|(_, scope)| scope.start < before.0) || !slot.is_of_tracks() && of_thread(slot)
            };
            if Slot::new(&words, run).is_some_and(is_wanted) {
                let at = base + HEADER_BYTES + slot as u64 * SLOT_BYTES;
                slots.extend(slot_words(source, at, run)?);
            }
        }
        let (process, has_more) = (header[field::PROCESS], header[field::REFUSED] > 0);
        let mut found = Self { process, has_more, ..Self::default() };
        if slots.is_empty() {
            return Ok(Some(found));
        }
        let all = || slots.iter().filter_map(|words| Slot::new(words, run));
        let durable = Durable::read(source, layout, &Wanted::of(all()))?;
        // Another run may have other definitions.
        if words::<8>(source, base)?[field::RUN] != run {
            return Ok(None);
        }
        let mut room = MAX_TEXT_BYTES;
        let mut text = |index| {
            let text = durable.text(index);
            let has_room = text.len() <= room;
            room = room.saturating_sub(text.len());
            if has_room { text } else { UNKNOWN.into() }
        };
        for slot in all() {
            let on_tracks = slot.scopes_of_tracks().filter(|(_, scope)| scope.start < before.0);
            let scopes = slot.scopes().map(|scope| (slot.thread(), scope)).chain(on_tracks);
            found.scopes.extend(scopes.map(|(thread, scope)| OpenScope {
                thread,
                start: Ticks(scope.start),
                category: text(scope.category),
                name: text(scope.name),
                is_ended: slot.is_ended(),
                deeper: 0,
                thread_micros: scope.thread_micros,
            }));
            let innermost = found.scopes.last_mut().filter(|_| slot.deeper() > 0 && !slot.is_of_tracks());
            if let Some(innermost) = innermost.filter(|scope| scope.thread == slot.thread()) {
                innermost.deeper = slot.deeper();
            }
        }
        found.scopes.sort_by_key(OpenScope::key);
        (found.names, found.indices) = (durable.names, durable.indices);
        Ok(Some(found))
    }

    /// Whether nothing is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// The name of a thread, not validated: any bytes.
    #[must_use]
    pub fn thread_name(&self, thread: u64) -> Option<&[u8]> {
        self.names.get(&thread).map(Vec::as_slice)
    }

    /// Appends an archive of its own with what is open at a time.
    pub fn write_archive(
        &self,
        id: ProviderId,
        name: &str,
        at: Ticks,
        rate: TicksPerSecond,
        out: &mut Vec<u8>,
    ) {
        framing::provider_info(id, name, out);
        record(&Record::Initialization(Initialization { ticks_per_second: rate }), out);
        let process = [argument(PROCESS_ARGUMENT, ArgumentValue::Koid(Koid(self.process)))];
        for thread in self.scopes.chunk_by(|one, other| one.thread == other.thread) {
            let koid = thread[0].thread;
            if let Some(name) = self.thread_name(koid) {
                object(TYPE_THREAD, Koid(koid), name, &process, out);
            }
        }
        self.write(Ending::Snapshot, at, rate, out);
    }

    /// The indices and koids of the threads that events refer to by an index.
    #[must_use]
    pub fn defined_threads(&self) -> &[(u8, u64)] {
        &self.indices
    }

    /// When the last of them began.
    #[must_use]
    pub fn latest(&self) -> Ticks {
        self.scopes.iter().map(|scope| scope.start).max().unwrap_or(Ticks(0))
    }

    /// What is open, thread by thread, the outermost first.
    #[must_use]
    pub fn scopes(&self) -> &[OpenScope] {
        &self.scopes
    }

    /// A duration of a thread has a record: it is open no more.
    pub fn has_ended(&mut self, thread: u64, start: u64) {
        if let Ok(place) = self.scopes.binary_search_by_key(&(thread, start), OpenScope::key) {
            self.scopes.remove(place);
        }
    }

    /// Appends a begin for each, which says why there is no end, and how long it has lasted at a time.
    /// Returns how many they are.
    pub fn write(&self, ending: Ending, at: Ticks, rate: TicksPerSecond, out: &mut Vec<u8>) -> u64 {
        for scope in &self.scopes {
            let ending = if scope.is_ended { Ending::ThreadEnd } else { ending };
            let mut arguments = vec![argument(END_ARGUMENT, text(ending.text()))];
            if !scope.is_ended {
                let lasted = Ticks(at.0.saturating_sub(scope.start.0)).to_nanos(rate).0;
                arguments.push(argument(LASTED_ARGUMENT, ArgumentValue::Uint64(lasted)));
            }
            if let Some(micros) = scope.thread_micros {
                arguments.push(argument(THREAD_TIME_ARGUMENT, ArgumentValue::Uint64(micros * 1000)));
            }
            if scope.deeper > 0 {
                arguments.push(argument(DEEPER_ARGUMENT, ArgumentValue::Uint64(scope.deeper)));
            }
            let event = Event {
                timestamp: scope.start,
                thread: ThreadRef::Inline {
                    process: ProcessKoid(Koid(self.process)),
                    thread: ThreadKoid(Koid(scope.thread)),
                },
                category: inline(&scope.category),
                name: inline(&scope.name),
                kind: EventKind::DurationBegin,
                arguments: Arguments::from_slice(&arguments),
            };
            record(&Record::Event(event), out);
        }
        self.scopes.len() as u64
    }
}

/// What several readers of one program's buffers know of its open scopes.
#[derive(Clone, Debug, Default)]
pub struct SharedScopes(Arc<Mutex<OpenScopes>>);

impl SharedScopes {
    /// Knows these.
    #[must_use]
    pub fn new(scopes: OpenScopes) -> Self {
        Self(Arc::new(Mutex::new(scopes)))
    }

    /// Calls a function with them.
    pub fn with<R>(&self, call: impl FnOnce(&mut OpenScopes) -> R) -> R {
        call(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Words of the file; zeros where it ends.
fn words<const COUNT: usize>(source: &impl Source, offset: u64) -> io::Result<[u64; COUNT]> {
    let mut bytes = vec![0; COUNT * 8];
    let read = source.read_at(offset, &mut bytes)?;
    bytes[read..].fill(0);
    Ok(of_bytes(&bytes))
}

fn of_bytes<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    let mut words = [0; COUNT];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// A slot that was not written meanwhile; none if nothing is open there.
fn slot_words(source: &impl Source, at: u64, run: u64) -> io::Result<Option<Box<SlotWords>>> {
    let mut before: SlotWords = words(source, at)?;
    if Slot::new(&before, run).is_some_and(|slot| slot.is_of_tracks()) {
        return Ok(Some(Box::new(track_words(source, at, before)?)));
    }
    for _ in 0..ATTEMPTS {
        if Slot::new(&before, run).is_none() {
            return Ok(None);
        }
        // The word between two copies of the entries: a depth comes again, and with it another scope may have
        // taken an entry meanwhile.
        let between: [u64; 2] = words(source, at)?;
        let after: SlotWords = words(source, at)?;
        let last: [u64; 2] = words(source, at)?;
        if before == after && before[..2] == between && between == last {
            return Ok(Some(Box::new(before)));
        }
        before = words(source, at)?;
    }
    Ok(None)
}

/// A slot of tracks with those entries that are the same in two copies: no time comes twice.
fn track_words(source: &impl Source, at: u64, mut first: SlotWords) -> io::Result<SlotWords> {
    let second: SlotWords = words(source, at)?;
    if first[..2] != second[..2] {
        return Ok([0; (SLOT_BYTES / 8) as usize]);
    }
    for (entry, again) in first.as_chunks_mut::<2>().0.iter_mut().zip(second.as_chunks::<2>().0).skip(1) {
        if entry != again {
            *entry = [0; 2];
        }
    }
    Ok(first)
}

/// The definitions of a buffer.
#[derive(Default)]
struct Durable {
    strings: HashMap<u16, Vec<u8>>,
    names: HashMap<u64, Vec<u8>>,
    indices: Vec<(u8, u64)>,
}

/// The definitions that slots need: a buffer may have many, and is looked at ten times a second while a scope
/// hangs.
#[derive(Default)]
struct Wanted {
    strings: HashSet<u16>,
    threads: HashSet<u64>,
}

impl Wanted {
    fn of<'a>(slots: impl Iterator<Item = Slot<'a>>) -> Self {
        let mut wanted = Self::default();
        for slot in slots {
            let on_tracks = slot.scopes_of_tracks();
            for (thread, scope) in slot.scopes().map(|scope| (slot.thread(), scope)).chain(on_tracks) {
                wanted.strings.extend([scope.category, scope.name]);
                wanted.threads.insert(thread);
            }
        }
        wanted
    }
}

impl Durable {
    fn read(source: &impl Source, layout: &Layout, wanted: &Wanted) -> io::Result<Self> {
        let mut bytes = vec![0; usize::try_from(layout.durable_bytes).unwrap_or(0)];
        let read = source.read_at(layout.durable, &mut bytes)?;
        let mut records = &bytes[..read];
        let mut found = Self::default();
        while let Some((header, _)) = records.split_first_chunk() {
            let size = RecordHeader(u64::from_le_bytes(*header)).size().bytes();
            let Some((record, rest)) = records.split_at_checked(size).filter(|_| size > 0) else { break };
            records = rest;
            match Record::decode(record) {
                Ok(Record::String(string)) if wanted.strings.contains(&string.index) => {
                    found.strings.entry(string.index).or_insert_with(|| string.value.to_vec());
                }
                Ok(Record::KernelObject(object))
                    if object.object_type == TYPE_THREAD && wanted.threads.contains(&object.koid.0) =>
                {
                    if let StringRef::Inline(name) = object.name {
                        found.names.insert(object.koid.0, name.to_vec());
                    }
                }
                Ok(Record::Thread(thread)) if wanted.threads.contains(&thread.thread.0.0) => {
                    found.indices.push((thread.index, thread.thread.0.0));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn text(&self, index: u16) -> Vec<u8> {
        self.strings.get(&index).cloned().unwrap_or_else(|| UNKNOWN.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::ByteSink;
    use std::cell::{Cell, RefCell};
    use trace_format::buffer::BufferMode;
    use trace_format::scopes::{ENTRIES, ENTRY_BYTES, OWNER_ENDED, OWNER_TRACKS, SCOPES_BYTES, TRACK};
    use trace_format::string::StringRecord;
    use trace_format::thread::ThreadRecord;
    use trace_reader::{Item, Reader};

    const RUN: u64 = 3;
    pub const RATE: TicksPerSecond = TicksPerSecond(std::num::NonZeroU64::new(1_000_000_000).unwrap());

    /// A buffer with pages, which may change while it is read.
    pub struct File {
        pub words: RefCell<Vec<u64>>,
        pub layout: Layout,
        reads: Cell<usize>,
        change: Option<fn(&mut [u64], usize)>,
    }

    impl Source for File {
        fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
            self.reads.set(self.reads.get() + 1);
            let mut words = self.words.borrow_mut();
            if let Some(change) = self.change {
                let pages = self.layout.total_bytes as usize / 8;
                change(&mut words[pages..], self.reads.get());
            }
            let all: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let start = (offset as usize).min(all.len());
            let length = bytes.len().min(all.len() - start);
            bytes[..length].copy_from_slice(&all[start..start + length]);
            Ok(length)
        }
    }

    impl File {
        pub fn new() -> Self {
            let layout = Layout::new(1 << 20, BufferMode::Oneshot).unwrap();
            let mut words = vec![0; (layout.total_bytes + SCOPES_BYTES) as usize / 8];
            let mut durable = Vec::new();
            for (index, value) in [(1, "app"), (2, "request"), (3, "guilty")] {
                StringRecord { index, value: value.as_bytes() }.encode(&mut ByteSink(&mut durable)).unwrap();
            }
            let thread =
                ThreadRecord { index: 1, process: ProcessKoid(Koid(70)), thread: ThreadKoid(Koid(71)) };
            thread.encode(&mut ByteSink(&mut durable)).unwrap();
            for (word, bytes) in words[layout.durable as usize / 8..].iter_mut().zip(durable.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            let header = [SCOPES_MAGIC, SCOPES_VERSION, RUN, 70];
            let pages = layout.total_bytes as usize / 8;
            words[pages..pages + 4].copy_from_slice(&header);
            Self { words: RefCell::new(words), layout, reads: Cell::new(0), change: None }
        }

        pub fn slot(self, number: usize, owner: u64, entries: &[(u64, u16)]) -> Self {
            let start = (self.layout.total_bytes + HEADER_BYTES) as usize / 8 + number * 64;
            let mut words = self.words.borrow_mut();
            let slot = &mut words[start..start + 64];
            slot[0] = owner;
            slot[1] = (RUN << 32) | ((ENTRIES - entries.len()) as u64 * ENTRY_BYTES);
            for (depth, (begin, name)) in entries.iter().enumerate() {
                slot[62 - depth * 2] = *begin;
                slot[63 - depth * 2] = 1 << 32 | u64::from(*name) << 48;
            }
            drop(words);
            self
        }

        pub fn read(&self) -> OpenScopes {
            OpenScopes::read(self, &self.layout)
        }
    }

    fn shown(open: &OpenScopes) -> Vec<(u64, u64, String)> {
        let name = |scope: &OpenScope| String::from_utf8_lossy(&scope.name).into_owned();
        open.scopes().iter().map(|scope| (scope.thread, scope.start.0, name(scope))).collect()
    }

    //= docs/buffer.md#open-scopes
    #[test]
    fn what_threads_have_open_is_read_with_its_names() {
        let file = File::new().slot(0, 71, &[(100, 2), (200, 3)]).slot(9, 72, &[(150, 9)]);
        assert_eq!(file.read().defined_threads(), [(1, 71)]);
        let expected = [(71, 100, "request"), (71, 200, "guilty"), (72, 150, "(unknown)")];
        let expected: Vec<_> =
            expected.into_iter().map(|(thread, start, name)| (thread, start, name.to_owned())).collect();
        assert_eq!(shown(&file.read()), expected);
        // Without pages, and of another version, there is nothing.
        for (word, value) in [(0, 0), (1, 2), (2, 0), (2, RUN + 1)] {
            let file = File::new().slot(0, 71, &[(100, 2)]);
            file.words.borrow_mut()[(1 << 17) + word] = value;
            assert!(file.read().is_empty(), "word {word} is {value}");
        }
        file.words.borrow_mut().truncate(1 << 17);
        assert!(file.read().is_empty());
    }

    /// Another scope takes the entry while the slot is read, and the depth is the same again.
    //= docs/buffer.md#open-scopes
    #[test]
    fn a_slot_that_changes_meanwhile_is_read_again() {
        const SLOT: usize = 512;
        let mut file = File::new().slot(0, 71, &[(100, 2), (200, 3)]);
        // The header and all pages are read before.
        file.change = Some(|pages, reads| {
            if reads == 5 {
                pages[SLOT + 60] = 300;
            }
        });
        assert_eq!(shown(&file.read())[1].1, 300);
        assert_eq!(file.reads.get(), 2 + 4 + 4 + 2);
        // One that changes each time says nothing.
        let mut file = File::new().slot(0, 71, &[(100, 2)]);
        file.change = Some(|pages, reads| pages[SLOT + 62] = reads as u64);
        assert!(file.read().is_empty());
        // Neither does one whose word alone changes for a moment, or whose owner does.
        for word in [0, 1] {
            let mut file = File::new().slot(0, 71, &[(100, 2)]);
            file.change = Some(match word {
                0 => |pages, _| pages[SLOT] += 1,
                _ => |pages, reads| pages[SLOT + 1] = (RUN << 32) | ((reads as u64 % 2 * 16) + 448),
            });
            assert!(file.read().is_empty(), "{word}");
        }
    }

    /// An entry that changes while it is read says nothing, and the others do.
    //= docs/buffer.md#open-scopes
    #[test]
    fn scopes_of_tracks_are_read_each_for_itself() {
        const SLOT: usize = 512;
        let mut file =
            File::new().slot(0, 71, &[(100, 2)]).slot(1, OWNER_TRACKS, &[(300, 2), (200, 3), (400, 2)]);
        for (entry, track) in [(62, 5), (60, 5), (58, 6)] {
            file.words.borrow_mut()[(1 << 17) + SLOT + 64 + entry + 1] |= track;
        }
        let on = |track: u64, start, name: &str| (TRACK | track, start, name.to_owned());
        let of_thread = (71, 100, "request".to_owned());
        let all = [of_thread.clone(), on(5, 200, "guilty"), on(5, 300, "request"), on(6, 400, "request")];
        assert_eq!(shown(&file.read()), all);
        assert_eq!(
            file.read().in_words(Ticks(1_000_300), RATE),
            format!(
                "thread 71 was in request for 1 ms; track {} was in guilty > request for 1 ms; \
                 track {} was in request for 999.9 µs",
                TRACK | 5,
                TRACK | 6
            )
        );
        let since = OpenScopes::read_since(&file, &file.layout, Ticks(250));
        assert_eq!(shown(&since), [of_thread, on(5, 200, "guilty")]);
        // Before the second copy of the second slot, the scope in its last entry gives way to another one.
        file.change = Some(|pages, reads| pages[SLOT + 64 + 62] = 300 + reads as u64);
        assert_eq!(shown(&file.read()).len(), 3);
    }

    //= docs/buffer.md#open-scopes
    #[test]
    fn what_has_a_record_has_ended() {
        let mut open = File::new().slot(0, 71, &[(100, 2), (200, 3)]).slot(1, 72, &[(200, 2)]).read();
        // Another thread's scope began at the same time; another one of this thread at another time.
        for (thread, start) in [(72, 100), (71, 199), (71, 200)] {
            open.has_ended(thread, start);
        }
        assert_eq!(
            shown(&open).iter().map(|(thread, start, _)| (*thread, *start)).collect::<Vec<_>>(),
            [(71, 100), (72, 200)]
        );
    }

    //= docs/format.md#open-scopes
    #[test]
    fn they_are_begins_that_say_why_there_is_no_end() {
        let file = File::new().slot(0, 71, &[(100, 2), (200, 3)]).slot(1, 72 | OWNER_ENDED, &[(300, 2)]);
        file.words.borrow_mut()[(1 << 17) + 513] |= 2 << 16;
        let open = file.read();
        let mut archive = Vec::new();
        crate::framing::magic(&mut archive);
        assert_eq!(open.write(Ending::Death, Ticks(1_000_200), RATE, &mut archive), 3);
        let mut reader = Reader::new(&archive[..]).unwrap();
        let mut found = Vec::new();
        while let Some(record) = reader.next_item().unwrap() {
            if let Item::Event(event) = record.item {
                let deeper = event.arguments.integer("deeper");
                found.push((event.thread.thread.0, event.time.ticks.0, event.ending(), deeper));
            }
        }
        let death = |lasted| Some((Ending::Death, Some(lasted)));
        assert_eq!(
            found,
            [
                (71, 100, death(1_000_100), None),
                (71, 200, death(1_000_000), Some(2)),
                (72, 300, Some((Ending::ThreadEnd, None)), None),
            ]
        );
        assert_eq!(
            open.in_words(Ticks(20_400_200), RATE),
            "thread 71 was in request > guilty > 2 more for 20.4 ms"
        );
    }
}
