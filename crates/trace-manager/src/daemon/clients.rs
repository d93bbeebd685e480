//! The clients' side of the daemon: provisioner connections, session channels and queries.

mod queries;

use super::descriptors::{self, Purpose};
use super::fairness::greediest;
use super::file_writer::FileWriter;
use super::io::Io;
use super::memory::Dumps;
use super::output::Place;
use super::providers::Providers;
use super::task::Requester;
use super::wire::send;
use super::{ACCEPTED_AT_ONCE, Key, client_id};
use crate::core::{ClientId, Event, Uid};
use queries::Query;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use trace_format::units::ProviderId;
use trace_protocol::controller::observer::OBSERVER_VERSION;
use trace_protocol::controller::{
    ObserveError, ObserveOptions, Observing, ProviderInfo, ProviderProgress, ProvisionerRequest,
    ProvisionerResponse, Refusal, SessionRequest, SessionResponse, SnapshotError, StopResult, TaskRequest,
    TaskResponse, TraceConfig,
};
use trace_protocol::limits::{MAX_LISTED_PROVIDERS, MAX_UNANSWERED};
use trace_protocol::{Encoded, Message, Txid, VersionRange};
use zx_sim::{Channel, Error, Handle, Listener, Signals, Socket, Vmo};

/// Maximum number of connections of clients. A session has a channel of its own.
//= docs/protocol.md#limits
const MAX_PROVISIONERS: usize = 256;
/// Maximum number of alerts that a client waits for at a time.
const MAX_WATCHES: usize = 16;
/// Maximum number of concurrent queries for categories; each may collect some megabytes.
const MAX_QUERIES: usize = 4;
/// The versions of the frames for observers that are served.
const OBSERVER_VERSIONS: VersionRange = VersionRange::only(OBSERVER_VERSION);
/// How long providers may take to report their categories, all together.
const CATEGORIES_WAIT: Duration = Duration::from_secs(1);

/// The daemon's state about clients.
pub(super) struct Clients {
    next_number: u32,
    provisioners: BTreeMap<u32, (Channel, Uid)>,
    /// Those of them that have never sent a request.
    silent: BTreeSet<u32>,
    sessions: BTreeMap<u32, SessionChannel>,
    /// The outputs that came with InitializeTracing, until the core takes or refuses them, in that order.
    new_outputs: VecDeque<Place>,
    queries: Vec<Query>,
    /// The number of the last question to providers for their categories.
    last_question: Txid,
    /// Queries for categories that wait for their turn.
    waiting_queries: VecDeque<Asking>,
    snapshots: Vec<WantedSnapshot>,
    /// Until the core has accepted or refused them.
    observers: Vec<WantedObserver>,
    /// Requests about tasks that were not answered yet.
    asking: BTreeSet<(u32, u32)>,
}

struct SessionChannel {
    channel: Channel,
    /// Requests that wait for an answer. A further Start or Stop is refused at once, so the last one is
    /// answered first.
    starts: Vec<Txid>,
    stops: Vec<Txid>,
    /// Alerts are answered in the order they were asked for.
    alerts: VecDeque<Txid>,
    /// So are flushes, each at once.
    flushes: VecDeque<Txid>,
    /// Names of the categories that were sent to the client.
    reported: BTreeSet<String>,
}

/// A request that providers have to answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    connection: u32,
    txid: Txid,
    /// The user.
    pub uid: Uid,
}

/// A client's request for a snapshot, not yet answered.
struct WantedSnapshot {
    /// The number of the requesting client in the core.
    client: ClientId,
    connection: u32,
    txid: Txid,
    /// The socket for the snapshot, until it begins.
    output: Option<Socket>,
}

/// A client's request to observe, not yet answered.
pub(super) struct WantedObserver {
    /// The number of the observer in the core.
    client: ClientId,
    /// The same as a number.
    pub number: u32,
    connection: u32,
    txid: Txid,
    pub options: ObserveOptions,
    /// The socket for the frames.
    pub output: Socket,
}

/// A session that a client asks for.
struct NewSession {
    session: Handle,
    output: Handle,
    config: TraceConfig,
    /// The process that asks.
    pid: u32,
    /// The user.
    uid: Uid,
}

/// The state that a provisioner's request may concern.
pub(super) struct QueryContext<'a> {
    /// The user of the request.
    pub uid: Uid,
    /// The providers that this user may see.
    pub providers: &'a dyn Fn() -> Vec<ProviderInfo>,
    pub registered: &'a mut Providers,
    /// The providers that record in sessions that this user may see; none if there are none.
    pub recording: Option<Vec<ProviderId>>,
    pub dumps: &'a mut Dumps,
}

impl Clients {
    pub fn new() -> Self {
        Self {
            next_number: 0,
            provisioners: BTreeMap::new(),
            silent: BTreeSet::new(),
            sessions: BTreeMap::new(),
            new_outputs: VecDeque::new(),
            queries: Vec::new(),
            last_question: Txid::ONE_WAY,
            waiting_queries: VecDeque::new(),
            snapshots: Vec::new(),
            observers: Vec::new(),
            asking: BTreeSet::new(),
        }
    }

    /// No client is connected.
    pub fn is_empty(&self) -> bool {
        self.provisioners.is_empty() && self.sessions.is_empty()
    }

    /// Accepts connections that wait on the provisioner socket.
    ///
    /// # Errors
    /// There are too few descriptors left.
    pub fn accept(&mut self, provisioner: &Listener, io: &Io) -> zx_sim::Result<()> {
        for _ in 0..ACCEPTED_AT_ONCE {
            descriptors::check(provisioner, Purpose::Client)?;
            let channel = match provisioner.accept() {
                Err(Error::ShouldWait) => break,
                channel => channel?,
            };
            let Ok(peer) = channel.peer() else {
                continue;
            };
            let number = self.number();
            let key = Key::Client(number).encode();
            if io.waits.add(&channel, key, Signals::READABLE | Signals::PEER_CLOSED).is_ok() {
                self.provisioners.insert(number, (channel, Uid(peer.uid)));
                self.silent.insert(number);
                if self.provisioners.len() > MAX_PROVISIONERS {
                    self.close_one(io);
                }
            }
        }
        Ok(())
    }

    /// Closes a connection of a user that has most: the oldest that has never sent a request, or else the
    /// oldest that waits for no answer. If all wait, the new one is closed if it is of the only user that has
    /// most, or else the oldest of another.
    fn close_one(&mut self, io: &Io) {
        let greediest = greediest(self.provisioners.values().map(|(_, uid)| *uid));
        let Some((newest, newcomer)) = self.provisioners.last_key_value().map(|(at, (_, uid))| (*at, *uid))
        else {
            return;
        };
        // The newest has had no time to ask.
        let older = || {
            let theirs = self.provisioners.iter().filter(|(_, (_, uid))| greediest.contains(uid));
            theirs.map(|(number, (_, uid))| (*number, *uid)).filter(|(number, _)| *number != newest)
        };
        let silent = older().find(|(number, _)| self.silent.contains(number));
        let idle = || older().find(|(number, _)| !self.waits(*number));
        let others = || older().find(|(_, uid)| *uid != newcomer);
        let closed = silent.or_else(idle).or_else(others).map_or(newest, |(number, _)| number);
        self.close_provisioner(closed, io);
    }

    fn number(&mut self) -> u32 {
        self.next_number = self.next_number.wrapping_add(1);
        self.next_number
    }

    /// The user of a provisioner connection.
    pub fn user(&self, number: u32) -> Uid {
        // A connection that is closed already has no more requests.
        self.provisioners.get(&number).map_or(Uid(u32::MAX), |(_, uid)| *uid)
    }

    /// Serves one request of a provisioner connection; returns one about a task, which is served elsewhere.
    pub fn read_provisioner(
        &mut self,
        number: u32,
        context: QueryContext<'_>,
        io: &mut Io,
    ) -> Option<(Requester, TaskRequest<Handle>)> {
        let (channel, _) = self.provisioners.get(&number)?;
        let request = match channel.read() {
            Err(Error::ShouldWait) => return None,
            Ok(message) => Encoded { bytes: message.bytes, handles: message.handles }
                .unspill(Vmo::load)
                .ok()
                .and_then(|encoded| ProvisionerRequest::decode(&encoded.bytes, encoded.handles).ok()),
            Err(_) => None,
        };
        self.silent.remove(&number);
        if self.unanswered(number) >= MAX_UNANSWERED {
            let reason = format!("{MAX_UNANSWERED} requests on this connection wait for their answers");
            self.answer(number, Txid::ONE_WAY, ProvisionerResponse::Refused { reason });
            self.close_provisioner(number, io);
            return None;
        }
        match request {
            Some((_, ProvisionerRequest::InitializeTracing { session, config, output })) => {
                let pid = channel.peer().map_or(0, |peer| peer.pid);
                let new_session = NewSession { session, output, config, pid, uid: context.uid };
                self.initialize(new_session, io);
            }
            Some((txid, ProvisionerRequest::GetProviders)) => {
                let mut listed = (context.providers)();
                let left_out = listed.split_off(listed.len().min(MAX_LISTED_PROVIDERS)).len();
                let left_out = u32::try_from(left_out).unwrap_or(u32::MAX);
                self.answer(number, txid, ProvisionerResponse::Providers { listed, left_out });
            }
            Some((txid, ProvisionerRequest::DumpMemory(level))) => {
                let asking = Asking { connection: number, txid, uid: context.uid };
                let QueryContext { registered, recording, dumps, .. } = context;
                match recording.map(|recording| dumps.take(registered, &recording, level, true)) {
                    Some(taken) => self.await_dump(asking, taken),
                    None => self.answer(number, txid, ProvisionerResponse::DumpMemory(None)),
                }
            }
            Some((txid, ProvisionerRequest::GetKnownCategories)) => {
                self.waiting_queries.push_back(Asking { connection: number, txid, uid: context.uid });
            }
            Some((txid, ProvisionerRequest::TakeSnapshot { program, output })) => {
                match Socket::from_handle(output) {
                    Ok(output) => {
                        // A connection may want several.
                        let client = client_id(self.number());
                        let output = Some(output);
                        self.snapshots.push(WantedSnapshot { client, connection: number, txid, output });
                        io.events.push_back(Event::Snapshot { client, uid: context.uid, program });
                    }
                    // As with any other message that does not decode.
                    Err(_) => self.close_provisioner(number, io),
                }
            }
            Some((txid, ProvisionerRequest::Observe { options, output })) => {
                match Socket::from_handle(output) {
                    Ok(output) => self.observe(number, txid, options, output, context.uid, io),
                    Err(_) => self.close_provisioner(number, io),
                }
            }
            Some((txid, ProvisionerRequest::Task(request))) => {
                let pid = channel.peer().map_or(0, |peer| peer.pid);
                if !self.asking.insert((number, txid.0)) {
                    // Two with one number would be answered by one, and count as one.
                    self.close_provisioner(number, io);
                    return None;
                }
                return Some((Requester { connection: number, txid, pid, uid: context.uid }, request));
            }
            None => self.close_provisioner(number, io),
        }
        None
    }

    fn close_provisioner(&mut self, number: u32, io: &Io) {
        self.silent.remove(&number);
        self.waiting_queries.retain(|asking| asking.connection != number);
        self.queries.retain(|query| query.asking.connection != number);
        if let Some((channel, _)) = self.provisioners.remove(&number) {
            let _ = io.waits.remove(&channel);
        }
    }

    //= docs/protocol.md#observers
    fn observe(
        &mut self,
        connection: u32,
        txid: Txid,
        options: ObserveOptions,
        output: Socket,
        uid: Uid,
        io: &mut Io,
    ) {
        if options.versions.newest_common(OBSERVER_VERSIONS).is_none() {
            let refused = Observing { result: Err(ObserveError::Version), served: OBSERVER_VERSIONS };
            self.answer(connection, txid, ProvisionerResponse::Observe(refused));
            return;
        }
        let number = self.number();
        let client = client_id(number);
        let program = options.program.clone();
        self.observers.push(WantedObserver { client, number, connection, txid, options, output });
        io.events.push_back(Event::Observe { client, uid, program });
    }

    /// The request of an observer that the core has accepted or refused.
    pub fn take_observer(&mut self, client: ClientId) -> Option<WantedObserver> {
        let place = self.observers.iter().position(|wanted| wanted.client == client)?;
        Some(self.observers.remove(place))
    }

    /// Answers a client's request to observe.
    pub fn reply_observe(&self, wanted: &WantedObserver, result: Result<(), ObserveError>) {
        let common = wanted.options.versions.newest_common(OBSERVER_VERSIONS).ok_or(ObserveError::Version);
        let observing = Observing { result: result.and(common), served: OBSERVER_VERSIONS };
        self.answer(wanted.connection, wanted.txid, ProvisionerResponse::Observe(observing));
    }

    /// The output of the snapshot that a client has asked for.
    pub fn take_snapshot_output(&mut self, client: ClientId) -> Option<Socket> {
        self.snapshots.iter_mut().find(|new_session| new_session.client == client)?.output.take()
    }

    /// Answers a client's request for a snapshot.
    pub fn reply_snapshot(&mut self, client: ClientId, result: Result<StopResult, SnapshotError>) {
        if let Some(place) = self.snapshots.iter().position(|new_session| new_session.client == client) {
            let WantedSnapshot { connection, txid, .. } = self.snapshots.remove(place);
            self.answer(connection, txid, ProvisionerResponse::TakeSnapshot(result));
        }
    }

    fn initialize(&mut self, new_session: NewSession, io: &mut Io) {
        let NewSession { session, output, config, pid, uid } = new_session;
        // A handle of the wrong kind closes both: the client sees that on its channel.
        let (Ok(channel), Ok(output)) = (Channel::from_handle(session), Socket::from_handle(output)) else {
            return;
        };
        let number = self.number();
        let key = Key::Session(number).encode();
        if io.waits.add(&channel, key, Signals::READABLE | Signals::PEER_CLOSED).is_err() {
            return;
        }
        let session = SessionChannel {
            channel,
            starts: Vec::new(),
            stops: Vec::new(),
            alerts: VecDeque::new(),
            flushes: VecDeque::new(),
            reported: BTreeSet::new(),
        };
        self.sessions.insert(number, session);
        self.new_outputs.push_back(Place::Client(output));
        io.events.push_back(Event::Initialize { client: client_id(number), pid, uid, config });
    }

    /// The output of the client whose InitializeTracing was just accepted or refused.
    pub fn take_output(&mut self) -> Option<Place> {
        self.new_outputs.pop_front()
    }

    /// Answers a request about a task.
    pub fn reply_task(&mut self, requester: Requester, response: TaskResponse) {
        self.asking.remove(&(requester.connection, requester.txid.0));
        self.answer(requester.connection, requester.txid, ProvisionerResponse::Task(response));
    }

    /// A client waits for an answer that depends on another process or on a thread of ours; its connection
    /// stays open.
    fn waits(&self, number: u32) -> bool {
        self.unanswered(number) > 0
    }

    /// Requests of a connection that wait for their answers.
    fn unanswered(&self, number: u32) -> usize {
        self.queries.iter().filter(|query| query.asking.connection == number).count()
            + self.waiting_queries.iter().filter(|asking| asking.connection == number).count()
            + self.snapshots.iter().filter(|new_session| new_session.connection == number).count()
            + self.asking.range((number, 0)..=(number, u32::MAX)).count()
    }

    /// The output of a task, as if it had come with an InitializeTracing.
    pub fn push_output(&mut self, output: FileWriter) {
        self.new_outputs.push_back(Place::Task(output));
    }

    /// Serves one request of a session channel; returns one for progress, which is answered elsewhere.
    pub fn read_session(&mut self, number: u32, io: &mut Io) -> Option<Txid> {
        let session = self.sessions.get_mut(&number)?;
        let client = client_id(number);
        let request = match session.channel.read() {
            Err(Error::ShouldWait) => return None,
            Ok(message) => Encoded { bytes: message.bytes, handles: message.handles }
                .unspill(Vmo::load)
                .ok()
                .and_then(|encoded| SessionRequest::decode(&encoded.bytes, encoded.handles).ok()),
            Err(_) => None,
        };
        match request {
            Some((txid, SessionRequest::StartTracing(options))) => {
                session.starts.push(txid);
                io.events.push_back(Event::Start { client, options });
            }
            Some((txid, SessionRequest::StopTracing(options))) => {
                session.stops.push(txid);
                io.events.push_back(Event::Stop { client, options });
            }
            Some((_, SessionRequest::WatchAlert)) if session.alerts.len() == MAX_WATCHES => {
                let reason = format!("{MAX_WATCHES} requests for an alert wait for their answers");
                let refused = SessionResponse::Refused(Refusal {
                    limit: Some(MAX_WATCHES as u64),
                    ..Refusal::from(reason)
                });
                send(&session.channel, Message::<Handle>::encode(refused, Txid::ONE_WAY));
                self.sessions.remove(&number);
                io.events.push_back(Event::ClientClosed { client });
            }
            Some((txid, SessionRequest::WatchAlert)) => {
                session.alerts.push_back(txid);
                io.events.push_back(Event::WatchAlert { client });
            }
            Some((txid, SessionRequest::FlushBuffers)) => {
                session.flushes.push_back(txid);
                io.events.push_back(Event::Flush { client });
            }
            Some((txid, SessionRequest::GetProgress)) => return Some(txid),
            None => {
                self.sessions.remove(&number);
                io.events.push_back(Event::ClientClosed { client });
            }
        }
        None
    }

    /// Answers a request for progress.
    pub fn reply_progress(&self, number: u32, txid: Txid, progress: Vec<ProviderProgress>) {
        if let Some(session) = self.sessions.get(&number) {
            send(&session.channel, Message::<Handle>::encode(SessionResponse::Progress(progress), txid));
        }
    }

    /// Answers a request of a session channel.
    pub fn reply(&mut self, client: ClientId, response: SessionResponse) {
        let Some(session) = self.session(client) else {
            return;
        };
        let txid = match &response {
            SessionResponse::StartTracing(_) => session.starts.pop(),
            SessionResponse::StopTracing(_) => session.stops.pop(),
            SessionResponse::WatchAlert(_) => session.alerts.pop_front(),
            SessionResponse::FlushBuffers(_) => session.flushes.pop_front(),
            _ => Some(Txid::ONE_WAY),
        };
        if let Some(txid) = txid {
            send(&session.channel, Message::<Handle>::encode(response, txid));
        }
    }

    fn session(&mut self, client: ClientId) -> Option<&mut SessionChannel> {
        self.sessions.get_mut(&u32::try_from(client.0).ok()?)
    }

    /// Closes a session channel.
    pub fn close(&mut self, client: ClientId, io: &Io) {
        let session = u32::try_from(client.0).ok().and_then(|number| self.sessions.remove(&number));
        if let Some(session) = session {
            let _ = io.waits.remove(&session.channel);
        }
    }

    fn answer(&self, number: u32, txid: Txid, response: ProvisionerResponse) {
        if let Some((channel, _)) = self.provisioners.get(&number) {
            send(channel, Message::<Handle>::encode(response, txid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_protocol::names::PROVISIONER;

    /// As many connections as there may be, of a user, each of which waits for an answer.
    fn full(uid: Uid) -> (Clients, Io, Vec<Channel>) {
        crate::daemon::inherited::allow_many_descriptors();
        let (mut clients, io) = (Clients::new(), Io::new().unwrap());
        let theirs = (0..MAX_PROVISIONERS).map(|_| {
            let (ours, theirs) = Channel::pair().unwrap();
            let number = clients.number();
            clients.provisioners.insert(number, (ours, uid));
            clients.asking.insert((number, 1));
            theirs
        });
        let theirs = theirs.collect();
        (clients, io, theirs)
    }

    fn numbers(clients: &Clients) -> Vec<u32> {
        clients.provisioners.keys().copied().collect()
    }

    //= docs/protocol.md#limits
    #[test]
    fn a_user_with_many_connections_keeps_no_other_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(PROVISIONER);
        let listener = Listener::bind(&path).unwrap();
        let us = Uid(rustix::process::geteuid().as_raw());
        let most = u32::try_from(MAX_PROVISIONERS).unwrap();
        // Those of another user all wait: the oldest gives way.
        let (mut clients, io, _theirs) = full(Uid(us.0 + 1));
        let _ours = Channel::connect(&path).unwrap();
        clients.accept(&listener, &io).unwrap();
        assert_eq!(numbers(&clients), (2..=most + 1).collect::<Vec<_>>());
        // The oldest that waits for nothing goes first, and before that the oldest that never asked.
        clients.asking.remove(&(5, 1));
        clients.asking.remove(&(9, 1));
        clients.silent.insert(9);
        for closed in [9, 5] {
            let _ours = Channel::connect(&path).unwrap();
            clients.accept(&listener, &io).unwrap();
            assert_eq!(clients.provisioners.len(), MAX_PROVISIONERS);
            assert!(!clients.provisioners.contains_key(&closed), "{closed}");
        }
        // Many users with one each: one of them gives way.
        let (mut clients, io, _theirs) = full(us);
        for (place, (_, uid)) in clients.provisioners.values_mut().enumerate() {
            uid.0 += 1 + u32::try_from(place).unwrap();
        }
        let _ours = Channel::connect(&path).unwrap();
        clients.accept(&listener, &io).unwrap();
        assert_eq!(numbers(&clients), (2..=most + 1).collect::<Vec<_>>());
        // One who has all of them cannot have more.
        let (mut clients, io, _theirs) = full(us);
        let _ours = Channel::connect(&path).unwrap();
        clients.accept(&listener, &io).unwrap();
        assert_eq!(numbers(&clients), (1..=most).collect::<Vec<_>>());
        assert!(clients.silent.is_empty());
    }
}
