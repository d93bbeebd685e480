//! Records that are not events: messages, blobs, objects, and what a scheduler does. They go the slow path of
//! events, which waits for no lock.

use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::Values;
use crate::record::event::Event;
use crate::record::event_writer::{EventWriter, VIRTUAL, VirtualName, WriteError};
use crate::record::hooked::{Whose, passes};
use crate::record::hot_path::{ThreadMoment, stamp, write_event_at};
use crate::record::privacy::is_of_system;
use crate::record::slow_path::with_writer;
use crate::session::hook;
use crate::site::Site;
use trace_format::event::EventType;
use trace_format::large::{self, FORMAT_ATTACHMENT, FORMAT_EVENT};
use trace_format::record::MAX_RECORD_WORDS;
use trace_format::refs::{MAX_STRING_BYTES, inline_string_ref, truncate};
use trace_format::scheduling::{ThreadState, context_switch_header, thread_wakeup_header};
use trace_format::units::Koid;
use trace_format::{blob, kernel_object, log};

/// A message at this moment. Longer ones than 32 000 bytes are cut where a character ends.
#[doc(hidden)]
pub fn write_log(site: &Site, message: &str) {
    write_message(site, message, false);
}

/// As [`write_log`], of a message that is a constant of the program.
#[doc(hidden)]
pub fn write_literal_log(site: &Site, message: &str) {
    write_message(site, message, true);
}

fn write_message(site: &Site, message: &str, is_literal: bool) {
    let message = truncate(message, MAX_STRING_BYTES);
    with_writer(site, None, |writer, now| {
        let message = if is_literal { message } else { writer.text_of_run(message) }.as_bytes();
        let words = 2 + writer.thread_words() + message.len().div_ceil(8);
        let header = log::header(words as u64, message.len() as u16, writer.thread_ref());
        writer.put(words, MAX_RECORD_WORDS, now, header, |record| {
            record.word(now);
            writer.write_thread(record);
            record.bytes(message);
        })
    });
}

/// Bytes with the site's name, without time and thread.
#[doc(hidden)]
pub fn write_blob(site: &Site, blob_type: u8, payload: &[u8]) {
    with_writer(site, None, |writer, now| {
        let name = writer.strings(site).name;
        let payload = if writer.is_private() { &[] } else { payload };
        let words = 1 + name.words() + payload.len().div_ceil(8);
        if words > MAX_RECORD_WORDS {
            return Err(writer.too_large(words as u64 * 8, true));
        }
        let header = blob::header(words as u64, name.reference(), payload.len() as u16, blob_type);
        writer.put(words, MAX_RECORD_WORDS, now, header, |record| {
            name.write(record);
            record.bytes(payload);
        })
    });
}

/// A large blob with a time, a thread and arguments.
#[doc(hidden)]
pub fn write_large_blob<V: Values>(site: &Site, payload: &[u8], values: &V) {
    with_writer(site, None, |writer, now| {
        let strings = writer.strings(site);
        let arguments = strings.argument_words(values);
        let fixed = 4 + strings.inline_words + arguments + writer.thread_words();
        put_large(writer, now, FORMAT_EVENT, fixed, payload, |record| {
            let (category, name) = (strings.category.reference(), strings.name.reference());
            record.word(large::references(category, name, values.count() as u64, writer.thread_ref()));
            strings.write(record);
            record.word(now);
            writer.write_thread(record);
            strings.write_arguments(values, record);
        })
    });
}

/// A large blob without these.
#[doc(hidden)]
pub fn write_attachment(site: &Site, payload: &[u8]) {
    with_writer(site, None, |writer, now| {
        let strings = writer.strings(site);
        put_large(writer, now, FORMAT_ATTACHMENT, 3 + strings.inline_words, payload, |record| {
            let (category, name) = (strings.category.reference(), strings.name.reference());
            record.word(large::references(category, name, 0, 0));
            strings.write(record);
        })
    });
}

/// Writes a large blob: `fixed` words with header and length, then the payload.
fn put_large(
    writer: &EventWriter<'_>,
    now: u64,
    format: u64,
    fixed: usize,
    payload: &[u8],
    write: impl FnOnce(&mut RecordWriter),
) -> Result<(), WriteError> {
    let payload = if writer.is_private() { &[] } else { payload };
    let words = fixed + payload.len().div_ceil(8);
    writer.put(words, usize::MAX, now, large::header(words as u64, format), |record| {
        write(record);
        record.word(payload.len() as u64);
        record.bytes(payload);
    })
}

/// Says what a koid stands for.
#[doc(hidden)]
pub fn write_kernel_object<V: Values>(site: &Site, object_type: u8, koid: Koid, name: &str, values: &V) {
    let name = truncate(name, MAX_STRING_BYTES);
    with_writer(site, None, |writer, now| {
        let strings = writer.strings(site);
        let name = if is_of_system(object_type, koid.0) { name } else { writer.text_of_run(name) };
        let name = name.as_bytes();
        let words = 2 + name.len().div_ceil(8) + strings.argument_words(values);
        let reference = inline_string_ref(name.len());
        let header = kernel_object::header(words as u64, object_type, reference, values.count() as u64);
        writer.put(words, MAX_RECORD_WORDS, now, header, |record| {
            record.word(koid.0);
            record.bytes(name);
            strings.write_arguments(values, record);
        })
    });
}

/// A CPU, real or of a runtime that schedules by itself, goes over from one thread to another.
#[doc(hidden)]
pub fn write_context_switch<V: Values>(
    site: &Site,
    cpu: u16,
    outgoing_state: ThreadState,
    outgoing: Koid,
    incoming: Koid,
    values: &V,
) {
    with_writer(site, None, |writer, now| {
        let strings = writer.strings(site);
        let words = 4 + strings.argument_words(values);
        // The field has four bits.
        let state = ThreadState(outgoing_state.0 & 15);
        let header = context_switch_header(words as u64, cpu, state, values.count() as u64);
        writer.put(words, MAX_RECORD_WORDS, now, header, |record| {
            record.word(now);
            record.word(outgoing.0);
            record.word(incoming.0);
            strings.write_arguments(values, record);
        })
    });
}

/// A thread becomes ready to run.
#[doc(hidden)]
pub fn write_thread_wakeup<V: Values>(site: &Site, cpu: u16, thread: Koid, values: &V) {
    with_writer(site, None, |writer, now| {
        let strings = writer.strings(site);
        let words = 3 + strings.argument_words(values);
        let header = thread_wakeup_header(words as u64, cpu, values.count() as u64);
        writer.put(words, MAX_RECORD_WORDS, now, header, |record| {
            record.word(now);
            record.word(thread.0);
            strings.write_arguments(values, record);
        })
    });
}

/// An event of a virtual thread: its koid is `2^63 | id`.
#[doc(hidden)]
pub fn write_virtual<V: Values>(site: &Site, thread: (VirtualName<'_>, u64), event: Event, values: &V) {
    write_virtual_at(site, thread, event, values, None);
}

/// As [`write_virtual`], at a moment that the caller chooses.
#[doc(hidden)]
pub fn write_virtual_at<V: Values>(
    site: &Site,
    thread: (VirtualName<'_>, u64),
    event: Event,
    values: &V,
    mut at: Option<u64>,
) {
    let (name, id) = thread;
    if hook::is_wanted() && !passes(site, &event, values, Whose::Virtual(id | VIRTUAL), &mut at) {
        return;
    }
    with_writer(site, at, |writer, now| {
        put_for(writer, writer.virtual_thread(id, name), site, event, values, now)
    });
}

/// An event of another thread of this process, by its id, at a moment of that thread.
#[doc(hidden)]
pub fn write_event_of<V: Values>(site: &Site, moment: ThreadMoment, event: Event, values: &V) {
    let mut at = Some(moment.at);
    if hook::is_wanted() && !passes(site, &event, values, Whose::Other(moment.thread), &mut at) {
        return;
    }
    with_writer(site, at, |writer, now| {
        put_for(writer, writer.koids_of(moment.thread), site, event, values, now)
    });
}

/// Writes an event of the thread with this process and koid.
fn put_for<V: Values>(
    writer: &EventWriter<'_>,
    koids: [u64; 2],
    site: &Site,
    event: Event,
    values: &V,
    now: u64,
) -> Result<(), WriteError> {
    let strings = writer.strings(site);
    let arguments = strings.argument_words(values);
    let words = event.fixed_words() + strings.inline_words + arguments + koids.len();
    let header = strings.event_header(&event, words, values.count(), 0);
    writer.put(words, MAX_RECORD_WORDS, now, header, |record| {
        event.write_timestamp(now, record);
        koids.into_iter().for_each(|koid| record.word(koid));
        strings.write(record);
        event.write_tail_of(&strings, now, values, record);
    })
}

/// A step of a flow in a duration of its own, all at one moment.
#[doc(hidden)]
#[inline(always)]
pub fn write_instaflow<V: Values>(step: &Site, flow: &Site, flow_type: EventType, id: u64, values: &V) {
    let at = Some(stamp());
    let event = |event_type, extra| Event { event_type, start: None, extra };
    write_event_at(step, event(EventType::DurationBegin, None), values, at);
    write_event_at(flow, event(flow_type, Some(id)), values, at);
    write_event_at(step, event(EventType::DurationEnd, None), values, at);
}
