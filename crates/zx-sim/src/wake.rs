//! Waking a thread that waits for descriptors of its own, from threads that share the program's table.
//!
//! The sender is in the program's table, where the program may close it: it is checked before each use, and
//! the receiver sees that it is gone. It is a socket pair, because each socket has an inode of its own,
//! unlike an `eventfd`.

use crate::channel::pair;
use crate::error::Result;
use crate::guest::{Guarded, Identity};
use rustix::net::{RecvFlags, SendFlags, SocketType};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The end that wakes.
#[derive(Debug)]
pub struct WakeSender(Guarded<OwnedFd>);

/// The end to wait for: readable from the first wake until [`WakeReceiver::reset`].
#[derive(Debug)]
pub struct WakeReceiver(OwnedFd);

/// Both ends.
///
/// # Errors
/// The process is out of descriptors.
pub fn wake_pair() -> Result<(WakeSender, WakeReceiver)> {
    let (sender, receiver) = pair(SocketType::STREAM)?;
    let sender = Guarded::new(sender).ok_or(crate::Error::PeerClosed)?;
    Ok((WakeSender(sender), WakeReceiver(receiver)))
}

impl WakeSender {
    /// Wakes the receiver; false if the program has closed this end.
    pub fn wake(&self) -> bool {
        // Full only if it has been woken already.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        self.0.get().map(|socket| rustix::net::send(socket, &[0], flags)).is_some()
    }

    /// The number that distinguishes this end from others.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.0.identity()
    }
}

impl AsFd for WakeSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl WakeReceiver {
    /// Resets all wakes; false if none will come any more, because the sender is closed.
    pub fn reset(&self) -> bool {
        let mut wakes = [0; 64];
        loop {
            match rustix::net::recv(&self.0, &mut wakes, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return false,
                Ok(_) => {}
                Err(error) => return matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::INTR),
            }
        }
    }

    /// The end that another thread has taken over.
    #[must_use]
    pub fn from_fd(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// The descriptor, for another thread.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl AsFd for WakeReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::{Signals, wait_one};
    use std::time::Instant;

    fn is_woken(receiver: &WakeReceiver) -> bool {
        let now = Some(Instant::now());
        wait_one(receiver, Signals::READABLE, now).unwrap().contains(Signals::READABLE)
    }

    #[test]
    fn wakes_add_up_to_one_and_end_with_the_sender() {
        let (sender, receiver) = wake_pair().unwrap();
        assert!(!is_woken(&receiver));
        // More than the sockets hold.
        (0..100_000).for_each(|_| assert!(sender.wake()));
        assert!(is_woken(&receiver));
        assert!(receiver.reset());
        assert!(!is_woken(&receiver));
        drop(sender);
        assert!(is_woken(&receiver));
        assert!(!receiver.reset());
    }
}
