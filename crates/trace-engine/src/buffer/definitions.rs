//! Definitions of strings and threads, and the records that name the process and its threads.
//!
//! A definition that finds no room in the durable region stands in the records that need it, and how much
//! that was is counted, each definition once.

use crate::buffer::Buffer;
use crate::buffer::durable::DurableFull;
use crate::buffer::record_writer::RecordWriter;
use crate::buffer::strings::{Lookup, StringTable};
use crate::sync::{AtomicU32, Mutex, Ordering};
use crate::sys;
use trace_format::argument::{self, ArgumentType};
use trace_format::refs::{inline_string_ref, truncate};
use trace_format::{initialization, kernel_object, string, thread};

/// Kernel object types of process and thread.
const OBJECT_PROCESS: u8 = 1;
const OBJECT_THREAD: u8 = 2;
/// Largest thread index.
const MAX_THREADS: u32 = 255;
/// The argument of a thread's object that names its process.
const PROCESS: &str = "process";
/// Longest process name that is written, in bytes.
const MAX_NAME_BYTES: usize = 1024;

/// Where a string stands in a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text<'a> {
    Index(u16),
    Inline(&'a [u8]),
}

impl<'a> Text<'a> {
    /// What a reference says of a text.
    pub fn of_reference(reference: u16, text: &'a [u8]) -> Self {
        if is_inline(reference) { Self::Inline(text) } else { Self::Index(reference) }
    }

    /// The string reference in a header.
    pub fn reference(self) -> u16 {
        match self {
            Self::Index(index) => index,
            Self::Inline(text) => inline_string_ref(text.len()),
        }
    }

    /// The index of the text; 0 if the text is not in the table.
    #[cfg(not(modelled))]
    pub fn index(self) -> u16 {
        match self {
            Self::Index(index) => index,
            Self::Inline(_) => 0,
        }
    }

    /// Stores its stream.
    pub fn write(self, record: &mut RecordWriter) {
        if let Self::Inline(text) = self {
            record.bytes(text);
        }
    }

    /// Words of the stream behind the header.
    pub fn words(self) -> usize {
        match self {
            Self::Index(_) => 0,
            Self::Inline(text) => text.len().div_ceil(8),
        }
    }
}

/// Whether a reference stands for a text beside it.
pub(crate) const fn is_inline(reference: u16) -> bool {
    reference & INLINE != 0
}

/// The bit that distinguishes inline references from indices.
//= docs/format.md#string-references
const INLINE: u16 = 1 << 15;

/// Virtual threads that get a name; more would fill the region.
pub(crate) const MAX_VIRTUAL_THREADS: usize = 1024;

/// The definitions of one trace. Everything a writer touches is an atomic or behind a lock it only tries.
pub(crate) struct Definitions {
    /// Koid of the process.
    process: u64,
    /// Strings with an index. Writers only try the lock: a thread that does not get it writes inline.
    strings: Mutex<StringTable>,
    /// Koids of the virtual threads that have a name, in order. Writers only try this lock, too.
    virtual_threads: Mutex<Vec<u64>>,
    /// Thread indices handed out.
    thread_indices: AtomicU32,
}

/// Writes the initialization record: the rate of the clock.
pub(crate) fn write_initialization(buffer: &Buffer, ticks_per_second: u64) {
    let _ = buffer.write_durable(2, initialization::HEADER, |record| record.word(ticks_per_second));
}

impl Definitions {
    /// None yet, of a process.
    pub fn new(process: u64) -> Self {
        Self {
            process,
            strings: Mutex::new(StringTable::new()),
            virtual_threads: Mutex::new(Vec::with_capacity(MAX_VIRTUAL_THREADS)),
            thread_indices: AtomicU32::new(0),
        }
    }

    /// Forgets all of them. No thread may be inside an event.
    pub fn clear(&self) {
        *self.strings.lock() = StringTable::new();
        self.virtual_threads.lock().clear();
        self.thread_indices.store(0, Ordering::Relaxed);
    }

    /// Names the process.
    pub fn write_process(&self, buffer: &Buffer, name: &str) {
        let name = truncate(name, MAX_NAME_BYTES).as_bytes();
        let words = 2 + name.len().div_ceil(8);
        let header = kernel_object::header(words as u64, OBJECT_PROCESS, inline_string_ref(name.len()), 0);
        let _ = buffer.write_durable(words, header, |record| {
            record.word(self.process);
            record.bytes(name);
        });
    }

    /// Gives the calling thread an index, if one is left and there is room. All others are written inline.
    /// Also records the thread's name. Without an index, a thread gets a name only if more than half of the
    /// region is free.
    //= docs/buffer.md#threads-and-strings
    pub fn register_thread(&self, buffer: &Buffer, koid: u64) -> Option<u8> {
        let taken = self.thread_indices.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            Some(taken + 1).filter(|index| *index <= MAX_THREADS)
        });
        if taken.is_ok() || buffer.durable_room() > buffer.layout().durable_bytes / 2 {
            let mut name = [0; 16];
            // An index without a name is worth having: its thread writes on the fast path.
            let _ = self.write_thread_name(buffer, koid, sys::thread_name(&mut name));
        }
        let index = taken.ok()? as u8 + 1;
        let defined = buffer.write_durable(3, thread::header(index), |record| {
            record.word(self.process);
            record.word(koid);
        });
        defined.is_ok().then_some(index)
    }

    /// Names a virtual thread when it is first seen, if there is room. False if another thread is busy with
    /// the list: then the next event does.
    //= docs/buffer.md#threads-and-strings
    pub fn name_virtual_thread(&self, buffer: &Buffer, koid: u64, name: &str) -> bool {
        let Some(mut seen) = self.virtual_threads.try_lock() else { return false };
        let has_room = seen.len() < MAX_VIRTUAL_THREADS;
        if let Some(place) = seen.binary_search(&koid).err().filter(|_| has_room) {
            let _ = self.write_thread_name(buffer, koid, truncate(name, MAX_NAME_BYTES).as_bytes());
            seen.insert(place, koid);
        }
        true
    }

    /// Names a thread of this process.
    fn write_thread_name(&self, buffer: &Buffer, koid: u64, name: &[u8]) -> Result<u64, DurableFull> {
        let words = 2 + name.len().div_ceil(8) + 3;
        let header = kernel_object::header(words as u64, OBJECT_THREAD, inline_string_ref(name.len()), 1);
        buffer.write_durable(words, header, |record| {
            record.word(koid);
            record.bytes(name);
            record.word(argument::header(ArgumentType::Koid, 3, inline_string_ref(PROCESS.len()), 0));
            record.bytes(PROCESS.as_bytes());
            record.word(self.process);
        })
    }

    /// The string's reference: its index, or inline when another thread is busy with the table, indices are
    /// out, or there was no room for its definition.
    //= docs/buffer.md#a-full-durable-region
    pub fn intern<'a>(&self, buffer: &Buffer, text: &'a [u8]) -> Text<'a> {
        self.try_intern(buffer, text).unwrap_or(Text::Inline(text))
    }

    /// As [`Definitions::intern`], but none when another thread is busy with the table. What it says
    /// otherwise holds until the definitions are cleared: the durable region only gets fuller, and indices
    /// stay.
    pub fn try_intern<'a>(&self, buffer: &Buffer, text: &'a [u8]) -> Option<Text<'a>> {
        if text.is_empty() {
            return Some(Text::Index(0));
        }
        let mut table = self.strings.try_lock()?;
        Some(match table.find(text, |known| buffer.is_at(text, u64::from(known.offset))) {
            Lookup::Known(index) => Text::Index(index),
            Lookup::Inline => Text::Inline(text),
            Lookup::Vacant { slot, index } => {
                let words = 1 + text.len().div_ceil(8);
                let header = string::header(words as u64, index, text.len() as u16);
                let Ok(offset) = buffer.write_durable(words, header, |record| record.bytes(text)) else {
                    table.insert_inline(slot, text);
                    return Some(Text::Inline(text));
                };
                // The durable region ends within the first 2 MiB.
                table.insert(slot, offset as u32 + 8, text.len() as u16, index);
                Text::Index(index)
            }
        })
    }
}
