//! The providers' side of the daemon: registrations, channels, buffers and FIFOs.

mod alerts;
mod making;
mod missing;
mod observed;
mod questions;
mod registration;
mod session;
mod snapshots;
mod startup;
mod tracee;

use super::dying::DyingProviders;
use super::ends::Leaving;
use super::io::Io;
use super::log::log;
use super::wire::send;
use crate::core::{ClientId, Event, Part, ProcessState, Uid};
use making::{Next, Unready};
pub(super) use observed::ObservedBuffer;
use questions::Question;
use registration::Connection;
use session::Session;
use startup::Adopting;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use trace_archive::manifest::{BufferInfo, Entry, PartInfo};
use trace_archive::program_info::ProgramInfo;
use trace_archive::session_info::RaisedAlert;
use trace_archive::transfer::{Progress, ProviderBuffer, Transfer};
use trace_format::scopes::SCOPES_BYTES;
use trace_format::units::{Koid, ProviderId, Ticks, TicksPerSecond};
use trace_protocol::controller::ProviderProgress;
use trace_protocol::fifo::{FIFO_DEPTH, PACKET_BYTES};
use trace_protocol::memory::MemoryDumpLevel;
use trace_protocol::provider::{ProviderRequest, ProviderResponse};
use trace_protocol::{BufferDisposition, Encoded, FifoRequest, Message, PacketError, ProtocolError, Txid};
use tracee::Tracee;
use zx_sim::ticks::{self, Clock};
use zx_sim::{Channel, Error, Handle, ProcessFd, RuntimeDir, Vmo};

/// Transaction id of a session's requests whose answers are ignored.
pub(super) const SESSION_TXID: Txid = Txid(u32::MAX);
/// Packets that count though the provider's channel is closed: an honest one has no more of them unread.
const MAX_LAST_PACKETS: usize = 2 * FIFO_DEPTH;

/// The daemon's state about providers.
pub(super) struct Providers {
    /// Where directories of sessions are made.
    buffers: RuntimeDir,
    /// Where programs find the manager.
    runtime: PathBuf,
    clock: Clock,
    /// Connections that have not sent anything yet, the oldest first, with their deadlines.
    registrations: BTreeMap<u32, Connection>,
    next_registration: u32,
    /// Connections that several processes may use, by the same numbers.
    shared: BTreeMap<u32, (Channel, Uid)>,
    providers: BTreeMap<ProviderId, Provider>,
    pub dying: DyingProviders,
    next_id: u32,
    /// Those that run, and those whose archives are not complete yet.
    sessions: BTreeMap<ClientId, Session>,
    /// Buffers that are being made, of each session one after the other.
    unready: VecDeque<Unready>,
    /// The session that had the last turn.
    last_made: Option<ClientId>,
    /// Buffers that programs have handed over, and that are being copied.
    adopting: VecDeque<Adopting>,
    /// At least as many bytes as all buffers have.
    most_bytes: u64,
}

/// The fate of a buffer whose provider no longer takes part in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffer {
    /// It is deleted.
    Deleted,
    /// It stays, as it holds data that is in no archive.
    Left,
}

/// What follows a packet.
enum Reading {
    /// The next packet.
    GoesOn,
    /// Nothing that the manager would understand.
    Ends,
}

/// One registered provider.
struct Provider {
    name: String,
    pid: u64,
    uid: Uid,
    /// Gone when the provider is closed but its buffer is still being read.
    channel: Option<Channel>,
    process: Option<Rc<ProcessFd>>,
    tracee: Option<Tracee>,
    /// Questions that it has not answered yet, in their order.
    unanswered: VecDeque<Question>,
    /// It supports requests for memory dumps.
    dumps_memory: bool,
    answers_dumps: bool,
    /// The process that it was forked from, if it reports that.
    parent: Option<u64>,
    /// The arguments of its program, if it reports them.
    command_line: Option<String>,
    /// When it registered, in ticks.
    registered: u64,
    /// It records its alerts.
    records_alerts: bool,
    /// Most of its buffer need not have memory.
    backs_buffer: bool,
    /// Its buffer has pages for open scopes behind it.
    has_scopes: bool,
    redacts: bool,
    /// It has handed over what it had recorded before this recording.
    has_handed_over: bool,
    /// Its pid namespace is another, and it can translate the numbers of its threads to the manager's.
    is_elsewhere: bool,
}

impl Provider {
    /// Bytes behind its buffer for open scopes.
    fn scope_bytes(&self) -> u64 {
        if self.has_scopes { SCOPES_BYTES } else { 0 }
    }

    /// The state of its process now. A closed descriptor does not prove that the process has ended. Only the
    /// death of a process that has a buffer matters: another one writes nothing, alive or not.
    fn process(&self) -> ProcessState {
        match &self.process {
            Some(process) if process.is_dead() => ProcessState::Dead,
            Some(_) if self.tracee.is_some() => ProcessState::Alive,
            Some(_) | None => ProcessState::Unknown,
        }
    }

    /// What the session's state says of it and its buffer.
    fn buffer_info(&self, id: ProviderId, bytes: u64, has_metadata: bool) -> BufferInfo {
        BufferInfo {
            id: id.0,
            name: self.name.clone(),
            pid: self.pid,
            bytes,
            parent: self.parent.filter(|_| has_metadata),
            command_line: self.command_line.clone().filter(|_| has_metadata),
            registered: has_metadata.then_some(self.registered),
            origin: None,
            mode: None,
        }
    }

    /// What is known of its program, if that is wanted.
    fn program_info(&self, is_wanted: bool) -> Option<ProgramInfo> {
        is_wanted.then(|| ProgramInfo {
            process: Koid(self.pid),
            parent: self.parent.map(Koid),
            command_line: self.command_line.clone(),
            registered: Some(Ticks(self.registered)),
        })
    }

    /// Takes a packet from the FIFO, if there is one.
    fn read_packet(
        &mut self,
        id: ProviderId,
        sessions: &mut BTreeMap<ClientId, Session>,
        io: &mut Io,
    ) -> Option<zx_sim::Result<Reading>> {
        let tracee = self.tracee.as_mut()?;
        let mut bytes = [0; PACKET_BYTES];
        let read = tracee.fifo.as_ref()?.read(&mut bytes);
        let mut reading = Reading::GoesOn;
        if read.is_ok() {
            let packet = FifoRequest::from_provider(&bytes);
            if matches!(packet, Err(PacketError::Version { .. })) {
                reading = Reading::Ends;
            }
            let is_started = matches!(packet, Ok(FifoRequest::Started { .. }));
            tracee.has_started |= is_started;
            tracee.has_stopped =
                !is_started && (tracee.has_stopped || matches!(packet, Ok(FifoRequest::Stopped)));
            if let Ok(FifoRequest::Alert { name }) = &packet
                && !self.records_alerts
                && tracee.has_started
                && let Some(session) = sessions.get_mut(&tracee.session)
            {
                let (at, process) = (Ticks(ticks::now()), Koid(self.pid));
                session.alerts.add(RaisedAlert { at, process, name: name.clone() });
            }
            io.events.push_back(Event::Packet { provider: id, packet });
        }
        Some(read.map(|()| reading))
    }
}

impl Providers {
    /// Of a manager that programs find in the same directory.
    pub fn new(buffers: RuntimeDir, clock: Clock) -> Self {
        Self {
            runtime: buffers.path().to_owned(),
            buffers,
            clock,
            registrations: BTreeMap::new(),
            next_registration: 0,
            shared: BTreeMap::new(),
            providers: BTreeMap::new(),
            dying: DyingProviders::default(),
            next_id: 1,
            sessions: BTreeMap::new(),
            unready: VecDeque::new(),
            last_made: None,
            adopting: VecDeque::new(),
            most_bytes: 0,
        }
    }

    /// When [`Providers::handle_time`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let registration = self.registrations.first_key_value().map(|(_, connection)| connection.deadline);
        let ends = self.sessions.values().filter_map(|session| session.ends.next_deadline());
        registration.into_iter().chain(ends).min()
    }

    /// Reads a provider's channel: an answer about its categories, or its end.
    pub fn read_channel(&mut self, id: ProviderId, io: &mut Io) -> Option<(Txid, ProviderResponse<Handle>)> {
        if self.is_adopting(id) {
            return None;
        }
        let provider = self.providers.get_mut(&id)?;
        let channel = provider.channel.as_ref()?;
        let message = match channel.read() {
            Ok(message) => message,
            Err(Error::ShouldWait) => return None,
            // An answer that is missing, or a buffer that is not taken over and stays where it is.
            Err(error @ Error::HandlesLost) => {
                log(&format!("program {}: {error}", id.0));
                return None;
            }
            Err(_) => {
                self.close(id, io);
                return None;
            }
        };
        let encoded = Encoded { bytes: message.bytes, handles: message.handles };
        let response = provider.unspill(encoded)?;
        let response =
            response.ok().and_then(|encoded| ProviderResponse::decode(&encoded.bytes, encoded.handles).ok());
        match response {
            Some((_, ProviderResponse::HandOver { buffer, buffering_mode })) => {
                self.take_over(id, buffer, buffering_mode, io);
                None
            }
            Some((txid, response)) => {
                provider.settle(match &response {
                    ProviderResponse::KnownCategories(_) => Question::Categories(txid),
                    ProviderResponse::DumpedMemory { dump, .. } => Question::Dump(*dump),
                    ProviderResponse::HandOver { .. } => return None,
                });
                Some((txid, response))
            }
            None => {
                self.break_off(id, "it sent what is no message", io);
                None
            }
        }
    }

    /// Whether a provider has not reported its start: what it sends before that may be on its way through the
    /// channel.
    pub fn awaits_start(&self, id: ProviderId) -> bool {
        let tracee = self.providers.get(&id).and_then(|provider| provider.tracee.as_ref());
        tracee.is_some_and(|tracee| !tracee.has_started)
    }

    /// Reads one packet, so that a flood delays no other provider; the FIFO's end counts only when it is
    /// empty.
    pub fn read_fifo(&mut self, id: ProviderId, io: &mut Io) {
        if self.is_adopting(id) {
            return;
        }
        let Some(provider) = self.providers.get_mut(&id) else {
            return;
        };
        let mut error = match provider.read_packet(id, &mut self.sessions, io) {
            None | Some(Ok(Reading::GoesOn)) => return,
            Some(Ok(Reading::Ends)) => return self.close_fifo(id, io),
            Some(Err(error)) => error,
        };
        // An empty packet looks like the end.
        if matches!(error, Error::PeerClosed) && provider.tracee.as_ref().is_some_and(Tracee::has_peer) {
            error = Error::ElementSize { expected: PACKET_BYTES, found: 0 };
        }
        // The provider has left the session, and stays registered.
        if !matches!(error, Error::ShouldWait) {
            if let Error::ElementSize { .. } = error {
                let problem = format!("bad packet: {error}");
                io.events.push_back(Event::BrokeProtocol { provider: id, problem });
            }
            self.close_fifo(id, io);
        }
    }

    fn close_fifo(&mut self, id: ProviderId, io: &mut Io) {
        if let Some(provider) = self.providers.get_mut(&id) {
            if let Some(tracee) = &mut provider.tracee {
                tracee.close();
            }
            io.events.push_back(Event::FifoClosed { provider: id, process: provider.process() });
            self.leave(id);
        }
    }

    /// The provider is gone; its buffer stays until the core drops it.
    fn close(&mut self, id: ProviderId, io: &mut Io) {
        let Some(provider) = self.providers.get_mut(&id) else {
            return;
        };
        // Packets that it sent before it left still count.
        for _ in 0..MAX_LAST_PACKETS {
            if !matches!(provider.read_packet(id, &mut self.sessions, io), Some(Ok(Reading::GoesOn))) {
                break;
            }
        }
        // Descriptors leave the wait set when they are closed.
        provider.channel = None;
        if let Some(tracee) = &mut provider.tracee {
            tracee.close();
        }
        io.events.push_back(Event::ProviderClosed { provider: id, process: provider.process() });
        self.leave(id);
    }

    /// A provider closed its FIFO, or its channel.
    fn leave(&mut self, id: ProviderId) {
        let Some(provider) = self.providers.get(&id) else {
            return;
        };
        if let Some(tracee) = &provider.tracee {
            let leaving = if tracee.is_terminated { Leaving::Asked } else { Leaving::Unasked };
            if let Some(session) = self.sessions.get_mut(&tracee.session) {
                session.ends.add(id, provider.pid, provider.process.clone(), leaving);
            }
        } else if provider.channel.is_none() {
            self.providers.remove(&id);
            self.unready.retain(|unready| unready.id != id);
        }
    }

    /// Reports the death of a provider's process.
    pub fn watch_process(&mut self, id: ProviderId, io: &mut Io) {
        if let Some(process) = self.providers.get(&id).and_then(|provider| provider.process.as_ref()) {
            self.dying.watch(id, process, io);
        }
    }

    /// All of a provider's buffer is written into the client's archive.
    pub fn note_archived(&mut self, id: ProviderId) {
        self.note(id, &Entry::Archived { provider: id.0 });
    }

    pub fn start(
        &mut self,
        id: ProviderId,
        disposition: BufferDisposition,
        additional_categories: Vec<String>,
    ) {
        if let Some(unready) = self.unready.iter_mut().find(|unready| unready.id == id) {
            unready.next.push(Next::Start(disposition, additional_categories));
            return;
        }
        let tracee = self.providers.get_mut(&id).and_then(|provider| provider.tracee.as_mut());
        let retains = disposition == BufferDisposition::Retain;
        if let Some(progress) = tracee.and_then(|tracee| tracee.progress.as_mut()).filter(|_| !retains) {
            progress.clear(disposition == BufferDisposition::ClearEntire);
        }
        // Before it records anything.
        self.note(id, &Entry::Started { provider: id.0, retains });
        self.send_request(
            id,
            ProviderRequest::Start { buffer_disposition: disposition, additional_categories },
        );
    }

    pub fn stop(&mut self, id: ProviderId) {
        self.send_request(id, ProviderRequest::Stop);
    }

    /// Requests a memory dump from a provider. Returns whether the provider will confirm that it has written
    /// it; none if it does not support dumps.
    pub fn dump_memory(
        &mut self,
        id: ProviderId,
        dump: u64,
        level: MemoryDumpLevel,
        answers: bool,
    ) -> Option<bool> {
        let provider = self.providers.get_mut(&id).filter(|provider| provider.dumps_memory)?;
        let can_answer = provider.answers_dumps;
        if answers && can_answer && !provider.may_be_asked(Question::Dump(dump)) {
            return None;
        }
        self.send_request(id, ProviderRequest::DumpMemory { dump, level, answers: answers && can_answer });
        Some(can_answer)
    }

    pub fn flush(&mut self, id: ProviderId) {
        self.send_request(id, ProviderRequest::Flush);
    }

    /// The progress of a session's providers; for one whose buffer cannot be read, only its presence.
    pub fn progress(
        &self,
        session: ClientId,
        rate: TicksPerSecond,
        saved_halves: impl Fn(ProviderId) -> u64,
    ) -> Vec<ProviderProgress> {
        let taking_part = self.providers.iter().filter_map(|(id, provider)| {
            let tracee = provider.tracee.as_ref().filter(|tracee| tracee.session == session)?;
            let usage = tracee.usage(rate, saved_halves(*id)).unwrap_or_default();
            Some(ProviderProgress {
                id: id.0,
                name: provider.name.clone(),
                pid: provider.pid,
                records: usage.records,
                bytes: usage.claimed_bytes,
                dropped: usage.refused,
                fill: usage.rolling_percent,
                is_damaged: usage.is_damaged,
                held: usage.held_bytes,
            })
        });
        taking_part.collect()
    }

    pub fn terminate(&mut self, id: ProviderId) {
        if let Some(tracee) = self.providers.get_mut(&id).and_then(|provider| provider.tracee.as_mut()) {
            tracee.is_terminated = true;
        }
        self.send_request(id, ProviderRequest::Terminate);
    }

    /// Asks a provider for its categories; false if it cannot be asked.
    pub fn ask_categories(&mut self, id: ProviderId, txid: Txid) -> bool {
        let Some(provider) = self.providers.get_mut(&id) else {
            return false;
        };
        let question = ProviderRequest::GetKnownCategories.encode(txid);
        let is_sent = |channel: &Channel| send(channel, question);
        provider.may_be_asked(Question::Categories(txid)) && provider.channel.as_ref().is_some_and(is_sent)
    }

    /// Asks a provider for its categories before it records, for the client of the session.
    pub fn ask_for_session(&mut self, id: ProviderId) {
        self.send_request(id, ProviderRequest::GetKnownCategories);
    }

    fn send_request(&mut self, id: ProviderId, request: ProviderRequest<Handle>) {
        if let Some(unready) = self.unready.iter_mut().find(|unready| unready.id == id) {
            unready.next.push(Next::Send(request));
            return;
        }
        let Some(provider) = self.providers.get_mut(&id) else {
            return;
        };
        // One at a time, so that this needs no limit.
        let question = Question::Categories(SESSION_TXID);
        if matches!(request, ProviderRequest::GetKnownCategories) && !provider.unanswered.contains(&question)
        {
            provider.unanswered.push_back(question);
        }
        if let Some(channel) = &provider.channel {
            send(channel, encoded(request));
        }
    }

    /// Reports to a provider that a half is written.
    pub fn saved(&mut self, id: ProviderId, wrapped_count: u32, durable_data_end: u64) {
        self.note(id, &Entry::Saved { provider: id.0, half: wrapped_count });
        let tracee = self.providers.get_mut(&id).and_then(|provider| provider.tracee.as_mut());
        if let Some(tracee) = tracee
            && let Some(fifo) = &tracee.fifo
            && let Ok(packet) = (FifoRequest::BufferSaved { wrapped_count, durable_data_end }).encode()
        {
            // One save is under way at a time, so there is room unless the provider does not read at all.
            let _ = fifo.write(&packet);
        }
    }

    /// Starts or resumes reading a provider's buffer; `begin` bytes precede it in the archive. None if it was
    /// never made, as its provider had left by then.
    pub fn begin_transfer(
        &mut self,
        id: ProviderId,
        rate: TicksPerSecond,
        part: Part,
        begin: u64,
    ) -> Option<Transfer> {
        let has_metadata = self.session_with(id).is_some_and(|session| session.has_metadata);
        let provider = self.providers.get_mut(&id)?;
        let program = provider.program_info(has_metadata);
        let tracee = provider.tracee.as_mut()?;
        let (size, mode) = (tracee.size, tracee.mode);
        let (name, period) = (provider.name.clone(), Some(tracee.period()));
        let may_be_blank = !tracee.has_started;
        let (is_accounted, open_until) = (true, period.map(|period| Ticks(period.read)));
        let ending = tracee.ending();
        let buffer = ProviderBuffer {
            id,
            name,
            size,
            mode,
            rate,
            is_accounted,
            period,
            may_be_blank,
            program,
            open_until,
            ending,
        };
        let transfer = Transfer::new(buffer, tracee.progress.take().unwrap_or_default(), part);
        let half = match part {
            Part::Half { wrapped_count, .. } => Some(wrapped_count),
            Part::Rest { .. } => None,
        };
        let part = PartInfo { half, begin, left: transfer.left().to_vec() };
        self.note(id, &Entry::Part { provider: id.0, part });
        Some(transfer)
    }

    /// Keeps the state that the next transfer resumes from; the archive ends at this position now.
    pub fn end_transfer(&mut self, id: ProviderId, progress: Progress, end: u64) {
        self.note(id, &Entry::End { provider: id.0, end, so_far: progress.so_far() });
        let provider = self.providers.get_mut(&id);
        if let Some(tracee) = provider.and_then(|provider| provider.tracee.as_mut()) {
            tracee.progress = Some(progress);
        }
    }

    /// Forgets a provider's part in the session.
    pub fn drop_tracee(&mut self, id: ProviderId, buffer: Buffer, io: &Io) {
        self.dying.forget(id, io);
        self.adopting.retain(|adopting| adopting.from != id);
        if let Some(place) = self.unready.iter().position(|unready| unready.id == id) {
            self.unready.remove(place);
            // Its application may wait for the start.
            self.send_request(id, ProviderRequest::Terminate);
        }
        let Some(provider) = self.providers.get_mut(&id) else {
            return;
        };
        if let Some(mut tracee) = provider.tracee.take() {
            if let Some(fifo) = &tracee.fifo {
                let _ = io.waits.remove(fifo);
            }
            let mut session = self.sessions.get_mut(&tracee.session);
            let directory = session.as_mut().and_then(|session| session.directory.as_mut());
            match (buffer, directory) {
                (Buffer::Left, Some(directory)) => directory.has_left = true,
                _ => {
                    if let Some(path) = tracee.vmo.path() {
                        let _ = std::fs::remove_file(path);
                    }
                    if let Some(session) = session.filter(|_| tracee.has_started) {
                        session.kept.add(id, provider, tracee, session.has_metadata);
                    } else {
                        drop(tracee.progress.take());
                        release(tracee.vmo);
                    }
                }
            }
        }
        if provider.channel.is_none() {
            self.providers.remove(&id);
        }
    }
}

/// Gives up a share of a buffer. Releasing the pages of a large one takes a while: not here.
pub(super) fn release(vmo: Arc<Vmo>) {
    if let Some(vmo) = Arc::into_inner(vmo) {
        vmo.give_up();
    }
}

/// Encodes a request of the session's. If it has an answer, that is ignored.
fn encoded(request: ProviderRequest<Handle>) -> Result<Encoded<Handle>, ProtocolError> {
    let has_answer = matches!(request, ProviderRequest::GetKnownCategories);
    request.encode(if has_answer { SESSION_TXID } else { Txid::ONE_WAY })
}

#[cfg(test)]
mod tests;
