//! A copy of what is in the buffers of a running session, for somebody who asked for it.

use super::output::{Flushed, Output};
use crate::archive::transfer::Transfer;
use std::collections::VecDeque;
use trace_protocol::controller::{ProviderStats, SnapshotError, StopResult};
use zx_sim::WaitSet;

/// A snapshot under way.
pub(super) struct Snapshot {
    output: Output,
    /// What is still to be read, with whose it is.
    waiting: VecDeque<(Transfer, ProviderStats)>,
    done: Vec<ProviderStats>,
}

/// How far a snapshot is.
pub(super) enum Copied {
    /// The reader has to take something first.
    Blocked,
    /// There is more to be done at once.
    Busy,
    /// All of it is out of our hands, or nobody wants it.
    Finished(Result<StopResult, SnapshotError>),
}

impl Snapshot {
    /// `output` has the beginning of the archive in its queue. Of those who were `given_up` there is nothing.
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
