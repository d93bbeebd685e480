//! A copy of what is in the buffers of a running session, for the client that asked for it.

use super::output::{Flushed, Output};
use super::{Daemon, Key};
use crate::core::{ClientId, Event};
use std::collections::VecDeque;
use trace_archive::program_info::{self, ProviderEnd};
use trace_archive::transfer::Transfer;
use trace_format::units::{Koid, ProviderId, Ticks};
use trace_protocol::controller::{ProviderStats, SnapshotError, StopResult, TraceConfig};
use zx_sim::WaitSet;

/// A snapshot under way.
pub(super) struct Snapshot {
    output: Output,
    /// Transfers that are still to be done, with their providers.
    waiting: VecDeque<(Transfer, ProviderStats)>,
    done: Vec<ProviderStats>,
}

/// The progress of a snapshot.
pub(super) enum Copied {
    /// The reader has to accept data first.
    Blocked,
    /// There is more to do at once.
    Busy,
    /// All of it has been handed over, or its recipient has gone.
    Finished(Result<StopResult, SnapshotError>),
}

impl Snapshot {
    /// `output` has the head of the archive in its queue. There is no data of the `given_up` programs.
    pub fn new(
        output: Output,
        waiting: VecDeque<(Transfer, ProviderStats)>,
        given_up: Vec<ProviderStats>,
    ) -> Self {
        Self { output, waiting, done: given_up }
    }

    /// Copies a batch, if the reader has taken what came before.
    pub fn pump(&mut self, waits: &WaitSet, key: u64) -> Copied {
        match self.output.flush() {
            Ok(Flushed::Blocked) => {
                self.output.watch(waits, key, Flushed::Blocked);
                return Copied::Blocked;
            }
            Ok(Flushed::Drained) => {}
            Err(_) => return Copied::Finished(Err(SnapshotError::Aborted)),
        }
        let Some((mut transfer, who)) = self.waiting.pop_front() else {
            if !self.output.is_ended() {
                self.write_ends();
                self.output.end();
                return Copied::Busy;
            }
            self.output.unwatch(waits);
            let provider_stats = std::mem::take(&mut self.done);
            return Copied::Finished(Ok(StopResult { provider_stats }));
        };
        if transfer.poll(self.output.queue()) {
            let ProviderStats { id, name, pid, disposition, ended_ticks, .. } = who;
            let stats = transfer.into_stats().0;
            self.done.push(ProviderStats { id, name, pid, disposition, ended_ticks, ..stats });
        } else {
            self.waiting.push_front((transfer, who));
        }
        Copied::Busy
    }
}

impl Snapshot {
    /// Queues how programs have ended whose data is in the snapshot.
    //= docs/protocol.md#provider-descriptions
    fn write_ends(&mut self) {
        let end_of = |who: &ProviderStats| {
            let at = Some(Ticks(who.ended_ticks?));
            let (id, process) = (ProviderId(who.id), Koid(who.pid));
            Some(ProviderEnd { id, process, at, how: who.disposition.clone() })
        };
        let ends: Vec<ProviderEnd> = self.done.iter().filter_map(end_of).collect();
        if self.output.has_metadata() {
            program_info::ended(&ends, self.output.queue());
        }
    }
}

impl Daemon {
    /// Begins a copy of a session for a client.
    pub(super) fn begin_snapshot(
        &mut self,
        client: ClientId,
        session: ClientId,
        config: &TraceConfig,
        providers: &[ProviderId],
    ) {
        let Some(socket) = self.clients.take_snapshot_output(client) else {
            return;
        };
        let mut output = Output::new(socket, config, false);
        output.begin(config, self.rate);
        self.providers.copy_missing(session, output.queue());
        let (mut waiting, given_up) = self.providers.snapshot_ended(session, self.rate);
        waiting.extend(providers.iter().filter_map(|id| self.providers.snapshot(*id, self.rate)));
        self.snapshots.insert(session, Snapshot::new(output, waiting, given_up));
    }

    /// Copies a batch of each snapshot; true if there is more to do at once.
    pub(super) fn pump_snapshots(&mut self) -> bool {
        let mut is_busy = false;
        self.snapshots.retain(|session, snapshot| {
            match snapshot.pump(&self.io.waits, Key::Snapshot.encode()) {
                Copied::Blocked => true,
                Copied::Busy => {
                    is_busy = true;
                    true
                }
                Copied::Finished(result) => {
                    self.io.events.push_back(Event::SnapshotFinished { session: *session, result });
                    is_busy = true;
                    false
                }
            }
        });
        is_busy
    }
}
