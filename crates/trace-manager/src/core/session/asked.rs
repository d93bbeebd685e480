//! What others want to know of a session, and have it do meanwhile.

use super::{Actions, Session};
use crate::core::Action;
use crate::core::tracee::{Data, Tracee, TraceeState};
use std::time::Duration;
use trace_format::units::ProviderId;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{FlushError, SessionState, TraceConfig};
use trace_protocol::memory::MemoryDumps;

impl Session {
    /// Has everybody who records hand over what there is.
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
            let recording =
                recording.filter(|tracee| !tracee.is_gone && tracee.state == TraceeState::Started);
            actions.extend(recording.map(|tracee| Action::FlushTracee(tracee.id)));
        }
        actions.push_back(Action::ReplyFlush(self.client, result));
    }

    /// Has everybody who streams hand over what there is, though nobody has asked.
    pub fn flush(&self, actions: &mut Actions) {
        let recording = self.recording().into_iter().flatten();
        actions.extend(recording.map(Action::FlushTracee));
    }

    /// How often that is to happen while little does.
    pub fn write_period(&self) -> Option<Duration> {
        let is_streaming = self.config.buffering_mode == BufferingMode::Streaming;
        let period = self.config.write_period_milliseconds.filter(|_| is_streaming);
        self.recording().and(period).map(|milliseconds| Duration::from_millis(milliseconds.max(1)))
    }

    /// The dumps of memory that it wants again and again.
    pub fn memory_dumps(&self) -> Option<MemoryDumps> {
        self.config.memory_dumps
    }

    /// Who records; none while the session as a whole does not.
    pub fn recording(&self) -> Option<Vec<ProviderId>> {
        let recording =
            self.tracees.values().filter(|tracee| !tracee.is_gone && tracee.state == TraceeState::Started);
        (self.state == SessionState::Started).then(|| recording.map(|tracee| tracee.id).collect())
    }

    /// Whose data is in their buffers now; none while there can be none.
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
