//! Queries of clients and of the daemon about a running session.

use super::{Actions, Session};
use crate::core::Action;
use crate::core::tracee::{Data, Tracee, TraceeState};
use std::time::Duration;
use trace_format::units::ProviderId;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{FlushError, SessionState, TraceConfig};
use trace_protocol::memory::MemoryDumps;

impl Session {
    /// Asks all providers that record to hand over their data.
    //= docs/protocol.md#flush
    pub fn handle_flush(&mut self, actions: &mut Actions) {
        let result = match self.state {
            SessionState::Ready | SessionState::Initialized | SessionState::Starting => {
                Err(FlushError::NotStarted)
            }
            SessionState::Started => Ok(()),
            SessionState::Stopping | SessionState::Stopped | SessionState::Terminating => {
                Err(FlushError::Aborted)
            }
        };
        if result.is_ok() && self.config.buffering_mode == BufferingMode::Streaming {
            let recording = self.tracees.values();
            let recording = recording.filter(|tracee| tracee.state == TraceeState::Started);
            actions.extend(recording.map(|tracee| Action::FlushTracee(tracee.id)));
        }
        actions.push_back(Action::ReplyFlush(self.client, result));
    }

    /// Asks all providers that stream to hand over their data.
    pub fn flush(&self, actions: &mut Actions) {
        let recording = self.recording().into_iter().flatten();
        actions.extend(recording.map(Action::FlushTracee));
    }

    /// How often [`Session::flush`] is due while little is recorded.
    pub fn write_period(&self) -> Option<Duration> {
        let is_streaming = self.config.buffering_mode == BufferingMode::Streaming;
        let period = self.config.write_period_milliseconds.filter(|_| is_streaming);
        self.recording().and(period).map(|milliseconds| Duration::from_millis(milliseconds.max(1)))
    }

    /// Halves of a provider's buffer that are saved since it was cleared.
    pub fn saved_halves(&self, provider: ProviderId) -> u64 {
        self.tracees.get(&provider).map_or(0, |tracee| u64::from(tracee.stream.saved()))
    }

    /// The periodic memory dumps that it wants.
    pub fn memory_dumps(&self) -> Option<MemoryDumps> {
        self.config.memory_dumps
    }

    /// The providers that record; none while the session as a whole does not.
    pub fn recording(&self) -> Option<Vec<ProviderId>> {
        let recording = self.tracees.values().filter(|tracee| tracee.state == TraceeState::Started);
        (self.state == SessionState::Started).then(|| recording.map(|tracee| tracee.id).collect())
    }

    /// The providers whose data is in their buffers; none while there can be none.
    //= docs/protocol.md#snapshot
    pub fn snapshot(&self) -> Option<(TraceConfig, Vec<ProviderId>)> {
        let is_running = matches!(
            self.state,
            SessionState::Starting | SessionState::Started | SessionState::Stopping | SessionState::Stopped
        );
        let holds_data =
            |tracee: &&Tracee| matches!(tracee.data, Data::InBuffer | Data::Queued | Data::HandedOver);
        let providers = self.tracees.values().filter(holds_data).map(|tracee| tracee.id).collect();
        is_running.then(|| (self.config.clone(), providers))
    }
}
