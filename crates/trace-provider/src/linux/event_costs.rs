//! What events cost in this process: a loop of each kind, into memory of its own.

use std::time::{Duration, Instant};
use trace_engine::engine;
use trace_engine::{BufferMode, Categories, Config, Disposition, DynamicSite, Region, Scope};

/// The category of the measured events.
const CATEGORY: &str = "trace_event_costs";
/// Memory that the events are written into, over and over.
const BUFFER_BYTES: usize = 128 << 10;
/// Events of a measurement.
const EVENTS: u32 = 100;
/// Measurements of each kind; the fastest counts.
const ROUNDS: u32 = 15;
/// So many of them are made even if they take long.
const ROUNDS_BEFORE_LIMIT: u32 = 5;
/// How long one kind may take: a clock that needs a system call makes events slow.
const LIMIT: Duration = Duration::from_millis(1);

/// What an event takes of its thread's time, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCosts {
    /// An instant without arguments.
    pub instant_picoseconds: u64,
    /// A complete duration without arguments, with both readings of the clock.
    pub duration_picoseconds: u64,
    /// A counter of one value.
    pub counter_picoseconds: u64,
}

/// Measures what events cost in this process: in a loop, with everything in the processor's caches, so an
/// event of an application costs this or more. It takes a millisecond or two in a process of one thread.
///
/// None if this process is being recorded, or its engine cannot be started.
#[must_use]
pub fn event_costs() -> Option<EventCosts> {
    let (region, _words) = Region::on_heap(BUFFER_BYTES);
    let mut config = Config::new(zx_sim::process_koid(), "trace", 1_000_000_000);
    config.categories = Categories::Listed(vec![CATEGORY.to_owned()]);
    let engine = engine::initialize(region, BufferMode::Circular, config).ok()?;
    let costs = engine.start(Disposition::Retain, &[]).ok().map(|()| measure());
    engine.terminate(Instant::now() + Duration::from_secs(1)).ok()?;
    costs
}

/// The sites are made here: those of macros would be in every program, and in lists of its categories.
fn measure() -> EventCosts {
    let instant = DynamicSite::new(CATEGORY, "instant", []);
    let duration = DynamicSite::new(CATEGORY, "duration", []);
    let counter = DynamicSite::new(CATEGORY, "counter", ["value"]);
    EventCosts {
        instant_picoseconds: cost(|_| instant.instant(Scope::Thread, ())),
        duration_picoseconds: cost(|_| drop(duration.duration(()))),
        counter_picoseconds: cost(|number| counter.counter(1, (number,))),
    }
}

/// The fastest of some measurements, after one that does not count: on a busy machine another process runs
/// during some of them.
fn cost(record: impl Fn(u32)) -> u64 {
    (0..EVENTS).for_each(&record);
    let begin = Instant::now();
    let (mut fastest, mut rounds) = (Duration::MAX, 0);
    while rounds < ROUNDS && (rounds < ROUNDS_BEFORE_LIMIT || begin.elapsed() < LIMIT) {
        let begin = Instant::now();
        (0..EVENTS).for_each(&record);
        fastest = fastest.min(begin.elapsed());
        rounds += 1;
    }
    u64::try_from(fastest.as_nanos() * 1000 / u128::from(EVENTS)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/protocol.md#the-managers-own-provider
    #[test]
    fn events_cost_something_and_the_engine_is_idle_afterwards() {
        for _ in 0..2 {
            let costs = event_costs().expect("the engine is idle");
            let all = [costs.instant_picoseconds, costs.duration_picoseconds, costs.counter_picoseconds];
            assert!(all.iter().all(|cost| (100..1_000_000_000).contains(cost)), "{costs:?}");
            assert_eq!(engine::state(), engine::State::Idle);
        }
    }
}
