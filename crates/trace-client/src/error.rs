//! Why a request failed.

use std::io;
use std::path::PathBuf;
use std::time::Duration;
use trace_format::shown::Shown;
use trace_protocol::ProtocolError;
use trace_protocol::controller::Refusal;
use trace_reader::ReadError;

/// The result of a request.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No manager runs, and none was to be started.
    #[error("no trace manager runs")]
    NoManager,
    /// There is no directory in which a manager could run.
    #[error("no directory is suitable as runtime directory")]
    NoDirectory,
    /// The runtime directory cannot be used.
    #[error("the runtime directory {} cannot be used", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What is wrong with it.
        source: zx_sim::Error,
    },
    /// The manager's socket belongs to another user, who could be anybody.
    #[error("{} belongs to user {owner}, not to user {user}: not used", socket.display())]
    NotTrusted {
        /// The socket.
        socket: PathBuf,
        /// The user who listens there.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// The manager's executable was not found.
    #[error("cannot find the trace tool: it is neither named nor in PATH")]
    NoTool,
    /// The manager's executable cannot be run.
    #[error("cannot start a trace manager")]
    CannotStart(#[source] io::Error),
    /// The manager ended instead of listening.
    #[error("the trace manager did not start: {}", Shown(.0))]
    DidNotStart(String),
    /// The manager does not listen.
    #[error("the trace manager did not start within {0:?}")]
    StartTimeout(Duration),
    /// The manager does not accept the connection.
    #[error("the trace manager is busy with other programs, or hangs")]
    Busy,
    /// The manager does not answer a request.
    #[error("the trace manager does not answer")]
    NoAnswer,
    /// The manager has closed the connection.
    #[error("the trace manager closed the connection")]
    Closed,
    /// The manager has closed the session, and may be dead.
    #[error("the trace manager is gone")]
    ManagerGone,
    /// The manager does not serve this client.
    #[error("the trace manager refused: {}", Shown(&.0.reason))]
    Refused(Refusal),
    /// The manager answered something else than was asked.
    #[error("the trace manager sent an unexpected answer")]
    UnexpectedAnswer,
    /// The manager sent what is no message of the protocol.
    #[error("the trace manager speaks another protocol")]
    Protocol(#[source] ProtocolError),
    /// A request cannot be sent as it is: it has more categories than a message, for example.
    #[error(transparent)]
    Request(ProtocolError),
    /// The manager does not share connections: it is of an earlier release, or shares as many as it may.
    #[error("the trace manager does not share connections: it is of an earlier release, or shares too many")]
    NotShared,
    /// Several recordings run, and the request does not name a program of the one that is meant.
    #[error("several recordings are running")]
    SeveralRecordings,
    /// Nothing is being recorded.
    #[error("nothing is being recorded")]
    NothingRecorded,
    /// Another snapshot is being taken.
    #[error("another snapshot is being taken; try again")]
    SnapshotBusy,
    /// A snapshot was cut off.
    #[error("the snapshot was cut off")]
    SnapshotCutOff,
    /// A snapshot cannot be written.
    #[error("cannot write the snapshot")]
    Snapshot(#[source] io::Error),
    /// What the manager sent as a snapshot is no archive.
    #[error("cannot read the snapshot")]
    UnreadableSnapshot(#[source] ReadError),
    /// No recording could begin.
    #[error("unable to start trace: {}", Shown(&.0.reason))]
    Start(Refusal),
    /// The recording could not be ended.
    #[error("unable to stop trace: {}", Shown(.0))]
    Stop(String),
    /// Data could not be requested.
    #[error("cannot flush: {}", Shown(.0))]
    Flush(String),
    /// The archive's file cannot be made.
    #[error("cannot write {}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The archive cannot be compressed.
    #[error("cannot compress the trace")]
    Compress(#[source] io::Error),
    /// The archive of a recording that is not complete cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The format has nothing for what was recorded. The archive stays.
    #[error("nothing of what was recorded can be expressed in this format")]
    NothingConverted,
    /// The archive cannot be converted. It stays.
    #[cfg(feature = "convert")]
    #[error("cannot convert the trace")]
    Convert(#[source] trace_convert::ConvertError),
    /// The archive cannot be written.
    #[error("cannot write the trace")]
    Write(#[source] io::Error),
    /// The pipe or connection that the archive is written into has no reader any more.
    #[error("cannot write the trace: its reader is gone")]
    ReaderGone,
    /// The recording is not complete. What programs still have in their buffers, `trace recover` adds.
    #[error("{} has what had arrived", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// Why it is not complete.
        source: Box<Error>,
    },
    /// The recording has ended before.
    #[error("the recording is over")]
    Over,
    /// The thread of a client or a recording could not be started, or has failed.
    #[error("the client's thread has failed")]
    Thread(#[source] Option<io::Error>),
    /// The operating system's error.
    #[error(transparent)]
    System(#[from] zx_sim::Error),
}
