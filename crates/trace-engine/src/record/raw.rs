//! Records that the caller assembles, word by word: for generated instrumentation, and for other languages.
//!
//! All of it is for a running trace and does nothing without one.

use crate::buffer::definitions::Text;
use crate::record::event_writer::{EventWriter, VirtualName, WriteError};
use crate::record::hooked::passes_record;
use crate::record::privacy::REDACTED;
use crate::record::redacting::redact_record;
use crate::record::slow_path::with_writer;
use crate::session::lease::Lease;
use crate::session::{hook, wanted};
use crate::site::Site;
use trace_format::record::{MAX_RECORD_WORDS, RecordHeader, RecordType};
use trace_format::refs::ThreadRef;
use trace_format::slab::LossReason;
use trace_format::units::{Koid, ProcessKoid, ThreadIndex, ThreadKoid};

/// Stands for records that were decided on elsewhere: it is always on.
static DECIDED: Site = Site::always_on();

/// As [`with_writer`], for a record that was decided on: none where it is not written, for whatever reason.
fn write<R>(write: impl Fn(&EventWriter<'_>, u64) -> Result<R, WriteError>) -> Option<R> {
    with_writer(&DECIDED, None, write)?.ok()
}

/// As [`write`], of a record, or what a private recording has of it.
fn put(
    words: &[u64],
    write_words: impl Fn(&EventWriter<'_>, u64, &[u64]) -> Result<(), WriteError>,
) -> Option<Result<(), WriteError>> {
    with_writer(&DECIDED, None, |writer, now| {
        if !writer.is_private() {
            return write_words(writer, now, words);
        }
        redact_record(words).map_or(Ok(()), |words| write_words(writer, now, &words))
    })
}

/// Writes one record: its header first, and no more words than that says. Counted as lost if it has no room.
pub fn write_record(words: &[u64]) {
    let record_type = words.first().and_then(|header| RecordHeader(*header).record_type());
    if record_type == Some(RecordType::Event) && hook::is_wanted() && !passes_record(words) {
        return;
    }
    let is_large = record_type == Some(RecordType::Large);
    let limit = if is_large { usize::MAX } else { MAX_RECORD_WORDS };
    put(words, |writer, now, words| put_words(writer, words, limit, now));
}

/// Writes the words of a record, if there are any.
fn put_words(writer: &EventWriter<'_>, words: &[u64], limit: usize, now: u64) -> Result<(), WriteError> {
    let Some((header, payload)) = words.split_first() else {
        return Ok(());
    };
    writer.put(words.len(), limit, now, *header, |record| payload.iter().for_each(|word| record.word(*word)))
}

/// The result of [`try_write_record`].
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
    let written = with_writer(&DECIDED, None, |writer, now| {
        let redacted;
        let words = if writer.is_private() {
            redacted = redact_record(words).unwrap_or_default();
            &redacted[..]
        } else {
            words
        };
        match put_words(writer, words, MAX_RECORD_WORDS, now) {
            Err(WriteError::Lost(LossReason::NotSaved | LossReason::NotRetired)) => Ok(WriteResult::NotYet),
            // Slabs that have memory come back.
            Err(WriteError::Lost(LossReason::NotBacked)) if writer.is_stream() => Ok(WriteResult::NotYet),
            written => written.map(|()| WriteResult::Done),
        }
    });
    written.map_or(WriteResult::NoTrace, |written| written.unwrap_or(WriteResult::Done))
}

/// Adds records to the ledger that were lost before they came to this process, and when the first and the
/// last of them were.
pub fn add_losses(reason: LossReason, count: u64, first: u64, last: u64) {
    if let Some(context) = Lease::of_thread().context() {
        context.buffer().add_refused(reason, count, first, last);
    }
}

/// Bytes that are left for definitions: of strings, and of records that are to be kept whatever happens. 0 if
/// no trace runs.
#[must_use]
pub fn durable_room() -> u64 {
    Lease::of_thread().context().map_or(0, |context| context.buffer().durable_room())
}

/// Counts a record as lost that is larger than one may be.
pub fn count_too_large() {
    write::<()>(|writer, _| Err(writer.too_large(MAX_RECORD_WORDS as u64 * 8, true)));
}

/// Writes one record into the durable region, which keeps it whatever happens to the events; false if it has
/// no room there, and is counted as lost.
pub fn write_durable_record(words: &[u64]) -> bool {
    if words.is_empty() {
        return false;
    }
    let written = put(words, |writer, _, words| match words.split_first() {
        Some((header, payload)) => {
            writer.define(words.len(), *header, |record| payload.iter().for_each(|word| record.word(*word)))
        }
        None => Ok(()),
    });
    matches!(written, Some(Ok(())))
}

/// The index of a text of the program's run; none where it has to be written inline. The empty text has index
/// 0.
#[must_use]
pub fn string_index(text: &[u8]) -> Option<u16> {
    let index = |writer: &EventWriter<'_>| match writer.is_private() && !text.is_empty() {
        true => index_of(writer.intern(REDACTED.as_bytes())),
        false => index_of(writer.intern(text)),
    };
    write(|writer, _| Ok(index(writer)))?
}

/// As [`string_index`], of a text that is a constant of the program.
#[must_use]
pub fn literal_index(text: &[u8]) -> Option<u16> {
    write(|writer, _| Ok(index_of(writer.intern(text))))?
}

/// Whether the running trace replaces texts of the program's run.
#[must_use]
pub fn is_private() -> bool {
    Lease::of_thread().context().is_some_and(|context| context.config().privacy)
}

fn index_of(text: Text<'_>) -> Option<u16> {
    match text {
        Text::Index(index) => Some(index),
        Text::Inline(_) => None,
    }
}

const fn inline(process: u64, thread: u64) -> ThreadRef {
    ThreadRef::Inline { process: ProcessKoid(Koid(process)), thread: ThreadKoid(Koid(thread)) }
}

/// The calling thread, which is named if it was not yet. None if no trace runs.
#[must_use]
pub fn current_thread() -> Option<ThreadRef> {
    let index = write(|writer, _| Ok(writer.thread_index()))?;
    Some(match index.map(ThreadIndex::new) {
        Ok(Some(index)) => ThreadRef::Index(index),
        // No thread has index 0.
        Ok(None) => inline(0, 0),
        Err([process, thread]) => inline(process, thread),
    })
}

/// The koid of this process in the running trace; 0 without one.
#[must_use]
pub fn current_process() -> u64 {
    Lease::of_thread().context().map_or(0, |context| context.config().process)
}

/// Names a virtual thread of this process, and says what it is. None if no trace runs.
#[must_use]
pub fn virtual_thread(id: u64, name: &str) -> Option<ThreadRef> {
    let name = VirtualName { text: name, is_literal: false };
    let [process, thread] = write(|writer, _| Ok(writer.virtual_thread(id, name)))?;
    Some(inline(process, thread))
}

/// Records an alert and calls the running trace's handler with it.
pub fn send_alert(name: &str) {
    crate::record::alert::send_alert(&DECIDED, name);
}

/// Whether the present run wants a category.
#[must_use]
pub fn is_category_wanted(category: &[u8]) -> bool {
    wanted::is_wanted(category)
}
