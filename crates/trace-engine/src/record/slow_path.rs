//! The slow path of an event.

use crate::record::arguments::Values;
use crate::record::event::Event;
use crate::record::event_writer::with_writer;
use crate::record::processor_time;
use crate::site::Site;
use trace_format::record::MAX_RECORD_WORDS;

/// Everything that is not the common case: the first event of a site or a thread, the end of a slab, nested
/// events, inline strings and threads.
#[cold]
#[inline(never)]
pub(super) fn write_slowly<V: Values>(site: &Site, event: Event, values: &V, at: Option<u64>) {
    let ended = processor_time::end(event.event_type);
    with_writer(site, at, |writer, now| {
        let strings = writer.strings(site);
        let times = writer.thread_times(&event, ended, values.count());
        let mut words = event.words(values) + strings.inline_words + writer.thread_words();
        let mut arguments = values.count();
        if let Some(times) = &times {
            words += times.words();
            arguments += times.count();
        }
        let header = strings.event_header(&event, words, arguments, writer.thread_ref());
        writer.put(words, MAX_RECORD_WORDS, now, header, |record| {
            event.write_timestamp(now, record);
            writer.write_thread(record);
            strings.write(record);
            strings.write_arguments(site, values, record);
            if let Some(times) = &times {
                times.write(record);
            }
            event.write_end(now, record);
        })
    });
}
