//! The manager's decisions: which processes are registered, which sessions run, what is sent to each provider
//! and when its buffer goes into the archive.
//!
//! No I/O happens here, and there is no clock: events and the time come in, actions go out. So tests can play
//! through every schedule of a trace without a process. Handles stay outside; everything is identified by
//! number.

mod observers;
mod scope;
mod session;
mod sessions;
mod stats;
mod tracee;

use scope::Scope;
use session::Session;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
pub use trace_archive::transfer::Part;
use trace_format::units::ProviderId;
use trace_protocol::controller::{
    Alert, FlushError, ObserveError, ProviderStats, SessionState, SnapshotError, StartError, StartOptions,
    StopError, StopOptions, StopResult, TraceConfig, Untraced,
};
use trace_protocol::{BufferDisposition, BufferingMode, FifoRequest, PacketError};

/// One client's session channel, and its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A user, as the kernel numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uid(pub u32);

impl Uid {
    /// The user who may see all processes.
    pub const ROOT: Self = Self(0);

    /// Whether this user may see data of another user, in a manager of `owner`'s.
    //= docs/protocol.md#users
    pub(crate) fn may_see(self, other: Self, owner: Self) -> bool {
        self == other || self == owner || self == Self::ROOT
    }
}

/// The users whose programs are being recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recorded {
    /// Those of all users that the manager serves.
    All,
    /// Those of one user.
    User(Uid),
}

/// Time since the manager started.
pub type Now = Duration;

/// A provider's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It has ended: no thread of it writes into its buffer any more.
    Dead,
    /// It has not ended, and can be watched.
    Alive,
    /// No descriptor reports whether it has ended.
    Unknown,
}

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
        /// The name it gave itself.
        name: String,
        /// Its process.
        pid: u64,
        /// Its user.
        uid: Uid,
        /// The reason, for people.
        reason: String,
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
        /// The reason, for people.
        reason: String,
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

/// An action for the daemon, in this order.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Send a client the reason for a refusal, then close its session channel.
    RefuseClient {
        /// Its session channel.
        client: ClientId,
        /// The reason, for people.
        reason: String,
    },
    /// Write the head of the archive.
    BeginArchive {
        /// Its session.
        client: ClientId,
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

/// Snapshots under way, of all users; their readers may be slow.
const MAX_SNAPSHOTS: usize = 16;
/// Those of one user.
const MAX_SNAPSHOTS_OF_A_USER: usize = 4;

/// A registered provider.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Provider {
    name: String,
    pid: u64,
    uid: Uid,
    is_late: bool,
}

/// The manager's state.
#[derive(Debug, Default)]
pub struct Core {
    owner: Uid,
    providers: BTreeMap<ProviderId, Provider>,
    sessions: BTreeMap<ClientId, Session>,
    /// The sessions of which a snapshot is being taken, which may be over, and the clients that wait for it,
    /// with their users.
    snapshots: BTreeMap<ClientId, (ClientId, Uid)>,
    actions: VecDeque<Action>,
}

impl Core {
    /// A user's manager, with no providers and no clients.
    #[must_use]
    pub fn new(owner: Uid) -> Self {
        Self { owner, ..Self::default() }
    }

    /// Handles an event.
    pub fn handle_event(&mut self, now: Now, event: Event) {
        match event {
            Event::ProviderRegistered { provider, name, pid, uid, is_late, is_waiting } => {
                let registered = Provider { name, pid, uid, is_late };
                let mut session = self.sessions.values_mut().find(|session| session.takes(&registered));
                if let Some(session) = &mut session {
                    session.handle_new_provider(provider, &registered, &mut self.actions);
                }
                // The recording has ended since that was answered.
                if is_waiting && session.is_none_or(|session| !session.is_running()) {
                    self.actions.push_back(Action::StopTracee(provider));
                }
                self.providers.insert(provider, registered);
            }
            Event::ProviderRefused { name, pid, uid, reason } => {
                let refused = Provider { name, pid, uid, is_late: false };
                if let Some(session) = self.sessions.values_mut().find(|session| session.takes(&refused)) {
                    session.handle_refused(refused.name, pid, reason, &mut self.actions);
                }
            }
            Event::ProviderClosed { provider, process } => {
                self.providers.remove(&provider);
                self.with_session(provider, |session, actions| {
                    session.handle_closed(now, provider, process, actions);
                });
            }
            Event::FifoClosed { provider, process } => {
                self.with_session(provider, |session, actions| {
                    session.handle_closed(now, provider, process, actions);
                });
            }
            Event::ProcessDied { provider } => {
                self.with_session(provider, |session, actions| session.handle_death(provider, actions));
            }
            Event::TraceeFailed { provider, reason } => {
                self.with_session(provider, |session, actions| {
                    session.handle_failed(provider, reason, actions);
                });
            }
            Event::Packet { provider, packet } => {
                self.with_session(provider, |session, actions| {
                    session.handle_packet(provider, packet, actions);
                });
            }
            Event::HandedOver { provider, from } => match self.session_with(from) {
                Some((session, actions)) => session.handle_handed_over(provider, from, actions),
                None => self.actions.push_back(Action::LeaveBuffer(provider)),
            },
            Event::TransferFinished { provider, stats, is_complete } => {
                self.with_session(provider, |session, actions| {
                    session.handle_transferred(provider, stats, is_complete, actions);
                });
            }
            Event::PartWritten { provider } => {
                self.with_session(provider, |session, actions| session.handle_written(provider, actions));
            }
            Event::Initialize { client, pid, uid, config } => self.initialize(client, pid, uid, config),
            Event::Start { client, options } => match self.session_of(client) {
                Some((session, actions)) => session.handle_start(now, options, actions),
                None => {
                    self.actions.push_back(Action::ReplyStart(client, Err(StartError::NotInitialized)));
                }
            },
            Event::Stop { client, options } => match self.session_of(client) {
                Some((session, actions)) => session.handle_stop(now, options, actions),
                None => {
                    self.actions.push_back(Action::ReplyStop(client, Err(StopError::NotInitialized)));
                }
            },
            Event::WatchAlert { client } => {
                if let Some((session, actions)) = self.session_of(client) {
                    session.handle_watch_alert(actions);
                }
            }
            Event::Flush { client } => match self.session_of(client) {
                Some((session, actions)) => session.handle_flush(actions),
                None => {
                    self.actions.push_back(Action::ReplyFlush(client, Err(FlushError::NotInitialized)));
                }
            },
            Event::Snapshot { client, uid, program } => self.begin_snapshot(client, uid, program.as_deref()),
            Event::SnapshotFinished { session, result } => {
                if let Some((client, _)) = self.snapshots.remove(&session) {
                    self.actions.push_back(Action::ReplySnapshot(client, result));
                }
            }
            Event::Observe { client, uid, program } => self.observe(client, uid, program.as_deref()),
            Event::ObserverClosed { client } => {
                self.sessions.values_mut().for_each(|session| session.observers.remove(client));
            }
            Event::ClientClosed { client } => {
                if let Some((session, actions)) = self.session_of(client) {
                    session.terminate(now, actions);
                }
            }
            Event::OutputFailed { client, reason } => {
                if let Some((session, actions)) = self.session_of(client) {
                    session.abort(now, reason, actions);
                }
            }
        }
        self.settle();
    }

    /// Handles the passing of time: does what is due.
    pub fn handle_time(&mut self, now: Now) {
        for session in self.sessions.values_mut() {
            session.handle_time(now, &mut self.actions);
        }
        self.settle();
    }

    /// When [`Core::handle_time`] is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        self.sessions.values().filter_map(Session::next_deadline).min()
    }

    /// The next thing to do outside.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Begins a session, unless a program that it asks for may be asked for by another one.
    //= docs/protocol.md#several-sessions
    fn initialize(&mut self, client: ClientId, pid: u32, uid: Uid, config: TraceConfig) {
        if let Some(reason) = self.refusal(uid, &config) {
            self.actions.push_back(Action::RefuseClient { client, reason });
            return;
        }
        let mut session = Session::new(client, pid, uid, self.owner, config);
        session.begin(&mut self.actions);
        for (id, provider) in &self.providers {
            if session.takes(provider) {
                session.handle_new_provider(*id, provider, &mut self.actions);
            }
        }
        session.finish_initialize(&mut self.actions);
        self.sessions.insert(client, session);
    }

    /// Why a session that a user asks for would be refused.
    #[must_use]
    pub fn refusal(&self, uid: Uid, config: &TraceConfig) -> Option<String> {
        let scope = Scope::new(uid, self.owner, &config.programs);
        let other = self.sessions.values().find(|other| other.scope().overlaps(&scope))?;
        Some(format!("the trace manager is in use by {}", self.shown_to(uid, other)))
    }

    /// One of a session at a time, and few of a user, so that clients cannot have any number of them.
    fn begin_snapshot(&mut self, client: ClientId, uid: Uid, program: Option<&str>) {
        let refuse = |error| Action::ReplySnapshot(client, Err(error));
        let of_user = self.snapshots.values().filter(|(_, other)| *other == uid).count();
        let is_busy = self.snapshots.len() >= MAX_SNAPSHOTS || of_user >= MAX_SNAPSHOTS_OF_A_USER;
        let copied = self.sessions_of(uid, program, |session| Some((session.client(), session.snapshot()?)));
        self.actions.push_back(match &copied[..] {
            [] => refuse(SnapshotError::NotStarted),
            [_] if is_busy => refuse(SnapshotError::Busy),
            [(session, _)] if self.snapshots.contains_key(session) => refuse(SnapshotError::Busy),
            [(session, (config, providers))] => {
                self.snapshots.insert(*session, (client, uid));
                let (config, providers) = (config.clone(), providers.clone());
                Action::TakeSnapshot { client, session: *session, config, providers }
            }
            _ => refuse(SnapshotError::Several),
        });
    }

    /// Adds an observer of a session.
    fn observe(&mut self, client: ClientId, uid: Uid, program: Option<&str>) {
        let result = match self.sessions_of(uid, program, |session| Some(session.client()))[..] {
            [] => Err(ObserveError::NothingRecorded),
            [id] => match self.sessions.get_mut(&id) {
                Some(session) => session.observers.add(client).map(|()| id),
                None => Err(ObserveError::NothingRecorded),
            },
            _ => Err(ObserveError::Several),
        };
        self.actions.push_back(Action::ReplyObserve(client, result));
    }

    fn session_of(&mut self, client: ClientId) -> Option<(&mut Session, &mut VecDeque<Action>)> {
        Some((self.sessions.get_mut(&client)?, &mut self.actions))
    }

    /// The session in which a provider takes part.
    fn session_with(&mut self, provider: ProviderId) -> Option<(&mut Session, &mut VecDeque<Action>)> {
        let session = self.sessions.values_mut().find(|session| session.has(provider))?;
        Some((session, &mut self.actions))
    }

    fn with_session(&mut self, provider: ProviderId, act: impl FnOnce(&mut Session, &mut VecDeque<Action>)) {
        if let Some((session, actions)) = self.session_with(provider) {
            act(session, actions);
        }
    }

    /// Moves the sessions on as far as they can go.
    fn settle(&mut self) {
        self.sessions.retain(|_, session| {
            let is_over = session.settle(&mut self.actions);
            if is_over {
                session.observers.end(&mut self.actions);
            }
            !is_over
        });
    }
}

#[cfg(test)]
mod tests;
