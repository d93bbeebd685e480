//! The thread that reads what an observer gets, and makes updates for pages of it.

use crate::browser::hub::Hub;
use crate::record::live::feed::{Ended, Picture};
use crate::record::live::frames::{FollowError, Frames, Pending, Waiting};
use crate::record::live::machine;
use serde_json::Value;
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use trace_format::units::{ProviderId, Ticks, TicksPerSecond};
use trace_protocol::controller::Counts;
use trace_reader::{Names, Reader};
use trace_report::live::{Drawer, Loss, Moment, shorten};
use zx_sim::{Socket, ticks};

/// Names of durations of the last seconds.
const MAX_SPANS: usize = 100;
/// Counters with their last values.
const MAX_COUNTERS: usize = 200;
/// How often tables come.
const TABLE_INTERVAL: Duration = Duration::from_millis(450);

/// Reads until the recording is over.
pub fn read(socket: Socket, hub: &Hub) -> Result<(), FollowError> {
    let pending = Pending::default();
    let mut reader = Reader::new(Frames::new(Waiting(socket), pending.clone()))?;
    let mut updates = Updates::default();
    while let Some(record) = reader.next_item()? {
        updates.drawer.record(&record);
        // The record in the place of counts has come, or one behind it.
        while let Some(counts) = pending.take(record.offset.0 + 1) {
            updates.push(counts, Some(record.names), false, hub);
        }
    }
    // All tables once more, with the final numbers.
    if let Some(counts) = updates.last.take() {
        updates.push(counts, None, true, hub);
    }
    pending.finish()
}

#[derive(Default)]
struct Updates {
    drawer: Drawer,
    last: Option<Counts>,
    /// When the last table was made, in ticks.
    table_at: u64,
    /// Programs that have ended and are still shown.
    ended: Ended,
    /// What was lost and missed so far, by provider that still takes part.
    lost: HashMap<u32, (u64, u64)>,
}

impl Updates {
    fn push(&mut self, counts: Counts, names: Option<&Names>, is_last: bool, hub: &Hub) {
        let rate =
            TicksPerSecond::new(counts.ticks_per_second).unwrap_or(TicksPerSecond(std::num::NonZeroU64::MIN));
        let now = Ticks(counts.ticks).to_nanos(rate).0;
        let losses = self.losses(&counts);
        self.last = Some(counts.clone());
        let mut counts = counts;
        let gone = self.ended.add_to(&mut counts.providers);
        let passed = Ticks(counts.ticks.saturating_sub(self.table_at)).to_nanos(rate).0;
        let table = (is_last || u128::from(passed) >= TABLE_INTERVAL.as_nanos()).then(|| {
            self.table_at = counts.ticks;
            let picture = Picture { snapshot: self.drawer.snapshot(now, MAX_SPANS), counts: counts.clone() };
            let mut table = machine::line(&picture);
            // The page has the values in its timeline.
            if let Some(counters) = table.get_mut("counters").and_then(|counters| counters.as_array_mut()) {
                counters.truncate(MAX_COUNTERS);
                for counter in counters.iter_mut().filter_map(|counter| counter.as_object_mut()) {
                    counter.remove("values");
                }
            }
            shorten_texts(&mut table);
            table
        });
        for gone in gone {
            self.drawer.forget(ProviderId(gone.progress.id));
        }
        let message = self.drawer.message(Moment {
            now,
            clock_ms: clock_ms(counts.ticks, rate),
            names,
            losses: &losses,
            table: table.as_ref(),
        });
        hub.push(&message);
    }

    /// What was dropped and missed since the last update.
    fn losses(&mut self, counts: &Counts) -> Vec<Loss> {
        let mut losses = Vec::new();
        for provider in &counts.providers {
            let progress = &provider.progress;
            let (dropped, missed) = self.lost.entry(progress.id).or_default();
            for (before, now, reason) in [
                (dropped, progress.dropped, "records that found no room"),
                (missed, provider.missed, "records that were not seen in time; the archive has them"),
            ] {
                if now > *before {
                    let count = now - *before;
                    losses.push(Loss { provider: progress.name.clone(), pid: progress.pid, reason, count });
                }
                *before = now;
            }
            // It is not listed again.
            if provider.has_ended {
                self.lost.remove(&progress.id);
            }
        }
        losses
    }
}

/// Cuts names as those of the page are.
fn shorten_texts(value: &mut Value) {
    match value {
        Value::String(text) => text.truncate(shorten(text).len()),
        Value::Array(values) => values.iter_mut().for_each(shorten_texts),
        Value::Object(members) => members.values_mut().for_each(shorten_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A time on the wall clock, in milliseconds.
fn clock_ms(at: u64, rate: TicksPerSecond) -> f64 {
    let age = Ticks(ticks::now().saturating_sub(at)).to_nanos(rate).0;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs_f64() * 1e3 - age as f64 / 1e6
}
