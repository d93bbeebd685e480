//! A byte stream between two processes, with back-pressure that the caller sees.

use crate::channel::{SEND, checked_socket, pair, receive};
use crate::error::{Error, Result};
use crate::handle::{Handle, receive_handles};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, Shutdown, SocketType, sockopt};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How many bytes a writer may be ahead of its reader.
const BUFFER_BYTES: usize = 1 << 20;

/// One end of a stream.
#[derive(Debug)]
pub struct Socket(Handle);

impl Socket {
    /// Two connected ends.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn pair() -> Result<(Self, Self)> {
        let (a, b) = pair(SocketType::STREAM)?;
        for end in [&a, &b] {
            // As far as the system allows: a writer with much data need not be woken for every few pages.
            let _ = sockopt::set_socket_send_buffer_size(end, BUFFER_BYTES);
        }
        Ok((Self(Handle::new(a)), Self(Handle::new(b))))
    }

    /// Takes a socket out of a message.
    ///
    /// # Errors
    /// The handle is something else.
    pub fn from_handle(handle: Handle) -> Result<Self> {
        checked_socket(handle, SocketType::STREAM, "socket").map(Self)
    }

    /// Puts the socket into a message.
    #[must_use]
    pub fn into_handle(self) -> Handle {
        self.0.share();
        self.0
    }

    /// Writes as many bytes as there is room for, at least one.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when there is no room, [`Error::PeerClosed`] when the reader has gone.
    pub fn write(&self, bytes: &[u8]) -> Result<usize> {
        rustix::net::send(&self.0, bytes, SEND)
            .map_err(|source| Error::of_transfer("cannot write to a socket", source))
    }

    /// Reads available bytes; 0 when the other end has shut down or closed and everything was read.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when there is nothing yet.
    pub fn read(&self, bytes: &mut [u8]) -> Result<usize> {
        self.read_with_handles(bytes).map(|(length, _)| length)
    }

    /// Writes bytes together with a descriptor of anything, which the reader gets with the first of them.
    ///
    /// # Errors
    /// As [`Socket::write`].
    pub fn write_with(&self, bytes: &[u8], descriptor: BorrowedFd<'_>) -> Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(Error::TooManyHandles { found: 1, limit: 0 });
        }
        rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut ancillary, SEND)
            .map_err(|source| Error::of_transfer("cannot write to a socket", source))
    }

    /// As [`Socket::read`], with the handles that were written with the bytes.
    ///
    /// # Errors
    /// As [`Socket::read`].
    pub fn read_with_handles(&self, bytes: &mut [u8]) -> Result<(usize, Vec<Handle>)> {
        receive(|| receive_handles(&self.0, bytes, RecvFlags::empty()))
            .map(|(received, handles)| (received.length, handles))
            .map_err(|source| Error::of_transfer("cannot read from a socket", source))
    }

    /// Writes nothing more; the reader gets to the end, and this end can still be read.
    pub fn end_writing(&self) {
        // The other end may have gone.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Write);
    }

    /// A second handle of the same end.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn duplicate(&self) -> Result<Self> {
        let copy = self.0.as_fd().try_clone_to_owned();
        let copy = copy.map_err(|source| Error::io("cannot duplicate a socket", source))?;
        let copy = Handle::new(copy);
        copy.share();
        self.0.share();
        Ok(Self(copy))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        socket.0.into_fd()
    }
}
