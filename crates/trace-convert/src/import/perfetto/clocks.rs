//! Times of several clocks, and how they relate.
//= docs/import.md#clocks-of-perfetto

use crate::export::perfetto::messages::{CLOCK_BOOTTIME, ClockSnapshot};
use crate::import::room::{ENTRY_BYTES, Room};
use foldhash::HashMap;
use std::mem::size_of;

/// Clocks from this number to the next belong to one sequence.
const FIRST_OF_SEQUENCE: u32 = 64;
const LAST_OF_SEQUENCE: u32 = 127;

/// A clock: of a sequence, or of all.
type Key = (u32, u32);
/// A time of a clock, and its reference's at the same moment, in nanoseconds.
type Pair = (u64, u64);

#[derive(Default)]
struct Clock {
    /// The clock that snapshots relate it to: the trace's, or one of all sequences that other clocks are
    /// related to.
    reference: u32,
    /// Of snapshots, oldest first.
    snapshots: Vec<Pair>,
    /// For a clock that counts from the previous packet: that packet's time.
    last: Option<u64>,
    /// Nanoseconds of one unit.
    unit: u64,
}

impl Clock {
    /// A time of the reference; none if it is before the reference's zero, or no snapshot relates the two.
    fn reference_time(&self, nanos: u64) -> Option<u64> {
        let (own, reference) = match self.snapshots.partition_point(|snapshot| snapshot.0 <= nanos) {
            0 => *self.snapshots.first()?,
            behind => self.snapshots[behind - 1],
        };
        let at = i128::from(reference) + i128::from(nanos) - i128::from(own);
        u64::try_from(at).ok()
    }
}

#[derive(Default)]
pub(super) struct Clocks {
    clocks: HashMap<Key, Clock>,
    primary: Option<u32>,
}

fn is_own(clock: u32) -> bool {
    (FIRST_OF_SEQUENCE..=LAST_OF_SEQUENCE).contains(&clock)
}

fn key(sequence: u32, clock: u32) -> Key {
    (if is_own(clock) { sequence } else { 0 }, clock)
}

impl Clocks {
    fn primary(&self) -> u32 {
        self.primary.unwrap_or(CLOCK_BOOTTIME)
    }

    pub fn snapshot(&mut self, room: &mut Room, sequence: u32, snapshot: &ClockSnapshot) {
        if self.primary.is_none() {
            self.primary = snapshot.primary_trace_clock;
        }
        let primary = self.primary();
        let mut times = Vec::new();
        for clock in &snapshot.clocks {
            let (Some(id), Some(timestamp)) = (clock.clock_id, clock.timestamp) else { continue };
            let key = key(sequence, id);
            if !self.clocks.contains_key(&key) && !room.take(size_of::<Clock>() + ENTRY_BYTES) {
                continue;
            }
            let known = self.clocks.entry(key).or_default();
            known.unit = clock.unit_multiplier_ns.unwrap_or(1).max(1);
            let nanos = timestamp.saturating_mul(known.unit);
            known.last = clock.is_incremental.unwrap_or(false).then_some(nanos);
            times.push((id, nanos));
        }
        let is_primary = |&&(id, _): &&(u32, u64)| id == primary;
        let of_all = || times.iter().find(|(id, _)| !is_own(*id));
        let Some(&(reference, at)) = times.iter().find(is_primary).or_else(of_all) else { return };
        for (id, nanos) in times.iter().filter(|(id, _)| *id != reference) {
            let Some(known) = self.clocks.get_mut(&key(sequence, *id)) else { continue };
            if known.reference != reference {
                // A relation to the trace's clock is never replaced.
                if !known.snapshots.is_empty() && known.reference == primary {
                    continue;
                }
                room.give_back(2 * size_of::<Pair>() * known.snapshots.len());
                (known.reference, known.snapshots) = (reference, Vec::new());
            }
            // A list takes twice as much memory while it grows.
            if room.take(2 * size_of::<Pair>()) {
                known.snapshots.push((*nanos, at));
            }
        }
    }

    /// A time of the trace's clock, in nanoseconds; none if no snapshot relates the clocks.
    pub fn trace_time(&mut self, sequence: u32, clock: Option<u32>, timestamp: u64) -> Option<u64> {
        let primary = self.primary();
        let id = clock.unwrap_or(primary);
        let Some(known) = self.clocks.get_mut(&key(sequence, id)) else {
            return (id == primary).then_some(timestamp);
        };
        let mut nanos = timestamp.saturating_mul(known.unit.max(1));
        if let Some(last) = &mut known.last {
            nanos = last.saturating_add(nanos);
            *last = nanos;
        }
        if id == primary {
            return Some(nanos);
        }
        let (reference, at) = (known.reference, known.reference_time(nanos)?);
        if reference == primary {
            return Some(at);
        }
        let between = self.clocks.get(&(0, reference)).filter(|between| between.reference == primary)?;
        between.reference_time(at)
    }
}
