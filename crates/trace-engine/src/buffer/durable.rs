//! The durable region: definitions of strings and threads, and who the process is.
//!
//! An allocation is announced by a placeholder of its full size before any payload, and its real header
//! comes last. So a thread that is killed half-way leaves zeros or a placeholder, and hides nothing that
//! follows.
//!
//! What finds no room stands in the records that need it, and how much that was is counted, each definition
//! once.

use crate::buffer::record_writer::RecordWriter;
use crate::buffer::strings::Lookup;
use crate::session::context::Context;
use crate::sync::{Ordering, fence};
use crate::sys;
use crate::thread::block::ThreadBlock;
use trace_format::argument::{self, ArgumentType};
use trace_format::refs::{inline_string_ref, truncate};
use trace_format::slab::LossReason;
use trace_format::{blob, initialization, kernel_object, string, thread};

/// The durable region has no room for another definition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DurableFull;

/// Kernel object types of process and thread.
const OBJECT_PROCESS: u8 = 1;
const OBJECT_THREAD: u8 = 2;
/// Largest thread index.
const MAX_THREADS: u32 = 255;
/// Blob type of raw data.
const BLOB_DATA: u8 = 1;
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

/// The bit that tells inline references from indices.
//= docs/format.md#string-references
const INLINE: u16 = 1 << 15;

/// Virtual threads that get a name; more would fill the region.
pub(crate) const MAX_VIRTUAL_THREADS: usize = 1024;

impl Context {
    /// Writes one durable record of `words` words: `payload` stores all but the header. Returns its offset in
    /// the buffer. A record that is longer than what is left takes no room from shorter ones.
    //= docs/buffer.md#durable-region
    pub(crate) fn write_durable(
        &self,
        words: usize,
        header: u64,
        payload: impl FnOnce(&mut RecordWriter),
    ) -> Result<u64, DurableFull> {
        let bytes = words as u64 * 8;
        let offset = self
            .durable_next
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                Some(next + bytes).filter(|end| *end <= self.layout.durable_bytes)
            })
            .map_err(|_| {
                self.add_short(LossReason::DurableFull, bytes);
                DurableFull
            })?;
        let start = self.layout.durable + offset;
        // The payload never precedes its placeholder.
        self.region.word(start).store(placeholder(words), Ordering::Relaxed);
        fence(Ordering::Release);
        let mut record = self.region.record(start, words);
        payload(&mut record);
        record.commit(header);
        Ok(start)
    }

    pub(crate) fn write_initialization(&self) {
        let rate = self.config.ticks_per_second;
        let _ = self.write_durable(2, initialization::HEADER, |record| record.word(rate));
    }

    /// Names the process.
    pub(crate) fn write_process(&self) {
        let name = &self.config.process_name;
        let name = truncate(name, MAX_NAME_BYTES).as_bytes();
        let words = 2 + name.len().div_ceil(8);
        let header = kernel_object::header(words as u64, OBJECT_PROCESS, inline_string_ref(name.len()), 0);
        let _ = self.write_durable(words, header, |record| {
            record.word(self.config.process);
            record.bytes(name);
        });
    }

    /// Gives the block's thread an index and records its name, if an index is left and there is room. All
    /// others are written inline; threads beyond the table leave nothing here, so that they cannot fill the
    /// region.
    //= docs/buffer.md#threads-and-strings
    pub(crate) fn register_thread(&self, block: &ThreadBlock) {
        let taken = self.thread_indices.try_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            Some(taken + 1).filter(|index| *index <= MAX_THREADS)
        });
        let Ok(taken) = taken else {
            return;
        };
        let index = taken as u8 + 1;
        let koid = block.koid.load(Ordering::Relaxed);
        let mut buffer = [0; 16];
        // An index without a name is worth having: its thread writes on the fast path.
        let _ = self.write_thread_name(koid, sys::thread_name(&mut buffer));
        let defined = self.write_durable(3, thread::header(index), |record| {
            record.word(self.config.process);
            record.word(koid);
        });
        if defined.is_ok() {
            block.thread_bits.store(u64::from(index) << 24, Ordering::Relaxed);
        }
    }

    /// Names a virtual thread when it is first seen, if there is room. If another thread is busy with the
    /// list, the next event does.
    //= docs/buffer.md#threads-and-strings
    pub(crate) fn name_virtual_thread(&self, koid: u64, name: &str) {
        if let Some(mut seen) = self.virtual_threads.try_lock()
            && let Err(place) = seen.binary_search(&koid)
            && seen.len() < MAX_VIRTUAL_THREADS
        {
            let _ = self.write_thread_name(koid, truncate(name, MAX_NAME_BYTES).as_bytes());
            seen.insert(place, koid);
        }
    }

    /// Names a thread of this process.
    fn write_thread_name(&self, koid: u64, name: &[u8]) -> Result<u64, DurableFull> {
        let words = 2 + name.len().div_ceil(8) + 3;
        let header = kernel_object::header(words as u64, OBJECT_THREAD, inline_string_ref(name.len()), 1);
        self.write_durable(words, header, |record| {
            record.word(koid);
            record.bytes(name);
            record.word(argument::header(ArgumentType::Koid, 3, inline_string_ref(PROCESS.len()), 0));
            record.bytes(PROCESS.as_bytes());
            record.word(self.config.process);
        })
    }

    /// The string's reference: its index, or inline when somebody else is busy with the table, indices are
    /// out, or there was no room for its definition.
    //= docs/buffer.md#a-full-durable-region
    pub(crate) fn intern<'a>(&self, text: &'a [u8]) -> Text<'a> {
        self.try_intern(text).unwrap_or(Text::Inline(text))
    }

    /// As [`Context::intern`], but none when another thread is busy with the table. What it says otherwise
    /// holds until the definitions are cleared: the durable region only gets fuller, and indices stay.
    pub(crate) fn try_intern<'a>(&self, text: &'a [u8]) -> Option<Text<'a>> {
        if text.is_empty() {
            return Some(Text::Index(0));
        }
        let mut table = self.strings.try_lock()?;
        Some(match table.find(text, |known| self.is_at(text, u64::from(known.offset))) {
            Lookup::Known(index) => Text::Index(index),
            Lookup::Inline => Text::Inline(text),
            Lookup::Vacant { slot, index } => {
                let words = 1 + text.len().div_ceil(8);
                let header = string::header(words as u64, index, text.len() as u16);
                let Ok(offset) = self.write_durable(words, header, |record| record.bytes(text)) else {
                    table.insert_inline(slot, text);
                    return Some(Text::Inline(text));
                };
                // The durable region ends within the first 2 MiB.
                table.insert(slot, offset as u32 + 8, text.len() as u16, index);
                Text::Index(index)
            }
        })
    }

    /// Whether so many bytes of the buffer are those of a text.
    fn is_at(&self, text: &[u8], offset: u64) -> bool {
        let words = text.chunks(8).zip((offset..).step_by(8));
        words.into_iter().all(|(bytes, offset)| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.region.word(offset).load(Ordering::Relaxed) == u64::from_le_bytes(word)
        })
    }
}

/// An anonymous data blob, which readers step over: what stands in place of a header until its payload is
/// complete.
fn placeholder(words: usize) -> u64 {
    let payload_bytes = (words as u64 - 1) * 8;
    blob::header(words as u64, 0, payload_bytes as u16, BLOB_DATA)
}
