//! One provider in one session.

use std::time::Duration;
use trace_format::units::ProviderId;

/// The state of a provider in a session.
//= docs/protocol.md#tracee
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceeState {
    /// It has its buffer.
    Initialized,
    /// It was told to start.
    Starting,
    /// It records.
    Started,
    /// It was told to stop.
    Stopping,
    /// It has stopped, or never started.
    Stopped,
    /// It was told to give everything back.
    Terminating,
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
    /// In the buffer, where it stays: nobody takes the archive.
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
    /// Its process is dead or it closed its channel: nothing more comes from it.
    pub is_gone: bool,
    /// What became of it, in a word or two for people.
    pub disposition: &'static str,
    /// It did not answer a Stop or a Terminate in time.
    pub is_late: bool,
    /// It has said that it stopped: until the next Start nobody writes into its buffer.
    pub is_quiet: bool,
    /// It has said that it was started, since it was last told to.
    pub has_started: bool,
    /// It has registered too late to be recorded from its first event on.
    pub joins_late: bool,
    /// What it handed over while streaming.
    pub stream: Stream,
}

/// How far a provider's stream of halves is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stream {
    /// The half that comes next.
    next: u32,
    /// It is on its way to the archive.
    is_saving: bool,
    durable_data_end: u64,
}

impl Stream {
    /// Takes in that a half was handed over; an error says what is wrong with that.
    //= docs/protocol.md#saving-a-half
    pub fn begin(&mut self, wrapped_count: u32, durable_data_end: u64) -> Result<(), String> {
        if self.is_saving {
            return Err("a half is handed over while another is being saved".to_owned());
        }
        if wrapped_count != self.next {
            return Err(format!("half {wrapped_count} is handed over, expected {}", self.next));
        }
        if durable_data_end < self.durable_data_end || !durable_data_end.is_multiple_of(8) {
            let before = self.durable_data_end;
            return Err(format!("{durable_data_end} bytes of durable data, where there were {before}"));
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
}

impl Tracee {
    pub fn new(id: ProviderId, name: &str, pid: u64, state: TraceeState) -> Self {
        Self {
            id,
            name: name.to_owned(),
            pid,
            state,
            data: Data::None,
            is_gone: false,
            disposition: "not started",
            is_late: false,
            is_quiet: false,
            has_started: false,
            joins_late: false,
            stream: Stream::default(),
        }
    }

    /// A Start would be obeyed, and clears nothing that is being read: a provider that is still busy with a
    /// Stop or Terminate ignores it, and one that stopped late may have handed over a half before.
    pub fn can_start(&self) -> bool {
        !self.is_gone
            && !self.stream.is_saving
            && matches!(self.state, TraceeState::Initialized | TraceeState::Stopped)
    }

    /// Nobody waits for it to start any more.
    pub fn is_past_start(&self) -> bool {
        self.is_gone || !matches!(self.state, TraceeState::Initialized | TraceeState::Starting)
    }

    /// Nobody waits for it to stop any more.
    pub fn is_past_stop(&self) -> bool {
        self.is_gone || self.is_late || self.state == TraceeState::Stopped
    }

    /// Its data is where it belongs.
    pub fn is_settled(&self) -> bool {
        matches!(self.data, Data::None | Data::Archived | Data::Left)
    }

    /// A name for messages.
    pub fn label(&self) -> String {
        format!("provider {} \"{}\" (pid {})", self.id.0, self.name, self.pid)
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
