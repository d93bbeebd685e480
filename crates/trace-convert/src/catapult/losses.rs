//! Losses in Chrome's dialect.
//= docs/catapult.md#losses

use super::Exporter;
use crate::json::Json;
use crate::losses::{CATEGORY, LOST, Lost};
use std::io::Write;

impl<W: Write> Exporter<W> {
    /// An instant of the process when the first record is missing, and an asynchronous operation from
    /// there to the last, which viewers show on a track of its own. A loss without a time is at the last
    /// event's.
    pub(super) fn lost(&mut self, lost: &Lost) {
        if lost.interval.is_none() && self.last_nanos == 0 {
            return self.skip("losses without a time before the first event");
        }
        self.losses_written += 1;
        let (first, last) = lost.interval.unwrap_or((self.last_nanos, self.last_nanos));
        for (phase, at, has_id, has_arguments) in [
            ("\"i\",\"s\":\"p\"", first, false, true),
            ("\"b\"", first, true, true),
            ("\"e\"", last, true, false),
        ] {
            self.separate();
            self.json.raw("{\"cat\":\"");
            self.json.raw(CATEGORY);
            self.json.raw("\",\"name\":\"");
            self.json.raw(LOST);
            self.json.raw("\",\"ts\":");
            self.json.thousandths(at);
            self.who(lost.thread.unwrap_or_default());
            self.json.raw(",\"ph\":");
            self.json.raw(phase);
            if has_id {
                // Of its process: Perfetto has no process for others.
                self.json.raw(",\"id2\":{\"local\":\"");
                self.json.hex(self.losses_written);
                self.json.raw("\"}");
            }
            if has_arguments {
                arguments(&mut self.json, lost);
            }
            self.json.raw("}");
        }
    }
}

fn arguments<W: Write>(json: &mut Json<W>, lost: &Lost) {
    json.raw(",\"args\":{\"reason\":");
    json.string(lost.reason.as_bytes());
    json.raw(",\"count\":");
    json.integer(lost.count);
    if let Some((first, last)) = lost.interval {
        json.raw(",\"first_us\":");
        json.thousandths(first);
        json.raw(",\"last_us\":");
        json.thousandths(last);
    }
    json.raw(",\"provider\":");
    json.integer(lost.provider.0);
    json.raw(",\"provider_name\":");
    json.string(lost.provider_name.as_bytes());
    json.raw("}");
}
