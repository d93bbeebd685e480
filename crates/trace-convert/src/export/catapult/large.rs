//! Large blobs with an event, of the one category that Fuchsia's exporter writes.
//= docs/catapult.md#large-blobs

use super::{Dialect, Exporter};
use std::io::{self, Write};
use trace_reader::{Item, Resolved};

/// The category.
const CATEGORY: &str = "fidl:blob";
/// Number of bytes that make whole characters of base64.
const GROUP: usize = 3;

/// A blob that is being written.
pub(super) struct LargeBlob {
    /// Bytes that are less than a group so far.
    rest: Vec<u8>,
    /// Bytes that are still to come.
    left: u64,
}

impl<W: Write> Exporter<W> {
    pub(super) fn large_blob(&mut self, record: &Resolved<'_>) -> io::Result<()> {
        let Item::LargeBlob { category, name, event, payload, payload_bytes } = &record.item else {
            return Ok(());
        };
        if self.large.is_some() {
            self.in_order()?;
            self.end_large();
        }
        let event = event.as_ref().filter(|_| *category == CATEGORY && self.dialect == Dialect::Fuchsia);
        let Some((time, thread, _)) = event else {
            self.events.tally.skip("large records");
            return Ok(());
        };
        if !self.keeps(record) {
            return Ok(());
        }
        self.in_order()?;
        let events = &mut self.events;
        events.json.string_behind(",{\"ph\":\"O\",\"id\":\"\",\"cat\":", category.as_bytes());
        events.json.string_behind(",\"name\":", name.as_bytes());
        events.json.raw(",\"ts\":");
        events.time(*time);
        events.thread(*thread);
        events.json.raw(",\"blob\":\"");
        events.tally.events += 1;
        self.large = Some(LargeBlob { rest: Vec::new(), left: *payload_bytes });
        self.large_part(payload);
        Ok(())
    }

    /// The next bytes of a blob; of one that is skipped, nothing.
    pub(super) fn large_part(&mut self, payload: &[u8]) {
        let Some(mut large) = self.large.take() else {
            return;
        };
        large.left = large.left.saturating_sub(payload.len() as u64);
        let missing = (GROUP - large.rest.len()) % GROUP;
        let (head, tail) = payload.split_at(missing.min(payload.len()));
        large.rest.extend_from_slice(head);
        if large.rest.len() == GROUP {
            self.events.json.base64_group(&large.rest);
            large.rest.clear();
        }
        if large.rest.is_empty() {
            let (whole, rest) = tail.split_at(tail.len() / GROUP * GROUP);
            self.events.json.base64_group(whole);
            large.rest.extend_from_slice(rest);
        }
        let is_over = large.left == 0;
        self.large = Some(large);
        if is_over {
            self.end_large();
        }
    }

    /// Ends a blob, even if it is incomplete.
    pub(super) fn end_large(&mut self) {
        if let Some(large) = self.large.take() {
            self.events.json.base64_group(&large.rest);
            self.events.json.raw("\"}");
        }
    }
}
