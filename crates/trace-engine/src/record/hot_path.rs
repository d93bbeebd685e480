//! The hot path of an event.
//!
//! Invariant **H1**: between making its counter odd and making it even again, a thread that found its site on
//! writes only below `end` of its own slab. The dispatcher clears `end`, fences all threads and then waits
//! for even counters before it takes memory away, so an address below `end` is mapped and reserved. A thread
//! that finds no room of its own clears `end` and fences alike, and takes only from threads whose counters
//! are even.
#![allow(unsafe_code)]

use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::{Interned, Values};
use crate::record::event::Event;
use crate::record::open_scope::ScopeBegun;
use crate::record::slow_path::write_slowly;
use crate::site::{FAST, Site};
use crate::thread::registry;
use trace_format::event::{self, EventType};

/// The reference bits of category and name in an event's header, and in a site's word.
const REFERENCES: u64 = 0xffff_ffff_0000_0000;

/// Records an event of a site that was found on. The values are evaluated already: nothing that the
/// application wrote runs in here.
//= docs/buffer.md#writing-an-event
#[inline(always)]
pub fn write_event<V: Values>(site: &Site, event: Event, values: &V) {
    write_event_at(site, event, values, None);
}

/// As [`write_event`], at a moment that the thread has taken with [`stamp`].
#[inline(always)]
pub fn write_event_at<V: Values>(site: &Site, event: Event, values: &V, at: Option<u64>) {
    write(site, event, values, at, None);
}

/// Writes an event. If it is the end of a scope, `scope` is what the begin has passed on.
///
/// The record comes first: what ends the process between the two leaves both, and readers know the record. A
/// scope whose record came too late stays open: it was so when the recording ended.
#[inline(always)]
fn write<V: Values>(site: &Site, event: Event, values: &V, at: Option<u64>, scope: Option<u64>) {
    let block = registry::current();
    if let Some(counter) = block.enter_outermost() {
        let word = site.load();
        if word & FAST != 0 {
            let now = at.unwrap_or_else(|| block.stamp());
            let own = block.first_slab();
            let words = event.words(values);
            let cursor = own.cursor();
            let next = cursor + words * 8;
            if next <= own.end() {
                // SAFETY: the words up to `next` lie below `end` of this thread's slab (H1), and
                // `event.words` counts what is written below.
                let mut record = unsafe { RecordWriter::new(cursor, words) };
                event.write_timestamp(now, &mut record);
                event.write_tail(now, values, &Interned(site.arguments()), &mut record);
                own.count_event();
                record.commit(
                    event::header(event.event_type, words as u64, values.count() as u64, 0, 0, 0)
                        | block.thread_bits()
                        | word & REFERENCES,
                );
                own.advance(next);
                block.leave_outermost(counter);
                if let Some(scope) = scope {
                    block.scopes().end(scope);
                }
                return;
            }
        }
        block.leave_outermost(counter);
    }
    write_slowly(site, event, values, at);
    if let Some(scope) = scope.filter(|_| site.is_on()) {
        registry::current().scopes().end(scope);
    }
}

/// Records the end of a scope, at a site that was found on.
#[inline(always)]
pub(crate) fn end_scope<V: Values>(site: &Site, begun: ScopeBegun, values: &V) {
    let event = Event { event_type: EventType::DurationComplete, start: Some(begun.start), extra: None };
    write(site, event, values, None, Some(begun.scope));
}

/// A thread, and a moment of it in ticks.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadMoment {
    /// The thread's id in this process; 0 before its first event.
    pub thread: u32,
    /// The last moment that the thread has taken.
    pub at: u64,
}

impl ThreadMoment {
    /// The calling thread at its last event. Does not read the clock.
    #[inline]
    #[must_use]
    pub fn last() -> Self {
        let block = registry::current();
        Self { thread: block.owner(), at: block.latest() }
    }
}

/// A moment of this thread, later than all it has taken before.
#[doc(hidden)]
#[must_use]
pub fn stamp() -> u64 {
    registry::current().stamp()
}
