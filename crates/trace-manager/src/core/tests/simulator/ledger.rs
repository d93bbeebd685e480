//! What must hold for each action of the core, whatever the schedule.

use super::super::*;
use std::collections::BTreeSet;
use trace_protocol::controller::ProviderDisposition;
use trace_protocol::limits::MAX_OBSERVERS;

/// What is known of a provider's part in the session.
#[derive(Debug, Default)]
struct Share {
    /// It holds data that is not in the archive.
    is_unsaved: bool,
    /// It has said, since its last Start, that it stopped; or its process is dead.
    is_quiet: bool,
    /// It closed its FIFO or its channel.
    is_closed: bool,
    /// Its process's death is waited for.
    is_watched: bool,
    is_stop_sent: bool,
    is_terminated: bool,
    /// It was started in the present run.
    is_in_run: bool,
    /// The half that has to be transferred next, counted since the buffer was cleared.
    next_half: u32,
    /// What is being transferred: number and durable bytes.
    half: Option<(u32, u64)>,
    /// Transferred in full, but not confirmed to the provider.
    unconfirmed: Option<(u32, u64)>,
}

/// How often the schedules came by.
#[derive(Debug, Default)]
pub struct Reached([(&'static str, u64); 28]);

impl Reached {
    pub fn add(&mut self, other: &Reached) {
        for (corner, count) in other.counts() {
            self.count(corner, count);
        }
    }

    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied().filter(|(corner, _)| !corner.is_empty())
    }

    fn count(&mut self, corner: &'static str, times: u64) {
        let entry = self.0.iter_mut().find(|(known, _)| *known == corner || known.is_empty());
        let (known, count) = entry.expect("room for every corner");
        *known = corner;
        *count += times;
    }
}

/// The shell's memory, against which actions are checked.
#[derive(Debug, Default)]
pub struct Ledger {
    parts: BTreeMap<ProviderId, Share>,
    /// The client that has the session.
    pub client: Option<ClientId>,
    /// Its channel is still open.
    pub is_client_there: bool,
    pub transferring: Option<ProviderId>,
    /// What of it, if it is a half.
    pub transferring_half: Option<(u32, u64)>,
    /// What was read and is not written, with the half if it is one.
    handed_over: VecDeque<(ProviderId, Option<(u32, u64)>)>,
    pub is_start_pending: bool,
    pub is_stop_pending: bool,
    asked_disposition: Option<BufferDisposition>,
    asked_to_write: bool,
    is_output_broken: bool,
    watching: u64,
    /// The sessions of which snapshots are being taken, perhaps longer than they last.
    copied: BTreeSet<ClientId>,
    /// The one of which a snapshot has just been taken.
    was_copied: Option<ClientId>,
    /// Those that were accepted, until they go or the session ends.
    observers: BTreeSet<ClientId>,
    /// The user of an observer that waits for its answer.
    asks_to_observe: Option<Uid>,
    /// The session has ended, and its observers have to be informed.
    unended: BTreeSet<ClientId>,
    state: Option<SessionState>,
    /// Whose each provider is, and whose the session.
    users: BTreeMap<ProviderId, Uid>,
    user: Uid,
    pub reached: Reached,
}

impl Ledger {
    /// Every observer of a session that is over was informed of its end.
    pub fn has_ended_observers(&self) -> bool {
        self.unended.is_empty() && (self.client.is_some() || self.observers.is_empty())
    }

    pub fn state(&self) -> Option<SessionState> {
        self.state
    }

    /// An event is about to be passed to the core.
    pub fn before(&mut self, event: &Event) {
        match event {
            Event::ProviderRegistered { provider, uid, .. } => {
                self.users.insert(*provider, *uid);
            }
            Event::Initialize { client, uid, .. } if self.client == Some(*client) => self.user = *uid,
            Event::Start { client, options } if self.client == Some(*client) => {
                if matches!(self.state, Some(SessionState::Initialized | SessionState::Stopped)) {
                    self.asked_disposition = Some(options.buffer_disposition);
                    self.is_start_pending = true;
                    self.parts.values_mut().for_each(|part| part.is_in_run = false);
                }
            }
            Event::Stop { client, options } if self.client == Some(*client) => {
                let states = [SessionState::Initialized, SessionState::Starting, SessionState::Started];
                if self.state.is_some_and(|state| states.contains(&state)) {
                    self.asked_to_write = options.write_results;
                    self.is_stop_pending = true;
                }
            }
            Event::ProviderClosed { provider, process } | Event::FifoClosed { provider, process } => {
                if let Some(part) = self.parts.get_mut(provider) {
                    part.is_quiet |= *process == ProcessState::Dead;
                    part.is_closed = true;
                }
            }
            Event::ProcessDied { provider } => {
                if let Some(part) = self.parts.get_mut(provider) {
                    part.is_quiet = true;
                }
                self.reached.count("death of a watched process", 1);
            }
            Event::Packet { provider, packet: Ok(FifoRequest::Stopped) } => {
                if let Some(part) = self.parts.get_mut(provider) {
                    part.is_quiet |= part.is_in_run || part.is_stop_sent || part.is_terminated;
                }
            }
            Event::Packet { packet: Err(_), .. } => self.reached.count("bad packet", 1),
            Event::TraceeFailed { provider, .. } => {
                // What was never there cannot be lost.
                if let Some(part) = self.parts.get_mut(provider) {
                    part.is_unsaved = false;
                    part.is_in_run = false;
                }
                self.reached.count("no buffer", 1);
            }
            Event::TransferFinished { provider, is_complete, .. } => {
                assert_eq!(self.transferring.take(), Some(*provider));
                match self.transferring_half.take() {
                    Some(_) if !is_complete => {
                        let part = self.part(*provider);
                        part.half = None;
                        part.next_half += 1;
                    }
                    half => self.handed_over.push_back((*provider, half)),
                }
                let several = u64::from(self.handed_over.len() > 1);
                self.reached.count("several parts on their way", several);
            }
            Event::PartWritten { provider } => {
                let (written, half) = self.handed_over.pop_front().expect("something was read");
                assert_eq!(written, *provider);
                if let Some(half) = half {
                    let part = self.part(*provider);
                    part.half = None;
                    part.next_half += 1;
                    part.unconfirmed = Some(half);
                }
            }
            Event::SnapshotFinished { session, .. } => {
                assert!(self.copied.contains(session), "no snapshot of it was begun");
                self.was_copied = Some(*session);
            }
            Event::ClientClosed { client } if self.client == Some(*client) => self.client_gone(),
            Event::OutputFailed { .. } => {
                self.is_output_broken = self.client.is_some();
                self.transferring = None;
                self.transferring_half = None;
                self.handed_over.clear();
            }
            Event::WatchAlert { .. } => self.watching += 1,
            Event::Observe { uid, .. } => self.asks_to_observe = Some(*uid),
            Event::ObserverClosed { client } => {
                let has_gone = self.observers.remove(client);
                self.reached.count("observer that goes", u64::from(has_gone));
            }
            _ => {}
        }
    }

    fn is_on_its_way(&self, provider: ProviderId) -> bool {
        self.handed_over.iter().any(|(handed_over, _)| *handed_over == provider)
    }

    fn client_gone(&mut self) {
        self.is_client_there = false;
        self.is_start_pending = false;
        self.is_stop_pending = false;
    }

    fn part(&mut self, provider: ProviderId) -> &mut Share {
        self.parts.get_mut(&provider).expect("the provider has a part in the session")
    }

    /// Checks an action and remembers it.
    pub fn check(&mut self, action: &Action) {
        match action {
            Action::RefuseClient { client, .. } => assert_ne!(self.client, Some(*client)),
            Action::BeginArchive { .. } => assert!(self.parts.is_empty()),
            Action::ReportMissing { client, .. } => assert_eq!(self.client, Some(*client)),
            Action::InitializeTracee { provider, .. } => {
                let before = self.parts.insert(*provider, Share::default());
                assert!(before.is_none(), "{provider:?} has a buffer already");
                let others = [Uid::ROOT, self.users[provider]];
                assert!(others.contains(&self.user), "{:?} must not see {provider:?}", self.user);
                self.reached.count("another user's provider", u64::from(self.user != self.users[provider]));
            }
            Action::StartTracee { provider, disposition, .. } => self.check_start(*provider, *disposition),
            Action::StopTracee(provider) => {
                let part = self.part(*provider);
                assert!(part.is_in_run && !part.is_terminated, "{provider:?} does not record");
                part.is_stop_sent = true;
            }
            Action::AskCategories(provider) => assert!(self.parts.contains_key(provider)),
            Action::Untraced(client, _) => assert_eq!(self.client, Some(*client)),
            Action::TerminateTracee(provider) => self.part(*provider).is_terminated = true,
            Action::Transfer { provider, part: Part::Rest { is_quiet }, .. } => {
                self.check_transfer(*provider, *is_quiet);
            }
            Action::Transfer { provider, part: Part::Half { wrapped_count, durable_data_end }, .. } => {
                assert_eq!(self.transferring, None, "one at a time");
                assert!(!self.is_output_broken, "the output is broken");
                let part = self.part(*provider);
                assert!(part.is_unsaved, "{provider:?}: a half after the rest, or of nobody who records");
                assert_eq!(*wrapped_count, part.next_half, "{provider:?}: twice, or one is missing");
                assert_eq!(part.unconfirmed, None, "{provider:?}: it was not reported of the one before");
                part.half = Some((*wrapped_count, *durable_data_end));
                self.transferring = Some(*provider);
                self.transferring_half = Some((*wrapped_count, *durable_data_end));
                self.reached.count("half", 1);
            }
            Action::SendSaved { provider, wrapped_count, durable_data_end } => {
                let reported = self.part(*provider).unconfirmed.take();
                assert_eq!(
                    reported,
                    Some((*wrapped_count, *durable_data_end)),
                    "{provider:?}: it is not saved"
                );
                self.reached.count("half given back", 1);
            }
            Action::FlushTracee(provider) => {
                let state = self.state;
                let part = self.part(*provider);
                assert!(part.is_in_run && !part.is_terminated && state == Some(SessionState::Started));
                self.reached.count("flush", 1);
            }
            Action::ReplyFlush(client, result) => {
                let is_ours = self.client == Some(*client);
                assert_eq!(result.is_ok(), is_ours && self.state == Some(SessionState::Started));
            }
            Action::TakeSnapshot { session, providers, .. } => {
                assert_eq!(self.client, Some(*session));
                assert!(self.copied.insert(*session), "one at a time");
                assert!(self.copied.len() <= MAX_SNAPSHOTS);
                for provider in providers {
                    assert!(self.parts.contains_key(provider), "{provider:?} has no buffer");
                }
                self.reached.count("snapshot", 1);
            }
            Action::ReplySnapshot(_, result) => {
                if result.is_ok() {
                    let session = self.was_copied.take().expect("one was taken");
                    assert!(self.copied.remove(&session), "none was taken");
                }
            }
            Action::ReplyObserve(client, result) => self.check_observe(*client, result.map(|_| ())),
            Action::EndObserver(client) => {
                assert!(self.unended.remove(client), "its session has not ended, or it does not observe");
                self.reached.count("observer to the end", 1);
            }
            Action::WatchProcess(provider) => {
                let part = self.part(*provider);
                assert!(part.is_closed && part.is_unsaved && !part.is_quiet && !part.is_watched);
                part.is_watched = true;
            }
            Action::ForgetProcess(provider) => {
                let part = self.part(*provider);
                assert!(std::mem::take(&mut part.is_watched), "{provider:?} is not watched");
                let is_given_up = u64::from(!part.is_quiet);
                self.reached.count("process that did not die in time", is_given_up);
            }
            Action::DropTracee(provider) => {
                assert_ne!(self.transferring, Some(*provider), "dropped while it is read");
                assert!(!self.is_on_its_way(*provider), "dropped before it is written");
                let part = self.parts.remove(provider).expect("the provider has a part in the session");
                assert!(!part.is_unsaved, "{provider:?}: its data is lost");
                assert!(!part.is_watched, "{provider:?}: its process is still watched");
            }
            Action::LeaveBuffer(provider) => {
                assert!(self.is_output_broken, "{provider:?}: there is an archive for it");
                assert!(self.parts.remove(provider).is_some(), "the provider has a part in the session");
                self.reached.count("left for recovery", 1);
            }
            Action::ReplyStart(client, result) => self.check_start_reply(*client, result),
            Action::ReplyStop(client, result) => self.check_stop_reply(*client, result),
            Action::ReplyAlert(client, _) => {
                assert_eq!(self.client, Some(*client));
                assert!(self.watching > 0, "nobody watches");
                self.watching -= 1;
                self.reached.count("alert answered", 1);
            }
            Action::StateChanged(client, state) => self.check_state(*client, *state),
            Action::EndSession { client, is_aborted } => self.check_end(*client, *is_aborted),
            Action::Waiting(client, names) => {
                assert_eq!(self.client, Some(*client));
                assert!(!names.is_empty() && (self.is_start_pending || self.is_stop_pending), "nobody waits");
                self.reached.count("waiting", 1);
            }
            Action::Log(_) => {}
        }
    }

    //= docs/protocol.md#observers
    fn check_observe(&mut self, client: ClientId, result: Result<(), ObserveError>) {
        let uid = self.asks_to_observe.take().expect("an observer waits for its answer");
        let sees = self.state.is_some() && [Uid::ROOT, self.user].contains(&uid);
        let expected = match (sees, self.observers.len() < MAX_OBSERVERS) {
            (false, _) => Err(ObserveError::NothingRecorded),
            (true, false) => Err(ObserveError::Busy),
            (true, true) => Ok(()),
        };
        assert_eq!(result, expected, "{uid:?}");
        if result.is_ok() {
            self.observers.insert(client);
        }
        self.reached.count(if sees { "observer" } else { "observer without a session" }, 1);
        self.reached.count("too many observers", u64::from(result == Err(ObserveError::Busy)));
    }

    fn check_start(&mut self, provider: ProviderId, disposition: BufferDisposition) {
        let asked = self.asked_disposition;
        let part = self.part(provider);
        assert!(!part.is_terminated, "{provider:?} was reported to terminate");
        if disposition == BufferDisposition::ClearEntire {
            let is_wanted = asked == Some(BufferDisposition::ClearEntire);
            assert!(!part.is_unsaved || is_wanted, "{provider:?}: its data would be cleared");
        } else {
            assert!(part.is_unsaved, "{provider:?}: its data would be written twice");
            assert_eq!(Some(disposition), asked);
            self.reached.count("kept for a second run", 1);
        }
        let part = self.part(provider);
        assert_eq!(part.half, None, "{provider:?}: started while it is read");
        assert!(!self.is_on_its_way(provider), "{provider:?}: started before it is written");
        let part = self.part(provider);
        let next_half = if disposition == BufferDisposition::Retain { part.next_half } else { 0 };
        *part = Share { is_unsaved: true, is_in_run: true, next_half, ..Share::default() };
    }

    fn check_transfer(&mut self, provider: ProviderId, is_quiet: bool) {
        assert_eq!(self.transferring, None, "one at a time");
        assert!(!self.is_output_broken, "the output is broken");
        let part = self.part(provider);
        assert!(part.is_unsaved, "{provider:?} is written twice, or was never started");
        assert!(!is_quiet || part.is_quiet, "{provider:?} may still be written");
        assert!(!part.is_watched, "{provider:?} is read before its process is dead");
        part.is_unsaved = false;
        self.transferring = Some(provider);
        self.reached.count(if is_quiet { "quiet transfer" } else { "live transfer" }, 1);
    }

    fn check_start_reply(&mut self, client: ClientId, result: &Result<(), StartError>) {
        match result {
            Ok(()) => assert!(self.is_start_pending),
            Err(StartError::NotInitialized) => assert_ne!(self.client, Some(client)),
            Err(_) if self.is_output_broken => {}
            Err(_) => return,
        }
        if self.client == Some(client) {
            self.is_start_pending = false;
        }
    }

    fn check_stop_reply(&mut self, client: ClientId, result: &Result<StopResult, StopError>) {
        match result {
            Err(StopError::NotInitialized) => assert_ne!(self.client, Some(client)),
            Err(StopError::NotStarted) => {}
            Err(StopError::Aborted) => {
                assert!(self.is_output_broken && self.is_stop_pending);
                self.is_stop_pending = false;
                self.reached.count("aborted stop", 1);
            }
            Ok(result) => {
                assert!(std::mem::take(&mut self.is_stop_pending), "nobody asked");
                assert_eq!(self.transferring, None);
                assert!(self.handed_over.is_empty(), "answered before all is written");
                let ids: Vec<u32> = result.provider_stats.iter().map(|stats| stats.id).collect();
                let unique: BTreeSet<u32> = ids.iter().copied().collect();
                assert_eq!(ids.len(), unique.len(), "an entry comes twice: {ids:?}");
                for (provider, part) in &self.parts {
                    assert!(!part.is_unsaved || !self.asked_to_write, "{provider:?} is not written");
                    assert!(!part.is_in_run || unique.contains(&provider.0), "{provider:?} is not named");
                }
                let late = result
                    .provider_stats
                    .iter()
                    .filter(|stats| stats.disposition == ProviderDisposition::DidNotStop);
                self.reached.count("did not stop", late.count() as u64);
                let dead = result
                    .provider_stats
                    .iter()
                    .filter(|stats| stats.disposition == ProviderDisposition::Ended);
                self.reached.count("ended in a run", dead.count() as u64);
            }
        }
    }

    fn check_state(&mut self, client: ClientId, state: SessionState) {
        assert_eq!(self.client, Some(client));
        let is_allowed = match state {
            SessionState::Ready => false,
            SessionState::Initialized => self.state.is_none(),
            SessionState::Starting => {
                matches!(self.state, Some(SessionState::Initialized | SessionState::Stopped))
            }
            SessionState::Started => self.state == Some(SessionState::Starting),
            SessionState::Stopping => matches!(
                self.state,
                Some(SessionState::Initialized | SessionState::Starting | SessionState::Started)
            ),
            SessionState::Stopped => self.state == Some(SessionState::Stopping),
            SessionState::Terminating => {
                self.state.is_some() && self.state != Some(SessionState::Terminating)
            }
        };
        assert!(is_allowed, "from {:?} to {state:?}", self.state);
        self.state = Some(state);
    }

    fn check_end(&mut self, client: ClientId, is_aborted: bool) {
        assert_eq!(self.client, Some(client));
        assert_eq!(is_aborted, self.is_output_broken);
        assert!(self.parts.is_empty(), "buffers are left: {:?}", self.parts);
        assert_eq!(self.transferring, None);
        assert!(self.handed_over.is_empty(), "ended before all is written");
        assert!(!self.is_start_pending, "a start was not answered");
        assert!(!self.is_stop_pending, "a stop was not answered");
        self.reached.count(if is_aborted { "aborted session" } else { "ended session" }, 1);
        let reached = std::mem::take(&mut self.reached);
        let users = std::mem::take(&mut self.users);
        assert!(self.unended.is_empty(), "observers of the session before are left");
        let unended = std::mem::take(&mut self.observers);
        let copied = std::mem::take(&mut self.copied);
        *self = Ledger { reached, users, unended, copied, ..Ledger::default() };
    }
}
