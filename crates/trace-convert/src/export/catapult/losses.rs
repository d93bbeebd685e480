//! Losses in Chrome's dialect.
//= docs/catapult.md#losses

use super::Exporter;
use crate::export::losses::{CATEGORY, LOST, Lost};
use crate::json::Json;
use std::io::{self, Write};

impl<W: Write> Exporter<W> {
    /// An instant of the process when the first record is missing, and an asynchronous operation from
    /// there to the last, which viewers show on a track of its own. A loss without a time is at the last
    /// event's.
    pub(super) fn lost(&mut self, lost: &Lost) -> io::Result<()> {
        let (first, last) = match lost.interval {
            Some(interval) => interval,
            None => match self.last_nanos()? {
                0 => {
                    self.events.tally.skip("losses without a time before the first event");
                    return Ok(());
                }
                last => (last, last),
            },
        };
        self.in_order()?;
        self.losses_written += 1;
        let events = &mut self.events;
        for (phase, at, has_id, has_arguments) in [
            ("\"i\",\"s\":\"p\"", first, false, true),
            ("\"b\"", first, true, true),
            ("\"e\"", last, true, false),
        ] {
            events.json.raw(",{\"cat\":\"");
            events.json.raw(CATEGORY);
            events.json.raw("\",\"name\":\"");
            events.json.raw(LOST);
            events.json.thousandths_behind("\",\"ts\":", at);
            events.thread(lost.thread.unwrap_or_default());
            events.json.raw(",\"ph\":");
            events.json.raw(phase);
            if has_id {
                // Of its process: Perfetto has no process for others.
                events.json.raw(",\"id2\":{\"local\":\"");
                events.json.hex(self.losses_written);
                events.json.raw("\"}");
            }
            if has_arguments {
                arguments(&mut events.json, lost);
            }
            events.json.raw("}");
        }
        Ok(())
    }
}

fn arguments<W: Write>(json: &mut Json<W>, lost: &Lost) {
    json.string_behind(",\"args\":{\"reason\":", lost.reason.as_bytes());
    if let Some(count) = lost.count {
        json.integer_behind(",\"count\":", count);
    }
    if let Some((first, last)) = lost.interval {
        json.thousandths_behind(",\"first_us\":", first);
        json.thousandths_behind(",\"last_us\":", last);
    }
    json.integer_behind(",\"provider\":", lost.provider.0);
    json.string_behind(",\"provider_name\":", lost.provider_name.as_bytes());
    json.raw("}");
}
