//! Writes records into this process's trace buffer.

use foldhash::{HashMap, HashMapExt};
use std::time::Duration;
use trace_engine::BufferMode;
use trace_engine::engine::{self, State};
use trace_engine::ffi::{self, WriteResult};
use trace_format::argument::{Argument, Arguments};
use trace_format::event::{Event, EventKind};
use trace_format::kernel_object::KernelObject;
use trace_format::record::{MAX_RECORD_WORDS, Record};
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::SliceSink;
use trace_format::units::{Koid, ProcessKoid, StringIndex, Thread, ThreadKoid, Ticks};
use trace_linux::{Records, inline};

/// Only strings that are likely to repeat get an index.
const MAX_INDEXED_BYTES: usize = 200;
/// Maximum number of remembered strings; there are no more indices.
const MAX_STRINGS: usize = 1 << 15;
/// Part of the durable region that is left for other definitions.
const ROOM_LEFT_BYTES: u64 = 32 << 10;
/// How soon a record is retried that found no room yet.
const RETRY_INTERVAL: Duration = Duration::from_micros(500);

/// The category of markers.
const MARKERS: &[u8] = b"atrace";

/// The running trace.
pub struct EngineRecords {
    /// None for a string that has no index.
    strings: HashMap<Box<[u8]>, Option<StringIndex>>,
    /// The recording has no texts of programs: their names are another matter.
    is_private: bool,
    words: Box<[u64; MAX_RECORD_WORDS]>,
    /// Names have to outlive events that are overwritten.
    are_names_durable: bool,
    /// How many indices were assigned since the last check for room.
    since_look: u32,
    has_room: bool,
}

impl EngineRecords {
    /// For the running trace.
    pub fn new() -> Self {
        Self {
            strings: HashMap::new(),
            is_private: ffi::is_private(),
            words: Box::new([0; MAX_RECORD_WORDS]),
            are_names_durable: engine::mode() == Some(BufferMode::Circular),
            since_look: 0,
            has_room: ffi::durable_room() > ROOM_LEFT_BYTES,
        }
    }

    fn has_room(&mut self) -> bool {
        self.since_look += 1;
        if self.since_look >= 16 {
            self.since_look = 0;
            self.has_room = ffi::durable_room() > ROOM_LEFT_BYTES;
        }
        self.has_room
    }

    /// Writes a definition for later records into the region that outlives overwritten events, as long as
    /// there is room.
    pub fn define(&mut self, record: &Record<'_>) {
        if self.are_names_durable && self.has_room() {
            let mut sink = SliceSink::new(&mut self.words[..]);
            if record.encode(&mut sink).is_ok() && !sink.is_overrun() {
                ffi::write_durable_record(sink.words());
            }
            return;
        }
        self.write(record);
    }

    /// Encodes a record, and writes it; false if it is larger than the format allows.
    fn write(&mut self, record: &Record<'_>) -> bool {
        let mut sink = SliceSink::new(&mut self.words[..]);
        if record.encode(&mut sink).is_err() || sink.is_overrun() {
            ffi::count_too_large();
            return false;
        }
        let words = sink.words();
        // While the trace stops, and waits for the records held here, room is still made; once it has ended,
        // no more.
        while ffi::try_write_record(words) == WriteResult::NotYet {
            if !matches!(engine::state(), State::Started | State::Stopping) {
                ffi::write_record(words);
                break;
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
        true
    }
}

impl Default for EngineRecords {
    fn default() -> Self {
        Self::new()
    }
}

impl Records for EngineRecords {
    fn string<'a>(&mut self, text: &'a [u8]) -> StringRef<'a> {
        // The engine puts something in its place.
        if self.is_private { inline(text) } else { self.constant(text) }
    }

    fn constant<'a>(&mut self, text: &'a [u8]) -> StringRef<'a> {
        if text.is_empty() {
            return StringRef::Empty;
        }
        if text.len() > MAX_INDEXED_BYTES {
            return inline(text);
        }
        let index = match self.strings.get(text) {
            Some(known) => *known,
            None => {
                let has_room = self.has_room();
                let index = has_room.then(|| ffi::literal_index(text)).flatten().and_then(StringIndex::new);
                if self.strings.len() < MAX_STRINGS {
                    self.strings.insert(text.into(), index);
                }
                index
            }
        };
        index.map_or_else(|| inline(text), StringRef::Index)
    }

    fn at(&mut self, _: u64, record: &Record<'_>) -> bool {
        self.write(record)
    }

    fn event(
        &mut self,
        at: u64,
        thread: Thread,
        category: &[u8],
        name: &[u8],
        kind: EventKind,
        arguments: &[Argument<'_>],
    ) {
        // Markers have names that programs give them.
        let name = if category == MARKERS { self.string(name) } else { self.constant(name) };
        let category = self.constant(category);
        self.write(&Record::Event(Event {
            timestamp: Ticks(at),
            thread: ThreadRef::Inline {
                process: ProcessKoid(thread.process),
                thread: ThreadKoid(thread.thread),
            },
            category,
            name,
            kind,
            arguments: Arguments::from_slice(arguments),
        }));
    }

    fn object(&mut self, object_type: u8, koid: Koid, name: &[u8], arguments: &[Argument<'_>]) {
        let object = KernelObject {
            object_type,
            koid,
            name: inline(name),
            arguments: Arguments::from_slice(arguments),
        };
        self.define(&Record::KernelObject(object));
    }

    fn warn(&mut self, what: String) {
        crate::report(&what);
    }
}
