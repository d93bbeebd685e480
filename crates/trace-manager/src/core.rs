//! The manager's decisions: which processes are registered, which sessions run, what is sent to each provider
//! and when its buffer goes into the archive.
//!
//! No I/O happens here, and there is no clock: events and the time come in, actions go out. So tests can play
//! through every schedule of a trace without a process. Handles stay outside; everything is identified by
//! number.

mod action;
mod event;
mod observers;
mod scope;
mod session;
mod sessions;
mod stats;
mod tracee;
mod unmade;

pub use action::Action;
pub use event::Event;
use scope::Scope;
use session::Session;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
pub use trace_archive::transfer::Part;
use trace_format::units::ProviderId;
use trace_protocol::controller::{
    FlushError, ObserveError, Recorder, Refusal, SnapshotError, StartError, StopError, TraceConfig,
};
pub use unmade::Unmade;

/// One client's session channel, and its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

impl ClientId {
    /// Tasks of the manager's own, in place of a client, have numbers from here on: those of session channels
    /// have 32 bits.
    pub const FIRST_TASK: u64 = 1 << 32;

    /// It is a task of the manager's own.
    #[must_use]
    pub fn is_task(self) -> bool {
        self.0 >= Self::FIRST_TASK
    }
}

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
            Event::ProviderRefused { provider, name, pid, uid, reason } => {
                let refused = Provider { name, pid, uid, is_late: false };
                if let Some(session) = self.sessions.values_mut().find(|session| session.takes(&refused)) {
                    session.handle_refused(provider, (refused.name, pid), reason, &mut self.actions);
                }
            }
            Event::ProviderGaveUp { provider, name, pid, uid, sessions } => {
                let gone = Provider { name, pid, uid, is_late: true };
                let mut waited_for =
                    self.sessions.values_mut().filter(|one| sessions.contains(&one.client()));
                if let Some(session) = waited_for.find(|session| session.takes(&gone)) {
                    session.handle_gave_up(provider, (gone.name, pid), &mut self.actions);
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
                    session.handle_failed(provider, &reason, actions);
                });
            }
            Event::BrokeProtocol { provider, problem } => {
                self.with_session(provider, |session, actions| {
                    session.handle_broken(provider, &problem, actions);
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
        if let Some(refusal) = self.refusal(uid, &config) {
            self.actions.push_back(Action::RefuseClient { client, refusal });
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
    pub fn refusal(&self, uid: Uid, config: &TraceConfig) -> Option<Refusal> {
        let scope = Scope::new(uid, self.owner, config);
        let other = self.sessions.values().find(|other| other.scope().overlaps(&scope))?;
        let is_seen = uid.may_see(other.scope().uid(), self.owner);
        Some(Refusal {
            reason: format!("the trace manager is in use by {}", self.shown_to(uid, other)),
            recorder: Some(Recorder {
                pid: is_seen.then(|| other.pid().into()),
                started: None,
                uid: other.scope().uid().0,
                is_task: other.client().is_task(),
                program: other.scope().common(&scope).filter(|_| is_seen),
            }),
            limit: None,
        })
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
