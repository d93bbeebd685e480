//! Moves parts of buffers into the archive, as fast as its reader takes them.

use super::Daemon;
use super::key::Key;
use super::log::log;
use super::output::{Flushed, Output, OutputError, Written};
use super::providers::Providers;
use super::recording::Recording;
use crate::core::{ClientId, Event, Part};
use std::ops::Bound;
use std::time::Instant;
use trace_archive::{problem, transfer};
use trace_format::units::ProviderId;

/// How many batches are copied, for all recordings, before everything else is checked.
const BATCHES_AT_ONCE: usize = 16;

/// Queues what the manager has to say between parts of providers, or at the end of an archive.
pub(super) fn write_between(providers: &mut Providers, client: ClientId, is_end: bool, output: &mut Output) {
    providers.write_alerts(client, output.queue());
    if providers.write_missing(client, is_end, output.queue()) {
        providers.note_missing(client, output.position());
    }
}

impl Daemon {
    pub(super) fn begin_transfer(&mut self, client: ClientId, provider: ProviderId, part: Part) {
        // It has failed just now, which the core learns next: no part of this archive begins any more.
        let Some(Recording { output: Some(output), transfer: reading, .. }) =
            self.recordings.get_mut(&client)
        else {
            return;
        };
        write_between(&mut self.providers, client, false, output);
        let begin = output.position();
        match self.providers.begin_transfer(provider, self.rate, part, begin) {
            Some(transfer) => *reading = Some((provider, transfer)),
            None => {
                let stats = transfer::nothing();
                self.io.events.push_back(Event::TransferFinished { provider, stats, is_complete: false });
                if let Part::Rest { .. } = part {
                    output.end_part(Written { provider, is_archived: false });
                }
            }
        }
    }

    /// Moves data of all sessions, as [`Daemon::pump`] does of one; true if there is more to move at once.
    pub(super) fn pump_all(&mut self) -> bool {
        let behind = (Bound::Excluded(self.last_pumped), Bound::Unbounded);
        let others = self.recordings.range(..=self.last_pumped);
        let clients: Vec<ClientId> =
            self.recordings.range(behind).chain(others).map(|(client, _)| *client).collect();
        let (mut left, mut is_busy) = (BATCHES_AT_ONCE, false);
        for client in clients {
            if left == 0 {
                return true;
            }
            is_busy |= self.pump(client, &mut left);
            self.last_pumped = client;
        }
        is_busy
    }

    /// Moves data from the buffers of a session to its output for as long as the output accepts it and no
    /// other source had to wait long: for the batches that are left. True if there is more to move at once.
    fn pump(&mut self, client: ClientId, left: &mut usize) -> bool {
        while *left > 0 {
            let Some(recording) = self.recordings.get_mut(&client) else {
                return false;
            };
            let Some(output) = &mut recording.output else {
                return false;
            };
            // Counts first: a writer that is found full after that has more to report.
            let flushed = output.read_confirmations().and_then(|()| output.flush());
            let flushed = match flushed {
                Ok(flushed) => flushed,
                Err(reason) => {
                    self.fail_output(client, &reason);
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
                self.end_output(client, true);
                return false;
            }
            let transfer = recording.transfer.take_if(|_| flushed == Flushed::Drained);
            let Some((provider, mut transfer)) = transfer else {
                output.watch(&self.io.waits, Key::Output.encode(), flushed);
                return false;
            };
            *left -= 1;
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
                recording.transfer = Some((provider, transfer));
            }
        }
        true
    }

    /// A session's output accepts no more, or the client's confirmations are invalid.
    pub(super) fn fail_output(&mut self, client: ClientId, error: &OutputError) {
        let reason = problem(error);
        if self.core.has(client) {
            self.io.events.push_back(Event::OutputFailed { client, reason });
        } else {
            log(&format!("an archive is not complete: {reason}"));
        }
        if let Some(output) = self.recordings.get_mut(&client).and_then(|found| found.output.as_mut()) {
            output.report_failure(0);
        }
        self.end_output(client, false);
    }

    /// Nothing more is written into a session's archive.
    pub(super) fn end_output(&mut self, client: ClientId, is_written: bool) {
        // Before the client sees the end: nothing is left when it has ended.
        self.providers.end_archive(client, is_written);
        let Some(recording) = self.recordings.get_mut(&client) else {
            return;
        };
        recording.transfer = None;
        if let Some(mut output) = recording.output.take() {
            output.unwatch(&self.io.waits);
        }
        if !self.core.has(client) {
            self.recordings.remove(&client);
        }
    }

    /// Has quiet programs hand over the data that they have.
    //= docs/protocol.md#flush
    pub(super) fn flush_if_quiet(&mut self, now: Instant) {
        for (client, recording) in &mut self.recordings {
            let period = self.core.write_period(*client).filter(|_| recording.output.is_some());
            let Some(period) = period else {
                recording.next_flush = None;
                continue;
            };
            if recording.next_flush.is_none_or(|next| next <= now) {
                if recording.next_flush.is_some() {
                    self.core.flush_quiet(*client);
                }
                recording.next_flush = Some(now + period);
            }
        }
        self.act_on_all();
    }

    /// Fails the outputs whose clients must have read more by now.
    pub(super) fn fail_late_outputs(&mut self, now: Instant) {
        let is_late =
            |client: &&ClientId| self.output_deadline(**client).is_some_and(|deadline| deadline <= now);
        let late: Vec<ClientId> = self.recordings.keys().filter(is_late).copied().collect();
        for client in late {
            self.fail_output(client, &OutputError::NotTaken);
        }
    }

    /// When a client must have read more; while it records there is no limit.
    pub(super) fn output_deadline(&self, client: ClientId) -> Option<Instant> {
        let output = self.recordings.get(&client)?.output.as_ref()?;
        (output.is_ended() || self.core.is_terminating(client)).then(|| output.deadline())
    }
}
