//! Connections to managers: finds one or starts one, sends it requests, and holds a session with it.

use crate::exit::{ALREADY_RUNNING, Failure};
use rustix::fs::{Access, Mode};
use rustix::io::{FdFlags, fcntl_setfd};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trace_protocol::controller::{
    FileCount, ProvisionerRequest, ProvisionerResponse, SessionRequest, SessionResponse, TraceConfig,
};
use trace_protocol::names::{PROVISIONER, REGISTRY, RUNTIME_NAME, RUNTIME_VARIABLE};
use trace_protocol::registry::{RECORDING_PREFIX, RegistryRequest, RegistryResponse};
use trace_protocol::{Encoded, Message, ProtocolError, Txid};
use zx_sim::{Channel, Error, Handle, RuntimeDir, Signals, Socket, Vmo, wait_one};

/// The messages of a manager that was started on demand.
const LOG: &str = "manager.log";
/// How long a manager may take to start, on the busiest machine: one that cannot start reports that.
const START_WAIT: Duration = Duration::from_secs(30);
/// How long a manager may take to answer a request.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// How long it may take to prove that it is alive, after it has been silent.
const LIFE_WAIT: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The directories in which a manager may run; one is started in the first.
pub fn directories() -> Vec<PathBuf> {
    RuntimeDir::candidates(RUNTIME_VARIABLE, RUNTIME_NAME)
}

/// Directories in which a runtime directory may be made, the best first: in memory, then on disks.
const BASES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];
/// There is no recording that a command could act on.
pub const NOTHING_RECORDED: &str = "nothing is being recorded: begin with trace record or trace start";
/// Room for the buffers of a few programs.
pub const ENOUGH_MIB: u64 = 64;

/// Free mebibytes on the file system of a directory.
pub fn free_mebibytes(directory: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(directory).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize) >> 20)
}

/// The command that selects a new runtime directory, whatever problem the current one has, so that nothing in
/// that is deleted or made accessible to other users. None if no directory has enough room.
pub fn own_directory() -> Option<String> {
    let has_room = |base: &&str| {
        rustix::fs::access(*base, Access::WRITE_OK | Access::EXEC_OK).is_ok()
            && free_mebibytes(Path::new(base)) >= Some(ENOUGH_MIB)
    };
    let base = BASES.into_iter().find(has_room)?;
    Some(format!("export {RUNTIME_VARIABLE}=\"$(mktemp -d {base}/trace-XXXXXX)\""))
}

/// The same as part of a sentence.
pub fn advice() -> String {
    own_directory().map_or_else(
        || format!("set {RUNTIME_VARIABLE} to a directory of your own with enough room"),
        |command| format!("use another: {command}"),
    )
}

/// Why no recording could begin, with the command that ends the recording that is in its way.
pub fn with_remedy(reason: &str) -> String {
    let owner = reason.split_once(" is in use by ").map_or("", |(_, owner)| owner);
    let command = owner.split('"').nth(1).and_then(|line| line.split_whitespace().nth(1));
    let pid = owner.rsplit_once("pid ").map(|(_, pid)| pid.trim_end_matches(')'));
    match (command, pid) {
        // That process has ended long ago: the manager records.
        (Some("start"), _) => format!("{reason}; trace stop ends it"),
        (_, Some(pid)) => format!("{reason}; kill -INT {pid} ends it"),
        (_, None) => reason.to_owned(),
    }
}

/// What is in the way, if that is why no recording could begin.
pub fn in_use(failure: &str) -> Option<&str> {
    // Of a recording that has just ended.
    let ending = "the session before is still being read";
    if failure.ends_with(ending) {
        return Some(ending);
    }
    let (before, owner) = failure.split_once(" is in use by ")?;
    let begin = before.rfind(": ").map_or(0, |colon| colon + 2);
    let end = owner.rfind("; ").unwrap_or(owner.len());
    failure.get(begin..failure.len() - owner.len() + end)
}

/// A connection to a manager.
#[derive(Debug)]
pub struct Connection {
    channel: Channel,
    directory: PathBuf,
    /// This process started the manager, directly or by connecting to the socket that starts it.
    pub is_new: bool,
    next_txid: u32,
}

impl Connection {
    /// Connects to a running manager, if there is one.
    pub fn find() -> Result<Option<Self>, Failure> {
        let directories = directories();
        for directory in &directories {
            // A socket that starts a manager exists without one; the manager itself makes the other socket.
            let is_running = directory.join(REGISTRY).exists();
            match connect(directory) {
                Ok(Some(channel)) => return Ok(Some(Self::over(channel, directory, !is_running))),
                Ok(None) => {}
                Err(error) if directories.len() == 1 => return Err(error),
                // Another user has taken its name: try the next directory.
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Connects to a running manager, or starts one.
    pub fn open() -> Result<Self, Failure> {
        if let Some(found) = Self::find()? {
            return Ok(found);
        }
        let directories = directories();
        let Some(directory) = directories.first() else {
            return Err(Failure::new("no directory is suitable as runtime directory"));
        };
        let channel = start_manager(directory)?;
        Ok(Self::over(channel, directory, true))
    }

    fn over(channel: Channel, directory: &Path, is_new: bool) -> Self {
        Self { channel, directory: directory.to_owned(), is_new, next_txid: 1 }
    }

    /// The manager's runtime directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Checks that the manager answers, before a request that may take long.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.ask(ProvisionerRequest::GetProviders).map(drop)
    }

    /// Whether the manager responds: it answers this at once, even while it waits for providers.
    pub fn is_alive(&mut self) -> bool {
        self.ask_for(ProvisionerRequest::GetProviders, Some(LIFE_WAIT)).is_ok()
    }

    /// Sends a request and waits for the answer.
    pub fn ask(&mut self, request: ProvisionerRequest<Handle>) -> Result<ProvisionerResponse, Failure> {
        self.ask_for(request, Some(ANSWER_WAIT))
    }

    /// As [`Connection::ask`], for a limited time, or without a limit.
    pub fn ask_for(
        &mut self,
        request: ProvisionerRequest<Handle>,
        wait: Option<Duration>,
    ) -> Result<ProvisionerResponse, Failure> {
        let txid = Txid(self.next_txid);
        self.next_txid += 1;
        send(&self.channel, request.encode(txid))?;
        let deadline = wait.map(|wait| Instant::now() + wait);
        loop {
            match receive::<ProvisionerResponse>(&self.channel)? {
                Received::Message(found, response) if found == txid => return Ok(response),
                Received::Message(_, ProvisionerResponse::Refused { reason }) => {
                    return Err(Failure::new(format!("the trace manager refused: {reason}")));
                }
                Received::Message(..) => {}
                Received::Closed => return Err(Failure::new("the trace manager closed the connection")),
                Received::Nothing if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                    return Err(Failure::new("the trace manager does not answer"));
                }
                Received::Nothing => {
                    let wanted = Signals::READABLE | Signals::PEER_CLOSED;
                    wait_one(&self.channel, wanted, deadline).map_err(|error| system(&error))?;
                }
            }
        }
    }

    /// Sets up a session; its archive arrives through the socket. A manager that can writes it into `file`
    /// instead.
    //= docs/protocol.md#files-that-are-handed-over
    pub fn initialize(
        &self,
        config: TraceConfig,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(SessionChannel, Socket), Failure> {
        let (session, their_session) = Channel::pair().map_err(|error| system(&error))?;
        let (output, their_output) = Socket::pair().map_err(|error| system(&error))?;
        if let Some(file) = file {
            output
                .write_with(&FileCount::Written(0).value().to_le_bytes(), file)
                .map_err(|error| system(&error))?;
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

/// A connection with the socket for providers of a directory's manager, which commands inherit: each of their
/// programs registers through it.
//= docs/protocol.md#shared-connections
pub fn shared(directory: &Path) -> Result<Channel, Failure> {
    let channel = Channel::connect(&directory.join(REGISTRY)).map_err(|error| system(&error))?;
    send(&channel, RegistryRequest::ShareRegistry.encode(Txid(1)))?;
    let deadline = Instant::now() + ANSWER_WAIT;
    loop {
        match receive::<RegistryResponse>(&channel)? {
            Received::Message(..) => break,
            Received::Closed => {
                return Err(Failure::new("--manager-fd: the trace manager does not share connections"));
            }
            Received::Nothing if Instant::now() >= deadline => {
                return Err(Failure::new("the trace manager does not answer"));
            }
            Received::Nothing => {
                let wanted = Signals::READABLE | Signals::PEER_CLOSED;
                wait_one(&channel, wanted, Some(deadline)).map_err(|error| system(&error))?;
            }
        }
    }
    // The command is to have it.
    fcntl_setfd(&channel, FdFlags::empty())
        .map_err(|error| Failure::new(format!("--manager-fd: {error}")))?;
    Ok(channel)
}

/// A session's channel.
#[derive(Debug)]
pub struct SessionChannel {
    channel: Channel,
    next_txid: u32,
}

/// The result of reading a channel.
pub enum Received<T> {
    /// A message and the request it answers.
    Message(Txid, T),
    /// Nothing yet.
    Nothing,
    /// The channel is closed.
    Closed,
}

impl SessionChannel {
    /// Sends a request; its answer comes with [`SessionChannel::receive`].
    pub fn request(&mut self, request: SessionRequest) -> Result<(), Failure> {
        let txid = Txid(self.next_txid);
        self.next_txid += 1;
        send(&self.channel, Message::<Handle>::encode(request, txid))
    }

    /// The next message, without waiting.
    pub fn receive(&self) -> Result<Received<SessionResponse>, Failure> {
        receive(&self.channel)
    }
}

impl std::os::fd::AsFd for SessionChannel {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// An error of the operating system.
pub fn system(error: &Error) -> Failure {
    Failure::new(error.to_string())
}

fn protocol(error: &ProtocolError) -> Failure {
    Failure::new(format!("the trace manager speaks another protocol: {error}"))
}

fn send(channel: &Channel, message: Result<Encoded<Handle>, ProtocolError>) -> Result<(), Failure> {
    let message = message.map_err(|error| Failure::new(error.to_string()))?;

    let message = message.spill(Vmo::store).map_err(|error| system(&error))?;
    match channel.write(&message.bytes, message.handles) {
        Ok(()) => Ok(()),
        Err(Error::PeerClosed) => Err(Failure::new("the trace manager closed the connection")),
        Err(error) => Err(system(&error)),
    }
}

fn receive<T: Message<Handle>>(channel: &Channel) -> Result<Received<T>, Failure> {
    let message = match channel.read() {
        Ok(message) => message,
        Err(Error::ShouldWait) => return Ok(Received::Nothing),
        Err(Error::PeerClosed) => return Ok(Received::Closed),
        Err(error) => return Err(system(&error)),
    };
    let encoded = Encoded { bytes: message.bytes, handles: message.handles };
    let encoded = encoded.unspill(Vmo::load).map_err(|error| protocol(&error))?;
    let (txid, message) = T::decode(&encoded.bytes, encoded.handles).map_err(|error| protocol(&error))?;
    Ok(Received::Message(txid, message))
}

/// Whether a manager in a directory responds.
pub fn answers(directory: &Path) -> bool {
    let channel = connect(directory).ok().flatten();
    channel.is_some_and(|channel| Connection::over(channel, directory, false).check().is_ok())
}

/// Whether the manager in a directory announces a recording.
pub fn announces_recording(directory: &Path) -> bool {
    let mut entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with(RECORDING_PREFIX))
}

/// Connects to a manager that listens in a directory, if there is a trusted one.
fn connect(directory: &Path) -> Result<Option<Channel>, Failure> {
    let socket = directory.join(PROVISIONER);
    let deadline = Instant::now() + ANSWER_WAIT;
    let channel = loop {
        match Channel::connect(&socket) {
            Ok(channel) => break channel,
            // It has other connections to accept first.
            Err(Error::ShouldWait) if Instant::now() < deadline => std::thread::sleep(RETRY_INTERVAL),
            Err(Error::ShouldWait) => {
                return Err(Failure::new("the trace manager is busy with other programs, or hangs"));
            }
            Err(_) => return Ok(None),
        }
    };
    let uid = rustix::process::getuid().as_raw();
    let peer = channel.peer().map_err(|error| system(&error))?;
    if peer.uid != uid && peer.uid != 0 {
        return Err(Failure::new(format!(
            "{} belongs to user {}, not to user {uid}: not used; {}",
            socket.display(),
            peer.uid,
            advice()
        )));
    }
    Ok(Some(channel))
}

/// Starts a manager that exits when it is no longer needed.
fn start_manager(directory: &Path) -> Result<Channel, Failure> {
    let runtime = RuntimeDir::open_or_create(directory);
    let runtime = runtime.map_err(|error| {
        let why = error.to_string();
        // A directory that others may write into is shared on purpose, as /tmp is.
        let is_private = directory.metadata().is_ok_and(|found| found.permissions().mode() & 0o022 == 0);
        let remedy = match why.contains("has mode") && is_private {
            true => format!("chmod 700 {}, or {}", directory.display(), advice()),
            false => advice(),
        };
        Failure::new(format!("{why}; {remedy}"))
    })?;
    let log_path = directory.join(LOG);
    // Another client's manager may be writing it at this moment.
    let log = runtime.append_to_file(LOG).map_err(|error| system(&error))?;
    // Regardless of the umask, the next one can write to it.
    let _ = rustix::fs::fchmod(&log, Mode::RUSR | Mode::WUSR);
    let tool = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find the trace tool itself: {error}")))?;
    let start = || -> Result<Child, Failure> {
        let log = log.try_clone().map_err(|error| Failure::new(format!("cannot use the log: {error}")))?;
        Command::new(&tool)
            .arg0("trace-manager")
            .args(["manager", "--on-demand"])
            .env(RUNTIME_VARIABLE, directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| Failure::new(format!("cannot start a trace manager: {error}")))
    };
    let mut manager = start()?;
    let deadline = Instant::now() + START_WAIT;
    loop {
        if let Some(channel) = connect(directory)? {
            return Ok(channel);
        }
        match manager.try_wait() {
            Ok(None) => {}
            // Another client's manager was faster, and will listen in a moment, unless it dies before.
            Ok(Some(status)) if status.code() == Some(ALREADY_RUNNING.into()) => manager = start()?,
            Ok(Some(_)) | Err(_) => {
                let text = std::fs::read_to_string(&log_path).unwrap_or_default();
                let why = text.lines().last().unwrap_or("it reported no reason").to_owned();
                return Err(Failure::new(format!("the trace manager did not start: {why}")));
            }
        }
        if Instant::now() >= deadline {
            let _ = manager.kill();
            return Err(Failure::new(format!("the trace manager did not start within {START_WAIT:?}")));
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_named_with_what_ends_it() {
        let of = |owner: &str| with_remedy(&format!("the trace manager is in use by {owner}"));
        let start = "\"/usr/bin/trace start -o a.fxt\" (pid 7)";
        assert_eq!(of(start), format!("the trace manager is in use by {start}; trace stop ends it"));
        assert!(of("\"trace record -- start\" (pid 7)").ends_with("(pid 7); kill -INT 7 ends it"));
        assert!(of("pid 7").ends_with("pid 7; kill -INT 7 ends it"));
        assert!(of("user 1000").ends_with("by user 1000"));
        assert_eq!(with_remedy("no room"), "no room");
        let failure = format!("unable to start trace: {}", of(start));
        assert_eq!(in_use(&failure), Some(&*format!("the trace manager is in use by {start}")));
        assert_eq!(
            in_use("the trace manager is in use by user 1"),
            Some("the trace manager is in use by user 1")
        );
        let ending = "the session before is still being read";
        assert_eq!(in_use(&format!("unable to start trace: {ending}")), Some(ending));
        assert_eq!(in_use("no room"), None);
    }
}
