//! Questions of the daemon and of clients about the sessions that run.

use super::{ClientId, Core, Recorded, Session, Uid};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use trace_format::units::ProviderId;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{ProviderInfo, ProviderStats, SessionState};
use trace_protocol::limits::{MAX_RECORDING_BYTES, cut};
use trace_protocol::memory::MemoryDumps;

impl Core {
    /// Whether a session ends as soon as its archive is written.
    #[must_use]
    pub fn is_terminating(&self, client: ClientId) -> bool {
        let session = self.sessions.get(&client);
        session.is_some_and(|session| session.state() == SessionState::Terminating)
    }

    /// Whether a session exists.
    #[must_use]
    pub fn has_session(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// Whether this session exists.
    #[must_use]
    pub fn has(&self, client: ClientId) -> bool {
        self.sessions.contains_key(&client)
    }

    /// Whether a program of a user's is recorded, or about to be: sent to each provider that registers.
    #[must_use]
    pub fn is_started(&self, uid: Uid, name: &str) -> bool {
        self.sessions.values().any(|session| session.is_running() && session.scope().has(uid, name))
    }

    /// The users some of whose programs are recorded from the start on if they start now.
    //= docs/protocol.md#a-recording-is-announced
    #[must_use]
    pub fn recorded(&self) -> BTreeSet<Recorded> {
        let running = self.sessions.values().filter(|session| session.is_running());
        let users = running.flat_map(|session| match session.scope().users() {
            None => vec![Recorded::All],
            Some(users) => users.iter().copied().map(Recorded::User).collect(),
        });
        users.collect()
    }

    /// The tags of markers that are recorded of users' programs, whether or not these are providers.
    //= docs/protocol.md#markers-that-are-wanted
    #[must_use]
    pub fn wanted_markers(&self) -> BTreeMap<Recorded, u64> {
        let mut wanted = BTreeMap::new();
        for session in self.sessions.values() {
            let tags = session.wanted_markers();
            let users = session.scope().users().map_or_else(
                || vec![Recorded::All],
                |users| users.iter().copied().map(Recorded::User).collect(),
            );
            for user in users.into_iter().filter(|_| tags != 0) {
                *wanted.entry(user).or_default() |= tags;
            }
        }
        wanted
    }

    /// The registered providers that a user may see, by number.
    #[must_use]
    pub fn providers(&self, uid: Uid) -> Vec<ProviderInfo> {
        let shown = |session: &Session| {
            let is_seen = uid.may_see(session.scope().uid(), self.owner);
            (is_seen.then(|| u64::from(session.pid())), self.shown_to(uid, session))
        };
        // Once: there may be thousands of providers.
        let sessions: Vec<_> = self.sessions.values().map(|session| (session, shown(session))).collect();
        self.providers
            .iter()
            .filter(|(_, provider)| uid.may_see(provider.uid, self.owner))
            .map(|(id, provider)| {
                let session = sessions.iter().find(|(session, _)| session.has(*id));
                ProviderInfo {
                    id: id.0,
                    pid: provider.pid,
                    name: provider.name.clone(),
                    recorded_by: session.and_then(|(_, (pid, _))| *pid),
                    recording: session.map(|(_, (_, text))| cut(text, MAX_RECORDING_BYTES).to_owned()),
                    uid: Some(provider.uid.0),
                }
            })
            .collect()
    }

    /// A session as a user may see it.
    pub(super) fn shown_to(&self, uid: Uid, session: &Session) -> String {
        match uid.may_see(session.scope().uid(), self.owner) {
            true => session.owner(),
            false => format!("user {}", session.scope().uid().0),
        }
    }

    /// What some sessions that a user may see have: those in which the named program takes part, or all.
    //= docs/protocol.md#several-sessions
    pub(super) fn sessions_of<T>(
        &self,
        uid: Uid,
        program: Option<&str>,
        what: impl Fn(&Session) -> Option<T>,
    ) -> Vec<T> {
        self.sessions
            .values()
            .filter(|session| uid.may_see(session.scope().uid(), self.owner))
            .filter(|session| program.is_none_or(|program| session.has_program(program)))
            .filter_map(what)
            .collect()
    }

    /// The providers that record now in sessions that a user may see; none if no such session records.
    //= docs/protocol.md#memory-dumps
    #[must_use]
    pub fn recording(&self, uid: Uid) -> Option<Vec<ProviderId>> {
        let recording = self.sessions_of(uid, None, Session::recording);
        (!recording.is_empty()).then(|| recording.concat())
    }

    /// The providers that record now in a session; none while it does not record.
    #[must_use]
    pub fn recording_in(&self, client: ClientId) -> Option<Vec<ProviderId>> {
        self.sessions.get(&client)?.recording()
    }

    /// The results of a session's providers that no longer take part.
    #[must_use]
    pub fn ended(&self, client: ClientId) -> Vec<ProviderStats> {
        self.sessions.get(&client).map(Session::ended).unwrap_or_default()
    }

    /// The client of a provider's session, if it wants to know the categories of its providers.
    #[must_use]
    pub fn wants_known_categories(&self, provider: ProviderId) -> Option<ClientId> {
        let session = self.sessions.values().find(|session| session.has(provider))?;
        session.wants_known_categories().then(|| session.client())
    }

    /// The state of a session, and how it uses buffers.
    #[must_use]
    pub fn session_state(&self, client: ClientId) -> Option<(SessionState, BufferingMode)> {
        self.sessions.get(&client).map(|session| (session.state(), session.buffering_mode()))
    }

    /// Halves of a provider's buffer that are saved since it was cleared.
    #[must_use]
    pub fn saved_halves(&self, provider: ProviderId) -> u64 {
        self.sessions.values().map(|session| session.saved_halves(provider)).sum()
    }

    /// Halves of a provider's buffer that are saved, or on their way into the archive.
    #[must_use]
    pub fn handed_over_halves(&self, provider: ProviderId) -> u64 {
        self.sessions.values().map(|session| session.handed_over_halves(provider)).sum()
    }

    /// The periodic memory dumps of a session.
    #[must_use]
    pub fn memory_dumps(&self, client: ClientId) -> Option<MemoryDumps> {
        let session = self.sessions.get(&client)?;
        session.recording().and(session.memory_dumps())
    }

    /// How often programs of a session hand over their data while little happens.
    #[must_use]
    pub fn write_period(&self, client: ClientId) -> Option<Duration> {
        self.sessions.get(&client)?.write_period()
    }

    /// Flushes the programs of a session that have handed nothing over by themselves since the last call.
    //= docs/protocol.md#flush
    pub fn flush_quiet(&mut self, client: ClientId) {
        if let Some((session, actions)) = self.session_of(client) {
            session.flush_quiet(actions);
        }
    }
}
