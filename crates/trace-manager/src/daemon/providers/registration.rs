//! Connections to the registry: each sends one message and becomes a provider, or is refused.

use super::{Provider, Providers, making};
use crate::core::{Event, Uid};
use crate::daemon::descriptors::{self, Purpose};
use crate::daemon::fairness::greediest;
use crate::daemon::io::Io;
use crate::daemon::log::log;
use crate::daemon::wire::send;
use crate::daemon::{ACCEPTED_AT_ONCE, Key};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use trace_format::buffer::BUFFER_VERSION;
use trace_protocol::limits::{
    MAX_PROVIDER_COMMAND_LINE_BYTES, MAX_PROVIDER_NAME_BYTES, MAX_PROVIDERS_OF_A_USER,
};
use trace_protocol::provider::ProviderRequest;
use trace_protocol::registry::{Registration, RegistryRequest, RegistryResponse, RegistryStatus};
use trace_protocol::{Message, Txid, VersionRange};
use zx_sim::ticks;
use zx_sim::{Channel, Error, Handle, Listener, Peer, ProcessFd, Signals};

/// How long a connection may take to register.
const REGISTRATION_WAIT: Duration = Duration::from_secs(5);
/// Maximum number of connections that have not registered yet; beyond it, the oldest of the user that has
/// most is closed.
//= docs/protocol.md#limits
const MAX_SILENT: usize = 256;
/// Maximum number of connections that are shared; beyond it, the newest of the user that has most is closed.
//= docs/protocol.md#limits
const MAX_SHARED: usize = 256;

/// A connection that has not registered yet.
pub(super) struct Connection {
    pub channel: Channel,
    /// When it is closed.
    pub deadline: Instant,
    pub uid: Uid,
}

impl Providers {
    /// Accepts connections that wait on the registry socket, and returns their numbers: most have sent their
    /// message already.
    ///
    /// # Errors
    /// There are too few descriptors left.
    pub fn accept(&mut self, registry: &Listener, io: &Io, new: &mut Vec<u32>) -> zx_sim::Result<()> {
        for _ in 0..ACCEPTED_AT_ONCE {
            descriptors::check(registry, Purpose::Provider)?;
            let channel = match registry.accept() {
                Err(Error::ShouldWait) => break,
                channel => channel?,
            };
            let Ok(peer) = channel.peer() else {
                continue;
            };
            let number = self.next_registration;
            self.next_registration = number.wrapping_add(1);
            let key = Key::Registration(number).encode();
            if io.waits.add(&channel, key, Signals::READABLE | Signals::PEER_CLOSED).is_ok() {
                let (deadline, uid) = (Instant::now() + REGISTRATION_WAIT, Uid(peer.uid));
                self.registrations.insert(number, Connection { channel, deadline, uid });
                if self.registrations.len() > MAX_SILENT {
                    let greediest = greediest(self.registrations.values().map(|connection| connection.uid));
                    let mut all = self.registrations.iter();
                    let oldest = all.find(|(_, connection)| greediest.contains(&connection.uid));
                    let oldest = oldest.map(|(number, _)| *number);
                    oldest.and_then(|number| self.registrations.remove(&number));
                }
                new.push(number);
            }
        }
        Ok(())
    }

    /// Closes connections that have sent nothing for too long.
    pub fn handle_time(&mut self, now: Instant) {
        // Descriptors leave the wait set when they are closed.
        self.registrations.retain(|_, connection| connection.deadline > now);
    }

    /// Serves a connection's only message, or the next one of a connection that is shared.
    pub fn read_registration(&mut self, number: u32, is_started: impl Fn(Uid, &str) -> bool, io: &mut Io) {
        if self.shared.contains_key(&number) {
            return self.read_shared(number, is_started, io);
        }
        let Some(Connection { channel, .. }) = self.registrations.get(&number) else {
            return;
        };
        let message = match channel.read() {
            Err(Error::ShouldWait) => return,
            message => message,
        };
        let _ = io.waits.remove(channel);
        let Some(Connection { channel: registry, uid, .. }) = self.registrations.remove(&number) else {
            return;
        };
        let Ok(message) = message else {
            return;
        };
        let (txid, request) = match RegistryRequest::decode(&message.bytes, message.handles) {
            Ok(decoded) => decoded,
            Err(error) => return log(&format!("bad registration from {}: {error}", peer(&registry))),
        };
        // The kernel knows the user of the connection, and the process if that has a number here; the number
        // in the message is the peer's own, in its pid namespace.
        let Ok(process) = registry.peer() else {
            return;
        };
        match request.into_registration() {
            Some((registration, None)) => {
                let answer = (txid != Txid::ONE_WAY).then_some((registry, txid));
                self.register(process, answer, registration, is_started, io);
            }
            Some((_, Some(_))) => {
                log(&format!("bad registration from {}: the connection is not shared", peer(&registry)));
            }
            None => self.share(number, (registry, uid), txid, io),
        }
    }

    /// A connection that other processes will use as well: each of its messages says which has sent it.
    //= docs/protocol.md#shared-connections
    pub(super) fn share(&mut self, number: u32, (registry, uid): (Channel, Uid), txid: Txid, io: &Io) {
        if self.shared.len() >= MAX_SHARED {
            let greediest = greediest(self.shared.values().map(|(_, uid)| *uid).chain([uid]));
            let is_theirs = |(_, (_, uid)): &(&u32, &(Channel, Uid))| greediest.contains(uid);
            let newest = self.shared.iter().rfind(is_theirs).map(|(number, _)| *number);
            let Some(newest) = newest.filter(|_| !greediest.contains(&uid)) else {
                return log(&format!(
                    "the connection of {} is not shared: there are too many",
                    peer(&registry)
                ));
            };
            self.close_shared(newest, io);
        }
        let key = Key::Registration(number).encode();
        let is_shared = registry.identify_senders().is_ok()
            && io.waits.add(&registry, key, Signals::READABLE | Signals::PEER_CLOSED).is_ok();
        if !is_shared {
            return log(&format!("the connection of {} cannot be shared", peer(&registry)));
        }
        let response = RegistryResponse {
            status: RegistryStatus::Ok,
            started: false,
            manager_version: VersionRange::PROTOCOL,
        };
        send(&registry, Message::<Handle>::encode(response, txid));
        self.shared.insert(number, (registry, uid));
    }

    fn close_shared(&mut self, number: u32, io: &Io) {
        if let Some((registry, _)) = self.shared.remove(&number) {
            let _ = io.waits.remove(&registry);
        }
    }

    /// Serves a message of a connection that several processes may have.
    //= docs/protocol.md#shared-connections
    fn read_shared(&mut self, number: u32, is_started: impl Fn(Uid, &str) -> bool, io: &mut Io) {
        let Some((registry, _)) = self.shared.get(&number) else {
            return;
        };
        let (message, sender) = match registry.read_with_sender() {
            Err(Error::ShouldWait) => return,
            Ok(received) => received,
            Err(error @ (Error::TooLong { .. } | Error::TooManyHandles { .. })) => {
                return log(&format!("bad registration through a shared connection: {error}"));
            }
            // No process has it any more, or one of them has broken it.
            Err(_) => return self.close_shared(number, io),
        };
        let Some(sender) = sender else {
            return log("a message of a shared connection has no sender");
        };
        match RegistryRequest::decode(&message.bytes, message.handles) {
            Ok((txid, request)) => match request.into_registration() {
                Some((registration, answer)) => {
                    let answer = answer.and_then(|answer| Channel::from_handle(answer).ok());
                    let answer = answer.map(|answer| (answer, txid));
                    self.register(sender, answer, registration, is_started, io);
                }
                None => log(&format!("bad registration from pid {}: it is shared already", sender.pid)),
            },
            // The others that have the connection are not to blame.
            Err(error) => log(&format!("bad registration from pid {}: {error}", sender.pid)),
        }
    }

    /// Registers a provider of a process, which may wait for an answer.
    fn register(
        &mut self,
        process: Peer,
        answer: Option<(Channel, Txid)>,
        registration: Registration<Handle>,
        is_started: impl Fn(Uid, &str) -> bool,
        io: &mut Io,
    ) {
        let uid = Uid(process.uid);
        let pid = if process.pid == 0 { registration.pid } else { u64::from(process.pid) };
        let refusal = self.refusal(&registration, uid);
        // Its application has gone on without the answer.
        let (mut is_late, mut is_waiting) = (false, false);
        if let Some((answer, txid)) = answer {
            is_waiting = refusal.is_none() && is_started(uid, &plain_name(&registration.name));
            let response = RegistryResponse {
                status: refusal.as_ref().map_or(RegistryStatus::Ok, |(status, _)| *status),
                started: is_waiting,
                manager_version: VersionRange::PROTOCOL,
            };
            is_late = !send(&answer, Message::<Handle>::encode(response, txid));
        }
        let Ok(channel) = Channel::from_handle(registration.provider) else {
            log(&format!("bad registration from pid {}: its handle is no channel", process.pid));
            return;
        };
        if let Some((_, reason)) = refusal {
            log(&format!("program \"{}\" refused: {reason}", registration.name));
            let (provider, name) = (self.new_id(), plain_name(&registration.name));
            let refused = Event::ProviderRefused { provider, name, pid, uid, reason: reason.clone() };
            io.events.push_back(refused);
            send(&channel, ProviderRequest::Refused { reason }.encode(Txid::ONE_WAY));
            return;
        }
        let name = plain_name(&registration.name);
        let id = self.new_id();
        let key = Key::Provider(id).encode();
        if io.waits.add(&channel, key, Signals::READABLE | Signals::PEER_CLOSED).is_err() {
            return;
        }
        let provider = Provider {
            name: name.clone(),
            pid,
            uid,
            channel: Some(channel),
            process: ProcessFd::open(process.pid).ok().map(Rc::new),
            tracee: None,
            unanswered: VecDeque::new(),
            has_handed_over: false,
            dumps_memory: registration.dumps_memory,
            answers_dumps: registration.answers_dumps,
            // The peer reports it in its own pid namespace, which may be another.
            parent: registration.parent.filter(|_| registration.pid == pid),
            command_line: registration.command_line.as_deref().map(plain_command_line),
            registered: ticks::now(),
            records_alerts: registration.records_alerts,
            backs_buffer: registration.backs_buffer,
            has_scopes: registration.has_scopes,
            redacts: registration.redacts,
            is_elsewhere: registration.numbers_threads && making::is_elsewhere(process.pid, registration.pid),
        };
        self.providers.insert(id, provider);
        io.events.push_back(Event::ProviderRegistered { provider: id, name, pid, uid, is_late, is_waiting });
    }

    /// Why a provider cannot be served.
    pub(super) fn refusal(
        &self,
        registration: &Registration<Handle>,
        uid: Uid,
    ) -> Option<(RegistryStatus, String)> {
        let (ours, theirs) = (VersionRange::PROTOCOL, registration.protocol);
        if ours.newest_common(theirs).is_none() {
            let reason = format!("it uses protocol {theirs}, this manager supports protocol {ours}");
            return Some((RegistryStatus::ProtocolVersion, reason));
        }
        let theirs = registration.buffer_header;
        if theirs.newest_common(VersionRange::only(BUFFER_VERSION)).is_none() {
            let reason = format!("it writes buffer header {theirs}, this manager reads {BUFFER_VERSION}");
            return Some((RegistryStatus::BufferHeaderVersion, reason));
        }
        let (ours, theirs) = (self.clock.source.name(), registration.tick_source.as_str());
        if ours != theirs && theirs != ticks::UNKNOWN {
            let reason = format!("its clock is {theirs}, this manager's is {ours}");
            return Some((RegistryStatus::TickSource, reason));
        }
        let is_theirs = |provider: &&Provider| provider.uid == uid;
        if self.providers.values().filter(is_theirs).count() >= MAX_PROVIDERS_OF_A_USER {
            let reason = format!("{MAX_PROVIDERS_OF_A_USER} programs of this user are registered already");
            // Older programs have no other status for it; the reason follows on the provider's channel.
            return Some((RegistryStatus::Ok, reason));
        }
        if descriptors::check(&registration.provider, Purpose::Provider).is_err() {
            let reason = "the trace manager has too few descriptors left".to_owned();
            return Some((RegistryStatus::Ok, reason));
        }
        None
    }
}

fn peer(channel: &Channel) -> String {
    channel.peer().map_or_else(|_| "an unknown process".to_owned(), |peer| format!("pid {}", peer.pid))
}

/// A provider's name without control characters. A refusal would leave a program untraced whose name comes
/// from its user.
//= docs/protocol.md#registry
pub(super) fn plain_name(name: &str) -> String {
    plain(name, MAX_PROVIDER_NAME_BYTES)
}

/// A command line without control characters.
pub(super) fn plain_command_line(line: &str) -> String {
    plain(line, MAX_PROVIDER_COMMAND_LINE_BYTES)
}

fn plain(text: &str, most_bytes: usize) -> String {
    let mut text = text.replace(char::is_control, "\u{fffd}");
    text.truncate(text.floor_char_boundary(most_bytes));
    text
}
