//! Connections to managers: requests and their answers, on the thread that calls.

use crate::error::{Error, Result};
use crate::start::{Tool, start_manager};
use rustix::io::{FdFlags, fcntl_setfd};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_protocol::KnownCategories;
use trace_protocol::controller::{
    FileCount, ProviderInfo, ProviderStats, ProvisionerRequest, ProvisionerResponse, SessionRequest,
    SessionResponse, SnapshotError, StopResult, TaskRequest, TaskResponse, TraceConfig,
};
use trace_protocol::memory::{MemoryDump, MemoryDumpLevel};
use trace_protocol::names::{PROVISIONER, REGISTRY, RUNTIME_NAME, RUNTIME_VARIABLE};
use trace_protocol::registry::{RECORDING_PREFIX, RegistryRequest, RegistryResponse};
use trace_protocol::{Encoded, Message, ProtocolError, Txid};
use zx_sim::{Channel, Handle, RuntimeDir, Signals, Socket, Vmo, wait_one};

/// How long a manager may take to answer a request.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// How long it may take to prove that it is alive, after it has been silent.
const LIFE_WAIT: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// How often a copy looks whether it is given up.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const CHUNK_BYTES: usize = 256 << 10;

/// How long to wait for running programs to find a manager that was just started …
const SETTLE_WAIT: Duration = Duration::from_millis(500);
/// … and how long nothing has to change before the list is complete.
const SETTLED: Duration = Duration::from_millis(100);
const SETTLE_INTERVAL: Duration = Duration::from_millis(20);

/// The directories in which a manager may run; one is started in the first.
#[must_use]
pub fn directories() -> Vec<PathBuf> {
    RuntimeDir::candidates(RUNTIME_VARIABLE, RUNTIME_NAME)
}

/// Those of a process in whose environment none is named.
#[must_use]
pub fn usual_directories() -> Vec<PathBuf> {
    RuntimeDir::candidates("", RUNTIME_NAME)
}

/// Those in which a manager of another user's may run.
#[must_use]
pub fn directories_of(user: u32) -> Vec<PathBuf> {
    RuntimeDir::of_user(user, RUNTIME_NAME)
}

/// The providers that are registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Providers {
    /// In the order of their registration; at most 1000.
    pub listed: Vec<ProviderInfo>,
    /// How many more there are than fit into an answer.
    pub left_out: u32,
}

/// A connection to a manager.
#[derive(Debug)]
pub struct Connection {
    channel: Channel,
    directory: PathBuf,
    is_new: bool,
    /// Running programs had time to find it.
    is_settled: bool,
    next_txid: u32,
}

impl Connection {
    /// Connects to a running manager, if there is one.
    ///
    /// # Errors
    /// There is one, which is not trusted or does not accept the connection.
    pub fn find() -> Result<Option<Self>> {
        let directories = directories();
        for directory in &directories {
            match Self::find_in(directory) {
                Err(error) if directories.len() == 1 => return Err(error),
                // Another user has taken its name: try the next directory.
                Ok(None) | Err(_) => {}
                found => return found,
            }
        }
        Ok(None)
    }

    /// Connects to the manager that runs in a directory, if there is one.
    ///
    /// # Errors
    /// As of [`Connection::find`].
    pub fn find_in(directory: &Path) -> Result<Option<Self>> {
        Self::find_of(directory, None)
    }

    /// As [`Connection::find_in`], for root, who may act for another user: that user's manager is trusted,
    /// too.
    ///
    /// # Errors
    /// As of [`Connection::find`].
    pub fn find_of(directory: &Path, user: Option<u32>) -> Result<Option<Self>> {
        // A socket that starts a manager exists without one; the manager itself makes the other socket.
        let is_running = directory.join(REGISTRY).exists();
        let channel = connect(directory, user)?;
        Ok(channel.map(|channel| Self::over(channel, directory, !is_running)))
    }

    /// Connects to a running manager, or starts one with a tool.
    ///
    /// # Errors
    /// As of [`Connection::find`], or it does not start.
    pub fn open(tool: &Tool) -> Result<Self> {
        if let Some(found) = Self::find()? {
            return Ok(found);
        }
        let directory = directories().into_iter().next().ok_or(Error::NoDirectory)?;
        Self::start_in(&directory, tool, false)
    }

    /// The same in one directory.
    ///
    /// # Errors
    /// As of [`Connection::open`].
    pub fn open_in(directory: &Path, tool: &Tool) -> Result<Self> {
        match Self::find_in(directory)? {
            Some(found) => Ok(found),
            None => Self::start_in(directory, tool, false),
        }
    }

    /// Connects to root's manager for all users, or starts it with a tool. Only root can.
    ///
    /// # Errors
    /// As of [`Connection::open`].
    pub fn open_for_all(tool: &Tool) -> Result<Self> {
        let directory = directories().pop().ok_or(Error::NoDirectory)?;
        match Self::find_in(&directory)? {
            Some(found) => Ok(found),
            None => Self::start_in(&directory, tool, true),
        }
    }

    fn start_in(directory: &Path, tool: &Tool, is_for_all: bool) -> Result<Self> {
        let channel = start_manager(directory, tool, is_for_all)?;
        Ok(Self::over(channel, directory, true))
    }

    fn over(channel: Channel, directory: &Path, is_new: bool) -> Self {
        Self { channel, directory: directory.to_owned(), is_new, is_settled: !is_new, next_txid: 1 }
    }

    /// The manager's runtime directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The manager's process; none if it cannot be seen from this one's container.
    #[must_use]
    pub fn manager(&self) -> Option<u32> {
        self.channel.peer().ok().map(|manager| manager.pid).filter(|pid| *pid != 0)
    }

    /// The user whose manager it is.
    #[must_use]
    pub fn manager_user(&self) -> Option<u32> {
        self.channel.peer().ok().map(|manager| manager.uid)
    }

    /// This process started the manager, directly or by connecting to the socket that starts it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Checks that the manager answers, before a request that may take long.
    ///
    /// # Errors
    /// As of [`Connection::ask`].
    pub fn check(&mut self) -> Result<()> {
        self.ask(ProvisionerRequest::GetProviders).map(drop)
    }

    /// Whether the manager responds: it answers this at once, even while it waits for providers.
    pub fn is_alive(&mut self) -> bool {
        self.ask_for(ProvisionerRequest::GetProviders, Some(LIFE_WAIT)).is_ok()
    }

    /// Sends a request and waits for the answer, for 5 s.
    ///
    /// # Errors
    /// The manager does not answer, has closed the connection, refuses, or sends something else.
    pub fn ask(&mut self, request: ProvisionerRequest<Handle>) -> Result<ProvisionerResponse> {
        self.ask_for(request, Some(ANSWER_WAIT))
    }

    /// As [`Connection::ask`], for another time, or without a limit.
    ///
    /// # Errors
    /// As of [`Connection::ask`].
    pub fn ask_for(
        &mut self,
        request: ProvisionerRequest<Handle>,
        wait: Option<Duration>,
    ) -> Result<ProvisionerResponse> {
        let txid = self.send(request)?;
        self.answer_to(&[txid], wait).map(|(_, response)| response)
    }

    fn send(&mut self, request: ProvisionerRequest<Handle>) -> Result<Txid> {
        let txid = Txid(self.next_txid);
        self.next_txid += 1;
        send(&self.channel, request.encode(txid))?;
        Ok(txid)
    }

    /// Waits for the answer to any of these requests.
    fn answer_to(&self, txids: &[Txid], wait: Option<Duration>) -> Result<(Txid, ProvisionerResponse)> {
        let deadline = wait.map(|wait| Instant::now() + wait);
        loop {
            match receive::<ProvisionerResponse>(&self.channel)? {
                Received::Message(found, response) if txids.contains(&found) => return Ok((found, response)),
                Received::Message(_, ProvisionerResponse::Refused { reason }) => {
                    return Err(Error::Refused(reason.into()));
                }
                Received::Message(..) => {}
                Received::Closed => return Err(Error::Closed),
                Received::Nothing => wait_for_message(&self.channel, deadline)?,
            }
        }
    }

    /// Sends a request that may take long, and waits for the answer as long as the manager responds to
    /// others.
    fn ask_for_long(
        &mut self,
        request: ProvisionerRequest<Handle>,
        wait: Duration,
    ) -> Result<ProvisionerResponse> {
        let wanted = self.send(request)?;
        loop {
            match self.answer_to(&[wanted], Some(wait)) {
                Err(Error::NoAnswer) => {}
                answer => return answer.map(|(_, response)| response),
            }
            let life = self.send(ProvisionerRequest::GetProviders)?;
            match self.answer_to(&[wanted, life], Some(wait))? {
                (found, response) if found == wanted => return Ok(response),
                _ => {}
            }
        }
    }

    /// The providers that are registered.
    ///
    /// # Errors
    /// As of [`Connection::ask`].
    pub fn providers(&mut self) -> Result<Providers> {
        match self.ask(ProvisionerRequest::GetProviders)? {
            ProvisionerResponse::Providers { listed, left_out } => Ok(Providers { listed, left_out }),
            _ => Err(Error::UnexpectedAnswer),
        }
    }

    /// The same, after running programs had time to find a [new](Self::is_new) manager: up to 500 ms.
    ///
    /// # Errors
    /// As of [`Connection::ask`].
    pub fn settled_providers(&mut self) -> Result<Providers> {
        let mut providers = self.providers()?;
        if self.is_settled {
            return Ok(providers);
        }
        let deadline = Instant::now() + SETTLE_WAIT;
        let mut changed = Instant::now();
        while Instant::now() < deadline && (providers.listed.is_empty() || changed.elapsed() < SETTLED) {
            std::thread::sleep(SETTLE_INTERVAL);
            let now = self.providers()?;
            if now != providers {
                changed = Instant::now();
                providers = now;
            }
        }
        self.is_settled = true;
        Ok(providers)
    }

    /// The categories that running programs know.
    ///
    /// # Errors
    /// As of [`Connection::ask`].
    pub fn known_categories(&mut self) -> Result<KnownCategories> {
        match self.ask(ProvisionerRequest::GetKnownCategories)? {
            ProvisionerResponse::KnownCategories(categories) => Ok(categories),
            _ => Err(Error::UnexpectedAnswer),
        }
    }

    /// Has the programs of the running recordings write down what they use memory for.
    ///
    /// # Errors
    /// As of [`Connection::ask`], or nothing is being recorded.
    pub fn dump_memory(&mut self, level: MemoryDumpLevel) -> Result<MemoryDump> {
        match self.ask(ProvisionerRequest::DumpMemory(level))? {
            ProvisionerResponse::DumpMemory(dump) => dump.ok_or(Error::NothingRecorded),
            _ => Err(Error::UnexpectedAnswer),
        }
    }

    /// Copies the buffers of a running recording, of any client, and returns what was found in each. The
    /// recording goes on. It is the one in which a program takes part that has this name or process id;
    /// without a program, the only one.
    ///
    /// # Errors
    /// As of [`Connection::ask`]; nothing is being recorded; several recordings could be meant; or the
    /// snapshot cannot be written.
    //= docs/protocol.md#snapshot
    pub fn snapshot(
        &mut self,
        program: Option<&str>,
        output: &mut (impl Write + Send),
    ) -> Result<Vec<ProviderStats>> {
        self.check()?;
        let (ours, theirs) = Socket::pair()?;
        let request = ProvisionerRequest::TakeSnapshot {
            program: program.map(str::to_owned),
            output: theirs.into_handle(),
        };
        let is_given_up = AtomicBool::new(false);
        let (answer, copied) = std::thread::scope(|scope| {
            let copying = scope.spawn(|| copy(&ours, output, &is_given_up));
            let answer = self.ask_for_long(request, ANSWER_WAIT);
            is_given_up.store(answer.is_err(), Ordering::Relaxed);
            (answer, copying.join())
        });
        let copied = copied.map_err(|_| Error::Thread(None))?;
        match answer? {
            ProvisionerResponse::TakeSnapshot(Ok(StopResult { provider_stats })) => {
                copied.map(|()| provider_stats).map_err(Error::Snapshot)
            }
            ProvisionerResponse::TakeSnapshot(Err(error)) => Err(match error {
                SnapshotError::NotStarted => Error::NothingRecorded,
                SnapshotError::Several => Error::SeveralRecordings,
                SnapshotError::Busy => Error::SnapshotBusy,
                SnapshotError::Aborted => Error::SnapshotCutOff,
            }),
            _ => Err(Error::UnexpectedAnswer),
        }
    }

    /// Sends a request about a recording that the manager holds itself.
    ///
    /// # Errors
    /// As of [`Connection::ask`].
    pub fn ask_about_task(
        &mut self,
        request: TaskRequest<Handle>,
        wait: Option<Duration>,
    ) -> Result<TaskResponse> {
        match self.ask_for(ProvisionerRequest::Task(request), wait)? {
            ProvisionerResponse::Task(response) => Ok(response),
            _ => Err(Error::UnexpectedAnswer),
        }
    }

    /// Sets up a session; its archive arrives through the socket. A manager that can writes it into `file`
    /// instead.
    //= docs/protocol.md#files-that-are-handed-over
    pub(crate) fn initialize(
        &self,
        config: TraceConfig,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(SessionChannel, Socket)> {
        let (session, their_session) = Channel::pair()?;
        let (output, their_output) = Socket::pair()?;
        if let Some(file) = file {
            output.write_with(&FileCount::Written(0).value().to_le_bytes(), file)?;
        }
        let request = ProvisionerRequest::InitializeTracing {
            session: their_session.into_handle(),
            config,
            output: their_output.into_handle(),
        };
        send(&self.channel, request.encode(Txid::ONE_WAY))?;
        Ok((SessionChannel { channel: session, next_txid: 1 }, output))
    }
}

/// Copies all that arrives, until the socket is closed or that is given up.
fn copy(input: &Socket, output: &mut impl Write, is_given_up: &AtomicBool) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        if is_given_up.load(Ordering::Relaxed) {
            return Ok(());
        }
        match input.read(&mut chunk) {
            Ok(0) | Err(zx_sim::Error::PeerClosed) => return output.flush(),
            Ok(length) => output.write_all(&chunk[..length])?,
            Err(zx_sim::Error::ShouldWait) => {
                let look = Some(Instant::now() + LOOK_INTERVAL);
                let _ = wait_one(input, Signals::READABLE | Signals::PEER_CLOSED, look);
            }
            Err(error) => return Err(std::io::Error::other(error)),
        }
    }
}

/// A connection with the socket for providers of a directory's manager, which commands inherit: each of their
/// programs registers through it.
///
/// # Errors
/// There is no manager, or it is of a release that does not share connections.
//= docs/protocol.md#shared-connections
pub fn shared(directory: &Path) -> Result<Channel> {
    let channel = Channel::connect(&directory.join(REGISTRY))?;
    send(&channel, RegistryRequest::ShareRegistry.encode(Txid(1)))?;
    let deadline = Instant::now() + ANSWER_WAIT;
    loop {
        match receive::<RegistryResponse>(&channel)? {
            Received::Message(..) => break,
            Received::Closed => return Err(Error::NotShared),
            Received::Nothing => wait_for_message(&channel, Some(deadline))?,
        }
    }
    // The command is to have it.
    fcntl_setfd(&channel, FdFlags::empty()).map_err(|error| Error::CannotStart(error.into()))?;
    Ok(channel)
}

/// Waits until a channel has a message or is closed.
fn wait_for_message(channel: &Channel, deadline: Option<Instant>) -> Result<()> {
    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        return Err(Error::NoAnswer);
    }
    wait_one(channel, Signals::READABLE | Signals::PEER_CLOSED, deadline)?;
    Ok(())
}

/// A session's channel.
#[derive(Debug)]
pub(crate) struct SessionChannel {
    channel: Channel,
    next_txid: u32,
}

/// The result of reading a channel.
pub(crate) enum Received<T> {
    /// A message and the request it answers.
    Message(Txid, T),
    /// Nothing yet.
    Nothing,
    /// The channel is closed.
    Closed,
}

impl SessionChannel {
    /// Sends a request; its answer comes with [`SessionChannel::receive`].
    pub fn request(&mut self, request: SessionRequest) -> Result<()> {
        let txid = Txid(self.next_txid);
        self.next_txid += 1;
        send(&self.channel, Message::<Handle>::encode(request, txid))
    }

    /// The next message, without waiting.
    pub fn receive(&self) -> Result<Received<SessionResponse>> {
        receive(&self.channel)
    }
}

impl AsFd for SessionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

fn send(channel: &Channel, message: std::result::Result<Encoded<Handle>, ProtocolError>) -> Result<()> {
    let message = message.map_err(Error::Request)?.spill(Vmo::store)?;
    match channel.write(&message.bytes, message.handles) {
        Ok(()) => Ok(()),
        Err(zx_sim::Error::PeerClosed) => Err(Error::Closed),
        Err(error) => Err(error.into()),
    }
}

fn receive<T: Message<Handle>>(channel: &Channel) -> Result<Received<T>> {
    let message = match channel.read() {
        Ok(message) => message,
        Err(zx_sim::Error::ShouldWait) => return Ok(Received::Nothing),
        Err(zx_sim::Error::PeerClosed) => return Ok(Received::Closed),
        Err(error) => return Err(error.into()),
    };
    let encoded = Encoded { bytes: message.bytes, handles: message.handles };
    let encoded = encoded.unspill(Vmo::load).map_err(Error::Protocol)?;
    let (txid, message) = T::decode(&encoded.bytes, encoded.handles).map_err(Error::Protocol)?;
    Ok(Received::Message(txid, message))
}

/// Whether a manager in a directory responds.
#[must_use]
pub fn answers(directory: &Path) -> bool {
    Connection::find_in(directory).ok().flatten().is_some_and(|mut connection| connection.check().is_ok())
}

/// Whether the manager in a directory announces a recording.
#[must_use]
pub fn announces_recording(directory: &Path) -> bool {
    let mut entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with(RECORDING_PREFIX))
}

/// Connects to a manager that listens in a directory, if there is one of this user's, of root's, or of a user
/// that is trusted, too.
pub(crate) fn connect(directory: &Path, trusted: Option<u32>) -> Result<Option<Channel>> {
    let socket = directory.join(PROVISIONER);
    let deadline = Instant::now() + ANSWER_WAIT;
    let channel = loop {
        match Channel::connect(&socket) {
            Ok(channel) => break channel,
            // It has other connections to accept first.
            Err(zx_sim::Error::ShouldWait) if Instant::now() < deadline => {
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(zx_sim::Error::ShouldWait) => return Err(Error::Busy),
            Err(_) => return Ok(None),
        }
    };
    let user = rustix::process::getuid().as_raw();
    let owner = channel.peer()?.uid;
    if owner != user && owner != 0 && Some(owner) != trusted {
        return Err(Error::NotTrusted { socket, owner, user });
    }
    Ok(Some(channel))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the next request, which comes at once.
    fn request(channel: &Channel) -> Txid {
        wait_one(channel, Signals::READABLE, None).unwrap();
        match receive::<ProvisionerRequest<Handle>>(channel).unwrap() {
            Received::Message(txid, _) => txid,
            _ => panic!("no request"),
        }
    }

    fn providers(channel: &Channel, txid: Txid) {
        let answer = ProvisionerResponse::Providers { listed: Vec::new(), left_out: 0 };
        send(channel, Message::<Handle>::encode(answer, txid)).unwrap();
    }

    #[test]
    fn what_takes_long_is_waited_for_while_the_manager_responds() {
        let wait = Duration::from_millis(50);
        let ask = |manage: fn(&Channel)| {
            let (ours, theirs) = Channel::pair().unwrap();
            let mut connection = Connection::over(ours, Path::new("/"), false);
            std::thread::scope(|scope| {
                scope.spawn(|| manage(&theirs));
                connection.ask_for_long(ProvisionerRequest::GetKnownCategories, wait)
            })
        };
        let answer = ask(|manager| {
            let wanted = request(manager);
            (0..3).for_each(|_| providers(manager, request(manager)));
            send(manager, Message::<Handle>::encode(known(), wanted)).unwrap();
        });
        assert_eq!(answer.unwrap(), known());
        // It comes after the other request, and before its answer.
        let answer = ask(|manager| {
            let wanted = request(manager);
            request(manager);
            send(manager, Message::<Handle>::encode(known(), wanted)).unwrap();
        });
        assert_eq!(answer.unwrap(), known());
        let answer = ask(|manager| {
            request(manager);
            providers(manager, request(manager));
            request(manager);
        });
        assert!(matches!(answer, Err(Error::NoAnswer)), "{answer:?}");
    }

    fn known() -> ProvisionerResponse {
        ProvisionerResponse::KnownCategories(KnownCategories::default())
    }
}
