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
        let number = self.losses_written;
        for (operation, at) in [(None, first), (Some("b"), first), (Some("e"), last)] {
            events.json.raw(",{\"cat\":\"");
            events.json.raw(CATEGORY);
            events.json.raw("\",\"name\":\"");
            events.json.raw(LOST);
            events.json.thousandths_behind("\",\"ts\":", at);
            events.thread(lost.thread.unwrap_or_default());
            match operation {
                // Of its process: Perfetto has no process for others.
                Some(phase) => events.async_id(phase, number),
                None => events.json.raw(",\"ph\":\"i\",\"s\":\"p\""),
            }
            if operation != Some("e") {
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
