//! What happens outside the core.

use super::{ClientId, ProcessState, Uid, Unmade};
use trace_format::units::ProviderId;
use trace_protocol::controller::{
    ProviderStats, SnapshotError, StartOptions, StopOptions, StopResult, TraceConfig,
};
use trace_protocol::{FifoRequest, PacketError};

/// An event outside the core.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub enum Event {
    /// A provider was accepted.
    ProviderRegistered {
        /// Its number, new for each registration.
        provider: ProviderId,
        /// The name it gave itself.
        name: String,
        /// Its process.
        pid: u64,
        /// Its user.
        uid: Uid,
        /// The application's wait for its registration has timed out, so that it runs already.
        is_late: bool,
        /// The application waits for a start, as it was answered that there is a recording.
        is_waiting: bool,
    },
    /// A provider wanted to register, and was refused.
    ProviderRefused {
        /// Its number, which is in the archive alone.
        provider: ProviderId,
        /// The name it gave itself.
        name: String,
        /// Its process.
        pid: u64,
        /// Its user.
        uid: Uid,
        /// The reason, for people.
        reason: String,
    },
    /// A program has stopped waiting before it was known.
    ProviderGaveUp {
        /// Its number, which is in the archive alone.
        provider: ProviderId,
        /// The name it gave itself.
        name: String,
        /// Its process.
        pid: u64,
        /// Its user.
        uid: Uid,
        /// The sessions that it can have waited for.
        sessions: Vec<ClientId>,
    },
    /// A provider's channel was closed, by itself or by its death: it is no longer registered.
    ProviderClosed {
        /// The provider.
        provider: ProviderId,
        /// Its process, as it is now.
        process: ProcessState,
    },
    /// A provider's FIFO was closed while its channel is open: it has left the session, and stays registered.
    FifoClosed {
        /// The provider.
        provider: ProviderId,
        /// Its process, as it is now.
        process: ProcessState,
    },
    /// A watched process is dead.
    ProcessDied {
        /// Its provider.
        provider: ProviderId,
    },
    /// The buffer or FIFO for a provider could not be made.
    TraceeFailed {
        /// The provider.
        provider: ProviderId,
        /// The reason.
        reason: Unmade,
    },
    /// A provider has sent what is no message or no packet.
    BrokeProtocol {
        /// The provider.
        provider: ProviderId,
        /// What it has sent, for people.
        problem: String,
    },
    /// A packet came from a provider's FIFO.
    Packet {
        /// The provider.
        provider: ProviderId,
        /// The packet, or the error in it.
        packet: Result<FifoRequest, PacketError>,
    },
    /// A provider has handed over what it had recorded before, which counts as a provider that has ended.
    HandedOver {
        /// Its number, which has a buffer and nothing else.
        provider: ProviderId,
        /// The provider.
        from: ProviderId,
    },
    /// A part of a provider's buffer was read, and is on its way into the archive: the next part can be read.
    TransferFinished {
        /// The provider.
        provider: ProviderId,
        /// The findings in its buffer, in this run so far. The core fills in name, pid and disposition.
        stats: ProviderStats,
        /// The part was read to its end; otherwise the buffer cannot be read.
        is_complete: bool,
    },
    /// A part that was read is written; parts are written in the order in which they were read.
    PartWritten {
        /// Its provider.
        provider: ProviderId,
    },
    /// A client asks for a session.
    Initialize {
        /// Its session channel.
        client: ClientId,
        /// Its process.
        pid: u32,
        /// Its user.
        uid: Uid,
        /// The options of the session.
        config: TraceConfig,
    },
    /// The client asks to start recording.
    Start {
        /// Its session channel.
        client: ClientId,
        /// The options of the start.
        options: StartOptions,
    },
    /// The client asks to stop recording.
    Stop {
        /// Its session channel.
        client: ClientId,
        /// Whether the data is wanted.
        options: StopOptions,
    },
    /// The client waits for an alert.
    WatchAlert {
        /// Its session channel.
        client: ClientId,
    },
    /// The client asks for the data recorded so far, while streaming.
    Flush {
        /// Its session channel.
        client: ClientId,
    },
    /// A client asks for a copy of what is in the buffers.
    Snapshot {
        /// Its provisioner channel.
        client: ClientId,
        /// Its user.
        uid: Uid,
        /// A program of the session that is meant.
        program: Option<String>,
    },
    /// The copy has been handed over in full, or its recipient has gone.
    SnapshotFinished {
        /// The session that was copied.
        session: ClientId,
        /// The findings in each buffer.
        result: Result<StopResult, SnapshotError>,
    },
    /// A client asks for what a running session records, while it does.
    Observe {
        /// Its number as an observer.
        client: ClientId,
        /// Its user.
        uid: Uid,
        /// A program of the session that is meant.
        program: Option<String>,
    },
    /// An observer does not read any more.
    ObserverClosed {
        /// Its number.
        client: ClientId,
    },
    /// The client's session channel was closed.
    ClientClosed {
        /// Its session channel.
        client: ClientId,
    },
    /// A client's output takes no more: its reader is gone, or writing failed.
    OutputFailed {
        /// The client.
        client: ClientId,
        /// The reason, for people.
        reason: String,
    },
}
