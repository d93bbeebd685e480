//! Losses, on tracks of their own.
//= docs/perfetto.md#losses

use super::Exporter;
use super::messages::{TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END};
use super::track_event::Fields;
use crate::export::losses::{CATEGORY, LOST, Lost};
use std::io::Write;
use trace_reader::{Text, TextKey, Value};

impl<W: Write> Exporter<W> {
    /// An instant when the first record is missing, and a slice up to the last. Of a loss without a time, an
    /// instant at the time of the event before.
    pub(super) fn lost(&mut self, lost: &Lost) {
        if lost.interval.is_none() && self.has_no_room_for_early() {
            return self.skip("losses without a time before the first event, beyond 16 MiB");
        }
        let descriptor = self.tracks.single(LOST, lost.thread.unwrap_or_default().process);
        let track = self.describe(descriptor);
        let Some((first, last)) = lost.interval else {
            self.loss_event(TYPE_INSTANT, track, lost);
            return self.track_event_at(self.last);
        };
        // Strings of what still waits for a time are defined there.
        self.release(first);
        if last > first {
            self.loss_event(TYPE_SLICE_BEGIN, track, lost);
            self.track_event(first);
        }
        self.loss_event(TYPE_INSTANT, track, lost);
        self.track_event(first);
        if last > first {
            Fields(&mut self.event).begin(Some(TYPE_SLICE_END), track);
            self.track_event(last);
        }
    }

    fn loss_event(&mut self, kind: i32, track: u64, lost: &Lost) {
        self.begin(Some(kind), track, Text(CATEGORY.as_bytes()), Text(LOST.as_bytes()));
        let (first, last) = lost
            .interval
            .map_or((Value::Null, Value::Null), |(first, last)| (Value::Uint64(first), Value::Uint64(last)));
        let arguments = [
            ("reason", Value::String(Text(lost.reason.as_bytes()))),
            ("count", lost.count.map_or(Value::Null, Value::Uint64)),
            ("first_ns", first),
            ("last_ns", last),
            ("provider", Value::Uint32(lost.provider.0)),
            ("provider_name", Value::String(Text(lost.provider_name.as_bytes()))),
        ];
        for (name, value) in arguments.iter().filter(|(_, value)| *value != Value::Null) {
            self.annotation(Text(name.as_bytes()), value, TextKey::NONE);
        }
    }
}
