//! Moves parts of buffers into the archive, as fast as its reader takes them.

use super::Daemon;
use super::key::Key;
use super::log::log;
use super::output::{Flushed, Written};
use crate::core::{Event, Part};
use std::time::Instant;
use trace_archive::transfer;
use trace_format::units::ProviderId;
use trace_protocol::controller::ProviderStats;

/// How many batches are copied before everything else is checked.
const BATCHES_AT_ONCE: usize = 16;

impl Daemon {
    pub(super) fn begin_transfer(&mut self, provider: ProviderId, part: Part) {
        // It has failed just now, which the core learns next: no part of this archive begins any more.
        let Some(output) = &mut self.output else {
            return;
        };
        self.providers.write_alerts(output.queue());
        let begin = output.position();
        match self.providers.begin_transfer(provider, self.rate, part, begin) {
            Ok(transfer) => self.transfer = Some((provider, transfer)),
            Err(problem) => {
                let failed = |problem| ProviderStats { problem, ..ProviderStats::default() };
                let stats = problem.map_or_else(transfer::nothing, failed);
                self.io.events.push_back(Event::TransferFinished { provider, stats, is_complete: false });
                if let (Part::Rest { .. }, Some(output)) = (part, &mut self.output) {
                    output.end_part(Written { provider, is_archived: false });
                }
            }
        }
    }

    /// Moves data from the buffers to the output for as long as the output accepts it and no other source had
    /// to wait long. True if there is more to move at once.
    pub(super) fn pump(&mut self) -> bool {
        for _ in 0..BATCHES_AT_ONCE {
            let Some(output) = &mut self.output else {
                return false;
            };
            // Counts first: a writer that is found full after that has more to report.
            let flushed = output.read_confirmations().and_then(|()| output.flush());
            let flushed = match flushed {
                Ok(flushed) => flushed,
                Err(reason) => {
                    self.fail_output(reason);
                    return false;
                }
            };
            while let Some(Written { provider, is_archived }) = output.written_part() {
                if is_archived {
                    self.providers.note_archived(provider);
                }
                self.io.events.push_back(Event::PartWritten { provider });
            }
            if output.is_ended() && output.is_written() {
                self.end_output(true);
                return false;
            }
            let transfer = self.transfer.take_if(|_| flushed == Flushed::Drained);
            let Some((provider, mut transfer)) = transfer else {
                output.watch(&self.io.waits, Key::Output.encode(), flushed);
                return false;
            };
            if transfer.poll(output.queue()) {
                let (is_complete, is_rest) = (transfer.is_complete(), transfer.is_rest());
                let (stats, progress) = transfer.into_stats();
                self.providers.end_transfer(provider, progress, output.position());
                self.io.events.push_back(Event::TransferFinished { provider, stats, is_complete });
                // A half that could not be read is not given back.
                if is_complete || is_rest {
                    output.end_part(Written { provider, is_archived: is_complete && is_rest });
                }
            } else {
                self.transfer = Some((provider, transfer));
            }
        }
        true
    }

    /// The output accepts no more, or the client's confirmations are invalid.
    pub(super) fn fail_output(&mut self, reason: String) {
        if self.core.has_session() {
            self.io.events.push_back(Event::OutputFailed { reason });
        } else {
            log(&format!("an archive is not complete: {reason}"));
        }
        if let Some(output) = &mut self.output {
            output.report_failure(0);
        }
        self.end_output(false);
    }

    /// Nothing more is written into the archive.
    pub(super) fn end_output(&mut self, is_written: bool) {
        self.transfer = None;
        // Before the client sees the end: nothing is left when it has ended.
        self.providers.end_archive(is_written);
        if let Some(mut output) = self.output.take() {
            output.unwatch(&self.io.waits);
        }
    }

    /// Has quiet streams hand over the data that they have.
    //= docs/protocol.md#flush
    pub(super) fn flush_if_quiet(&mut self, now: Instant) {
        let (Some(period), Some(output)) = (self.core.write_period(), &mut self.output) else {
            self.next_flush = None;
            return;
        };
        if self.next_flush.is_none_or(|next| next <= now) {
            let is_quiet = output.grown() == 0;
            if is_quiet && self.next_flush.is_some() {
                self.core.flush();
                self.act_on_all();
            }
            self.next_flush = Some(now + period);
        }
    }

    /// When the client must have read more; while it records there is no limit.
    pub(super) fn output_deadline(&self) -> Option<Instant> {
        let output = self.output.as_ref()?;
        (output.is_ended() || self.core.is_terminating()).then(|| output.deadline())
    }
}
