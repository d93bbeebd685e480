//! The processor time of a thread, as arguments of its events, for recordings that ask for it.
//!
//! Such a recording publishes no site, so that every event takes the slow path. The slow path also begins the
//! durations of such sites: it remembers the thread's time then under the timestamp of the begin, which no
//! other moment of the thread has.

use crate::buffer::definitions::Text;
use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::{Names, Values};
#[cfg(not(modelled))]
use crate::record::mirror::{self, Place};
use crate::site::MAX_ARGUMENTS;
#[cfg(not(modelled))]
use crate::site::Site;
use crate::sys;
use crate::thread::begins::{self, Begins};
#[cfg(not(modelled))]
use crate::thread::registry::{self, Acquired};
use trace_format::argument::ArgumentValue;
use trace_format::event::EventType;

/// The argument with the thread's processor time at the event, in nanoseconds.
const THREAD_TS: &[u8] = b"thread_ts";
/// The argument with the processor time that passed during a complete duration, in nanoseconds.
const THREAD_DUR: &[u8] = b"thread_dur";

/// A moment of this thread, later than all it has taken before, at which a duration may begin.
#[cfg(not(modelled))]
#[inline]
pub(crate) fn now() -> u64 {
    if begins::is_wanted() { begin(None) } else { registry::current().stamp() }
}

/// A moment of this thread at which a duration begins at a site that was found on and not fast.
#[cfg(not(modelled))]
#[cold]
#[inline(never)]
pub(crate) fn begin_scope(site: &Site) -> u64 {
    begin(Some(&Place::Site(site)))
}

/// The same, of another language.
#[cfg(not(modelled))]
pub(crate) fn begin_named_scope(name: &[u8]) -> u64 {
    begin(Some(&Place::Name(name)))
}

/// None for a duration that is only known when it has ended: it has no mark.
#[cfg(not(modelled))]
fn begin(place: Option<&Place<'_>>) -> u64 {
    let is_wanted = begins::wants_times() || begins::wants_marks() && place.is_some();
    match is_wanted.then(registry::acquire).flatten() {
        Some(Acquired::Own(block)) => {
            let begins = block.begins();
            begins.begin_run(begins::run());
            let has_mark = begins::wants_marks() && begins.has_room();
            let is_marked = has_mark && place.is_some_and(mirror::begin);
            let start = block.stamp();
            let time = if begins::wants_times() { sys::thread_time() } else { 0 };
            begins.push(start, time, is_marked);
            return start;
        }
        Some(Acquired::Borrowed(block)) => block.free(),
        None => {}
    }
    registry::current().stamp()
}

/// The thread's time at an event that ends a duration; none for other events and in recordings without times.
///
/// It is read before the timestamp of the end, and that of a begin behind its timestamp: a handler between
/// the two then makes the duration longer, and never its processor time longer than the duration.
#[inline]
pub(crate) fn end(event_type: EventType) -> Option<u64> {
    let is_end = matches!(event_type, EventType::DurationComplete | EventType::DurationEnd);
    (begins::wants_times() && is_end).then(sys::thread_time)
}

/// The times of one event.
pub(crate) struct ThreadTimes {
    values: [u64; 2],
    count: usize,
}

impl ThreadTimes {
    /// Of an event of the calling thread with so many arguments of its own. None where the event is of a kind
    /// that has none, or has no room for them.
    pub fn of(
        begins: &Begins,
        event_type: EventType,
        start: Option<u64>,
        now: u64,
        arguments: usize,
    ) -> Option<Self> {
        let (values, count) = match (event_type, start) {
            (EventType::DurationComplete, Some(start)) => {
                let then = begins.take(start)?;
                ([then, now.saturating_sub(then)], 2)
            }
            (EventType::DurationBegin | EventType::DurationEnd | EventType::Instant, _) => ([now, 0], 1),
            _ => return None,
        };
        (arguments + count <= MAX_ARGUMENTS).then_some(Self { values, count })
    }

    /// Gives the names their references.
    pub fn named<'t>(&self, intern: impl Fn(&'static [u8]) -> Text<'t>) -> NamedTimes<'t> {
        let mut names = [Text::Index(0); 2];
        for (name, text) in names.iter_mut().zip([THREAD_TS, THREAD_DUR]).take(self.count) {
            *name = intern(text);
        }
        NamedTimes { names, values: self.values.map(ArgumentValue::Uint64), count: self.count }
    }
}

/// Times with their names, as they stand in a record.
pub(crate) struct NamedTimes<'t> {
    names: [Text<'t>; 2],
    values: [ArgumentValue<'static>; 2],
    count: usize,
}

impl NamedTimes<'_> {
    fn values(&self) -> &[ArgumentValue<'static>] {
        &self.values[..self.count]
    }

    /// How many arguments they are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Words of the arguments.
    pub fn words(&self) -> usize {
        let names: usize = self.names[..self.count].iter().map(|name| name.words()).sum();
        names + self.values().words()
    }

    /// Stores the arguments.
    pub fn write(&self, record: &mut RecordWriter) {
        self.values().write(0, self, record);
    }
}

impl Names for NamedTimes<'_> {
    fn count(&self) -> usize {
        self.count
    }

    fn name(&self, index: usize) -> (u16, &[u8]) {
        let name = self.names[index];
        match name {
            Text::Index(_) => (name.reference(), &[]),
            Text::Inline(text) => (name.reference(), text),
        }
    }
}

#[cfg(all(test, not(modelled)))]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_full_has_no_times() {
        let begins = Begins::new();
        let count = |event_type, start, arguments| {
            ThreadTimes::of(&begins, event_type, start, 7, arguments).map_or(0, |times| times.count)
        };
        assert_eq!(count(EventType::Instant, None, 14), 1);
        assert_eq!(count(EventType::Instant, None, 15), 0);
        assert_eq!(count(EventType::Counter, None, 0), 0);
        assert_eq!(count(EventType::DurationComplete, Some(7), 0), 0, "it did not begin here");
        begins.push(7, 0, false);
        assert_eq!(count(EventType::DurationComplete, Some(7), 13), 2);
        begins.push(8, 0, false);
        assert_eq!(count(EventType::DurationComplete, Some(8), 14), 0);
    }
}
