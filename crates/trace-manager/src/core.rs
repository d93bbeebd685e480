//! The manager's decisions: which processes are registered, which session runs, what is sent to each provider
//! and when its buffer goes into the archive.
//!
//! No I/O happens here, and there is no clock: events and the time come in, actions go out. So tests can play
//! through every schedule of a trace without a process. Handles stay outside; everything is identified by
//! number.

mod observers;
mod session;
mod stats;
mod tracee;

use observers::Observers;
use session::Session;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
pub use trace_archive::transfer::Part;
use trace_format::units::ProviderId;
use trace_protocol::controller::{
    Alert, FlushError, ObserveError, ProviderInfo, ProviderStats, SessionState, SnapshotError, StartError,
    StartOptions, StopError, StopOptions, StopResult, TraceConfig, Untraced,
};
use trace_protocol::memory::MemoryDumps;
use trace_protocol::{BufferDisposition, BufferingMode, FifoRequest, PacketError};

/// One client's session channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A user, as the kernel numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    },
    /// The copy has been handed over in full, or its recipient has gone.
    SnapshotFinished {
        /// The findings in each buffer.
        result: Result<StopResult, SnapshotError>,
    },
    /// A client asks for what the running session records, while it does.
    Observe {
        /// Its number as an observer.
        client: ClientId,
        /// Its user.
        uid: Uid,
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
    /// The client's output takes no more: its reader is gone, or writing failed.
    OutputFailed {
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
        /// The options of the session.
        config: TraceConfig,
        /// The user who owns the file.
        uid: Uid,
    },
    /// Make a provider's buffer and FIFO and send Initialize.
    InitializeTracee {
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
        /// The options of the running session.
        config: TraceConfig,
        /// The providers with data in their buffers.
        providers: Vec<ProviderId>,
    },
    /// Answer a TakeSnapshot; if it was refused, close its output.
    ReplySnapshot(ClientId, Result<StopResult, SnapshotError>),
    /// Answer an Observe; if it was refused, close its output.
    ReplyObserve(ClientId, Result<(), ObserveError>),
    /// Send an observer what it has not received yet of the session, which is over, and close its output.
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
    session: Option<Session>,
    /// The client that waits for a snapshot.
    snapshot: Option<ClientId>,
    observers: Observers,
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
            Event::ProviderRegistered { provider, name, pid, uid, is_late } => {
                let registered = Provider { name, pid, uid, is_late };
                let owner = self.owner;
                if let Some(session) =
                    self.session.as_mut().filter(|session| session.uid().may_see(uid, owner))
                {
                    session.handle_new_provider(provider, &registered, &mut self.actions);
                }
                // For the next session, it has been there from the start.
                self.providers.insert(provider, Provider { is_late: false, ..registered });
            }
            Event::ProviderRefused { name, pid, uid, reason } => {
                let owner = self.owner;
                self.with_session(|session, actions| {
                    if session.uid().may_see(uid, owner) {
                        session.handle_refused(name, pid, reason, actions);
                    }
                });
            }
            Event::ProviderClosed { provider, process } => {
                self.providers.remove(&provider);
                self.with_session(|session, actions| session.handle_closed(now, provider, process, actions));
            }
            Event::FifoClosed { provider, process } => {
                self.with_session(|session, actions| session.handle_closed(now, provider, process, actions));
            }
            Event::ProcessDied { provider } => {
                self.with_session(|session, actions| session.handle_death(provider, actions));
            }
            Event::TraceeFailed { provider, reason } => {
                self.with_session(|session, actions| session.handle_failed(provider, reason, actions));
            }
            Event::Packet { provider, packet } => {
                self.with_session(|session, actions| session.handle_packet(provider, packet, actions));
            }
            Event::HandedOver { provider, from } => match &mut self.session {
                Some(session) => session.handle_handed_over(provider, from, &mut self.actions),
                None => self.actions.push_back(Action::LeaveBuffer(provider)),
            },
            Event::TransferFinished { provider, stats, is_complete } => {
                self.with_session(|session, actions| {
                    session.handle_transferred(provider, stats, is_complete, actions);
                });
            }
            Event::PartWritten { provider } => {
                self.with_session(|session, actions| session.handle_written(provider, actions));
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
            Event::Snapshot { client, uid } => self.begin_snapshot(client, uid),
            Event::SnapshotFinished { result } => {
                if let Some(client) = self.snapshot.take() {
                    self.actions.push_back(Action::ReplySnapshot(client, result));
                }
            }
            Event::Observe { client, uid } => {
                let session = self.session.as_ref().map(Session::uid);
                let session = session.filter(|session| uid.may_see(*session, self.owner));
                self.observers.add(client, session, &mut self.actions);
            }
            Event::ObserverClosed { client } => self.observers.remove(client),
            Event::ClientClosed { client } => {
                if let Some((session, actions)) = self.session_of(client) {
                    session.terminate(now, actions);
                }
            }
            Event::OutputFailed { reason } => {
                self.with_session(|session, actions| session.abort(now, reason, actions));
            }
        }
        self.settle();
    }

    /// Handles the passing of time: does what is due.
    pub fn handle_time(&mut self, now: Now) {
        self.with_session(|session, actions| session.handle_time(now, actions));
        self.settle();
    }

    /// When [`Core::handle_time`] is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        self.session.as_ref().and_then(Session::next_deadline)
    }

    /// The next thing to do outside.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether the session ends as soon as its archive is written.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.state() == SessionState::Terminating)
    }

    /// Whether a session exists.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Whether a recording of a user's runs or is about to: sent to each provider that registers.
    #[must_use]
    pub fn is_started(&self, uid: Uid) -> bool {
        let session = self.session.as_ref().filter(|session| session.uid().may_see(uid, self.owner));
        let state = session.map(Session::state);
        matches!(state, Some(SessionState::Starting | SessionState::Started))
    }

    /// The users whose programs are recorded from the start on if they start now: those for whom
    /// [`Core::is_started`] is true.
    //= docs/protocol.md#a-recording-is-announced
    #[must_use]
    pub fn recorded(&self) -> Option<Recorded> {
        let uid = self.session.as_ref()?.uid();
        self.is_started(uid).then(|| match uid == self.owner || uid == Uid::ROOT {
            true => Recorded::All,
            false => Recorded::User(uid),
        })
    }

    /// The registered providers that a user may see, by number.
    #[must_use]
    pub fn providers(&self, uid: Uid) -> Vec<ProviderInfo> {
        self.providers
            .iter()
            .filter(|(_, provider)| uid.may_see(provider.uid, self.owner))
            .map(|(id, provider)| ProviderInfo { id: id.0, pid: provider.pid, name: provider.name.clone() })
            .collect()
    }

    /// The providers that record now, if a user may see the session; none otherwise. Without a user, the
    /// session may be any user's.
    //= docs/protocol.md#memory-dumps
    #[must_use]
    pub fn recording(&self, uid: Option<Uid>) -> Option<Vec<ProviderId>> {
        let session = self.session.as_ref();
        session.filter(|session| uid.is_none_or(|uid| uid.may_see(session.uid(), self.owner)))?.recording()
    }

    /// The results of the running session's providers that no longer take part.
    #[must_use]
    pub fn ended(&self) -> Vec<ProviderStats> {
        self.session.as_ref().map(Session::ended).unwrap_or_default()
    }

    /// The client of the running session, if it wants to know the categories of its providers.
    #[must_use]
    pub fn wants_known_categories(&self) -> Option<ClientId> {
        let session = self.session.as_ref()?;
        session.wants_known_categories().then(|| session.client())
    }

    /// The state of the running session, and how it uses buffers.
    #[must_use]
    pub fn session_state(&self) -> Option<(SessionState, BufferingMode)> {
        self.session.as_ref().map(|session| (session.state(), session.buffering_mode()))
    }

    /// Halves of a provider's buffer that are saved since it was cleared.
    #[must_use]
    pub fn saved_halves(&self, provider: ProviderId) -> u64 {
        self.session.as_ref().map_or(0, |session| session.saved_halves(provider))
    }

    /// The periodic memory dumps of the running session.
    #[must_use]
    pub fn memory_dumps(&self) -> Option<MemoryDumps> {
        let session = self.session.as_ref()?;
        session.recording().and(session.memory_dumps())
    }

    /// How often programs of the running session hand over their data while little happens.
    #[must_use]
    pub fn write_period(&self) -> Option<Duration> {
        self.session.as_ref()?.write_period()
    }

    /// Has them hand over their data.
    //= docs/protocol.md#flush
    pub fn flush(&mut self) {
        self.with_session(|session, actions| session.flush(actions));
    }

    fn initialize(&mut self, client: ClientId, pid: u32, uid: Uid, config: TraceConfig) {
        if let Some(session) = &self.session {
            let owner = match uid.may_see(session.uid(), self.owner) {
                true => session.owner(),
                false => format!("user {}", session.uid().0),
            };
            let reason = format!("the trace manager is in use by {owner}");
            self.actions.push_back(Action::RefuseClient { client, reason });
            return;
        }
        self.actions.push_back(Action::BeginArchive { config: config.clone(), uid });
        let mut session = Session::new(client, pid, uid, config);
        let visible = self.providers.iter().filter(|(_, provider)| uid.may_see(provider.uid, self.owner));
        for (id, provider) in visible {
            session.handle_new_provider(*id, provider, &mut self.actions);
        }
        session.finish_initialize(&mut self.actions);
        self.session = Some(session);
    }

    /// One at a time, so that a client cannot have any number of them.
    fn begin_snapshot(&mut self, client: ClientId, uid: Uid) {
        let refuse = |error| Action::ReplySnapshot(client, Err(error));
        let session = self.session.as_ref().filter(|session| uid.may_see(session.uid(), self.owner));
        self.actions.push_back(match session.and_then(Session::snapshot) {
            Some(_) if self.snapshot.is_some() => refuse(SnapshotError::Busy),
            Some((config, providers)) => {
                self.snapshot = Some(client);
                Action::TakeSnapshot { client, config, providers }
            }
            None => refuse(SnapshotError::NotStarted),
        });
    }

    fn session_of(&mut self, client: ClientId) -> Option<(&mut Session, &mut VecDeque<Action>)> {
        let session = self.session.as_mut().filter(|session| session.client() == client)?;
        Some((session, &mut self.actions))
    }

    fn with_session(&mut self, act: impl FnOnce(&mut Session, &mut VecDeque<Action>)) {
        if let Some(session) = &mut self.session {
            act(session, &mut self.actions);
        }
    }

    /// Moves the session on as far as it can go.
    fn settle(&mut self) {
        if let Some(session) = &mut self.session
            && session.settle(&mut self.actions)
        {
            self.session = None;
            self.observers.end(&mut self.actions);
        }
    }
}

#[cfg(test)]
mod tests;
