//! What tasks and blocking closures have in common: a site, a number, and a bar.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use trace_engine::args::{IntoValue, Values};
use trace_engine::trace_format::operation::{PARENT_OPERATION, POLL_OF};
use trace_engine::{
    ArgumentBuffer, Event, EventType, Number, Site, Within, current_operation, engine, now, stamp,
    write_event, write_event_at,
};

const CATEGORY: &str = "tokio";
/// The name of tasks whose own names find no room.
const OTHERS: &str = "task";
/// The first one makes a duration a poll of the bar with that id.
const ARGUMENTS: [&str; 5] = [POLL_OF, "delay-ns", "polls", "end", PARENT_OPERATION];
/// Places in [`ARGUMENTS`].
const POLLS: u8 = 2;
const END: u8 = 3;
const PARENT: u8 = 4;

/// A task or a blocking closure.
#[derive(Debug)]
pub struct Operation {
    pub site: &'static Site,
    /// Unique in the process.
    number: u32,
    /// The epoch in which the bar was begun; 0 without a bar.
    bar: u32,
    /// The epoch of the last recorded moment; 0 before there is one.
    epoch: u32,
    /// When it could begin, or its last poll ended, in ticks; valid in `epoch` alone.
    since: u64,
}

impl Operation {
    /// One that is spawned now.
    pub fn begin(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut begun = Self { site: site(name), number, bar: 0, epoch: 0, since: 0 };
        if begun.site.is_on() {
            // Read before the event: a recording that ends meanwhile makes it older, and the bar stays open.
            begun.bar = engine::epoch();
            begun.epoch = begun.bar;
            begun.since = stamp();
            let event = begun.bar_event(EventType::AsyncBegin);
            let mut values = ArgumentBuffer::new();
            if let Some(parent) = current_operation() {
                values.push(PARENT, Number::Uint64(parent));
            }
            write_event_at(begun.site, event, &values, Some(begun.since));
        }
        begun
    }

    /// The calling thread works on it until what is returned is dropped.
    #[inline]
    pub fn within(&self) -> Within {
        Within::new(self.number.into())
    }

    /// Since when it has waited, if that was recorded: the spawn, or the end of the last poll.
    pub fn since(&self, epoch: u32) -> Option<u64> {
        (self.epoch == epoch).then_some(self.since)
    }

    /// Records a run that began at `start`, behind a wait since `since`, and ends now: when that is, in
    /// ticks.
    #[inline]
    pub fn record_run(&mut self, epoch: u32, start: u64, since: Option<u64>) -> u64 {
        let end = stamp();
        (self.epoch, self.since) = (epoch, end);
        let number = u64::from(self.number).into_value();
        match since {
            Some(since) => {
                let delay = nanos(start.saturating_sub(since));
                self.write_run(start, end, &(number, (delay.into_value(), ())));
            }
            None => self.write_run(start, end, &(number, ())),
        }
        end
    }

    #[inline]
    fn write_run(&self, start: u64, end: u64, values: &impl Values) {
        let event = Event { event_type: EventType::DurationComplete, start: Some(start), extra: None };
        if self.site.is_on() {
            write_event_at(self.site, event, values, Some(end));
        }
    }

    /// Ends the bar, once, if it was begun in the recording that runs.
    #[inline]
    pub fn end(&mut self, end: End, polls: Option<u64>) {
        if self.bar != 0 {
            self.end_bar(end, polls);
        }
    }

    #[cold]
    fn end_bar(&mut self, end: End, polls: Option<u64>) {
        if core::mem::take(&mut self.bar) == engine::epoch() && self.site.is_on() {
            let mut values = ArgumentBuffer::new();
            if let Some(polls) = polls {
                values.push(POLLS, Number::Uint64(polls));
            }
            values.push_text(END, end.text());
            write_event(self.site, self.bar_event(EventType::AsyncEnd), &values);
        }
    }

    const fn bar_event(&self, event_type: EventType) -> Event {
        Event { event_type, start: None, extra: Some(self.number as u64) }
    }
}

/// How an operation ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Ready,
    Dropped,
    Panicked,
}

impl End {
    const fn text(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Dropped => "dropped",
            Self::Panicked => "panicked",
        }
    }
}

/// A moment at which a run may begin, in ticks.
#[inline]
pub fn start() -> u64 {
    now().0
}

pub fn site(name: &str) -> &'static Site {
    let site = Site::of_texts(CATEGORY, name, &ARGUMENTS);
    let site = site.or_else(|| Site::of_others(CATEGORY, OTHERS, &ARGUMENTS));
    site.unwrap_or_else(|| Site::leaked_constants(CATEGORY, OTHERS, &ARGUMENTS))
}

/// Nanoseconds of a tick, times 2^32; 0 before it is known.
static RATE: AtomicU64 = AtomicU64::new(0);

/// Finds the rate of the clock, which can allocate, before it is needed.
#[cold]
pub fn find_rate() -> u64 {
    let ticks_per_second = trace_provider::ticks_per_second().max(1);
    let rate = (1_000_000_000_u128 << 32) / u128::from(ticks_per_second);
    let rate = rate.clamp(1, u128::from(u64::MAX)) as u64;
    RATE.store(rate, Ordering::Relaxed);
    rate
}

/// Ticks as nanoseconds.
#[inline]
fn nanos(ticks: u64) -> u64 {
    let known = RATE.load(Ordering::Relaxed);
    let rate = if known == 0 { find_rate() } else { known };
    ((u128::from(ticks) * u128::from(rate)) >> 32) as u64
}
