//! One provider in one session.

use super::session::Actions;
use super::{Action, ClientId, Now};
use std::collections::VecDeque;
use std::time::Duration;
use trace_format::buffer::MAX_DURABLE_BYTES;
use trace_format::loss::LossCode;
use trace_format::units::ProviderId;
use trace_protocol::controller::ProviderDisposition;

/// The state of a provider in a session.
//= docs/protocol.md#tracee
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceeState {
    /// It has its buffer.
    Initialized,
    /// It was sent Start.
    Starting,
    /// It records.
    Started,
    /// It was sent Stop.
    Stopping,
    /// It has stopped, or never started.
    Stopped,
    /// It was sent Terminate while it recorded.
    Terminating,
    /// It has stopped and its FIFO closes next: it was sent Terminate, or goes of its own accord.
    Leaving,
    /// It closed its FIFO or channel while it recorded. Until its process is dead, or this time has come, a
    /// thread of it may still write into its buffer.
    Dying {
        /// When the process is taken to go on.
        until: Now,
    },
    /// It no longer takes part: its process is dead or it closed its FIFO.
    Gone,
}

impl TraceeState {
    /// A thread of the provider may write into its buffer.
    pub fn may_write(self) -> bool {
        match self {
            Self::Starting | Self::Started | Self::Stopping | Self::Terminating | Self::Dying { .. } => true,
            Self::Initialized | Self::Stopped | Self::Leaving | Self::Gone => false,
        }
    }

    /// Its FIFO is open, as far as is known.
    pub fn is_connected(self) -> bool {
        !matches!(self, Self::Dying { .. } | Self::Gone)
    }
}

/// Where the data of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// Nothing was recorded, or it is not wanted.
    None,
    /// In the buffer.
    InBuffer,
    /// In line for the archive.
    Queued,
    /// Read, and on its way into the archive.
    HandedOver,
    /// Written into the archive.
    Archived,
    /// In the buffer, where it stays: the archive has no recipient.
    Left,
}

/// A provider in a session.
#[derive(Debug)]
pub(super) struct Tracee {
    pub id: ProviderId,
    pub name: String,
    pub pid: u64,
    pub state: TraceeState,
    pub data: Data,
    /// Its result.
    pub disposition: ProviderDisposition,
    /// It did not answer a Stop or a Terminate in time.
    pub is_overdue: bool,
    /// It has confirmed the last Start.
    pub has_started: bool,
    /// It has not started in time: what it does until it starts is missing.
    pub is_slow: bool,
    /// It has registered too late to be recorded from its first event on.
    pub joins_late: bool,
    /// It has ended, and what it stands for has not.
    pub lacks_rest: bool,
    /// The halves that it handed over while streaming.
    pub stream: Stream,
}

/// The state of a provider's stream of halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stream {
    /// The half that comes next.
    next: u32,
    /// It is on its way to the archive.
    is_saving: bool,
    durable_data_end: u64,
    /// Halves that would be saved by now if only flushes had it hand them over.
    quiet: u32,
}

/// Why a half is not what comes next.
#[derive(Debug, thiserror::Error)]
pub(super) enum HalfError {
    #[error("a half is handed over while another is being saved")]
    NotSaved,
    #[error("half {found} is handed over, expected {expected}")]
    Number { found: u32, expected: u32 },
    #[error("{found} bytes of durable data, where there were {before}")]
    Durable { found: u64, before: u64 },
}

impl Stream {
    /// Records that a half was handed over; an error is a violation of the protocol.
    //= docs/protocol.md#saving-a-half
    pub fn begin(&mut self, wrapped_count: u32, durable_data_end: u64) -> Result<(), HalfError> {
        if self.is_saving {
            return Err(HalfError::NotSaved);
        }
        if wrapped_count != self.next {
            return Err(HalfError::Number { found: wrapped_count, expected: self.next });
        }
        if !(self.durable_data_end..=MAX_DURABLE_BYTES).contains(&durable_data_end)
            || !durable_data_end.is_multiple_of(8)
        {
            return Err(HalfError::Durable { found: durable_data_end, before: self.durable_data_end });
        }
        self.is_saving = true;
        self.durable_data_end = durable_data_end;
        Ok(())
    }

    /// It is saved.
    pub fn finish(&mut self) {
        self.is_saving = false;
        self.next = self.next.wrapping_add(1);
    }

    /// Whether nothing but the last flush had it hand something over since the last call; then it is flushed.
    //= docs/protocol.md#flush
    pub fn is_quiet(&mut self) -> bool {
        let is_quiet = self.next <= self.quiet;
        self.quiet = self.next + u32::from(is_quiet);
        is_quiet
    }

    /// Halves that are saved, or on their way into the archive, since the buffer was cleared.
    pub fn handed_over(&self) -> u32 {
        self.next + u32::from(self.is_saving)
    }

    /// Halves that are saved since the buffer was cleared.
    pub fn saved(&self) -> u32 {
        self.next
    }
}

impl Tracee {
    pub fn new(id: ProviderId, name: &str, pid: u64, state: TraceeState) -> Self {
        Self {
            id,
            name: name.to_owned(),
            pid,
            state,
            data: Data::None,
            disposition: ProviderDisposition::NotStarted,
            is_overdue: false,
            has_started: false,
            is_slow: false,
            joins_late: false,
            lacks_rest: false,
            stream: Stream::default(),
        }
    }

    /// A Start would be obeyed, and clears nothing that is being read: a provider that is still busy with a
    /// Stop or Terminate ignores it, and one that stopped late may have handed over a half before.
    pub fn can_start(&self) -> bool {
        !self.stream.is_saving && matches!(self.state, TraceeState::Initialized | TraceeState::Stopped)
    }

    /// The session does not wait for it to start.
    pub fn is_past_start(&self) -> bool {
        match self.state {
            TraceeState::Initialized | TraceeState::Starting => false,
            TraceeState::Leaving | TraceeState::Dying { .. } => self.has_started,
            _ => true,
        }
    }

    /// The session does not wait for it to stop.
    pub fn is_past_stop(&self) -> bool {
        self.is_overdue || matches!(self.state, TraceeState::Stopped | TraceeState::Gone)
    }

    /// Asks it to give everything back.
    pub fn terminate(&mut self, actions: &mut VecDeque<Action>) {
        self.state = match self.state.may_write() {
            true => TraceeState::Terminating,
            false => TraceeState::Leaving,
        };
        actions.push_back(Action::TerminateTracee(self.id));
    }

    /// Its data needs nothing more to be done.
    pub fn is_settled(&self) -> bool {
        matches!(self.data, Data::None | Data::Archived | Data::Left)
    }

    /// Records of the tracee are missing in the archive of its session, or its part has ended in this way.
    pub fn report_missing(
        &self,
        client: ClientId,
        reason: Option<LossCode>,
        disposition: Option<ProviderDisposition>,
        problem: String,
    ) -> Action {
        let (provider, name, pid) = (self.id, self.name.clone(), self.pid);
        Action::ReportMissing { client, provider, name, pid, reason, disposition, problem }
    }

    /// It is recorded only from now on.
    pub fn join_late(&mut self, client: ClientId, actions: &mut Actions) {
        self.joins_late = true;
        actions.push_back(self.report_missing(client, Some(LossCode::JOINED_LATE), None, String::new()));
    }

    /// A name for messages.
    pub fn label(&self) -> String {
        format!("program {} \"{}\" (pid {})", self.id.0, self.name, self.pid)
    }
}

/// A deadline of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Start(Duration),
    Stop(Duration),
    Terminate(Duration),
}

impl Timer {
    pub fn deadline(self) -> Duration {
        match self {
            Self::Start(deadline) | Self::Stop(deadline) | Self::Terminate(deadline) => deadline,
        }
    }
}
