//! Checks that the programs' clock is the kernel's: an event of a thread happened while the thread ran.
//= docs/check.md#clocks

use std::collections::{BTreeMap, BTreeSet, HashMap};
use trace_format::event::{EventKind, Scope};
use trace_format::units::ProviderId;
use trace_reader::item::{Event, Item, Resolved, Scheduling};

/// One in this many events may lie outside: the kernel does not report everything.
const ONE_OF: u64 = 1000;
/// How many events are tried to find out how far a clock is off.
const TRIED: usize = 4096;
/// Distances to the nearest time in which a thread ran that are tried.
const SHIFTS: usize = 256;
/// Shifts up to a millisecond are tried in steps of a microsecond.
const LIKELY: i64 = 1_000_000;
const LIKELY_STEP: usize = 1000;

/// A CPU switches from one thread to another.
#[derive(Clone, Copy, Debug)]
struct Switch {
    at: u64,
    cpu: u16,
    outgoing: u64,
    incoming: u64,
}

/// The result for one provider's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Times of events that could be judged.
    pub judged: u64,
    /// Those at times when their thread did not run.
    pub outside: u64,
    /// By how many nanoseconds the events would have to be later for most of them to be inside.
    pub shift: i64,
}

impl Clock {
    /// More of them are outside than can be explained.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.outside * ONE_OF > self.judged
    }
}

#[derive(Debug, Default)]
pub(super) struct Clocks {
    room: usize,
    switches: Vec<Switch>,
    /// Times of events, by provider and thread.
    events: BTreeMap<(ProviderId, u64), Vec<u64>>,
    /// The same for parts of operations, which belong to a process.
    operations: BTreeMap<(ProviderId, u64), Vec<u64>>,
    /// Providers of context switches: they record actions of other processes.
    observers: BTreeSet<ProviderId>,
    /// Spans in which the kernel lost events.
    lost: Vec<(u64, u64)>,
}

impl Clocks {
    pub fn new(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    /// Takes a record; of events, those that are chosen are judged.
    pub fn record(&mut self, record: &Resolved<'_>, is_chosen: bool) {
        if self.room == 0 {
            return;
        }
        match &record.item {
            Item::Scheduling {
                time,
                kind: Scheduling::ContextSwitch { cpu, outgoing, incoming, .. },
                ..
            } => {
                self.room -= 1;
                self.observers.insert(record.provider);
                self.switches.push(Switch {
                    at: time.nanos().0,
                    cpu: *cpu,
                    outgoing: outgoing.0,
                    incoming: incoming.0,
                });
            }
            Item::Event(event) => self.event(record.provider, event, is_chosen),
            _ => {}
        }
    }

    fn event(&mut self, provider: ProviderId, event: &Event<'_>, is_chosen: bool) {
        let category = event.category.as_bytes();
        let end = match event.kind {
            EventKind::DurationComplete { end } => Some(end.to_nanos(event.time.rate).0),
            _ => None,
        };
        let at = event.time.nanos().0;
        if category == b"kernel:meta" && event.name.as_bytes() == b"drop_stats" {
            self.lost.push((at, end.unwrap_or(at)));
        }
        // Kernel events are no action of a thread, and neither are events of a process or of the system.
        let of_thread = match event.kind {
            _ if !is_chosen || category.starts_with(b"kernel:") => return,
            EventKind::Counter { .. } | EventKind::Instant { scope: Scope::Process | Scope::Global } => {
                return;
            }
            EventKind::AsyncBegin { .. } | EventKind::AsyncInstant { .. } | EventKind::AsyncEnd { .. } => {
                &mut self.operations
            }
            _ => &mut self.events,
        };
        self.room -= 1;
        let times = of_thread.entry((provider, event.thread.thread.0)).or_default();
        times.push(at);
        times.extend(end);
    }

    /// The result for each provider; nothing for one without a thread that the kernel has reported.
    pub fn finish(mut self) -> BTreeMap<ProviderId, Clock> {
        let intervals = intervals(&mut self.switches);
        // It is unknown what happened before the kernel's first and after its last switch.
        let recorded = self.switches.first().map_or(0, |first| first.at)
            ..=self.switches.last().map_or(0, |last| last.at);
        merge(&mut self.lost);
        let is_lost = |at: u64| !recorded.contains(&at) || is_inside(&self.lost, at);
        let mut clocks: BTreeMap<ProviderId, Clock> = BTreeMap::new();
        let mut samples: BTreeMap<ProviderId, Vec<(u64, u64)>> = BTreeMap::new();
        // A program's thread takes part in the operations that it records; an observer records those of other
        // programs.
        self.operations.retain(|(provider, _), _| !self.observers.contains(provider));
        for ((provider, thread), times) in self.events.iter().chain(&self.operations) {
            let Some(ran) = intervals.get(thread) else {
                continue;
            };
            let clock = clocks.entry(*provider).or_default();
            let samples = samples.entry(*provider).or_default();
            for at in times.iter().copied().filter(|at| !is_lost(*at)) {
                clock.judged += 1;
                clock.outside += u64::from(!is_inside(ran, at));
                samples.push((*thread, at));
            }
        }
        for (provider, clock) in clocks.iter_mut().filter(|(_, clock)| clock.is_off()) {
            clock.shift = best_shift(&samples[provider], &intervals);
        }
        clocks
    }
}

/// When each thread ran: spans that do not touch, in order. Where the kernel contradicts itself, both threads
/// may have run.
fn intervals(switches: &mut [Switch]) -> HashMap<u64, Vec<(u64, u64)>> {
    switches.sort_by_key(|switch| switch.at);
    let mut intervals: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    let mut running: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    for switch in switches.iter() {
        let (since, thread) =
            running.insert(switch.cpu, (switch.at, switch.incoming)).unwrap_or((0, switch.outgoing));
        intervals.entry(switch.outgoing).or_default().push((since, switch.at));
        if thread != switch.outgoing {
            intervals.entry(thread).or_default().push((since, switch.at));
        }
    }
    for (since, thread) in running.into_values() {
        intervals.entry(thread).or_default().push((since, u64::MAX));
    }
    intervals.values_mut().for_each(merge);
    intervals
}

/// Puts spans in order, and makes one of those that touch.
fn merge(spans: &mut Vec<(u64, u64)>) {
    spans.sort_unstable();
    spans.dedup_by(|next, before| {
        let touches = next.0 <= before.1;
        before.1 = if touches { before.1.max(next.1) } else { before.1 };
        touches
    });
}

fn is_inside(ran: &[(u64, u64)], at: u64) -> bool {
    let begun = ran.partition_point(|(since, _)| *since <= at);
    begun.checked_sub(1).is_some_and(|last| at <= ran[last].1)
}

/// The distance to the nearest time in which the thread ran.
fn distance(ran: &[(u64, u64)], at: u64) -> i64 {
    let begun = ran.partition_point(|(since, _)| *since <= at);
    let back = begun.checked_sub(1).map(|last| -(at.saturating_sub(ran[last].1) as i64));
    let forth = ran.get(begun).map(|(since, _)| (since - at) as i64);
    [back, forth].into_iter().flatten().min_by_key(|way| way.unsigned_abs()).unwrap_or(0)
}

/// The shift that leaves the fewest outside; of equal ones, the shortest.
fn best_shift(samples: &[(u64, u64)], intervals: &HashMap<u64, Vec<(u64, u64)>>) -> i64 {
    let outside = samples.iter().filter(|(thread, at)| !is_inside(&intervals[thread], *at));
    let mut shifts: Vec<i64> = outside.map(|(thread, at)| distance(&intervals[thread], *at)).collect();
    shifts.sort_unstable();
    let step = (shifts.len() / SHIFTS).max(1);
    let last = shifts.last().copied();
    let tried = samples.iter().step_by((samples.len() / TRIED).max(1));
    let left = |shift: i64| {
        let is_left =
            |(thread, at): &&(u64, u64)| !is_inside(&intervals[thread], at.saturating_add_signed(shift));
        tried.clone().filter(is_left).count()
    };
    // If threads run in turn, the nearest time may belong to the wrong turn: likely shifts are tried as well.
    let likely = (-LIKELY..=LIKELY).step_by(LIKELY_STEP);
    let candidates = shifts.iter().copied().step_by(step).chain(last).chain(likely);
    candidates.min_by_key(|shift| (left(*shift), shift.unsigned_abs())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(at: u64, cpu: u16, outgoing: u64, incoming: u64) -> Switch {
        Switch { at, cpu, outgoing, incoming }
    }

    fn clocks(switches: &[Switch], events: &[(u64, u64)]) -> Option<Clock> {
        let mut clocks = Clocks { room: 1, switches: switches.to_vec(), ..Clocks::default() };
        for (thread, at) in events {
            clocks.events.entry((ProviderId(1), *thread)).or_default().push(*at);
        }
        clocks.finish().remove(&ProviderId(1))
    }

    /// Threads 1 and 2 take turns on a CPU, each for 100.
    fn turns() -> Vec<Switch> {
        (1..=100).map(|turn| switch(turn * 100, 0, 1 + turn % 2, 2 - turn % 2)).collect()
    }

    //= docs/check.md#clocks
    #[test]
    fn an_event_happens_while_its_thread_runs() {
        let inside: Vec<_> = (1..99).map(|turn| (2 - turn % 2, turn * 100 + 50)).collect();
        let clock = clocks(&turns(), &inside).unwrap();
        assert_eq!((clock.judged, clock.outside, clock.is_off()), (98, 0, false));
        // A thread that the kernel never reported is not judged.
        assert_eq!(clocks(&turns(), &[(7, 50)]), None);
        assert_eq!(clocks(&[], &[(1, 50)]), None);
    }

    //= docs/check.md#clocks
    #[test]
    fn a_clock_that_is_off_shows_and_so_does_how_far() {
        let shifted = |by: u64| -> Vec<(u64, u64)> {
            (1..99)
                .flat_map(|turn| [2, 50, 98].map(|in_turn| (2 - turn % 2, turn * 100 + in_turn + by)))
                .collect()
        };
        assert_eq!(clocks(&turns(), &shifted(0)).unwrap(), Clock { judged: 294, outside: 0, shift: 0 });
        let off = clocks(&turns(), &shifted(30)).unwrap();
        assert!(off.is_off() && off.outside == 98, "{off:?}");
        assert!((-32..=-28).contains(&off.shift), "{off:?}");
    }

    //= docs/check.md#clocks
    #[test]
    fn what_happened_while_the_kernel_lost_events_is_not_judged() {
        let mut clocks = Clocks { room: 1, switches: turns(), ..Clocks::default() };
        clocks.lost = vec![(500, 620), (150, 160), (100, 540)];
        // Outside of its thread's turns; some of them within a stretch of lost events.
        clocks.events.insert((ProviderId(1), 1), vec![250, 450, 610, 621, 650, 850]);
        let clock = clocks.finish()[&ProviderId(1)];
        assert_eq!((clock.judged, clock.outside), (3, 3));
    }

    //= docs/check.md#clocks
    #[test]
    fn where_the_kernel_contradicts_itself_both_may_have_run() {
        // No switch reported that 3 began to run.
        let switches = [switch(100, 0, 1, 0), switch(200, 0, 3, 0)];
        let clock = clocks(&switches, &[(3, 150), (3, 250), (1, 50), (1, 150), (1, 100), (3, 200)]).unwrap();
        assert_eq!((clock.judged, clock.outside), (4, 1));
        // The times before the first switch, and after the last.
        let ran = intervals(&mut switches.to_vec());
        assert_eq!(ran[&1], [(0, 100)]);
        assert_eq!(ran[&3], [(100, 200)]);
        assert_eq!(ran[&0], [(100, u64::MAX)]);
    }
}
