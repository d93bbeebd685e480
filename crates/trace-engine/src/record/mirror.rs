//! Marks of events for another trace of the machine, such as the kernel's, for recordings that ask for them.
//!
//! Such a recording publishes no site, so that every event takes the slow path. A mark is written outside of
//! the event: it is a system call.

use crate::buffer::record_writer::with_payload;
use crate::record::arguments::{Inline, Values};
use crate::record::event::Event;
use crate::record::privacy::REDACTED;
use crate::session::config::{Mark, Mirror};
use crate::session::lease::Lease;
use crate::site::{ON, OfRun, Site};
use crate::sys;
use crate::thread::{begins, registry};
use trace_format::argument::{ArgumentValue, Arguments};
use trace_format::event::EventType;
use trace_format::refs::StringRef;

/// What the running trace has called with marks, and whether it is private.
fn mirror() -> Option<(Mirror, bool)> {
    let lease = Lease::of_thread();
    let config = lease.context()?.config();
    Some((config.mirror?, config.privacy))
}

/// The name of a site's events for others.
fn public_name(site: &Site, is_private: bool) -> &[u8] {
    if is_private && site.of_run().name { REDACTED.as_bytes() } else { site.name() }
}

fn send(mirror: Mirror, mark: &Mark<'_>) {
    sys::keeping_errno(|| mirror(mark));
}

/// A duration begins at a site, or under a name of another language. Whether that was marked.
pub(super) fn begin(place: &Place<'_>) -> bool {
    let Some((mirror, is_private)) = mirror() else {
        return false;
    };
    let name = match place {
        Place::Site(site) => public_name(site, is_private),
        // Whether it is a constant is not known.
        Place::Name(_) if is_private => REDACTED.as_bytes(),
        Place::Name(name) => name,
    };
    send(mirror, &Mark::Begin(name));
    true
}

/// Where a duration begins.
pub(super) enum Place<'a> {
    /// At a site.
    Site(&'a Site),
    /// In another language, under this name.
    Name(&'a [u8]),
}

/// An event that may be the end of a duration whose beginning was marked: then so is the end, whatever
/// becomes of the event. Whether it was.
#[cold]
#[inline(never)]
pub(super) fn end_scope(event: &Event) -> bool {
    let Some(start) = event.start else {
        return false;
    };
    let begins = registry::current().begins();
    let is_marked = begins.is_marked(start);
    if !begins::wants_times() {
        // Otherwise the time is still to be taken.
        begins.take(start);
    }
    if is_marked {
        mirror().into_iter().for_each(|(mirror, _)| send(mirror, &Mark::End));
    }
    is_marked
}

/// Marks an event that is to be recorded.
#[cold]
#[inline(never)]
pub(super) fn mark<V: Values>(site: &Site, event: &Event, values: &V, is_marked: bool) {
    let is_on = site.load() & ON != 0;
    let Some((mirror, is_private)) = mirror().filter(|_| is_on) else {
        return;
    };
    let (name, id) = (public_name(site, is_private), event.extra.unwrap_or(0));
    let mark = match event.event_type {
        EventType::DurationBegin => Mark::Begin(name),
        EventType::DurationEnd => Mark::End,
        EventType::DurationComplete if is_marked => return,
        EventType::DurationComplete | EventType::Instant | EventType::AsyncInstant => Mark::Instant(name),
        EventType::AsyncBegin => Mark::AsyncBegin(name, id),
        EventType::AsyncEnd => Mark::AsyncEnd(name, id),
        EventType::Counter => {
            let has_series = !is_private || site.of_run() == OfRun::NONE;
            return mark_counter(mirror, site, (name, has_series), values);
        }
        // There is nothing like it there.
        EventType::FlowBegin | EventType::FlowStep | EventType::FlowEnd => return,
    };
    send(mirror, &mark);
}

/// Marks each number of a counter: under its name if it is the only one, and otherwise with the argument's if
/// those may be seen.
fn mark_counter<V: Values>(mirror: Mirror, site: &Site, (name, has_series): (&[u8], bool), values: &V) {
    let names = site.arguments();
    let words = values.words() + values.name_words(names);
    let count = values.count();
    with_payload(
        words,
        |record| values.write(0, &Inline(names), record),
        |bytes| {
            for argument in Arguments::of_bytes(bytes, count).unwrap_or_default().iter().map_while(Result::ok)
            {
                let number = match argument.value {
                    ArgumentValue::Int32(value) => value.into(),
                    ArgumentValue::Uint32(value) => value.into(),
                    ArgumentValue::Int64(value) => value,
                    ArgumentValue::Uint64(value) => i64::try_from(value).unwrap_or(i64::MAX),
                    ArgumentValue::Double(value) => value.round() as i64,
                    _ => continue,
                };
                let series = match argument.name {
                    StringRef::Inline(series) if count > 1 && has_series => Some(series),
                    _ => None,
                };
                send(mirror, &Mark::Counter(name, series, number));
            }
        },
    );
}
