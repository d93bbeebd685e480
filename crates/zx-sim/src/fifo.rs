//! Small elements of one size between two processes, with a counted capacity.
//!
//! The kernel bounds a socket by the memory of its queue, not by the number of messages. All elements of a
//! FIFO take the same memory, so the cost of one is measured once, and the queue's memory divided by it is
//! the number of elements that the other end has not read.
//!
//! A full FIFO becomes writable in a wait when about half of it was read; a write may succeed before. One of
//! depth 1 may be writable in a wait though it is full.

use crate::channel::{MAX_MESSAGE_BYTES, SEND, checked_socket, pair, receive};
use crate::error::{Error, Result};
use crate::handle::{Handle, receive_handles};
use crate::sys;
use rustix::net::{RecvFlags, SocketType, sockopt};
use std::os::fd::{AsFd, BorrowedFd};

/// The kernel takes the size of a queue as an `int`, and doubles it.
const MAX_BUFFER_BYTES: usize = 1 << 29;

/// One end of a FIFO.
#[derive(Debug)]
pub struct Fifo {
    socket: Handle,
    element_bytes: usize,
    depth: usize,
    /// Queue memory of one element, in bytes.
    cost: usize,
}

impl Fifo {
    /// Two connected ends for elements of a size, of which at least `depth` and at most twice as many fit in
    /// each direction.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a size or depth of 0, or a depth beyond what the kernel queues for a socket;
    /// or the process is out of descriptors.
    pub fn create(element_bytes: usize, depth: usize) -> Result<(Self, Self)> {
        let (a, b) = pair(SocketType::SEQPACKET)?;
        let of_socket = |socket| Self::of_socket(Handle::new(socket), element_bytes, depth);
        Ok((of_socket(a)?, of_socket(b)?))
    }

    /// Takes a FIFO out of a message; size and depth are agreed on beforehand.
    ///
    /// # Errors
    /// The handle is something else; or as [`Fifo::create`].
    pub fn from_handle(handle: Handle, element_bytes: usize, depth: usize) -> Result<Self> {
        let socket = checked_socket(handle, SocketType::SEQPACKET, "fifo")?;
        Self::of_socket(socket, element_bytes, depth)
    }

    fn of_socket(socket: Handle, element_bytes: usize, depth: usize) -> Result<Self> {
        let failed = |source| Error::io("cannot set the size of a fifo", source);
        if element_bytes == 0 {
            let (least, most) = (1, MAX_MESSAGE_BYTES as u64);
            return Err(Error::OutOfRange { what: "fifo element size in bytes", found: 0, least, most });
        }
        let cost = element_cost(element_bytes)?;
        // The kernel doubles it, which makes twice the depth the most that several writers at once can queue.
        sockopt::set_socket_send_buffer_size(&socket, depth.saturating_mul(cost).min(MAX_BUFFER_BYTES))
            .map_err(failed)?;
        let room = sockopt::socket_send_buffer_size(&socket).map_err(failed)?;
        let most = room / cost;
        if depth == 0 || depth > most {
            let (found, most) = (depth as u64, most as u64);
            return Err(Error::OutOfRange { what: "fifo depth in elements", found, least: 1, most });
        }
        Ok(Self { socket, element_bytes, depth, cost })
    }

    /// Puts the FIFO into a message.
    #[must_use]
    pub fn into_handle(self) -> Handle {
        self.socket.share();
        self.socket
    }

    /// Queues an element.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when `depth` elements are unread, [`Error::PeerClosed`], or an element of
    /// another size.
    pub fn write(&self, element: &[u8]) -> Result<()> {
        self.check(element.len())?;
        if sys::unread_by_peer(&self.socket)? >= self.depth * self.cost {
            return Err(Error::ShouldWait);
        }
        rustix::net::send(&self.socket, element, SEND)
            .map(|_| ())
            .map_err(|source| Error::of_transfer("cannot write to a fifo", source))
    }

    /// Takes the next element; elements that were queued before the other end closed are still delivered.
    ///
    /// # Errors
    /// [`Error::ShouldWait`] when there is none, [`Error::PeerClosed`] when none will come, or an element
    /// of another size, which is gone.
    pub fn read(&self, element: &mut [u8]) -> Result<()> {
        self.check(element.len())?;
        let (received, _) = receive(|| receive_handles(&self.socket, element, RecvFlags::TRUNC))
            .map_err(|source| Error::of_transfer("cannot read from a fifo", source))?;
        if received.length == 0 {
            return Err(Error::PeerClosed);
        }
        self.check(received.length)
    }

    fn check(&self, found: usize) -> Result<()> {
        if found == self.element_bytes {
            Ok(())
        } else {
            Err(Error::ElementSize { expected: self.element_bytes, found })
        }
    }
}

impl AsFd for Fifo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Queue memory of an element of this size.
fn element_cost(element_bytes: usize) -> Result<usize> {
    let (a, _b) = pair(SocketType::SEQPACKET)?;
    rustix::net::send(&a, &vec![0; element_bytes], SEND)
        .map_err(|source| Error::of_transfer("cannot write to a fifo", source))?;
    Ok(sys::unread_by_peer(&a)?.max(1))
}
