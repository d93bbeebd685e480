//! Queries of clients and of the daemon about a running session.

use super::{Actions, Session};
use crate::core::Action;
use crate::core::tracee::{Data, Tracee, TraceeState};
use std::time::Duration;
use trace_format::categories::selects;
use trace_format::markers::{self, OF_APPLICATION};
use trace_format::units::ProviderId;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{FlushError, SessionState, TraceConfig};
use trace_protocol::memory::MemoryDumps;
use trace_protocol::names::KERNEL_PROVIDER;

impl Session {
    /// The tags of markers that it records with the kernel's provider, if that takes part. An application is
    /// recorded with all of its markers, unless tags are selected.
    //= docs/protocol.md#markers-that-are-wanted
    pub fn wanted_markers(&self) -> u64 {
        let is_kernels = |tracee: &Tracee| tracee.name == KERNEL_PROVIDER && tracee.state.is_connected();
        let is_recorded = self.is_running() && self.marker_tags != 0 && self.tracees.values().any(is_kernels);
        if is_recorded { self.marker_tags } else { 0 }
    }

    /// The tags of markers that its lists select.
    pub(super) fn selected_markers(&self) -> u64 {
        let (listed, additional) = (&self.config.categories, &self.additional_categories);
        let is_wanted = |category: &str| selects(listed, additional, category.as_bytes());
        let spec = self.config.provider_specs.iter().find(|spec| spec.name == KERNEL_PROVIDER);
        let mut entries =
            listed.iter().chain(additional).chain(spec.iter().flat_map(|spec| &spec.categories));
        match markers::tags(is_wanted, listed) {
            0 if entries.any(|entry| entry.starts_with(OF_APPLICATION)) => markers::ALL,
            tags => tags,
        }
    }

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

    /// Asks the providers to hand over their data that have not done so by themselves since the last call.
    pub fn flush_quiet(&mut self, actions: &mut Actions) {
        if self.recording().is_none() {
            return;
        }
        let recording = self.tracees.values_mut().filter(|tracee| tracee.state == TraceeState::Started);
        let quiet = recording.filter_map(|tracee| tracee.stream.is_quiet().then_some(tracee.id));
        actions.extend(quiet.map(Action::FlushTracee));
    }

    /// How often [`Session::flush_quiet`] is due while little is recorded.
    pub fn write_period(&self) -> Option<Duration> {
        let is_streaming = self.config.buffering_mode == BufferingMode::Streaming;
        let period = self.config.write_period_milliseconds.filter(|_| is_streaming);
        self.recording().and(period).map(|milliseconds| Duration::from_millis(milliseconds.max(1)))
    }

    /// Halves of a provider's buffer that are saved since it was cleared.
    pub fn saved_halves(&self, provider: ProviderId) -> u64 {
        self.tracees.get(&provider).map_or(0, |tracee| u64::from(tracee.stream.saved()))
    }

    /// Halves of a provider's buffer that are saved, or on their way into the archive.
    pub fn handed_over_halves(&self, provider: ProviderId) -> u64 {
        self.tracees.get(&provider).map_or(0, |tracee| u64::from(tracee.stream.handed_over()))
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
