//! Times of several clocks, and how they relate.
//= docs/import.md#clocks-of-perfetto

use crate::import::room::{ENTRY_BYTES, Room};
use crate::perfetto::messages::{CLOCK_BOOTTIME, ClockSnapshot};
use std::collections::HashMap;
use std::mem::size_of;

/// Clocks from this number to the next belong to one sequence.
const FIRST_OF_SEQUENCE: u32 = 64;
const LAST_OF_SEQUENCE: u32 = 127;

/// A clock: of a sequence, or of all.
type Key = (u32, u32);
/// A time of a clock, and the trace's at the same moment, in nanoseconds.
type Pair = (u64, u64);

#[derive(Default)]
struct Clock {
    /// Of snapshots, oldest first.
    snapshots: Vec<Pair>,
    /// Of a clock that tells only what has passed since the last packet: that packet's time.
    last: Option<u64>,
    /// Nanoseconds of one unit.
    unit: u64,
}

#[derive(Default)]
pub(super) struct Clocks {
    clocks: HashMap<Key, Clock>,
    primary: Option<u32>,
}

fn key(sequence: u32, clock: u32) -> Key {
    let is_own = (FIRST_OF_SEQUENCE..=LAST_OF_SEQUENCE).contains(&clock);
    (if is_own { sequence } else { 0 }, clock)
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
        let mut trace = None;
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
            if id == primary {
                trace = Some(nanos);
            }
        }
        let Some(trace) = trace else { return };
        for clock in &snapshot.clocks {
            let (Some(id), Some(timestamp)) = (clock.clock_id, clock.timestamp) else { continue };
            if let Some(known) = self.clocks.get_mut(&key(sequence, id))
                // A list takes twice as much while it grows.
                && room.take(2 * size_of::<Pair>())
            {
                known.snapshots.push((timestamp.saturating_mul(known.unit), trace));
            }
        }
    }

    /// A time of the trace's clock, in nanoseconds; none if no snapshot tells how the clocks relate.
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
        let (own, trace) = match known.snapshots.partition_point(|snapshot| snapshot.0 <= nanos) {
            0 => *known.snapshots.first()?,
            behind => known.snapshots[behind - 1],
        };
        Some(trace.wrapping_add(nanos.wrapping_sub(own)))
    }
}
