//! Records that somebody else puts together, word by word: for those who generate instrumentation, and for
//! other languages.
//!
//! All of it is for a running trace and does nothing without one.

use crate::buffer::durable::Text;
use crate::record::write::{EventWriter, WriteError, with_writer};
use crate::session::context::Context;
use crate::session::engine::{self, Lease};
use crate::site::Site;
use trace_format::record::{MAX_RECORD_WORDS, RecordHeader, RecordType};
use trace_format::slab::LossReason;
use trace_format::units::{Koid, ProcessKoid, ThreadKoid};

/// Stands for what was decided elsewhere: it is always on.
static DECIDED: Site = Site::always_on();

/// Writes one record: its header first, and no more words than that says. Counted as lost if it has no room.
pub fn write_record(words: &[u64]) {
    let Some((header, payload)) = words.split_first() else {
        return;
    };
    let is_large = RecordHeader(*header).record_type() == Some(RecordType::Large);
    let limit = if is_large { usize::MAX } else { MAX_RECORD_WORDS };
    with_writer(&DECIDED, None, |writer, now| {
        writer.put(words.len(), limit, now, *header, |record| {
            payload.iter().for_each(|word| record.word(*word));
        })
    });
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// It is written, or it never can be, and is counted as lost.
    Done,
    /// What came before it has not been taken out of the buffer yet: there will be room.
    NotYet,
    /// No trace runs.
    NoTrace,
}

/// As [`write_record`], but a record that only comes too early is not lost: the caller has it, and can try
/// again.
#[must_use]
pub fn try_write_record(words: &[u64]) -> WriteResult {
    let put = core::cell::Cell::new(WriteResult::NoTrace);
    let Some((header, payload)) = words.split_first() else {
        return WriteResult::Done;
    };
    with_writer(&DECIDED, None, |writer, now| {
        put.set(WriteResult::Done);
        let written = writer.put(words.len(), MAX_RECORD_WORDS, now, *header, |record| {
            payload.iter().for_each(|word| record.word(*word));
        });
        if matches!(written, Err(WriteError::Lost(LossReason::NotSaved | LossReason::NotRetired))) {
            put.set(WriteResult::NotYet);
            return Ok(());
        }
        written
    });
    put.get()
}

/// Adds records to the ledger that were lost before they came to this process, and when the first and the
/// last of them were.
pub fn add_losses(reason: LossReason, count: u64, first: u64, last: u64) {
    if let Some(context) = Lease::of_thread().context() {
        context.add_refused(reason, count, first, last);
    }
}

/// Bytes that are left for definitions: of strings, and of records that are to be kept whatever happens. 0 if
/// no trace runs.
#[must_use]
pub fn durable_room() -> u64 {
    let lease = Lease::of_thread();
    let room = |context: &Context| context.layout.durable_bytes.saturating_sub(context.durable_bytes());
    lease.context().map_or(0, room)
}

/// Counts a record as lost that is larger than one may be.
pub fn count_too_large() {
    with_writer(&DECIDED, None, |writer, _| Err(writer.too_large(MAX_RECORD_WORDS as u64 * 8, true)));
}

/// Writes one record into the durable region, which keeps it whatever happens to the events; false if it has
/// no room there, and is counted as lost.
pub fn write_durable_record(words: &[u64]) -> bool {
    let Some((header, payload)) = words.split_first() else {
        return false;
    };
    let is_written = core::cell::Cell::new(false);
    with_writer(&DECIDED, None, |writer, _| {
        writer.define(words.len(), *header, |record| payload.iter().for_each(|word| record.word(*word)))?;
        is_written.set(true);
        Ok(())
    });
    is_written.get()
}

/// The index of a text; none where it has to be written inline. The empty text has index 0.
#[must_use]
pub fn string_index(text: &[u8]) -> Option<u16> {
    let index = core::cell::Cell::new(None);
    with_writer(&DECIDED, None, |writer, _| {
        if let Text::Index(found) = writer.intern(text) {
            index.set(Some(found));
        }
        Ok(())
    });
    index.get()
}

/// How a thread stands in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPlace {
    /// By its index, which is not 0.
    Index(u8),
    /// By its ids, in each record.
    Inline(ProcessKoid, ThreadKoid),
}

/// The calling thread, which is named if it was not yet. None if no trace runs.
#[must_use]
pub fn current_thread() -> Option<ThreadPlace> {
    let found = core::cell::Cell::new(None);
    with_writer(&DECIDED, None, |writer: &EventWriter<'_>, _| {
        found.set(Some(writer.thread()));
        Ok(())
    });
    found.get()
}

pub(crate) const fn inline(process: u64, thread: u64) -> ThreadPlace {
    ThreadPlace::Inline(ProcessKoid(Koid(process)), ThreadKoid(Koid(thread)))
}

/// Names a virtual thread of this process, and says what it is. None if no trace runs.
#[must_use]
pub fn virtual_thread(id: u64, name: &str) -> Option<ThreadPlace> {
    let found = core::cell::Cell::new(None);
    with_writer(&DECIDED, None, |writer, _| {
        let [process, thread] = writer.virtual_thread(id, name);
        found.set(Some(inline(process, thread)));
        Ok(())
    });
    found.get()
}

/// Records an alert and tells the running trace's handler of it.
pub fn send_alert(name: &str) {
    crate::record::alert::send_alert(&DECIDED, name);
}

/// Whether the present run wants a category.
#[must_use]
pub fn is_category_wanted(category: &[u8]) -> bool {
    engine::is_wanted(category)
}
