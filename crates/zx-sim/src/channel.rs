//! Messages with handles between two processes.

use crate::activation;
use crate::error::{Error, Result};
use crate::guest::beyond_standard;
use crate::handle::{Handle, receive_handles};
use crate::sys;
use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix,
    SocketFlags, SocketType,
};
use std::fs::Permissions;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Longest message in bytes.
pub const MAX_MESSAGE_BYTES: usize = 65_536;
/// Most handles in a message.
pub const MAX_MESSAGE_HANDLES: usize = 64;
/// Connections that wait to be accepted. With the kernel's maximum, 4096, an honest client waited for seconds
/// behind those of a flood; behind this few it mostly waits for tenths of that, and retries if the queue is
/// full.
pub(crate) const BACKLOG: i32 = 128;

/// One end of a channel.
#[derive(Debug)]
pub struct Channel(Handle);

/// A message as it arrived. Handles that are not taken out are closed with it.
#[derive(Debug)]
pub struct Message {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The handles, in the order they were sent.
    pub handles: Vec<Handle>,
}

/// The process at the other end, as the kernel knows it: the one that made the pair, connected, or listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process id; 0 for a process that cannot be seen from this one's container.
    pub pid: u32,
    /// User id.
    pub uid: u32,
}

pub(crate) fn pair(kind: SocketType) -> Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (a, b) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)
        .map_err(|source| Error::io("cannot make a socket pair", source))?;
    Ok((beyond_standard(a)?, beyond_standard(b)?))
}

/// Receives, and again if the other end closed before it read everything: the kernel then reports that once,
/// ahead of what the other end had sent and is still to be read.
pub(crate) fn receive<T>(mut attempt: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    match attempt() {
        Err(rustix::io::Errno::CONNRESET) => attempt(),
        result => result,
    }
}

/// Flags of every send. The descriptor's own flag does not do, since any other holder of the socket can clear
/// it.
pub(crate) const SEND: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// Checks that a handle is a Unix socket of the expected kind.
pub(crate) fn checked_socket(handle: Handle, kind: SocketType, expected: &'static str) -> Result<Handle> {
    let is_right = sockopt::socket_type(&handle).is_ok_and(|found| found == kind)
        && sockopt::socket_domain(&handle).is_ok_and(|found| found == AddressFamily::UNIX);
    if is_right { Ok(handle) } else { Err(Error::WrongType { expected }) }
}

impl Channel {
    /// Two connected ends.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn pair() -> Result<(Self, Self)> {
        let (a, b) = pair(SocketType::SEQPACKET)?;
        Ok((Self(Handle::new(a)), Self(Handle::new(b))))
    }

    /// Connects to the process that listens at a path, of any length.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when too many connections wait there already. Also fails if no process listens
    /// there, or the path may not be used.
    pub fn connect(path: &Path) -> Result<Self> {
        let socket = seqpacket()?;
        let (address, _directory) = address(path)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => Ok(Self(Handle::new(socket))),
            Err(rustix::io::Errno::AGAIN) => Err(Error::ShouldWait),
            Err(source) => Err(Error::io(format!("cannot connect to {}", path.display()), source)),
        }
    }

    /// Sends a message. In any case, the handles are gone afterwards: sent with the message, or closed.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when the other end has much to read already, [`Error::PeerClosed`], and a
    /// message or list of handles that is too long, or an empty message.
    pub fn write(&self, bytes: &[u8], handles: Vec<Handle>) -> Result<()> {
        if bytes.is_empty() && handles.is_empty() {
            // The other end could not distinguish it from the end of all messages.
            let (least, most) = (1, MAX_MESSAGE_BYTES as u64);
            return Err(Error::OutOfRange { what: "message size in bytes", found: 0, least, most });
        }
        if bytes.len() > MAX_MESSAGE_BYTES {
            let (found, limit) = (bytes.len(), MAX_MESSAGE_BYTES);
            return Err(Error::TooLong { what: "message", found, limit });
        }
        if handles.len() > MAX_MESSAGE_HANDLES {
            return Err(Error::TooManyHandles { found: handles.len(), limit: MAX_MESSAGE_HANDLES });
        }
        let descriptors: Vec<BorrowedFd<'_>> = handles.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_MESSAGE_HANDLES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(Error::TooManyHandles { found: descriptors.len(), limit: MAX_MESSAGE_HANDLES });
        }
        rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut ancillary, SEND)
            .map(|_| ())
            .map_err(|source| Error::of_transfer("cannot send a message", source))
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when there is none, [`Error::PeerClosed`] when none will come, and a message
    /// with more bytes or handles than allowed, or more handles than the process may have: it is gone, and
    /// its handles are closed.
    pub fn read(&self) -> Result<Message> {
        // One byte more than allowed, so that a longer message shows.
        let mut bytes = vec![0; MAX_MESSAGE_BYTES + 1];
        let (received, handles) = receive(|| receive_handles(&self.0, &mut bytes, RecvFlags::empty()))
            .map_err(|source| Error::of_transfer("cannot receive a message", source))?;
        message(bytes, received.length, handles, received.is_cut)
    }

    /// Has the kernel say of each message from now on which process has sent it: for an end whose other end
    /// several processes have. Messages are read by [`Channel::read_with_sender`] then.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn identify_senders(&self) -> Result<()> {
        sockopt::set_socket_passcred(&self.0, true)
            .map_err(|source| Error::io("cannot have senders identified", source))
    }

    /// As [`Channel::read`], with the process that has sent the message, which may be empty. One that was
    /// sent before [`Channel::identify_senders`] has none.
    ///
    /// # Errors
    /// As [`Channel::read`].
    pub fn read_with_sender(&self) -> Result<(Message, Option<Peer>)> {
        let mut bytes = vec![0; MAX_MESSAGE_BYTES + 1];
        let (received, handles) = receive(|| receive_handles(&self.0, &mut bytes, RecvFlags::empty()))
            .map_err(|source| Error::of_transfer("cannot receive a message", source))?;
        let (length, sender) = (received.length, received.sender);
        if length == 0 && handles.is_empty() && sender.is_some() {
            // The end has no sender.
            return Ok((Message { bytes: Vec::new(), handles: Vec::new() }, sender));
        }
        message(bytes, length, handles, received.is_cut).map(|message| (message, sender))
    }

    /// A channel that this process has got with a descriptor's number, under a number of its own. The
    /// original stays open.
    ///
    /// # Errors
    /// It is no channel.
    pub fn inherited(number: u32) -> Result<Self> {
        sys::duplicate(number).and_then(|descriptor| Self::from_handle(Handle::new(descriptor)))
    }

    /// The process at the other end.
    ///
    /// # Errors
    /// The operating system does not report it.
    pub fn peer(&self) -> Result<Peer> {
        sys::peer_credentials(&self.0)
    }

    /// Takes a channel out of a message.
    ///
    /// # Errors
    /// The handle is something else.
    pub fn from_handle(handle: Handle) -> Result<Self> {
        checked_socket(handle, SocketType::SEQPACKET, "channel").map(Self)
    }

    /// Puts the channel into a message.
    #[must_use]
    pub fn into_handle(self) -> Handle {
        self.0.share();
        self.0
    }
}

/// The message that was received, so many bytes of these, with its handles. `is_cut` if some of those are
/// missing.
fn message(mut bytes: Vec<u8>, length: usize, handles: Vec<Handle>, is_cut: bool) -> Result<Message> {
    let (found, limit) = (handles.len(), MAX_MESSAGE_HANDLES);
    if found > limit {
        return Err(Error::TooManyHandles { found, limit });
    }
    if is_cut {
        // There was room for more handles than a message can have.
        return Err(Error::HandlesLost);
    }
    if length == 0 && handles.is_empty() {
        // An empty message cannot be distinguished from the end, which is why none can be written.
        return Err(Error::PeerClosed);
    }
    if length > MAX_MESSAGE_BYTES {
        return Err(Error::TooLong { what: "message", found: length, limit: MAX_MESSAGE_BYTES });
    }
    bytes.truncate(length);
    bytes.shrink_to_fit();
    Ok(Message { bytes, handles })
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A path where channels can be connected to.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Listens at a path, of any length, and replaces a socket that is left there. The socket appears under
    /// its name when it can be connected to, not before; it stays when the listener is gone, and then refuses
    /// connections.
    ///
    /// # Errors
    /// The path cannot be used.
    pub fn bind(path: &Path) -> Result<Self> {
        Self::bind_with(path, None)
    }

    /// As [`Listener::bind`], for every user who can reach the path.
    ///
    /// As for [`Listener::bind`].
    /// As there.
    pub fn bind_for_all(path: &Path) -> Result<Self> {
        Self::bind_with(path, Some(0o666))
    }

    /// The listener at a path that this process was started with, by systemd's protocol for that
    /// (`LISTEN_PID`, `LISTEN_FDS`). None if it was started with none.
    ///
    /// # Errors
    /// It was started with something else, or with a socket of another path.
    pub fn inherited(path: &Path) -> Result<Option<Self>> {
        let socket = activation::socket(path)?;
        Ok(socket.map(|socket| Self { socket, path: path.to_owned() }))
    }

    fn bind_with(path: &Path, mode: Option<u32>) -> Result<Self> {
        let failed =
            |source: std::io::Error| Error::io(format!("cannot listen at {}", path.display()), source);
        let socket = seqpacket()?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let _ = std::fs::remove_file(&temporary);
        let (address, _directory) = address(&temporary)?;
        rustix::net::bind(&socket, &address).map_err(|source| failed(source.into()))?;
        let listening = rustix::net::listen(&socket, BACKLOG).map_err(std::io::Error::from);
        // No other process makes anything in the directory, so it is the socket whose mode is changed.
        let permit = |mode| std::fs::set_permissions(&temporary, Permissions::from_mode(mode));
        let listening = listening.and_then(|()| mode.map_or(Ok(()), permit));
        listening.and_then(|()| std::fs::rename(&temporary, path)).map_err(|source| {
            let _ = std::fs::remove_file(&temporary);
            failed(source)
        })?;
        Ok(Self { socket, path: path.to_owned() })
    }

    /// The next connection.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when there is none; or the process is out of descriptors.
    pub fn accept(&self) -> Result<Channel> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        rustix::net::accept_with(&self.socket, flags)
            .map(|socket| Channel(Handle::new(socket)))
            .map_err(|source| Error::of_transfer("cannot accept a connection", source))
    }

    /// Refuses all further connections, at once also those that are being made; those that were made before
    /// can still be accepted. So it is for all processes that have the socket.
    pub fn refuse_all(&self) {
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Read);
    }

    /// The path that it listens at.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn seqpacket() -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|source| Error::io("cannot make a socket", source))
        .and_then(beyond_standard)
}

/// The socket address of a path. A long one goes through the opened directory, which has to stay open until
/// the address was used.
fn address(path: &Path) -> Result<(SocketAddrUnix, Option<OwnedFd>)> {
    if let Ok(address) = SocketAddrUnix::new(path) {
        return Ok((address, None));
    }
    let failed = |source| Error::io(format!("cannot use {}", path.display()), source);
    let parent = path.parent().unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, flags, Mode::empty()).map_err(failed)?;
    let name = path.file_name().unwrap_or_default();
    let short = Path::new("/proc/thread-self/fd").join(directory.as_raw_fd().to_string()).join(name);
    SocketAddrUnix::new(&short).map(|address| (address, Some(directory))).map_err(failed)
}
