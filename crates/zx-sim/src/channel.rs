//! Messages with handles between two processes.

use crate::error::{Error, Result};
use crate::handle::Handle;
use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Longest message in bytes.
pub const MAX_MESSAGE_BYTES: usize = 65_536;
/// Most handles in a message.
pub const MAX_MESSAGE_HANDLES: usize = 64;
const BACKLOG: i32 = 128;

/// One end of a channel.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// A message as it arrived. Handles that are not taken out are closed with it.
#[derive(Debug)]
pub struct Message {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The handles, in the order they were sent.
    pub handles: Vec<Handle>,
}

/// Who is at the other end, as the kernel knows it: whoever made the pair, or connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process id.
    pub pid: u32,
    /// User id.
    pub uid: u32,
}

pub(crate) fn pair(kind: SocketType) -> Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)
        .map_err(|source| Error::io("cannot make a socket pair", source))
}

/// Checks that a handle is a Unix socket of the expected kind, and makes it non-blocking.
pub(crate) fn checked_socket(handle: Handle, kind: SocketType, expected: &'static str) -> Result<OwnedFd> {
    let descriptor = handle.into_fd();
    let is_right = sockopt::socket_type(&descriptor).is_ok_and(|found| found == kind)
        && sockopt::socket_domain(&descriptor).is_ok_and(|found| found == AddressFamily::UNIX);
    if !is_right {
        return Err(Error::WrongType { expected });
    }
    rustix::io::ioctl_fionbio(&descriptor, true)
        .map_err(|source| Error::io("cannot make a socket non-blocking", source))?;
    Ok(descriptor)
}

impl Channel {
    /// Two connected ends.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn pair() -> Result<(Self, Self)> {
        let (a, b) = pair(SocketType::SEQPACKET)?;
        Ok((Self(a), Self(b)))
    }

    /// Connects to whoever listens at a path, of any length.
    ///
    /// # Errors
    /// Nobody listens there, or the path may not be used.
    pub fn connect(path: &Path) -> Result<Self> {
        let socket = seqpacket()?;
        let (address, _directory) = address(path)?;
        rustix::net::connect(&socket, &address)
            .map_err(|source| Error::io(format!("cannot connect to {}", path.display()), source))?;
        Ok(Self(socket))
    }

    /// Sends a message. Whatever happens, the handles are gone afterwards: with the message, or closed.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when the other end has much to read already, [`Error::PeerClosed`], and a
    /// message or list of handles that is too long.
    pub fn write(&self, bytes: &[u8], handles: Vec<Handle>) -> Result<()> {
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
        rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)
            .map(|_| ())
            .map_err(|source| Error::of_transfer("cannot send a message", source))
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when there is none, [`Error::PeerClosed`] when none will come, and a message
    /// with more bytes or handles than allowed, whose handles are closed.
    pub fn read(&self) -> Result<Message> {
        // One byte more than allowed, so that a longer message shows.
        let mut bytes = vec![0; MAX_MESSAGE_BYTES + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_MESSAGE_HANDLES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            &self.0,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
        .map_err(|source| Error::of_transfer("cannot receive a message", source))?;
        let mut handles = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                handles.extend(descriptors.map(Handle::new));
            }
        }
        if received.bytes == 0 && handles.is_empty() {
            // An empty message cannot be told from the end: there is none in our protocols.
            return Err(Error::PeerClosed);
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            let (found, limit) = (MAX_MESSAGE_HANDLES + 1, MAX_MESSAGE_HANDLES);
            return Err(Error::TooManyHandles { found, limit });
        }
        if received.bytes > MAX_MESSAGE_BYTES {
            let (found, limit) = (received.bytes, MAX_MESSAGE_BYTES);
            return Err(Error::TooLong { what: "message", found, limit });
        }
        bytes.truncate(received.bytes);
        Ok(Message { bytes, handles })
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn peer(&self) -> Result<Peer> {
        let credentials = sockopt::socket_peercred(&self.0)
            .map_err(|source| Error::io("cannot read the peer's credentials", source))?;
        let pid = u32::try_from(credentials.pid.as_raw_nonzero().get()).unwrap_or(0);
        Ok(Peer { pid, uid: credentials.uid.as_raw() })
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
        Handle::new(self.0)
    }
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
    /// Listens at a path and takes the place of whatever socket is left there. The socket appears under its
    /// name when it can be connected to, not before.
    ///
    /// # Errors
    /// The path cannot be used.
    pub fn bind(path: &Path) -> Result<Self> {
        let failed = |source| Error::io(format!("cannot listen at {}", path.display()), source);
        let socket = seqpacket()?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let _ = std::fs::remove_file(&temporary);
        let (address, _directory) = address(&temporary)?;
        rustix::net::bind(&socket, &address).map_err(failed)?;
        rustix::net::listen(&socket, BACKLOG).map_err(failed)?;
        std::fs::rename(&temporary, path)
            .map_err(|source| Error::io(format!("cannot listen at {}", path.display()), source))?;
        Ok(Self { socket, path: path.to_owned() })
    }

    /// The next connection.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when there is none; or the process is out of descriptors.
    pub fn accept(&self) -> Result<Channel> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        rustix::net::accept_with(&self.socket, flags)
            .map(Channel)
            .map_err(|source| Error::of_transfer("cannot accept a connection", source))
    }

    /// Where it listens.
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
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    SocketAddrUnix::new(&short).map(|address| (address, Some(directory))).map_err(failed)
}
