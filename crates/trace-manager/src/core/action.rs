//! What the core wants done outside.

use super::{ClientId, Part, Uid};
use trace_format::loss::LossCode;
use trace_format::units::ProviderId;
use trace_protocol::controller::{
    Alert, FlushError, ObserveError, ProviderDisposition, Refusal, SessionState, SnapshotError, StartError,
    StopError, StopResult, TraceConfig, Untraced,
};
use trace_protocol::{BufferDisposition, BufferingMode};

/// An action for the daemon, in this order.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Send a client the reason for a refusal, then close its session channel.
    RefuseClient {
        /// Its session channel.
        client: ClientId,
        /// The reason.
        refusal: Refusal,
    },
    /// Write the head of the archive.
    BeginArchive {
        /// Its session.
        client: ClientId,
        /// The process that asked for it.
        pid: u32,
        /// The options of the session.
        config: TraceConfig,
        /// The user who owns the file.
        uid: Uid,
    },
    /// Make a provider's buffer and FIFO and send Initialize.
    InitializeTracee {
        /// The session.
        client: ClientId,
        /// The provider.
        provider: ProviderId,
        /// Size of its buffer in bytes.
        buffer_bytes: u64,
        /// How the buffer is used.
        mode: BufferingMode,
        /// Its categories; none means all.
        categories: Vec<String>,
    },
    /// Send GetKnownCategories, for the client of the session.
    AskCategories(ProviderId),
    /// Send Start.
    StartTracee {
        /// The provider.
        provider: ProviderId,
        /// How the buffer's previous data is treated.
        disposition: BufferDisposition,
        /// Further categories for this run.
        additional_categories: Vec<String>,
    },
    /// Send Stop.
    StopTracee(ProviderId),
    /// Send Flush.
    FlushTracee(ProviderId),
    /// Send Terminate.
    TerminateTracee(ProviderId),
    /// Copy from a provider's buffer into the archive, then report [`Event::TransferFinished`].
    Transfer {
        /// The session.
        client: ClientId,
        /// The provider.
        provider: ProviderId,
        /// The part of the buffer.
        part: Part,
    },
    /// Send BUFFER_SAVED.
    SendSaved {
        /// The recipient.
        provider: ProviderId,
        /// As in its request.
        wrapped_count: u32,
        /// As in its request.
        durable_data_end: u64,
    },
    /// Report [`Event::ProcessDied`] when the process of a provider is dead.
    WatchProcess(ProviderId),
    /// Stop waiting for the death of its process.
    ForgetProcess(ProviderId),
    /// Forget a provider's buffer and FIFO, and delete the buffer.
    DropTracee(ProviderId),
    /// Forget them, and leave the buffer where it is: it holds data that is in no archive.
    LeaveBuffer(ProviderId),
    /// Answer a Start.
    ReplyStart(ClientId, Result<(), StartError>),
    /// Answer a Stop.
    ReplyStop(ClientId, Result<StopResult, StopError>),
    /// Answer a FlushBuffers.
    ReplyFlush(ClientId, Result<(), FlushError>),
    /// Copy the buffers of these providers, which continue, into an archive of its own for a client, and
    /// report [`Event::SnapshotFinished`].
    TakeSnapshot {
        /// Its provisioner channel.
        client: ClientId,
        /// The session that is copied.
        session: ClientId,
        /// The options of that session.
        config: TraceConfig,
        /// The providers with data in their buffers.
        providers: Vec<ProviderId>,
    },
    /// Answer a TakeSnapshot; if it was refused, close its output.
    ReplySnapshot(ClientId, Result<StopResult, SnapshotError>),
    /// Answer an Observe with the session; if it was refused, close its output.
    ReplyObserve(ClientId, Result<ClientId, ObserveError>),
    /// Send an observer what it has not received yet of its session, which is over, and close its output.
    EndObserver(ClientId),
    /// Answer a WatchAlert.
    ReplyAlert(ClientId, Alert),
    /// Report in the archive that an unknown number of a program's records is missing, or how its part has
    /// ended.
    ReportMissing {
        /// The session.
        client: ClientId,
        /// The program's number in the archive.
        provider: ProviderId,
        /// Its name.
        name: String,
        /// Its process.
        pid: u64,
        /// What is missing, if anything is.
        reason: Option<LossCode>,
        /// How its part in the session ended; none if it goes on.
        disposition: Option<ProviderDisposition>,
        /// Why, for people; may be empty.
        problem: String,
    },
    /// Report a provider that cannot be recorded to the client.
    Untraced(ClientId, Untraced),
    /// Send the client the names of the providers that its Start or Stop waits for.
    Waiting(ClientId, Vec<String>),
    /// Send the client its session's new state.
    StateChanged(ClientId, SessionState),
    /// Write the end of the archive, close the output when it has accepted everything, and close the client's
    /// channel.
    EndSession {
        /// Its session channel.
        client: ClientId,
        /// The output is useless: nothing more is written.
        is_aborted: bool,
    },
    /// Write a line into the manager's log.
    Log(String),
}
