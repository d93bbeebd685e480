//! The processor time of a thread, as arguments of its events, for recordings that ask for it.
//!
//! Such a recording publishes no site, so that every event takes the slow path. The slow path also begins the
//! durations of such sites: it remembers the thread's time then under the timestamp of the begin, which no
//! other moment of the thread has.
//!
//! A thread's own events use [`Begins`] one after the other. A handler that interrupts one of these uses
//! further entries and leaves them again; if it jumps away, times are missing, and never wrong, because
//! entries are found by their timestamps.

use crate::buffer::durable::Text;
use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::{Names, Values};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys;
use crate::thread::block::{self, Acquired};
use trace_format::argument::ArgumentValue;
use trace_format::event::EventType;

/// How deep durations of a thread may be nested to have times. Of deeper ones the innermost have them.
const MAX_DEPTH: usize = 32;
/// Most arguments of an event, by the format.
const MAX_ARGUMENTS: usize = 15;

/// The argument with the thread's processor time at the event, in nanoseconds.
const THREAD_TS: &[u8] = b"thread_ts";
/// The argument with the processor time that passed during a complete duration, in nanoseconds.
const THREAD_DUR: &[u8] = b"thread_dur";

/// Whether the present trace asks for times.
static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// Sets whether the trace that begins asks for times. Durations that are open may have none.
pub(crate) fn set_wanted(is_wanted: bool) {
    IS_WANTED.store(is_wanted, Ordering::Relaxed);
}

/// Whether begins of durations are to be remembered.
#[inline]
pub(crate) fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Relaxed)
}

/// The durations of a thread that have begun on the slow path: their timestamps, and the thread's time then.
/// All zero is a valid beginning.
pub(crate) struct Begins {
    /// How many there are; the last of them are kept.
    depth: AtomicU64,
    entries: [[AtomicU64; 2]; MAX_DEPTH],
}

impl Begins {
    pub const fn new() -> Self {
        Self {
            depth: AtomicU64::new(0),
            entries: [const { [AtomicU64::new(0), AtomicU64::new(0)] }; MAX_DEPTH],
        }
    }

    fn entry(&self, number: u64) -> &[AtomicU64; 2] {
        &self.entries[number as usize % MAX_DEPTH]
    }

    fn push(&self, start: u64, time: u64) {
        let depth = self.depth.load(Ordering::Relaxed);
        let [entry_start, entry_time] = self.entry(depth);
        entry_time.store(time, Ordering::Relaxed);
        entry_start.store(start, Ordering::Relaxed);
        self.depth.store(depth.wrapping_add(1), Ordering::Relaxed);
    }

    /// The thread's time at a begin. It and what began after it are forgotten.
    fn take(&self, start: u64) -> Option<u64> {
        let depth = self.depth.load(Ordering::Relaxed);
        let latest = || (1..=MAX_DEPTH as u64).map(|back| depth.wrapping_sub(back));
        let is_it = |number: &u64| self.entry(*number)[0].load(Ordering::Relaxed) == start;
        let found = latest().find(is_it)?;
        let time = self.entry(found)[1].load(Ordering::Relaxed);
        latest().take_while(|number| *number != found).chain([found]).for_each(|number| {
            self.entry(number)[0].store(0, Ordering::Relaxed);
        });
        self.depth.store(found, Ordering::Relaxed);
        Some(time)
    }
}

/// A moment of this thread at which a duration begins, where its site was not found fast.
#[cold]
#[inline(never)]
pub(crate) fn begin() -> u64 {
    if is_wanted()
        && let Some(Acquired::Own(block)) = block::acquire()
    {
        let start = block.stamp();
        block.begins.push(start, sys::thread_time());
        return start;
    }
    block::current().stamp()
}

/// The thread's time at an event that ends a duration; none for other events and in recordings without times.
///
/// It is read before the timestamp of the end, and that of a begin behind its timestamp: a handler between
/// the two then makes the duration longer, and never its processor time longer than the duration.
#[inline]
pub(crate) fn end(event_type: EventType) -> Option<u64> {
    let is_end = matches!(event_type, EventType::DurationComplete | EventType::DurationEnd);
    (is_wanted() && is_end).then(sys::thread_time)
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
    fn name(&self, index: usize) -> (u16, &[u8]) {
        let name = self.names[index];
        match name {
            Text::Index(_) => (name.reference(), &[]),
            Text::Inline(text) => (name.reference(), text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begin_is_found_by_its_moment_and_forgotten_with_what_began_later() {
        let begins = Begins::new();
        for number in 1..=40 {
            begins.push(number * 10, number);
        }
        assert_eq!(begins.take(390), Some(39), "400 was left by a jump");
        assert_eq!(begins.take(400), None);
        assert_eq!(begins.take(390), None);
        begins.push(500, 50);
        assert_eq!(begins.take(500), Some(50));
        // The deepest 32 of 40 were kept.
        assert_eq!(begins.take(80), None);
        assert_eq!(begins.take(90), Some(9));
        assert_eq!(begins.take(100), None);
    }

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
        begins.push(7, 0);
        assert_eq!(count(EventType::DurationComplete, Some(7), 13), 2);
        begins.push(8, 0);
        assert_eq!(count(EventType::DurationComplete, Some(8), 14), 0);
    }
}
